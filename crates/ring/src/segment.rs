//! Shared memory as rings see it: 8-byte words that are always accessed atomically, and payload
//! that is only copied.

use crate::memory::View;
use crate::sync::AtomicU64;

/// Bytes of a cache line: the unit that two cores exchange.
pub const LINE_BYTES: usize = 64;
/// Words of a cache line.
pub const LINE_WORDS: usize = LINE_BYTES / 8;
/// Words of the first two lines.
const FRONT_WORDS: usize = 2 * LINE_WORDS;

/// Words that a peer shares. The real implementation is [`Segment`]; the model checker has its own.
pub trait Words {
    /// The bytes behind a packet's header, for reading.
    type Payload<'a>
    where
        Self: 'a;

    /// The number of lines.
    fn lines(&self) -> usize;

    /// The word with this index. Indices come from our own state, never from the peer. An index
    /// outside is a bug and panics.
    fn word(&self, index: usize) -> &AtomicU64;

    /// The words of the line with this index.
    ///
    /// # Safety
    /// The line lies inside.
    unsafe fn line(&self, index: usize) -> &[AtomicU64; LINE_WORDS];

    /// The words of the first two lines, which every segment has.
    fn front(&self) -> &[AtomicU64; FRONT_WORDS];

    /// The `bytes` bytes from the given word on.
    ///
    /// # Safety
    /// They lie inside.
    unsafe fn payload(&self, word: usize, bytes: usize) -> Self::Payload<'_>;

    /// Copies `head` and then `body` in, from the given word on. Plain writes: the caller publishes
    /// them by a release store.
    ///
    /// # Safety
    /// There is room for them.
    unsafe fn fill(&self, word: usize, head: &[u8], body: View<'_>);
}

#[cfg(not(loom))]
pub use real::Segment;

#[cfg(not(loom))]
mod real {
    use super::{FRONT_WORDS, LINE_BYTES, LINE_WORDS, Words};
    use crate::memory::{Memory, View};
    use crate::sync::AtomicU64;

    /// A mapped segment, or a part of one.
    #[derive(Clone, Debug)]
    pub struct Segment {
        base: *const AtomicU64,
        lines: usize,
        // Keeps the mapping alive: `base` points into it.
        memory: Memory,
    }

    // SAFETY: all access is atomic or copies through views.
    unsafe impl Send for Segment {}
    // SAFETY: as above.
    unsafe impl Sync for Segment {}

    impl Segment {
        /// The part of `memory` from byte `offset`, `bytes` long. Panics unless both are multiples
        /// of a cache line and inside.
        pub fn new(memory: &Memory, offset: usize, bytes: usize) -> Segment {
            assert!(offset.is_multiple_of(LINE_BYTES) && bytes.is_multiple_of(LINE_BYTES));
            assert!(bytes >= 2 * LINE_BYTES, "a segment has two lines or more");
            let part = memory.view().part(offset, bytes).expect("a segment lies inside its memory");
            assert!(
                (part.as_ptr() as usize).is_multiple_of(LINE_BYTES),
                "mappings are page aligned"
            );
            Segment {
                base: part.as_ptr().cast(),
                lines: bytes / LINE_BYTES,
                memory: memory.clone(),
            }
        }

        /// Bytes in the segment.
        pub fn bytes(&self) -> usize {
            self.lines * LINE_BYTES
        }

        /// The memory that it is part of.
        pub fn memory(&self) -> &Memory {
            &self.memory
        }
    }

    impl Words for Segment {
        type Payload<'a> = View<'a>;

        fn lines(&self) -> usize {
            self.lines
        }

        #[inline(always)]
        fn word(&self, index: usize) -> &AtomicU64 {
            assert!(index < self.lines * LINE_WORDS);
            // SAFETY: inside the segment, aligned (the base is line aligned), mapped while `self`
            // lives.
            unsafe { &*self.base.add(index) }
        }

        #[inline(always)]
        unsafe fn line(&self, index: usize) -> &[AtomicU64; LINE_WORDS] {
            debug_assert!(index < self.lines);
            // SAFETY: as in `word`, for all words of a line that lies inside by the caller's
            // promise.
            unsafe { &*self.base.add(index * LINE_WORDS).cast() }
        }

        #[inline(always)]
        fn front(&self) -> &[AtomicU64; FRONT_WORDS] {
            // SAFETY: as in `word`; `new` makes no segment of fewer lines.
            unsafe { &*self.base.cast() }
        }

        #[inline(always)]
        unsafe fn payload(&self, word: usize, bytes: usize) -> View<'_> {
            debug_assert!(word * 8 + bytes <= self.lines * LINE_BYTES);
            // SAFETY: inside the segment by the caller's promise, and `memory` keeps that mapped
            // while `self` is borrowed.
            unsafe {
                let start = std::ptr::NonNull::new_unchecked(self.base.add(word).cast_mut().cast());
                View::new(start, bytes)
            }
        }

