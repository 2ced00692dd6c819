//! Flow control: a slow receiver holds its senders back, and nothing is lost, duplicated or
//! blocked.

use super::Fixture;
use super::bytes::{Random, assert_same, pattern};
use super::stage::{A, B, Stage, accepted, refuses};
use bellwire::{Completion, Error, Message, Operation, QueuePairOptions, Rights, Status};
use bellwire_ring::memory::View;

/// Posts messages that carry their number, until one is refused because the queue is full. Returns
/// how many were accepted.
fn flood(stage: &mut Stage<'_>, who: usize, to: bellwire::Address, size: usize, from: u64) -> u64 {
    let queue_pair = stage.nodes[who].queue_pair;
    let mut number = from;
    let mut idle = 0;
    // The queue counts as full only once the nodes are idle.
    while idle < 300 {
        let send = Message::buffer(numbered(number, size)).to(to).immediate(number).unsignaled();
        if accepted(stage.nodes[who].function.post_send(queue_pair, send)) {
            number += 1;
            idle = 0;
        } else {
            idle = if stage.turn() == 0 { idle + 1 } else { 0 };
        }
        assert!(number - from < 10_000_000, "nothing ever holds the sender back");
    }
    number - from
}

fn numbered(number: u64, size: usize) -> Vec<u8> {
    pattern(number, size)
}

#[track_caller]
fn assert_numbered(done: &mut Completion, number: u64, size: usize, story: &str) {
    assert_eq!((done.status, done.length), (Status::Success, size), "{done:?}; {story}");
    assert_eq!(done.immediate(), Some(number), "{story}");
    let bytes = done.buffer.take().expect("its buffer").into_bytes(size);
    assert_same(&bytes, &numbered(number, size), story);
}

/// Back-pressure: a receiver that does not receive fills its sender's queue, and posts are refused,
/// never silently blocked. When it receives, the sender goes on, and every message arrives once and
/// in order.
// shows: C-21, D-20, H-15, H-16, M-13
pub fn a_receiver_that_does_not_receive(fixture: &dyn Fixture) {
    for size in [0, 8, 1000, usize::MAX] {
        let mut stage = Stage::pair(fixture);
        let to = stage.nodes[B].address();
        let eager = stage.nodes[A].function.limits().eager_bytes;
        let size = size.min(eager + 1);
        stage.case = format!("{size} bytes");
        let mut sent = flood(&mut stage, A, to, size, 0);
        assert!(sent >= 256, "at least the send queue's depth is taken in: {sent}");
        let mut received = 0;
        for round in 0..3 {
            for _ in 0..(sent - received) / 2 {
                stage.nodes[B].receive(size, received);
                let mut done = stage.success(B);
                let story = format!("round {round}; {}", stage.case);
                assert_numbered(&mut done, received, size, &story);
                received += 1;
            }
            sent += flood(&mut stage, A, to, size, sent);
        }
        while received < sent {
            stage.nodes[B].receive(size, received);
            let mut done = stage.success(B);
            assert_numbered(&mut done, received, size, &stage.case);
            received += 1;
        }
        let stops = stage.nodes[B].counters().total.stops;
        assert!(stops > 0 || size > eager, "the receiver said STOP");
    }
}

/// A receiver that takes one message at a time gets thousands, once and in order, posted in one
/// piece or in two.
// shows: D-19
pub fn a_slow_receiver(fixture: &dyn Fixture) {
    const MESSAGES: u64 = 5_000;
    let mut stage = Stage::pair(fixture);
    let to = stage.nodes[B].address();
    let queue_pair = stage.nodes[A].queue_pair;
    let mut random = Random(19);
    let eager = stage.nodes[A].function.limits().eager_bytes;
    let size = |number: u64| match number % 50 {
        0 => eager,
        49 => 1,
        n => eager.min(n as usize * 8),
    };
    let (mut sent, mut received) = (0, 0);
    while received < MESSAGES {
        while sent < MESSAGES {
            let bytes = numbered(sent, size(sent));
            let (head, body) = bytes.split_at(random.below(bytes.len() + 1));
            let send = match sent % 2 {
                0 => Message::inline(&bytes),
                _ => Message::gathered(head, View::of(body)),
            };
            let send = send.to(to).immediate(sent).unsignaled();
            if !accepted(stage.nodes[A].function.post_send(queue_pair, send)) {
                break;
            }
            sent += 1;
        }
        for _ in 0..random.below(10) {
            if received < sent {
                stage.nodes[B].receive(eager, 0);
                let mut done = stage.success(B);
                assert_numbered(&mut done, received, size(received), &stage.case);
                received += 1;
            }
        }
    }
}

