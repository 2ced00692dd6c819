//! Messages that are posted together.

use super::Fixture;
use super::bytes::{Random, assert_same, pattern};
use super::inbox::Picky;
use super::stage::{A, B, Node, Stage};
use bellwire::{Error, FunctionOptions, Message, Operation, QueuePairOptions, Status};
use bellwire_ring::memory::View;
use std::collections::HashSet;
use std::time::Duration;

/// One message of a run, by its number.
struct Plan {
    size: usize,
    has_immediate: bool,
    signaled: bool,
    /// 0: in the descriptor; 1: there, in two pieces; 2: in a buffer.
    form: usize,
}

impl Plan {
    fn random(random: &mut Random, eager: usize) -> Plan {
        let sizes = [0, 1, 8, 8, 8, 8, 13, 40, 200, 256, 257, eager, eager + 1];
        let among = if random.below(12) == 0 { sizes.len() } else { 10 };
        let size = sizes[random.below(among)].min(eager + 1);
        let form = if size > eager { 2 } else { random.below(3) };
        Plan { size, has_immediate: random.below(3) == 0, signaled: random.below(2) == 0, form }
    }

    fn immediate(&self, number: usize) -> Option<u64> {
        self.has_immediate.then_some(!(number as u64))
    }

    fn send<'a>(&self, number: usize, bytes: &'a [u8]) -> Message<'a> {
        let (head, body) = bytes.split_at(bytes.len() / 3);
        let send = match self.form {
            0 => Message::inline(bytes),
            1 => Message::gathered(head, View::of(body)),
            _ => Message::buffer(bytes.to_vec()),
        };
        let send = send.context(number as u64);
        let send = if self.signaled { send } else { send.unsignaled() };
        match self.immediate(number) {
            Some(value) => send.immediate(value),
            None => send,
        }
    }
}

/// Messages of all lengths and forms, posted together, complete once, whole and in order at both
/// ends. Receives come early or late, the backlog overflows, and an inbox takes some messages in
/// place.
pub fn messages_keep_their_order(fixture: &dyn Fixture) {
    const MESSAGES: usize = 4_000;
    let mut stage = Stage::pair(fixture);
    // The smallest that both nodes allow; the second node is reopened with it.
    let packets = stage.nodes.iter().map(|node| node.function.limits().packet_bytes);
    let backlog_bytes = 4 * packets.max().expect("two nodes");
    let options = FunctionOptions::default().backlog_bytes(backlog_bytes);
    stage.nodes[B] = Node::open_with(fixture, &options);
    let eager = stage.nodes[A].function.limits().eager_bytes;
    let (from, to) = (stage.nodes[A].address(), stage.nodes[B].address());
    let [ours, theirs] = [A, B].map(|who| stage.nodes[who].queue_pair);
    let mut random = Random(83);
    let plans: Vec<_> = (0..MESSAGES).map(|_| Plan::random(&mut random, eager)).collect();
    let payload = |number: usize| pattern(number as u64, plans[number].size);
    let mut choice = Random(84);
    let mut inbox = Picky::new(move |_| choice.below(3) == 0);
    let (mut sent, mut told, mut waiting) = (0, 0, 0);
    // Completions of sends may overtake each other; each comes once.
    let mut untold = HashSet::new();
    let mut patience = super::Patience::new();
    while told < MESSAGES || !untold.is_empty() {
        let until = MESSAGES.min(sent + random.below(40));
        let payloads: Vec<_> = (sent..until).map(payload).collect();
        let mut sends: Vec<_> =
            (sent..until).map(|n| plans[n].send(n, &payloads[n - sent]).to(to)).collect();
        let posted = match stage.nodes[A].function.post_sends(ours, &mut sends) {
            Ok(()) => sends.len(),
            Err(refused) => {
                assert!(matches!(refused.error, Error::QueueFull { .. }), "{}", refused.error);
                refused.posted
            }
        };
        untold.extend((sent..sent + posted).filter(|&number| plans[number].signaled));
        sent += posted;
        // Sometimes late, so that the backlog fills up and its messages wait in their link.
        if random.below(8) == 0 {
            for _ in 0..random.below(150) {
                if waiting < 200 {
                    stage.nodes[B].receive(eager + 1, 0);
                    waiting += 1;
                }
            }
        }
        for _ in 0..random.below(3) {
            stage.nodes[A].function.progress().expect("progress");
        }
        while let Some(done) = stage.nodes[A].poll() {
            let number = done.context as usize;
            assert!(untold.remove(&number), "{done:?} was not due");
            assert_eq!((done.operation, done.status), (Operation::Send, Status::Success));
            assert_eq!(done.length, plans[number].size);
            assert_eq!(done.buffer.is_some(), plans[number].form == 2, "{done:?}");
        }
        for _ in 0..random.below(100) {
            let node = &mut stage.nodes[B];
            let done = match random.below(2) {
                0 => node.poll(),
                _ => node.function.poll_with(node.completions, &mut inbox).expect("a queue"),
            };
            for shown in inbox.shown.drain(..) {
                assert_eq!((shown.queue_pair, shown.from), (theirs, from));
                assert_eq!(shown.immediate, plans[told].immediate(told), "{}", stage.story());
                assert_same(&shown.bytes, &payload(told), "in place");
                told += 1;
            }
            let Some(done) = done else { break };
            assert_eq!((done.operation, done.peer), (Operation::Receive, from));
            assert_eq!(done.immediate(), plans[told].immediate(told), "{}", stage.story());
            let bytes = done.buffer.expect("its buffer").into_bytes(done.length);
            assert_same(&bytes, &payload(told), "by a receive");
            (told, waiting) = (told + 1, waiting - 1);
        }
        patience.spend(|| format!("{told} messages told, {untold:?} not; {}", stage.story()));
    }
    stage.until("the end of what nobody waits for", |stage| {
        (stage.nodes[A].state().posted_sends == 0).then_some(())
    });
    let bytes = plans.iter().map(|plan| plan.size as u64).sum::<u64>();
    let [sender, receiver] = [A, B].map(|who| stage.nodes[who].state().counters);
    assert_eq!((sender.messages_sent, sender.bytes_sent), (MESSAGES as u64, bytes));
    assert_eq!((receiver.messages_received, receiver.bytes_received), (MESSAGES as u64, bytes));
}

