//! Accepted descriptors that fail: the completion gives operation, peer, length and reason, and
//! nothing has changed at the target.

use super::bytes::{Ground, Kind, pattern};
use super::stage::{A, B, Node, Stage};
use super::{Buffer, Fixture};
use bellwire::{
    Address, Atomic, Completion, Function, Get, MemoryRegion, Message, Operation, Put, QueuePair,
    RemoteAt, RemoteKey, RemoteSlice, Rights, Status,
};

/// Bytes in the regions of these checks.
const BYTES: usize = 30_000;

/// A one-sided operation, the right that it needs, and its post with context 1.
type OneSided = (Operation, Rights, fn(&mut Function, QueuePair, RemoteSlice, Vec<u8>));

const ONE_SIDED: &[OneSided] = &[
    (Operation::Put, Rights::REMOTE_WRITE, |function, pair, part, bytes| {
        function.post_put(pair, Put::new(bytes, part).context(1)).expect("accepted")
    }),
    (Operation::Get, Rights::REMOTE_READ, |function, pair, part, bytes| {
        function.post_get(pair, Get::new(part, bytes).context(1)).expect("accepted")
    }),
    (Operation::FetchAdd, Rights::REMOTE_ATOMIC, |function, pair, part, _| {
        let add = Atomic::fetch_add(word(part), 1).context(1);
        function.post_atomic(pair, add).expect("accepted")
    }),
    (Operation::CompareSwap, Rights::REMOTE_ATOMIC, |function, pair, part, _| {
        let swap = Atomic::compare_swap(word(part), 0, 1).context(1);
        function.post_atomic(pair, swap).expect("accepted")
    }),
];

/// The word that a part begins in.
fn word(part: RemoteSlice) -> RemoteAt {
    part.key.at(part.offset / 8 * 8)
}

/// One region of each kind at node B, filled, with the same rights.
fn regions(stage: &mut Stage<'_>, rights: Rights) -> [MemoryRegion; 2] {
    let function = &mut stage.nodes[B].function;
    let allocated = function.allocate_region(BYTES, rights).expect("allocated");
    allocated.write(0, &pattern(5, BYTES));
    [allocated, function.register(pattern(5, BYTES), rights).expect("registered")]
}

#[track_caller]
fn assert_untouched(region: &MemoryRegion, story: &str) {
    let mut found = vec![0; BYTES];
    region.read(0, &mut found);
    super::bytes::assert_same(&found, &pattern(5, BYTES), story);
}

/// Runs the four one-sided operations on a key. Each must fail with `status`, and give its buffer
/// back unchanged.
#[track_caller]
fn all_fail(stage: &mut Stage<'_>, key: RemoteKey, offset: u64, length: usize, status: Status) {
    for &one_sided in ONE_SIDED {
        fails(stage, one_sided, key, offset, length, status);
    }
}

#[track_caller]
fn fails(
    stage: &mut Stage<'_>,
    (operation, _, post): OneSided,
    key: RemoteKey,
    offset: u64,
    length: usize,
    status: Status,
) {
    let Node { function, queue_pair, .. } = &mut stage.nodes[A];
    post(function, *queue_pair, key.slice(offset, length as u64), vec![0x77; length]);
    let done = stage.next(A);
    let story = format!("{operation:?} at {offset}+{length}: {done:?}");
    assert_eq!((done.operation, done.status, done.context), (operation, status, 1), "{story}");
    assert_eq!(done.peer.function_address(), key.owner(), "{story}");
    if matches!(operation, Operation::Put | Operation::Get) {
        assert_eq!(done.length, 0, "nothing moved: {story}");
        assert_eq!(
            done.buffer.and_then(Buffer::into_vec),
            Some(vec![0x77; length]),
            "{operation:?}"
        );
    }
}

