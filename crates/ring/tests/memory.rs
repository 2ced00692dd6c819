//! Memory that others may change: views copy exactly the requested bytes, stay inside, and never
//! write to read-only memory.
#![cfg(not(loom))]

use bellwire_ring::memory::{Memory, View, copy_bytes};
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicU64, Ordering};

/// Lengths to try: all that have their own branch in `copy_bytes`, and more.
const LENGTHS: usize = if cfg!(miri) { 40 } else { 300 };
const ALIGNMENTS: usize = if cfg!(miri) { 3 } else { 16 };

fn panics(action: impl FnOnce()) -> bool {
    panic::catch_unwind(AssertUnwindSafe(action)).is_err()
}

fn bytes(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 7 + 3) as u8).collect()
}

/// A copy of any length from any alignment to any other moves those bytes and no others.
#[test]
fn copy_of_every_length_and_alignment() {
    let from = bytes(LENGTHS + ALIGNMENTS);
    for length in 0..=LENGTHS {
        for (source, target) in
            (0..ALIGNMENTS).flat_map(|a| [(a, 0), (0, a), (a, a), (a, ALIGNMENTS - 1 - a)])
        {
            let mut to = vec![0xee; LENGTHS + 2 * ALIGNMENTS];
            // SAFETY: both vectors are longer than alignment and length together, and apart.
            unsafe {
                copy_bytes(from.as_ptr().add(source), to.as_mut_ptr().add(target), length);
            }
            let (before, rest) = to.split_at(target);
            let (copied, after) = rest.split_at(length);
            assert_eq!(copied, &from[source..source + length]);
            assert!(before.iter().chain(after).all(|byte| *byte == 0xee));
        }
    }
}

/// A copy between overlapping views gives the same result as a copy through a third buffer.
#[test]
fn copy_between_overlapping_views() {
    for (from, to) in [(0, 5), (5, 0), (3, 3), (0, 40), (40, 0), (8, 9)] {
        for length in [0, 1, 3, 7, 16, 33, 50] {
            let memory = Memory::from_vec(bytes(100));
            let mut expected = bytes(100);
            expected.copy_within(from..from + length, to);
            let view = memory.view();
            let source = view.part(from, length).expect("inside");
            view.part(to, 100 - to).expect("inside").copy_from(source);
            assert_eq!(memory.into_vec(), expected, "{length} bytes from {from} to {to}");
        }
    }
}

/// Windows that touch do not overlap.
#[test]
fn copy_between_touching_views() {
    for (from, to) in [(0, 40), (40, 0)] {
        let memory = Memory::from_vec(bytes(80));
        let [source, target] = [from, to].map(|at| memory.view().part(at, 40).expect("inside"));
        target.copy_nonoverlapping(source);
        assert_eq!(target.to_vec(), bytes(80)[from..from + 40]);
    }
}

/// A deposit gives the same bytes as a copy through a third buffer, at every alignment, overlapping
/// or not.
#[test]
fn deposits_copy() {
    let lengths = if cfg!(miri) { 20 } else { 80 };
    for (from, to) in (0..8).flat_map(|to| [(120, to), (to + 3, to), (to, to + 5), (to, to)]) {
        for length in 0..lengths {
            let memory = Memory::from_vec(bytes(200));
            let mut expected = bytes(200);
            expected.copy_within(from..from + length, to);
            let view = memory.view();
            let source = view.part(from, length).expect("inside");
            view.part(to, length).expect("inside").deposit(source);
            assert_eq!(memory.into_vec(), expected, "{length} bytes from {from} to {to}");
        }
    }
}

/// A reader on another processor that sees the last word of a deposit sees all bytes before it
/// (`last_word.rs` shows the order on one processor).
#[test]
#[cfg_attr(
    miri,
    ignore = "it watches memory while another thread writes it, as peers do, and Miri calls that a race"
)]
fn the_last_word_is_last() {
    const WORDS: usize = 400;
    const ROUNDS: u64 = 5_000;
    let target = Memory::from_vec(vec![0; 8 * WORDS]);
    let seen = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..=ROUNDS {
                let source: Vec<u8> =
                    std::iter::repeat_n(round.to_ne_bytes(), WORDS).flatten().collect();
                target.view().deposit(View::of(&source));
                while seen.load(Ordering::Acquire) < round {
                    std::thread::yield_now();
                }
            }
        });
        let view = target.view();
        let word = |at: usize| view.load(8 * at).expect("inside");
        for round in 1..=ROUNDS {
            // It looks closely, and lets the writer run where both share a processor.
            for looks in 1_u64.. {
                if word(WORDS - 1) == round {
                    break;
                }
                if looks % 1000 == 0 {
                    std::thread::yield_now();
                }
                std::hint::spin_loop();
            }
            let late = (0..WORDS).find(|at| word(*at) != round);
            // Stored before the assertion, so that the other thread ends.
            seen.store(if late.is_some() { u64::MAX } else { round }, Ordering::Release);
            assert_eq!(late, None, "a word came after the last one, in round {round}");
        }
    });
}

