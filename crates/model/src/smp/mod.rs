//! The direct link between processors of the SMP paper, layer by layer, and the units that use it
//! (rows S-01 to S-32; docs/model-smp.md).
//!
//! ```text
//!   network     packets of units become TLPs        training   from reset to a width and a speed
//!   transport   channels, credits, receive buffers  lanes      striping, wire time, bit errors
//!   link        the whole: both ends, in time       config     parameters
//!   bench       two nodes, stimuli and a checker
//!
//!   lmu         selects the link to a node          lbt        transfers of large blocks
//!   cc          coherence of caches                 system     2 to 4 nodes with all of it
//!   guest       carries packets of other models
//! ```
//!
//! [`experiments`] are those of the paper. Sequence numbers, replay and credits of the link layer
//! are in `bellwire_protocol::link_layer`, without time or I/O. Byte layouts are in
//! `bellwire_wire::link`.

pub mod bench;
pub mod cc;
pub mod config;
pub mod experiments;
pub mod guest;
pub mod lanes;
pub mod lbt;
pub mod link;
pub mod lmu;
pub mod loads;
pub mod network;
pub mod system;
pub mod training;
pub mod transport;

pub use config::{Config, ConfigError};
pub use link::{Link, LinkEvent};
