//! Segmented messages, while some segments are missing.

mod world;

use bellwire::FunctionAddress;
use bellwire_tagged::*;
use bellwire_testkit::loopback::FabricOptions;
use std::time::{Duration, Instant};
use world::{Side, World, any, message, pattern, span, token};

const LENGTH: usize = 9_000;

/// Sides with packets of 256 bytes and links that have room for three.
fn narrow(sides: u32) -> World {
    let options = FabricOptions {
        packet_bytes: 256,
        link_packets: 3,
        patience: Duration::from_millis(50),
        ..FabricOptions::default()
    };
    World::new(options, sides)
}

/// Sends a message, of which only the first segments arrive. A receive that looks for it finds it.
fn send_some(world: &mut World, bytes: &mut [u8], mode: SendMode) {
    world.send(bytes, Some(1), 1, mode);
    for _ in 0..10_000 {
        world.turn();
        if world.sides[1].endpoint.unexpected() > 0 {
            return;
        }
    }
    panic!("nothing comes");
}

/// An incomplete message can be received, claimed, dropped, or put into a buffer for many.
#[test]
fn a_receive_takes_over_what_is_coming() {
    for way in ["receive", "several parts", "too short", "claim", "discard", "many"] {
        let mut world = narrow(2);
        let (mut bytes, mut into) = (pattern(LENGTH, 1), vec![0; LENGTH]);
        send_some(&mut world, &mut bytes, SendMode::Delivery);
        assert!(world.sides[0].done.is_empty());
        let length = if way == "too short" { 7000 } else { LENGTH };
        let Side { endpoint, done } = &mut world.sides[1];
        let sink = &mut |one| done.push(one);
        match way {
            "several parts" => {
                let (a, b) = into.split_at_mut(777);
                let spans = Spans::of(&[span(a), span(b)]);
                endpoint.receive(any(1), spans, token(5), sink).unwrap();
            }
            "claim" => {
                endpoint.peek(any(1), Peek::Claim, token(5), sink);
                let spans = Spans::from(span(&mut into));
                endpoint.receive_claimed(true, Some(spans), token(5), sink).unwrap();
                assert_eq!(done.remove(0).length, LENGTH, "what was looked at");
            }
            "discard" => endpoint.peek(any(1), Peek::Discard, token(6), sink),
            "many" => {
                let buffer = span(&mut into);
                endpoint.receive_many(any(1), buffer, 100, token(5), sink).unwrap();
                assert!(done.is_empty());
            }
            _ => {
                let spans = Spans::from(span(&mut into[..length]));
                endpoint.receive(any(1), spans, token(5), sink).unwrap();
            }
        }
        assert_eq!(world.sides[1].endpoint.unexpected(), 0);
        world.settle();
        assert_eq!(world.done(0, 1).outcome, Outcome::Success, "{way}: delivered");
        if way == "discard" {
            assert!(world.sides[1].done.iter().all(|done| done.kind == CompletionKind::Peeked));
            continue;
        }
        let all = &world.sides[1].done;
        let done = all.iter().find(|done| done.kind == CompletionKind::Received).expect(way);
        assert_eq!((done.length, done.overflow), (length, LENGTH - length), "{way}");
        assert_eq!(done.outcome == Outcome::Truncated, way == "too short");
        assert_eq!(all.last().unwrap().kind == CompletionKind::BufferReleased, way == "many");
        assert!(into[..length] == bytes[..length] && into[length..].iter().all(|byte| *byte == 0));
    }
}

/// Messages whose last segments find no room in the queue wait, are refused when there are too
/// many, and come in order.
#[test]
fn ends_that_find_no_room_come_later() {
    let mut world = narrow(2);
    let mut bodies: Vec<_> = (0..16).map(|seed| pattern(LENGTH, seed)).collect();
    let to = world.peer(0, 1);
    // Short messages take descriptors, and hardly any credit.
    let mut word = pattern(8, 0);
    for _ in 0..600 {
        world.post(0, 1, &mut word, Some(4), 0);
    }
    let (mut refused, mut counted, mut pending) = (0, 0, 0);
    for (at, bytes) in bodies.iter_mut().enumerate() {
        let body = span(bytes).into();
        loop {
            match world.sides[0].endpoint.send(message(to, 3, &body, 0)) {
                Ok(sent) => break pending += usize::from(sent == SendStatus::Pending),
                Err(PostError::Again) => refused += 1,
                Err(refused) => panic!("{at}: {refused:?}"),
            }
            let Side { endpoint, done } = &mut world.sides[0];
            counted += endpoint.progress(&mut |one| done.push(one)).unwrap();
            let Side { endpoint, done } = &mut world.sides[1];
            endpoint.progress(&mut |one| done.push(one)).unwrap();
        }
    }
    // A message is complete when all of its packets have left, and not before.
    assert!(pending > 0 && world.sides[0].done.len() < pending);
    assert!(!world.sides[0].endpoint.has_left(to));
    // A queue of 1,024 descriptors has room for the packets of twelve messages.
    assert!(refused > 0);
    assert!(counted >= 100, "each segment that waited is counted: {counted}");
    assert!((0..3).all(|_| !world.sides[0].endpoint.arm().unwrap()), "an end waits");
    for seed in 0..16 {
        let mut into = vec![0; LENGTH];
        world.receive(1, any(3), &mut into, 100 + u64::from(seed));
        world.settle();
        assert_eq!(world.done(1, 100 + u64::from(seed)).outcome, Outcome::Success);
        assert!(into == pattern(LENGTH, seed), "message {seed}");
    }
    let done = &world.sides[0].done;
    assert!(done.len() == pending && done.iter().all(|one| one.outcome == Outcome::Success));
    assert!(world.sides[0].endpoint.has_left(to));
}

