//! Messages that wait for those that follow at once (`Endpoint::send_more`).

mod world;

use bellwire::{FunctionAddress, Rights, Status};
use bellwire_tagged::*;
use bellwire_testkit::loopback::FabricOptions;
use world::{Side, World, any, message, pattern, span, token};

fn at(node: u32) -> FunctionAddress {
    FunctionAddress { node, function: 0 }
}

/// Sends a message from the first side. `more`: others follow at once.
fn send(world: &mut World, to: u32, bytes: &mut [u8], more: bool) -> Result<SendStatus, PostError> {
    let (to, body) = (world.peer(0, to), span(bytes).into());
    let endpoint = &mut world.sides[0].endpoint;
    match more {
        true => endpoint.send_more(message(to, 1, &body, 0)),
        false => endpoint.send(message(to, 1, &body, 0)),
    }
}

/// Sends a message that has room, which counts as sent at once.
fn sends(world: &mut World, to: u32, bytes: &mut [u8], more: bool) {
    assert_eq!(send(world, to, bytes, more).unwrap(), SendStatus::Complete);
}

/// The first side has met the others.
fn met(options: FabricOptions, sides: u32) -> World {
    let mut world = World::new(options, sides);
    for to in 1..sides {
        // The second one finds the way to the link.
        for _ in 0..2 {
            sends(&mut world, to, &mut [0; 8], false);
            assert_eq!(come(&mut world, to as usize).len(), 1);
        }
    }
    world
}

/// The messages that have come to a side, in order.
fn come(world: &mut World, at: usize) -> Vec<Vec<u8>> {
    world.settle();
    let count = world.sides[at].endpoint.unexpected();
    let longest = if count > 100 { 8 } else { 200_000 };
    let mut messages = vec![vec![0; longest]; count];
    for (into, context) in messages.iter_mut().zip(100..) {
        world.receive(at, any(1), into, context);
    }
    world.settle();
    for (message, context) in messages.iter_mut().zip(100..) {
        let done = world.done(at, context);
        assert_eq!(done.outcome, Outcome::Success);
        message.truncate(done.length);
    }
    world.sides[at].done.clear();
    messages
}

/// Short messages wait, and go in one packet with the next one that nothing follows.
#[test]
fn messages_that_belong_together_share_a_packet() {
    let mut world = met(FabricOptions::default(), 2);
    for round in 0..2 {
        for number in 0..5 {
            sends(&mut world, 1, &mut [number; 3], true);
            assert_eq!(world.fabric.packets_towards(at(1)), 0, "round {round}");
        }
        sends(&mut world, 1, &mut [5; 3], false);
        assert_eq!(world.fabric.packets_towards(at(1)), 1, "round {round}");
        assert_eq!(come(&mut world, 1), [0, 1, 2, 3, 4, 5].map(|number| vec![number; 3]));
    }
}

/// A kilobyte of them leaves without an end.
#[test]
fn few_bytes_wait() {
    let mut world = met(FabricOptions::default(), 2);
    let mut waiting = 0;
    while world.fabric.packets_towards(at(1)) == 0 {
        sends(&mut world, 1, &mut [7; 8], true);
        waiting += 1;
        assert!(waiting < 100, "they wait");
    }
    // A record has 28 bytes. The last message waits on.
    assert_eq!(waiting, 1024 / 28 + 1);
    assert_eq!(come(&mut world, 1), vec![vec![7; 8]; waiting]);
}

/// Where each message has a packet of its own, the device holds the packets: beyond a kilobyte too,
/// until one comes that nothing follows, or the program makes progress.
#[test]
fn packets_of_their_own_wait_too() {
    let mut world = met(FabricOptions { holds: true, ..FabricOptions::default() }, 2);
    for ends in [true, false] {
        for number in 0..50 {
            sends(&mut world, 1, &mut [number; 8], true);
        }
        assert_eq!(world.fabric.packets_towards(at(1)), 0, "they wait");
        match ends {
            true => sends(&mut world, 1, &mut [50; 8], false),
            false => _ = world.sides[0].endpoint.progress(&mut |_| ()).unwrap(),
        }
        let count = 50 + u8::from(ends);
        assert_eq!(world.fabric.packets_towards(at(1)), usize::from(count));
        let due: Vec<_> = (0..count).map(|number| vec![number; 8]).collect();
        assert_eq!(come(&mut world, 1), due);
    }
}

