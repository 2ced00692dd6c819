//! Messages between endpoints on the in-process fabric, driven in turns by one thread.

mod world;

use bellwire::{Address, FunctionAddress, Message, QueuePairOptions};
use bellwire_tagged::*;
use bellwire_testkit::loopback::FabricOptions;
use std::time::Duration;
use world::{Side, World, any, message, packet, pattern, random, span, token};

/// Messages of all lengths arrive whole, with tag, data and sender. The receive may be posted
/// before or after, and memory may be directly reachable or not.
#[test]
fn messages_of_all_lengths_arrive() {
    for direct in [true, false] {
        for early in [true, false] {
            let mut world = World::pair(direct);
            let eager = world.sides[0].endpoint.eager_bytes();
            let (pieces, long) = (SEGMENTED_BYTES, SEGMENTED_BYTES + 1);
            let lengths =
                [0, 1, 7, 8, 9, 100, eager - 1, eager, eager + 1, 5000, pieces, long, 300_000];
            let mut buffers: Vec<_> = lengths.iter().map(|length| vec![0; length + 3]).collect();
            let mut sent: Vec<_> = lengths.iter().map(|length| pattern(*length, 3)).collect();
            let mut pending = Vec::new();
            for (at, bytes) in sent.iter_mut().enumerate() {
                let (context, tag) = (at as u64, 1000 + at as u64);
                if early {
                    world.receive(1, any(tag), &mut buffers[at], 100 + context);
                }
                let body = span(bytes).into();
                let data = (at % 2 == 0).then_some(u64::MAX - context);
                let status =
                    world.send_from(0, 1, &body, Some(tag), data, context, SendMode::Transmit);
                pending.push(status == SendStatus::Pending);
                // One in segments is complete at once if all of them find room.
                match bytes.len() {
                    length if length <= eager => assert_eq!(status, SendStatus::Complete),
                    length if length > pieces => assert_eq!(status, SendStatus::Pending),
                    _ => {}
                }
            }
            world.settle();
            for (at, buffer) in buffers.iter_mut().enumerate().filter(|_| !early) {
                world.receive(1, any(1000 + at as u64), buffer, 100 + at as u64);
            }
            world.settle();
            let from = world.peer(1, 0);
            for (at, bytes) in sent.iter().enumerate() {
                let done = world.done(1, 100 + at as u64);
                let got = (done.outcome, done.length, done.overflow);
                assert_eq!(got, (Outcome::Success, bytes.len(), 0));
                assert_eq!((done.peer, done.tag), (Some(from), Some(1000 + at as u64)));
                assert_eq!(done.data, (at % 2 == 0).then_some(u64::MAX - at as u64));
                assert_eq!(done.token.note, 7);
                assert_eq!(buffers[at][..bytes.len()], bytes[..]);
                if pending[at] {
                    assert_eq!(world.done(0, at as u64).kind, CompletionKind::Sent);
                }
            }
            assert_eq!(world.sides[0].done.len(), pending.iter().filter(|&&it| it).count());
            assert_eq!(world.fabric.exports(FunctionAddress { node: 0, function: 0 }), 0, "lent");
        }
    }
}

/// A message of several parts fills a receive of several parts, short and long. Bytes that do not
/// fit are reported.
#[test]
fn parts_are_one_message() {
    for total in [90, 9000, 190_000] {
        let mut world = World::pair(true);
        let mut bytes = pattern(total, 5);
        let third = total / 3;
        let body = {
            let (a, rest) = bytes.split_at_mut(third);
            let (b, c) = rest.split_at_mut(third);
            Spans::of(&[span(a), span(b), span(c)])
        };
        let (mut one, mut two) = (vec![0; total / 2], vec![0; total / 2 - 10]);
        let into = Spans::of(&[span(&mut one), span(&mut two)]);
        let Side { endpoint, done } = &mut world.sides[1];
        endpoint.receive(any(1), into, token(9), &mut |one| done.push(one)).unwrap();
        world.send_from(0, 1, &body, Some(1), None, 1, SendMode::Transmit);
        world.settle();
        let done = world.done(1, 9);
        let got = (done.outcome, done.length, done.overflow);
        assert_eq!(got, (Outcome::Truncated, total - 10, 10));
        assert_eq!([&one[..], &two[..]].concat(), &bytes[..total - 10]);
    }
}

