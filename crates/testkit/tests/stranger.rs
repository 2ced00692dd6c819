//! Another user of the host takes names of ours, or connects and says nothing. Becoming another
//! user needs root: without it each test fails and says that it did not run, so that nobody takes
//! it for passed.

use bellwire_testkit::stranger::{self, Squat};

/// Who opens a node whose name another user holds hears which user that is, and the next free node
/// works.
#[test]
fn squatted_nodes() {
    stranger::squatted_nodes(Squat::Bound);
    stranger::squatted_nodes(Squat::Listening);
}

/// Who opens a function whose name another user holds hears which user that is, and other functions
/// work.
#[test]
fn squatted_functions() {
    stranger::squatted_function(Squat::Bound);
    stranger::squatted_function(Squat::Listening);
}

/// Names that we hold ourselves are never said to be somebody else's.
#[test]
fn own_names_are_our_own() {
    stranger::own_names_are_our_own();
}

/// A connection that says nothing is closed while the function sleeps.
#[test]
fn a_silent_connection_is_closed() {
    stranger::a_silent_connection_is_closed();
}

/// Silent connections of another user keep neither a sleeping function awake nor a proper peer out.
#[test]
fn silent_connections_cost_little() {
    stranger::silent_connections();
}
