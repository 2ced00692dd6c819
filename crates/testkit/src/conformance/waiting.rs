//! Waiting: the modes that sleep really sleep, and no wake-up is lost.

use super::bytes::Random;
use super::patience::limit;
use super::stage::{A, B, Stage};
use super::{Fixture, Node};
use bellwire::{Address, Atomic, Completion, Error, Message, Operation, Put, Status, Wait};
use rustix::event::{PollFd, PollFlags};
use std::time::{Duration, Instant};

/// Processor time that the calling thread has used.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// In every mode a wait without an event ends with an error when its time is over, not before.
/// `Adaptive` and `Block` use almost no processor time meanwhile.
pub fn sleepers_sleep(fixture: &dyn Fixture) {
    let mut stage = Stage::pair(fixture);
    // A known but silent peer matters to a device that polls.
    stage.nodes[A].receive(8, 0);
    let to = stage.nodes[A].address();
    stage.nodes[B].send(Message::inline(b"hello").to(to));
    stage.success(A);
    for how in [Wait::Block, Wait::Adaptive, Wait::Spin] {
        let node = &mut stage.nodes[A];
        for timeout in [Duration::ZERO, Duration::from_millis(1), Duration::from_millis(400)] {
            // By the device's clock, which is virtual on some devices.
            let (begun, since, busy) = (node.function.now(), Instant::now(), processor_time());
            let result = node.function.wait(node.completions, how, timeout);
            assert!(matches!(result, Err(Error::TimedOut { .. })), "{how:?}: {result:?}");
            assert!(node.function.now() - begun >= timeout, "{how:?}: not before its time");
            if timeout >= Duration::from_millis(400) && how != Wait::Spin {
                let part = (processor_time() - busy).as_secs_f64() / since.elapsed().as_secs_f64();
                // A spinning thread would be near 1, even on a shared processor.
                assert!(part < 0.25, "{how:?} was busy {:.0} % of its sleep", 100.0 * part);
            }
        }
    }
}

/// Two nodes in two threads wake each other thousands of times, with pauses of all lengths in
/// between. `sleep` waits for the next completion; a lost wake-up shows as a wait that times out.
fn wake_each_other(
    fixture: &dyn Fixture,
    seed: u64,
    rounds: u64,
    sleep: impl Fn(&mut Node, &str) -> Completion + Sync,
) {
    let sleep = &sleep;
    let mut nodes = [Node::open(fixture), Node::open(fixture)];
    let addresses = [A, B].map(|who| nodes[who].address());
    std::thread::scope(|scope| {
        for (who, node) in nodes.iter_mut().enumerate() {
            let peer = addresses[1 - who];
            scope.spawn(move || {
                let mut random = Random(who as u64 + seed);
                for round in 0..rounds {
                    node.receive(8, round);
                    let bytes = round.to_le_bytes();
                    let ball = || Message::inline(&bytes).to(peer).unsignaled();
                    if who == A {
                        node.send(ball());
                    }
                    let done = sleep(node, &format!("node {who} in round {round}"));
                    assert_eq!((done.status, done.context), (Status::Success, round));
                    pause(&mut random);
                    if who == B {
                        node.send(ball());
                        node.flush(node.queue_pair);
                    }
                }
            });
        }
    });
    nodes.iter().for_each(|node| fixture.assert_way(node));
}

/// Pauses for a random time: mostly almost zero, sometimes long enough for the peer to fall asleep.
fn pause(random: &mut Random) {
    match random.below(20) {
        0 => std::thread::sleep(Duration::from_micros(random.below(200) as u64)),
        1 => std::thread::yield_now(),
        n => (0..n * random.below(60)).for_each(|_| std::hint::spin_loop()),
    }
}

/// No wake-up is lost over thousands of sleeps in the kernel, at all delays between falling asleep
/// and waking.
pub fn no_wake_up_is_lost_blocking(fixture: &dyn Fixture) {
    wake_each_other(fixture, 1, 4_000, |node, story| node.wait(Wait::Block, story));
}

/// No wake-up is lost when the sleeper spins first.
pub fn no_wake_up_is_lost_adapting(fixture: &dyn Fixture) {
    wake_each_other(fixture, 1, 4_000, |node, story| node.wait(Wait::Adaptive, story));
}

