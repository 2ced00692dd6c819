//! What an endpoint says of itself, and what it does without room, on the in-process fabric.

mod world;

use bellwire::{FunctionAddress, Rights, Status};
use bellwire_tagged::*;
use bellwire_testkit::loopback::FabricOptions;
use std::time::{Duration, Instant};
use world::{Side, World, any, pattern, span, token};

const KEY: u64 = 5;
const LONG: usize = SEGMENTED_BYTES + 1;

/// Few regions: what needs more must wait.
fn scarce() -> FabricOptions {
    FabricOptions { regions: 4, direct_brought: false, ..FabricOptions::default() }
}

/// As above, and nothing is fetched without its owner's progress.
fn scarce_packets() -> FabricOptions {
    FabricOptions { direct_allocated: false, ..scarce() }
}

fn address(node: u32) -> FunctionAddress {
    FunctionAddress { node, function: 0 }
}

/// Lengths follow from the packets of the device.
#[test]
fn an_endpoint_knows_its_limits() {
    for (packet_bytes, eager, operand) in [(1024, 992, 492), (8192, 8160, OPERAND_BYTES)] {
        let options = FabricOptions { packet_bytes, ..FabricOptions::default() };
        let world = World::new(options, 2);
        let endpoint = &world.sides[1].endpoint;
        assert_eq!(endpoint.address(), address(1));
        assert_eq!(endpoint.operand_bytes() - operand, endpoint.eager_bytes() - eager);
        assert_eq!((endpoint.eager_bytes(), endpoint.inject_bytes()), (eager, 16 << 10));
    }
}

/// Each completion says all that there is to know.
#[test]
fn completions_are_complete() {
    let mut world = World::pair(true);
    let mut bytes = pattern(LONG, 1);
    let (to, from) = (world.peer(0, 1), world.peer(1, 0));
    let body = span(&mut bytes).into();
    let sent = world.send_from(0, 1, &body, Some(9), Some(77), 1, SendMode::Transmit);
    assert_eq!(sent, SendStatus::Pending);
    assert!(world.sides[0].endpoint.is_waiting_for_peers());
    world.settle();
    assert!(world.sides[0].endpoint.is_waiting_for_peers(), "nobody has received it");
    let look = |world: &mut World, tag, action| {
        let Side { endpoint, done } = &mut world.sides[1];
        endpoint.peek(any(tag), action, token(2), &mut |one| done.push(one));
        done.pop().expect("a look is reported at once")
    };
    let none = look(&mut world, 8, Peek::Look);
    assert_eq!((none.outcome, none.tag, none.peer), (Outcome::NoMessage, Some(8), None));
    let peeked = look(&mut world, 9, Peek::Claim);
    let told = (peeked.kind, peeked.peer, peeked.tag, peeked.data, peeked.length);
    assert_eq!(told, (CompletionKind::Peeked, Some(from), Some(9), Some(77), LONG));
    let Side { endpoint, done } = &mut world.sides[1];
    endpoint.receive_claimed(true, None, token(2), &mut |one| done.push(one)).unwrap();
    world.settle();
    let dropped = world.done(1, 2);
    assert_eq!((dropped.kind, dropped.outcome), (CompletionKind::Received, Outcome::Success));
    let done = world.done(0, 1);
    assert_eq!(
        (done.kind, done.outcome, done.peer),
        (CompletionKind::Sent, Outcome::Success, Some(to))
    );
    assert_eq!((done.tag, done.data, done.length), (Some(9), Some(77), LONG));
    assert!(!world.sides[0].endpoint.is_waiting_for_peers());

    world.receive(1, any(3), &mut [0; 8], 4);
    let Side { endpoint, done } = &mut world.sides[1];
    assert!(endpoint.cancel(4, &mut |one| done.push(one)));
    assert_eq!((world.done(1, 4).outcome, world.done(1, 4).tag), (Outcome::Cancelled, Some(3)));

    let mut memory = vec![0; 100];
    let rights = Rights::REMOTE_READ | Rights::REMOTE_WRITE;
    world.sides[1].endpoint.expose(KEY, span(&mut memory), rights).unwrap();
    let target = RemoteAddress { peer: to, key: KEY, offset: 10 };
    let Side { endpoint, done } = &mut world.sides[0];
    let mut part = pattern(50, 2);
    let body = span(&mut part).into();
    endpoint.write(target, &body, Some(8), false, token(5), &mut |one| done.push(one)).unwrap();
    world.settle();
    let done = world.done(0, 5);
    assert_eq!((done.kind, done.peer), (CompletionKind::AccessCompleted, Some(to)));
    assert_eq!((done.length, done.address), (50, part.as_ptr() as usize));
    let told = world.sides[1].done.iter().find(|one| one.kind == CompletionKind::Written);
    let told = told.expect("the owner is told");
    assert_eq!((told.peer, told.data, told.length), (Some(from), Some(8), 50));
}

