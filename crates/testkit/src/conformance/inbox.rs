//! Messages that a program takes in place.

use super::Fixture;
use super::bytes::{Random, assert_same, pattern};
use super::stage::{A, B, Stage, accepted};
use bellwire::{Address, CompletionQueue, Inbox, Message, Operation, QueuePair};
use bellwire_ring::memory::View;
use std::cell::Cell;
use std::rc::Rc;

/// An inbox that takes some of the messages that it is shown.
pub struct Picky {
    takes: Box<dyn FnMut(usize) -> bool>,
    leaves: Box<dyn FnMut() -> bool>,
    /// The messages that it has taken, until the check reads them.
    pub shown: Vec<Shown>,
}

/// A message that an inbox has taken.
#[allow(missing_docs)]
pub struct Shown {
    pub queue_pair: QueuePair,
    pub from: Address,
    pub immediate: Option<u64>,
    pub bytes: Vec<u8>,
}

impl Picky {
    /// Takes a message if `takes` returns true for its length.
    pub fn new(takes: impl FnMut(usize) -> bool + 'static) -> Picky {
        Picky { takes: Box::new(takes), leaves: Box::new(|| false), shown: Vec::new() }
    }

    /// Leaves a message that it does not take for the next poll, if `leaves` returns true.
    pub fn leaving(mut self, leaves: impl FnMut() -> bool + 'static) -> Picky {
        self.leaves = Box::new(leaves);
        self
    }
}

impl Inbox for Picky {
    fn message(
        &mut self,
        queue_pair: QueuePair,
        from: Address,
        immediate: Option<u64>,
        view: View<'_>,
    ) -> bool {
        let takes = (self.takes)(view.len());
        if takes {
            let mut bytes = vec![0; view.len()];
            view.read(0, &mut bytes);
            self.shown.push(Shown { queue_pair, from, immediate, bytes });
        }
        takes
    }

    fn leaves(&mut self) -> bool {
        (self.leaves)()
    }
}

/// Short and long messages, taken in place or not, with receives posted early or late, are reported
/// once, whole and in order. A message that the inbox does not take meets its receive as usual, or
/// stays for another poll.
pub fn messages_keep_their_order(fixture: &dyn Fixture) {
    const MESSAGES: usize = 3_000;
    let mut stage = Stage::pair(fixture);
    let [from, to] = [A, B].map(|who| stage.nodes[who].address());
    let [ours, theirs] = [A, B].map(|who| stage.nodes[who].queue_pair);
    let eager = stage.nodes[A].function.limits().eager_bytes;
    let mut random = Random(71);
    let sizes = [0, 8, 40, 100, eager, eager + 1];
    let mut choose = |_| {
        let among = if random.below(20) == 0 { 6 } else { 4 };
        sizes[random.below(among)]
    };
    let chosen: Vec<_> = (0..MESSAGES).map(&mut choose).collect();
    let mut choice = Random(72);
    let inbox = Picky::new(move |length| {
        assert!(length <= eager, "no message of {length} bytes is shown");
        choice.below(3) > 0
    });
    let (mut choice, left) = (Random(73), Rc::new(Cell::new(0)));
    let mut inbox = inbox.leaving({
        let left = left.clone();
        move || {
            let leaves = choice.below(2) > 0;
            left.set(left.get() + usize::from(leaves));
            leaves
        }
    });
    let (mut sent, mut told, mut shown, mut waiting) = (0, 0, 0, 0);
    let mut patience = super::Patience::new();
    while told < MESSAGES {
        for _ in 0..random.below(60) {
            let Some(&size) = chosen.get(sent) else { break };
            let send = Message::buffer(pattern(sent as u64, size)).to(to).unsignaled();
            if !accepted(stage.nodes[A].function.post_send(ours, send.immediate(sent as u64))) {
                break;
            }
            sent += 1;
        }
        for _ in 0..random.below(20) {
            if waiting < 100 {
                stage.nodes[B].receive(eager + 1, 0);
                waiting += 1;
            }
        }
        stage.nodes[A].function.progress().expect("progress");
        let node = &mut stage.nodes[B];
        let done = node.function.poll_with(node.completions, &mut inbox).expect("a queue");
        // Messages that this poll took in place precede those that had to wait for a receive.
        for Shown { queue_pair, from: peer, immediate, bytes } in inbox.shown.drain(..) {
            assert_eq!((queue_pair, peer), (theirs, from));
            assert_eq!(immediate, Some(told as u64), "{}", stage.story());
            assert_same(&bytes, &pattern(told as u64, chosen[told]), "in place");
            (told, shown) = (told + 1, shown + 1);
        }
        if let Some(done) = done {
            assert_eq!(done.immediate(), Some(told as u64), "{done:?}; {}", stage.story());
            assert_eq!((done.operation, done.peer), (Operation::Receive, from));
            let bytes = done.buffer.expect("its buffer").into_bytes(done.length);
            assert_same(&bytes, &pattern(told as u64, chosen[told]), "by a receive");
            (told, waiting) = (told + 1, waiting - 1);
        }
        patience.spend(|| format!("message {told} does not come; {}", stage.story()));
    }
    assert!((1..MESSAGES).contains(&shown), "{shown} were taken in place");
    assert!(left.get() > 0, "no message stayed for another poll");
    let counters = stage.nodes[B].function.query(theirs).expect("it exists").counters;
    assert_eq!(counters.messages_received, MESSAGES as u64);
    assert_eq!(counters.bytes_received, chosen.iter().sum::<usize>() as u64);
    assert_eq!(counters.receives_completed, (MESSAGES - shown) as u64);
}

