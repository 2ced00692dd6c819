//! Sends and receives: every size class, kind of memory and alignment, and the content of
//! completions.

use super::bytes::{Ground, assert_same, kinds, pattern, sizes};
use super::stage::{A, B, Stage};
use super::{Buffer, Fixture};
use bellwire::{Message, Operation, QueuePair, QueuePairOptions, Rights, Status};

/// Data inside the descriptor arrives, in every size up to the eager limit. Its memory may be
/// reused as soon as the post returns.
// shows: C-17
pub fn inline_data_of_every_size(fixture: &dyn Fixture) {
    let mut stage = Stage::pair(fixture);
    let to = stage.nodes[B].address();
    let limits = stage.nodes[A].function.limits();
    for size in sizes(&limits).into_iter().filter(|&size| size <= limits.eager_bytes) {
        stage.case = format!("{size} bytes");
        stage.nodes[B].receive(size + 3, 5);
        let expected = pattern(size as u64, size);
        let mut bytes = expected.clone();
        stage.nodes[A].send(Message::inline(&bytes).to(to).context(6));
        bytes.fill(0x11);
        let received = stage.success(B);
        assert_eq!(received.length, size, "{}", stage.story());
        assert_same(&received.buffer.unwrap().into_bytes(size), &expected, &stage.case);
        let sent = stage.success(A);
        assert!(sent.buffer.is_none() && sent.context == 6 && sent.length == size, "{sent:?}");
    }
}

/// Messages of every size class arrive whole, between all kinds of memory and alignments, and
/// change nothing beside their destination. Short ones travel eagerly and long ones by rendezvous.
// shows: C-08, C-53, D-21
pub fn every_size_and_memory(fixture: &dyn Fixture) {
    let mut stage = Stage::pair(fixture);
    let to = stage.nodes[B].address();
    let limits = stage.nodes[A].function.limits();
    // With the right to read, a long message is fetched straight from its region.
    for rights in [Rights::REMOTE_READ, Rights::empty()] {
        let here = Ground::new(&mut stage.nodes[A], rights);
        let there = Ground::new(&mut stage.nodes[B], Rights::empty());
        for size in sizes(&limits) {
            let bytes = pattern(size as u64, size);
            for &from in kinds(size) {
                for &into in kinds(size) {
                    stage.case = format!("{size} bytes, {from:?} with {rights:?} to {into:?}");
                    let source = here.source(from, &bytes);
                    let destination = there.destination(into, size);
                    let queue_pair = stage.nodes[B].queue_pair;
                    let posted = stage.nodes[B].function.post_receive(queue_pair, destination, 7);
                    posted.expect("posted");
                    let send = Message::buffer(source).to(to).context(8);
                    stage.nodes[A].send(send);
                    let received = stage.success(B);
                    assert_eq!((received.length, received.context), (size, 7), "{}", stage.case);
                    let buffer = received.buffer.expect("the receive's buffer");
                    there.assert_received(into, &buffer, &bytes, &stage.case);
                    let sent = stage.success(A);
                    assert_eq!((sent.length, sent.context), (size, 8), "{}", stage.case);
                    assert_eq!(sent.buffer.expect("the send's buffer").len(), size);
                }
            }
        }
        for ground in [here.registered, here.allocated] {
            stage.nodes[A].function.deregister(ground).expect("nothing uses it");
        }
        for ground in [there.registered, there.allocated] {
            stage.nodes[B].function.deregister(ground).expect("nothing uses it");
        }
    }
}

/// A message that is shorter than its receive leaves the rest of the buffer unchanged, in all
/// sizes.
pub fn a_short_message_leaves_the_rest(fixture: &dyn Fixture) {
    let mut stage = Stage::pair(fixture);
    let to = stage.nodes[B].address();
    let there = Ground::new(&mut stage.nodes[B], Rights::empty());
    for size in sizes(&stage.nodes[A].function.limits()) {
        let bytes = pattern(!(size as u64), size);
        for &into in &kinds(size)[..3] {
            stage.case = format!("{size} of {} bytes into {into:?}", size + 100);
            let destination = there.destination(into, size.min(super::bytes::LONGEST - 200) + 100);
            let room = destination.len();
            stage.nodes[B].receive_into(destination, 0);
            let sent = &bytes[..size.min(room)];
            stage.nodes[A].send(Message::buffer(sent.to_vec()).to(to));
            let received = stage.success(B);
            assert_eq!(received.length, sent.len(), "{}", stage.case);
            there.assert_received(into, &received.buffer.unwrap(), sent, &stage.case);
            stage.success(A);
        }
    }
}

