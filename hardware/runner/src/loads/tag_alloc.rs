//! Tags are taken and come back at rates that change: in any order, late, never, twice, or without
//! having been taken.

use bellwire_model::cycle::tag_alloc::{In, Out, TagAlloc};
use bellwire_model::engine::Random;

use crate::bench::Load;

/// An allocator with those who take its tags.
pub struct TagAllocLoad {
    alloc: TagAlloc,
    random: Random,
    /// Numbers that tags can have.
    numbers: u64,
    held: Vec<u8>,
    /// Of eight cycles, how many take a tag and bring one back; of 64 of the latter, how many bring
    /// any number.
    rates: [u64; 3],
}

impl TagAllocLoad {
    /// An allocator with its parameters.
    pub fn new(tags: usize, timeout: u64, seed: u64) -> TagAllocLoad {
        TagAllocLoad {
            alloc: TagAlloc::new(tags, timeout),
            random: Random::new(seed),
            numbers: tags.next_power_of_two().max(2) as u64,
            held: Vec::new(),
            rates: [4; 3],
        }
    }
}

impl Load for TagAllocLoad {
    type In = In;
    type Out = Out;

    fn step(&mut self) -> (In, Out) {
        let random = &mut self.random;
        if random.below(256) == 0 {
            self.rates = [random.below(9), random.below(9), [0, 1, 32][random.below(3) as usize]];
        }
        let [takes, returns, wrong] = self.rates;
        let mut input = In { tag_ready: random.below(8) < takes, ..In::default() };
        if random.below(8) < returns {
            if random.below(64) < wrong {
                input.release_valid = true;
                input.release_tag = random.below(self.numbers) as u8;
            } else if !self.held.is_empty() {
                input.release_valid = true;
                let at = random.below(self.held.len() as u64);
                input.release_tag = self.held.swap_remove(at as usize);
            }
        }
        let out = self.alloc.cycle(input);
        if out.tag_valid && input.tag_ready {
            self.held.push(out.tag);
        }
        // Those who hold a tag learn that it is lost, and at times send it back all the same.
        if out.lost_valid && self.random.below(4) > 0 {
            self.held.retain(|&tag| tag != out.lost_tag);
        }
        (input, out)
    }
}

#[cfg(test)]
mod tests {
    use bellwire_model::chpp::Config;

    use crate::block::assert_first_configuration;

    /// The first configuration of the block has the model's tags, and waits for the 10 ms of the
    /// standard at least.
    #[test]
    fn the_first_configuration_is_the_papers() {
        let nic = Config::prototype().nic;
        let timeout = 10_000_000_000 / nic.cycle().ps();
        let expected = [("Tags", nic.tags as u64), ("Timeout", timeout)];
        assert_first_configuration("tag_alloc", &expected);
    }
}
