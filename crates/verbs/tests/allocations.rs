//! What can leave or arrive at once allocates nothing, in whatever form it is posted. Alone in its
//! file, because the counter is the program's allocator.

use bellwire::*;
use std::time::{Duration, Instant};

/// Longest wait for anything that happens in this thread.
const WAIT: Duration = Duration::from_secs(8);

/// Two functions of one job of shared memory, driven by one thread. The first has memory of its
/// own, and the second has memory that the first may write.
struct Pair {
    from: Side,
    to: Side,
    own: MemoryRegion,
    there: RemoteKey,
}

struct Side {
    _device: Device,
    function: Function,
    completions: CompletionQueue,
    pair: QueuePair,
}

impl Side {
    fn open(job: &str, node: u32) -> Side {
        let name = format!("shm:allocations-{job}-{}?node={node}", std::process::id());
        let device = Device::open(&name).expect("the job is ours");
        let mut function = device.open_function(0).expect("a function");
        let completions = function.create_completion_queue(64).expect("a queue");
        let pair = function.create_queue_pair(&QueuePairOptions::new(completions)).expect("a pair");
        Side { _device: device, function, completions, pair }
    }

    /// The next completion. `other` makes progress meanwhile.
    fn complete(&mut self, other: &mut Side) -> Completion {
        let deadline = Instant::now() + WAIT;
        loop {
            if let Some(done) = self.function.poll(self.completions).expect("a queue") {
                assert_eq!(done.status, Status::Success);
                return done;
            }
            other.function.progress().expect("the same process");
            assert!(Instant::now() < deadline, "it never completes");
        }
    }
}

impl Pair {
    fn open(job: &str) -> Pair {
        let (mut from, mut to) = (Side::open(job, 0), Side::open(job, 1));
        let own = from.function.allocate_region(64, Rights::empty()).expect("room");
        let target = to.function.allocate_region(4096, Rights::REMOTE_WRITE).expect("room");
        Pair { there: target.remote_key(), own, from, to }
    }

    /// Connects the two queue pairs.
    fn connected(job: &str) -> Pair {
        let mut pair = Pair::open(job);
        let Pair { from, to, .. } = &mut pair;
        let listener = to.function.listen(1).expect("a free number");
        let address = Address::new(1, 0, 1);
        from.function.start_connect(from.pair, address, b"", WAIT).expect("it is free");
        let request = loop {
            from.function.progress().expect("the same process");
            if let Some(request) = to.function.poll_request(listener).expect("a listener") {
                break request;
            }
        };
        to.function.accept(request, to.pair, b"").expect("it is free");
        let waits = ConnectionProgress::Waiting;
        while from.function.poll_connection(from.pair).expect("an answer") == waits {
            to.function.progress().expect("the same process");
        }
        pair
    }

    /// Shows that `round` allocates nothing once it is warm. Not each round: a snapshot of the
    /// counters, which is due from time to time, may outgrow its buffer.
    fn allocates_nothing(&mut self, what: &str, mut round: impl FnMut(&mut Pair)) {
        (0..200).for_each(|_| round(self));
        let counts = (0..50).map(|_| allocation_counter::measure(|| round(self)).count_total);
        assert_eq!(counts.min(), Some(0), "{what}");
    }
}

/// Sends a message of one buffer, which is used again, and receives it.
fn exchange(pair: &mut Pair, buffers: &mut Vec<Vec<u8>>, message: Message<'_>, has_buffer: bool) {
    let Pair { from, to, .. } = pair;
    let receive = buffers.pop().expect("it came back");
    to.function.post_receive(to.pair, receive, 0).expect("room");
    from.function.post_send(from.pair, message).expect("room");
    let received = to.complete(from).buffer.expect("a receive has one");
    buffers.push(received.into_vec().expect("as posted"));
    let sent = from.complete(to);
    assert_eq!(sent.buffer.is_some(), has_buffer);
    buffers.extend(sent.buffer.and_then(|buffer| buffer.into_vec()));
}

/// A short message allocates nothing at both ends, from the descriptor, a vector or registered
/// memory, with an immediate value, to a named destination and on a connection.
#[test]
fn messages_allocate_nothing() {
    for (mut pair, to) in
        [(Pair::open("named"), Some(Address::new(1, 0, 1))), (Pair::connected("connected"), None)]
    {
        let to = |message: Message<'static>| match to {
            Some(to) => message.to(to),
            None => message,
        };
        let mut buffers = vec![vec![0; 64]; 2];
        pair.allocates_nothing("bytes in the descriptor", |pair| {
            exchange(pair, &mut buffers, to(Message::inline(b"8 bytes!")), false);
        });
        pair.allocates_nothing("an immediate value", |pair| {
            exchange(pair, &mut buffers, to(Message::inline(b"8 bytes!").immediate(7)), false);
        });
        pair.allocates_nothing("a vector", |pair| {
            let mine = buffers.pop().expect("it came back");
            exchange(pair, &mut buffers, to(Message::buffer(mine)), true);
        });
        pair.allocates_nothing("registered memory", |pair| {
            let part = pair.own.slice(8, 8);
            exchange(pair, &mut buffers, to(Message::buffer(part)), true);
        });
    }
}

/// Nor do short messages that are posted together.
#[test]
fn messages_posted_together_allocate_nothing() {
    let mut pair = Pair::open("together");
    let mut buffers = vec![vec![0; 64]; 3];
    pair.allocates_nothing("three messages", |pair| {
        let Pair { from, to, .. } = pair;
        for buffer in buffers.drain(..) {
            to.function.post_receive(to.pair, buffer, 0).expect("room");
        }
        let there = Address::new(1, 0, to.pair.number);
        let mut sends = [b"one", b"two", b"six"].map(|bytes| Message::inline(bytes).to(there));
        from.function.post_sends(from.pair, &mut sends).expect("room");
        for _ in 0..3 {
            let received = to.complete(from).buffer.expect("a receive has one");
            buffers.push(received.into_vec().expect("as posted"));
        }
        (0..3).for_each(|_| drop(from.complete(to)));
    });
}

/// Nor does a short put to mapped memory, in any form.
#[test]
fn puts_allocate_nothing() {
    for mut pair in [Pair::open("puts"), Pair::connected("puts-connected")] {
        let there = pair.there.slice(8, 8);
        let mut mine = Some(vec![1; 8]);
        pair.allocates_nothing("bytes in the descriptor", |pair| {
            let Pair { from, to, .. } = pair;
            from.function.post_put(from.pair, Put::inline(b"8 bytes!", there)).expect("room");
            from.complete(to);
        });
        pair.allocates_nothing("a vector", |pair| {
            let Pair { from, to, .. } = pair;
            let put = Put::new(mine.take().expect("it came back"), there);
            from.function.post_put(from.pair, put).expect("room");
            mine = from.complete(to).buffer.and_then(|buffer| buffer.into_vec());
        });
        pair.allocates_nothing("registered memory", |pair| {
            let Pair { from, to, own, .. } = pair;
            let put = Put::new(own.slice(8, 8), there);
            from.function.post_put(from.pair, put).expect("room");
            from.complete(to);
        });
    }
}
