//! Messages that the program takes in place, without a receive.

use crate::world::*;
use bellwire::*;
use bellwire_ring::memory::View;

/// An inbox that takes messages with these first bytes, and notes all that it is shown.
#[derive(Default)]
struct Taker {
    takes: &'static [u8],
    leaves: bool,
    shown: Vec<(QueuePair, Address, Option<u64>, Vec<u8>)>,
}

impl Inbox for Taker {
    fn message(
        &mut self,
        queue_pair: QueuePair,
        from: Address,
        immediate: Option<u64>,
        bytes: View<'_>,
    ) -> bool {
        let bytes = bytes.to_vec();
        let takes = bytes.starts_with(self.takes);
        self.shown.push((queue_pair, from, immediate, bytes));
        takes
    }

    fn leaves(&mut self) -> bool {
        self.leaves
    }
}

impl Taker {
    fn taking(takes: &'static [u8]) -> Taker {
        Taker { takes, ..Taker::default() }
    }

    fn shown(&self) -> Vec<&[u8]> {
        self.shown.iter().map(|(.., bytes)| &bytes[..]).collect()
    }
}

/// An inbox that says nothing about leaving messages in their link.
struct Refuser;

impl Inbox for Refuser {
    fn message(&mut self, _: QueuePair, _: Address, _: Option<u64>, _: View<'_>) -> bool {
        false
    }
}

/// One poll of the second side with `inbox`.
fn poll(world: &mut World, inbox: &mut dyn Inbox) -> Option<Completion> {
    let b = &mut world.sides[1];
    b.function.poll_with(b.cq, inbox).unwrap()
}

/// A message that is taken needs no receive and has no completion. The inbox learns its queue pair,
/// sender and immediate value. Messages in one packet are shown one by one.
#[test]
fn what_is_taken_needs_no_receive() {
    let mut world = World::pair();
    let (from, to) = (world.sides[0].address(), world.sides[1].address());
    let pair = world.sides[1].qp;
    world.sides[1].receive(8, 1);
    world.sides[0].send(to, b"link", 0);
    world.settle();
    world.sides[1].done.clear();
    world.sides[1].receive(8, 2);

    let a = &mut world.sides[0];
    a.function.post_send(a.qp, Message::inline(b"alone").to(to).immediate(7)).unwrap();
    let mut sends = [&b"and"[..], b"several"].map(|bytes| Message::inline(bytes).to(to));
    a.function.post_sends(a.qp, &mut sends).unwrap();
    let mut taker = Taker::taking(b"a");
    assert!(poll(&mut world, &mut taker).is_some_and(|done| bytes(done) == b"several"));
    let expected = [(Some(7), &b"alone"[..]), (None, b"and"), (None, b"several")];
    let expected = expected.map(|(value, bytes)| (pair, from, value, bytes.to_vec()));
    assert_eq!(taker.shown, expected);
    assert!(poll(&mut world, &mut taker).is_none());
    let counters = world.sides[1].state().counters;
    assert_eq!((counters.messages_arrived, counters.messages_received), (4, 4));
    assert_eq!(counters.bytes_received, (4 + 5 + 3 + 7) as u64);
    world.settle();
    world.check_counters();
}

/// A message that is not taken goes to a receive, or waits for one. One that is left stays in its
/// link and is shown again.
#[test]
fn what_is_not_taken_waits_as_usual() {
    let mut world = World::pair();
    let to = world.sides[1].address();
    world.sides[0].send(to, b"message", 0);
    world.sides[0].turn();
    assert!(poll(&mut world, &mut Refuser).is_none());
    assert_eq!(world.sides[1].state().backlog_messages, 1, "it waits for a receive");
    world.sides[1].receive(8, 1);
    assert!(poll(&mut world, &mut Refuser).is_some_and(|done| done.context == 1));

    world.sides[0].send(to, b"later", 0);
    world.sides[0].turn();
    let mut leaver = Taker { leaves: true, ..Taker::taking(b"never") };
    for round in 1..3 {
        assert!(poll(&mut world, &mut leaver).is_none());
        assert_eq!(leaver.shown(), vec![&b"later"[..]; round]);
        assert_eq!(world.sides[1].state().backlog_messages, 0);
        let counters = world.sides[1].function.counters().function;
        assert_eq!(counters.packets_stalled, round as u64);
    }
    leaver.takes = b"later";
    assert!(poll(&mut world, &mut leaver).is_none());
    world.settle();
    let counters = world.sides[1].state().counters;
    assert_eq!((counters.messages_received, counters.bytes_received), (2, 7 + 5));
    assert_eq!(counters.messages_truncated, 0);
}

