//! Byte layouts that cross a process, bus or network boundary.
//!
//! This crate knows what the bytes mean and nothing else: no I/O, no allocation, no clock, no
//! `unsafe`. Everything here is a value or a view over a borrowed slice, so the same code serves a
//! real device and the model.
//!
//! The formats, in the order in which an operation meets them (cHPP paper, sections 3.2 to 4.2):
//!
//! ```text
//! program writes  descriptor  header | sources | destinations | data | tail      C-28, C-29
//! program rings   doorbell    one 64-bit word: where it is, how long           C-31
//! engine cuts     recut       pieces that lie in one entry of both lists       C-28
//! engine sends    packet      16-byte header | 0..=4096 bytes | tail           C-06, C-07, C-10
//! engine reports  event       32 bytes in a ring, with a phase bit             C-13, C-14
//! ```
//!
//! On plain Ethernet or UDP, packets travel in a [`frame`], whose records have the packet header's
//! fields in a compact form.
//!
//! On the direct link of the SMP paper, its packets and those of its layers are in [`link`].
//! Headers of PCIe's own packets, which an interface exchanges with its host, are in [`pcie`].
//!
//! Five small parts serve several formats:
//!
//! - [`primitive`]: NAP, PUT or GET
//! - [`endpoint`]: processor, function and queue pair
//! - [`span`]: bytes expressed as DWs and byte enables
//! - [`entry`]: blocks of memory in lists
//! - [`tail`]: the opaque bytes of the upper software
//!
//! Rules that hold for all formats:
//!
//! - `parse(emit(x)) == x`, and every accepted byte string has exactly one value: what `parse`
//!   accepts, `emit` gives back unchanged. Reserved bits must be zero. (Exception: bytes of a
//!   payload DW that its byte enables switch off.)
//! - Nothing panics on bytes from outside. All refusals are [`WireError`], which says what, why and
//!   what to do.
//! - Sizes and bit positions are asserted at compile time, and tests pin every bit to the diagram
//!   in its file.
//! - `emit` either writes the whole format or refuses and leaves the buffer untouched.
#![no_std]
#![forbid(unsafe_code)]

mod bits;
mod error;

pub mod descriptor;
pub mod doorbell;
pub mod endpoint;
pub mod entry;
pub mod event;
pub mod frame;
pub mod header;
pub mod link;
pub mod packet;
pub mod pcapng;
pub mod pcie;
pub mod primitive;
pub mod recut;
pub mod registers;
pub mod span;
pub mod tail;

pub use error::WireError;

/// Width of a global address in bits: the packet header has no room for more (C-08).
pub const ADDRESS_BITS: u32 = 40;

/// First address that does not exist: all memory and I/O of a super-node lies below it (1 TiB).
pub const ADDRESS_LIMIT: u64 = 1 << ADDRESS_BITS;
