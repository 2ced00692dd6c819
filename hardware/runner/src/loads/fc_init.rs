//! Two ends that bring up a channel over wires which lose, delay and make up packets; one of them
//! is the block. At times both begin anew, as a link does that was trained again.

use std::collections::VecDeque;

use bellwire_model::cycle::fc_init::{FcInit, In, Out, code_of, stage_of};
use bellwire_model::engine::Random;
use bellwire_wire::link::dllp::Stage;

use crate::bench::Load;

/// An end of a channel, and its far end.
pub struct FcInitLoad {
    end: FcInit,
    far: FcInit,
    random: Random,
    /// Packets under way to the far end, and from there: a place for each cycle.
    wires: [VecDeque<Option<Stage>>; 2],
    /// Of eight cycles, how many have an update, take a packet, and bring a TLP if there can be
    /// one; of eight packets, how many are lost; of 64 cycles, how many bring what was never sent.
    rates: [u64; 5],
}

impl FcInitLoad {
    /// Two ends that have heard nothing.
    pub fn new(again_after: u64, seed: u64) -> FcInitLoad {
        FcInitLoad {
            end: FcInit::new(again_after),
            far: FcInit::new(again_after),
            random: Random::new(seed),
            wires: [(); 2].map(|()| VecDeque::from([None; 4])),
            rates: [4; 5],
        }
    }
}

/// An end's inputs.
fn input(random: &mut Random, rates: [u64; 5], heard: Option<Stage>, can_deliver: bool) -> In {
    let [updates, takes, delivers, ..] = rates;
    In {
        update_valid: random.below(8) < updates,
        send_ready: random.below(8) < takes,
        heard_valid: heard.is_some(),
        // Without a packet the stage says nothing.
        heard_stage: heard.map_or_else(|| 1 + random.below(3) as u8, code_of),
        deliver: can_deliver && random.below(8) < delivers,
        restart: false,
    }
}

impl Load for FcInitLoad {
    type In = In;
    type Out = Out;

    fn step(&mut self) -> (In, Out) {
        let (random, rates) = (&mut self.random, self.rates);
        let is_up = |end: &FcInit| { *end }.cycle(In::default()).up;
        let [mut heard, far_heard] = [1, 0].map(|at: usize| self.wires[at].pop_front().flatten());
        if random.below(64) < rates[4] {
            heard = Some(stage_of(1 + random.below(3) as u8));
        }
        let can_deliver = is_up(&self.far) || random.below(64) < rates[4];
        let mut near_in = input(random, rates, heard, can_deliver);
        let mut far_in = input(random, rates, far_heard, is_up(&self.end));
        if random.below(256) == 0 {
            self.rates = [
                random.below(9),
                1 + random.below(8),
                [0, 0, 1, 8][random.below(4) as usize],
                [0, 4, 7, 8][random.below(4) as usize],
                [0, 0, 1, 16][random.below(4) as usize],
            ];
        }
        near_in.restart = random.below(128) == 0;
        far_in.restart = near_in.restart;
        let near = self.end.cycle(near_in);
        let far = self.far.cycle(far_in);
        for (at, input, out) in [(0, near_in, near), (1, far_in, far)] {
            let goes = out.send_valid && input.send_ready && random.below(8) >= rates[3];
            self.wires[at].push_back(goes.then(|| stage_of(out.send_stage)));
        }
        (near_in, near)
    }
}

#[cfg(test)]
mod tests {
    use crate::block::assert_first_configuration;

    /// The first configuration of the block is the model's link: a test beside the model computes
    /// the time there and back.
    #[test]
    fn the_first_configuration_is_the_papers() {
        assert_first_configuration("fc_init", &[("AgainAfter", 34)]);
    }
}
