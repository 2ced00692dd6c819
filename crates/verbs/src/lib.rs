//! Bellwire: a user-level interconnect. The public API.
//!
//! A program opens a [`Device`] by name, opens one of its [`Function`]s, and posts descriptors to
//! queue pairs. The kernel is not on the path. Posting *moves* a buffer into the queue and the
//! [`Completion`] returns it, so no program needs `unsafe`.
//!
//! ```no_run
//! use bellwire::{Device, QueuePairOptions, Message, Wait};
//! use std::time::Duration;
//!
//! # fn main() -> bellwire::Result<()> {
//! let device = Device::open("shm:job")?;
//! let mut function = device.open_function(0)?;
//! let completions = function.create_completion_queue(64)?;
//! let queue_pair = function.create_queue_pair(&QueuePairOptions::new(completions))?;
//! function.post_receive(queue_pair, vec![0; 64], 1)?;
//! # let peer = "1.0.1".parse().unwrap();
//! function.post_send(queue_pair, Message::inline(b"hello").to(peer).context(2))?;
//! let done = function.wait(completions, Wait::Adaptive, Duration::from_secs(1))?;
//! # Ok(()) }
//! ```
//!
//! # The walk of a message
//! [`Function::post_send`] -> `engine/send.rs` -> the device's `Transport::send` ... the peer's
//! device polls -> `engine/receive.rs` -> its completion queue -> [`Function::poll`].
//!
//! # Many small messages
//! Post messages that are ready together by one call, [`Function::post_sends`]: they share packets.
//! A program that learns from a message's first bytes where the rest belongs can copy it there
//! itself ([`Function::poll_with`]). It posts no receive for such a message.
//!
//! # Order
//! - Descriptors of one queue pair start in the order of posting. Messages between two queue pairs
//!   arrive, and complete at the receiver, in the order of posting, for any lengths.
//! - A put's bytes are in memory before any later message of the same queue pair to the same
//!   function arrives.
//! - Completions of sends, puts and gets may overtake each other. The context identifies the
//!   descriptor.
//!
//! # Threads
//! A [`Device`] is shared freely. A [`Function`] may move between threads but only one drives it at
//! a time, so its data path needs no lock. Two threads open two functions, or share one by a
//! [`SharedFunction`].

// A refused post returns its descriptor, so its error is as large as the descriptor. Success stays
// small.
#![allow(clippy::result_large_err)]
// `Error` has drop glue: an eagerly built one would be dropped on the path without an error.
#![allow(clippy::unnecessary_lazy_evaluations)]

mod claims;
mod completion_queue;
mod connection;
mod counters;
mod descriptor;
mod device;
mod devices;
#[doc(hidden)]
pub mod engine;
mod fork;
mod function;
mod function_options;
mod queue_pair;
mod receive_queue;
mod shared;
mod shared_receive;
pub mod stat;
mod table;
mod wait;

pub use bellwire_device::{
    AccessMode, Address, Buffer, Completion, Error, FunctionAddress, KeyCallback, KeySource,
    MemoryRegion, Operation, QueuePair, RegionSlice, RemoteAt, RemoteKey, RemoteSlice, Result,
    Rights, Status, VirtualTime,
};
pub use bellwire_ring::memory::View;
pub use completion_queue::CompletionQueue;
pub use connection::{ConnectionProgress, ConnectionRequest, Listener};
pub use counters::{Counters, FunctionCounters, QueuePairCounters};
pub use descriptor::{Atomic, Get, LocalChain, Message, PartialPost, Put, Refused, RemoteChain};
pub use device::{Device, DeviceOptions};
#[doc(hidden)]
pub use devices::DeviceBackend;
pub use engine::Inbox;
#[doc(hidden)]
pub use engine::PackedMessages;
pub use function::Function;
pub use function_options::{FunctionOptions, Limits};
pub use queue_pair::{ConnectionState, QueuePairOptions, QueuePairState};
pub use shared::{Driving, SharedFunction};
pub use shared_receive::SharedReceiveQueue;
pub use wait::{ADAPTIVE_SPIN, Wait};

/// The program of README.md is one.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
