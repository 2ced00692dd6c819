//! Descriptors of all operations, most of them right and the others wrong in one place, or random;
//! some from elsewhere, some without data; keys of windows that refuse at times; and a taker at
//! each port that stalls at random. A run with an even seed ends in a descriptor of up to 2^40
//! bytes, whose reads would take longer than any run.

use bellwire_model::cycle::data_reorder::LANES;
use bellwire_model::cycle::desc_extract::{DescExtract, In, Out, Shape};
use bellwire_model::engine::Random;
use bellwire_wire::ADDRESS_BITS;
use bellwire_wire::header::MAX_NAP_BYTES;
use bellwire_wire::primitive::Primitive;
use bellwire_wire::tail::MAX_TAIL_BYTES;

use crate::bench::Load;

/// Words of a beat.
const WORDS: usize = 2;
/// From this cycle on, the descriptors of an even seed may be of any size.
const HUGE_FROM: u64 = 70_000;

/// The block between the fetch of descriptors and what takes its outputs.
pub struct DescExtractLoad {
    extract: DescExtract,
    random: Random,
    shape: Shape,
    /// The descriptor that comes, and its words that were taken.
    words: Vec<u64>,
    about: In,
    at: usize,
    /// The word is offered until it is taken.
    offers: bool,
    cpu: u8,
    cpus: u8,
    mood: Mood,
    /// Cycles until descriptors may be of any size, if ever.
    huge_in: Option<u64>,
}

/// What the next cycles are like.
#[derive(Clone, Copy)]
struct Mood {
    /// Of eight cycles, how many bring a word, and take a read, a move, a beat and a report.
    rates: [u64; 5],
    /// Beats of a descriptor, at most.
    longest: u64,
    /// Bytes of an entry, at most.
    entry: u64,
    /// Of 64 descriptors, how many are wrong; of 64 sources, how many lie outside.
    wrong: u64,
    outside: u64,
}

impl DescExtractLoad {
    /// Empty places.
    pub fn new(shape: Shape, seed: u64) -> DescExtractLoad {
        DescExtractLoad {
            extract: DescExtract::new(shape),
            random: Random::new(seed),
            shape,
            words: Vec::new(),
            about: In::default(),
            at: 0,
            offers: false,
            cpu: 1,
            cpus: 16,
            mood: Mood { rates: [8; 5], longest: 4, entry: 64, wrong: 0, outside: 0 },
            huge_in: seed.is_multiple_of(2).then_some(HUGE_FROM),
        }
    }

    /// Whether descriptors may be of any size by now.
    fn is_huge(&self) -> bool {
        self.huge_in == Some(0)
    }

    fn change_mood(&mut self) {
        let beats = self.shape.beats as u64;
        let random = &mut self.random;
        let mut one_of = |all: &[u64]| all[random.below(all.len() as u64) as usize];
        self.mood = Mood {
            rates: [
                one_of(&[1, 4, 8, 8]),
                one_of(&[0, 1, 4, 8, 8, 8]),
                one_of(&[0, 1, 4, 8, 8, 8]),
                one_of(&[0, 1, 4, 8, 8, 8]),
                one_of(&[0, 1, 4, 8, 8, 8]),
            ],
            longest: one_of(&[2, 4, 8, 32, beats]).min(beats),
            entry: one_of(&[1, 16, 64, 300, 300, 1 << 12]),
            wrong: one_of(&[0, 16, 48, 64]),
            outside: one_of(&[0, 0, 4, 32]),
        };
        self.cpu = one_of(&[0, 1, 2, 4, 8, 15]) as u8;
        self.cpus = one_of(&[1, 8, 15, 16, 16, 16]) as u8;
    }

    /// Addresses and lengths of a list with this sum; some entries are empty.
    fn list(&mut self, count: u64, sum: u64) -> Vec<[u64; WORDS]> {
        let random = &mut self.random;
        let mut left = sum;
        let mut entries = Vec::new();
        for at in 0..count {
            let length = match random.below(4) {
                _ if at + 1 == count => left,
                0 => 0,
                1 => left,
                _ => random.below(left + 1),
            };
            left -= length;
            let last = (1 << ADDRESS_BITS) - length;
            let address = match random.below(8) {
                // It ends with the last address, or with a page.
                0 => last,
                1 => (random.below(1 << 20) << 12).saturating_sub(length.min(16)),
                _ => random.below(last + 1),
            };
            entries.push([address, length]);
        }
        entries
    }