/// A message ends in the middle of a receive of several parts, and its own parts end elsewhere.
#[test]
fn parts_may_be_longer_than_the_message() {
    for total in [90, 9000, 190_000] {
        let mut world = World::pair(true);
        let mut bytes = pattern(total, 5);
        let (a, b) = bytes.split_at_mut(total / 3);
        let body = Spans::of(&[span(a), span(b)]);
        let (mut one, mut two) = (vec![0; total / 2], vec![0; total]);
        let into = Spans::of(&[span(&mut one), span(&mut two)]);
        let Side { endpoint, done } = &mut world.sides[1];
        endpoint.receive(any(1), into, token(9), &mut |one| done.push(one)).unwrap();
        // Another receive is shorter than the first part.
        let mut few = vec![0; total / 4];
        world.receive(1, any(2), &mut few, 10);
        for tag in [1, 2] {
            world.send_from(0, 1, &body, Some(tag), None, tag, SendMode::Transmit);
        }
        world.settle();
        assert_eq!((world.done(1, 9).outcome, world.done(1, 9).length), (Outcome::Success, total));
        assert_eq!([&one[..], &two[..total - total / 2]].concat(), bytes);
        assert!(two[total - total / 2..].iter().all(|byte| *byte == 0));
        assert_eq!(few, bytes[..total / 4]);
    }
}

/// The numbers of operations begin with what the endpoint drew at random, so that a late answer to
/// an earlier endpoint at its address is nobody's.
#[test]
fn operations_are_numbered_from_the_incarnation() {
    let mut world = World::pair(true);
    let mut function = world.fabric.device(7).open_function(0).unwrap();
    let queue = function.create_completion_queue(64).unwrap();
    let pair = function.create_queue_pair(&QueuePairOptions::new(queue)).unwrap();
    function.post_receive(pair, vec![0; 1024], 0).unwrap();
    let mut bytes = pattern(8, 1);
    world.send_from(0, 7, &span(&mut bytes).into(), Some(1), None, 1, SendMode::Delivery);
    let mut turns = 0;
    let done = loop {
        world.turn();
        if let Some(done) = function.poll(queue).unwrap() {
            break done;
        }
        turns += 1;
        assert!(turns < 100_000, "nothing comes");
    };
    let buffer = done.buffer.expect("the packet");
    let (words, _) = buffer.as_slice().expect("bytes").as_chunks::<8>();
    let [head, operation] = [0, 1].map(|at| u64::from_le_bytes(words[at]));
    assert_eq!(operation >> 48, head >> 16 & 0xffff);
}

/// Who is not connected with us cannot end what waits for it by the end of a connection.
#[test]
fn only_the_connected_peer_disconnects() {
    const DISCONNECT: u64 = 13;
    let mut world = World::pair(true);
    let mut function = world.fabric.device(7).open_function(0).unwrap();
    let queue = function.create_completion_queue(64).unwrap();
    let pair = function.create_queue_pair(&QueuePairOptions::new(queue)).unwrap();
    let mut bytes = pattern(8, 1);
    world.send_from(0, 7, &span(&mut bytes).into(), Some(1), None, 1, SendMode::Delivery);
    let packet = packet(&[DISCONNECT | 9 << 16]);
    let send = Message::inline(&packet).to(Address::new(0, 0, 1)).immediate(0).unsignaled();
    function.post_send(pair, send).unwrap();
    for _ in 0..1000 {
        function.progress().unwrap();
        world.turn();
    }
    assert!(world.sides[0].done.is_empty() && world.sides[0].endpoint.is_waiting_for_peers());
}

