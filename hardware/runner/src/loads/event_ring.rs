//! Events for a few rings or for all, a receiver that stalls, and software that opens and closes
//! rings, reads at rates that change, and at times reports any count.

use bellwire_model::cycle::event_ring::{BASE_BITS, EventRing, In, Out};
use bellwire_model::engine::Random;

use crate::bench::Load;

/// The rings of an interface with their software.
pub struct EventRingLoad {
    rings: EventRing,
    random: Random,
    software: Vec<Software>,
    /// Counts that can be told apart.
    counts: u64,
    mood: Mood,
}

/// What software knows of a ring, modulo [`EventRingLoad::counts`].
#[derive(Clone, Copy, Default)]
struct Software {
    entries: u64,
    written: u64,
    consumed: u64,
}

/// What the next cycles are like.
#[derive(Clone, Copy)]
struct Mood {
    /// Of eight cycles, how many have a report, an event, and a receiver that is ready.
    rates: [u64; 3],
    /// Rings that are busy: those with the lowest numbers.
    busy: u64,
    /// Of 4096 writes of the host, how many open a ring; of 64 reports, how many have any count.
    opens: u64,
    wrong: u64,
    /// A report has all that was written.
    reads_all: bool,
}

impl EventRingLoad {
    /// Closed rings with their parameters.
    pub fn new(rings: usize, count_bits: usize, seed: u64) -> EventRingLoad {
        EventRingLoad {
            rings: EventRing::new(rings, count_bits),
            random: Random::new(seed),
            software: vec![Software::default(); rings],
            counts: 1 << count_bits,
            mood: Mood {
                rates: [8; 3],
                busy: rings as u64,
                opens: 4096,
                wrong: 0,
                reads_all: true,
            },
        }
    }

    fn change_mood(&mut self) {
        let all = self.software.len() as u64;
        let random = &mut self.random;
        let mut one_of = |all: &[u64]| all[random.below(all.len() as u64) as usize];
        self.mood = Mood {
            rates: [one_of(&[1, 4, 8]), one_of(&[1, 4, 8, 8]), one_of(&[0, 1, 4, 8, 8])],
            busy: one_of(&[1, 1, 2, all]),
            wrong: one_of(&[0, 1, 16]),
            reads_all: one_of(&[0, 1]) == 1,
            // Seldom: the counts of a ring begin anew with it, and shall wrap.
            opens: match random.below(8 + self.counts / 64) {
                0 => 2048,
                1..4 => 16,
                _ => 0,
            },
        };
    }

    /// Mostly one of the busy rings.
    fn ring(&mut self) -> u8 {
        let all = self.software.len() as u64;
        let among = if self.random.below(16) == 0 { all } else { self.mood.busy };
        self.random.below(among) as u8
    }

    /// A ring of some size, which at times ends with the last address or one record behind it.
    fn open(&mut self, host_ring: u8) -> In {
        let random = &mut self.random;
        let entries = match random.below(8) {
            0 => random.below(4),
            1 => self.counts - 1 - random.below(2),
            2..5 => 1 + random.below(self.counts.min(64) - 1),
            _ => 1 + random.below(self.counts - 1),
        };
        let host_base = match random.below(8) {
            0 => (1 << BASE_BITS) - entries.max(1),
            1 => (1 << BASE_BITS) - entries.max(2) + 1,
            _ => random.below(1 << BASE_BITS),
        };
        let host_count = entries as u16;
        In { host_valid: true, host_opens: true, host_ring, host_base, host_count, ..In::default() }
    }

    /// A report of what software has read by now.
    fn report(&mut self, host_ring: u8) -> In {
        let Software { written, consumed, .. } = self.software[usize::from(host_ring)];
        let random = &mut self.random;
        let unread = written.wrapping_sub(consumed) % self.counts;
        let read = if self.mood.reads_all { unread } else { random.below(unread + 1) };
        let count = if random.below(64) >= self.mood.wrong {
            consumed + read
        } else if random.below(2) == 0 {
            written + 1
        } else {
            random.below(self.counts)
        };
        let host_count = (count % self.counts) as u16;
        // It says nothing with a report.
        let host_base = random.below(1 << BASE_BITS);
        In { host_valid: true, host_ring, host_base, host_count, ..In::default() }
    }

    /// What the cycle did to the rings.
    fn note(&mut self, input: &In, out: &Out) {
        let (count, counts) = (u64::from(input.host_count), self.counts);
        let software = &mut self.software[usize::from(input.host_ring)];
        if input.host_valid && input.host_opens {
            if input.host_base + count <= 1 << BASE_BITS {
                *software = Software { entries: count, ..Software::default() };
            }
        } else if input.host_valid && software.entries > 0 {
            let away = |from: u64, to: u64| to.wrapping_sub(from) % counts;
            if away(software.consumed, count) <= away(software.consumed, software.written) {
                software.consumed = count;
            }
        }
        if input.in_valid && out.in_ready {
            let software = &mut self.software[usize::from(input.in_ring)];
            software.written = (software.written + 1) % counts;
        }
    }
}

impl Load for EventRingLoad {
    type In = In;
    type Out = Out;

    fn step(&mut self) -> (In, Out) {
        if self.random.below(512) == 0 {
            self.change_mood();
        }
        let [reports, comes, takes] = self.mood.rates;
        let mut input = In::default();
        if self.random.below(8) < reports {
            let ring = self.ring();
            let opens = self.random.below(4096) < self.mood.opens;
            input = if opens { self.open(ring) } else { self.report(ring) };
        }
        // What is said without a write is nothing.
        if self.random.below(8) == 0 {
            input.host_valid = false;
        }
        input.in_valid = self.random.below(8) < comes;
        input.in_ring = self.ring();
        input.in_event = std::array::from_fn(|_| self.random.word());
        input.ask_ring = self.ring();
        input.out_ready = self.random.below(8) < takes;
        let out = self.rings.cycle(input);
        self.note(&input, &out);
        (input, out)
    }
}

#[cfg(test)]
mod tests {
    use bellwire_model::chpp::Config;

    use crate::block::assert_first_configuration;

    /// The first configuration of the block has the two rings of each queue pair of the model, and
    /// counts for the largest ring that it may have.
    #[test]
    fn the_first_configuration_is_the_papers() {
        let nic = Config::prototype().nic;
        let rings = (nic.functions * nic.queue_pairs * 2) as u64;
        let bits = u64::from(4096_u64.ilog2() + 1);
        let expected = [("CountWidth", bits), ("Rings", rings)];
        assert_first_configuration("event_ring", &expected);
    }
}
