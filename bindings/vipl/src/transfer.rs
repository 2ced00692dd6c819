//! Descriptors in flight: issued to Bellwire in the order of posting, finished as completions
//! arrive.

use crate::abi::{ErrorCode, Return, ViState, status};
use crate::directory::{entry_of, parse_entry};
use crate::memory::Memory;
use crate::nic::State;
use crate::translate::Operation as Asked;
use crate::vi::Vi;
use crate::work_queue::Entry;
use bellwire::{
    Buffer, Completion, Error, Function, Get, LocalChain, Message, Put, RegionSlice, RemoteSlice,
    Rights, Status,
};

/// Most completions taken in a row.
const DRAINED: usize = 4096;

/// What a completion is for; stands in its context beside VI and number.
mod part {
    pub const RECEIVE: u64 = 0;
    /// The descriptor itself.
    pub const WHOLE: u64 = 1;
    /// The message that announces a write with immediate data.
    pub const NOTICE: u64 = 2;
    /// The fetch of an entry of the peer's directory; the number is the memory handle.
    pub const LOOKUP: u64 = 3;
    /// A receive that the library posts to drop a message.
    pub const DROPPED: u64 = 4;
}

fn context(slot: u16, part: u64, number: u64) -> u64 {
    u64::from(slot) << 48 | part << 44 | number & NUMBER
}

const NUMBER: u64 = (1 << 44) - 1;

/// Bellwire's 64-bit immediate value of a message.
///
/// ```text
///  63              34   33        32      31             0
/// +------------------+---------+-------+------------------+
/// |  bytes written   | written | valid |  ImmediateData   |
/// +------------------+---------+-------+------------------+
/// ```
/// `written`: the message announces an RDMA write, which consumes a receive at the target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Along {
    immediate: Option<u32>,
    written: Option<u32>,
}

impl Along {
    fn word(self) -> Option<u64> {
        if self.immediate.is_none() && self.written.is_none() {
            return None;
        }
        let immediate = self.immediate.map_or(0, |value| 1 << 32 | u64::from(value));
        let written = self.written.map_or(0, |bytes| 1 << 33 | u64::from(bytes) << 34);
        Some(immediate | written)
    }

    fn of(word: Option<u64>) -> Along {
        let word = word.unwrap_or_default();
        Along {
            immediate: (word & 1 << 32 != 0).then_some(word as u32),
            written: (word & 1 << 33 != 0).then_some((word >> 34) as u32),
        }
    }
}

/// Result of issuing the next descriptor of a send queue.
enum Step {
    /// This many device operations were posted.
    Issued(u8),
    /// It has to wait.
    Later,
    /// It cannot be carried out.
    Failed(u32, ErrorCode),
}

impl State {
    /// Takes completions and requests, then resumes sends that waited.
    pub fn drain(&mut self) {
        self.waiters.disturb();
        loop {
            for _ in 0..DRAINED {
                match self.function.poll(self.completions) {
                    Ok(Some(completion)) => self.complete(completion),
                    _ => break,
                }
            }
            // The door comes last: looking at it makes no progress, so it leaves no completion
            // behind.
            match self.door.answer(&mut self.function) {
                Some(admitted) => self.waiters.news |= admitted,
                None => break,
            }
        }
        for slot in std::mem::take(&mut self.waiting_vis) {
            self.issue_sends(slot);
        }
    }

    /// Whether an operation is pending for which a peer may not know that it must wake us.
    pub fn waits_for_peers(&mut self) -> bool {
        let busy = |vi: &Vi| vi.state == ViState::ConnectPending || vi.send.has_open();
        self.door.has_unused() || self.vis.iter_mut().any(|(_, vi)| busy(vi))
    }

    /// Issues the receive that was posted last. [`Return::ErrorResource`] if the NIC has no room
    /// for its completion; the caller withdraws the receive.
    pub fn issue_receive(&mut self, slot: u16) -> Result<(), Return> {
        let State { vis, memory, function, .. } = self;
        let vi = vis.at(slot).ok_or(Return::InvalidParameter)?;
        let number = vi.receive.base + vi.receive.entries.len() as u64 - 1;
        let (state, queue_pair) = (vi.state, vi.queue_pair);
        let entry = vi.receive.find(number).ok_or(Return::InvalidParameter)?;
        let error = match () {
            _ if entry.translated.fault != 0 => entry.translated.fault,
            _ if state == ViState::Error => status::DESC_FLUSHED_ERROR,
            _ => {
                let buffer: Buffer = match entry.translated.pieces.all() {
                    [] => Vec::new().into(),
                    [piece] => memory.slice(*piece).into(),
                    // Received whole and then scattered, because a Bellwire receive has one buffer.
                    pieces => vec![0; pieces.iter().map(|piece| piece.length()).sum()].into(),
                };
                let context = context(slot, part::RECEIVE, number);
                match function.post_receive(queue_pair, buffer, context) {
                    Ok(()) => return Ok(()),
                    Err(why) if matches!(why.error, Error::QueueFull { .. }) => {
                        return Err(Return::ErrorResource);
                    }
                    Err(_) => status::DESC_FLUSHED_ERROR,
                }
            }
        };
        entry.error = error;
        entry.done = true;
        self.report(slot, true);
        Ok(())
    }

