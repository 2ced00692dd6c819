//! The simulator's oracle notices planted faults of the protocol.

use bellwire_protocol::canary::plant;
use bellwire_simulator::campaign;

/// The first seed.
const SEED: u64 = 40_000_000;
/// Frames in which nothing is noticed while nothing is planted.
const CLEAN_FRAMES: u64 = 4_000_000;
/// Frames within which each fault must be caught. The rarest occasion comes once in about four
/// million frames, and any change of the protocol moves it.
const FRAMES: u64 = 40_000_000;

/// Faults of what the oracle watches. The others affect only speed, fairness or politeness, and the
/// scenarios of `bellwire-protocol` catch them.
const FAULTS: [&str; 29] = [
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
    // Faults that the adversary exploits: identity without place, state before proof, belief in
    // unasked answers and in claims, endless tables, a full stream to an unproved address.
    "reliable-skip-source",
    "reliable-skip-cookie",
    "reliable-believe-new-path",
    "discovery-believe-unasked",
    "discovery-believe-claims",
    "discovery-endless-places",
    // Of keys, with an adversary on the path. Their sessions are too short for the edge of a window
    // and for old keys: the tests of `bellwire-keys` catch those.
    "keys-nonce-reuse",
    "keys-skip-seal",
    "keys-header-open",
    "keys-no-window",
    "keys-accept-plain",
    "keys-skip-tag",
    // In the program: a question is performed twice.
    "simulator-ask-twice",
];

/// Each fault is noticed, and the failure names the seed of its world.
#[test]
fn planted_faults_are_caught() {
    campaign::run(SEED, CLEAN_FRAMES, |_| {})
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
