//! A connection that was accepted and has not yet said who it is.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// How long a stranger may take to introduce itself.
pub const INTRODUCTION_TIME: Duration = Duration::from_secs(1);
/// Most strangers at once; more wait in the kernel's queue.
pub const STRANGERS: usize = 64;

/// A connection without a name.
pub struct Stranger {
    pub socket: OwnedFd,
    pub since: Instant,
}
