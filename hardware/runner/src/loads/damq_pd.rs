//! Ports that write within credits, ring, and get what was fetched for them; as processes and
//! prefetcher may, and as hard as they may.

use std::collections::VecDeque;

use bellwire_model::damq_pd::ports::{In, Out, spread};
use bellwire_model::damq_pd::{DescriptorBuffer, Organisation, Way};
use bellwire_model::engine::Random;

use crate::bench::Load;

/// Doorbells that a port has rung and that were not served, at most.
const MOST_RUNG: usize = 12;

/// The buffer with its ports.
pub struct DamqLoad {
    buffer: DescriptorBuffer,
    random: Random,
    /// Words that may still be inside, by way.
    room: [usize; 2],
    ports: Vec<Port>,
    /// The port whose descriptor comes by DMA, and its remaining words.
    fetching: Option<(usize, u64)>,
    mood: Mood,
}

#[derive(Clone, Default)]
struct Port {
    /// Remaining words of the descriptor that it writes.
    writing: u64,
    /// Lengths of the descriptors for which it rang.
    rung: VecDeque<u64>,
}

/// What the next cycles are like.
#[derive(Clone, Copy)]
struct Mood {
    /// Of eight cycles, how many bring a word by PIO, a word by DMA, a doorbell.
    pio: u64,
    dma: u64,
    bells: u64,
    /// Of eight cycles, how many are ready.
    ready: u64,
    /// Ports that take part.
    ports: u64,
    /// Words of a descriptor, at most.
    longest: u64,
}

impl DamqLoad {
    /// A buffer with its parameters.
    pub fn new(ports: usize, depth: usize, landing: usize, seed: u64) -> DamqLoad {
        DamqLoad {
            buffer: DescriptorBuffer::new(Organisation::DamqPd, ports, depth, landing),
            random: Random::new(seed),
            room: [depth, landing],
            ports: vec![Port::default(); ports],
            fetching: None,
            mood: Mood { pio: 8, dma: 4, bells: 2, ready: 8, ports: ports as u64, longest: 4 },
        }
    }

    fn change_mood(&mut self) {
        let random = &mut self.random;
        let rate = |random: &mut Random| [0, 1, 4, 7, 8][random.below(5) as usize];
        self.mood = Mood {
            pio: rate(random),
            dma: rate(random),
            bells: rate(random),
            ready: rate(random),
            ports: 1 + random.below(self.ports.len() as u64),
            longest: 1 + random.below(4),
        };
    }

    /// A word by PIO of some port: the next of its descriptor, or the first of a new one.
    fn write(&mut self, input: &mut In) {
        let port = self.random.below(self.mood.ports) as usize;
        if self.ports[port].writing == 0 {
            let words = 1 + self.random.below(self.mood.longest);
            if (words as usize) > self.room[Way::Pio as usize] {
                return;
            }
            self.room[Way::Pio as usize] -= words as usize;
            self.ports[port].writing = words;
        }
        self.ports[port].writing -= 1;
        let last = self.ports[port].writing == 0;
        self.word(input, port, Way::Pio, last);
    }

    /// A word by DMA: of the descriptor that is coming, or of some port's oldest one.
    fn deliver(&mut self, input: &mut In) {
        if self.fetching.is_none() {
            let port = self.random.below(self.ports.len() as u64) as usize;
            let Some(&words) = self.ports[port].rung.front() else { return };
            if (words as usize) > self.room[Way::Dma as usize] {
                return;
            }
            self.room[Way::Dma as usize] -= words as usize;
            self.ports[port].rung.pop_front();
            self.fetching = Some((port, words));
        }
        let Some((port, words)) = self.fetching else { return };
        self.fetching = (words > 1).then_some((port, words - 1));
        self.word(input, port, Way::Dma, words == 1);
    }

    fn word(&mut self, input: &mut In, port: usize, way: Way, last: bool) {
        input.word_valid = true;
        input.word_port = port as u8;
        input.word_way = way == Way::Dma;
        input.word_last = last;
        input.word_data = spread(self.random.word() >> 1);
    }

    /// A doorbell. A process ends a descriptor before it rings for another.
    fn ring(&mut self, input: &mut In) {
        let port = self.random.below(self.mood.ports) as usize;
        let words = 1 + self.random.below(self.mood.longest);
        if self.ports[port].writing > 0 || self.ports[port].rung.len() >= MOST_RUNG {
            return;
        }
        self.ports[port].rung.push_back(words);
        input.bell_valid = true;
        input.bell_port = port as u8;
    }
}

impl Load for DamqLoad {
    type In = In;
    type Out = Out;

    fn step(&mut self) -> (In, Out) {
        if self.random.below(128) == 0 {
            self.change_mood();
        }
        let mut input = In { ready: self.random.below(8) < self.mood.ready, ..In::default() };
        if self.random.below(8) < self.mood.bells {
            self.ring(&mut input);
        }
        if self.random.below(8) < self.mood.dma {
            self.deliver(&mut input);
        }
        if !input.word_valid && self.random.below(8) < self.mood.pio {
            self.write(&mut input);
        }
        let out = self.buffer.clock(input);
        if out.valid {
            self.room[usize::from(out.way)] += 1;
        }
        (input, out)
    }
}
