//! A plain model of the rations: a `VecDeque` of waiting lanes, and a number for each lane.

use std::collections::VecDeque;

use bellwire_protocol::{GrantPolicy, Rations};
use proptest::prelude::*;

pub const LANES: u16 = 4;
pub const POLICIES: [GrantPolicy; 3] =
    [GrantPolicy::All, GrantPolicy::HalfOfFree, GrantPolicy::History];

#[derive(Clone, Copy, Debug)]
pub enum Op {
    Want(u16),
    TopUp(u16),
    /// Returns this many credits, or all that the lane holds.
    GiveBack(u16, u16),
    Park(u16),
    NextGrant,
}

/// A policy, a total, the least grant, and steps.
pub type Run = (GrantPolicy, u16, u16, Vec<Op>);

pub fn runs() -> impl Strategy<Value = Run> {
    let lane = 0..LANES;
    let op = prop_oneof![
        6 => lane.clone().prop_map(Op::Want),
        2 => lane.clone().prop_map(Op::TopUp),
        8 => (lane.clone(), 1u16..20).prop_map(|(lane, credits)| Op::GiveBack(lane, credits)),
        1 => lane.prop_map(Op::Park),
        6 => Just(Op::NextGrant),
    ];
    let policy = prop::sample::select(POLICIES.to_vec());
    (policy, 5u16..60, 1u16..5, prop::collection::vec(op, 1..200))
}

/// Applies the steps to both; an error is the first disagreement.
pub fn agree((policy, total, least, ops): Run) -> Result<(), TestCaseError> {
    let mut pair = Pair::new(policy, total, least);
    for op in ops {
        pair.apply(op)?;
    }
    // When everything comes back, every waiting lane is served (D-18).
    for _ in 0..LANES {
        for lane in 0..LANES {
            pair.apply(Op::GiveBack(lane, total))?;
            pair.apply(Op::NextGrant)?;
        }
    }
    prop_assert_eq!(pair.rations.waiting(), 0);
    Ok(())
}

/// The rations and their model, side by side.
#[derive(Clone)]
pub struct Model {
    policy: GrantPolicy,
    total: u16,
    least: u16,
    held: [u16; LANES as usize],
    size: [u16; LANES as usize],
    waiting: VecDeque<u16>,
}

pub struct Pair {
    rations: Rations,
    model: Model,
}

impl Model {
    fn free(&self) -> u16 {
        self.total - self.held.iter().sum::<u16>()
    }

    fn grant(&mut self, lane: u16) -> u16 {
        let free = self.free();
        let wanted = match self.policy {
            GrantPolicy::All => free,
            GrantPolicy::HalfOfFree => free / 2,
            GrantPolicy::History => self.size[lane as usize],
        };
        let credits = wanted.max(self.least).min(free);
        self.held[lane as usize] += credits;
        credits
    }

    fn apply(&mut self, op: Op) -> Option<(u16, u16)> {
        match op {
            Op::Want(lane) => {
                if self.waiting.contains(&lane) {
                    return None;
                }
                let size = &mut self.size[lane as usize];
                *size = (*size * 2).max(self.least).min(self.total);
                if self.waiting.is_empty() && self.free() >= self.least {
                    return Some((lane, self.grant(lane)));
                }
                self.waiting.push_back(lane);
                None
            }
            Op::TopUp(lane) => {
                let may = self.size[lane as usize] > 0 && self.waiting.is_empty();
                (may && self.free() >= self.least).then(|| (lane, self.grant(lane)))
            }
            Op::GiveBack(lane, credits) => {
                self.held[lane as usize] -= credits;
                None
            }
            Op::Park(lane) => {
                self.waiting.retain(|&waiting| waiting != lane);
                self.size[lane as usize] = 0;
                Some((lane, std::mem::take(&mut self.held[lane as usize])))
            }
            Op::NextGrant => {
                if self.free() < self.least {
                    return None;
                }
                let waiting = self.waiting.len() as u16;
                let lane = self.waiting.pop_front()?;
                if waiting > 1 {
                    let share = (self.free() / waiting).max(self.least);
                    let size = &mut self.size[lane as usize];
                    *size = (*size / 2).max(self.least).min(share);
                }
                Some((lane, self.grant(lane)))
            }
        }
    }
}

impl Pair {
    pub fn new(policy: GrantPolicy, total: u16, least: u16) -> Pair {
        let (held, size) = ([0; LANES as usize], [0; LANES as usize]);
        let model = Model { policy, total, least, held, size, waiting: VecDeque::new() };
        Pair { rations: Rations::new(policy, total, least, LANES), model }
    }

    pub fn apply(&mut self, op: Op) -> Result<(), TestCaseError> {
        let Pair { rations, model } = self;
        let op = match op {
            Op::GiveBack(lane, credits) => {
                Op::GiveBack(lane, credits.min(model.held[lane as usize]))
            }
            other => other,
        };
        let expected = model.apply(op);
        let got = match op {
            Op::Want(lane) => rations.want(lane).map(|credits| (lane, credits)),
            Op::TopUp(lane) => rations.top_up(lane).map(|credits| (lane, credits)),
            Op::GiveBack(lane, credits) => {
                rations.give_back(lane, credits);
                None
            }
            Op::Park(lane) => Some((lane, rations.park(lane))),
            Op::NextGrant => rations.next_grant(),
        };
        prop_assert_eq!(got, expected, "{:?}", op);
        prop_assert_eq!(rations.free(), model.free());
        prop_assert_eq!(rations.waiting() as usize, model.waiting.len());
        for lane in 0..LANES {
            prop_assert_eq!(rations.held(lane), model.held[lane as usize]);
        }
        rations.check().map_err(TestCaseError::fail)
    }
}
