//! Handles and limits: what exists, what was destroyed, and what is exhausted.

use super::bytes::pattern;
use super::stage::{A, B, Stage, refuses};
use super::{Buffer, Fixture, Node};
use bellwire::{Atomic, Error, MemoryRegion, Message, Put, QueuePairOptions, Rights, Status, Wait};
use std::time::Duration;

/// Every call refuses handles of destroyed objects and of other functions. A new object in the same
/// place does not answer to an old handle.
pub fn stale_and_foreign_handles(fixture: &dyn Fixture) {
    let mut stage = Stage::pair(fixture);
    let to = stage.nodes[B].address();
    let key = stage.nodes[B].function.allocate_region(64, Rights::all()).unwrap().remote_key();
    let foreign = (stage.nodes[B].queue_pair, stage.nodes[B].completions);
    let shared = stage.nodes[B].function.create_shared_receive_queue(4).expect("a queue");
    let function = &mut stage.nodes[A].function;
    let completions = function.create_completion_queue(8).expect("a queue");
    let stale_shared = function.create_shared_receive_queue(4).expect("a queue");
    let pair = function.create_queue_pair(&QueuePairOptions::new(completions)).expect("a pair");
    function.destroy_queue_pair(pair).expect("it exists");
    function.destroy_completion_queue(completions).expect("nobody uses it");
    function.destroy_shared_receive_queue(stale_shared).expect("nobody uses it");
    for _ in 0..5 {
        let completions = function.create_completion_queue(8).expect("a queue");
        function.create_queue_pair(&QueuePairOptions::new(completions)).expect("a pair");
        function.create_shared_receive_queue(4).expect("a queue");
    }
    for (pair, completions, shared) in
        [(pair, completions, stale_shared), (foreign.0, foreign.1, shared)]
    {
        let send = function.post_send(pair, Message::inline(b"x").to(to)).map_err(|r| r.error);
        let receive = function.post_receive(pair, vec![1; 8], 0).map_err(|r| r.error);
        let put = function.post_put(pair, Put::new(vec![1; 64], key)).map_err(|r| r.error);
        let get = bellwire::Get::new(key, vec![1; 64]);
        let get = function.post_get(pair, get).map_err(|r| r.error);
        let add = Atomic::fetch_add(key.at(0), 1);
        let add = function.post_atomic(pair, add).map_err(|r| r.error);
        let swap = Atomic::compare_swap(key.at(0), 1, 1);
        let swap = function.post_atomic(pair, swap).map_err(|r| r.error);
        let connect = function.start_connect(pair, to, b"", Duration::from_secs(1));
        let progress = function.poll_connection(pair).map(drop);
        let query = function.query(pair).map(drop);
        let disconnect = function.disconnect(pair);
        let destroy = function.destroy_queue_pair(pair);
        for result in
            [send, receive, put, get, add, swap, connect, progress, query, disconnect, destroy]
        {
            assert!(matches!(result, Err(Error::NoSuchQueuePair)), "{result:?}");
        }
        let poll = function.poll(completions).map(drop);
        let wait = function.wait(completions, Wait::Spin, Duration::ZERO).map(drop);
        let create = function.create_queue_pair(&QueuePairOptions::new(completions)).map(drop);
        let destroy = function.destroy_completion_queue(completions);
        for result in [poll, wait, create, destroy] {
            assert!(matches!(result, Err(Error::NoSuchCompletionQueue)), "{result:?}");
        }
        let post = function.post_shared_receive(shared, vec![1; 8], 0).map_err(|r| r.error);
        let good = function.create_completion_queue(8).expect("a queue");
        let options = QueuePairOptions::new(good).shared_receive(shared);
        let create = function.create_queue_pair(&options).map(drop);
        let destroy = function.destroy_shared_receive_queue(shared).map(drop);
        for result in [post, create, destroy] {
            assert!(matches!(result, Err(Error::NoSuchSharedReceiveQueue)), "{result:?}");
        }
    }
}

