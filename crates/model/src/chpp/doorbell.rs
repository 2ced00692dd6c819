//! The doorbell window and its FIFOs (C-31, C-32; cHPP section 4.1), and the arbiter over them
//! (C-40, C-41; Fig. 13).

use super::config::NicConfig;
use crate::engine::{Arbiter, Random};
use crate::stats::Queue;
use crate::units::Time;

/// A doorbell on its way to the engine.
#[derive(Clone)]
pub struct Doorbell {
    /// The function whose window the store hit.
    pub function: usize,
    /// The written word, see `bellwire_wire::doorbell`.
    pub word: u64,
    /// Its operation, for the journal; the hardware does not know it.
    pub operation: u32,
    /// Its descriptor, if a processor stored it into the interface (B-01).
    pub stored: Option<Vec<u8>>,
}

/// One FIFO for each function; the address of a doorbell selects its FIFO.
pub struct Doorbells {
    /// By function.
    pub fifos: Vec<Queue<Doorbell>>,
    /// Bitmask: functions with nonempty FIFOs.
    filled: u64,
    depth: usize,
    arbiter: Arbiter,
    /// Doorbells lost to a full FIFO. Software must avoid that (C-33).
    pub overflowed: u64,
}

impl Doorbells {
    /// Empty FIFOs.
    pub fn new(config: &NicConfig, random: &mut Random) -> Doorbells {
        let arbiter = config.arbitration.arbiter(config.functions, random);
        Doorbells {
            fifos: vec![Queue::default(); config.functions],
            filled: 0,
            depth: config.doorbell_depth,
            arbiter,
            overflowed: 0,
        }
    }

    /// A doorbell arrives; it is lost if its FIFO is full.
    pub fn push(&mut self, doorbell: Doorbell, now: Time) {
        let function = doorbell.function;
        if self.fifos[function].len() == self.depth {
            self.overflowed += 1;
            return;
        }
        self.filled |= 1 << function;
        self.fifos[function].push(now, doorbell);
    }

    /// The doorbell that the arbiter grants.
    pub fn pop(&mut self, now: Time) -> Option<Doorbell> {
        let function = self.arbiter.grant(self.filled)?;
        let doorbell = self.fifos[function].pop(now);
        if self.fifos[function].is_empty() {
            self.filled &= !(1 << function);
        }
        doorbell
    }

    /// Whether no doorbell waits.
    pub fn is_empty(&self) -> bool {
        self.filled == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chpp::config::Config;
    use crate::cycle::doorbell_arb::{self, DoorbellArb};
    use crate::cycle::doorbell_fifo::{self, DoorbellFifo};

    /// Each function has two places; a third doorbell is lost and counted, beside the other
    /// functions. Functions take turns, and each keeps its order.
    // shows: C-32
    #[test]
    fn fifos_are_bounded_and_take_turns() {
        let mut config = Config::prototype().nic;
        config.doorbell_depth = 2;
        let mut doorbells = Doorbells::new(&config, &mut Random::new(1));
        assert!(doorbells.is_empty() && doorbells.pop(Time::ZERO).is_none());
        for word in 0..3 {
            for function in [1, 4] {
                let doorbell = Doorbell { function, word, operation: 0, stored: None };
                doorbells.push(doorbell, Time::ZERO);
                assert!(!doorbells.is_empty());
            }
        }
        assert_eq!((doorbells.overflowed, doorbells.fifos[1].len()), (2, 2));
        let mut popped = Vec::new();
        while let Some(doorbell) = doorbells.pop(Time::ZERO) {
            popped.push((doorbell.function, doorbell.word));
        }
        let first = popped[0].0;
        assert_eq!(popped, [(first, 0), (5 - first, 0), (first, 1), (5 - first, 1)]);
        assert!(doorbells.is_empty());
    }

    /// The blocks `cycle::doorbell_fifo` and `cycle::doorbell_arb` take the same doorbells in the
    /// same cycles, drop the same ones, and hold as many of each function. Doorbells are random,
    /// and the engines are busy at times. There a place is in use up to the end of the cycle in
    /// which its doorbell is taken, and a doorbell waits from the cycle after it came.
    // shows: C-32
    #[test]
    fn gates_take_the_same_doorbells() {
        for (functions, depth, seed) in [(8, 32, 1), (8, 2, 2), (5, 3, 3), (1, 1, 4)] {
            let mut random = Random::new(seed);
            let mut config = Config::prototype().nic;
            (config.functions, config.doorbell_depth) = (functions, depth);
            let mut doorbells = Doorbells::new(&config, &mut random);
            // Gates begin with function 0, behind the last one.
            doorbells.arbiter.serve(functions - 1);
            let (mut fifo, mut arb) =
                (DoorbellFifo::new(functions, depth, 32), DoorbellArb::new(functions));
            // The doorbell that waits for the engines.
            let mut offered: Option<(usize, u64)> = None;
            let (mut rates, mut waited) = ([4; 2], 0);
            for cycle in 0..100_000 {
                let now = Time::from_ps(4000 * cycle);
                if random.below(256) == 0 {
                    rates = rates.map(|_| random.below(9));
                }
                let [rings, out_ready] = rates.map(|rate| random.below(8) < rate);
                let (function, word) = (random.below(functions as u64) as usize, random.word());

                let seen = fifo.out();
                for (queue, count) in doorbells.fifos.iter().zip(seen.count) {
                    assert_eq!(queue.len(), usize::from(count), "cycle {cycle}");
                }
                assert_eq!(u64::from(seen.dropped), doorbells.overflowed);
                let chosen = arb.cycle(doorbell_arb::In { waits: seen.waits, out_ready });
                let at_output = (usize::from(chosen.out_function), seen.word);
                assert_eq!(chosen.out_valid.then_some(at_output), offered, "cycle {cycle}");
                fifo.cycle(doorbell_fifo::In {
                    in_valid: rings,
                    in_function: function as u8,
                    in_word: word,
                    take: chosen.take,
                    take_function: chosen.take_function,
                });

                let doorbell = Doorbell { function, word, operation: 0, stored: None };
                let finds_place = doorbells.fifos[function].len() < depth;
                if rings && !finds_place {
                    doorbells.push(doorbell.clone(), now);
                }
                if offered.is_none() || out_ready {
                    offered = doorbells.pop(now).map(|it| (it.function, it.word));
                    let taken = chosen.take.then_some(usize::from(chosen.take_function));
                    assert_eq!(taken, offered.map(|it| it.0), "cycle {cycle}");
                } else {
                    assert!(!chosen.take);
                    waited += 1;
                }
                if rings && finds_place {
                    doorbells.push(doorbell, now);
                }
            }
            assert!(doorbells.overflowed > 1000 && waited > 1000, "{functions} functions");
        }
    }
}