/// A completion gives operation, context, length and immediate value; the receiver's names the
/// sender.
// shows: H-10
pub fn completions_tell_everything(fixture: &dyn Fixture) {
    let mut stage = Stage::pair(fixture);
    let [from, to] = [A, B].map(|who| stage.nodes[who].address());
    let eager = stage.nodes[A].function.limits().eager_bytes;
    let immediates = [None, Some(0), Some(1), Some(u64::MAX), Some(0x8000_0000_0000_0000)];
    for (index, immediate) in immediates.into_iter().enumerate() {
        for size in [0, 8, eager, eager + 1, 3 * eager] {
            stage.case = format!("{immediate:?} with {size} bytes");
            stage.nodes[B].receive(size, u64::MAX - index as u64);
            let mut send = Message::buffer(vec![3; size]).to(to).context(index as u64);
            if let Some(value) = immediate {
                send = send.immediate(value);
            }
            let queue_pairs = [A, B].map(|who| stage.nodes[who].queue_pair);
            stage.nodes[A].send_on(queue_pairs[A], send);
            let received = stage.success(B);
            assert_eq!(received.queue_pair, queue_pairs[B], "{}", stage.case);
            assert_eq!(received.operation, Operation::Receive, "{}", stage.case);
            assert_eq!(received.context, u64::MAX - index as u64, "{}", stage.case);
            assert_eq!(received.immediate(), immediate, "{}", stage.case);
            assert_eq!((received.peer, received.length), (from, size), "{}", stage.case);
            assert!(received.chain().is_empty() && received.value() == 0, "{received:?}");
            let sent = stage.success(A);
            assert_eq!(sent.queue_pair, queue_pairs[A], "{}", stage.case);
            assert_eq!(sent.operation, Operation::Send, "{}", stage.case);
            assert_eq!((sent.peer, sent.length), (to, size), "{}", stage.case);
            assert_eq!(sent.context, index as u64, "{}", stage.case);
        }
    }
}

/// Every buffer that was posted comes back exactly once, and is the same allocation.
pub fn buffers_come_back_once(fixture: &dyn Fixture) {
    let mut stage = Stage::pair(fixture);
    let to = stage.nodes[B].address();
    let eager = stage.nodes[A].function.limits().eager_bytes;
    for size in [1, 64, eager, eager + 1, 4 * eager] {
        stage.case = format!("{size} bytes");
        let mut posted = [A, B].map(|_| std::collections::HashMap::new());
        for context in 0..40 {
            let into = vec![0; size];
            posted[B].insert(into.as_ptr() as usize, context);
            stage.nodes[B].receive_into(into, context);
            let from = vec![1; size];
            posted[A].insert(from.as_ptr() as usize, context);
            stage.nodes[A].send(Message::buffer(from).to(to).context(context));
        }
        for (who, mut posted) in [A, B].into_iter().zip(posted) {
            while !posted.is_empty() {
                let done = stage.success(who);
                let bytes = done.buffer.and_then(Buffer::into_vec).expect("a vector");
                let context = posted.remove(&(bytes.as_ptr() as usize));
                assert_eq!(context, Some(done.context), "{}", stage.case);
            }
        }
        stage.fence(A, B);
        stage.fence(B, A);
        for node in stage.nodes.iter_mut() {
            assert!(node.poll().is_none(), "one completion for each descriptor, no more");
        }
    }
}

