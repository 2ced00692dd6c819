//! Packets of any length, a receiver that waits at random, and as much as fits in between.

use bellwire_model::cycle::tlp_wrap::{In, Out, TlpWrap};
use bellwire_model::engine::Random;

use crate::bench::Load;

/// A maker of TLPs, and what is around it.
pub struct TlpWrapLoad {
    wrap: TlpWrap,
    random: Random,
    /// Beats of the packet that comes that have not entered.
    left: u64,
    /// Of eight cycles, how many offer a beat, and how many take one; beats of packets, at most.
    offers: u64,
    takes: u64,
    longest: u64,
}

impl TlpWrapLoad {
    /// One with this much room.
    pub fn new(channel: u8, beats: usize, segments: usize, seed: u64) -> TlpWrapLoad {
        TlpWrapLoad {
            wrap: TlpWrap::new(channel, beats, segments),
            random: Random::new(seed),
            left: 0,
            offers: 8,
            takes: 8,
            longest: 9,
        }
    }
}

impl Load for TlpWrapLoad {
    type In = In;
    type Out = Out;

    fn step(&mut self) -> (In, Out) {
        let random = &mut self.random;
        if random.below(256) == 0 {
            self.offers = [1, 4, 8, 8][random.below(4) as usize];
            self.takes = [0, 4, 7, 8, 8][random.below(5) as usize];
            self.longest = [1, 3, 9, 40, 140][random.below(5) as usize];
        }
        if self.left == 0 {
            self.left = 1 + random.below(self.longest);
        }
        let input = In {
            in_valid: random.below(8) < self.offers,
            in_last: self.left == 1,
            in_to: random.below(16) as u8,
            in_data: [random.word(), random.word()],
            out_ready: random.below(8) < self.takes,
        };
        let out = self.wrap.cycle(input);
        self.left -= u64::from(input.in_valid && out.in_ready);
        (input, out)
    }
}
