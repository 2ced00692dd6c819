//! Shared-memory rings: the only place that names atomics.
//!
//! | module | what |
//! |---|---|
//! | [`lane`] | packets from one function to another, in order |
//! | [`doorbell`] | how an idle sender notifies the receiver, and wakes it |
//! | [`board`] | a function's public state: gates of queue pairs, stamps of regions |
//! | [`segment`] | shared memory as atomic words |
//! | [`mapping`] | a descriptor mapped as memory |
//! | [`memory`] | bytes that others may change: [`memory::Memory`] owns, [`memory::View`] copies |
//! | [`piece`] | buffers that are posted and returned ([`piece::Piece`]) |
//! | [`signals`] | code that no handler of the program interrupts |
//! | [`sync`] | atomics and fences, replaceable by the model checker |
//! | [`canary`] | planted faults for the tests of the checkers |

pub mod board;
pub mod canary;
pub mod doorbell;
pub mod lane;
#[cfg(not(loom))]
pub mod mapping;
pub mod memory;
pub mod piece;
pub mod segment;
pub mod signals;
pub mod steps;
pub mod sync;