/// Progress counts what it does, at most 32 packets at a time.
#[test]
fn progress_is_counted() {
    let mut world = World::pair(true);
    let mut bytes = vec![1; 8];
    world.post(0, 1, &mut bytes, Some(1), 0);
    world.settle();
    assert_eq!((world.sides[1].endpoint.unexpected(), world.turn()), (1, 0));
    for _ in 0..40 {
        world.post(0, 1, &mut bytes, Some(1), 0);
    }
    let turn = |world: &mut World| world.sides[1].endpoint.progress(&mut |_| ()).unwrap();
    let (mut counts, mut total) = (Vec::new(), 0);
    while total < 40 {
        counts.push(turn(&mut world));
        total += counts[counts.len() - 1];
        assert_eq!(world.sides[1].endpoint.unexpected(), 1 + total);
        assert!(counts.len() < 100, "{counts:?}");
    }
    assert!(counts.iter().all(|&count| count <= 32) && turn(&mut world) == 0, "{counts:?}");
    // One that meets its receive in the device's memory counts as well.
    world.receive(1, any(2), &mut [0; 8], 1);
    world.post(0, 1, &mut bytes, Some(2), 0);
    assert_eq!((turn(&mut world), turn(&mut world)), (1, 0));
}

/// A sleeper is told whether there is something to do.
#[test]
fn an_idle_endpoint_can_sleep() {
    let mut world = World::pair(true);
    let (mut bytes, mut into) = (vec![1; 8], vec![0; 8]);
    world.post(0, 1, &mut bytes, Some(1), 0);
    world.settle();
    let arm = |world: &mut World| world.sides[1].endpoint.arm().unwrap();
    assert!((0..3).any(|_| arm(&mut world)), "nothing is to do");
    world.post(0, 1, &mut bytes, Some(3), 0);
    for _ in 0..10 {
        let Side { endpoint, done } = &mut world.sides[0];
        endpoint.progress(&mut |one| done.push(one)).unwrap();
    }
    assert!(!arm(&mut world), "a message is there");
    world.settle();
    // After a message has met its receive, the next one may stay for a while: not asleep.
    world.receive(1, any(2), &mut into, 1);
    world.post(0, 1, &mut bytes, Some(2), 0);
    let Side { endpoint, done } = &mut world.sides[1];
    while done.is_empty() {
        endpoint.progress(&mut |one| done.push(one)).unwrap();
    }
    assert!(!arm(&mut world));
}

/// Packets that find no room in the link stay here until both sides make progress.
#[test]
fn packets_wait_for_room() {
    let mut world = World::pair(true);
    let mut bytes = vec![1; 8];
    let to = world.peer(0, 1);
    assert!(!world.sides[0].endpoint.has_unsent_packets(to));
    for _ in 0..200 {
        world.post(0, 1, &mut bytes, Some(1), 0);
    }
    assert!(world.sides[0].endpoint.has_unsent_packets(to));
    world.settle();
    assert!(!world.sides[0].endpoint.has_unsent_packets(to));
    assert_eq!(world.sides[1].endpoint.unexpected(), 200);
}

/// Takes turns until a side waits for peers, and has something to do that finds no room.
fn until_busy(world: &mut World, side: usize) {
    for _ in 0..50 {
        world.turn();
        let endpoint = &mut world.sides[side].endpoint;
        // The first call ends the time for which messages may stay.
        if !endpoint.arm().unwrap() && !endpoint.arm().unwrap() && endpoint.is_waiting_for_peers() {
            return;
        }
    }
    panic!("it never waits for room");
}

/// Offered messages from three senders, three of each, to a receiver with room for four.
fn scarce_fetches(bytes: &mut [u8], into: &mut [Vec<u8>]) -> World {
    let mut world = World::new(scarce(), 4);
    for (at, into) in into.iter_mut().enumerate() {
        world.receive(1, any(at as u64), into, at as u64);
    }
    for (at, from) in [0, 2, 3].into_iter().cycle().take(9).enumerate() {
        world.post(from, 1, bytes, Some(at as u64), 0);
    }
    until_busy(&mut world, 1);
    world
}

