//! Destroying queue pairs, functions and links with work in flight.

use crate::rendezvous::ways;
use crate::world::*;
use bellwire::*;

/// Destroying a queue pair at any moment of many operations completes each descriptor exactly once
/// with its buffer. No loan is left.
// shows: M-04
#[test]
fn destroying_a_queue_pair_flushes_it() {
    for options in ways() {
        for turns in [0, 1, 2, 5, 20] {
            let mut world = World::new(options.clone(), 2);
            let to = world.sides[1].address();
            let region = world.sides[1].function.allocate_region(9000, Rights::all()).unwrap();
            let key = region.remote_key();
            (0..4).for_each(|number| world.sides[1].receive(3000, 100 + number));
            let a = &mut world.sides[0];
            (0..3).for_each(|number| a.receive(500, 50 + number));
            for number in 0..4 {
                a.send(to, &pattern(if number % 2 == 0 { 30 } else { 3000 }, number), number);
                let put = Put::new(vec![1; 3000], key.slice(0, 3000)).context(10 + number);
                a.function.post_put(a.qp, put).unwrap();
                let get = Get::new(key.slice(0, 3000), vec![2; 3000]).context(20 + number);
                a.function.post_get(a.qp, get).unwrap();
                a.function
                    .post_atomic(a.qp, Atomic::fetch_add(key.at(8), 1).context(30 + number))
                    .unwrap();
            }
            for _ in 0..turns {
                world.turn();
            }
            let a = &mut world.sides[0];
            a.function.destroy_queue_pair(a.qp).unwrap();
            world.settle();
            let a = &mut world.sides[0];
            let mut contexts: Vec<u64> = a.done.iter().map(|done| done.context).collect();
            contexts.sort_unstable();
            let expected: Vec<u64> =
                (0..4).chain(10..14).chain(20..24).chain(30..34).chain(50..53).collect();
            assert_eq!(contexts, expected);
            for done in a.done.drain(..) {
                assert!(
                    matches!(done.status, Status::Success | Status::Flushed),
                    "{:?}",
                    done.status
                );
                if matches!(done.operation, Operation::Send | Operation::Put | Operation::Get) {
                    assert!(done.buffer.is_some());
                }
            }
            let totals = a.function.counters().total;
            assert_eq!(totals.sends_posted, totals.sends_completed);
            assert_eq!(totals.receives_posted, totals.receives_completed);
            assert_eq!(world.fabric.exports(a.function.address()), 0);
            world.check_counters();
            // The receiver is consistent, too: withdrawn messages have completed.
            assert_eq!(world.sides[1].state().counters.messages_unfinished, 0);
            world.sides[1].function.deregister(region).unwrap();
        }
    }
}

/// Destroying the receiving queue pair completes its receives, and fails the sends of long
/// messages.
#[test]
fn destroying_the_receiver_tells_the_senders() {
    for options in ways() {
        for (receives, turns) in [(0, 30), (2, 1), (2, 3), (2, 6)] {
            let mut world = World::new(options.clone(), 2);
            let to = world.sides[1].address();
            (0..receives).for_each(|number| world.sides[1].receive(50_000, number));
            (0..4).for_each(|number| world.sides[0].send(to, &pattern(50_000, number), number));
            for _ in 0..turns {
                world.turn();
            }
            let b = &mut world.sides[1];
            b.function.destroy_queue_pair(b.qp).unwrap();
            world.settle();
            let sent = world.sides[0].take_all(Operation::Send);
            assert_eq!(sent.len(), 4, "each send completes");
            for sent in sent {
                assert_eq!(sent.buffer.unwrap().len(), 50_000);
                assert!(matches!(
                    sent.status,
                    Status::Success | Status::PeerGone | Status::NoSuchQueuePair
                ));
            }
            let received = world.sides[1].take_all(Operation::Receive);
            assert_eq!(received.len(), receives as usize);
            assert_eq!(world.fabric.exports(world.sides[0].function.address()), 0);
        }
    }
}

