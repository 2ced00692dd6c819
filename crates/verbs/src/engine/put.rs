//! PUT: local bytes to a peer's memory (C-22, C-28).
//!
//! If the device reaches the memory directly, the bytes are there when `Transport::put` returns,
//! and no code of the peer runs. Otherwise the owner's engine carries out the put, packet by
//! packet, and answers the last one.

use super::chain::{around_cache, check_bounds, local_lengths, pieces, remote_lengths};
use super::dyn_transport::Handle;
use super::outbox::Reply;
use super::payload::{Head, words};
use super::queue_pair::QueuePairContext;
use super::receive::Packet;
use super::regions::Request;
use super::routing::Route;
use super::send::registered;
use super::work::{Attempt, Buffers, Outcome, Posted, Work};
use super::{Core, SLICE_BYTES};
use crate::Put;
use crate::completion_queue::CompletionRing;
use crate::descriptor::{Chain, Event, LocalChain, RemoteChain, Report, Source};
use crate::table::Table;
use bellwire_device::{
    Address, Completion, Direct, Error, Gate, Kind, LinkId, Operation as Finished, PacketFlags,
    PacketHeader, QueuePair, RemoteSlice, Result, Rights, SendError, Status, Transport, Verdict,
};
use bellwire_protocol::OpId;
use bellwire_ring::memory::View;

/// Failed puts per link that are remembered until their last piece.
const FAILED_PUTS: usize = 1024;

/// A put in progress.
pub(crate) struct PutWork {
    pub(crate) sources: LocalChain,
    /// Whether the sources are our own copy of immediate data, which no completion returns.
    ours: bool,
    destinations: RemoteChain,
    event: Option<Event>,
    pub(super) total: u64,
    done: u64,
    path: PutPath,
}

#[derive(Clone, Copy)]
enum PutPath {
    Direct,
    /// The owner's engine carries it out. The operation, once the first packet has one.
    Packets(Option<OpId>),
}

impl PutWork {
    /// Writes the next slice directly. `None`: more slices are left.
    fn write_slice<T: Transport>(&mut self, transport: &mut T, link: LinkId) -> Option<Direct> {
        let mut budget = SLICE_BYTES as u64;
        let lengths = (local_lengths(&self.sources), remote_lengths(&self.destinations));
        for piece in pieces(lengths.0, lengths.1, self.done) {
            let length = piece.length.min(budget);
            let buffer = &self.sources.0.items()[piece.source_index];
            let from = buffer.view().part(piece.source_offset as usize, length as usize);
            let from = around_cache(from.expect("a piece lies inside its buffer"), self.total);
            let slice = &self.destinations.0.items()[piece.destination_index];
            let at = slice.offset + piece.destination_offset;
            match transport.put(link, slice.key, at, from) {
                Direct::Done(_) => self.done += length,
                other => return Some(other),
            }
            budget -= length;
            if budget == 0 && self.done < self.total {
                return None;
            }
        }
        Some(Direct::Done(0))
    }

    /// Sends the remaining pieces, for the owner's engine to write.
    fn send_pieces<T: Transport>(
        &mut self,
        transport: &mut T,
        link: LinkId,
        from: u32,
        id: OpId,
        packet_bytes: usize,
    ) -> Result<(), SendError> {
        let head_bytes = 8 * if self.event.is_some() { 6 } else { 4 };
        let room = (packet_bytes - head_bytes) as u64;
        while self.done < self.total {
            let lengths = (local_lengths(&self.sources), remote_lengths(&self.destinations));
            let piece = pieces(lengths.0, lengths.1, self.done).next();
            let piece = piece.expect("bytes are left");
            let length = piece.length.min(room);
            let buffer = &self.sources.0.items()[piece.source_index];
            let bytes = buffer.view().part(piece.source_offset as usize, length as usize);
            let bytes = bytes.expect("a piece lies inside its buffer");
            let slice = &self.destinations.0.items()[piece.destination_index];
            let at = slice.offset + piece.destination_offset;
            let last = self.done + length == self.total;

            let mut header = PacketHeader::new(Kind::Put, 0, from, id.to_bits());
            header.flags.set(PacketFlags::LAST, last);
            let mut head = [slice.key.key, slice.key.index as u64, at, at + piece.length, 0, 0];
            let mut words = 4;
            if let Some(event) = self.event.filter(|_| last) {
                header.destination = event.queue_pair;
                header.flags |= PacketFlags::EVENT;
                header.flags.set(PacketFlags::IMMEDIATE, event.immediate.is_some());
                head[4..].copy_from_slice(&[event.immediate.unwrap_or_default(), self.total]);
                words = 6;
            }
            transport.send(link, header, Head::new(&head[..words]).as_slice(), bytes)?;
            self.done += length;
        }
        Ok(())
    }

