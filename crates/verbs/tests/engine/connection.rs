//! Connections.

use crate::world::*;
use bellwire::*;
use std::time::{Duration, Instant};

const SHORT: Duration = Duration::from_millis(40);

/// Connects the queue pairs of the first two sides.
pub fn connect(world: &mut World) {
    let (a, b) = world.both();
    let listener = b.function.listen(500).unwrap();
    let to = Address::new(b.function.address().node, 0, 500);
    a.function.start_connect(a.qp, to, b"from a", LONG).unwrap();
    world.settle();
    let (a, b) = world.both();
    let request = b.function.poll_request(listener).unwrap().expect("a request");
    assert_eq!((request.peer, &request.private_data[..]), (a.address(), &b"from a"[..]));
    b.function.accept(request, b.qp, b"from b").unwrap();
    b.function.stop_listening(listener).unwrap();
    world.settle();
    let (a, _) = world.both();
    let outcome = a.function.poll_connection(a.qp).unwrap();
    assert_eq!(outcome, ConnectionProgress::Connected(b"from b".to_vec()));
}

/// Polls a connection until it fails.
fn failure(side: &mut Side) -> Error {
    loop {
        match side.function.poll_connection(side.qp) {
            Ok(ConnectionProgress::Waiting) => {}
            other => return other.unwrap_err(),
        }
    }
}

/// A connection carries private data both ways, then messages without destinations, and ends for
/// both sides.
// shows: M-03, M-04
#[test]
fn connect_talk_and_disconnect() {
    let mut world = World::pair();
    let (first, second) = (world.sides[0].address(), world.sides[1].address());
    connect(&mut world);
    assert_eq!(world.sides[0].state().connection, ConnectionState::Connected { peer: second });
    assert_eq!(world.sides[1].state().connection, ConnectionState::Connected { peer: first });
    for (from, to) in [(0, 1), (1, 0)] {
        for (length, context) in [(10, 1), (5000, 2)] {
            world.sides[to].receive(5000, context);
            let side = &mut world.sides[from];
            let message = Message::buffer(pattern(length, 1)).context(context);
            side.function.post_send(side.qp, message).unwrap();
            world.settle();
            assert!(bytes(world.sides[to].take()) == pattern(length, 1));
            assert_eq!(world.sides[from].take().peer, [second, first][from]);
        }
    }
    let a = &mut world.sides[0];
    refuses!(
        a.function.post_send(a.qp, Message::inline(b"x").to(second)),
        Error::BadDestination(_)
    );

    world.sides[0].receive(8, 70);
    world.sides[1].receive(8, 71);
    let (a, _) = world.both();
    a.function.disconnect(a.qp).unwrap();
    world.settle();
    let flushed = world.sides[0].take();
    assert_eq!((flushed.context, flushed.status), (70, Status::Flushed));
    let flushed = world.sides[1].take();
    assert_eq!((flushed.context, flushed.status), (71, Status::PeerGone));
    assert_eq!(
        world.sides[1].state().connection,
        ConnectionState::Disconnected { why: Status::PeerGone }
    );
    let a = &mut world.sides[0];
    let refused = a.function.post_send(a.qp, Message::inline(b"x")).unwrap_err();
    assert!(
        matches!(refused.error, Error::WrongState { .. }),
        "sending without a connection fails"
    );
    assert!(a.function.post_receive(a.qp, vec![0; 8], 0).is_err());
    // The same pair can be connected again.
    connect(&mut world);
    world.check_counters();
}

/// A connected queue pair takes no messages of other senders.
#[test]
fn a_connected_queue_pair_takes_nothing_from_strangers() {
    let mut world = World::new(FabricOptions::default(), 3);
    connect(&mut world);
    let to = world.sides[1].address();
    world.sides[1].receive(8, 1);
    world.sides[2].send(to, b"spam", 1);
    world.sides[2].send(to, &pattern(5000, 1), 2);
    world.settle();
    assert!(world.sides[1].done.is_empty());
    assert_eq!(world.sides[1].state().counters.messages_refused, 2);
    let sent = world.sides[2].take_all(Operation::Send);
    assert_eq!(sent[1].status, Status::NoSuchQueuePair, "the sender of a long message is told");
}

