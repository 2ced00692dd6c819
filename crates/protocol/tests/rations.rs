//! How much each lane gets under each policy: against a plain model, at random and exhaustively.

#[path = "oracles/rations.rs"]
mod rations_oracle;

use bellwire_protocol::{GrantPolicy, Rations};
use proptest::prelude::*;
use rations_oracle::{Op, POLICIES, Pair};

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    /// Under any policy, any sequence of requests and returns agrees with a plain waiting list. The
    /// grants never exceed the total, lanes are served in turn, and every waiting lane is served at
    /// last.
    // shows: D-14, D-18
    #[test]
    fn rations_agree_with_the_model(run in rations_oracle::runs()) {
        rations_oracle::agree(run)?;
    }
}

/// The same for every sequence of six steps of two lanes on a total of five.
// shows: D-14
#[test]
fn every_short_sequence_agrees_with_the_model() {
    let steps = [
        Op::Want(0),
        Op::Want(1),
        Op::TopUp(0),
        Op::GiveBack(0, 1),
        Op::GiveBack(1, 2),
        Op::Park(0),
        Op::NextGrant,
    ];
    for policy in POLICIES {
        for least in [1, 2] {
            for number in 0..steps.len().pow(6) {
                let mut pair = Pair::new(policy, 5, least);
                let mut rest = number;
                for _ in 0..6 {
                    pair.apply(steps[rest % steps.len()]).unwrap();
                    rest /= steps.len();
                }
            }
        }
    }
}

/// A lone lane obtains everything under each policy: at once, in grants that halve, or in grants
/// that double.
// shows: D-14
#[test]
fn a_lone_lane_obtains_everything_under_each_policy() {
    let grants = |policy| {
        let mut rations = Rations::new(policy, 1024, 4, 64);
        let grants: Vec<u16> = std::iter::from_fn(|| rations.want(9)).take(1025).collect();
        assert_eq!((rations.held(9), rations.free()), (1024, 0));
        grants
    };
    assert_eq!(grants(GrantPolicy::All), [1024]);
    assert_eq!(grants(GrantPolicy::HalfOfFree)[..3], [512, 256, 128]);
    assert_eq!(grants(GrantPolicy::History)[..4], [4, 8, 16, 32]);
}

/// A lane that was refused waits until it is served or parked.
#[test]
fn a_refused_lane_waits() {
    let mut rations = Rations::new(GrantPolicy::All, 8, 2, 3);
    assert_eq!((rations.want(0), rations.want(1), rations.want(2)), (Some(8), None, None));
    assert_eq!([0, 1, 2].map(|lane| rations.waits(lane)), [false, true, true]);
    rations.park(2);
    rations.give_back(0, 1);
    assert_eq!(rations.next_grant(), None, "less than the least grant");
    rations.give_back(0, 1);
    assert_eq!(rations.next_grant(), Some((1, 2)));
    assert_eq!([0, 1, 2].map(|lane| rations.waits(lane)), [false; 3]);
    assert_eq!((rations.held(0), rations.held(1), rations.free()), (6, 2, 0));
}