    /// The next descriptor, with what stands beside it.
    fn next(&mut self) {
        let most = self.mood.longest - 1;
        let is_huge = self.is_huge();
        let random = &mut self.random;
        let remote = random.below(4) == 0;
        let kind = if remote && random.below(16) > 0 { 3 } else { random.below(4) };
        let tail = if random.below(2) == 0 { 0 } else { random.below(MAX_TAIL_BYTES as u64 + 1) };
        let room = most - u64::from(tail > 0);
        let most_nap = MAX_NAP_BYTES as u64;
        let (mut sources, mut destinations, mut immediate) = (0, 0, 0);
        let mut sum = random.below(self.mood.entry + 1);
        // A GET from here moves nothing here, so it may ask for all memory.
        if (kind == 3 && !remote && random.below(4) == 0) || (kind >= 2 && is_huge) {
            sum = random.below(1 << ADDRESS_BITS);
        } else if kind >= 2 && random.below(32) == 0 {
            // Up to 2,048 reads.
            let most = (self.shape.request * LANES) as u64 * (1 << random.below(12));
            sum = random.below(most);
        }
        match kind {
            0 => {
                let limit = most_nap.min(room * LANES as u64);
                immediate = if random.below(4) == 0 { limit } else { random.below(limit + 1) };
            }
            1 => {
                sources = random.below(room + 1);
                // Some have a few bytes too many.
                let is_edge = random.below(16) == 0;
                sum = if is_edge { most_nap - 32 + random.below(65) } else { sum.min(most_nap) };
            }
            _ if room >= 2 && random.below(16) > 0 => {
                sources = 1 + random.below(room - 1);
                destinations = 1 + random.below(room - sources);
            }
            _ => {}
        }
        // Both lists together have 254 entries at most.
        while sources + destinations > 254 {
            sources -= 1;
        }
        let primitive = [Primitive::Nap, Primitive::Nap, Primitive::Put, Primitive::Get];
        let word = random.word();
        let back = if kind == 3 { word >> 24 & 0xff } else { 0 };
        // Destination, queue pair, traffic class, key and event are random.
        let said = word & (0x1ff << 32 | 3 << 20 | 7 << 16 | 0xff << 8 | 1 << 5);
        let first = destinations << 56
            | sources << 48
            | back << 24
            | said
            | u64::from(kind == 0) << 4
            | u64::from(primitive[kind as usize].code());
        let mut beats = vec![[first, tail << 16 | immediate]];
        let sum = if sources == 0 { 0 } else { sum };
        let lists = [self.list(sources, sum), self.list(destinations, sum)];
        beats.extend(lists.into_iter().flatten());
        for bytes in [immediate, tail] {
            let mut left = bytes;
            while left > 0 {
                let mut beat = [0; WORDS];
                for word in &mut beat {
                    let here = left.min(8);
                    *word = if here == 0 { 0 } else { self.random.word() >> (64 - 8 * here) };
                    left -= here;
                }
                beats.push(beat);
            }
        }
        self.words = beats.into_flattened();
        let random = &mut self.random;
        self.about = In {
            in_remote: remote,
            in_function: random.below(8) as u8,
            in_pair: random.below(4) as u8,
            in_peer: random.below(1 << 9) as u16,
            in_address: random.below(1 << ADDRESS_BITS),
            ..In::default()
        };
        if random.below(64) < self.mood.wrong {
            self.spoil();
        }
        self.at = 0;
    }

