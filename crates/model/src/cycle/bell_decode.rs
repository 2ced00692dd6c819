//! `bell_decode`: takes stores into the doorbell window apart (C-31, C-32, C-39; cHPP sections 3.4
//! and 4.1), as `hardware/bell_decode` builds it.
//!
//! Each function has a page of the window, and rings by a store of one whole word at its beginning.
//! The page says which function it is. Any other store is dropped and counted.

use super::data_reorder::{BEAT_WORDS, SIZE_BITS};
use super::doorbell_fifo::FUNCTIONS;
use super::key_window::{FUNCTION_BITS, PAGE_SHIFT};

/// Bits of the number of a byte in the window: there are pages behind those of functions.
pub const WINDOW_BITS: usize = 16;
/// Bytes of a doorbell.
const BELL_BYTES: u16 = 8;

crate::ports! {
    /// What enters in a cycle.
    pub struct In {
        /// A beat of a store comes.
        store_valid: bool = 1,
        /// It is the last one.
        store_last: bool = 1,
        /// Where in the window the store begins; counts with the first beat, as its bytes.
        store_address: u16 = WINDOW_BITS,
        /// Bytes of the store.
        store_bytes: u16 = SIZE_BITS,
        /// The beat, with each byte on the lane of its address.
        store_data: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
    }

    /// What stands at the outputs in a cycle.
    pub struct Out {
        /// The store that ended in the cycle before rings.
        bell_valid: bool = 1,
        /// Its function; zero if none rings.
        bell_function: u8 = FUNCTION_BITS,
        /// The word; zero if none rings.
        bell_word: u64 = 64,
        /// The store that ended in the cycle before was dropped.
        dropped_valid: bool = 1,
        /// Stores that were dropped since reset; behind its highest number comes zero.
        dropped: u32 = 32,
    }
}

/// The decoder. What a store's last beat brings in cycle `t` stands at the outputs in `t + 1`.
#[derive(Clone, Debug)]
pub struct BellDecode {
    functions: u16,
    /// The highest number that `dropped` can have.
    highest: u32,
    /// A beat of the store has come, and its last one has not.
    mid: bool,
    output: Out,
}

impl BellDecode {
    /// A decoder for this many functions. The number of dropped stores has `dropped_bits` bits.
    ///
    /// # Panics
    /// Unless there are 1 to 8 functions, and 1 to 32 bits.
    pub fn new(functions: usize, dropped_bits: u32) -> BellDecode {
        assert!((1..=FUNCTIONS).contains(&functions), "1 to {FUNCTIONS} functions");
        assert!((1..=32).contains(&dropped_bits), "1 to 32 bits");
        let highest = u32::MAX >> (32 - dropped_bits);
        BellDecode { functions: functions as u16, highest, mid: false, output: Out::default() }
    }

    /// One cycle.
    #[inline]
    pub fn cycle(&mut self, input: In) -> Out {
        let out = self.output;
        self.output = Out { dropped: out.dropped, ..Out::default() };
        if !input.store_valid {
            return out;
        }
        if input.store_last {
            let page = input.store_address >> PAGE_SHIFT;
            let is_first = input.store_address & ((1 << PAGE_SHIFT) - 1) == 0;
            let is_whole = !self.mid && input.store_bytes == BELL_BYTES;
            if is_whole && is_first && page < self.functions {
                self.output.bell_valid = true;
                self.output.bell_function = page as u8;
                self.output.bell_word = input.store_data[0];
            } else {
                self.output.dropped_valid = true;
                self.output.dropped = out.dropped.wrapping_add(1) & self.highest;
            }
        }
        self.mid = !input.store_last;
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A store of one beat.
    fn store(store_address: u16, store_bytes: u16) -> In {
        let store_data = [0xa5, 0x5a];
        In { store_valid: true, store_last: true, store_address, store_bytes, store_data }
    }

    /// What becomes of a store: function and word, and whether it is dropped.
    fn told(decode: &mut BellDecode) -> (Option<(u8, u64)>, bool) {
        let out = decode.cycle(In::default());
        let rings = out.bell_valid.then_some((out.bell_function, out.bell_word));
        assert!(rings.is_some() || (out.bell_function, out.bell_word) == (0, 0));
        (rings, out.dropped_valid)
    }

    /// Sizes that gates cannot have are refused, and the least and greatest ones are not.
    #[test]
    fn sizes_are_bounded() {
        let builds =
            |functions, bits| std::panic::catch_unwind(|| BellDecode::new(functions, bits)).is_ok();
        assert!(builds(1, 1) && builds(8, 32));
        assert!(!builds(0, 8) && !builds(9, 8) && !builds(4, 0) && !builds(4, 33));
        assert_eq!(WINDOW_BITS, PAGE_SHIFT + FUNCTION_BITS + 1);
    }

    /// A word at the beginning of a function's page rings, with that function. It says so once.
    #[test]
    fn the_page_says_who_rings() {
        let mut decode = BellDecode::new(8, 32);
        for function in 0..8 {
            assert!(!decode.cycle(store(u16::from(function) << 12, 8)).bell_valid);
            assert_eq!(told(&mut decode), (Some((function, 0xa5)), false));
            assert_eq!(told(&mut decode), (None, false));
        }
        // One in every cycle.
        decode.cycle(store(0x1000, 8));
        assert_eq!(decode.cycle(store(0x2000, 8)).bell_function, 1);
        assert_eq!(told(&mut decode).0, Some((2, 0xa5)));
    }

    /// A store that is partial, longer, misaligned, of more beats, or of no function is dropped and
    /// counted, once. The next one rings all the same.
    #[test]
    fn other_stores_are_dropped() {
        let mut decode = BellDecode::new(5, 3);
        let wrong = [(0, 4), (0, 7), (0, 9), (0, 16), (8, 8), (1, 8), (0x800, 8), (0x5000, 8)];
        for (at, &(address, bytes)) in wrong.iter().chain(&[(0x8000, 8)]).enumerate() {
            decode.cycle(store(address, bytes));
            let out = decode.cycle(In::default());
            assert!(out.dropped_valid && !out.bell_valid, "{address:x} {bytes}");
            assert_eq!(out.dropped as usize, (at + 1) % 8, "the count has 3 bits");
            decode.cycle(store(0x4000, 8));
            assert_eq!(told(&mut decode), (Some((4, 0xa5)), false));
        }
        // Nothing is said of a beat that is none, or before the last one.
        decode.cycle(In { store_valid: false, ..store(0, 8) });
        assert_eq!(told(&mut decode), (None, false));
        for store_last in [false, false, true] {
            assert_eq!(told(&mut decode), (None, false));
            decode.cycle(In { store_last, ..store(0, 8) });
        }
        assert_eq!(told(&mut decode), (None, true));
        decode.cycle(store(0, 8));
        assert_eq!(told(&mut decode), (Some((0, 0xa5)), false));
        assert_eq!(decode.cycle(In::default()).dropped, 2);
    }
}
