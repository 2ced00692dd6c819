//! Writes of a few beats and records, at rates that change, with pauses within writes; a boundary
//! that stalls; and at times an upload module or a ring that offers something else, or no longer.

use bellwire_model::cycle::write_arb::{In, Out, WriteArb};
use bellwire_model::engine::Random;

use crate::bench::Load;

/// The arbiter between an upload module, rings and the boundary.
pub struct WriteArbLoad {
    arb: WriteArb,
    random: Random,
    /// What stands at the inputs until it is taken.
    asks: In,
    /// Of eight cycles, how many have a beat, a record, and a boundary that is ready.
    rates: [u64; 3],
    /// Of eight beats, how many are the last of their write; of 64 cycles, how many change what is
    /// asked for.
    ends: u64,
    wrong: u64,
}

impl WriteArbLoad {
    /// An idle one.
    pub fn new(seed: u64) -> WriteArbLoad {
        WriteArbLoad {
            arb: WriteArb::default(),
            random: Random::new(seed),
            asks: In::default(),
            rates: [8; 3],
            ends: 4,
            wrong: 0,
        }
    }
}

impl Load for WriteArbLoad {
    type In = In;
    type Out = Out;

    fn step(&mut self) -> (In, Out) {
        let random = &mut self.random;
        if random.below(256) == 0 {
            let mut one_of = |all: &[u64]| all[random.below(all.len() as u64) as usize];
            self.rates = [(); 3].map(|()| one_of(&[0, 1, 4, 8, 8]));
            (self.ends, self.wrong) = (one_of(&[1, 4, 8]), one_of(&[0, 0, 1, 16]));
        }
        let [uploads, events, takes] = self.rates;
        let changes = random.below(64) < self.wrong;
        let asks = &mut self.asks;
        if (!asks.upload_valid && random.below(8) < uploads) || changes {
            asks.upload_valid = !changes || random.below(2) == 0;
            asks.upload_last = random.below(8) < self.ends;
            asks.upload_function = random.below(8) as u8;
            asks.upload_address = random.below(1 << 40);
            asks.upload_bytes = random.below(1 << 13) as u16;
            asks.upload_data = [(); 2].map(|()| random.word());
        }
        if (!asks.event_valid && random.below(8) < events) || changes {
            asks.event_valid = !changes || random.below(2) == 0;
            asks.event_function = random.below(8) as u8;
            asks.event_address = random.below(1 << 40);
            asks.event_record = [(); 4].map(|()| random.word());
        }
        let input = In { out_ready: random.below(8) < takes, ..self.asks };
        let out = self.arb.cycle(input);
        self.asks.upload_valid &= !out.upload_ready;
        self.asks.event_valid &= !out.event_ready;
        (input, out)
    }
}
