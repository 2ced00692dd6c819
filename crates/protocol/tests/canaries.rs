//! Each oracle of this crate must object to the fault that is planted for it, and to nothing
//! without it.

#[path = "oracles/credits.rs"]
mod credits;
#[path = "oracles/damq.rs"]
mod damq;
#[path = "oracles/drr.rs"]
mod drr;
#[path = "oracles/extents.rs"]
mod extents;
#[path = "oracles/gate.rs"]
mod gate;
#[path = "oracles/link_layer.rs"]
mod link_layer;
#[path = "oracles/outstanding.rs"]
mod outstanding;
#[path = "oracles/rations.rs"]
mod rations;
mod reliable {
    pub mod congestion;
    pub mod delivered;
    pub mod flow;
    pub mod gates;
    pub mod handshake;
    pub mod identity;
    pub mod liveness;
    pub mod lives;
    pub mod net;
    pub mod oracle;
    pub mod paths;
    pub mod sequence;
}

use std::fmt::Debug;

use bellwire_protocol::canary::plant;
use bellwire_protocol::{CreditManager, Damq, GrantPolicy, Rations};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use reliable::{congestion, flow, gates, handshake, identity, liveness, oracle, paths, sequence};

/// Runs an oracle on generated sequences, always the same ones, and returns whether it objected to
/// any.
fn objects<T: Debug>(
    ops: impl Strategy<Value = T>,
    oracle: impl Fn(T) -> Result<(), TestCaseError>,
) -> bool {
    let config = Config { failure_persistence: None, max_shrink_iters: 0, ..Config::default() };
    let rng = proptest::test_runner::TestRng::deterministic_rng(config.rng_algorithm);
    TestRunner::new_with_rng(config, rng).run(&ops, oracle).is_err()
}

/// The oracle must object with the fault and not without it.
fn is_caught<T: Debug, S: Strategy<Value = T>>(
    fault: &'static str,
    ops: impl Fn() -> S,
    oracle: impl Fn(T) -> Result<(), TestCaseError>,
) {
    assert!(!objects(ops(), &oracle), "the oracle objects although nothing is planted");
    let _planted = plant(fault);
    assert!(objects(ops(), &oracle), "the oracle does not notice {fault}");
}

/// A fault of the reliable protocol must make runs over bad networks fail.
fn run_notices(fault: &'static str) {
    is_caught(fault, oracle::runs, oracle::agree);
}

/// A fault must make a scenario fail that passes without it.
fn scenario_notices(fault: &'static str, scenario: fn()) {
    scenario();
    let _planted = plant(fault);
    assert!(std::panic::catch_unwind(scenario).is_err(), "the scenario does not notice {fault}");
}

/// A station makes up more nodes than are remembered of it.
fn nodes_are_bounded() {
    let mut nodes = bellwire_protocol::discovery::Neighbours::default();
    for node in 0..1_000 {
        nodes.heard(node, 'x', |place| place == 'x');
    }
    assert!(nodes.count() <= bellwire_protocol::discovery::STATION_NEIGHBOURS);
}

/// The oracle of deliveries on generated worlds.
fn deliveries_notice(fault: &'static str) {
    let worlds = || (any::<u64>(), 0u64..300);
    is_caught(fault, worlds, |(seed, loss)| {
        let faults = reliable::net::Faults { loss, ..Default::default() };
        reliable::delivered::delivered_is_there(seed, faults)
    });
}

/// Frames that came before are taken again, while links come and go.
#[test]
fn repeated_delivery_in_any_life_is_caught() {
    let lives = || (any::<u64>(), 100u64..300);
    is_caught("reliable-deliver-repeated", lives, |(seed, loss)| {
        let faults = reliable::net::Faults { loss, repeat: 200, late: 300, flip: 0 };
        reliable::lives::any_lives(seed, faults)
    });
}