/// A rejected request fails with the peer's reason, and the queue pair can be used again.
// shows: M-03
#[test]
fn a_rejection_says_why() {
    let mut world = World::pair();
    let (a, b) = world.both();
    let listener = b.function.listen(3).unwrap();
    a.function.start_connect(a.qp, Address::new(1, 0, 3), b"", LONG).unwrap();
    assert!(matches!(a.state().connection, ConnectionState::Connecting { .. }));
    refuses!(a.function.post_send(a.qp, Message::inline(b"x")), Error::WrongState { .. });
    world.settle();
    let (a, b) = world.both();
    let request = b.function.wait_request(listener, Wait::Block, LONG).unwrap();
    b.function.reject(request, b"come back on Monday").unwrap();
    let failed = failure(a);
    assert!(
        matches!(&failed, Error::Rejected { reason, .. } if reason == "come back on Monday"),
        "{failed}"
    );
    assert_eq!(a.state().connection, ConnectionState::Unconnected);
    assert!(matches!(a.function.poll_connection(a.qp), Err(Error::WrongState { .. })));
    connect(&mut world);
}

/// Without a listener, or without a process, a connection fails at its deadline. The error names
/// the attempts.
// shows: M-03
#[test]
fn nobody_there_is_an_error_at_the_deadline() {
    let mut world = World::pair();
    for (node, tried) in [(1, "nobody listened"), (77, "no process")] {
        let stop = std::sync::atomic::AtomicBool::new(false);
        let (a, b) = world.both();
        let function = &mut b.function;
        let failed = std::thread::scope(|scope| {
            let stop = &stop;
            scope.spawn(move || {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    function.progress().unwrap();
                    std::thread::yield_now();
                }
            });
            let to = Address::new(node, 0, 9);
            let failed = a.function.connect(a.qp, to, b"", SHORT).unwrap_err();
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            failed
        });
        match &failed {
            Error::Unreachable { tried: told, .. } if node == 1 => {
                assert!(told.contains(tried), "{failed}");
            }
            Error::Unreachable { .. } => {}
            other => panic!("{other}"),
        }
        assert_eq!(world.sides[0].state().connection, ConnectionState::Unconnected);
    }
}

/// A request waits for a listener that starts later.
#[test]
fn a_listener_may_come_late() {
    let mut world = World::pair();
    let (a, b) = world.both();
    a.function.start_connect(a.qp, Address::new(1, 0, 4), b"early", LONG).unwrap();
    for _ in 0..10 {
        a.function.progress().unwrap();
        b.function.progress().unwrap();
    }
    assert!(b.function.counters().function.connections_refused > 0);
    let listener = b.function.listen(4).unwrap();
    let request = loop {
        a.function.progress().unwrap();
        if let Some(request) = b.function.poll_request(listener).unwrap() {
            break request;
        }
    };
    assert_eq!(request.private_data, b"early");
    b.function.accept(request, b.qp, b"").unwrap();
    world.settle();
    assert!(matches!(world.sides[0].state().connection, ConnectionState::Connected { .. }));
}

/// `next_request` makes no progress: it finds only requests that progress has received.
#[test]
fn a_look_at_requests_makes_no_progress() {
    let mut world = World::pair();
    let (a, b) = world.both();
    let listener = b.function.listen(4).unwrap();
    a.function.start_connect(a.qp, Address::new(1, 0, 4), b"", LONG).unwrap();
    for _ in 0..10 {
        a.function.progress().unwrap();
        assert!(b.function.next_request(listener).unwrap().is_none());
    }
    world.settle();
    let (_, b) = world.both();
    assert!(b.function.next_request(listener).unwrap().is_some());
    assert!(b.function.next_request(listener).unwrap().is_none());
}

