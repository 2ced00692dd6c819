//! Remote memory access: the initiator's side.

use crate::atomic::Form;
use crate::control::Control;
use crate::endpoint::Endpoint;
use crate::head::{Head, Kind, Reader, Writer};
use crate::send::PARTS;
use crate::transfer::{local, remote};
use crate::{Done, Outcome, Peer, Refusal, Sink, Span, Spans, Token, What};
use bellwire::{Buffer, Error, Get, MemoryRegion, Message, Put, RemoteKey, Rights, Status};
use bellwire_ring::memory::View;

/// A place in a peer's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// The owner of the memory.
    pub peer: Peer,
    /// The key under which its program [exposes](Endpoint::expose) the memory.
    pub key: u64,
    /// Offset in that memory, in bytes.
    pub offset: u64,
}

/// The operands of a change.
#[derive(Clone, Copy, Debug)]
pub struct Operands<'a> {
    /// One operand for each number; none are read for [`crate::Change::Read`].
    pub operands: &'a Spans,
    /// The values to compare with; read only if the change [compares](crate::Change::compares).
    pub compared: &'a Spans,
}

/// An access in progress.
pub(crate) struct Access {
    place: Place,
    what: Wanted,
    /// Our memory: the source of a write, or the destination of a read.
    spans: Spans,
    /// The copy that `spans` points to, if the body was copied.
    _copy: Option<Box<[u8]>>,
    token: Token,
    stage: Stage,
    /// The owner was asked for the region's key for this access, so a refusal is final.
    asked: bool,
    /// Our registered memory, while a put or get is posted.
    regions: Vec<MemoryRegion>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// The data for the owner's program, if it is to be told.
    Write(Option<u64>),
    Read,
    Change,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The owner was asked for the region's key.
    Resolving,
    /// It waits for room, or a put or get is posted.
    Moving,
    /// The owner was told, or is changing numbers.
    Told,
}

/// Bytes before the operands of a change.
pub(crate) const CHANGE_HEAD_BYTES: usize = Head::BYTES + 32;

/// A flag in the context of a put or get: it belongs to an access, and not to the transfer of the
/// same number.
const ACCESS: u64 = 1 << 31;

/// Whether a put or get belongs to an access.
#[inline]
pub(crate) fn is_access(context: u64) -> bool {
    context & ACCESS != 0
}

impl Access {
    pub(crate) fn peer(&self) -> Peer {
        self.place.peer
    }
}

// Calls of the program.
impl Endpoint {
    /// Writes `body` to a peer's memory. It ends ([`What::Accessed`]) when all bytes are there and,
    /// with `data`, the peer's program was told ([`What::Written`]). `copied`: the body can be
    /// reused when this returns.
    ///
    /// # Errors
    /// [`Refusal::Again`] without room; nothing was done then. A refusal by the owner is reported
    /// at the end.
    pub fn write(
        &mut self,
        place: Place,
        body: &Spans,
        data: Option<u64>,
        copied: bool,
        token: Token,
        sink: &mut impl Sink,
    ) -> Result<(), Refusal> {
        let mut copy = None;
        let mut spans = body.clone();
        if copied {
            let mut bytes = vec![0; body.len()].into_boxed_slice();
            body.read(&mut bytes);
            // SAFETY: the copy lives as long as the access.
            spans = unsafe { Span::new(bytes.as_ptr(), bytes.len()) }.into();
            copy = Some(bytes);
        }
        self.begin(place, Wanted::Write(data), spans, copy, token, sink)
    }

    /// Reads as much of a peer's memory as `into` has room for.
    ///
    /// # Errors
    /// As [`Endpoint::write`].
    pub fn read(
        &mut self,
        place: Place,
        into: &Spans,
        token: Token,
        sink: &mut impl Sink,
    ) -> Result<(), Refusal> {
        self.begin(place, Wanted::Read, into.clone(), None, token, sink)
    }