/// Every event wakes a sleeper: messages of every length, events of puts, requests and their
/// answers, and the end of its own operations.
pub fn everything_wakes(fixture: &dyn Fixture) {
    let mut waiting = Node::open(fixture);
    let mut acting = Node::open(fixture);
    let limits = waiting.function.limits();
    let regions = waiting.regions(200_000);
    let (to, from) = (waiting.address(), acting.address());
    let long = (limits.packet_bytes * 40).min(200_000);
    let sizes = [0, 8, limits.eager_bytes, limits.eager_bytes + 1, long];
    std::thread::scope(|scope| {
        let keys = [regions[0].remote_key(), regions[1].remote_key()];
        let actor = scope.spawn(move || {
            let node = &mut acting;
            let pair = node.queue_pair;
            let mut random = Random(5);
            let mut finish = |node: &mut Node| {
                node.wait_success(Wait::Block, "its own operation");
                pause(&mut random);
            };
            for _ in 0..20 {
                for size in sizes {
                    node.send(Message::buffer(vec![1; size]).to(to));
                    finish(node);
                    for key in keys {
                        let put = Put::new(vec![1; size], key.slice(0, size as u64));
                        node.put(put.event(to.queue_pair, None));
                        finish(node);
                        node.atomic(Atomic::fetch_add(key.at(0), 1));
                        finish(node);
                    }
                }
            }
            let there = Address { queue_pair: 600, ..to };
            node.function.connect(pair, there, b"", limit()).expect("accepted");
            fixture.assert_way(node);
            acting
        });
        let node = &mut waiting;
        for _ in 0..20 {
            for size in sizes {
                node.receive(size, 0);
                for expected in [Operation::Receive, Operation::RemotePut, Operation::RemotePut] {
                    let story = format_args!("{expected:?} of {size} bytes");
                    let done = node.wait(Wait::Block, story);
                    assert_eq!((done.operation, done.length), (expected, size), "{done:?}");
                    assert_eq!(done.peer, from);
                }
            }
        }
        let pair = node.queue_pair;
        let listener = node.function.listen(600).expect("free");
        // On some devices this side carries out the last atomic.
        let request =
            node.function.wait_request(listener, Wait::Block, limit()).expect("a request");
        node.function.accept(request, pair, b"").expect("accepted");
        node.receive(8, 33);
        // The acceptance may still wait for room, so make progress while waiting for the other
        // thread.
        while !actor.is_finished() {
            node.function.progress().expect("progress");
            std::thread::yield_now();
        }
        drop(actor.join().expect("the other side"));
        // The peer's end wakes too.
        let gone = node.wait(Wait::Block, "its end");
        assert_eq!((gone.status, gone.context), (Status::PeerGone, 33));
    });
    fixture.assert_way(&waiting);
}

/// A sender that sleeps because its receiver said STOP is woken when the receiver takes messages
/// again.
// shows: H-16
pub fn a_sleeping_sender_goes_on(fixture: &dyn Fixture) {
    const MESSAGES: u64 = 3_000;
    let mut sender = Node::open(fixture);
    let mut receiver = Node::open(fixture);
    let eager = sender.function.limits().eager_bytes;
    let to = receiver.address();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let (mut posted, mut finished) = (0, 0);
            while finished < MESSAGES {
                while posted < MESSAGES && posted - finished < 256 {
                    sender.send(Message::buffer(vec![1; eager]).to(to).immediate(posted));
                    posted += 1;
                }
                sender.wait_success(Wait::Block, format_args!("after {finished} sends"));
                finished += 1;
            }
            // Stays until everything was received.
            let last = sender.function.wait(sender.completions, Wait::Block, Duration::ZERO);
            assert!(matches!(last, Err(Error::TimedOut { .. })), "{last:?}");
            sender.receive(8, 0);
            sender.wait(Wait::Block, "the good-bye");
            fixture.assert_way(&sender);
        });
        let mut random = Random(16);
        let mut received = 0;
        let mut peer = None;
        while received < MESSAGES {
            // Long enough for the sender to be stopped, and to fall asleep.
            if random.below(8) == 0 {
                std::thread::sleep(Duration::from_millis(random.below(12) as u64));
                receiver.function.progress().expect("progress");
            }
            for _ in 0..random.below(250).min((MESSAGES - received) as usize) {
                receiver.receive(eager, received);
                let story = format_args!("after {received} messages");
                let done = receiver.wait(Wait::Block, story);
                assert_eq!(done.immediate(), Some(received));
                peer = Some(done.peer);
                received += 1;
            }
        }
        receiver.send(Message::inline(b"good-bye").to(peer.expect("somebody sent")));
        receiver.wait(Wait::Block, "the good-bye is sent");
    });
    fixture.assert_way(&receiver);
}

