//! Refusals at the post: nothing has happened, and the descriptor comes back.

use super::bytes::Ground;
use super::stage::{A, B, Stage, refuses};
use super::{Buffer, Fixture, Node};
use bellwire::{Address, Atomic, Error, Get, Message, Put, Refused, RemoteKey, Rights};

/// The error of a refused descriptor.
#[track_caller]
fn refused<D>(result: Result<(), Refused<D>>) -> (Error, D) {
    match result {
        Ok(()) => panic!("it was accepted"),
        Err(refused) => (refused.error, refused.descriptor),
    }
}

/// Lists with unequal totals are refused, whichever is longer, and not a byte is moved.
// shows: C-29
pub fn unequal_sums(fixture: &dyn Fixture) {
    let mut stage = Stage::pair(fixture);
    let there = Ground::new(&mut stage.nodes[B], Rights::all());
    let key = there.allocated.remote_key();
    let queue_pair = stage.nodes[A].queue_pair;
    for (local, remote) in [
        (vec![10, 10], vec![21]),
        (vec![10, 10], vec![19]),
        (vec![0], vec![1]),
        (vec![1], vec![0]),
        (vec![1], vec![]),
        (vec![], vec![1]),
        (vec![100_000; 3], vec![100_000, 100_000, 99_999]),
    ] {
        let story = format!("{local:?} against {remote:?}");
        let (sources, destinations) = (local.iter().sum(), remote.iter().sum::<u64>());
        let locals: Vec<Vec<u8>> = local.iter().map(|&n| vec![9; n as usize]).collect();
        let remotes: Vec<_> = remote.iter().map(|&n| key.slice(0, n)).collect();
        let function = &mut stage.nodes[A].function;
        let put = Put::new(locals.clone(), remotes.clone());
        let (error, _) = refused(function.post_put(queue_pair, put));
        let expected = matches!(error, Error::UnequalSums { sources: s, destinations: d }
            if (s, d) == (sources, destinations));
        assert!(expected || local.is_empty() || remote.is_empty(), "{story}: {error:?}");
        let (error, _) = refused(function.post_get(queue_pair, Get::new(remotes, locals)));
        let expected = matches!(error, Error::UnequalSums { sources: s, destinations: d }
            if (s, d) == (destinations, sources));
        assert!(expected || local.is_empty() || remote.is_empty(), "{story}: {error:?}");
    }
    assert_eq!(stage.nodes[A].counters().total.sends_posted, 0);
    stage.fence(A, B);
    let mut bytes = vec![1; there.allocated.len()];
    there.allocated.read(0, &mut bytes);
    assert!(bytes.iter().all(|&byte| byte == 0), "memory changed");
}

/// Chains with too many entries, or that span several functions, are refused.
pub fn bad_chains(fixture: &dyn Fixture) {
    let mut stage = Stage::of(fixture, 3);
    let key = Ground::new(&mut stage.nodes[B], Rights::all()).allocated.remote_key();
    let other = Ground::new(&mut stage.nodes[2], Rights::all()).allocated.remote_key();
    let queue_pair = stage.nodes[A].queue_pair;
    let function = &mut stage.nodes[A].function;
    let entries = function.limits().chain_entries;
    let many = |n| vec![vec![1u8]; n];
    let remotes = |n| vec![key.slice(0, 1); n];
    let long = key.slice(0, entries as u64 + 1);
    refuses!(function.post_put(queue_pair, Put::new(many(entries + 1), long)), Error::BadChain(_));
    let bytes = vec![1; entries + 1];
    let put = Put::new(bytes.clone(), remotes(entries + 1));
    refuses!(function.post_put(queue_pair, put), Error::BadChain(_));
    let get = Get::new(remotes(entries + 1), bytes);
    refuses!(function.post_get(queue_pair, get), Error::BadChain(_));
    refuses!(function.post_get(queue_pair, Get::new(long, many(entries + 1))), Error::BadChain(_));
    let two = vec![key.slice(0, 1), other.slice(0, 1)];
    refuses!(function.post_put(queue_pair, Put::new(vec![1; 2], two.clone())), Error::BadChain(_));
    refuses!(function.post_get(queue_pair, Get::new(two, vec![1; 2])), Error::BadChain(_));
    // Exactly the maximum number of entries is accepted.
    let put = Put::new(many(entries), remotes(entries));
    function.post_put(queue_pair, put).expect("the limit itself is allowed");
    stage.success(A);
}

