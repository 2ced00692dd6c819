//! The engine's state of each queue pair.

use super::connect::ConnectAttempt;
use super::routing::Routing;
use super::work::Posted;
use crate::claims::Claim;
use crate::receive_queue::ReceiveQueue;
use crate::table::Table;
use crate::{QueuePairCounters, QueuePairOptions};
use bellwire_device::{Address, Completion, Error, QueuePair, Result, Status};
use bellwire_protocol::OpId;
use std::collections::VecDeque;

/// A queue pair.
pub(super) struct QueuePairContext {
    pub(super) handle: QueuePair,
    pub(super) routing: Routing,
    /// Slots of the completion queues, which outlive their users.
    pub(super) send_completions: u32,
    pub(super) receive_completions: u32,
    /// Descriptors that have not left completely, oldest first.
    pub(super) sends: VecDeque<Posted>,
    /// Whether the queue pair is in `Core::pending`.
    pub(super) listed: bool,
    /// Receives, unless they are shared.
    pub(super) receives: ReceiveQueue,
    /// Slot of the shared receive queue.
    pub(super) shared_receive: Option<u32>,
    /// Whether messages wait in the backlog.
    pub(super) backlogged: bool,
    /// Long messages that are arriving, and finished receives that wait for an earlier one of the
    /// same sender.
    pub(super) held: VecDeque<Held>,
    pub(super) send_depth: usize,
    pub(super) receive_depth: usize,
    /// Descriptors in `sends`, in `operations`, and undelivered ones. Each counts once.
    pub(super) posted_sends: usize,
    /// Operations in flight at peers.
    pub(super) operations: Vec<OpId>,
    /// Long messages that are arriving.
    pub(super) transfers: Vec<OpId>,
    pub(super) connect_attempt: Option<Box<ConnectAttempt>>,
    pub(super) last_error: Option<Status>,
    /// The node-wide claim on the channel's number.
    pub(super) channel: Option<Claim>,
    /// All counts except those of the fast path.
    pub(super) tally: QueuePairCounters,
    /// Messages that were sent and received on the fast path, and their bytes.
    /// [`QueuePairContext::counters`] adds each to several rows of the tally.
    pub(super) fast_sends: FastPathCount,
    pub(super) fast_receives: FastPathCount,
    /// Puts that were carried out as they were posted.
    pub(super) fast_puts: FastPathCount,
    /// Messages that the program took in place.
    pub(super) inbox_taken: FastPathCount,
}

/// Messages and their bytes.
#[derive(Clone, Copy, Default)]
pub(super) struct FastPathCount {
    pub(super) messages: u64,
    bytes: u64,
}

impl FastPathCount {
    #[inline(always)]
    pub(super) fn count(&mut self, length: usize) {
        self.count_several(1, length);
    }

    #[inline(always)]
    pub(super) fn count_several(&mut self, messages: usize, bytes: usize) {
        self.messages += messages as u64;
        self.bytes += bytes as u64;
    }
}

/// The place of a receive in the order of completions.
pub(super) struct Held {
    /// Order is kept per sender, so a slow sender causes no head-of-line blocking for the others.
    pub(super) source: Address,
    pub(super) state: HeldState,
}

pub(super) enum HeldState {
    /// A long message is still arriving.
    UnderWay(OpId),
    Done(Completion),
}

impl QueuePairContext {
    /// A queue pair without a number yet.
    pub(super) fn new(options: &QueuePairOptions, channel: Option<Claim>) -> Self {
        let receives = match options.shared_receive {
            Some(_) => ReceiveQueue::default(),
            None => ReceiveQueue::with_capacity(options.receive_depth.min(256)),
        };
        QueuePairContext {
            handle: QueuePair { number: 0, slot: 0, generation: 0 },
            routing: Routing::NEW,
            send_completions: options.send_completions.slot,
            receive_completions: options.receive_completions.slot,
            sends: VecDeque::new(),
            listed: false,
            receives,
            shared_receive: options.shared_receive.map(|queue| queue.slot),
            backlogged: false,
            held: VecDeque::new(),
            send_depth: options.send_depth,
            receive_depth: options.receive_depth,
            posted_sends: 0,
            operations: Vec::new(),
            transfers: Vec::new(),
            connect_attempt: None,
            last_error: None,
            channel,
            tally: QueuePairCounters::default(),
            fast_sends: FastPathCount::default(),
            fast_receives: FastPathCount::default(),
            fast_puts: FastPathCount::default(),
            inbox_taken: FastPathCount::default(),
        }
    }

