//! A request or a receive completes as flushed when the device uses its memory no more: from then
//! on the memory is the program's. What ends one queue pair ends no other.

use super::super::arena::limit;
use super::pair::Pair;
use bellwire_rdma::{Cause, Operation, WorkStatus};
use std::time::{Duration, Instant};

/// Bytes that the device fetches in many packets.
const LONG: usize = 200_000;

/// A pair of which `b` does nothing and `a` reads from it. `a` has failed meanwhile, and its
/// request is held.
fn held(begin: impl Fn(&mut Pair)) -> Pair {
    let deadline = Instant::now() + limit();
    loop {
        assert!(Instant::now() < deadline, "a request is flushed while the device executes it");
        let mut pair = Pair::new("udp", false);
        begin(&mut pair);
        for _ in 0..100 {
            pair.a.adapter.look();
            std::thread::sleep(Duration::from_micros(100));
        }
        pair.a.fail();
        pair.a.adapter.look();
        // On a slow machine it had not begun.
        if pair.a.take().is_empty() {
            return pair;
        }
    }
}

/// After its flush nothing changes the memory of `a`. What `b` still sends comes before the answers
/// to requests that come later.
fn stays(pair: &mut Pair) {
    pair.a.fill(9);
    pair.renew();
    for _ in 0..8 {
        pair.learn_key();
    }
    assert!((0..LONG).all(|at| pair.a.byte(at) == 9), "written after the flush");
}

fn is_flushed_at_last(mut pair: Pair) {
    let done = pair.completions_of_a(1);
    assert_eq!(done[0].status, WorkStatus::Flushed, "{done:?}");
    stays(&mut pair);
}

/// `b` offers a long message, and `a` begins to fetch it.
fn begin_fetch(pair: &mut Pair) {
    // The way between them is up after this.
    pair.learn_key();
    pair.b.fill(1);
    pair.b.send(1, LONG);
    pair.b.adapter.look();
    pair.a.receive(2, LONG);
}

/// A message that is being fetched into a receive.
pub fn a_fetch_ends_before_its_flush() {
    is_flushed_at_last(held(begin_fetch));
}

/// A read.
pub fn a_read_ends_before_its_flush() {
    is_flushed_at_last(held(|pair| {
        pair.learn_key();
        pair.b.fill(1);
        let (address, key) = (pair.b.at(0), pair.b.key);
        pair.a.post(1, Operation::Read { address, key }, 0, LONG);
    }));
}

/// A queue pair that is destroyed meanwhile, while its peer goes on.
pub fn a_fetch_ends_before_its_queue_pair() {
    let Pair { mut a, mut b } = held(begin_fetch);
    let (done, is_done) = std::sync::mpsc::channel();
    let peer = std::thread::spawn(move || {
        // With the fault the queue pair is destroyed before this.
        let mut is_over = is_done.recv_timeout(Duration::from_millis(200)).is_ok();
        while !is_over {
            b.adapter.look();
            is_over = is_done.try_recv().is_ok();
        }
        b
    });
    a.adapter.destroy_queue_pair(a.number).unwrap();
    done.send(()).unwrap();
    let b = peer.join().unwrap();
    assert!(a.take().is_empty(), "a queue pair that is destroyed completes nothing");
    stays(&mut Pair { a, b });
}

/// A queue pair that has waited long enough for a peer that ended in order fails alone. What
/// another one has begun with the same process goes on.
pub fn one_that_gives_up_fails_alone() {
    let mut pair = Pair::new("udp", false);
    pair.learn_key();
    let (first, of_b) = pair.renew();
    pair.learn_key();
    pair.b.adapter.destroy_queue_pair(of_b).unwrap();
    // What `b` tells last comes before the answer to this.
    pair.learn_key();
    // From here on `b` does nothing.
    let (address, key) = (pair.b.at(0), pair.b.key);
    pair.a.post(2, Operation::Read { address, key }, 0, LONG);
    let other = std::mem::replace(&mut pair.a.number, first);
    pair.a.send(1, 8);
    let deadline = Instant::now() + limit();
    let done = loop {
        assert!(Instant::now() < deadline, "nobody is given up");
        pair.a.adapter.look();
        pair.a.adapter.keep_time();
        if let Some(done) = pair.a.take().pop() {
            break done;
        }
    };
    assert_eq!((done.id, done.status), (1, WorkStatus::RetryExceeded), "{done:?}");
    assert_eq!(done.cause, Cause::Unreachable);
    pair.a.number = other;
    let done = pair.completions_of_a(1);
    assert_eq!((done[0].id, done[0].status), (2, WorkStatus::Success), "{done:?}");
}
