//! Another user of the host takes names of ours, or connects and says nothing. Becoming another
//! user needs root. Without it each test fails and says that it did not run, so that it does not
//! count as passed.

use bellwire_testkit::stranger::{self, Squat};

/// If another user holds a node's name, opening the node reports that user, and the next free node
/// works.
#[test]
fn squatted_nodes() {
    stranger::squatted_nodes(Squat::Bound);
    stranger::squatted_nodes(Squat::Listening);
}

/// If another user holds a function's name, opening the function reports that user, and other
/// functions work.
#[test]
fn squatted_functions() {
    stranger::squatted_function(Squat::Bound);
    stranger::squatted_function(Squat::Listening);
}

/// Names that we hold ourselves are never reported as a stranger's.
#[test]
fn own_names_are_our_own() {
    stranger::own_names_are_our_own();
}

/// A connection that says nothing is closed while the function sleeps.
#[test]
fn a_silent_connection_is_closed() {
    stranger::a_silent_connection_is_closed();
}

/// Silent connections of another user neither keep a sleeping function awake nor keep a proper peer
/// out.
#[test]
fn silent_connections_cost_little() {
    stranger::silent_connections();
}