/// A send without a signal completes only if it fails.
pub fn unsignaled_sends_are_silent(fixture: &dyn Fixture) {
    let mut stage = Stage::pair(fixture);
    let to = stage.nodes[B].address();
    let eager = stage.nodes[A].function.limits().eager_bytes;
    for size in [0, 8, eager, eager + 1] {
        stage.case = format!("{size} bytes");
        stage.nodes[B].receive(size, 0);
        stage.nodes[A].send(Message::buffer(vec![9; size]).to(to).unsignaled());
        let received = stage.success(B);
        assert_same(&received.buffer.unwrap().into_bytes(size), &vec![9; size], &stage.case);
        stage.until("the send to finish", |stage| {
            (stage.nodes[A].state().posted_sends == 0).then_some(())
        });
        assert!(stage.nodes[A].poll().is_none(), "a silent success; {}", stage.case);
    }
    let nobody = bellwire::Address { queue_pair: 999, ..to };
    stage.nodes[A].send(Message::buffer(vec![9; 8]).to(nobody).unsignaled().context(4));
    let failed = stage.next(A);
    assert_eq!((failed.status, failed.context), (Status::NoSuchQueuePair, 4));
    assert_eq!(failed.buffer.and_then(Buffer::into_vec), Some(vec![9; 8]), "the buffer comes back");
}

/// A message that comes before its receive waits for it, in all sizes.
// shows: M-09
pub fn early_messages_wait(fixture: &dyn Fixture) {
    let mut stage = Stage::pair(fixture);
    let to = stage.nodes[B].address();
    let sizes = sizes(&stage.nodes[A].function.limits());
    for (index, &size) in sizes.iter().enumerate() {
        let send = Message::buffer(pattern(size as u64, size)).to(to).context(index as u64);
        stage.nodes[A].send(send);
    }
    stage.until("all messages to wait", |stage| {
        (stage.nodes[B].state().backlog_messages == sizes.len()).then_some(())
    });
    stage.fence(A, B);
    assert!(stage.nodes[B].poll().is_none(), "nothing was posted, so nothing completes");
    for (index, &size) in sizes.iter().enumerate() {
        stage.case = format!("{size} bytes");
        stage.nodes[B].receive(size, index as u64);
        let received = stage.success(B);
        assert_eq!((received.length, received.context), (size, index as u64), "{}", stage.case);
        let expected = pattern(size as u64, size);
        assert_same(&received.buffer.unwrap().into_bytes(size), &expected, &stage.case);
    }
    for _ in &sizes {
        stage.success(A);
    }
}

/// Queue pairs can share one receive queue: each message takes the oldest buffer, and the
/// completion names its queue pair.
pub fn shared_receives_serve_many_queue_pairs(fixture: &dyn Fixture) {
    const PAIRS: usize = 5;
    let mut stage = Stage::pair(fixture);
    let eager = stage.nodes[A].function.limits().eager_bytes;
    let there = Ground::new(&mut stage.nodes[B], Rights::empty());
    let node = &mut stage.nodes[B];
    let shared = node.function.create_shared_receive_queue(64).expect("a shared queue");
    let pairs: Vec<_> =
        (0..PAIRS).map(|_| node.another_with(|o| o.shared_receive(shared))).collect();
    let addresses: Vec<_> = pairs.iter().map(|&pair| node.address_of(pair)).collect();
    for (round, size) in [0, 1, 33, 64, eager, eager + 1, 5 * eager].into_iter().enumerate() {
        for &into in kinds(size) {
            stage.case = format!("{size} bytes into {into:?}");
            let whom = (round * 3 + size) % PAIRS;
            let destination = there.destination(into, size);
            let posted = stage.nodes[B].function.post_shared_receive(shared, destination, 77);
            posted.expect("posted");
            let bytes = pattern(size as u64, size);
            stage.nodes[A].send(Message::buffer(bytes.clone()).to(addresses[whom]));
            let received = stage.success(B);
            assert_eq!(received.queue_pair, pairs[whom], "{}", stage.case);
            assert_eq!((received.context, received.length), (77, size), "{}", stage.case);
            there.assert_received(into, &received.buffer.unwrap(), &bytes, &stage.case);
            stage.success(A);
        }
    }
    // Early messages wait, and take buffers in the order of their arrival at each queue pair.
    for round in 0..3 {
        for (number, &address) in addresses.iter().enumerate() {
            let value = (number * 10 + round) as u64;
            stage.nodes[A].send(Message::inline(&[7; 20]).to(address).immediate(value));
            stage.success(A);
        }
    }
    stage.until("all to wait", |stage| {
        let waits = |&pair: &QueuePair| {
            let state = stage.nodes[B].function.query(pair).expect("it exists");
            state.backlog_messages == 3
        };
        pairs.iter().all(waits).then_some(())
    });
    let mut next = [0; PAIRS];
    for context in 0..3 * PAIRS as u64 {
        let posted = stage.nodes[B].function.post_shared_receive(shared, vec![0; 20], context);
        posted.expect("posted");
        let received = stage.success(B);
        assert_eq!(received.context, context, "oldest buffer first");
        let number =
            pairs.iter().position(|&pair| pair == received.queue_pair).expect("one of them");
        assert_eq!(received.immediate(), Some((number * 10 + next[number]) as u64));
        next[number] += 1;
    }
    assert_eq!(next, [3; PAIRS]);
}

