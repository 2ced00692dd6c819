//! Messages longer than a packet.

use crate::world::*;
use bellwire::*;

/// Every way in which a long message can travel: long and short packets, direct memory or not,
/// pending accesses and busy links or not.
pub fn ways() -> impl Iterator<Item = FabricOptions> {
    (0..8).map(|way| FabricOptions {
        packet_bytes: if way & 1 == 0 { 1024 } else { 64 },
        link_packets: if way & 1 == 0 { 64 } else { 2 },
        direct_brought: way & 2 == 0,
        direct_allocated: way & 2 == 0,
        pending_every: if way & 4 == 0 { 0 } else { 3 },
        busy_every: if way & 4 == 0 { 0 } else { 4 },
        ..FabricOptions::default()
    })
}

/// Messages of many lengths, from a vector and from a region, arrive whole and in order on every
/// fabric. Each side gets its buffers back.
// shows: C-53, H-25
#[test]
fn long_messages_arrive_on_every_way() {
    for options in ways() {
        let mut world = World::new(options, 2);
        let to = world.sides[1].address();
        let lengths = [1025, 5000, 65, 1, 700_000, 0, 4096, 300_000];
        for rights in [Rights::empty(), Rights::REMOTE_READ] {
            let region = world.sides[0].function.allocate_region(1 << 20, rights).unwrap();
            for (number, &length) in lengths.iter().enumerate() {
                world.sides[1].receive(length, number as u64);
                let sent = pattern(length, number as u64);
                let a = &mut world.sides[0];
                let send = if number % 2 == 0 {
                    Message::buffer(sent)
                } else {
                    region.write(10_000 * number, &sent);
                    Message::buffer(region.slice(10_000 * number, length))
                };
                a.function.post_send(a.qp, send.to(to).immediate(number as u64)).unwrap();
                if number % 3 == 0 {
                    world.settle();
                }
            }
            world.settle();
            for (number, &length) in lengths.iter().enumerate() {
                let received = world.sides[1].take();
                assert_eq!((received.status, received.length), (Status::Success, length));
                assert_eq!(received.immediate(), Some(number as u64));
                assert!(bytes(received) == pattern(length, number as u64));
            }
            let sent = world.sides[0].take_all(Operation::Send);
            assert_eq!(sent.len(), lengths.len());
            for sent in sent {
                assert_eq!(sent.status, Status::Success);
                if let Some(back) = sent.buffer.as_ref().and_then(Buffer::as_slice) {
                    assert_eq!(back.len(), sent.length, "the vector comes back whole");
                }
            }
            world.sides[0].function.deregister(region).unwrap();
        }
        world.check_counters();
        assert_eq!(world.fabric.exports(world.sides[0].function.address()), 0, "no loan is left");
    }
}

/// A short message behind a long one completes after it at the receiver, although it arrives
/// before. A message of another sender does not wait.
#[test]
fn a_short_message_does_not_overtake_a_long_one() {
    let options = FabricOptions { packet_bytes: 64, link_packets: 1, ..by_packets() };
    let mut world = World::new(options, 3);
    let to = world.sides[1].address();
    (0..3).for_each(|number| world.sides[1].receive(100_000, number));
    world.sides[0].send(to, &pattern(100_000, 1), 1);
    world.sides[0].send(to, b"short", 2);
    let mut early = None;
    for _ in 0..200 {
        world.turn();
        if world.sides[1].state().counters.messages_unfinished == 1 {
            if early.is_none() {
                world.sides[2].send(to, b"other", 3);
                early = Some(());
            }
            if !world.sides[1].done.is_empty() {
                break;
            }
        }
    }
    assert_eq!(world.sides[1].done.len(), 1, "the other sender's message did not wait");
    assert_eq!(bytes(world.sides[1].take()), b"other");
    world.settle();
    let received = world.sides[1].take_all(Operation::Receive);
    assert_eq!(received.iter().map(|one| one.length).collect::<Vec<_>>(), [100_000, 5]);
    world.check_counters();
}

