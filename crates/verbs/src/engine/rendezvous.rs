//! Messages that are longer than a packet (C-53).
//!
//! ```text
//!   sender                                    receiver
//!     | Offer(operation, total, key?) ---------> |  waits in order until a receive is posted
//!     |                                          |
//!     |            with a key: the receiver fetches the bytes itself, in slices
//!     |            otherwise:                    |
//!     | <----------------- Grant(transfer, from) |
//!     | Data(transfer, offset) ----------------> |  ... the last one flagged
//!     |                                          |
//!     | <---------------- Done(operation, status)|  receive completion here, send completion there
//! ```
//! The offer keeps the message's place in the order. Several messages of one sender can be in
//! flight at once. Their completions still come in order (`Core::finish_receive`).

use super::outbox::{Reply, Stream};
use super::payload::{DATA_TRANSFER, DATA_WITHDRAWN, Head, status_of, words};
use super::waiting::{Outcome, Posted, Tried, Work};
use super::*;
use crate::receive_queue::Receive;
use bellwire_device::{
    Address, Buffer, Direct, Kind, Operation as Finished, PacketFlags, PacketHeader, RemoteKey,
    Rights, SendError,
};
use bellwire_ring::memory::{Memory, View};

/// A message to send.
pub(crate) struct QueuedMessage {
    pub(crate) data: Data,
    pub(crate) immediate: Option<u64>,
    pub(crate) length: usize,
}

/// Where a message's bytes are.
pub(crate) enum Data {
    /// Copied at post time.
    Copied(Box<[u8]>),
    /// In the program's buffer.
    Buffer(Buffer),
    /// In the program's vector, lent to the receiver under a key for this message only.
    Lent(Memory, RemoteKey),
}

impl Data {
    #[inline]
    pub(super) fn view(&self) -> View<'_> {
        match self {
            Data::Copied(bytes) => View::of(bytes),
            Data::Buffer(buffer) => buffer.view(),
            Data::Lent(memory, _) => memory.view(),
        }
    }

    pub(super) fn into_buffer(self) -> Option<Buffer> {
        match self {
            Data::Copied(_) => None,
            Data::Buffer(buffer) => Some(buffer),
            Data::Lent(memory, _) => Some(memory.into_vec().into()),
        }
    }

    pub(super) fn buffers(&self) -> &[Buffer] {
        match self {
            Data::Buffer(buffer) => std::slice::from_ref(buffer),
            _ => &[],
        }
    }
}

/// A long message that is arriving at its receive.
pub(crate) struct Transfer {
    pub(crate) slot: u32,
    pub(crate) link: LinkId,
    pub(crate) source: Address,
    /// The sender's operation number.
    operation: u64,
    /// Bytes of the message. `receive` takes the first `kept`.
    total: u64,
    kept: usize,
    done: usize,
    pub(crate) receive: Receive,
    immediate: Option<u64>,
    /// How the bytes travel.
    way: Way,
}

#[derive(Clone, Copy)]
enum Way {
    /// We fetch them from this key and offset.
    Fetch(RemoteKey, u64),
    /// The sender sends them.
    Granted,
}

/// The fields of an offer.
pub(super) struct Offered {
    pub(super) source: Address,
    pub(super) operation: u64,
    pub(super) total: u64,
    pub(super) immediate: Option<u64>,
    pub(super) at: Option<(RemoteKey, u64)>,
}

impl Offered {
    /// Parses an offer; `None` if it is malformed or its key is not one of `from`.
    pub(super) fn parse(
        from: FunctionAddress,
        source: u32,
        immediate: Option<u64>,
        payload: View<'_>,
    ) -> Option<Offered> {
        let source = Address::new(from.node, from.function, source);
        let (operation, total, at) = match payload.len() / 8 {
            2 => {
                let [operation, total] = words(payload)?;
                (operation, total, None)
            }
            6 => {
                let [operation, total, a, b, c, offset] = words(payload)?;
                let mut bytes = [0; RemoteKey::BYTES];
                for (place, word) in bytes.chunks_exact_mut(8).zip([a, b, c]) {
                    place.copy_from_slice(&word.to_le_bytes());
                }
                let key = RemoteKey::from_bytes(&bytes)?;
                let inside = offset <= key.length && total <= key.length - offset;
                if key.owner() != from || !inside {
                    return None;
                }
                (operation, total, Some((key, offset)))
            }
            _ => return None,
        };
        Some(Offered { source, operation, total, immediate, at })
    }
}

