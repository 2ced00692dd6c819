//! Link training: from reset to a link of a certain width and speed (S-03, S-18).
//!
//! Both ends send *ordered sets* over every lane all the time and change state by the sets that
//! they receive. This is PCIe's state machine, reduced to the paper's steps: detection, agreement
//! on parameters, handshake, choice of speed.
//!
//! ```text
//!   Detect      a lane counts if it receives anything
//!   Polling     the ends exchange speeds; they go on after some sets on every lane that counts
//!   Configure   the RC proposes lanes and waits for acceptance; the EP waits for a proposal
//!   Up          credits can be exchanged
//! ```
//!
//! Between two RCs, nobody accepts the proposals; between two EPs, nobody proposes. Neither link
//! comes up (S-03). With bad lanes, the RC proposes the largest aligned half, quarter or single
//! lane that both ends receive. So one Serdes of four lanes works without the other.

use std::fmt;

/// The roles of PCIe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Root complex: proposes.
    Rc,
    /// Endpoint: accepts.
    Ep,
}

/// Lane rates, in bits per second.
pub const SPEEDS_HZ: [u64; 2] = [2_500_000_000, 5_000_000_000];

/// Ordered sets that an end must receive before it changes state.
const SETS: u32 = 8;
/// Ordered sets after which a state gives up.
const PATIENCE: u32 = 100;

/// One end in training.
#[derive(Clone, Debug)]
pub struct Trainer {
    role: Role,
    /// The lanes of this end, one bit each.
    lanes: u8,
    fastest_hz: u64,
    state: State,
    heard: u8,
    heard_hz: u64,
    sets: u32,
    in_state: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Detect,
    Polling,
    /// Holds the lanes proposed or accepted, once there are some.
    Configure(Option<Choice>),
    Up(Choice),
    Failed(Failure),
}

/// The result of training.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Lanes in use, one bit each.
    pub lanes: u8,
    /// Bits per second per lane.
    pub rate_hz: u64,
}

/// Why training failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No lane receives anything.
    NoLane,
    /// The peer proposes, too: both are RCs.
    TwoRcs,
    /// Nobody proposes: both are EPs.
    TwoEps,
}

/// The set that goes over every good lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderedSet {
    fastest_hz: u64,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Hello,
    /// Holds the lanes that the sender receives.
    Ready(u8),
    Propose(Choice),
    Accept(Choice),
}

impl Choice {
    /// The number of lanes.
    pub fn width(self) -> u8 {
        self.lanes.count_ones() as u8
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Failure::NoLane => "no lane hears anything; see that the peer is there",
            Failure::TwoRcs => "both ends are root complexes; make one of them an endpoint",
            Failure::TwoEps => "both ends are endpoints; make one of them a root complex",
        })
    }
}

impl Trainer {
    /// An end at reset, with its lanes, one bit each, and its fastest lane rate.
    pub fn new(role: Role, lanes: u8, fastest_hz: u64) -> Trainer {
        let (state, heard, heard_hz, sets, in_state) = (State::Detect, 0, 0, 0, 0);
        Trainer { role, lanes, fastest_hz, state, heard, heard_hz, sets, in_state }
    }

    /// The ordered set to send now.
    pub fn send(&self) -> OrderedSet {
        let kind = match (self.state, self.role) {
            (State::Detect, _) => Kind::Hello,
            (State::Polling | State::Configure(None) | State::Failed(_), _) => {
                Kind::Ready(self.heard)
            }
            (State::Configure(Some(choice)), Role::Rc) => Kind::Propose(choice),
            (State::Up(choice), Role::Rc) => Kind::Propose(choice),
            (State::Configure(Some(choice)) | State::Up(choice), Role::Ep) => Kind::Accept(choice),
        };
        OrderedSet { fastest_hz: self.fastest_hz, kind }
    }

    /// Handles a received set; `over` has one bit per lane.
    pub fn hear(&mut self, set: OrderedSet, over: u8) {
        let over = over & self.lanes;
        if over == 0 {
            return;
        }
        self.sets += 1;
        match self.state {
            State::Detect => {
                self.heard |= over;
                if self.sets >= SETS {
                    self.go(State::Polling);
                }
            }
            State::Polling => {
                self.heard_hz = set.fastest_hz;
                if self.sets >= SETS && !matches!(set.kind, Kind::Hello) {
                    self.go(State::Configure(None));
                }
            }
            State::Configure(mine) => match (self.role, set.kind, mine) {
                (Role::Rc, Kind::Ready(theirs), None) => {
                    let rate_hz = self.fastest_hz.min(self.heard_hz);
                    if let Some(lanes) = largest_block(self.heard & theirs) {
                        self.state = State::Configure(Some(Choice { lanes, rate_hz }));
                    }
                }
                (Role::Rc, Kind::Accept(choice), Some(mine)) if choice == mine => {
                    self.go(State::Up(mine));
                }
                (Role::Rc, Kind::Propose(_), _) => self.go(State::Failed(Failure::TwoRcs)),
                (Role::Ep, Kind::Propose(choice), None) => {
                    self.state = State::Configure(Some(choice));
                    self.sets = 0;
                }
                (Role::Ep, Kind::Propose(_), Some(choice)) if self.sets >= SETS => {
                    self.go(State::Up(choice));
                }
                _ => {}
            },
            State::Up(_) | State::Failed(_) => {}
        }
    }

