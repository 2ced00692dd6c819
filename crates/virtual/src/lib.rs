//! The device `model:chpp`: programs over a simulated network interface, in virtual time
//! (docs/model-chpp.md, *As a device*). `bellwire-rtl` puts gates in its place.
//!
//! All functions of one name are functions of one machine (`bellwire_model::chpp`), inside one
//! process. Each packet of the engine becomes a descriptor in a modelled host's memory, crosses as
//! network packets, and is found through its event.
//!
//! | module | what |
//! |---|---|
//! | `device` | one opening: a node on one of the modelled hosts |
//! | `transport` | one open function |
//! | `world` | the machine and its users; turns, sleep, the advance of time |
//! | `turns` | the order of turns: each thread has a clock |
//! | `thread` | detects threads that sleep outside of the device |
//! | `keeper` | advances time for programs that wait outside of the device |
//! | `seat` | one function: its gates, its links, its pending events |
//! | `wire` | a link between two functions |
//! | `machine` | what the device needs of a machine |
//! | `nic` | packets as operations of the machine, and back |

#![forbid(unsafe_code)]

mod device;
mod keeper;
mod machine;
mod nic;
mod seat;
mod standstill;
mod thread;
mod transport;
mod turns;
mod wire;
mod world;

pub use device::{Made, VirtualDevice, VirtualOptions};
pub use machine::{Machine, Tell};
pub use transport::VirtualTransport;
