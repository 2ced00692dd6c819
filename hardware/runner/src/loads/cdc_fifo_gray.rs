//! Two clocks at rates that change, so that the FIFO is at times full and at times empty, and its
//! counts are at times caught while they change.

use bellwire_model::cycle::cdc_fifo_gray::{CdcFifoGray, In, Out};
use bellwire_model::engine::Random;

use crate::bench::Load;

/// A FIFO between a source and a sink with clocks of their own.
pub struct CdcFifoGrayLoad {
    fifo: CdcFifoGray,
    random: Random,
    /// Of eight steps, how many are edges of the writing side, offer a word, are edges of the
    /// reading side, and take a word.
    rates: [u64; 4],
}

impl CdcFifoGrayLoad {
    /// A FIFO of `depth` words.
    pub fn new(depth: usize, seed: u64) -> CdcFifoGrayLoad {
        CdcFifoGrayLoad { fifo: CdcFifoGray::new(depth), random: Random::new(seed), rates: [4; 4] }
    }
}

impl Load for CdcFifoGrayLoad {
    type In = In;
    type Out = Out;

    fn step(&mut self) -> (In, Out) {
        let random = &mut self.random;
        if random.below(256) == 0 {
            self.rates = [0; 4].map(|_| random.below(9));
        }
        let [in_tick, in_valid, out_tick, out_ready] =
            self.rates.map(|rate| random.below(8) < rate);
        let input = In { in_tick, in_valid, in_data: random.word(), out_tick, out_ready };
        (input, self.fifo.cycle(input))
    }
}