    /// Whether no message waits here that comes before a new one.
    #[inline(always)]
    pub(super) fn is_in_order(&self) -> bool {
        !self.backlogged && self.held.is_empty()
    }

    /// The counters of the queue pair.
    pub(super) fn counters(&self) -> QueuePairCounters {
        let FastPathCount { messages: sent, bytes: bytes_sent } = self.fast_sends;
        let FastPathCount { messages: received, bytes: bytes_received } = self.fast_receives;
        let mut counters = self.tally;
        counters.add(&QueuePairCounters {
            sends_posted: sent,
            sends_completed: sent,
            messages_sent: sent,
            bytes_sent,
            receives_completed: received,
            messages_arrived: received,
            messages_received: received,
            bytes_received,
            ..Default::default()
        });
        let FastPathCount { messages: puts, bytes: put_bytes } = self.fast_puts;
        counters.add(&QueuePairCounters {
            sends_posted: puts,
            sends_completed: puts,
            puts,
            put_bytes,
            ..Default::default()
        });
        let FastPathCount { messages: shown, bytes: bytes_shown } = self.inbox_taken;
        counters.add(&QueuePairCounters {
            messages_arrived: shown,
            messages_received: shown,
            bytes_received: bytes_shown,
            ..Default::default()
        });
        counters
    }

    /// Received messages that the function's packet count does not include.
    pub(super) fn fast_path_arrivals(&self) -> u64 {
        self.fast_receives.messages + self.inbox_taken.messages
    }
}

/// The queue pair of a handle.
impl Table<QueuePairContext> {
    #[inline(always)]
    pub(super) fn of(&self, handle: QueuePair) -> Result<&QueuePairContext> {
        self.find(handle.slot, handle.generation).ok_or_else(|| Error::NoSuchQueuePair)
    }

    #[inline(always)]
    pub(super) fn of_mut(&mut self, handle: QueuePair) -> Result<&mut QueuePairContext> {
        self.find_mut(handle.slot, handle.generation).ok_or_else(|| Error::NoSuchQueuePair)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CompletionQueue;

    fn context() -> QueuePairContext {
        let queue = CompletionQueue { slot: 1, generation: 2 };
        QueuePairContext::new(&QueuePairOptions::new(queue), None)
    }

    /// What took a fast path is counted as all others are.
    #[test]
    fn fast_paths_count() {
        let mut context = context();
        context.tally.sends_posted = 100;
        context.tally.messages_arrived = 200;
        context.fast_sends.count(5);
        context.fast_sends.count(6);
        for length in [10, 20, 30] {
            context.fast_receives.count(length);
        }
        for _ in 0..4 {
            context.fast_puts.count(7);
        }
        for _ in 0..5 {
            context.inbox_taken.count(100);
        }
        let expected = QueuePairCounters {
            sends_posted: 106,
            sends_completed: 6,
            messages_sent: 2,
            bytes_sent: 11,
            puts: 4,
            put_bytes: 28,
            receives_completed: 3,
            messages_arrived: 208,
            messages_received: 8,
            bytes_received: 560,
            ..QueuePairCounters::default()
        };
        assert_eq!(context.counters(), expected);
        assert_eq!(context.fast_path_arrivals(), 8);
    }

    /// Messages that wait come before those that arrive now.
    #[test]
    fn what_waits_breaks_the_order() {
        let mut context = context();
        assert!(context.is_in_order());
        context.backlogged = true;
        assert!(!context.is_in_order());
        context.backlogged = false;
        let source = Address::new(1, 2, 3);
        let operation = Completion::new(
            context.handle,
            source,
            bellwire_device::Operation::Receive,
            Status::Success,
            0,
            0,
        );
        context.held.push_back(Held { source, state: HeldState::Done(operation) });
        assert!(!context.is_in_order());
    }
}
