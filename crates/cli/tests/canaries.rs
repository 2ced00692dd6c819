//! Each check of strangers' attacks on a listener must notice its planted fault.

mod support;

use std::time::Duration;
use support::{attacks, swaps};

/// Long enough for an honest sender to be served once others lose their turn. A listener that waits
/// for ever takes longer.
const PATIENCE: Duration = Duration::from_secs(40);

/// A listener that lets silent senders keep their places is noticed.
#[test]
fn endless_patience_is_noticed() {
    let why = attacks::silent_senders(Some("silence is for ever"), PATIENCE)
        .expect_err("nobody is served");
    assert!(why.contains("not served"), "{why}");
}

/// A listener that counts progress as silence is noticed.
#[test]
fn cutting_off_progress_is_noticed() {
    let why =
        attacks::silent_senders(Some("progress is silence"), PATIENCE).expect_err("one is cut off");
    assert!(why.contains("makes progress"), "{why}");
}

/// A listener that makes all copies of a name in one part is noticed.
#[test]
fn one_place_for_all_is_noticed() {
    let why = attacks::leftovers(Some("one part for all")).expect_err("a stranger has the place");
    assert!(why.contains("another copy"), "{why}");
}

/// A listener that keeps leftovers on a full disc is noticed.
#[test]
fn leftovers_that_stay_are_noticed() {
    attacks::full_of_leftovers(None).expect("there is room");
    let why = attacks::full_of_leftovers(Some("leftovers stay")).expect_err("there is no room");
    assert!(why.contains("ended with"), "{why}");
}

/// A listener that releases the memory before the sender has read the reason is noticed.
#[test]
fn memory_that_goes_first_is_noticed() {
    let why = attacks::puts_of_a_failed_copy(Some("memory goes first")).expect_err("no memory");
    assert!(why.contains("key"), "{why}");
}

/// A listener that follows links within its part is noticed.
#[test]
fn followed_links_are_noticed() {
    let why = swaps::swapped_links(Some("links are followed")).expect_err("one leads outside");
    assert!(why.contains("what is outside changed"), "{why}");
}