/// A receive takes the oldest message from its sender whose tag matches under its mask. Messages
/// without tags match only receives without.
#[test]
fn receives_choose() {
    let mut world = World::new(FabricOptions::default(), 3);
    let mut letters: Vec<Vec<u8>> = (0..6).map(|n| vec![b'a' + n; 4]).collect();
    let plan =
        [(0, Some(0x11)), (2, Some(0x21)), (0, Some(0x21)), (0, None), (2, Some(0x12)), (2, None)];
    for ((from, tag), letter) in plan.iter().zip(&mut letters) {
        world.post(*from, 1, letter, *tag, 0);
        world.settle();
    }
    let (first, third) = (world.peer(1, 0), world.peer(1, 2));
    let tagged = |from, tag, ignore| MatchCriteria { source: from, tag: Some((tag, ignore)) };
    let selections = [
        tagged(Some(first), 0x01, 0xf0),
        tagged(Some(first), 0x01, 0xf0),
        MatchCriteria { source: Some(third), tag: None },
        tagged(None, 0, u64::MAX),
        MatchCriteria { source: None, tag: None },
        tagged(None, 0x12, 0),
    ];
    let mut into = vec![vec![0; 4]; 6];
    for (at, (selection, into)) in selections.into_iter().zip(&mut into).enumerate() {
        world.receive(1, selection, into, at as u64);
    }
    world.settle();
    let got: Vec<u8> = into.iter().map(|into| into[0]).collect();
    assert_eq!(String::from_utf8(got).unwrap(), "acfbde");
    assert_eq!(world.sides[1].endpoint.unexpected(), 0);
}

/// Unexpected messages take no more room than the window. The others wait at their sender, and all
/// come in order once they are received.
#[test]
fn what_is_unexpected_is_bounded() {
    let mut world = World::new(FabricOptions { regions: 8192, ..FabricOptions::default() }, 2);
    let count = 6000;
    let mut bodies: Vec<Vec<u8>> = (0..count).map(|n| pattern(200, n as u8)).collect();
    let mut offered = 0;
    for (at, body) in bodies.iter_mut().enumerate().take(4000) {
        // Enough that offers wait for a free operation; the sender is told so.
        let sent = world.send(body, Some(5), at as u64, SendMode::Transmit);
        offered += usize::from(sent == SendStatus::Pending);
    }
    world.settle();
    let here = 4000 - offered;
    assert!(here * 200 <= WINDOW_BYTES && (here + 1) * (200 + 64 + 64) > WINDOW_BYTES, "{here}");
    let mut into = vec![0; 200];
    for (at, body) in bodies.iter().enumerate().take(4000) {
        world.receive(1, any(5), &mut into, 10_000 + at as u64);
        world.settle();
        assert_eq!(world.done(1, 10_000 + at as u64).outcome, Outcome::Success);
        assert_eq!(into, *body, "message {at}");
        world.sides[1].done.clear();
    }
    for body in &mut bodies[4000..] {
        let sent = world.send(body, Some(5), 0, SendMode::Transmit);
        assert_eq!(sent, SendStatus::Complete, "credit has come back");
        world.receive(1, any(5), &mut into, 1);
        world.settle();
    }
}

/// A delivery completes when a receive has the message, not when it has arrived.
#[test]
fn delivery_is_complete_when_it_is_received() {
    for length in [8, 10_000, 150_000] {
        let mut world = World::pair(true);
        let (mut bytes, mut into) = (pattern(length, 1), vec![0; length]);
        assert_eq!(world.send(&mut bytes, None, 4, SendMode::Delivery), SendStatus::Pending);
        world.settle();
        assert!(world.sides[0].done.is_empty(), "nobody has received it");
        world.receive(1, MatchCriteria { source: None, tag: None }, &mut into, 5);
        world.settle();
        assert_eq!(world.done(0, 4).outcome, Outcome::Success);
        assert_eq!(into, bytes);
    }
}

