//! An endpoint's function: its queue pairs, its peers' credit, and the packets to them.

use crate::completion::{Peer, is_no_room};
use crate::control::Control;
use crate::head::{EAGER_HEAD_BYTES, Head, Kind, TAGGED, Writer};
use crate::memory::{Span, Spans};
use crate::peers::{MAILBOX, PeerState, Peers};
use bellwire::{
    Address, Buffer, Completion, CompletionQueue, Device, Error, Function, FunctionAddress,
    FunctionOptions, Get, Inbox, LocalChain, MemoryRegion, Message, PackedMessages, Put, QueuePair,
    QueuePairOptions, RemoteChain, RemoteSlice, Result, Rights, Status,
};
use bellwire_ring::memory::View;
use std::collections::VecDeque;
use std::os::fd::BorrowedFd;

/// Buffers that messages arrive in.
const BUFFERS: usize = 64;
/// Size of the completion queue: for the buffers, and for all that peers have not taken yet.
const COMPLETIONS: usize = 1 << 16;
/// Room for the longest head, that of an offer of several spans, in bytes.
const MIN_PACKET_BYTES: usize = 256;
/// Maximum number of control messages that wait to be sent. No proper peer causes more.
const MAX_OUTBOX: usize = 1 << 18;
/// Maximum length of a message that waits for further ones, in bytes.
const HELD_BYTES: usize = PackedMessages::LONGEST - Head::BYTES;
/// Maximum number of words between head and bytes.
const MAX_WORDS: usize = (EAGER_HEAD_BYTES - Head::BYTES) / 8;

/// Context of a descriptor whose message counts as sent already. If it fails, the program does not
/// know yet.
pub(crate) const COUNTED_AS_SENT: u64 = 1;

/// The device's side of an endpoint.
pub(crate) struct Transport {
    function: Function,
    completions: CompletionQueue,
    mailbox: QueuePair,
    /// Drawn at random when it was opened.
    pub(crate) incarnation: u16,
    /// Maximum length of a packet, in bytes.
    pub(crate) packet_bytes: usize,
    pub(crate) peers: Peers,
    /// Buffer in which a message is assembled.
    scratch: Box<[u8]>,
    outbox: Outbox,
    /// Messages that wait for those that follow at once, and their receiver. Both sides count them
    /// as sent: they are copies.
    held: PackedMessages,
    held_for: Peer,
    /// The peer of the last message, if that was the first one for it.
    first_contact: Option<Peer>,
}

/// Control messages that found no room.
pub(crate) struct Outbox(pub(crate) VecDeque<(Peer, Control)>);

impl Outbox {
    /// Queues a control message until [`Transport::flush_outbox`] sends it.
    #[cold]
    pub(crate) fn push(&mut self, peer: Peer, control: Control) {
        if self.0.len() >= MAX_OUTBOX {
            tracing::warn!("too many replies wait for peers; one was dropped");
            return;
        }
        self.0.push_back((peer, control));
    }
}

/// Looks at packets while they are in the device's memory.
pub(crate) trait PacketSink {
    /// Takes a packet with this immediate value. `false`: nothing was done, and the packet takes a
    /// buffer.
    fn packet(
        &mut self,
        peers: &mut Peers,
        outbox: &mut Outbox,
        peer: Peer,
        immediate: u64,
        bytes: View<'_>,
    ) -> bool;

    /// Whether the packet that was just not taken stays in the device's memory until the next poll.
    fn leaves(&mut self) -> bool;
}

/// The parts of the transport that a packet in place needs: all except its function, which shows
/// the packet.
struct Mailbox<'a, S> {
    pair: QueuePair,
    peers: &'a mut Peers,
    outbox: &'a mut Outbox,
    sink: &'a mut S,
}

impl<S: PacketSink> Inbox for Mailbox<'_, S> {
    #[inline]
    fn message(
        &mut self,
        queue_pair: QueuePair,
        from: Address,
        immediate: Option<u64>,
        bytes: View<'_>,
    ) -> bool {
        let Some(immediate) = immediate.filter(|_| queue_pair == self.pair) else { return false };
        let peer = self.peers.at(from.function_address());
        self.sink.packet(self.peers, self.outbox, peer, immediate, bytes)
    }

    #[inline]
    fn leaves(&mut self) -> bool {
        self.sink.leaves()
    }
}

