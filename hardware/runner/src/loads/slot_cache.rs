//! Software that opens and closes lists, reports at rates that change, and at times reports any
//! count; NAPs; and a host memory that answers reads in any order, fails, and at times gives words
//! that are no slot or that nobody asked for.

use bellwire_model::cycle::slot_cache::{In, Out, PAGE_BITS, SLOT_SHIFT, SlotCache};
use bellwire_model::engine::Random;
use bellwire_wire::ADDRESS_BITS;

use crate::bench::Load;

/// The caches of an interface with their software.
pub struct SlotCacheLoad {
    caches: SlotCache,
    random: Random,
    software: Vec<Software>,
    /// Counts that can be told apart.
    counts: u64,
    /// Reads that are answered: queue pair, and entries that have not come.
    reads: Vec<(u8, u8)>,
    /// What was reported in the cycle before: the queue pair, and the count.
    reported: Option<(u8, u16)>,
    mood: Mood,
}

/// What software knows of a list since it was opened.
#[derive(Clone, Copy, Default)]
struct Software {
    entries: u64,
    /// Entries that were listed, and those whose slot was given to a NAP or was none.
    posted: u64,
    given: u64,
}

/// What the next cycles are like.
#[derive(Clone, Copy)]
struct Mood {
    /// Of eight cycles, how many have a report, a NAP, a reader that is ready, and an entry.
    rates: [u64; 4],
    /// Queue pairs that are busy: those with the lowest numbers.
    busy: u64,
    /// Of 4096 writes of the host, how many open a list.
    opens: u64,
    /// Of 64 reports, how many have any count; of 64 entries, how many fail, are no slot, or are
    /// for any queue pair.
    wrong: u64,
    lies: [u64; 3],
    /// A report has all that can be listed, and reads are answered in their order.
    lists_all: bool,
    in_order: bool,
}

impl SlotCacheLoad {
    /// Closed lists with their parameters.
    pub fn new(
        pairs: usize,
        slots: usize,
        batch: usize,
        count_bits: usize,
        seed: u64,
    ) -> SlotCacheLoad {
        SlotCacheLoad {
            caches: SlotCache::new(pairs, slots, batch, count_bits),
            random: Random::new(seed),
            software: vec![Software::default(); pairs],
            counts: 1 << count_bits,
            reads: Vec::new(),
            reported: None,
            mood: Mood {
                // Lists that were never opened must ask for nothing.
                rates: [1, 8, 8, 8],
                busy: pairs as u64,
                opens: 4096,
                wrong: 0,
                lies: [0; 3],
                lists_all: true,
                in_order: true,
            },
        }
    }

    fn change_mood(&mut self) {
        let all = self.software.len() as u64;
        let random = &mut self.random;
        let mut one_of = |all: &[u64]| all[random.below(all.len() as u64) as usize];
        self.mood = Mood {
            rates: [
                one_of(&[1, 4, 8]),
                one_of(&[0, 1, 4, 8, 8]),
                one_of(&[0, 1, 4, 8, 8]),
                one_of(&[1, 4, 8, 8]),
            ],
            busy: one_of(&[1, 2, all, all]),
            wrong: one_of(&[0, 1, 16]),
            lies: [one_of(&[0, 0, 1, 16]), one_of(&[0, 0, 1, 16]), one_of(&[0, 0, 0, 1, 16])],
            lists_all: one_of(&[0, 1]) == 1,
            in_order: one_of(&[0, 1]) == 1,
            // Seldom: the counts of a list begin anew with it, and shall wrap.
            opens: match random.below(8 + self.counts / 64) {
                0 => 2048,
                1..4 => 16,
                _ => 0,
            },
        };
    }

    /// Mostly one of the busy queue pairs.
    fn pair(&mut self) -> u8 {
        let all = self.software.len() as u64;
        let among = if self.random.below(16) == 0 { all } else { self.mood.busy };
        self.random.below(among) as u8
    }

    /// A list of some size, at any page.
    fn open(&mut self, host_pair: u8) -> In {
        let random = &mut self.random;
        let entries = match random.below(8) {
            0 => 0,
            1 => self.counts - 1,
            2..5 => 1 + random.below(self.counts.min(64) - 1),
            _ => 1 + random.below(self.counts - 1),
        };
        let (host_page, host_count) = (random.below(1 << PAGE_BITS) as u32, entries as u16);
        In { host_valid: true, host_opens: true, host_pair, host_page, host_count, ..In::default() }
    }

