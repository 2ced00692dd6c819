//! Words come and go at rates that change, so that the FIFO is at times full and at times empty.

use bellwire_model::cycle::stream_fifo::{In, Out, StreamFifo};
use bellwire_model::engine::Random;

use crate::bench::Load;

/// A FIFO between a source and a sink.
pub struct StreamFifoLoad {
    fifo: StreamFifo,
    random: Random,
    /// Of eight cycles, how many offer a word, and how many take one.
    rates: [u64; 2],
}

impl StreamFifoLoad {
    /// A FIFO of `depth` words.
    pub fn new(depth: usize, seed: u64) -> StreamFifoLoad {
        StreamFifoLoad { fifo: StreamFifo::new(depth), random: Random::new(seed), rates: [4; 2] }
    }
}

impl Load for StreamFifoLoad {
    type In = In;
    type Out = Out;

    fn step(&mut self) -> (In, Out) {
        let random = &mut self.random;
        if random.below(256) == 0 {
            self.rates = [random.below(9), random.below(9)];
        }
        let [offers, takes] = self.rates.map(|rate| random.below(8) < rate);
        let input = In { in_valid: offers, in_data: random.word(), out_ready: takes };
        (input, self.fifo.cycle(input))
    }
}