/// Whatever progress does is counted, also if it only goes on with what waited.
#[test]
fn what_waited_is_counted() {
    let (mut bytes, mut into) = (pattern(LONG, 3), vec![vec![0; LONG]; 9]);
    let mut world = World::new(scarce(), 4);
    for (at, into) in into.iter_mut().enumerate() {
        world.receive(1, any(at as u64), into, at as u64);
    }
    for (at, from) in [0, 2, 3].into_iter().cycle().take(9).enumerate() {
        world.post(from, 1, &mut bytes, Some(at as u64), 0);
    }
    let counted = counted(&mut world, 1);
    // Nine offers, nine fetches, and five of these that waited for one of four regions.
    assert_eq!((counted, world.sides[1].done.len()), (23, 9));

    let mut world = World::new(scarce(), 2);
    let endpoint = &mut world.sides[1].endpoint;
    endpoint.expose(KEY, span(&mut bytes), Rights::REMOTE_READ).unwrap();
    let from = RemoteAddress { peer: world.peer(0, 1), key: KEY, offset: 0 };
    for (at, into) in (0..).zip(&mut into) {
        let Side { endpoint, done } = &mut world.sides[0];
        endpoint.read(from, &span(into).into(), token(at), &mut |one| done.push(one)).unwrap();
    }
    // Nine keys, nine reads, and five of these that waited.
    assert_eq!((self::counted(&mut world, 0), world.sides[0].done.len()), (23, 9));
}

/// Takes turns until all rest. Returns what progress of one side has counted.
fn counted(world: &mut World, side: usize) -> usize {
    let (mut counted, mut quiet) = (0, 0);
    while quiet < 500 {
        let mut all = 0;
        for (at, Side { endpoint, done }) in world.sides.iter_mut().enumerate() {
            let one = endpoint.progress(&mut |one| done.push(one)).unwrap();
            counted += if at == side { one } else { 0 };
            all += one;
        }
        quiet = if all == 0 { quiet + 1 } else { 0 };
    }
    counted
}

/// When one of several senders ends, its messages that wait to be fetched fail, and those of the
/// others come.
#[test]
fn the_end_of_a_sender_spares_the_others() {
    let (mut bytes, mut into) = (pattern(LONG, 3), vec![vec![0; LONG]; 9]);
    let mut world = scarce_fetches(&mut bytes, &mut into);
    world.fabric.kill(address(3));
    world.sides.pop();
    until_done(&mut world, 1, 9);
    for at in 0..9 {
        let is_whole = world.done(1, at).outcome == Outcome::Success;
        assert!(is_whole || at % 3 == 2, "{at}: {:?}", world.done(1, at));
    }
}

/// When one of two owners ends, accesses to its memory fail, and those to the other's go on.
#[test]
fn the_end_of_an_owner_spares_the_others() {
    let mut world = World::new(scarce(), 3);
    let mut memory = pattern(LONG, 1);
    for owner in [1, 2] {
        let endpoint = &mut world.sides[owner].endpoint;
        endpoint.expose(KEY, span(&mut memory), Rights::REMOTE_READ).unwrap();
    }
    let mut into = vec![vec![0; LONG]; 12];
    for (at, into) in (0..).zip(&mut into) {
        let from = RemoteAddress { peer: world.peer(0, 1 + at % 2), key: KEY, offset: 0 };
        let Side { endpoint, done } = &mut world.sides[0];
        let token = token(u64::from(at));
        endpoint.read(from, &span(into).into(), token, &mut |one| done.push(one)).unwrap();
    }
    until_busy(&mut world, 0);
    // One to the owner that stays waits for its answer.
    let unknown = RemoteAddress { peer: world.peer(0, 1), key: KEY + 1, offset: 0 };
    let mut last = vec![0; 8];
    let Side { endpoint, done } = &mut world.sides[0];
    let sink = &mut |one| done.push(one);
    endpoint.read(unknown, &span(&mut last).into(), token(12), sink).unwrap();
    world.fabric.kill(address(2));
    world.sides.pop();
    until_done(&mut world, 0, 13);
    for at in 0..12 {
        let is_read = world.done(0, at).outcome == Outcome::Success;
        assert!(is_read || at % 2 == 1, "{at}: {:?}", world.done(0, at));
    }
    assert_eq!(world.done(0, 12).outcome, Outcome::Failed(Status::WrongKey));
}

