//! Stores of all kinds: doorbells, and such that are partial, longer, misaligned, or beside the
//! pages of functions.

use bellwire_model::cycle::bell_decode::{BellDecode, In, Out, WINDOW_BITS};
use bellwire_model::engine::Random;

use crate::bench::Load;

/// The decoder behind the PCIe boundary.
pub struct BellDecodeLoad {
    decode: BellDecode,
    random: Random,
    /// Beats of the store that are to come.
    left: u64,
    /// Of eight, how many cycles bring a beat, and stores are wrong.
    rates: [u64; 2],
}

impl BellDecodeLoad {
    /// A decoder for so many functions, and a count of so many bits.
    pub fn new(functions: usize, dropped_bits: u32, seed: u64) -> BellDecodeLoad {
        BellDecodeLoad {
            decode: BellDecode::new(functions, dropped_bits),
            random: Random::new(seed),
            left: 0,
            rates: [8, 4],
        }
    }
}

impl Load for BellDecodeLoad {
    type In = In;
    type Out = Out;

    fn step(&mut self) -> (In, Out) {
        let random = &mut self.random;
        if random.below(256) == 0 {
            self.rates = [[1, 4, 8, 8], [0, 2, 4, 8]].map(|all| all[random.below(4) as usize]);
        }
        let mut input = In {
            store_valid: random.below(8) < self.rates[0],
            store_address: (random.below(1 << (WINDOW_BITS - 12)) << 12) as u16,
            store_bytes: 8,
            store_data: [random.word(), random.word()],
            ..In::default()
        };
        let mut beats = 1;
        if random.below(8) < self.rates[1] {
            match random.below(6) {
                0 => beats = 1 + random.below(4),
                1 => input.store_bytes ^= 1 << random.below(13),
                2 => input.store_bytes = random.below(1 << 13) as u16,
                3 => input.store_address ^= 1 << random.below(12),
                4 => input.store_address = random.word() as u16,
                _ => (input.store_bytes, beats) = (16 * beats as u16, 1),
            }
        }
        if self.left == 0 {
            self.left = beats;
        }
        input.store_last = self.left == 1;
        self.left -= u64::from(input.store_valid);
        let out = self.decode.cycle(input);
        (input, out)
    }
}

#[cfg(test)]
mod tests {
    use bellwire_model::chpp::Config;

    use crate::block::assert_first_configuration;

    /// The first configuration of the block has the functions of the model's prototype.
    #[test]
    fn the_first_configuration_is_the_papers() {
        let functions = Config::prototype().nic.functions as u64;
        assert_first_configuration(
            "bell_decode",
            &[("DroppedWidth", 32), ("Functions", functions)],
        );
    }
}
