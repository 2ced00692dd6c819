//! Remote memory access: the initiator's side.

use crate::atomic::{AtomicOp, AtomicRequest, OPERAND_BYTES};
use crate::completion::{
    CompletionKind, Outcome, Peer, PostError, Sink, TaggedCompletion, Token, is_no_room,
};
use crate::control::Control;
use crate::head::{Head, Kind, Reader};
use crate::memory::Spans;
use crate::slots::Slots;
use crate::transport::Transport;
use bellwire::{Error, MemoryRegion, RemoteKey, Rights, Status};
use bellwire_ring::memory::View;
use std::collections::VecDeque;

/// A place in a peer's memory.
///
/// ```
/// use bellwire_tagged::{Peer, RemoteAddress};
///
/// let start = RemoteAddress { peer: Peer(0), key: 7, offset: 0 };
/// let second = RemoteAddress { offset: 8, ..start };
/// assert_eq!((second.key, second.offset), (7, 8));
/// ```
#[must_use]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RemoteAddress {
    /// The owner of the memory.
    pub peer: Peer,
    /// The key under which its program [exposes](crate::Endpoint::expose) the memory.
    pub key: u64,
    /// Offset in that memory, in bytes.
    pub offset: u64,
}

/// The operands of an atomic operation.
#[derive(Clone, Copy, Debug)]
pub struct Operands<'a> {
    /// One operand for each number; none are read for [`AtomicOp::Read`].
    pub operands: &'a Spans,
    /// The values to compare with; read only if the operation [compares](AtomicOp::compares).
    pub compared: &'a Spans,
}

/// An access in progress.
struct Access {
    target: RemoteAddress,
    kind: AccessKind,
    /// Our memory: the source of a write, or the destination of a read.
    spans: Spans,
    /// The copy that `spans` points to, if the body was copied.
    _copy: Option<Box<[u8]>>,
    token: Token,
    stage: Stage,
    /// The owner was asked for the region's key for this access, so a refusal is final.
    resolved: bool,
    /// Our registered memory, while a put or get is posted.
    regions: Vec<MemoryRegion>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum AccessKind {
    /// The data for the owner's program, if it is to be told.
    Write(Option<u64>),
    Read,
    Atomic,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The owner was asked for the region's key.
    Resolving,
    /// It waits for room, or a put or get is posted.
    Transferring,
    /// The owner got a report or a request.
    AwaitingReply,
}

/// Bytes before the operands of an atomic request.
const ATOMIC_HEAD_BYTES: usize = Head::BYTES + 32;

/// A flag in the context of a put or get: it belongs to an access, and not to the fetch of the same
/// number.
const ACCESS: u64 = 1 << 31;

/// Whether a put or get belongs to an access.
#[inline]
pub(crate) fn is_access(context: u64) -> bool {
    context & ACCESS != 0
}

/// The accesses of an endpoint to peers' memory.
pub(crate) struct Accesses {
    accesses: Slots<Access>,
    /// Accesses that are not posted yet.
    unposted: VecDeque<u64>,
    max_accesses: usize,
}

// Calls of the program; `Endpoint` documents them.
impl Accesses {
    /// `first`: peers may repeat the numbers of an endpoint that was here before.
    pub(crate) fn new(max_accesses: usize, first: u32) -> Accesses {
        Accesses { accesses: Slots::from(first), unposted: VecDeque::new(), max_accesses }
    }

    pub(crate) fn write(
        &mut self,
        transport: &mut Transport,
        target: RemoteAddress,
        body: &Spans,
        (data, copied): (Option<u64>, bool),
        token: Token,
        sink: &mut impl Sink,
    ) -> Result<(), PostError> {
        let mut access = Access::new(target, AccessKind::Write(data), body.clone(), token);
        if copied {
            let (copy, span) = body.copied();
            (access.spans, access._copy) = (span.into(), Some(copy));
        }
        self.begin(transport, access, sink)
    }

    pub(crate) fn read(
        &mut self,
        transport: &mut Transport,
        target: RemoteAddress,
        into: &Spans,
        token: Token,
        sink: &mut impl Sink,
    ) -> Result<(), PostError> {
        self.begin(transport, Access::new(target, AccessKind::Read, into.clone(), token), sink)
    }