    /// The program's buffers, which the completion returns.
    pub(super) fn into_buffers(self) -> Buffers {
        if self.ours { (None, None) } else { self.sources.0.into_parts() }
    }

    /// Its operation, and the number of bytes that have certainly been written.
    pub(super) fn under_way(&self) -> (Option<OpId>, usize) {
        match self.path {
            PutPath::Direct => (None, self.done as usize),
            PutPath::Packets(operation) => (operation, 0),
        }
    }
}

/// A put of one short piece that a queue pair may carry out at once.
struct Piece<'a> {
    qp: &'a mut QueuePairContext,
    /// Where its completion goes, if it is signaled. There is room.
    ring: Option<&'a mut CompletionRing>,
    /// The link, on a connected queue pair.
    link: Option<LinkId>,
    to: Address,
}

impl<'a> Piece<'a> {
    /// `length` bytes are to go to `slice`. `None`: other descriptors wait on the queue pair, or it
    /// may not put there, or the piece is empty, long, or of another length.
    #[inline(always)]
    fn admit(
        queue_pairs: &'a mut Table<QueuePairContext>,
        completion_queues: &'a mut Table<CompletionRing>,
        queue_pair: Handle,
        slice: &RemoteSlice,
        length: usize,
        report: Report,
    ) -> Option<Piece<'a>> {
        let qp = queue_pairs.find_mut(queue_pair.slot(), queue_pair.generation())?;
        let owner = slice.key.owner();
        let (link, to) = match qp.routing.route {
            Route::Connected { link, peer } if peer.function_address() == owner => {
                (Some(link), peer)
            }
            Route::Unconnected => (None, Address::new(owner.node, owner.function, 0)),
            _ => return None,
        };
        let ring = match report.signaled {
            true => Some(&mut completion_queues[qp.send_completions]),
            false => None,
        };
        let is_short = (1..=SLICE_BYTES).contains(&length) && slice.length == length as u64;
        let has_room = ring.as_ref().is_none_or(|ring| ring.has_room());
        (is_short && has_room && qp.sends.is_empty()).then_some(Piece { qp, ring, link, to })
    }

    /// Its bytes are there: returns the completion.
    #[inline(always)]
    fn finish(self, length: usize, report: Report) -> Option<&'a mut Completion> {
        let Piece { qp, ring, to, .. } = self;
        qp.fast_puts.count(length);
        let (kind, status) = (Finished::Put, Status::Success);
        Some(ring?.push(Completion::new(qp.handle, to, kind, status, report.context, length)))
    }
}

// The initiator's side.
impl Core {
    /// The fast path: carries out a put of one short piece to directly reachable memory. `false`:
    /// this path does not apply, and nothing has changed.
    #[inline(always)]
    pub(super) fn puts_at_once<T: Transport>(
        &mut self,
        transport: &mut T,
        queue_pair: Handle,
        put: &mut Put<'_>,
    ) -> bool {
        let Chain::One(slice) = &put.destinations.0 else { return false };
        let from = match &put.source {
            Source::Inline(bytes) => View::of(bytes),
            Source::Chain(LocalChain(Chain::One(buffer))) if registered(&self.regions, buffer) => {
                buffer.view()
            }
            _ => return false,
        };
        if put.event.is_some()
            || matches!(put.source, Source::Inline(_)) && from.len() > self.limits.eager_bytes
        {
            return false;
        }
        let report = Report { context: put.context, signaled: put.signaled };
        let completion = match self.puts_piece(transport, queue_pair, from, slice, report) {
            None => return false,
            Some(completion) => completion,
        };
        // Stored afterwards: the compiler would build a conditional value in memory first.
        if let Some(completion) = completion
            && let Source::Chain(_) = put.source
            && let Source::Chain(LocalChain(chain)) =
                std::mem::replace(&mut put.source, Source::Inline(&[]))
        {
            (completion.buffer, completion.rest) = chain.into_parts();
        }
        true
    }

    /// The same through a window, without the device. Returns its completion if it is signaled.
    /// `None`: this path does not apply, and nothing has changed.
    #[inline(always)]
    pub(crate) fn puts_through_window(
        &mut self,
        queue_pair: Handle,
        from: View<'_>,
        slice: &RemoteSlice,
        report: Report,
    ) -> Option<Option<&mut Completion>> {
        let Core { queue_pairs, completion_queues, links, .. } = self;
        let length = from.len();
        let piece =
            Piece::admit(queue_pairs, completion_queues, queue_pair, slice, length, report)?;
        if !links.windows.put(&slice.key, slice.offset, from) {
            return None;
        }
        Some(piece.finish(length, report))
    }

