//! Shows that the attacks would notice a missing check: each fault takes one check away, and the
//! attack named beside it must fail. Without the fault it passes.

mod attacks;

use std::process::Command;

/// Names the attack that a child carries out.
const ATTACK: &str = "BELLWIRE_TEST_ATTACK";

/// Fault, and the attack that notices it.
const CANARIES: [(&str, &str); 31] = [
    ("key-unknown", "an_unknown_key"),
    ("key-foreign", "a_key_of_another_domain"),
    ("region-rights", "rights_of_the_region"),
    ("queue-pair-rights", "rights_of_the_queue_pair"),
    ("window-bounds", "bounds_of_a_region_and_a_window"),
    ("wrong-bounds", "bounds_of_a_region_and_a_window"),
    ("grant-kept", "a_grant_of_a_failed_queue_pair"),
    ("grant-kept", "a_grant_that_was_taken_back"),
    ("invalidate-region", "a_region_that_is_invalidated"),
    ("invalidate-foreign", "a_foreign_window_that_is_invalidated"),
    ("any-function", "packets_of_strangers"),
    ("any-queue-pair", "packets_of_strangers"),
    ("any-state", "packets_for_a_failed_queue_pair"),
    ("opcode-unknown", "unknown_opcodes"),
    ("short-packet", "short_packets"),
    ("any-number", "wrong_numbers"),
    ("longer-than-receive", "a_message_longer_than_its_receive"),
    ("keeps-all", "a_flood_without_receives"),
    ("offer-wraps", "offers_that_lie_about_lengths"),
    ("offer-longer", "offers_that_lie_about_lengths"),
    ("offer-foreign", "an_offer_of_foreign_memory"),
    ("offer-cut", "offers_that_are_no_lists"),
    ("offer-many", "offers_that_are_no_lists"),
    ("immediate-unbounded", "immediates_that_lie_about_lengths"),
    ("datagram-service", "datagrams_for_a_connection"),
    ("datagram-state", "datagrams_that_nobody_may_send"),
    ("datagram-key", "datagrams_that_nobody_may_send"),
    ("datagram-source", "datagrams_that_nobody_may_send"),
    ("acks-unsent", "acknowledgements_of_what_was_not_sent"),
    ("foreign-answer", "an_answer_with_a_foreign_key"),
    ("unasked-answer", "answers_that_nobody_asked_for"),
];

/// Every planted fault is noticed.
#[test]
fn every_canary_is_caught() {
    let attacks: std::collections::BTreeSet<&str> = CANARIES.iter().map(|(_, it)| *it).collect();
    for name in attacks {
        assert!(passes(name, None), "{name} fails although nothing is planted");
    }
    let kept = CANARIES.iter().filter(|(fault, name)| passes(name, Some(fault)));
    let kept: Vec<_> = kept.collect();
    assert!(kept.is_empty(), "not noticed: {kept:?}");
}

/// Whether an attack in a process of its own is repelled.
fn passes(name: &str, fault: Option<&str>) -> bool {
    let program = std::env::current_exe().expect("the path of this program");
    let mut child = Command::new(program);
    child.args(["--exact", "carries_out_one_attack", "--ignored"]).env(ATTACK, name);
    child.env_remove("BELLWIRE_CANARY").envs(fault.map(|fault| ("BELLWIRE_CANARY", fault)));
    child.output().expect("a child").status.success()
}

/// What a child does.
#[test]
#[ignore = "a child of `every_canary_is_caught` runs it"]
fn carries_out_one_attack() {
    let name = std::env::var(ATTACK).expect("the name of an attack");
    let known = attacks::ATTACKS.iter().find(|(known, _)| *known == name);
    known.unwrap_or_else(|| panic!("no attack {name}")).1();
}