    pub(crate) fn atomic(
        &mut self,
        transport: &mut Transport,
        target: RemoteAddress,
        request: AtomicRequest,
        Operands { operands, compared }: Operands<'_>,
        previous: Option<&Spans>,
        token: Token,
    ) -> Result<(), PostError> {
        let (op, length, maximum) = (request.op, request.bytes(), operand_bytes(transport));
        if length > maximum {
            let what = "the operands of an access";
            return Err(PostError::Failed(Error::TooLong { length, maximum, what }));
        }
        let operands = (op != AtomicOp::Read).then_some(operands);
        let compared = op.compares().then_some(compared);
        let previous = previous.filter(|_| request.fetch);
        let has_length = |spans: &Spans| spans.len() == length;
        let is_valid = request.is_valid()
            && operands.is_none_or(has_length)
            && compared.is_none_or(has_length)
            && (!request.fetch || previous.is_some_and(has_length));
        if !is_valid {
            return Err(PostError::Failed(Error::WrongState {
                call: "an atomic operation on a peer's memory",
                state: "with operands of another length, or an operation not defined for its type",
                hint: "give as many numbers everywhere; bitwise operations are for integers only",
            }));
        }
        let spans = previous.cloned().unwrap_or(Spans::empty());
        let mut access = Access::new(target, AccessKind::Atomic, spans, token);
        (access.stage, access.resolved) = (Stage::AwaitingReply, true);
        let number = self.insert(access)?;
        let RemoteAddress { peer, key, offset } = target;
        let sent = transport.send_packet(peer, Kind::Atomic, 0, 0, |writer| {
            for word in [number, key, offset, request.to_word()] {
                writer.word(word);
            }
            for spans in operands.into_iter().chain(compared) {
                spans.read(writer.next(length));
            }
        });
        if sent.is_err() {
            self.accesses.remove(number);
        }
        sent.map_err(PostError::from)
    }

    fn begin(
        &mut self,
        transport: &mut Transport,
        access: Access,
        sink: &mut impl Sink,
    ) -> Result<(), PostError> {
        access.spans.check_count("the spans of an access")?;
        // Messages wait for it no longer. It may overtake those without room.
        let _ = transport.post_held_before(access.target.peer);
        let number = self.insert(access)?;
        self.advance(transport, number, sink);
        Ok(())
    }

    fn insert(&mut self, access: Access) -> Result<u64, PostError> {
        if self.accesses.len() >= self.max_accesses {
            return Err(PostError::Again);
        }
        Ok(self.accesses.insert(access))
    }
}

// Progress of accesses.
impl Accesses {
    /// The owners of memory whose accesses have not ended.
    pub(crate) fn owners(&self) -> impl Iterator<Item = Peer> {
        self.accesses.iter().map(|access| access.target.peer)
    }

    /// Whether accesses wait for room.
    #[inline]
    pub(crate) fn has_unposted(&self) -> bool {
        !self.unposted.is_empty()
    }

    /// Transfers the bytes, or asks for the key that this needs.
    fn advance(&mut self, transport: &mut Transport, number: u64, sink: &mut impl Sink) {
        // Accesses that wait for room go first.
        if self.has_unposted() || !self.post(transport, number, sink) {
            self.unposted.push_back(number);
        }
    }

    /// Posts accesses that had to wait. Returns how many.
    pub(crate) fn post_waiting(
        &mut self,
        transport: &mut Transport,
        sink: &mut impl Sink,
    ) -> usize {
        let mut posted = 0;
        while let Some(&number) = self.unposted.front() {
            if !self.post(transport, number, sink) {
                break;
            }
            self.unposted.pop_front();
            posted += 1;
        }
        posted
    }

    /// `false`: there is no room now.
    fn post(&mut self, transport: &mut Transport, number: u64, sink: &mut impl Sink) -> bool {
        let Some(access) = self.accesses.find(number) else { return true };
        let (target, length) = (access.target, access.spans.len() as u64);
        let Some(memory) = transport.peer(target.peer).cached_memory(target.key) else {
            self.resolve(transport, number, Status::WrongKey, sink);
            return true;
        };
        if target.offset.checked_add(length).is_none_or(|end| end > memory.length) {
            self.resolve(transport, number, Status::OutOfBounds, sink);
            return true;
        }
        if length == 0 {
            self.transferred(transport, number, Status::Success, sink);
            return true;
        }
        let Err(error) = access.post(transport, memory, number | ACCESS) else { return true };
        transport.release(access.regions.drain(..));
        if is_no_room(&error) {
            return false;
        }
        tracing::warn!("a peer's memory cannot be used: {error}");
        self.end(number, Status::ProtocolViolation, sink);
        true
    }

    /// Asks the owner for the access's region, or ends the access with `why` if the owner was asked
    /// already.
    fn resolve(
        &mut self,
        transport: &mut Transport,
        number: u64,
        why: Status,
        sink: &mut impl Sink,
    ) {
        let Some(access) = self.accesses.find(number) else { return };
        if access.resolved {
            self.end(number, why, sink);
            return;
        }
        (access.resolved, access.stage) = (true, Stage::Resolving);
        let RemoteAddress { peer, key, .. } = access.target;
        transport.peer(peer).forget_memory(key);
        transport.send_control(peer, Control::Resolve { access: number, key });
    }

    /// The put or get of an access has ended.
    pub(crate) fn posted_ended(
        &mut self,
        transport: &mut Transport,
        context: u64,
        status: Status,
        sink: &mut impl Sink,
    ) {
        let number = context & !ACCESS;
        if let Some(access) = self.accesses.find(number) {
            transport.release(access.regions.drain(..));
        }
        self.transferred(transport, number, status, sink);
    }

