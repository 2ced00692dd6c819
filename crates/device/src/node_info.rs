//! Facts that every open device reports about itself.

use crate::Error;
use std::time::Duration;

/// One opening of a device: a node with functions.
pub trait NodeInfo: Send + Sync {
    /// Our node number.
    fn node(&self) -> u32;

    /// One line: what carries the messages, and how.
    fn describe(&self) -> String;

    /// The node of `host`, a host name or an address. Its `function` must answer within `patience`.
    ///
    /// # Errors
    /// [`Error::Unreachable`] with the attempts listed; [`Error::BadDeviceName`] on devices whose
    /// nodes have no such names.
    fn lookup(&self, host: &str, function: u8, patience: Duration) -> Result<u32, Error> {
        let _ = (function, patience);
        let why = "nodes of this kind of device have numbers only: Device::node tells its own";
        Err(Error::BadDeviceName { name: host.to_owned(), why: why.to_owned() })
    }

    /// The virtual time, on devices that simulate time.
    fn virtual_time(&self) -> Option<VirtualTime> {
        None
    }
}

/// The progress of a simulated device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VirtualTime {
    /// Picoseconds since the first node was opened.
    pub now_ps: u64,
    /// Events so far.
    pub events: u64,
    /// Packets that engines have sent so far.
    pub packets: u64,
    /// A hash of all events and their times: equal hashes mean identical runs.
    pub trace_hash: u64,
}
