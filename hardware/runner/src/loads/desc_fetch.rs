//! Functions that ring at rates that change, at times with words that cannot be; an arbiter and an
//! allocator that make reads wait; a completer that cuts its completions, has them overtake each
//! other, fails, and at times lies about bytes, tags and lengths; and a receiver that stalls.

use bellwire_model::cycle::data_reorder::LANES;
use bellwire_model::cycle::desc_fetch::{DescFetch, In, Out, Shape};
use bellwire_model::engine::Random;
use bellwire_wire::ADDRESS_BITS;

use crate::bench::Load;

/// The block between doorbells and a completer.
pub struct DescFetchLoad {
    fetch: DescFetch,
    random: Random,
    shape: Shape,
    /// Numbers that tags can have.
    tags: u64,
    /// The doorbell that waits, and the tag that is offered.
    bell: Option<In>,
    read_tag: u8,
    open: Vec<Open>,
    sending: Option<Piece>,
    mood: Mood,
}

/// A read that waits for completions, and the beats that it lacks.
#[derive(Clone, Copy)]
struct Open {
    tag: u8,
    beats: u64,
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
    /// Of eight cycles, how many ring, take a read, bring a beat, and take a word.
    rates: [u64; 4],
    /// Beats of a descriptor, at most.
    longest: u64,
    /// Of 64 doorbells, how many cannot be; of 64 completions, how many lie; of 1024 cycles, how
    /// many tell of a lost tag.
    wrong: u64,
    lies: u64,
    losses: u64,
    /// Completions come in the order of the reads.
    in_order: bool,
}

impl DescFetchLoad {
    /// Empty places.
    pub fn new(shape: Shape, seed: u64) -> DescFetchLoad {
        DescFetchLoad {
            fetch: DescFetch::new(shape),
            random: Random::new(seed),
            shape,
            tags: shape.tags.next_power_of_two().max(2) as u64,
            bell: None,
            read_tag: 0,
            open: Vec::new(),
            sending: None,
            mood: Mood { rates: [8; 4], longest: 4, wrong: 0, lies: 0, losses: 0, in_order: true },
        }
    }

    fn change_mood(&mut self) {
        let beats = self.shape.beats as u64;
        let random = &mut self.random;
        let mut one_of = |all: &[u64]| all[random.below(all.len() as u64) as usize];
        self.mood = Mood {
            rates: [
                one_of(&[1, 4, 8]),
                one_of(&[0, 1, 4, 8, 8]),
                one_of(&[0, 1, 4, 8, 8]),
                one_of(&[0, 1, 4, 8, 8]),
            ],
            longest: one_of(&[1, 4, 16, beats]).min(beats),
            wrong: one_of(&[0, 1, 16]),
            lies: one_of(&[0, 1, 8, 32]),
            losses: one_of(&[0, 0, 1, 32]),
            in_order: one_of(&[0, 0, 1]) == 1,
        };
    }

    /// A doorbell, mostly of a descriptor that can be, and at times just not.
    fn ring(&mut self) -> In {
        let random = &mut self.random;
        let beat = LANES as u64;
        let word = |beats: u64, at: u64| ((beats * beat) << 48) | (at * beat);
        let beats = if random.below(4) == 0 {
            self.mood.longest
        } else {
            1 + random.below(self.mood.longest)
        };
        // Some end at the last address.
        let last = (1 << ADDRESS_BITS) / beat - beats;
        let at = if random.below(8) == 0 { last } else { random.below(last + 1) };
        let (mut bell_word, mut bell_outside) = (word(beats, at), false);
        if random.below(64) < self.mood.wrong {
            match random.below(8) {
                0 => bell_outside = true,
                1 => bell_word = word(0, at),
                2 => bell_word = word(self.shape.beats as u64 + 1, at),
                3 => bell_word = random.word(),
                // It goes on behind the last address.
                4 if beats > 1 => bell_word = word(beats, last + 1),
                _ => bell_word ^= 1 << random.below(64),
            }
        }
        In { bell_function: random.below(8) as u8, bell_word, bell_outside, ..In::default() }
    }

    /// The tag that is offered next; mostly a free one.
    fn offer(&mut self) {
        for _ in 0..8 {
            self.read_tag = self.random.below(self.tags) as u8;
            if self.open.iter().all(|open| open.tag != self.read_tag) {
                break;
            }
        }
    }