    fn transferred(
        &mut self,
        transport: &mut Transport,
        number: u64,
        status: Status,
        sink: &mut impl Sink,
    ) {
        let Some(access) = self.accesses.find(number) else { return };
        let RemoteAddress { peer, key, .. } = access.target;
        let (data, read) = match access.kind {
            AccessKind::Write(data) => (data, false),
            _ => (None, true),
        };
        match status {
            Status::Success if data.is_some() || transport.peer(peer).monitored => {
                access.stage = Stage::AwaitingReply;
                let length = access.spans.len() as u64;
                let report = Control::Accessed { access: number, key, data, length, read };
                transport.send_control(peer, report);
            }
            // The cached key may be stale. Nothing was written or read with it.
            Status::WrongKey | Status::OutOfBounds | Status::NotPermitted => {
                self.resolve(transport, number, status, sink);
            }
            _ => self.end(number, status, sink),
        }
    }

    /// The owner has replied.
    pub(crate) fn replied(
        &mut self,
        transport: &mut Transport,
        from: Peer,
        number: u64,
        mut status: Status,
        mut reader: Reader<'_>,
        sink: &mut impl Sink,
    ) {
        // A number that belongs to another peer, or to an access that awaits no reply, ends
        // nothing.
        let Some(access) = self.accesses.find(number).filter(|access| access.target.peer == from)
        else {
            return;
        };
        match access.stage {
            Stage::Transferring => {}
            Stage::Resolving => {
                access.stage = Stage::Transferring;
                let peer = transport.peer(from);
                let owner = peer.address.function_address();
                let memory = reader.key().filter(|memory| memory.owner() == owner);
                match (status, memory) {
                    (Status::Success, Some(memory)) => {
                        peer.cache_memory(access.target.key, memory);
                        self.advance(transport, number, sink);
                    }
                    (Status::Success, None) => self.end(number, Status::ProtocolViolation, sink),
                    (refused, _) => self.end(number, refused, sink),
                }
            }
            Stage::AwaitingReply => {
                if access.kind == AccessKind::Atomic && status.is_success() {
                    match reader.0.get(..access.spans.len()) {
                        Some(previous) => access.spans.write_at(0, View::of(previous)),
                        None => status = Status::ProtocolViolation,
                    }
                }
                self.end(number, status, sink);
            }
        }
    }

    /// A peer is gone. Accesses that wait for a reply, or are not posted yet, fail; posted ones end
    /// by themselves.
    pub(crate) fn peer_gone(
        &mut self,
        transport: &mut Transport,
        peer: Peer,
        why: Status,
        sink: &mut impl Sink,
    ) {
        transport.peer(peer).forget_all_memory();
        let waiting: Vec<u64> = self.unposted.iter().copied().collect();
        for number in waiting {
            if self.accesses.find(number).is_some_and(|access| access.target.peer == peer) {
                self.unposted.retain(|&other| other != number);
                self.end(number, why, sink);
            }
        }
        let waits =
            |access: &Access| access.target.peer == peer && access.stage != Stage::Transferring;
        for number in self.accesses.numbers(waits) {
            self.end(number, why, sink);
        }
    }

    fn end(&mut self, number: u64, status: Status, sink: &mut impl Sink) {
        let Some(access) = self.accesses.remove(number) else { return };
        let (outcome, length) = match status {
            Status::Success => (Outcome::Success, access.spans.len()),
            failed => (Outcome::Failed(failed), 0),
        };
        let (peer, address) = (Some(access.target.peer), access.spans.address());
        let ended = TaggedCompletion::new(access.token, CompletionKind::AccessCompleted, outcome);
        sink.completed(TaggedCompletion { peer, length, address, ..ended });
    }
}

impl Access {
    fn new(target: RemoteAddress, kind: AccessKind, spans: Spans, token: Token) -> Access {
        let (stage, resolved, regions) = (Stage::Transferring, false, Vec::new());
        Access { target, kind, spans, _copy: None, token, stage, resolved, regions }
    }

    /// Posts the put or get.
    fn post(
        &mut self,
        transport: &mut Transport,
        memory: RemoteKey,
        context: u64,
    ) -> Result<(), Error> {
        let (peer, length) = (self.target.peer, self.spans.len());
        let slice = memory.slice(self.target.offset, length as u64);
        let writes = matches!(self.kind, AccessKind::Write(_));
        if writes && length <= transport.eager_bytes() {
            return transport.put_copied(peer, &self.spans, slice, context);
        }
        let spans = self.spans.spans().iter().copied();
        self.regions = transport.register(spans, Rights::empty())?;
        match writes {
            true => transport.put(peer, &self.regions, slice, context),
            false => transport.get(peer, vec![slice], &self.regions, context),
        }
    }
}

/// Maximum length of an operand over this transport, in bytes.
pub(crate) fn operand_bytes(transport: &Transport) -> usize {
    OPERAND_BYTES.min((transport.packet_bytes - ATOMIC_HEAD_BYTES) / 2)
}
