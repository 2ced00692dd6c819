//! The vocabulary that the API and every device share, and the [`Transport`] trait of devices.
//!
//! ```text
//! program -> bellwire::Function (API) -> engine (queue pairs, matching, rendezvous, put/get)
//!                                          |  the same for all devices
//!                                          |
//!                                          |  Transport: packets to a peer function, reliable and
//!                                          |  in order; memory that can be reached directly;
//!                                          v  sleep and wake
//!                                        shm | ethernet | virtual
//! ```
//!
//! A device moves packets. Of queue pairs it knows only the numbers. The engine knows queue pairs,
//! but not how packets travel. So a new device is one implementation of [`Transport`], and gets
//! every operation and the whole conformance suite. [`NodeInfo`] and [`DeviceKind`] give it a
//! description, a name and settings.
#![forbid(unsafe_code)]

mod address;
mod atomic;
mod buffer;
mod completion;
mod error;
mod key_source;
mod kind;
mod node_info;
mod packet;
mod random;
mod region;
mod settings;
mod transport;
mod window;

pub use address::{Address, FunctionAddress};
pub use atomic::AtomicOperation;
pub use bellwire_ring::memory::{Memory, View};
pub use buffer::{Buffer, RegionSlice};
pub use completion::{Completion, Operation, QueuePair, Status};
pub use error::{Error, Result};
pub use key_source::{KeyCallback, KeySource};
pub use kind::{DEFAULT_WEIGHT, DeviceKind, TransportVisitor, refuse_weight};
pub use node_info::{NodeInfo, VirtualTime};
pub use packet::{Kind, PACKET_HEADER_BYTES, PacketFlags, PacketHeader};
pub use random::{fill_random, random};
pub use region::{MemoryRegion, RemoteAt, RemoteKey, RemoteSlice, Rights};
pub use settings::{AccessMode, KEY_VARIABLE, Settings, names_key};
pub use transport::{
    Direct, Gate, LinkId, Receipt, SendError, Sink, Transport, TransportLimits, Verdict,
    sleep_until_readable,
};
pub use window::Window;
