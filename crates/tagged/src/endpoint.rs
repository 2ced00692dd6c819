//! The endpoint: opening it, and handling what has come.

use crate::access::CHANGE_HEAD_BYTES;
use crate::access::{self, Access};
use crate::atomic::OPERAND_BYTES;
use crate::connection::Company;
use crate::control::{Control, status_of};
use crate::exposed::{Exposed, Touch};
use crate::head::{DATA, EAGER_HEAD_BYTES, Head, Kind, PIECES, READ, Reader, WATCHES};
use crate::peers::{MAILBOX, OFFERS, Peers};
use crate::receive::{Label, Many, Matching};
use crate::send::FINISHED;
use crate::slots::Slots;
use crate::transfer::{Offer, Transfer};
use crate::{Peer, SharedReceives, Sink, Token};
use bellwire::{
    Completion, CompletionQueue, Device, Error, Function, FunctionAddress, FunctionOptions,
    MemoryRegion, Operation as Finished, QueuePair, QueuePairOptions, Result, Status,
};
use std::collections::{HashMap, VecDeque};
use std::os::fd::BorrowedFd;
use std::time::Instant;

/// How to open an endpoint.
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

/// Buffers that messages arrive in.
const BUFFERS: usize = 64;
/// Maximum number of completions that one call of [`Endpoint::progress`] handles.
const BURST: usize = 32;
/// Size of the completion queue: for the buffers, and for all that peers have not taken yet.
const COMPLETIONS: usize = 1 << 16;
/// Room for the longest head, that of an offer of several parts, in bytes.
const LEAST_PACKET_BYTES: usize = 256;
/// Maximum length of a [`crate::How::Copied`] message, in bytes.
const INJECT_BYTES: usize = 16 << 10;

/// Sends and receives messages with tags.
///
/// One thread at a time drives it, and it makes progress in [`Endpoint::progress`].
pub struct Endpoint {
    pub(crate) function: Function,
    pub(crate) completions: CompletionQueue,
    pub(crate) mailbox: QueuePair,
    pub(crate) incarnation: u16,
    pub(crate) packet_bytes: usize,
    pub(crate) eager_bytes: usize,
    pub(crate) peers: Peers,
    /// Buffer in which a message is assembled.
    pub(crate) scratch: Box<[u8]>,
    /// Without tags, and with.
    pub(crate) matching: [Matching; 2],
    /// Shared receives, for messages that find none of our own.
    pub(crate) shared: Option<SharedReceives>,
    pub(crate) many: Slots<Many>,
    pub(crate) operations: Slots<Operation>,
    pub(crate) transfers: Slots<Transfer>,
    /// Transfers that are not posted yet.
    pub(crate) unfetched: VecDeque<u64>,
    pub(crate) accesses: Slots<Access>,
    /// Accesses that are not posted yet.
    pub(crate) unposted: VecDeque<u64>,
    /// Our memory that peers may use, by key.
    pub(crate) exposed: HashMap<u64, Exposed>,
    /// Whether peers report each access to it.
    pub(crate) watches: bool,
    pub(crate) outbox: VecDeque<(Peer, Control)>,
    /// Peers that the rest of a message in pieces must still be sent to, and peers that have not
    /// sent all of one.
    pub(crate) unsent: VecDeque<Peer>,
    pub(crate) coming: Vec<Peer>,
    pub(crate) most_operations: usize,
    pub(crate) most_receives: usize,
    pub(crate) looks: u32,
    pub(crate) asked: Instant,
    /// The peers that it speaks with.
    pub(crate) company: Company,
    /// Whether it takes requests for connections.
    pub(crate) listens: bool,
    /// Its connection has ended, and the remaining receives must be cancelled.
    pub(crate) parted: bool,
}

/// A message that its receiver is not done with.
pub(crate) struct Operation {
    pub(crate) peer: Peer,
    pub(crate) token: Token,
    pub(crate) tag: Option<u64>,
    pub(crate) data: Option<u64>,
    pub(crate) length: usize,
    /// Reported only if it fails.
    pub(crate) silent: bool,
    /// Our memory, registered for the receiver.
    pub(crate) regions: Vec<MemoryRegion>,
    /// The copy of the message, if it was copied.
    pub(crate) copy: Option<Box<[u8]>>,
}

