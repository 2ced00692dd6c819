//! Messages that fit a packet.

use crate::world::*;
use bellwire::*;

/// A message with an immediate value arrives whole and names its sender, and each side gets its
/// buffer back.
// shows: C-18, M-01
#[test]
fn a_message_arrives() {
    let mut world = World::pair();
    let (a, b) = world.both();
    b.receive(16, 7);
    let (from, to) = (a.address(), b.address());
    let send = Message::buffer(b"hello".to_vec()).to(to).immediate(42).context(9);
    a.function.post_send(a.qp, send).unwrap();
    world.settle();
    let received = world.sides[1].take();
    assert_eq!((received.operation, received.status), (Operation::Receive, Status::Success));
    assert_eq!((received.length, received.context), (5, 7));
    assert_eq!((received.immediate(), received.peer), (Some(42), from));
    assert_eq!(bytes(received), b"hello");
    let sent = world.sides[0].take();
    assert_eq!((sent.operation, sent.context, sent.peer), (Operation::Send, 9, to));
    assert_eq!(sent.buffer.unwrap().into_vec().unwrap(), b"hello");
    world.check_counters();
}

/// Data inside the descriptor arrives, and no buffer comes back.
// shows: C-17
#[test]
fn immediate_data_needs_no_buffer() {
    let mut world = World::pair();
    let (a, b) = world.both();
    b.receive(64, 1);
    let send = Message::inline(&[3; 40]).to(b.address());
    a.function.post_send(a.qp, send).unwrap();
    world.settle();
    assert!(world.sides[0].take().buffer.is_none());
    assert_eq!(bytes(world.sides[1].take()), [3; 40]);
}

/// A message of no bytes, and one that fills a packet exactly, arrive.
#[test]
fn the_shortest_and_the_longest_eager_message_arrive() {
    let mut world = World::pair();
    let longest = world.sides[0].function.limits().eager_bytes;
    let to = world.sides[1].address();
    for length in [0, 1, longest - 1, longest] {
        world.sides[1].receive(longest, 1);
        world.sides[0].send(to, &pattern(length, 5), 2);
        world.settle();
        let received = world.sides[1].take();
        assert_eq!((received.status, received.length), (Status::Success, length));
        assert_eq!(bytes(received), pattern(length, 5));
    }
}

/// A thousand messages through queues of two packets arrive once each and in order, whether their
/// receives were posted before or after.
// shows: H-11, D-19, D-20
#[test]
fn order_is_kept_through_tiny_queues_and_the_backlog() {
    for receives_first in [true, false] {
        let options = FabricOptions { link_packets: 2, busy_every: 5, ..FabricOptions::default() };
        let mut world = World::new(options, 2);
        let to = world.sides[1].address();
        for round in 0..5u64 {
            let numbers = round * 200..(round + 1) * 200;
            if receives_first {
                numbers.clone().for_each(|number| world.sides[1].receive(8, number));
            }
            for number in numbers.clone() {
                world.sides[0].send(to, &number.to_le_bytes(), number);
            }
            world.settle();
            if !receives_first {
                assert!(world.sides[1].done.is_empty());
                assert_eq!(world.sides[1].state().backlog_messages, 200);
                numbers.clone().for_each(|number| world.sides[1].receive(8, number));
                world.settle();
            }
            let sent = world.sides[0].take_all(Operation::Send);
            assert!(sent.iter().map(|sent| sent.context).eq(numbers.clone()));
            let received = world.sides[1].take_all(Operation::Receive);
            assert_eq!(received.len(), 200);
            for (received, number) in received.into_iter().zip(numbers) {
                assert_eq!(received.context, number);
                assert_eq!(bytes(received), number.to_le_bytes());
            }
            world.check_counters();
        }
    }
}

/// A receive that is too short keeps the bytes that fit and completes as truncated.
#[test]
fn a_short_receive_keeps_what_fits() {
    for backlogged in [false, true] {
        let mut world = World::pair();
        let to = world.sides[1].address();
        if !backlogged {
            world.sides[1].receive(300, 1);
        }
        world.sides[0].send(to, &pattern(700, 1), 1);
        world.settle();
        if backlogged {
            world.sides[1].receive(300, 1);
            world.settle();
        }
        let received = world.sides[1].take();
        assert_eq!((received.status, received.length), (Status::Truncated, 300));
        assert_eq!(bytes(received), pattern(700, 1)[..300]);
        assert_eq!(world.sides[1].state().counters.messages_truncated, 1);
        assert_eq!(world.sides[1].state().last_error, Some(Status::Truncated));
        assert_eq!(world.sides[1].state().counters.receives_failed, 1);
    }
}

/// An unsignaled send completes only if it fails.
#[test]
fn an_unsignaled_send_speaks_up_only_if_it_fails() {
    let mut world = World::pair();
    let to = world.sides[1].address();
    let nowhere = Address::new(1, 0, 200);
    let a = &mut world.sides[0];
    for (to, context) in [(to, 1), (nowhere, 2), (to, 3)] {
        let send = Message::inline(b"x").to(to).context(context).unsignaled();
        a.function.post_send(a.qp, send).unwrap();
    }
    world.settle();
    let failed = world.sides[0].take();
    assert_eq!((failed.context, failed.status), (2, Status::NoSuchQueuePair));
    assert!(world.sides[0].done.is_empty());
    world.check_counters();
}

