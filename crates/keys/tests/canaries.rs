//! The oracle of `hostile.rs` notices planted faults.

mod support;

use bellwire_protocol::canary::plant;
use support::run;

/// Frames within which each fault must be caught.
const FRAMES: u64 = 3_000_000;

const FAULTS: [&str; 10] = [
    "keys-nonce-reuse",
    "keys-skip-seal",
    "keys-header-open",
    "keys-window-off-by-one",
    "keys-no-window",
    "keys-old-session",
    "keys-accept-plain",
    "keys-skip-tag",
    "keys-skip-cookie",
    "keys-reflect",
];

/// Each fault is noticed, and the failure names the seed of its world.
#[test]
fn planted_faults_are_caught() {
    run(1_000, 300_000, |_| {}).unwrap_or_else(|what| panic!("nothing planted: {what}"));
    let mut missed = Vec::new();
    for fault in FAULTS {
        let _planted = plant(fault);
        match run(1_000, FRAMES, |_| {}) {
            Ok(outcome) => missed.push((fault, outcome)),
            Err(what) => println!("{fault} | {what}"),
        }
    }
    assert!(missed.is_empty(), "{missed:?}");
}