impl Endpoint {
    /// Opens function `function` of `device` as an endpoint.
    ///
    /// # Errors
    /// As [`Device::open_function`].
    pub fn open(device: &Device, function: u8, options: &Options) -> Result<Endpoint> {
        let opening = FunctionOptions::default().outstanding(256);
        let mut function = device.open_function_with(function, &opening)?;
        let completions = function.create_completion_queue(COMPLETIONS)?;
        let own = QueuePairOptions::new(completions).send_depth(1).receive_depth(BUFFERS);
        let mailbox = function.create_queue_pair(&own)?;
        debug_assert_eq!(mailbox.number, MAILBOX);
        let packet_bytes = function.limits().eager_bytes;
        if packet_bytes < LEAST_PACKET_BYTES {
            return Err(Error::DeviceUnavailable {
                device: device.name().to_owned(),
                why: format!(
                    "its packets carry {packet_bytes} bytes, and messages with tags need {LEAST_PACKET_BYTES}"
                ),
                hint: "another device: bellwire doctor".to_owned(),
            });
        }
        for _ in 0..BUFFERS {
            function.post_receive(mailbox, vec![0; packet_bytes], 0)?;
        }
        let incarnation = u16::from_le_bytes(draw()?);
        Ok(Endpoint {
            function,
            completions,
            mailbox,
            incarnation,
            packet_bytes,
            eager_bytes: packet_bytes - EAGER_HEAD_BYTES,
            peers: Peers::new(),
            scratch: vec![0; packet_bytes].into(),
            matching: [Matching::new(), Matching::new()],
            shared: None,
            many: Slots::new(),
            // Peers may repeat numbers of an endpoint that was here before.
            operations: Slots::from(u32::from(incarnation) << 16),
            transfers: Slots::new(),
            unfetched: VecDeque::new(),
            accesses: Slots::from(u32::from(incarnation) << 16),
            unposted: VecDeque::new(),
            exposed: HashMap::new(),
            watches: false,
            outbox: VecDeque::new(),
            unsent: VecDeque::new(),
            coming: Vec::new(),
            most_operations: options.operations.min(OFFERS),
            most_receives: options.receives,
            looks: 0,
            asked: Instant::now(),
            company: Company::Anybody,
            listens: false,
            parted: false,
        })
    }

    /// The address that peers reach it at.
    pub fn address(&self) -> FunctionAddress {
        self.function.address()
    }

    /// The number here of the endpoint at `address`. That endpoint need not be there yet.
    #[inline]
    pub fn peer(&mut self, address: FunctionAddress) -> Peer {
        self.peers.at(address)
    }

    /// The address of a peer.
    #[inline]
    pub fn address_of(&self, peer: Peer) -> FunctionAddress {
        self.peers[peer].address.function_address()
    }

    /// Maximum length of an eager message, in bytes.
    pub fn eager_bytes(&self) -> usize {
        self.eager_bytes
    }

    /// Maximum length of a [`crate::How::Copied`] message, in bytes.
    pub fn inject_bytes(&self) -> usize {
        INJECT_BYTES
    }

    /// Maximum length of an operand of a [change](Endpoint::change), in bytes: [`OPERAND_BYTES`],
    /// or less if the device's packets are too short for two of them.
    pub fn operand_bytes(&self) -> usize {
        OPERAND_BYTES.min((self.scratch.len() - CHANGE_HEAD_BYTES) / 2)
    }

    /// Handles what has come, and goes on with what waits. Returns how much was done; 0: nothing to
    /// do now.
    ///
    /// # Errors
    /// [`Error::Forked`].
    #[inline]
    pub fn progress(&mut self, sink: &mut impl Sink) -> Result<usize> {
        let (mut done, mut next) = self.look(sink)?;
        while let Some(completion) = next {
            self.take(completion, sink);
            done += 1;
            // Do not poll again: it would delay a lone message by its own cost.
            next =
                if done < BURST { self.function.next_completion(self.completions)? } else { None };
        }
        if !self.outbox.is_empty() {
            done += self.say_waiting();
        }
        if !self.unsent.is_empty() {
            done += self.send_tails();
        }
        if !self.unfetched.is_empty() {
            done += self.fetch_waiting(sink);
        }
        if !self.unposted.is_empty() {
            done += self.post_waiting(sink);
        }
        if done == 0 {
            done = self.idle(sink);
        }
        Ok(done)
    }

