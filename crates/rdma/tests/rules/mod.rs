//! Rules of the specification that a program relies on, one case each.

mod answers;
mod ending;
mod order;
mod pair;
mod polls;
mod retries;
mod shared;
mod windows;

use bellwire_testkit::cases::Case;

/// All rules, by name.
pub const RULES: [Case; 18] = [
    ("answers_travel_with_writes", answers::answers_travel_with_writes),
    ("writes_to_one_that_sends_nothing", answers::writes_to_one_that_sends_nothing),
    ("polls_with_completions_look", polls::polls_with_completions_look),
    ("a_write_waits_for_the_message_before", order::a_write_waits_for_the_message_before),
    ("a_write_waits_for_a_value_before", order::a_write_waits_for_a_value_before),
    ("messages_with_receives_wait", retries::messages_with_receives_wait),
    ("attempts_without_a_receive", retries::attempts_without_a_receive),
    ("attempts_without_end", retries::attempts_without_end),
    ("the_receivers_timer", retries::the_receivers_timer),
    ("patience_with_a_peer", retries::patience_with_a_peer),
    ("drained_after_the_last_attempt", retries::drained_after_the_last_attempt),
    ("the_limit_of_a_shared_queue", shared::the_limit_of_a_shared_queue),
    ("keys_of_a_window", windows::keys_of_a_window),
    ("what_a_window_needs", windows::what_a_window_needs),
    ("a_fetch_ends_before_its_flush", ending::a_fetch_ends_before_its_flush),
    ("a_read_ends_before_its_flush", ending::a_read_ends_before_its_flush),
    ("a_fetch_ends_before_its_queue_pair", ending::a_fetch_ends_before_its_queue_pair),
    ("one_that_gives_up_fails_alone", ending::one_that_gives_up_fails_alone),
];