/// A key with any wrong bit, or of another region, changes nothing and raises no event at the
/// target.
pub fn wrong_keys(fixture: &dyn Fixture) {
    let mut stage = Stage::pair(fixture);
    let regions = regions(&mut stage, Rights::all());
    for region in &regions {
        let key = region.remote_key();
        let guess = |stage: &mut Stage<'_>, key: RemoteKey| {
            stage.case = format!("{key:?}");
            all_fail(stage, key, 16, 100, Status::WrongKey);
        };
        for bit in [0, 1, 7, 31, 32, 62, 63] {
            guess(&mut stage, RemoteKey { key: key.key ^ 1 << bit, ..key });
        }
        guess(&mut stage, RemoteKey { key: u64::MAX, ..key });
        let neighbour =
            regions.iter().map(|region| region.remote_key()).find(|&k| k != key).unwrap();
        guess(&mut stage, RemoteKey { index: neighbour.index, ..key });
        guess(&mut stage, RemoteKey { index: 3000, ..key });
        guess(&mut stage, RemoteKey { index: u16::MAX, ..key });
        assert_untouched(region, "a wrong key");
        assert!(stage.nodes[B].poll().is_none(), "the target's program hears nothing");
        // The right key still works, and the wrong ones have left no trace.
        stage.nodes[A].get(Get::new(key.slice(0, BYTES as u64), vec![0; BYTES]));
        let got = stage.success(A).buffer.unwrap().into_bytes(BYTES);
        super::bytes::assert_same(&got, &pattern(5, BYTES), "the right key");
    }
}

/// A key is invalid as soon as its region is deregistered, also for a peer that has used it before.
/// It stays invalid when the place is reused.
pub fn stale_keys(fixture: &dyn Fixture) {
    let mut stage = Stage::pair(fixture);
    for used_before in [false, true] {
        for number in 0..2 {
            let [allocated, registered] = regions(&mut stage, Rights::all());
            let (region, other) =
                if number == 0 { (allocated, registered) } else { (registered, allocated) };
            let key = region.remote_key();
            stage.case = format!("region {number}, used before: {used_before}");
            // The first put may find how the region is reached, the second one remember it, and
            // the third one use that.
            for _ in 0..if used_before { 3 } else { 0 } {
                stage.nodes[A].put(Put::new(pattern(5, BYTES), key));
                stage.success(A);
            }
            // The program keeps a handle, to see what happens to the memory afterwards.
            let kept = region.clone();
            stage.nodes[B].function.deregister(region).expect("nothing uses it");
            all_fail(&mut stage, key, 16, 100, Status::WrongKey);
            assert_untouched(&kept, "a stale key");
            let newer =
                stage.nodes[B].function.allocate_region(BYTES, Rights::all()).expect("allocated");
            newer.write(0, &pattern(5, BYTES));
            all_fail(&mut stage, key, 16, 100, Status::WrongKey);
            let reused = RemoteKey { index: newer.remote_key().index, ..key };
            all_fail(&mut stage, reused, 16, 100, Status::WrongKey);
            assert_untouched(&newer, "a stale key on a newer region");
            assert_untouched(&kept, "a stale key");
            for region in [other, newer] {
                stage.nodes[B].function.deregister(region).expect("nothing uses it");
            }
        }
    }
}

/// Bounds are the region's, whatever length the key claims: a forged length reaches nothing.
pub fn forged_lengths(fixture: &dyn Fixture) {
    let mut stage = Stage::pair(fixture);
    for region in regions(&mut stage, Rights::all()) {
        for length in [u64::MAX, BYTES as u64 + 8] {
            let key = RemoteKey { length, ..region.remote_key() };
            let end = BYTES as u64;
            stage.case = format!("{region:?} claimed to have {length} bytes");
            all_fail(&mut stage, key, end, 8, Status::OutOfBounds);
            for (offset, length) in [(end, 1), (end - 1, 2), (0, BYTES + 1), (end - 7, 8)] {
                for &put_or_get in &ONE_SIDED[..2] {
                    fails(&mut stage, put_or_get, key, offset, length, Status::OutOfBounds);
                }
            }
            if length == u64::MAX {
                all_fail(&mut stage, key, u64::MAX - 15, 8, Status::OutOfBounds);
                all_fail(&mut stage, key, 1 << 63, 8, Status::OutOfBounds);
                all_fail(&mut stage, key, (1 << 32) + 8, 8, Status::OutOfBounds);
            }
        }
        assert_untouched(&region, "outside its bounds");
    }
}

