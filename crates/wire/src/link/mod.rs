//! The packets of the direct link between processors, a PCIe reduced to the needs of such a link
//! (SMP paper, sections 2 and 4.1).
//!
//! ```text
//! unit       network packet   header of 4 or 2 DW | 0..=124 DW of data         S-09, S-10, S-11
//! transport  TLP              4 DW header | payload | 1 DW check               S-12, S-13
//! link       LLP              STP | sequence | TLP | link CRC | END            S-16
//!            DLLP             SDP | ACK, NAK or credits | CRC | END            S-15, S-16
//! lanes      symbol `i` of an LLP or DLLP goes over lane `i` modulo width      S-19
//! ```
//!
//! The paper gives sizes and layers. Where it gives no bits, these are PCIe's (base specification
//! 2.0), if PCIe has the field.

pub mod dllp;
pub mod lanes;
pub mod llp;
pub mod network;
pub mod segment;
pub mod tlp;

/// Bytes of a double word, by the paper's definition.
pub const DW_BYTES: usize = 4;

/// Most DWs of data behind a network header: with the 4-DW header these are the 128 DW of the
/// paper's longest packet.
pub const MAX_DATA_DW: usize = 124;