/// A refused message stops the call: those before it are posted, and it and those behind it stay
/// unposted.
pub fn a_refusal_leaves_the_rest(fixture: &dyn Fixture) {
    let mut stage = Stage::pair(fixture);
    let to = stage.nodes[B].address();
    let ours = stage.nodes[A].queue_pair;
    let too_long = vec![1; stage.nodes[A].function.limits().eager_bytes + 1];
    for bad in [0, 1, 5] {
        stage.case = format!("message {bad} is too long");
        let mut sends: Vec<_> =
            (0..8u64).map(|n| Message::inline(b"good").to(to).context(n)).collect();
        sends[bad] = Message::inline(&too_long).to(to).context(100);
        let refused = stage.nodes[A].function.post_sends(ours, &mut sends).expect_err("too long");
        assert!(matches!(refused.error, Error::TooLong { .. }), "{}", refused.error);
        assert_eq!(refused.posted, bad);
        sends[bad] = Message::buffer(b"better".to_vec()).to(to).context(bad as u64);
        stage.nodes[A].function.post_sends(ours, &mut sends[bad..]).expect("room");
        for number in 0..8 {
            stage.nodes[B].receive(8, number);
            let done = stage.success(B);
            assert_eq!(done.length, if number as usize == bad { 6 } else { 4 });
            assert_eq!(stage.success(A).context, number);
        }
    }
    let nowhere = Message::inline(b"nowhere");
    let mut sends = [Message::inline(b"there").to(to), nowhere, Message::inline(b"there").to(to)];
    let refused = stage.nodes[A].function.post_sends(ours, &mut sends).expect_err("nobody");
    assert!(matches!(refused.error, Error::BadDestination(_)), "{}", refused.error);
    assert_eq!(refused.posted, 1);
    stage.nodes[A].function.post_sends(ours, &mut []).expect("nothing to do");
}

/// If the completion queue has no room for all, those that have room are posted.
pub fn a_small_completion_queue_takes_what_fits(fixture: &dyn Fixture) {
    let mut stage = Stage::pair(fixture);
    let to = stage.nodes[B].address();
    let node = &mut stage.nodes[A];
    let small = node.function.create_completion_queue(5).expect("a queue");
    let options = QueuePairOptions::new(small).receive_completions(node.completions);
    let ours = node.function.create_queue_pair(&options).expect("a queue pair");
    let mut next = 0;
    while next < 40 {
        let mut sends: Vec<_> =
            (next..40u64).map(|n| Message::inline(b"counted").to(to).context(n)).collect();
        let posted = match stage.nodes[A].function.post_sends(ours, &mut sends) {
            Ok(()) => sends.len(),
            Err(refused) => {
                assert!(matches!(refused.error, Error::QueueFull { .. }), "{}", refused.error);
                refused.posted
            }
        };
        assert_eq!(posted as u64, 5.min(40 - next), "{}", stage.story());
        for number in next..next + posted as u64 {
            stage.nodes[B].receive(8, number);
            stage.success(B);
            assert_eq!(stage.next_of(A, small).context, number);
        }
        next += posted as u64;
    }
}

/// A list of short messages leaves at the end of its call when the line is quiet, although the
/// poster does nothing more. For two nodes of devices that coalesce packets into frames.
pub fn a_list_leaves_at_its_end(stage: &mut Stage<'_>) {
    const LIST: usize = 5;
    let (to, ours) = (stage.nodes[B].address(), stage.nodes[A].queue_pair);
    // Now and then the line is busy with something else.
    for _ in 0..100 {
        stage.nodes[B].receive(8, 0);
        stage.nodes[A].send(Message::inline(b"before").to(to));
        stage.success(A);
        stage.success(B);
        stage.turns(100);
        std::thread::sleep(Duration::from_millis(1));
        (0..LIST).for_each(|_| stage.nodes[B].receive(8, 0));
        let mut sends = [(); LIST].map(|()| Message::inline(b"together").to(to));
        stage.nodes[A].function.post_sends(ours, &mut sends).expect("room");
        let came = (0..10_000).filter_map(|_| stage.nodes[B].poll()).take(LIST).count();
        if came == LIST {
            return;
        }
        (came..LIST).for_each(|_| drop(stage.success(B)));
        (0..LIST).for_each(|_| drop(stage.success(A)));
    }
    panic!("no list leaves by itself; {}", stage.story());
}
