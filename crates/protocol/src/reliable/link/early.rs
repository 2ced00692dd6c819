//! Frames that came early: an earlier one is missing. The buffers belong to the endpoint and are
//! limited for all links together. A frame without a free buffer is dropped; the sender retransmits
//! it.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

const NONE: u16 = u16::MAX;

/// Buffers for early frames, made when first needed.
pub(crate) struct EarlyFrames {
    buffers: Vec<Box<[u8]>>,
    free: Vec<u16>,
    most: u16,
}

impl EarlyFrames {
    pub fn new(most: u16) -> Self {
        EarlyFrames { buffers: Vec::new(), free: Vec::new(), most: most.min(NONE - 1) }
    }

    /// Keeps a copy of `bytes`; `None` if there is no room.
    fn keep(&mut self, bytes: &[u8], frame_bytes: usize) -> Option<u16> {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None if (self.buffers.len() as u16) < self.most => {
                self.buffers.push(vec![0; frame_bytes].into());
                self.buffers.len() as u16 - 1
            }
            None => return None,
        };
        self.buffers[slot as usize][..bytes.len()].copy_from_slice(bytes);
        Some(slot)
    }

    /// Takes a buffer out, for reading while the rest is used.
    pub fn lend(&mut self, slot: u16) -> Box<[u8]> {
        core::mem::take(&mut self.buffers[slot as usize])
    }

    /// Puts the buffer back and frees it.
    pub fn give_back(&mut self, slot: u16, buffer: Box<[u8]>) {
        self.buffers[slot as usize] = buffer;
        self.free.push(slot);
    }

    fn release(&mut self, slot: u16) {
        self.free.push(slot);
    }
}

/// Which early frames of one link are kept, and in which buffers.
pub(crate) struct EarlySet {
    /// Buffer and length, by sequence number modulo the window; empty until first needed.
    slots: Box<[(u16, u16)]>,
    count: u16,
    window: u16,
}

impl EarlySet {
    pub fn new(window: u16) -> Self {
        EarlySet { slots: Box::new([]), count: 0, window: window.next_power_of_two() }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn index(&self, sequence: u32) -> usize {
        sequence as usize & (self.window as usize - 1)
    }

    pub fn contains(&self, sequence: u32) -> bool {
        self.count > 0 && self.slots[self.index(sequence)].0 != NONE
    }

    /// Keeps the body of frame `sequence`; `false` if there is no room. The caller has checked that
    /// it is in the window and new.
    pub fn keep(
        &mut self,
        sequence: u32,
        bytes: &[u8],
        frames: &mut EarlyFrames,
        frame_bytes: usize,
    ) -> bool {
        if self.slots.is_empty() {
            self.slots = vec![(NONE, 0); self.window as usize].into();
        }
        // One link may take at most half of the buffers.
        if self.count >= frames.most.div_ceil(2) {
            return false;
        }
        let Some(slot) = frames.keep(bytes, frame_bytes) else { return false };
        self.slots[self.index(sequence)] = (slot, bytes.len() as u16);
        self.count += 1;
        true
    }

    /// Removes frame `sequence` from the set; returns its buffer and length.
    pub fn take(&mut self, sequence: u32) -> Option<(u16, usize)> {
        if !self.contains(sequence) {
            return None;
        }
        let index = self.index(sequence);
        let (slot, length) = core::mem::replace(&mut self.slots[index], (NONE, 0));
        self.count -= 1;
        Some((slot, length as usize))
    }

    /// Writes the bitmap of the frames behind `expected` and returns its length in bytes.
    pub fn bitmap(&self, expected: u32, into: &mut [u8]) -> usize {
        let mut length = 0;
        let mut left = self.count;
        let bits = (self.window as usize - 1).min(into.len() * 8);
        for bit in 0..bits {
            if left == 0 {
                break;
            }
            if bit % 8 == 0 {
                into[bit / 8] = 0;
            }
            if self.contains(expected.wrapping_add(1 + bit as u32)) {
                into[bit / 8] |= 1 << (bit % 8);
                length = bit / 8 + 1;
                left -= 1;
            }
        }
        length
    }

    pub fn clear(&mut self, frames: &mut EarlyFrames) {
        for entry in &mut self.slots {
            if entry.0 != NONE {
                frames.release(entry.0);
                *entry = (NONE, 0);
            }
        }
        self.count = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::{EarlyFrames, EarlySet};

    /// One link takes half of the buffers, the odd one included; all together take all of them. A
    /// frame that is taken or dropped frees its buffer.
    #[test]
    fn buffers_are_bounded_for_each_link_and_for_all() {
        let mut frames = EarlyFrames::new(3);
        let mut links = [EarlySet::new(16), EarlySet::new(16)];
        let keep = |link: &mut EarlySet, sequence: u32, frames: &mut EarlyFrames| {
            link.keep(sequence, &[sequence as u8; 3], frames, 8)
        };
        assert!(links[0].is_empty() && !links[0].contains(7));
        assert!(keep(&mut links[0], 7, &mut frames) && keep(&mut links[0], 9, &mut frames));
        assert!(!keep(&mut links[0], 10, &mut frames), "more than half");
        assert!(keep(&mut links[1], 7, &mut frames));
        assert!(!keep(&mut links[1], 8, &mut frames), "all are taken");
        assert!(links[0].contains(9) && !links[0].contains(8) && !links[0].is_empty());

        assert_eq!(links[0].take(8), None);
        let (slot, length) = links[0].take(9).unwrap();
        let buffer = frames.lend(slot);
        assert_eq!((&buffer[..length], buffer.len()), (&[9; 3][..], 8));
        frames.give_back(slot, buffer);
        assert_eq!(links[0].take(9), None);
        assert!(keep(&mut links[1], 8, &mut frames));
        links[1].clear(&mut frames);
        assert!(links[1].is_empty() && !links[1].contains(7) && !links[1].contains(8));
        assert!(keep(&mut links[0], 11, &mut frames) && keep(&mut links[1], 12, &mut frames));
        assert!(!keep(&mut links[1], 13, &mut frames), "the buffers are three again");
    }

    /// Bit n of the bitmap is the frame n + 1 behind the expected one, across the wrap of numbers.
    /// Only as many bytes are used as there are frames to report, and as have room.
    #[test]
    fn the_bitmap_names_what_was_kept() {
        let mut frames = EarlyFrames::new(100);
        let mut set = EarlySet::new(20);
        let expected = u32::MAX - 3;
        let mut bytes = [0xaa; 4];
        assert_eq!(set.bitmap(expected, &mut bytes), 0);
        for ahead in [1, 4, 8, 10, 31] {
            assert!(set.keep(expected.wrapping_add(ahead), &[], &mut frames, 8));
        }
        assert_eq!(set.bitmap(expected, &mut bytes), 4);
        assert_eq!(bytes, [0b1000_1001, 0b0000_0010, 0, 0b0100_0000]);
        let mut short = [0; 2];
        assert_eq!(set.bitmap(expected, &mut short), 2);
        assert_eq!(short, [0b1000_1001, 0b0000_0010]);
        set.take(expected.wrapping_add(31)).unwrap();
        bytes = [0xaa; 4];
        assert_eq!(set.bitmap(expected, &mut bytes), 2);
        assert_eq!(bytes, [0b1000_1001, 0b0000_0010, 0xaa, 0xaa]);
    }
}
