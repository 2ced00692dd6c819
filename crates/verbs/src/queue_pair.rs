//! Queue pairs: options and state.

use crate::{Address, CompletionQueue, QueuePairCounters, SharedReceiveQueue, Status};

/// Options of a new queue pair.
///
/// ```no_run
/// # use bellwire::{Function, QueuePairOptions, Result};
/// # fn example(function: &mut Function) -> Result<()> {
/// let sends = function.create_completion_queue(64)?;
/// let receives = function.create_completion_queue(1024)?;
/// let options = QueuePairOptions::new(sends).receive_completions(receives).receive_depth(1024);
/// let queue_pair = function.create_queue_pair(&options)?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct QueuePairOptions {
    pub(crate) send_completions: CompletionQueue,
    pub(crate) receive_completions: CompletionQueue,
    pub(crate) send_depth: usize,
    pub(crate) receive_depth: usize,
    pub(crate) shared_receive: Option<SharedReceiveQueue>,
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

    /// Receives and remote events complete in `completions` instead. Sends, puts, gets and atomics
    /// stay.
    pub fn receive_completions(mut self, completions: CompletionQueue) -> Self {
        self.receive_completions = completions;
        self
    }

    /// Most unfinished sends, puts, gets and atomics, 1 to 65,536.
    pub fn send_depth(mut self, depth: usize) -> Self {
        self.send_depth = depth;
        self
    }

    /// Most unfinished receives, 1 to 65,536. Unused with a shared receive queue.
    pub fn receive_depth(mut self, depth: usize) -> Self {
        self.receive_depth = depth;
        self
    }

    /// Takes receives from `queue` instead of its own.
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
