//! Protocol state machines without I/O.
//!
//! Nothing here knows a clock, a socket, a thread, an atomic or a random number. The crate is
//! `no_std`: a caller hands in what happened and asks what to do. So the same code runs in the
//! devices, in the model of a NIC and in the simulator that hunts bugs. Every size is fixed at
//! construction, and nothing allocates later.
//!
//! The pieces, in the order in which a message meets them:
//!
//! 1. [`Outstanding`]: the sender notes the operations that it has started. This bounds what is in
//!    flight and exposes forged answers.
//! 2. [`CreditManager`]: a sender needs credit for a part of the shared receive buffer before it
//!    may write there. An [`ExtentPool`] says which parts are free, [`Rations`] who gets how much.
//!    A sender without credit uses its own queue instead.
//! 3. [`Drr`]: the receiver takes turns among the queues that have something for it.
//! 4. [`Damq`]: a message without a posted receive waits in a memory that all queues share.
//!    [`GatePolicy`] tells the sender of a queue that grows too long to stop.
//!
//! [`reliable`] is a protocol of its own, for networks that lose frames: the devices `eth` and
//! `udp` run it below all this. It allocates a peer's buffers at first need, up to a fixed size,
//! because most of its peers are idle.
//!
//! [`link_layer`] is what a point-to-point link needs instead: replay, NAK and credits, as hardware
//! does it.
//!
//! [`canary`] holds planted faults, by which the tests of these pieces are tested.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod acknowledge;
pub mod canary;
mod counters;
mod credits;
mod damq;
pub mod discovery;
mod drr;
mod extents;
mod gate;
pub mod link_layer;
mod outstanding;
mod rations;
pub mod reliable;
mod secret;

pub use credits::{CreditManager, NotHeld};
pub use damq::{Damq, PushError};
pub use drr::Drr;
pub use extents::{Extent, ExtentPool, GiveError};
pub use gate::{GatePolicy, Signal};
pub use outstanding::{OPERATIONS_PER_FUNCTION, OpId, Outstanding, Stale, WindowFull};
pub use rations::{GrantPolicy, Rations};
pub use secret::Secret;
