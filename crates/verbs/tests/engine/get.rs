//! One-sided reads.

use crate::rendezvous::ways;
use crate::world::*;
use bellwire::*;

/// Gets of chains with different cuts bring the right bytes on every fabric, and the owner's
/// program sees no completion.
// shows: C-25, C-28
#[test]
fn a_get_brings_the_bytes() {
    for options in ways() {
        let mut world = World::new(options, 2);
        let b = &mut world.sides[1];
        let region = b.function.allocate_region(400_000, Rights::REMOTE_READ).unwrap();
        region.write(0, &pattern(400_000, 1));
        let key = region.remote_key();
        let sources = vec![key.slice(3, 2000), key.slice(100_000, 300_000), key.slice(50, 7)];
        let sizes = [1usize, 1500, 300_000, 506];
        let destinations: Vec<Vec<u8>> = sizes.iter().map(|&size| vec![0; size]).collect();
        let a = &mut world.sides[0];
        a.function.post_get(a.qp, Get::new(sources, destinations).context(3)).unwrap();
        world.settle();
        let done = world.sides[0].take();
        assert_eq!((done.operation, done.status), (Operation::Get, Status::Success));
        assert_eq!((done.length, done.context), (302_007, 3));
        let found: Vec<u8> =
            done.into_buffers().flat_map(|buffer| buffer.into_vec().unwrap()).collect();
        let all = pattern(400_000, 1);
        let expected = [&all[3..2003], &all[100_000..], &all[50..57]].concat();
        assert!(found == expected);
        assert!(world.sides[1].done.is_empty());
        world.check_counters();
    }
}

/// Gets with a wrong key, bounds or rights bring no bytes and complete with the reason.
// shows: C-09
#[test]
fn a_wrong_key_brings_nothing() {
    for options in ways() {
        let mut world = World::new(options, 2);
        let b = &mut world.sides[1];
        let region = b.function.allocate_region(5000, Rights::all()).unwrap();
        region.write(0, &[9; 5000]);
        let writable = b.function.allocate_region(5000, Rights::REMOTE_WRITE).unwrap();
        let key = region.remote_key();
        let wrong = [
            (RemoteKey { key: !key.key, ..key }, Status::WrongKey),
            (RemoteKey { length: 6000, ..key }, Status::OutOfBounds),
            (RemoteKey { length: 5001, ..key }, Status::OutOfBounds),
            (writable.remote_key(), Status::NotPermitted),
        ];
        for (key, status) in wrong {
            let a = &mut world.sides[0];
            let length = key.length.min(5500);
            let get = Get::new(key.slice(0, length), vec![1; length as usize]);
            a.function.post_get(a.qp, get).unwrap();
            world.settle();
            let done = world.sides[0].take();
            assert_eq!(done.status, status);
            assert!(done.buffer.unwrap().into_vec().unwrap().iter().all(|&byte| byte == 1));
        }
        world.check_counters();
    }
}

/// A get with a blocked request delays neither the answer to a peer's request nor the bytes for a
/// peer's get. These use the other channel (C-27).
// shows: C-27
#[test]
fn a_stuck_get_holds_up_no_answers() {
    let options = by_packets();
    let mut world = World::new(options, 2);
    let regions = [0, 1].map(|side: usize| {
        let region = world.sides[side].function.allocate_region(4096, Rights::all()).unwrap();
        region.write(0, &pattern(4096, side as u64));
        region
    });
    let [ours, theirs] = regions.each_ref().map(MemoryRegion::remote_key);
    let functions = [0, 1].map(|side: usize| world.sides[side].address().function_address());
    // Two pieces, so that the second request follows the answer to the first.
    let sources = vec![theirs.slice(0, 100), theirs.slice(1000, 100)];
    let a = &mut world.sides[0];
    a.function.post_get(a.qp, Get::new(sources, vec![vec![0; 200]])).unwrap();
    while world.fabric.packets_towards(functions[1]) == 0 {
        world.sides[0].turn();
    }
    world.fabric.hold_requests(Some(functions[0]));
    world.settle();
    let (a, b) = world.both();
    assert!(a.done.is_empty(), "its second question is held");
    b.function.post_atomic(b.qp, Atomic::fetch_add(ours.at(0), 1).context(7)).unwrap();
    b.function.post_get(b.qp, Get::new(ours.slice(8, 3000), vec![0; 3000]).context(8)).unwrap();
    world.settle();
    let done: Vec<_> =
        world.sides[1].done.drain(..).map(|done| (done.context, done.status)).collect();
    assert_eq!(done, [(7, Status::Success), (8, Status::Success)]);
    assert!(world.sides[0].done.is_empty());
    world.fabric.hold_requests(None);
    world.settle();
    assert_eq!(world.sides[0].take().status, Status::Success);
    world.check_counters();
}

