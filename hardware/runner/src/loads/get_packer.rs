//! GETs of all sizes, whose moves and beats come apart, a crossbar that stalls, and software that
//! is slow to take reports.

use std::collections::VecDeque;

use bellwire_model::cycle::data_reorder::LANES;
use bellwire_model::cycle::get_packer::{GetPacker, In, Out, Shape};
use bellwire_model::engine::Random;

use crate::bench::Load;

/// Bytes of the longest descriptor.
const MOST: u64 = 4096;

/// A packer of GETs between those who take descriptors apart and a crossbar.
pub struct GetPackerLoad {
    packer: GetPacker,
    shape: Shape,
    random: Random,
    moves: VecDeque<In>,
    /// Beats of descriptors that are still to come.
    lengths: VecDeque<u64>,
    mood: Mood,
}

/// What the next cycles are like.
#[derive(Clone, Copy)]
struct Mood {
    /// Of eight cycles, how many offer a move, offer a beat, take a beat, and take a report.
    rates: [u64; 4],
    /// Beats of a descriptor, at most.
    longest: u64,
}

impl GetPackerLoad {
    /// An empty packer.
    pub fn new(shape: Shape, seed: u64) -> GetPackerLoad {
        GetPackerLoad {
            packer: GetPacker::new(shape),
            shape,
            random: Random::new(seed),
            moves: VecDeque::new(),
            lengths: VecDeque::new(),
            mood: Mood { rates: [8; 4], longest: 1 },
        }
    }

    fn change_mood(&mut self) {
        let random = &mut self.random;
        let mut one_of = |all: &[u64]| all[random.below(all.len() as u64) as usize];
        self.mood = Mood {
            rates: [
                one_of(&[1, 4, 8, 8]),
                one_of(&[1, 4, 8, 8]),
                one_of(&[0, 1, 4, 8, 8]),
                one_of(&[0, 1, 4, 8, 8]),
            ],
            longest: one_of(&[1, 4, 16, self.shape.get_beats as u64]),
        };
        self.mood.longest = self.mood.longest.min(self.shape.get_beats as u64);
    }

    /// A GET. At times its header speaks of other bytes than come: nothing here looks at them.
    fn get(&mut self) {
        let random = &mut self.random;
        let beats = match random.below(4) {
            0 => self.mood.longest,
            _ => 1 + random.below(self.mood.longest),
        };
        let bytes = match random.below(8) {
            0 => random.below(MOST + 1),
            // So few that they lie in the first DW.
            1 => random.below(5),
            _ => LANES as u64 * beats,
        };
        self.moves.push_back(In {
            move_traffic_class: random.below(8) as u8,
            move_magic: random.word() as u8,
            move_source: random.below(512) as u16,
            move_destination: random.below(512) as u16,
            move_bytes: bytes as u16,
            move_route: random.word() as u8,
            move_operation: random.word() as u8,
            ..In::default()
        });
        self.lengths.push_back(beats);
    }
}

impl Load for GetPackerLoad {
    type In = In;
    type Out = Out;

    fn step(&mut self) -> (In, Out) {
        if self.random.below(512) == 0 {
            self.change_mood();
        }
        while self.moves.is_empty() || self.lengths.is_empty() {
            self.get();
        }
        let [moves, brings, takes, reports] = self.mood.rates;
        // What is not valid stands there, too.
        let mut input = self.moves[0];
        input.move_valid = self.random.below(8) < moves;
        input.in_valid = self.random.below(8) < brings;
        input.in_ends = self.lengths[0] == 1;
        input.in_data = [self.random.word(), self.random.word()];
        input.out_ready = self.random.below(8) < takes;
        input.sent_ready = self.random.below(8) < reports;
        let out = self.packer.cycle(input);
        if input.move_valid && out.move_ready {
            self.moves.pop_front();
        }
        if input.in_valid && out.in_ready {
            self.lengths[0] -= 1;
            if input.in_ends {
                self.lengths.pop_front();
            }
        }
        (input, out)
    }
}

#[cfg(test)]
mod tests {
    use bellwire_model::cycle::data_reorder::LANES;

    use super::MOST;
    use crate::block::assert_first_configuration;

    /// The first configuration of the block has two places for the longest descriptor.
    #[test]
    fn the_first_configuration_is_the_papers() {
        let beats = MOST / LANES as u64;
        assert_first_configuration("get_packer", &[("GetBeats", beats), ("Gets", 2)]);
    }
}
