//! A packet arrives. Messages meet a receive, in the order of arrival, or wait for one in the
//! backlog.

use super::Core;
use super::backlog::Waiting;
use super::close::Teardown;
use super::outbox::Reply;
use super::payload::{DATA_REPLY, words};
use super::queue_pair::QueuePairContext;
use super::rendezvous::Offered;
use super::routing::{Route, destination};
use super::send::registered;
use crate::completion_queue::CompletionRing;
use crate::receive_queue::Receive;
use crate::shared_receive::SharedReceives;
use crate::{QueuePairCounters, Refused, SharedReceiveQueue};
use bellwire_device::{
    Address, Buffer, Completion, Error, FunctionAddress, Kind, LinkId, Operation as Finished,
    PacketHeader, QueuePair, Result, Sink, Status, Verdict,
};
use bellwire_ring::memory::View;

/// Peers that are remembered after their links have ended.
const LOST_PEERS: usize = 64;

/// A packet that has arrived. Every field may come from a hostile peer.
#[derive(Clone, Copy)]
pub(super) struct Packet<'a> {
    pub(super) link: LinkId,
    pub(super) from: FunctionAddress,
    pub(super) header: PacketHeader,
    pub(super) payload: View<'a>,
}

impl Packet<'_> {
    /// The queue pair that sent it.
    pub(super) fn source(&self) -> Address {
        Address::new(self.from.node, self.from.function, self.header.source)
    }
}

impl Sink for Core {
    /// Each kind of packet has its handler (C-37). Every field may come from a hostile peer.
    #[inline(always)]
    fn packet(
        &mut self,
        link: LinkId,
        from: FunctionAddress,
        words: [u64; 3],
        payload: View<'_>,
    ) -> Verdict {
        let header = PacketHeader::from_words(words);
        if header.kind == Kind::Send as u8 && self.meets_receive(from, &header, payload) {
            return Verdict::Taken;
        }
        let verdict = self.on_packet(link, from, header, payload);
        // The messages of a batch were counted one by one.
        let counts = verdict == Verdict::Taken && header.kind != Kind::Batch as u8;
        self.counters.packets_taken += counts as u64;
        verdict
    }

    fn delivered(&mut self, link: LinkId, count: u64) {
        self.on_delivered(link, count);
    }

    fn link_down(&mut self, link: LinkId, peer: FunctionAddress, why: Status) {
        self.teardowns.push(Teardown::Link { link, why });
        self.deferred = true;
        if self.lost.len() < LOST_PEERS {
            self.lost.push((peer, why));
        }
    }