/// The oracle of the link layer must object to some single or double fault of the line, and to none
/// without the planted fault.
fn the_link_notices(fault: &'static str) {
    let case = &link_layer::cases()[0];
    assert!(link_layer::every_double_fault(case).is_ok(), "it objects although nothing is planted");
    let _planted = plant(fault);
    assert!(link_layer::every_double_fault(case).is_err(), "it does not notice {fault}");
}

/// A sender does not look at its credits.
#[test]
fn an_overdrawn_credit_is_caught() {
    let case = &link_layer::cases()[2];
    assert!(link_layer::run(case).is_ok());
    let _planted = plant("link-overdraw");
    assert!(link_layer::run(case).is_err(), "the receive buffer overflowed unseen");
}

/// A NAK is handled as an ACK: a damaged frame comes again only after a timeout.
#[test]
fn an_ignored_nak_is_caught() {
    let case = link_layer::Case {
        faults: vec![(2, link_layer::Fault::Damaged)],
        ..link_layer::cases()[0].clone()
    };
    let things = link_layer::run(&case).unwrap();
    let _planted = plant("link-ignore-nak");
    assert!(link_layer::run(&case).unwrap() != things, "whether a NAK counts makes no difference");
}

/// Tests that plant a fault each: their names, and what must notice the fault.
macro_rules! canaries {
    ($($(#[$doc:meta])* $name:ident: $($check:ident($($argument:expr),+)),+;)+) => {
        $($(#[$doc])* #[test] fn $name() { $($check($($argument),+);)+ })+
    };
}

canaries! {
    /// A freed message loses one of its cells.
    a_lost_cell_is_caught: is_caught("damq-lost-free", damq::ops, damq::agree);
    /// The tail pointer of a queue stays at the first cell of a message.
    a_wrong_tail_pointer_is_caught: is_caught("damq-order", damq::ops, damq::agree);
    /// A chunk that is given twice is counted twice.
    a_silent_double_free_is_caught: is_caught("extent-double-free", extents::ops, extents::agree);
    /// A granted extent stays free, so that another lane gets it, too.
    a_double_grant_is_caught: is_caught("credit-double-grant", credits::ops, credits::agree);
    /// A lane drops off the waiting list when the lane before it is served.
    a_forgotten_lane_is_caught: is_caught("credit-starve", credits::ops, credits::agree);
    /// Credits are granted and stay free, so that more than the total is granted.
    more_than_everything_is_caught:
        is_caught("rations-overgrant", rations::runs, rations::agree),
        is_caught("credit-starve", rations::runs, rations::agree);
    /// Service costs nothing, so that the flow at its turn keeps the turn.
    free_service_is_caught:
        is_caught("drr-no-charge", drr::ops, drr::agree),
        is_caught("drr-no-charge", drr::saturated, drr::fair);
    /// An answer is accepted for any operation that is in its slot now.
    a_stale_answer_is_caught: is_caught("operation-stale", outstanding::ops, outstanding::agree);
    /// A queue that was stopped once is never released.
    a_missed_go_is_caught: is_caught("gate-missed-go", gate::ops, gate::agree);
    /// A receiver takes each data frame as the next one.
    skipped_sequence_check_is_caught: run_notices("reliable-skip-sequence");
    /// A receiver takes damaged frames.
    skipped_check_value_is_caught: run_notices("reliable-skip-check");
    /// A byte is damaged before the check value is computed.
    damage_before_the_check_is_caught: run_notices("reliable-corrupt-before-check");
    /// Frames that came before are taken again.
    repeated_delivery_is_caught: run_notices("reliable-deliver-repeated");
    /// A repeated frame is not acknowledged again.
    a_missing_second_acknowledgement_is_caught:
        scenario_notices("reliable-no-reacknowledge", sequence::each_kind_of_data_frame_is_handled);
    /// No acknowledgement goes in a frame of its own.
    dropped_acknowledgements_are_caught: run_notices("reliable-drop-acknowledgement");
    /// The receiver acknowledges one frame too many.
    acknowledging_ahead_is_caught: run_notices("reliable-acknowledge-ahead");
    /// Gaps are not reported.
    silence_about_gaps_is_caught:
        scenario_notices("reliable-no-lose", sequence::a_gap_is_filled_without_a_timeout);
    /// A gap is reported without the frames that were kept behind it.
    a_missing_bitmap_is_caught:
        scenario_notices("reliable-lose-without-bitmap", sequence::lose_comes_with_what_was_kept);
    /// There is no timeout.
    a_missing_timeout_is_caught: run_notices("reliable-no-timeout");
    /// Lost frames are never sent again.
    forgotten_losses_are_caught: run_notices("reliable-forget-lost");
    /// The sender does not wait for credit.
    spending_without_credit_is_caught: run_notices("reliable-ignore-credit");
    /// The receiver grants more than it has.
    too_much_credit_is_caught:
        scenario_notices("reliable-credit-too-high", flow::credit_does_not_leak);
    /// Each packet taken gives back one byte of credit too few.
    leaking_credit_is_caught: scenario_notices("reliable-credit-leak", flow::credit_does_not_leak);
    /// A receiver gives each sender the credit of a lone sender.
    undivided_credit_is_caught:
        scenario_notices("reliable-undivided-credit", congestion::who_joins_later_gets_no_more);
    /// A sender has more frames in flight than the window allows.
    an_ignored_window_is_caught:
        scenario_notices("reliable-ignore-window", sequence::the_window_bounds_what_is_in_flight);
    /// Handshake frames of an earlier incarnation count as new.
    accepting_an_old_incarnation_is_caught:
        scenario_notices("reliable-accept-old-incarnation", handshake::a_restarted_peer_is_not_confused_with_the_old_one);
    /// Frames are taken with any token.
    skipped_tokens_are_caught:
        scenario_notices("reliable-skip-token", handshake::strangers_cannot_touch_a_link);
    /// Responses are handed out as requests.
    mixed_channels_are_caught: run_notices("reliable-mix-channels");
    /// The end of a frame counts as the end of a packet.
    a_forgotten_fragment_is_caught: run_notices("reliable-no-unfinished");
    /// Changes of gates are not told.
    untold_gates_are_caught:
        scenario_notices("reliable-gate-untold", gates::changes_of_gates_reach_those_who_asked);
    /// A silent peer is not probed.
    a_missing_keep_alive_is_caught:
        scenario_notices("reliable-no-keep-alive", liveness::a_dead_peer_is_reported);
    /// What a dead peer's host says is not heard.
    a_refusal_that_is_ignored_is_caught:
        scenario_notices("reliable-refusal-ignored", liveness::a_refused_peer_is_reported_early);
    /// A half-open link that is kept beside a later one is noticed.
    keeping_what_was_given_up_is_noticed:
        scenario_notices("reliable-keep-half-open", handshake::a_late_confirmation_revives_nothing);
    /// Ordering links by the peer's openings instead of by when they came up is noticed.
    links_in_the_order_of_openings_are_noticed:
        scenario_notices("reliable-order-by-opening", handshake::a_link_with_an_earlier_opening_may_be_the_later_one);
    /// Two sides that each ask anew whenever the other does are noticed.
    asking_anew_without_end_is_noticed:
        scenario_notices("reliable-both-ask-anew", handshake::requests_that_cross_old_ones_come_to_an_end);
    /// An Open that replaces an Accept when both are due is noticed.
    an_open_instead_of_an_answer_is_noticed:
        scenario_notices("reliable-open-instead-of-accept", handshake::an_answer_goes_even_when_its_sender_asks_again_just_then);
    /// Packets that were acknowledged behind an older link and then forgotten are noticed.
    packets_that_are_forgotten_behind_an_old_link_are_noticed:
        scenario_notices("reliable-forget-unoffered", handshake::what_waits_for_an_old_link_is_not_forgotten);
    /// An unconfirmed Open that is believed forever is noticed.
    requests_that_are_never_forgotten_are_noticed:
        scenario_notices("reliable-keep-unconfirmed", handshake::an_altered_request_is_forgotten);
    /// A table of nodes that never evicts is noticed.
    nodes_without_end_are_noticed: scenario_notices("discovery-endless-nodes", nodes_are_bounded);
    /// Accepting a peer's name from any place is noticed.
    names_that_are_believed_are_noticed:
        scenario_notices("reliable-skip-source", identity::a_name_from_elsewhere_is_nobodys),
        scenario_notices("reliable-skip-source", identity::who_is_asked_for_is_where_he_is_asked);
    /// State for an unproved sender is noticed, and so is a stream to an unproved address.
    addresses_without_proof_are_noticed:
        scenario_notices("reliable-skip-cookie", identity::nothing_is_remembered_before_a_proof),
        scenario_notices("reliable-believe-new-path", identity::a_new_address_is_tried_with_care),
        scenario_notices("reliable-believe-late", identity::acknowledgements_that_come_late_prove_nothing);
    /// Spreading frames to a peer that keeps no early ones is noticed.
    useless_spreading_is_noticed:
        scenario_notices("reliable-always-spread", paths::early_frames_that_nobody_keeps_do_no_harm);
    /// A packet that is only queued counts as delivered.
    a_guessed_delivery_is_caught: deliveries_notice("reliable-queued-is-delivered");
    /// Packets that a user did not get, because it had closed the link, count as delivered.
    a_hidden_discard_is_caught: deliveries_notice("reliable-discarded-is-delivered");
    /// A link with much to send goes before all others.
    missing_turns_are_caught: scenario_notices("reliable-no-turns", congestion::peers_take_turns);
    /// The end of a link is told while its packets still wait to be taken.
    an_end_before_the_packets_is_caught:
        scenario_notices("reliable-end-before-packets", handshake::the_old_link_is_emptied_first);
    /// A frame that came before is delivered again.
    a_link_that_repeats_is_caught: the_link_notices("link-take-repeated");
}

/// The checks that walk a structure name the place of a planted fault.
#[test]
fn checks_name_the_fault() {
    let damq = |fault| {
        let mut damq = Damq::<()>::new(8, 32, 2);
        let _planted = plant(fault);
        damq.push(1, (), 70, |_, _| {}).unwrap();
        if fault == "damq-lost-free" {
            damq.pop(1, |_, _| {}).unwrap();
        }
        damq.check().unwrap_err()
    };
    assert_eq!(damq("damq-lost-free"), "cell 0 is on no chain");
    assert_eq!(damq("damq-order"), "queue 1 has 3 cells and ends at 2, recorded 3 and 0");

    let mut credits = CreditManager::new(8, 2, 4);
    credits.check().unwrap();
    let planted = plant("credit-double-grant");
    credits.want(1).unwrap();
    drop(planted);
    assert_eq!(credits.check().unwrap_err(), "chunk 0: granted is true, and so is free");

    let mut rations = Rations::new(GrantPolicy::All, 8, 2, 5);
    rations.want(0).unwrap();
    (1..5).for_each(|lane| assert_eq!(rations.want(lane), None));
    rations.check().unwrap();
    rations.give_back(0, 2);
    let planted = plant("credit-starve");
    rations.next_grant().unwrap();
    drop(planted);
    assert_eq!(rations.check().unwrap_err(), "the waiting list has 2 lanes, counted 3");

    let mut rations = Rations::new(GrantPolicy::All, 8, 2, 4);
    let planted = plant("rations-overgrant");
    rations.want(1).unwrap();
    drop(planted);
    assert_eq!(rations.check().unwrap_err(), "8 credits are held and 8 free, of 8");
}
