//! Reassembles a frame that comes in parts because the path's MTU fell after its first
//! transmission. The frame keeps its number, so its parts are joined before anything reads it.

use alloc::vec::Vec;

use bellwire_wire::frame::section::PART_FIXED_BYTES;

/// Most runs of bytes that are kept with holes between them.
const RUNS: usize = 128;

/// Holds at most one frame. Its sender repeats all parts until the frame is acknowledged, possibly
/// cut differently. So bytes are kept in any order.
pub(crate) struct Parts {
    sequence: u32,
    bytes: Vec<u8>,
    /// Which bytes have come: runs in ascending order that do not touch.
    runs: Vec<(usize, usize)>,
}

impl Parts {
    pub const fn new() -> Self {
        Parts { sequence: 0, bytes: Vec::new(), runs: Vec::new() }
    }

    /// Takes in one part of frame `sequence`; returns the whole body if no other part is missing.
    /// Parts of frame `expected` displace those of other frames and are never displaced. Otherwise
    /// two frames that come by two paths at once could displace each other forever.
    #[cold]
    pub fn arrive(&mut self, expected: u32, sequence: u32, part: &[u8]) -> Option<Vec<u8>> {
        if sequence != expected && self.sequence == expected && !self.runs.is_empty() {
            return None;
        }
        let (&[a, b, c, d], bytes) = part.split_first_chunk::<PART_FIXED_BYTES>()?;
        let start = u16::from_le_bytes([a, b]) as usize;
        let total = u16::from_le_bytes([c, d]) as usize;
        let end = start + bytes.len();
        if end > total || bytes.is_empty() {
            return None;
        }
        if self.sequence != sequence || self.bytes.len() != total {
            self.sequence = sequence;
            self.runs.clear();
            self.bytes.clear();
            self.bytes.resize(total, 0);
        }
        self.bytes[start..end].copy_from_slice(bytes);
        let before = self.runs.partition_point(|run| run.1 < start);
        let touched = self.runs[before..].iter().take_while(|run| run.0 <= end).count();
        let mut merged = (start, end);
        for run in self.runs.drain(before..before + touched) {
            merged = (merged.0.min(run.0), merged.1.max(run.1));
        }
        if self.runs.len() < RUNS {
            self.runs.insert(before, merged);
        }
        (self.runs == [(0, total)]).then(|| {
            self.runs.clear();
            core::mem::take(&mut self.bytes)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    /// If parts of two frames alternate, the expected frame is completed, whichever began.
    #[test]
    fn the_expected_frame_goes_first() {
        let part = |start: u8, byte: u8| [start, 0, 4, 0, byte, byte];
        for first in [7, 8] {
            let mut parts = Parts::new();
            assert_eq!(parts.arrive(7, first, &part(0, first as u8)), None);
            assert_eq!(parts.arrive(7, 15 - first, &part(0, 15 - first as u8)), None);
            assert_eq!(parts.arrive(7, 8, &part(2, 8)), None);
            assert_eq!(parts.arrive(7, 7, &part(2, 7)), Some(vec![7; 4]));
            assert_eq!(parts.arrive(8, 8, &part(0, 8)), None);
            assert_eq!(parts.arrive(8, 8, &part(2, 8)), Some(vec![8; 4]));
        }
    }

    /// At most 128 runs with holes between them are kept. A part that would be one more must come
    /// again. Without its start, total or bytes, a part is ignored.
    #[test]
    fn runs_are_bounded() {
        let total = 1000;
        let part = |start: u16| {
            let mut bytes = Vec::from(start.to_le_bytes());
            bytes.extend_from_slice(&[total as u8, (total >> 8) as u8, start as u8]);
            bytes
        };
        for (ends, is_complete) in [(128, true), (129, false)] {
            let mut parts = Parts::new();
            for wrong in [&[][..], &[0, 0, 4], &[0, 0, 4, 0], &[4, 0, 4, 0, 1]] {
                assert_eq!(parts.arrive(7, 7, wrong), None);
            }
            for number in 0..ends {
                assert_eq!(parts.arrive(7, 7, &part(2 * number)), None);
            }
            // All holes from the front on, and then what is behind the runs.
            let holes = (0..ends - 1).map(|number| 2 * number + 1);
            for start in holes.chain(2 * ends - 1..total - 1) {
                assert_eq!(parts.arrive(7, 7, &part(start)), None);
            }
            let whole: Vec<u8> = (0..total).map(|byte| byte as u8).collect();
            let last = parts.arrive(7, 7, &part(total - 1));
            assert_eq!(last.is_some(), is_complete, "{ends} runs");
            let last = last.or_else(|| parts.arrive(7, 7, &part(2 * (ends - 1))));
            assert_eq!(last, Some(whole));
        }
    }
}
