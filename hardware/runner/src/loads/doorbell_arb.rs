//! Functions that have doorbells at rates that change, and engines that are busy at times. A
//! function may also lose a doorbell without being served: the arbiter does not keep who waits.

use bellwire_model::cycle::doorbell_arb::{DoorbellArb, In, Out};
use bellwire_model::cycle::doorbell_fifo::FUNCTIONS;
use bellwire_model::engine::Random;

use crate::bench::Load;

/// An arbiter between FIFOs and engines.
pub struct DoorbellArbLoad {
    arb: DoorbellArb,
    random: Random,
    functions: usize,
    /// By function: a doorbell waits.
    waits: [bool; FUNCTIONS],
    /// Of eight cycles, how many bring a doorbell, take one at the output, and change who waits.
    rates: [u64; 3],
}

impl DoorbellArbLoad {
    /// An arbiter over this many functions.
    pub fn new(functions: usize, seed: u64) -> DoorbellArbLoad {
        DoorbellArbLoad {
            arb: DoorbellArb::new(functions),
            random: Random::new(seed),
            functions,
            waits: [false; FUNCTIONS],
            rates: [4; 3],
        }
    }
}

impl Load for DoorbellArbLoad {
    type In = In;
    type Out = Out;

    fn step(&mut self) -> (In, Out) {
        let random = &mut self.random;
        if random.below(256) == 0 {
            self.rates = [random.below(9), random.below(9), [0, 1, 8][random.below(3) as usize]];
        }
        let [rings, out_ready, changes] = self.rates.map(|rate| random.below(8) < rate);
        if rings {
            self.waits[random.below(self.functions as u64) as usize] = true;
        }
        if changes {
            for waits in &mut self.waits[..self.functions] {
                *waits = random.below(2) == 0;
            }
        }
        let input = In { waits: self.waits, out_ready };
        let out = self.arb.cycle(input);
        if out.take {
            // At times the function has another one.
            self.waits[usize::from(out.take_function)] = self.random.below(2) == 0;
        }
        (input, out)
    }
}
