//! Symbols of any kind, which are offered or not.

use bellwire_model::cycle::lane_stripe::{In, LaneStripe, Out};
use bellwire_model::engine::Random;

use crate::bench::Load;

/// A spreader, and a line in front of it.
pub struct LaneStripeLoad {
    stripe: LaneStripe,
    random: Random,
}

impl LaneStripeLoad {
    /// A spreader with a mark in so many cycles.
    pub fn new(mark_every: u64, seed: u64) -> LaneStripeLoad {
        LaneStripeLoad { stripe: LaneStripe::new(mark_every), random: Random::new(seed) }
    }
}

impl Load for LaneStripeLoad {
    type In = In;
    type Out = Out;

    fn step(&mut self) -> (In, Out) {
        let input = In {
            line_valid: self.random.below(4) > 0,
            line_k: self.random.word() as u16,
            line_data: [self.random.word(), self.random.word()],
        };
        (input, self.stripe.cycle(input))
    }
}
