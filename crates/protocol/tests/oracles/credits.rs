//! A plain model of the credit manager: a `VecDeque` of waiting lanes, and a vector of extents per
//! lane.
//!
//! The model predicts the length of an extent and that it overlaps no other, not its place. The
//! pool defines places, and has an oracle of its own.

use std::collections::VecDeque;

use bellwire_protocol::{CreditManager, Extent, NotHeld};
use proptest::prelude::*;

pub const LANES: u16 = 5;
const CHUNKS: u16 = 40;
const MAX_EXTENTS: usize = 4;

#[derive(Clone, Debug)]
pub enum Op {
    Want(u16),
    TopUp(u16),
    /// Returns the extent at this place among those of the lane.
    Consume(u16, usize),
    /// Returns an extent that a hostile peer made up.
    Forge(u16, Extent),
    Park(u16),
    NextGrant,
}

pub fn ops() -> impl Strategy<Value = Vec<Op>> {
    let lane = 0..LANES;
    let extent = prop_oneof![
        (0..CHUNKS + 5, 0u16..10).prop_map(|(first, count)| Extent { first, count }),
        (any::<u16>(), any::<u16>()).prop_map(|(first, count)| Extent { first, count }),
    ];
    let op = prop_oneof![
        8 => lane.clone().prop_map(Op::Want),
        4 => lane.clone().prop_map(Op::TopUp),
        8 => (lane.clone(), 0..MAX_EXTENTS).prop_map(|(lane, at)| Op::Consume(lane, at)),
        1 => (lane.clone(), extent).prop_map(|(lane, extent)| Op::Forge(lane, extent)),
        1 => lane.prop_map(Op::Park),
        6 => Just(Op::NextGrant),
    ];
    prop::collection::vec(op, 1..300)
}

/// Applies the steps to a manager and to the model; an error is the first disagreement.
pub fn agree(ops: Vec<Op>) -> Result<(), TestCaseError> {
    let mut credits = CreditManager::new(CHUNKS, LANES, MAX_EXTENTS as u16);
    let mut model = Model::default();
    for op in ops {
        apply(&mut credits, &mut model, op)?;
        compare(&credits, &model)?;
    }
    drain(&mut credits, &mut model)
}

#[derive(Default)]
struct Model {
    lanes: [Lane; LANES as usize],
    waiting: VecDeque<u16>,
}

#[derive(Default)]
struct Lane {
    size: u16,
    held: Vec<Extent>,
    /// Asked while it held its most extents.
    at_limit: bool,
}

impl Model {
    fn free(&self) -> u16 {
        CHUNKS - self.lanes.iter().flat_map(|lane| &lane.held).map(|e| e.count).sum::<u16>()
    }

    /// The longest power of two that is at most `limit` and has a free run.
    fn expected_count(&self, limit: u16) -> Option<u16> {
        let mut free = vec![true; CHUNKS as usize];
        for extent in self.lanes.iter().flat_map(|lane| &lane.held) {
            free[extent.chunks()].fill(false);
        }
        let fits = |n: u16| free.windows(n as usize).any(|run| run.iter().all(|&free| free));
        [32, 16, 8, 4, 2, 1].into_iter().find(|&n| n <= limit && fits(n))
    }

    /// `got` was granted to `lane`: it must have the expected length and overlap nothing.
    fn accept(&mut self, lane: u16, got: Option<Extent>) -> Result<(), TestCaseError> {
        let expected = self.expected_count(self.lanes[lane as usize].size);
        prop_assert_eq!(got.map(|extent| extent.count), expected);
        let Some(extent) = got else { return Ok(()) };
        for other in self.lanes.iter().flat_map(|lane| &lane.held) {
            let apart = other.chunks().end <= extent.chunks().start
                || extent.chunks().end <= other.chunks().start;
            prop_assert!(apart, "{} granted while {} is", extent, other);
        }
        prop_assert!(extent.chunks().end <= CHUNKS as usize);
        self.lanes[lane as usize].held.push(extent);
        Ok(())
    }
}