    /// Drops messages that found no receive.
    pub fn drop_messages(&mut self, slot: u16, count: usize) {
        let Some(vi) = self.vis.at(slot) else { return };
        for _ in 0..count {
            let context = context(slot, part::DROPPED, 0);
            if self.function.post_receive(vi.queue_pair, Vec::new(), context).is_err() {
                break;
            }
        }
        self.drain();
    }

    /// Issues what a VI's send queue holds, in order, as far as possible.
    pub fn issue_sends(&mut self, slot: u16) {
        loop {
            let State { vis, memory, function, .. } = self;
            let Some(vi) = vis.at(slot) else { return };
            if vi.issued == vi.send.entries.len() {
                return;
            }
            if vi.state != ViState::Connected {
                return self.flush_send_queue(slot);
            }
            let step = step(vi, slot, memory, function);
            let number = vi.issued;
            let Some(entry) = vi.send.entries.get_mut(number) else { return };
            match step {
                Step::Later => {
                    if !self.waiting_vis.contains(&slot) {
                        self.waiting_vis.push(slot);
                    }
                    return;
                }
                Step::Issued(operations) => {
                    vi.issued += 1;
                    entry.left = operations;
                    if operations == 0 {
                        entry.done = true;
                        entry.length = entry.translated.length;
                        self.report(slot, false);
                    } else if let Asked::Read { .. } = entry.translated.operation {
                        vi.reads += 1;
                    }
                }
                Step::Failed(error, code) => {
                    vi.issued += 1;
                    entry.done = true;
                    entry.error = error;
                    let reliable = vi.is_reliable();
                    self.report(slot, false);
                    if reliable || code == ErrorCode::ConnLost {
                        self.break_connection(slot, code);
                    }
                }
            }
        }
    }

    /// Completes unissued sends as flushed, because the connection is gone.
    pub fn flush_send_queue(&mut self, slot: u16) {
        let Some(vi) = self.vis.at(slot) else { return };
        let from = std::mem::replace(&mut vi.issued, vi.send.entries.len());
        for entry in vi.send.entries.iter_mut().skip(from) {
            entry.error = status::DESC_FLUSHED_ERROR;
            entry.done = true;
        }
        self.waiting_vis.retain(|&listed| listed != slot);
        self.report(slot, false);
    }

    /// Handles a completion.
    pub fn complete(&mut self, completion: Completion) {
        let slot = (completion.context >> 48) as u16;
        let number = completion.context & NUMBER;
        self.waiters.news = true;
        match completion.context >> 44 & 15 {
            part::RECEIVE => self.complete_receive(slot, number, completion),
            part::LOOKUP => self.complete_lookup(slot, number as u32, completion),
            part::WHOLE | part::NOTICE => self.complete_send(slot, number, &completion),
            _ => {}
        }
    }

    fn complete_receive(&mut self, slot: u16, number: u64, completion: Completion) {
        let State { vis, memory, .. } = self;
        let Some(vi) = vis.at(slot) else { return };
        let reliable = vi.is_reliable();
        let Some(entry) = vi.receive.find(number) else { return };
        let along = Along::of(completion.immediate());
        let mut broken = None;
        match completion.status {
            Status::Success | Status::Truncated => {
                entry.immediate = along.immediate;
                entry.is_remote_write = along.written.is_some();
                entry.length = along.written.unwrap_or(completion.length as u32);
                if completion.status == Status::Truncated {
                    entry.error = match entry.translated.is_cut {
                        true => status::PROTECTION_ERROR,
                        false => status::LENGTH_ERROR,
                    };
                    broken = reliable.then_some(ErrorCode::CompProt);
                }
                let pieces = entry.translated.pieces.all();
                if pieces.len() > 1
                    && let Some(bytes) = completion.buffer.as_ref().and_then(|b| b.as_slice())
                {
                    memory.scatter(&bytes[..completion.length.min(bytes.len())], pieces);
                }
            }
            why => {
                entry.error = status::DESC_FLUSHED_ERROR;
                broken = is_loss(why).then_some(ErrorCode::ConnLost);
            }
        }
        entry.done = true;
        self.report(slot, true);
        match broken {
            Some(ErrorCode::ConnLost) => self.lose_connection(slot, ErrorCode::ConnLost),
            Some(code) => self.break_connection(slot, code),
            None => {}
        }
    }