/// If a sender ends in the middle of a message, or its link breaks, the matched receive fails, and
/// an unmatched message is dropped.
#[test]
fn the_end_of_a_sender_ends_its_message() {
    for (posted, lives) in [(true, true), (true, false), (false, true), (false, false)] {
        let mut world = narrow(2);
        let (mut bytes, mut into) = (pattern(LENGTH, 1), vec![0; LENGTH]);
        world.post(1, 0, &mut bytes, Some(1), 1);
        while world.sides[0].endpoint.unexpected() == 0 {
            world.turn();
        }
        if posted {
            world.receive(0, any(1), &mut into, 5);
        }
        let [receiver, sender] = [0, 1].map(|node| FunctionAddress { node, function: 0 });
        if lives {
            world.fabric.cut(sender, receiver, bellwire::Status::PeerGone);
        } else {
            world.fabric.kill(sender);
            world.sides.pop();
        }
        let deadline = Instant::now() + Duration::from_secs(20);
        let waits = |world: &World| match posted {
            true => world.sides[0].done.is_empty(),
            false => world.sides[0].endpoint.unexpected() > 0,
        };
        while waits(&world) && Instant::now() < deadline {
            world.turn();
        }
        assert_eq!(world.sides[0].endpoint.unexpected(), 0, "{posted} {lives}");
        if posted {
            assert!(matches!(world.done(0, 5).outcome, Outcome::Failed(_)), "{lives}");
        }
        if lives {
            let (mut next, mut into) = (pattern(LENGTH, 2), vec![0; LENGTH]);
            world.receive(0, any(2), &mut into, 6);
            world.settle();
            let (to, body) = (world.peer(1, 0), span(&mut next).into());
            let sent = world.sides[1].endpoint.send(message(to, 2, &body, 2));
            assert!(matches!(sent, Err(PostError::Lost(_))), "the sender is told, too: {sent:?}");
            world.post(1, 0, &mut next, Some(2), 2);
            world.settle();
            assert!(world.done(0, 6).outcome == Outcome::Success && into == next);
        }
    }
}

/// Lost messages that counted as sent are reported before the next one goes: it would match their
/// receives. They are reported once, and later sends succeed.
#[test]
fn what_is_lost_is_told_before_more_is_sent() {
    for length in [8, LENGTH] {
        let mut world = narrow(2);
        let [receiver, sender] = [1, 0].map(|node| FunctionAddress { node, function: 0 });
        let (mut bytes, mut into) = (pattern(length, 1), vec![0; length]);
        let to = world.peer(0, 1);
        let body = span(&mut bytes).into();
        let message = message(to, 1, &body, 0);
        // More than the link has room for.
        let status = if length == 8 { SendStatus::Complete } else { SendStatus::Pending };
        for _ in 0..if length == 8 { 20 } else { 1 } {
            assert_eq!(world.sides[0].endpoint.send(message).unwrap(), status);
        }
        world.fabric.cut(sender, receiver, bellwire::Status::PeerGone);
        world.settle();
        // One that was not complete is told by its completion, too.
        let failed = |done: &TaggedCompletion| matches!(done.outcome, Outcome::Failed(_));
        assert_eq!(world.sides[0].done.drain(..).filter(failed).count(), usize::from(length != 8));
        let lost = world.sides[0].endpoint.send(message);
        assert!(matches!(lost, Err(PostError::Lost(bellwire::Status::PeerGone))), "{lost:?}");
        // Some may have come before.
        while world.sides[1].endpoint.unexpected() > 0 {
            world.receive(1, any(1), &mut into, 7);
        }
        world.sides[1].done.clear();
        bytes.fill(9);
        world.receive(1, any(1), &mut into, 5);
        let sent = world.sides[0].endpoint.send(message).unwrap();
        assert_eq!(sent, status, "it goes on");
        world.settle();
        assert_eq!(world.done(1, 5).outcome, Outcome::Success);
        assert_eq!(into, bytes);
    }
}

/// The end of a peer does not end a message that leaves for another one.
#[test]
fn the_end_of_a_peer_spares_what_leaves_for_others() {
    let mut world = narrow(3);
    let [sender, gone] = [0, 1].map(|node| FunctionAddress { node, function: 0 });
    let (mut bytes, mut into) = (pattern(LENGTH, 1), vec![0; LENGTH]);
    for to in 1..3 {
        let body = span(&mut bytes).into();
        let context = u64::from(to);
        let sent = world.send_from(0, to, &body, Some(1), None, context, SendMode::Transmit);
        assert_eq!(sent, SendStatus::Pending);
    }
    world.fabric.cut(sender, gone, bellwire::Status::PeerGone);
    world.settle();
    world.receive(2, any(1), &mut into, 5);
    world.settle();
    assert_eq!(world.done(0, 1).outcome, Outcome::Failed(bellwire::Status::PeerGone));
    assert_eq!(world.done(0, 2).outcome, Outcome::Success);
    assert_eq!((world.done(2, 5).outcome, into), (Outcome::Success, bytes));
}
