//! Packets that are looked at in the device's memory: which are taken, and what becomes of them.

use crate::completion::{CompletionKind, Outcome, Peer, TaggedCompletion, Token};
use crate::connection::PeerMode;
use crate::control::Control;
use crate::head::{ACKNOWLEDGE, DATA, Head, Kind, SEGMENTED, TAGGED};
use crate::in_place::{InPlace, Patience};
use crate::matching::{MatchCriteria, Matching, Target};
use crate::memory::{Span, Spans};
use crate::peers::Peers;
use crate::transport::{Outbox, PacketSink};
use bellwire::FunctionAddress;
use bellwire_ring::memory::View;
use std::collections::VecDeque;

/// The incarnation of the peer that has sent before.
const KNOWN: u16 = 7;

struct World {
    mode: PeerMode,
    matching: Matching,
    patience: Patience,
    peers: Peers,
    outbox: Outbox,
    peer: Peer,
    done: Vec<TaggedCompletion>,
}

/// What came of a packet: whether it was taken, whether it stays, and how much was done.
type Result = (bool, bool, usize);
const TAKEN: Result = (true, false, 1);
const STAYS: Result = (false, true, 1);
const LEFT: Result = (false, false, 0);

fn head(kind: Kind, flags: u8, credit: u32) -> Head {
    Head { kind, flags, incarnation: KNOWN, credit }
}

fn packet(head: Head, words: &[u64], body: &[u8]) -> Vec<u8> {
    let words = [&[head.to_word()], words].concat();
    [words.iter().flat_map(|word| word.to_le_bytes()).collect(), body.to_vec()].concat()
}

fn span(bytes: &mut [u8]) -> Span {
    // SAFETY: tests keep their vectors until they look at them.
    unsafe { Span::new(bytes.as_mut_ptr(), bytes.len()) }
}

fn token(context: u64) -> Token {
    Token { context, note: 3 }
}

impl World {
    /// One peer is known, after another one that is not.
    fn new() -> World {
        let mut peers = Peers::new();
        peers.at(FunctionAddress { node: 8, function: 0 });
        let peer = peers.at(FunctionAddress { node: 9, function: 0 });
        assert!(peers[peer].update(&head(Kind::Credit, 0, 0)));
        World {
            mode: PeerMode::Any,
            matching: Matching::new(8),
            patience: Patience::default(),
            peers,
            outbox: Outbox(VecDeque::new()),
            peer,
            done: Vec::new(),
        }
    }

    /// A receive of any message: with tag 5, or without a tag.
    fn post(&mut self, tagged: bool, into: Spans, context: u64) {
        let criteria = MatchCriteria { source: None, tag: tagged.then_some((5, 0)) };
        self.matching.post(criteria, Target::Spans(into), token(context)).expect("room");
    }

    /// A poll with one packet.
    fn poll(&mut self, bytes: &[u8]) -> Result {
        let World { mode, matching, patience, peers, outbox, peer, done } = self;
        let mut sink = |one| done.push(one);
        let mut in_place = InPlace::new(*mode, matching, patience, &mut sink);
        let is_tagged = bytes.get(1).is_some_and(|flags| flags & TAGGED != 0);
        let tag = if is_tagged { 5 } else { 0 };
        let taken = in_place.packet(peers, outbox, *peer, tag, View::of(bytes));
        (taken, in_place.leaves(), in_place.taken())
    }

    /// A poll without packets.
    fn idle(&mut self) {
        let World { mode, matching, patience, done, .. } = self;
        let mut sink = |one| done.push(one);
        assert_eq!(InPlace::new(*mode, matching, patience, &mut sink).taken(), 0);
    }

    /// Units that the peer's next head would tell.
    fn consumed(&mut self) -> u32 {
        let peer = self.peer;
        self.peers[peer].head(Kind::Credit, 0, 1).credit
    }
}

