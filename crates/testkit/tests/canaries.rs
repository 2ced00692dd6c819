//! Planted faults that the conformance suite, and the crash tests, must notice.
//!
//! Each test runs a check twice in processes of its own: as it is, where it must succeed, and with the fault, where it must fail.

use bellwire_testkit::conformance::child::{Process, ROLE, told};
use bellwire_testkit::conformance::{self, Named, patience, process};

/// Names the check that a child runs.
const CHECK: &str = "BELLWIRE_TEST_CHECK";
/// Names the fault that is planted in it.
const CANARY: &str = "BELLWIRE_CANARY";

/// Not a check: where the other processes begin.
#[test]
fn child() {
    if std::env::var_os(ROLE).is_some() {
        return process::child();
    }
    if std::env::var_os(CHECK).is_none() {
        return;
    }
    match told(CHECK).as_str() {
        "churn" => churn(),
        name => {
            let check = conformance::find(name).expect("a check of that name");
            conformance::run(check, &Named::new("shm"));
        }
    }
}

/// Opening and closing leaves no mapping behind.
fn churn() {
    use bellwire_testkit::conformance::{Stage, stage};
    use bellwire_testkit::crash::Residue;
    let before = Residue::count("nobody");
    for _ in 0..3 {
        let network = Named::new("shm");
        let mut stage = Stage::connected(&network);
        stage.nodes[stage::A].function.allocate(4096, bellwire::Rights::all()).expect("room");
    }
    assert_eq!(Residue::count("nobody"), before);
}

/// Whether `check` succeeds, perhaps with a fault.
fn succeeds(check: &str, fault: Option<&str>) -> bool {
    // A check that hangs shows the fault too, and need not take long about it.
    let mut environment = vec![(CHECK, check), (patience::LIMIT, "4000")];
    environment.extend(fault.map(|fault| (CANARY, fault)));
    Process::start("child", &environment).end().success()
}

/// `fault` must be what makes `check` fail.
fn notices(check: &str, fault: &str) {
    assert!(succeeds(check, None), "{check} fails although nothing is planted");
    assert!(!succeeds(check, Some(fault)), "{check} does not notice {fault}");
}

/// A key that was given up still opens its region.
#[test]
fn a_stale_key() {
    notices("fault::stale_keys", "stale-key");
}

/// A region ends a word later than it does.
#[test]
fn wrong_bounds() {
    notices("fault::forged_lengths", "wrong-bounds");
}

/// Every right is granted.
#[test]
fn ignored_rights() {
    notices("fault::missing_rights", "rights-ignored");
}

/// Senders do not look whether a queue pair exists, or takes messages now.
#[test]
fn an_ignored_gate() {
    notices("fault::no_such_queue_pair", "gate-ignored");
    notices("flow::a_stopped_queue_pair_holds_up_nobody_else", "gate-ignored");
}

/// A queue pair that was stopped once stays stopped: the credit to go on is dropped.
#[test]
fn a_dropped_go() {
    notices("flow::a_receiver_that_does_not_receive", "gate-missed-go");
}

/// An event is delivered twice.
#[test]
fn a_completion_twice() {
    notices("onesided::events_tell_of_puts", "event-twice");
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

/// The end of a peer is not noticed.
#[test]
fn an_unnoticed_death() {
    notices("connection::a_peer_that_goes_away", "death-unnoticed");
}

/// A forked child may use what is its parent's.
#[test]
fn an_unnoticed_fork() {
    notices("fork::a_forked_child_is_refused", "fork-unnoticed");
}

/// Mappings stay when their owner is gone.
#[test]
fn a_mapping_that_is_kept() {
    notices("churn", "mapping-kept");
}
