//! Two descriptor extracts with words that ask about sources in bursts, also without a word, and
//! doorbells that come at rates that change. A doorbell may go away before it is taken.

use bellwire_model::cycle::source_arb::{EXTRACTS, In, Out, SourceArb};
use bellwire_model::engine::Random;

use crate::bench::Load;

/// The arbiter between descriptor extracts, doorbells and windows.
pub struct SourceArbLoad {
    arb: SourceArb,
    random: Random,
    functions: u64,
    input: In,
    mood: Mood,
}

/// What the next cycles are like: of eight cycles, how many are so.
#[derive(Clone, Copy)]
struct Mood {
    words: [u64; EXTRACTS],
    takes: [u64; EXTRACTS],
    asks: [u64; EXTRACTS],
    rings: u64,
    out_ready: u64,
    fits: u64,
    /// Of 64 cycles, in how many a doorbell that waits becomes another one.
    changes: u64,
}

impl SourceArbLoad {
    /// An arbiter in front of this many windows.
    pub fn new(functions: usize, seed: u64) -> SourceArbLoad {
        SourceArbLoad {
            arb: SourceArb::default(),
            random: Random::new(seed),
            functions: functions.next_power_of_two().max(2) as u64,
            input: In::default(),
            mood: Mood {
                words: [8; EXTRACTS],
                takes: [8; EXTRACTS],
                asks: [4; EXTRACTS],
                rings: 4,
                out_ready: 8,
                fits: 4,
                changes: 0,
            },
        }
    }

    fn change_mood(&mut self) {
        let random = &mut self.random;
        let mut rate = || [0, 1, 4, 7, 8, 8][random.below(6) as usize];
        self.mood = Mood {
            words: [rate(), rate()],
            takes: [rate(), rate()],
            asks: [rate(), rate()],
            rings: rate(),
            out_ready: rate(),
            fits: rate(),
            changes: [0, 0, 1, 16][rate() as usize % 4],
        };
    }

    /// A doorbell, or none.
    fn ring(&mut self) {
        let random = &mut self.random;
        self.input.bell_valid = random.below(8) < self.mood.rings;
        self.input.bell_function = random.below(self.functions) as u8;
        self.input.bell_word = random.word();
    }
}

impl Load for SourceArbLoad {
    type In = In;
    type Out = Out;

    fn step(&mut self) -> (In, Out) {
        if self.random.below(256) == 0 {
            self.change_mood();
        }
        if !self.input.bell_valid || self.random.below(64) < self.mood.changes {
            self.ring();
        }
        let Mood { words, takes, asks, out_ready, fits, .. } = self.mood;
        let random = &mut self.random;
        let mut is_so = |rate: u64| random.below(8) < rate;
        let input = In {
            word_valid: words.map(&mut is_so),
            to_ready: takes.map(&mut is_so),
            ask_valid: asks.map(&mut is_so),
            source_fits: is_so(fits),
            out_ready: is_so(out_ready),
            ask_function: [(); EXTRACTS].map(|()| random.below(self.functions) as u8),
            ask_address: [(); EXTRACTS].map(|()| random.below(1 << 40)),
            ask_length: [(); EXTRACTS].map(|()| random.below(1 << 40)),
            ..self.input
        };
        let out = self.arb.cycle(input);
        if input.bell_valid && out.bell_ready {
            self.ring();
        }
        (input, out)
    }
}

#[cfg(test)]
mod tests {
    use bellwire_model::chpp::Config;

    use crate::block::assert_first_configuration;

    /// The first configuration of the block has the functions of the model's prototype.
    #[test]
    fn the_first_configuration_is_the_papers() {
        let functions = Config::prototype().nic.functions as u64;
        assert_first_configuration("source_arb", &[("Functions", functions)]);
    }
}