    /// Changes numbers in a peer's memory, each atomically, and writes their previous values to
    /// `was`, which has room for them if [`Form::fetches`]. Changes of one peer are carried out in
    /// order. The operands can be reused when this returns.
    ///
    /// # Errors
    /// - As [`Endpoint::write`].
    /// - [`Error::TooLong`] for more than [`Endpoint::operand_bytes`].
    /// - [`Error::WrongState`] if the change is not defined for these numbers, or a span's length
    ///   differs from the form's.
    pub fn change(
        &mut self,
        place: Place,
        form: Form,
        with: Operands<'_>,
        was: Option<&Spans>,
        token: Token,
    ) -> Result<(), Refusal> {
        let (change, length) = (form.change, form.bytes());
        if length > self.operand_bytes() {
            let (maximum, what) = (self.operand_bytes(), "the operands of an access");
            return Err(Refusal::Failed(Error::TooLong { length, maximum, what }));
        }
        let needs_operands = change != crate::Change::Read;
        let wrong = !form.is_valid()
            || needs_operands && with.operands.len() != length
            || change.compares() && with.compared.len() != length
            || form.fetches && was.is_none_or(|was| was.len() != length);
        if wrong {
            return Err(Refusal::Failed(Error::WrongState {
                call: "changing numbers in a peer's memory",
                state: "with operands of another length, or in a way that they do not change",
                hint: "give as many numbers everywhere; bits of integers only",
            }));
        }
        let spans = match was {
            Some(was) if form.fetches => was.clone(),
            // SAFETY: no bytes at all.
            _ => unsafe { Span::new(std::ptr::null(), 0) }.into(),
        };
        let access = Access {
            place,
            what: Wanted::Change,
            spans,
            _copy: None,
            token,
            stage: Stage::Told,
            asked: true,
            regions: Vec::new(),
        };
        let number = self.insert(access)?;
        let posted = self.post_change(place, form, with, number, needs_operands);
        if posted.is_err() {
            self.accesses.remove(number);
        }
        posted
    }

    fn post_change(
        &mut self,
        place: Place,
        form: Form,
        with: Operands<'_>,
        number: u64,
        needs_operands: bool,
    ) -> Result<(), Refusal> {
        let peer = &mut self.peers[place.peer];
        let pair = peer.pair(&mut self.function, self.completions)?;
        let head = peer.head(Kind::Atomic, 0, self.incarnation);
        let mut writer = Writer { bytes: &mut self.scratch, at: 0 };
        for word in [head.to_word(), number, place.key, place.offset, form.to_word()] {
            writer.word(word);
        }
        let operands = needs_operands.then_some(with.operands);
        let compared = form.change.compares().then_some(with.compared);
        for spans in operands.into_iter().chain(compared) {
            let end = writer.at + form.bytes();
            spans.read(&mut writer.bytes[writer.at..end]);
            writer.at = end;
        }
        let end = writer.at;
        let bytes = &self.scratch[..end];
        let send = Message::inline(bytes).to(peer.address).immediate(0).unsignaled();
        self.function.post_send(pair, send).map_err(|refused| refused.error.into())
    }

    fn begin(
        &mut self,
        place: Place,
        what: Wanted,
        spans: Spans,
        copy: Option<Box<[u8]>>,
        token: Token,
        sink: &mut impl Sink,
    ) -> Result<(), Refusal> {
        let (stage, asked, regions) = (Stage::Moving, false, Vec::new());
        let access = Access { place, what, spans, _copy: copy, token, stage, asked, regions };
        if access.spans.parts().len() > PARTS {
            return Err(Refusal::Failed(Error::TooLong {
                length: access.spans.parts().len(),
                maximum: PARTS,
                what: "the stretches of memory of an access",
            }));
        }
        let number = self.insert(access)?;
        self.go_on(number, sink);
        Ok(())
    }

    fn insert(&mut self, access: Access) -> Result<u64, Refusal> {
        if self.accesses.len() >= self.most_operations {
            return Err(Refusal::Again);
        }
        Ok(self.accesses.insert(access))
    }
}