/// An object in use cannot be destroyed. Afterwards it can, and its contents come back.
// shows: M-04
pub fn things_in_use_stay(fixture: &dyn Fixture) {
    let mut stage = Stage::pair(fixture);
    let to = stage.nodes[B].address();
    let function = &mut stage.nodes[A].function;
    let completions = function.create_completion_queue(64).expect("a queue");
    let shared = function.create_shared_receive_queue(4).expect("a queue");
    let options = QueuePairOptions::new(completions).shared_receive(shared);
    let pair = function.create_queue_pair(&options).expect("a pair");
    refuses!(function.destroy_completion_queue(completions), Error::InUse { .. });
    let error = function.destroy_shared_receive_queue(shared).expect_err("in use");
    assert!(matches!(error, Error::InUse { .. }), "{error:?}");
    let refused = function.post_receive(pair, vec![0; 8], 0).expect_err("it shares");
    assert!(matches!(refused.error, Error::WrongState { .. }), "{:?}", refused.error);
    let buffer = vec![7; 8];
    let place = buffer.as_ptr();
    function.post_shared_receive(shared, buffer, 71).expect("room");
    function.post_shared_receive(shared, vec![8; 8], 72).expect("room");
    // A posted descriptor uses its region, wherever it waits.
    let long = function.limits().eager_bytes + 1;
    let region = function.register(pattern(1, long), Rights::empty()).expect("registered");
    let inbox = function.register(vec![0; 64], Rights::empty()).expect("registered");
    function.post_send(pair, Message::buffer(&region).to(to)).expect("room");
    let own = stage.nodes[A].queue_pair;
    let function = &mut stage.nodes[A].function;
    function.post_receive(own, &inbox, 0).expect("room");
    for region in [&region, &inbox] {
        refuses!(function.deregister(region.clone()), Error::InUse { .. });
    }
    stage.nodes[B].receive(long, 0);
    let received = stage.success(B).buffer.unwrap().into_bytes(long);
    super::bytes::assert_same(&received, &pattern(1, long), "the region still works");
    drop(stage.next_of(A, completions));
    let function = &mut stage.nodes[A].function;
    assert_eq!(function.deregister(region).expect("free now").len(), long);
    function.destroy_queue_pair(pair).expect("it exists");
    function.destroy_completion_queue(completions).expect("free now");
    let returned = function.destroy_shared_receive_queue(shared).expect("free now");
    let contexts: Vec<_> = returned.iter().map(|(_, context)| *context).collect();
    assert_eq!(contexts, [71, 72]);
    let first = returned.into_iter().next().and_then(|(buffer, _)| buffer.into_vec());
    assert_eq!(first.map(|bytes| bytes.as_ptr()), Some(place), "the same allocation");
}

/// Creates until it is refused. The refusal names the limit, and one more fits as soon as one is
/// given back.
#[track_caller]
fn fill<T>(
    limit: usize,
    existing: usize,
    what: &str,
    mut create: impl FnMut() -> Result<T, Error>,
) -> Vec<T> {
    let mut made = Vec::new();
    loop {
        match create() {
            Ok(one) => made.push(one),
            Err(Error::Exhausted { limit: named, what: named_what, hint }) => {
                assert_eq!(named, limit as u64, "{what}: {named_what}");
                assert_eq!(made.len() + existing, limit, "{what}");
                assert!(!hint.is_empty(), "{what}: what to do is said");
                return made;
            }
            Err(other) => panic!("{what} number {}: {other}", made.len()),
        }
        assert!(made.len() <= limit, "more {what} than the limit of {limit}");
    }
}

/// Every printed limit is a clear error when it is reached, nothing breaks, and objects that are
/// given back can be used again.
pub fn limits_are_clear_errors(fixture: &dyn Fixture) {
    let mut stage = Stage::of(fixture, 1);
    let node = &mut stage.nodes[A];
    let limits = node.function.limits();
    let options = QueuePairOptions::new(node.completions).send_depth(1).receive_depth(1);
    let (own, function) = (node.queue_pair, &mut node.function);
    let pairs = fill(limits.queue_pairs, 1, "queue pairs", || function.create_queue_pair(&options));
    let numbers: std::collections::HashSet<_> = pairs.iter().map(|pair| pair.number).collect();
    assert_eq!(numbers.len(), pairs.len(), "each has a number of its own");
    let last = *pairs.last().expect("many");
    function.destroy_queue_pair(last).expect("it exists");
    let again = function.create_queue_pair(&options).expect("there is a place again");
    assert!(function.query(last).is_err() && function.query(again).is_ok());
    for pair in pairs.iter().filter(|&&pair| pair != last) {
        function.destroy_queue_pair(*pair).expect("it exists");
    }
    function.destroy_queue_pair(again).expect("it exists");
    assert_eq!(function.queue_pairs(), [own]);

    let queues = fill(limits.completion_queues, 1, "completion queues", || {
        function.create_completion_queue(1)
    });
    function.destroy_completion_queue(queues[0]).expect("nobody uses it");
    function.create_completion_queue(1).expect("there is a place again");
    let shared = fill(limits.shared_receive_queues, 0, "shared receive queues", || {
        function.create_shared_receive_queue(1)
    });
    function.destroy_shared_receive_queue(shared[0]).expect("nobody uses it");
    function.create_shared_receive_queue(1).expect("there is a place again");
    let mut number = 0;
    let listeners = fill(limits.listeners, 0, "listeners", || {
        number += 1;
        function.listen(number)
    });
    function.stop_listening(listeners[0]).expect("it listened");
    function.listen(1).expect("there is a place again");
    let stale = function.poll_request(listeners[0]);
    assert!(stale.is_err(), "a stale listener: {stale:?}");
    let regions: Vec<MemoryRegion> = fill(limits.regions, 0, "memory regions", || {
        function.register(vec![0; 8], Rights::all()).map_err(Error::from)
    });
    let keys: std::collections::HashSet<_> =
        regions.iter().map(|region| region.remote_key().key).collect();
    assert_eq!(keys.len(), regions.len(), "keys are all different");
    refuses!(function.allocate_region(8, Rights::all()), Error::Exhausted { .. });
    let refused = function.register(vec![7; 9], Rights::all()).expect_err("full");
    assert!(matches!(refused.error, Error::Exhausted { .. }), "{refused:?}");
    assert_eq!(refused.descriptor, [7; 9], "what was brought comes back");
    for region in regions {
        function.deregister(region).expect("nothing uses it");
    }
    function.allocate_region(8, Rights::all()).expect("there is a place again");
}

