//! The leader's orders to the follower, as JSON messages on a queue pair of their own: rare, and
//! readable in a trace.

use bellwire::{RemoteKey, Wait};
use serde::{Deserialize, Serialize};

/// The measured operation.
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

/// How both sides wait: [`Wait`], with its name on the command line.
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

impl From<WaitMode> for Wait {
    fn from(mode: WaitMode) -> Wait {
        match mode {
            WaitMode::Spin => Wait::Spin,
            WaitMode::Adaptive => Wait::Adaptive,
            WaitMode::Block => Wait::Block,
        }
    }
}

/// An order from the leader.
///
/// The follower answers every order with [`Answer::Ready`], then the leader begins, and with
/// [`Answer::Done`] at the end. In between the follower does its part. In put and get streams it
/// has no part and only polls until [`Order::Rest`].
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Order {
    /// The first order of a pair: how to wait, where to run, and how much memory to allocate.
    /// `Done` does not follow.
    Prepare {
        /// Number of pairs; the follower of the first pair starts the others.
        pairs: u8,
        /// How to wait during a measurement.
        wait: WaitMode,
        /// The follower's processor.
        cpu: Option<usize>,
        /// Bytes of the memory that the leader reaches by put and get.
        arena_bytes: usize,
        /// Key of the leader's own memory for put and get.
        key: Key,
    },
    /// `count` transfers, with every byte compared.
    Verify(Transfers),
    /// `count` round trips.
    PingPong(Transfers),
    /// `count` transfers in order, with several in flight.
    Stream(Transfers),
    /// The leader has finished a stream in which the follower has no part.
    Rest,
    /// The end; not answered.
    Bye,
}

/// `count` transfers, or round trips, of `bytes` each.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Transfers {
    pub op: Op,
    pub bytes: usize,
    pub count: u64,
}

/// An answer from the follower.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Answer {
    Ready {
        /// Key of the follower's memory, in answer to [`Order::Prepare`].
        key: Option<Key>,
    },
    /// All transfers arrived, and all checks passed.
    Done,
    /// Something failed; no further answers come.
    Failed { why: String },
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
    /// The key; an error if these bytes are not a key.
    pub fn open(&self) -> anyhow::Result<RemoteKey> {
        RemoteKey::from_bytes(&self.0)
            .ok_or_else(|| anyhow::anyhow!("the other side sent something that is no key"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The longest order fits into a control message and round-trips.
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
