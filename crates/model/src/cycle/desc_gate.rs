//! `desc_gate`: lets doorbells and descriptors from here go on when there are places for what
//! becomes of them (C-13, C-25, C-27, C-39; cHPP sections 3.3, 3.4 and 4.3), as
//! `hardware/desc_gate` builds it.
//!
//! Each doorbell claims a place for its event before it is taken. So a function whose software does
//! not read events holds up its own doorbells only. A GET claims a place of the packer of GETs
//! before its descriptor is taken apart. So it never waits in front of an answer to a GET.

use bellwire_wire::primitive::Primitive;

use super::doorbell_fifo::FUNCTIONS;
use super::key_window::FUNCTION_BITS;

crate::ports! {
    /// What enters in a cycle.
    pub struct In {
        /// By function: doorbells wait.
        waits: [bool; FUNCTIONS] = FUNCTIONS,
        /// A doorbell is taken from its FIFO.
        take: bool = 1,
        /// Its function.
        take_function: u8 = FUNCTION_BITS,
        /// By function: free places for events.
        room: [u8; FUNCTIONS] = 8 * FUNCTIONS,
        /// An operation takes such a place.
        move_valid: bool = 1,
        /// It is a GET.
        move_get: bool = 1,
        /// Its function.
        move_function: u8 = FUNCTION_BITS,
        /// The report of a descriptor takes such a place.
        report_valid: bool = 1,
        /// Its function.
        report_function: u8 = FUNCTION_BITS,
        /// A GET has left its packer.
        credit: bool = 1,
        /// A word of a descriptor is offered.
        word_valid: bool = 1,
        /// It is the last one.
        word_last: bool = 1,
        /// It has no data.
        word_void: bool = 1,
        /// Its low bits: in the first word the code of the primitive.
        word_primitive: u8 = 4,
        /// What takes descriptors apart takes a word.
        to_ready: bool = 1,
    }

    /// What stands at the outputs in a cycle.
    pub struct Out {
        /// By function: doorbells wait that may go on.
        may_ring: [bool; FUNCTIONS] = FUNCTIONS,
        /// The word is taken, if one is offered.
        word_ready: bool = 1,
        /// It is offered to what takes descriptors apart.
        to_valid: bool = 1,
    }
}

/// The gate.
///
/// A doorbell that is taken in cycle `t` counts from `t + 1` on. So does all else. Words go on in
/// the cycle in which they come.
#[derive(Clone, Debug)]
pub struct DescGate {
    /// By function: doorbells whose event has no place yet.
    claims: Vec<u8>,
    /// Places of the packer of GETs.
    gets: usize,
    /// Descriptors that were let in and have no place for their event yet, and GETs among them that
    /// may still reach their packer.
    open: usize,
    open_gets: usize,
    /// GETs that have reached it and not left.
    held_gets: usize,
    /// The first word of a descriptor was let in, and its last one was not.
    mid: bool,
}

impl DescGate {
    /// A gate for this many functions, and a packer with this many places for GETs.
    ///
    /// # Panics
    /// Unless there are 1 to 8 functions, and a place.
    pub fn new(functions: usize, gets: usize) -> DescGate {
        assert!((1..=FUNCTIONS).contains(&functions), "1 to {FUNCTIONS} functions");
        assert!(gets > 0, "a place");
        let claims = vec![0; functions];
        DescGate { claims, gets, open: 0, open_gets: 0, held_gets: 0, mid: false }
    }

    /// The first word of a GET's descriptor stands at the input, if a word does.
    fn is_get(&self, input: &In) -> bool {
        !self.mid && !input.word_void && input.word_primitive == Primitive::Get.code()
    }

    /// What stands at the outputs in this cycle, by what enters.
    #[inline]
    pub fn out(&self, input: &In) -> Out {
        let is_get = self.is_get(input);
        let may_go = !is_get || self.open_gets + self.held_gets < self.gets;
        let mut out = Out {
            word_ready: may_go && input.to_ready,
            to_valid: may_go && input.word_valid,
            ..Out::default()
        };
        for (function, &claims) in self.claims.iter().enumerate() {
            out.may_ring[function] = input.waits[function] && input.room[function] > claims;
        }
        out
    }

    /// One cycle. Only doorbells that may ring are taken. Only places are taken, and only credits
    /// come back, for what was let in.
    #[inline]
    pub fn cycle(&mut self, input: In) -> Out {
        let out = self.out(&input);
        let is_get = self.is_get(&input);
        if input.take {
            self.claims[usize::from(input.take_function)] += 1;
        }
        if input.move_valid {
            self.claims[usize::from(input.move_function)] -= 1;
            self.open -= 1;
            self.open_gets -= usize::from(input.move_get);
            self.held_gets += usize::from(input.move_get);
        }
        if input.report_valid {
            self.claims[usize::from(input.report_function)] -= 1;
            self.open -= 1;
        }
        self.held_gets -= usize::from(input.credit);
        if self.open == 0 {
            // Those that have not reached their packer were refused.
            self.open_gets = 0;
        }
        if out.to_valid && input.to_ready {
            self.open += usize::from(!self.mid);
            self.open_gets += usize::from(is_get);
            self.mid = !input.word_last;
        }
        out
    }
}

#[cfg(test)]
mod tests;