/// Parts outside their key's region, and words that are outside or misaligned, are refused at once,
/// also if the sum overflows.
pub fn out_of_range(fixture: &dyn Fixture) {
    let mut stage = Stage::pair(fixture);
    let region = stage.nodes[B].function.allocate_region(100, Rights::all()).expect("allocated");
    let key = region.remote_key();
    let queue_pair = stage.nodes[A].queue_pair;
    let function = &mut stage.nodes[A].function;
    for (offset, length) in [(0, 101), (1, 100), (100, 1), (101, 0), (u64::MAX, 1), (u64::MAX, 0)] {
        let part = key.slice(offset, length);
        let bytes = vec![1; length as usize];
        let put = Put::new(bytes.clone(), part);
        refuses!(function.post_put(queue_pair, put), Error::OutOfRange { .. });
        refuses!(function.post_get(queue_pair, Get::new(part, bytes)), Error::OutOfRange { .. });
    }
    for offset in [1, 4, 7, 9, 96, 100, 104, u64::MAX - 7, u64::MAX] {
        let at = key.at(offset);
        for atomic in [Atomic::fetch_add(at, 1), Atomic::compare_swap(at, 0, 1)] {
            refuses!(function.post_atomic(queue_pair, atomic), Error::OutOfRange { .. });
        }
    }
    // The last word, the last byte and zero bytes at the very end are inside.
    function.post_atomic(queue_pair, Atomic::fetch_add(key.at(88), 1)).expect("inside");
    function.post_put(queue_pair, Put::new(vec![1; 1], key.slice(99, 1))).expect("inside");
    function.post_put(queue_pair, Put::new(vec![0; 0], key.slice(100, 0))).expect("inside");
    for _ in 0..3 {
        stage.success(A);
    }
}

/// Descriptors that are longer than the printed limits are refused, and come back.
pub fn too_long(fixture: &dyn Fixture) {
    let mut stage = Stage::pair(fixture);
    let to = stage.nodes[B].address();
    let queue_pair = stage.nodes[A].queue_pair;
    let function = &mut stage.nodes[A].function;
    let limits = function.limits();
    let long = vec![1; limits.eager_bytes + 1];
    refuses!(function.post_send(queue_pair, Message::inline(&long).to(to)), Error::TooLong { .. });
    // A list may name the same bytes many times, and a key may claim any length. So the test needs
    // little memory.
    let region = function.register(vec![0; (1 << 30) + 4096], Rights::empty()).expect("registered");
    let entries = limits.message_bytes / region.len() + 1;
    assert!(entries <= limits.chain_entries, "the limit can be exceeded: {limits:?}");
    let parts = || vec![region.slice(0, region.len()); entries];
    let length = entries * region.len();
    let key = RemoteKey { length: u64::MAX, ..region.remote_key() }.slice(0, length as u64);
    let told = [
        refused(function.post_put(queue_pair, Put::new(parts(), key))).0,
        refused(function.post_get(queue_pair, Get::new(key, parts()))).0,
    ];
    for error in told {
        let story = error.to_string();
        assert!(matches!(error, Error::TooLong { length: l, .. } if l == length), "{story}");
        assert!(story.contains(&limits.message_bytes.to_string()), "the limit is named: {story}");
    }
    let private = vec![1; limits.private_data_bytes + 1];
    refuses!(
        function.start_connect(queue_pair, to, &private, std::time::Duration::from_secs(1)),
        Error::TooLong { .. }
    );
}

/// An unconnected queue pair needs a destination, and a connected one refuses any.
// shows: M-03
pub fn destinations(fixture: &dyn Fixture) {
    let mut stage = Stage::pair(fixture);
    let to = stage.nodes[B].address();
    let [ours, theirs] = [A, B].map(|who| stage.nodes[who].queue_pair);
    let node = &mut stage.nodes[A];
    refuses!(node.function.post_send(ours, Message::inline(b"x")), Error::BadDestination(_));
    stage.connect((A, ours), (B, theirs));
    let node = &mut stage.nodes[A];
    refuses!(node.function.post_send(ours, Message::inline(b"x").to(to)), Error::BadDestination(_));
    let key = stage.nodes[B].function.allocate_region(8, Rights::all()).unwrap().remote_key();
    let function = &mut stage.nodes[A].function;
    let put = Put::new(vec![1; 8], key).event(theirs.number + 1, None);
    refuses!(function.post_put(ours, put), Error::BadDestination(_));
    // A connected pair reaches only its peer's memory.
    let own = function.allocate_region(8, Rights::all()).unwrap().remote_key();
    refuses!(function.post_put(ours, Put::new(vec![1; 8], own)), _);
    refuses!(function.post_get(ours, Get::new(own, vec![1; 8])), _);
    function.post_atomic(ours, Atomic::fetch_add(own.at(0), 1)).expect_err("refused");
}

