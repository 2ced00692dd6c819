//! The calls that are done at once or change nothing, which libraries above build on.

use crate::world::*;
use bellwire::*;
use bellwire_ring::memory::View;

/// A pair with a link, and memory of the second side.
fn linked(rights: Rights) -> (World, MemoryRegion) {
    let mut world = World::pair();
    let region = world.sides[1].function.allocate_region(4096, rights).unwrap();
    let to = world.sides[1].address();
    // The first finds no link, and the second remembers it.
    for _ in 0..2 {
        world.sides[1].receive(8, 0);
        world.sides[0].send(to, b"link", 0);
        world.settle();
    }
    world.sides.iter_mut().for_each(|side| side.done.clear());
    (world, region)
}

/// A put at once writes exactly its bytes and has no completion, from one byte to the longest
/// message.
#[test]
fn a_put_at_once_is_there_when_it_returns() {
    let (mut world, region) = linked(Rights::REMOTE_WRITE);
    let a = &mut world.sides[0];
    let longest = a.function.limits().eager_bytes;
    for length in [1, 8, longest] {
        region.write(0, &[0; 4096]);
        let to = region.remote_key().slice(5, length as u64);
        assert!(a.function.put_at_once(a.qp, &pattern(length, 1), &to), "{length} bytes");
        let mut expected = vec![0; 4096];
        expected[5..5 + length].copy_from_slice(&pattern(length, 1));
        assert!(part(&region, 0, 4096) == expected, "{length} bytes");
    }
    let counters = a.state().counters;
    assert_eq!((counters.sends_posted, counters.sends_completed), (5, 5));
    world.settle();
    assert!(world.sides.iter().all(|side| side.done.is_empty()));
    world.check_counters();
}

/// A put that is not possible at once is not done at all: bad sizes and bounds, a key of nobody,
/// another function's memory, a queue pair that is gone, and anything behind what waits.
#[test]
fn a_put_that_cannot_be_done_at_once_changes_nothing() {
    let (mut world, region) = linked(Rights::REMOTE_WRITE);
    let key = region.remote_key();
    let there = world.sides[1].address();
    let a = &mut world.sides[0];
    let longest = a.function.limits().eager_bytes;
    let strange = RemoteKey { node: 7, ..key };
    let guessed = RemoteKey { key: key.key ^ 1, ..key };
    for (length, to) in [
        (0, key.slice(0, 0)),
        (8, key.slice(0, 7)),
        (7, key.slice(0, 8)),
        (8, key.slice(4089, 8)),
        (longest + 1, key.slice(0, longest as u64 + 1)),
        (8, strange.slice(0, 8)),
        (8, guessed.slice(0, 8)),
    ] {
        assert!(!a.function.put_at_once(a.qp, &vec![1; length], &to), "{length} bytes to {to:?}");
    }
    let stale = a.function.create_queue_pair(&QueuePairOptions::new(a.cq)).unwrap();
    a.function.destroy_queue_pair(stale).unwrap();
    assert!(!a.function.put_at_once(stale, &[1; 8], &key.slice(0, 8)));

    // A message that waits goes first.
    let from = a.address().function_address();
    world.fabric.hold_requests(Some(from));
    let a = &mut world.sides[0];
    a.send(there, b"first", 1);
    assert!(!a.function.put_at_once(a.qp, &[1; 8], &key.slice(0, 8)));
    assert!(part(&region, 0, 4096) == [0; 4096]);
    world.fabric.hold_requests(None);
    world.settle();
    let a = &mut world.sides[0];
    assert!(a.function.put_at_once(a.qp, &[1; 8], &key.slice(0, 8)));
    world.check_counters();
}

/// On a connected queue pair a put at once reaches the peer's memory, and no other function's.
#[test]
fn a_connected_queue_pair_puts_at_once_to_its_peer_only() {
    let mut world = World::new(FabricOptions::default(), 3);
    let regions: Vec<MemoryRegion> = (1..3)
        .map(|side| world.sides[side].function.allocate_region(64, Rights::REMOTE_WRITE).unwrap())
        .collect();
    // There is a link to the third side, too.
    let third = world.sides[2].address();
    (0..2).for_each(|_| world.sides[0].send(third, b"link", 0));
    world.settle();
    world.sides[0].done.clear();
    crate::connection::connect(&mut world);
    let a = &mut world.sides[0];
    let [peer, other] = [0, 1].map(|place: usize| regions[place].remote_key().slice(8, 8));
    assert!(a.function.put_at_once(a.qp, &[3; 8], &peer));
    assert!(!a.function.put_at_once(a.qp, &[4; 8], &other));
    assert_eq!(part(&regions[0], 8, 8), [3; 8]);
    assert_eq!(part(&regions[1], 0, 64), [0; 64]);
    refuses!(a.function.post_put(a.qp, Put::new(vec![5; 8], other)), Error::BadDestination(_));
    // Its completion names the peer.
    let address = world.sides[1].address();
    let a = &mut world.sides[0];
    a.function.post_put(a.qp, Put::new(vec![6; 8], peer)).unwrap();
    let done = a.function.poll(a.cq).unwrap().expect("it is done at once");
    assert_eq!((done.peer, done.length), (address, 8));
    assert_eq!(done.buffer.expect("it comes back").into_vec().unwrap(), [6; 8]);
}

