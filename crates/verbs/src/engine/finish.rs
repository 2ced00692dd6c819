//! The end of descriptors: completions, in the order that is promised.

use super::Core;
use super::queue_pair::{Held, HeldState};
use super::work::{Attempt, Ended, Operation, Outcome, Posted, Work};
use bellwire_device::{Address, Completion, SendError, Status, Transport};
use bellwire_protocol::OpId;
use std::collections::VecDeque;

// The send side.
impl Core {
    /// Ends a descriptor that cannot be started, or whose peer will not answer.
    pub(super) fn fail<T: Transport + ?Sized>(
        &mut self,
        transport: &mut T,
        slot: u32,
        mut posted: Posted,
        status: Status,
    ) -> Attempt {
        let length = self.reclaim(transport, &mut posted.work);
        self.finish_posted(slot, posted, Outcome::failure(status, length))
    }

    /// Frees a descriptor's key or operation number. No peer reads its buffers afterwards. Returns
    /// the number of bytes that have certainly moved.
    fn reclaim<T: Transport + ?Sized>(&mut self, transport: &mut T, work: &mut Work) -> usize {
        match work {
            Work::Message(message) => {
                self.withdraw(transport, message);
                0
            }
            Work::Put(put) => {
                let (operation, done) = put.under_way();
                operation.and_then(|id| self.end_operation(id));
                done
            }
            Work::Get(get) => get.done as usize,
            Work::Atomic(_) | Work::Accept(_) => 0,
        }
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
        // A descriptor that is still in its queue ends there.
        let Operation { slot, posted: Some(mut posted), .. } = operation else { return };
        let length = posted.work.moved(status, length);
        self.reclaim(transport, &mut posted.work);
        self.finish_posted(slot, posted, Outcome { status, length, value });
    }

    /// Ends a descriptor that is not with a peer.
    pub(super) fn finish_posted(&mut self, slot: u32, posted: Posted, outcome: Outcome) -> Attempt {
        if let Some(ended) = posted.into_ended() {
            self.finish(slot, ended, outcome);
        }
        Attempt::Started
    }

    /// What becomes of a descriptor whose packet was not sent.
    pub(super) fn unsent<T: Transport + ?Sized>(
        &mut self,
        transport: &mut T,
        slot: u32,
        posted: Posted,
        why: SendError,
    ) -> Attempt {
        match why {
            SendError::Busy => Attempt::Blocked(posted),
            SendError::Down(status) => self.fail(transport, slot, posted, status),
        }
    }

    /// Completes a descriptor. Its reservation becomes its completion, or is released if the
    /// descriptor is unsignaled and has succeeded.
    pub(super) fn finish(&mut self, slot: u32, ended: Ended, outcome: Outcome) {
        let Ended { kind, to, context, signaled, buffers: (buffer, rest) } = ended;
        let Outcome { status, length, value } = outcome;
        let qp = &mut self.queue_pairs[slot];
        qp.posted_sends -= 1;
        qp.tally.sends_completed += 1;
        if status.is_success() {
            qp.tally.count_success(kind, length);
        } else {
            qp.tally.sends_failed += 1;
            qp.last_error = Some(status);
        }
        let ring = &mut self.completion_queues[qp.send_completions];
        if signaled || !status.is_success() {
            let done = Completion::new(qp.handle, to, kind, status, context, length);
            ring.push_reserved(Completion { word: value, buffer, rest, ..done });
        } else {
            ring.release();
            self.retry_backlog |= std::mem::take(&mut ring.starved);
            self.deferred |= self.retry_backlog;
        }
    }
}

// The receive side.
impl Core {
    /// Ends a receive that has a reservation. Its completion waits while an older message of the
    /// same sender is unfinished.
    #[cold]
    pub(super) fn finish_receive(&mut self, slot: u32, completion: Completion) {
        let qp = &mut self.queue_pairs[slot];
        let tally = &mut qp.tally;
        tally.receives_completed += 1;
        if !completion.status.is_success() {
            tally.receives_failed += 1;
            qp.last_error = Some(completion.status);
        }
        self.keep_order(slot, completion);
    }

    /// Reports a reserved completion of the receive side in the sender's order.
    pub(super) fn keep_order(&mut self, slot: u32, completion: Completion) {
        let qp = &mut self.queue_pairs[slot];
        if qp.held.is_empty() {
            self.completion_queues[qp.receive_completions].push_reserved(completion);
        } else {
            let source = completion.peer;
            qp.held.push_back(Held { source, state: HeldState::Done(completion) });
            self.release_held(slot);
        }
    }

    /// Reports held completions that no unfinished message of the same sender precedes.
    pub(super) fn release_held(&mut self, slot: u32) {
        let qp = &mut self.queue_pairs[slot];
        let ring = &mut self.completion_queues[qp.receive_completions];
        // The common case: they end in the order of arrival.
        while let Some(Held { state: HeldState::Done(_), .. }) = qp.held.front() {
            let Some(Held { state: HeldState::Done(completion), .. }) = qp.held.pop_front() else {
                unreachable!("it was looked at")
            };
            ring.push_reserved(completion);
        }
        if !qp.held.iter().any(|held| matches!(held.state, HeldState::Done(_))) {
            return;
        }
        let mut busy: Vec<Address> = Vec::new();
        let mut kept = VecDeque::with_capacity(qp.held.len());
        for held in qp.held.drain(..) {
            match held.state {
                HeldState::Done(completion) if !busy.contains(&held.source) => {
                    ring.push_reserved(completion);
                }
                HeldState::Done(_) => kept.push_back(held),
                HeldState::UnderWay(_) => {
                    busy.push(held.source);
                    kept.push_back(held);
                }
            }
        }
        qp.held = kept;
    }
}
