//! The endpoint: the calls of a program, making progress, and dispatching what has come.

use crate::atomic::AtomicRequest;
use crate::completion::{ConnectionRequest, Peer, PostError, Sink, Token};
use crate::connection::{self, Connection};
use crate::control::{Control, status_of};
use crate::envelope::Envelope;
use crate::head::{DATA, Head, Kind, MONITORED, READ, Reader, SEGMENTED};
use crate::initiator::{self, Accesses, Operands, RemoteAddress};
use crate::matching::{MatchCriteria, Offer, Peek};
use crate::memory::{MAX_SPANS, Span, Spans};
use crate::peers::MAX_OPERATIONS;
use crate::presence::Presence;
use crate::receive::Receives;
use crate::send::{SendStatus, Sends, TaggedMessage};
use crate::shared::SharedReceives;
use crate::target::{AccessReport, ExposedMemory};
use crate::transport::{COUNTED_AS_SENT, Transport};
use bellwire::{
    Completion, Device, FunctionAddress, Operation as Completed, Result, Rights, Status,
};
use std::os::fd::BorrowedFd;

/// How to open an endpoint.
///
/// ```
/// use bellwire_tagged::Options;
///
/// let options = Options { receives: 1024, ..Options::default() };
/// assert_eq!(options.operations, 4096);
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct Options {
    /// Maximum number of waiting receives of each kind.
    pub receives: usize,
    /// Maximum number of messages that wait for their receivers, and as many accesses to peers'
    /// memory, at most 65,536. More are refused until some have ended.
    pub operations: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options { receives: 65_536, operations: 4096 }
    }
}

/// Maximum number of completions that one call of [`Endpoint::progress`] handles.
const BURST: usize = 32;
/// Maximum length of a [`crate::SendMode::Inject`] message, in bytes.
const INJECT_BYTES: usize = 16 << 10;

/// Sends and receives messages with tags.
///
/// One thread at a time drives it, and it makes progress in [`Endpoint::progress`].
///
/// ```
/// use bellwire::Device;
/// use bellwire_tagged::{
///     Endpoint, MatchCriteria, Options, Peer, SendMode, Span, TaggedCompletion, TaggedMessage,
///     Token,
/// };
///
/// let device = Device::open(&format!("shm:tagged-{}", std::process::id())).unwrap();
/// let mut sender = Endpoint::open(&device, 0, &Options::default()).unwrap();
/// let mut receiver = Endpoint::open(&device, 1, &Options::default()).unwrap();
///
/// let (bytes, mut buffer, mut received) = (*b"hello", [0; 5], None);
/// // SAFETY: both live until the message has arrived.
/// let (body, into) = unsafe {
///     (Span::new(bytes.as_ptr(), 5).into(), Span::new(buffer.as_mut_ptr(), 5).into())
/// };
/// let criteria = MatchCriteria { source: None, tag: Some((7, 0)) };
/// let mut sink = |completion: TaggedCompletion| received = Some(completion);
/// receiver.receive(criteria, into, Token::default(), &mut sink).unwrap();
///
/// let to: Peer = sender.peer(receiver.address());
/// let (token, mode) = (Token::default(), SendMode::Transmit);
/// let message = TaggedMessage { to, tag: Some(7), data: None, body: &body, token, mode };
/// let _status = sender.send(message).unwrap();
/// while received.is_none() {
///     sender.progress(&mut |_| ()).unwrap();
///     receiver.progress(&mut |completion| received = Some(completion)).unwrap();
/// }
/// assert_eq!((received.unwrap().length, &buffer), (5, b"hello"));
/// ```
#[must_use]
pub struct Endpoint {
    transport: Transport,
    sends: Sends,
    receives: Receives,
    accesses: Accesses,
    exposed: ExposedMemory,
    connection: Connection,
    presence: Presence,
}

impl Endpoint {
    /// Opens function `function` of `device` as an endpoint.
    ///
    /// # Errors
    /// As [`Device::open_function`].
    pub fn open(device: &Device, function: u8, options: &Options) -> Result<Endpoint> {
        let transport = Transport::open(device, function)?;
        // Peers may repeat numbers of an endpoint that was here before.
        let first = u32::from(transport.incarnation) << 16;
        let max_operations = options.operations.min(MAX_OPERATIONS);
        Ok(Endpoint {
            transport,
            sends: Sends::new(max_operations, first),
            receives: Receives::new(options.receives),
            accesses: Accesses::new(max_operations, first),
            exposed: ExposedMemory::new(),
            connection: Connection::new(),
            presence: Presence::new(),
        })
    }