/// A stopped queue pair blocks no other traffic: neither messages on another queue pair or of
/// another sender, nor one-sided operations.
// shows: D-18
pub fn a_stopped_queue_pair_holds_up_nobody_else(fixture: &dyn Fixture) {
    let mut stage = Stage::of(fixture, 3);
    let busy = stage.nodes[B].address();
    let free = stage.nodes[B].another();
    let to = stage.nodes[B].address_of(free);
    let region = stage.nodes[B].function.allocate_region(4096, Rights::all()).expect("allocated");
    let eager = stage.nodes[A].function.limits().eager_bytes;
    let other = stage.nodes[A].another();
    // The link is up, and has got what credit it can have, so that the flood could block it.
    for round in 0..200 {
        stage.nodes[B].receive_on(free, eager, 0);
        let send = Message::buffer(numbered(round, eager)).to(to);
        stage.nodes[A].send_on(other, send);
        stage.success(B);
        stage.success(A);
    }
    let flooded = flood(&mut stage, A, busy, eager, 0);
    for round in 0..100 {
        for (who, pair) in [(A, other), (2, stage.nodes[2].queue_pair)] {
            stage.case = format!("round {round}, node {who}, behind {flooded} messages");
            stage.nodes[B].receive_on(free, eager, 0);
            let size = [8, eager][round % 2];
            let send = Message::buffer(numbered(round as u64, size)).to(to).immediate(round as u64);
            stage.nodes[who].send_on(pair, send);
            let mut done = stage.success(B);
            assert_numbered(&mut done, round as u64, size, &stage.case);
            stage.success(who);
            let put = bellwire::Put::new(vec![1; 4096], region.remote_key());
            stage.nodes[who].function.post_put(pair, put).expect("room");
            stage.success(who);
        }
    }
    for number in 0..flooded {
        stage.nodes[B].receive(eager, 0);
        let mut done = stage.success(B);
        assert_numbered(&mut done, number, eager, &stage.case);
    }
}

/// Many senders into one queue pair: every message arrives exactly once, and in each sender's
/// order.
// shows: C-31, D-14
pub fn many_senders_to_one_receiver(fixture: &dyn Fixture) {
    const SENDERS: usize = 12;
    const EACH: u64 = 600;
    let mut stage = Stage::of(fixture, SENDERS + 1);
    let to = stage.nodes[SENDERS].address();
    let addresses: Vec<_> = stage.nodes.iter().map(|node| node.address()).collect();
    let (mut sent, mut received) = ([0; SENDERS], [0; SENDERS]);
    let mut posted = 0;
    let mut random = Random(31);
    let eager = stage.nodes[0].function.limits().eager_bytes;
    let size = |number: u64| (number as usize * 7) % eager.min(500);
    while received.iter().sum::<u64>() < SENDERS as u64 * EACH {
        for (who, sent) in sent.iter_mut().enumerate() {
            let queue_pair = stage.nodes[who].queue_pair;
            for _ in 0..random.below(60) {
                let bytes = numbered(*sent + who as u64 * EACH, size(*sent));
                let send = Message::inline(&bytes).to(to).immediate(*sent).unsignaled();
                if *sent < EACH && accepted(stage.nodes[who].function.post_send(queue_pair, send)) {
                    *sent += 1;
                }
            }
        }
        while posted - received.iter().sum::<u64>() < 200 {
            stage.nodes[SENDERS].receive(500, 0);
            posted += 1;
        }
        stage.turn();
        for _ in 0..random.below(300) {
            let Some(done) = stage.nodes[SENDERS].poll() else { break };
            let who = addresses.iter().position(|&a| a == done.peer).expect("one of the senders");
            let number = received[who];
            assert_eq!(done.immediate(), Some(number), "from sender {who}: {done:?}");
            let bytes = done.buffer.expect("its buffer").into_bytes(done.length);
            assert_same(&bytes, &numbered(number + who as u64 * EACH, size(number)), "the data");
            received[who] += 1;
        }
    }
    assert_eq!(received, [EACH; SENDERS], "equal delivery, exactly once");
}

