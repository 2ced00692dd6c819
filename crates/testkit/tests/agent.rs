//! Ethernet for programs without privileges: an agent gives them their sockets. Each test makes a
//! network and becomes other users, which needs root, iproute2 and nftables. Without these it fails
//! and says that it did not run, so that it does not count as passed.

use bellwire_testkit::agent::{ByAgent, hostile, life};
use bellwire_testkit::conformance;

/// Runs a test in a thread of its own, which it leaves as another user.
fn apart(test: impl FnOnce() + Send + 'static) {
    if let Err(panic) = std::thread::spawn(test).join() {
        std::panic::resume_unwind(panic);
    }
}

/// A part of the conformance suite, of every topic, as a user without privileges whose programs
/// find the agent by themselves.
#[test]
fn programs_without_privileges() {
    for name in [
        "message::every_size_and_memory",
        "message::a_node_talks_to_itself",
        "onesided::put_every_size_and_memory",
        "onesided::get_every_size_and_memory",
        "onesided::atomics_from_many_nodes_add_up",
        "refusal::too_long",
        "fault::wrong_keys",
        "order::many_queue_pairs_interleaved",
        "flow::many_senders_to_one_receiver",
        "flow::floods_both_ways",
        "batch::messages_keep_their_order",
        "inbox::messages_keep_their_order",
        "channel::barriers_and_exchanges",
        "connection::connect_talk_disconnect",
        "function::eight_by_default",
        "function::functions_are_isolated",
        "function::functions_can_be_reopened",
        "object::anything_can_be_dropped",
        "waiting::no_wake_up_is_lost_blocking",
        "waiting::sleepers_sleep",
        "thread::two_nodes_in_two_threads",
        "fork::a_forked_child_is_refused",
    ] {
        let check = conformance::find(name).expect("a check of that name");
        apart(move || conformance::run(check, &ByAgent::new()));
    }
}

/// Programs go on when the agent is killed, its successor gives nothing twice, and what is closed
/// is free.
#[test]
fn programs_outlive_the_agent() {
    apart(life::programs_outlive_the_agent);
}

/// The place of a killed program is free at once.
#[test]
fn a_killed_programs_place_is_free() {
    apart(life::a_killed_programs_place_is_free);
}

/// Not in the group, no agent, another interface, no AF_XDP: each refusal says what to do. A
/// program with the right asks no agent.
#[test]
fn refusals_help() {
    apart(life::refusals_help);
}

/// An agent that cannot restrict what programs send gives nothing.
#[test]
fn nothing_is_given_unrestricted() {
    apart(life::nothing_is_given_unrestricted);
}

/// A user has a limit, which is not another user's.
#[test]
fn limits_hold() {
    apart(life::limits_hold);
}

/// Half requests, garbage, descriptors, floods, silence and unread answers change nothing for
/// others.
#[test]
fn hostile_programs() {
    apart(life::hostile_programs);
}

/// Agents and programs that are killed at any step of a conversation.
#[test]
fn killed_at_every_step() {
    apart(|| life::at_every_step(false));
}

/// Agents and programs that stop at any step of a conversation, and go on later.
#[test]
fn stopped_at_every_step() {
    apart(|| life::at_every_step(true));
}

/// With its socket a program receives its own frames only, and sends proper ones only. What Linux
/// allows besides stands in docs/threat-model.md.
#[test]
fn the_kernel_restricts_programs() {
    apart(hostile::the_kernel_restricts_programs);
}