/// A message of 248 bytes waits. A longer one leaves at once. So does one of several parts, one
/// with data, and one whose delivery is awaited. Those before them leave first.
#[test]
fn others_leave_at_once() {
    let mut world = met(FabricOptions::default(), 2);
    let (to, towards) = (world.peer(0, 1), |world: &World| world.fabric.packets_towards(at(1)));
    let (mut before, mut short, mut long) = ([1_u8; 8], [2; 248], [3; 249]);
    sends(&mut world, 1, &mut short, true);
    assert_eq!(towards(&world), 0, "it waits");
    assert_eq!(come(&mut world, 1), [short.to_vec()]);

    let short = span(&mut short);
    let parts = Spans::of(&[short, short]);
    for (number, body) in [(0, Spans::from(span(&mut long))), (1, parts), (2, short.into())] {
        for (data, mode) in [(Some(5), SendMode::Transmit), (None, SendMode::Delivery)] {
            let plain = message(to, 1, &body, 9);
            let sent = match number {
                2 => TaggedMessage { data, mode, ..plain },
                _ => plain,
            };
            sends(&mut world, 1, &mut before, true);
            assert_eq!(towards(&world), 0, "it waits");
            let _status = world.sides[0].endpoint.send_more(sent).unwrap();
            assert_eq!(towards(&world), 2, "{number} {mode:?}");
            let came = come(&mut world, 1);
            assert_eq!((came.len(), &came[0], came[1].len()), (2, &vec![1; 8], body.len()));
        }
    }
}

/// A message to another peer ends their wait.
#[test]
fn another_receiver_lets_them_go() {
    let mut world = met(FabricOptions::default(), 3);
    let towards = |world: &World| [1, 2].map(|node| world.fabric.packets_towards(at(node)));
    (0..2).for_each(|number| sends(&mut world, 1, &mut [number; 8], true));
    sends(&mut world, 2, &mut [2; 8], true);
    assert_eq!(towards(&world), [1, 0], "the last one waits");
    sends(&mut world, 1, &mut [3; 8], false);
    assert_eq!(towards(&world), [2, 1]);
    assert_eq!(come(&mut world, 1), [0, 1, 3].map(|number| vec![number; 8]));
    assert_eq!(come(&mut world, 2), [vec![2; 8]]);
}

/// Without a message that ends them, they leave by progress, or before a sleep.
#[test]
fn they_leave_by_themselves() {
    let mut world = met(FabricOptions::default(), 2);
    for count in [1, 2] {
        (0..count).for_each(|_| sends(&mut world, 1, &mut [1; 8], true));
        let Side { endpoint, done } = &mut world.sides[0];
        assert!(endpoint.progress(&mut |one| done.push(one)).unwrap() > 0);
        assert_eq!(world.fabric.packets_towards(at(1)), 1);
        assert_eq!(come(&mut world, 1).len(), count);
        (0..count).for_each(|_| sends(&mut world, 1, &mut [2; 8], true));
        world.sides[0].endpoint.arm().unwrap();
        assert_eq!(world.fabric.packets_towards(at(1)), 1);
        assert_eq!(come(&mut world, 1).len(), count);
    }
}

/// They leave before their endpoint closes.
#[test]
fn they_leave_at_the_end() {
    let mut world = met(FabricOptions::default(), 2);
    (0..3).for_each(|number| sends(&mut world, 1, &mut [number; 8], true));
    drop(world.sides.remove(0));
    assert_eq!(come(&mut world, 0), [0, 1, 2].map(|number| vec![number; 8]));
}

/// Nothing overtakes them, however it travels.
#[test]
fn messages_of_all_lengths_keep_their_order() {
    let lengths = [3, 200_000, 300, 0, 248, 249, 5, 50_000, 7, 8];
    for direct in [true, false] {
        let mut world =
            met(FabricOptions { direct_brought: direct, ..FabricOptions::default() }, 2);
        let numbered = lengths.iter().zip(1..);
        let mut bodies: Vec<_> = numbered.map(|(&length, seed)| pattern(length, seed)).collect();
        for body in &mut bodies {
            while let Err(refused) = send(&mut world, 1, body, true) {
                assert!(matches!(refused, PostError::Again), "{refused:?}");
                world.turn();
            }
        }
        assert!(come(&mut world, 1) == bodies, "{direct}");
    }
}

