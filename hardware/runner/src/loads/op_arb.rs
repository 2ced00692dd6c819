//! Two descriptor extracts with operations of all kinds, whose moves, reads and beats pause, also
//! ones that offer what they should not, and takers at each port that stall at random.

use bellwire_model::cycle::op_arb::{EXTRACTS, In, OpArb, Out};
use bellwire_model::engine::Random;

use crate::bench::Load;

/// The arbiter between descriptor extracts, packers and reads.
pub struct OpArbLoad {
    arb: OpArb,
    random: Random,
    places: u64,
    offers: [Offer; EXTRACTS],
    mood: Mood,
}

/// What an extract has not given away of its operation.
#[derive(Clone, Copy, Default)]
struct Offer {
    is_get: bool,
    total: u64,
    moves: u64,
    reads: u64,
    beats: u64,
}

/// What the next cycles are like: of eight cycles, how many are so.
#[derive(Clone, Copy)]
struct Mood {
    /// An extract offers what it has.
    offers: [u64; EXTRACTS],
    /// A place is free; what is offered is taken at each of the other ports.
    takes: [u64; 6],
    /// Moves, reads or beats of an operation, at most.
    longest: u64,
    /// Of 64 cycles, how many have anything at all.
    wild: u64,
}

impl OpArbLoad {
    /// An arbiter with numbers of so many bits.
    pub fn new(place_bits: usize, seed: u64) -> OpArbLoad {
        OpArbLoad {
            arb: OpArb::default(),
            random: Random::new(seed),
            places: 1 << place_bits,
            offers: Default::default(),
            mood: Mood { offers: [8; EXTRACTS], takes: [8; 6], longest: 2, wild: 0 },
        }
    }

    fn change_mood(&mut self) {
        let random = &mut self.random;
        let mut one_of = |all: &[u64]| all[random.below(all.len() as u64) as usize];
        self.mood = Mood {
            offers: [(); EXTRACTS].map(|()| one_of(&[0, 1, 4, 8, 8])),
            takes: [(); 6].map(|()| one_of(&[0, 1, 4, 8, 8])),
            longest: one_of(&[1, 2, 4]),
            wild: one_of(&[0, 0, 1, 64]),
        };
    }

    /// The next operation of an extract.
    fn begin(&mut self, of: usize) {
        let random = &mut self.random;
        let longest = self.mood.longest;
        let count = 1 + random.below(longest);
        let moves = 1 + random.below(longest);
        self.offers[of] = match random.below(8) {
            0 => Offer { moves, ..Offer::default() },
            1 | 2 if of == 0 => Offer { is_get: true, total: 16, moves: 1, beats: count, reads: 0 },
            1..4 => Offer { total: 1, moves: 1, beats: count, ..Offer::default() },
            _ => Offer { total: 1 << random.below(40), moves, reads: count, ..Offer::default() },
        };
    }
}

impl Load for OpArbLoad {
    type In = In;
    type Out = Out;

    fn step(&mut self) -> (In, Out) {
        if self.random.below(256) == 0 {
            self.change_mood();
        }
        let mut input = In::default();
        for of in 0..EXTRACTS {
            if self.offers[of].moves + self.offers[of].reads + self.offers[of].beats == 0 {
                self.begin(of);
            }
            let Offer { is_get, total, moves, reads, beats } = self.offers[of];
            let random = &mut self.random;
            let rate = self.mood.offers[of];
            let mut offers = |left: u64| left > 0 && random.below(8) < rate;
            input.move_valid[of] = offers(moves);
            input.read_valid[of] = offers(reads);
            input.data_valid[of] = offers(beats);
            input.move_last[of] = moves == 1;
            input.read_ends[of] = reads == 1;
            input.data_ends[of] = beats == 1;
            input.move_total[of] = total;
            input.move_says[of] = [(); 4].map(|()| random.word());
            input.read_function[of] = random.below(8) as u8;
            input.read_address[of] = random.below(1 << 40);
            input.read_bytes[of] = random.below(1 << 13) as u16;
            input.data_to[of] = random.below(16) as u8;
            input.data[of] = [random.word(), random.word()];
            if of == 0 {
                (input.move_get, input.data_get) = (is_get, is_get);
            }
        }
        let random = &mut self.random;
        if random.below(64) < self.mood.wild {
            let mut any = || [(); EXTRACTS].map(|()| random.below(2) == 0);
            (input.move_valid, input.read_valid, input.data_valid) = (any(), any(), any());
            (input.move_last, input.read_ends, input.data_ends) = (any(), any(), any());
            [input.move_get, input.data_get] = any();
        }
        let mut takes = self.mood.takes.map(|rate| random.below(8) < rate).into_iter();
        for ready in [
            &mut input.place_ready,
            &mut input.pack_ready,
            &mut input.ask_ready,
            &mut input.put_ready,
            &mut input.get_ready,
            &mut input.get_data_ready,
        ] {
            *ready = takes.next().expect("six");
        }
        input.place = random.below(self.places) as u8;
        let out = self.arb.cycle(input);
        for (of, offer) in self.offers.iter_mut().enumerate() {
            let takes = |valid: bool, ready: bool| u64::from(valid && ready);
            let less = |left: &mut u64, taken: u64| *left = left.saturating_sub(taken);
            less(&mut offer.moves, takes(input.move_valid[of], out.move_ready[of]));
            less(&mut offer.reads, takes(input.read_valid[of], out.read_ready[of]));
            less(&mut offer.beats, takes(input.data_valid[of], out.data_ready[of]));
        }
        (input, out)
    }
}

#[cfg(test)]
mod tests {
    use bellwire_model::cycle::send_event::PLACE_BITS;

    use crate::block::assert_first_configuration;

    /// The first configuration of the block has as many places as the sender of events at most.
    #[test]
    fn the_first_configuration_is_the_papers() {
        assert_first_configuration("op_arb", &[("PlaceWidth", PLACE_BITS as u64)]);
    }
}
