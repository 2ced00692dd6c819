//! Counters: always on, one addition each, no clock and no lock.
//!
//! All are words of 64 bits in one struct per queue pair and one per function, so that they can be read from outside.

/// Defines a struct of `u64` counters and how to print it.
macro_rules! counters {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $field:ident),* $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        #[repr(C)]
        pub struct $name {
            $($(#[$doc])* pub $field: u64,)*
        }

        impl $name {
            /// Name and value of each counter, in the order of declaration.
            pub fn rows(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
                [$((stringify!($field), self.$field)),*].into_iter()
            }

            /// Adds the counters of `other`, each to its own.
            pub fn add(&mut self, other: &Self) {
                $(self.$field += other.$field;)*
            }
        }
    };
}

counters! {
    /// What one queue pair has done.
    ///
    /// At any time, with `posted_sends`, `posted_receives` and `backlog_messages` from [`crate::Function::query`]:
    /// - `sends_posted = sends_completed + posted_sends`
    /// - `receives_posted = receives_completed + posted_receives`
    /// - `messages_arrived = messages_received + messages_discarded + messages_unfinished + backlog_messages`
    QueuePairCounters {
        /// Sends, puts, gets and atomics that were accepted.
        sends_posted,
        /// Those that finished, in whatever way.
        sends_completed,
        /// Those that finished with another status than success.
        sends_failed,
        /// Receives that were accepted; of a shared receive queue, when a message takes one.
        receives_posted,
        /// Receives that finished, in whatever way.
        receives_completed,
        /// Those that finished with another status than success.
        receives_failed,
        /// Messages whose send succeeded.
        messages_sent,
        /// Bytes in them.
        bytes_sent,
        /// Messages and remote events that arrived here and were not refused.
        messages_arrived,
        /// Messages and remote events that a completion told of.
        messages_received,
        /// Bytes of messages that were received.
        bytes_received,
        /// Messages that were dropped because the queue pair, or the link, went away.
        messages_discarded,
        /// Long messages whose transfer goes on now (a state, not a sum).
        messages_unfinished,
        /// Messages that found no receive and waited for one.
        messages_backlogged,
        /// Messages that were longer than their receive.
        messages_truncated,
        /// Messages that came from somebody other than the connected peer, or from outside the channel: dropped (H-22).
        messages_refused,
        /// Puts that succeeded.
        puts,
        /// Bytes in them.
        put_bytes,
        /// Gets that succeeded.
        gets,
        /// Bytes in them.
        get_bytes,
        /// Atomics that succeeded.
        atomics,
        /// Remote events that a completion told of.
        events_received,
        /// Posts that could not leave at once.
        sends_waited,
        /// Times that senders were told to stop (H-15).
        stops,
    }
}

counters! {
    /// What one function has done, beside what its queue pairs did.
    FunctionCounters {
        /// Packets that were taken; each message of a batch counts as one.
        packets_taken,
        /// Times that a packet had to stay in its link for want of room.
        packets_stalled,
        /// Packets of a kind that is not known: dropped (C-37).
        unknown_kinds,
        /// Packets that broke the protocol; each closed its link.
        violations,
        /// Packets for a queue pair that does not exist: dropped.
        no_such_queue_pairs,
        /// Answers to operations that do not exist (any more): dropped.
        stale_operations,
        /// Requests with a key that is not, or no longer, valid here: nothing changed (C-09).
        wrong_keys,
        /// Requests outside their region: nothing changed.
        out_of_bounds,
        /// Requests that the region's rights do not allow: nothing changed.
        not_permitted,
        /// Requests for atomics on words that are not aligned: nothing changed.
        misaligned,
        /// Pieces of puts from peers that this engine carried out.
        served_puts,
        /// Pieces of gets from peers that this engine carried out.
        served_gets,
        /// Atomics from peers that this engine carried out.
        served_atomics,
        /// Connection requests that found nobody listening, or too many waiting.
        connections_refused,
        /// Links that came up, or were asked for.
        links_opened,
        /// Links that went down.
        links_lost,
    }
}

/// A snapshot of everything that a function counts.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    /// The function's own.
    pub function: FunctionCounters,
    /// Sum over all queue pairs, those included that were destroyed.
    pub total: QueuePairCounters,
    /// Each queue pair that exists: its number and counters.
    pub queue_pairs: Vec<(u32, QueuePairCounters)>,
}

impl Counters {
    /// Name and value of each counter: the function's own, then the sums over its queue pairs.
    pub fn rows(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
        self.function.rows().chain(self.total.rows())
    }
}
