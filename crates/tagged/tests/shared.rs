//! Receives that endpoints share.

mod world;

use bellwire_tagged::*;
use world::{World, pattern, span, token};

/// Two endpoints that share their receives, and one that sends to them.
fn world() -> (World, SharedReceives) {
    let mut world = World::new(Default::default(), 3);
    let shared = SharedReceives::new(4);
    for side in [1, 2] {
        world.sides[side].endpoint.share(&shared);
    }
    (world, shared)
}

fn look(world: &mut World) {
    for world::Side { endpoint, done } in &mut world.sides {
        endpoint.match_shared(&mut |one| done.push(one));
    }
}

/// The first endpoint that gets a message takes the oldest matching receive: short and long, with
/// tags and without. An endpoint's own receives go first.
#[test]
fn the_first_message_takes_the_oldest_receive() {
    let (mut world, shared) = world();
    let mut into = vec![vec![0; 160_000]; 4];
    for (context, into) in into.iter_mut().enumerate() {
        let tag = (context == 1).then_some((5, 0));
        shared.receive(tag, span(into).into(), token(context as u64)).unwrap();
    }
    let mut own = vec![0; 100];
    world.receive(2, MatchCriteria { source: None, tag: None }, &mut own, 9);
    let lengths = [100, 150_000, 100, 100, 200];
    let mut sent: Vec<_> = lengths.iter().map(|&length| pattern(length, length as u8)).collect();
    for (at, (to, tag)) in [(2, None), (1, None), (2, Some(5)), (2, None)].into_iter().enumerate() {
        let body = span(&mut sent[at]).into();
        world.send_from(0, to, &body, tag, None, 100, SendMode::Inject);
        world.settle();
    }
    assert_eq!(own, sent[0]);
    assert_eq!(into[0][..150_000], sent[1]);
    assert_eq!((&into[1][..100], &into[2][..100]), (&sent[2][..], &sent[3][..]));
    assert_eq!((world.done(1, 0).length, world.done(2, 1).tag), (150_000, Some(5)));
    // The last receive is for any message, also of the other endpoint.
    world.post(0, 1, &mut sent[4], None, 101);
    world.settle();
    assert_eq!((world.done(1, 3).length, world.sides[1].endpoint.unexpected()), (200, 0));
}

/// Messages that came before their receive are found when one is posted, the oldest of a sender
/// first. A cancelled receive takes nothing, and the number of waiting receives is limited.
#[test]
fn messages_may_be_early() {
    let (mut world, shared) = world();
    let mut sent: Vec<_> = (0..3).map(|n| pattern(10 + n * 140_000, n as u8)).collect();
    for bytes in &mut sent {
        world.send_from(0, 1, &span(bytes).into(), None, None, 100, SendMode::Inject);
    }
    world.settle();
    assert_eq!(world.sides[1].endpoint.unexpected(), 3);
    let mut into = vec![vec![0; 300_000]; 3];
    for (context, into) in into.iter_mut().enumerate() {
        shared.receive(None, span(into).into(), token(context as u64)).unwrap();
        // A late look at the shared receives changes no order.
        if context != 0 {
            look(&mut world);
        }
        world.settle();
    }
    for (into, sent) in into.iter().zip(&sent) {
        assert_eq!(into[..sent.len()], sent[..]);
    }
    assert_eq!(world.sides[1].endpoint.unexpected(), 0);
    let mut never = [0; 10];
    for context in 10..14 {
        shared.receive(Some((1, 0)), span(&mut never).into(), token(context)).unwrap();
    }
    let more = shared.receive(Some((1, 0)), span(&mut never).into(), token(14));
    assert!(matches!(more, Err(PostError::Again)));
    assert_eq!(shared.cancel(11), Some(token(11)));
    assert_eq!(shared.cancel(11), None);
    let mut word = pattern(3, 3);
    for _ in 0..2 {
        world.post(0, 2, &mut word, Some(1), 200);
    }
    world.settle();
    assert_eq!((world.done(2, 10).length, world.done(2, 12).length), (3, 3));
}

/// A shared receive takes no message of another tag, and none that was claimed.
#[test]
fn what_is_not_meant_for_a_shared_receive_stays() {
    let (mut world, shared) = world();
    let (mut bytes, mut into) = (pattern(10, 1), vec![0; 10]);
    for tag in [5, 6] {
        world.post(0, 1, &mut bytes, Some(tag), 0);
    }
    world.settle();
    let world::Side { endpoint, done } = &mut world.sides[1];
    endpoint.peek(world::any(5), Peek::Claim, token(1), &mut |one| done.push(one));
    done.clear();
    shared.receive(Some((5, 0)), span(&mut into).into(), token(2)).unwrap();
    look(&mut world);
    world.settle();
    assert!(world.sides[1].done.is_empty(), "{:?}", world.sides[1].done);
    world.post(0, 1, &mut bytes, Some(5), 0);
    world.settle();
    assert_eq!(world.done(1, 2).tag, Some(5));
}
