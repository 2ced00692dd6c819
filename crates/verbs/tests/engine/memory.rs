//! Registration of memory.

use crate::world::*;
use bellwire::*;
use std::ptr::NonNull;

/// A registered vector comes back as the same vector, and an allocated region as a copy.
// shows: M-05
#[test]
fn memory_comes_back() {
    let mut world = World::pair();
    let function = &mut world.sides[0].function;
    let vector = pattern(100, 1);
    let address = vector.as_ptr();
    let region = function.register(vector, Rights::all()).unwrap();
    region.write(0, b"new");
    let back = function.deregister(region).unwrap();
    assert_eq!(back.as_ptr(), address, "no copy");
    assert_eq!(&back[..4], &[b'n', b'e', b'w', pattern(100, 1)[3]]);

    let region = function.allocate_region(100, Rights::empty()).unwrap();
    region.write(50, b"x");
    let second = region.clone();
    let back = function.deregister(region).unwrap();
    assert_eq!((back.len(), back[50]), (100, b'x'));
    assert!(matches!(function.deregister(second), Err(Error::NoSuchRegion)));
    assert!(matches!(function.allocate_region(0, Rights::all()), Err(Error::OutOfRange { .. })));
}

/// A region cannot be deregistered while a posted descriptor uses it, in any queue.
// shows: M-05
#[test]
fn a_region_in_use_stays() {
    let mut world = World::narrow();
    let to = world.sides[1].address();
    let key = world.sides[1].function.allocate_region(5000, Rights::all()).unwrap().remote_key();
    let a = &mut world.sides[0];
    let shared = a.function.create_shared_receive_queue(4).unwrap();
    let uses: [fn(&mut Side, &MemoryRegion, Address, RemoteKey); 5] = [
        |a, region, to, _| {
            // Two messages fill the link, the third has to wait.
            for _ in 0..3 {
                let send = Message::buffer(region.slice(0, 10)).to(to);
                a.function.post_send(a.qp, send).unwrap();
            }
        },
        |a, region, to, _| a.function.post_send(a.qp, Message::buffer(region).to(to)).unwrap(),
        |a, region, _, key| a.function.post_put(a.qp, Put::new(region, key)).unwrap(),
        |a, region, _, key| a.function.post_get(a.qp, Get::new(key, region)).unwrap(),
        |a, region, _, _| a.function.post_receive(a.qp, region, 0).unwrap(),
    ];
    for (number, post) in uses.into_iter().enumerate() {
        let a = &mut world.sides[0];
        let region = a.function.allocate_region(5000, Rights::REMOTE_READ).unwrap();
        post(a, &region, to, key);
        for _ in 0..2 {
            let in_use = world.sides[0].function.deregister(region.clone());
            assert!(matches!(in_use, Err(Error::InUse { .. })), "use {number}");
            world.sides[0].turn();
        }
        (0..3).for_each(|_| world.sides[1].receive(5000, 0));
        let own = world.sides[0].address();
        world.sides[1].send(own, b"x", 0);
        world.settle();
        if number < 4 {
            world.sides[0].receive(8, 0);
            world.settle();
        }
        world.sides[0].function.deregister(region).unwrap();
        world.sides[0].done.clear();
    }
    let a = &mut world.sides[0];
    let region = a.function.allocate_region(8, Rights::empty()).unwrap();
    a.function.post_shared_receive(shared, &region, 0).unwrap();
    assert!(matches!(a.function.deregister(region.clone()), Err(Error::InUse { .. })));
    a.function.destroy_shared_receive_queue(shared).unwrap();
    a.function.deregister(region).unwrap();
}

/// Memory of another function, or deregistered memory, cannot be posted.
// shows: M-05, C-39
#[test]
fn foreign_memory_is_refused() {
    let mut world = World::pair();
    let foreign = world.sides[1].function.allocate_region(5000, Rights::all()).unwrap();
    let key = foreign.remote_key();
    let to = world.sides[1].address();
    let a = &mut world.sides[0];
    let dead = a.function.allocate_region(5000, Rights::all()).unwrap();
    a.function.deregister(dead.clone()).unwrap();
    let shared = a.function.create_shared_receive_queue(4).unwrap();
    for region in [&foreign, &dead] {
        for length in [8, 5000] {
            let slice = || region.slice(0, length);
            refuses!(
                a.function.post_send(a.qp, Message::buffer(slice()).to(to)),
                Error::NoSuchRegion
            );
            let remote = key.slice(0, length as u64);
            refuses!(a.function.post_put(a.qp, Put::new(slice(), remote)), Error::NoSuchRegion);
            refuses!(a.function.post_get(a.qp, Get::new(remote, slice())), Error::NoSuchRegion);
            refuses!(a.function.post_receive(a.qp, slice(), 0), Error::NoSuchRegion);
            refuses!(a.function.post_shared_receive(shared, slice(), 0), Error::NoSuchRegion);
        }
    }
    assert!(matches!(a.function.deregister(foreign), Err(Error::NoSuchRegion)));
    world.check_counters();
}

