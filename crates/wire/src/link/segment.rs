//! What a TLP says of its part of a cHPP packet, in the TLP's address, which is free (S-12).
//!
//! ```text
//!   address   63:6 zero | 5 first | 4 last | 3:0 lane of the packet's last byte, if it is the last
//! ```
//!
//! A packet is cut into segments of [`SEGMENT_BYTES`], each of which is the payload of a TLP. Only
//! the last one may be shorter. It has whole beats of 16 bytes, too. All of this is ours: no paper
//! puts both networks together.

use super::DW_BYTES;
use super::tlp::MAX_PAYLOAD_DW;
use crate::WireError;

/// Most bytes of a segment.
pub const SEGMENT_BYTES: usize = MAX_PAYLOAD_DW * DW_BYTES;

/// The bits of the lane.
const LANE: u64 = 0xf;
/// The bit that says that the segment ends its packet.
const LAST: u64 = 1 << 4;
/// The bit that says that it begins its packet.
const FIRST: u64 = 1 << 5;

/// A part of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// It begins its packet.
    pub first: bool,
    /// It ends its packet.
    pub last: bool,
    /// The lane of the packet's last byte in the last beat, 0 to 15; zero unless it ends there.
    pub to: u8,
}

impl Segment {
    /// Reads the address of a TLP.
    ///
    /// # Errors
    /// [`WireError::Reserved`] if another bit is set.
    pub fn parse(address: u64) -> Result<Segment, WireError> {
        match address & !(LANE | LAST | FIRST) {
            0 => Ok(Segment {
                first: address & FIRST != 0,
                last: address & LAST != 0,
                to: (address & LANE) as u8,
            }),
            value => Err(WireError::Reserved { field: "upper bits of a segment", value }),
        }
    }

    /// The address of its TLP.
    ///
    /// # Errors
    /// [`WireError::OutOfRange`] for the lane.
    pub fn emit(&self) -> Result<u64, WireError> {
        let to = u64::from(self.to);
        if to > LANE {
            return Err(WireError::OutOfRange { field: "lane", value: to, limit: LANE });
        }
        let bit = |is_set, bit| if is_set { bit } else { 0 };
        Ok(to | bit(self.last, LAST) | bit(self.first, FIRST))
    }
}
