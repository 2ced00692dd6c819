//! A deterministic discrete-event model of NICs, switches and networks.
//!
//! Read from the top down:
//!
//! - [`chpp`]: the network interface of the cHPP paper with its host, controller and experiments;
//! - [`cycle`]: hardware blocks, one call a cycle, as the gates under `hardware/` have them;
//! - [`damq_pd`]: the descriptor interface of the DAMQ-PD paper with its host and experiments;
//! - [`engine`]: the event core, how a hardware block is written, connected and run;
//! - [`experiment`]: an experiment of a paper, and its report;
//! - [`form`]: parameters as TOML, and their errors;
//! - [`goal`]: schedules of message-passing programs;
//! - [`hpcl`]: the cluster of the HPCL/Ethernet paper: gigabit NICs, a switch, Linux with TCP/IP,
//!   and HPCL beside it;
//! - [`load`]: a load for a model, read from text and run;
//! - [`markup`]: escapes text for drawings and pages;
//! - [`myvia`]: MyVIA, Berkeley VIA, GM and M-VIA, with their NICs, hosts and networks;
//! - [`network`]: switches and networks of them;
//! - [`perturbed`]: what must follow when a parameter changes;
//! - [`published`]: what a paper publishes of an experiment, as data;
//! - [`sensitivity`]: which parameters have an effect on a run;
//! - [`smp`]: the direct link of the SMP paper, and the units that use it;
//! - [`stats`]: what a run measures, and how far to trust it;
//! - [`system`]: the list of modelled systems;
//! - [`trial`]: a system with any parameters under a load, for sweeps;
//! - [`units`]: times, frequencies, sizes and rates, in code and in TOML;
//! - [`vcd`]: waveforms as value change dumps.
//!
//! Time is in whole picoseconds, and no float decides an order. So one seed gives one trace hash on
//! every machine and build.

#![forbid(unsafe_code)]

pub mod chpp;
pub mod cycle;
pub mod damq_pd;
pub mod engine;
pub mod experiment;
pub mod form;
pub mod goal;
pub mod hpcl;
#[cfg(test)]
#[path = "../tests/model/limit.rs"]
mod limit;
pub mod load;
pub mod markup;
pub mod myvia;
pub mod network;
pub mod perturbed;
pub mod published;
pub mod sensitivity;
pub mod smp;
pub mod stats;
pub mod system;
pub mod trial;
pub mod units;
pub mod vcd;