/// Keys differ, and a reused index has a new secret.
#[test]
fn keys_are_not_used_again() {
    let options = FabricOptions { regions: 3, ..FabricOptions::default() };
    let mut world = World::new(options, 1);
    let function = &mut world.sides[0].function;
    let mut seen = std::collections::HashSet::new();
    for _ in 0..300 {
        let region = function.allocate_region(8, Rights::all()).unwrap();
        assert!(seen.insert(region.remote_key().key));
        assert_ne!(region.remote_key().key, 0);
        function.deregister(region).unwrap();
    }
}

/// Foreign memory is sent from, received into and accessed by peers in place. After its region has
/// ended its bytes are unchanged and its key is dead. Without rights only descriptors of this side
/// use it, and its key opens nothing.
// shows: M-05
#[test]
fn memory_of_somebody_else_is_used_in_place() {
    let mut world = World::pair();
    let mut theirs = pattern(100_000, 7);
    let start = NonNull::new(theirs.as_mut_ptr()).unwrap();
    let (a, b) = world.both();
    // SAFETY: the vector outlives both regions, and is not accessed before they have ended.
    let shared = unsafe { a.function.register_foreign(start, 50_000, Rights::all()) }.unwrap();
    // SAFETY: as above.
    let (private, second) = unsafe {
        let rest = NonNull::new(start.as_ptr().add(50_000)).unwrap();
        let private = a.function.register_foreign(rest, 50_000, Rights::empty()).unwrap();
        (private, a.function.register_foreign(rest, 0, Rights::empty()))
    };
    assert!(matches!(second, Err(Error::OutOfRange { .. })));
    b.function.post_put(b.qp, Put::new(pattern(40, 9), shared.remote_key().slice(10, 40))).unwrap();
    let to_b = Address::new(1, 0, b.qp.number);
    let to_a = Address::new(0, 0, a.qp.number);
    b.function.post_receive(b.qp, vec![0; 30_000], 1).unwrap();
    a.function.post_send(a.qp, Message::buffer(private.slice(0, 30_000)).to(to_b)).unwrap();
    a.function.post_receive(a.qp, private.slice(40_000, 10_000), 2).unwrap();
    b.function.post_send(b.qp, Message::buffer(pattern(10_000, 5)).to(to_a)).unwrap();
    b.function.post_get(b.qp, Get::new(private.remote_key(), vec![0; 50_000])).unwrap();
    let in_use = a.function.deregister_foreign(&private);
    assert!(matches!(in_use, Err(Error::InUse { .. })), "{in_use:?}");
    world.settle();
    let (a, b) = world.both();
    let failed = |done: &&Completion| !done.status.is_success();
    let refused: Vec<_> = b.done.iter().filter(failed).map(|done| done.operation).collect();
    assert_eq!(refused, [Operation::Get], "a key without rights opens nothing");
    let received = b.done.iter().find(|done| done.operation == Operation::Receive).unwrap();
    let received = received.buffer.as_ref().unwrap().as_slice().unwrap();
    a.done.clear();
    a.function.deregister_foreign(&shared).unwrap();
    a.function.deregister_foreign(&private).unwrap();
    assert!(matches!(a.function.deregister_foreign(&private), Err(Error::NoSuchRegion)));
    assert_eq!(received, &theirs[50_000..80_000]);
    assert_eq!(theirs[10..50], pattern(40, 9));
    assert_eq!(theirs[50..50_000], pattern(100_000, 7)[50..50_000]);
    assert_eq!(theirs[90_000..], pattern(10_000, 5));
}

/// A function that is closed lets go of the buffers of its receives and of its completions.
#[test]
fn a_closed_function_keeps_no_buffers() {
    let mut world = World::new(FabricOptions::default(), 1);
    let Side { mut function, cq, qp, .. } = world.sides.remove(0);
    let own = function.query(qp).unwrap().address;
    let regions = [(); 2].map(|()| function.allocate_region(64, Rights::empty()).unwrap());
    let [received, sent] = &regions;
    for number in 0..4 {
        function.post_send(qp, Message::buffer(sent.slice(0, 8)).to(own)).unwrap();
        function.post_receive(qp, received.slice(0, 8), number).unwrap();
        function.post_receive(qp, received.slice(0, 8), number).unwrap();
    }
    (0..10).for_each(|_| _ = function.progress().unwrap());
    assert!(function.next_completion(cq).unwrap().is_some(), "some are left");
    assert!(regions.iter().all(MemoryRegion::is_shared));
    drop(function);
    assert!(!regions.iter().any(MemoryRegion::is_shared));
}