/// The memory of a copied message can be reused after the call, however the message travels.
/// Nothing is reported of it.
#[test]
fn copies_are_copies() {
    let mut world = World::pair(true);
    let most = world.sides[0].endpoint.inject_bytes();
    let mut others = pattern(1000, 2);
    for (length, window_is_full) in [(100, false), (most, false), (most, true), (100, true)] {
        while window_is_full
            && world.send(&mut others, Some(1), 0, SendMode::Inject) == SendStatus::Complete
        {
        }
        let (mut bytes, mut into) = (pattern(length, 1), vec![0; length]);
        world.send(&mut bytes, None, 4, SendMode::Inject);
        bytes.fill(0);
        world.receive(1, MatchCriteria { source: None, tag: None }, &mut into, length as u64);
        world.settle();
        assert_eq!(into, pattern(length, 1));
        assert!(world.sides[0].done.is_empty());
    }
}

/// A buffer for many messages takes them one behind the other, short and long, and is given back
/// after the last.
#[test]
fn many_messages_fill_one_buffer() {
    for more in [0, SEGMENTED_BYTES] {
        fill_one_buffer(more);
    }
}

/// Long messages are longer by `more` bytes.
fn fill_one_buffer(more: usize) {
    let mut world = World::pair(true);
    let selection = MatchCriteria { source: None, tag: None };
    let lengths = [10, 3000 + more, 20, 2000 + more, 15, 4000];
    let mut sent: Vec<_> = lengths.iter().map(|&length| pattern(length, length as u8)).collect();
    let mut into = vec![0; 5230 + 2 * more];
    // The first two come before the buffer, and the last one finds none.
    for bytes in &mut sent[..2] {
        world.send(bytes, None, 0, SendMode::Transmit);
    }
    world.settle();
    let Side { endpoint, done } = &mut world.sides[1];
    let buffer = span(&mut into);
    endpoint.receive_many(selection, buffer, 200, token(1), &mut |one| done.push(one)).unwrap();
    for bytes in &mut sent[2..] {
        world.send(bytes, None, 0, SendMode::Transmit);
    }
    world.settle();
    let done = &world.sides[1].done;
    let received: Vec<_> =
        done.iter().filter(|done| done.kind == CompletionKind::Received).collect();
    assert_eq!(received.len(), 5);
    for done in received {
        let at = done.address - into.as_ptr() as usize;
        let whole = sent.iter().any(|bytes| bytes[..] == into[at..at + done.length]);
        assert!(whole && done.outcome == Outcome::Success);
    }
    assert_eq!(done.last().unwrap().kind, CompletionKind::BufferReleased, "after all of them");
    assert_eq!(done.iter().filter(|done| done.kind == CompletionKind::BufferReleased).count(), 1);
    assert_eq!(world.sides[1].endpoint.unexpected(), 1);
}

/// A cancelled receive takes nothing and completes once. An unknown one cannot be cancelled.
#[test]
fn receives_are_cancelled() {
    let mut world = World::pair(true);
    let (mut bytes, mut first, mut second) = (pattern(8, 1), vec![0; 8], vec![0; 8]);
    world.receive(1, any(1), &mut first, 1);
    world.receive(1, any(1), &mut second, 2);
    let Side { endpoint, done } = &mut world.sides[1];
    assert!(endpoint.cancel(1, &mut |one| done.push(one)));
    assert!(!endpoint.cancel(1, &mut |_| unreachable!()));
    assert_eq!(world.done(1, 1).outcome, Outcome::Cancelled);
    world.send(&mut bytes, Some(1), 0, SendMode::Transmit);
    world.settle();
    assert_eq!((first, second), (vec![0; 8], pattern(8, 1)));
}

