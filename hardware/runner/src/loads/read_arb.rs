//! Requesters that ask at rates that change; an allocator that at times has no tag, offers one that
//! waits, or loses one; a boundary that stalls; and a completer that cuts its completions, has them
//! overtake each other, and at times lies about tags. Requesters free tags, and at times those that
//! they should not.

use bellwire_model::cycle::read_arb::{In, Out, REQUESTERS, ReadArb};
use bellwire_model::engine::Random;

use crate::bench::Load;

/// The arbiter between requesters and a completer.
pub struct ReadArbLoad {
    arb: ReadArb,
    random: Random,
    requesters: usize,
    /// Numbers that tags can have.
    tags: u64,
    /// What requesters ask for, and the tag that is offered.
    asks: In,
    /// Reads that wait for completions: tag and requester.
    open: Vec<(u8, usize)>,
    /// The tag of the completion that comes, and beats of it to come.
    piece: Option<(u8, u64)>,
    /// The tag of the completion that ended in the cycle before.
    ended: Option<u8>,
    mood: Mood,
}

/// What the next cycles are like.
#[derive(Clone, Copy)]
struct Mood {
    /// Of eight cycles, how many have a requester ask, a tag, the boundary ready, and a beat.
    asks: [u64; REQUESTERS],
    tags: u64,
    takes: u64,
    brings: u64,
    /// Beats of a completion, at most.
    longest: u64,
    /// Of eight completions, how many are the last of their read.
    ends: u64,
    /// Of 64 tags, asks and reads that end, how many are wrong; of 256 cycles, how many lose a tag.
    wrong: u64,
    losses: u64,
}

impl ReadArbLoad {
    /// An arbiter without reads.
    pub fn new(requesters: usize, tags: usize, seed: u64) -> ReadArbLoad {
        ReadArbLoad {
            arb: ReadArb::new(requesters, tags),
            random: Random::new(seed),
            requesters,
            tags: tags.next_power_of_two().max(2) as u64,
            asks: In::default(),
            open: Vec::new(),
            piece: None,
            ended: None,
            mood: Mood {
                asks: [8; REQUESTERS],
                tags: 8,
                takes: 8,
                brings: 8,
                longest: 2,
                ends: 8,
                wrong: 0,
                losses: 0,
            },
        }
    }

    fn change_mood(&mut self) {
        let random = &mut self.random;
        let mut one_of = |all: &[u64]| all[random.below(all.len() as u64) as usize];
        self.mood = Mood {
            asks: [(); REQUESTERS].map(|()| one_of(&[0, 1, 4, 8, 8])),
            tags: one_of(&[1, 4, 8, 8]),
            takes: one_of(&[0, 1, 4, 8, 8]),
            brings: one_of(&[0, 1, 4, 8, 8]),
            longest: one_of(&[1, 2, 8]),
            ends: one_of(&[1, 4, 8]),
            wrong: one_of(&[0, 0, 1, 16]),
            losses: one_of(&[0, 0, 1, 16]),
        };
    }

    /// Requesters that begin to ask; at times one asks for something else, or no longer.
    fn ask(&mut self) {
        let mood = self.mood;
        let random = &mut self.random;
        for at in 0..self.requesters {
            let changes = random.below(64) < mood.wrong;
            if (!self.asks.ask_valid[at] && random.below(8) < mood.asks[at]) || changes {
                self.asks.ask_valid[at] = !changes || random.below(2) == 0;
                self.asks.ask_function[at] = random.below(8) as u8;
                self.asks.ask_address[at] = random.below(1 << 40);
                self.asks.ask_bytes[at] = random.below(1 << 13) as u16;
            }
        }
        self.asks.tag_valid = random.below(8) < mood.tags;
    }

    /// The tag that is offered next; mostly a free one.
    fn offer(&mut self) {
        for _ in 0..8 {
            self.asks.tag = self.random.below(self.tags) as u8;
            if self.random.below(64) < self.mood.wrong
                || self.open.iter().all(|&(tag, _)| tag != self.asks.tag)
            {
                break;
            }
        }
    }

    /// A tag that waits, and at times any.
    fn some_tag(&mut self) -> u8 {
        let random = &mut self.random;
        let (any, count) = (random.below(self.tags) as u8, self.open.len() as u64);
        if count == 0 || random.below(64) < self.mood.wrong {
            return any;
        }
        self.open[random.below(count) as usize].0
    }

    /// Whose reads have ended with the completion of the cycle before.
    fn free(&mut self, input: &mut In) {
        let random = &mut self.random;
        if let Some(tag) = self.ended.take()
            && let Some(&(_, owner)) = self.open.iter().find(|(open, _)| *open == tag)
        {
            input.free_valid[owner] = random.below(8) < self.mood.ends;
        }
        if random.below(64) < self.mood.wrong {
            input.free_valid[random.below(self.requesters as u64) as usize] ^= true;
        }
    }

    /// What the cycle did to the reads that wait.
    fn note(&mut self, input: &In, out: &Out) {
        let requesters = 0..self.requesters;
        let is_served = |&at: &usize| input.ask_valid[at] && out.ask_ready[at];
        if input.lost_valid {
            self.open.retain(|&(tag, _)| tag != input.lost_tag);
        }
        if out.release_valid {
            self.open.retain(|&(tag, _)| tag != out.release_tag);
        }
        if let Some(owner) = requesters.clone().find(is_served) {
            self.asks.ask_valid[owner] = false;
            self.open.push((input.tag, owner));
            self.offer();
        }
    }
}

impl Load for ReadArbLoad {
    type In = In;
    type Out = Out;

    fn step(&mut self) -> (In, Out) {
        if self.random.below(256) == 0 {
            self.change_mood();
        }
        self.ask();
        if self.random.below(16) == 0 {
            self.offer();
        }
        let mut input = self.asks;
        input.read_ready = self.random.below(8) < self.mood.takes;
        self.free(&mut input);
        if self.piece.is_none() {
            self.piece = Some((self.some_tag(), 1 + self.random.below(self.mood.longest)));
        }
        if let Some((tag, beats)) = &mut self.piece
            && self.random.below(8) < self.mood.brings
        {
            *beats -= 1;
            (input.in_valid, input.in_last, input.in_tag) = (true, *beats == 0, *tag);
            if input.in_last {
                self.ended = Some(*tag);
                self.piece = None;
            } else if self.random.below(8) == 0 {
                // The tag of a later beat does not count.
                *tag = self.random.below(self.tags) as u8;
            }
        }
        if self.random.below(256) < self.mood.losses {
            input.lost_valid = true;
            let around = [self.some_tag(), input.in_tag, self.ended.unwrap_or(0)];
            input.lost_tag = around[self.random.below(3) as usize];
        }
        let out = self.arb.cycle(input);
        self.note(&input, &out);
        (input, out)
    }
}

#[cfg(test)]
mod tests {
    use bellwire_model::chpp::Config;

    use crate::block::assert_first_configuration;

    /// The first configuration of the block has the model's tags, and those that read: descriptors,
    /// data and slot addresses.
    #[test]
    fn the_first_configuration_is_the_papers() {
        let tags = Config::prototype().nic.tags as u64;
        assert_first_configuration("read_arb", &[("Requesters", 3), ("Tags", tags)]);
    }
}
