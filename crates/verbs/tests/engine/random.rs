//! Random sequences of operations against an oracle.

use crate::world::*;
use bellwire::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};

/// One step of a test.
#[derive(Clone, Debug)]
enum Step {
    Send { from: usize, to: usize, length: usize, region: bool },
    Receive { side: usize, length: usize },
    Put { from: usize, to: usize, offset: usize, length: usize },
    Get { from: usize, to: usize, offset: usize, length: usize },
    Add { from: usize, to: usize },
    Turn { side: usize },
}

const SIDES: usize = 3;
const REGION: usize = 6000;

fn length() -> impl Strategy<Value = usize> {
    prop_oneof![4 => 0..80usize, 2 => 0..3000usize, 1 => 2000..REGION]
}

fn step() -> impl Strategy<Value = Step> {
    let side = || 0..SIDES;
    prop_oneof![
        5 => (side(), side(), length(), any::<bool>())
            .prop_map(|(from, to, length, region)| Step::Send { from, to, length, region }),
        4 => (side(), length()).prop_map(|(side, length)| Step::Receive { side, length }),
        1 => (side(), side(), length(), 0..REGION).prop_map(|(from, to, length, offset)| {
            Step::Put { from, to, offset, length: length.min(REGION - offset) }
        }),
        1 => (side(), side(), length(), 0..REGION).prop_map(|(from, to, length, offset)| {
            Step::Get { from, to, offset, length: length.min(REGION - offset) }
        }),
        1 => (side(), side()).prop_map(|(from, to)| Step::Add { from, to }),
        6 => side().prop_map(|side| Step::Turn { side }),
    ]
}

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
#[derive(Default)]
struct Oracle {
    under_way: BTreeMap<(usize, usize), VecDeque<Vec<u8>>>,
    adds: [u64; SIDES],
    posted: BTreeMap<(usize, u64), Operation>,
}

impl Oracle {
    /// Checks a completion on `side`.
    fn complete(&mut self, side: usize, done: Completion) {
        assert!(
            matches!(done.status, Status::Success | Status::Truncated),
            "{:?} of {:?}",
            done.status,
            done.operation
        );
        if done.operation != Operation::Receive {
            let posted = self.posted.remove(&(side, done.context));
            assert_eq!(posted, Some(done.operation), "each completes once, as what it is");
            let has_buffer =
                matches!(done.operation, Operation::Send | Operation::Put | Operation::Get);
            assert_eq!(done.buffer.is_some(), has_buffer, "and gives its buffer back");
            return;
        }
        assert_eq!(self.posted.remove(&(side, done.context)), Some(Operation::Receive));
        let queue = self.under_way.get_mut(&(done.peer.node as usize, side));
        let expected = queue.and_then(VecDeque::pop_front).expect("a message was under way");
        let truncated = done.status == Status::Truncated;
        let length = done.length;
        let room = done.buffer.as_ref().unwrap().len();
        assert_eq!(length, expected.len().min(room));
        assert_eq!(truncated, room < expected.len());
        assert!(bytes(done) == expected[..length], "the oldest message of that sender");
    }
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
        steps in prop::collection::vec(step(), 1..150),
    ) {
        let function = FunctionOptions::default().outstanding(outstanding).backlog_bytes(64 << 10);
        let mut world = World::with(options, SIDES as u32, &function);
        let mut oracle = Oracle::default();
        let addresses: Vec<Address> = world.sides.iter().map(Side::address).collect();
        let shared: Vec<MemoryRegion> = world
            .sides
            .iter_mut()
            .map(|side| side.function.allocate_region(REGION, Rights::all()).unwrap())
            .collect();
        // The last word of a second region is the target of the additions.
        let words: Vec<MemoryRegion> = world
            .sides
            .iter_mut()
            .map(|side| side.function.allocate_region(8, Rights::REMOTE_ATOMIC).unwrap())
            .collect();
        // Regions for messages that are sent from registered memory.
        let sources: Vec<MemoryRegion> = world
            .sides
            .iter_mut()
            .map(|side| side.function.allocate_region(150 * REGION, source_rights).unwrap())
            .collect();
        let mut used = [0; SIDES];
        for (number, step) in steps.into_iter().enumerate() {
            let context = number as u64;
            match step {
                Step::Send { from, to, length, region } => {
                    let message = pattern(length, context);
                    let side = &mut world.sides[from];
                    let send = if region {
                        sources[from].write(used[from], &message);
                        used[from] += length;
                        Message::buffer(sources[from].slice(used[from] - length, length))
                    } else {
                        Message::buffer(message.clone())
                    };
                    let send = send.to(addresses[to]).context(context);
                    side.function.post_send(side.qp, send).unwrap();
                    oracle.posted.insert((from, context), Operation::Send);
                    oracle.under_way.entry((from, to)).or_default().push_back(message);
                }
                Step::Receive { side, length } => {
                    world.sides[side].receive(length, context);
                    oracle.posted.insert((side, context), Operation::Receive);
                }
                Step::Put { from, to, offset, length } => {
                    let key = shared[to].remote_key();
                    let side = &mut world.sides[from];
                    let target = key.slice(offset as u64, length as u64);
                    let put = Put::new(pattern(length, 0), target).context(context);
                    side.function.post_put(side.qp, put).unwrap();
                    oracle.posted.insert((from, context), Operation::Put);
                }
                Step::Get { from, to, offset, length } => {
                    let key = shared[to].remote_key();
                    let side = &mut world.sides[from];
                    let source = key.slice(offset as u64, length as u64);
                    let get = Get::new(source, vec![0; length]).context(context);
                    side.function.post_get(side.qp, get).unwrap();
                    oracle.posted.insert((from, context), Operation::Get);
                }
                Step::Add { from, to } => {
                    let side = &mut world.sides[from];
                    let at = words[to].remote_key().at(0);
                    side.function.post_atomic(side.qp, Atomic::fetch_add(at, 1).context(context)).unwrap();
                    oracle.posted.insert((from, context), Operation::FetchAdd);
                    oracle.adds[to] += 1;
                }
                Step::Turn { side } => {
                    world.sides[side].turn();
                    world.check_counters();
                }
            }
            for side in 0..SIDES {
                for done in std::mem::take(&mut world.sides[side].done) {
                    oracle.complete(side, done);
                }
            }
        }
        // With receives for all messages, all descriptors complete.
        for side in 0..SIDES {
            let due: usize = (0..SIDES)
                .filter_map(|from| oracle.under_way.get(&(from, side)))
                .map(VecDeque::len)
                .sum();
            let posted = world.sides[side].state().posted_receives;
            for number in 0..due.saturating_sub(posted) as u64 {
                world.sides[side].receive(REGION, 1000 + number);
                oracle.posted.insert((side, 1000 + number), Operation::Receive);
            }
        }
        world.settle();
        for (side, word) in words.iter().enumerate() {
            for done in std::mem::take(&mut world.sides[side].done) {
                oracle.complete(side, done);
            }
            prop_assert_eq!(word.load_u64(0), oracle.adds[side]);
        }
        world.check_counters();
        let left: Vec<_> =
            oracle.posted.iter().filter(|posted| *posted.1 != Operation::Receive).collect();
        prop_assert!(left.is_empty(), "never completed: {left:?}");
        prop_assert!(oracle.under_way.values().all(VecDeque::is_empty));
        for side in &world.sides {
            let counters = side.function.counters();
            prop_assert_eq!(counters.function.violations, 0);
            prop_assert_eq!(counters.function.stale_operations, 0);
        }
    }
}
