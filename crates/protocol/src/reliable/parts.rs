//! A frame that comes in parts, because the path's MTU became smaller after it was first sent: it keeps its number, so its
//! parts are put together before anything looks at it.

use alloc::vec::Vec;

use bellwire_wire::frame::section::PART_FIXED_BYTES;

/// At most one frame at a time; its sender sends the parts in order, all of them again if one is lost.
pub(super) struct Parts {
    sequence: u32,
    bytes: Vec<u8>,
}

impl Parts {
    pub const fn new() -> Self {
        Parts { sequence: 0, bytes: Vec::new() }
    }

    /// Takes in one part of frame `sequence`; the whole body if this was the last.
    #[cold]
    pub fn arrive(&mut self, sequence: u32, part: &[u8]) -> Option<Vec<u8>> {
        let (&[a, b, c, d], bytes) = part.split_first_chunk::<PART_FIXED_BYTES>()?;
        let (offset, total) =
            (u16::from_le_bytes([a, b]) as usize, u16::from_le_bytes([c, d]) as usize);
        if offset == 0 {
            self.sequence = sequence;
            self.bytes.clear();
        }
        if self.sequence != sequence || self.bytes.len() != offset || offset + bytes.len() > total {
            return None;
        }
        self.bytes.extend_from_slice(bytes);
        (self.bytes.len() == total).then(|| core::mem::take(&mut self.bytes))
    }
}