/// Both sides get and put much data at once, through links of two packets, and all operations
/// complete: answers have their own channel.
// shows: C-26, C-27
#[test]
fn gets_and_puts_both_ways_do_not_deadlock() {
    let mut world = World::narrow();
    let regions: Vec<MemoryRegion> = (0..2)
        .map(|side| {
            let function = &mut world.sides[side].function;
            let region = function.allocate_region(40_000, Rights::all()).unwrap();
            region.write(0, &pattern(20_000, side as u64));
            region
        })
        .collect();
    for round in 0..40u64 {
        for side in 0..2 {
            let key = regions[1 - side].remote_key();
            let side = &mut world.sides[side];
            let get = Get::new(key.slice(0, 5000), vec![0; 5000]).context(round);
            side.function.post_get(side.qp, get).unwrap();
            let put = Put::new(vec![round as u8; 5000], key.slice(20_000, 5000)).context(round);
            side.function.post_put(side.qp, put).unwrap();
        }
    }
    world.settle();
    for side in 0..2 {
        let gets = world.sides[side].take_all(Operation::Get);
        let puts = world.sides[side].take_all(Operation::Put);
        assert_eq!((gets.len(), puts.len()), (40, 40));
        assert!(puts.iter().all(|put| put.status.is_success()));
        for get in gets {
            assert!(bytes(get) == pattern(20_000, 1 - side as u64)[..5000]);
        }
    }
    world.check_counters();
}

/// Deregistering a region during a get ends the get with an error, and no byte is read afterwards.
#[test]
fn a_region_that_goes_away_ends_the_get() {
    let mut world = World::narrow();
    let region = world.sides[1].function.allocate_region(100_000, Rights::REMOTE_READ).unwrap();
    let a = &mut world.sides[0];
    a.function.post_get(a.qp, Get::new(region.remote_key(), vec![0; 100_000])).unwrap();
    for _ in 0..50 {
        world.turn();
    }
    assert!(world.sides[0].done.is_empty(), "it is under way");
    world.sides[1].function.deregister(region).unwrap();
    world.settle();
    let done = world.sides[0].take();
    assert_eq!(done.status, Status::WrongKey);
    assert!(done.length > 0 && done.length < 100_000, "it says how far it came");
    world.check_counters();
}

/// Unsignaled gets and atomics complete only if they fail. The bytes of the get are in its region,
/// and the queue pair says that nothing is left.
#[test]
fn unsignaled_gets_and_atomics_complete_only_if_they_fail() {
    for options in ways() {
        let mut world = World::new(options, 2);
        let rights = Rights::REMOTE_READ | Rights::REMOTE_ATOMIC;
        let there = world.sides[1].function.allocate_region(64, rights).unwrap();
        there.store_u64(0, 5);
        let key = there.remote_key();
        let a = &mut world.sides[0];
        let here = a.function.allocate_region(64, Rights::empty()).unwrap();
        a.function.post_atomic(a.qp, Atomic::fetch_add(key.at(0), 2).unsignaled()).unwrap();
        world.settle();
        let a = &mut world.sides[0];
        a.function.post_get(a.qp, Get::new(key, &here).unsignaled()).unwrap();
        world.settle();
        assert!(world.sides[0].done.is_empty());
        assert_eq!((there.load_u64(0), here.load_u64(0)), (7, 7));
        assert_eq!(world.sides[0].state().posted_sends, 0);

        let wrong = RemoteKey { key: !key.key, ..key };
        let a = &mut world.sides[0];
        let add = Atomic::fetch_add(wrong.at(0), 2).context(1).unsignaled();
        a.function.post_atomic(a.qp, add).unwrap();
        let get = Get::new(wrong, &here).context(2).unsignaled();
        a.function.post_get(a.qp, get).unwrap();
        world.settle();
        for context in [1, 2] {
            let done = world.sides[0].take();
            assert_eq!((done.context, done.status), (context, Status::WrongKey));
        }
        world.check_counters();
    }
}
