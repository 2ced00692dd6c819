//! Planted faults that the conformance suite and the crash tests must notice.
//!
//! Each test runs a check twice in processes of its own. Without the fault it must succeed, and
//! with the fault it must fail.

use bellwire_testkit::check::{
    A_BYSTANDER_KEEPS_OUT, ALL_BY_XDP, LISTS_LEAVE, LONG_BY_SEGMENTS, NEAR_BY_MEMORY,
    NO_DELIVERY_IS_GUESSED, NO_MAPPING_STAYS, succeeds,
};

/// `fault` must make `check` fail.
fn notices(check: &str, fault: &str) {
    assert!(succeeds(check, None), "{check} fails although nothing is planted");
    assert!(!succeeds(check, Some(fault)), "{check} does not notice {fault}");
}

/// A deregistered key still opens its region: its owner does not say that it has died, or a putter
/// does not look.
#[test]
fn a_stale_key() {
    notices("fault::stale_keys", "stale-key");
    notices("fault::stale_keys", "window-unchecked");
}

/// A region's bound is one word too far.
#[test]
fn wrong_bounds() {
    notices("fault::forged_lengths", "wrong-bounds");
}

/// Every right is granted.
#[test]
fn ignored_rights() {
    notices("fault::missing_rights", "rights-ignored");
}

/// Senders do not check whether a queue pair exists, or takes messages now.
#[test]
fn an_ignored_gate() {
    notices("fault::no_such_queue_pair", "gate-ignored");
    notices("flow::a_stopped_queue_pair_holds_up_nobody_else", "gate-ignored");
}

/// A stopped queue pair stays stopped: its GO is dropped.
#[test]
fn a_dropped_go() {
    notices("flow::a_receiver_that_does_not_receive", "gate-missed-go");
}

/// An event is delivered twice.
#[test]
fn a_completion_twice() {
    notices("onesided::events_tell_of_puts", "event-twice");
}

/// Whoever always finds a completion never looks.
#[test]
fn a_poll_that_never_looks() {
    notices("onesided::polls_with_completions_look", "looks-when-empty");
}

/// A sender does not wake the receiver that it found asleep.
#[test]
fn a_skipped_wake_up() {
    notices("waiting::no_wake_up_is_lost_blocking", "skipped-wake-up");
    notices("process::sleepers_wake_each_other", "skipped-wake-up");
}

/// Words of two messages in the shared backlog are mixed up.
#[test]
fn a_wrong_tail_pointer() {
    notices("message::early_messages_wait", "damq-order");
}

/// An inbox is shown a message before earlier ones.
#[test]
fn a_message_out_of_turn() {
    notices("inbox::messages_keep_their_order", "shown-too-early");
}

/// A batch that found room for a part is offered again from its start.
#[test]
fn a_batch_from_its_start() {
    notices("batch::messages_keep_their_order", "batch-starts-again");
}

/// The end of a peer is not noticed.
#[test]
fn an_unnoticed_death() {
    notices("connection::a_peer_that_goes_away", "death-unnoticed");
}

/// A forked child may use its parent's function.
#[test]
fn an_unnoticed_fork() {
    notices("fork::a_forked_child_is_refused", "fork-unnoticed");
}

/// Mappings stay when their owner is gone.
#[test]
fn a_mapping_that_is_kept() {
    notices(NO_MAPPING_STAYS, "mapping-kept");
}

/// A message over a network completes when the device has taken it.
#[test]
fn a_guessed_delivery() {
    notices(NO_DELIVERY_IS_GUESSED, "complete-on-taking");
}

/// The user who holds a name is not named.
#[test]
fn an_unnamed_stranger() {
    notices("a squatted function", "holder-unnamed");
}

/// Connections that say nothing are kept.
#[test]
fn a_silent_connection_that_is_kept() {
    notices("a silent connection", "silent-kept");
}

/// A listener is woken by each connection, even if many bring nothing.
#[test]
fn a_listener_that_never_rests() {
    notices("many silent connections", "listener-never-rests");
}

/// The XDP program takes frames for other stations.
#[test]
fn an_uncompared_destination() {
    notices(A_BYSTANDER_KEEPS_OUT, "every-station");
}

/// The XDP program takes no frame, and AF_PACKET receives all of them in its place.
#[test]
fn a_silent_fallback() {
    notices(ALL_BY_XDP, "xdp-takes-none");
}

/// Memory that the library allocated is not mapped, and the kernel copies in its place.
#[test]
fn memory_that_is_not_mapped() {
    notices("onesided::put_every_size_and_memory", "region-unmapped");
    notices("onesided::regions_come_and_go", "region-unmapped");
}

/// Nobody is found in the shared memory, and UDP reaches all peers of `auto` in its place.
#[test]
fn a_way_that_is_not_taken() {
    notices(NEAR_BY_MEMORY, "nobody-is-here");
}

/// Frames are sent one by one, although the kernel would cut segments.
#[test]
fn frames_that_are_not_segmented() {
    notices(LONG_BY_SEGMENTS, "udp-one-by-one");
}

/// Packets that were held to share frames stay when they are let go.
#[test]
fn packets_that_stay() {
    notices(LISTS_LEAVE, "held-kept");
}

/// A link may be taken over from another address than its peer's.
#[test]
fn a_skipped_source() {
    notices("a stolen link on loopback", "reliable-skip-source");
    notices("a stolen link on Ethernet", "reliable-skip-source");
}

/// An Open counts before its sender has proved its address.
#[test]
fn a_skipped_cookie() {
    notices("long answers", "reliable-skip-cookie");
}

/// A node is where it says, though it was heard elsewhere.
#[test]
fn a_believed_claim() {
    notices("a stolen name on loopback", "discovery-believe-claims");
    notices("a stolen name on Ethernet", "discovery-believe-claims");
}

/// Answers about places count though nobody asked.
#[test]
fn a_believed_answer() {
    notices("unasked answers", "discovery-believe-unasked");
}

/// Names of places are never taken away.
#[test]
fn endless_places() {
    notices("many addresses", "discovery-endless-places");
}

/// Faults of an agent, and of the sockets that it gives. `tests/agent.rs` has the same checks
/// without a fault.
#[test]
fn faults_of_an_agent() {
    for (check, fault) in [
        ("refusals of an agent", "agent-everybody-admitted"),
        ("limits of an agent", "agent-no-limit"),
        ("an agent without rules", "agent-given-unrestricted"),
        ("two lives of an agent", "agent-given-twice"),
        ("a hostile program of an agent", "agent-filter-unlocked"),
        ("a hostile program of an agent", "agent-unmarked"),
    ] {
        assert!(!succeeds(check, Some(fault)), "{check} does not notice {fault}");
    }
}
