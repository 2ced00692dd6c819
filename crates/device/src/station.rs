//! What every kind of device tells of itself once it is open.

use crate::Error;
use std::time::Duration;

/// One opening of a device: a node, which has functions.
pub trait Station: Send + Sync {
    /// Our node number.
    fn node(&self) -> u32;

    /// One line: what carries the messages here, and how.
    fn describe(&self) -> String;

    /// The node that answers to the name of its host, or to its address, whose `function` answers within `patience`.
    ///
    /// # Errors
    /// [`Error::Unreachable`] with all that was tried; [`Error::BadDeviceName`] on devices whose nodes have no such names.
    fn lookup(&self, host: &str, function: u8, patience: Duration) -> Result<u32, Error> {
        let _ = (function, patience);
        let why = "nodes of this kind of device have numbers only: Device::node tells its own";
        Err(Error::BadDeviceName { name: host.to_owned(), why: why.to_owned() })
    }

    /// How far the time is, on devices whose time is not real.
    fn virtual_time(&self) -> Option<VirtualTime> {
        None
    }
}

/// How far a simulated device has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VirtualTime {
    /// Picoseconds since the first node was opened.
    pub now_ps: u64,
    /// Events so far.
    pub events: u64,
    /// Packets of the engine that were sent so far.
    pub packets: u64,
    /// A hash of all events and their times: two runs did the same if theirs agree.
    pub trace_hash: u64,
}