/// A part lies inside its view, or there is none.
#[test]
fn parts_lie_inside() {
    let all = bytes(10);
    let view = View::of(&all);
    for (offset, length) in [(0, 0), (0, 10), (10, 0), (4, 6), (9, 1)] {
        assert_eq!(view.part(offset, length).map(|part| part.len()), Some(length));
    }
    for (offset, length) in [(0, 11), (11, 0), (10, 1), (4, 7), (usize::MAX, 2), (2, usize::MAX)] {
        assert!(view.part(offset, length).is_none(), "{length} bytes at {offset}");
    }
    assert!(!view.is_empty());
    let empty = View::empty();
    assert!(empty.is_empty() && empty.part(0, 0).is_some() && empty.part(0, 1).is_none());
    assert_eq!((empty.load(0), View::of(&[]).len()), (None, 0));
}

/// Reads and writes use the given offset, and panic outside.
#[test]
fn reads_and_writes() {
    let memory = Memory::from_vec(vec![0; 20]);
    memory.view().write(3, &[1, 2, 3]);
    let mut found = [9; 5];
    memory.view().read(2, &mut found);
    assert_eq!(found, [0, 1, 2, 3, 0]);
    assert!(panics(|| memory.view().write(18, &[0; 3])));
    assert!(panics(|| memory.view().read(18, &mut [0; 3])));
    assert!(panics(|| memory.view().copy_from(View::of(&[0; 21]))));
    assert!(panics(|| memory.view().copy_nonoverlapping(View::of(&[0; 21]))));
}

/// A read-only view refuses writes.
#[test]
fn read_only_views_refuse_writes() {
    let fixed = [5_u64; 4].map(u64::to_le_bytes).concat();
    let view = View::of(&fixed);
    assert!(panics(|| view.write(0, &[1])));
    assert!(panics(|| view.copy_from(View::of(&[1]))));
    assert!(panics(|| view.copy_nonoverlapping(View::of(&[1]))));
    for offset in 0..8 {
        assert_eq!(view.fetch_add(offset, 1), None);
        assert_eq!(view.compare_swap(offset, 5, 6), None);
        assert_eq!(view.store(offset, 6), None);
    }
    assert_eq!(fixed, [5_u64; 4].map(u64::to_le_bytes).concat());
}

/// Atomics work on aligned words inside the view, and nowhere else.
#[test]
fn atomics_on_aligned_words() {
    let mut words = [0_u64; 4];
    // SAFETY: any bytes are good words, and the slice covers exactly these.
    let bytes = unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast::<u8>(), 32) };
    let view = View::of_mut(bytes);
    assert_eq!((view.fetch_add(8, 7), view.load(8)), (Some(0), Some(7)));
    assert_eq!((view.compare_swap(8, 6, 1), view.load(8)), (Some(7), Some(7)));
    assert_eq!((view.compare_swap(8, 7, 1), view.load(8)), (Some(7), Some(1)));
    assert_eq!((view.store(24, u64::MAX), view.fetch_add(24, 2)), (Some(()), Some(u64::MAX)));
    for offset in [1, 4, 7, 25, 32, usize::MAX] {
        assert_eq!((view.load(offset), view.fetch_add(offset, 1)), (None, None));
    }
    assert_eq!(words, [0, 1, 0, 1]);
}

/// A vector comes back as itself, at the same address. While a clone exists, a copy comes back.
#[test]
fn a_brought_vector_comes_back() {
    let brought = bytes(1000);
    let place = brought.as_ptr();
    let memory = Memory::from_vec(brought);
    assert!(memory.is_brought() && memory.len() == 1000);
    memory.view().write(0, &[42]);
    let clone = memory.clone();
    let copy = memory.into_vec();
    assert!(copy.as_ptr() != place && copy[0] == 42);
    let back = clone.into_vec();
    assert_eq!((back.as_ptr(), &back), (place, &copy));
    assert!(Memory::from_vec(Vec::new()).into_vec().is_empty());
}

/// A copy that bypasses the cache copies the same bytes, for any length and alignment.
#[test]
fn streaming_copies_the_same() {
    let source: Vec<u8> = (0..1000_u32).map(|i| (i * 7 % 251) as u8).collect();
    for length in (0..300).chain([511, 512, 513, 900]) {
        for shift in [0, 1, 15, 63] {
            let mut target = vec![0xee; 1000];
            let from = View::of(&source).part(shift % 7, length).unwrap().streaming();
            View::of_mut(&mut target).part(shift, length).unwrap().copy_from(from);
            assert_eq!(target[shift..shift + length], source[shift % 7..shift % 7 + length]);
            assert!(target[..shift].iter().chain(&target[shift + length..]).all(|&b| b == 0xee));
        }
    }
}