    /// The address that peers reach it at.
    pub fn address(&self) -> FunctionAddress {
        self.transport.address()
    }

    /// The number here of the endpoint at `address`. That endpoint need not be there yet.
    #[inline]
    pub fn peer(&mut self, address: FunctionAddress) -> Peer {
        self.transport.peers.at(address)
    }

    /// The address of a peer.
    #[inline]
    pub fn address_of(&self, peer: Peer) -> FunctionAddress {
        self.transport.peers[peer].address.function_address()
    }

    /// Maximum length of an eager message, in bytes.
    pub fn eager_bytes(&self) -> usize {
        self.transport.eager_bytes()
    }

    /// Maximum length of a [`crate::SendMode::Inject`] message, in bytes.
    pub fn inject_bytes(&self) -> usize {
        INJECT_BYTES
    }

    /// Maximum length of an operand of an [atomic operation](Endpoint::atomic), in bytes:
    /// [`crate::OPERAND_BYTES`], or less if the device's packets are too short for two of them.
    pub fn operand_bytes(&self) -> usize {
        initiator::operand_bytes(&self.transport)
    }
}

// Messages.
impl Endpoint {
    /// Sends a message.
    ///
    /// # Errors
    /// [`PostError::Again`] without room; nothing was done then. [`PostError::Lost`] after others
    /// were lost.
    #[inline(always)]
    pub fn send(&mut self, message: TaggedMessage<'_>) -> Result<SendStatus, PostError> {
        self.sends.send(&mut self.transport, message)
    }

    /// As [`Endpoint::send`], for a message that others follow at once. A short one is copied, and
    /// waits for them. Those that wait leave with the next access, and with the next message that
    /// is sent otherwise or to another peer. They also leave when they fill a kilobyte, with the
    /// next [progress](Endpoint::progress), before a [sleep](Endpoint::arm), and at the end of the
    /// endpoint. Messages to one peer keep their order.
    ///
    /// # Errors
    /// As [`Endpoint::send`].
    pub fn send_more(&mut self, message: TaggedMessage<'_>) -> Result<SendStatus, PostError> {
        self.sends.send_more(&mut self.transport, message)
    }

    /// Whether messages wait for those that follow at once ([`Endpoint::send_more`]).
    #[inline]
    pub fn has_held(&self) -> bool {
        self.transport.has_held()
    }

    /// The peer of the last message, if that was the first one for it. Returned once.
    ///
    /// A link is set up then, which needs the progress of both sides. A program that makes none
    /// after a send should wait while [`Endpoint::has_unsent_packets`].
    #[inline(always)]
    pub fn take_first_contact(&mut self) -> Option<Peer> {
        self.transport.take_first_contact()
    }

    /// Whether packets for a peer are still here. They leave when both sides make progress.
    pub fn has_unsent_packets(&self, to: Peer) -> bool {
        self.transport.has_unsent_packets(to)
    }

    /// Sends packets that wait for further ones, as far as there is room.
    pub fn flush(&mut self) {
        self.transport.flush();
    }

    /// Whether all packets for a peer have left. Others leave when this side makes progress, and
    /// the other side makes room.
    #[inline]
    pub fn has_left(&self, to: Peer) -> bool {
        self.transport.has_left(to)
    }

    /// Receives one message into `into`.
    ///
    /// # Errors
    /// [`PostError::Again`] if too many receives wait already.
    #[inline]
    pub fn receive(
        &mut self,
        criteria: MatchCriteria,
        into: Spans,
        token: Token,
        sink: &mut impl Sink,
    ) -> Result<(), PostError> {
        self.receives.receive(&mut self.transport, criteria, into, token, sink)
    }

    /// Receives many messages into `span`, one behind the other, until less than `min_free` bytes
    /// are free. Then the span belongs to the program again, which is reported once
    /// ([`crate::CompletionKind::BufferReleased`]).
    ///
    /// # Errors
    /// As [`Endpoint::receive`].
    pub fn receive_many(
        &mut self,
        criteria: MatchCriteria,
        span: Span,
        min_free: usize,
        token: Token,
        sink: &mut impl Sink,
    ) -> Result<(), PostError> {
        self.receives.receive_many(&mut self.transport, criteria, (span, min_free), token, sink)
    }

    /// Cancels the oldest receive whose token has this context; it completes with
    /// [`crate::Outcome::Cancelled`]. `false`: there is none.
    pub fn cancel(&mut self, context: u64, sink: &mut impl Sink) -> bool {
        self.receives.cancel(context, sink)
    }

