//! Test data, its sizes and places, and the check that nothing else has changed.

use super::stage::Node;
use bellwire::{Buffer, Limits, MemoryRegion, Rights};

/// Bytes that depend on the seed only, and differ at nearly every place for another seed.
pub fn pattern(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(length + 8);
    let mut word = seed;
    while bytes.len() < length {
        word = next_random(word);
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

/// The next of a sequence of random words (SplitMix64, Steele et al., OOPSLA 2014).
pub fn next_random(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

/// A small generator, for choices.
#[derive(Clone, Copy, Debug)]
pub struct Random(pub u64);

impl Random {
    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 = next_random(self.0);
        (self.0 % end.max(1) as u64) as usize
    }
}

/// The size classes, in bytes: around zero, words, the header's line, packets, and long messages.
pub fn sizes(limits: &Limits) -> Vec<usize> {
    let eager = limits.eager_bytes;
    let mut sizes = vec![0, 1, 7, 8, 31, 32, 33, 64, eager - 1, eager, eager + 1];
    sizes.extend([64 << 10, (1 << 20) + 3]);
    sizes.retain(|&size| size <= limits.message_bytes);
    sizes
}

/// The longest of [`sizes`].
pub const LONGEST: usize = (1 << 20) + 3;

/// The kind of memory that bytes lie in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// In a vector of the program.
    Vector,
    /// In a vector of the program that was registered, this many bytes after an aligned address.
    Registered(usize),
    /// In memory that the library allocated, this many bytes after an aligned address.
    Allocated(usize),
}

/// All kinds of memory and alignments; a few of them for long data.
pub fn kinds(length: usize) -> &'static [Kind] {
    use Kind::{Allocated, Registered, Vector};
    const ALL: [Kind; 9] = [
        Vector,
        Registered(0),
        Allocated(0),
        Registered(1),
        Allocated(3),
        Registered(8),
        Allocated(8),
        Registered(63),
        Allocated(61),
    ];
    if length <= 64 << 10 { &ALL } else { &ALL[..5] }
}

/// Bytes on either side of a destination that must not change.
const GUARD: usize = 64;
/// The value of the guard bytes.
const GUARDIAN: u8 = 0xd6;

/// One region of each kind at one node, big enough for every size class with guards around it.
#[derive(Debug)]
pub struct Ground {
    /// Of the program's memory.
    pub registered: MemoryRegion,
    /// Of the library's memory.
    pub allocated: MemoryRegion,
}

impl Ground {
    /// Registers both at `node`.
    pub fn new(node: &mut Node, rights: Rights) -> Ground {
        let bytes = LONGEST + 4 * GUARD;
        Ground {
            registered: node.function.register(vec![0; bytes], rights).expect("registered"),
            allocated: node.function.allocate_region(bytes, rights).expect("allocated"),
        }
    }

    /// The region of a kind and the offset in it, behind the guard; `None` for vectors.
    pub fn place(&self, kind: Kind) -> Option<(&MemoryRegion, usize)> {
        match kind {
            Kind::Vector => None,
            Kind::Registered(offset) => Some((&self.registered, GUARD + offset)),
            Kind::Allocated(offset) => Some((&self.allocated, GUARD + offset)),
        }
    }

    /// A buffer of this kind that holds `bytes`.
    pub fn source(&self, kind: Kind, bytes: &[u8]) -> Buffer {
        match self.place(kind) {
            None => bytes.to_vec().into(),
            Some((region, offset)) => {
                region.write(offset, bytes);
                region.slice(offset, bytes.len()).into()
            }
        }
    }

    /// A buffer of this kind for `length` bytes, with guards around it.
    pub fn destination(&self, kind: Kind, length: usize) -> Buffer {
        match self.place(kind) {
            None => vec![!GUARDIAN; length].into(),
            Some((region, offset)) => {
                let mut fill = vec![!GUARDIAN; length + 2 * GUARD];
                fill[..GUARD].fill(GUARDIAN);
                fill[GUARD + length..].fill(GUARDIAN);
                region.write(offset - GUARD, &fill);
                region.slice(offset, length).into()
            }
        }
    }

    /// Asserts that the buffer, a [`Ground::destination`] of `length` bytes, begins with
    /// `expected`. The rest of it and the bytes around it must be unchanged (C-08).
    #[track_caller]
    pub fn assert_received(&self, kind: Kind, buffer: &Buffer, expected: &[u8], story: &str) {
        let length = buffer.len();
        let mut whole = expected.to_vec();
        whole.resize(length, !GUARDIAN);
        match (buffer.as_slice(), self.place(kind)) {
            (Some(bytes), None) => assert_same(bytes, &whole, story),
            (None, Some((region, offset))) => {
                let mut found = vec![0; length + 2 * GUARD];
                region.read(offset - GUARD, &mut found);
                assert_same(&found[GUARD..GUARD + length], &whole, story);
                let guards = [&found[..GUARD], &found[GUARD + length..]];
                let intact = guards.iter().all(|guard| guard.iter().all(|&byte| byte == GUARDIAN));
                assert!(intact, "bytes beside the destination changed; {story}");
            }
            _ => panic!("a buffer of another kind came back: {buffer:?}; {story}"),
        }
    }
}

/// Compares without printing a megabyte.
#[track_caller]
pub fn assert_same(found: &[u8], expected: &[u8], story: &str) {
    assert_eq!(found.len(), expected.len(), "length; {story}");
    if found != expected {
        let at = found.iter().zip(expected).position(|(a, b)| a != b).expect("they differ");
        let [found, expected] =
            [found, expected].map(|bytes| bytes[at..].iter().take(16).collect::<Vec<_>>());
        panic!("from byte {at} on: {found:02x?} instead of {expected:02x?}; {story}");
    }
}