/// An acceptance after the requesting side's timeout leaves no half-open connection.
#[test]
fn a_late_acceptance_leaves_no_half_connection() {
    let mut world = World::pair();
    let (a, b) = world.both();
    let listener = b.function.listen(4).unwrap();
    a.function.start_connect(a.qp, Address::new(1, 0, 4), b"", SHORT).unwrap();
    world.settle();
    let (a, b) = world.both();
    let request = b.function.poll_request(listener).unwrap().unwrap();
    let failed = failure(a);
    assert!(matches!(failed, Error::Unreachable { .. }));
    b.function.accept(request, b.qp, b"").unwrap();
    b.receive(8, 5);
    world.settle();
    assert_eq!(
        world.sides[1].state().connection,
        ConnectionState::Disconnected { why: Status::PeerGone }
    );
    assert_eq!(world.sides[1].take().status, Status::PeerGone);
}

/// The death of a connected peer completes all descriptors, receives too.
#[test]
fn the_death_of_a_peer_completes_everything() {
    let options = FabricOptions { direct_brought: false, ..FabricOptions::default() };
    let mut world = World::new(options, 2);
    connect(&mut world);
    let a = &mut world.sides[0];
    a.receive(8, 1);
    a.receive(8, 2);
    a.function.post_send(a.qp, Message::buffer(vec![0; 100_000]).context(3)).unwrap();
    a.function.post_send(a.qp, Message::buffer(vec![0; 100_000]).context(4)).unwrap();
    a.turn();
    drop(world.sides.remove(1));
    world.settle();
    let a = &mut world.sides[0];
    let mut ended: Vec<_> = a.done.drain(..).map(|done| (done.context, done.status)).collect();
    ended.sort_by_key(|ended| ended.0);
    assert_eq!(ended, [1, 2, 3, 4].map(|context| (context, Status::PeerGone)));
    assert_eq!(a.state().connection, ConnectionState::Disconnected { why: Status::PeerGone });
    assert_eq!(world.fabric.exports(world.sides[0].function.address()), 0);
    world.check_counters();
}

/// Messages that arrived before the end of a connection can still be received after it.
#[test]
fn what_arrived_before_the_end_can_still_be_received() {
    let mut world = World::pair();
    connect(&mut world);
    let a = &mut world.sides[0];
    a.function.post_send(a.qp, Message::inline(b"last words")).unwrap();
    a.function.post_send(a.qp, Message::buffer(vec![1; 9000])).unwrap();
    world.settle();
    let (a, _) = world.both();
    a.function.disconnect(a.qp).unwrap();
    world.settle();
    world.sides[1].receive(10, 1);
    world.settle();
    assert_eq!(bytes(world.sides[1].take()), b"last words");
    // The long message was withdrawn, and no other is left.
    let (_, b) = world.both();
    assert_eq!(b.state().counters.messages_discarded, 1);
    assert!(b.function.post_receive(b.qp, vec![0; 10], 3).is_err());
    world.check_counters();
}

/// Calls in the wrong state return named errors.
#[test]
fn wrong_states_are_named() {
    let mut world = World::pair();
    let (a, b) = world.both();
    let listener = b.function.listen(1).unwrap();
    assert!(matches!(b.function.listen(1), Err(Error::InUse { .. })));
    assert!(matches!(b.function.listen(Address::CHANNEL_BASE), Err(Error::OutOfRange { .. })));
    assert!(matches!(a.function.poll_request(listener), Err(Error::WrongState { .. })));
    assert!(matches!(a.function.disconnect(a.qp), Err(Error::WrongState { .. })));
    let long = [0; 257];
    let to = Address::new(1, 0, 1);
    let refused = a.function.start_connect(a.qp, to, &long, LONG).unwrap_err();
    assert!(matches!(refused, Error::TooLong { length: 257, maximum: 256, .. }));
    let channel = a.function.open_channel(1, &QueuePairOptions::new(a.cq)).unwrap();
    assert!(matches!(
        a.function.start_connect(channel, to, b"", LONG),
        Err(Error::WrongState { .. })
    ));
    a.function.start_connect(a.qp, to, b"", LONG).unwrap();
    assert!(matches!(a.function.start_connect(a.qp, to, b"", LONG), Err(Error::WrongState { .. })));
    a.function.disconnect(a.qp).unwrap();
    b.function.stop_listening(listener).unwrap();
    assert!(matches!(b.function.poll_request(listener), Err(Error::WrongState { .. })));
}

