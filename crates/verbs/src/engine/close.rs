//! The end of queue pairs, connections and links. Every posted descriptor completes. Buffers that a
//! peer may read are withdrawn before the program gets them back.

use super::Core;
use super::outbox::Reply;
use super::receive::{Packet, received};
use super::routing::Route;
use super::work::Operation;
use bellwire_device::{
    Address, Error, Gate, Kind, LinkId, PacketHeader, QueuePair, Result, Status, Transport, Verdict,
};
use bellwire_protocol::OpId;

/// The end of something, which a packet caused and which needs the transport.
pub(crate) enum Teardown {
    /// The peer answered an operation.
    Operation { id: OpId, status: Status, length: u64, value: u64 },
    /// The peer ended a connection.
    Connection { queue_pair: QueuePair },
    /// A link is gone.
    Link { link: LinkId, why: Status },
}

impl Core {
    /// Carries out the ends that packets caused. Returns their number.
    pub(super) fn run_teardowns<T: Transport>(&mut self, transport: &mut T) -> usize {
        let mut teardowns = std::mem::take(&mut self.teardowns);
        let count = teardowns.len();
        for teardown in teardowns.drain(..) {
            match teardown {
                Teardown::Operation { id, status, length, value } => {
                    self.answered(transport, id, status, length, value);
                }
                Teardown::Connection { queue_pair } => {
                    let QueuePair { slot, generation, .. } = queue_pair;
                    if self.queue_pairs.find(slot, generation).is_some() {
                        self.end_connection(transport, slot, Status::PeerGone);
                    }
                }
                Teardown::Link { link, why } => self.end_link(transport, link, why),
            }
        }
        debug_assert!(self.teardowns.is_empty(), "only packets end things");
        // Keeps the allocation.
        self.teardowns = teardowns;
        count
    }

    /// A link is gone: ends everything that was in flight on it.
    fn end_link<T: Transport>(&mut self, transport: &mut T, link: LinkId, why: Status) {
        if let Some(gone) = self.links.forget(link) {
            self.counters.links_lost += 1;
            for message in gone.undelivered {
                self.complete_delivery(message, why);
            }
        }
        let slots: Vec<u32> = self.queue_pairs.iter().map(|(slot, _)| slot).collect();
        for slot in slots {
            match self.queue_pairs[slot].routing.route {
                Route::Connected { link: ours, .. } if ours == link => {
                    self.end_connection(transport, slot, why);
                }
                _ => self.flush(transport, slot, Some(link), why),
            }
            if let Some(attempt) = &mut self.queue_pairs[slot].connect_attempt {
                attempt.lose(link);
            }
        }
        for listening in &mut self.listening {
            listening.requests.retain(|request| request.link != link.0);
        }
        transport.close(link);
    }

    /// A connection is over: all posted descriptors complete with `why`, receives too.
    fn end_connection(&mut self, transport: &mut dyn Transport, slot: u32, why: Status) {
        self.queue_pairs[slot].routing.set(Route::Disconnected { why });
        self.flush(transport, slot, None, why);
        self.flush_receives(slot, why);
    }

    /// Completes the sends, operations and arriving messages of a queue pair: all of them, or those
    /// of one link.
    fn flush(
        &mut self,
        transport: &mut dyn Transport,
        slot: u32,
        only: Option<LinkId>,
        why: Status,
    ) {
        let concerns = |link: LinkId| only.is_none_or(|only| only == link);
        if only.is_none() {
            self.forget_undelivered(slot, why);
        }
        // Operations are older than the descriptors that still wait.
        for id in self.queue_pairs[slot].operations.clone() {
            let Ok(operation) = self.operations.operation(id) else { continue };
            if !concerns(operation.link) {
                continue;
            }
            // A descriptor that is still in its queue follows below.
            if let Some(Operation { posted: Some(posted), .. }) = self.end_operation(id) {
                self.fail(transport, slot, posted, why);
            }
        }
        for posted in std::mem::take(&mut self.queue_pairs[slot].sends) {
            if concerns(posted.link) {
                self.fail(transport, slot, posted, why);
            } else {
                self.queue_pairs[slot].sends.push_back(posted);
            }
        }
        for id in self.queue_pairs[slot].transfers.clone() {
            if self.transfers.operation(id).is_ok_and(|transfer| concerns(transfer.link)) {
                self.fail_transfer(id, why);
            }
        }
    }