/// Regions of no bytes are refused.
pub fn empty_regions(fixture: &dyn Fixture) {
    let mut stage = Stage::of(fixture, 1);
    let function = &mut stage.nodes[A].function;
    function.allocate_region(0, Rights::all()).expect_err("a region has at least one byte");
    function.register(Vec::new(), Rights::all()).expect_err("a region has at least one byte");
    function.allocate_region(1, Rights::all()).expect("one is enough");
}

/// Numbers of queue pairs count from 1 and are not reused. A message for a destroyed queue pair
/// reaches no other.
pub fn numbers_are_not_reused(fixture: &dyn Fixture) {
    let mut stage = Stage::pair(fixture);
    assert_eq!(stage.nodes[B].queue_pair.number, 1, "the first");
    let mut last = 1;
    for _ in 0..20 {
        let node: &mut Node = &mut stage.nodes[B];
        let gone = node.another();
        assert!(gone.number > last, "{} after {last}", gone.number);
        last = gone.number;
        let dead = node.address_of(gone);
        node.function.destroy_queue_pair(gone).expect("it exists");
        let next = node.another();
        last = last.max(next.number);
        node.receive_on(next, 8, 0);
        stage.nodes[A].send(Message::buffer(vec![1; 8]).to(dead));
        let done = stage.next(A);
        assert_eq!(done.status, Status::NoSuchQueuePair, "{done:?}");
        assert!(done.buffer.and_then(Buffer::into_vec).is_some());
        assert!(stage.nodes[B].poll().is_none());
    }
}

/// Closing a function, or dropping a region's last handle, is safe at any time with descriptors in
/// flight.
pub fn anything_can_be_dropped(fixture: &dyn Fixture) {
    // A closing node waits for a while if its peer does not poll.
    for round in 0..12 {
        let mut stage = Stage::pair(fixture);
        let to = stage.nodes[B].address();
        let pair = stage.nodes[A].queue_pair;
        let long = stage.nodes[A].function.limits().eager_bytes * 3;
        let region = stage.nodes[B].function.allocate_region(1 << 20, Rights::all()).expect("room");
        let key = region.remote_key();
        let function = &mut stage.nodes[A].function;
        let source = function.allocate_region(long, Rights::REMOTE_READ).expect("room");
        for _ in 0..5 {
            function.post_send(pair, Message::buffer(vec![1; long]).to(to)).expect("room");
            function.post_send(pair, Message::buffer(&source).to(to)).expect("room");
            function.post_put(pair, Put::new(vec![1; 1 << 20], key)).expect("room");
            function.post_get(pair, bellwire::Get::new(key, vec![1; 1 << 20])).expect("room");
            function.post_atomic(pair, Atomic::fetch_add(key.at(0), 1).context(1)).expect("room");
        }
        for _ in 0..3 {
            stage.nodes[B].receive(long, 0);
        }
        stage.turns(round * 5 / 2);
        drop(source);
        // Whoever stays goes on.
        match round % 3 {
            0 => {
                stage.nodes.remove(A);
                stage.fence(0, 0);
            }
            1 => {
                stage.nodes.remove(B);
                stage.until("all descriptors to end", |stage| {
                    (stage.nodes[A].state().posted_sends == 0).then_some(())
                });
            }
            _ => {
                drop(region);
                stage.fence(A, B);
                stage.fence(B, A);
            }
        }
    }
}
