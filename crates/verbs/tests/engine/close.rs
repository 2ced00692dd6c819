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

/// The end of a queue pair leaves others alone: what waits to be sent, a channel, and the GO for
/// senders that were stopped. Counters keep what it did.
#[test]
fn destroying_a_queue_pair_leaves_others_alone() {
    let options = FunctionOptions::default().backlog_bytes(64 << 10);
    let mut world = World::with(FabricOptions::default(), 2, &options);
    let (from, to) = (world.sides[0].address(), world.sides[1].address());
    let mut other = [0, 1].map(|side: usize| {
        let Side { function, cq, .. } = &mut world.sides[side];
        function.create_queue_pair(&QueuePairOptions::new(*cq)).unwrap()
    });
    let members = [0, 1].map(|side: usize| {
        let Side { function, cq, .. } = &mut world.sides[side];
        function.open_channel(3, &QueuePairOptions::new(*cq)).unwrap()
    });
    // The first queue pair of the second side stops its sender, and is read again.
    const COUNT: u64 = 250;
    (0..COUNT).for_each(|number| world.sides[0].send(to, &pattern(900, number), number));
    world.settle();
    assert_eq!(world.sides[1].state().counters.stops, 1);
    (0..COUNT).for_each(|number| world.sides[1].receive(900, number));
    let taken = world.sides[1].function.counters().function.packets_taken;
    let b = &mut world.sides[1];
    b.function.destroy_queue_pair(other[1]).unwrap();
    assert_eq!(b.function.counters().function.packets_taken, taken);
    world.settle();
    assert_eq!(world.sides[1].take_all(Operation::Receive).len() as u64, COUNT);

    // A message of the first side waits while another queue pair of it ends.
    world.sides[1].receive(8, 1);
    world.fabric.hold_requests(Some(from.function_address()));
    world.sides[0].send(to, b"waits", 7);
    let a = &mut world.sides[0];
    a.function.post_send(other[0], Message::inline(b"flushed").to(to)).unwrap();
    a.function.destroy_queue_pair(other[0]).unwrap();
    world.fabric.hold_requests(None);
    world.settle();
    assert_eq!(bytes(world.sides[1].take()), b"waits");

    // And so does a channel, and what its members have taken is counted after its end, too.
    let b = &mut world.sides[1];
    other[1] = b.function.create_queue_pair(&QueuePairOptions::new(b.cq)).unwrap();
    b.function.destroy_queue_pair(other[1]).unwrap();
    b.function.post_receive(members[1], vec![0; 8], 9).unwrap();
    let a = &mut world.sides[0];
    let channel = Message::inline(b"member").to(Address::channel(1, 0, 3));
    a.function.post_send(members[0], channel).unwrap();
    world.settle();
    let b = &mut world.sides[1];
    assert_eq!(b.take().context, 9);
    let before = b.function.counters();
    b.function.destroy_queue_pair(b.qp).unwrap();
    let after = b.function.counters();
    assert_eq!(after.function.packets_taken, before.function.packets_taken);
    assert_eq!(after.total.messages_received, before.total.messages_received);
}

/// A queue pair that cannot be made, because there are too many, keeps no shared receive queue.
#[test]
fn a_queue_pair_that_is_refused_uses_nothing() {
    let mut world = World::new(FabricOptions { queue_pairs: 2, ..Default::default() }, 1);
    let a = &mut world.sides[0];
    let shared = a.function.create_shared_receive_queue(4).unwrap();
    let options = QueuePairOptions::new(a.cq).shared_receive(shared);
    let refused = a.function.create_queue_pair(&options).unwrap_err();
    assert!(matches!(refused, Error::Exhausted { what: "queue pairs", limit: 1, .. }));
    a.function.destroy_shared_receive_queue(shared).unwrap();
}

/// The ends of the first 64 peers are kept for a program that asks later.
#[test]
fn lost_peers_are_remembered() {
    let mut world = World::pair();
    let to = world.sides[1].address().function_address();
    for node in 100..166 {
        let mut peer = world.fabric.transport(FunctionAddress { node, function: 0 });
        let link = bellwire_device::Transport::link(&mut peer, to, LONG).unwrap();
        let empty = bellwire_ring::memory::View::empty();
        let header = bellwire_device::PacketHeader::new(bellwire_device::Kind::Send, 9, 1, 0);
        bellwire_device::Transport::send(&mut peer, link, header, &[], empty).unwrap();
        world.turn();
        drop(peer);
        world.turn();
        world.turn();
    }
    let lost = std::iter::from_fn(|| world.sides[1].function.take_lost_peer());
    let mut lost: Vec<u32> = lost
        .map(|(peer, why)| {
            assert_eq!(why, Status::PeerGone);
            peer.node
        })
        .collect();
    lost.sort_unstable();
    assert!(lost.into_iter().eq(100..164));
    assert_eq!(world.sides[1].function.counters().function.no_such_queue_pairs, 66);
}