    /// Notes that the time of one set has passed.
    pub fn tick(&mut self) {
        self.in_state += 1;
        if self.in_state < PATIENCE {
            return;
        }
        match (self.state, self.role) {
            (State::Detect | State::Polling, _) => self.go(State::Failed(Failure::NoLane)),
            (State::Configure(_), Role::Ep) => self.go(State::Failed(Failure::TwoEps)),
            (State::Configure(_), Role::Rc) => self.go(State::Failed(Failure::TwoRcs)),
            (State::Up(_) | State::Failed(_), _) => {}
        }
    }

    /// The result, once it is known.
    pub fn outcome(&self) -> Option<Result<Choice, Failure>> {
        match self.state {
            State::Up(choice) => Some(Ok(choice)),
            State::Failed(failure) => Some(Err(failure)),
            _ => None,
        }
    }

    fn go(&mut self, state: State) {
        (self.state, self.sets, self.in_state) = (state, 0, 0);
    }
}

/// Trains two ends joined by `wires`, one bit per lane. Returns the agreement and the number of
/// sets.
///
/// # Errors
/// Why the link does not come up.
pub fn train(mut ends: [Trainer; 2], wires: u8) -> Result<(Choice, u32), Failure> {
    for sets in 1.. {
        let sent = [ends[0].send(), ends[1].send()];
        let over = wires & ends[0].lanes & ends[1].lanes;
        ends[0].hear(sent[1], over);
        ends[1].hear(sent[0], over);
        ends.iter_mut().for_each(Trainer::tick);
        match [ends[0].outcome(), ends[1].outcome()] {
            [Some(Ok(choice)), Some(Ok(other))] if choice == other => return Ok((choice, sets)),
            [Some(Err(failure)), _] | [_, Some(Err(failure))] => return Err(failure),
            _ => {}
        }
    }
    unreachable!("each state has an end")
}