    fn tick(&mut self, device: &[(&'static str, u64)]) {
        self.write_snapshot(device);
    }
}

impl Core {
    #[inline(never)]
    fn on_packet(
        &mut self,
        link: LinkId,
        from: FunctionAddress,
        header: PacketHeader,
        payload: View<'_>,
    ) -> Verdict {
        if header.kind != Kind::Send as u8 {
            self.learn(link, from);
        }
        let Some(kind) = Kind::from_number(header.kind) else {
            self.counters.unknown_kinds += 1;
            return Verdict::Taken;
        };
        let packet = &Packet { link, from, header, payload };
        match kind {
            Kind::Send => self.on_send(packet),
            Kind::Offer => self.on_offer(packet),
            Kind::Grant => self.on_grant(packet),
            Kind::Data if header.aux == DATA_REPLY => self.on_reply_data(packet),
            Kind::Data => self.on_transfer_data(packet),
            Kind::Done => self.on_done(packet),
            Kind::Put => self.on_put(packet),
            Kind::Get => self.on_get(packet),
            Kind::Atomic => self.on_atomic(packet),
            Kind::Event => self.on_event(packet),
            Kind::Connect => self.on_connect(packet),
            Kind::Accept => self.on_accept(packet),
            Kind::Reject => self.on_reject(packet),
            Kind::Disconnect => self.on_disconnect(packet),
            Kind::Batch => self.on_batch(link, header, payload, |core, header, payload| {
                core.packet(link, from, header, payload)
            }),
        }
    }

    /// The fast path: a whole message goes straight into a receive of its queue pair's own queue.
    /// The receive must be long enough, and no message may wait before it. `false`: this path does
    /// not apply, and nothing has changed.
    #[inline(always)]
    fn meets_receive(
        &mut self,
        from: FunctionAddress,
        header: &PacketHeader,
        payload: View<'_>,
    ) -> bool {
        let Some(qp) = destination(&mut self.queue_pairs, from, header) else { return false };
        let length = payload.len();
        if !qp.is_in_order() {
            return false;
        }
        // The receive stays in place until its completion is built, so it is moved once.
        let Some(mut front) = qp.receives.front() else { return false };
        if length > front.buffer().len() {
            return false;
        }
        front.buffer().fill(payload);
        qp.fast_receives.count(length);
        let queue = qp.receive_completions;
        let ring = &mut self.completion_queues[queue];
        let place = if self.bypass.is_open(queue) && ring.is_empty() {
            ring.release();
            self.bypass.place()
        } else {
            ring.reserved_place()
        };
        let source = Address::new(from.node, from.function, header.source);
        let (receive, immediate) = (front.take(), header.immediate());
        place.put(received(qp.handle, Status::Success, source, receive, immediate, length));
        true
    }

    /// A whole message.
    fn on_send(&mut self, packet: &Packet<'_>) -> Verdict {
        let Some(slot) = self.admit(packet.from, &packet.header) else { return Verdict::Taken };
        let receive = match self.queue_pairs[slot].backlogged {
            true => None,
            false => self.take_receive(slot),
        };
        let Some(mut receive) = receive else {
            // The program has a completion to take and may post a receive before it polls again.
            // Until then the message stays in its link: that saves a copy and the backlog.
            if self.bypass.is_full() {
                return self.stalled();
            }
            return self.set_aside(slot, Kind::Send, packet);
        };
        self.queue_pairs[slot].tally.messages_arrived += 1;
        receive.buffer.fill(packet.payload);
        let (immediate, length) = (packet.header.immediate(), packet.payload.len());
        self.complete_receive(slot, packet.source(), receive, immediate, length);
        Verdict::Taken
    }

    /// A sender offers a long message.
    fn on_offer(&mut self, packet: &Packet<'_>) -> Verdict {
        let Packet { link, from, header, payload } = *packet;
        let offered = Offered::parse(from, header.source, header.immediate(), payload)
            .filter(|offered| offered.total <= self.limits.message_bytes as u64);
        let Some(offered) = offered else { return self.violation() };
        let Some(slot) = self.admit(from, &header) else {
            let gone = Reply::done(offered.operation, Status::NoSuchQueuePair, 0, 0);
            return self.answer(link, Ok(gone));
        };
        if !self.queue_pairs[slot].backlogged
            && self.transfers.in_flight() < self.transfers.limit()
            && let Some(receive) = self.take_receive(slot)
        {
            self.queue_pairs[slot].tally.messages_arrived += 1;
            self.begin_transfer(slot, link, offered, receive);
            return Verdict::Taken;
        }
        self.set_aside(slot, Kind::Offer, packet)
    }

    /// Takes the oldest available receive, with an entry reserved for its completion.
    #[inline(always)]
    fn take_receive(&mut self, slot: u32) -> Option<Receive> {
        let qp = &mut self.queue_pairs[slot];
        let Some(shared) = qp.shared_receive else { return qp.receives.pop() };
        let shared = &mut self.shared_receives[shared];
        let ring = &mut self.completion_queues[qp.receive_completions];
        may_take(shared, ring, &mut qp.tally).then(|| shared.receives.pop())?
    }

    /// Reserves an entry for a completion without a posted receive. `false`: none is free, and the
    /// caller has to wait.
    #[inline]
    pub(super) fn reserve_receive_completion(&mut self, slot: u32) -> bool {
        let ring = &mut self.completion_queues[self.queue_pairs[slot].receive_completions];
        let reserved = ring.reserve();
        ring.starved |= !reserved;
        reserved
    }

    /// Completes a receive whose buffer is filled. Bytes beyond the buffer were dropped.
    fn complete_receive(
        &mut self,
        slot: u32,
        source: Address,
        receive: Receive,
        immediate: Option<u64>,
        length: usize,
    ) {
        let kept = length.min(receive.buffer.len());
        let qp = &mut self.queue_pairs[slot];
        qp.tally.messages_received += 1;
        qp.tally.bytes_received += kept as u64;
        qp.tally.messages_truncated += (kept < length) as u64;
        let status = if kept == length { Status::Success } else { Status::Truncated };
        let completion = received(qp.handle, status, source, receive, immediate, kept);
        self.finish_receive(slot, completion);
    }

    /// Puts a message or event in the backlog. It stays in its link only while the backlog is full.
    #[cold]
    pub(super) fn set_aside(&mut self, slot: u32, kind: Kind, packet: &Packet<'_>) -> Verdict {
        let Packet { link, from, header, payload } = *packet;
        let link_generation = self.links.find(link).map_or(0, |link| link.generation);
        let waiting = Waiting { kind, link, link_generation, from, header };
        match self.backlog.push(slot, waiting, payload) {
            Ok(signal) => {
                let tally = &mut self.queue_pairs[slot].tally;
                tally.messages_arrived += 1;
                tally.messages_backlogged += 1;
                if !std::mem::replace(&mut self.queue_pairs[slot].backlogged, true) {
                    self.backlogged.push(slot);
                }
                self.signal(slot, signal);
                Verdict::Taken
            }
            Err(_) => self.stalled(),
        }
    }

    /// Lets all queue pairs try their backlogs again. Returns the number of messages that left
    /// them.
    pub(super) fn drain_backlogs(&mut self) -> usize {
        self.retry_backlog = false;
        let slots = std::mem::take(&mut self.backlogged);
        let drained = slots.iter().map(|&slot| self.drain_backlog(slot)).sum();
        debug_assert!(self.backlogged.is_empty(), "draining sets nothing aside");
        self.backlogged = slots;
        self.backlogged.retain(|&slot| self.queue_pairs.at(slot).is_some_and(|qp| qp.backlogged));
        drained
    }

    /// Delivers the messages in a queue pair's backlog to the receives that are available now.
    fn drain_backlog(&mut self, slot: u32) -> usize {
        let mut drained = 0;
        while let Some((waiting, length)) = self.backlog.front(slot) {
            let Waiting { from, header, .. } = waiting;
            let source = Address::new(from.node, from.function, header.source);
            let immediate = header.immediate();
            match waiting.kind {
                Kind::Send => {
                    let Some(mut receive) = self.take_receive(slot) else { break };
                    let kept = length.min(receive.buffer.len());
                    let into = receive.buffer.view_mut();
                    let signal = self.backlog.pop(slot, |offset, piece| {
                        let end = kept.min(offset + piece.len());
                        if offset < end {
                            into.write(offset, &piece[..end - offset]);
                        }
                    });
                    self.signal(slot, signal);
                    self.complete_receive(slot, source, receive, immediate, length);
                }
                Kind::Offer => {
                    if !self.is_current(slot, &waiting) {
                        self.discard_oldest(slot);
                    } else {
                        if self.transfers.in_flight() == self.transfers.limit() {
                            break;
                        }
                        let Some(receive) = self.take_receive(slot) else { break };
                        let offered = self.pop_offer(slot, &waiting, immediate);
                        self.begin_transfer(slot, waiting.link, offered, receive);
                    }
                }
                _ => {
                    if !self.reserve_receive_completion(slot) {
                        break;
                    }
                    let mut bytes = [0; 8];
                    let signal = self.backlog.pop(slot, |offset, piece| {
                        bytes[offset..][..piece.len()].copy_from_slice(piece)
                    });
                    self.signal(slot, signal);
                    self.complete_event(slot, source, immediate, u64::from_le_bytes(bytes));
                }
            }
            drained += 1;
        }
        if self.backlog.messages_of(slot) == 0 {
            self.queue_pairs[slot].backlogged = false;
        }
        drained
    }

    /// Whether the sender of an offer can still provide its bytes.
    fn is_current(&self, slot: u32, waiting: &Waiting) -> bool {
        let link = self.links.find(waiting.link);
        link.is_some_and(|link| link.generation == waiting.link_generation)
            && !matches!(self.queue_pairs[slot].routing.route, Route::Disconnected { .. })
    }

    /// Takes the offer at the front of a backlog, which was checked before it was stored.
    fn pop_offer(&mut self, slot: u32, waiting: &Waiting, immediate: Option<u64>) -> Offered {
        let (bytes, length) = self.pop_front(slot);
        Offered::parse(waiting.from, waiting.header.source, immediate, View::of(&bytes[..length]))
            .expect("it was parsed before")
    }

    /// Takes a short message from the front of a backlog.
    fn pop_front(&mut self, slot: u32) -> ([u8; 64], usize) {
        let mut bytes = [0; 64];
        let mut length = 0;
        let signal = self.backlog.pop(slot, |offset, piece| {
            bytes[offset..][..piece.len()].copy_from_slice(piece);
            length = offset + piece.len();
        });
        self.signal(slot, signal);
        (bytes, length)
    }

    /// Drops the message at the front of a backlog. Answers the sender of an offer, if its link is
    /// up.
    pub(super) fn discard_oldest(&mut self, slot: u32) {
        let Some((waiting, _)) = self.backlog.front(slot) else { return };
        self.queue_pairs[slot].tally.messages_discarded += 1;
        if waiting.kind != Kind::Offer {
            let signal = self.backlog.pop(slot, |_, _| {});
            self.signal(slot, signal);
            return;
        }
        let link = self.links.find(waiting.link);
        let current = link.is_some_and(|link| link.generation == waiting.link_generation);
        let (bytes, length) = self.pop_front(slot);
        if let (true, Some([operation])) = (current, words(View::of(&bytes[..length]))) {
            self.reply(waiting.link, Reply::done(operation, Status::NoSuchQueuePair, 0, 0));
        }
    }

    /// Posts a receive to a queue pair's own queue.
    #[inline(always)]
    pub(crate) fn post_receive(
        &mut self,
        queue_pair: QueuePair,
        buffer: Buffer,
        context: u64,
    ) -> Result<(), Refused<Buffer>> {
        let QueuePair { slot, generation, .. } = queue_pair;
        let Some(qp) = self.queue_pairs.find_mut(slot, generation) else {
            return Err(Refused::new(Error::NoSuchQueuePair, buffer));
        };
        let ring = &mut self.completion_queues[qp.receive_completions];
        let is_known = registered(&self.regions, &buffer);
        if qp.why_no_receive().is_some() || !is_known || !ring.has_room() {
            return Err(Refused::new(self.receive_refusal(slot, is_known), buffer));
        }
        ring.reserve_promised();
        qp.receives.push(buffer, context);
        qp.tally.receives_posted += 1;
        if qp.backlogged {
            self.receive_from_backlog(slot);
        }
        Ok(())
    }

    /// Why a receive is refused. `is_known`: its buffer is not part of a region that is gone.
    // Apart from the conditions: with them, the errors would take up the registers.
    #[cold]
    #[inline(never)]
    fn receive_refusal(&self, slot: u32, is_known: bool) -> Error {
        let qp = &self.queue_pairs[slot];
        match qp.why_no_receive() {
            Some(NoReceive::Shared) => Error::WrongState {
                call: "posting a receive",
                state: "using a shared receive queue",
                hint: "post to that queue instead",
            },
            Some(NoReceive::Disconnected) => Error::WrongState {
                call: "posting a receive",
                state: "disconnected",
                hint: "connect it again, or use another one",
            },
            Some(NoReceive::Full) => {
                Error::QueueFull { queue: "receive queue", depth: qp.receive_depth }
            }
            None if !is_known => Error::NoSuchRegion,
            None => Error::QueueFull {
                queue: "completion queue",
                depth: self.completion_queues[qp.receive_completions].depth(),
            },
        }
    }

    /// Delivers the backlog to a receive that was posted just now.
    #[cold]
    fn receive_from_backlog(&mut self, slot: u32) {
        self.drain_backlog(slot);
        if !self.queue_pairs[slot].backlogged {
            self.backlogged.retain(|&listed| listed != slot);
            if let Route::Disconnected { why } = self.queue_pairs[slot].routing.route {
                // The backlog held only offers of senders that are gone.
                self.flush_receives(slot, why);
            }
        }
    }

    /// Posts a receive to a shared receive queue.
    pub(crate) fn post_shared_receive(
        &mut self,
        queue: SharedReceiveQueue,
        buffer: Buffer,
        context: u64,
    ) -> Result<(), Refused<Buffer>> {
        if !registered(&self.regions, &buffer) {
            return Err(Refused::new(Error::NoSuchRegion, buffer));
        }
        let Some(shared) = self.shared_receives.find_mut(queue.slot, queue.generation) else {
            return Err(Refused::new(Error::NoSuchSharedReceiveQueue, buffer));
        };
        if shared.receives.len() >= shared.depth {
            let error = Error::QueueFull { queue: "shared receive queue", depth: shared.depth };
            return Err(Refused::new(error, buffer));
        }
        shared.receives.push(buffer, context);
        self.retry_backlog |= std::mem::take(&mut shared.starved);
        self.deferred |= self.retry_backlog;
        Ok(())
    }
}

/// Why a queue pair takes no receive.
#[derive(Clone, Copy)]
enum NoReceive {
    /// It uses a shared receive queue.
    Shared,
    Disconnected,
    Full,
}

impl QueuePairContext {
    /// Why no receive can be posted here, if that is so.
    #[inline(always)]
    fn why_no_receive(&self) -> Option<NoReceive> {
        if self.shared_receive.is_some() {
            return Some(NoReceive::Shared);
        }
        // Messages that arrived before the disconnect can still be received.
        if matches!(self.routing.route, Route::Disconnected { .. }) && !self.backlogged {
            return Some(NoReceive::Disconnected);
        }
        let is_full = self.receives.len() + self.transfers.len() >= self.receive_depth;
        is_full.then_some(NoReceive::Full)
    }
}

/// Whether a shared receive and an entry for its completion are available. Reserves the entry.
#[inline]
fn may_take(
    shared: &mut SharedReceives,
    ring: &mut CompletionRing,
    tally: &mut QueuePairCounters,
) -> bool {
    if shared.receives.is_empty() {
        shared.starved = true;
        return false;
    }
    let reserved = ring.reserve();
    ring.starved |= !reserved;
    tally.receives_posted += reserved as u64;
    reserved
}

/// The completion of a receive with `length` bytes in its buffer.
#[inline(always)]
pub(super) fn received(
    queue_pair: QueuePair,
    status: Status,
    source: Address,
    receive: Receive,
    immediate: Option<u64>,
    length: usize,
) -> Completion {
    Completion {
        buffer: Some(receive.buffer),
        has_immediate: immediate.is_some(),
        word: immediate.unwrap_or_default(),
        ..Completion::new(queue_pair, source, Finished::Receive, status, receive.context, length)
    }
}
