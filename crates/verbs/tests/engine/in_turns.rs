//! What takes several turns: how much moves in each, what `progress` says of it, and how long a
//! program may sleep meanwhile.

use crate::world::*;
use bellwire::*;
use std::time::Duration;

/// Bytes that one direct transfer moves in one turn.
const SLICE: usize = 1 << 20;

/// How many of these bytes are not zero any more.
fn moved(region: &MemoryRegion, length: usize) -> usize {
    part(region, 0, length).iter().filter(|&&byte| byte != 0).count()
}

/// A long put moves a slice at its post and one in each turn, so that it does not hold others up.
/// Each turn says that it did something.
#[test]
fn a_long_put_moves_in_slices() {
    for (length, turns) in [(SLICE - 1, 0), (SLICE, 0), (SLICE + 1, 1), (2 * SLICE + 5, 2)] {
        for parts in [1, 2] {
            let mut world = World::pair();
            let region =
                world.sides[1].function.allocate_region(length, Rights::REMOTE_WRITE).unwrap();
            let link = Put::new(Vec::<u8>::new(), region.remote_key().slice(0, 0));
            let a = &mut world.sides[0];
            a.function.post_put(a.qp, link).unwrap();
            world.settle();
            world.sides[0].done.clear();

            let cut = length / parts;
            let sources: Vec<Vec<u8>> =
                (0..parts).map(|n| vec![7; if n == 0 { cut } else { length - cut }]).collect();
            let a = &mut world.sides[0];
            a.function.post_put(a.qp, Put::new(sources, region.remote_key())).unwrap();
            assert_eq!(moved(&region, length), length.min(SLICE));
            for turn in 1..=turns {
                assert!(a.function.next_completion(a.cq).unwrap().is_none(), "turn {turn}");
                assert_eq!(a.function.progress().unwrap(), 1, "turn {turn} of {length}");
                assert_eq!(moved(&region, length), length.min((turn + 1) * SLICE));
            }
            let done = a.function.next_completion(a.cq).unwrap().expect("all has moved");
            assert_eq!((done.status, done.length), (Status::Success, length));
            assert_eq!(a.function.progress().unwrap(), 0);
            assert_eq!(a.state().counters.put_bytes, length as u64);
        }
    }
}

/// The same for a long get.
#[test]
fn a_long_get_moves_in_slices() {
    for (length, turns) in [(SLICE, 0), (SLICE + 1, 1), (2 * SLICE + 5, 2)] {
        let mut world = World::pair();
        let region = world.sides[1].function.allocate_region(length, Rights::REMOTE_READ).unwrap();
        region.write(0, &pattern(length, 1));
        let a = &mut world.sides[0];
        let link = Get::new(region.remote_key().slice(0, 0), Vec::<u8>::new());
        a.function.post_get(a.qp, link).unwrap();
        world.settle();
        let a = &mut world.sides[0];
        a.done.clear();
        let (cut, rest) = (vec![0; length / 3], vec![0; length - length / 3]);
        a.function.post_get(a.qp, Get::new(region.remote_key(), vec![cut, rest])).unwrap();
        for turn in 1..=turns {
            assert!(a.function.next_completion(a.cq).unwrap().is_none(), "turn {turn}");
            assert_eq!(a.function.progress().unwrap(), 1, "turn {turn} of {length}");
        }
        let done = a.function.next_completion(a.cq).unwrap().expect("all has moved");
        assert_eq!((done.status, done.length), (Status::Success, length));
        let got: Vec<u8> =
            done.into_buffers().flat_map(|buffer| buffer.into_vec().unwrap()).collect();
        assert!(got == pattern(length, 1));
    }
}

/// Each of six long puts on queue pairs of their own moves a slice at its post. A turn then moves a
/// slice of four, and the others are first in the next turn.
#[test]
fn a_turn_moves_four_slices() {
    let mut world = World::pair();
    let b = &mut world.sides[1];
    let regions: Vec<MemoryRegion> = (0..6)
        .map(|_| b.function.allocate_region(4 * SLICE, Rights::REMOTE_WRITE).unwrap())
        .collect();
    let a = &mut world.sides[0];
    for region in &regions {
        let pair = a.function.create_queue_pair(&QueuePairOptions::new(a.cq)).unwrap();
        let put = Put::new(vec![7; 4 * SLICE], region.remote_key());
        a.function.post_put(pair, put).unwrap();
    }
    let mut slices = || -> Vec<usize> {
        a.function.progress().unwrap();
        regions.iter().map(|region| moved(region, 4 * SLICE) / SLICE).collect()
    };
    assert_eq!(slices(), [2, 2, 2, 2, 1, 1]);
    assert_eq!(slices(), [3, 3, 2, 2, 2, 2]);
    assert_eq!(slices(), [3, 3, 3, 3, 3, 3]);
}