impl Transport {
    /// Opens function `function` of `device`.
    pub(crate) fn open(device: &Device, function: u8) -> Result<Transport> {
        let opening = FunctionOptions::default().outstanding(256);
        let mut function = device.open_function_with(function, &opening)?;
        let completions = function.create_completion_queue(COMPLETIONS)?;
        let own = QueuePairOptions::new(completions).send_depth(1).receive_depth(BUFFERS);
        let mailbox = function.create_queue_pair(&own)?;
        debug_assert_eq!(mailbox.number, MAILBOX);
        let packet_bytes = function.limits().eager_bytes;
        if packet_bytes < MIN_PACKET_BYTES {
            return Err(Error::DeviceUnavailable {
                device: device.name().to_owned(),
                why: format!(
                    "its packets carry {packet_bytes} bytes, and messages with tags need {MIN_PACKET_BYTES}"
                ),
                hint: "another device: bellwire doctor".to_owned(),
            });
        }
        for _ in 0..BUFFERS {
            function.post_receive(mailbox, vec![0; packet_bytes], 0)?;
        }
        Ok(Transport {
            function,
            completions,
            mailbox,
            incarnation: u16::from_le_bytes(random_bytes()?),
            packet_bytes,
            peers: Peers::new(),
            scratch: vec![0; packet_bytes].into(),
            outbox: Outbox(VecDeque::new()),
            held: PackedMessages::new(),
            held_for: Peer(0),
            first_contact: None,
        })
    }

    pub(crate) fn address(&self) -> FunctionAddress {
        self.function.address()
    }

    /// Maximum length of an eager message, in bytes.
    #[inline]
    pub(crate) fn eager_bytes(&self) -> usize {
        self.packet_bytes - EAGER_HEAD_BYTES
    }

    #[inline(always)]
    pub(crate) fn peer(&mut self, peer: Peer) -> &mut PeerState {
        &mut self.peers[peer]
    }
}

// Packets.
impl Transport {
    /// Sends a whole message in one packet that needs no words behind its head. `None`: it does not
    /// fit into a packet or exceeds the credit, or lost messages must be reported first.
    // The common case: no structure goes through memory.
    #[inline(always)]
    pub(crate) fn send_plain(
        &mut self,
        to: Peer,
        tag: Option<u64>,
        body: &Span,
    ) -> Option<Result<()>> {
        if self.has_held()
            && let Some(sent) = self.send_behind(to, tag, body)
        {
            return Some(sent);
        }
        let eager_bytes = self.eager_bytes();
        let peer = &mut self.peers[to];
        let units = PeerState::units(body.len());
        if body.len() > eager_bytes || !peer.may_send(units) || peer.lost.is_some() {
            return None;
        }
        if peer.created_pair().is_none() {
            self.first_contact = Some(to);
        }
        let pair = match peer.pair(&mut self.function, self.completions) {
            Ok(pair) => pair,
            Err(error) => return Some(Err(error)),
        };
        let flags = if tag.is_some() { TAGGED } else { 0 };
        let head = peer.head(Kind::Eager, flags, self.incarnation).to_word().to_le_bytes();
        let send = Message::gathered(&head, body.view())
            .to(peer.address)
            .immediate(tag.unwrap_or_default())
            .context(COUNTED_AS_SENT)
            .unsignaled();
        match self.function.post_send(pair, send) {
            Ok(()) => peer.count_sent(units),
            Err(refused) => return Some(Err(refused.error)),
        }
        Some(Ok(()))
    }

    /// The peer to which the first message was sent since the last call.
    #[inline(always)]
    pub(crate) fn take_first_contact(&mut self) -> Option<Peer> {
        self.first_contact.take()
    }

    /// Whether packets for a peer are still here.
    pub(crate) fn has_unsent_packets(&self, to: Peer) -> bool {
        let pair = self.peers[to].created_pair();
        let state = pair.and_then(|pair| self.function.query(pair).ok());
        state.is_some_and(|state| state.posted_sends > 0)
    }