        #[inline(always)]
        unsafe fn fill(&self, word: usize, head: &[u8], body: View<'_>) {
            // SAFETY: the caller's promise.
            let room = unsafe { self.payload(word, head.len() + body.len()) };
            if head.is_empty() {
                return room.copy_nonoverlapping(body);
            }
            room.write(0, head);
            room.part(head.len(), body.len())
                .expect("both parts were measured")
                .copy_nonoverlapping(body);
        }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
pub use tests::zeroed;

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::{LINE_BYTES, Segment, Words};
    use crate::memory::{Memory, Owner, View};
    use crate::sync::Ordering;
    use std::ptr::NonNull;
    use std::sync::Arc;

    /// Zeroed memory that starts at a cache line.
    pub fn zeroed(lines: usize) -> Segment {
        #[repr(align(64))]
        #[derive(Clone)]
        struct Line(#[allow(dead_code)] [u8; LINE_BYTES]);
        struct Lines(Vec<Line>);
        impl Owner for Lines {}
        let mut lines = Lines(vec![Line([0; LINE_BYTES]); lines]);
        let (start, bytes) = (NonNull::from(&mut lines.0[..]).cast(), size_of_val(&lines.0[..]));
        // SAFETY: a vector that is moved keeps its bytes in place, and they live as long as the
        // owner.
        let memory = unsafe { Memory::from_owner(start, bytes, true, Arc::new(lines)) };
        Segment::new(&memory, 0, bytes)
    }

    /// A segment is a part of its memory, in whole lines: words count from its start, and bytes
    /// go in and out at a word.
    #[test]
    fn parts_of_memory() {
        let whole = zeroed(5);
        let part = Segment::new(whole.memory(), 2 * LINE_BYTES, 3 * LINE_BYTES);
        assert_eq!((part.bytes(), part.lines(), part.memory().len()), (192, 3, 320));
        part.word(23).store(1, Ordering::Relaxed);
        whole.word(17).store(2, Ordering::Relaxed);
        assert_eq!(whole.word(39).load(Ordering::Relaxed), 1);
        assert_eq!(part.front().each_ref().map(|word| word.load(Ordering::Relaxed))[..2], [0, 2]);
        // SAFETY: a segment of three lines has room for six bytes at its tenth word.
        unsafe { part.fill(10, &[1, 2], View::of(&[3, 4, 5, 6])) };
        assert_eq!(part.word(10).load(Ordering::Relaxed).to_ne_bytes(), [1, 2, 3, 4, 5, 6, 0, 0]);
    }
}

#[cfg(test)]
#[cfg(loom)]
pub use model::ModelSegment;

#[cfg(test)]
#[cfg(loom)]
mod model {
    use super::{FRONT_WORDS, LINE_WORDS, Words};
    use crate::memory::View;
    use crate::sync::{AtomicU64, Ordering};
    use std::sync::Arc;

    /// Words under the model checker. The payload is relaxed words, so a missing release or acquire
    /// shows as stale payload.
    #[derive(Clone)]
    pub struct ModelSegment(Arc<Vec<AtomicU64>>);

    impl ModelSegment {
        /// `words` zeroed words.
        pub fn new(words: usize) -> Self {
            ModelSegment(Arc::new((0..words).map(|_| AtomicU64::new(0)).collect()))
        }
    }

    impl Words for ModelSegment {
        /// The first word.
        type Payload<'a> = &'a AtomicU64;

        fn lines(&self) -> usize {
            self.0.len() / LINE_WORDS
        }

        unsafe fn payload(&self, word: usize, _bytes: usize) -> &AtomicU64 {
            self.word(word)
        }

        fn word(&self, index: usize) -> &AtomicU64 {
            &self.0[index]
        }

        fn front(&self) -> &[AtomicU64; FRONT_WORDS] {
            self.0[..FRONT_WORDS].try_into().expect("two lines")
        }

        unsafe fn line(&self, index: usize) -> &[AtomicU64; LINE_WORDS] {
            self.0[index * LINE_WORDS..][..LINE_WORDS].try_into().expect("the length of a line")
        }

        unsafe fn fill(&self, word: usize, head: &[u8], body: View<'_>) {
            for (at, piece) in [head, &body.to_vec()].concat().chunks(8).enumerate() {
                let mut padded = [0; 8];
                padded[..piece.len()].copy_from_slice(piece);
                self.0[word + at].store(u64::from_le_bytes(padded), Ordering::Relaxed);
            }
        }
    }
}