/// A hundred queue pairs connect to one listener at once, and all succeed.
#[test]
fn many_requests_at_once_are_all_served() {
    let mut world = World::pair();
    let (a, b) = world.both();
    let listener = b.function.listen(1).unwrap();
    let to = Address::new(1, 0, 1);
    let pairs: Vec<QueuePair> = (0..100)
        .map(|_| a.function.create_queue_pair(&QueuePairOptions::new(a.cq)).unwrap())
        .collect();
    for &pair in &pairs {
        a.function.start_connect(pair, to, b"", LONG).unwrap();
    }
    let mut served = 0;
    while served < 100 {
        a.function.progress().unwrap();
        if let Some(request) = b.function.poll_request(listener).unwrap() {
            let pair = b.function.create_queue_pair(&QueuePairOptions::new(b.cq)).unwrap();
            b.function.accept(request, pair, b"").unwrap();
            served += 1;
        }
    }
    world.settle();
    let connected = |&pair: &QueuePair| {
        let state = world.sides[0].function.query(pair).unwrap();
        matches!(state.connection, ConnectionState::Connected { .. })
    };
    assert!(pairs.iter().all(connected));
}

/// Messages that the accepting side posts at once do not overtake its acceptance, even on a full
/// link.
#[test]
fn nothing_overtakes_an_acceptance() {
    for noise in 1..30 {
        let options = FabricOptions { link_packets: 1, busy_every: 3, ..FabricOptions::default() };
        let mut world = World::new(options, 2);
        let to = world.sides[0].address();
        let (a, b) = world.both();
        let listener = b.function.listen(1).unwrap();
        a.function.start_connect(a.qp, Address::new(1, 0, 1), b"", LONG).unwrap();
        (0..4).for_each(|number| a.receive(8, number));
        world.settle();
        let (_, b) = world.both();
        let request = b.function.poll_request(listener).unwrap().unwrap();
        // Its other queue pair fills the link first.
        let other = b.function.create_queue_pair(&QueuePairOptions::new(b.cq)).unwrap();
        for _ in 0..noise {
            b.function.post_send(other, Message::inline(b"noise").to(to)).unwrap();
        }
        b.function.accept(request, b.qp, b"").unwrap();
        for number in 0..4 {
            // The link may have room again here.
            world.sides[0].turn();
            let (_, b) = world.both();
            b.function.post_send(b.qp, Message::inline(&[number])).unwrap();
        }
        world.settle();
        let received = world.sides[0].take_all(Operation::Receive);
        assert_eq!(received.into_iter().map(bytes).collect::<Vec<_>>(), [[0], [1], [2], [3]]);
        world.check_counters();
    }
}

/// Asks side `to` for a connection of a new queue pair of side `from`.
fn ask(world: &mut World, from: usize, to: u32, listener: u32) -> QueuePair {
    let side = &mut world.sides[from];
    let pair = side.function.create_queue_pair(&QueuePairOptions::new(side.cq)).unwrap();
    side.function.start_connect(pair, Address::new(to, 0, listener), b"", LONG).unwrap();
    pair
}