    /// Whether all packets for a peer have left.
    #[inline]
    pub(crate) fn has_left(&self, to: Peer) -> bool {
        let peer = &self.peers[to];
        peer.unsent.is_none() && peer.created_pair().is_none_or(|pair| self.function.has_left(pair))
    }

    /// Packets that are sent from now on may wait for each other, until [`Transport::flush`].
    pub(crate) fn hold_packets(&mut self) {
        self.function.hold();
    }

    /// Sends packets that wait for further ones, and holds none back any more.
    pub(crate) fn flush(&mut self) {
        self.function.flush();
    }

    /// Sends a packet to `to`: a head, words, and `length` bytes that `body` finds, which may use
    /// the buffer that it gets.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn send_gathered<'s>(
        &'s mut self,
        to: Peer,
        kind: Kind,
        flags: u8,
        words: [Option<u64>; MAX_WORDS],
        immediate: u64,
        context: u64,
        body: impl FnOnce(&'s mut [u8]) -> View<'s>,
    ) -> Result<()> {
        self.post_held_before(to)?;
        let peer = &mut self.peers[to];
        if peer.created_pair().is_none() {
            self.first_contact = Some(to);
        }
        let pair = peer.pair(&mut self.function, self.completions)?;
        let head = peer.head(kind, flags, self.incarnation);
        let mut bytes = [0; EAGER_HEAD_BYTES];
        let mut writer = Writer { bytes: &mut bytes, at: 0 };
        writer.word(head.to_word());
        for word in words.into_iter().flatten() {
            writer.word(word);
        }
        let end = writer.at;
        let send = Message::gathered(&bytes[..end], body(&mut self.scratch))
            .to(peer.address)
            .immediate(immediate)
            .context(context)
            .unsignaled();
        self.function.post_send(pair, send).map_err(|refused| refused.error)
    }

    /// Sends a packet to `to`: a head, and what `write` puts behind it.
    pub(crate) fn send_packet(
        &mut self,
        to: Peer,
        kind: Kind,
        flags: u8,
        immediate: u64,
        write: impl FnOnce(&mut Writer<'_>),
    ) -> Result<()> {
        self.post_held_before(to)?;
        let peer = &mut self.peers[to];
        let pair = peer.pair(&mut self.function, self.completions)?;
        let head = peer.head(kind, flags, self.incarnation);
        let mut writer = Writer { bytes: &mut self.scratch, at: 0 };
        writer.word(head.to_word());
        write(&mut writer);
        let end = writer.at;
        let send = Message::inline(&self.scratch[..end])
            .to(peer.address)
            .immediate(immediate)
            .unsignaled();
        self.function.post_send(pair, send).map_err(|refused| refused.error)
    }

    /// Sends a control message, now or later.
    pub(crate) fn send_control(&mut self, peer: Peer, control: Control) {
        // Waiting messages go first. A peer gets one reply for each of its operations, which bounds
        // the queue.
        if !self.outbox.0.is_empty() || !self.try_send_control(peer, &control) {
            self.outbox.push(peer, control);
        }
    }

    /// `false`: there is no room now.
    pub(crate) fn try_send_control(&mut self, to: Peer, control: &Control) -> bool {
        let sent = self.send_packet(to, control.kind(), control.flags(), 0, |writer| {
            control.write(writer);
        });
        // Other failures are final: another completion reports that the peer is gone.
        !sent.is_err_and(|error| is_no_room(&error))
    }

    /// Whether control messages wait.
    #[inline]
    pub(crate) fn has_waiting_control(&self) -> bool {
        !self.outbox.0.is_empty()
    }

    /// Sends control messages that had to wait. Returns how many.
    pub(crate) fn flush_outbox(&mut self) -> usize {
        let mut sent = 0;
        for _ in 0..self.outbox.0.len() {
            let Some((peer, control)) = self.outbox.0.pop_front() else { break };
            if self.try_send_control(peer, &control) {
                sent += 1;
            } else {
                // Others may not be blocked by this peer.
                self.outbox.0.push_back((peer, control));
            }
        }
        sent
    }

    /// Drops the control messages to a peer that is gone.
    pub(crate) fn drop_control(&mut self, peer: Peer) {
        self.outbox.0.retain(|(to, _)| *to != peer);
    }
}

// Messages that wait for those that follow at once.
impl Transport {
    /// Whether messages wait.
    #[inline(always)]
    pub(crate) fn has_held(&self) -> bool {
        !self.held.is_empty()
    }

