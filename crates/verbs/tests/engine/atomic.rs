//! Atomics.

use crate::rendezvous::ways;
use crate::world::*;
use bellwire::*;

/// Fetch-add and compare-swap return the previous value and change the word correctly, on every
/// fabric.
#[test]
fn atomics_do_what_they_say() {
    for options in ways() {
        let mut world = World::new(options, 2);
        let region = world.sides[1].function.allocate_region(64, Rights::REMOTE_ATOMIC).unwrap();
        region.store_u64(8, u64::MAX);
        let at = region.remote_key().at(8);
        let a = &mut world.sides[0];
        a.function.post_atomic(a.qp, Atomic::fetch_add(at, 3).context(1)).unwrap();
        a.function.post_atomic(a.qp, Atomic::compare_swap(at, 2, 10).context(2)).unwrap();
        a.function.post_atomic(a.qp, Atomic::compare_swap(at, 2, 11).context(3)).unwrap();
        world.settle();
        let done = std::mem::take(&mut world.sides[0].done);
        let told: Vec<_> =
            done.iter().map(|done| (done.operation, done.context, done.value())).collect();
        assert_eq!(
            told,
            [
                (Operation::FetchAdd, 1, u64::MAX),
                (Operation::CompareSwap, 2, 2),
                (Operation::CompareSwap, 3, 10),
            ]
        );
        assert!(done.iter().all(|done| done.status.is_success() && done.length == 8));
        assert_eq!(region.load_u64(8), 10);
        assert_eq!(region.load_u64(0), 0);
        assert!(world.sides[1].done.is_empty());
        world.check_counters();
    }
}

/// Many functions add to one word at once, and none of the additions is lost.
#[test]
fn no_addition_is_lost() {
    for options in ways() {
        let mut world = World::new(options, 4);
        let region = world.sides[0].function.allocate_region(8, Rights::REMOTE_ATOMIC).unwrap();
        let at = region.remote_key().at(0);
        for number in 0..100 {
            for side in &mut world.sides {
                side.function
                    .post_atomic(side.qp, Atomic::fetch_add(at, 1).context(number))
                    .unwrap();
            }
        }
        world.settle();
        assert_eq!(region.load_u64(0), 400);
        let mut before: Vec<u64> = world
            .sides
            .iter_mut()
            .flat_map(|side| side.take_all(Operation::FetchAdd))
            .map(|done| done.value())
            .collect();
        before.sort_unstable();
        assert!(before.into_iter().eq(0..400), "each value was seen once");
    }
}

/// Misaligned words, words outside, wrong keys and missing rights change nothing.
#[test]
fn bad_atomics_change_nothing() {
    for options in ways() {
        let mut world = World::new(options, 2);
        let region = world.sides[1].function.allocate_region(64, Rights::REMOTE_ATOMIC).unwrap();
        let readable = world.sides[1].function.allocate_region(64, Rights::REMOTE_READ).unwrap();
        let key = region.remote_key();
        let a = &mut world.sides[0];
        for offset in [1, 4, 63, 64, u64::MAX - 7] {
            refuses!(
                a.function.post_atomic(a.qp, Atomic::fetch_add(key.at(offset), 1)),
                Error::OutOfRange { .. }
            );
        }
        let wrong = [
            (RemoteKey { key: key.key ^ 4, ..key }.at(0), Status::WrongKey),
            (RemoteKey { length: 1000, ..key }.at(64), Status::OutOfBounds),
            (RemoteKey { length: u64::MAX, ..key }.at(u64::MAX - 15), Status::OutOfBounds),
            (readable.remote_key().at(0), Status::NotPermitted),
        ];
        for (at, status) in wrong {
            let a = &mut world.sides[0];
            a.function.post_atomic(a.qp, Atomic::fetch_add(at, 1)).unwrap();
            a.function.post_atomic(a.qp, Atomic::compare_swap(at, 0, 1)).unwrap();
            world.settle();
            for _ in 0..2 {
                let done = world.sides[0].take();
                assert_eq!((done.status, done.length), (status, 0));
            }
        }
        assert_eq!(part(&region, 0, 64), [0; 64]);
        assert_eq!(readable.load_u64(0), 0);
    }
}
