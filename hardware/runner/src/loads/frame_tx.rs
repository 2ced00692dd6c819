//! TLPs of changing lengths and any content, link packets, and a line that stalls.

use bellwire_model::cycle::frame_tx::{FrameTx, In, Out};
use bellwire_model::cycle::replay_buf::SEQUENCE_BITS;
use bellwire_model::engine::Random;

use crate::bench::Load;

/// Beats of the longest TLP: 128 DW of payload and 5 DW around it.
const LONGEST: u64 = 34;

/// A framer between a replay buffer and a line.
pub struct FrameTxLoad {
    framer: FrameTx,
    random: Random,
    /// Remaining beats of the TLP that enters.
    entering: u64,
    sequence: u16,
    /// Of eight cycles, how many offer a beat, take one, and offer a link packet.
    rates: [u64; 3],
    /// Beats of a TLP, at most.
    longest: u64,
}

impl FrameTxLoad {
    /// A framer.
    pub fn new(seed: u64) -> FrameTxLoad {
        let (framer, random) = (FrameTx::new(), Random::new(seed));
        FrameTxLoad { framer, random, entering: 0, sequence: 0, rates: [8, 8, 1], longest: 3 }
    }
}

impl Load for FrameTxLoad {
    type In = In;
    type Out = Out;

    fn step(&mut self) -> (In, Out) {
        let random = &mut self.random;
        if random.below(256) == 0 {
            self.rates = [
                [1, 4, 7, 8][random.below(4) as usize],
                [0, 1, 4, 7, 8, 8][random.below(6) as usize],
                [0, 1, 4, 8][random.below(4) as usize],
            ];
            self.longest = [1, 2, 4, LONGEST][random.below(4) as usize];
        }
        let [in_valid, line_ready, dllp_valid] = self.rates.map(|rate| random.below(8) < rate);
        if self.entering == 0 {
            self.entering = 1 + random.below(self.longest);
            self.sequence = random.below(1 << SEQUENCE_BITS) as u16;
        }
        let input = In {
            in_valid,
            in_last: self.entering == 1,
            in_sequence: self.sequence,
            in_data: [random.word(), random.word()],
            dllp_valid,
            dllp_data: random.word(),
            line_ready,
        };
        let out = self.framer.cycle(input);
        self.entering -= u64::from(in_valid && out.in_ready);
        (input, out)
    }
}