    fn complete_send(&mut self, slot: u16, number: u64, completion: &Completion) {
        let Some(vi) = self.vis.at(slot) else { return };
        let reliable = vi.is_reliable();
        let Some(entry) = vi.send.find(number) else { return };
        let operation = entry.translated.operation;
        if completion.status != Status::Success {
            entry.error |= match completion.status {
                Status::Flushed => status::DESC_FLUSHED_ERROR,
                Status::WrongKey | Status::OutOfBounds | Status::NotPermitted => {
                    status::RDMA_PROT_ERROR
                }
                Status::Truncated => status::REMOTE_DESC_ERROR,
                _ => status::TRANSPORT_ERROR,
            };
        }
        entry.left = entry.left.saturating_sub(1);
        if entry.left == 0 {
            entry.done = true;
            entry.length = if entry.error == 0 { entry.translated.length } else { 0 };
        }
        if let Asked::Read { handle, .. } | Asked::Write { handle, .. } = operation
            && completion.status == Status::WrongKey
            && let Some(peer) = &mut vi.peer
        {
            // It may have been re-registered.
            peer.listed.remove(&handle);
        }
        if let Asked::Read { .. } = operation {
            vi.reads = vi.reads.saturating_sub(1);
        }
        self.report(slot, false);
        match completion.status {
            why if is_loss(why) => self.lose_connection(slot, ErrorCode::ConnLost),
            Status::WrongKey | Status::OutOfBounds | Status::NotPermitted if reliable => {
                self.break_connection(slot, protection(operation));
            }
            Status::Truncated if reliable => self.break_connection(slot, ErrorCode::ConnLost),
            _ => {}
        }
    }

    fn complete_lookup(&mut self, slot: u16, handle: u32, completion: Completion) {
        let Some(vi) = self.vis.at(slot) else { return };
        if vi.looking_up != Some(handle) {
            return;
        }
        vi.looking_up = None;
        if let Some(peer) = &mut vi.peer {
            let bytes = completion.buffer.as_ref().and_then(|buffer| buffer.as_slice());
            let bytes = bytes.filter(|_| completion.status == Status::Success);
            peer.listed.insert(handle, bytes.and_then(|bytes| parse_entry(bytes, handle)));
        }
        if is_loss(completion.status) {
            self.lose_connection(slot, ErrorCode::ConnLost);
        }
        // The send queue waits for this; [`State::drain`] resumes it after the completions.
    }
}

/// Whether a status means that the connection is gone.
fn is_loss(why: Status) -> bool {
    matches!(
        why,
        Status::PeerGone
            | Status::Unreachable
            | Status::ProtocolViolation
            | Status::NoSuchQueuePair
    )
}

fn protection(operation: Asked) -> ErrorCode {
    match operation {
        Asked::Read { .. } => ErrorCode::RdmarProt,
        _ => ErrorCode::RdmawProt,
    }
}

/// Tries to issue the next descriptor of a connected VI.
fn step(vi: &mut Vi, slot: u16, memory: &mut Memory, function: &mut Function) -> Step {
    let number = vi.send.base + vi.issued as u64;
    let Some(entry) = vi.send.entries.get(vi.issued) else { return Step::Later };
    if entry.translated.fault != 0 {
        // A faulty descriptor fails in its turn: earlier ones finish first.
        return match vi.send.reported == vi.issued {
            true => Step::Failed(entry.translated.fault, ErrorCode::PostDesc),
            false => Step::Later,
        };
    }
    if entry.translated.fence && vi.reads > 0 {
        return Step::Later;
    }
    let whole = context(slot, part::WHOLE, number);
    let (address, handle, right) = match entry.translated.operation {
        Asked::Send | Asked::Receive => {
            return send_message(vi.queue_pair, entry, whole, memory, function);
        }
        Asked::Write { address, handle } => (address, handle, Rights::REMOTE_WRITE),
        Asked::Read { address, handle } => (address, handle, Rights::REMOTE_READ),
    };
    let refused = Step::Failed(status::RDMA_PROT_ERROR, protection(entry.translated.operation));
    let Some(peer) = &mut vi.peer else { return refused };
    let Some(directory) = peer.directory.filter(|_| peer.rights.contains(right)) else {
        return refused;
    };
    let listed = match peer.listed.get(&handle) {
        Some(Some(listed)) => *listed,
        Some(None) => {
            // It may be registered by the next attempt.
            peer.listed.remove(&handle);
            return refused;
        }
        None => {
            if vi.looking_up.is_none() {
                let into = vec![0; crate::directory::ENTRY_BYTES];
                let context = context(slot, part::LOOKUP, handle.into());
                let get = Get::new(entry_of(directory, handle), into).context(context);
                match function.post_get(vi.queue_pair, get) {
                    Ok(()) => vi.looking_up = Some(handle),
                    Err(why) => return after(why.error),
                }
            }
            return Step::Later;
        }
    };
    let length = u64::from(entry.translated.length);
    let offset = address.checked_sub(listed.base);
    let inside = |offset: &u64| *offset <= listed.length && length <= listed.length - *offset;
    let Some(offset) = offset.filter(inside) else { return refused };
    if !listed.rights.contains(right) {
        return refused;
    }
    let there = listed.key.slice(offset, length);
    move_memory(vi.queue_pair, entry, (slot, number), there, memory, function)
}

