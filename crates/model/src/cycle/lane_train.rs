//! `lane_train`: trains the lanes of a link, and trains them anew (S-18), as `hardware/lane_train`
//! builds it.
//!
//! ```text
//!   Polling      sends TS1 until it has heard sets on each lane            <--+  <--+
//!   Configuring  sends TS2 until it has heard TS2 on each lane  -- too late --+     |
//!   Up           the lanes carry the link  -- asked to, TS1 heard, or a lane is lost --+
//! ```
//!
//! A set is COM and an identifier on all lanes, and idle symbols behind it. So a receiver takes it
//! for a mark, and no symbol of it gets into the link.

use bellwire_wire::link::lanes::{COM, TS1, TS2};

use super::line::SYMBOLS;
use crate::smp::lanes::MAX_LANES;

crate::ports! {
    /// What enters in a cycle.
    pub struct In {
        /// The link asks to be trained anew.
        retrain: bool = 1,
        /// By lane: which of the link's symbols are special; the first one has the lowest bit.
        line_k: [u8; MAX_LANES] = SYMBOLS,
        /// The link's symbols, the first one in the low byte.
        line_data: [u16; MAX_LANES] = 8 * SYMBOLS,
        /// By lane: which of the symbols that come are special.
        rx_k: [u8; MAX_LANES] = SYMBOLS,
        /// The symbols that come.
        rx_data: [u16; MAX_LANES] = 8 * SYMBOLS,
    }

    /// What stands at the outputs in a cycle.
    pub struct Out {
        /// The lanes carry the link's symbols.
        up: bool = 1,
        /// The training ends in this cycle, or a new one begins behind it.
        trained: bool = 1,
        /// See `trained`.
        recovers: bool = 1,
        /// By lane: which symbols are special.
        tx_k: [u8; MAX_LANES] = SYMBOLS,
        /// The symbols.
        tx_data: [u16; MAX_LANES] = 8 * SYMBOLS,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Polling,
    Configuring,
    Up,
}

/// Times of a training.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Cycles of a set.
    pub every: u64,
    /// Sets that must be heard on each lane. Twice as many TS2 go before the link is up, and eight
    /// times as many at most.
    pub sets: u64,
    /// Cycles in which each lane must bring a mark.
    pub lost_after: u64,
}

/// What a lane brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    First,
    Second,
    Other,
}

/// An end of the lanes. It trains from reset on.
#[derive(Clone, Debug)]
pub struct LaneTrain {
    shape: Shape,
    state: State,
    /// Cycles of the set that have gone; in `Up`, cycles in which lanes are looked at.
    at: u64,
    /// By lane, sets heard in this state.
    heard: [u64; MAX_LANES],
    /// Sets sent since this state began, and those since something was heard on all lanes.
    sent: u64,
    answered: u64,
    /// Lanes that have brought a mark.
    marked: [bool; MAX_LANES],
}

impl LaneTrain {
    /// An end that has heard nothing.
    pub fn new(shape: Shape) -> LaneTrain {
        LaneTrain {
            shape,
            state: State::Polling,
            at: 0,
            heard: [0; MAX_LANES],
            sent: 0,
            answered: 0,
            marked: [false; MAX_LANES],
        }
    }

    /// The lanes carry the link's symbols in this cycle.
    #[inline]
    pub fn up(&self) -> bool {
        self.state == State::Up
    }

    /// One cycle.
    #[inline]
    pub fn cycle(&mut self, input: In) -> Out {
        let Shape { every, sets, lost_after } = self.shape;
        let mut out = Out { up: self.up(), ..Out::default() };
        match self.state {
            State::Up => (out.tx_k, out.tx_data) = (input.line_k, input.line_data),
            _ if self.at == 0 => {
                let kind = if self.state == State::Polling { TS1 } else { TS2 };
                out.tx_k = [1; MAX_LANES];
                out.tx_data = [u16::from_le_bytes([COM, kind]); MAX_LANES];
            }
            _ => {}
        }
        let ends = self.at == if self.up() { lost_after - 1 } else { every - 1 };
        let is_heard = |least: u64| self.heard.iter().all(|&heard| heard >= least);
        let answered = self.answered + u64::from(is_heard(1) && self.answered < 2 * sets);
        let next = match self.state {
            State::Polling if ends && is_heard(sets) => State::Configuring,
            State::Configuring if ends && is_heard(sets) && answered == 2 * sets => State::Up,
            State::Configuring if ends && self.sent == 8 * sets - 1 => State::Polling,
            // One alone may be a symbol that was hit.
            State::Up if input.retrain || self.heard.iter().any(|&heard| heard >= 2) => {
                State::Polling
            }
            State::Up if ends && self.marked != [true; MAX_LANES] => State::Polling,
            state => state,
        };
        out.trained = next == State::Up && !self.up();
        out.recovers = next == State::Polling && self.up();

        for lane in 0..MAX_LANES {
            let mark = mark_of(input.rx_k[lane], input.rx_data[lane]);
            self.hear(lane, mark);
            self.marked[lane] = mark.is_some() || (self.marked[lane] && !ends);
        }
        if next != self.state {
            (self.heard, self.marked) = ([0; MAX_LANES], [false; MAX_LANES]);
            (self.at, self.sent, self.answered) = (0, 0, 0);
            self.state = next;
        } else if ends {
            self.at = 0;
            (self.sent, self.answered) = match self.state {
                State::Configuring => (self.sent + 1, answered),
                _ => (0, 0),
            };
        } else {
            self.at += 1;
        }
        out
    }

