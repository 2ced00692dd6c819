//! Reads of all lengths and alignments, a completer that cuts its completions, has them overtake
//! each other, fails, and at times lies about bytes, tags and lengths, and a receiver that stalls.

use bellwire_model::cycle::data_reorder::{DataReorder, In, LANES, Out};
use bellwire_model::engine::Random;

use crate::bench::Load;

/// A memory between those who read and a completer.
pub struct DataReorderLoad {
    reorder: DataReorder,
    random: Random,
    /// Numbers that tags can have, and bytes of the memory.
    tags: u64,
    bytes: u64,
    /// The request that waits.
    wanted: Option<In>,
    open: Vec<Open>,
    sending: Option<Piece>,
    mood: Mood,
}

/// A read that waits for completions.
#[derive(Clone, Copy)]
struct Open {
    tag: u8,
    /// The lane of the next byte.
    lane: u64,
    bytes: u64,
}

/// A completion: what its beats say, how many are left, and whether it is what its read lacks.
#[derive(Clone, Copy)]
struct Piece {
    says: In,
    beats: u64,
    is_true: bool,
}

/// What the next cycles are like.
#[derive(Clone, Copy)]
struct Mood {
    /// Of eight cycles, how many request a read, bring a beat, and take one.
    rates: [u64; 3],
    /// Bytes of a read, at most.
    longest: u64,
    /// Of 64 completions, how many lie; of 1024 cycles, how many tell of a lost tag.
    lies: u64,
    losses: u64,
    /// Completions come in the order of the requests.
    in_order: bool,
}

impl DataReorderLoad {
    /// A memory with its parameters.
    pub fn new(beats: usize, reads: usize, tags: usize, seed: u64) -> DataReorderLoad {
        DataReorderLoad {
            reorder: DataReorder::new(beats, reads, tags),
            random: Random::new(seed),
            tags: tags.next_power_of_two().max(2) as u64,
            bytes: (beats * LANES) as u64,
            wanted: None,
            open: Vec::new(),
            sending: None,
            mood: Mood { rates: [8; 3], longest: 128, lies: 0, losses: 0, in_order: true },
        }
    }

    fn change_mood(&mut self) {
        let random = &mut self.random;
        let mut one_of = |all: &[u64]| all[random.below(all.len() as u64) as usize];
        self.mood = Mood {
            rates: [one_of(&[1, 4, 8]), one_of(&[0, 1, 4, 8, 8]), one_of(&[0, 1, 4, 8, 8])],
            longest: one_of(&[1, 20, 128, 128, self.bytes / 4, self.bytes]).min(4096),
            lies: one_of(&[0, 1, 8, 32]),
            losses: one_of(&[0, 0, 1, 32]),
            in_order: one_of(&[0, 0, 1]) == 1,
        };
        self.wanted = None;
    }

    /// A request; mostly with a tag that is free, and not always a possible one.
    fn request(&mut self) -> In {
        let random = &mut self.random;
        let mut read_tag = random.below(self.tags) as u8;
        for _ in 0..8 {
            if self.open.iter().all(|open| open.tag != read_tag) {
                break;
            }
            read_tag = random.below(self.tags) as u8;
        }
        let read_bytes = match random.below(16) {
            0 => random.below(self.mood.longest + 2),
            1..5 => self.mood.longest,
            _ => 1 + random.below(self.mood.longest),
        };
        In {
            read_valid: true,
            read_tag,
            read_lane: random.below(LANES as u64) as u8,
            read_bytes: read_bytes as u16,
            ..In::default()
        }
    }

    /// A completion of some read: its rest, or up to the end of a beat.
    fn complete(&mut self) -> Option<Piece> {
        let random = &mut self.random;
        let count = self.open.len() as u64;
        let at = if self.mood.in_order || count == 0 { 0 } else { random.below(count) };
        let &Open { tag, lane, bytes: remaining } = self.open.get(at as usize)?;
        let beats = (lane + remaining).div_ceil(LANES as u64);
        let cut = match random.below(4) {
            0 => beats,
            _ => 1 + random.below(beats),
        };
        let bytes = remaining.min(LANES as u64 * cut - lane);
        let says = In {
            in_tag: tag,
            in_bytes: bytes as u16,
            in_remaining: remaining as u16,
            ..In::default()
        };
        let mut piece = Piece { says, beats: cut, is_true: true };
        if random.below(64) < self.mood.lies {
            piece.is_true = false;
            self.lie(&mut piece);
        }
        Some(piece)
    }

