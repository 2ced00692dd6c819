//! What a hostile peer tries, one lie at a time. Each attack fails if the lie was believed.

mod answers;
pub mod arena;
mod datagrams;
mod keys;
mod messages;

/// All attacks, by name.
pub const ATTACKS: [(&str, fn()); 27] = [
    ("an_unknown_key", keys::an_unknown_key),
    ("a_key_of_another_domain", keys::a_key_of_another_domain),
    ("rights_of_the_region", keys::rights_of_the_region),
    ("rights_of_the_queue_pair", keys::rights_of_the_queue_pair),
    ("bounds_of_a_region_and_a_window", keys::bounds_of_a_region_and_a_window),
    ("a_grant_of_a_failed_queue_pair", keys::a_grant_of_a_failed_queue_pair),
    ("a_grant_that_was_taken_back", keys::a_grant_that_was_taken_back),
    ("a_region_that_is_invalidated", keys::a_region_that_is_invalidated),
    ("a_foreign_window_that_is_invalidated", keys::a_foreign_window_that_is_invalidated),
    ("packets_of_strangers", messages::packets_of_strangers),
    ("packets_for_a_failed_queue_pair", messages::packets_for_a_failed_queue_pair),
    ("unknown_opcodes", messages::unknown_opcodes),
    ("packets_of_another_build", messages::packets_of_another_build),
    ("short_packets", messages::short_packets),
    ("lists_that_are_cut", messages::lists_that_are_cut),
    ("wrong_numbers", messages::wrong_numbers),
    ("a_message_longer_than_its_receive", messages::a_message_longer_than_its_receive),
    ("a_flood_without_receives", messages::a_flood_without_receives),
    ("offers_that_lie_about_lengths", messages::offers_that_lie_about_lengths),
    ("an_offer_of_foreign_memory", messages::an_offer_of_foreign_memory),
    ("offers_that_are_no_lists", messages::offers_that_are_no_lists),
    ("immediates_that_lie_about_lengths", messages::immediates_that_lie_about_lengths),
    ("datagrams_that_nobody_may_send", datagrams::datagrams_that_nobody_may_send),
    ("datagrams_for_a_connection", datagrams::datagrams_for_a_connection),
    ("acknowledgements_of_what_was_not_sent", answers::acknowledgements_of_what_was_not_sent),
    ("answers_that_nobody_asked_for", answers::answers_that_nobody_asked_for),
    ("an_answer_with_a_foreign_key", answers::an_answer_with_a_foreign_key),
];