    /// Makes the descriptor wrong, mostly in one place.
    fn spoil(&mut self) {
        let random = &mut self.random;
        let count = self.words.len() as u64;
        let some = random.below(count) as usize;
        let (entry, last) = ((some / WORDS * WORDS + 1).min(self.words.len() - 1), count - 1);
        match random.below(18) {
            0 => self.about.in_failed = true,
            1 => self.about.in_refused = true,
            // A bit of the header, of the primitive or what stands beside it, of a length, of
            // anything.
            2 => self.words[0] ^= 1 << random.below(64),
            3 => self.words[0] ^= 1 << random.below(6),
            4 => self.words[1] ^= 1 << random.below(64),
            5 => self.words[some] ^= 1 << random.below(64),
            6 => self.words[entry] ^= 1 << random.below(44),
            // A bit behind those of the tail, or of immediate data.
            7 | 8 => {
                let word = last.saturating_sub(random.below(2 * WORDS as u64)) as usize;
                self.words[word] |= 1 << random.below(64);
            }
            // Lengths that overflow, and entries that go on behind the last address.
            9 if some > 1 => self.words[entry] = u64::MAX - random.below(2 * count),
            10 if some > 1 => {
                self.words[entry - 1] *= random.below(2);
                self.words[entry] = (1 << ADDRESS_BITS) - random.below(2);
            }
            11 if some > 1 => {
                self.words[entry - 1] = (1 << ADDRESS_BITS) + random.below(3) - 1;
                self.words[entry] = random.below(2);
            }
            // Entries that end one bit behind the last address.
            12 if some > 1 => {
                let end = (1 << ADDRESS_BITS) + (1 << random.below(u64::from(ADDRESS_BITS)));
                self.words[entry - 1] = end - self.words[entry].min(end);
            }
            // A source or a destination more.
            13 => {
                let list = 48 + 8 * random.below(2);
                self.words[0] = self.words[0].wrapping_add(1 << list);
                self.words.splice(WORDS..WORDS, [random.below(1 << 20), random.below(64)]);
            }
            // The end is missing, or too much comes.
            14 => self.words.truncate(1 + some),
            15 => {
                let more = 1 + random.below(4);
                self.words.extend((0..more).map(|_| random.word() & 0xff));
            }
            16 => {
                let more = 2 * self.shape.beats as u64 - count.min(2 * self.shape.beats as u64);
                self.words.extend((0..more + random.below(4)).map(|_| random.word()));
            }
            _ => self.words.iter_mut().for_each(|word| *word = random.word()),
        }
        if self.about.in_failed || self.about.in_refused {
            self.words.truncate(1);
        }
    }
}

impl Load for DescExtractLoad {
    type In = In;
    type Out = Out;

    fn step(&mut self) -> (In, Out) {
        self.huge_in = self.huge_in.map(|cycles| cycles.saturating_sub(1));
        if self.random.below(512) == 0 {
            self.change_mood();
        }
        if self.at == self.words.len() {
            self.next();
        }
        let mut rates = self.mood.rates.into_iter();
        let mut draws = || rates.next().is_some_and(|rate| self.random.below(8) < rate);
        self.offers |= draws();
        let (read_ready, move_ready) = (draws(), draws());
        let (data_ready, report_ready) = (draws(), draws());
        let input = In {
            cpu: self.cpu,
            cpus: self.cpus,
            in_valid: self.offers,
            in_last: self.at + 1 == self.words.len(),
            in_word: self.words[self.at],
            source_fits: self.random.below(64) >= self.mood.outside,
            read_ready,
            move_ready,
            data_ready,
            report_ready,
            ..self.about
        };
        let out = self.extract.cycle(input);
        if self.offers && out.in_ready {
            self.at += 1;
            self.offers = false;
        }
        (input, out)
    }
}

#[cfg(test)]
mod tests {
    use bellwire_model::chpp::Config;

    use crate::block::assert_first_configuration;

    use super::LANES;

    /// The first configuration of the block has the model's descriptors and reads.
    #[test]
    fn the_first_configuration_is_the_papers() {
        let pcie = Config::prototype().pcie;
        let expected = [
            ("Beats", 4096 / LANES as u64),
            ("Places", 2),
            ("Request", pcie.read_request.count() / LANES as u64),
        ];
        assert_first_configuration("desc_extract", &expected);
    }
}
