//! The device `rtl:chpp`: programs over the network interface of cHPP in gates, in virtual time
//! (docs/hardware.md, *As a device*).
//!
//! Verilator translates `hardware/chpp_nic` to a library, which this crate loads. Hosts, memory and
//! software around the gates, and the switch between them, are those of
//! `bellwire_model::chpp::clocked`. Functions and turns are those of `bellwire-virtual`.
//!
//! | module | what |
//! |---|---|
//! | `device` | one opening: a node on one of the hosts |
//! | `library` | the gates as a shared library |

mod device;
mod library;

pub use device::{RtlDevice, RtlOptions, machine};
pub use library::{Gates, Library};
