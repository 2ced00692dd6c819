//! Sections: how the content of a Data or Acknowledge frame is divided.
//!
//! ```text
//!   0        1        2                4                  4 + length
//!   +--------+--------+----------------+-- ... -----------+
//!   | kind   | flags  | length         | bytes            |   next section follows without padding
//!   +--------+--------+----------------+-- ... -----------+
//! ```
//! Sections of kind `Requests`, `Responses` and `News` carry a piece of one of three streams of
//! records. A piece begins and ends at a record's border; if it cuts a record, the flags say so.
//! `Received` carries the selective acknowledgement: four bytes with the number of repeated frames,
//! then a bitmap. Bit `i` (least significant first) stands for sequence number `acknowledged + 1 +
//! i`.

use super::array;
use crate::WireError;
use crate::error::codes;

/// Bytes of a section's header.
pub const SECTION_BYTES: usize = 4;

codes! {
    /// What a section carries.
    SectionKind, "section kind";

    /// Packets of the channel for requests.
    Requests = 1,
    /// Packets of the channel for responses (C-27).
    Responses = 2,
    /// News of queue pairs: see [`super::record`].
    News = 3,
    /// Selective acknowledgement.
    Received = 4,
    /// Part of a frame that no longer fits the path: offset and total as two 16-bit numbers, then
    /// bytes.
    Part = 5,
}

/// The first record began in an earlier frame.
pub const FLAG_CONTINUES: u8 = 1;
/// The last record ends in a later frame.
pub const FLAG_UNFINISHED: u8 = 2;

/// Bytes in front of the bitmap of a `Received` section.
pub const RECEIVED_FIXED_BYTES: usize = 4;
/// Bytes in front of the bytes of a `Part` section.
pub const PART_FIXED_BYTES: usize = 4;
/// Longest bitmap, in bytes: a receiver keeps at most 1024 early frames.
pub const RECEIVED_BITMAP_BYTES: usize = 128;

/// One section, borrowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Section<'a> {
    /// What it carries.
    pub kind: SectionKind,
    /// [`FLAG_CONTINUES`], [`FLAG_UNFINISHED`].
    pub flags: u8,
    /// Its content.
    pub bytes: &'a [u8],
}

impl<'a> Section<'a> {
    /// Splits the first section off `bytes`; `None` at the end.
    ///
    /// # Errors
    /// [`WireError::Truncated`], [`WireError::UnknownCode`], [`WireError::Reserved`]. After an
    /// error nothing behind it can be read.
    #[inline]
    pub fn split(bytes: &'a [u8]) -> Result<Option<(Self, &'a [u8])>, WireError> {
        if bytes.is_empty() {
            return Ok(None);
        }
        let Some((head, rest)) = bytes.split_first_chunk::<SECTION_BYTES>() else {
            return Err(truncated(bytes.len(), SECTION_BYTES));
        };
        let kind = SectionKind::from_code(head[0])?;
        let flags = head[1];
        let allowed = if (kind as u8) < 3 { FLAG_CONTINUES | FLAG_UNFINISHED } else { 0 };
        if flags & !allowed != 0 {
            return Err(WireError::Reserved { field: "section flags", value: flags as u64 });
        }
        let length = u16::from_le_bytes(array(head, 2)) as usize;
        let Some((bytes, rest)) = rest.split_at_checked(length) else {
            return Err(truncated(bytes.len(), SECTION_BYTES + length));
        };
        Ok(Some((Section { kind, flags, bytes }, rest)))
    }

    /// The four bytes in front of a section of `length` bytes.
    #[inline]
    pub const fn head(kind: SectionKind, flags: u8, length: u16) -> [u8; SECTION_BYTES] {
        let [low, high] = length.to_le_bytes();
        [kind as u8, flags, low, high]
    }
}

fn truncated(length: usize, needed: usize) -> WireError {
    WireError::Truncated { format: "section", length, needed }
}
