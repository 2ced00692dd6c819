//! `doorbell_fifo`: the doorbell FIFOs of all functions (C-31, C-32; cHPP section 4.1), as
//! `hardware/doorbell_fifo` builds them.
//!
//! Its rules are those of the event-driven model's FIFOs, with one doorbell in and one out a cycle.

use std::collections::VecDeque;

/// Functions, at most: a physical one and seven virtual ones (C-38).
pub const FUNCTIONS: usize = 8;

crate::ports! {
    /// What enters in a cycle.
    pub struct In {
        /// A doorbell comes.
        in_valid: bool = 1,
        /// The function whose window the store hit.
        in_function: u8 = 3,
        /// The written word.
        in_word: u64 = 64,
        /// A doorbell is taken, if one of this function waits.
        take: bool = 1,
        /// The function whose doorbell is taken.
        take_function: u8 = 3,
    }

    /// What stands at the outputs in a cycle.
    pub struct Out {
        /// Doorbells of this function wait.
        waits: [bool; FUNCTIONS] = FUNCTIONS,
        /// How many.
        count: [u8; FUNCTIONS] = 8 * FUNCTIONS,
        /// The doorbell that was taken last; zero before the first one.
        word: u64 = 64,
        /// The doorbell that came in the cycle before was dropped.
        dropped_valid: bool = 1,
        /// Its function; zero if none was dropped.
        dropped_function: u8 = 3,
        /// Doorbells that were dropped since reset; behind its highest number comes zero.
        dropped: u32 = 32,
    }
}

/// A FIFO for each function. A doorbell that enters in cycle `t` can be taken from `t + 1` on, and
/// stands at the output a cycle later.
#[derive(Clone, Debug)]
pub struct DoorbellFifo {
    /// By function: the doorbells that wait, oldest first.
    fifos: Vec<VecDeque<u64>>,
    depth: usize,
    word: u64,
    /// The function whose doorbell was dropped in the cycle before.
    told: Option<u8>,
    dropped: u32,
    /// The highest number that `dropped` can have.
    highest: u32,
}

impl DoorbellFifo {
    /// Empty FIFOs of `depth` doorbells each. The number of dropped doorbells has `dropped_bits`
    /// bits.
    ///
    /// # Panics
    /// Unless there are 1 to 8 functions, 1 to 255 places and 1 to 32 bits.
    pub fn new(functions: usize, depth: usize, dropped_bits: u32) -> DoorbellFifo {
        assert!((1..=FUNCTIONS).contains(&functions), "1 to {FUNCTIONS} functions");
        assert!((1..=255).contains(&depth), "1 to 255 places");
        assert!((1..=32).contains(&dropped_bits), "1 to 32 bits");
        DoorbellFifo {
            fifos: vec![VecDeque::with_capacity(depth); functions],
            depth,
            word: 0,
            told: None,
            dropped: 0,
            highest: u32::MAX >> (32 - dropped_bits),
        }
    }

    /// What stands at the outputs in this cycle; it does not depend on what enters.
    #[inline]
    pub fn out(&self) -> Out {
        let mut out = Out {
            word: self.word,
            dropped_valid: self.told.is_some(),
            dropped_function: self.told.unwrap_or(0),
            dropped: self.dropped,
            ..Out::default()
        };
        for (function, fifo) in self.fifos.iter().enumerate() {
            out.waits[function] = !fifo.is_empty();
            out.count[function] = fifo.len() as u8;
        }
        out
    }