    /// Looks for an unexpected message. The result is reported as
    /// [`crate::CompletionKind::Peeked`].
    pub fn peek(
        &mut self,
        criteria: MatchCriteria,
        action: Peek,
        token: Token,
        sink: &mut impl Sink,
    ) {
        self.receives.peek(&mut self.transport, criteria, action, token, sink);
    }

    /// Receives the message that was [claimed](Peek::Claim) with the token's context; without
    /// `into` it is dropped.
    ///
    /// # Errors
    /// [`PostError::Failed`] if there is none.
    pub fn receive_claimed(
        &mut self,
        tagged: bool,
        into: Option<Spans>,
        token: Token,
        sink: &mut impl Sink,
    ) -> Result<(), PostError> {
        self.receives.receive_claimed(&mut self.transport, tagged, into, token, sink)
    }

    /// How many messages are unexpected: they have come and found no receive.
    pub fn unexpected(&self) -> usize {
        self.receives.unexpected()
    }

    /// Lets messages without a receive of this endpoint's own take those of `receives`.
    pub fn share(&mut self, receives: &SharedReceives) {
        self.receives.share(receives);
    }

    /// Gives unexpected messages to shared receives that were posted since.
    pub fn match_shared(&mut self, sink: &mut impl Sink) {
        self.receives.match_shared(&mut self.transport, sink);
    }
}

// Remote memory access.
impl Endpoint {
    /// Writes `body` to a peer's memory. It ends ([`crate::CompletionKind::AccessCompleted`]) when
    /// all bytes are there and, with `data`, the peer's program was told
    /// ([`crate::CompletionKind::Written`]). `copied`: the body can be reused when this returns.
    ///
    /// # Errors
    /// [`PostError::Again`] without room; nothing was done then. A refusal by the owner is reported
    /// at the end.
    pub fn write(
        &mut self,
        to: RemoteAddress,
        body: &Spans,
        data: Option<u64>,
        copied: bool,
        token: Token,
        sink: &mut impl Sink,
    ) -> Result<(), PostError> {
        self.accesses.write(&mut self.transport, to, body, (data, copied), token, sink)
    }

    /// Reads as much of a peer's memory as `into` has room for.
    ///
    /// # Errors
    /// As [`Endpoint::write`].
    pub fn read(
        &mut self,
        from: RemoteAddress,
        into: &Spans,
        token: Token,
        sink: &mut impl Sink,
    ) -> Result<(), PostError> {
        self.accesses.read(&mut self.transport, from, into, token, sink)
    }

    /// Changes numbers in a peer's memory, each atomically, and writes their previous values to
    /// `previous`, which has room for them if the request fetches. Requests of one peer are
    /// executed in order. The operands can be reused when this returns.
    ///
    /// # Errors
    /// - As [`Endpoint::write`].
    /// - [`bellwire::Error::TooLong`] for more than [`Endpoint::operand_bytes`].
    /// - [`bellwire::Error::WrongState`] if the operation is not defined for the type, or a span's
    ///   length differs from the request's.
    pub fn atomic(
        &mut self,
        target: RemoteAddress,
        request: AtomicRequest,
        operands: Operands<'_>,
        previous: Option<&Spans>,
        token: Token,
    ) -> Result<(), PostError> {
        self.accesses.atomic(&mut self.transport, target, request, operands, previous, token)
    }

    /// Lets peers use `span` by `key`, as `rights` say. Reads need the right to read, and writes
    /// the right to write. Atomic operations need the right to write, those that return previous
    /// values both. The right to atomics is not needed.
    ///
    /// # Errors
    /// [`PostError::Failed`] if the key is in use, the span is empty, or too many spans are
    /// exposed; as [`bellwire::Function::register_foreign`].
    pub fn expose(&mut self, key: u64, span: Span, rights: Rights) -> Result<(), PostError> {
        self.exposed.expose(&mut self.transport, key, span, rights)
    }

    /// Withdraws `key`: when this returns, the key is invalid. Unknown keys are ignored.
    pub fn withdraw(&mut self, key: u64) {
        self.exposed.withdraw(&mut self.transport, key);
    }

    /// From now on peers report each write, read and atomic operation, which
    /// [`Sink::memory_accessed`] receives. A peer's access ends only after the report. Peers that
    /// have asked for a key before do not know that they must report.
    pub fn monitor(&mut self) {
        self.exposed.monitored = true;
    }
}

