//! The device `model:chpp`: programs over a simulated network interface, in virtual time (docs/model-chpp.md, *As a device*).
//!
//! All functions of one name are functions of one machine (`bellwire_model::chpp`), inside one process. Each packet of the engine
//! becomes a descriptor in a modelled host's memory, crosses as network packets, and is found by its event.
//!
//! | module | what |
//! |---|---|
//! | `device` | one opening: a node on one of the modelled hosts |
//! | `transport` | one open function |
//! | `world` | the machine and everybody who uses it; taking turns, sleeping, letting time run |
//! | `turns` | whose turn it is: each thread has a clock |
//! | `thread` | whether a thread that does not call is asleep |
//! | `keeper` | lets time run for those who wait outside of the device |
//! | `seat` | one function: its gates, its links, its news |
//! | `wire` | a link between two functions |
//! | `nic` | packets as operations of the machine, and back |

#![forbid(unsafe_code)]

mod device;
mod keeper;
mod nic;
mod seat;
mod standstill;
mod thread;
mod transport;
mod turns;
mod wire;
mod world;

pub use device::{VirtualDevice, VirtualOptions};
pub use transport::VirtualTransport;
