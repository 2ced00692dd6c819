//! The oracle of `hostile.rs` notices planted faults.

#[allow(dead_code, reason = "other tests use the rest")]
mod support;

use bellwire_keys::{Code, Pairing, Side};
use bellwire_protocol::canary::plant;
use support::{renewal, run};

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

/// Sessions that are not followed in time, and earlier ones that are dropped too soon, make frames
/// wait or lose them.
#[test]
fn a_pause_is_noticed() {
    for fault in ["keys-no-renewal", "keys-no-earlier", "keys-two-earlier"] {
        let _planted = plant(fault);
        let mut cases = renewal::cases().into_iter();
        let caught = cases.any(|(limits, step_ns)| renewal::run(limits, step_ns, 50_000).is_err());
        assert!(caught, "{fault}");
    }
}

/// Whether a sender with another code gets the listener's key.
fn a_wrong_code_opens() -> bool {
    let near = Pairing::begin(&Code::new([1; 5]), Side::Sender);
    let far = Pairing::begin(&Code::new([2; 5]), Side::Listener);
    let (ours, theirs) = (*near.message(), *far.message());
    let near = near.finish(&theirs).expect("a message");
    let far = far.finish(&ours).expect("a message");
    far.confirm(&near.proof()).is_some()
}

/// A listener that leaves out the code or the proof lets everybody in, and the check notices it.
#[test]
fn a_code_that_does_not_count_is_noticed() {
    assert!(!a_wrong_code_opens());
    for fault in ["pairing-any-code", "pairing-no-proof"] {
        let _planted = plant(fault);
        assert!(a_wrong_code_opens(), "{fault}");
    }
}
