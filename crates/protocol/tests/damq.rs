//! The shared memory with many queues, by example and against a plain model.

#[path = "oracles/damq.rs"]
mod damq_oracle;
#[path = "oracles/gate.rs"]
mod gate_oracle;

use bellwire_protocol::{Damq, GatePolicy, PushError, Signal};
use proptest::prelude::*;

fn push(damq: &mut Damq<u32>, queue: u32, header: u32, bytes: &[u8]) -> Result<(), PushError> {
    let mut pieces = 0;
    damq.push(queue, header, bytes.len(), |offset, piece| {
        pieces += 1;
        assert!(pieces <= bytes.len(), "pieces without end");
        piece.copy_from_slice(&bytes[offset..offset + piece.len()])
    })
}

fn pop(damq: &mut Damq<u32>, queue: u32) -> Option<(u32, Vec<u8>)> {
    let mut bytes = Vec::new();
    let mut pieces = 0;
    let (header, len) = damq.pop(queue, |_, piece| {
        pieces += 1;
        assert!(pieces <= 4096, "pieces without end");
        bytes.extend_from_slice(piece);
    })?;
    assert_eq!(bytes.len(), len);
    Some((header, bytes))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    /// Any sequence of operations leaves the same messages, in the same order per queue, as a plain
    /// model. The chains stay sound after every step: no cell is given twice, and all are free
    /// after draining.
    // shows: D-02, D-03, D-21
    #[test]
    fn agrees_with_the_model(ops in damq_oracle::ops()) {
        damq_oracle::agree(ops)?;
    }
}

/// Every size above 16 and up to 128 B goes in and comes out complete, next to messages of other
/// sizes in other queues. No two sizes differ by a whole cell only, so a lost or added byte shows.
// shows: D-21
#[test]
fn every_size_of_descriptor_comes_out_complete() {
    let mut damq = Damq::<u32>::new(1024, 32, 4);
    let bytes = |size: usize| (0..size).map(|at| (size * 7 + at) as u8).collect::<Vec<u8>>();
    for size in 17..=128_usize {
        let others = [145 - size, (size * 5) % 112 + 17];
        for (queue, size) in (0..).zip([size, others[0], others[1]]) {
            push(&mut damq, queue, size as u32, &bytes(size)).unwrap();
        }
        for (queue, size) in (0..).zip([size, others[0], others[1]]) {
            assert_eq!(pop(&mut damq, queue), Some((size as u32, bytes(size))));
        }
        assert_eq!(damq.free_cells(), 1024);
    }
}

/// Any one queue, alone, fills every cell; a further message is refused and changes nothing.
// shows: D-01
#[test]
fn a_lone_queue_fills_the_whole_memory() {
    let mut damq = Damq::<u32>::new(1024, 32, 64);
    for queue in [0, 31, 63] {
        for n in 0..256 {
            push(&mut damq, queue, n, &[n as u8; 128]).unwrap();
        }
        assert_eq!((damq.cells_of(queue), damq.free_cells()), (1024, 0));
        let refused = push(&mut damq, queue, 256, &[0; 17]);
        assert_eq!(refused, Err(PushError::Full { needed_cells: 1, free_cells: 0 }));
        damq.check().unwrap();
        for n in 0..256 {
            assert_eq!(pop(&mut damq, queue), Some((n, vec![n as u8; 128])));
        }
        assert_eq!(damq.free_cells(), 1024);
    }
}

/// A message that does not fit is refused whole, although a part of it would have fitted.
// shows: D-06
#[test]
fn a_message_is_stored_whole_or_not_at_all() {
    let mut damq = Damq::<u32>::new(8, 32, 2);
    push(&mut damq, 0, 1, &[1; 160]).unwrap();
    let mut called = false;
    let refused = damq.push(1, 2, 128, |_, _| called = true);
    assert_eq!(refused, Err(PushError::Full { needed_cells: 4, free_cells: 3 }));
    assert!(!called, "a refused message is not read");
    assert_eq!((damq.front(1), damq.free_cells()), (None, 3));
    damq.check().unwrap();
    push(&mut damq, 1, 3, &[3; 96]).unwrap();
    assert_eq!(pop(&mut damq, 1), Some((3, vec![3; 96])));
}

/// A message longer than the memory is refused as too long at any length, and not as one to try
/// again.
#[test]
fn a_message_that_never_fits_says_so() {
    let mut damq = Damq::<u32>::new(8, 32, 1);
    for len in [257, 1 << 32, usize::MAX] {
        let refused = damq.push(0, 0, len, |_, _| unreachable!());
        assert_eq!(refused, Err(PushError::TooLong { len, max_bytes: 256 }));
    }
}

/// A caller that panics while it copies leaves the queues as they were.
#[test]
fn a_panic_while_filling_changes_nothing() {
    let mut damq = Damq::<u32>::new(4, 32, 1);
    push(&mut damq, 0, 7, b"before").unwrap();
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut pieces = 0;
        damq.push(0, 8, 64, |offset, piece| {
            pieces += 1;
            assert!(offset == 0 && pieces == 1, "the second piece fails");
            assert_eq!(piece.len(), 32);
        })
    }));
    assert!(caught.is_err());
    damq.check().unwrap();
    assert_eq!(damq.free_cells(), 3);
    assert_eq!(pop(&mut damq, 0), Some((7, b"before".to_vec())));
}

/// The same code serves 16 queues and 16,384, and a queue without messages holds no cell.
// shows: D-22
#[test]
fn queues_are_many() {
    for queues in [16, 32, 64, 16_384] {
        let mut damq = Damq::<u32>::new(queues as usize, 32, queues as usize);
        for queue in 0..queues {
            push(&mut damq, queue, queue, &queue.to_le_bytes()).unwrap();
        }
        damq.check().unwrap();
        for queue in (0..queues).rev() {
            assert_eq!(pop(&mut damq, queue), Some((queue, queue.to_le_bytes().to_vec())));
        }
        assert_eq!(damq.free_cells(), queues as usize);
    }
}

/// A queue that grows unread is stopped once, before the memory is full, and released once after it
/// has been read. What was in flight at the STOP still finds room, so nothing is lost.
// shows: H-15, H-16
#[test]
fn a_growing_queue_is_stopped_and_goes_on() {
    let (mut damq, mut gate) = (Damq::<u32>::new(96, 32, 2), GatePolicy::new(2));
    let mut signals = Vec::new();
    let mut sent = 0;
    let mut step = |damq: &Damq<u32>, signals: &mut Vec<_>| {
        signals.extend(gate.observe(0, damq.cells_of(0), damq.free_cells()));
        gate.is_stopped(0)
    };
    while !step(&damq, &mut signals) {
        push(&mut damq, 0, sent, b"flow").unwrap();
        sent += 1;
    }
    assert_eq!((sent, signals.as_slice()), (33, [Signal::Stop].as_slice()), "above a third of 96");
    for _ in 0..63 {
        push(&mut damq, 0, sent, b"in flight").unwrap();
        step(&damq, &mut signals);
        sent += 1;
    }
    for n in 0..sent {
        assert_eq!(pop(&mut damq, 0).unwrap().0, n);
        step(&damq, &mut signals);
    }
    assert_eq!(signals, [Signal::Stop, Signal::Go]);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    /// Over any traffic the signals of a queue alternate, beginning with STOP, and an empty queue
    /// is never stopped.
    // shows: H-15, H-16
    #[test]
    fn signals_alternate(ops in gate_oracle::ops()) {
        gate_oracle::agree(ops)?;
    }
}
