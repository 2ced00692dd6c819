//! Polls look for packets although completions wait.

use super::pair::Pair;
use bellwire_rdma::Operation;

/// Reads after which the message must have been taken.
const READS: u64 = 10_000;

/// A read over shared memory completes when it is posted. A program that posts one for each
/// completion takes what its peer sends all the same.
pub fn polls_with_completions_look() {
    let mut pair = Pair::new("shm", false);
    let (address, key) = (pair.b.at(0), pair.b.key);
    let read = Operation::Read { address, key };
    // The first one asks the peer for the key's meaning.
    pair.a.post(1, read, 64, 8);
    assert_eq!(pair.completions_of_a(1)[0].id, 1);
    pair.a.receive(2, 8);
    pair.b.send(3, 8);
    for id in 4..READS {
        pair.a.post(id, read, 64, 8);
        if pair.a.adapter.poll(pair.a.queue).is_some_and(|done| done.id == 2) {
            return;
        }
    }
    panic!("no message after {READS} reads");
}