    /// A completion of some read: its rest, or a part of it.
    fn complete(&mut self) -> Option<Piece> {
        let random = &mut self.random;
        let count = self.open.len() as u64;
        let at = if self.mood.in_order || count == 0 { 0 } else { random.below(count) };
        let &Open { tag, beats: lacks } = self.open.get(at as usize)?;
        let beats = if random.below(4) == 0 { lacks } else { 1 + random.below(lacks) };
        let bytes = |beats: u64| (beats as usize * LANES) as u16;
        let says =
            In { in_tag: tag, in_bytes: bytes(beats), in_remaining: bytes(lacks), ..In::default() };
        let mut piece = Piece { says, beats, is_true: true };
        if random.below(64) < self.mood.lies {
            piece.is_true = false;
            self.lie(&mut piece);
        }
        Some(piece)
    }

    fn lie(&mut self, piece: &mut Piece) {
        let random = &mut self.random;
        let Piece { says, beats, .. } = piece;
        let mut other = |value: u16| match random.below(5) {
            0 => value ^ (1 << random.below(13)),
            // Not whole beats.
            1 => value ^ (1 << random.below(LANES.ilog2().into())),
            2 => value.saturating_sub(LANES as u16),
            3 => (value + LANES as u16) & 0x1fff,
            _ => random.below(1 << 13) as u16,
        };
        let [bytes, remaining] = [says.in_bytes, says.in_remaining].map(&mut other);
        match random.below(10) {
            0 => says.in_tag = random.below(self.tags) as u8,
            1 => says.in_bytes = bytes,
            2 => says.in_remaining = remaining,
            3 => (says.in_bytes, says.in_remaining) = (remaining, remaining),
            4 => *beats += 1 + random.below(2),
            5 => *beats = (*beats - 1).max(1),
            6 => says.in_bytes = 0,
            _ => {
                says.in_failed = true;
                *beats = 1 + random.below(2);
            }
        }
    }

    /// What the cycle did to the doorbell and to the reads that wait.
    fn note(&mut self, input: &In, out: &Out) {
        if input.bell_valid && out.bell_ready {
            self.bell = None;
        }
        if out.free_valid {
            self.open.retain(|open| open.tag != out.free_tag);
        }
        if input.lost_valid {
            self.open.retain(|open| open.tag != input.lost_tag);
        }
        if let Some(piece) = self.sending.take_if(|piece| piece.beats == 0)
            && piece.is_true
            && let Some(open) = self.open.iter_mut().find(|open| open.tag == piece.says.in_tag)
        {
            open.beats = open.beats.saturating_sub(u64::from(piece.says.in_bytes) / LANES as u64);
            self.open.retain(|open| open.beats > 0);
        }
        if out.read_valid && input.read_ready {
            let beats = u64::from(out.read_bytes) / LANES as u64;
            self.open.push(Open { tag: input.read_tag, beats });
            self.offer();
        }
    }
}

impl Load for DescFetchLoad {
    type In = In;
    type Out = Out;

    fn step(&mut self) -> (In, Out) {
        if self.random.below(256) == 0 {
            self.change_mood();
        }
        let [rings, asks, brings, takes] = self.mood.rates;
        if self.bell.is_none() && self.random.below(8) < rings {
            self.bell = Some(self.ring());
        }
        if self.random.below(16) == 0 {
            self.offer();
        }
        let mut input = self.bell.unwrap_or_default();
        input.bell_valid = self.bell.is_some();
        input.read_ready = self.random.below(8) < asks;
        input.read_tag = self.read_tag;
        input.out_ready = self.random.below(8) < takes;
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
        let out = self.fetch.cycle(input);
        self.note(&input, &out);
        (input, out)
    }
}

#[cfg(test)]
mod tests {
    use bellwire_model::chpp::Config;

    use crate::block::assert_first_configuration;

    use super::LANES;

    /// The first configuration of the block has the model's places, reads and tags.
    #[test]
    fn the_first_configuration_is_the_papers() {
        let Config { nic, pcie, .. } = Config::prototype();
        let expected = [
            ("Beats", 4096 / LANES as u64),
            ("Places", nic.descriptors_in_flight as u64),
            ("Request", pcie.read_request.count() / LANES as u64),
            ("Tags", nic.tags as u64),
        ];
        assert_first_configuration("desc_fetch", &expected);
    }
}
