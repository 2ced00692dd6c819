//! The extent pool and the credits granted from it, by example and against plain models.

#[path = "oracles/credits.rs"]
mod credits_oracle;
#[path = "oracles/extents.rs"]
mod extents_oracle;

use bellwire_protocol::{CreditManager, Extent, ExtentPool, GiveError, NotHeld};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    /// Any sequence of takes and gives, forged ones included, has the same outcome as a plain array
    /// of flags.
    // shows: D-03
    #[test]
    fn extents_agree_with_the_model(ops in extents_oracle::ops()) {
        extents_oracle::agree(ops)?;
    }

    /// Any sequence of requests and returns, forged ones included, agrees with a plain waiting
    /// list. The grants never exceed the pool, lanes are served in turn, and every waiting lane is
    /// served at last.
    // shows: D-14, D-18
    #[test]
    fn credits_agree_with_the_model(ops in credits_oracle::ops()) {
        credits_oracle::agree(ops)?;
    }
}

/// A lone user gets the same chunk each time, however large the pool.
#[test]
fn a_lone_user_keeps_its_warm_chunk() {
    let mut pool = ExtentPool::new(ExtentPool::MAX_CHUNKS);
    for _ in 0..1000 {
        let extent = pool.take(1).unwrap();
        assert_eq!(extent, Extent { first: 0, count: 1 });
        pool.give(extent).unwrap();
    }
}

/// Runs are found across the borders of the bitmap's words, and up to the whole pool.
#[test]
fn runs_cross_words() {
    let mut pool = ExtentPool::new(4096);
    let whole = pool.take(4096).unwrap();
    assert_eq!((whole, pool.take(1)), (Extent { first: 0, count: 4096 }, None));
    pool.give(Extent { first: 60, count: 200 }).unwrap();
    assert_eq!(pool.take(201), None);
    assert_eq!(pool.take_up_to(300), Some(Extent { first: 60, count: 128 }));
    assert_eq!(pool.take(72), Some(Extent { first: 188, count: 72 }));
    assert_eq!(pool.free_chunks(), 0);
}

/// An extent given twice, or one that never existed, is refused by name and changes nothing.
#[test]
fn a_double_free_is_an_error() {
    let mut pool = ExtentPool::new(100);
    let extent = pool.take(8).unwrap();
    pool.give(Extent { first: 7, count: 1 }).unwrap();
    assert_eq!(pool.give(extent), Err(GiveError::DoubleFree { extent }));
    assert_eq!(pool.free_chunks(), 93);
    for extent in [Extent { first: 99, count: 2 }, Extent { first: 0, count: 0 }] {
        assert_eq!(pool.give(extent), Err(GiveError::Outside { extent, chunks: 100 }));
    }
}

/// A lone lane obtains the whole pool in grants that double, within its limit of 16 extents.
// shows: D-14
#[test]
fn a_lone_lane_obtains_everything() {
    for chunks in [1, 7, 64, 1000, 4096] {
        let mut credits = CreditManager::new(chunks, 1024, 16);
        let mut sizes = Vec::new();
        while let Some(extent) = credits.want(700) {
            sizes.push(extent.count);
            assert!(sizes.len() <= 16, "{sizes:?}");
        }
        assert_eq!((credits.granted_to(700), credits.free_chunks()), (chunks, 0));
        credits.check().unwrap();
    }
}

/// While one lane hogs the pool, another is refused at once and not blocked. When chunks come back
/// it is served in its turn; the hog cannot jump ahead by topping up or asking again.
// shows: D-14, D-18
#[test]
fn a_hog_starves_nobody() {
    let mut credits = CreditManager::new(64, 3, 16);
    let (hog, other) = (0, 1);
    assert!((0..64).any(|_| credits.want(hog).is_none()));
    assert_eq!(credits.want(other), None);
    assert_eq!((credits.top_up(hog), credits.want(hog)), (None, None));
    // The hog asked first, because its loop ended with a refusal.
    let oldest = credits.oldest(hog).unwrap();
    credits.consumed(hog, oldest).unwrap();
    assert_eq!(credits.next_grant().map(|grant| grant.0), Some(hog));
    let oldest = credits.oldest(hog).unwrap();
    credits.consumed(hog, oldest).unwrap();
    assert_eq!(credits.top_up(hog), None, "nothing beside the waiting list");
    assert_eq!(credits.next_grant().map(|grant| grant.0), Some(other));
    credits.check().unwrap();
}