    /// A descriptor for `poll` or `epoll`: readable when there is something to do, once
    /// [`Endpoint::arm`] returned `true`.
    pub fn wait_fd(&self) -> BorrowedFd<'_> {
        self.function.wait_fd()
    }

    /// Asks for [`Endpoint::wait_fd`] to become readable. `false`: there is something to do
    /// already.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn arm(&mut self) -> Result<bool> {
        if self.is_waiting_for_answers() {
            self.ask();
        }
        if self.parted {
            // A program that sleeps makes no idle polls: do the periodic work at the next one.
            self.looks = u32::MAX;
            return Ok(false);
        }
        let idle = self.outbox.is_empty()
            && self.unsent.is_empty()
            && self.unfetched.is_empty()
            && self.unposted.is_empty();
        Ok(idle && self.function.arm()?)
    }

    /// Whether something waits for peers, so that a sleeper must wake up periodically.
    pub fn is_waiting_for_peers(&self) -> bool {
        self.is_waiting_for_answers() || self.transfers.len() > 0
    }

    pub(crate) fn is_waiting_for_answers(&self) -> bool {
        self.operations.len() > 0
            || self.accesses.len() > 0
            || !self.coming.is_empty()
            || self.companion().is_some()
    }

    /// Messages that have come and found no receive.
    pub fn unexpected(&self) -> usize {
        self.matching.iter().map(|matching| matching.unexpected.len()).sum()
    }

    #[inline]
    fn take(&mut self, completion: Completion, sink: &mut impl Sink) {
        match completion.operation {
            Finished::Receive => self.take_message(completion, sink),
            Finished::Put | Finished::Get if access::is_access(completion.context) => {
                self.access_carried_out(completion.context, completion.status, sink);
            }
            Finished::Get => self.fetched(completion.context, completion.status, sink),
            // Only failed ones are reported.
            _ => {
                let peer = self.peers.at(completion.peer.function_address());
                if completion.context == FINISHED {
                    self.peers[peer].lost = Some(completion.status);
                }
                self.peer_gone(peer, completion.status, sink);
            }
        }
    }

    #[inline]
    fn take_message(&mut self, completion: Completion, sink: &mut impl Sink) {
        let from = completion.peer.function_address();
        let tag = completion.immediate();
        let (length, status) = (completion.length, completion.status);
        let Some(buffer) = completion.buffer else { return };
        if status == Status::Flushed {
            return;
        }
        if let (Status::Success, Some(tag), Some(bytes)) = (status, tag, buffer.as_slice())
            && self.understand(from, tag, &bytes[..length], sink).is_none()
        {
            tracing::warn!("{from} sent something that no endpoint sends; it was thrown away");
        }
        // The buffer that just left made room.
        let posted = self.function.post_receive(self.mailbox, buffer, 0);
        debug_assert!(posted.is_ok(), "{posted:?}");
    }

    /// Parses and handles a message of `from`; `None`: it is not a valid message.
    #[inline]
    fn understand(
        &mut self,
        from: FunctionAddress,
        tag: u64,
        bytes: &[u8],
        sink: &mut impl Sink,
    ) -> Option<()> {
        let mut reader = Reader(bytes);
        let head = Head::from_word(reader.word()?)?;
        let peer = self.peers.at(from);
        if !self.peers[peer].learn(&head) {
            self.peer_replaced(peer, sink);
            self.peers[peer].learn(&head);
        }
        if !self.company.admits(peer, head.kind) {
            return None;
        }
        if self.peers[peer].coming.is_some() && !head.leaves_unfinished() {
            self.give_up_coming(peer, Status::PeerGone, sink);
        }
        match head.kind {
            Kind::Eager => {
                let mut label = Label::read(peer, &head, tag, || reader.word())?;
                if head.flags & PIECES != 0 {
                    return self.take_first_piece(label, reader.0, sink);
                }
                label.length = reader.0.len();
                self.arrive(label, reader.0, sink)?;
            }
            Kind::Offer => {
                let label = Label::read(peer, &head, tag, || reader.word())?;
                let offer = read_offer(from, label.length, reader)?;
                self.arrive_offer(label, offer, sink)?;
            }
            Kind::Piece => {
                let at = usize::try_from(reader.word()?).ok()?;
                self.take_piece(peer, at, reader.0, sink)?;
            }
            Kind::Finished => {
                let (number, how) = (reader.word()?, reader.word()?);
                self.finished(peer, number, how, sink);
            }
            Kind::Credit => self.confirmed(peer, sink),
            Kind::Ask => self.tell_credit(peer),
            Kind::Resolve => {
                let (number, key) = (reader.word()?, reader.word()?);
                self.resolve(peer, number, key);
            }
            Kind::Written => {
                let (number, key) = (reader.word()?, reader.word()?);
                let (data, length) = (reader.word()?, usize::try_from(reader.word()?).ok()?);
                let data = (head.flags & DATA != 0).then_some(data);
                let read = head.flags & READ != 0;
                self.touched(peer, number, Touch { key, data, length, read }, sink);
            }
            Kind::Atomic => {
                let number = reader.word()?;
                self.carry_out(peer, number, reader, sink)?;
            }
            Kind::Answer => {
                let (number, status) = (reader.word()?, status_of(reader.word()?));
                self.peers[peer].watches |= head.flags & WATCHES != 0;
                self.answered(peer, number, status, reader, sink);
            }
            Kind::Connect => {
                let number = reader.word()?;
                self.asked_for_connection(peer, head, number, reader.0, sink);
            }
            Kind::Accept => self.accepted(peer, reader.word()?, reader.0, sink),
            Kind::Reject => self.rejected(reader.word()?, reader.0, sink),
            Kind::Disconnect => self.disconnected(peer, sink),
        }
        Some(())
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
    (sum == length as u64 && keys.len() <= crate::send::PARTS).then_some(Offer { keys })
}

/// Unpredictable random bytes.
pub(crate) fn draw<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    let what = "asking the kernel for a random number";
    let random = std::fs::File::open("/dev/urandom");
    random
        .and_then(|mut file| std::io::Read::read_exact(&mut file, &mut bytes))
        .map_err(|cause| Error::System { what, cause })?;
    Ok(bytes)
}

impl Drop for Endpoint {
    /// Takes memory that peers may read back for the program.
    fn drop(&mut self) {
        for number in self.operations.numbers(|_| true) {
            if let Some(operation) = self.operations.remove(number) {
                operation.release(&mut self.function);
            }
        }
        let keys: Vec<u64> = self.exposed.keys().copied().collect();
        keys.into_iter().for_each(|key| self.withdraw(key));
    }
}