/// Each operation needs its own right; without it nothing changes, and with it alone it works.
pub fn missing_rights(fixture: &dyn Fixture) {
    let mut stage = Stage::pair(fixture);
    for bits in 0..8 {
        let rights = Rights::from_bits(bits).expect("three rights");
        for region in regions(&mut stage, rights) {
            let key = region.remote_key();
            for &one_sided in ONE_SIDED {
                stage.case = format!("{:?} with {rights:?} on {region:?}", one_sided.0);
                if !rights.contains(one_sided.1) {
                    fails(&mut stage, one_sided, key, 16, 100, Status::NotPermitted);
                }
            }
            assert_untouched(&region, "without the right");
            for &(_, right, post) in ONE_SIDED {
                if rights.contains(right) {
                    let Node { function, queue_pair, .. } = &mut stage.nodes[A];
                    post(function, *queue_pair, key.slice(16, 100), vec![1; 100]);
                    stage.success(A);
                }
            }
            stage.nodes[B].function.deregister(region).expect("nothing uses it");
        }
    }
}

/// One bad part in the middle of a chain fails the whole chain. The completion gives the length
/// that was moved, and nothing outside was written.
pub fn a_chain_with_one_bad_part(fixture: &dyn Fixture) {
    let mut stage = Stage::pair(fixture);
    for [first, second] in [[0, 1], [1, 0]] {
        let regions = regions(&mut stage, Rights::all());
        let good = regions[first].remote_key();
        let bad = RemoteKey { key: regions[second].remote_key().key ^ 1, ..good };
        let parts = vec![good.slice(0, 1000), bad.slice(0, 1000), good.slice(2000, 1000)];
        let chain: Vec<_> = (0..3).map(|_| vec![0x55; 1000]).collect();
        stage.nodes[A].put(Put::new(chain.clone(), parts.clone()));
        let done = stage.next(A);
        assert_eq!(done.status, Status::WrongKey, "{done:?}");
        assert!(done.length <= 2000, "two parts are good: {done:?}");
        assert_eq!(done.chain().len(), 2, "all buffers come back: {done:?}");
        assert_untouched(&regions[second], "the other region");
        let mut found = vec![0; BYTES];
        regions[first].read(0, &mut found);
        let before = pattern(5, BYTES);
        for (at, (found, before)) in found.iter().zip(&before).enumerate() {
            let named = at < 1000 || (2000..3000).contains(&at);
            assert!(found == before || named && *found == 0x55, "byte {at} changed");
        }
        stage.nodes[A].get(Get::new(parts, chain));
        let done = stage.next(A);
        assert_eq!((done.status, done.chain().len()), (Status::WrongKey, 2), "{done:?}");
        for region in regions {
            stage.nodes[B].function.deregister(region).expect("nothing uses it");
        }
    }
}

/// A message longer than its receive is truncated: the receiver keeps what fits and is told; so is
/// the sender of a long one.
pub fn long_messages_are_truncated(fixture: &dyn Fixture) {
    let mut stage = Stage::pair(fixture);
    let to = stage.nodes[B].address();
    let there = Ground::new(&mut stage.nodes[B], Rights::empty());
    let eager = stage.nodes[A].function.limits().eager_bytes;
    for (size, room) in
        [(1, 0), (8, 7), (64, 33), (eager, 1), (eager + 1, eager), (eager + 1, 0), (90_000, 70_001)]
    {
        for into in [Kind::Vector, Kind::Allocated(1), Kind::Registered(3)] {
            for early in [false, true] {
                stage.case = format!("{size} bytes into {room} of {into:?}, early: {early}");
                let bytes = pattern(size as u64, size);
                let send = Message::buffer(bytes.clone()).to(to).context(4);
                if early {
                    stage.nodes[A].send(send);
                    stage.until("the message to wait", |stage| {
                        (stage.nodes[B].state().backlog_messages == 1).then_some(())
                    });
                    let destination = there.destination(into, room);
                    stage.nodes[B].receive_into(destination, 5);
                } else {
                    let destination = there.destination(into, room);
                    stage.nodes[B].receive_into(destination, 5);
                    stage.nodes[A].send(send);
                }
                let received = stage.next(B);
                let told = (received.status, received.context, received.length);
                assert_eq!(told, (Status::Truncated, 5, room), "{}", stage.case);
                let buffer = received.buffer.expect("it comes back");
                there.assert_received(into, &buffer, &bytes[..room], &stage.case);
                let sent = stage.next(A);
                let expected = if size > eager { Status::Truncated } else { Status::Success };
                assert_eq!((sent.status, sent.context), (expected, 4), "{}", stage.case);
                assert_eq!(sent.buffer.expect("it comes back").len(), size);
            }
        }
    }
}