// The sender's side.
impl Core {
    /// Offers a long message to its receiver, if the link takes the packet.
    pub(super) fn offer<T: Transport>(
        &mut self,
        transport: &mut T,
        slot: u32,
        mut posted: Posted,
    ) -> Tried {
        let Some(id) = self.start_operation(slot, &posted) else { return Tried::Waits(posted) };
        let number = self.queue_pairs[slot].handle.number;
        let Work::Message(message) = &mut posted.work else { unreachable!("the caller looked") };
        let at = self.lend(transport, message);
        let mut header = PacketHeader::new(
            Kind::Offer,
            posted.to.queue_pair,
            number,
            message.immediate.unwrap_or_default(),
        );
        header.flags.set(PacketFlags::IMMEDIATE, message.immediate.is_some());
        let mut offer = [id.to_bits(), message.length as u64, 0, 0, 0, 0];
        let mut count = 2;
        if let Some((key, offset)) = at {
            for (word, bytes) in offer[2..5].iter_mut().zip(key.to_bytes().chunks_exact(8)) {
                *word = u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
            }
            offer[5] = offset;
            count = 6;
        }
        let head = Head::new(&offer[..count]);
        match transport.send(posted.link, header, head.as_slice(), View::empty()) {
            Ok(_) => {
                let Work::Message(message) = posted.work else { unreachable!("as above") };
                self.hand_over(id, Stage::Offered { message, streaming: false });
                Tried::Gone
            }
            Err(error) => {
                self.end_operation(id);
                match error {
                    SendError::Busy => Tried::Waits(posted),
                    SendError::Down(status) => self.give_up(transport, slot, posted, status),
                }
            }
        }
    }

    /// Where the receiver can fetch a message directly, if it can. A part of a region that peers
    /// may read has its key already. A vector is lent under a new key, valid for this message only.
    fn lend<T: Transport>(
        &mut self,
        transport: &mut T,
        message: &mut QueuedMessage,
    ) -> Option<(RemoteKey, u64)> {
        match &mut message.data {
            Data::Lent(_, key) => return Some((*key, 0)),
            Data::Copied(_) => return None,
            Data::Buffer(buffer) => {
                if let Some(region) = buffer.region() {
                    let readable = region.rights().contains(Rights::REMOTE_READ);
                    return readable.then(|| (region.remote_key(), buffer.offset() as u64));
                }
            }
        }
        // Without a free key the bytes travel as packets.
        let key = self.regions.reserve(message.length).ok()?;
        let nothing = Data::Copied(Vec::new().into());
        let bytes = std::mem::replace(&mut message.data, nothing).into_buffer()?.into_vec()?;
        let memory = Memory::from_vec(bytes);
        match transport.export(key, &memory, Rights::REMOTE_READ) {
            Ok(()) => {
                message.data = Data::Lent(memory, key);
                Some((key, 0))
            }
            Err(_) => {
                self.regions.release(key);
                message.data = Data::Buffer(memory.into_vec().into());
                None
            }
        }
    }

    /// Ends the loan of a message's vector. No peer reads it afterwards.
    pub(super) fn withdraw<T: Transport>(
        &mut self,
        transport: &mut T,
        message: &mut QueuedMessage,
    ) {
        if let Data::Lent(_, key) = &message.data {
            let key = *key;
            transport.retract(key);
            self.regions.release(key);
            let data = std::mem::replace(&mut message.data, Data::Copied(Box::default()));
            message.data = Data::Buffer(data.into_buffer().expect("a lent vector"));
        }
    }

    /// The receiver requests a message as packets.
    pub(super) fn on_grant(
        &mut self,
        link: LinkId,
        header: PacketHeader,
        payload: View<'_>,
    ) -> Verdict {
        let Some([transfer, from, to]) = words(payload) else { return self.violation() };
        let id = OpId::from_bits(header.argument);
        match self.operations.operation(id) {
            Ok(operation) if operation.link == link => match &mut operation.stage {
                Stage::Offered { message, streaming: streaming @ false }
                    if from <= to && to <= message.length as u64 =>
                {
                    *streaming = true;
                }
                _ => return self.violation(),
            },
            _ => {
                // The queue pair was closed meanwhile; the receiver cannot know that yet.
                self.counters.stale_operations += 1;
                return self.answer(link, Ok(Reply::withdrawn(transfer)));
            }
        }
        self.answer(link, Err(Stream::Message { operation: id, transfer, at: from, end: to }))
    }
}

