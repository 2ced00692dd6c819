//! Puts, gets, chains, atomics and events: remote memory access without the owner's program.

use super::bytes::{Ground, Kind, Random, assert_same, kinds, pattern, sizes};
use super::stage::{A, B, Stage, accepted, refuses};
use super::{Buffer, Fixture, Patience};
use bellwire::{
    Atomic, Error, Get, Message, Operation, Put, RemoteKey, RemoteSlice, Rights, Status,
};

/// A part of a ground's region for a place of this kind, as a peer names it; `None` for vectors,
/// which have no key.
fn remote(ground: &Ground, kind: Kind, length: usize) -> Option<RemoteSlice> {
    let (region, offset) = ground.place(kind)?;
    Some(region.remote_key().slice(offset as u64, length as u64))
}

/// Puts of every size class land whole, from every kind of memory and alignment in every kind of
/// region. They change nothing beside their destination.
// shows: C-08, C-22
pub fn put_every_size_and_memory(fixture: &dyn Fixture) {
    let mut stage = Stage::pair(fixture);
    let here = Ground::new(&mut stage.nodes[A], Rights::empty());
    let there = Ground::new(&mut stage.nodes[B], Rights::REMOTE_WRITE);
    let to = stage.nodes[B].function.address();
    for size in sizes(&stage.nodes[A].function.limits()) {
        let bytes = pattern(size as u64, size);
        for &from in kinds(size) {
            for &into in kinds(size) {
                let Some(destination) = remote(&there, into, size) else { continue };
                stage.case = format!("{size} bytes, {from:?} to {into:?}");
                let landed = there.destination(into, size);
                let put = Put::new(single(here.source(from, &bytes)), destination).context(5);
                stage.nodes[A].put(put);
                let done = stage.success(A);
                assert_eq!((done.operation, done.length), (Operation::Put, size), "{done:?}");
                assert_eq!((done.context, done.peer.function_address()), (5, to), "{done:?}");
                assert_eq!(done.buffer.expect("the source comes back").len(), size);
                there.assert_received(into, &landed, &bytes, &stage.case);
            }
        }
    }
    assert!(stage.nodes[B].poll().is_none(), "the target's program takes no part");
}

/// Gets of every size class return the region's bytes, from every kind of region and alignment to
/// every kind of memory. They change nothing beside their destination.
// shows: C-08
pub fn get_every_size_and_memory(fixture: &dyn Fixture) {
    let mut stage = Stage::pair(fixture);
    let here = Ground::new(&mut stage.nodes[A], Rights::empty());
    let there = Ground::new(&mut stage.nodes[B], Rights::REMOTE_READ);
    for size in sizes(&stage.nodes[A].function.limits()) {
        let bytes = pattern(!(size as u64), size);
        for &from in kinds(size) {
            for &into in kinds(size) {
                let Some(source) = remote(&there, from, size) else { continue };
                stage.case = format!("{size} bytes, {from:?} to {into:?}");
                there.source(from, &bytes);
                let get = Get::new(source, single(here.destination(into, size))).context(6);
                stage.nodes[A].get(get);
                let done = stage.success(A);
                assert_eq!((done.operation, done.length), (Operation::Get, size), "{done:?}");
                assert_eq!(done.context, 6, "{done:?}");
                here.assert_received(into, &done.buffer.unwrap(), &bytes, &stage.case);
            }
        }
    }
    assert!(stage.nodes[B].poll().is_none(), "the target's program takes no part");
}

