//! Runs many worlds, one after another.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::Scenario;
use crate::program::fold;
use crate::world::{self, Failure, Outcome};

/// The sums of consecutive worlds.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Total {
    /// Worlds.
    pub worlds: u64,
    /// Sums over the worlds; the hash changes with each of theirs.
    pub sum: Outcome,
}

impl Total {
    /// Adds the outcome of one more world.
    pub fn add(&mut self, outcome: &Outcome) {
        let sum = &mut self.sum;
        self.worlds += 1;
        sum.hash = fold(sum.hash, outcome.hash);
        sum.traffic += outcome.traffic;
        sum.packets += outcome.packets;
        sum.downs += outcome.downs;
        sum.restarts += outcome.restarts;
        sum.resent += outcome.resent;
        sum.ns += outcome.ns;
    }
}

/// Runs the worlds of `seed` and the following seeds until functions have sent `frames` frames.
/// Calls `progress` after each world.
///
/// # Errors
/// The first world that the oracle objects to, or whose code panics.
pub fn run(
    seed: u64,
    frames: u64,
    mut progress: impl FnMut(&Total),
) -> Result<Total, Box<Failure>> {
    let mut total = Total::default();
    while total.sum.traffic.sent < frames {
        total.add(&run_world(seed.wrapping_add(total.worlds))?);
        progress(&total);
    }
    Ok(total)
}

/// Runs the world of one seed; a panic of the code under test is a failure of that seed.
///
/// # Errors
/// What the oracle objects to, or the panic's message.
pub fn run_world(seed: u64) -> Result<Outcome, Box<Failure>> {
    let scenario = Scenario::new(seed);
    catch_unwind(AssertUnwindSafe(|| world::run(&scenario))).unwrap_or_else(|panic| {
        let message = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("no message");
        let what = format!("panic: {message}");
        Err(Box::new(Failure { seed, at_ns: 0, frames: 0, what, log: Vec::new() }))
    })
}
