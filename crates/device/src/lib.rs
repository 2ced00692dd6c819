//! The vocabulary that the API and every device share, and the [`Transport`] trait that a device implements.
//!
//! ```text
//! program -> bellwire::Function (API) -> engine (queue pairs, matching, rendezvous, put/get: the same for all devices)
//!                                          |  Transport: packets to a peer function, reliable and in order;
//!                                          v             memory that can be reached directly; sleep and wake
//!                                        shm | ethernet | virtual
//! ```
//!
//! A device moves packets and knows nothing of queue pairs beyond their number; the engine knows queue pairs and nothing of
//! how packets travel. So a new device is one implementation of [`Transport`], and gets every operation and the whole
//! conformance suite.
#![forbid(unsafe_code)]

mod address;
mod buffer;
mod completion;
mod error;
mod packet;
mod random;
mod region;
mod station;
mod transport;

pub use address::{Address, FunctionAddress};
pub use buffer::{Buffer, RegionSlice};
pub use completion::{Completion, Operation, QueuePair, Status};
pub use error::{Error, Result};
pub use packet::{Kind, PACKET_HEADER_BYTES, PacketFlags, PacketHeader};
pub use random::random;
pub use region::{MemoryRegion, RemoteAt, RemoteKey, RemoteSlice, Rights};
pub use station::{Station, VirtualTime};
pub use transport::{Direct, Gate, LinkId, Refusal, Sink, Transport, TransportLimits, Verdict};
