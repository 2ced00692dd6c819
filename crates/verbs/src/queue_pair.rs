//! Queue pairs: options and state.

use crate::{Address, CompletionQueue, QueuePairCounters, SharedReceiveQueue, Status};

/// Options of a new queue pair.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct QueuePairOptions {
    /// Where sends, puts, gets and atomics complete.
    pub send_completions: CompletionQueue,
    /// Where receives and remote events complete.
    pub receive_completions: CompletionQueue,
    /// Most unfinished sends, puts, gets and atomics, 1 to 65,536.
    pub send_depth: usize,
    /// Most unfinished receives, 1 to 65,536. Unused with `shared_receive`.
    pub receive_depth: usize,
    /// Takes its receives from this queue instead of its own.
    pub shared_receive: Option<SharedReceiveQueue>,
}

impl QueuePairOptions {
    /// Both sides complete in `completions`. Depth: 256 sends and 256 receives.
    pub fn new(completions: CompletionQueue) -> Self {
        QueuePairOptions {
            send_completions: completions,
            receive_completions: completions,
            send_depth: 256,
            receive_depth: 256,
            shared_receive: None,
        }
    }

    /// Receives and events complete in `completions` instead.
    pub fn receive_completions(mut self, completions: CompletionQueue) -> Self {
        self.receive_completions = completions;
        self
    }

    /// Sets the most unfinished sends, puts, gets and atomics.
    pub fn send_depth(mut self, depth: usize) -> Self {
        self.send_depth = depth;
        self
    }

    /// Sets the most unfinished receives.
    pub fn receive_depth(mut self, depth: usize) -> Self {
        self.receive_depth = depth;
        self
    }

    /// Takes receives from `queue`.
    pub fn shared_receive(mut self, queue: SharedReceiveQueue) -> Self {
        self.shared_receive = Some(queue);
        self
    }
}

/// Whether a queue pair has a fixed peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnectionState {
    /// No: every send names its destination, and any peer may send to it.
    Unconnected,
    /// [`crate::Function::start_connect`] has sent a request, and no answer has come yet.
    Connecting {
        /// The address of the request.
        to: Address,
    },
    /// Only this peer: sends name no destination, and messages of others are dropped.
    Connected {
        /// The peer's queue pair.
        peer: Address,
    },
    /// It had a peer. It can be connected again, or destroyed.
    Disconnected {
        /// [`Status::Flushed`] if this side ended it, otherwise the status of the peer's end.
        why: Status,
    },
}

/// The result of [`crate::Function::query`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct QueuePairState {
    /// The address that peers send to.
    pub address: Address,
    /// Whether it has a fixed peer.
    pub connection: ConnectionState,
    /// Unfinished sends, puts, gets and atomics.
    pub posted_sends: usize,
    /// Unfinished receives. Those of a shared receive queue count only after a message has taken
    /// them.
    pub posted_receives: usize,
    /// Messages that wait here for a receive.
    pub backlog_messages: usize,
    /// The last status that was not a success.
    pub last_error: Option<Status>,
    /// Its counters.
    pub counters: QueuePairCounters,
}
