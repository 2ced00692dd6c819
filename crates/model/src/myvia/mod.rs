//! MyVIA on Myrinet, and the systems that its paper compares with it (rows M-01 to M-31, B-14 to
//! B-18; docs/model-myvia.md).
//!
//! ```text
//!   machine     everything in time: hosts, NICs, network; the interface for programs
//!   host        a host's processor: user agent, kernel agent, interrupts
//!   agent       the NIC agent: a state machine over resources
//!   pipeline    its steps and stages               ring        work queues on the NIC, overflow
//!   buffers     data buffers of any length         descriptor  16 B instead of 64
//!   memory      registered memory, translation     kmem        contiguous physical memory
//!   bus         PCI, in bursts                     network     Myrinet: wormhole, source routes
//!   journal     uses of units                      programs    ping-pong, window, traffic
//! ```
//!
//! Berkeley VIA, GM and M-VIA are settings of the same parts ([`config::System`]). The model moves
//! no data: it counts transfers, and a number identifies each message. [`experiments`] are those of
//! the paper.

mod agent;
pub mod buffers;
pub mod bus;
pub mod config;
pub mod descriptor;
pub mod experiments;
mod host;
pub mod journal;
pub mod kmem;
pub mod loads;
mod machine;
pub mod memory;
pub mod network;
pub mod pipeline;
pub mod programs;
pub mod ring;

pub use config::{ConfigError, Setup};
pub use machine::{Completion, Hardware, HostApi, Machine, PostError, Program, Status};
pub use pipeline::Side;