/// A long message is fetched in slices, and each turn says so.
#[test]
fn a_long_message_is_fetched_in_slices() {
    let mut world = World::pair();
    let length = 2 * SLICE + 5;
    let (a, b) = world.both();
    let to = b.address();
    b.receive(length, 1);
    a.send(to, &pattern(length, 1), 2);
    a.function.progress().unwrap();
    assert_eq!(b.function.progress().unwrap(), 2, "the offer, and the first slice");
    assert_eq!(b.state().posted_receives, 1, "it is not complete");
    assert_eq!(b.function.progress().unwrap(), 1);
    assert!(b.function.next_completion(b.cq).unwrap().is_none());
    assert_eq!(b.function.progress().unwrap(), 1);
    let received = b.function.next_completion(b.cq).unwrap().expect("the last slice");
    assert!(bytes(received) == pattern(length, 1));
    assert_eq!(b.function.progress().unwrap(), 0);
    assert_eq!(a.function.progress().unwrap(), 2, "the answer, and what it ends");
    world.check_counters();
}

/// A long message that cannot be fetched is asked for instead, which counts as well.
#[test]
fn asking_for_a_long_message_is_progress() {
    let mut world = World::new(FabricOptions { direct_brought: false, ..Default::default() }, 2);
    let (a, b) = world.both();
    b.receive(3_000, 1);
    a.send(b.address(), &pattern(3_000, 1), 2);
    assert_eq!(b.function.progress().unwrap(), 3, "the offer, the attempt and the request");
    world.settle();
    assert!(bytes(world.sides[1].take()) == pattern(3_000, 1));
}

/// A long message that its sender has withdrawn is tried and answered, which counts as well.
#[test]
fn a_withdrawn_message_is_progress() {
    let mut world = World::pair();
    let (a, b) = world.both();
    a.send(b.address(), &pattern(3_000, 1), 2);
    a.function.progress().unwrap();
    a.function.destroy_queue_pair(a.qp).unwrap();
    b.receive(3_000, 1);
    assert_eq!(b.function.progress().unwrap(), 3, "the offer, the attempt and the answer");
    let ended = b.function.next_completion(b.cq).unwrap().expect("its end");
    assert_eq!(ended.status, Status::PeerGone);
}

/// Of six long messages a turn fetches a slice of four.
#[test]
fn a_turn_fetches_four_slices() {
    let mut world = World::pair();
    let (a, b) = world.both();
    let to = b.address();
    for number in 0..6 {
        b.receive(2 * SLICE, number);
        a.send(to, &pattern(2 * SLICE, number), number);
    }
    a.function.progress().unwrap();
    assert_eq!(b.function.progress().unwrap(), 6 + 4);
    assert_eq!(b.function.progress().unwrap(), 4, "the other two, and two again");
    world.check_counters();
    world.settle();
    for number in 0..6 {
        assert!(bytes(world.sides[1].take()) == pattern(2 * SLICE, number));
    }
    world.check_counters();
}

/// Answers that find no room in the link go in later turns, as many as fit, and each turn counts
/// them.
#[test]
fn answers_go_as_the_link_has_room() {
    let mut world = World::narrow();
    let region = world.sides[1].function.allocate_region(1_000, Rights::all()).unwrap();
    region.write(0, &pattern(1_000, 1));
    let (a, b) = world.both();
    a.function.post_get(a.qp, Get::new(region.remote_key(), vec![0; 1_000])).unwrap();
    a.function.progress().unwrap();
    // Packets carry 64 bytes, and the link has two.
    assert_eq!(b.function.progress().unwrap(), 1 + 2, "the request, and two packets of data");
    assert_eq!(b.function.sleep_limit(), Some(Duration::from_millis(1)));
    assert_eq!(b.function.progress().unwrap(), 0, "the link is full");
    let mut packets = 2;
    while packets < 16 {
        assert_eq!(a.function.progress().unwrap(), 2);
        assert_eq!(b.function.progress().unwrap(), 2);
        packets += 2;
    }
    assert_eq!(b.function.sleep_limit(), None, "all has gone");
    world.settle();
    assert_eq!(bytes(world.sides[0].take()), pattern(1_000, 1));
    world.check_counters();
}