/// A whole message goes where its receive says, and all of it is reported.
#[test]
fn a_plain_message_is_copied_to_its_receive() {
    let mut world = World::new();
    let (mut first, mut second) = ([0; 100], [0; 4]);
    world.post(true, span(&mut first).into(), 1);
    world.post(false, span(&mut second).into(), 2);
    let peer = world.peer;
    let expected = TaggedCompletion {
        token: token(1),
        kind: CompletionKind::Received,
        outcome: Outcome::Success,
        peer: Some(peer),
        tag: Some(5),
        data: None,
        length: 65,
        overflow: 0,
        address: first.as_ptr() as usize,
    };
    world.peers[peer].count_sent(9);
    assert_eq!(world.poll(&packet(head(Kind::Eager, TAGGED, 9), &[], &[3; 65])), TAKEN);
    assert_eq!(world.done, [expected]);
    assert_eq!((first[64], first[65]), (3, 0));
    // 65 bytes are two units, and one more for the message. All nine came back to us.
    assert_eq!(world.consumed(), 3);
    assert!(
        world.peers[peer].may_send_segments(4098) && !world.peers[peer].may_send_segments(4099)
    );
    // The other receive has room for four bytes of ten.
    assert_eq!(world.poll(&packet(head(Kind::Eager, 0, 9), &[], &[4; 10])), TAKEN);
    let address = second.as_ptr() as usize;
    let truncated = TaggedCompletion {
        token: token(2),
        outcome: Outcome::Truncated,
        tag: None,
        length: 4,
        overflow: 6,
        address,
        ..expected
    };
    assert_eq!((world.done[1], second), (truncated, [4; 4]));
    assert!(world.outbox.0.is_empty());
    // One with a tag has it in the report.
    world.post(true, span(&mut second).into(), 3);
    assert_eq!(world.poll(&packet(head(Kind::Eager, TAGGED, 9), &[], &[5; 10])), TAKEN);
    let tagged = TaggedCompletion { token: token(3), tag: Some(5), ..truncated };
    assert_eq!((world.done[2], second), (tagged, [5; 4]));
}

/// A message that just fits is whole.
#[test]
fn a_message_that_fits_is_not_truncated() {
    let mut world = World::new();
    for length in [0, 4] {
        let mut into = vec![0; length];
        world.post(false, span(&mut into).into(), 1);
        assert_eq!(world.poll(&packet(head(Kind::Eager, 0, 0), &[], &vec![1; length])), TAKEN);
        let done = world.done.pop().expect("it was received");
        assert_eq!((done.outcome, done.length, done.overflow), (Outcome::Success, length, 0));
    }
}

/// With words before its bytes, a message is taken as well. Its sender hears of it if it asked.
#[test]
fn messages_with_words_are_taken() {
    let mut world = World::new();
    let mut into = [0; 8];
    world.post(true, span(&mut into).into(), 1);
    let words = [77, 1 << 40];
    let flags = TAGGED | DATA | ACKNOWLEDGE;
    assert_eq!(world.poll(&packet(head(Kind::Eager, flags, 0), &words, &[6; 10])), TAKEN);
    let done = world.done[0];
    assert_eq!((done.token, done.data, done.tag), (token(1), Some(77), Some(5)));
    assert_eq!((done.outcome, done.length, done.overflow), (Outcome::Truncated, 8, 2));
    assert_eq!((done.address, into), (into.as_ptr() as usize, [6; 8]));
    let receipt = world.outbox.0.pop_front().expect("the sender hears of it");
    assert_eq!(receipt.0, world.peer);
    assert!(
        matches!(receipt.1, Control::Finished { operation, status: 0 } if operation == 1 << 40)
    );
    assert_eq!(world.consumed(), 2);
}

/// A message of several packets goes straight to its receive, and is reported with the last one.
#[test]
fn segments_are_put_together() {
    let mut world = World::new();
    let mut into = [0; 20];
    world.post(true, span(&mut into).into(), 1);
    let first = packet(head(Kind::Eager, TAGGED | SEGMENTED, 0), &[16], &[1; 6]);
    assert_eq!(world.poll(&first), TAKEN);
    assert!(world.done.is_empty());
    let segment = |at, length, fill| packet(head(Kind::Segment, 0, 0), &[at], &vec![fill; length]);
    // Nothing else comes before its rest, and no other segment.
    assert_eq!(world.poll(&packet(head(Kind::Eager, TAGGED, 0), &[], &[9; 3])), LEFT);
    assert_eq!(world.poll(&packet(head(Kind::Eager, DATA, 0), &[1], &[9; 3])), LEFT);
    assert_eq!(world.poll(&first), LEFT);
    assert_eq!(world.poll(&segment(7, 4, 9)), LEFT);
    assert_eq!(world.poll(&segment(6, 11, 9)), LEFT);
    assert_eq!(world.poll(&segment(6, 4, 2)), TAKEN);
    assert!(world.done.is_empty());
    assert_eq!(world.poll(&segment(10, 6, 3)), TAKEN);
    let done = world.done[0];
    assert_eq!((done.outcome, done.length, done.overflow), (Outcome::Success, 16, 0));
    assert_eq!((done.tag, done.peer), (Some(5), Some(world.peer)));
    assert_eq!(into[..16], [[1; 6].as_slice(), &[2; 4], &[3; 6]].concat());
    assert_eq!((world.consumed(), into[16]), (2, 0));
    assert_eq!(world.poll(&segment(16, 1, 9)), LEFT, "there is no message");
    // A first segment that is none: of no bytes, of all of them, or of too long a message.
    for (whole, length) in [(16, 0), (16, 16), (1 << 20, 6)] {
        world.post(true, span(&mut into).into(), 2);
        let bytes = vec![1; length];
        let first = packet(head(Kind::Eager, TAGGED | SEGMENTED, 0), &[whole], &bytes);
        assert_eq!(world.poll(&first), LEFT);
    }
}