    fn lie(&mut self, piece: &mut Piece) {
        let random = &mut self.random;
        let Piece { says, beats, .. } = piece;
        let other = |random: &mut Random, value: u16| match random.below(4) {
            0 => value.wrapping_add(1 << random.below(13)) & 0x1fff,
            1 => value.saturating_sub(1),
            2 => (value + 1) & 0x1fff,
            _ => random.below(1 << 13) as u16,
        };
        match random.below(10) {
            0 => says.in_tag = random.below(self.tags) as u8,
            1 => says.in_bytes = other(random, says.in_bytes),
            2 => says.in_remaining = other(random, says.in_remaining),
            3 => {
                says.in_remaining = other(random, says.in_remaining);
                says.in_bytes = says.in_remaining;
            }
            4 => *beats += 1 + random.below(2),
            5 => *beats = (*beats - 1).max(1),
            6 => says.in_bytes = 0,
            _ => {
                says.in_failed = true;
                *beats = 1 + random.below(2);
            }
        }
    }

    fn forget(&mut self, tag: u8) {
        self.open.retain(|open| open.tag != tag);
    }

    /// What the cycle did to the reads that wait.
    fn note(&mut self, input: &In, out: &Out) {
        if out.free_valid {
            self.forget(out.free_tag);
        }
        if input.lost_valid {
            self.forget(input.lost_tag);
        }
        if let Some(piece) = self.sending.take_if(|piece| piece.beats == 0)
            && piece.is_true
            && let Some(open) = self.open.iter_mut().find(|open| open.tag == piece.says.in_tag)
        {
            open.lane = 0;
            open.bytes = open.bytes.saturating_sub(piece.says.in_bytes.into());
            self.open.retain(|open| open.bytes > 0);
        }
        if input.read_valid && out.read_ready {
            self.wanted = None;
            let (lane, bytes) = (input.read_lane.into(), input.read_bytes.into());
            self.open.push(Open { tag: input.read_tag, lane, bytes });
        }
    }
}

impl Load for DataReorderLoad {
    type In = In;
    type Out = Out;

    fn step(&mut self) -> (In, Out) {
        if self.random.below(256) == 0 {
            self.change_mood();
        }
        let [requests, brings, takes] = self.mood.rates;
        if self.wanted.is_none() && self.random.below(8) < requests {
            self.wanted = Some(self.request());
        }
        let mut input = self.wanted.unwrap_or_default();
        if self.sending.is_none() {
            self.sending = self.complete();
        }
        if let Some(piece) = &mut self.sending
            && self.random.below(8) < brings
        {
            piece.beats -= 1;
            let Piece { says, beats, .. } = *piece;
            input.in_valid = true;
            input.in_last = beats == 0;
            input.in_tag = says.in_tag;
            input.in_failed = says.in_failed;
            input.in_bytes = says.in_bytes;
            input.in_remaining = says.in_remaining;
            input.in_data = [self.random.word(), self.random.word()];
        }
        if self.random.below(1024) < self.mood.losses {
            input.lost_valid = true;
            let count = self.open.len() as u64;
            let any = self.random.below(self.tags) as u8;
            let at = self.random.below(count + 1) as usize;
            input.lost_tag = self.open.get(at).map_or(any, |open| open.tag);
        }
        input.out_ready = self.random.below(8) < takes;
        let out = self.reorder.cycle(input);
        self.note(&input, &out);
        (input, out)
    }
}

#[cfg(test)]
mod tests {
    use bellwire_model::chpp::Config;

    use crate::block::assert_first_configuration;

    use super::LANES;

    /// The first configuration of the block has the model's memory and tags.
    #[test]
    fn the_first_configuration_is_the_papers() {
        let nic = Config::prototype().nic;
        let beats = nic.reorder.count() / LANES as u64;
        let expected = [("Beats", beats), ("Reads", nic.tags as u64), ("Tags", nic.tags as u64)];
        assert_first_configuration("data_reorder", &expected);
    }
}