/// A put of data inside the descriptor lands like any other and gives no buffer back. A silent one
/// completes only if it fails. One that is too long for a descriptor is refused.
// shows: C-17
pub fn puts_can_be_inline_and_silent(fixture: &dyn Fixture) {
    let mut stage = Stage::pair(fixture);
    let there = Ground::new(&mut stage.nodes[B], Rights::REMOTE_WRITE);
    let queue_pair = stage.nodes[A].queue_pair;
    let eager = stage.nodes[A].function.limits().eager_bytes;
    for size in [0, 1, 8, 33, eager] {
        for into in [Kind::Allocated(1), Kind::Registered(0)] {
            let destination = remote(&there, into, size).expect("a region");
            for signaled in [true, false] {
                stage.case = format!("{size} bytes to {into:?}, signaled: {signaled}");
                let mut bytes = pattern(size as u64 + signaled as u64, size);
                let landed = there.destination(into, size);
                let put = Put::inline(&bytes, destination).context(7);
                let put = if signaled { put } else { put.unsignaled() };
                stage.nodes[A].put(put);
                let sent = bytes.clone();
                bytes.fill(0);
                if signaled {
                    let done = stage.success(A);
                    assert_eq!((done.operation, done.context), (Operation::Put, 7), "{done:?}");
                    assert!(done.buffer.is_none() && done.length == size, "{done:?}");
                } else {
                    stage.until("the put to finish", |stage| {
                        (stage.nodes[A].state().posted_sends == 0).then_some(())
                    });
                    assert!(stage.nodes[A].poll().is_none(), "a silent success; {}", stage.case);
                }
                there.assert_received(into, &landed, &sent, &stage.case);
            }
        }
    }
    let key = there.allocated.remote_key();
    let node = &mut stage.nodes[A];
    let bytes = vec![1; eager + 1];
    let put = Put::inline(&bytes, key.slice(0, eager as u64 + 1));
    refuses!(node.function.post_put(queue_pair, put), Error::TooLong { .. });
    let wrong = RemoteKey { key: !key.key, ..key };
    stage.nodes[A].put(Put::inline(&[1; 8], wrong.slice(0, 8)).unsignaled().context(8));
    let failed = stage.next(A);
    assert_eq!((failed.status, failed.context), (Status::WrongKey, 8), "{failed:?}");
    assert!(failed.buffer.is_none(), "{failed:?}");
}

fn single(buffer: Buffer) -> Vec<Buffer> {
    vec![buffer]
}

/// Cuts `total` bytes into at most `most` parts at random, empty parts included.
fn cuts(random: &mut Random, total: usize, most: usize) -> Vec<usize> {
    let mut parts = vec![];
    let mut left = total;
    while parts.len() + 1 < most && left > 0 {
        let part = random.below(left.min(2 * total / most + 1) + 1);
        parts.push(part);
        left -= part;
    }
    parts.push(left);
    parts
}

/// Source and destination lists may differ in number and sizes of entries, if their totals are
/// equal. Puts and gets transfer them right, from and to all kinds of memory, and every buffer
/// comes back in order.
// shows: C-28
pub fn chains_are_cut_anew(fixture: &dyn Fixture) {
    let mut stage = Stage::pair(fixture);
    let rights = Rights::REMOTE_READ | Rights::REMOTE_WRITE;
    let there = Ground::new(&mut stage.nodes[B], rights);
    let here = Ground::new(&mut stage.nodes[A], rights);
    let entries = stage.nodes[A].function.limits().chain_entries;
    let mut random = Random(28);
    let totals = [0, 1, 8, 100, 4096, 100_000, 500_000];
    for round in 0..60 {
        let total = totals[round % totals.len()];
        let most = [1, 2, 3, 17, entries.min(200)][round % 5];
        let locals = cuts(&mut random, total, most);
        let remotes = cuts(&mut random, total, [1, 40, 2, 5][round % 4]);
        stage.case = format!("round {round}: {} parts here, {} there", locals.len(), remotes.len());
        let bytes = pattern(round as u64, total);
        // Every other local entry is part of a region; the remote entries alternate between two
        // regions.
        let mut at = 0;
        let mut local = Vec::new();
        for (number, &length) in locals.iter().enumerate() {
            local.push(match number % 2 {
                0 => Buffer::from(bytes[at..at + length].to_vec()),
                _ => {
                    here.allocated.write(at, &bytes[at..at + length]);
                    here.allocated.slice(at, length).into()
                }
            });
            at += length;
        }
        let mut at = 0;
        let mut remote = Vec::new();
        for (number, &length) in remotes.iter().enumerate() {
            let region = [&there.allocated, &there.registered][number % 2];
            remote.push(region.remote_key().slice(at as u64, length as u64));
            at += length;
        }
        let shape: Vec<_> = local.iter().map(Buffer::len).collect();
        stage.nodes[A].put(Put::new(local, remote.clone()));
        let put = stage.success(A);
        assert_eq!(put.length, total, "{}", stage.case);
        let mut at = 0;
        for (number, &length) in remotes.iter().enumerate() {
            let mut found = vec![0; length];
            [&there.allocated, &there.registered][number % 2].read(at, &mut found);
            assert_same(&found, &bytes[at..at + length], &stage.case);
            at += length;
        }
        let returned: Vec<_> = put.into_buffers().collect();
        assert_eq!(returned.iter().map(Buffer::len).collect::<Vec<_>>(), shape, "{}", stage.case);
        // Back again, into the same buffers after they were wiped.
        let wiped: Vec<Buffer> = returned
            .into_iter()
            .map(|buffer| match buffer.region() {
                None => vec![0; buffer.len()].into(),
                Some(region) => {
                    region.write(buffer.offset(), &vec![0; buffer.len()]);
                    buffer
                }
            })
            .collect();
        stage.nodes[A].get(Get::new(remote, wiped));
        let got = stage.success(A);
        assert_eq!(got.length, total, "{}", stage.case);
        let mut at = 0;
        for buffer in got.into_buffers() {
            let length = buffer.len();
            assert_same(&buffer.into_bytes(length), &bytes[at..at + length], &stage.case);
            at += length;
        }
        assert_eq!(at, total, "all parts came back; {}", stage.case);
    }
}

