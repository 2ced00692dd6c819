//! The devices `eth` and `udp`: the reliable protocol over whatever an ordinary network card carries.

mod batch;
pub mod frame_io;
pub mod interface;
pub mod link_header;
pub mod packet;
mod socket;
#[doc(hidden)]
pub mod testing;
pub mod udp;
pub mod xdp;
