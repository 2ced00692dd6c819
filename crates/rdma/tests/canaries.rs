//! Shows that the attacks and the rules would notice what is missing: each fault takes one check
//! away, and the case named beside it must fail. Without the fault it passes.

mod attacks;
mod rules;

use attacks::arena;
use bellwire_testkit::cases;

/// Fault, and the attack that notices it.
const CANARIES: [(&str, &str); 33] = [
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
    ("any-version", "packets_of_another_build"),
    ("short-packet", "short_packets"),
    ("record-cut", "lists_that_are_cut"),
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

/// Fault, and the rule that it breaks.
const BREACHES: [(&str, &str); 24] = [
    ("answers-alone", "answers_travel_with_writes"),
    ("looks-when-empty", "polls_with_completions_look"),
    ("write-overtakes", "a_write_waits_for_the_message_before"),
    ("promise-assumed", "a_write_waits_for_a_value_before"),
    ("keeps-few", "messages_with_receives_wait"),
    ("rnr-once-more", "attempts_without_a_receive"),
    ("rnr-at-once", "attempts_without_a_receive"),
    ("rnr-seven-ends", "attempts_without_end"),
    ("timeout-zero-ends", "attempts_without_end"),
    ("rnr-code", "the_receivers_timer"),
    ("retries-once", "patience_with_a_peer"),
    ("drained-early", "drained_after_the_last_attempt"),
    ("drained-starts", "drained_after_the_last_attempt"),
    ("limit-late", "the_limit_of_a_shared_queue"),
    ("limit-early", "the_limit_of_a_shared_queue"),
    ("limit-kept", "the_limit_of_a_shared_queue"),
    ("window-kept", "keys_of_a_window"),
    ("window-unasked", "what_a_window_needs"),
    ("window-writes", "what_a_window_needs"),
    ("window-any-domain", "what_a_window_needs"),
    ("region-ends-early", "what_a_window_needs"),
    ("flushed-early", "a_fetch_ends_before_its_flush"),
    ("flushed-early", "a_read_ends_before_its_flush"),
    ("forgets-for-all", "one_that_gives_up_fails_alone"),
];

/// Every planted fault is noticed.
#[test]
fn every_canary_is_caught() {
    cases::notice(&attacks::ATTACKS, &CANARIES, "carries_out_one_attack", 2);
}

/// Every breach of a rule is noticed.
#[test]
fn every_breach_is_noticed() {
    cases::notice(&rules::RULES, &BREACHES, "holds_one_rule", 2);
}

/// What a child does.
#[test]
#[ignore = "a child of `every_canary_is_caught` runs it"]
fn carries_out_one_attack() {
    cases::carry_out(&attacks::ATTACKS);
}

/// What a child does.
#[test]
#[ignore = "a child of `every_breach_is_noticed` runs it"]
fn holds_one_rule() {
    cases::carry_out(&rules::RULES);
}
