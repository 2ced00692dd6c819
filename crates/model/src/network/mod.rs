//! Switches and networks: input-queued routers with virtual channels, credits and a choice of
//! allocators, in any topology.
//!
//! One [`Fabric`] is a set of routers that share a clock: a single crossbar (cHPP's intra-DMA
//! crossbar, C-04) as well as 4,096 controllers in a torus (C-02). A model of a NIC
//! [injects](Fabric::inject) packets and reads the [deliveries](Fabric::deliveries). [`Experiment`]
//! does this with synthetic traffic, and measures.
//!
//! - [`Topology`]: crossbar, ring, mesh, torus, hypercube, fully connected, or any graph from a
//!   file;
//! - `routing`: dimension order with datelines, up*/down*; deadlock-free on all of them;
//! - [`FabricConfig`]: every parameter; buffers, channels, switching, allocation;
//! - `fabric`, `datapath`, `allocate`: the work of a cycle;
//! - `audit`: conservation, Little's law, and the waits that explain a standstill.

mod allocate;
mod audit;
mod config;
mod datapath;
mod delay;
mod experiment;
mod fabric;
pub mod loads;
mod packets;
mod parts;
pub mod perturbed;
mod plan;
mod report;
mod routing;
mod sources;
#[cfg(test)]
mod times;
mod topology;
mod traffic;

pub use config::{
    Allocation, Class, ConfigError, FabricConfig, MOST_BEATS, MOST_CYCLES, Select, Switching,
};
pub use experiment::{Duration, Experiment};
pub use fabric::{Counters, Delivery, Fabric, Injection};
pub use packets::{Packet, PacketId};
pub(crate) use plan::line_of;
pub use plan::{EXAMPLE, PARAMETERS, Plan, PlanError, Shape};
pub(crate) use report::idle_lines;
pub use report::{IdleParameter, Limit, Report, WaitCycles};
pub(crate) use routing::{DatelineClass, Routes, Way};
pub use topology::{Leads, MOST_PORTS, Topology, TopologyError};
pub(crate) use traffic::Destinations;
pub use traffic::{Arrival, Pattern, Sizes, Traffic};
