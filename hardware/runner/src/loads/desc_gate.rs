//! Functions that ring, descriptors of all kinds that are let in, reach a packer or are refused in
//! any order, and software and a crossbar that stop taking events and GETs.

use std::collections::VecDeque;

use bellwire_model::cycle::desc_gate::{DescGate, In, Out};
use bellwire_model::cycle::doorbell_fifo::FUNCTIONS;
use bellwire_model::engine::Random;
use bellwire_wire::primitive::Primitive;

use crate::bench::Load;

/// The gate between doorbells, descriptors and what becomes of them.
pub struct DescGateLoad {
    gate: DescGate,
    random: Random,
    functions: u64,
    depth: u8,
    /// By function: doorbells whose event has no place yet, and events that have one.
    claims: [u8; FUNCTIONS],
    events: [u8; FUNCTIONS],
    /// Functions of descriptors that were not let in, and of those that were, with whether each may
    /// be a GET. GETs at their packer.
    waits: VecDeque<u8>,
    open: Vec<(u8, bool)>,
    gets: u64,
    /// The descriptor that comes: words to come, and the one that is offered.
    words: u64,
    offers: In,
    is_first: bool,
    mood: Mood,
}

/// What the next cycles are like: of eight cycles, how many are so.
#[derive(Clone, Copy)]
struct Mood {
    /// A doorbell waits, and one is taken. A word comes, and is taken.
    rings: u64,
    takes: u64,
    words: u64,
    to_ready: u64,
    /// An operation and a report get a place, an event leaves, and a GET.
    moves: u64,
    reports: u64,
    events: u64,
    credits: u64,
    /// Of eight descriptors, how many are GETs.
    is_get: u64,
}

impl DescGateLoad {
    /// A gate for functions with so many places, and a packer with places for GETs.
    pub fn new(functions: usize, depth: usize, gets: usize, seed: u64) -> DescGateLoad {
        DescGateLoad {
            gate: DescGate::new(functions, gets),
            random: Random::new(seed),
            functions: functions as u64,
            depth: depth as u8,
            claims: [0; FUNCTIONS],
            events: [0; FUNCTIONS],
            waits: VecDeque::new(),
            open: Vec::new(),
            gets: 0,
            words: 0,
            offers: In::default(),
            is_first: true,
            mood: Mood {
                rings: 8,
                takes: 8,
                words: 8,
                to_ready: 8,
                moves: 4,
                reports: 1,
                events: 4,
                credits: 4,
                is_get: 4,
            },
        }
    }

    fn change_mood(&mut self) {
        let random = &mut self.random;
        let mut rate = || [0, 1, 2, 4, 8, 8][random.below(6) as usize];
        self.mood = Mood {
            rings: rate(),
            takes: rate(),
            words: rate(),
            to_ready: rate(),
            moves: rate(),
            reports: rate(),
            events: rate(),
            credits: rate(),
            is_get: rate(),
        };
    }

    /// The next word of a descriptor.
    fn word(&mut self) {
        let random = &mut self.random;
        if self.words == 0 {
            self.words = 1 + random.below(4);
        }
        let is_get = random.below(8) < self.mood.is_get;
        self.offers.word_valid = true;
        self.offers.word_last = self.words == 1;
        self.offers.word_void = random.below(16) == 0;
        self.offers.word_primitive =
            if is_get { Primitive::Get.code() } else { random.below(16) as u8 };
    }

    /// One of the descriptors that were let in, and has a place now.
    fn ends(&mut self) -> Option<(u8, bool)> {
        if self.open.is_empty() {
            return None;
        }
        let ended = self.open.swap_remove(self.random.below(self.open.len() as u64) as usize);
        self.claims[usize::from(ended.0)] -= 1;
        self.events[usize::from(ended.0)] += 1;
        Some(ended)
    }
}

impl Load for DescGateLoad {
    type In = In;
    type Out = Out;

    fn step(&mut self) -> (In, Out) {
        if self.random.below(128) == 0 {
            self.change_mood();
        }
        let mood = self.mood;
        let has_word = !self.is_first || !self.waits.is_empty();
        if !self.offers.word_valid && has_word && self.random.below(8) < mood.words {
            self.word();
        }
        // What stands without a `valid` is anything.
        let mut any = || self.random.below(self.functions) as u8;
        let mut input = In {
            take_function: any(),
            move_function: any(),
            report_function: any(),
            move_get: any() == 0,
            to_ready: self.random.below(8) < mood.to_ready,
            ..self.offers
        };
        let mut rings = Vec::new();
        for function in 0..self.functions as usize {
            input.waits[function] = self.random.below(8) < mood.rings;
            input.room[function] = self.depth - self.events[function];
            if input.waits[function] && input.room[function] > self.claims[function] {
                rings.push(function as u8);
            }
        }
        if let Some(&function) = rings.get(self.random.below(rings.len().max(1) as u64) as usize)
            && self.random.below(8) < mood.takes
        {
            (input.take, input.take_function) = (true, function);
        }
        if self.random.below(8) < mood.moves
            && let Some((function, is_get)) = self.ends()
        {
            (input.move_valid, input.move_function, input.move_get) = (true, function, is_get);
        }
        if self.random.below(8) < mood.reports
            && let Some((function, _)) = self.ends()
        {
            (input.report_valid, input.report_function) = (true, function);
        }
        input.credit = self.gets > 0 && self.random.below(8) < mood.credits;
        let out = self.gate.cycle(input);

        self.gets -= u64::from(input.credit);
        self.gets += u64::from(input.move_valid && input.move_get);
        for function in 0..self.functions as usize {
            let leaves = self.events[function] > 0 && self.random.below(8) < mood.events;
            self.events[function] -= u8::from(leaves);
        }
        if input.word_valid && out.word_ready {
            if self.is_first {
                let is_get = !input.word_void && input.word_primitive == Primitive::Get.code();
                let function = self.waits.pop_front().expect("a descriptor waits");
                self.open.push((function, is_get));
            }
            self.words -= 1;
            self.is_first = self.words == 0;
            self.offers.word_valid = false;
        }
        if input.take {
            self.claims[usize::from(input.take_function)] += 1;
            self.waits.push_back(input.take_function);
        }
        (input, out)
    }
}

#[cfg(test)]
mod tests {
    use bellwire_model::chpp::Config;

    use crate::block::assert_first_configuration;

    /// The first configuration of the block has the functions of the model's prototype, and the
    /// places of the first ones of its neighbours.
    #[test]
    fn the_first_configuration_is_the_papers() {
        let functions = Config::prototype().nic.functions as u64;
        let expected = [("Depth", 16), ("Functions", functions), ("Gets", 2)];
        assert_first_configuration("desc_gate", &expected);
    }
}