/// The same for long copies between windows that lie apart, as a lane and a program's buffer do.
#[test]
fn long_streaming_copies_the_same() {
    let source: Vec<u8> = (0..9000_u32).map(|i| (i * 7 % 251) as u8).collect();
    for (length, shift) in [2047, 2048, 2049, 8000].into_iter().zip([0, 7, 32, 63]) {
        let mut target = vec![0xee; 9000];
        let from = View::of(&source).part(3, length).unwrap().streaming();
        assert!(from.is_streaming() && !View::of(&source).is_streaming());
        View::of_mut(&mut target).part(shift, length).unwrap().copy_nonoverlapping(from);
        assert_eq!(target[shift..shift + length], source[3..3 + length]);
        assert!(target[..shift].iter().chain(&target[shift + length..]).all(|&b| b == 0xee));
    }
}

/// A copy that bypasses the cache gives the same result between overlapping windows, and between
/// windows that touch, as a copy through a third buffer.
#[test]
fn streaming_between_overlapping_views() {
    for (from, to) in [(0, 100), (100, 0), (0, 399), (399, 0), (0, 400), (400, 0), (7, 7)] {
        let memory = Memory::from_vec(bytes(800));
        let mut expected = bytes(800);
        expected.copy_within(from..from + 400, to);
        let source = memory.view().part(from, 400).expect("inside").streaming();
        memory.view().part(to, 400).expect("inside").copy_from(source);
        assert_eq!(memory.into_vec(), expected, "400 bytes from {from} to {to}");
    }
}

/// A change replaces a number of 1, 2, 4 or 8 bytes and returns the number before; no other size,
/// no misaligned place, and none outside.
#[test]
fn changes_of_numbers() {
    let mut words = [u64::from_le_bytes([1, 2, 3, 4, 5, 6, 7, 8]), 0];
    // SAFETY: any bytes are good words, and the slice covers exactly these.
    let bytes = unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast::<u8>(), 16) };
    let view = View::of_mut(bytes);
    assert_eq!(view.change(3, 1, |old| old + 0x1f0), Some(4));
    assert_eq!(view.change(6, 2, |old| old + 1), Some(0x0807));
    assert_eq!(view.change(0, 4, |old| old - 1), Some(0xf403_0201));
    assert_eq!(view.to_vec()[..8], [0, 2, 3, 0xf4, 5, 6, 8, 8]);
    assert_eq!(view.change(8, 8, |_| u64::MAX - 1), Some(0));
    assert_eq!(view.change(8, 8, |old| old), Some(u64::MAX - 1));
    for (offset, size) in [(0, 0), (0, 3), (0, 16), (1, 2), (2, 4), (4, 8), (16, 1), (12, 8)] {
        let changed = view.change(offset, size, |_| panic!("{size} bytes at {offset}"));
        assert_eq!(changed, None);
    }
    let fixed = [5];
    assert_eq!(View::of(&fixed).change(0, 1, |old| old), Some(5), "it is only read");
    assert!(panics(|| _ = View::of(&fixed).change(0, 1, |old| old + 1)));
}

/// Zeroed memory has the length that was asked for, is aligned to words, and was not brought. More
/// than there can be is refused.
#[test]
fn zeroed_memory() {
    let memory = Memory::zeroed(20).expect("there is room");
    assert_eq!((memory.len(), memory.is_empty(), memory.is_brought()), (20, false, false));
    assert_eq!(memory.view().store(8, 0x0807_0605_0403_0201), Some(()));
    assert_eq!(format!("{memory:?} {:?}", memory.view()), "Memory(20 B) View(20 B)");
    let first = memory.clone().prefix(10);
    assert_eq!(first.into_vec(), [0, 0, 0, 0, 0, 0, 0, 0, 1, 2]);
    assert_eq!(memory.into_vec().len(), 20);
    assert!(Memory::zeroed(0).is_some_and(|memory| memory.is_empty()));
    assert!(Memory::zeroed(usize::MAX).is_none());
}

/// A read that ends one byte beyond memory is refused before it happens. With the planted fault
/// `part-beyond-end` it happens, and the address sanitizer must report it (tools/sanitize.sh).
#[test]
fn a_read_beyond_the_end_is_refused() {
    let memory = std::hint::black_box(vec![7_u8; 24].into_boxed_slice());
    let read = || {
        let mut into = [0; 24];
        View::of(&memory).read(1, &mut into);
        // A read whose result nobody uses is left out by the compiler.
        std::hint::black_box(into)
    };
    assert!(std::panic::catch_unwind(read).is_err());
}