/// A function's descriptor works with `poll(2)`. Once armed, it becomes readable when there is
/// something to do, and no event is missed between arming and waiting.
pub fn the_descriptor_composes_with_poll(fixture: &dyn Fixture) {
    wake_each_other(fixture, 7, 1_500, by_poll);
}

/// Waits for the next completion by `poll(2)` among other descriptors.
#[track_caller]
fn by_poll(node: &mut Node, story: &str) -> Completion {
    let since = Instant::now();
    loop {
        if let Some(done) = node.poll() {
            return done;
        }
        if node.function.arm().expect("armed") {
            let fd = node.function.wait_fd();
            let mut fds = [PollFd::new(&fd, PollFlags::IN)];
            // Only a guard: the other side may be slow. A poll after it would find a message whose
            // wake-up was lost.
            let guard = rustix::time::Timespec { tv_sec: 20, tv_nsec: 0 };
            let ready = rustix::event::poll(&mut fds, Some(&guard)).expect("poll(2)");
            assert!(ready > 0, "{story}: never readable");
        }
        assert!(since.elapsed() < limit(), "{story}: nothing came");
    }
}

/// A sender that waits by `poll(2)` while its receiver says STOP is woken when it can go on.
pub fn a_polling_sender_goes_on(fixture: &dyn Fixture) {
    const MESSAGES: u64 = 3_000;
    let mut sender = Node::open(fixture);
    let mut receiver = Node::open(fixture);
    let eager = sender.function.limits().eager_bytes;
    let to = receiver.address();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut posted = 0;
            for finished in 0..MESSAGES {
                while posted < MESSAGES && posted - finished < 256 {
                    sender.send(Message::buffer(vec![1; eager]).to(to).immediate(posted));
                    posted += 1;
                }
                let done = by_poll(&mut sender, &format!("after {finished} sends"));
                assert_eq!(done.status, Status::Success);
            }
            fixture.assert_way(&sender);
        });
        let mut random = Random(15);
        for received in 0..MESSAGES {
            if random.below(800) == 0 {
                std::thread::sleep(Duration::from_millis(12));
                receiver.function.progress().expect("progress");
            }
            receiver.receive(eager, received);
            let done = by_poll(&mut receiver, &format!("after {received} messages"));
            assert_eq!(done.immediate(), Some(received));
        }
    });
    fixture.assert_way(&receiver);
}

/// The descriptor of an armed, idle function stays silent; a message makes it readable. It does so
/// again after a while in which nobody waited there.
pub fn an_armed_descriptor_is_silent(fixture: &dyn Fixture) {
    let mut stage = Stage::pair(fixture);
    let [from, to] = [A, B].map(|who| stage.nodes[who].address());
    // The link is up.
    stage.nodes[B].receive(8, 0);
    stage.nodes[A].send(Message::inline(b"hello").to(to));
    assert_eq!(stage.success(B).peer, from);
    stage.success(A);
    let readable = |stage: &Stage<'_>, milliseconds: i64| {
        let fd = stage.nodes[B].function.wait_fd();
        let mut fds = [PollFd::new(&fd, PollFlags::IN)];
        let time = rustix::time::Timespec { tv_sec: 0, tv_nsec: milliseconds * 1_000_000 };
        rustix::event::poll(&mut fds, Some(&time)).expect("poll(2)") > 0
    };
    for turn in 0..20 {
        if turn % 2 == 1 {
            stage.nodes[B].function.disarm();
        }
        stage.until("the receiver to have nothing to do", |stage| {
            stage.nodes[B].function.arm().expect("armed").then_some(())
        });
        // Only this node is driven now: `until` stops driving nodes after its answer.
        assert!(!readable(&stage, 3), "nothing has come");
        stage.nodes[A].send(Message::inline(b"wake").to(to));
        let mut patience = super::Patience::new();
        while !readable(&stage, 10) {
            stage.nodes[A].function.progress().expect("progress");
            patience.spend(|| format!("the descriptor never became readable: {}", stage.story()));
        }
        stage.nodes[B].receive(8, 0);
        stage.success(B);
        stage.success(A);
    }
}