/// The largest aligned block of available lanes: all 8, a half, a quarter, or one.
fn largest_block(lanes: u8) -> Option<u8> {
    [8u32, 4, 2, 1].into_iter().find_map(|width| {
        let block = u8::MAX >> (8 - width);
        let mut blocks = (0..8 / width).map(|at| block << (at * width));
        blocks.find(|block| lanes & block == *block)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAST: u64 = SPEEDS_HZ[1];

    fn ends(one: Role, other: Role) -> [Trainer; 2] {
        [Trainer::new(one, 0xff, FAST), Trainer::new(other, 0xff, FAST)]
    }

    /// One RC and one EP train in either order; two of the same role do not, and get the reason.
    // shows: S-03
    #[test]
    fn one_of_each_role_trains() {
        crate::limit::limited(|| {
            let whole = Choice { lanes: 0xff, rate_hz: FAST };
            for pair in [[Role::Rc, Role::Ep], [Role::Ep, Role::Rc]] {
                assert_eq!(train(ends(pair[0], pair[1]), 0xff).unwrap().0, whole);
            }
            assert_eq!(train(ends(Role::Rc, Role::Rc), 0xff), Err(Failure::TwoRcs));
            assert_eq!(train(ends(Role::Ep, Role::Ep), 0xff), Err(Failure::TwoEps));
            assert_eq!(train(ends(Role::Rc, Role::Ep), 0), Err(Failure::NoLane));
        });
    }

    /// With any set of dead lanes, the link comes up on the largest block of good ones, for example
    /// on one Serdes of four. A slow end makes the link slow.
    // shows: S-18
    #[test]
    fn bad_lanes_cost_width_and_a_slow_end_speed() {
        for wires in 1..=u8::MAX {
            let (choice, _) = train(ends(Role::Rc, Role::Ep), wires).unwrap();
            assert_eq!(choice.lanes & !wires, 0, "no bad lane is used");
            let block_of = |width: u32| {
                (0..8 / width).any(|at| {
                    let block = (u8::MAX >> (8 - width)) << (at * width);
                    wires & block == block
                })
            };
            let widest = [8, 4, 2, 1].into_iter().find(|&width| block_of(width)).unwrap();
            assert_eq!(u32::from(choice.width()), widest, "{wires:08b}");
        }
        let slow = Trainer::new(Role::Ep, 0x0f, SPEEDS_HZ[0]);
        let (choice, _) = train([Trainer::new(Role::Rc, 0xff, FAST), slow], 0xff).unwrap();
        assert_eq!(choice, Choice { lanes: 0x0f, rate_hz: SPEEDS_HZ[0] });
    }

    fn set(kind: Kind) -> OrderedSet {
        OrderedSet { fastest_hz: FAST, kind }
    }

    /// An end goes on with its eighth set: from detection, from polling if the other end is past
    /// its own, and from the acceptance of a proposal.
    #[test]
    fn eight_sets_are_heard_in_each_state() {
        let mut end = Trainer::new(Role::Ep, 0x0f, FAST);
        end.hear(set(Kind::Hello), 0xf0);
        assert_eq!((end.sets, end.heard), (0, 0), "these are lanes of others");
        for _ in 0..7 {
            end.hear(set(Kind::Hello), 0xf1);
            assert_eq!((end.state, end.heard), (State::Detect, 1));
        }
        end.hear(set(Kind::Hello), 0x02);
        assert_eq!((end.state, end.heard, end.sets), (State::Polling, 3, 0));
        (0..9).for_each(|_| end.hear(set(Kind::Hello), 0x0f));
        assert_eq!(end.state, State::Polling, "the other end has not detected yet");
        end.hear(set(Kind::Ready(3)), 0x0f);
        assert_eq!((end.state, end.heard_hz), (State::Configure(None), FAST));
        let mut early = Trainer::new(Role::Ep, 0x0f, FAST);
        early.state = State::Polling;
        (0..7).for_each(|_| early.hear(set(Kind::Ready(3)), 1));
        assert_eq!(early.state, State::Polling, "seven are too few");
        let choice = Choice { lanes: 3, rate_hz: FAST };
        end.sets = 20;
        end.hear(set(Kind::Propose(choice)), 1);
        assert_eq!((end.state, end.sets), (State::Configure(Some(choice)), 0));
        for _ in 0..7 {
            end.hear(set(Kind::Propose(choice)), 1);
            assert_eq!(end.outcome(), None);
        }
        end.hear(set(Kind::Propose(choice)), 1);
        assert_eq!(end.outcome(), Some(Ok(choice)));
    }

    /// The RC is up once its own proposal is accepted, and not another one.
    #[test]
    fn only_the_own_proposal_counts() {
        let mut end = Trainer::new(Role::Rc, 0x0f, FAST);
        let mine = Choice { lanes: 3, rate_hz: FAST };
        end.state = State::Configure(Some(mine));
        end.hear(set(Kind::Accept(Choice { lanes: 1, ..mine })), 1);
        assert_eq!(end.outcome(), None);
        assert_eq!(end.send(), set(Kind::Propose(mine)));
        end.hear(set(Kind::Accept(mine)), 1);
        assert_eq!(end.outcome(), Some(Ok(mine)));
        let mut other = Trainer::new(Role::Rc, 0x0f, FAST);
        other.state = State::Configure(None);
        other.hear(set(Kind::Propose(mine)), 1);
        assert_eq!(other.outcome(), Some(Err(Failure::TwoRcs)));
    }

    /// The RC proposes lanes that both ends hear.
    #[test]
    fn both_ends_hear_the_proposed_lanes() {
        let mut end = Trainer::new(Role::Rc, 0x0f, FAST);
        (end.state, end.heard, end.heard_hz) = (State::Configure(None), 0x0f, FAST);
        end.hear(set(Kind::Ready(0x03)), 1);
        assert_eq!(end.send(), set(Kind::Propose(Choice { lanes: 0x03, rate_hz: FAST })));
    }

    /// A state lasts a hundred sets at most.
    #[test]
    fn patience_ends() {
        for (role, state, failure) in [
            (Role::Rc, State::Detect, Failure::NoLane),
            (Role::Ep, State::Polling, Failure::NoLane),
            (Role::Ep, State::Configure(None), Failure::TwoEps),
            (Role::Rc, State::Configure(None), Failure::TwoRcs),
        ] {
            let mut end = Trainer::new(role, 0x0f, FAST);
            end.state = state;
            (0..99).for_each(|_| end.tick());
            assert_eq!(end.outcome(), None, "{state:?}");
            end.tick();
            assert_eq!(end.outcome(), Some(Err(failure)));
        }
        let failures = [Failure::NoLane, Failure::TwoRcs, Failure::TwoEps].map(|it| it.to_string());
        let parts = ["no lane", "both ends are root complexes", "both ends are endpoints"];
        assert!(failures.iter().zip(parts).all(|(text, part)| text.starts_with(part)));
    }

    /// All lanes train in this many sets: 8 to detect, 8 to poll, one of the RC's to configure, and
    /// 9 until the EP is up, which the RC is by its first acceptance.
    #[test]
    fn training_takes_its_sets() {
        crate::limit::limited(|| {
            let (choice, sets) = train(ends(Role::Rc, Role::Ep), 0xff).unwrap();
            assert_eq!((choice.width(), sets), (8, 8 + 8 + 1 + 9));
        });
    }
}
