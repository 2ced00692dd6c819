//! A plain model of deficit round robin: a `VecDeque` of flows, the current one in front. A second
//! check, apart from that model, is the fairness that the algorithm promises.

use std::collections::VecDeque;
use std::num::NonZeroU8;

use bellwire_protocol::Drr;
use proptest::prelude::*;

const FLOWS: u32 = 5;
const QUANTUM_BYTES: u32 = 100;

#[derive(Clone, Debug)]
pub enum Op {
    Wake(u32),
    Idle(u32),
    Remove(u32),
    Weigh(u32, NonZeroU8),
    /// Selects and charges.
    Serve(u32),
}

pub fn ops() -> impl Strategy<Value = Vec<Op>> {
    let flow = 0..FLOWS;
    let op = prop_oneof![
        3 => flow.clone().prop_map(Op::Wake),
        1 => flow.clone().prop_map(Op::Idle),
        1 => flow.clone().prop_map(Op::Remove),
        1 => (flow, any::<NonZeroU8>()).prop_map(|(flow, weight)| Op::Weigh(flow, weight)),
        // Some exceed the quantum, which costs time but must not cost fairness.
        9 => prop_oneof![0u32..=QUANTUM_BYTES, 0u32..2000].prop_map(Op::Serve),
    ];
    prop::collection::vec(op, 1..300)
}

/// Applies the steps to the arbiter and to the model; an error is the first disagreement.
pub fn agree(ops: Vec<Op>) -> Result<(), TestCaseError> {
    let mut drr = Drr::new(FLOWS, QUANTUM_BYTES);
    let mut model = Model { ring: VecDeque::new(), flows: [(0, 1); FLOWS as usize] };
    for op in ops {
        match op {
            Op::Wake(flow) => {
                drr.wake(flow);
                model.wake(flow);
            }
            Op::Idle(flow) => {
                drr.idle(flow);
                model.idle(flow);
            }
            Op::Remove(flow) => {
                drr.remove(flow);
                model.idle(flow);
                model.flows[flow as usize] = (0, 1);
            }
            Op::Weigh(flow, weight) => {
                drr.weigh(flow, weight);
                model.flows[flow as usize].1 = weight.get() as i64;
            }
            Op::Serve(bytes) => {
                let got = drr.select();
                prop_assert_eq!(got, model.select());
                if let Some(flow) = got {
                    drr.charge(flow, bytes);
                    model.flows[flow as usize].0 -= bytes.max(1) as i64;
                }
            }
        }
    }
    Ok(())
}

struct Model {
    ring: VecDeque<u32>,
    /// Account and weight.
    flows: [(i64, i64); FLOWS as usize],
}

impl Model {
    fn wake(&mut self, flow: u32) {
        if !self.ring.contains(&flow) {
            self.ring.push_back(flow);
            if self.ring.len() == 1 {
                self.pay_front();
            }
        }
    }

    fn idle(&mut self, flow: u32) {
        if let Some(place) = self.ring.iter().position(|&other| other == flow) {
            self.ring.remove(place);
            let account = &mut self.flows[flow as usize].0;
            *account = (*account).min(0);
            if place == 0 {
                self.pay_front();
            }
        }
    }

    fn select(&mut self) -> Option<u32> {
        loop {
            let flow = *self.ring.front()?;
            if self.flows[flow as usize].0 > 0 {
                return Some(flow);
            }
            self.ring.rotate_left(1);
            self.pay_front();
        }
    }

    fn pay_front(&mut self) {
        if let Some(&flow) = self.ring.front() {
            let (account, weight) = &mut self.flows[flow as usize];
            *account += *weight * QUANTUM_BYTES as i64;
        }
    }
}

/// Weights of flows that always have work, and the sizes of their services.
#[derive(Clone, Debug)]
pub struct Saturated {
    weights: Vec<NonZeroU8>,
    sizes: Vec<u32>,
}

pub fn saturated() -> impl Strategy<Value = Saturated> {
    let weights = prop::collection::vec(any::<NonZeroU8>(), 2..8);
    let sizes = prop::collection::vec(1..=QUANTUM_BYTES, 1..1500);
    (weights, sizes).prop_map(|(weights, sizes)| Saturated { weights, sizes })
}

/// At every moment the services of any two flows, divided by their weights, are within the promised
/// distance.
pub fn fair(case: Saturated) -> Result<(), TestCaseError> {
    let Saturated { weights, sizes } = case;
    let mut drr = Drr::new(weights.len() as u32, QUANTUM_BYTES);
    for (flow, &weight) in (0..).zip(&weights) {
        drr.weigh(flow, weight);
        drr.wake(flow);
    }
    let mut served = vec![0.0; weights.len()];
    for bytes in sizes {
        let flow = drr.select().expect("all flows have work");
        drr.charge(flow, bytes);
        served[flow as usize] += bytes as f64 / weights[flow as usize].get() as f64;
        for (one, &a) in served.iter().zip(&weights) {
            for (other, &b) in served.iter().zip(&weights) {
                // One quantum, and the largest charge of each.
                let (a, b) = (a.get() as f64, b.get() as f64);
                let bound = QUANTUM_BYTES as f64 * (1.0 + 1.0 / a + 1.0 / b);
                prop_assert!(one - other <= bound + 1e-6, "{:?}", served);
            }
        }
    }
    Ok(())
}
