//! TLPs of packets of any length. Some are marked bad, and hit or cut off then; some are wrong
//! otherwise; and a receiver waits at random.

use std::collections::VecDeque;

use bellwire_model::cycle::line::{Beat, SYMBOLS};
use bellwire_model::cycle::tlp_unwrap::{In, Out, TlpUnwrap};
use bellwire_model::engine::Random;
use bellwire_wire::link::segment::{SEGMENT_BYTES, Segment};
use bellwire_wire::link::tlp::Tlp;

use crate::bench::Load;

/// A maker of packets, and what is around it.
pub struct TlpUnwrapLoad {
    unwrap: TlpUnwrap,
    random: Random,
    /// Beats of TLPs that wait, and bytes of the packet that have not become a TLP.
    waits: VecDeque<In>,
    left: u64,
    first: bool,
    /// Of eight cycles, how many offer a beat, and how many take one; beats of packets, at most.
    offers: u64,
    takes: u64,
    longest: u64,
    /// Of 64 TLPs, how many are bad, and how many are wrong otherwise.
    bad: u64,
    wrong: u64,
}

impl TlpUnwrapLoad {
    /// One with this much room.
    pub fn new(beats: usize, seed: u64) -> TlpUnwrapLoad {
        TlpUnwrapLoad {
            unwrap: TlpUnwrap::new(beats),
            random: Random::new(seed),
            waits: VecDeque::new(),
            left: 0,
            first: true,
            offers: 8,
            takes: 8,
            longest: 9,
            bad: 0,
            wrong: 0,
        }
    }

    fn change(&mut self) {
        let random = &mut self.random;
        self.offers = [1, 4, 8, 8][random.below(4) as usize];
        self.takes = [0, 4, 7, 8, 8][random.below(5) as usize];
        self.longest = [1, 3, 9, 36, 140][random.below(5) as usize];
        self.bad = [0, 0, 8, 32][random.below(4) as usize];
        self.wrong = [0, 0, 4, 32][random.below(4) as usize];
    }

    /// The next TLP, and before it some that are bad.
    fn make(&mut self) {
        let random = &mut self.random;
        if self.left == 0 {
            (self.left, self.first) = (SYMBOLS as u64 * (1 + random.below(self.longest)), true);
        }
        let most = if random.below(4) == 0 { SYMBOLS as u64 } else { SEGMENT_BYTES as u64 };
        let bytes = self.left.min(most);
        let last = bytes == self.left;
        let says = Segment { first: self.first, last, to: random.below(16) as u8 };
        let payload: Vec<u8> = (0..bytes).map(|_| random.word() as u8).collect();
        let address = says.emit().expect("a lane fits");
        let (requester, tag) = (random.word() as u16, random.word() as u8);
        let tlp = Tlp { channel: 0, requester, tag, address, payload: &payload };
        let mut bytes = vec![0; tlp.buffer_len()];
        tlp.emit(&mut bytes).expect("a segment fits");
        bytes.resize(bytes.len().next_multiple_of(SYMBOLS), 0);
        let count = bytes.len() / SYMBOLS;
        let beats: Vec<In> = bytes
            .chunks(SYMBOLS)
            .enumerate()
            .map(|(at, chunk)| {
                let mut beat = Beat::default();
                beat.bytes.copy_from_slice(chunk);
                let in_last = at + 1 == count;
                let in_empty = if in_last { 3 } else { random.below(4) as u8 };
                In { in_valid: true, in_last, in_empty, in_data: beat.words(), ..In::default() }
            })
            .collect();
        while self.random.below(64) < self.bad {
            let mut again = beats.clone();
            self.spoil(&mut again);
            again.last_mut().expect("there is one").in_bad = true;
            self.waits.extend(again);
        }
        (self.left, self.first) = (self.left - payload.len() as u64, last);
        let mut beats = beats;
        if self.random.below(64) < self.wrong {
            self.spoil(&mut beats);
        }
        self.waits.extend(beats);
    }

    /// A TLP becomes another one.
    fn spoil(&mut self, beats: &mut Vec<In>) {
        let random = &mut self.random;
        let at = random.below(beats.len() as u64) as usize;
        match random.below(6) {
            0 => beats.truncate(at + 1),
            1 => beats.extend(vec![beats[at]; 1 + random.below(3) as usize]),
            // The length in the header.
            2 => beats[0].in_data[0] ^= 1 << [16, 17, 24, 25, 26, 31][random.below(6) as usize],
            3 => beats[0].in_data[1] ^= 1 << (56 + random.below(8)),
            4 => beats[at].in_data[random.below(2) as usize] ^= 1 << random.below(64),
            _ => beats.last_mut().expect("there is one").in_empty = random.below(4) as u8,
        }
        let count = beats.len();
        for (at, beat) in beats.iter_mut().enumerate() {
            beat.in_last = at + 1 == count;
        }
    }
}

impl Load for TlpUnwrapLoad {
    type In = In;
    type Out = Out;

    fn step(&mut self) -> (In, Out) {
        if self.random.below(256) == 0 {
            self.change();
        }
        if self.waits.is_empty() {
            self.make();
        }
        let offers = self.random.below(8) < self.offers;
        let out_ready = self.random.below(8) < self.takes;
        let offered = self.waits.front().copied().filter(|_| offers).unwrap_or_default();
        let input = In { out_ready, ..offered };
        let out = self.unwrap.cycle(input);
        if input.in_valid && out.in_ready {
            self.waits.pop_front();
        }
        (input, out)
    }
}