    /// Keeps a message as [`Transport::send_plain`] sends it, to post it with those that follow.
    /// `None`: it must be sent by itself.
    pub(crate) fn hold(&mut self, to: Peer, tag: Option<u64>, body: &Span) -> Option<Result<()>> {
        let units = PeerState::units(body.len());
        let peer = &self.peers[to];
        // A first message sets up a link, for which its sender waits.
        if body.len() > HELD_BYTES.min(self.eager_bytes())
            || !peer.may_send(units)
            || peer.lost.is_some()
            || peer.created_pair().is_none()
        {
            return None;
        }
        if self.held_for != to {
            // A peer without room delays no other.
            self.post_held(true).ok()?;
            self.held_for = to;
        }
        let gathered = self.gather(tag, body);
        if gathered.is_ok() {
            self.peers[to].count_sent(units);
        }
        Some(gathered)
    }

    /// Adds a message to those that wait. Without room for it they leave before.
    fn gather(&mut self, tag: Option<u64>, body: &Span) -> Result<()> {
        let flags = if tag.is_some() { TAGGED } else { 0 };
        let head = self.peers[self.held_for].head(Kind::Eager, flags, self.incarnation);
        let (head, tag) = (head.to_word().to_le_bytes(), tag.unwrap_or_default());
        if !self.function.gather(&mut self.held, tag, &head, body.view())? {
            self.post_held(true)?;
            let added = self.function.gather(&mut self.held, tag, &head, body.view())?;
            debug_assert!(added, "it is short, and there is nothing else");
        }
        Ok(())
    }

    /// Sends a message with those that wait for it. `None`: it must be sent by itself, and those of
    /// its receiver have been posted.
    #[inline(never)]
    fn send_behind(&mut self, to: Peer, tag: Option<u64>, body: &Span) -> Option<Result<()>> {
        if self.held_for == to
            && let Some(sent) = self.hold(to, tag, body)
        {
            // What finds no room leaves later.
            let _ = self.post_held(false);
            return Some(sent);
        }
        self.post_held_before(to).err().map(Err)
    }

    /// Posts the messages that wait for further ones, before a packet or an access to `to`. It
    /// fails if it would overtake some.
    #[inline(always)]
    pub(crate) fn post_held_before(&mut self, to: Peer) -> Result<()> {
        if !self.has_held() {
            return Ok(());
        }
        let posted = self.post_held(true);
        // A peer without room delays no other.
        if self.held_for == to { posted } else { Ok(()) }
    }

    /// Posts the messages that wait for further ones. `more`: others follow at once. If there is no
    /// room, the rest waits on.
    #[inline(never)]
    pub(crate) fn post_held(&mut self, more: bool) -> Result<()> {
        if !self.has_held() {
            return Ok(());
        }
        let peer = &mut self.peers[self.held_for];
        let pair = peer.pair(&mut self.function, self.completions)?;
        let to = peer.address;
        let posted = self.function.post_packed(pair, to, &mut self.held, COUNTED_AS_SENT, more);
        if let Err(error) = &posted
            && !is_no_room(error)
        {
            self.held.clear();
            peer.lost = Some(Status::Flushed);
        }
        posted
    }

    /// Drops the messages that wait for further ones to a peer that is gone.
    pub(crate) fn drop_held(&mut self, peer: Peer, why: Status) {
        if self.has_held() && self.held_for == peer {
            self.held.clear();
            self.peer(peer).lost = Some(why);
        }
    }
}

// Memory.
impl Transport {
    /// Registers spans of the program for one message. After an error none is registered.
    pub(crate) fn register(
        &mut self,
        spans: impl IntoIterator<Item = Span>,
        rights: Rights,
    ) -> Result<Vec<MemoryRegion>> {
        let mut regions = Vec::with_capacity(1);
        for span in spans.into_iter().filter(|span| !span.is_empty()) {
            match span.register(&mut self.function, rights) {
                Ok(region) => regions.push(region),
                Err(error) => {
                    self.release(regions);
                    return Err(error);
                }
            }
        }
        Ok(regions)
    }

