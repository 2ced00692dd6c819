//! Blocks as gates have them: one call is one cycle, and every port is a field.
//!
//! A block has a struct `In`, a struct `Out` and `fn cycle(&mut self, In) -> Out`. `Out` is what
//! stands at the outputs in that cycle, before the clock edge that ends it. Names of files, structs
//! and ports are those of the modules under `hardware/`, which run in lock-step with these blocks.
//! docs/hardware.md says how.

pub mod bell_decode;
pub mod cdc_fifo_gray;
pub mod chpp_link_nic;
pub mod chpp_nic;
pub mod chpp_quad;
pub mod completer;
pub mod credit_gate;
pub mod credit_ledger;
pub mod data_join;
pub mod data_reorder;
pub mod desc_extract;
pub mod desc_fetch;
pub mod desc_gate;
pub mod dllp_rx;
pub mod dllp_tx;
pub mod doorbell_arb;
pub mod doorbell_fifo;
pub mod event_ring;
pub mod fc_init;
pub mod frame_rx;
pub mod frame_tx;
pub mod get_packer;
pub mod host_regs;
pub mod key_window;
pub mod lane_deskew;
pub mod lane_stripe;
pub mod lane_train;
pub mod line;
pub mod nic_core;
pub mod op_arb;
pub mod packer;
pub mod packet_arb;
pub mod pcie_rx;
pub mod pcie_tx;
mod ports;
pub mod read_arb;
pub mod replay_buf;
pub mod rx_ack;
pub mod rx_dispatch;
pub mod send_event;
pub mod send_vc;
pub mod slot_cache;
pub mod slot_read;
pub mod smp_link;
pub mod smp_port;
pub mod source_arb;
pub mod stream_fifo;
pub mod tag_alloc;
pub mod tlp_unwrap;
pub mod tlp_wrap;
pub mod upload;
mod vc_buf;
pub mod vc_rx_buf;
pub mod write_arb;
pub mod xbar;

pub use ports::{Packer, Ports, Signal, Unpacker, Value, hexadecimal, layout_hash, packed_struct};