/// Fetch-add and compare-swap change one word, return its previous value, and wrap around. Swaps
/// that do not match change nothing.
pub fn atomics_change_one_word(fixture: &dyn Fixture) {
    let mut stage = Stage::pair(fixture);
    let there = Ground::new(&mut stage.nodes[B], Rights::REMOTE_ATOMIC);
    let to = stage.nodes[B].function.address();
    // A vector may start at any address, but a word's alignment counts from the start of its
    // region.
    for region in [&there.allocated, &there.registered] {
        for offset in [0, 8, 64, 4088, 4096, region.len() / 8 * 8 - 8] {
            stage.case = format!("{region:?} at {offset}");
            let at = region.remote_key().at(offset as u64);
            let mut expected = u64::MAX - 1;
            region.write(offset, &expected.to_le_bytes());
            for operand in [1, 0, 5, u64::MAX, 1 << 63] {
                stage.nodes[A].atomic(Atomic::fetch_add(at, operand).context(3));
                let done = stage.success(A);
                assert_eq!((done.operation, done.context), (Operation::FetchAdd, 3));
                assert_eq!((done.value(), done.length), (expected, 8), "{}", stage.case);
                assert_eq!(done.peer.function_address(), to);
                expected = expected.wrapping_add(operand);
                assert_eq!(word(region, offset), expected, "{}", stage.case);
            }
            for (compared, new) in [(!expected, 7), (expected, 9), (expected, 11), (9, u64::MAX)] {
                stage.nodes[A].atomic(Atomic::compare_swap(at, compared, new).context(4));
                let done = stage.success(A);
                assert_eq!((done.operation, done.context), (Operation::CompareSwap, 4));
                assert_eq!((done.value(), done.length), (expected, 8), "{}", stage.case);
                if compared == expected {
                    expected = new;
                }
                assert_eq!(word(region, offset), expected, "{}", stage.case);
            }
            region.write(offset, &[0; 8]);
            for neighbour in [offset.checked_sub(8), Some(offset + 8)].into_iter().flatten() {
                if neighbour + 8 <= region.len() {
                    assert_eq!(word(region, neighbour), 0, "a neighbour changed; {}", stage.case);
                }
            }
        }
    }
}

fn word(region: &bellwire::MemoryRegion, offset: usize) -> u64 {
    let mut bytes = [0; 8];
    region.read(offset, &mut bytes);
    u64::from_le_bytes(bytes)
}