/// While a program takes no completions, none is lost. Posts are refused when the queue has no
/// entry left to reserve, and arrivals wait. All goes on once completions are taken.
// shows: C-16
pub fn a_full_completion_queue_loses_nothing(fixture: &dyn Fixture) {
    const DEPTH: usize = 8;
    let mut stage = Stage::pair(fixture);
    let node = &mut stage.nodes[B];
    let small = node.function.create_completion_queue(DEPTH).expect("a queue");
    let shared = node.function.create_shared_receive_queue(64).expect("a queue");
    let options = QueuePairOptions::new(small);
    let own = node.function.create_queue_pair(&options).expect("a queue pair");
    let sharing = options.clone().shared_receive(shared);
    let sharing = node.function.create_queue_pair(&sharing).expect("a queue pair");
    let region = node.function.allocate_region(64, Rights::all()).expect("allocated");
    let [to_own, to_sharing] = [own, sharing].map(|pair| stage.nodes[B].address_of(pair));
    // Posts reserve entries: exactly as many as the queue has.
    for context in 0..DEPTH as u64 {
        stage.nodes[B].receive_on(own, 8, context);
    }
    let refused = stage.nodes[B].function.post_receive(own, vec![0; 8], 99).expect_err("full");
    assert!(matches!(refused.error, Error::QueueFull { depth: DEPTH, .. }), "{:?}", refused.error);
    let send = Message::inline(b"no room for its completion").to(stage.nodes[A].address());
    refuses!(stage.nodes[B].function.post_send(own, send), Error::QueueFull { depth: DEPTH, .. });
    // Shared receives and events reserve nothing; they wait for an entry when they complete.
    for context in 0..64 {
        stage.nodes[B].function.post_shared_receive(shared, vec![0; 8], context).expect("room");
    }
    for number in 0..40u64 {
        let bytes = number.to_le_bytes();
        let to = if number % 2 == 0 { to_own } else { to_sharing };
        stage.nodes[A].send(Message::inline(&bytes).to(to).unsignaled());
        if number % 4 == 3 {
            let put = bellwire::Put::new(vec![1; 64], region.remote_key())
                .event(sharing.number, Some(number));
            stage.nodes[A].put(put);
        }
    }
    // Eight of 20 take the receives and the entries. Then 12, 20 more and 10 events wait.
    stage.until("all others to wait", |stage| {
        let waiting = [own, sharing]
            .map(|pair| stage.nodes[B].function.query(pair).expect("it exists").backlog_messages);
        (waiting == [12, 30]).then_some(())
    });
    let (mut messages, mut events) = ([Vec::new(), Vec::new()], Vec::new());
    let mut posted = DEPTH as u64;
    while messages[0].len() + messages[1].len() + events.len() < 50 {
        let done = stage.next_of(B, small);
        assert_eq!(done.status, Status::Success, "{done:?}");
        if done.operation == Operation::RemotePut {
            events.push(done.immediate().expect("it has one"));
            continue;
        }
        let which = usize::from(done.queue_pair == sharing);
        let bytes = done.buffer.expect("its buffer").into_bytes(8);
        messages[which].push(u64::from_le_bytes(bytes.try_into().expect("8 bytes")));
        if which == 0 && posted < 20 {
            let again = stage.nodes[B].function.post_receive(own, vec![0; 8], posted);
            posted += u64::from(again.is_ok());
        }
        // A receive that found no entry is posted as soon as there is one.
        while posted < 20 && stage.nodes[B].function.post_receive(own, vec![0; 8], posted).is_ok() {
            posted += 1;
        }
    }
    assert_eq!(messages[0], (0..40).step_by(2).collect::<Vec<_>>());
    assert_eq!(messages[1], (1..40).step_by(2).collect::<Vec<_>>());
    assert_eq!(events, (3..40).step_by(4).collect::<Vec<_>>());
}

/// At most as many operations as the function was opened for are in flight at peers. Further ones
/// wait their turn, and all finish.
// shows: C-33, H-12
pub fn operations_under_way_are_limited(fixture: &dyn Fixture) {
    let mut stage = Stage::pair(fixture);
    let to = stage.nodes[B].address();
    let limits = stage.nodes[A].function.limits();
    assert_eq!(limits.outstanding, 32, "unless the program wants something else");
    let size = limits.eager_bytes + 1;
    for number in 0..100 {
        stage.nodes[A].send(Message::buffer(numbered(number, size)).to(to).immediate(number));
    }
    stage.until("as many offers as may be under way", |stage| {
        (stage.nodes[B].state().backlog_messages >= limits.outstanding).then_some(())
    });
    // One more would come before this.
    stage.fence(A, B);
    for received in 0..100 {
        // Each long message that is not received is an operation in flight, and a message that
        // waits at the receiver.
        let waiting = stage.nodes[B].state().backlog_messages;
        assert!(waiting <= limits.outstanding, "{waiting} under way");
        assert!(received > 0 || waiting == limits.outstanding, "{waiting} under way");
        stage.nodes[B].receive(size, 0);
        let mut done = stage.success(B);
        assert_numbered(&mut done, received, size, &stage.case);
        stage.success(A);
    }
}

/// Two nodes that flood each other before either receives do not deadlock.
pub fn floods_both_ways(fixture: &dyn Fixture) {
    let mut stage = Stage::pair(fixture);
    let eager = stage.nodes[A].function.limits().eager_bytes;
    for size in [64, eager, eager + 1, 200_000] {
        stage.case = format!("{size} bytes");
        let to = [A, B].map(|who| stage.nodes[who].address());
        for number in 0..200 {
            for who in [A, B] {
                let send = Message::buffer(numbered(number, size)).to(to[1 - who]);
                stage.nodes[who].send(send.immediate(number).unsignaled());
            }
        }
        for number in 0..200 {
            for who in [A, B] {
                stage.nodes[who].receive(size, 0);
                let mut done = stage.success(who);
                assert_numbered(&mut done, number, size, &stage.case);
            }
        }
    }
}