// The receiver's side.
impl Core {
    /// A long message has met a receive: starts its transfer. The caller has checked that a
    /// transfer is free.
    pub(super) fn begin_transfer(
        &mut self,
        slot: u32,
        link: LinkId,
        offered: Offered,
        receive: Receive,
    ) {
        let kept = offered.total.min(receive.buffer.len() as u64) as usize;
        let source = offered.source;
        let way = match offered.at {
            Some((key, offset)) => Way::Fetch(key, offset),
            None => Way::Granted,
        };
        let transfer = Transfer {
            slot,
            link,
            source,
            operation: offered.operation,
            total: offered.total,
            kept,
            done: 0,
            receive,
            immediate: offered.immediate,
            way,
        };
        let Ok(id) = self.transfers.start(transfer) else {
            unreachable!("the caller checked that there is room")
        };
        let entry = &mut self.queue_pairs[slot];
        entry.transfers.push(id);
        entry.held.push_back(Held { source, state: HeldState::UnderWay(id) });
        entry.tally.messages_unfinished += 1;
        match way {
            _ if kept == 0 => self.finish_transfer(id, None),
            Way::Fetch(..) => self.fetching.push_back(id),
            Way::Granted => self.grant(id),
        }
    }

    /// Requests the missing bytes from the sender.
    fn grant(&mut self, id: OpId) {
        let Ok(transfer) = self.transfers.operation(id) else { return };
        transfer.way = Way::Granted;
        let header = PacketHeader::new(Kind::Grant, 0, 0, transfer.operation);
        let range = [id.to_bits(), transfer.done as u64, transfer.kept as u64];
        let link = transfer.link;
        self.reply(link, Reply::new(header, &range));
    }

    /// Fetches one slice of each long message that can be fetched directly. Returns how much it
    /// did.
    pub(super) fn fetch<T: Transport>(&mut self, transport: &mut T) -> usize {
        let mut slices = 0;
        for _ in 0..self.fetching.len().min(SLICES) {
            let Some(id) = self.fetching.pop_front() else { break };
            let Ok(transfer) = self.transfers.operation(id) else { continue };
            let Way::Fetch(key, offset) = transfer.way else { continue };
            let length = (transfer.kept - transfer.done).min(SLICE_BYTES);
            let into = transfer.receive.buffer.view_mut().part(transfer.done, length);
            let whole = transfer.kept as u64;
            let into = around_cache(into.expect("a slice lies inside the buffer"), whole);
            let from = offset + transfer.done as u64;
            match transport.get(transfer.link, key, from, into) {
                Direct::Done(_) => {
                    slices += 1;
                    transfer.done += length;
                    if transfer.done == transfer.kept {
                        self.finish_transfer(id, None);
                        // Flushed at once: the sender offers its next message while we fetch the
                        // message that waits here.
                        self.flush_outboxes(transport);
                    } else {
                        self.fetching.push_back(id);
                    }
                }
                Direct::Pending => self.fetching.push_back(id),
                Direct::ByPacket => {
                    slices += 1;
                    self.grant(id);
                }
                // The sender withdrew the loan because its queue pair was closed. If not, it still
                // needs an answer.
                Direct::Refused(_) => {
                    slices += 1;
                    self.give_up_transfer(id, Status::PeerGone);
                }
            }
        }
        slices
    }

    /// Bytes of a long message.
    pub(super) fn on_transfer_data(
        &mut self,
        link: LinkId,
        header: PacketHeader,
        payload: View<'_>,
    ) -> Verdict {
        let id = OpId::from_bits(header.argument);
        let transfer = match self.transfers.operation(id) {
            Ok(transfer) if transfer.link == link => transfer,
            _ => {
                // The queue pair was closed meanwhile.
                self.counters.stale_operations += 1;
                return Verdict::Taken;
            }
        };
        if header.aux == DATA_WITHDRAWN {
            self.finish_transfer(id, Some(Status::PeerGone));
            return Verdict::Taken;
        }
        let offset = header.destination as u64 | (header.source as u64) << 32;
        let expected = matches!(transfer.way, Way::Granted)
            && header.aux == DATA_TRANSFER
            && offset == transfer.done as u64
            && payload.len() <= transfer.kept - transfer.done;
        let last = header.flags.contains(PacketFlags::LAST);
        if !expected || last != (transfer.done + payload.len() == transfer.kept) {
            return self.violation();
        }
        let into = transfer.receive.buffer.view_mut().part(transfer.done, payload.len());
        into.expect("checked above").copy_from(payload);
        transfer.done += payload.len();
        if last {
            self.finish_transfer(id, None);
        }
        Verdict::Taken
    }