/// An inbox is shown only messages for the polled queue, with or without a receive.
pub fn other_queues_are_not_shown(fixture: &dyn Fixture) {
    let mut stage = Stage::pair(fixture);
    let other = stage.nodes[B].function.create_completion_queue(16).expect("a queue");
    let options = bellwire::QueuePairOptions::new(other);
    let elsewhere = stage.nodes[B].function.create_queue_pair(&options).expect("a queue pair");
    stage.nodes[B].receive_on(elsewhere, 8, 5);
    let own = stage.nodes[B].queue_pair;
    let mut inbox = Picky::new(|_| true);
    for (number, queue_pair) in [elsewhere, own, elsewhere].into_iter().enumerate() {
        let to = stage.nodes[B].address_of(queue_pair);
        stage.nodes[A].send(Message::inline(b"for whom").to(to).context(number as u64));
    }
    let polled = stage.nodes[B].completions;
    let mut poll = |stage: &mut Stage<'_>, queue: CompletionQueue| {
        let function = &mut stage.nodes[B].function;
        (function.poll_with(queue, &mut inbox).expect("a queue"), inbox.shown.pop())
    };
    // Progress without an inbox would move the message to the backlog.
    let mut patience = super::Patience::new();
    let shown = loop {
        stage.nodes[A].function.progress().expect("progress");
        let (done, shown) = poll(&mut stage, polled);
        assert!(done.is_none(), "{done:?}");
        if let Some(shown) = shown {
            break shown;
        }
        patience.spend(|| format!("nothing is shown; {}", stage.story()));
    };
    assert_eq!((shown.queue_pair, shown.immediate), (own, None));
    // The third may come only now. It waits for a receive before its queue is polled with an inbox.
    stage.until("the third message to wait", |stage| {
        let state = stage.nodes[B].function.query(elsewhere).expect("it exists");
        (state.backlog_messages == 1).then_some(())
    });
    let (done, shown) = poll(&mut stage, other);
    assert_eq!(done.map(|done| (done.context, done.queue_pair)), Some((5, elsewhere)));
    assert!(shown.is_none(), "it waits for a receive, and is not shown any more");
    stage.nodes[B].receive_on(elsewhere, 8, 6);
    assert_eq!(stage.next_of(B, other).context, 6);
}