fn send_message(
    queue_pair: bellwire::QueuePair,
    entry: &Entry,
    context: u64,
    memory: &mut Memory,
    function: &mut Function,
) -> Step {
    let send = match entry.translated.pieces.all() {
        [] => Message::inline(&[]),
        [piece] => Message::buffer(memory.slice(*piece)),
        pieces => Message::buffer(memory.gather(pieces)),
    };
    let along = Along { immediate: entry.translated.immediate, written: None };
    let send = match along.word() {
        Some(word) => send.immediate(word),
        None => send,
    };
    match function.post_send(queue_pair, send.context(context)) {
        Ok(()) => Step::Issued(1),
        Err(why) => after(why.error),
    }
}

/// Posts a put or get. A put with immediate data is followed by an empty message that consumes a
/// receive at the target. The message arrives after the put's data, because a queue pair keeps
/// order.
fn move_memory(
    queue_pair: bellwire::QueuePair,
    entry: &Entry,
    (slot, number): (u16, u64),
    there: RemoteSlice,
    memory: &mut Memory,
    function: &mut Function,
) -> Step {
    let whole = context(slot, part::WHOLE, number);
    let here: LocalChain = match entry.translated.pieces.all() {
        [piece] => memory.slice(*piece).into(),
        pieces => {
            let slices = pieces.iter().map(|piece| memory.slice(*piece));
            slices.collect::<Vec<RegionSlice>>().into()
        }
    };
    let mut posted = 0;
    if there.length > 0 {
        let done = match entry.translated.operation {
            Asked::Read { .. } => {
                let get = Get::new(there, here).context(whole);
                function.post_get(queue_pair, get).map_err(|why| why.error)
            }
            _ => {
                let put = Put::new(here, there).context(whole);
                function.post_put(queue_pair, put).map_err(|why| why.error)
            }
        };
        match done {
            Ok(()) => posted += 1,
            Err(error) => return after(error),
        }
    }
    if let Some(immediate) = entry.translated.immediate {
        let along = Along { immediate: Some(immediate), written: Some(entry.translated.length) };
        let notice = Message::inline(&[])
            .immediate(along.word().unwrap_or_default())
            .context(context(slot, part::NOTICE, number));
        match function.post_send(queue_pair, notice) {
            Ok(()) => posted += 1,
            // The write is in flight. The queues are deep enough, so only the end of the connection
            // can refuse the notice.
            Err(_) => return Step::Failed(status::TRANSPORT_ERROR, ErrorCode::ConnLost),
        }
    }
    Step::Issued(posted)
}

/// What a refused post means for its descriptor.
fn after(error: Error) -> Step {
    match error {
        Error::QueueFull { .. } => Step::Later,
        Error::WrongState { .. } | Error::BadDestination(_) | Error::NoSuchQueuePair => {
            Step::Failed(status::TRANSPORT_ERROR, ErrorCode::ConnLost)
        }
        Error::OutOfRange { .. } => Step::Failed(status::RDMA_PROT_ERROR, ErrorCode::RdmawProt),
        _ => Step::Failed(status::TRANSPORT_ERROR, ErrorCode::RdmaTransport),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The immediate value round-trips, also when it is empty.
    #[test]
    fn what_goes_along_survives() {
        for immediate in [None, Some(0), Some(u32::MAX)] {
            for written in [None, Some(0), Some((1 << 29) - 1)] {
                let along = Along { immediate, written };
                assert_eq!(Along::of(along.word()), along);
            }
        }
        assert_eq!(Along { immediate: None, written: None }.word(), None);
    }
}
