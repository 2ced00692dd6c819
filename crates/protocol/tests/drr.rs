//! Turns between flows: by example, against a plain model, and by the promised fairness.

#[path = "oracles/drr.rs"]
mod oracle;

use std::num::NonZeroU8;

use bellwire_protocol::Drr;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    /// Any sequence of operations selects the same flows as a plain queue of flows.
    #[test]
    fn agrees_with_the_model(ops in oracle::ops()) {
        oracle::agree(ops)?;
    }

    /// Flows that all have work share in proportion to their weights at every moment, whatever the
    /// sizes.
    // shows: C-41
    #[test]
    fn is_fair_at_every_moment(case in oracle::saturated()) {
        oracle::fair(case)?;
    }
}

/// With equal weights and one unit per service this is plain round robin: saturated ports get equal
/// turns, one by one.
// shows: D-08, D-09
#[test]
fn equal_ports_take_turns() {
    let mut drr = Drr::new(64, 1);
    (0..64).for_each(|port| drr.wake(port));
    for turn in 0..640 {
        let port = drr.select().unwrap();
        assert_eq!(port, turn % 64);
        drr.charge(port, 1);
    }
}

/// Eight functions with PUTs of random sizes reach equal shares of 12.5 % in bytes, though not in
/// messages.
// shows: C-41
#[test]
fn eight_functions_share_equally() {
    let mut drr = Drr::new(8, 4096);
    (0..8).for_each(|function| drr.wake(function));
    let mut served = [0u64; 8];
    let mut random = 1u64;
    for _ in 0..100_000 {
        let function = drr.select().unwrap();
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        // Each function has another range of sizes: up to 512 B for the first, 4 KiB for the last.
        let bytes = 1 + (random >> 40) as u32 % (512 * (function + 1));
        drr.charge(function, bytes);
        served[function as usize] += bytes as u64;
    }
    let total: u64 = served.iter().sum();
    for share in served.map(|bytes| bytes as f64 / total as f64) {
        assert!((0.1245..0.1255).contains(&share), "{served:?}");
    }
}

/// Under saturation a function of higher priority (a greater weight) gets more, in proportion.
// shows: C-40
#[test]
fn a_greater_weight_gets_more() {
    let mut drr = Drr::new(3, 1000);
    for (flow, weight) in [(0, 1), (1, 4), (2, 5)] {
        drr.weigh(flow, NonZeroU8::new(weight).unwrap());
        drr.wake(flow);
    }
    let mut served = [0; 3];
    for _ in 0..100_000 {
        let flow = drr.select().unwrap();
        drr.charge(flow, 500);
        served[flow as usize] += 1;
    }
    assert_eq!(served, [10_000, 40_000, 50_000]);
}

/// The unused share of an idle flow goes to the others, and the flow saves nothing up for later.
// shows: C-41
#[test]
fn an_idle_flow_leaves_its_share_and_saves_nothing() {
    let mut drr = Drr::new(2, 100);
    drr.wake(0);
    for _ in 0..50 {
        assert_eq!(drr.select(), Some(0));
        drr.charge(0, 100);
    }
    drr.wake(1);
    let turns: Vec<_> = std::iter::from_fn(|| {
        let flow = drr.select()?;
        drr.charge(flow, 100);
        Some(flow)
    })
    .take(6)
    .collect();
    assert_eq!(turns, [1, 0, 1, 0, 1, 0]);
    drr.idle(0);
    drr.idle(1);
    assert_eq!(drr.select(), None);
}

/// A flow cannot shake off a debt by going idle after each large message.
// shows: C-41
#[test]
fn a_debt_outlives_idleness() {
    let mut drr = Drr::new(2, 100);
    drr.wake(0);
    drr.wake(1);
    assert_eq!(drr.select(), Some(0));
    drr.charge(0, 300);
    drr.idle(0);
    drr.wake(0);
    let mut honest = 0;
    while drr.select() == Some(1) {
        drr.charge(1, 100);
        honest += 1;
    }
    assert_eq!(honest, 3);
}

/// A turn is worth the quantum times the weight. The quantum is large, so that an account which
/// goes the wrong way overflows soon.
#[test]
fn a_turn_is_worth_its_quantum() {
    let quantum = u32::MAX;
    let mut drr = Drr::new(2, quantum);
    let weight = NonZeroU8::new(255).unwrap();
    (0..2).for_each(|flow| drr.weigh(flow, weight));
    (0..2).for_each(|flow| drr.wake(flow));
    for _ in 0..2 {
        for flow in [0, 1] {
            for _ in 0..255 {
                assert_eq!(drr.select(), Some(flow));
                drr.charge(flow, quantum);
            }
        }
    }
    drr.weigh(0, NonZeroU8::MIN);
    assert_eq!(drr.select(), Some(0));
    drr.charge(0, quantum);
    for _ in 0..255 {
        assert_eq!(drr.select(), Some(1));
        drr.charge(1, quantum);
    }
    assert_eq!(drr.select(), Some(0), "its next turn has the new weight");
    drr.charge(0, quantum);
    assert_eq!(drr.select(), Some(1));
}
