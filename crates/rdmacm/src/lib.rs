//! Connections of RDMA programs by address and port: what `rdma_cm(7)` offers, without a kernel
//! module.
//!
//! # How two programs find each other
//! A program that binds a port holds the UDP port of that number. A program that connects asks
//! there by one datagram, and learns a TCP port. The conversation takes place there: request,
//! reply, ready. The TCP connection lasts as long as the connection of the queue pairs. So the
//! kernel tells either side that the other one was killed.
//!
//! The look-up leaves TCP ports to the program, because many listen on one number by both TCP and
//! RDMA. The port spaces TCP and UDP share one space of numbers.
//!
//! # Whom to trust
//! Nobody: the messages carry no secret, as those of a card do not. A stranger can connect and be
//! refused. Each field is checked, the lengths have limits, a connection without a request ends
//! after [`REQUEST_LIMIT`], and a listener keeps at most [`STRANGERS`] of them.
//!
//! | file | what |
//! |---|---|
//! | `message.rs` | the formats |
//! | `endpoint.rs` | one end: what a frame, an error or the time does to it |
//! | `groups.rs` | the multicast groups of one identifier |
//! | `state.rs` | all ends, and what they wait for |
//! | `manager.rs` | the thread that waits, and the calls |
#![deny(unsafe_code)]

mod endpoint;
mod groups;
mod manager;
mod message;
#[allow(unsafe_code)]
mod state;

pub use endpoint::Event;
pub use groups::{GROUPS, Groups};
pub use manager::{Endpoint, Manager, Sink, source_for};
pub use message::{Offer, PRIVATE_BYTES};

use std::time::Duration;

/// Reads bytes as a look-up and as frames, for fuzzers. What is read comes back from its bytes.
#[doc(hidden)]
pub fn parse(bytes: &[u8]) {
    use message::{Frame, LookUp};
    if let Some(look_up) = LookUp::parse(bytes) {
        assert_eq!(look_up.emit(), bytes);
    }
    let mut rest = bytes;
    while let Ok(Some((frame, length))) = Frame::parse(rest) {
        let mut emitted = Vec::new();
        frame.emit(&mut emitted);
        assert_eq!(emitted, rest[..length]);
        rest = &rest[length..];
    }
}

/// How long a look-up is repeated without an answer.
pub const LOOK_UP_LIMIT: Duration = Duration::from_secs(5);
/// How long a look-up is repeated while nobody listens.
pub const NOBODY_LIMIT: Duration = Duration::from_secs(2);
/// How long a connection may be without a request.
pub const REQUEST_LIMIT: Duration = Duration::from_secs(5);
/// Connections without a request that one listener keeps; the oldest ends when another comes.
pub const STRANGERS: usize = 64;

/// How long a look-up is repeated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Patience {
    /// While nobody answers.
    pub silent: Duration,
    /// While the answer is that nobody listens.
    pub nobody: Duration,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience { silent: LOOK_UP_LIMIT, nobody: NOBODY_LIMIT }
    }
}

/// Reasons of a rejection (InfiniBand specification, 12.6.7.2).
pub mod reason {
    /// Nobody listens at the port.
    pub const NO_SERVICE: u32 = 8;
    /// The program did not want it, or ended.
    pub const CONSUMER: u32 = 28;
}
