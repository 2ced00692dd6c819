//! The shared-memory device: packets between processes of one host, without privileges and without
//! names that can leak.
//!
//! | module | what |
//! |---|---|
//! | [`name`] | `shm:JOB`, and the abstract sockets by which processes find each other |
//! | `device` | a node of a job |
//! | `holder` | which user holds a name that is taken |
//! | `transport` | one open function: composes the owners below |
//! | `local` | what the function has from its opening to its end |
//! | `connect`, `pending_peers` | how links are set up; silent connections |
//! | `links`, `link` | all links; the state and the control socket of one |
//! | `outbound`, `remote_regions` | the way to a peer: packets; direct access to its regions |
//! | `lanes`, `inbound` | the receive path: lanes in turn by weight, credits on demand, parking |
//! | `regions` | regions of ours that peers may reach |
//! | `schedule`, `epoll` | when to check, and sleep; descriptors that wake a sleeper |
//! | `watch` | the thread that spares functions which poll the look at these |
//! | `layout`, `control` | what two functions share in memory; their control messages |
//! | `bell`, `socket` | the doorbell of a peer; control sockets |
//! | `key`, `attach` | stamps of keys; copies between processes by the kernel |
//! | `pages` | memory of the program, made mappable |
//! | `mapping`, `barrier` | sealed memory, and fences that cost the sender nothing |

mod attach;
mod barrier;
mod bell;
mod connect;
mod control;
mod device;
mod epoll;
#[doc(hidden)]
pub mod fuzz;
mod holder;
mod inbound;
mod key;
mod lanes;
#[cfg(test)]
mod lanes_tests;
mod layout;
mod link;
mod links;
mod local;
mod mapping;
pub mod name;
mod outbound;
#[doc(hidden)] // for tests
pub mod pages;
mod pending_peers;
mod regions;
mod remote_regions;
mod schedule;
mod socket;
#[cfg(test)]
mod stopped_tests;
#[cfg(test)]
mod stranger_tests;
#[cfg(any(test, feature = "steps"))]
#[doc(hidden)]
pub mod testing;
mod transport;
mod watch;

pub use device::{NODES, ShmDevice};
pub use holder::Holders;
pub use layout::LINKS;
pub use transport::ShmTransport;
