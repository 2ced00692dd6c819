//! One-sided writes.

use crate::rendezvous::ways;
use crate::world::*;
use bellwire::*;

/// Puts of all alignments and lengths write exactly their bytes, on every fabric, and the target's
/// program sees no completion.
// shows: C-22, C-14
#[test]
fn a_put_writes_exactly_its_bytes() {
    for options in ways() {
        let mut world = World::new(options, 2);
        let region = world.sides[1].function.allocate_region(4096, Rights::REMOTE_WRITE).unwrap();
        let key = region.remote_key();
        for (number, (offset, length)) in
            [(0, 1), (1, 2), (7, 9), (63, 130), (1000, 3000), (4095, 1), (4096, 0)]
                .into_iter()
                .enumerate()
        {
            region.write(0, &[0xee; 4096]);
            let a = &mut world.sides[0];
            let data = pattern(length, number as u64);
            let put = Put::new(data.clone(), key.slice(offset as u64, length as u64)).context(5);
            a.function.post_put(a.qp, put).unwrap();
            world.settle();
            let done = world.sides[0].take();
            assert_eq!((done.operation, done.status), (Operation::Put, Status::Success));
            assert_eq!((done.context, done.length), (5, length));
            assert_eq!(done.buffer.unwrap().into_vec().unwrap(), data);
            let mut expected = vec![0xee; 4096];
            expected[offset..offset + length].copy_from_slice(&data);
            assert!(part(&region, 0, 4096) == expected, "{length} bytes at {offset}");
        }
        assert!(world.sides[1].done.is_empty(), "no event without the flag");
        world.check_counters();
    }
}

/// Chains whose lists differ in number and sizes arrive re-cut, on every fabric, and all buffers
/// come back in order.
// shows: C-28
#[test]
fn a_chain_is_recut() {
    for options in ways() {
        let mut world = World::new(options, 2);
        let b = &mut world.sides[1];
        let first = b.function.allocate_region(3000, Rights::REMOTE_WRITE).unwrap();
        let second = b.function.register(vec![0; 500], Rights::REMOTE_WRITE).unwrap();
        let data = pattern(2600, 3);
        let lengths = [0, 1, 999, 100, 1500, 0];
        let mut at = 0;
        let sources: Vec<Vec<u8>> = lengths
            .iter()
            .map(|&length| {
                at += length;
                data[at - length..at].to_vec()
            })
            .collect();
        let destinations = vec![
            first.remote_key().slice(2000, 700),
            second.remote_key().slice(3, 450),
            first.remote_key().slice(10, 1450),
        ];
        let a = &mut world.sides[0];
        a.function.post_put(a.qp, Put::new(sources.clone(), destinations)).unwrap();
        world.settle();
        let done = world.sides[0].take();
        assert_eq!((done.status, done.length), (Status::Success, 2600));
        let back: Vec<Vec<u8>> =
            done.into_buffers().map(|buffer| buffer.into_vec().unwrap()).collect();
        assert_eq!(back, sources);
        let mut found = vec![0; 2600];
        first.read(2000, &mut found[..700]);
        second.read(3, &mut found[700..1150]);
        first.read(10, &mut found[1150..]);
        assert!(found == data);
    }
}