/// An access to the peer's memory ends their wait.
#[test]
fn an_access_lets_them_go() {
    let mut world = met(FabricOptions::default(), 2);
    let mut memory = vec![0; 8];
    world.sides[1].endpoint.expose(4, span(&mut memory), Rights::REMOTE_WRITE).unwrap();
    sends(&mut world, 1, &mut [1; 8], true);
    let target = RemoteAddress { peer: world.peer(0, 1), key: 4, offset: 0 };
    let mut bytes = [3; 8];
    let body = span(&mut bytes).into();
    let Side { endpoint, done } = &mut world.sides[0];
    endpoint.write(target, &body, None, true, token(6), &mut |one| done.push(one)).unwrap();
    // The question for the key goes behind the message.
    assert_eq!(world.fabric.packets_towards(at(1)), 2);
    assert_eq!(come(&mut world, 1), [vec![1; 8]]);
    assert_eq!(world.done(0, 6).outcome, Outcome::Success);
    assert_eq!(memory, [3; 8]);
}

/// They wait for room in bounded number, without delay for other peers, and leave when there is
/// some.
#[test]
fn a_peer_without_room_delays_no_other() {
    let mut world = met(FabricOptions { link_packets: 1, ..FabricOptions::default() }, 3);
    let count = fill(&mut world);
    sends(&mut world, 2, &mut [3; 8], false);
    sends(&mut world, 2, &mut [4; 8], true);
    assert!(!world.sides[0].endpoint.arm().unwrap(), "they wait");
    assert_eq!(come(&mut world, 2), [vec![3; 8], vec![4; 8]]);
    let came = come(&mut world, 1);
    assert_eq!(came.len(), count);
    assert!(came.iter().rev().take(1024 / 28).all(|bytes| *bytes == [2; 8]));
}

/// They are lost with their link. The next send reports that, and the one behind it succeeds.
#[test]
fn lost_ones_are_reported() {
    let mut world = met(FabricOptions { link_packets: 1, ..FabricOptions::default() }, 2);
    fill(&mut world);
    world.fabric.cut(at(0), at(1), Status::PeerGone);
    world.settle();
    let lost = send(&mut world, 1, &mut [3; 8], true);
    assert!(matches!(lost, Err(PostError::Lost(Status::PeerGone))), "{lost:?}");
    sends(&mut world, 1, &mut [4; 8], true);
    let came = come(&mut world, 1);
    assert_eq!(came.last(), Some(&vec![4; 8]));
    assert!(!came.contains(&vec![2; 8]) && !came.contains(&vec![3; 8]), "{}", came.len());
}

/// Those for one peer stay when another is lost.
#[test]
fn those_for_others_are_not_lost() {
    let mut world = met(FabricOptions { link_packets: 1, ..FabricOptions::default() }, 3);
    assert!(!world.sides[0].endpoint.has_held());
    let count = fill(&mut world);
    assert!(world.sides[0].endpoint.has_held());
    // The second one has no room, so the end of its link is noticed.
    (0..2).for_each(|_| sends(&mut world, 2, &mut [3; 8], false));
    world.fabric.cut(at(0), at(2), Status::PeerGone);
    let Side { endpoint, done } = &mut world.sides[0];
    endpoint.progress(&mut |one| done.push(one)).unwrap();
    assert_eq!(come(&mut world, 1).len(), count);
}

/// Sends to the second side until it has no room. Then a kilobyte waits. Returns the number.
fn fill(world: &mut World) -> usize {
    let mut count = 0;
    for more in [false, true] {
        let before = count;
        while let Ok(sent) = send(world, 1, &mut [1 + u8::from(more); 8], more) {
            assert_eq!(sent, SendStatus::Complete);
            count += 1;
        }
        assert!(!more || count - before == 1024 / 28, "{count}");
    }
    assert!(matches!(send(world, 1, &mut [9; 8], false), Err(PostError::Again)));
    count
}