/// The death of one peer of an unconnected queue pair completes the descriptors for that peer and
/// no others.
#[test]
fn a_dead_peer_takes_only_its_own_with_it() {
    for options in ways() {
        let mut world = World::new(options, 3);
        let (first, second) = (world.sides[1].address(), world.sides[2].address());
        let key =
            world.sides[1].function.allocate_region(9000, Rights::all()).unwrap().remote_key();
        let a = &mut world.sides[0];
        a.receive(5000, 40);
        for number in 0..3 {
            a.send(first, &pattern(3000, number), number);
            a.send(second, &pattern(3000, number), 10 + number);
            let get = Get::new(key.slice(0, 3000), vec![0; 3000]).context(20 + number);
            a.function.post_get(a.qp, get).unwrap();
        }
        a.turn();
        let dead = world.sides.remove(1);
        drop(dead);
        (0..3).for_each(|number| world.sides[1].receive(3000, number));
        world.settle();
        for number in 0..3 {
            assert!(bytes(world.sides[1].take()) == pattern(3000, number));
        }
        let a = &mut world.sides[0];
        assert_eq!(a.done.len(), 9);
        for done in a.done.drain(..) {
            let alive = (10..20).contains(&done.context);
            let direct_get = done.operation == Operation::Get && done.status.is_success();
            let expected = if alive || direct_get { Status::Success } else { Status::PeerGone };
            assert_eq!(done.status, expected, "context {}", done.context);
        }
        assert_eq!(a.state().posted_receives, 1, "the receive may get somebody else's message");
        let lost = a.function.counters().function;
        assert_eq!((lost.links_opened, lost.links_lost), (2, 1));
        world.check_counters();
    }
}

/// A function can be reopened after it is closed, and is open only once at a time.
// shows: C-38
#[test]
fn a_function_is_open_once() {
    let fabric = Fabric::new(FabricOptions::default());
    let device = fabric.device(4);
    let functions: Vec<Function> = (0..8).map(|n| device.open_function(n).unwrap()).collect();
    for (number, function) in functions.iter().enumerate() {
        let expected = FunctionAddress { node: 4, function: number as u8 };
        assert_eq!(function.address(), expected);
    }
    assert!(matches!(device.open_function(3), Err(Error::BadFunction { function: 3, .. })));
    assert!(matches!(device.open_function(8), Err(Error::BadFunction { function: 8, .. })));
    drop(functions);
    device.open_function(3).unwrap();
    let bad = FunctionOptions::default().weight(0);
    assert!(matches!(device.open_function_with(1, &bad), Err(Error::OutOfRange { .. })));
    let bad = FunctionOptions::default().outstanding(1025);
    assert!(matches!(device.open_function_with(1, &bad), Err(Error::OutOfRange { .. })));
}

/// Queues that are in use cannot be destroyed, and everything can be created again up to its
/// printed limit.
// shows: M-04
#[test]
fn objects_are_counted_and_come_back() {
    let options = FabricOptions { queue_pairs: 20, ..FabricOptions::default() };
    let mut world = World::new(options, 1);
    let side = &mut world.sides[0];
    assert!(matches!(side.function.destroy_completion_queue(side.cq), Err(Error::InUse { .. })));
    let limits = side.function.limits();
    let options = QueuePairOptions::new(side.cq);
    for _ in 0..3 {
        let pairs: Vec<QueuePair> = (1..limits.queue_pairs)
            .map(|_| side.function.create_queue_pair(&options).unwrap())
            .collect();
        let full = side.function.create_queue_pair(&options).unwrap_err();
        assert!(matches!(full, Error::Exhausted { what: "queue pairs", .. }), "{full}");
        assert_eq!(side.function.queue_pairs().len(), limits.queue_pairs);
        for pair in pairs {
            side.function.destroy_queue_pair(pair).unwrap();
            assert!(matches!(side.function.query(pair), Err(Error::NoSuchQueuePair)));
        }
    }
    for depth in [0, (1 << 20) + 1] {
        assert!(matches!(
            side.function.create_completion_queue(depth),
            Err(Error::OutOfRange { .. })
        ));
    }
    for depth in [0, 65_537] {
        let bad = options.clone().send_depth(depth);
        assert!(matches!(side.function.create_queue_pair(&bad), Err(Error::OutOfRange { .. })));
    }
    side.function.destroy_queue_pair(side.qp).unwrap();
    side.function.destroy_completion_queue(side.cq).unwrap();
    assert!(matches!(side.function.poll(side.cq), Err(Error::NoSuchCompletionQueue)));
}
