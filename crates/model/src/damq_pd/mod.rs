//! The descriptor interface of the DAMQ-PD paper: many virtual ports submit descriptors through one
//! shared buffer, by PIO while there are credits, else by DMA.
//!
//! One file for each block. On the interface:
//!
//! | file | block | rows |
//! |---|---|---|
//! | `word` | a word of 256 bits | D-29 |
//! | `free_list` | free addresses | D-03, B-09 |
//! | `order` | PIO and DMA of one port in order | D-19 |
//! | `arbiter` | round-robin over ports whose descriptor is whole | D-07, D-08 |
//! | `buffer` | words, lists and these, cycle by cycle | D-01, D-02, D-04 to D-06, B-10 |
//! | `credits` | words that each port may write | D-13, D-14, D-15 |
//! | `prefetch` | reads descriptors from host queues in turn | D-09, D-11 |
//!
//! On the host, and between:
//!
//! | file | block | rows |
//! |---|---|---|
//! | `process` | a process with its library | D-10, D-16, D-17 |
//! | `write_combining` | stores leave as bursts | D-12 |
//! | `host_queue` | a port's queue in host memory | D-20 |
//! | `bus` | wires each way | D-29, D-31 |
//! | `machine` | all of these | |
//! | `journal` | the steps of Figs. 1 and 2 | D-10, D-11 |
//!
//! docs/model-damq-pd.md says where each parameter comes from, and what was decided where the paper
//! is silent.

mod arbiter;
mod buffer;
mod bus;
pub mod config;
mod credits;
pub mod experiments;
mod free_list;
mod host_queue;
mod journal;
mod machine;
#[cfg(test)]
mod oracle_tests;
mod order;
mod prefetch;
mod process;
mod word;
mod write_combining;

pub use arbiter::OutputArbiter;
pub use buffer::{DescriptorBuffer, List, Run};
pub use bus::{Bus, Passage, Traffic, Wires};
pub use config::{Config, ConfigError, LONGEST, Organisation, Policy, Submission};
pub use credits::CreditManager;
pub use free_list::FreeList;
pub use host_queue::HostQueue;
pub use journal::{Entry, Journal, Step};
pub use machine::{Hardware, Machine, NicEvent, PortCounts};
pub use order::Order;
pub use prefetch::Prefetcher;
pub use process::{Load, Message, Process, State};
pub use word::{Read, Way, Word, Write};
pub use write_combining::bursts;

/// One place for every value of an 8-bit port number: no index is out of bounds, so none needs a
/// check.
const EVERY_PORT: usize = 1 << 8;
