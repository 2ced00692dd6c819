//! Shared-memory rings: the only place that names atomics.
//!
//! | module | what |
//! |---|---|
//! | [`lane`] | packets from one function to one other, in order: runs of lines in the receiver's pool or the pair's memory |
//! | [`doorbell`] | how an idle sender gets the receiver's attention, and wakes it |
//! | [`board`] | what a function publishes to its peers: gates of queue pairs, stamps of regions |
//! | [`segment`] | shared memory as atomic words |
//! | [`memory`] | bytes that others may change: owned ([`memory::Memory`]) and seen ([`memory::View`]) |
//! | [`piece`] | bytes that are handed over and given back ([`piece::Piece`]) |
//! | [`sync`] | atomics and fences, replaceable by the model checker |
//! | [`canary`] | planted faults for the tests of the checkers |

pub mod board;
pub mod canary;
pub mod doorbell;
pub mod lane;
pub mod memory;
pub mod piece;
pub mod segment;
pub mod steps;
pub mod sync;
