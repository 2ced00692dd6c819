//! Frames on their way to a socket. They lie one after the other in one buffer, so that equally
//! long frames to one peer are one segmented send.

use std::collections::VecDeque;

/// Maximum number of frames in one batch. One `sendmmsg` carries that many, and the kernel cuts one
/// segmented datagram into that many.
pub(crate) const BATCH_FRAMES: usize = 64;

/// A staged frame: its destination and its bytes in the buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Staged<P> {
    pub to: P,
    pub start: usize,
    pub length: usize,
}

/// A buffer with room for some frames.
pub(crate) struct Batch<P> {
    bytes: Box<[u8]>,
    /// Largest frame, link header included.
    largest: usize,
    end: usize,
    frames: VecDeque<Staged<P>>,
}

impl<P: Copy> Batch<P> {
    /// An empty batch for frames of at most `largest` bytes.
    pub fn new(largest: usize) -> Batch<P> {
        // Many small frames, or a few of the largest kind.
        let bytes = (BATCH_FRAMES * largest.min(9216)).max(4 * largest);
        Batch {
            bytes: vec![0; bytes].into_boxed_slice(),
            largest,
            end: 0,
            frames: VecDeque::with_capacity(BATCH_FRAMES),
        }
    }

    /// Whether another frame of the largest size fits.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.frames.len() < BATCH_FRAMES && self.bytes.len() - self.end >= self.largest
    }

    /// Bytes from the start of the buffer to the end of the last staged frame.
    #[inline]
    pub fn end(&self) -> usize {
        self.end
    }

    /// The buffer of the next frame, to be written by the caller.
    #[inline]
    pub fn room(&mut self) -> &mut [u8] {
        &mut self.bytes[self.end..self.end + self.largest]
    }

    /// Stages the `length` bytes that the caller wrote into [`Batch::room`].
    #[inline]
    pub fn stage(&mut self, to: P, length: usize) {
        assert!(length <= self.largest, "a frame of {length} bytes");
        self.frames.push_back(Staged { to, start: self.end, length });
        self.end += length;
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// The frames that are staged, oldest first.
    pub fn frames(&self) -> &VecDeque<Staged<P>> {
        &self.frames
    }

    /// `length` bytes from `start` on: one frame, or several consecutive frames.
    #[inline]
    pub fn bytes(&self, start: usize, length: usize) -> &[u8] {
        &self.bytes[start..start + length]
    }

    /// Removes the oldest `count` frames.
    #[inline]
    pub fn remove(&mut self, count: usize) {
        self.frames.drain(..count);
        if self.frames.is_empty() {
            self.end = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames lie one after the other. The buffer starts again at its beginning once all have left.
    #[test]
    fn frames_follow_each_other() {
        let mut batch = Batch::new(100);
        for number in 0..3u8 {
            batch.room()[..10].fill(number);
            batch.stage(number, 10);
        }
        assert_eq!((batch.end(), batch.room().len()), (30, 100));
        assert_eq!(batch.bytes(0, 30)[..], [[0; 10], [1; 10], [2; 10]].concat());
        batch.remove(2);
        assert_eq!(batch.frames()[0].start, 20);
        batch.remove(1);
        assert!(batch.is_empty() && batch.end() == 0);
        while batch.has_room() {
            batch.stage(0, 100);
        }
        assert!(batch.frames().len() == BATCH_FRAMES || batch.end > batch.bytes.len() - 100);
    }
}