/// Many nodes add to one word at the same time: no addition is lost, and no two get the same
/// previous value.
pub fn atomics_from_many_nodes_add_up(fixture: &dyn Fixture) {
    const NODES: usize = 4;
    const EACH: usize = 500;
    let mut stage = Stage::of(fixture, NODES + 1);
    let there = Ground::new(&mut stage.nodes[NODES], Rights::REMOTE_ATOMIC);
    for region in [there.allocated, there.registered] {
        let at = region.remote_key().at(8);
        let mut seen = Vec::new();
        let mut posted = [0; NODES];
        while seen.len() < NODES * EACH {
            for (who, posted) in posted.iter_mut().enumerate() {
                let queue_pair = stage.nodes[who].queue_pair;
                let function = &mut stage.nodes[who].function;
                let mut add =
                    || accepted(function.post_atomic(queue_pair, Atomic::fetch_add(at, 1)));
                while *posted < EACH && add() {
                    *posted += 1;
                }
            }
            let who = seen.len() % NODES;
            seen.push(stage.success(who).value());
        }
        seen.sort();
        assert_eq!(seen, (0..(NODES * EACH) as u64).collect::<Vec<_>>());
    }
}

/// A put with an event raises exactly one, at the queue pair that it names, when all its bytes are
/// in memory. Other puts raise none.
// shows: C-14
pub fn events_tell_of_puts(fixture: &dyn Fixture) {
    let mut stage = Stage::pair(fixture);
    let there = Ground::new(&mut stage.nodes[B], Rights::REMOTE_WRITE);
    let other = stage.nodes[B].another();
    let from = stage.nodes[A].address();
    for size in sizes(&stage.nodes[A].function.limits()) {
        for into in [Kind::Allocated(1), Kind::Registered(0)] {
            for (target, immediate) in
                [(stage.nodes[B].queue_pair, None), (other, Some(size as u64)), (other, Some(0))]
            {
                stage.case = format!("{size} bytes to {into:?} with {immediate:?}");
                let bytes = pattern(size as u64 + 1, size);
                let landed = there.destination(into, size);
                let destination = remote(&there, into, size).expect("a region");
                // A silent one first, which must raise no event.
                stage.nodes[A].put(Put::new(vec![5; size], destination));
                let put = Put::new(bytes.clone(), destination).event(target.number, immediate);
                stage.nodes[A].put(put);
                let event = stage.success(B);
                there.assert_received(into, &landed, &bytes, &stage.case);
                assert_eq!(event.operation, Operation::RemotePut, "{event:?}");
                assert_eq!((event.queue_pair, event.length), (target, size), "{event:?}");
                assert_eq!((event.immediate(), event.peer), (immediate, from), "{event:?}");
                assert_eq!((event.context, event.value()), (0, 0), "{event:?}");
                assert!(event.buffer.is_none(), "{event:?}");
                stage.success(A);
                stage.success(A);
            }
        }
    }
    stage.fence(A, B);
    assert!(stage.nodes[B].poll().is_none(), "one event for each put that asked");
}

/// On connected queue pairs, one-sided operations go to the peer, and events to the peer's queue
/// pair.
pub fn connected_pairs_reach_memory_too(fixture: &dyn Fixture) {
    let mut stage = Stage::connected(fixture);
    let rights = Rights::all();
    let there = Ground::new(&mut stage.nodes[B], rights);
    let theirs = stage.nodes[B].queue_pair;
    for region in [&there.allocated, &there.registered] {
        let key = region.remote_key();
        let bytes = pattern(1, 5000);
        let put = Put::new(bytes.clone(), key.slice(8, 5000)).event(theirs.number, Some(4));
        stage.nodes[A].put(put);
        stage.success(A);
        let event = stage.success(B);
        assert_eq!((event.operation, event.immediate()), (Operation::RemotePut, Some(4)));
        stage.nodes[A].get(Get::new(key.slice(8, 5000), vec![0; 5000]));
        assert_same(&stage.success(A).buffer.unwrap().into_bytes(5000), &bytes, "connected get");
        stage.nodes[A].atomic(Atomic::fetch_add(key.at(0), 2));
        stage.success(A);
        assert_eq!(word(region, 0), 2);
    }
}