/// Credit that a parked lane gives back goes to the lanes that wait, even if nobody holds any.
// shows: D-18
#[test]
fn what_is_parked_goes_to_those_who_wait() {
    let mut credits = CreditManager::new(40, 2, 4);
    for extents in 1..=4 {
        credits.want(0).unwrap();
        assert_eq!(credits.held(0).take(5).count(), extents);
    }
    assert_eq!(credits.granted_to(0), 1 + 2 + 4 + 8);
    // At its limit of extents, and then waiting for its turn.
    assert_eq!(credits.want(0), None);
    let oldest = credits.oldest(0).unwrap();
    credits.consumed(0, oldest).unwrap();
    assert_eq!((credits.want(1), credits.waiting()), (None, 2));
    credits.park(0);
    assert_eq!((credits.waiting(), credits.free_chunks()), (1, 40));
    assert_eq!(credits.next_grant().map(|grant| grant.0), Some(1));
    assert_eq!(credits.next_grant(), None);
    credits.check().unwrap();
}

/// Waiting lanes share equally what comes back, and are served in the order in which they asked.
// shows: D-14
#[test]
fn those_who_wait_share() {
    let mut credits = CreditManager::new(64, 5, 16);
    // Lanes 1 to 4 have been granted 1 + 2 + 4 + 8 chunks each, lane 0 gets the last four.
    for lane in 1..5 {
        (0..4).for_each(|_| assert!(credits.want(lane).is_some()));
        assert_eq!(credits.granted_to(lane), 15);
    }
    for _ in 0..4 {
        credits.want(0);
    }
    assert_eq!(credits.free_chunks(), 0);
    for lane in [3, 1, 4, 2] {
        assert_eq!(credits.want(lane), None);
    }
    credits.park(0);
    assert_eq!(credits.free_chunks(), 4);
    let grants: Vec<_> = std::iter::from_fn(|| credits.next_grant()).take(9).collect();
    assert_eq!(grants.iter().map(|grant| grant.0).collect::<Vec<_>>(), [3, 1, 4, 2]);
    assert!(grants.iter().all(|grant| grant.1.count == 1));
}

/// A lane at its limit of extents is served as soon as it has returned one.
#[test]
fn a_lane_at_its_limit_is_served_later() {
    let mut credits = CreditManager::new(64, 1, 2);
    let first = credits.want(0).unwrap();
    credits.want(0).unwrap();
    assert_eq!((credits.want(0), credits.waiting()), (None, 0));
    assert_eq!(credits.next_grant(), None);
    credits.consumed(0, first).unwrap();
    assert_eq!(credits.next_grant().map(|grant| grant.1.count), Some(4));
}

/// A lane that tops up in time keeps its grant size; a lane that runs dry gets twice as much.
#[test]
fn only_running_dry_doubles_a_grant() {
    let mut credits = CreditManager::new(64, 1, 16);
    assert_eq!(credits.top_up(0), None, "a parked lane has not asked for anything");
    assert_eq!(credits.want(0).unwrap().count, 1);
    assert_eq!(credits.top_up(0).unwrap().count, 1);
    assert_eq!(credits.want(0).unwrap().count, 2);
    assert_eq!(credits.top_up(0).unwrap().count, 2);
    assert_eq!(credits.park(0), 6);
    assert_eq!(credits.want(0).unwrap().count, 1);
}

/// A peer that returns an extent it does not hold is refused by name, and nothing changes.
#[test]
fn a_forged_return_is_refused() {
    let mut credits = CreditManager::new(64, 2, 16);
    let held = credits.want(0).unwrap();
    let longer = Extent { count: held.count + 1, ..held };
    let empty = Extent { first: 5, count: 0 };
    let outside = Extent { first: u16::MAX, count: u16::MAX };
    for (lane, extent) in [(1, held), (0, longer), (0, empty), (1, empty), (0, outside)] {
        assert_eq!(credits.consumed(lane, extent), Err(NotHeld { lane, extent }));
    }
    assert_eq!((credits.granted_to(0), credits.free_chunks()), (1, 63));
    credits.check().unwrap();
}
