//! The cluster of the HPCL/Ethernet paper. Nodes with gigabit NICs surround a switch; Linux carries
//! frames with TCP/IP, and HPCL stands beside it (rows H-01 to H-30, B-22 to B-27;
//! docs/model-hpcl.md).
//!
//! ```text
//!   process   the programs: pingpong, burst, all to all
//!   library   hpclSend, hpclReceive, reaping; sockets        tcp      segments, windows, ACKs
//!   device    the character device, channels, fixed rings    cpu      steps, interrupts
//!   driver    dispatcher, handlers, transmit path            node     scheduler, timers
//!   nic       descriptor rings, DMA engines, interrupts      pci      the bus
//!   frame     frames on the wire                             switch   store and forward
//!   machine   all of it, in time                             audit    laws of the counters
//! ```
//!
//! The protocol is the state machine of the devices `eth` and `udp` in HPCL's setting,
//! `bellwire_protocol::reliable::Config::hpcl`. [`experiments`] are those of the paper.

mod audit;
pub mod config;
pub mod counters;
pub mod cpu;
pub mod device;
mod driver;
pub mod experiments;
pub mod frame;
mod library;
pub mod loads;
pub mod machine;
pub mod nic;
pub mod node;
pub mod pci;
pub mod process;
pub mod switch;
pub mod tcp;

pub use config::{Config, ConfigError};
pub use machine::Machine;
