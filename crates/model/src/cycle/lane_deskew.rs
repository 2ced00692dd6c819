//! `lane_deskew`: takes the skew out of the lanes of a link (S-19), as `hardware/lane_deskew`
//! builds it.
//!
//! All lanes carry marks at once, which come at different times. Each lane is delayed by as much as
//! its mark came before the last one.

use std::collections::VecDeque;

use bellwire_wire::link::lanes::COM;

use super::lane_stripe::beat_of;
use super::line::SYMBOLS;
use super::replay_buf::BEAT_WORDS;
use crate::smp::lanes::MAX_LANES;

crate::ports! {
    /// What enters in a cycle.
    pub struct In {
        /// By lane: which of its symbols are special; the first one has the lowest bit.
        lane_k: [u8; MAX_LANES] = SYMBOLS,
        /// The symbols of each lane, the first one in the low byte.
        lane_data: [u16; MAX_LANES] = 8 * SYMBOLS,
    }

    /// What stands at the outputs in a cycle.
    pub struct Out {
        /// The delays of all lanes are known.
        aligned: bool = 1,
        /// Symbols have come that are no mark.
        line_valid: bool = 1,
        /// Which of them are special; zero if none have come.
        line_k: u16 = SYMBOLS,
        /// The symbols; zero if none have come.
        line_data: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
    }
}

/// What a lane carries in a cycle: which symbols are special, and the symbols.
type Word = (u8, u16);

/// A receiver of lanes whose skew is `max_skew` cycles at most.
///
/// The symbols of a beat are out one cycle after those of the latest lane have come.
#[derive(Clone, Debug)]
pub struct LaneDeskew {
    max_skew: usize,
    /// What came in the cycles before, the latest first.
    past: VecDeque<[Word; MAX_LANES]>,
    /// Cycles since a mark came on each lane, up to one more than the largest skew.
    age: [usize; MAX_LANES],
    delay: [usize; MAX_LANES],
    aligned: bool,
    out: Out,
}

impl LaneDeskew {
    /// A receiver that has seen no mark.
    pub fn new(max_skew: usize) -> LaneDeskew {
        LaneDeskew {
            max_skew,
            past: (0..max_skew).map(|_| [(0, 0); MAX_LANES]).collect(),
            age: [max_skew + 1; MAX_LANES],
            delay: [0; MAX_LANES],
            aligned: false,
            out: Out::default(),
        }
    }

    /// One cycle.
    #[inline]
    pub fn cycle(&mut self, input: In) -> Out {
        let words = std::array::from_fn(|lane| (input.lane_k[lane], input.lane_data[lane]));
        self.past.push_front(words);
        let chosen: [Word; MAX_LANES] =
            std::array::from_fn(|lane| self.past[self.delay[lane]][lane]);
        self.past.truncate(self.max_skew);

        let is_aligned = self.aligned;
        let mut out = Out::default();
        // A mark that is hit on some lanes is still one, and a false one damages its beat anyway.
        if is_aligned && !chosen.iter().copied().any(is_mark) {
            let beat = beat_of(chosen.map(|word| word.0), chosen.map(|word| word.1));
            (out.line_valid, out.line_k, out.line_data) = (true, beat.k, beat.words());
        }
        // The mark of the last lane has come, and no other is too late: a mark that is lost on one
        // lane changes nothing.
        let age: [usize; MAX_LANES] =
            std::array::from_fn(|lane| if is_mark(words[lane]) { 0 } else { self.age[lane] });
        if age.contains(&0) && age.iter().all(|&age| age <= self.max_skew) {
            self.delay = age;
            self.aligned = true;
        }
        self.age = age.map(|age| (age + 1).min(self.max_skew + 1));
        Out { aligned: is_aligned, ..std::mem::replace(&mut self.out, out) }
    }
}

/// Whether the first symbol is COM.
fn is_mark((k, data): Word) -> bool {
    k & 1 == 1 && data as u8 == COM
}

