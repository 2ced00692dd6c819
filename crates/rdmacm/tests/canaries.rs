//! Shows that the attacks would notice a missing check: each fault takes one check away, and the
//! attack named beside it must fail. Without the fault it passes.

mod attacks;

use bellwire_testkit::cases;

/// Fault, and the attack that notices it.
const CANARIES: [(&str, &str); 13] = [
    ("frame-magic", "lies_in_a_request"),
    ("frame-version", "lies_in_a_request"),
    ("frame-length", "lies_in_a_request"),
    ("data-length", "lies_in_a_request"),
    ("number-of-25-bits", "lies_in_a_request"),
    ("any-space", "lies_in_a_request"),
    ("look-up-longer", "lies_in_a_look_up"),
    ("look-up-version", "lies_in_a_look_up"),
    ("any-nonce", "answers_of_somebody_else"),
    ("any-port", "answers_of_somebody_else"),
    ("out-of-order", "frames_out_of_order"),
    ("strangers-kept", "a_crowd_of_strangers"),
    ("silent-kept", "a_silent_stranger"),
];

/// Every planted fault is noticed.
#[test]
fn every_canary_is_caught() {
    // Several at once, because they mostly sleep.
    cases::notice(&attacks::ATTACKS, &CANARIES, "carries_out_one_attack", 16);
}

/// What a child does.
#[test]
#[ignore = "a child of `every_canary_is_caught` runs it"]
fn carries_out_one_attack() {
    cases::carry_out(&attacks::ATTACKS);
}