/// Short and long messages can be peeked at, claimed and dropped before they are received.
#[test]
fn messages_are_looked_at() {
    for length in [16, 20_000, 150_000] {
        let mut world = World::pair(true);
        let (mut a, mut b, mut c) = (pattern(length, 1), pattern(length, 2), pattern(length, 3));
        let look = |world: &mut World, action, context| {
            let Side { endpoint, done } = &mut world.sides[1];
            endpoint.peek(any(1), action, token(context), &mut |one| done.push(one));
            done.pop().unwrap()
        };
        assert_eq!(look(&mut world, Peek::Look, 1).outcome, Outcome::NoMessage);
        for (at, bytes) in [&mut a, &mut b, &mut c].into_iter().enumerate() {
            let (body, data) = (span(bytes).into(), Some(at as u64));
            world.send_from(0, 1, &body, Some(1), data, 9, SendMode::Delivery);
        }
        world.settle();
        for _ in 0..2 {
            let done = look(&mut world, Peek::Look, 1);
            assert_eq!((done.outcome, done.kind), (Outcome::Success, CompletionKind::Peeked));
            assert_eq!((done.length, done.data, done.tag), (length, Some(0), Some(1)));
        }
        assert_eq!(look(&mut world, Peek::Claim, 40).data, Some(0));
        assert_eq!(look(&mut world, Peek::Discard, 1).data, Some(1));
        let mut into = vec![0; length];
        world.receive(1, any(1), &mut into, 50);
        world.settle();
        assert_eq!(into, c, "the first is claimed, and the second gone");
        let Side { endpoint, done } = &mut world.sides[1];
        let sink = &mut |one| done.push(one);
        let spans = Spans::from(span(&mut into));
        endpoint.receive_claimed(true, Some(spans), token(40), sink).unwrap();
        let again = endpoint.receive_claimed(true, None, token(40), sink);
        assert!(matches!(again, Err(PostError::Failed(_))));
        world.settle();
        assert_eq!((into, world.done(1, 40).data), (a, Some(0)));
        assert_eq!(world.sides[0].done.len(), 3, "all are delivered, one of them to nobody");
    }
}

/// When a peer ends, operations that wait for it fail, and its offers can no longer be received.
#[test]
fn the_end_of_a_peer_ends_what_waits_for_it() {
    let options = FabricOptions { patience: Duration::from_millis(50), ..FabricOptions::default() };
    let mut world = World::new(options, 2);
    let mut bytes = pattern(150_000, 1);
    world.send(&mut bytes, Some(1), 1, SendMode::Transmit);
    world.send(&mut bytes[..10], Some(1), 2, SendMode::Delivery);
    world.settle();
    world.fabric.kill(FunctionAddress { node: 1, function: 0 });
    world.sides.truncate(1);
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while world.sides[0].done.len() < 2 && std::time::Instant::now() < deadline {
        world.turn();
    }
    for context in [1, 2] {
        assert!(matches!(world.done(0, context).outcome, Outcome::Failed(_)));
    }
}

/// Another endpoint at the same address is another peer. Operations for the previous one fail, its
/// messages are gone, and the new one has its whole window.
#[test]
fn another_endpoint_at_an_address_begins_anew() {
    let options = FabricOptions { patience: Duration::from_millis(50), ..FabricOptions::default() };
    let mut world = World::new(options, 2);
    let (mut long, mut word) = (pattern(150_000, 1), pattern(8, 2));
    for _ in 0..2000 {
        world.post(1, 0, &mut word, Some(1), 0);
        world.turn();
    }
    world.send(&mut long, Some(1), 1, SendMode::Transmit);
    world.settle();
    world.fabric.kill(FunctionAddress { node: 1, function: 0 });
    world.sides.pop();
    let endpoint = Endpoint::open(&world.fabric.device(1), 0, &Options::default()).unwrap();
    world.sides.push(Side { endpoint, done: Vec::new() });
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    let mut sent = 0;
    while std::time::Instant::now() < deadline && sent < 3000 {
        // Only after the old link is down on both sides.
        world.turn();
        let to = world.peer(1, 0);
        let status = world.sides[1].endpoint.send(message(to, 2, &span(&mut word).into(), 0));
        sent += usize::from(matches!(status, Ok(SendStatus::Complete)));
    }
    world.settle();
    assert_eq!(world.sides[0].endpoint.unexpected(), 3000, "only what the new one has sent");
    assert!(matches!(world.done(0, 1).outcome, Outcome::Failed(_)));
}

