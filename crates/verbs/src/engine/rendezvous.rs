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

use super::chain::around_cache;
use super::close::Teardown;
use super::outbox::{Reply, Stream};
use super::payload::{DATA_TRANSFER, DATA_WITHDRAWN, Head, status_of, words};
use super::queue_pair::{Held, HeldState};
use super::receive::{Packet, received};
use super::work::{Attempt, Posted, Work};
use super::{Core, SLICE_BYTES, SLICES};
use crate::receive_queue::Receive;
use bellwire_device::{
    Address, Buffer, Direct, FunctionAddress, Kind, LinkId, PacketFlags, PacketHeader, RemoteKey,
    Rights, Status, Transport, Verdict,
};
use bellwire_protocol::OpId;
use bellwire_ring::memory::{Memory, View};

/// A message to send.
pub(crate) struct QueuedMessage {
    pub(crate) data: Data,
    pub(crate) immediate: Option<u64>,
    pub(crate) length: usize,
    /// The receiver has requested its bytes.
    pub(super) granted: bool,
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
    offered: Offered,
    /// Bytes of the message that `receive` takes.
    kept: usize,
    done: usize,
    pub(crate) receive: Receive,
}

/// The fields of an offer.
pub(super) struct Offered {
    pub(super) source: Address,
    /// The sender's operation number.
    pub(super) operation: u64,
    /// Bytes of the message.
    pub(super) total: u64,
    pub(super) immediate: Option<u64>,
    /// Where the receiver can fetch it: key and offset. Otherwise the sender sends it.
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
    ) -> Attempt {
        let Some(id) = self.start_operation(slot, &posted) else { return Attempt::Blocked(posted) };
        let number = self.queue_pairs[slot].handle.number;
        let Work::Message(message) = &mut posted.work else { unreachable!("the caller looked") };
        let at = self.lend(transport, message);
        let to = posted.to.queue_pair;
        let header = PacketHeader::with_immediate(Kind::Offer, to, number, message.immediate);
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
        self.send_request(transport, (slot, id), posted, header, head)
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
    pub(super) fn withdraw<T: Transport + ?Sized>(
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
    pub(super) fn on_grant(&mut self, packet: &Packet<'_>) -> Verdict {
        let Packet { link, header, payload, .. } = *packet;
        let Some([transfer, from, to]) = words(payload) else { return self.violation() };
        let id = OpId::from_bits(header.argument);
        match self.operations.operation(id) {
            Ok(operation) if operation.link == link => match &mut operation.posted {
                Some(Posted { work: Work::Message(message), .. })
                    if !message.granted && from <= to && to <= message.length as u64 =>
                {
                    message.granted = true;
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
        let is_direct = offered.at.is_some();
        let transfer = Transfer { slot, link, offered, kept, done: 0, receive };
        let Ok(id) = self.transfers.start(transfer) else {
            unreachable!("the caller checked that there is room")
        };
        let qp = &mut self.queue_pairs[slot];
        qp.transfers.push(id);
        qp.held.push_back(Held { source, state: HeldState::UnderWay(id) });
        qp.tally.messages_unfinished += 1;
        match is_direct {
            _ if kept == 0 => self.finish_transfer(id, None),
            true => {
                self.fetching.push_back(id);
                self.deferred = true;
            }
            false => self.grant(id),
        }
    }

    /// Requests the missing bytes from the sender.
    fn grant(&mut self, id: OpId) {
        let Ok(transfer) = self.transfers.operation(id) else { return };
        transfer.offered.at = None;
        let header = PacketHeader::new(Kind::Grant, 0, 0, transfer.offered.operation);
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
            let Some((key, offset)) = transfer.offered.at else { continue };
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
                    self.fail_transfer(id, Status::PeerGone);
                }
            }
        }
        slices
    }

    /// Bytes of a long message.
    pub(super) fn on_transfer_data(&mut self, packet: &Packet<'_>) -> Verdict {
        let Packet { link, header, payload, .. } = *packet;
        let id = OpId::from_bits(header.argument);
        let Some(transfer) = self.transfers.operation(id).ok().filter(|t| t.link == link) else {
            // The queue pair was closed meanwhile.
            return self.stale_operation();
        };
        if header.aux == DATA_WITHDRAWN {
            self.finish_transfer(id, Some(Status::PeerGone));
            return Verdict::Taken;
        }
        let expected = transfer.offered.at.is_none()
            && header.aux == DATA_TRANSFER
            && header.offset() == transfer.done as u64
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
    pub(super) fn fail_transfer(&mut self, id: OpId, failure: Status) {
        if let Ok(transfer) = self.transfers.operation(id) {
            let (link, operation) = (transfer.link, transfer.offered.operation);
            let length = transfer.done as u64;
            self.reply(link, Reply::done(operation, Status::PeerGone, length, 0));
        }
        self.finish_transfer(id, Some(failure));
    }

    /// Ends a transfer: all its bytes are here, or `failure` happened. Answers the sender if all
    /// bytes are here.
    pub(super) fn finish_transfer(&mut self, id: OpId, failure: Option<Status>) {
        let Ok(transfer) = self.transfers.finish(id) else { return };
        let Transfer { slot, link, offered, kept, done, receive, .. } = transfer;
        let Offered { source, operation, total, immediate, .. } = offered;
        // The backlog may wait for a free transfer.
        self.retry_backlog = true;
        self.deferred = true;
        let complete = if kept as u64 == total { Status::Success } else { Status::Truncated };
        let status = failure.unwrap_or(complete);
        if failure.is_none() {
            self.reply(link, Reply::done(operation, status, done as u64, 0));
        }
        let qp = &mut self.queue_pairs[slot];
        let tally = &mut qp.tally;
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
            qp.last_error = Some(status);
        }
        qp.transfers.retain(|&known| known != id);
        let immediate = immediate.filter(|_| failure.is_none());
        let completion = received(qp.handle, status, source, receive, immediate, done);
        let place = qp
            .held
            .iter_mut()
            .find(|held| matches!(held.state, HeldState::UnderWay(under_way) if under_way == id));
        if let Some(place) = place {
            place.state = HeldState::Done(completion);
        }
        self.release_held(slot);
    }

    /// The peer has finished an operation of ours.
    pub(super) fn on_done(&mut self, packet: &Packet<'_>) -> Verdict {
        let Packet { link, header, payload, .. } = *packet;
        let Some([length, value]) = words(payload) else { return self.violation() };
        let id = OpId::from_bits(header.argument);
        let status = status_of(header.aux);
        let Some(operation) = self.operations.operation(id).ok().filter(|o| o.link == link) else {
            return self.stale_operation();
        };
        if operation.posted.is_none() {
            return self.violation();
        }
        // The transport must end a loan before the program gets its vector back.
        self.teardowns.push(Teardown::Operation { id, status, length, value });
        self.deferred = true;
        Verdict::Taken
    }
}