/// Sends and events for a queue pair that never existed, or was destroyed, complete with that error
/// and their buffer. Later ones are not affected.
pub fn no_such_queue_pair(fixture: &dyn Fixture) {
    let mut stage = Stage::pair(fixture);
    let gone = stage.nodes[B].another();
    let dead = stage.nodes[B].address_of(gone);
    stage.nodes[B].function.destroy_queue_pair(gone).expect("it exists");
    let alive = stage.nodes[B].address();
    let eager = stage.nodes[A].function.limits().eager_bytes;
    let numbers = [0, dead.queue_pair, 5000, 20_000, Address::CHANNEL_BASE - 1];
    for to in numbers.map(|queue_pair| Address { queue_pair, ..alive }) {
        for size in [0, 8, eager, eager + 1, 3 * eager] {
            stage.case = format!("{size} bytes to {to}");
            stage.nodes[A].send(Message::buffer(vec![2; size]).to(to).context(3));
            let Completion { status, context, buffer, peer, .. } = stage.next(A);
            let told = (status, context, peer);
            assert_eq!(told, (Status::NoSuchQueuePair, 3, to), "{}", stage.case);
            assert_eq!(buffer.and_then(Buffer::into_vec), Some(vec![2; size]), "{}", stage.case);
            stage.nodes[B].receive(4, 0);
            stage.nodes[A].send(Message::inline(b"fine").to(alive));
            stage.success(A);
            stage.success(B);
        }
    }
}

/// A node that does not exist is unreachable: every descriptor for it completes, with its buffer.
pub fn nobody_there(fixture: &dyn Fixture) {
    let mut stage = Stage::of(fixture, 1);
    let node = &mut stage.nodes[A];
    let mut key = node.function.allocate_region(64, Rights::all()).expect("allocated").remote_key();
    key.node = 60_000;
    let to = Address::new(60_000, 0, 1);
    let (pair, function) = (node.queue_pair, &mut node.function);
    function.post_send(pair, Message::buffer(vec![1; 8]).to(to).context(0)).expect("accepted");
    function.post_send(pair, Message::inline(&[1; 8]).to(to).context(1)).expect("accepted");
    function.post_send(pair, Message::buffer(vec![1; 50_000]).to(to).context(2)).expect("accepted");
    function.post_put(pair, Put::new(vec![1; 64], key).context(3)).expect("accepted");
    function.post_get(pair, Get::new(key, vec![1; 64]).context(4)).expect("accepted");
    function.post_atomic(pair, Atomic::fetch_add(key.at(0), 1).context(5)).expect("accepted");
    let mut contexts: Vec<_> = (0..6)
        .map(|_| {
            let done = stage.next(A);
            assert_eq!(done.status, Status::Unreachable, "{done:?}");
            assert_eq!(done.buffer.is_some(), ![1, 5].contains(&done.context), "{done:?}");
            done.context
        })
        .collect();
    contexts.sort();
    assert_eq!(contexts, [0, 1, 2, 3, 4, 5]);
}

/// A program that only sends, now and then, hears of the end of its peer. Over shared memory a
/// short message is sent and done within its post, so no poll would look.
pub fn who_only_sends_hears_of_the_end(fixture: &dyn Fixture) {
    /// Fewer than what posts in quick succession leave unseen.
    const LOST: usize = 40;
    let mut stage = Stage::pair(fixture);
    let to = stage.nodes[B].address();
    stage.nodes[B].receive(8, 0);
    stage.nodes[A].send(Message::inline(&[1; 8]).to(to));
    stage.success(A);
    stage.success(B);
    stage.nodes.remove(B);
    for _ in 0..LOST {
        std::thread::sleep(std::time::Duration::from_millis(2));
        stage.nodes[A].send(Message::inline(&[2; 8]).to(to));
        if stage.next(A).status != Status::Success {
            return;
        }
    }
    panic!("{LOST} messages to nobody are successes; {}", stage.story());
}