    /// One cycle.
    #[inline]
    pub fn cycle(&mut self, input: In) -> Out {
        let out = self.out();
        // A place is free from the cycle after its doorbell was taken.
        let fifo = self.fifos.get(usize::from(input.in_function));
        let has_place = fifo.is_some_and(|fifo| fifo.len() < self.depth);
        if input.take {
            let fifo = self.fifos.get_mut(usize::from(input.take_function));
            self.word = fifo.and_then(VecDeque::pop_front).unwrap_or(self.word);
        }
        if input.in_valid && has_place {
            self.fifos[usize::from(input.in_function)].push_back(input.in_word);
        }
        let drops = input.in_valid && !has_place;
        self.told = drops.then_some(input.in_function);
        self.dropped = self.dropped.wrapping_add(drops.into()) & self.highest;
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chpp::Config;

    fn ring(in_function: u8, in_word: u64) -> In {
        In { in_valid: true, in_function, in_word, ..In::default() }
    }

    fn take(take_function: u8) -> In {
        In { take: true, take_function, ..In::default() }
    }

    /// Each of the paper's 8 functions has places for 32 doorbells, whatever the others have. The
    /// next one is dropped, told and counted. Doorbells of a function keep their order.
    // shows: C-32
    #[test]
    fn each_function_has_its_places() {
        let nic = Config::prototype().nic;
        assert_eq!((nic.functions, nic.doorbell_depth), (FUNCTIONS, 32));
        let mut fifo = DoorbellFifo::new(FUNCTIONS, 32, 32);
        let word = |function: u8, number: u64| 100 * u64::from(function) + number;
        for (dropped, function) in (1..).zip([3, 7, 0, 1, 2, 4, 5, 6]) {
            for number in 0..32 {
                fifo.cycle(ring(function, word(function, number)));
                assert!(!fifo.out().dropped_valid);
            }
            fifo.cycle(ring(function, word(function, 32)));
            let out = fifo.out();
            assert_eq!((out.dropped_valid, out.dropped_function), (true, function));
            assert_eq!(out.dropped, dropped);
        }
        assert_eq!((fifo.out().count, fifo.out().waits), ([32; FUNCTIONS], [true; FUNCTIONS]));
        for number in 0..32 {
            for function in 0..FUNCTIONS as u8 {
                fifo.cycle(take(function));
                assert_eq!(fifo.out().word, word(function, number));
            }
        }
        assert_eq!((fifo.out().count, fifo.out().waits), ([0; FUNCTIONS], [false; FUNCTIONS]));
    }

    /// A doorbell waits in the next cycle, and stands at the output in the cycle after it was
    /// taken. It stays there until the next one is taken, also when an empty FIFO is asked for one.
    #[test]
    fn a_doorbell_takes_two_cycles() {
        let mut fifo = DoorbellFifo::new(2, 2, 32);
        assert!(!fifo.cycle(ring(1, 7)).waits[1]);
        let out = fifo.cycle(take(1));
        assert_eq!((&out.waits[..2], out.count[1], out.word), (&[false, true][..], 1, 0));
        let out = fifo.cycle(take(1));
        assert_eq!((out.waits[1], out.word), (false, 7));
        fifo.cycle(take(0));
        fifo.cycle(ring(0, 8));
        assert_eq!(fifo.cycle(take(0)).word, 7);
        assert_eq!(fifo.out().word, 8);
    }

    /// A place can be used from the cycle after its doorbell was taken.
    #[test]
    fn a_place_is_free_a_cycle_later() {
        let mut fifo = DoorbellFifo::new(1, 1, 32);
        fifo.cycle(ring(0, 5));
        let both = In { take: true, ..ring(0, 6) };
        assert!(!fifo.cycle(both).dropped_valid);
        // Nothing waits now, so this one only enters.
        let out = fifo.cycle(both);
        assert_eq!((out.dropped_valid, out.dropped, out.count[0], out.word), (true, 1, 0, 5));
        let out = fifo.cycle(take(0));
        assert_eq!((out.dropped_valid, out.dropped, out.count[0], out.word), (false, 1, 1, 5));
        assert_eq!(fifo.out().word, 6);
    }

    /// A doorbell of a function that does not exist is dropped, too. The number of dropped ones
    /// wraps, and only doorbells count.
    #[test]
    fn dropped_doorbells_are_told_and_counted() {
        let mut fifo = DoorbellFifo::new(5, 1, 2);
        fifo.cycle(ring(2, 1));
        let told = [5, 7, 2, 6, 2].map(|function| {
            fifo.cycle(ring(function, 2));
            let out = fifo.cycle(In { in_function: function, ..take(6) });
            (out.dropped_valid, out.dropped_function, out.dropped)
        });
        assert_eq!(told, [(5, 1), (7, 2), (2, 3), (6, 0), (2, 1)].map(|it| (true, it.0, it.1)));
        assert!(!fifo.out().dropped_valid);
        assert_eq!((fifo.out().count[2], fifo.out().word), (1, 0));
    }
}
