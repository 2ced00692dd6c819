//! Each oracle of this crate must object to the fault that is planted for it, and to nothing without it.

#[path = "oracles/credits.rs"]
mod credits;
#[path = "oracles/damq.rs"]
mod damq;
#[path = "oracles/drr.rs"]
mod drr;
#[path = "oracles/extents.rs"]
mod extents;
#[path = "oracles/gate.rs"]
mod gate;
#[path = "oracles/outstanding.rs"]
mod outstanding;

use std::fmt::Debug;

use bellwire_protocol::canary::plant;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// Runs an oracle on generated sequences, always the same ones, and says whether it objected to any.
fn objects<T: Debug>(
    ops: impl Strategy<Value = T>,
    oracle: impl Fn(T) -> Result<(), TestCaseError>,
) -> bool {
    let config = Config { failure_persistence: None, max_shrink_iters: 0, ..Config::default() };
    let rng = proptest::test_runner::TestRng::deterministic_rng(config.rng_algorithm);
    TestRunner::new_with_rng(config, rng).run(&ops, oracle).is_err()
}

/// A fault must be what makes the oracle object: it objects with it and not without it.
fn is_caught<T: Debug, S: Strategy<Value = T>>(
    fault: &'static str,
    ops: impl Fn() -> S,
    oracle: impl Fn(T) -> Result<(), TestCaseError>,
) {
    assert!(!objects(ops(), &oracle), "the oracle objects although nothing is planted");
    let _planted = plant(fault);
    assert!(objects(ops(), &oracle), "the oracle does not notice {fault}");
}

/// A freed message loses one of its cells.
#[test]
fn a_lost_cell_is_caught() {
    is_caught("damq-lost-free", damq::ops, damq::agree);
}

/// The tail pointer of a queue stays at the first cell of a message.
#[test]
fn a_wrong_tail_pointer_is_caught() {
    is_caught("damq-order", damq::ops, damq::agree);
}

/// A chunk that is given twice is counted twice.
#[test]
fn a_silent_double_free_is_caught() {
    is_caught("extent-double-free", extents::ops, extents::agree);
}

/// A granted extent stays free, so that another lane gets it too.
#[test]
fn a_double_grant_is_caught() {
    is_caught("credit-double-grant", credits::ops, credits::agree);
}

/// A lane drops off the waiting list when the lane before it is served.
#[test]
fn a_forgotten_lane_is_caught() {
    is_caught("credit-starve", credits::ops, credits::agree);
}

/// Service costs nothing, so that the flow at its turn keeps it.
#[test]
fn free_service_is_caught() {
    is_caught("drr-no-charge", drr::ops, drr::agree);
    is_caught("drr-no-charge", drr::saturated, drr::fair);
}

/// An answer is accepted for whatever operation is in its slot now.
#[test]
fn a_stale_answer_is_caught() {
    is_caught("operation-stale", outstanding::ops, outstanding::agree);
}

/// A queue that was stopped once is never released.
#[test]
fn a_missed_go_is_caught() {
    is_caught("gate-missed-go", gate::ops, gate::agree);
}