/// Signaled puts of all forms are done when the post returns, give their buffers back, and keep
/// to the room in the completion queue.
#[test]
fn puts_to_mapped_memory_complete_when_they_are_posted() {
    let (mut world, region) = linked(Rights::REMOTE_WRITE);
    let a = &mut world.sides[0];
    let small = a.function.create_completion_queue(1).unwrap();
    let pair = a.function.create_queue_pair(&QueuePairOptions::new(small)).unwrap();
    let own = a.function.allocate_region(64, Rights::empty()).unwrap();
    own.write(8, &[2; 8]);
    let key = region.remote_key();
    let long = vec![4; 1025];
    let puts = [
        Put::inline(&[1; 8], key.slice(0, 8)),
        Put::new(own.slice(8, 8), key.slice(8, 8)),
        Put::new(vec![3; 8], key.slice(16, 8)),
        Put::new(long, key.slice(24, 1025)),
    ];
    for (number, put) in puts.into_iter().enumerate() {
        let number = number as u64 + 1;
        a.function.post_put(pair, put.context(number)).unwrap();
        // The queue is full now, though nothing is in flight.
        let more = Put::inline(&[9; 8], key.slice(0, 8));
        refuses!(a.function.post_put(pair, more), Error::QueueFull { .. });
        assert!(a.function.put_at_once(pair, &[9], &key.slice(4000, 1)), "it needs no room");
        let done = a.function.next_completion(small).unwrap().expect("without any progress");
        assert_eq!((done.operation, done.context), (Operation::Put, number));
        assert_eq!(done.status, Status::Success);
        assert_eq!(done.buffer.is_some(), number > 1);
        assert_eq!(done.length, if number == 4 { 1025 } else { 8 });
    }
    assert_eq!(part(&region, 0, 24), [[1; 8], [2; 8], [3; 8]].concat());
    assert!(part(&region, 24, 1025) == [4; 1025]);
    let inline = vec![5; 1025];
    let put = Put::inline(&inline, key.slice(0, 1025));
    refuses!(a.function.post_put(pair, put), Error::TooLong { maximum: 1024, .. });
    assert_eq!(part(&region, 0, 8), [1; 8]);
    world.check_counters();
}

/// A message of two words and more goes at once if it can, as one message, and otherwise not at
/// all.
#[test]
fn a_message_goes_at_once_or_not_at_all() {
    let (mut world, _) = linked(Rights::empty());
    let to = world.sides[1].address();
    let body = pattern(100, 3);
    world.sides[1].receive(200, 1);
    let a = &mut world.sides[0];
    assert!(a.function.send_at_once(a.qp, [1, 2], View::of(&body), to));
    let longest = a.function.limits().eager_bytes - 16;
    let long = pattern(longest + 1, 1);
    assert!(!a.function.send_at_once(a.qp, [1, 2], View::of(&long), to), "one byte too long");
    let nowhere = Address::new(8, 0, 1);
    assert!(!a.function.send_at_once(a.qp, [1, 2], View::of(&body), nowhere), "no link");
    let closed = Address::new(1, 0, 9);
    assert!(!a.function.send_at_once(a.qp, [1, 2], View::of(&body), closed), "no queue pair");
    world.settle();
    let received = world.sides[1].take();
    assert_eq!(received.length, 116);
    assert_eq!(bytes(received), [&[1u64, 2].map(u64::to_le_bytes).concat()[..], &body].concat());
    assert!(world.sides[0].done.is_empty(), "it has no completion");
    assert_eq!(world.sides[0].state().counters.sends_posted, 3);

    // What waits goes first, on the same queue pair.
    let from = world.sides[0].address().function_address();
    world.fabric.hold_requests(Some(from));
    let a = &mut world.sides[0];
    a.send(to, b"first", 1);
    assert!(!a.function.send_at_once(a.qp, [1, 2], View::of(&body), to));
    world.fabric.hold_requests(None);
    assert!(!a.function.send_at_once(a.qp, [1, 2], View::of(&body), to));
    world.settle();
    let a = &mut world.sides[0];
    assert!(a.function.send_at_once(a.qp, [1, 2], View::of(&long[1..]), to));
    world.check_counters();
}
