//! `doorbell_arb`: the arbiter over the doorbell FIFOs (C-41; cHPP sections 4.1, 5.5), as
//! `hardware/doorbell_arb` builds it.
//!
//! It chooses as the event-driven model's arbiter does under its fair policy, once a cycle.

use super::doorbell_fifo::FUNCTIONS;

crate::ports! {
    /// What enters in a cycle.
    pub struct In {
        /// Doorbells of this function wait.
        waits: [bool; FUNCTIONS] = FUNCTIONS,
        /// The descriptor engines take the doorbell at the output, if there is one.
        out_ready: bool = 1,
    }

    /// What stands at the outputs in a cycle.
    pub struct Out {
        /// A doorbell is taken from a FIFO.
        take: bool = 1,
        /// Its function; zero if none is taken.
        take_function: u8 = 3,
        /// A doorbell is offered to the descriptor engines: the one that was taken last.
        out_valid: bool = 1,
        /// Its function; zero if none is offered.
        out_function: u8 = 3,
    }
}

/// An arbiter. The function behind the one that was served last goes first; after reset, function 0
/// does.
#[derive(Clone, Debug)]
pub struct DoorbellArb {
    functions: usize,
    /// The function whose turn is next.
    next: usize,
    /// The function of the doorbell at the output.
    offered: Option<u8>,
}

impl DoorbellArb {
    /// An arbiter over this many functions.
    ///
    /// # Panics
    /// Unless there are 1 to 8.
    pub fn new(functions: usize) -> DoorbellArb {
        assert!((1..=FUNCTIONS).contains(&functions), "1 to {FUNCTIONS} functions");
        DoorbellArb { functions, next: 0, offered: None }
    }

    /// What stands at the outputs in this cycle, by what enters. There are few registers to copy.
    #[inline]
    pub fn out(&self, input: &In) -> Out {
        self.clone().cycle(*input)
    }

    /// One cycle.
    #[inline]
    pub fn cycle(&mut self, input: In) -> Out {
        let mut out = Out {
            out_valid: self.offered.is_some(),
            out_function: self.offered.unwrap_or(0),
            ..Out::default()
        };
        if out.out_valid && !input.out_ready {
            return out;
        }
        let mut turns = (0..self.functions).map(|step| (self.next + step) % self.functions);
        let taken = turns.find(|&function| input.waits[function]);
        if let Some(function) = taken {
            self.next = function + 1;
            (out.take, out.take_function) = (true, function as u8);
        }
        self.offered = out.take.then_some(out.take_function);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cycles in which these functions have doorbells, and the engines take them or do not.
    fn with(waiting: &[usize], out_ready: bool) -> In {
        In { waits: std::array::from_fn(|at| waiting.contains(&at)), out_ready }
    }

    /// The functions that are taken, and those that are offered.
    fn served(out: Out) -> (Option<u8>, Option<u8>) {
        (out.take.then_some(out.take_function), out.out_valid.then_some(out.out_function))
    }

    /// Functions take turns, the first one after reset, and one is taken in every cycle. The one
    /// that is taken is offered in the next cycle. Those without a doorbell are passed over.
    #[test]
    fn functions_take_turns() {
        let mut arb = DoorbellArb::new(5);
        let mut taken = |waiting: &[usize]| served(arb.cycle(with(waiting, true)));
        assert_eq!(taken(&[]), (None, None));
        assert_eq!(taken(&[0, 1, 2, 3, 4]), (Some(0), None));
        assert_eq!(taken(&[0, 1, 2, 3, 4]), (Some(1), Some(0)));
        assert_eq!(taken(&[0, 1, 4]), (Some(4), Some(1)));
        assert_eq!(taken(&[0, 1, 4]), (Some(0), Some(4)));
        assert_eq!(taken(&[0, 1, 4]), (Some(1), Some(0)));
        assert_eq!(taken(&[1]), (Some(1), Some(1)));
        assert_eq!(taken(&[1]), (Some(1), Some(1)));
        assert_eq!(taken(&[0, 1]), (Some(0), Some(1)));
        assert_eq!(taken(&[]), (None, Some(0)));
        assert_eq!(taken(&[0, 3]), (Some(3), None));
    }

    /// While the engines are busy, one doorbell is offered and stays, and no other one is taken. No
    /// turn is lost meanwhile.
    #[test]
    fn a_busy_engine_takes_nothing() {
        let mut arb = DoorbellArb::new(FUNCTIONS);
        let mut taken = |waiting: &[usize], ready| served(arb.cycle(with(waiting, ready)));
        assert_eq!(taken(&[6, 7], false), (Some(6), None));
        for waiting in [&[6, 7][..], &[], &[0, 7]] {
            assert_eq!(taken(waiting, false), (None, Some(6)));
        }
        assert_eq!(taken(&[0, 7], true), (Some(7), Some(6)));
        assert_eq!(taken(&[0, 7], false), (None, Some(7)));
        assert_eq!(taken(&[], true), (None, Some(7)));
        assert_eq!(taken(&[0, 7], false), (Some(0), None));
    }
}
