//! Random sequences of operations and accidents: links that are cut and queue pairs that are
//! destroyed at any moment.

use crate::world::*;
use bellwire::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, HashMap};

#[derive(Clone, Debug)]
enum Step {
    Send { from: usize, to: usize, length: usize },
    Receive { side: usize, length: usize },
    Put { from: usize, to: usize, length: usize },
    Get { from: usize, to: usize, length: usize },
    Add { from: usize, to: usize },
    Turn { side: usize },
    Destroy { side: usize },
    Cut { a: usize, b: usize },
}

const SIDES: usize = 3;
const REGION: usize = 4000;

fn step() -> impl Strategy<Value = Step> {
    let side = || 0..SIDES;
    let length = || prop_oneof![3 => 8..80usize, 1 => 8..REGION];
    prop_oneof![
        6 => (side(), side(), length()).prop_map(|(from, to, length)| Step::Send { from, to, length }),
        5 => (side(), length()).prop_map(|(side, length)| Step::Receive { side, length }),
        2 => (side(), side(), length()).prop_map(|(from, to, length)| Step::Put { from, to, length }),
        2 => (side(), side(), length()).prop_map(|(from, to, length)| Step::Get { from, to, length }),
        1 => (side(), side()).prop_map(|(from, to)| Step::Add { from, to }),
        8 => side().prop_map(|side| Step::Turn { side }),
        1 => side().prop_map(|side| Step::Destroy { side }),
        1 => (side(), side()).prop_map(|(a, b)| Step::Cut { a, b }),
    ]
}

/// Records posted and arrived messages.
#[derive(Default)]
struct Oracle {
    posted: BTreeMap<(usize, u64), Operation>,
    /// The number of the last message that arrived, by sending and receiving queue pair.
    last: HashMap<(Address, QueuePair), u64>,
}

impl Oracle {
    fn complete(&mut self, side: usize, done: Completion) {
        let posted = self.posted.remove(&(side, done.context));
        assert_eq!(posted, Some(done.operation), "each completes once, as what it is");
        if !matches!(done.operation, Operation::FetchAdd) {
            assert!(done.buffer.is_some(), "and gives its buffer back");
        }
        if done.operation != Operation::Receive || done.length < 8 {
            return;
        }
        let (pair, status) = ((done.peer, done.queue_pair), done.status);
        let arrived = bytes(done);
        let number = u64::from_le_bytes(arrived[..8].try_into().unwrap());
        if !matches!(status, Status::Success | Status::Truncated) {
            return;
        }
        assert!(arrived == message(arrived.len(), number), "whole and unaltered");
        let before = self.last.insert(pair, number);
        assert!(before < Some(number), "once, and in order");
    }
}

/// A message that begins with its number.
fn message(length: usize, number: u64) -> Vec<u8> {
    let mut message = pattern(length, number);
    message[..8].copy_from_slice(&number.to_le_bytes());
    message
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Links and queue pairs end at any moment, and every descriptor still completes once with its
    /// buffer. Messages arrive whole, in order and once; no loan of memory is left; the counters
    /// conserve.
    #[test]
    fn accidents_lose_no_descriptor(
        direct in any::<bool>(),
        pending_every in prop_oneof![Just(0u64), 2..5u64],
        link_packets in 1..6usize,
        steps in prop::collection::vec(step(), 1..150),
    ) {
        let options = FabricOptions {
            packet_bytes: 200,
            link_packets,
            direct_allocated: direct,
            direct_brought: direct,
            pending_every,
            ..FabricOptions::default()
        };
        let mut world = World::new(options, SIDES as u32);
        let mut oracle = Oracle::default();
        let mut addresses: Vec<Address> = world.sides.iter().map(Side::address).collect();
        let mut allocate = |length| -> Vec<MemoryRegion> {
            let allocate = |side: &mut Side| side.function.allocate_region(length, Rights::all());
            world.sides.iter_mut().map(|side| allocate(side).unwrap()).collect()
        };
        let (shared, words) = (allocate(REGION), allocate(8));
        for (number, step) in steps.into_iter().enumerate() {
            let context = number as u64;
            match step {
                Step::Send { from, to, length } => {
                    let (side, to) = (&mut world.sides[from], addresses[to]);
                    let send = Message::buffer(message(length, context)).to(to).context(context);
                    side.function.post_send(side.qp, send).unwrap();
                    oracle.posted.insert((from, context), Operation::Send);
                }
                Step::Receive { side, length } => {
                    world.sides[side].receive(length, context);
                    oracle.posted.insert((side, context), Operation::Receive);
                }
                Step::Put { from, to, length } => {
                    let target = shared[to].remote_key().slice(0, length as u64);
                    let side = &mut world.sides[from];
                    let put = Put::new(vec![1; length], target).context(context);
                    side.function.post_put(side.qp, put).unwrap();
                    oracle.posted.insert((from, context), Operation::Put);
                }
                Step::Get { from, to, length } => {
                    let source = shared[to].remote_key().slice(0, length as u64);
                    let side = &mut world.sides[from];
                    let get = Get::new(source, vec![0; length]).context(context);
                    side.function.post_get(side.qp, get).unwrap();
                    oracle.posted.insert((from, context), Operation::Get);
                }
                Step::Add { from, to } => {
                    let side = &mut world.sides[from];
                    let at = words[to].remote_key().at(0);
                    side.function.post_atomic(side.qp, Atomic::fetch_add(at, 1).context(context)).unwrap();
                    oracle.posted.insert((from, context), Operation::FetchAdd);
                }
                Step::Turn { side } => {
                    world.sides[side].turn();
                    world.check_counters();
                }
                Step::Destroy { side } => {
                    let side_number = side;
                    let side = &mut world.sides[side];
                    side.function.destroy_queue_pair(side.qp).unwrap();
                    let options = QueuePairOptions::new(side.cq);
                    side.qp = side.function.create_queue_pair(&options).unwrap();
                    addresses[side_number] = side.address();
                }
                Step::Cut { a, b } => {
                    let function = |side: usize| addresses[side].function_address();
                    world.fabric.cut(function(a), function(b), Status::PeerGone);
                }
            }
            for side in 0..SIDES {
                for done in std::mem::take(&mut world.sides[side].done) {
                    oracle.complete(side, done);
                }
            }
        }
        world.settle();
        for side in 0..SIDES {
            // Only receives, sends without a receive, and descriptors behind those still wait.
            let qp = world.sides[side].qp;
            world.sides[side].function.destroy_queue_pair(qp).unwrap();
        }
        world.settle();
        for (number, side) in world.sides.iter_mut().enumerate() {
            for done in std::mem::take(&mut side.done) {
                oracle.complete(number, done);
            }
            let total = side.function.counters().total;
            prop_assert_eq!(total.sends_posted, total.sends_completed);
            prop_assert_eq!(total.receives_posted, total.receives_completed);
            prop_assert_eq!(total.messages_arrived, total.messages_received + total.messages_discarded);
            prop_assert_eq!(total.messages_unfinished, 0);
            prop_assert_eq!(side.function.counters().function.violations, 0);
            prop_assert_eq!(world.fabric.exports(side.function.address()), 2);
        }
        prop_assert!(oracle.posted.is_empty(), "never completed: {:?}", oracle.posted);
    }
}