/// Both sides access a region at once: each reads what the other writes.
pub fn memory_is_shared_both_ways(fixture: &dyn Fixture) {
    let mut stage = Stage::pair(fixture);
    let rights = Rights::REMOTE_READ | Rights::REMOTE_WRITE;
    let grounds = [A, B].map(|who| Ground::new(&mut stage.nodes[who], rights));
    for round in 0..20 {
        for who in [A, B] {
            let key = grounds[1 - who].allocated.remote_key();
            let bytes = pattern(round * 2 + who as u64, 3000);
            stage.nodes[who].put(Put::new(bytes, key.slice(round * 16, 3000)));
        }
        for who in [A, B] {
            stage.success(who);
            let mut found = vec![0; 3000];
            stage.until("the other put", |stage| {
                let (node, ground) = (&mut stage.nodes[1 - who], &grounds[1 - who]);
                node.function.progress().expect("progress");
                ground.allocated.read(round as usize * 16, &mut found);
                (found == pattern(round * 2 + who as u64, 3000)).then_some(())
            });
        }
    }
}

/// Memory can be registered, handed over in a message, used and taken back many times. The
/// registered vector comes back with the data that was put there.
// shows: M-05
pub fn regions_come_and_go(fixture: &dyn Fixture) {
    let mut stage = Stage::pair(fixture);
    let to = stage.nodes[A].address();
    for round in 0..50 {
        let length = 100 + round * 37;
        stage.case = format!("round {round}: {length} bytes");
        let vector = vec![0; length];
        let place = vector.as_ptr();
        let node = &mut stage.nodes[B];
        let region = if round % 2 == 0 {
            node.function.register(vector, Rights::REMOTE_WRITE).expect("registered")
        } else {
            node.function.allocate_region(length, Rights::REMOTE_WRITE).expect("allocated")
        };
        assert_eq!((region.len(), region.rights()), (length, Rights::REMOTE_WRITE));
        let key = region.remote_key().to_bytes();
        stage.nodes[A].receive(24, 0);
        stage.nodes[B].send(Message::inline(&key).to(to));
        let received = stage.success(A).buffer.unwrap().into_bytes(24);
        let key = bellwire::RemoteKey::from_bytes(&received).expect("a key");
        assert_eq!(key, region.remote_key());
        let bytes = pattern(round as u64, length);
        stage.nodes[A].put(Put::new(bytes.clone(), key));
        stage.success(A);
        stage.success(B);
        let back = stage.nodes[B].function.deregister(region).expect("nothing uses it");
        assert_same(&back, &bytes, &stage.case);
        assert!(round % 2 == 1 || back.as_ptr() == place, "the same vector comes back");
    }
}

/// A put may complete when it is posted. A program that posts one for each completion receives what
/// its peer sends all the same.
pub fn polls_with_completions_look(fixture: &dyn Fixture) {
    let mut stage = Stage::pair(fixture);
    let region = stage.nodes[B].region(64);
    let (to, queue_pair) = (stage.nodes[A].address(), stage.nodes[A].queue_pair);
    let put = || Put::inline(&[7; 8], region.remote_key().slice(0, 8));
    // The first of each kind need both sides.
    stage.nodes[A].put(put());
    stage.success(A);
    for message in 0..2 {
        stage.nodes[A].receive(8, message);
        stage.nodes[B].send(Message::inline(&[1; 8]).to(to).unsignaled());
        if message == 0 {
            stage.success(A);
        }
    }
    let mut patience = Patience::new();
    loop {
        accepted(stage.nodes[A].function.post_put(queue_pair, put()));
        let done = stage.nodes[A].poll();
        if done.is_some_and(|done| done.operation == Operation::Receive) {
            return;
        }
        stage.nodes[B].function.progress().expect("progress");
        patience.spend(|| stage.story());
    }
}