/// Unequal totals, bad bounds, empty chains and chains to two functions are refused before anything
/// moves.
// shows: C-29
#[test]
fn bad_chains_move_nothing() {
    let mut world = World::new(FabricOptions::default(), 3);
    let region = world.sides[1].function.allocate_region(100, Rights::REMOTE_WRITE).unwrap();
    let other = world.sides[2].function.allocate_region(100, Rights::REMOTE_WRITE).unwrap();
    let (key, foreign) = (region.remote_key(), other.remote_key());
    let a = &mut world.sides[0];
    let mut refuse = |put: Put<'static>| a.function.post_put(a.qp, put).unwrap_err();
    let refused = refuse(Put::new(vec![vec![1; 8], vec![1; 9]], vec![key.slice(0, 16)]));
    assert!(
        matches!(refused.error, Error::UnequalSums { sources: 17, destinations: 16 }),
        "{refused}"
    );
    let refused = refuse(Put::new(vec![1; 8], key.slice(93, 8)));
    assert!(matches!(refused.error, Error::OutOfRange { value: 101, .. }), "{refused}");
    let refused = refuse(Put::new(vec![1; 8], key.slice(u64::MAX, 8)));
    assert!(matches!(refused.error, Error::OutOfRange { .. }));
    let refused = refuse(Put::new(vec![1; 16], vec![key.slice(0, 8), foreign.slice(0, 8)]));
    assert!(matches!(refused.error, Error::BadChain(_)));
    let refused = refuse(Put::new(Vec::<Buffer>::new(), Vec::<RemoteSlice>::new()));
    assert!(matches!(refused.error, Error::BadChain(_)));
    let many = vec![key.slice(0, 0); 1025];
    let refused = refuse(Put::new(vec![vec![]; 1], many));
    assert!(matches!(refused.error, Error::BadChain(_)));
    let huge = a.function.allocate_region((1 << 30) + 1, Rights::empty()).unwrap();
    let sources = vec![huge.slice(0, (1 << 30) + 1); 1024];
    let everything = RemoteKey { length: u64::MAX, ..key };
    let put = Put::new(sources, everything.slice(0, (1 << 40) + 1024));
    refuses!(a.function.post_put(a.qp, put), Error::TooLong { maximum: 0x100_0000_0000, .. });
    let sources = vec![huge.slice(0, 1 << 30); 1024];
    a.function.post_put(a.qp, Put::new(sources, everything.slice(0, 1 << 40))).unwrap();
    world.settle();
    assert_eq!(part(&region, 0, 100), [0; 100]);
    assert_eq!(world.sides[0].take().status, Status::OutOfBounds, "its length was none too many");
    assert!(world.sides[0].done.is_empty());
    // As many entries as there may be are fine.
    let a = &mut world.sides[0];
    a.function.post_put(a.qp, Put::new(vec![vec![]; 1], vec![key.slice(0, 0); 1024])).unwrap();
}

/// Puts with a wrong key, bounds that only the owner knows, or missing rights change nothing and
/// raise no event. They complete with the reason, and the owner counts them.
// shows: C-09
#[test]
fn a_wrong_key_changes_nothing() {
    for options in ways() {
        let by_packet = !options.direct_allocated;
        let mut world = World::new(options, 2);
        let b = &mut world.sides[1];
        let (target, rights) = (b.qp.number, Rights::REMOTE_READ);
        let region = b.function.allocate_region(5000, Rights::all()).unwrap();
        let readable = b.function.allocate_region(5000, rights).unwrap();
        let key = region.remote_key();
        let dead = b.function.allocate_region(5000, Rights::all()).unwrap();
        let dead_key = dead.remote_key();
        b.function.deregister(dead).unwrap();
        let wrong = [
            (RemoteKey { key: key.key ^ 1, ..key }, 0, Status::WrongKey),
            (RemoteKey { index: key.index + 1, ..key }, 0, Status::WrongKey),
            (RemoteKey { index: 60, ..key }, 0, Status::WrongKey),
            (dead_key, 0, Status::WrongKey),
            (RemoteKey { length: 1 << 30, ..key }, 4000, Status::OutOfBounds),
            (RemoteKey { length: 5001, ..key }, 2001, Status::OutOfBounds),
            (RemoteKey { length: u64::MAX, ..key }, u64::MAX - 3000, Status::OutOfBounds),
            (readable.remote_key(), 0, Status::NotPermitted),
        ];
        for (key, offset, status) in wrong {
            let a = &mut world.sides[0];
            let put = Put::new(vec![7; 3000], key.slice(offset, 3000)).event(target, Some(1));
            a.function.post_put(a.qp, put).unwrap();
            world.settle();
            let done = world.sides[0].take();
            assert_eq!((done.status, done.length), (status, 0));
            assert_eq!(done.buffer.unwrap().len(), 3000);
        }
        for region in [region, readable] {
            assert!(part(&region, 0, 5000) == [0; 5000], "nothing was written");
        }
        assert!(world.sides[1].done.is_empty(), "nobody was told");
        let counters = world.sides[1].function.counters().function;
        if by_packet {
            assert!(counters.wrong_keys >= 4 && counters.out_of_bounds >= 2);
            assert!(counters.not_permitted >= 1);
        }
        assert_eq!(world.sides[0].function.counters().total.sends_failed, wrong.len() as u64);
        // One bad piece at any place fails the put, although the others were written.
        for bad in 0..3 {
            let piece = |number| match number == bad {
                true => RemoteKey { key: !key.key, ..key }.slice(0, 500),
                false => key.slice(0, 500),
            };
            let a = &mut world.sides[0];
            let put = Put::new(vec![0; 1500], (0..3).map(piece).collect::<Vec<_>>());
            a.function.post_put(a.qp, put.event(target, None)).unwrap();
            world.settle();
            assert_eq!(world.sides[0].take().status, Status::WrongKey);
            assert!(world.sides[1].done.is_empty(), "nobody was told");
        }
        // A good put still works.
        let a = &mut world.sides[0];
        a.function.post_put(a.qp, Put::new(vec![1; 9], key.slice(0, 9))).unwrap();
        world.settle();
        assert_eq!(world.sides[0].take().status, Status::Success);
        world.check_counters();
    }
}

