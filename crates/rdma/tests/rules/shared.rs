//! Receives that queue pairs share.

use super::pair::Pair;
use bellwire_rdma::EventKind;

/// The event of the limit comes once, when fewer receives are left than the limit says. A new limit
/// arms it again, and without a limit there is none.
pub fn the_limit_of_a_shared_queue() {
    let mut pair = Pair::new("shm", true);
    let shared = pair.b.shared.unwrap();
    let mut id = 0;
    for (posted, limit, expected) in
        [(5, Some(3), vec![3]), (4, Some(2), vec![3]), (5, None, vec![])]
    {
        for _ in 0..posted {
            pair.b.receive(0, 64);
        }
        if limit.is_some() {
            pair.b.adapter.modify_shared(shared, None, limit).unwrap();
        }
        let mut told = Vec::new();
        for message in 1..=posted {
            id += 1;
            pair.a.send(id, 8);
            pair.completions_of_a(1);
            let events = pair.b.adapter.events().take(|event| event.object == 7);
            assert!(events.iter().all(|event| event.kind == EventKind::SharedReceiveLimit));
            told.extend(events.iter().map(|_| message));
        }
        assert_eq!(told, expected, "{posted} receives, limit {limit:?}");
    }
}
