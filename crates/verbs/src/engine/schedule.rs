//! When descriptors start that could not leave at once.
//!
//! Each queue pair has its own queue (D-20). `progress` retries the oldest descriptor of each queue
//! pair, round-robin. A later descriptor never starts before an earlier one of the same queue pair
//! (D-19).

use super::payload::Head;
use super::work::{Attempt, Operation, Posted, Work};
use super::{Core, SLICES};
use bellwire_device::{Error, PacketHeader, QueuePair, Result, Transport};
use bellwire_protocol::OpId;
use bellwire_ring::memory::View;

/// Most descriptors of one queue pair that start in one turn.
const BURST: usize = 16;
/// Puts up to this do not wait for `progress` once they can be carried out.
const SHORT_PUT_BYTES: u64 = 4096;

impl Core {
    /// The slot behind a handle, if one more descriptor may be posted to the queue pair.
    pub(super) fn room_to_post(&mut self, queue_pair: QueuePair) -> Result<u32> {
        let qp = self.queue_pairs.of(queue_pair)?;
        if qp.posted_sends >= qp.send_depth {
            return Err(Error::QueueFull { queue: "send queue", depth: qp.send_depth });
        }
        let ring = &self.completion_queues[qp.send_completions];
        if !ring.has_room() {
            return Err(Error::QueueFull { queue: "completion queue", depth: ring.depth() });
        }
        Ok(queue_pair.slot)
    }

    /// Takes a descriptor and starts it if none waits before it. The caller has checked for
    /// [room](Core::room_to_post).
    pub(super) fn accept<T: Transport>(&mut self, transport: &mut T, slot: u32, posted: Posted) {
        let qp = &mut self.queue_pairs[slot];
        qp.tally.sends_posted += 1;
        qp.posted_sends += 1;
        let reserved = self.completion_queues[qp.send_completions].reserve();
        debug_assert!(reserved, "the caller checked for room");
        let waits = if qp.sends.is_empty() {
            match self.attempt(transport, slot, posted) {
                Attempt::Started => return,
                Attempt::Blocked(posted) | Attempt::Yielded(posted) => posted,
            }
        } else {
            posted
        };
        self.queue_pairs[slot].tally.sends_waited += 1;
        self.enqueue(slot, waits);
    }

    /// Queues a descriptor behind those that already wait.
    pub(super) fn enqueue(&mut self, slot: u32, posted: Posted) {
        let qp = &mut self.queue_pairs[slot];
        qp.sends.push_back(posted);
        if !std::mem::replace(&mut qp.listed, true) {
            self.pending.push_back(slot);
            self.deferred = true;
        }
    }

    /// Gives a turn to each queue pair with waiting descriptors. Returns how much it did.
    pub(super) fn advance_all<T: Transport>(&mut self, transport: &mut T) -> usize {
        let (mut done, mut slices) = (0, 0);
        for _ in 0..self.pending.len() {
            if slices == SLICES {
                break;
            }
            let Some(slot) = self.pending.pop_front() else { break };
            done += self.advance(transport, slot, &mut slices);
            let Some(qp) = self.queue_pairs.at_mut(slot) else { continue };
            qp.listed = !qp.sends.is_empty();
            if qp.listed {
                self.pending.push_back(slot);
            }
        }
        done
    }

    /// Starts the messages and short puts that wait in a queue pair, as many as possible. Returns
    /// whether none waits any more.
    pub(super) fn catch_up<T: Transport>(&mut self, transport: &mut T, slot: u32) -> bool {
        loop {
            match self.queue_pairs[slot].sends.front() {
                None => return true,
                Some(Posted { work: Work::Message(_), .. }) => {}
                Some(Posted { work: Work::Put(put), .. }) if put.total <= SHORT_PUT_BYTES => {}
                // Other work may move much data; `progress` does that.
                Some(_) => return false,
            }
            if self.advance(transport, slot, &mut 0) == 0 {
                return false;
            }
        }
    }

    fn advance<T: Transport>(&mut self, transport: &mut T, slot: u32, slices: &mut usize) -> usize {
        for done in 0..BURST {
            let Some(qp) = self.queue_pairs.at_mut(slot) else { return done };
            let Some(posted) = qp.sends.pop_front() else { return done };
            let (posted, done) = match self.attempt(transport, slot, posted) {
                Attempt::Started => continue,
                Attempt::Blocked(posted) => (posted, done),
                Attempt::Yielded(posted) => {
                    *slices += 1;
                    (posted, done + 1)
                }
            };
            self.queue_pairs[slot].sends.push_front(posted);
            return done;
        }
        BURST
    }

    /// Tries to start or continue the oldest descriptor of a queue pair.
    fn attempt<T: Transport>(&mut self, transport: &mut T, slot: u32, posted: Posted) -> Attempt {
        match &posted.work {
            Work::Message(_) => self.attempt_message(transport, slot, posted),
            Work::Put(_) => self.attempt_put(transport, slot, posted),
            Work::Get(_) => self.attempt_get(transport, slot, posted),
            Work::Atomic(_) => self.attempt_atomic(transport, slot, posted),
            Work::Accept(_) => self.attempt_acceptance(transport, posted),
        }
    }

    /// Reserves an operation number for a descriptor that needs a peer's answer. `None`: too many
    /// are in flight, and it has to wait (C-33).
    pub(super) fn start_operation(&mut self, slot: u32, posted: &Posted) -> Option<OpId> {
        let operation = Operation { slot, link: posted.link, posted: None };
        let id = self.operations.start(operation).ok()?;
        self.queue_pairs[slot].operations.push(id);
        Some(id)
    }

    /// Frees a number from [`Core::start_operation`], and returns its operation if there is one.
    pub(super) fn end_operation(&mut self, id: OpId) -> Option<Operation> {
        let operation = self.operations.finish(id).ok()?;
        let ids = &mut self.queue_pairs[operation.slot].operations;
        if let Some(place) = ids.iter().position(|&known| known == id) {
            ids.swap_remove(place);
        }
        Some(operation)
    }

    /// Moves a descriptor whose packets are sent into its operation, which its peer will answer.
    pub(super) fn await_answer(&mut self, id: OpId, posted: Posted) {
        if let Ok(operation) = self.operations.operation(id) {
            operation.posted = Some(posted);
        }
    }

    /// Sends the one packet that starts operation `id` at a peer.
    pub(super) fn send_request<T: Transport>(
        &mut self,
        transport: &mut T,
        (slot, id): (u32, OpId),
        posted: Posted,
        header: PacketHeader,
        head: Head,
    ) -> Attempt {
        match transport.send(posted.link, header, head.as_slice(), View::empty()) {
            Ok(_) => {
                self.await_answer(id, posted);
                Attempt::Started
            }
            Err(why) => {
                self.end_operation(id);
                self.unsent(transport, slot, posted, why)
            }
        }
    }
}