/// The event of a put comes when all its bytes are in memory, with length, value and source, in
/// order with messages.
// shows: C-14, C-23
#[test]
fn an_event_follows_its_bytes() {
    for options in ways() {
        let mut world = World::new(options, 2);
        let b = &mut world.sides[1];
        let region = b.function.register(vec![0; 5000], Rights::REMOTE_WRITE).unwrap();
        let (target, from) = (b.qp.number, world.sides[0].address());
        world.sides[1].receive(10, 8);
        for (length, immediate) in [(3000, Some(77)), (1, None)] {
            let a = &mut world.sides[0];
            let put = Put::new(pattern(length, 1), region.remote_key().slice(5, length as u64));
            a.function.post_put(a.qp, put.event(target, immediate)).unwrap();
            // The event must not be seen before the bytes, at any time.
            world.turn_until_done();
            let event = world.sides[1].take();
            assert!(part(&region, 5, length) == pattern(length, 1));
            assert_eq!((event.operation, event.length), (Operation::RemotePut, length));
            assert_eq!((event.immediate(), event.peer), (immediate, from));
            assert!(event.buffer.is_none(), "an event takes no receive");
        }
        world.settle();
        assert_eq!(world.sides[0].take_all(Operation::Put).len(), 2);
        assert_eq!(world.sides[1].state().posted_receives, 1);
        let a = &mut world.sides[0];
        let put = Put::new(vec![1; 4], region.remote_key().slice(0, 4)).event(99, None);
        a.function.post_put(a.qp, put).unwrap();
        world.settle();
        assert_eq!(world.sides[0].take().status, Status::NoSuchQueuePair);
        assert_eq!(part(&region, 0, 4), [0; 4], "nothing moves if nobody can be told");
        world.check_counters();
    }
}

/// A put's bytes are in memory when a message that was posted after it arrives.
#[test]
fn a_message_does_not_overtake_a_put() {
    for options in ways() {
        let mut world = World::new(options, 2);
        let to = world.sides[1].address();
        let region = world.sides[1].function.allocate_region(20_000, Rights::REMOTE_WRITE).unwrap();
        world.sides[1].receive(8, 1);
        let a = &mut world.sides[0];
        let key = region.remote_key();
        a.function.post_put(a.qp, Put::new(pattern(20_000, 4), key)).unwrap();
        world.sides[0].send(to, b"look", 2);
        world.turn_until_done();
        assert_eq!(bytes(world.sides[1].take()), b"look");
        assert!(part(&region, 0, 20_000) == pattern(20_000, 4));
    }
}

/// A put that is posted while a message of its queue pair waits is carried out after it.
#[test]
fn a_put_waits_for_what_was_posted_before() {
    let mut world = World::pair();
    let (from, to) = (world.sides[0].address(), world.sides[1].address());
    let region = world.sides[1].function.allocate_region(8, Rights::REMOTE_WRITE).unwrap();
    world.sides[1].receive(8, 0);
    world.fabric.hold_requests(Some(from.function_address()));
    let a = &mut world.sides[0];
    a.send(to, b"first", 1);
    a.function.post_put(a.qp, Put::new(vec![7; 8], region.remote_key()).context(2)).unwrap();
    assert_eq!(part(&region, 0, 8), [0; 8]);
    world.fabric.hold_requests(None);
    world.settle();
    assert_eq!(part(&region, 0, 8), [7; 8]);
    let done: Vec<u64> = world.sides[0].done.iter().map(|done| done.context).collect();
    assert_eq!(done, [1, 2]);
    world.check_counters();
}

