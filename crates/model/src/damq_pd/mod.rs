//! The descriptor interface of the DAMQ-PD paper: many virtual ports submit descriptors through one
//! shared buffer, by PIO while there are credits, else by DMA.
//!
//! One file for each block. docs/model-damq-pd.md lists them with their rows. It also says where
//! each parameter comes from, and what was decided where the paper is silent.

mod arbiter;
mod buffer;
mod bus;
pub mod config;
mod credits;
pub mod experiments;
mod free_list;
mod host_queue;
mod journal;
pub mod loads;
mod machine;
#[cfg(test)]
mod oracle_tests;
mod order;
pub mod ports;
mod prefetch;
mod process;
mod word;

pub use arbiter::OutputArbiter;
pub use buffer::{DescriptorBuffer, List, Run};
pub use bus::{Bus, Passage, Traffic, Wires};
pub use config::{Config, ConfigError, LONGEST, Organisation, POLICIES, Submission};
pub use credits::CreditManager;
pub use free_list::FreeList;
pub use host_queue::HostQueue;
pub use journal::{Entry, Journal, Step};
pub use machine::{Hardware, Machine, NicEvent, PortCounts};
pub use order::Order;
pub use prefetch::Prefetcher;
pub use process::{Load, Message, Process, State};
pub use word::{PortWord, Way, Word};

/// One place for every value of an 8-bit port number: no index is out of bounds, so none needs a
/// check.
const EVERY_PORT: usize = 1 << 8;
