//! Descriptors that could not leave at once, and operations that a peer has not answered.
//!
//! Each queue pair has its own queue (D-20). `progress` retries the oldest descriptor of each queue
//! pair, round-robin. A later descriptor never starts before an earlier one of the same queue pair
//! (D-19).

use super::atomic::AtomicWork;
use super::connect::Acceptance;
use super::get::GetWork;
use super::put::PutWork;
use super::rendezvous::QueuedMessage;
use super::*;
use bellwire_device::{Address, Buffer, Operation as Finished, QueuePair};

/// Most descriptors of one queue pair that start in one turn.
const BURST: usize = 16;

/// An accepted descriptor.
pub(crate) struct Posted {
    pub(crate) link: LinkId,
    pub(crate) to: Address,
    pub(crate) context: u64,
    pub(crate) signaled: bool,
    pub(crate) work: Work,
}

pub(crate) enum Work {
    Message(QueuedMessage),
    Put(PutWork),
    Get(GetWork),
    Atomic(AtomicWork),
    /// The acceptance of a connection. It is queued so that messages on the connection do not
    /// overtake it. The program did not post it.
    Accept(Acceptance),
}

/// The result of an attempt to start a descriptor.
pub(crate) enum Tried {
    /// It has finished, or a peer has it now.
    Gone,
    /// It waits for a peer, or for another operation to end.
    Waits(Posted),
    /// It can continue, but the next queue pair has its turn.
    GoesOn(Posted),
}

/// An operation that a peer has not answered yet.
pub(crate) struct Operation {
    pub(crate) slot: u32,
    pub(crate) link: LinkId,
    pub(crate) to: Address,
    pub(crate) context: u64,
    pub(crate) signaled: bool,
    pub(crate) stage: Stage,
}

pub(crate) enum Stage {
    /// Its packets are being sent; the descriptor is still the oldest of its queue pair.
    Sending,
    /// The receiver has our offer, or fetches the message.
    Offered { message: QueuedMessage, streaming: bool },
    /// All pieces are sent.
    Put(PutWork),
    /// The next piece is requested from the owner.
    Get(GetWork),
    /// The request is with the owner.
    Atomic(AtomicWork),
}

impl Work {
    pub(super) fn operation(&self) -> Finished {
        match self {
            Work::Message(_) => Finished::Send,
            Work::Put(_) => Finished::Put,
            Work::Get(_) => Finished::Get,
            Work::Atomic(atomic) => atomic.operation.kind(),
            Work::Accept(_) => unreachable!("an acceptance completes nowhere"),
        }
    }

    /// What its completion needs.
    fn into_ended(self) -> Ended {
        let operation = self.operation();
        let (buffer, rest) = match self {
            Work::Message(message) => (message.data.into_buffer(), None),
            Work::Put(put) if put.ours => (None, None),
            Work::Put(put) => put.sources.0.into_parts(),
            Work::Get(get) => get.destinations.0.into_parts(),
            Work::Atomic(_) | Work::Accept(_) => (None, None),
        };
        (operation, buffer, rest)
    }

    /// The local buffers.
    pub(super) fn buffers(&self) -> &[Buffer] {
        match self {
            Work::Message(message) => message.data.buffers(),
            Work::Put(put) => put.sources.0.items(),
            Work::Get(get) => get.destinations.0.items(),
            Work::Atomic(_) | Work::Accept(_) => &[],
        }
    }
}

impl Stage {
    /// The local buffers that are in use.
    pub(super) fn buffers(&self) -> &[Buffer] {
        match self {
            Stage::Offered { message, .. } => message.data.buffers(),
            Stage::Put(put) => put.sources.0.items(),
            Stage::Get(get) => get.destinations.0.items(),
            Stage::Sending | Stage::Atomic(_) => &[],
        }
    }
}

/// A descriptor's operation, its first buffer and its further buffers, for its completion.
pub(super) type Ended = (Finished, Option<Buffer>, Option<Box<Vec<Buffer>>>);

/// The result of a descriptor that has ended.
#[derive(Clone, Copy)]
pub(super) struct Outcome {
    pub(super) status: Status,
    pub(super) length: usize,
    pub(super) value: u64,
}

impl Outcome {
    pub(super) fn success(length: usize) -> Self {
        Outcome { status: Status::Success, length, value: 0 }
    }

    pub(super) fn failure(status: Status, length: usize) -> Self {
        Outcome { status, length, value: 0 }
    }
}

impl Core {
    /// The queue pair behind a handle, and whether `sends` more descriptors may be posted to it.
    pub(super) fn room_to_post(&mut self, queue_pair: QueuePair) -> Result<u32> {
        let entry = self
            .queue_pairs
            .find(queue_pair.slot, queue_pair.generation)
            .ok_or_else(|| Error::NoSuchQueuePair)?;
        if entry.posted_sends >= entry.send_depth {
            return Err(Error::QueueFull { queue: "send queue", depth: entry.send_depth });
        }
        let ring = &self.completion_queues[entry.send_completions];
        if !ring.has_room() {
            return Err(Error::QueueFull { queue: "completion queue", depth: ring.depth() });
        }
        Ok(queue_pair.slot)
    }