/// A full queue is a named error at the post, and the descriptor comes back unchanged. There is
/// room again as soon as a descriptor has finished.
pub fn full_queues(fixture: &dyn Fixture) {
    let mut stage = Stage::pair(fixture);
    let node = &mut stage.nodes[A];
    let pair = node.another_with(|o| o.send_depth(3).receive_depth(2));
    for context in 0..2 {
        node.function.post_receive(pair, vec![1; 4], context).expect("room");
    }
    let (error, buffer) = refused(node.function.post_receive(pair, vec![8; 4], 9));
    assert!(matches!(error, Error::QueueFull { depth: 2, .. }), "{error:?}");
    assert_eq!(buffer.into_vec(), Some(vec![8; 4]));
    let shared = node.function.create_shared_receive_queue(1).expect("a queue");
    node.function.post_shared_receive(shared, vec![1; 4], 0).expect("room");
    let (error, buffer) = refused(node.function.post_shared_receive(shared, vec![8; 4], 9));
    assert!(matches!(error, Error::QueueFull { depth: 1, .. }), "{error:?}");
    assert_eq!(buffer.into_vec(), Some(vec![8; 4]));
    // Long messages wait for a receiver that is not ready.
    let to = stage.nodes[B].address();
    let node = &mut stage.nodes[A];
    let size = node.function.limits().eager_bytes + 1;
    for context in 0..3 {
        node.send_on(pair, Message::buffer(vec![context; size]).to(to).context(context.into()));
    }
    let (error, send) =
        refused(node.function.post_send(pair, Message::buffer(vec![3; size]).to(to)));
    assert!(matches!(error, Error::QueueFull { depth: 3, .. }), "{error:?}");
    stage.nodes[B].receive(size, 0);
    stage.success(B);
    stage.success(A);
    stage.nodes[A].send_on(pair, send);
    for last in [1, 2, 3] {
        stage.nodes[B].receive(size, 0);
        let bytes = stage.success(B).buffer.and_then(Buffer::into_vec).unwrap();
        assert_eq!((bytes.len(), bytes[0], bytes[size - 1]), (size, last, last));
        stage.success(A);
    }
}

/// Buffers of memory that is not registered here, or no longer, are refused.
// shows: M-05
pub fn foreign_memory(fixture: &dyn Fixture) {
    let mut stage = Stage::pair(fixture);
    let device = stage.nodes[A].device.clone();
    let mut neighbour = Node::of(device, 1, &Default::default());
    let to = stage.nodes[B].address();
    let foreign = stage.nodes[B].function.allocate_region(64, Rights::all()).expect("allocated");
    let next = neighbour.function.register(vec![0; 64], Rights::all()).expect("registered");
    let queue_pair = stage.nodes[A].queue_pair;
    let function = &mut stage.nodes[A].function;
    let stale = function.register(vec![0; 64], Rights::all()).expect("registered");
    function.deregister(stale.clone()).expect("nothing uses it");
    let long = function.limits().eager_bytes + 1;
    let wide = function.register(vec![0; long], Rights::all()).expect("registered");
    function.deregister(wide.clone()).expect("nothing uses it");
    for region in [&foreign, &next, &stale, &wide] {
        let send = Message::buffer(region).to(to);
        refuses!(function.post_send(queue_pair, send), Error::NoSuchRegion);
        refuses!(function.post_receive(queue_pair, region, 0), Error::NoSuchRegion);
        let key = foreign.remote_key().slice(0, 64);
        let part = region.slice(0, 64);
        refuses!(function.post_put(queue_pair, Put::new(part.clone(), key)), Error::NoSuchRegion);
        refuses!(function.post_get(queue_pair, Get::new(key, part)), Error::NoSuchRegion);
        refuses!(function.deregister(region.clone()), Error::NoSuchRegion);
    }
}

/// A channel's member sends to its own number only, and no other queue pair sends to it.
pub fn destinations_of_channels(fixture: &dyn Fixture) {
    let mut stage = Stage::pair(fixture);
    let node = &mut stage.nodes[A];
    let options = bellwire::QueuePairOptions::new(node.completions);
    let member = node.function.open_channel(7, &options).expect("free");
    let there = stage.nodes[B].device.node();
    let plain = stage.nodes[B].address();
    let ordinary = stage.nodes[A].queue_pair;
    let function = &mut stage.nodes[A].function;
    for to in [Address::channel(there, 0, 8), plain] {
        let send = Message::inline(b"x").to(to);
        refuses!(function.post_send(member, send), Error::BadDestination(_));
    }
    let send = Message::inline(b"x").to(Address::channel(there, 0, 7));
    refuses!(function.post_send(ordinary, send), Error::BadDestination(_));
}
