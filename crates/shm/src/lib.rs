//! The shared-memory device: packets between processes of one host, without privileges and without
//! names that can leak.
//!
//! | module | what |
//! |---|---|
//! | [`name`] | `shm:JOB`, and the abstract sockets by which processes find each other |
//! | `device` | a node of a job |
//! | `holder` | which user holds a name that is taken |
//! | `transport` | one open function; the send path |
//! | `service` | the receive path: lanes in turn by weight, credits on demand, parking |
//! | `sleep` | sleeping and being woken |
//! | `check` | the rare check of control sockets, deaths and deadlines |
//! | `connect`, `control`, `socket` | how links are set up |
//! | `stranger` | connections that have not yet said who they are |
//! | `link` | what two functions share |
//! | `region`, `key`, `attach` | put, get and atomics on peers' memory, without their help |
//! | `mapping`, `barrier` | sealed memory, and fences that cost the sender nothing |

mod attach;
mod barrier;
mod check;
mod connect;
mod control;
mod device;
#[doc(hidden)]
pub mod fuzz;
mod holder;
mod key;
mod link;
mod mapping;
pub mod name;
mod region;
mod service;
mod sleep;
mod socket;
#[cfg(test)]
mod stopped_tests;
mod stranger;
#[cfg(feature = "steps")]
#[doc(hidden)]
pub mod testing;
mod transport;

pub use device::{NODES, ShmDevice};
pub use holder::Holders;
pub use transport::{LINKS, ShmCounters, ShmTransport};