/// When another endpoint takes the place of one of two owners, accesses to that one fail, also
/// those that wait for room. Those to the other go on.
#[test]
fn another_owner_spares_accesses_to_others() {
    let mut world = World::new(scarce_packets(), 3);
    let mut memory = pattern(LONG, 1);
    for owner in [1, 2] {
        let endpoint = &mut world.sides[owner].endpoint;
        endpoint.expose(KEY, span(&mut memory), Rights::REMOTE_READ).unwrap();
    }
    let mut into = vec![vec![0; LONG]; 12];
    let mut read = |world: &mut World, owner, key, at: usize| {
        let from = RemoteAddress { peer: world.peer(0, owner), key, offset: 0 };
        let into = span(&mut into[at]).into();
        let Side { endpoint, done } = &mut world.sides[0];
        endpoint.read(from, &into, token(at as u64), &mut |one| done.push(one)).unwrap();
    };
    read(&mut world, 1, KEY, 0);
    read(&mut world, 2, KEY, 1);
    world.settle();
    world.sides[0].done.clear();
    // Two wait for an answer, four to the first have all regions, and four wait for one.
    read(&mut world, 1, KEY + 1, 2);
    read(&mut world, 2, KEY + 1, 3);
    for (at, owner) in [1, 1, 1, 1, 2, 1, 2, 1].into_iter().enumerate() {
        read(&mut world, owner, KEY, 4 + at);
    }
    let _other = world.replace_last(0);
    assert_eq!(world.failed(0), [3, 8, 10]);
    world.settle();
    assert_eq!(world.done(0, 2).outcome, Outcome::Failed(Status::WrongKey));
    for at in [4, 5, 6, 7, 9, 11] {
        assert_eq!(world.done(0, at).outcome, Outcome::Success, "{at}");
        assert_eq!(into[at as usize], memory, "{at}");
    }
}

/// When another endpoint takes the place of one of two senders, its messages that wait to be
/// fetched fail, and those of the others come.
#[test]
fn another_sender_spares_messages_of_others() {
    let mut world = World::new(scarce_packets(), 4);
    let (mut bytes, mut into) = (pattern(LONG, 3), vec![vec![0; LONG]; 8]);
    for (at, from) in [0, 0, 0, 0, 3, 2, 3, 2].into_iter().enumerate() {
        world.post(from, 1, &mut bytes, Some(at as u64), 0);
    }
    world.settle();
    assert_eq!(world.sides[1].endpoint.unexpected(), 8);
    // The first four have all regions.
    for (at, into) in (0..).zip(&mut into) {
        world.receive(1, any(at), into, at);
    }
    let _other = world.replace_last(1);
    assert_eq!(world.failed(1), [4, 6]);
    world.settle();
    for at in [0, 1, 2, 3, 5, 7] {
        assert_eq!(world.done(1, at).outcome, Outcome::Success, "{at}");
        assert_eq!(into[at as usize], bytes, "{at}");
    }
}

/// Takes turns until so many operations of a side are done.
fn until_done(world: &mut World, side: usize, count: usize) {
    let deadline = Instant::now() + Duration::from_secs(8);
    while world.sides[side].done.len() < count {
        assert!(Instant::now() < deadline, "{:?}", world.sides[side].done);
        world.turn();
    }
}

/// After a burst of long messages to one peer, one to a further peer is offered until something
/// comes.
#[test]
fn a_burst_ends_when_something_comes() {
    let mut world = World::new(FabricOptions::default(), 4);
    let mut bytes = pattern(SEGMENTED_BYTES, 1);
    // Sends one, and says how many wait for their receivers to fetch them.
    let mut offered = |world: &mut World, to| {
        let body = span(&mut bytes).into();
        world.send_from(0, to, &body, Some(1), None, 1, SendMode::Transmit);
        world.fabric.exports(FunctionAddress { node: 0, function: 0 })
    };
    assert_eq!(offered(&mut world, 1), 0);
    assert_eq!(offered(&mut world, 2), 1);
    let Side { endpoint, done } = &mut world.sides[0];
    assert_eq!(endpoint.progress(&mut |one| done.push(one)).unwrap(), 0);
    assert_eq!(offered(&mut world, 2), 2, "nothing has come");
    let mut word = pattern(8, 1);
    world.post(3, 0, &mut word, Some(2), 0);
    while world.sides[0].endpoint.unexpected() == 0 {
        world.turn();
    }
    assert_eq!(offered(&mut world, 2), 2);
}

/// An empty span cannot be exposed.
#[test]
fn nothing_is_not_exposed() {
    let mut world = World::pair(true);
    let none = world.sides[1].endpoint.expose(KEY, span(&mut []), Rights::REMOTE_READ);
    assert!(matches!(none, Err(PostError::Failed(_))));
}

