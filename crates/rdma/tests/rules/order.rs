//! Writes are seen after the messages before them.

use super::pair::Pair;
use bellwire_rdma::Operation;

/// A write to the byte at `TARGET` of the peer's memory must wait.
const TARGET: usize = 1000;

/// Posts `first` and a write behind it. The write is not seen before the peer has posted a receive
/// for the first, and both complete in order.
fn waits(first: impl Fn(&Pair) -> Operation) {
    let mut pair = Pair::new("shm", false);
    pair.learn_key();
    pair.a.fill(7);
    let (operation, key, address) = (first(&pair), pair.b.key, pair.b.at(TARGET));
    pair.a.post(1, operation, 0, 8);
    pair.a.post(2, Operation::Write { address, key, immediate: None }, 0, 1);
    // A later write of another queue pair is done, on the same way to `b`.
    let before = pair.renew();
    pair.learn_key();
    (pair.a.number, pair.b.number) = before;
    assert_eq!(pair.b.byte(TARGET), 0, "a write was seen before the request before it");
    pair.b.receive(3, 8);
    let done = pair.completions_of_a(2);
    let ids: Vec<u64> = done.iter().map(|done| done.id).collect();
    assert_eq!((ids, pair.b.byte(TARGET)), (vec![1, 2], 7));
    assert!(done.iter().all(|done| done.status as u32 == 0), "{done:?}");
}

/// Behind a message that has no receive yet.
pub fn a_write_waits_for_the_message_before() {
    waits(|_| Operation::Send { immediate: None, invalidate: None });
}

/// Behind an immediate value that has no receive yet.
pub fn a_write_waits_for_a_value_before() {
    waits(|pair| Operation::Write {
        address: pair.b.at(2000),
        key: pair.b.key,
        immediate: Some(5),
    });
}