/// One completion queue serves several queue pairs, and one queue pair can have a queue for each
/// side.
// shows: M-01, M-02
pub fn completion_queues_are_shared_or_split(fixture: &dyn Fixture) {
    let mut stage = Stage::pair(fixture);
    let node = &mut stage.nodes[B];
    let arrivals = node.function.create_completion_queue(16).expect("a queue");
    let departures = node.completions;
    let options = QueuePairOptions::new(departures).receive_completions(arrivals);
    let split = [(); 2].map(|()| node.function.create_queue_pair(&options).expect("a queue pair"));
    for (number, pair) in split.into_iter().enumerate() {
        stage.nodes[B].receive_on(pair, 8, number as u64);
        let [from, to] = [stage.nodes[A].address(), stage.nodes[B].address_of(pair)];
        stage.nodes[A].send(Message::inline(b"towards").to(to));
        let arrived = stage.next_of(B, arrivals);
        assert_eq!((arrived.queue_pair, arrived.context), (pair, number as u64));
        stage.success(A);
        stage.nodes[A].receive(8, 0);
        stage.nodes[B].send_on(pair, Message::inline(b"back").to(from).context(9));
        let departed = stage.next_of(B, departures);
        assert_eq!((departed.queue_pair, departed.operation), (pair, Operation::Send));
        assert_eq!(stage.success(A).peer, to, "the answer names the queue pair that it is from");
    }
}

/// A queue pair may send to itself, to another one of its function, and to another function of its
/// node.
pub fn a_node_talks_to_itself(fixture: &dyn Fixture) {
    let mut stage = Stage::of(fixture, 1);
    let device = stage.nodes[0].device.clone();
    stage.nodes.push(super::Node::of(device, 1, &Default::default()));
    let other = stage.nodes[0].another();
    let eager = stage.nodes[0].function.limits().eager_bytes;
    let targets = [(0, stage.nodes[0].queue_pair), (0, other), (1, stage.nodes[1].queue_pair)];
    for (who, pair) in targets {
        for size in [0, 8, eager, eager + 1, 4 * eager] {
            stage.case = format!("{size} bytes to queue pair {} of function {who}", pair.number);
            stage.nodes[who].receive_on(pair, size, 1);
            let bytes = pattern(size as u64, size);
            let send =
                Message::buffer(bytes.clone()).to(stage.nodes[who].address_of(pair)).context(2);
            stage.nodes[0].send(send);
            let mut seen = Vec::new();
            for who in [0, who] {
                let done = stage.success(who);
                if done.operation == Operation::Receive {
                    assert_same(&done.buffer.unwrap().into_bytes(size), &bytes, &stage.case);
                }
                seen.push(done.context);
            }
            seen.sort();
            assert_eq!(seen, [1, 2], "{}", stage.case);
        }
    }
}
