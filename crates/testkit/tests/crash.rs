//! Crashes at every step, and what they leave behind. `BELLWIRE_LONG=1` tries more passages and
//! more rounds.

use bellwire_testkit::crash::{Outcome, Passage, Scenario, steps_of_the_sources, survive};
use std::sync::Mutex;

fn is_long() -> bool {
    std::env::var_os("BELLWIRE_LONG").is_some()
}

/// A process is killed at any passage of any step, in any role. Every descriptor of the survivor
/// completes, nothing stays behind, and the next run is clean.
#[test]
fn killed_at_every_step() {
    at_every_step(false);
}

/// A process that stops at any passage of any step, in any role, and is continued later, loses
/// nothing.
#[test]
fn stopped_at_every_step() {
    at_every_step(true);
}

fn at_every_step(stop: bool) {
    let steps = steps_of_the_sources();
    let counts: Vec<u64> =
        if is_long() { (1..=20).chain([50, 100, 200, 400]).collect() } else { vec![1, 4, 60] };
    let mut plans = Vec::new();
    for count in counts {
        for step in &steps {
            for scenario in Scenario::ALL {
                plans.push((scenario, Passage { step: step.clone(), count, stop }));
            }
        }
    }
    let (plans, reached) = (Mutex::new(plans.into_iter()), Mutex::new(Vec::new()));
    // Several at once, because they mostly sleep.
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                loop {
                    let Some((scenario, passage)) = plans.lock().unwrap().next() else { return };
                    if survive(scenario, &passage) == Outcome::Survived {
                        reached.lock().unwrap().push((passage.step, scenario));
                    }
                }
            });
        }
    });
    let reached = reached.into_inner().unwrap();
    for step in steps {
        let scenarios: Vec<_> = reached.iter().filter(|(name, _)| *name == step).collect();
        println!("{step}: {} crashes", scenarios.len());
        assert!(!scenarios.is_empty(), "no scenario comes to step {step}: extend the workout");
    }
}

/// Thousands of connections and functions that come and go leave no descriptor, mapping or page
/// behind.
#[test]
fn coming_and_going_leaves_nothing() {
    bellwire_testkit::crash::churn(if is_long() { 100_000 } else { 10_000 });
}