/// An invalid post is refused at once, and the descriptor comes back unchanged.
// shows: M-03
#[test]
fn bad_posts_are_refused_and_given_back() {
    let mut world = World::pair();
    let (a, b) = world.both();
    let to = b.address();
    let refused = a.function.post_send(a.qp, Message::buffer(vec![1; 10])).unwrap_err();
    assert!(matches!(refused.error, Error::BadDestination(_)), "{refused}");
    let again = refused.descriptor.to(to);
    a.function.post_send(a.qp, again).unwrap();

    let long = vec![0; a.function.limits().eager_bytes + 1];
    refuses!(a.function.post_send(a.qp, Message::inline(&long).to(to)), Error::TooLong { .. });
    let member = Address::channel(1, 0, 4);
    refuses!(
        a.function.post_send(a.qp, Message::inline(b"x").to(member)),
        Error::BadDestination(_)
    );

    let stale = a.qp;
    a.function.destroy_queue_pair(a.qp).unwrap();
    refuses!(a.function.post_send(stale, Message::inline(b"x").to(to)), Error::NoSuchQueuePair);
    let refused = a.function.post_receive(stale, vec![5; 3], 0).unwrap_err();
    assert_eq!(refused.descriptor.into_vec().unwrap(), [5; 3]);
    let refused = a.function.post_receive(b.qp, vec![5; 3], 0).unwrap_err();
    assert!(matches!(refused.error, Error::NoSuchQueuePair), "a foreign handle is noticed");
}

/// A missing queue pair and a missing process give different statuses, and neither hangs.
#[test]
fn a_missing_peer_is_reported() {
    let patience = std::time::Duration::from_millis(30);
    let mut world = World::new(FabricOptions { patience, ..FabricOptions::default() }, 2);
    world.sides[0].send(Address::new(1, 0, 77), b"x", 1);
    world.sides[0].send(Address::new(9, 0, 1), b"y", 2);
    let a = &mut world.sides[0];
    for (context, status) in [(1, Status::NoSuchQueuePair), (2, Status::Unreachable)] {
        let failed = a.function.wait(a.cq, Wait::Block, LONG).unwrap();
        assert_eq!((failed.context, failed.status), (context, status));
        assert_eq!(failed.buffer.unwrap().len(), 1);
    }
    // A later attempt makes a new link.
    world.sides.push(Side::new(&world.fabric, 9, &FunctionOptions::default()));
    let to = world.sides[2].address();
    world.sides[2].receive(8, 1);
    world.sides[0].send(to, b"z", 3);
    world.settle();
    assert_eq!(bytes(world.sides[2].take()), b"z");
    world.check_counters();
}

/// One completion queue serves many queue pairs, and each completion names its queue pair.
// shows: M-01
#[test]
fn one_completion_queue_serves_many_queue_pairs() {
    let mut world = World::pair();
    let b = &mut world.sides[1];
    let options = QueuePairOptions::new(b.cq);
    let pairs: Vec<QueuePair> =
        (0..100).map(|_| b.function.create_queue_pair(&options).unwrap()).collect();
    for &pair in &pairs {
        b.function.post_receive(pair, vec![0; 4], pair.number as u64).unwrap();
    }
    for &pair in &pairs {
        world.sides[0].send(Address::new(1, 0, pair.number), &pair.number.to_le_bytes(), 0);
    }
    world.settle();
    let received = world.sides[1].take_all(Operation::Receive);
    assert_eq!(received.len(), 100);
    for received in received {
        assert_eq!(received.context, received.queue_pair.number as u64);
        let number = received.queue_pair.number;
        assert_eq!(bytes(received), number.to_le_bytes());
    }
}

/// A function can send to itself.
#[test]
fn a_function_can_send_to_itself() {
    let mut world = World::new(FabricOptions::default(), 1);
    let own = world.sides[0].address();
    world.sides[0].receive(5000, 1);
    world.sides[0].receive(5000, 2);
    world.sides[0].send(own, b"short", 3);
    world.sides[0].send(own, &pattern(5000, 1), 4);
    world.settle();
    let received = world.sides[0].take_all(Operation::Receive);
    assert_eq!(received.iter().map(|one| one.length).collect::<Vec<_>>(), [5, 5000]);
    assert_eq!(world.sides[0].take_all(Operation::Send).len(), 2);
}

/// A message that just fits a packet needs no receive to complete, though it has to wait for its
/// link. Nor does one whose bytes are in the descriptor.
#[test]
fn the_longest_eager_message_completes_without_a_receive() {
    for is_inline in [false, true] {
        let mut world = World::pair();
        let (a, b) = world.both();
        let data = pattern(a.function.limits().eager_bytes, 1);
        let message = match is_inline {
            true => Message::inline(&data),
            false => Message::buffer(data.clone()),
        };
        a.function.post_send(a.qp, message.to(b.address())).unwrap();
        world.settle();
        assert_eq!(world.sides[0].take().status, Status::Success);
        world.sides[1].receive(data.len(), 1);
        assert!(
            bytes({
                world.settle();
                world.sides[1].take()
            }) == data
        );
    }
}

/// Each message counts as a packet: with a receive or without one, alone or in a batch.
#[test]
fn packets_are_counted() {
    let mut world = World::pair();
    let to = world.sides[1].address();
    let taken = |world: &World| world.sides[1].function.counters().function.packets_taken;
    world.sides[1].receive(8, 1);
    for number in 1..=3 {
        world.sides[0].send(to, b"alone", number);
        world.settle();
        assert_eq!(taken(&world), number);
    }
    let a = &mut world.sides[0];
    let mut sends = [(); 3].map(|()| Message::inline(b"batch").to(to));
    a.function.post_sends(a.qp, &mut sends).unwrap();
    world.settle();
    assert_eq!(taken(&world), 6);
}
