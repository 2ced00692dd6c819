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
}