/// A request whose link ends before the answer is made again, over a new link. The end of another
/// link repeats nothing.
#[test]
fn a_request_outlives_its_link() {
    let mut world = World::new(FabricOptions::default(), 3);
    let addresses = [0, 1, 2].map(|node| FunctionAddress { node, function: 0 });
    let listener = world.sides[1].function.listen(5).unwrap();
    let third = world.sides[2].address();
    world.sides[0].send(third, b"link", 0);
    ask(&mut world, 0, 1, 5);
    world.settle();
    world.fabric.cut(addresses[0], addresses[2], Status::PeerGone);
    world.settle();
    // Longer than until a request is made again.
    std::thread::sleep(Duration::from_millis(8));
    world.settle();
    let b = &mut world.sides[1];
    assert!(b.function.next_request(listener).unwrap().is_some());
    assert!(b.function.next_request(listener).unwrap().is_none(), "it was asked once");

    world.fabric.cut(addresses[0], addresses[1], Status::PeerGone);
    let since = Instant::now();
    let request = loop {
        std::thread::sleep(Duration::from_millis(1));
        world.turn();
        if let Some(request) = world.sides[1].function.next_request(listener).unwrap() {
            break request;
        }
        assert!(since.elapsed() < LONG, "it is not asked again");
    };
    let b = &mut world.sides[1];
    b.function.accept(request, b.qp, b"").unwrap();
    world.settle();
    assert!(matches!(world.sides[1].state().connection, ConnectionState::Connected { .. }));
}

/// An acceptance of a request that was given up connects nothing, though the same queue pair has
/// asked again meanwhile.
#[test]
fn an_answer_belongs_to_its_request() {
    let mut world = World::pair();
    let (a, b) = world.both();
    let listener = b.function.listen(5).unwrap();
    let to = Address::new(1, 0, 5);
    a.function.start_connect(a.qp, to, b"first", LONG).unwrap();
    a.function.disconnect(a.qp).unwrap();
    // A queue pair whose connection ended asks again.
    a.function.start_connect(a.qp, to, b"second", LONG).unwrap();
    world.settle();
    let b = &mut world.sides[1];
    let first = b.function.next_request(listener).unwrap().expect("it was sent");
    let second = b.function.next_request(listener).unwrap().expect("it was sent");
    assert_eq!(
        (&first.private_data[..], &second.private_data[..]),
        (&b"first"[..], &b"second"[..])
    );
    let other = b.function.create_queue_pair(&QueuePairOptions::new(b.cq)).unwrap();
    b.function.accept(first, other, b"late").unwrap();
    world.settle();
    assert!(matches!(world.sides[0].state().connection, ConnectionState::Connecting { .. }));
    let (a, b) = world.both();
    let refused = b.function.query(other).unwrap().connection;
    assert_eq!(refused, ConnectionState::Disconnected { why: Status::PeerGone });
    b.function.accept(second, b.qp, b"in time").unwrap();
    a.function.progress().unwrap();
    let outcome = a.function.poll_connection(a.qp).unwrap();
    assert_eq!(outcome, ConnectionProgress::Connected(b"in time".to_vec()));
    assert_eq!(a.state().connection, ConnectionState::Connected { peer: b.address() });
}

/// A queue pair with something posted neither asks nor accepts.
#[test]
fn a_busy_queue_pair_is_not_connected() {
    let mut world = World::pair();
    let (from, to) = (world.sides[0].address(), world.sides[1].address());
    world.fabric.hold_requests(Some(from.function_address()));
    let a = &mut world.sides[0];
    a.send(to, b"waits", 1);
    let busy = a.function.start_connect(a.qp, to, b"", LONG).unwrap_err();
    assert!(matches!(busy, Error::WrongState { state: "busy", .. }), "{busy}");
    world.fabric.hold_requests(None);
    world.settle();
    connect(&mut world);
}

/// A listener keeps 64 requests. The peer of a further one is told to ask again.
#[test]
fn a_listener_keeps_a_bounded_number_of_requests() {
    let mut world = World::new(FabricOptions { link_packets: 100, ..Default::default() }, 2);
    let listener = world.sides[1].function.listen(5).unwrap();
    for _ in 0..66 {
        ask(&mut world, 0, 1, 5);
    }
    world.sides[0].function.progress().unwrap();
    let b = &mut world.sides[1];
    // One call takes as many packets as there can be requests.
    b.function.progress().unwrap();
    b.function.progress().unwrap();
    assert_eq!(b.function.counters().function.connections_refused, 2);
    let kept = std::iter::from_fn(|| b.function.next_request(listener).unwrap());
    assert_eq!(kept.count(), 64);
}

