//! Simulates whole networks of functions that run the reliable protocol, under all faults of
//! networks and programs. Time is virtual, and everything follows from one seed.
//!
//! [`Scenario::new`] derives a world from a seed: functions, links, settings, kinds of faults.
//! [`world::run`] runs it:
//!
//! - frames are lost, repeated, reordered, damaged and replayed
//! - functions stall, are cut off and restarted
//! - programs refuse packets, close links and ask again
//! - many worlds have an [`adversary`]
//!
//! The [`oracle`] knows every packet that was queued and compares every byte that is taken. A
//! packet must come exactly once, in order per link and channel, unaltered, and never from an old
//! life. When the faults stop everything must finish within [`world::CALM_NS`], and the counters
//! must balance. The same seed gives the same [`Outcome`], hash included, in every build.
#![forbid(unsafe_code)]

pub mod adversary;
pub mod campaign;
pub mod chance;
pub mod device;
pub mod fuzz;
pub mod ledger;
pub mod network;
pub mod oracle;
pub mod program;
pub mod race;
pub mod scenario;
mod sealing;
mod seals;
pub mod world;

pub use scenario::Scenario;
pub use world::{Failure, Outcome};
