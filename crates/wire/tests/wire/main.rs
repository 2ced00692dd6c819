//! Tests of the byte layouts, one module per format, written against the public names only.

mod bit_positions;
mod descriptor;
mod doorbell;
mod event;
mod frame;
mod header;
mod hostile_bytes;
mod link;
mod packet;
mod pcapng;
mod pcie;
mod recut;
mod refusals;
mod span;
mod values;
