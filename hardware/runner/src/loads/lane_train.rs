//! A far end that trains, too, over lanes with a skew each. Some lanes die for a while, symbols are
//! hit, and both links ask to be trained anew.

use std::collections::VecDeque;

use bellwire_model::cycle::lane_stripe::{self, LaneStripe};
use bellwire_model::cycle::lane_train::{In, LaneTrain, Out, Shape};
use bellwire_model::engine::Random;

use crate::bench::Load;

const LANES: usize = 8;

type Word = (u8, u16);

/// Two ends and the lanes between them. The first one is compared with the gates.
pub struct LaneTrainLoad {
    ends: [LaneTrain; 2],
    stripes: [LaneStripe; 2],
    random: Random,
    lost_after: u64,
    /// What is on each lane towards each end.
    lanes: [[VecDeque<Word>; LANES]; 2],
    /// Lanes towards the first end, and to the second one, that carry nothing.
    dead: [u8; 2],
    /// Of 4,096 words of a lane, how many are hit; of as many cycles, how many ask.
    hit: u64,
    asks: u64,
    /// Neither end sends anything but marks and sets that were drawn.
    is_wild: bool,
}

impl LaneTrainLoad {
    /// Ends with these times.
    pub fn new(shape: Shape, seed: u64) -> LaneTrainLoad {
        let mut load = LaneTrainLoad {
            ends: [LaneTrain::new(shape), LaneTrain::new(shape)],
            stripes: [1, 1].map(|_: u8| LaneStripe::new(shape.lost_after / 3)),
            random: Random::new(seed),
            lost_after: shape.lost_after,
            lanes: Default::default(),
            dead: [0; 2],
            hit: 0,
            asks: 0,
            is_wild: false,
        };
        for lane in load.lanes.iter_mut().flatten() {
            let delay = 1 + load.random.below(8);
            lane.extend((0..delay).map(|_| (0, 0)));
        }
        load
    }

    fn change(&mut self) {
        let random = &mut self.random;
        self.dead = [0, 0].map(|none: u8| match random.below(6) {
            0 => 1 << random.below(8),
            1 => random.word() as u8,
            _ => none,
        });
        self.hit = [0, 0, 4, 64][random.below(4) as usize];
        self.asks = [0, 0, 1, 16][random.below(4) as usize];
        self.is_wild = random.below(8) == 0;
    }

    /// What comes over a lane in this cycle.
    fn carried(&mut self, word: Word) -> Word {
        let (mut k, mut data) = word;
        let random = &mut self.random;
        if self.is_wild && random.below(4) == 0 {
            return [(1, 0x4abc), (1, 0x45bc), (1, 0x45bc), (3, 0x1cbc)][random.below(4) as usize];
        }
        if random.below(4096) < self.hit {
            match random.below(4) {
                0 => k ^= 1 << random.below(2),
                1 => (k, data) = [(1, 0x4abc), (1, 0x45bc), (3, 0x1cbc)][random.below(3) as usize],
                _ => data ^= 1 << random.below(16),
            }
        }
        (k, data)
    }
}

impl Load for LaneTrainLoad {
    type In = In;
    type Out = Out;

    fn step(&mut self) -> (In, Out) {
        if self.random.below(2 * self.lost_after) == 0 {
            self.change();
        }
        let mut first = None;
        for at in 0..2 {
            let sent = self.stripes[at].cycle(lane_stripe::In {
                line_valid: true,
                line_k: self.random.word() as u16,
                line_data: [self.random.word(), self.random.word()],
            });
            let mut input = In {
                retrain: self.random.below(4096) < self.asks,
                line_k: sent.lane_k,
                line_data: sent.lane_data,
                ..In::default()
            };
            for lane in 0..LANES {
                let word = self.lanes[at][lane].pop_front().expect("one was put");
                let is_dead = self.dead[at] >> lane & 1 == 1;
                let word = if is_dead { (0, 0) } else { self.carried(word) };
                (input.rx_k[lane], input.rx_data[lane]) = word;
            }
            let out = self.ends[at].cycle(input);
            for lane in 0..LANES {
                self.lanes[1 - at][lane].push_back((out.tx_k[lane], out.tx_data[lane]));
            }
            first = first.or(Some((input, out)));
        }
        first.expect("there are two ends")
    }
}