/// A long put that the end of its peer interrupts tells how much has certainly moved.
#[test]
fn an_interrupted_put_tells_what_has_moved() {
    const SLICE: usize = 1 << 20;
    let mut world = World::pair();
    let region = world.sides[1].function.allocate_region(4 * SLICE, Rights::REMOTE_WRITE).unwrap();
    let there = world.sides[1].address().function_address();
    let a = &mut world.sides[0];
    a.function.post_put(a.qp, Put::new(vec![7; 4 * SLICE], region.remote_key())).unwrap();
    for _ in 0..10 {
        if part(&region, SLICE, 1) == [7] {
            break;
        }
        a.function.progress().unwrap();
    }
    assert_eq!(part(&region, 2 * SLICE, 1), [0], "half of it has not moved");
    world.fabric.kill(there);
    world.settle();
    let done = world.sides[0].take();
    assert_eq!((done.status, done.length), (Status::PeerGone, 2 * SLICE));
}

/// Bytes inside a descriptor may be as many as a packet carries, also if packets carry them.
#[test]
fn inline_bytes_fill_a_packet() {
    let mut world = World::new(by_packets(), 2);
    let longest = world.sides[0].function.limits().eager_bytes;
    let region = world.sides[1].function.allocate_region(4096, Rights::REMOTE_WRITE).unwrap();
    let data = pattern(longest + 1, 1);
    let key = region.remote_key();
    let a = &mut world.sides[0];
    let put = Put::inline(&data, key.slice(0, longest as u64 + 1));
    refuses!(a.function.post_put(a.qp, put), Error::TooLong { .. });
    let put = Put::inline(&data[..longest], key.slice(0, longest as u64));
    a.function.post_put(a.qp, put).unwrap();
    world.settle();
    assert_eq!(world.sides[0].take().status, Status::Success);
    assert!(part(&region, 0, longest) == data[..longest]);
}

/// A put behind a message that waits is done once that has left, and as it is posted.
#[test]
fn a_put_behind_a_message_is_done() {
    let mut world = World::pair();
    let region = world.sides[1].function.allocate_region(8, Rights::REMOTE_WRITE).unwrap();
    let (to, from) = (world.sides[1].address(), world.sides[0].address().function_address());
    (0..2).for_each(|_| world.sides[0].send(to, b"link", 0));
    world.settle();
    for is_held in [false, true] {
        region.write(0, &[0; 8]);
        world.fabric.hold_requests(Some(from));
        let a = &mut world.sides[0];
        a.done.clear();
        a.send(to, b"first", 1);
        if !is_held {
            world.fabric.hold_requests(None);
        }
        let a = &mut world.sides[0];
        a.function.post_put(a.qp, Put::new(vec![7; 8], region.remote_key()).context(2)).unwrap();
        assert_eq!(part(&region, 0, 8), if is_held { [0; 8] } else { [7; 8] });
        world.fabric.hold_requests(None);
        world.settle();
        let contexts: Vec<u64> = world.sides[0].done.iter().map(|done| done.context).collect();
        assert_eq!((contexts, part(&region, 0, 8)), (vec![1, 2], vec![7; 8]));
        world.check_counters();
    }
    // One that would not be taken without the message is not taken behind it.
    let (large, long) =
        (world.sides[1].function.allocate_region(4096, Rights::REMOTE_WRITE).unwrap(), [1; 1025]);
    world.fabric.hold_requests(Some(from));
    let a = &mut world.sides[0];
    a.send(to, b"first", 1);
    world.fabric.hold_requests(None);
    let put = Put::inline(&long, large.remote_key().slice(0, 1025));
    refuses!(a.function.post_put(a.qp, put), Error::TooLong { maximum: 1024, .. });
    assert_eq!(part(&large, 0, 8), [0; 8]);
}

/// Only where a library allows it, an answer may wait, and only one that tells of success.
#[test]
fn answers_wait_where_they_may() {
    let options = FabricOptions { direct_allocated: false, ..Default::default() };
    let mut world = World::new(options, 2);
    let region = world.sides[1].function.allocate_region(100, Rights::REMOTE_WRITE).unwrap();
    let key = region.remote_key();
    let put = |world: &mut World| {
        let a = &mut world.sides[0];
        a.function.post_put(a.qp, Put::new(vec![1; 8], key.slice(0, 8))).unwrap();
        world.settle();
        (world.sides[0].take().status == Status::Success, world.fabric.later())
    };
    assert_eq!(put(&mut world), (true, 0));
    world.sides[1].function.let_answers_wait();
    assert_eq!(put(&mut world), (true, 1));
    world.sides[1].function.deregister(region).unwrap();
    assert_eq!(put(&mut world), (false, 1));
}
