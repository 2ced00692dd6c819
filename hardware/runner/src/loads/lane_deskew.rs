//! Lanes with a skew each, which is sometimes drawn anew, and with symbols that are hit. Some lanes
//! are later than any may be.

use std::collections::VecDeque;

use bellwire_model::cycle::lane_deskew::{In, LaneDeskew, Out};
use bellwire_model::cycle::lane_stripe::{self, LaneStripe};
use bellwire_model::engine::Random;

use crate::bench::Load;

const LANES: usize = 8;

/// A receiver behind lanes and a spreader.
pub struct LaneDeskewLoad {
    deskew: LaneDeskew,
    stripe: LaneStripe,
    random: Random,
    max_skew: u64,
    /// What is on each lane.
    lanes: [VecDeque<(u8, u16)>; LANES],
    /// Of 256 words of a lane, how many are hit.
    hit: u64,
}

impl LaneDeskewLoad {
    /// A receiver that takes out so much skew.
    pub fn new(max_skew: usize, seed: u64) -> LaneDeskewLoad {
        let mut load = LaneDeskewLoad {
            deskew: LaneDeskew::new(max_skew),
            stripe: LaneStripe::new(4 * max_skew as u64 + 5),
            random: Random::new(seed),
            max_skew: max_skew as u64,
            lanes: Default::default(),
            hit: 0,
        };
        load.change();
        // What lanes carry before the first mark comes.
        for lane in &mut load.lanes {
            lane.extend((0..10).map(|_| load.random.word()).map(|word| (0, word as u16)));
        }
        load
    }

    fn change(&mut self) {
        let random = &mut self.random;
        self.hit = [0, 0, 1, 16][random.below(4) as usize];
        let too_late = random.below(8) == 0;
        for lane in &mut self.lanes {
            let skew = random.below(self.max_skew + 1 + u64::from(too_late));
            let word = random.word();
            lane.resize(skew as usize, ((word >> 16 & 3) as u8, word as u16));
        }
    }
}

impl Load for LaneDeskewLoad {
    type In = In;
    type Out = Out;

    fn step(&mut self) -> (In, Out) {
        if self.random.below(512) == 0 {
            self.change();
        }
        let sent = self.stripe.cycle(lane_stripe::In {
            line_valid: self.random.below(8) > 0,
            line_k: self.random.word() as u16,
            line_data: [self.random.word(), self.random.word()],
        });
        let mut input = In::default();
        for (at, lane) in self.lanes.iter_mut().enumerate() {
            lane.push_back((sent.lane_k[at], sent.lane_data[at]));
            let (mut k, mut data) = lane.pop_front().expect("one was put");
            if self.random.below(256) < self.hit {
                match self.random.below(4) {
                    0 => k ^= 1 << self.random.below(2),
                    1 => (k, data) = (3, 0x1cbc),
                    _ => data ^= 1 << self.random.below(16),
                }
            }
            (input.lane_k[at], input.lane_data[at]) = (k, data);
        }
        (input, self.deskew.cycle(input))
    }
}
