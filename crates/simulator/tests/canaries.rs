//! Faults planted in the protocol, which the simulator's oracle must notice within a few hundred thousand frames.

use bellwire_protocol::canary::plant;
use bellwire_simulator::campaign;

/// First of the seeds that are tried.
const SEED: u64 = 40_000_000;
/// Frames within which each fault must be caught.
const FRAMES: u64 = 4_000_000;

/// Faults that break what the oracle watches. The others break speed, fairness or manners only, and the scenarios of
/// `bellwire-protocol` catch them.
const FAULTS: [&str; 23] = [
    "reliable-skip-sequence",
    "reliable-skip-check",
    "reliable-deliver-repeated",
    "reliable-no-timeout",
    "reliable-ignore-credit",
    "reliable-acknowledge-ahead",
    "reliable-corrupt-before-check",
    "reliable-drop-acknowledgement",
    "reliable-forget-lost",
    "reliable-credit-leak",
    "reliable-skip-token",
    "reliable-mix-channels",
    "reliable-no-unfinished",
    "reliable-gate-untold",
    "reliable-no-keep-alive",
    "reliable-deliver-discarded",
    // What the adversary waits for: who somebody is does not depend on where he is, state before a proof, answers and claims that are
    // believed, a table without end, a new address that is sent to like a proved one.
    "reliable-skip-source",
    "reliable-skip-cookie",
    "reliable-believe-new-path",
    "discovery-believe-unasked",
    "discovery-believe-claims",
    "discovery-endless-places",
    // In the program: what a question does is done twice.
    "simulator-ask-twice",
];

/// Each fault is noticed, and named with the seed of the world that showed it.
#[test]
fn planted_faults_are_caught() {
    campaign::run(SEED, FRAMES, |_| {})
        .unwrap_or_else(|failure| panic!("nothing planted: {failure}"));
    let mut missed = Vec::new();
    for fault in FAULTS {
        let _planted = plant(fault);
        match campaign::run(SEED, FRAMES, |_| {}) {
            Ok(total) => missed.push((fault, total.worlds)),
            Err(failure) => {
                let what = failure.what.lines().next().unwrap_or_default().to_owned();
                println!("{fault} | seed {} | {} frames | {what}", failure.seed, failure.frames);
            }
        }
    }
    assert!(missed.is_empty(), "not noticed: {missed:?}");
}