// Progress of accesses.
impl Endpoint {
    /// Moves the bytes, or asks for the key that this needs.
    fn go_on(&mut self, number: u64, sink: &mut impl Sink) {
        // Accesses that wait for room go first.
        if !self.unposted.is_empty() || !self.post(number, sink) {
            self.unposted.push_back(number);
        }
    }

    /// Posts accesses that had to wait. Returns how many.
    pub(crate) fn post_waiting(&mut self, sink: &mut impl Sink) -> usize {
        let mut posted = 0;
        while let Some(&number) = self.unposted.front() {
            if !self.post(number, sink) {
                break;
            }
            self.unposted.pop_front();
            posted += 1;
        }
        posted
    }

    /// `false`: there is no room now.
    fn post(&mut self, number: u64, sink: &mut impl Sink) -> bool {
        let Some(access) = self.accesses.find(number) else { return true };
        let (place, length) = (access.place, access.spans.len() as u64);
        let Some(memory) = self.peers[place.peer].memory(place.key) else {
            self.ask_owner(number, Status::WrongKey, sink);
            return true;
        };
        if place.offset.checked_add(length).is_none_or(|end| end > memory.length) {
            self.ask_owner(number, Status::OutOfBounds, sink);
            return true;
        }
        if length == 0 {
            self.carried_out(number, Status::Success, sink);
            return true;
        }
        let Err(error) = self.post_move(number, memory) else { return true };
        self.release_regions(number);
        if matches!(error, Error::QueueFull { .. } | Error::Exhausted { .. }) {
            return false;
        }
        tracing::warn!("a peer's memory cannot be used: {error}");
        self.end(number, Status::ProtocolViolation, sink);
        true
    }

    /// Posts the put or get of an access.
    fn post_move(&mut self, number: u64, memory: RemoteKey) -> Result<(), Error> {
        let Some(access) = self.accesses.find(number) else { return Ok(()) };
        let length = access.spans.len();
        let slice = memory.slice(access.place.offset, length as u64);
        let peer = &mut self.peers[access.place.peer];
        let pair = peer.fetch_pair(&mut self.function, self.completions)?;
        let context = number | ACCESS;
        let writes = matches!(access.what, Wanted::Write(_));
        if writes && length <= self.eager_bytes {
            let bytes = &mut self.scratch[..length];
            access.spans.read(bytes);
            let put = Put::inline(bytes, slice).context(context);
            return self.function.post_put(pair, put).map_err(|refused| refused.error);
        }
        let mut parts = Vec::with_capacity(1);
        for span in access.spans.parts().iter().filter(|span| !span.is_empty()) {
            let region = span.register(&mut self.function, Rights::empty())?;
            parts.push(Buffer::from(&region));
            access.regions.push(region);
        }
        let (theirs, ours) = (remote(vec![slice]), local(parts));
        match writes {
            true => {
                let put = Put::new(ours, theirs).context(context);
                self.function.post_put(pair, put).map_err(|refused| refused.error)
            }
            false => {
                let get = Get::new(theirs, ours).context(context);
                self.function.post_get(pair, get).map_err(|refused| refused.error)
            }
        }
    }

    /// Asks the owner for the access's region, or ends the access with `why` if the owner was asked
    /// already.
    fn ask_owner(&mut self, number: u64, why: Status, sink: &mut impl Sink) {
        let Some(access) = self.accesses.find(number) else { return };
        if access.asked {
            self.end(number, why, sink);
            return;
        }
        (access.asked, access.stage) = (true, Stage::Resolving);
        let Place { peer, key, .. } = access.place;
        self.peers[peer].forget_memory(key);
        self.tell(peer, Control::Resolve { number, key });
    }

    /// The put or get of an access has ended.
    pub(crate) fn access_carried_out(
        &mut self,
        context: u64,
        status: Status,
        sink: &mut impl Sink,
    ) {
        let number = context & !ACCESS;
        self.release_regions(number);
        self.carried_out(number, status, sink);
    }

