//! Operations with reads and with immediate data, in any order at both ports, also in one that
//! descriptor extract would not have, and a packer that stalls at random.

use bellwire_model::cycle::data_join::{DataJoin, In, Out};
use bellwire_model::engine::Random;

use crate::bench::Load;

/// The joiner between reads, immediate data and the packer.
pub struct DataJoinLoad {
    join: DataJoin,
    random: Random,
    mood: Mood,
}

/// What the next cycles are like: of eight cycles, how many are so.
#[derive(Clone, Copy)]
struct Mood {
    reads: u64,
    data: u64,
    puts: u64,
    takes: u64,
    /// A read or a beat of immediate data ends its operation.
    ends: u64,
    /// A beat ends its read.
    lasts: u64,
    fails: u64,
}

impl DataJoinLoad {
    /// A joiner with room for so many reads.
    pub fn new(reads: usize, seed: u64) -> DataJoinLoad {
        let mood = Mood { reads: 8, data: 8, puts: 8, takes: 8, ends: 4, lasts: 4, fails: 0 };
        DataJoinLoad { join: DataJoin::new(reads), random: Random::new(seed), mood }
    }

    fn change_mood(&mut self) {
        let random = &mut self.random;
        let mut rate = || [0, 1, 4, 7, 8, 8][random.below(6) as usize];
        self.mood = Mood {
            reads: rate(),
            data: rate(),
            puts: rate(),
            takes: rate(),
            ends: rate(),
            lasts: rate(),
            fails: rate().min(4),
        };
    }
}

impl Load for DataJoinLoad {
    type In = In;
    type Out = Out;

    fn step(&mut self) -> (In, Out) {
        if self.random.below(256) == 0 {
            self.change_mood();
        }
        let Mood { reads, data, puts, takes, ends, lasts, fails } = self.mood;
        let random = &mut self.random;
        let mut is_so = |rate: u64| random.below(8) < rate;
        let input = In {
            read_valid: is_so(reads),
            read_ends: is_so(ends),
            data_valid: is_so(data),
            data_last: is_so(lasts),
            data_failed: is_so(fails),
            put_valid: is_so(puts),
            put_ends: is_so(ends),
            out_ready: is_so(takes),
            data_from: random.below(16) as u8,
            data_to: random.below(16) as u8,
            data: [random.word(), random.word()],
            put_to: random.below(16) as u8,
            put_data: [random.word(), random.word()],
        };
        (input, self.join.cycle(input))
    }
}

#[cfg(test)]
mod tests {
    use crate::block::assert_first_configuration;

    /// The first configuration of the block has room for the reads of `data_reorder`.
    #[test]
    fn the_first_configuration_is_the_papers() {
        assert_first_configuration("data_join", &[("Reads", 32)]);
    }
}