/// A receive that is too short for a long message fetches only the bytes that fit, and both sides
/// report it.
#[test]
fn a_short_receive_fetches_what_fits() {
    for options in ways() {
        for room in [0, 1, 2000] {
            let mut world = World::new(options.clone(), 2);
            let to = world.sides[1].address();
            world.sides[1].receive(room, 1);
            world.sides[0].send(to, &pattern(9000, 1), 1);
            world.settle();
            let received = world.sides[1].take();
            assert_eq!((received.status, received.length), (Status::Truncated, room));
            assert!(bytes(received) == pattern(9000, 1)[..room]);
            let sent = world.sides[0].take();
            assert_eq!((sent.status, sent.length), (Status::Truncated, room));
            assert_eq!(sent.buffer.unwrap().len(), 9000);
        }
    }
}

/// More long messages than may be in flight are accepted, wait, and arrive.
// shows: C-33
#[test]
fn more_than_the_window_waits() {
    let options = FunctionOptions::default().outstanding(2);
    for fabric in ways() {
        let mut world = World::with(fabric, 2, &options);
        let to = world.sides[1].address();
        for number in 0..20 {
            world.sides[0].send(to, &pattern(3000, number), number);
        }
        world.settle();
        assert_eq!(world.sides[0].state().posted_sends, 20);
        assert!(world.sides[1].state().backlog_messages <= 2, "two offers, no more");
        for number in 0..20 {
            world.sides[1].receive(3000, number);
        }
        world.settle();
        for number in 0..20 {
            assert!(bytes(world.sides[1].take()) == pattern(3000, number));
        }
        world.check_counters();
    }
}

/// Without a free key the bytes travel as packets, without a visible difference.
#[test]
fn without_a_free_key_packets_do() {
    let mut world = World::new(FabricOptions { regions: 1, ..FabricOptions::default() }, 2);
    let to = world.sides[1].address();
    let region = world.sides[0].function.allocate_region(8, Rights::empty()).unwrap();
    assert!(matches!(
        world.sides[0].function.allocate_region(8, Rights::empty()),
        Err(Error::Exhausted { what: "memory regions", .. })
    ));
    world.sides[1].receive(5000, 1);
    world.sides[0].send(to, &pattern(5000, 1), 1);
    world.settle();
    assert!(bytes(world.sides[1].take()) == pattern(5000, 1));
    drop(region);
}

/// A long message that its receive cannot hold is counted as received, truncated and failed.
#[test]
fn a_truncated_long_message_is_counted() {
    for options in ways() {
        let mut world = World::new(options, 2);
        let to = world.sides[1].address();
        world.sides[1].receive(2_000, 1);
        world.sides[1].receive(5_000, 2);
        world.sides[0].send(to, &pattern(5_000, 1), 3);
        world.sides[0].send(to, &pattern(5_000, 2), 4);
        world.sides[1].receive(5_000, 3);
        world.sides[0].send(to, &pattern(5_000, 3), 5);
        world.settle();
        let state = world.sides[1].state();
        let counters = state.counters;
        assert_eq!((counters.messages_received, counters.bytes_received), (3, 12_000));
        assert_eq!((counters.messages_truncated, counters.receives_failed), (1, 1));
        assert_eq!(state.last_error, Some(Status::Truncated));
        let short = world.sides[1].take();
        assert_eq!((short.status, short.length), (Status::Truncated, 2_000));
        assert!(bytes(short) == pattern(5_000, 1)[..2_000]);
        assert!(bytes(world.sides[1].take()) == pattern(5_000, 2));
        let sent = world.sides[0].take_all(Operation::Send);
        let is_short = |done: &&Completion| done.status == Status::Truncated;
        assert_eq!((sent.len(), sent.iter().filter(is_short).count()), (3, 1));
        world.check_counters();
    }
}