// Connections.
impl Endpoint {
    /// From now on it has no peers, unless it is connected to one.
    pub fn restrict_to_peer(&mut self) {
        self.connection.restrict_to_peer();
    }

    /// From now on it reports requests for connections.
    pub fn listen(&mut self) {
        self.connection.listens = true;
    }

    /// The peer of its connection.
    pub fn connected(&self) -> Option<Peer> {
        self.connection.connected()
    }

    /// Asks the endpoint that listens at `to` for a connection. The result is
    /// [`crate::ConnectionEvent::Connected`] or [`crate::ConnectionEvent::Rejected`].
    ///
    /// # Errors
    /// [`PostError::Failed`] if it is not [restricted](Endpoint::restrict_to_peer), is connected or
    /// connecting already, or gives more private data than [`crate::CONNECTION_BYTES`].
    pub fn connect(&mut self, to: FunctionAddress, private_data: &[u8]) -> Result<(), PostError> {
        self.connection.connect(&mut self.transport, to, private_data)
    }

    /// Accepts a request that came to another endpoint of this program. From now on this endpoint
    /// is connected with the requester. [`crate::ConnectionEvent::Connected`] is reported when the
    /// requester has heard of it.
    ///
    /// # Errors
    /// As [`Endpoint::connect`].
    pub fn accept(
        &mut self,
        request: &ConnectionRequest,
        private_data: &[u8],
    ) -> Result<(), PostError> {
        self.connection.accept(&mut self.transport, request, private_data)
    }

    /// Rejects a request, which may have come to another endpoint of this program.
    ///
    /// # Errors
    /// [`PostError::Failed`] if there is more private data than [`crate::CONNECTION_BYTES`].
    pub fn reject(
        &mut self,
        request: &ConnectionRequest,
        private_data: &[u8],
    ) -> Result<(), PostError> {
        connection::reject(&mut self.transport, request, private_data)
    }

    /// Ends a connection, or the wait for one. Unfinished operations fail. The peer is told after
    /// all packets that have left for it; segments that still wait for room are dropped. This side
    /// also gets [`crate::ConnectionEvent::Disconnected`].
    pub fn disconnect(&mut self, sink: &mut impl Sink) {
        if let Some(peer) = self.connection.give_up() {
            let _ = self.transport.post_held(false);
            self.peer_gone(peer, Status::Flushed, sink);
            self.transport.send_control(peer, Control::Disconnect);
        }
    }
}

// Progress.
impl Endpoint {
    /// Handles what has come, and goes on with what waits. Returns how much was done; 0: nothing to
    /// do now.
    ///
    /// # Errors
    /// [`bellwire::Error::Forked`].
    #[inline]
    pub fn progress(&mut self, sink: &mut impl Sink) -> Result<usize> {
        let held = if self.transport.has_held() { self.post_held() } else { 0 };
        let mut packets = self.receives.in_place(self.connection.mode(), sink);
        let mut next = self.transport.poll(&mut packets)?;
        let mut done = packets.taken();
        while let Some(completion) = next {
            self.handle(completion, sink);
            done += 1;
            // Do not poll again: it would delay a lone message by its own cost.
            next = if done < BURST { self.transport.next_completion()? } else { None };
        }
        if done > 0 {
            self.sends.end_burst();
        }
        done += held;
        if self.transport.has_waiting_control() {
            done += self.transport.flush_outbox();
        }
        if self.sends.has_unsent() {
            done += self.sends.send_segments(&mut self.transport);
        }
        if self.sends.has_leaving() {
            done += self.sends.complete_left(&mut self.transport, sink);
        }
        if self.receives.fetches.has_unposted() {
            done += self.receives.post_fetches(&mut self.transport, sink);
        }
        if self.accesses.has_unposted() {
            done += self.accesses.post_waiting(&mut self.transport, sink);
        }
        if done == 0 && self.presence.count_idle_poll() {
            done = self.do_periodic_work(sink);
        }
        Ok(done)
    }

    /// Posts messages that wait for others. Returns how much was done.
    #[cold]
    fn post_held(&mut self) -> usize {
        // What finds no room waits on.
        let _ = self.transport.post_held(false);
        usize::from(!self.transport.has_held())
    }

