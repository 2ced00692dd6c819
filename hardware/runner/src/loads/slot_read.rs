//! Reads of all lengths at all places in a page, completions that are cut, fail, lie, or come
//! unasked, tags that are lost at any moment, and a cache that stalls.

use bellwire_model::cycle::slot_read::{In, Out, SlotRead};
use bellwire_model::engine::Random;

use crate::bench::Load;

/// The reader between caches and the arbiter of reads.
pub struct SlotReadLoad {
    reader: SlotRead,
    random: Random,
    batch: u64,
    /// The read that waits: the number of its next byte, and bytes to come.
    open: Option<(u64, u64)>,
    /// The completion that comes, its beats to come, and what it says. What it brings, if all of it
    /// comes.
    piece: Option<(In, u64)>,
    brings: u64,
    offers: In,
    mood: Mood,
}

/// What the next cycles are like.
#[derive(Clone, Copy)]
struct Mood {
    /// Of eight cycles, how many bring a read, take one, bring a beat, and take an entry.
    rates: [u64; 4],
    /// Of 64 completions, how many fail, and how many lie.
    fails: u64,
    lies: u64,
    /// Of 1024 cycles, how many lose a tag, and bring a completion that nobody waits for.
    lost: u64,
    wild: u64,
}

impl SlotReadLoad {
    /// A reader of up to so many entries at once.
    pub fn new(batch: usize, seed: u64) -> SlotReadLoad {
        SlotReadLoad {
            reader: SlotRead::new(batch),
            random: Random::new(seed),
            batch: batch as u64,
            open: None,
            piece: None,
            brings: 0,
            offers: In::default(),
            mood: Mood { rates: [8; 4], fails: 0, lies: 0, lost: 0, wild: 0 },
        }
    }

    fn change_mood(&mut self) {
        let random = &mut self.random;
        let mut one_of = |all: &[u64]| all[random.below(all.len() as u64) as usize];
        self.mood = Mood {
            rates: [(); 4].map(|()| one_of(&[1, 4, 8, 8])),
            fails: one_of(&[0, 0, 4, 32]),
            lies: one_of(&[0, 0, 8, 32]),
            lost: one_of(&[0, 1, 16, 128]),
            wild: one_of(&[0, 0, 64, 512]),
        };
    }

    /// The next completion of the read that waits, or of none.
    fn complete(&mut self) {
        let random = &mut self.random;
        let (address, remaining) = self.open.unwrap_or((random.below(64) * 8, 8));
        let to_cut = 64 * (1 + random.below(2)) - address % 64;
        let mut bytes = if random.below(2) == 0 { remaining } else { remaining.min(to_cut) };
        let mut beats = (address % 16 + bytes).div_ceil(16);
        let mut said = remaining;
        let mut failed = false;
        self.brings = bytes;
        if random.below(64) < self.mood.fails {
            (failed, beats, self.brings) = (true, 1 + random.below(2), remaining);
        } else if random.below(64) < self.mood.lies {
            self.brings = 0;
            match random.below(8) {
                0 => bytes += 8,
                1 => bytes -= 8,
                2 => bytes ^= 1 << random.below(13),
                3 => said ^= 1 << random.below(13),
                4 => beats += 1 + random.below(20),
                5 => beats -= 1,
                6 => (bytes, said) = (bytes ^ 4, said ^ 4),
                _ => (bytes, beats) = (0, 1 + random.below(3)),
            }
        }
        let says = In {
            in_failed: failed,
            in_bytes: bytes as u16 & 0x1fff,
            in_remaining: said as u16 & 0x1fff,
            ..In::default()
        };
        self.piece = Some((says, beats.max(1)));
    }
}

impl Load for SlotReadLoad {
    type In = In;
    type Out = Out;

    fn step(&mut self) -> (In, Out) {
        if self.random.below(256) == 0 {
            self.change_mood();
        }
        let [reads, takes, beats, entries] =
            self.mood.rates.map(|rate| self.random.below(8) < rate);
        if !self.offers.read_valid && reads {
            let random = &mut self.random;
            let read_count = 1 + random.below(self.batch);
            self.offers.read_valid = true;
            self.offers.read_pair = random.below(32) as u8;
            self.offers.read_count = read_count as u8;
            self.offers.read_address =
                random.below(1 << 28) << 12 | (8 * random.below(513 - read_count));
        }
        let mut input = In {
            ask_ready: takes,
            entry_ready: entries,
            lost_valid: self.random.below(1024) < self.mood.lost,
            in_data: [self.random.word(), self.random.word()],
            ..self.offers
        };
        let is_wild = self.random.below(1024) < self.mood.wild;
        if self.piece.is_none() && beats && (self.open.is_some() || is_wild) {
            self.complete();
        }
        let mut is_last = false;
        if let Some((says, left)) = self.piece.as_mut().filter(|_| beats) {
            *left -= 1;
            is_last = *left == 0;
            input = In {
                in_valid: true,
                in_last: is_last,
                in_failed: says.in_failed,
                in_bytes: says.in_bytes,
                in_remaining: says.in_remaining,
                ..input
            };
        }
        let out = self.reader.cycle(input);
        if is_last {
            self.piece = None;
            self.open =
                self.open.map(|(at, left)| (at + self.brings, left.saturating_sub(self.brings)));
        }
        self.open = self.open.filter(|(_, left)| *left > 0 && !input.lost_valid);
        if out.ask_valid && input.ask_ready {
            self.open = Some((out.ask_address, out.ask_bytes.into()));
        }
        if input.read_valid && out.read_ready {
            self.offers.read_valid = false;
        }
        (input, out)
    }
}

#[cfg(test)]
mod tests {
    use bellwire_model::chpp::Config;

    use crate::block::assert_first_configuration;

    /// The first configuration of the block reads as many entries as the model's caches ask for.
    #[test]
    fn the_first_configuration_is_the_papers() {
        assert_first_configuration(
            "slot_read",
            &[("Batch", Config::prototype().nic.slot_batch as u64)],
        );
    }
}