/// A peer that sends invalid messages, or more than its window, gets nothing in beyond the window.
/// Other peers are served as before.
#[test]
fn hostile_peers_are_bounded() {
    let mut world = World::new(FabricOptions { packet_bytes: 1024, ..FabricOptions::default() }, 2);
    let device = world.fabric.device(7);
    let mut hostile = device.open_function(0).unwrap();
    let completions = hostile.create_completion_queue(4096).unwrap();
    let pair = hostile.create_queue_pair(&QueuePairOptions::new(completions)).unwrap();
    let to = Address::new(1, 0, 1);
    let eager = |credit: u32| 1 | 1 << 8 | 5 << 16 | u64::from(credit) << 32;
    let offer = 2_u64 | 1 << 8 | 5 << 16;
    let mut packets: Vec<Vec<u8>> = Vec::new();
    for n in 0..3000_u64 {
        // An eager message with bytes; offers that are too short, with an invalid key, with a wrong
        // sum; the end of a stranger's operation; noise.
        packets.push([eager(n as u32).to_le_bytes().as_slice(), &[n as u8; 900]].concat());
        packets.push(offer.to_le_bytes().to_vec());
        packets.push(packet(&[offer, n, 100, 0, 0, 0]));
        packets.push(packet(&[offer, n, 101, 1, 100, 7]));
        // The first piece of a message of any length, then something that could be its next piece,
        // and mostly is not.
        let begins = u64::from(eager(0) as u32) | 32 << 8;
        packets.push(packet(&[begins, n * n, n]));
        packets.push(packet(&[14 | 5 << 16, n % 24, n]));
        packets.push(packet(&[3, n, n << 32]));
        packets.push(pattern(n as usize % 40, n as u8));
    }
    // The messages go first, so that the window is full.
    packets.sort_by_key(|bytes| std::cmp::Reverse(bytes.len()));
    let mut most = 0;
    for bytes in packets {
        let send = || Message::inline(&bytes).to(to).immediate(9).unsignaled();
        while hostile.post_send(pair, send()).is_err() {
            hostile.progress().unwrap();
            world.turn();
        }
        hostile.progress().unwrap();
        world.turn();
        most = most.max(world.sides[1].endpoint.unexpected());
    }
    world.settle();
    // Noise that looks like the head of another endpoint drops the waiting messages.
    assert!(most * 900 > WINDOW_BYTES / 2 && most * 900 <= WINDOW_BYTES, "{most} messages");
    assert!(world.sides[1].done.is_empty());
    let (mut bytes, mut into) = (pattern(5000, 1), vec![0; 5000]);
    let from = world.peer(1, 0);
    world.receive(1, MatchCriteria { source: Some(from), tag: Some((9, 0)) }, &mut into, 1);
    world.send(&mut bytes, Some(9), 1, SendMode::Transmit);
    world.settle();
    assert_eq!(into, bytes);
}