#[cfg(test)]
mod tests {
    use super::super::lane_stripe::{self, LaneStripe};
    use super::*;
    use crate::engine::Random;

    /// Lanes with a skew each, between a spreader and a receiver.
    struct Driven {
        stripe: LaneStripe,
        deskew: LaneDeskew,
        lanes: [VecDeque<Word>; MAX_LANES],
        sent: u64,
    }

    impl Driven {
        fn new(skew: [usize; MAX_LANES], max_skew: usize) -> Driven {
            Driven {
                stripe: LaneStripe::new(32),
                deskew: LaneDeskew::new(max_skew),
                lanes: skew.map(|skew| (0..skew).map(|_| (0, 0)).collect()),
                sent: 0,
            }
        }

        /// A cycle in which the next number is sent, and this lane is hit: the number that was
        /// sent, and what comes.
        fn cycle(&mut self, hit: Option<usize>) -> (Option<u64>, Out) {
            let line_data = [self.sent, !self.sent];
            let out = self.stripe.cycle(lane_stripe::In { line_valid: true, line_k: 0, line_data });
            let sent = out.line_ready.then_some(self.sent);
            self.sent += u64::from(out.line_ready);
            let mut input = In::default();
            for lane in 0..MAX_LANES {
                self.lanes[lane].push_back((out.lane_k[lane], out.lane_data[lane]));
                let (k, data) = self.lanes[lane].pop_front().expect("one was put");
                (input.lane_k[lane], input.lane_data[lane]) = (k, data);
            }
            if let Some(lane) = hit {
                input.lane_data[lane] ^= 1;
            }
            (sent, self.deskew.cycle(input))
        }
    }

    /// Whatever the skew of each lane is, each beat behind the first mark comes whole, in its order
    /// and a cycle after its latest lane. Marks leave gaps.
    // shows: S-19
    #[test]
    fn beats_come_whole_over_lanes_with_skew() {
        let mut random = Random::new(1);
        for _ in 0..50 {
            let skew = std::array::from_fn(|_| random.below(6) as usize);
            let latest = *skew.iter().max().expect("there are lanes");
            let mut driven = Driven::new(skew, 5);
            let mut sent = VecDeque::new();
            for cycle in 0..200 {
                let (goes, out) = driven.cycle(None);
                sent.push_back(goes);
                let came = out.line_valid.then_some(out.line_data);
                let expected = match cycle > latest {
                    true => sent.pop_front().expect("it was sent").map(|it| [it, !it]),
                    false => None,
                };
                assert_eq!(came, expected, "{skew:?}, cycle {cycle}");
                assert_eq!(out.aligned, cycle > latest);
            }
        }
    }

    /// A lane that is hit in its mark keeps its delay, and the mark is still none of the symbols.
    /// Before the first whole mark nothing comes.
    #[test]
    fn a_mark_that_is_hit_changes_nothing() {
        let skew = [0, 3, 1, 2, 0, 0, 3, 1];
        let mut driven = Driven::new(skew, 5);
        let outs: Vec<Out> =
            (0..32 + 4).map(|cycle| driven.cycle((cycle == 3).then_some(1)).1).collect();
        assert!(outs.iter().all(|out| !(out.aligned || out.line_valid)));
        let outs: Vec<Out> =
            (36..100).map(|cycle| driven.cycle((cycle == 67).then_some(6)).1).collect();
        assert!(outs.iter().all(|out| out.aligned));
        let gaps: Vec<usize> = (0..64).filter(|&at| !outs[at].line_valid).collect();
        assert_eq!(gaps, [0, 32], "what was sent with a mark");
        let numbers = outs.iter().filter(|out| out.line_valid).map(|out| out.line_data[0]);
        assert!(numbers.eq(31..93));
    }

    /// Lanes whose skew is too large are never aligned.
    #[test]
    fn a_skew_that_is_too_large_is_not_taken_out() {
        let mut driven = Driven::new([0, 0, 0, 6, 0, 0, 0, 0], 5);
        assert!((0..200).all(|_| !driven.cycle(None).1.aligned));
    }
}
