//! Whole networks of functions that run the reliable protocol, under every fault that a network and its programs can have, in
//! virtual time, from one seed.
//!
//! [`Scenario::new`] makes a world of a seed: functions, links, settings, kinds of faults. [`world::run`] lets it run: frames are
//! lost, repeated, overtaken, damaged and come back from the past; functions stall, are cut off and restarted; programs refuse,
//! close and ask again; and in many worlds there is an [`adversary`]. The [`oracle`] knows every packet that was queued and compares every byte that is taken: exactly once, in
//! order per link and channel, unaltered, nothing from an old life. When the faults stop everything must finish within
//! [`world::CALM_NS`], and the books must balance. The same seed gives the same [`Outcome`], hash included, in every build.
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
pub mod world;

pub use scenario::Scenario;
pub use world::{Failure, Outcome};
