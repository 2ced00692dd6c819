//! Counters: always on, one addition each, no clock and no lock.
//!
//! All are words of 64 bits in one struct per queue pair and one per function, so that tools can
//! read them from outside.

use crate::Operation;

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
    /// The counters of one queue pair.
    ///
    /// At any time, with `posted_sends`, `posted_receives` and `backlog_messages` from
    /// [`crate::Function::query`]:
    /// - `sends_posted = sends_completed + posted_sends`
    /// - `receives_posted = receives_completed + posted_receives`
    /// - `messages_arrived = messages_received + messages_discarded + messages_unfinished +
    ///   backlog_messages`
    QueuePairCounters {
        /// Sends, puts, gets and atomics accepted.
        sends_posted,
        /// Of these, the finished ones, with any status.
        sends_completed,
        /// Of these, the ones that finished with a status other than success.
        sends_failed,
        /// Receives accepted. Those of a shared receive queue count when a message takes one.
        receives_posted,
        /// Receives that finished, with any status.
        receives_completed,
        /// Of these, the ones that finished with a status other than success.
        receives_failed,
        /// Messages whose send succeeded.
        messages_sent,
        /// Bytes in them.
        bytes_sent,
        /// Messages and remote events that arrived here and were not refused.
        messages_arrived,
        /// Messages and remote events with a completion.
        messages_received,
        /// Bytes of messages that were received.
        bytes_received,
        /// Messages that were dropped because the queue pair, or the link, went away.
        messages_discarded,
        /// Long messages with a transfer in progress (a state, not a sum).
        messages_unfinished,
        /// Messages that found no receive and went to the backlog.
        messages_backlogged,
        /// Messages that were longer than their receive.
        messages_truncated,
        /// Messages from a sender that is not the connected peer, or not in the channel: dropped
        /// (H-22).
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
        /// Remote events with a completion.
        events_received,
        /// Descriptors that could not leave at once.
        sends_waited,
        /// Times that senders received STOP (H-15).
        stops,
    }
}

impl QueuePairCounters {
    /// Counts a posted descriptor that has succeeded with `length` bytes.
    #[inline]
    pub(crate) fn count_success(&mut self, kind: Operation, length: usize) {
        let bytes = length as u64;
        match kind {
            Operation::Send => {
                self.messages_sent += 1;
                self.bytes_sent += bytes;
            }
            Operation::Put => {
                self.puts += 1;
                self.put_bytes += bytes;
            }
            Operation::Get => {
                self.gets += 1;
                self.get_bytes += bytes;
            }
            _ => self.atomics += 1,
        }
    }
}

counters! {
    /// The counters of one function, beside those of its queue pairs.
    FunctionCounters {
        /// Packets taken. Each message of a batch counts as one.
        packets_taken,
        /// Times that a packet stayed in its link for lack of room.
        packets_stalled,
        /// Packets of an unknown kind: dropped (C-37).
        unknown_kinds,
        /// Packets that broke the protocol; each closed its link.
        violations,
        /// Packets for a queue pair that does not exist: dropped.
        no_such_queue_pairs,
        /// Answers to unknown or finished operations: dropped.
        stale_operations,
        /// Requests with a key that is invalid here: no effect (C-09).
        wrong_keys,
        /// Requests outside their region: no effect.
        out_of_bounds,
        /// Requests that the region's rights do not allow: no effect.
        not_permitted,
        /// Atomics on misaligned words: no effect.
        misaligned,
        /// Pieces of puts from peers that this engine carried out.
        served_puts,
        /// Pieces of gets from peers that this engine carried out.
        served_gets,
        /// Atomics from peers that this engine carried out.
        served_atomics,
        /// Connection requests without a listener, or with too many waiting there.
        connections_refused,
        /// Links that came up or were requested.
        links_opened,
        /// Links that went down.
        links_lost,
    }
}

/// A snapshot of all counters of a function.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    /// The function's own.
    pub function: FunctionCounters,
    /// Sum over all queue pairs, destroyed ones included.
    pub total: QueuePairCounters,
    /// Number and counters of each existing queue pair.
    pub queue_pairs: Vec<(u32, QueuePairCounters)>,
    /// Name and value of each counter of the device.
    pub device: Vec<(&'static str, u64)>,
}

impl Counters {
    /// Name and value of each counter: the function's own, then the sums over its queue pairs.
    pub fn rows(&self) -> impl Iterator<Item = (&'static str, u64)> + use<> {
        self.function.rows().chain(self.total.rows())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each kind of descriptor has counters of its own, for descriptors and bytes.
    #[test]
    fn each_kind_is_counted() {
        let mut counters = QueuePairCounters::default();
        let kinds = [Operation::Send, Operation::Put, Operation::Get, Operation::CompareSwap];
        for (number, kind) in (1..).zip(kinds) {
            for _ in 0..number {
                counters.count_success(kind, 10 * number);
            }
        }
        let expected = QueuePairCounters {
            messages_sent: 1,
            bytes_sent: 10,
            puts: 2,
            put_bytes: 40,
            gets: 3,
            get_bytes: 90,
            atomics: 4,
            ..QueuePairCounters::default()
        };
        assert_eq!(counters, expected);
        let mut twice = counters;
        twice.add(&counters);
        let doubled: Vec<_> = expected.rows().map(|(name, value)| (name, 2 * value)).collect();
        assert_eq!(twice.rows().collect::<Vec<_>>(), doubled);
    }

    /// A snapshot names each counter once: those of the function, and the sums.
    #[test]
    fn snapshots_name_each_counter_once() {
        let function = FunctionCounters { links_lost: 3, ..FunctionCounters::default() };
        let total = QueuePairCounters { puts: 5, ..QueuePairCounters::default() };
        let rows: Vec<_> = Counters { function, total, ..Counters::default() }.rows().collect();
        let names: std::collections::BTreeSet<&str> = rows.iter().map(|(name, _)| *name).collect();
        assert_eq!(names.len(), rows.len(), "{rows:?}");
        assert!(rows.contains(&("links_lost", 3)) && rows.contains(&("puts", 5)), "{rows:?}");
        assert_eq!(rows.iter().map(|(_, value)| value).sum::<u64>(), 8);
    }
}