/// Any mix of lengths, tags, ways to send and times to receive keeps every sender's order for every
/// tag. The links refuse, delay, and offer no direct access. All is received once and whole, and
/// nothing remains.
#[test]
fn every_order_is_kept() {
    for seed in 0..12_u64 {
        let options = FabricOptions {
            packet_bytes: 256 << (seed % 3),
            link_packets: 2 + seed as usize % 5,
            direct_brought: seed % 2 == 0,
            pending_every: [0, 2, 3, 5][seed as usize % 4],
            busy_every: [0, 2, 3][seed as usize % 3],
            ..FabricOptions::default()
        };
        let mut world = World::new(options, 3);
        let mut random = random(seed * 0x9e37_79b9 + 1);
        let mut next = |below: u64| random() % below;
        // Messages by sender and tag, in order; each begins with its number.
        let mut sent: Vec<(usize, u64, Vec<u8>)> = Vec::new();
        let mut received: Vec<(usize, u64, Vec<u8>)> = Vec::new();
        let senders = [0, 2];
        let mut bytes_of: Vec<Vec<u8>> = Vec::new();
        for step in 0..400 {
            match next(3) {
                0 => {
                    let (from, tag) = (senders[next(2) as usize], next(3));
                    let length = 8 + [0, 10, 300, 3000, 20_000, 140_000][next(6) as usize];
                    let mut bytes = pattern(length, step as u8);
                    bytes[..8].copy_from_slice(&(step as u64).to_le_bytes());
                    let mode = [SendMode::Transmit, SendMode::Delivery, SendMode::Inject]
                        [next(3) as usize];
                    bytes_of.push(bytes);
                    let bytes = bytes_of.last_mut().unwrap();
                    sent.push((from, tag, bytes.clone()));
                    let body = span(bytes).into();
                    world.send_from(from, 1, &body, Some(tag), None, step as u64, mode);
                }
                1 => {
                    let (from, tag) = (senders[next(2) as usize], next(3));
                    let peer = world.peer(1, from as u32);
                    received.push((from, tag, vec![0; 141_000]));
                    let at = received.len() - 1;
                    let selection = MatchCriteria { source: Some(peer), tag: Some((tag, 0)) };
                    let mut into = std::mem::take(&mut received[at].2);
                    world.receive(1, selection, &mut into, at as u64);
                    received[at].2 = into;
                }
                _ => drop(world.turn()),
            }
        }
        // Receives for all remaining messages.
        for from in senders {
            for tag in 0..3 {
                let count = |list: &[(usize, u64, Vec<u8>)]| {
                    list.iter().filter(|one| (one.0, one.1) == (from, tag)).count()
                };
                for _ in count(&received)..count(&sent) {
                    let peer = world.peer(1, from as u32);
                    let selection = MatchCriteria { source: Some(peer), tag: Some((tag, 0)) };
                    let mut into = vec![0; 141_000];
                    world.receive(1, selection, &mut into, received.len() as u64);
                    received.push((from, tag, into));
                }
            }
        }
        world.settle();
        for from in senders {
            for tag in 0..3 {
                let mine = |one: &&(usize, u64, Vec<u8>)| (one.0, one.1) == (from, tag);
                let mut got = received.iter().enumerate().filter(|(_, one)| mine(one));
                for (_, _, bytes) in sent.iter().filter(mine) {
                    let (context, (_, _, into)) = got.next().expect("a receive for each");
                    let done = world.done(1, context as u64);
                    let good = (done.outcome, done.length) == (Outcome::Success, bytes.len());
                    assert!(good, "seed {seed}: {done:?}");
                    assert_eq!(into[..bytes.len()], bytes[..], "seed {seed}");
                }
            }
        }
        assert_eq!(world.sides[1].endpoint.unexpected(), 0);
        for node in [0, 2] {
            assert_eq!(world.fabric.exports(FunctionAddress { node, function: 0 }), 0);
        }
    }
}

/// The first message for a peer, whole or in segments, is reported as such, once. Its packets are
/// gone when both sides have made progress.
#[test]
fn a_first_contact_is_reported_once() {
    for length in [8, SEGMENTED_BYTES] {
        let mut world = World::pair(true);
        let (to, mut bytes) = (world.peer(0, 1), pattern(length, 1));
        let body: Spans = span(&mut bytes).into();
        assert_eq!(world.sides[0].endpoint.take_first_contact(), None);
        assert!(!world.sides[0].endpoint.has_unsent_packets(to), "nothing was sent");
        for (context, first) in [(1, Some(to)), (2, None)] {
            let message = message(to, 5, &body, context);
            world.sides[0].endpoint.send(message).unwrap();
            assert_eq!(world.sides[0].endpoint.take_first_contact(), first);
            assert_eq!(world.sides[0].endpoint.take_first_contact(), None);
        }
        world.settle();
        assert!(!world.sides[0].endpoint.has_unsent_packets(to));
        assert_eq!(world.sides[1].endpoint.unexpected(), 2);
    }
}