    /// The same, or else by the device, which then may open a window for the next put.
    #[inline(always)]
    pub(super) fn puts_piece<T: Transport>(
        &mut self,
        transport: &mut T,
        queue_pair: Handle,
        from: View<'_>,
        slice: &RemoteSlice,
        report: Report,
    ) -> Option<Option<&mut Completion>> {
        let Core { queue_pairs, completion_queues, links, .. } = self;
        let RemoteSlice { key, offset, length } = *slice;
        let piece =
            Piece::admit(queue_pairs, completion_queues, queue_pair, slice, from.len(), report)?;
        if !links.windows.put(&key, offset, from) {
            let link = piece.link.or_else(|| links.cached(key.owner()))?;
            check_bounds(key, offset, length).ok()?;
            let Direct::Done(_) = transport.put(link, key, offset, from) else { return None };
            links.windows.open(&key, || transport.window(link, key));
        }
        Some(piece.finish(from.len(), report))
    }

    /// Posts a put that is not done at once. After an error `put` is unchanged; otherwise its lists
    /// have been taken out.
    #[inline(never)]
    pub(super) fn post_longer_put<T: Transport>(
        &mut self,
        transport: &mut T,
        queue_pair: QueuePair,
        put: &mut Put<'_>,
    ) -> Result<()> {
        // As for messages (`post_waiting_send`): otherwise a program that posts as many puts as
        // complete would never return to the fast path.
        let qp = self.queue_pairs.at(queue_pair.slot);
        if qp.is_some_and(|qp| !qp.sends.is_empty())
            && self.catch_up(transport, queue_pair.slot)
            && self.puts_at_once(transport, queue_pair.into(), put)
        {
            return Ok(());
        }
        let slot = self.room_to_post(queue_pair)?;
        let mut copy = None;
        let sources = match &put.source {
            Source::Chain(sources) => sources,
            Source::Inline(bytes) if bytes.len() > self.limits.eager_bytes => {
                let (length, maximum) = (bytes.len(), self.limits.eager_bytes);
                return Err(Error::TooLong { length, maximum, what: "data inside a descriptor" });
            }
            Source::Inline(bytes) => copy.insert(LocalChain::from(bytes.to_vec())),
        };
        let (total, owner) = self.check_chain(sources, &put.destinations, true)?;
        let (link, mut to) = self.route_to_owner(transport, queue_pair, owner)?;
        if let Some(event) = put.event {
            if to.queue_pair != 0 && to.queue_pair != event.queue_pair {
                return Err(Error::BadDestination(
                    "this queue pair is connected: its puts raise events at its peer only",
                ));
            }
            to.queue_pair = event.queue_pair;
        }
        let empty = Put::inline(&[], Vec::<RemoteSlice>::new());
        let Put { source, destinations, event, context, signaled } = std::mem::replace(put, empty);
        let (sources, ours) = match (source, copy) {
            (Source::Chain(sources), _) => (sources, false),
            (Source::Inline(_), copy) => (copy.expect("it was made above"), true),
        };
        let path = PutPath::Direct;
        let work = PutWork { sources, ours, destinations, event, total, done: 0, path };
        let work = Work::Put(work);
        self.accept(transport, slot, Posted { link, to, context, signaled, work });
        Ok(())
    }

    /// Continues a put.
    pub(super) fn attempt_put<T: Transport>(
        &mut self,
        transport: &mut T,
        slot: u32,
        mut posted: Posted,
    ) -> Attempt {
        let Work::Put(put) = &mut posted.work else { unreachable!("the caller looked") };
        if let Some(event) = put.event {
            // No byte may move if the event cannot be raised.
            match transport.watch_gate(posted.link, event.queue_pair) {
                Some(Gate::Open) => {}
                None | Some(Gate::Stopped) => return Attempt::Blocked(posted),
                Some(Gate::Closed) => {
                    return self.fail(transport, slot, posted, Status::NoSuchQueuePair);
                }
            }
        }
        if matches!(put.path, PutPath::Direct) {
            match put.write_slice(transport, posted.link) {
                None => return Attempt::Yielded(posted),
                Some(Direct::Done(_)) => return self.finish_direct_put(transport, slot, posted),
                Some(Direct::Pending) => return Attempt::Blocked(posted),
                Some(Direct::Refused(status)) => return self.fail(transport, slot, posted, status),
                Some(Direct::ByPacket) => put.path = PutPath::Packets(None),
            }
        }
        self.put_by_packets(transport, slot, posted)
    }