/// The requests of a peer go with its link, and no others. An answer to one of them says that
/// nobody is there.
#[test]
fn requests_go_with_their_peer() {
    let mut world = World::new(FabricOptions::default(), 3);
    let listener = world.sides[1].function.listen(5).unwrap();
    ask(&mut world, 0, 1, 5);
    ask(&mut world, 0, 1, 5);
    world.settle();
    let b = &mut world.sides[1];
    let taken = [(); 2].map(|()| b.function.next_request(listener).unwrap().expect("it was sent"));
    ask(&mut world, 0, 1, 5);
    ask(&mut world, 2, 1, 5);
    world.settle();
    drop(world.sides.remove(0));
    world.settle();
    let b = &mut world.sides[0];
    let left = b.function.next_request(listener).unwrap().expect("the other peer's");
    assert_eq!(left.peer.node, 2);
    assert!(b.function.next_request(listener).unwrap().is_none());
    // A new link has the number of the one that ended.
    let to = b.address();
    world.sides.push(Side::new(&world.fabric, 60, &FunctionOptions::default()));
    world.sides[2].send(to, b"link", 0);
    world.settle();
    let b = &mut world.sides[0];
    let [first, second] = taken;
    assert!(matches!(b.function.reject(first, b""), Err(Error::Unreachable { .. })));
    assert!(matches!(b.function.accept(second, b.qp, b""), Err(Error::Unreachable { .. })));
    assert_eq!(b.state().connection, ConnectionState::Unconnected);
}

/// A connection lasts while links to others end.
#[test]
fn the_end_of_another_link_ends_no_connection() {
    let mut world = World::new(FabricOptions::default(), 3);
    let third = world.sides[2].address();
    world.sides[0].send(third, b"link", 0);
    connect(&mut world);
    let own = world.sides[0].address().function_address();
    world.fabric.cut(own, third.function_address(), Status::PeerGone);
    world.settle();
    for side in &world.sides[..2] {
        assert!(matches!(side.state().connection, ConnectionState::Connected { .. }));
    }
}

/// A request that is given up has no outcome, and others go on until their deadline.
#[test]
fn giving_up_one_request_keeps_the_others() {
    let mut world = World::pair();
    let to = Address::new(1, 0, 9);
    let a = &mut world.sides[0];
    let other = a.function.create_queue_pair(&QueuePairOptions::new(a.cq)).unwrap();
    for pair in [a.qp, other] {
        a.function.start_connect(pair, to, b"", SHORT).unwrap();
    }
    a.function.disconnect(other).unwrap();
    assert!(matches!(a.function.poll_connection(other), Err(Error::WrongState { .. })));
    assert!(matches!(failure(a), Error::Unreachable { .. }));
    assert_eq!(a.state().connection, ConnectionState::Unconnected);
}

/// A request is sent again when its link is lost, and not when another one is.
#[test]
fn a_request_is_repeated_when_its_link_is_lost() {
    let mut world = World::new(FabricOptions::default(), 3);
    let [a, b, c] = [0, 1, 2].map(|side: usize| world.sides[side].address().function_address());
    let third = world.sides[2].address();
    world.sides[0].send(third, b"link", 0);
    world.settle();
    let listener = world.sides[1].function.listen(4).unwrap();
    let first = &mut world.sides[0];
    first.function.start_connect(first.qp, Address::new(1, 0, 4), b"", LONG).unwrap();
    let requests = |world: &mut World, wanted: usize| {
        let (since, mut count) = (Instant::now(), 0);
        // At least for some times the delay after which a request is sent again.
        while since.elapsed() < SHORT || (count < wanted && since.elapsed() < LONG) {
            world.turn();
            count += usize::from(world.sides[1].function.next_request(listener).unwrap().is_some());
        }
        count
    };
    assert_eq!(requests(&mut world, 1), 1);
    world.fabric.cut(a, c, Status::PeerGone);
    assert_eq!(requests(&mut world, 0), 0, "another link");
    world.fabric.cut(a, b, Status::PeerGone);
    assert_eq!(requests(&mut world, 1), 1);
}

