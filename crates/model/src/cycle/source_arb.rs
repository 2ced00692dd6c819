//! `source_arb`: the arbiter of what is asked of `key_window` about sources (C-31, C-39; cHPP
//! sections 3.4, 4.1 and 4.3), as `hardware/source_arb` builds it.
//!
//! Two blocks that take descriptors apart ask about sources, and cannot wait once they have the
//! word. So this block holds back words. It asks about each doorbell before its descriptor is read.

use bellwire_wire::ADDRESS_BITS;

use super::key_window::FUNCTION_BITS;

/// Blocks that take descriptors apart: one for those from here, one for GETs from elsewhere (C-27).
pub const EXTRACTS: usize = 2;
const ADDRESS_WIDTH: usize = ADDRESS_BITS as usize;

crate::ports! {
    /// What enters in a cycle.
    pub struct In {
        /// By descriptor extract: a word for it is offered.
        word_valid: [bool; EXTRACTS] = EXTRACTS,
        /// It takes a word.
        to_ready: [bool; EXTRACTS] = EXTRACTS,
        /// It asks about a source, with the word that it takes in this cycle.
        ask_valid: [bool; EXTRACTS] = EXTRACTS,
        /// The function.
        ask_function: [u8; EXTRACTS] = EXTRACTS * FUNCTION_BITS,
        /// Global address of the source's first byte.
        ask_address: [u64; EXTRACTS] = EXTRACTS * ADDRESS_WIDTH,
        /// How many bytes.
        ask_length: [u64; EXTRACTS] = EXTRACTS * ADDRESS_WIDTH,
        /// A doorbell is offered.
        bell_valid: bool = 1,
        /// The function that rang.
        bell_function: u8 = FUNCTION_BITS,
        /// Its word.
        bell_word: u64 = 64,
        /// What was asked in the cycle before lies in its function's window.
        source_fits: bool = 1,
        /// The fetch of descriptors takes the doorbell, if one is offered.
        out_ready: bool = 1,
    }

    /// What stands at the outputs in a cycle.
    pub struct Out {
        /// By descriptor extract: the word for it is taken, if one is offered.
        word_ready: [bool; EXTRACTS] = EXTRACTS,
        /// That word is offered to it.
        to_valid: [bool; EXTRACTS] = EXTRACTS,
        /// The doorbell is taken.
        bell_ready: bool = 1,
        /// `key_window` is asked about a source.
        source_valid: bool = 1,
        /// The function; what stands at the port of doorbells, if no descriptor extract asks.
        source_function: u8 = FUNCTION_BITS,
        /// Global address of the first byte, likewise.
        source_address: u64 = ADDRESS_WIDTH,
        /// How many bytes, likewise.
        source_length: u64 = ADDRESS_WIDTH,
        /// The doorbell is offered to the fetch of descriptors.
        out_valid: bool = 1,
        /// What it names does not lie in its function's window.
        out_outside: bool = 1,
    }
}

/// Who goes before all others in a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// The first descriptor extract, then the second one, then the doorbell.
    Usual,
    /// The second descriptor extract: the first one asked before it. Then the doorbell.
    Second,
    /// The doorbell alone: others asked before it.
    Bell,
}

/// An arbiter. Whoever is passed over goes first in the next cycle, or in the one behind it.
///
/// What is asked in cycle `t` is answered in `t + 1`, and then the doorbell is offered.
#[derive(Clone, Debug)]
pub struct SourceArb {
    turn: Turn,
    /// The doorbell was asked about in the cycle before.
    asked: bool,
    /// The answer of an earlier cycle: it lies outside.
    answer: Option<bool>,
}

impl Default for SourceArb {
    fn default() -> SourceArb {
        SourceArb { turn: Turn::Usual, asked: false, answer: None }
    }
}

impl SourceArb {
    /// Which of the descriptor extracts may take a word, if the first one asks or does not.
    pub fn may_take(&self, first_asks: bool) -> [bool; EXTRACTS] {
        [self.turn == Turn::Usual, self.turn != Turn::Bell && !first_asks]
    }

    /// Whether the doorbell that is offered lies outside of its window, if one is offered, by the
    /// answer of this cycle.
    pub fn outside(&self, source_fits: bool) -> Option<bool> {
        self.answer.or(self.asked.then_some(!source_fits))
    }

    /// What stands at the outputs in this cycle, by what enters. There are few registers to copy.
    #[inline]
    pub fn out(&self, input: &In) -> Out {
        self.clone().cycle(*input)
    }

    /// One cycle.
    #[inline]
    pub fn cycle(&mut self, input: In) -> Out {
        let first = self.turn == Turn::Usual && input.ask_valid[0];
        let may_take = self.may_take(first);
        let second = may_take[1] && input.ask_valid[1];
        let outside = self.outside(input.source_fits);
        let out_valid = outside.is_some();
        let bell_waits = input.bell_valid && !out_valid;
        let bell = bell_waits && !first && !second;
        let mut out = Out {
            word_ready: [0, 1].map(|each| may_take[each] && input.to_ready[each]),
            to_valid: [0, 1].map(|each| may_take[each] && input.word_valid[each]),
            bell_ready: out_valid && input.out_ready,
            source_valid: first || second || bell,
            out_valid,
            out_outside: outside.unwrap_or(false),
            ..Out::default()
        };
        if first || second {
            let of = usize::from(second);
            out.source_function = input.ask_function[of];
            out.source_address = input.ask_address[of];
            out.source_length = input.ask_length[of];
        } else {
            out.source_function = input.bell_function;
            out.source_address = input.bell_word & ((1 << ADDRESS_BITS) - 1);
            out.source_length = input.bell_word >> 48;
        }
        let is_held = first && input.word_valid[1] && input.to_ready[1];
        self.turn = if is_held {
            Turn::Second
        } else if bell_waits && !bell {
            Turn::Bell
        } else {
            Turn::Usual
        };
        self.answer = outside.filter(|_| !input.out_ready);
        self.asked = bell;
        out
    }
}

#[cfg(test)]
mod tests;