/// Messages whose receiver has no region for them are fetched later.
#[test]
fn fetches_wait_for_room() {
    let (mut bytes, mut into) = (pattern(LONG, 3), vec![vec![0; LONG]; 9]);
    let mut world = scarce_fetches(&mut bytes, &mut into);
    world.settle();
    for at in 0..9 {
        assert_eq!(world.done(1, at).outcome, Outcome::Success);
        assert_eq!(into[at as usize], bytes);
    }
    assert!(!world.sides[1].endpoint.is_waiting_for_peers());
    assert!((0..3).any(|_| world.sides[1].endpoint.arm().unwrap()));
}

/// Reads that find no region wait, and go on when there is one.
#[test]
fn accesses_wait_for_room() {
    let mut world = World::new(scarce(), 2);
    let mut memory = pattern(LONG, 1);
    let endpoint = &mut world.sides[1].endpoint;
    endpoint.expose(KEY, span(&mut memory), Rights::REMOTE_READ).unwrap();
    let from = RemoteAddress { peer: world.peer(0, 1), key: KEY, offset: 0 };
    let mut into = vec![vec![0; LONG]; 10];
    for (at, into) in (0..).zip(&mut into) {
        let Side { endpoint, done } = &mut world.sides[0];
        let into = span(into).into();
        endpoint.read(from, &into, token(at), &mut |one| done.push(one)).unwrap();
    }
    until_busy(&mut world, 0);
    world.settle();
    for (at, into) in (0..).zip(&into) {
        assert_eq!((world.done(0, at).outcome, into), (Outcome::Success, &memory));
    }
    assert!(!world.sides[0].endpoint.is_waiting_for_peers());
    assert_eq!(world.fabric.exports(address(0)), 0, "lent");
}

/// Messages that the second side acknowledges: more than the way back holds, which are 64 in the
/// link and 1,024 in the queue.
const RECEIPTS: u64 = 1300;

/// The second side receives messages, and makes progress alone. So its last receipts find no room.
fn withhold_receipts(world: &mut World) {
    let (mut bytes, mut into) = (vec![1; 8], vec![0; 8]);
    let (to, body) = (world.peer(0, 1), span(&mut bytes).into());
    let before = world.sides[1].done.len();
    for at in 0..RECEIPTS {
        world.receive(1, any(1), &mut into, at);
        let (tag, mode) = (Some(1), SendMode::Delivery);
        let message = TaggedMessage { to, tag, data: None, body: &body, token: token(at), mode };
        assert_eq!(world.sides[0].endpoint.send(message).unwrap(), SendStatus::Pending);
        for _ in 0..4 {
            let Side { endpoint, done } = &mut world.sides[1];
            endpoint.progress(&mut |one| done.push(one)).unwrap();
        }
    }
    assert_eq!(world.sides[1].done.len() - before, RECEIPTS as usize);
}

/// All receipts have come.
fn are_delivered(world: &World) -> bool {
    let done = &world.sides[0].done;
    done.len() == RECEIPTS as usize && done.iter().all(|one| one.outcome == Outcome::Success)
}

/// Receipts that find no room wait for it, and their sender gets all of them. Their receiver does
/// not sleep before.
#[test]
fn receipts_wait_for_room() {
    let mut world = World::pair(true);
    withhold_receipts(&mut world);
    // The queue before them empties meanwhile.
    for _ in 0..100 {
        assert!(!world.sides[1].endpoint.arm().unwrap(), "receipts wait");
        let Side { endpoint, done } = &mut world.sides[0];
        endpoint.progress(&mut |one| done.push(one)).unwrap();
    }
    assert!(counted(&mut world, 1) > 200, "each receipt that waited is counted");
    assert!(are_delivered(&world));
}

/// Receipts that wait for one peer come, although another one ends meanwhile.
#[test]
fn the_end_of_a_peer_spares_receipts_of_others() {
    let mut world = World::new(FabricOptions::default(), 3);
    let mut bytes = vec![1; 8];
    world.post(2, 1, &mut bytes, Some(2), 0);
    world.settle();
    let body = span(&mut bytes).into();
    let sent = world.send_from(1, 2, &body, Some(2), None, RECEIPTS, SendMode::Delivery);
    assert_eq!(sent, SendStatus::Pending);
    withhold_receipts(&mut world);
    let _other = world.replace_last(1);
    assert!(matches!(world.done(1, RECEIPTS).outcome, Outcome::Failed(_)), "it is noticed");
    world.settle();
    assert!(are_delivered(&world));
}
