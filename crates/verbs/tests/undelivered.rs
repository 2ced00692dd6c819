//! Messages that have left and that the peer has not acknowledged, over `udp`, which delivers
//! later.

use bellwire::*;
use std::time::{Duration, Instant};

/// One node with one function, one completion queue and one queue pair.
struct Side {
    function: Function,
    completions: CompletionQueue,
    pair: QueuePair,
}

impl Side {
    /// A node at an address of loopback and a port that no other test has.
    fn open(last: u32, test: u32) -> Side {
        let network = 121 + std::process::id() % 100;
        let port = 10_000 + 300 * test;
        let name = format!("udp:127.{network}.{test}.{last}?port={port}");
        let device = Device::open(&name).expect("an address of this host");
        let mut function = device.open_function(0).expect("a function");
        let completions = function.create_completion_queue(64).expect("a queue");
        let pair = function.create_queue_pair(&QueuePairOptions::new(completions)).expect("a pair");
        for context in 0..16 {
            function.post_receive(pair, vec![0; 64], context).expect("room");
        }
        Side { function, completions, pair }
    }

    fn address(&self) -> Address {
        self.function.query(self.pair).expect("it exists").address
    }

    fn send(&mut self, to: Address, context: u64) {
        let send = Message::inline(b"is it there?").to(to).context(context);
        self.function.post_send(self.pair, send).expect("room");
    }

    fn poll(&mut self) -> Option<Completion> {
        self.function.poll(self.completions).expect("a queue")
    }

    /// The next completion of a send.
    fn sent(&mut self, mut meanwhile: impl FnMut()) -> (u64, Status) {
        let deadline = Instant::now() + Duration::from_secs(8);
        loop {
            match self.poll() {
                Some(done) if done.operation == Operation::Send => {
                    return (done.context, done.status);
                }
                Some(_) => {}
                None => meanwhile(),
            }
            assert!(Instant::now() < deadline, "no completion");
        }
    }
}

/// Two nodes of which the second has received and acknowledged one message of the first, and does
/// not poll any more. Three further messages have left. A third node, which polls, acknowledges a
/// later message first. So the first node has looked for acknowledgements since then.
fn three_in_flight(test: u32) -> [Side; 2] {
    let [mut near, mut far] = [1, 2].map(|last| Side::open(last, test));
    let to = far.address();
    near.send(to, 0);
    let first = near.sent(|| drop(far.poll()));
    assert_eq!(first, (0, Status::Success));
    (1..4).for_each(|context| near.send(to, context));
    let mut other = Side::open(3, test);
    near.send(other.address(), 9);
    assert_eq!(near.sent(|| drop(other.poll())), (9, Status::Success), "nobody else has");
    [near, far]
}

/// When the peer goes away, messages that it has not acknowledged complete with that reason and not
/// as delivered.
#[test]
fn a_peer_that_goes_away_fails_what_is_in_flight() {
    let [mut near, far] = three_in_flight(1);
    drop(far);
    for context in 1..4 {
        assert_eq!(near.sent(|| ()), (context, Status::PeerGone));
    }
    let state = near.function.query(near.pair).expect("it exists");
    assert_eq!((state.posted_sends, state.counters.messages_sent), (0, 2));
    assert_eq!(state.counters.sends_failed, 3);
}

/// When the program destroys the queue pair, they complete as flushed.
#[test]
fn a_destroyed_queue_pair_flushes_what_is_in_flight() {
    let [mut near, mut far] = three_in_flight(2);
    let options = QueuePairOptions::new(near.completions);
    let other = near.function.create_queue_pair(&options).expect("a pair");
    let send = Message::inline(b"and this?").to(far.address()).context(9);
    near.function.post_send(other, send).expect("room");
    near.function.destroy_queue_pair(near.pair).expect("it exists");
    for context in 1..4 {
        assert_eq!(near.sent(|| ()), (context, Status::Flushed));
    }
    let total = near.function.counters().total;
    assert_eq!((total.messages_sent, total.sends_failed), (2, 3));
    // The message of another queue pair is still in flight.
    assert_eq!(near.sent(|| drop(far.poll())), (9, Status::Success));
}

/// They complete as delivered once the peer polls again.
#[test]
fn a_peer_that_polls_again_completes_them() {
    let [mut near, mut far] = three_in_flight(3);
    for context in 1..4 {
        assert_eq!(near.sent(|| drop(far.poll())), (context, Status::Success));
    }
}

/// A program that polls with an inbox hears of deliveries, too.
#[test]
fn a_poll_with_an_inbox_completes_them() {
    struct Nobody;
    impl Inbox for Nobody {
        fn message(&mut self, _: QueuePair, _: Address, _: Option<u64>, _: View<'_>) -> bool {
            false
        }
    }
    let [mut near, mut far] = three_in_flight(4);
    let deadline = Instant::now() + Duration::from_secs(8);
    let mut next = 1;
    while next < 4 {
        far.poll();
        let Side { function, completions, .. } = &mut near;
        if let Some(done) = function.poll_with(*completions, &mut Nobody).expect("a queue") {
            assert_eq!((done.context, done.status), (next, Status::Success));
            next += 1;
        }
        assert!(Instant::now() < deadline, "no completion");
    }
}

/// A send queue holds what is in flight, and counts it. Memory in flight stays registered.
#[test]
fn what_is_in_flight_is_posted() {
    let [mut near, mut far] = three_in_flight(5);
    let state = near.function.query(near.pair).expect("it exists");
    assert_eq!((state.posted_sends, state.counters.sends_posted), (3, 5));
    let options = QueuePairOptions::new(near.completions).send_depth(2);
    let pair = near.function.create_queue_pair(&options).expect("a pair");
    let region = near.function.allocate_region(8, Rights::empty()).expect("memory");
    for context in 4..6 {
        let send = Message::buffer(region.slice(0, 8)).to(far.address()).context(context);
        near.function.post_send(pair, send).expect("room");
    }
    let more = Message::inline(b"more").to(far.address());
    let full = near.function.post_send(pair, more).expect_err("two are in flight").error;
    assert!(matches!(full, Error::QueueFull { queue: "send queue", depth: 2 }), "{full}");
    let used = near.function.deregister(region.clone());
    assert!(matches!(used, Err(Error::InUse { .. })), "{used:?}");
    for context in 1..6 {
        assert_eq!(near.sent(|| drop(far.poll())), (context, Status::Success));
    }
    near.function.deregister(region).expect("nothing uses it");
}