    /// A descriptor for `poll` or `epoll`: readable when there is something to do, once
    /// [`Endpoint::arm`] returned `true`.
    pub fn wait_fd(&self) -> BorrowedFd<'_> {
        self.transport.wait_fd()
    }

    /// Asks for [`Endpoint::wait_fd`] to become readable. `false`: there is something to do
    /// already.
    ///
    /// # Errors
    /// [`bellwire::Error::Forked`].
    pub fn arm(&mut self) -> Result<bool> {
        let _ = self.transport.post_held(false);
        self.probe_peers();
        if self.connection.disconnected {
            // A program that sleeps makes no idle polls.
            self.presence.expedite();
            return Ok(false);
        }
        if self.receives.end_patience() {
            return Ok(false);
        }
        let is_busy = self.transport.has_held()
            || self.transport.has_waiting_control()
            || self.sends.has_unsent()
            || self.sends.has_left(&self.transport)
            || self.receives.fetches.has_unposted()
            || self.accesses.has_unposted();
        Ok(!is_busy && self.transport.arm()?)
    }

    /// Whether something waits for peers, so that a sleeper must wake up periodically.
    pub fn is_waiting_for_peers(&self) -> bool {
        self.awaited_peers().next().is_some() || !self.receives.fetches.is_empty()
    }

    /// Peers that must answer, perhaps several times.
    fn awaited_peers(&self) -> impl Iterator<Item = Peer> {
        let incoming = self.transport.peers.incoming().iter().copied();
        let operations = self.sends.receivers().chain(self.accesses.owners());
        operations.chain(incoming).chain(self.connection.awaited_peer())
    }

    /// Probes peers that keep us waiting, and cancels receives that wait for a peer that has left.
    #[cold]
    fn do_periodic_work(&mut self, sink: &mut impl Sink) -> usize {
        self.probe_peers();
        if std::mem::take(&mut self.connection.disconnected) {
            self.receives.cancel_all(sink)
        } else {
            0
        }
    }

    /// Asks all peers that keep us waiting whether they are there, unless that was done recently.
    #[cold]
    fn probe_peers(&mut self) {
        if self.awaited_peers().next().is_none() || !self.presence.is_probe_due() {
            return;
        }
        let mut peers: Vec<Peer> = self.awaited_peers().collect();
        peers.sort_unstable();
        peers.dedup();
        for peer in peers {
            // Without room for it, a probe is already in flight.
            self.transport.try_send_control(peer, &Control::Probe);
        }
    }

    #[inline]
    fn handle(&mut self, completion: Completion, sink: &mut impl Sink) {
        let (context, status) = (completion.context, completion.status);
        match completion.operation {
            Completed::Receive => self.handle_packet(completion, sink),
            Completed::Put | Completed::Get if initiator::is_access(context) => {
                self.accesses.posted_ended(&mut self.transport, context, status, sink);
            }
            Completed::Get => self.receives.fetched(&mut self.transport, context, status, sink),
            // Only failed ones are reported.
            _ => {
                let peer = self.peer(completion.peer.function_address());
                if context == COUNTED_AS_SENT {
                    self.transport.peer(peer).lost = Some(status);
                }
                self.peer_gone(peer, status, sink);
            }
        }
    }

    #[inline]
    fn handle_packet(&mut self, completion: Completion, sink: &mut impl Sink) {
        let from = completion.peer.function_address();
        let tag = completion.immediate();
        let (length, status) = (completion.length, completion.status);
        let Some(buffer) = completion.buffer else { return };
        if status == Status::Flushed {
            return;
        }
        if let (Status::Success, Some(tag), Some(bytes)) = (status, tag, buffer.as_slice())
            && self.dispatch(from, tag, &bytes[..length], sink).is_none()
        {
            tracing::warn!("{from} sent something that no endpoint sends; it was dropped");
        }
        self.transport.repost(buffer);
    }

    /// Parses and handles a packet of `from`; `None`: it is not a valid one.
    #[inline]
    fn dispatch(
        &mut self,
        from: FunctionAddress,
        tag: u64,
        bytes: &[u8],
        sink: &mut impl Sink,
    ) -> Option<()> {
        let mut reader = Reader(bytes);
        let head = Head::from_word(reader.word()?)?;
        let peer = self.peer(from);
        if !self.transport.peer(peer).update(&head) {
            self.peer_replaced(peer, sink);
            self.transport.peer(peer).update(&head);
        }
        if !self.connection.mode().admits(peer, head.kind) {
            return None;
        }
        let transport = &mut self.transport;
        if transport.peer(peer).incoming().is_some() && !head.leaves_unfinished() {
            self.receives.abandon_incoming(transport, peer, Status::PeerGone, sink);
        }
        match head.kind {
            Kind::Eager => {
                let mut envelope = Envelope::read(peer, &head, tag, || reader.word())?;
                if head.flags & SEGMENTED != 0 {
                    return self.receives.first_segment(transport, envelope, reader.0, sink);
                }
                envelope.length = reader.0.len();
                self.receives.eager(transport, envelope, reader.0, sink)?;
            }
            Kind::Offer => {
                let envelope = Envelope::read(peer, &head, tag, || reader.word())?;
                let offer = read_offer(from, envelope.length, reader)?;
                self.receives.offered(transport, envelope, offer, sink)?;
            }
            Kind::Segment => {
                let at = usize::try_from(reader.word()?).ok()?;
                self.receives.segment(transport, peer, at, reader.0, sink)?;
            }
            Kind::Finished => {
                let (operation, status) = (reader.word()?, reader.word()?);
                self.sends.finished(transport, peer, operation, status, sink);
            }
            Kind::Credit => self.connection.confirmed(peer, sink),
            Kind::Probe => transport.send_control(peer, Control::Credit),
            Kind::Resolve => {
                let (access, key) = (reader.word()?, reader.word()?);
                self.exposed.resolve(transport, peer, access, key);
            }
            Kind::Accessed => {
                let (access, key) = (reader.word()?, reader.word()?);
                let (data, length) = (reader.word()?, usize::try_from(reader.word()?).ok()?);
                let data = (head.flags & DATA != 0).then_some(data);
                let report = AccessReport { key, data, length, read: head.flags & READ != 0 };
                self.exposed.accessed(transport, peer, access, report, sink);
            }
            Kind::Atomic => {
                let access = reader.word()?;
                self.exposed.execute_atomic(transport, peer, access, reader, sink)?;
            }
            Kind::Reply => {
                let (access, status) = (reader.word()?, status_of(reader.word()?));
                if head.flags & MONITORED != 0 {
                    transport.peer(peer).monitored = true;
                }
                self.accesses.replied(transport, peer, access, status, reader, sink);
            }
            Kind::Connect => {
                let (number, incarnation) = (reader.word()?, head.incarnation);
                let request = ConnectionRequest { from, number, incarnation };
                self.connection.requested(transport, peer, request, reader.0, sink);
            }
            Kind::Accept => {
                let request = reader.word()?;
                self.connection.accepted(transport, peer, request, reader.0, sink);
            }
            Kind::Reject => self.connection.rejected(reader.word()?, reader.0, sink),
            Kind::Disconnect if self.connected() == Some(peer) => {
                self.peer_gone(peer, Status::PeerGone, sink);
            }
            Kind::Disconnect => {}
        }
        Some(())
    }

    /// The endpoint at a peer's address is gone: operations that wait for it fail.
    #[cold]
    fn peer_gone(&mut self, peer: Peer, why: Status, sink: &mut impl Sink) {
        let transport = &mut self.transport;
        self.sends.peer_gone(transport, peer, why, sink);
        self.receives.peer_gone(transport, peer, why, sink);
        self.accesses.peer_gone(transport, peer, why, sink);
        transport.drop_control(peer);
        transport.drop_held(peer, why);
        // Credit counts stay: if the same endpoint comes back, its counts have gone on too.
        self.receives.forget(transport, peer, false);
        self.connection.peer_gone(peer, sink);
    }

    /// Another endpoint is at a peer's address: the previous one's messages are void.
    #[cold]
    fn peer_replaced(&mut self, peer: Peer, sink: &mut impl Sink) {
        self.peer_gone(peer, Status::PeerGone, sink);
        self.receives.forget(&mut self.transport, peer, true);
        self.transport.peer(peer).reset();
    }
}

/// The keys of an offer. They must be the sender's, and their lengths must sum up to the message's.
#[cold]
fn read_offer(from: FunctionAddress, length: usize, mut reader: Reader<'_>) -> Option<Offer> {
    let (mut keys, mut sum) = (Vec::new(), 0_u64);
    while !reader.0.is_empty() {
        let key = reader.key().filter(|key| key.owner() == from)?;
        sum = sum.checked_add(key.length)?;
        keys.push(key);
    }
    (sum == length as u64 && keys.len() <= MAX_SPANS).then_some(Offer { keys })
}

impl Drop for Endpoint {
    /// Sends what waits for further messages, and takes memory that peers may read back for the
    /// program.
    fn drop(&mut self) {
        let _ = self.transport.post_held(false);
        self.sends.close(&mut self.transport);
        self.exposed.close(&mut self.transport);
    }
}