/// Events that wait for room in the completion queue are reported as progress when there is some.
#[test]
fn a_backlog_that_gets_room_is_progress() {
    let mut world = World::pair();
    let b = &mut world.sides[1];
    let small = b.function.create_completion_queue(1).unwrap();
    let pair = b.function.create_queue_pair(&QueuePairOptions::new(small)).unwrap();
    let region = b.function.allocate_region(8, Rights::REMOTE_WRITE).unwrap();
    let a = &mut world.sides[0];
    for number in 0..3 {
        let put = Put::new(vec![1; 8], region.remote_key()).event(pair.number, Some(number));
        a.function.post_put(a.qp, put).unwrap();
    }
    world.settle();
    let b = &mut world.sides[1];
    assert_eq!(b.function.progress().unwrap(), 0, "the queue is full");
    for number in 0..3 {
        let event = b.function.next_completion(small).unwrap().expect("an event");
        assert_eq!(event.immediate(), Some(number));
        let more = if number < 2 { 1 } else { 0 };
        assert_eq!(b.function.progress().unwrap(), more);
    }
    world.check_counters();
}

/// A program may sleep for ever while nothing waits for a peer. It sleeps for short while a message
/// waits for room, a transfer for access, an answer for its link, or a request for its answer.
#[test]
fn sleep_is_short_while_something_waits() {
    let short = Some(Duration::from_millis(1));
    let mut world = World::pair();
    let (to, from) = (world.sides[1].address(), world.sides[0].address().function_address());
    assert_eq!(world.sides[0].function.sleep_limit(), None);
    world.sides[1].receive(8, 1);
    world.fabric.hold_requests(Some(from));
    world.sides[0].send(to, b"waits", 1);
    assert_eq!(world.sides[0].function.sleep_limit(), short, "a message");
    world.fabric.hold_requests(None);
    world.settle();
    assert_eq!(world.sides[0].function.sleep_limit(), None);

    world.sides[1].function.listen(4).unwrap();
    let a = &mut world.sides[0];
    a.function.start_connect(a.qp, Address::new(1, 0, 4), b"", LONG).unwrap();
    world.settle();
    let a = &mut world.sides[0];
    assert_eq!(a.function.sleep_limit(), short, "a request");
    a.function.destroy_queue_pair(a.qp).unwrap();
    world.settle();
    assert_eq!(world.sides[0].function.sleep_limit(), None);

    // Access to memory that has to be requested, again and again.
    let mut world = World::new(FabricOptions { pending_every: 1, ..Default::default() }, 2);
    let to = world.sides[1].address();
    world.sides[1].receive(3_000, 1);
    world.sides[0].send(to, &pattern(3_000, 1), 1);
    for _ in 0..10 {
        world.turn();
    }
    assert_eq!(world.sides[1].function.sleep_limit(), short, "a transfer");
    assert_eq!(world.sides[0].function.sleep_limit(), None, "the sender has its offer out");
    world.check_counters();
}

/// Each packet that a turn sends counts, be it a request or an answer.
#[test]
fn requests_and_answers_are_progress() {
    let mut world = World::new(by_packets(), 2);
    let region = world.sides[1].function.allocate_region(8, Rights::REMOTE_WRITE).unwrap();
    for round in 0..2 {
        let a = &mut world.sides[0];
        a.function.post_put(a.qp, Put::new(vec![1; 8], region.remote_key())).unwrap();
        if round > 0 {
            let (a, b) = world.both();
            assert_eq!(b.function.progress().unwrap(), 2, "the put, and its answer");
            assert_eq!(a.function.progress().unwrap(), 2, "the answer, and what it ends");
        }
        world.settle();
    }
    let (a, b) = world.both();
    b.function.listen(4).unwrap();
    a.function.start_connect(a.qp, Address::new(1, 0, 4), b"", LONG).unwrap();
    assert_eq!(a.function.progress().unwrap(), 1, "the request");
    assert_eq!(b.function.progress().unwrap(), 1);
}
