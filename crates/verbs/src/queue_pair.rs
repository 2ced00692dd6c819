//! Queue pairs: what one is made of, and what can be asked of it.

use crate::{Address, CompletionQueue, QueuePairCounters, SharedReceiveQueue, Status};

/// What a queue pair is made of.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct QueuePairOptions {
    /// Where sends, puts, gets and atomics complete.
    pub send_completions: CompletionQueue,
    /// Where receives complete, and remote events appear.
    pub receive_completions: CompletionQueue,
    /// Sends, puts, gets and atomics that can be posted and not finished, 1 to 65,536.
    pub send_depth: usize,
    /// Receives that can be posted and not finished, 1 to 65,536; unused with `shared_receive`.
    pub receive_depth: usize,
    /// Takes its receives from there instead of a queue of its own.
    pub shared_receive: Option<SharedReceiveQueue>,
}

impl QueuePairOptions {
    /// Both sides complete in `completions`; 256 sends and 256 receives can be posted.
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

    /// Sends that can be posted and not finished.
    pub fn send_depth(mut self, depth: usize) -> Self {
        self.send_depth = depth;
        self
    }

    /// Receives that can be posted and not finished.
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
    /// It has none: every send names its destination, and anybody may send to it.
    Unconnected,
    /// [`crate::Function::start_connect`] asked, and nobody has answered yet.
    Connecting {
        /// Whom it asked.
        to: Address,
    },
    /// Only this peer: sends name no destination, and nobody else's messages are taken.
    Connected {
        /// The peer's queue pair.
        peer: Address,
    },
    /// It had a peer. It can be connected again, or destroyed.
    Disconnected {
        /// [`Status::Flushed`] if this side ended it, otherwise what happened to the peer.
        why: Status,
    },
}

/// What [`crate::Function::query`] says.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct QueuePairState {
    /// Where peers send to.
    pub address: Address,
    /// Whether it has a fixed peer.
    pub connection: ConnectionState,
    /// Sends, puts, gets and atomics that are posted and not finished.
    pub posted_sends: usize,
    /// Receives that are posted and not finished; those of a shared receive queue only once a message has taken them.
    pub posted_receives: usize,
    /// Messages that wait here for a receive.
    pub backlog_messages: usize,
    /// The last status that was not a success.
    pub last_error: Option<Status>,
    /// What it has done.
    pub counters: QueuePairCounters,
}
