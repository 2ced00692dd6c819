//! A host that sets and takes away keys and windows; packets and GETs, which come together at
//! times, with right keys, nearly right ones and any; and runs of bytes around the ends of windows,
//! and anywhere.

use bellwire_model::cycle::key_window::{In, KeyWindow, Out, PAGE_BITS, PAGE_SHIFT};
use bellwire_model::engine::Random;
use bellwire_wire::ADDRESS_BITS;

use crate::bench::Load;

/// The keys and windows of an interface.
pub struct KeyWindowLoad {
    block: KeyWindow,
    random: Random,
    /// What the host has set last: keys; windows by their first page and the one behind them.
    keys: Vec<u8>,
    windows: Vec<(u64, u64)>,
    mood: Mood,
}

/// What the next cycles are like.
#[derive(Clone, Copy)]
struct Mood {
    /// Of 64 cycles, in how many the host writes.
    writes: u64,
    /// Of eight cycles, how many have a packet, a GET, a target and a source.
    rates: [u64; 4],
    /// Pages of a window, at most.
    most_pages: u64,
}

impl KeyWindowLoad {
    /// No keys and no windows, with their parameters.
    pub fn new(functions: usize, pairs: usize, count_bits: u32, seed: u64) -> KeyWindowLoad {
        KeyWindowLoad {
            block: KeyWindow::new(functions, pairs, count_bits),
            random: Random::new(seed),
            keys: vec![0; pairs],
            windows: vec![(0, 0); functions],
            mood: Mood { writes: 64, rates: [8; 4], most_pages: 4 },
        }
    }

    fn change_mood(&mut self) {
        let random = &mut self.random;
        let mut one_of = |all: &[u64]| all[random.below(all.len() as u64) as usize];
        self.mood = Mood {
            writes: one_of(&[0, 1, 16, 64]),
            rates: [(); 4].map(|()| one_of(&[1, 4, 8, 8])),
            most_pages: one_of(&[2, 64, 1 << 20, 1 << PAGE_BITS]),
        };
    }

    /// The host sets a window, at times one that goes on behind the last address, or a key.
    fn write(&mut self, input: &mut In) {
        let random = &mut self.random;
        input.host_valid = true;
        input.host_window = random.below(2) == 0;
        input.host_opens = random.below(8) > 0;
        if !input.host_window {
            self.keys[usize::from(input.host_pair)] = input.host_key;
            return;
        }
        let pages = match random.below(16) {
            0 => 0,
            1 => random.below(2 << PAGE_BITS),
            _ => 1 + random.below(self.mood.most_pages),
        };
        let all = 1 << PAGE_BITS;
        let base = match random.below(8) {
            0 => 0,
            1 => (all - pages.min(all)).min(all - 1),
            2 => (all + 1 - pages.clamp(1, all)).min(all - 1),
            _ => random.below(all),
        };
        (input.host_base, input.host_pages) = (base as u32, pages as u32);
        if base + pages <= all {
            self.windows[usize::from(input.host_function)] = (base, base + pages);
        }
    }

    /// Address and length of a run, mostly one that begins or ends near an end of the function's
    /// window.
    fn run(&mut self, function: u8) -> (u64, u64) {
        let random = &mut self.random;
        let limit = 1 << ADDRESS_BITS;
        let (base, end) = self.windows[usize::from(function)];
        let near = |random: &mut Random, page: u64| {
            let byte = (page << PAGE_SHIFT) + random.below(5);
            byte.saturating_sub(2)
        };
        let from = match random.below(8) {
            0 => random.below(limit),
            1 => near(random, end),
            2..5 => near(random, base),
            _ => (base << PAGE_SHIFT) + random.below(((end - base) << PAGE_SHIFT) + 1),
        };
        let from = from.min(limit - 1);
        let length = match random.below(8) {
            0 => random.below(limit),
            1 => random.below(3),
            2 => random.below(1 << PAGE_SHIFT),
            _ => near(random, end).saturating_sub(from),
        };
        (from, length.min(limit - 1))
    }
}

impl Load for KeyWindowLoad {
    type In = In;
    type Out = Out;

    fn step(&mut self) -> (In, Out) {
        if self.random.below(512) == 0 {
            self.change_mood();
        }
        let (functions, pairs) = (self.windows.len() as u64, self.keys.len() as u64);
        let random = &mut self.random;
        let mut input = In {
            host_window: random.below(2) == 0,
            host_function: random.below(functions) as u8,
            host_base: random.below(1 << PAGE_BITS) as u32,
            host_pages: random.below(2 << PAGE_BITS) as u32,
            host_pair: random.below(pairs) as u8,
            host_opens: random.below(2) == 0,
            host_key: random.word() as u8,
            packet_pair: random.below(pairs) as u8,
            get_pair: random.below(pairs) as u8,
            target_function: random.below(functions) as u8,
            source_function: random.below(functions) as u8,
            ..In::default()
        };
        let mut key = |pair: u8| {
            let key = self.keys[usize::from(pair)];
            match random.below(4) {
                0 => key ^ 1 << random.below(8),
                1 => random.word() as u8,
                _ => key,
            }
        };
        (input.packet_key, input.get_key) = (key(input.packet_pair), key(input.get_pair));
        let [packets, gets, targets, sources] = self.mood.rates;
        input.packet_valid = random.below(8) < packets;
        input.get_valid = random.below(8) < gets;
        input.target_valid = random.below(8) < targets;
        input.source_valid = random.below(8) < sources;
        (input.target_address, input.target_length) = self.run(input.target_function);
        (input.source_address, input.source_length) = self.run(input.source_function);
        if self.random.below(64) < self.mood.writes {
            self.write(&mut input);
        }
        let out = self.block.cycle(input);
        (input, out)
    }
}

#[cfg(test)]
mod tests {
    use bellwire_model::chpp::Config;

    use crate::block::assert_first_configuration;

    /// The first configuration of the block has the model's functions and queue pairs.
    #[test]
    fn the_first_configuration_is_the_papers() {
        let nic = Config::prototype().nic;
        let pairs = (nic.functions * nic.queue_pairs) as u64;
        let expected = [("CountWidth", 32), ("Functions", nic.functions as u64), ("Pairs", pairs)];
        assert_first_configuration("key_window", &expected);
    }
}