    /// A report of entries: as many as there are slots that software has.
    fn report(&mut self, host_pair: u8) -> In {
        let Software { entries, posted, given } = self.software[usize::from(host_pair)];
        let random = &mut self.random;
        let free = (given + entries).saturating_sub(posted);
        let news = if random.below(64) >= self.mood.wrong {
            if self.mood.lists_all { free } else { random.below(free + 1) }
        } else if random.below(2) == 0 {
            free + 1
        } else {
            random.below(self.counts)
        };
        let host_count = ((posted + news) % self.counts) as u16;
        // It says nothing with a report.
        let host_page = random.below(1 << PAGE_BITS) as u32;
        self.reported = Some((host_pair, host_count));
        In { host_valid: true, host_pair, host_page, host_count, ..In::default() }
    }

    /// The next entry of a read.
    fn answer(&mut self, input: &mut In) {
        if self.reads.is_empty() {
            return;
        }
        let random = &mut self.random;
        let at =
            if self.mood.in_order { 0 } else { random.below(self.reads.len() as u64) as usize };
        let [fails, misplaced, _] = self.mood.lies.map(|often| random.below(64) < often);
        (input.in_valid, input.in_pair, input.in_failed) = (true, self.reads[at].0, fails);
        if misplaced {
            // Bits that an address of a slot has not.
            let bit = random.below((SLOT_SHIFT + 64 - ADDRESS_BITS as usize) as u64);
            let above = bit + u64::from(ADDRESS_BITS) - SLOT_SHIFT as u64;
            input.in_word |= 1 << if bit < SLOT_SHIFT as u64 { bit } else { above };
        }
    }

    /// What the cycle did, and what became of the last report.
    fn note(&mut self, input: &In, out: &Out, reported: Option<(u8, u16)>) {
        if let Some((pair, count)) = reported.filter(|_| !out.refused) {
            let software = &mut self.software[usize::from(pair)];
            software.posted += u64::from(count).wrapping_sub(software.posted) % self.counts;
        }
        if out.misplaced {
            self.software[usize::from(out.told_pair)].given += 1;
        }
        if input.take_valid && out.take_ready {
            self.software[usize::from(input.take_pair)].given += 1;
        }
        if input.host_valid && input.host_opens {
            let software = &mut self.software[usize::from(input.host_pair)];
            *software = Software { entries: input.host_count.into(), ..Software::default() };
        }
        if out.read_valid && input.read_ready {
            self.reads.push((out.read_pair, out.read_count));
        }
        if input.in_valid && out.in_ready {
            let at = self.reads.iter().position(|(pair, _)| *pair == input.in_pair);
            if let Some(at) = at {
                self.reads[at].1 -= 1;
                if input.in_failed || self.reads[at].1 == 0 {
                    self.reads.remove(at);
                }
            }
        }
    }
}

impl Load for SlotCacheLoad {
    type In = In;
    type Out = Out;

    fn step(&mut self) -> (In, Out) {
        if self.random.below(512) == 0 {
            self.change_mood();
        }
        let [reports, comes, takes, answers] = self.mood.rates;
        let reported = self.reported.take();
        let mut input = In::default();
        if self.random.below(8) < reports {
            let pair = self.pair();
            let opens = self.random.below(4096) < self.mood.opens;
            input = if opens { self.open(pair) } else { self.report(pair) };
        }
        input.take_valid = self.random.below(8) < comes;
        input.take_pair = self.pair();
        input.read_ready = self.random.below(8) < takes;
        input.in_pair = self.pair();
        input.in_failed = self.random.below(8) == 0;
        input.in_word = self.random.below(1 << (ADDRESS_BITS as usize - SLOT_SHIFT)) << SLOT_SHIFT;
        if self.random.below(64) < self.mood.lies[2] {
            input.in_valid = true;
        } else if self.random.below(8) < answers {
            self.answer(&mut input);
        }
        let out = self.caches.cycle(input);
        self.note(&input, &out, reported);
        (input, out)
    }
}

#[cfg(test)]
mod tests {
    use bellwire_model::chpp::Config;

    use crate::block::assert_first_configuration;

    /// The first configuration of the block has the model's queue pairs and caches, and counts for
    /// the longest list that it may have.
    #[test]
    fn the_first_configuration_is_the_models() {
        let nic = Config::prototype().nic;
        let expected = [
            ("Batch", nic.slot_batch as u64),
            ("CountWidth", u64::from(256_u64.ilog2() + 1)),
            ("Pairs", (nic.functions * nic.queue_pairs) as u64),
            ("Slots", nic.slot_cache as u64),
        ];
        assert_first_configuration("slot_cache", &expected);
    }
}
