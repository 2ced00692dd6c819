//! Stores of all kinds into pages of functions and of registers: right ones with any values, and
//! such that are partial, longer, misaligned, at places without a register, or with a bit that must
//! be zero. Blocks behind refuse at random.

use bellwire_model::cycle::host_regs::{HostRegs, In, Out};
use bellwire_model::engine::Random;
use bellwire_wire::registers::RegisterRepr;

use crate::bench::Load;

/// The block behind the PCIe boundary.
pub struct HostRegsLoad {
    regs: HostRegs,
    random: Random,
    /// Beats of the store that are to come.
    left: u64,
    /// Of eight, how many cycles bring a beat, stores are wrong, and cycles tell of something.
    rates: [u64; 3],
}

impl HostRegsLoad {
    /// The block with counts of so many bits.
    pub fn new(count_bits: u32, seed: u64) -> HostRegsLoad {
        HostRegsLoad {
            regs: HostRegs::new(count_bits),
            random: Random::new(seed),
            left: 0,
            rates: [8, 4, 1],
        }
    }

    /// A store that is right, with any values.
    fn right(&mut self) -> RegisterRepr {
        let random = &mut self.random;
        let mut below =
            |limit: u64| if random.below(8) == 0 { limit - 1 } else { random.below(limit) };
        match below(6) {
            0 => RegisterRepr::Ring {
                ring: below(64) as u8,
                base: below(1 << 35),
                entries: below(1 << 13) as u16,
            },
            1 => RegisterRepr::List {
                pair: below(32) as u8,
                page: below(1 << 28) as u32,
                entries: below(1 << 9) as u16,
            },
            2 => RegisterRepr::Window {
                function: below(8) as u8,
                base: below(1 << 28) as u32,
                pages: below(1 << 29) as u32,
            },
            3 => {
                let (pair, key) = (below(32) as u8, below(257));
                RegisterRepr::Key { pair, key: u8::try_from(key).ok() }
            }
            4 => RegisterRepr::RingReport { ring: below(64) as u8, count: below(1 << 13) as u16 },
            _ => RegisterRepr::ListReport { pair: below(32) as u8, count: below(1 << 9) as u16 },
        }
    }
}

impl Load for HostRegsLoad {
    type In = In;
    type Out = Out;

    fn step(&mut self) -> (In, Out) {
        if self.random.below(256) == 0 {
            let random = &mut self.random;
            self.rates =
                [[1, 4, 8, 8], [0, 2, 4, 8], [0, 1, 4, 8]].map(|all| all[random.below(4) as usize]);
        }
        let (address, word) = self.right().emit().expect("it fits");
        let random = &mut self.random;
        let mut input = In {
            store_valid: random.below(8) < self.rates[0],
            store_address: address,
            store_bytes: 8,
            store_data: [random.word(), random.word()],
            refused: [(); 3].map(|()| random.below(16) < self.rates[2]),
            tlp_dropped: random.below(8) < self.rates[2],
            tlp_refused: random.below(8) < self.rates[2],
            ..In::default()
        };
        let mut beats = 1;
        let mut stored = word;
        if random.below(8) < self.rates[1] {
            match random.below(8) {
                0 => beats = 1 + random.below(4),
                1 => input.store_bytes ^= 1 << random.below(13),
                2 => input.store_address ^= 1 << random.below(16),
                3 => input.store_address = random.word() as u16,
                // Around the pages, and a doorbell.
                4 => input.store_address = (random.below(1 << 13) << 3) as u16,
                5 => input.store_address &= 0xf000,
                6 => stored = random.word(),
                _ => stored ^= 1 << random.below(64),
            }
        }
        input.store_data[usize::from(input.store_address >> 3 & 1)] = stored;
        if self.left == 0 {
            self.left = beats;
        }
        input.store_last = self.left == 1;
        self.left -= u64::from(input.store_valid);
        let out = self.regs.cycle(input);
        (input, out)
    }
}

#[cfg(test)]
mod tests {
    use bellwire_model::chpp::Config;
    use bellwire_wire::registers::{FUNCTIONS, KEYS};

    /// The map has a register for each function and queue pair of the model's prototype.
    #[test]
    fn the_map_has_the_papers_functions() {
        let nic = Config::prototype().nic;
        assert_eq!(nic.functions, usize::from(FUNCTIONS));
        assert_eq!(nic.functions * nic.queue_pairs, usize::from(KEYS.count));
    }
}