/// An inbox sees nothing out of order: no message while an earlier one waits for a receive, while a
/// completion waits to be polled, or behind one that has just met a receive.
#[test]
fn nothing_is_shown_before_what_came_first() {
    let mut world = World::pair();
    let to = world.sides[1].address();
    world.sides[0].send(to, b"one", 0);
    world.settle();
    assert_eq!(world.sides[1].state().backlog_messages, 1);
    world.sides[0].send(to, b"two", 0);
    world.sides[0].turn();
    let mut taker = Taker::default();
    assert!(poll(&mut world, &mut taker).is_none());
    assert!(taker.shown.is_empty(), "an earlier message waits");
    for context in 1..3 {
        world.sides[1].receive(8, context);
        assert!(poll(&mut world, &mut taker).is_some_and(|done| done.context == context));
    }

    // The first is refused and meets a receive, so the second comes with the next poll.
    world.sides[1].receive(8, 3);
    world.sides[0].send(to, b"three", 0);
    world.sides[0].send(to, b"four", 0);
    world.sides[0].turn();
    let mut taker = Taker::taking(b"f");
    assert!(poll(&mut world, &mut taker).is_some_and(|done| bytes(done) == b"three"));
    assert_eq!(taker.shown(), [b"three"]);
    world.settle();
    assert!(world.sides[1].done.is_empty(), "the fourth waits for a receive");
}

/// An inbox is shown messages of those queue pairs only that receive into the polled queue.
#[test]
fn other_queues_are_not_shown() {
    let mut world = World::pair();
    let b = &mut world.sides[1];
    let aside = b.function.create_completion_queue(4).unwrap();
    let pair = b.function.create_queue_pair(&QueuePairOptions::new(aside)).unwrap();
    b.function.post_receive(pair, vec![0; 8], 5).unwrap();
    let other = b.function.query(pair).unwrap().address;
    world.sides[0].send(other, b"aside", 0);
    world.sides[0].turn();
    let mut taker = Taker::default();
    assert!(poll(&mut world, &mut taker).is_none());
    assert!(taker.shown.is_empty());
    let b = &mut world.sides[1];
    let done = b.function.next_completion(aside).unwrap().expect("its receive is complete");
    assert_eq!(done.context, 5);
}

/// A program that only polls with an inbox still sees everything else: long messages, events, and
/// the end of a peer.
#[test]
fn the_rest_arrives_beside_an_inbox() {
    let mut world = World::pair();
    let (from, to) = (world.sides[0].address(), world.sides[1].address());
    let region = world.sides[1].function.allocate_region(8, Rights::REMOTE_WRITE).unwrap();
    world.sides[1].receive(3_000, 1);
    world.sides[0].send(to, &pattern(3_000, 1), 0);
    let a = &mut world.sides[0];
    let put = Put::new(vec![1; 8], region.remote_key()).event(to.queue_pair, Some(4));
    a.function.post_put(a.qp, put).unwrap();
    let mut taker = Taker::default();
    let mut next = |world: &mut World| {
        for _ in 0..100 {
            world.sides[0].turn();
            if let Some(done) = poll(world, &mut taker) {
                return done;
            }
        }
        panic!("nothing comes");
    };
    assert!(bytes(next(&mut world)) == pattern(3_000, 1));
    let event = next(&mut world);
    assert_eq!((event.operation, event.immediate()), (Operation::RemotePut, Some(4)));
    // A message that the first side has no receive for, and cannot get any more.
    let b = &mut world.sides[1];
    b.send(from, &pattern(3_000, 1), 9);
    drop(world.sides.remove(0));
    let b = &mut world.sides[0];
    let done = (0..100).find_map(|_| b.function.poll_with(b.cq, &mut Refuser).unwrap());
    let done = done.expect("its end is reported");
    assert_eq!((done.context, done.status), (9, Status::PeerGone));
    assert_eq!(b.function.take_lost_peer(), Some((from.function_address(), Status::PeerGone)));
    assert_eq!(b.function.take_lost_peer(), None);
}