    fn carried_out(&mut self, number: u64, status: Status, sink: &mut impl Sink) {
        let Some(access) = self.accesses.find(number) else { return };
        let watched = self.peers[access.place.peer].watches;
        match (status, access.what) {
            (Status::Success, what @ (Wanted::Write(_) | Wanted::Read))
                if watched || matches!(what, Wanted::Write(Some(_))) =>
            {
                access.stage = Stage::Told;
                let (Place { peer, key, .. }, length) = (access.place, access.spans.len() as u64);
                let (data, read) = match what {
                    Wanted::Write(data) => (data, false),
                    _ => (None, true),
                };
                self.tell(peer, Control::Written { number, key, data, length, read });
            }
            // The cached key may be stale. Nothing was written or read with it.
            (Status::WrongKey | Status::OutOfBounds | Status::NotPermitted, _) => {
                self.ask_owner(number, status, sink);
            }
            _ => self.end(number, status, sink),
        }
    }

    /// The owner has answered.
    pub(crate) fn answered(
        &mut self,
        from: Peer,
        number: u64,
        status: Status,
        mut reader: Reader<'_>,
        sink: &mut impl Sink,
    ) {
        // A number that belongs to another peer, or to an access that awaits no answer, ends
        // nothing.
        let Some(access) = self.accesses.find(number).filter(|access| access.place.peer == from)
        else {
            return;
        };
        match access.stage {
            Stage::Moving => {}
            Stage::Resolving => {
                access.stage = Stage::Moving;
                let key = access.place.key;
                let owner = self.peers[from].address.function_address();
                let memory = reader.key().filter(|memory| memory.owner() == owner);
                match (status, memory) {
                    (Status::Success, Some(memory)) => {
                        self.peers[from].learn_memory(key, memory);
                        self.go_on(number, sink);
                    }
                    (Status::Success, None) => self.end(number, Status::ProtocolViolation, sink),
                    (refused, _) => self.end(number, refused, sink),
                }
            }
            Stage::Told => {
                let mut status = status;
                if access.what == Wanted::Change && status.is_success() {
                    if reader.0.len() >= access.spans.len() {
                        access.spans.write_at(0, View::of(&reader.0[..access.spans.len()]));
                    } else {
                        status = Status::ProtocolViolation;
                    }
                }
                self.end(number, status, sink);
            }
        }
    }

    /// The endpoint at a peer's address is gone. Accesses that wait for an answer, or are not
    /// posted yet, fail; posted ones end by themselves.
    pub(crate) fn access_peer_gone(&mut self, peer: Peer, why: Status, sink: &mut impl Sink) {
        self.peers[peer].forget_memories();
        let waiting: Vec<u64> = self.unposted.iter().copied().collect();
        for number in waiting {
            if self.accesses.find(number).is_some_and(|access| access.place.peer == peer) {
                self.unposted.retain(|&other| other != number);
                self.end(number, why, sink);
            }
        }
        let waits = |access: &Access| access.place.peer == peer && access.stage != Stage::Moving;
        for number in self.accesses.numbers(waits) {
            self.end(number, why, sink);
        }
    }

    fn release_regions(&mut self, number: u64) {
        let Some(access) = self.accesses.find(number) else { return };
        for region in access.regions.drain(..) {
            let released = self.function.deregister_foreign(&region);
            debug_assert!(released.is_ok(), "{released:?}");
        }
    }

    fn end(&mut self, number: u64, status: Status, sink: &mut impl Sink) {
        let Some(access) = self.accesses.remove(number) else { return };
        let (outcome, length) = match status {
            Status::Success => (Outcome::Success, access.spans.len()),
            failed => (Outcome::Failed(failed), 0),
        };
        sink.done(Done {
            token: access.token,
            what: What::Accessed,
            outcome,
            peer: Some(access.place.peer),
            tag: None,
            data: None,
            length,
            left: 0,
            at: access.spans.address(),
        });
    }
}