    /// Releases regions that no descriptor of ours names.
    pub(crate) fn release(&mut self, regions: impl IntoIterator<Item = MemoryRegion>) {
        for region in regions {
            let released = self.function.deregister_foreign(&region);
            debug_assert!(released.is_ok(), "{released:?}");
        }
    }

    /// Posts a get from memory of `from` to our regions.
    pub(crate) fn get(
        &mut self,
        from: Peer,
        sources: Vec<RemoteSlice>,
        regions: &[MemoryRegion],
        context: u64,
    ) -> Result<()> {
        let pair = self.peers[from].fetch_pair(&mut self.function, self.completions)?;
        let sources: RemoteChain = match <[RemoteSlice; 1]>::try_from(sources) {
            Ok([source]) => source.into(),
            Err(several) => several.into(),
        };
        let get = Get::new(sources, local(regions)).context(context);
        self.function.post_get(pair, get).map_err(|refused| refused.error)
    }

    /// Posts a put from our regions to memory of `to`.
    pub(crate) fn put(
        &mut self,
        to: Peer,
        regions: &[MemoryRegion],
        slice: RemoteSlice,
        context: u64,
    ) -> Result<()> {
        let pair = self.peers[to].fetch_pair(&mut self.function, self.completions)?;
        let put = Put::new(local(regions), slice).context(context);
        self.function.post_put(pair, put).map_err(|refused| refused.error)
    }

    /// Posts a put of at most [`Transport::eager_bytes`] copied bytes to memory of `to`.
    pub(crate) fn put_copied(
        &mut self,
        to: Peer,
        spans: &Spans,
        slice: RemoteSlice,
        context: u64,
    ) -> Result<()> {
        let pair = self.peers[to].fetch_pair(&mut self.function, self.completions)?;
        let bytes = &mut self.scratch[..spans.len()];
        spans.read(bytes);
        let put = Put::inline(bytes, slice).context(context);
        self.function.post_put(pair, put).map_err(|refused| refused.error)
    }
}

// Progress.
impl Transport {
    /// Polls the device. Packets go to `sink` while they are in the device's memory.
    #[inline]
    pub(crate) fn poll(&mut self, sink: &mut impl PacketSink) -> Result<Option<Completion>> {
        let (peers, outbox) = (&mut self.peers, &mut self.outbox);
        let mut mailbox = Mailbox { pair: self.mailbox, peers, outbox, sink };
        self.function.poll_with(self.completions, &mut mailbox)
    }

    /// The next completion, without another poll of the device.
    #[inline]
    pub(crate) fn next_completion(&mut self) -> Result<Option<Completion>> {
        self.function.next_completion(self.completions)
    }

    /// Posts a buffer again that a packet came in.
    #[inline]
    pub(crate) fn repost(&mut self, buffer: Buffer) {
        // The buffer that just left made room.
        let posted = self.function.post_receive(self.mailbox, buffer, 0);
        debug_assert!(posted.is_ok(), "{posted:?}");
    }

    pub(crate) fn wait_fd(&self) -> BorrowedFd<'_> {
        self.function.wait_fd()
    }

    pub(crate) fn arm(&mut self) -> Result<bool> {
        self.function.arm()
    }
}

/// One region needs no list.
fn local(regions: &[MemoryRegion]) -> LocalChain {
    match regions {
        [region] => Buffer::from(region).into(),
        several => several.iter().map(Buffer::from).collect::<Vec<_>>().into(),
    }
}

/// Unpredictable random bytes.
pub(crate) fn random_bytes<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    let what = "asking the kernel for a random number";
    let random = std::fs::File::open("/dev/urandom");
    random
        .and_then(|mut file| std::io::Read::read_exact(&mut file, &mut bytes))
        .map_err(|cause| Error::System { what, cause })?;
    Ok(bytes)
}
