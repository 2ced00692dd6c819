//! How a function is opened, and its limits.

use crate::{Error, Result};
use bellwire_device::DEFAULT_WEIGHT;

/// How to open a function.
///
/// ```no_run
/// # use bellwire::{Device, FunctionOptions, Result};
/// # fn example(device: &Device) -> Result<()> {
/// let options = FunctionOptions::default().outstanding(256).backlog_bytes(16 << 20);
/// let function = device.open_function_with(1, &options)?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct FunctionOptions {
    pub(crate) weight: u8,
    pub(crate) outstanding: usize,
    pub(crate) backlog_bytes: usize,
}

impl Default for FunctionOptions {
    fn default() -> Self {
        FunctionOptions { weight: DEFAULT_WEIGHT, outstanding: 32, backlog_bytes: 4 << 20 }
    }
}

impl FunctionOptions {
    /// A sender's share of a receiver when several functions compete for it, 1 to 255 (C-40, C-41);
    /// 16 by default. Shared memory only: `auto` applies it to peers of this host. `eth` and `udp`
    /// refuse any other value: there the kernel schedules the functions' sockets.
    pub fn weight(mut self, weight: u8) -> Self {
        self.weight = weight;
        self
    }

    /// Operations that may be in flight at peers at once, 1 to 1,024 (C-33); 32 by default. Further
    /// ones are accepted and wait in their queue pair.
    pub fn outstanding(mut self, operations: usize) -> Self {
        self.outstanding = operations;
        self
    }

    /// Memory for messages that arrive before a receive is posted, shared by all queue pairs
    /// (D-01), in bytes; 4 MiB by default. At least four packets.
    pub fn backlog_bytes(mut self, bytes: usize) -> Self {
        self.backlog_bytes = bytes;
        self
    }

    pub(crate) fn check(&self) -> Result<()> {
        let range = |parameter, value, range| Err(Error::OutOfRange { parameter, value, range });
        if self.weight == 0 {
            return range("weight", 0, "1 to 255");
        }
        if !(1..=1024).contains(&self.outstanding) {
            return range("outstanding", self.outstanding as u64, "1 to 1,024");
        }
        if self.backlog_bytes > 1 << 31 {
            return range("backlog_bytes", self.backlog_bytes as u64, "at most 2 GiB");
        }
        Ok(())
    }
}

/// Every limit of a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Longest message that travels eagerly, in bytes; longer ones go by rendezvous.
    pub eager_bytes: usize,
    /// Longest message, put or get, in bytes.
    pub message_bytes: usize,
    /// Longest payload of one packet, in bytes.
    pub packet_bytes: usize,
    /// Queue pairs and channels.
    pub queue_pairs: usize,
    /// Completion queues.
    pub completion_queues: usize,
    /// Shared receive queues.
    pub shared_receive_queues: usize,
    /// Numbers listened on.
    pub listeners: usize,
    /// Registered memory regions.
    pub regions: usize,
    /// Peer functions with a link at once.
    pub links: usize,
    /// Entries in one list of a chain descriptor.
    pub chain_entries: usize,
    /// Private data of a connection message, in bytes.
    pub private_data_bytes: usize,
    /// Deepest send, receive or shared receive queue. A completion queue can be 16 times as deep.
    pub queue_depth: usize,
    /// Operations in flight at peers (C-33).
    pub outstanding: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The limits themselves are allowed.
    #[test]
    fn options_have_limits() {
        let of = FunctionOptions::default;
        let good = [of(), of().weight(1), of().outstanding(1), of().outstanding(1024)];
        assert!(good.iter().all(|options| options.check().is_ok()));
        assert!(of().backlog_bytes(1 << 31).check().is_ok());
        let bad = [of().weight(0), of().outstanding(0), of().outstanding(1025)];
        assert!(bad.iter().all(|options| options.check().is_err()));
        assert!(of().backlog_bytes((1 << 31) + 1).check().is_err());
    }
}