/// What these functions cannot do is left to others: senders that are not known or not admitted,
/// other kinds, buffers for many messages, and packets that are cut short.
#[test]
fn the_rest_is_left() {
    let mut into = [0; 20];
    let plain = packet(head(Kind::Eager, TAGGED, 0), &[], &[1; 3]);
    let with_data = packet(head(Kind::Eager, TAGGED | DATA, 0), &[1], &[1; 3]);
    let mut world = World::new();
    world.post(true, span(&mut into).into(), 1);
    for flags in [TAGGED, TAGGED | DATA] {
        let other = Head { incarnation: KNOWN + 1, ..head(Kind::Eager, flags, 0) };
        assert_eq!(world.poll(&packet(other, &[1], &[1; 3])), LEFT);
    }
    world.mode = PeerMode::Disconnected;
    assert_eq!((world.poll(&plain), world.poll(&with_data)), (LEFT, LEFT));
    world.mode = PeerMode::Connected(world.peer);
    for kind in [Kind::Credit, Kind::Probe, Kind::Offer, Kind::Finished, Kind::Segment] {
        assert_eq!(world.poll(&packet(head(kind, TAGGED, 0), &[1, 1, 1], &[])), LEFT);
    }
    assert_eq!(world.poll(&plain[..7]), LEFT);
    assert_eq!(world.poll(&with_data[..15]), LEFT);
    assert_eq!(world.poll(&[]), LEFT);
    assert_eq!(world.poll(&0_u64.to_le_bytes()), LEFT);
    assert!(world.done.is_empty());
    assert_eq!(world.poll(&plain), TAKEN);

    let criteria = MatchCriteria { source: None, tag: Some((5, 0)) };
    world.matching.post(criteria, Target::MultiReceive(1), token(2)).expect("room");
    assert_eq!((world.poll(&plain), world.poll(&with_data)), (LEFT, LEFT));
    let first = packet(head(Kind::Eager, TAGGED | SEGMENTED, 0), &[16], &[1; 6]);
    assert_eq!(world.poll(&first), LEFT);
}

/// After a message has met its receive, others without one stay for three polls, of each form. When
/// the patience is over they go.
#[test]
fn messages_stay_while_the_patience_lasts() {
    let (mut into, mut world) = ([0; 8], World::new());
    let plain = packet(head(Kind::Eager, TAGGED, 0), &[], &[1; 3]);
    let with_data = packet(head(Kind::Eager, TAGGED | DATA, 0), &[1], &[1; 3]);
    let first = packet(head(Kind::Eager, TAGGED | SEGMENTED, 0), &[16], &[1; 6]);
    assert_eq!(world.poll(&plain), LEFT);
    assert!(!world.patience.end());
    for met in [&plain, &with_data] {
        world.post(true, span(&mut into).into(), 1);
        assert_eq!(world.poll(met), TAKEN);
        for stays in [&plain, &with_data, &first] {
            assert_eq!(world.poll(stays), STAYS);
        }
        assert_eq!(world.poll(&plain), LEFT);
        assert!(!world.patience.end());
        world.post(true, span(&mut into).into(), 1);
        assert_eq!(world.poll(met), TAKEN);
        world.idle();
        assert!(world.patience.end() && !world.patience.end());
        assert_eq!(world.poll(&plain), LEFT);
    }
}

/// A receiver that only listens returns credit after 256 messages.
#[test]
fn credit_goes_back_in_time() {
    let (mut into, mut world) = ([0; 8], World::new());
    let plain = packet(head(Kind::Eager, TAGGED, 0), &[], &[]);
    for _ in 0..255 {
        world.post(true, span(&mut into).into(), 1);
        assert_eq!(world.poll(&plain), TAKEN);
    }
    assert!(world.outbox.0.is_empty());
    world.post(true, span(&mut into).into(), 1);
    assert_eq!(world.poll(&plain), TAKEN);
    assert!(matches!(world.outbox.0.pop_front(), Some((_, Control::Credit))));
    assert!(world.outbox.0.is_empty());
}