    /// Takes a descriptor and starts it if none waits before it. The caller has checked for
    /// [room](Core::room_to_post).
    pub(super) fn accept<T: Transport>(&mut self, transport: &mut T, slot: u32, posted: Posted) {
        let entry = &mut self.queue_pairs[slot];
        entry.tally.sends_posted += 1;
        entry.posted_sends += 1;
        let reserved = self.completion_queues[entry.send_completions].reserve();
        debug_assert!(reserved, "the caller checked for room");
        let waits = if entry.sends.is_empty() {
            match self.attempt(transport, slot, posted) {
                Tried::Gone => return,
                Tried::Waits(posted) | Tried::GoesOn(posted) => posted,
            }
        } else {
            posted
        };
        self.queue_pairs[slot].tally.sends_waited += 1;
        self.wait_in_line(slot, waits);
    }

    /// Queues a descriptor behind those that already wait.
    pub(super) fn wait_in_line(&mut self, slot: u32, posted: Posted) {
        let entry = &mut self.queue_pairs[slot];
        entry.sends.push_back(posted);
        if !std::mem::replace(&mut entry.listed, true) {
            self.pending.push_back(slot);
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
            let Some(entry) = self.queue_pairs.at_mut(slot) else { continue };
            entry.listed = !entry.sends.is_empty();
            if entry.listed {
                self.pending.push_back(slot);
            }
        }
        done
    }

    /// Starts the messages that wait in a queue pair, as many as possible. Returns whether none
    /// waits any more.
    pub(super) fn catch_up<T: Transport>(&mut self, transport: &mut T, slot: u32) -> bool {
        loop {
            match self.queue_pairs[slot].sends.front() {
                None => return true,
                // Other work may move much data; `progress` does that.
                Some(oldest) if !matches!(oldest.work, Work::Message(_)) => return false,
                Some(_) => {}
            }
            if self.advance(transport, slot, &mut 0) == 0 {
                return false;
            }
        }
    }

    fn advance<T: Transport>(&mut self, transport: &mut T, slot: u32, slices: &mut usize) -> usize {
        for done in 0..BURST {
            let Some(entry) = self.queue_pairs.at_mut(slot) else { return done };
            let Some(posted) = entry.sends.pop_front() else { return done };
            let (posted, done) = match self.attempt(transport, slot, posted) {
                Tried::Gone => continue,
                Tried::Waits(posted) => (posted, done),
                Tried::GoesOn(posted) => {
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
    fn attempt<T: Transport>(&mut self, transport: &mut T, slot: u32, posted: Posted) -> Tried {
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
        let operation = Operation {
            slot,
            link: posted.link,
            to: posted.to,
            context: posted.context,
            signaled: posted.signaled,
            stage: Stage::Sending,
        };
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

    /// Moves a descriptor into its operation, which its peer will answer.
    pub(super) fn hand_over(&mut self, id: OpId, stage: Stage) {
        if let Ok(operation) = self.operations.operation(id) {
            operation.stage = stage;
        }
    }

    /// Ends a descriptor that is not with a peer.
    pub(super) fn finish_posted(&mut self, slot: u32, posted: Posted, outcome: Outcome) {
        let Posted { to, context, signaled, work, .. } = posted;
        if let Work::Accept(_) = work {
            return;
        }
        self.finish_work(slot, to, context, signaled, work.into_ended(), outcome);
    }

    pub(super) fn finish_work(
        &mut self,
        slot: u32,
        to: Address,
        context: u64,
        signaled: bool,
        (operation, buffer, rest): Ended,
        outcome: Outcome,
    ) {
        if outcome.status.is_success() {
            let tally = &mut self.queue_pairs[slot].tally;
            let bytes = outcome.length as u64;
            match operation {
                Finished::Send => {
                    tally.messages_sent += 1;
                    tally.bytes_sent += bytes;
                }
                Finished::Put => {
                    tally.puts += 1;
                    tally.put_bytes += bytes;
                }
                Finished::Get => {
                    tally.gets += 1;
                    tally.get_bytes += bytes;
                }
                _ => tally.atomics += 1,
            }
        }
        let completion = Completion {
            queue_pair: self.queue_pairs[slot].handle,
            operation,
            status: outcome.status,
            context,
            length: outcome.length,
            has_immediate: false,
            word: outcome.value,
            peer: to,
            buffer,
            rest,
        };
        self.finish(slot, signaled, completion);
    }

    /// Ends an operation that its peer has answered, or never will.
    pub(super) fn finish_operation<T: Transport>(
        &mut self,
        transport: &mut T,
        operation: Operation,
        outcome: Outcome,
    ) {
        let Operation { slot, to, context, signaled, stage, .. } = operation;
        let work = match stage {
            // The descriptor is still in its queue, and ends there.
            Stage::Sending => return,
            Stage::Offered { mut message, .. } => {
                // No peer may read it after the program has it back.
                self.withdraw(transport, &mut message);
                Work::Message(message)
            }
            Stage::Put(put) => Work::Put(put),
            Stage::Get(get) => Work::Get(get),
            Stage::Atomic(atomic) => Work::Atomic(atomic),
        };
        self.finish_work(slot, to, context, signaled, work.into_ended(), outcome);
    }
}
