//! Packets of all sizes, and updates that come at rates that change, late, again, or with any
//! number.

use bellwire_model::cycle::credit_gate::{CreditGate, DATA_BITS, HEADER_BITS, In, Out};
use bellwire_model::engine::Random;

use crate::bench::Load;

/// A gate between packets and a receiver that grants.
pub struct CreditGateLoad {
    gate: CreditGate,
    random: Random,
    /// The sums of all grants.
    headers: u64,
    data: u64,
    /// Of eight cycles, how many bring a packet and how many an update.
    rates: [u64; 2],
    /// Data credits of a packet, at most.
    longest: u64,
}

impl CreditGateLoad {
    /// A gate without credits.
    pub fn new(seed: u64) -> CreditGateLoad {
        let (gate, random) = (CreditGate::new(), Random::new(seed));
        CreditGateLoad { gate, random, headers: 0, data: 0, rates: [4; 2], longest: 32 }
    }
}

impl Load for CreditGateLoad {
    type In = In;
    type Out = Out;

    fn step(&mut self) -> (In, Out) {
        let random = &mut self.random;
        if random.below(256) == 0 {
            self.rates = [random.below(9), random.below(9)];
            self.longest = [0, 1, 32, (1 << DATA_BITS) - 1][random.below(4) as usize];
        }
        let [in_valid, update_valid] = self.rates.map(|rate| random.below(8) < rate);
        let mut input = In { in_valid, update_valid, ..In::default() };
        input.in_cost = random.below(self.longest + 1) as u16;
        if update_valid {
            match random.below(32) {
                // Another sum altogether.
                0 => (self.headers, self.data) = (random.word(), random.word()),
                // The same again.
                1..8 => {}
                _ => {
                    self.headers = self.headers.wrapping_add(random.below(3));
                    self.data = self.data.wrapping_add(random.below(self.longest + 2));
                }
            }
            input.update_headers = (self.headers % (1 << HEADER_BITS)) as u8;
            input.update_data = (self.data % (1 << DATA_BITS)) as u16;
        }
        (input, self.gate.cycle(input))
    }
}