    /// All bytes are written: raises the event, if there is one, and completes.
    fn finish_direct_put<T: Transport>(
        &mut self,
        transport: &mut T,
        slot: u32,
        posted: Posted,
    ) -> Attempt {
        let Work::Put(put) = &posted.work else { unreachable!("the caller looked") };
        let total = put.total;
        if let Some(event) = put.event {
            let (number, to) = (self.queue_pairs[slot].handle.number, event.queue_pair);
            let header = PacketHeader::with_immediate(Kind::Event, to, number, event.immediate);
            let length = Head::new(&[total]);
            let sent = transport.send(posted.link, header, length.as_slice(), View::empty());
            if let Err(why) = sent {
                return self.unsent(transport, slot, posted, why);
            }
        }
        self.finish_posted(slot, posted, Outcome::success(total as usize))
    }

    /// Sends the remaining pieces for the owner's engine to write.
    fn put_by_packets<T: Transport>(
        &mut self,
        transport: &mut T,
        slot: u32,
        mut posted: Posted,
    ) -> Attempt {
        let Work::Put(put) = &posted.work else { unreachable!("the caller looked") };
        let id = match put.path {
            PutPath::Packets(Some(id)) => id,
            _ => match self.start_operation(slot, &posted) {
                Some(id) => id,
                None => return Attempt::Blocked(posted),
            },
        };
        let number = self.queue_pairs[slot].handle.number;
        let Work::Put(put) = &mut posted.work else { unreachable!("the caller looked") };
        put.path = PutPath::Packets(Some(id));
        let sent = put.send_pieces(transport, posted.link, number, id, self.limits.packet_bytes);
        if let Err(why) = sent {
            return self.unsent(transport, slot, posted, why);
        }
        self.await_answer(id, posted);
        Attempt::Started
    }
}

// The owner's side.
impl Core {
    /// A piece of a put to our memory.
    pub(super) fn on_put(&mut self, packet: &Packet<'_>) -> Verdict {
        let Packet { link, header, payload, .. } = *packet;
        let last = header.flags.contains(PacketFlags::LAST);
        let raises = header.flags.contains(PacketFlags::EVENT);
        let Some([key, index, offset, end]) = words(payload) else { return self.violation() };
        let event = match raises {
            false => None,
            true if !last => return self.violation(),
            true => match words::<6>(payload) {
                Some([_, _, _, _, immediate, total]) => Some((immediate, total)),
                None => return self.violation(),
            },
        };
        if event.is_some() && !self.backlog.has_room(8) {
            // Before any byte is written: the packet will be offered again.
            return self.stalled();
        }
        let head = 8 * if raises { 6 } else { 4 };
        let bytes = payload.part(head, payload.len() - head).expect("the head was read");
        let operation = header.argument;
        // The bounds checked are those of the rest of the piece: no byte of a piece that does not
        // fit is written.
        let Some(length) = end.checked_sub(offset).filter(|&left| left >= bytes.len() as u64)
        else {
            return self.violation();
        };
        let request = Request { key, index, offset, length };
        let mut status = Status::Success;
        match self.regions.check(request, Rights::REMOTE_WRITE) {
            Ok(region) => {
                let into = region.view().part(offset as usize, bytes.len());
                into.expect("bounds were checked").deposit(bytes);
                self.counters.served_puts += 1;
            }
            Err(refused) => {
                status = refused;
                self.count_refusal(refused);
            }
        }
        let Some(entry) = self.links.find_mut(link) else { return Verdict::Taken };
        let place = entry.failed_puts.iter().position(|failed| failed.0 == operation);
        if !last {
            // Each put is answered once, at its last piece: one answer per operation.
            if status != Status::Success && place.is_none() {
                if entry.failed_puts.len() == FAILED_PUTS {
                    entry.failed_puts.pop_front();
                }
                entry.failed_puts.push_back((operation, status));
            }
            return Verdict::Taken;
        }
        if let Some(place) = place {
            status = entry.failed_puts.remove(place).expect("just found").1;
        }
        if let (Status::Success, Some((immediate, total))) = (status, event) {
            // C-23: all bytes are in memory.
            let header = PacketHeader { argument: immediate, ..header };
            let raised = self.raise(&Packet { header, ..*packet }, total);
            debug_assert_eq!(raised, Verdict::Taken, "room was checked above");
        }
        let later = self.answers_wait && status == Status::Success;
        self.answer(link, Ok(Reply::done(operation, status, 0, 0).later(later)))
    }
}