    /// Ends a transfer that cannot continue, and answers the sender.
    pub(super) fn give_up_transfer(&mut self, id: OpId, failure: Status) {
        if let Ok(transfer) = self.transfers.operation(id) {
            let (link, operation) = (transfer.link, transfer.operation);
            let length = transfer.done as u64;
            self.reply(link, Reply::done(operation, Status::PeerGone, length, 0));
        }
        self.finish_transfer(id, Some(failure));
    }

    /// Ends a transfer: all its bytes are here, or `failure` happened. Answers the sender if all
    /// bytes are here.
    pub(super) fn finish_transfer(&mut self, id: OpId, failure: Option<Status>) {
        let Ok(transfer) = self.transfers.finish(id) else { return };
        let Transfer {
            slot, link, source, operation, total, kept, done, receive, immediate, ..
        } = transfer;
        // The backlog may wait for a free transfer.
        self.retry_backlog = true;
        let complete = if kept as u64 == total { Status::Success } else { Status::Truncated };
        let status = failure.unwrap_or(complete);
        if failure.is_none() {
            self.reply(link, Reply::done(operation, status, done as u64, 0));
        }
        let entry = &mut self.queue_pairs[slot];
        let tally = &mut entry.tally;
        tally.messages_unfinished -= 1;
        if failure.is_none() {
            tally.messages_received += 1;
            tally.bytes_received += done as u64;
            tally.messages_truncated += (status == Status::Truncated) as u64;
        } else {
            tally.messages_discarded += 1;
        }
        tally.receives_completed += 1;
        if !status.is_success() {
            tally.receives_failed += 1;
            entry.last_error = Some(status);
        }
        entry.transfers.retain(|&known| known != id);
        let completion = Completion {
            queue_pair: entry.handle,
            operation: Finished::Receive,
            status,
            context: receive.context,
            length: done,
            has_immediate: failure.is_none() && immediate.is_some(),
            word: immediate.filter(|_| failure.is_none()).unwrap_or_default(),
            peer: source,
            buffer: Some(receive.buffer),
            rest: None,
        };
        let place = entry
            .held
            .iter_mut()
            .find(|held| matches!(held.state, HeldState::UnderWay(under_way) if under_way == id));
        if let Some(place) = place {
            place.state = HeldState::Done(completion);
        }
        self.release_held(slot);
    }

    /// The peer has finished an operation of ours.
    pub(super) fn on_done(
        &mut self,
        link: LinkId,
        header: PacketHeader,
        payload: View<'_>,
    ) -> Verdict {
        let Some([length, value]) = words(payload) else { return self.violation() };
        let id = OpId::from_bits(header.argument);
        let status = status_of(header.aux);
        match self.operations.operation(id) {
            Ok(operation) if operation.link == link => {
                if matches!(operation.stage, Stage::Sending) {
                    return self.violation();
                }
                // The transport must end a loan before the program gets its vector back.
                self.endings.push(Ending::Answered { id, status, length, value });
            }
            _ => self.counters.stale_operations += 1,
        }
        Verdict::Taken
    }

    /// Ends an operation with its peer's answer.
    pub(super) fn answered<T: Transport>(
        &mut self,
        transport: &mut T,
        id: OpId,
        status: Status,
        length: u64,
        value: u64,
    ) {
        let Some(operation) = self.end_operation(id) else {
            // A second answer to the same operation.
            self.counters.stale_operations += 1;
            return;
        };
        let length = match &operation.stage {
            Stage::Offered { message, .. } => (length as usize).min(message.length),
            Stage::Put(put) if status.is_success() => put.total as usize,
            Stage::Get(get) => get.done as usize,
            Stage::Atomic(_) if status.is_success() => 8,
            Stage::Put(_) | Stage::Atomic(_) | Stage::Sending => 0,
        };
        self.finish_operation(transport, operation, Outcome { status, length, value });
    }
}