fn apply(credits: &mut CreditManager, model: &mut Model, op: Op) -> Result<(), TestCaseError> {
    match op {
        Op::Want(lane) => {
            let got = credits.want(lane);
            let state = &mut model.lanes[lane as usize];
            if state.at_limit || model.waiting.contains(&lane) {
                prop_assert_eq!(got, None);
                return Ok(());
            }
            state.size = (state.size * 2).clamp(1, CHUNKS);
            if state.held.len() == MAX_EXTENTS {
                state.at_limit = true;
                prop_assert_eq!(got, None);
            } else if !model.waiting.is_empty() || model.free() == 0 {
                model.waiting.push_back(lane);
                prop_assert_eq!(got, None);
            } else {
                prop_assert!(got.is_some(), "something is free and nobody waits");
                model.accept(lane, got)?;
            }
        }
        Op::TopUp(lane) => {
            let got = credits.top_up(lane);
            let state = &model.lanes[lane as usize];
            let may = state.size > 0 && !state.at_limit && state.held.len() < MAX_EXTENTS;
            if may && model.waiting.is_empty() {
                model.accept(lane, got)?;
            } else {
                prop_assert_eq!(got, None);
            }
        }
        Op::Consume(lane, at) => {
            let state = &mut model.lanes[lane as usize];
            if at < state.held.len() {
                let extent = state.held.remove(at);
                prop_assert_eq!(credits.consumed(lane, extent), Ok(()));
                if std::mem::take(&mut state.at_limit) {
                    model.waiting.push_back(lane);
                }
                // A second return is refused.
                prop_assert_eq!(credits.consumed(lane, extent), Err(NotHeld { lane, extent }));
            }
        }
        Op::Forge(lane, extent) => {
            if !model.lanes[lane as usize].held.contains(&extent) {
                prop_assert_eq!(credits.consumed(lane, extent), Err(NotHeld { lane, extent }));
            }
        }
        Op::Park(lane) => {
            let state = std::mem::take(&mut model.lanes[lane as usize]);
            let chunks = state.held.iter().map(|e| e.count).sum::<u16>();
            prop_assert_eq!(credits.park(lane), chunks);
            model.waiting.retain(|&waiting| waiting != lane);
        }
        Op::NextGrant => {
            let got = credits.next_grant();
            if model.waiting.is_empty() || model.free() == 0 {
                prop_assert_eq!(got, None);
                return Ok(());
            }
            let waiting = model.waiting.len() as u16;
            let share = (model.free() / waiting).max(1);
            let lane = model.waiting.pop_front().unwrap();
            prop_assert_eq!(got.map(|got| got.0), Some(lane), "first come, first served");
            if waiting > 1 {
                let state = &mut model.lanes[lane as usize];
                state.size = (state.size / 2).clamp(1, share);
            }
            model.accept(lane, got.map(|got| got.1))?;
        }
    }
    Ok(())
}

fn compare(credits: &CreditManager, model: &Model) -> Result<(), TestCaseError> {
    for (lane, state) in (0..).zip(&model.lanes) {
        prop_assert_eq!(credits.held(lane).collect::<Vec<_>>(), state.held.clone());
        prop_assert_eq!(credits.oldest(lane), state.held.first().copied());
        prop_assert_eq!(credits.granted_to(lane), state.held.iter().map(|e| e.count).sum::<u16>());
    }
    prop_assert_eq!(credits.free_chunks(), model.free());
    prop_assert_eq!(credits.waiting() as usize, model.waiting.len());
    credits.check().map_err(TestCaseError::fail)
}

/// When everything comes back, every waiting lane is served. The grants between are owed by whoever
/// took extents back, be it from a lane that returned one or from one that was parked.
fn drain(credits: &mut CreditManager, model: &mut Model) -> Result<(), TestCaseError> {
    for _ in 0..=CHUNKS {
        while !model.waiting.is_empty() && model.free() > 0 {
            apply(credits, model, Op::NextGrant)?;
            compare(credits, model)?;
        }
        let holder = (0..LANES).find(|&lane| !model.lanes[lane as usize].held.is_empty());
        let Some(lane) = holder else { break };
        apply(credits, model, Op::Consume(lane, 0))?;
        compare(credits, model)?;
    }
    prop_assert_eq!(credits.waiting(), 0);
    prop_assert_eq!(credits.free_chunks(), CHUNKS);
    Ok(())
}