/// After the end of a link its number may be another peer's. Nothing goes to that peer instead,
/// neither from a queue pair that has sent before nor from a new one.
#[test]
fn the_number_of_a_link_that_ended_misleads_nobody() {
    let mut world = World::new(FabricOptions::default(), 3);
    let addresses = [0, 1, 2].map(|side: usize| world.sides[side].address());
    (1..3).for_each(|side| (0..3).for_each(|_| world.sides[side].receive(8, 0)));
    world.sides[0].send(addresses[1], b"before", 0);
    world.settle();
    let [a, b, _] = addresses.map(|address| address.function_address());
    world.fabric.cut(a, b, Status::PeerGone);
    world.settle();
    world.sides[0].receive(8, 0);
    world.sides[2].send(addresses[0], b"link", 0);
    world.settle();
    let a = &mut world.sides[0];
    let new = a.function.create_queue_pair(&QueuePairOptions::new(a.cq)).unwrap();
    a.send(addresses[1], b"after", 0);
    a.function.post_send(new, Message::inline(b"and new").to(addresses[1])).unwrap();
    world.settle();
    let received = world.sides[1].take_all(Operation::Receive).into_iter().map(bytes);
    assert_eq!(received.collect::<Vec<_>>(), [&b"before"[..], b"after", b"and new"]);
    assert!(world.sides[2].take_all(Operation::Receive).is_empty());
    let opened = world.sides[0].function.counters().function;
    assert_eq!((opened.links_opened, opened.links_lost), (2, 1));
}

/// Answers for one peer go on when the link to another ends.
#[test]
fn the_end_of_a_link_keeps_answers_for_others() {
    let narrow = FabricOptions { packet_bytes: 64, link_packets: 2, ..by_packets() };
    let mut world = World::new(narrow, 3);
    let region = world.sides[1].function.allocate_region(1_000, Rights::all()).unwrap();
    region.write(0, &pattern(1_000, 1));
    let [b, c] = [1, 2].map(|side: usize| world.sides[side].address());
    world.sides[1].receive(8, 0);
    world.sides[2].send(b, b"link", 0);
    world.settle();
    let a = &mut world.sides[0];
    a.function.post_get(a.qp, Get::new(region.remote_key(), vec![0; 1_000])).unwrap();
    (0..3).for_each(|_| _ = world.sides[1].turn());
    assert!(world.sides[1].function.sleep_limit().is_some(), "answers wait");
    world.fabric.cut(b.function_address(), c.function_address(), Status::PeerGone);
    world.sides[1].turn();
    world.settle();
    assert_eq!(bytes(world.sides[0].take()), pattern(1_000, 1));
}

/// What is remembered of a link ends with it: its number may lead to another peer next.
#[test]
fn a_link_that_has_ended_is_forgotten() {
    let mut world = World::new(FabricOptions::default(), 3);
    let [first, b, c] = [0, 1, 2].map(|side: usize| world.sides[side].address());
    (1..3).for_each(|side| (0..4).for_each(|number| world.sides[side].receive(8, number)));
    let a = &mut world.sides[0];
    let other = a.function.create_queue_pair(&QueuePairOptions::new(a.cq)).unwrap();
    // The third one finds what the second has remembered, and remembers it.
    for _ in 0..3 {
        world.sides[0].send(b, b"before", 1);
        world.settle();
    }
    world.fabric.cut(first.function_address(), b.function_address(), Status::PeerGone);
    world.settle();
    for _ in 0..2 {
        let a = &mut world.sides[0];
        a.function.post_send(other, Message::inline(b"other").to(c)).unwrap();
        world.settle();
    }
    world.sides[0].send(b, b"after", 2);
    world.settle();
    let mut heard = |side: usize| -> Vec<Vec<u8>> {
        world.sides[side].take_all(Operation::Receive).into_iter().map(bytes).collect()
    };
    assert_eq!(heard(1), [&b"before"[..], b"before", b"before", b"after"]);
    assert_eq!(heard(2), [b"other", b"other"]);
}

/// Answers go on to one peer when the link to another ends.
#[test]
fn answers_to_others_go_on() {
    let options = FabricOptions { packet_bytes: 64, link_packets: 2, ..by_packets() };
    let mut world = World::new(options, 3);
    let [b, c] = [1, 2].map(|side: usize| world.sides[side].address());
    let region = world.sides[1].function.allocate_region(1_000, Rights::REMOTE_READ).unwrap();
    region.write(0, &pattern(1_000, 1));
    let third = &mut world.sides[2];
    let nobody = Address { queue_pair: 500, ..b };
    third.function.start_connect(third.qp, nobody, b"", LONG).unwrap();
    world.settle();
    let a = &mut world.sides[0];
    a.function.post_get(a.qp, Get::new(region.remote_key(), vec![0; 1_000])).unwrap();
    for _ in 0..4 {
        world.sides[0].turn();
        world.sides[1].turn();
    }
    assert!(world.sides[0].done.is_empty(), "most of it is still to come");
    world.fabric.cut(b.function_address(), c.function_address(), Status::PeerGone);
    world.settle();
    assert!(bytes(world.sides[0].take()) == pattern(1_000, 1));
}
