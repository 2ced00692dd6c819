//! Answers to writes travel with what the other side writes, and alone if it writes nothing.

use super::super::arena::limit;
use super::pair::{Pair, Side};
use bellwire_rdma::{Operation, WorkStatus};
use std::time::Instant;

/// The byte that the peer writes, and that its owner watches.
const TARGET: usize = 1000;
/// Writes whose frames are counted.
const WRITES: u64 = 100;
/// Repetitions, of which one has to be undisturbed: an answer waits for less than a millisecond.
const BATCHES: usize = 200;

fn open() -> Pair {
    let mut pair = Pair::new("udp", false);
    pair.a.adapter.let_answers_wait();
    pair.b.adapter.let_answers_wait();
    pair
}

fn frames(pair: &Pair) -> u64 {
    [&pair.a, &pair.b].iter().map(|side| side.adapter.device_counter("frames_sent")).sum()
}

/// One side writes a byte to the other.
fn write(from: &mut Side, to: &Side, value: u8) {
    from.set_byte(0, value);
    let (address, key) = (to.at(TARGET), to.key);
    from.post(1, Operation::Write { address, key, immediate: None }, 0, 1);
}

/// One side writes, and both look until the byte is there. Returns the requests that completed.
fn turn(from: &mut Side, to: &mut Side, value: u8) -> u64 {
    let deadline = Instant::now() + limit();
    write(from, to, value);
    while to.byte(TARGET) != value {
        assert!(Instant::now() < deadline, "a write does not arrive");
        from.adapter.look();
        to.adapter.look();
    }
    let done = [from.take(), to.take()].concat();
    assert!(done.iter().all(|done| done.status == WorkStatus::Success), "{done:?}");
    done.len() as u64
}

/// Two sides write to each other in turns, as `ib_write_lat` does. A write and its answer are two
/// packets. In most turns one frame carries the answer to a write and the write back.
pub fn answers_travel_with_writes() {
    let mut pair = open();
    let (mut least, mut writes, mut ended) = (u64::MAX, 0, 0);
    for _ in 0..BATCHES {
        let before = frames(&pair);
        for number in 0..WRITES {
            let value = (number + 1) as u8;
            ended += match number % 2 {
                0 => turn(&mut pair.a, &mut pair.b, value),
                _ => turn(&mut pair.b, &mut pair.a, value),
            };
        }
        writes += WRITES;
        least = least.min(frames(&pair) - before);
        if least < WRITES * 3 / 2 {
            break;
        }
    }
    assert!(least < WRITES * 3 / 2, "{WRITES} writes take {least} frames");
    pair.until("all writes end", |pair| {
        ended += (pair.a.take().len() + pair.b.take().len()) as u64;
        ended == writes
    });
}

/// A side that only looks answers each write all the same.
pub fn writes_to_one_that_sends_nothing() {
    let mut pair = open();
    for value in 1..=50 {
        write(&mut pair.a, &pair.b, value);
        let done = pair.completions_of_a(1);
        assert!(done.len() == 1 && done[0].status == WorkStatus::Success, "{done:?}");
        assert_eq!(pair.b.byte(TARGET), value);
    }
}
