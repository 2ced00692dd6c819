//! A plain model of the DAMQ: a `VecDeque` of byte vectors per queue. Every step is applied to both
//! and compared.

use std::collections::VecDeque;

use bellwire_protocol::{Damq, PushError};
use proptest::prelude::*;

pub const QUEUES: u32 = 5;
const CELLS: usize = 24;
const CELL_BYTES: usize = 16;

#[derive(Clone, Debug)]
pub enum Op {
    Push { queue: u32, len: usize },
    Pop(u32),
    Discard(u32),
    Clear(u32),
}

pub fn ops() -> impl Strategy<Value = Vec<Op>> {
    let queue = 0..QUEUES;
    // Lengths at and around the borders of cells, and sometimes one that can never fit.
    let len = prop_oneof![0usize..100, Just(16), Just(17), Just(CELLS * CELL_BYTES), 0usize..1000];
    let op = prop_oneof![
        6 => (queue.clone(), len).prop_map(|(queue, len)| Op::Push { queue, len }),
        4 => queue.clone().prop_map(Op::Pop),
        1 => queue.clone().prop_map(Op::Discard),
        1 => queue.prop_map(Op::Clear),
    ];
    prop::collection::vec(op, 1..200)
}

/// Applies the steps to a DAMQ and to the model; an error is the first disagreement.
pub fn agree(ops: Vec<Op>) -> Result<(), TestCaseError> {
    let mut damq = Damq::<u32>::new(CELLS, CELL_BYTES, QUEUES as usize);
    let mut model = vec![VecDeque::<(u32, Vec<u8>)>::new(); QUEUES as usize];
    for (step, op) in ops.into_iter().enumerate() {
        apply(&mut damq, &mut model, step as u32, op)?;
        compare(&damq, &model)?;
    }
    for queue in 0..QUEUES {
        while !model[queue as usize].is_empty() {
            apply(&mut damq, &mut model, 0, Op::Pop(queue))?;
        }
    }
    compare(&damq, &model)?;
    prop_assert_eq!(damq.free_cells(), CELLS, "all cells are free after draining");
    Ok(())
}

type Model = [VecDeque<(u32, Vec<u8>)>];

fn apply(damq: &mut Damq<u32>, model: &mut Model, step: u32, op: Op) -> Result<(), TestCaseError> {
    match op {
        Op::Push { queue, len } => {
            let bytes: Vec<u8> = (0..len).map(|i| (step as usize * 31 + i * 7) as u8).collect();
            let free = CELLS - model.iter().flatten().map(|m| cells(m.1.len())).sum::<usize>();
            let expected = if cells(len) > CELLS {
                Err(PushError::TooLong { len, max_bytes: CELLS * CELL_BYTES })
            } else if cells(len) > free {
                Err(PushError::Full { needed_cells: cells(len), free_cells: free })
            } else {
                model[queue as usize].push_back((step, bytes.clone()));
                Ok(())
            };
            let got = damq.push(queue, step, len, |offset, piece| {
                piece.copy_from_slice(&bytes[offset..offset + piece.len()])
            });
            prop_assert_eq!(got, expected);
        }
        Op::Pop(queue) => {
            let mut bytes = Vec::new();
            let got = damq.pop(queue, |offset, piece| {
                assert_eq!(offset, bytes.len(), "pieces come in order and without gaps");
                bytes.extend_from_slice(piece);
            });
            let expected = model[queue as usize].pop_front();
            prop_assert_eq!(got, expected.as_ref().map(|m| (m.0, m.1.len())));
            prop_assert_eq!(bytes, expected.map_or(Vec::new(), |m| m.1));
        }
        Op::Discard(queue) => {
            let expected = model[queue as usize].pop_front();
            prop_assert_eq!(damq.discard(queue), expected.map(|m| (m.0, m.1.len())));
        }
        Op::Clear(queue) => {
            prop_assert_eq!(damq.clear(queue), model[queue as usize].len());
            model[queue as usize].clear();
        }
    }
    Ok(())
}

fn compare(damq: &Damq<u32>, model: &Model) -> Result<(), TestCaseError> {
    let mut used = 0;
    for (queue, messages) in (0..).zip(model) {
        let of_queue = messages.iter().map(|m| cells(m.1.len())).sum::<usize>();
        used += of_queue;
        prop_assert_eq!(damq.cells_of(queue), of_queue);
        prop_assert_eq!(damq.messages_of(queue), messages.len());
        prop_assert_eq!(damq.front(queue), messages.front().map(|m| (m.0, m.1.len())));
    }
    prop_assert_eq!(damq.free_cells(), CELLS - used);
    damq.check().map_err(TestCaseError::fail)
}

fn cells(len: usize) -> usize {
    len.div_ceil(CELL_BYTES).max(1)
}
