//! A plain model of the window: a `HashMap` from ids to operations, and a list of the ids that are
//! no longer valid.

use std::collections::HashMap;

use bellwire_protocol::{OpId, Outstanding, Stale, WindowFull};
use proptest::prelude::*;

const LIMIT: usize = 6;

#[derive(Clone, Debug)]
pub enum Op {
    Start,
    /// Answers the operation at this index among those in flight.
    Finish(usize),
    /// Answers an ended operation once more.
    FinishAgain(usize),
    /// Answers with an id that a hostile peer made up.
    Forge(u64),
    /// Answers with the id of an operation in flight, with one bit flipped.
    ForgeBit(usize, u32),
    Abandon,
}

pub fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        8 => Just(Op::Start),
        6 => any::<usize>().prop_map(Op::Finish),
        2 => any::<usize>().prop_map(Op::FinishAgain),
        1 => prop_oneof![any::<u64>(), 0u64..1 << 20].prop_map(Op::Forge),
        2 => (any::<usize>(), 0u32..64).prop_map(|(at, bit)| Op::ForgeBit(at, bit)),
        1 => Just(Op::Abandon),
    ];
    prop::collection::vec(op, 1..300)
}

/// Applies the steps to a window and to the model; an error is the first disagreement.
pub fn agree(ops: Vec<Op>) -> Result<(), TestCaseError> {
    let mut window = Outstanding::<usize>::new(LIMIT as u16);
    let mut model = HashMap::<OpId, usize>::new();
    let (mut started, mut ended) = (Vec::new(), Vec::new());
    for (step, op) in ops.into_iter().enumerate() {
        match op {
            Op::Start if started.len() == LIMIT => {
                prop_assert_eq!(window.start(step), Err(WindowFull(step)));
            }
            Op::Start => {
                let id = window.start(step).expect("there is room");
                prop_assert!(model.insert(id, step).is_none(), "{:?} is in flight already", id);
                prop_assert!(!ended.contains(&id), "{:?} has been used before", id);
                started.push(id);
            }
            Op::Finish(at) if !started.is_empty() => {
                let id = started.remove(at % started.len());
                ended.push(id);
                let expected = model.remove(&id).unwrap();
                prop_assert_eq!(window.operation(id).copied(), Ok(expected));
                prop_assert_eq!(window.finish(id), Ok(expected));
            }
            Op::FinishAgain(at) if !ended.is_empty() => {
                let id = ended[at % ended.len()];
                prop_assert_eq!(window.finish(id), Err(Stale(id)));
            }
            Op::Forge(bits) => {
                let id = OpId::from_bits(bits);
                if !model.contains_key(&id) {
                    prop_assert_eq!(window.finish(id), Err(Stale(id)));
                }
            }
            Op::ForgeBit(at, bit) if !started.is_empty() => {
                let id = OpId::from_bits(started[at % started.len()].to_bits() ^ 1 << bit);
                if !model.contains_key(&id) {
                    prop_assert_eq!(window.operation(id).copied(), Err(Stale(id)));
                    prop_assert_eq!(window.finish(id), Err(Stale(id)));
                }
            }
            Op::Abandon => {
                let mut got = Vec::new();
                window.abandon(|operation| got.push(operation));
                let expected: Vec<_> = started.iter().map(|id| model[id]).collect();
                prop_assert_eq!(got, expected, "in the order of starting");
                model.clear();
                ended.append(&mut started);
            }
            _ => {}
        }
        prop_assert_eq!(window.in_flight() as usize, model.len());
    }
    for (id, operation) in model {
        prop_assert_eq!(window.finish(id), Ok(operation));
    }
    prop_assert_eq!(window.in_flight(), 0);
    Ok(())
}