    /// Completes the receives in a queue pair's own queue.
    pub(super) fn flush_receives(&mut self, slot: u32, why: Status) {
        let qp = &mut self.queue_pairs[slot];
        let queue_pair = qp.handle;
        let own = Address::new(self.address.node, self.address.function, queue_pair.number);
        for receive in std::mem::take(&mut qp.receives) {
            // No message, no sender.
            let completion = received(queue_pair, why, own, receive, None, 0);
            self.finish_receive(slot, completion);
        }
    }

    /// Destroys a queue pair.
    pub(crate) fn destroy_queue_pair(
        &mut self,
        transport: &mut dyn Transport,
        queue_pair: QueuePair,
    ) -> Result<()> {
        let QueuePair { slot, generation, number } = queue_pair;
        self.queue_pairs.of(queue_pair)?;
        // After this no peer sends to it.
        transport.set_gate(number, Gate::Closed);
        self.gates.retain(|gate| gate.0 != number);
        self.tell_disconnected(slot);
        self.cancel_attempt(slot);
        self.end_connection(transport, slot, Status::Flushed);
        while self.backlog.front(slot).is_some() {
            self.discard_oldest(slot);
        }
        self.gates.retain(|gate| gate.0 != number);
        self.pending.retain(|&listed| listed != slot);
        self.backlogged.retain(|&listed| listed != slot);
        self.channels.retain(|channel| channel.1 != slot);

        let qp = self.queue_pairs.remove(slot, generation).ok_or_else(|| Error::NoSuchQueuePair)?;
        debug_assert!(qp.held.is_empty() && qp.posted_sends == 0, "all is flushed");
        self.completion_queues[qp.send_completions].users -= 1;
        self.completion_queues[qp.receive_completions].users -= 1;
        if let Some(shared) = qp.shared_receive {
            self.shared_receives[shared].users -= 1;
        }
        self.retired.add(&qp.counters());
        self.counters.packets_taken += qp.fast_path_arrivals();
        Ok(())
    }

    /// Ends a queue pair's connection.
    pub(crate) fn disconnect(
        &mut self,
        transport: &mut dyn Transport,
        queue_pair: QueuePair,
    ) -> Result<()> {
        let slot = queue_pair.slot;
        let qp = self.queue_pairs.of(queue_pair)?;
        let state = match qp.routing.route {
            Route::Connected { .. } | Route::Connecting => {
                self.tell_disconnected(slot);
                self.cancel_attempt(slot);
                self.end_connection(transport, slot, Status::Flushed);
                return Ok(());
            }
            Route::Unconnected => "unconnected",
            Route::Disconnected { .. } => "disconnected",
        };
        Err(Error::WrongState { call: "disconnect", state, hint: "there is no connection to end" })
    }

    fn tell_disconnected(&mut self, slot: u32) {
        let qp = &self.queue_pairs[slot];
        if let Route::Connected { link, peer } = qp.routing.route {
            let number = qp.handle.number;
            let header = PacketHeader::new(Kind::Disconnect, peer.queue_pair, number, 0);
            self.reply(link, Reply::new(header, &[]));
        }
    }

    /// The peer of a connection ended it.
    pub(super) fn on_disconnect(&mut self, packet: &Packet<'_>) -> Verdict {
        let Some(slot) = self.slot_of(packet.header.destination) else { return Verdict::Taken };
        let qp = &self.queue_pairs[slot];
        if let Route::Connected { peer, .. } = qp.routing.route
            && peer == packet.source()
        {
            self.teardowns.push(Teardown::Connection { queue_pair: qp.handle });
            self.deferred = true;
        }
        Verdict::Taken
    }
}
