//! What the leader tells the follower, as JSON in messages on a queue pair of its own: rare, and easy to read in a trace.

use bellwire::{RemoteKey, Wait};
use serde::{Deserialize, Serialize};

/// What is measured.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, clap::ValueEnum, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Op {
    /// Two-sided messages.
    Send,
    /// One-sided writes.
    Put,
    /// One-sided reads.
    Get,
}

impl Op {
    /// Its word on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Op::Send => "send",
            Op::Put => "put",
            Op::Get => "get",
        }
    }
}

/// How both sides wait: [`Wait`], as it is written on the command line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WaitMode {
    /// Poll all the time.
    Spin,
    /// Poll for 50 us, then sleep.
    Adaptive,
    /// Sleep in the kernel.
    Block,
}

impl WaitMode {
    /// Its word on the command line.
    pub fn word(self) -> &'static str {
        match self {
            WaitMode::Spin => "spin",
            WaitMode::Adaptive => "adaptive",
            WaitMode::Block => "block",
        }
    }
}

impl From<WaitMode> for Wait {
    fn from(mode: WaitMode) -> Wait {
        match mode {
            WaitMode::Spin => Wait::Spin,
            WaitMode::Adaptive => Wait::Adaptive,
            WaitMode::Block => Wait::Block,
        }
    }
}

/// From the leader.
///
/// Every order is answered by [`Answer::Ready`], after which the leader begins, and by [`Answer::Done`] at its end. In between
/// the follower does its part; where it has none (put and get streams), it attends until [`Order::Rest`] comes.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Order {
    /// The first order of a pair: how to wait, where to run, and how much memory to have. Not followed by `Done`.
    Prepare {
        /// Pairs in all; the follower of the first one starts the others.
        pairs: u8,
        /// How to wait while something is measured.
        wait: WaitMode,
        /// Where to run.
        cpu: Option<usize>,
        /// Bytes of the memory that the leader reaches by put and get.
        arena_bytes: usize,
        /// The leader's own memory of that kind.
        key: Key,
    },
    /// `count` transfers whose every byte is compared.
    Verify {
        /// What.
        op: Op,
        /// Length of each.
        bytes: usize,
        /// How many.
        count: u64,
    },
    /// `count` round trips.
    PingPong {
        /// What.
        op: Op,
        /// Length of each message.
        bytes: usize,
        /// How many.
        count: u64,
    },
    /// `count` transfers one after the other, several under way at once.
    Stream {
        /// What.
        op: Op,
        /// Length of each.
        bytes: usize,
        /// How many.
        count: u64,
    },
    /// The leader is done with something that it did alone.
    Rest,
    /// The end; not answered.
    Bye,
}

/// From the follower.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Answer {
    /// Begin.
    Ready {
        /// The follower's memory, in answer to [`Order::Prepare`].
        key: Option<Key>,
    },
    /// All arrived, and what was looked at was right.
    Done,
    /// Something went wrong; nothing more will come.
    Failed {
        /// In words.
        why: String,
    },
}

/// A [`RemoteKey`] inside a message.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Key(Vec<u8>);

impl From<RemoteKey> for Key {
    fn from(key: RemoteKey) -> Key {
        Key(key.to_bytes().to_vec())
    }
}

impl Key {
    /// The key; an error if these are not the bytes of one.
    pub fn open(&self) -> anyhow::Result<RemoteKey> {
        RemoteKey::from_bytes(&self.0)
            .ok_or_else(|| anyhow::anyhow!("the other side sent something that is no key"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The longest order fits into a control message, and comes out as it went in.
    #[test]
    fn orders_survive_a_message() {
        let key = RemoteKey { node: 7, function: 3, index: 12, key: u64::MAX, length: 1 << 40 };
        let order = Order::Prepare {
            pairs: 64,
            wait: WaitMode::Adaptive,
            cpu: Some(1023),
            arena_bytes: usize::MAX,
            key: key.into(),
        };
        let text = serde_json::to_vec(&order).expect("plain data");
        assert!(text.len() < crate::perf::end::CONTROL_BYTES, "{} bytes", text.len());
        assert_eq!(serde_json::from_slice::<Order>(&text).expect("the same"), order);
        assert_eq!(Key::from(key).open().expect("a key"), key);
        assert!(Key(vec![0; 24]).open().is_err());
    }
}