    /// A lane brings a mark, or none.
    fn hear(&mut self, lane: usize, mark: Option<Mark>) {
        let most = if self.up() { 2 } else { self.shape.sets };
        let heard = &mut self.heard[lane];
        let Some(mark) = mark else { return };
        let counts = match self.state {
            State::Polling => mark != Mark::Other,
            State::Configuring => mark == Mark::Second,
            State::Up => mark == Mark::First,
        };
        // The far end may have gone on, and sends no more sets then.
        let stays = self.state == State::Configuring && mark == Mark::Other && *heard == most;
        *heard = match counts {
            true => (*heard + 1).min(most),
            false if stays => most,
            false => 0,
        };
    }
}

/// The mark that a lane brings, if it is one.
fn mark_of(k: u8, data: u16) -> Option<Mark> {
    let [first, second] = data.to_le_bytes();
    let mark = match (k >> 1, second) {
        (0, TS1) => Mark::First,
        (0, TS2) => Mark::Second,
        _ => Mark::Other,
    };
    (k & 1 == 1 && first == COM).then_some(mark)
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    const SHAPE: Shape = Shape { every: 16, sets: 8, lost_after: 200 };
    /// What an end sends while it is up: a mark in 64 cycles, and other symbols.
    const MARK: u16 = 0x1cbc;

    type Word = (u8, u16);

    /// Two ends, and what is on the lanes between them.
    struct Driven {
        ends: [LaneTrain; 2],
        lanes: [[VecDeque<Word>; MAX_LANES]; 2],
        /// Lanes that carry nothing from the first end.
        dead: u8,
        time: u64,
        outs: [Out; 2],
    }

    impl Driven {
        fn new(delay: usize) -> Driven {
            let lanes =
                || std::array::from_fn(|lane| (0..delay + lane % 3).map(|_| (0, 0)).collect());
            Driven {
                ends: [LaneTrain::new(SHAPE), LaneTrain::new(SHAPE)],
                lanes: [lanes(), lanes()],
                dead: 0,
                time: 0,
                outs: Default::default(),
            }
        }

        fn cycle(&mut self, retrain: bool) -> [Out; 2] {
            let mark = self.time.is_multiple_of(64);
            let (k, data) = if mark { (3, MARK) } else { (0, 0x1234) };
            for at in 0..2 {
                let mut input = In {
                    retrain: retrain && at == 0,
                    line_k: [k; MAX_LANES],
                    line_data: [data; MAX_LANES],
                    ..In::default()
                };
                for lane in 0..MAX_LANES {
                    let word = self.lanes[1 - at][lane].pop_front().expect("one was put");
                    let is_dead = at == 1 && self.dead >> lane & 1 == 1;
                    let word = if is_dead { (0, 0) } else { word };
                    (input.rx_k[lane], input.rx_data[lane]) = word;
                }
                let out = self.ends[at].cycle(input);
                for lane in 0..MAX_LANES {
                    self.lanes[at][lane].push_back((out.tx_k[lane], out.tx_data[lane]));
                }
                self.outs[at] = out;
            }
            self.time += 1;
            self.outs
        }

        /// Runs until both are up, or for so many cycles; the cycles.
        fn come_up(&mut self, most: u64) -> Option<u64> {
            (1..=most).find(|_| self.cycle(false).iter().all(|out| out.up))
        }
    }

    /// From reset both ends come up, over lanes of any delay, and stay so.
    // shows: S-18
    #[test]
    fn both_ends_come_up_and_stay_so() {
        for delay in [1, 2, 5, 16, 40, 100] {
            let mut driven = Driven::new(delay);
            let cycles = driven.come_up(2_000).expect("they come up");
            assert!((384..800).contains(&cycles), "{cycles}");
            for _ in 0..2_000 {
                let outs = driven.cycle(false);
                assert!(outs.iter().all(|out| out.up && !out.recovers));
                let carried = outs[0].tx_data[3];
                assert!(carried == 0x1234 || carried == MARK);
            }
        }
    }

    /// An end that asks takes the other one with it, and both come up again.
    // shows: S-18
    #[test]
    fn both_ends_train_anew_if_one_asks() {
        let mut driven = Driven::new(20);
        driven.come_up(2_000).expect("they come up");
        driven.cycle(true);
        let outs = driven.cycle(false);
        assert_eq!((outs[0].up, outs[1].up), (false, true));
        assert_eq!((outs[0].tx_k, outs[0].tx_data), ([1; 8], [0x4abc; 8]));
        let mut recovers = 0;
        let cycles = (0..2_000).find(|_| {
            let outs = driven.cycle(false);
            recovers += u32::from(outs[1].recovers);
            outs.iter().all(|out| out.up)
        });
        assert!(recovers == 1 && cycles.is_some(), "{recovers}, {cycles:?}");
    }

    /// While a lane carries nothing no end is up. Both are again when it does.
    // shows: S-18
    #[test]
    fn a_lane_that_dies_is_noticed() {
        let mut driven = Driven::new(9);
        driven.come_up(2_000).expect("they come up");
        driven.dead = 0x10;
        let outs = [(); 600].map(|()| driven.cycle(false));
        assert!(outs.iter().any(|outs| outs[0].recovers) && outs.iter().any(|o| o[1].recovers));
        assert!(!outs[599][0].up && !outs[599][1].up);
        assert_eq!(driven.come_up(5_000), None);
        driven.dead = 0;
        assert!(driven.come_up(2_500).is_some());
    }

    /// In a set there is one mark, and idle symbols behind it.
    #[test]
    fn a_set_is_a_mark_and_idle_symbols() {
        let mut train = LaneTrain::new(SHAPE);
        for cycle in 0..64 {
            let out = train.cycle(In { line_k: [3; 8], ..In::default() });
            let expected = if cycle % 16 == 0 { (1, 0x4abc) } else { (0, 0) };
            assert_eq!((out.tx_k, out.tx_data), ([expected.0; 8], [expected.1; 8]));
        }
    }

    /// An end in a state, with as many sets heard on each lane.
    fn end_in(state: State, heard: u64) -> LaneTrain {
        LaneTrain { state, heard: [heard; MAX_LANES], ..LaneTrain::new(SHAPE) }
    }

    /// The same symbols come on all lanes.
    fn brings(word: Word) -> In {
        In { rx_k: [word.0; MAX_LANES], rx_data: [word.1; MAX_LANES], ..In::default() }
    }

    /// A lane without a mark is lost at the end of the 200th cycle.
    #[test]
    fn lanes_are_lost_after_their_time() {
        let mut train = end_in(State::Up, 0);
        for cycle in 1..=200 {
            assert_eq!(train.cycle(In::default()).recovers, cycle == 200, "{cycle}");
        }
        assert!(!train.up());
    }

    /// Nobody answers: the end gives up after 8 times 8 sets of 16 cycles.
    #[test]
    fn an_end_waits_for_64_sets() {
        let mut train = end_in(State::Configuring, 0);
        for cycle in 1..=1024 {
            assert_eq!(train.state, State::Configuring, "{cycle}");
            train.cycle(In::default());
        }
        assert_eq!(train.state, State::Polling);
    }

    /// The cycle in which an end is trained that hears TS2 in some of its sets only.
    fn trained_in(hears: impl Fn(u64) -> bool) -> Option<u64> {
        let mut train = end_in(State::Configuring, 0);
        let second = (1, u16::from_le_bytes([COM, TS2]));
        (0..1024).find(|cycle| {
            let comes = cycle % 16 == 0 && hears(cycle / 16);
            train.cycle(brings(if comes { second } else { (0, 0) })).trained
        })
    }

    /// 16 sets must go after the first one that was heard. If the last one that must be heard comes
    /// later than these, the end does not send more.
    #[test]
    fn sets_are_answered_before_the_end_is_up() {
        assert_eq!(trained_in(|set| set >= 20), Some(36 * 16 - 1));
        assert_eq!(trained_in(|set| set < 7 || set == 20), Some(21 * 16 - 1));
    }

    /// What a mark does to the count of a lane. That of data counts as silence once the far end
    /// may have gone on.
    #[test]
    fn a_mark_counts_or_begins_anew() {
        let cases = [
            (State::Polling, 3, Mark::First, 4),
            (State::Polling, 8, Mark::Second, 8),
            (State::Polling, 8, Mark::Other, 0),
            (State::Configuring, 3, Mark::Second, 4),
            (State::Configuring, 8, Mark::First, 0),
            (State::Configuring, 3, Mark::Other, 0),
            (State::Configuring, 8, Mark::Other, 8),
            (State::Up, 1, Mark::First, 2),
            (State::Up, 2, Mark::Other, 0),
        ];
        for (state, before, mark, after) in cases {
            let mut train = end_in(state, before);
            train.hear(0, Some(mark));
            assert_eq!(train.heard[0], after, "{state:?} {before} {mark:?}");
            assert_eq!(train.heard[1], before);
        }
    }

    /// A mark is COM as a special symbol, in the first place.
    #[test]
    fn a_mark_begins_with_com() {
        let set = u16::from_le_bytes([COM, TS1]);
        assert_eq!(mark_of(1, set), Some(Mark::First));
        assert_eq!(mark_of(3, set), Some(Mark::Other));
        assert_eq!([mark_of(0, set), mark_of(1, set + 1)], [None, None]);
    }
}
