//! The devices `eth` and `udp`: the reliable protocol over what an ordinary network card carries.
//!
//! | module | what |
//! |---|---|
//! | [`frame_io`] | what carries frames: one small trait |
//! | [`udp`], [`packet`], [`xdp`] | three implementations of it |
//! | `batch`, `socket`, [`link_header`], [`interface`] | what these have in common |
//! | [`keyed_io`] | carries them sealed, if the device has a key |
//! | [`EthDevice`], [`UdpDevice`] | the devices; `choice` measures AF_XDP and AF_PACKET |
//! | [`agent`] | sockets for programs without privileges |
//! | [`eth_io`], `local` | a function of an interface, and its path to other functions there |
//! | [`multi_interface`] | a function of several interfaces |
//! | `transport`, `links` | one open function: the protocol between engine and network |
//! | [`route`], `lookup`, `neighbour` | where nodes are, and how to ask |
//! | `kinds` | the devices' names and settings |
//! | `sleep`, `clock`, `check_speed`, `memory` | waiting, time, check values, memory of regions |
//! | [`pcapng`] | captures |
//! | [`namespace`] | private network namespaces |

pub mod agent;
mod batch;
mod check_speed;
mod choice;
mod clock;
mod eth_device;
pub mod eth_io;
pub mod frame_io;
pub mod interface;
pub mod keyed_io;
mod kinds;
pub mod link_header;
mod links;
mod local;
mod lookup;
mod memory;
pub mod multi_interface;
pub mod namespace;
mod neighbour;
pub mod packet;
pub mod pcapng;
pub mod route;
mod sleep;
mod socket;
#[doc(hidden)]
pub mod testing;
mod transport;
pub mod udp;
mod udp_device;
pub mod xdp;

pub use choice::IoKind;
pub use eth_device::{EthDevice, EthFunction, EthOptions};
pub use route::PORT;
pub use transport::{EthernetTransport, LINKS, PACKET_BYTES};
pub use udp_device::{UdpDevice, UdpFunction, UdpOptions};
