//! Random sequences of operations against an oracle.

use crate::steps::*;
use crate::world::*;
use bellwire::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};

fn fabric() -> impl Strategy<Value = FabricOptions> {
    (
        prop_oneof![Just(64usize), Just(200), Just(1024)],
        1..20usize,
        any::<bool>(),
        any::<bool>(),
        prop_oneof![Just(0u64), 2..7u64],
        prop_oneof![Just(0u64), 2..7u64],
        prop_oneof![Just(1usize), Just(64)],
    )
        .prop_map(
            |(packet_bytes, link_packets, allocated, brought, pending, busy, regions)| {
                FabricOptions {
                    packet_bytes,
                    link_packets,
                    direct_allocated: allocated,
                    direct_brought: brought,
                    pending_every: pending,
                    busy_every: busy,
                    regions: regions + 3,
                    ..FabricOptions::default()
                }
            },
        )
}

/// The expected messages of each pair of sides, in order.
type UnderWay = BTreeMap<(usize, usize), VecDeque<Vec<u8>>>;

/// Checks a completion on `side`.
fn check(under_way: &mut UnderWay, (side, done): (usize, Completion)) {
    let is_expected = matches!(done.status, Status::Success | Status::Truncated);
    assert!(is_expected, "{:?} of {:?}", done.status, done.operation);
    if done.operation != Operation::Receive {
        return;
    }
    let queue = under_way.get_mut(&(done.peer.node as usize, side));
    let expected = queue.and_then(VecDeque::pop_front).expect("a message was under way");
    let truncated = done.status == Status::Truncated;
    let length = done.length;
    let room = done.buffer.as_ref().unwrap().len();
    assert_eq!(length, expected.len().min(room));
    assert_eq!(truncated, room < expected.len());
    assert!(bytes(done) == expected[..length], "the oldest message of that sender");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// For random posts on random fabrics: each message is delivered once, whole, and in order for
    /// each pair. Each buffer comes back once, additions add up, the counters conserve, and all
    /// descriptors complete.
    #[test]
    fn nothing_is_lost_doubled_or_reordered(
        options in fabric(),
        outstanding in 1..5usize,
        source_rights in prop_oneof![Just(Rights::empty()), Just(Rights::REMOTE_READ)],
        steps in prop::collection::vec(operation(0), 1..STEPS),
    ) {
        let function = FunctionOptions::default().outstanding(outstanding).backlog_bytes(64 << 10);
        let mut game = Game::new(options, &function, source_rights);
        let (mut under_way, mut adds) = (UnderWay::new(), [0; SIDES]);
        for (number, step) in steps.into_iter().enumerate() {
            let context = number as u64;
            match step {
                Step::Send { from, to, length, .. } => {
                    under_way.entry((from, to)).or_default().push_back(pattern(length, context));
                }
                Step::Add { to, .. } => adds[to] += 1,
                _ => {}
            }
            game.act(context, step, pattern);
            game.completions().into_iter().for_each(|done| check(&mut under_way, done));
        }
        // With receives for all messages, all descriptors complete.
        for side in 0..SIDES {
            let due: usize = (0..SIDES)
                .filter_map(|from| under_way.get(&(from, side)))
                .map(VecDeque::len)
                .sum();
            let posted = game.world.sides[side].state().posted_receives;
            for number in 0..due.saturating_sub(posted) as u64 {
                let receive = Step::Receive { side, length: REGION };
                game.act(1000 + number, receive, pattern);
            }
        }
        game.world.settle();
        game.completions().into_iter().for_each(|done| check(&mut under_way, done));
        for (word, adds) in game.words.iter().zip(adds) {
            prop_assert_eq!(word.load_u64(0), adds);
        }
        game.world.check_counters();
        let left: Vec<_> =
            game.posted.iter().filter(|posted| *posted.1 != Operation::Receive).collect();
        prop_assert!(left.is_empty(), "never completed: {left:?}");
        prop_assert!(under_way.values().all(VecDeque::is_empty));
        for side in &game.world.sides {
            let counters = side.function.counters();
            prop_assert_eq!(counters.function.violations, 0);
            prop_assert_eq!(counters.function.stale_operations, 0);
        }
    }
}