/// A program may give a request up. Those of other queue pairs go on.
#[test]
fn a_request_may_be_given_up() {
    let mut world = World::new(FabricOptions::default(), 1);
    let a = &mut world.sides[0];
    let other = a.function.create_queue_pair(&QueuePairOptions::new(a.cq)).unwrap();
    let nobody = Address::new(77, 0, 1);
    a.function.start_connect(a.qp, nobody, b"", LONG).unwrap();
    a.function.start_connect(other, nobody, b"", SHORT).unwrap();
    a.function.disconnect(a.qp).unwrap();
    assert!(matches!(a.function.poll_connection(a.qp), Err(Error::WrongState { .. })));
    let since = Instant::now();
    let ended = loop {
        match a.function.poll_connection(other) {
            Ok(ConnectionProgress::Waiting) => assert!(since.elapsed() < LONG, "it never ends"),
            ended => break ended,
        }
    };
    assert!(matches!(ended, Err(Error::Unreachable { .. })), "{ended:?}");
    a.function.start_connect(a.qp, nobody, b"", SHORT).unwrap();
}

/// A request whose link has ended cannot be accepted on the next link of the same number.
#[test]
fn a_request_belongs_to_its_link() {
    let mut world = World::new(FabricOptions::default(), 3);
    let [a, b] = [0, 1].map(|side: usize| world.sides[side].address().function_address());
    let listener = world.sides[1].function.listen(4).unwrap();
    let first = &mut world.sides[0];
    first.function.start_connect(first.qp, Address::new(1, 0, 4), b"", LONG).unwrap();
    world.settle();
    let request = world.sides[1].function.poll_request(listener).unwrap().expect("a request");
    let first = &mut world.sides[0];
    first.function.destroy_queue_pair(first.qp).unwrap();
    world.fabric.cut(a, b, Status::PeerGone);
    for _ in 0..10 {
        world.sides[1].turn();
    }
    let third = &mut world.sides[2];
    third.function.start_connect(third.qp, Address::new(1, 0, 4), b"", LONG).unwrap();
    for _ in 0..10 {
        world.sides[2].turn();
        world.sides[1].turn();
    }
    let it = &mut world.sides[1];
    let next = it.function.next_request(listener).unwrap().expect("the next link is there");
    assert_eq!(next.peer.node, 2);
    let accepted = it.function.accept(request, it.qp, b"");
    assert!(matches!(accepted, Err(Error::Unreachable { .. })), "{accepted:?}");
}

/// A put on a connection raises events at its peer only.
#[test]
fn a_connection_raises_events_at_its_peer_only() {
    let mut world = World::pair();
    connect(&mut world);
    let b = &mut world.sides[1];
    let other = b.function.create_queue_pair(&QueuePairOptions::new(b.cq)).unwrap();
    let region = b.function.allocate_region(8, Rights::REMOTE_WRITE).unwrap();
    let put = |to: QueuePair| Put::new(vec![1; 8], region.remote_key()).event(to.number, Some(5));
    let (near, far) = (put(b.qp), put(other));
    let a = &mut world.sides[0];
    refuses!(a.function.post_put(a.qp, far), Error::BadDestination(_));
    a.function.post_put(a.qp, near).unwrap();
    world.settle();
    assert_eq!(world.sides[0].take().status, Status::Success);
    let event = world.sides[1].take();
    assert_eq!((event.operation, event.immediate()), (Operation::RemotePut, Some(5)));
    assert_eq!(world.sides[1].state().counters.events_received, 1);
}
