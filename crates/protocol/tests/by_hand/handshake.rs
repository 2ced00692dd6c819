//! Handshake frames: which count, and which are counted as what.

use bellwire_protocol::reliable::{
    Channel, Config, DownReason, Event, PathId, PlaceCheck, Verdict,
};
use bellwire_wire::frame::FunctionId;
use bellwire_wire::frame::challenge::ChallengeBody;
use bellwire_wire::frame::finish::{RefuseBody, RefuseReason};
use bellwire_wire::frame::header::{FrameHeader, FrameKind};
use bellwire_wire::frame::open::OpenBody;
use bellwire_wire::frame::section::SectionKind;

use super::bench::{
    Bench, CREDIT, FIRST, INCARNATION, OURS, PATH, PEER, PEER_INCARNATION, PEER_TOKEN, Sent,
    header, open, record, section,
};

const SECOND_NS: u64 = 1_000_000_000;

/// Counters of frames that are refused: malformed, unknown, stale.
fn refused(bench: &Bench) -> [u64; 3] {
    let counters = bench.counters();
    [counters.frames_malformed, counters.frames_unknown, counters.frames_stale]
}

fn refusal(sent: &Sent) -> RefuseReason {
    assert_eq!(sent.header.kind, FrameKind::Refuse);
    RefuseBody::parse(&sent.body).unwrap().reason
}

/// Handshake frames that do not parse are malformed, and those for no link are unknown or stale.
/// None of them is answered or changes anything.
#[test]
fn frames_for_no_link_are_counted() {
    use FrameKind::{Accept, Challenge, Close, Open, Refuse, Unknown};
    let mut bench = Bench::new(Config::new(1500));
    let refuse = RefuseBody {
        reason: RefuseReason::Full,
        version_low: 3,
        version_high: 3,
        features: 0,
        token: 99,
    };
    let other = OpenBody { to: FunctionId { function: 1, ..OURS }, ..open() };
    let cases: &[(FrameKind, u64, &[u8], [u64; 3])] = &[
        (Open, 0, &[0; 71], [1, 0, 0]),
        (Accept, 99, &[0; 71], [1, 0, 0]),
        (Challenge, 99, &[0; 7], [1, 0, 0]),
        (Refuse, 99, &[0; 15], [1, 0, 0]),
        (Close, 99, &[0], [1, 0, 0]),
        (Open, 0, &other.emit(), [0, 1, 0]),
        (Close, 99, &[1], [0, 1, 0]),
        (Accept, 99, &open().emit(), [0, 0, 1]),
        (Challenge, 99, &ChallengeBody { cookie: 1 }.emit(), [0, 0, 1]),
        (Refuse, 99, &refuse.emit(), [0, 0, 1]),
        (Unknown, 0, &[], [0, 0, 1]),
        (Unknown, 99, &[], [0, 0, 1]),
    ];
    let mut sum = [0; 3];
    for (kind, token, body, counts) in cases {
        bench.hand(header(*kind, PEER.function, *token), body);
        sum = [0, 1, 2].map(|index| sum[index] + counts[index]);
        assert_eq!(refused(&bench), sum, "{kind:?} with {} bytes", body.len());
        assert!(bench.sent().is_empty());
    }
    assert_eq!((bench.endpoint.link_count(), bench.endpoint.next_deadline()), (0, u64::MAX));
    // Of a link that is being asked for, too.
    bench.endpoint.connect(PEER, PATH, SECOND_NS, bench.now_ns).unwrap();
    let token = bench.sent_one().open().token;
    bench.hand(header(Unknown, PEER.function, 0), &[]);
    bench.hand(header(Close, PEER.function, token ^ 1 << 40), &[1]);
    assert_eq!(refused(&bench), [sum[0], sum[1] + 1, sum[2] + 1]);
    assert_eq!(bench.event(), None);
}

/// An Open with values out of range is malformed, and one for another node is refused, before any
/// cookie is asked for.
#[test]
fn an_open_must_be_workable() {
    let mut bench = Bench::new(Config::new(1500));
    let wrong = [
        OpenBody { frame_bytes: 255, ..open() },
        OpenBody { window: 0, ..open() },
        OpenBody { token: 0, ..open() },
        OpenBody { incarnation: 0, ..open() },
        OpenBody { incarnation: 1 << 63, ..open() },
    ];
    for (count, wrong) in (1..).zip(&wrong) {
        bench.hand(header(FrameKind::Open, PEER.function, 0), &wrong.emit());
        assert_eq!(refused(&bench), [count, 0, 0], "{wrong:?}");
        assert!(bench.sent().is_empty());
    }
    let at_bounds =
        OpenBody { frame_bytes: 256, window: 1, token: 1, incarnation: (1 << 63) - 1, ..open() };
    let accept = bench.ask_by(PATH, &at_bounds).unwrap();
    assert_eq!((accept.header.kind, accept.header.token), (FrameKind::Accept, 1));
    let elsewhere = OpenBody { to: FunctionId { node: 6, ..OURS }, ..open() };
    bench.hand(header(FrameKind::Open, PEER.function, 0), &elsewhere.emit());
    assert_eq!(refusal(&bench.sent_one()), RefuseReason::NotHere);
}

/// An Open is answered by a Challenge until it carries the cookie, which holds for this Open, this
/// path and a few seconds only. Then the Accept repeats what the Open said.
#[test]
fn an_open_needs_its_cookie() {
    let mut bench = Bench::new(Config::new(1500));
    let ask = header(FrameKind::Open, PEER.function, 0);
    bench.hand(ask, &open().emit());
    let challenge = bench.sent_one();
    assert_eq!(challenge.header.kind, FrameKind::Challenge);
    assert_eq!((challenge.header.token, challenge.header.function), (PEER_TOKEN, PEER.function));
    assert_eq!(bench.counters().frames_challenged, 1);
    let cookie = ChallengeBody::parse(&challenge.body).unwrap().cookie;
    let proved = FrameHeader { token: cookie, ..ask };
    let others = [
        (FrameHeader { token: cookie ^ 1, ..ask }, open()),
        (proved, OpenBody { token: 6, ..open() }),
        (proved, OpenBody { opening: 2, ..open() }),
        (proved, OpenBody { incarnation: 201, ..open() }),
        (proved, OpenBody { from: FunctionId { node: 8, ..PEER }, ..open() }),
        (proved, OpenBody { from: FunctionId { function: 4, ..PEER }, ..open() }),
    ];
    for (number, (header, open)) in (2..).zip(&others) {
        bench.hand(*header, &open.emit());
        assert_eq!(bench.sent_one().header.kind, FrameKind::Challenge, "{open:?}");
        assert_eq!(bench.counters().frames_challenged, number);
    }
    bench.hand_by(PathId(10), proved, &open().emit());
    assert_eq!(bench.sent_one().header.kind, FrameKind::Challenge);
    assert_eq!(bench.endpoint.link_count(), 0);

    bench.hand(proved, &open().emit());
    let accept = bench.sent_one();
    assert_eq!((accept.header.kind, accept.header.token), (FrameKind::Accept, PEER_TOKEN));
    let body = accept.open();
    assert_eq!((body.from, body.to), (OURS, PEER));
    assert_eq!((body.incarnation, body.peer_incarnation), (INCARNATION, PEER_INCARNATION));
    assert_eq!((body.version, body.frame_bytes, body.window), (3, 1500, 256));
    // The same Open again: the Accept was lost.
    bench.hand(proved, &open().emit());
    assert_eq!(bench.sent_one().open(), body);
    assert_eq!((bench.endpoint.link_count(), bench.event()), (1, None));
    // Another token under the same opening is not the peer's.
    assert!(bench.ask_by(PATH, &OpenBody { token: 6, ..open() }).is_none());
    assert_eq!(refused(&bench), [0, 0, 1]);
    // Without confirmation, the link is forgotten after two seconds.
    bench.now_ns += 2 * SECOND_NS - 1;
    bench.sent();
    assert_eq!(bench.endpoint.link_count(), 1);
    bench.now_ns += 1;
    bench.sent();
    assert_eq!((bench.endpoint.link_count(), bench.event()), (0, None));
    assert_eq!(bench.counters().links_down, 0, "it was never up");
}

/// What the device says about the place of a node decides: an Open from elsewhere is refused, and
/// one whose place is still asked for is not answered.
#[test]
fn an_open_from_elsewhere_is_refused() {
    let mut bench = Bench::new(Config::new(1500));
    bench.user.place = PlaceCheck::Elsewhere;
    assert_eq!(refusal(&bench.ask_by(PATH, &open()).unwrap()), RefuseReason::Elsewhere);
    assert_eq!(bench.counters().frames_elsewhere, 1);
    bench.user.place = PlaceCheck::Pending;
    assert!(bench.ask_by(PATH, &open()).is_none());
    assert_eq!((bench.counters().frames_elsewhere, bench.endpoint.link_count()), (2, 0));
}

/// An Accept counts only if all that it says fits the Open: sender, path, incarnation, version,
/// features and ranges.
#[test]
fn an_accept_must_fit_its_open() {
    let mut bench = Bench::new(Config { features: [0b11, 0b01], ..Config::new(1500) });
    let peer = bench.endpoint.connect(PEER, PATH, 10 * SECOND_NS, bench.now_ns).unwrap();
    let asked = bench.sent_one();
    assert_eq!((asked.open().demanded, asked.open().features), (0b01, 0b11));
    assert_eq!((asked.open().version_low, asked.open().version_high), (3, 3));
    let header = FrameHeader {
        sequence: FIRST,
        credit: [CREDIT; 2],
        ..header(FrameKind::Accept, PEER.function, asked.open().token)
    };
    let right = OpenBody { peer_incarnation: INCARNATION, features: 0b01, ..open() };
    let wrong = [
        OpenBody { from: FunctionId { node: 8, ..PEER }, ..right },
        OpenBody { peer_incarnation: INCARNATION - 1, ..right },
        OpenBody { version: 2, ..right },
        OpenBody { version: 4, ..right },
        OpenBody { features: 0b101, ..right },
        OpenBody { features: 0b10, ..right },
        OpenBody { window: 0, ..right },
    ];
    bench.hand_by(PathId(10), header, &right.emit());
    for (stale, wrong) in (1..).zip(&wrong) {
        assert_eq!(refused(&bench), [0, 0, stale]);
        bench.hand(header, &wrong.emit());
        assert_eq!(refused(&bench), [0, 0, stale + 1], "{wrong:?}");
    }
    assert_eq!((bench.event(), bench.sent().len()), (None, 0));
    bench.hand(header, &right.emit());
    assert_eq!(bench.event(), Some(Event::Up { peer, address: PEER }));
    assert_eq!((bench.counters().links_up, bench.sent().len()), (1, 1));
    // The same Accept again: our confirmation was lost. Any other is old.
    bench.hand(header, &right.emit());
    assert_eq!(bench.sent_one().header.kind, FrameKind::Acknowledge);
    bench.hand(header, &OpenBody { token: 77, ..right }.emit());
    assert_eq!(bench.sent().len(), 0);
    assert_eq!(refused(&bench), [0, 0, wrong.len() as u64 + 2]);
}

/// One place may have a quarter of all links, and at least four.
#[test]
fn one_place_has_a_share_of_the_links() {
    for (links, most) in [(8, 4), (16, 4), (20, 5), (24, 6)] {
        let mut bench = Bench::new(Config { links, ..Config::new(1500) });
        for node in 0..most {
            let open = OpenBody { from: FunctionId { node, function: 0 }, ..open() };
            let answer = bench.ask_by(PATH, &open).unwrap();
            assert_eq!(answer.header.kind, FrameKind::Accept, "{node} of {links}");
        }
        let further = OpenBody { from: FunctionId { node: 90, function: 0 }, ..open() };
        assert_eq!(refusal(&bench.ask_by(PATH, &further).unwrap()), RefuseReason::Full);
        assert_eq!(bench.endpoint.link_count(), most as usize);
        let answer = bench.ask_by(PathId(10), &further).unwrap();
        assert_eq!(answer.header.kind, FrameKind::Accept, "from another place");
    }
}

/// Half of all links, and one, may be half open. Then the oldest of them makes room, as it does
/// when all slots are taken.
#[test]
fn the_oldest_half_open_link_makes_room() {
    let ask = |bench: &mut Bench, node: u32| {
        bench.now_ns += 1;
        let from = FunctionId { node, function: 0 };
        let open = OpenBody { from, token: u64::from(node), ..open() };
        bench.ask_by(PathId(u64::from(node)), &open).map(|sent| sent.header.kind)
    };
    // The oldest is gone if its Open makes a link again, which then displaces the next one.
    for (asked_for, kept) in [(0, 5), (6, 2), (7, 1)] {
        let mut bench = Bench::new(Config { links: 8, ..Config::new(1500) });
        for node in 0..asked_for {
            let there = FunctionId { node: 50 + node, function: 0 };
            bench.endpoint.connect(there, PathId(50), SECOND_NS, bench.now_ns).unwrap();
        }
        bench.sent();
        for node in 1..=kept {
            assert_eq!(ask(&mut bench, node), Some(FrameKind::Accept));
            assert_eq!(bench.endpoint.link_count(), (asked_for + node) as usize);
        }
        let all = (asked_for + kept) as usize;
        let newest = |bench: &Bench| {
            let half_open =
                bench.endpoint.peers().map(|peer| bench.endpoint.peer_address(peer).unwrap().node);
            let mut nodes: Vec<u32> = half_open.filter(|&node| node < 50).collect();
            nodes.sort_unstable();
            nodes
        };
        assert_eq!(ask(&mut bench, 20), Some(FrameKind::Accept));
        assert_eq!(bench.endpoint.link_count(), all);
        let expected: Vec<u32> = (2..=kept).chain([20]).collect();
        assert_eq!(newest(&bench), expected, "{asked_for} others");
    }
}

/// Both sides ask, and the peer asks once more under a later opening: both values of the peer were
/// learnt from an Open that is now old. Only the side with the larger address asks anew.
#[test]
fn one_of_two_sides_asks_anew() {
    for (node, asks_anew) in [(4, true), (6, false)] {
        let mut bench = Bench::new(Config::new(1500));
        let from = FunctionId { node, function: 3 };
        bench.endpoint.connect(from, PATH, 10 * SECOND_NS, bench.now_ns).unwrap();
        let asked = bench.sent_one().open();
        assert_eq!(asked.opening, 1);
        let first = OpenBody { from, ..open() };
        let accept = bench.ask_by(PATH, &first).unwrap();
        assert_eq!(accept.header.kind, FrameKind::Accept);
        assert_eq!((accept.open().token, accept.open().opening), (asked.token, 1));
        let peer = bench.endpoint.peers().next().unwrap();
        bench.endpoint.add_path(peer, PathId(10));
        let later = OpenBody { opening: 2, token: 6, ..first };
        bench.hand(header(FrameKind::Open, 3, 0), &later.emit());
        let challenge = bench.sent_one();
        let cookie = ChallengeBody::parse(&challenge.body).unwrap().cookie;
        bench.hand(header(FrameKind::Open, 3, cookie), &later.emit());
        let sent = bench.sent();
        assert_eq!(sent[0].header.kind, FrameKind::Accept);
        let again = sent[0].open();
        assert_ne!(again.token, asked.token);
        assert_eq!(again.opening, 1 + u64::from(asks_anew), "node {node}");
        assert_eq!(refused(&bench), [0, 0, 0]);
        assert_eq!(bench.endpoint.link_count(), 1);
        assert_eq!(bench.endpoint.paths().collect::<Vec<_>>(), [PATH, PathId(10)]);
        // The first Open is old now.
        assert!(bench.ask_by(PATH, &first).is_none());
        assert_eq!(refused(&bench), [0, 0, 1]);
    }
}

/// While the peer may still answer where it is asked, an Open in its name from another place is not
/// answered. After eight Opens in vain it is.
#[test]
fn an_open_from_another_place_waits_for_eight_opens() {
    let mut bench = Bench::new(Config::new(1500));
    bench.endpoint.connect(PEER, PATH, 10 * SECOND_NS, bench.now_ns).unwrap();
    let mut opens = bench.sent().len();
    while opens < 8 {
        assert!(bench.ask_by(PathId(10), &open()).is_none(), "{opens} Opens");
        assert_eq!(bench.counters().frames_elsewhere, opens as u64);
        opens += bench.wait().len();
    }
    let accept = bench.ask_by(PathId(10), &open()).unwrap();
    assert_eq!((accept.header.kind, accept.path), (FrameKind::Accept, PathId(10)));
    assert_eq!(bench.counters().frames_elsewhere, 7);
}

/// A Refuse ends the link for its reason, with the values of both sides. It counts only for a link
/// that is being asked for.
#[test]
fn a_refusal_ends_the_link_for_its_reason() {
    let version = DownReason::Version { ours: [3, 3], theirs: [4, 5] };
    let feature = DownReason::Feature { ours: 0b10, theirs: 0b101 };
    for (reason, down) in [
        (RefuseReason::Version, version),
        (RefuseReason::Feature, feature),
        (RefuseReason::NotHere, DownReason::NotHere),
        (RefuseReason::Full, DownReason::Full),
        (RefuseReason::Elsewhere, DownReason::Elsewhere),
    ] {
        let mut bench = Bench::new(Config { features: [0b10, 0], ..Config::new(1500) });
        let peer = bench.endpoint.connect(PEER, PATH, SECOND_NS, bench.now_ns).unwrap();
        let token = bench.sent_one().open().token;
        let refuse = RefuseBody { reason, version_low: 4, version_high: 5, features: 0b101, token };
        bench.hand(header(FrameKind::Refuse, PEER.function, 0), &refuse.emit());
        assert_eq!(bench.event(), Some(Event::Down { peer, address: PEER, reason: down }));
        bench.hand(header(FrameKind::Refuse, PEER.function, 0), &refuse.emit());
        assert_eq!(refused(&bench), [0, 0, 1]);
        assert_eq!(bench.counters().links_down, 0);
    }
}

/// An answered Open is answered again after 5 ms, 10 ms and so on, until the peer confirms. A
/// repeated Open of a link that is up is answered, too.
#[test]
fn an_accept_is_repeated() {
    let mut bench = Bench::new(Config::new(1500));
    let accept = bench.ask_by(PATH, &open()).unwrap();
    for wait_ms in [5, 10, 20] {
        let before_ns = bench.now_ns;
        let sent = bench.wait();
        assert_eq!((bench.now_ns - before_ns, sent.len()), (wait_ms * 1_000_000, 1));
        assert_eq!((sent[0].header, &sent[0].body), (accept.header, &accept.body));
    }
    let token = accept.open().token;
    let data = FrameHeader {
        sequence: 0,
        acknowledged: accept.header.sequence,
        ..header(FrameKind::Data, PEER.function, token)
    };
    assert_eq!(bench.event(), None);
    bench.hand(data, &[]);
    let Some(Event::Up { peer, address: PEER }) = bench.event() else { panic!("not up") };
    assert!(bench.endpoint.is_up(peer));
    assert_eq!(bench.counters().frames_in_order, 1);
    let again = bench.ask_by(PATH, &open()).unwrap();
    assert_eq!((again.header.kind, again.open().token), (FrameKind::Accept, token));
    assert_eq!((bench.endpoint.link_count(), bench.counters().links_up), (1, 1));
}

/// A frame under the token of a link that is only asked for proves nothing.
#[test]
fn a_frame_before_the_accept_makes_no_link() {
    let mut bench = Bench::new(Config::new(1500));
    bench.endpoint.connect(PEER, PATH, SECOND_NS, bench.now_ns).unwrap();
    let token = bench.sent_one().open().token;
    bench.hand(header(FrameKind::Data, PEER.function, token), &[]);
    assert_eq!((bench.event(), bench.counters().links_up), (None, 0));
    assert_eq!(bench.counters().frames_in_order, 0);
}

/// A restarted peer ends the link of its earlier life, and a later opening of the same life closes
/// the earlier one. An older Open is stale.
#[test]
fn a_later_link_replaces_the_earlier() {
    let restarted = OpenBody { incarnation: PEER_INCARNATION + 1, token: 6, ..open() };
    let reopened = OpenBody { opening: 2, token: 6, ..open() };
    for (later, reason) in [(restarted, DownReason::Restarted), (reopened, DownReason::Closed)] {
        let mut bench = Bench::new(Config::new(1500));
        let up = bench.up();
        bench.send(&up, 5);
        bench.sent_one();
        let accept = bench.ask_by(PATH, &later).unwrap();
        assert_eq!(accept.header.kind, FrameKind::Accept);
        assert!(bench.endpoint.is_up(up.peer), "not yet confirmed");
        let old = OpenBody { opening: 0, token: 9, ..open() };
        assert!(bench.ask_by(PATH, &old).is_none());
        assert_eq!(refused(&bench), [0, 0, 1]);
        let data = FrameHeader {
            acknowledged: accept.header.sequence,
            ..header(FrameKind::Acknowledge, PEER.function, accept.open().token)
        };
        bench.hand(data, &[]);
        let events = [bench.event(), bench.event(), bench.event()];
        let down = Event::Down { peer: up.peer, address: PEER, reason };
        assert!(events.contains(&Some(down)), "{events:?}");
        let counters = bench.counters();
        assert_eq!((counters.links_up, counters.links_down), (2, 1));
        assert_eq!((counters.packets_failed, bench.endpoint.is_up(up.peer)), (1, false));
    }
}

/// After a close, the Open of the next link waits until the closed one has sent what was queued.
/// The patience counts from then on.
#[test]
fn the_next_open_waits_for_the_closed_link() {
    let mut bench = Bench::new(Config { retries: 1000, ..Config::new(1500) });
    let mut up = bench.up();
    bench.send(&up, 5);
    bench.sent_one();
    bench.endpoint.close(up.peer, bench.now_ns);
    let next = bench.endpoint.connect(PEER, PATH, SECOND_NS, bench.now_ns).unwrap();
    assert_ne!(next, up.peer);
    assert!(bench.sent().is_empty());
    bench.now_ns += 1_000_000;
    up.acknowledged = up.first.wrapping_add(1);
    bench.acknowledge(&up);
    let kinds: Vec<FrameKind> = bench.sent().iter().map(|sent| sent.header.kind).collect();
    assert_eq!(kinds, [FrameKind::Close, FrameKind::Open]);
    let begin_ns = bench.now_ns;
    while bench.event().is_none() {
        bench.wait();
    }
    assert_eq!(bench.now_ns - begin_ns, SECOND_NS);
}

/// Packets of a later link wait until those of the earlier one are taken and its end is told. Then
/// they are offered, and nothing is asked for again.
#[test]
fn a_later_link_waits_for_the_packets_of_the_earlier() {
    let mut bench = Bench::new(Config::new(1500));
    let mut up = bench.up();
    bench.user.verdict = Verdict::Stalled;
    let packet = |text: &[u8]| section(SectionKind::Requests, 0, &record(text));
    bench.data(&mut up, &packet(b"earlier"));
    let accept = bench.ask_by(PATH, &OpenBody { opening: 2, token: 6, ..open() }).unwrap();
    let later = FrameHeader {
        acknowledged: accept.header.sequence,
        ..header(FrameKind::Data, PEER.function, accept.open().token)
    };
    bench.user.verdict = Verdict::Taken;
    bench.hand(later, &packet(b"later"));
    assert!(bench.user.packets.is_empty());
    bench.wait();
    bench.endpoint.deliver(&mut bench.user);
    assert_eq!(bench.user.packets, [(Channel::Request, b"earlier".to_vec())]);
    let events: Vec<Event> = std::iter::from_fn(|| bench.event()).take(9).collect();
    let reason = DownReason::Closed;
    assert!(events.contains(&Event::Down { peer: up.peer, address: PEER, reason }), "{events:?}");
    assert!(bench.sent().iter().all(|sent| sent.header.kind == FrameKind::Acknowledge));
    bench.endpoint.deliver(&mut bench.user);
    assert_eq!(bench.user.packets[1..], [(Channel::Request, b"later".to_vec())]);
}

/// The number of a closed link leads nowhere, even when another link has its slot.
#[test]
fn numbers_of_closed_links_lead_nowhere() {
    let mut bench = Bench::new(Config::new(1500));
    let first = bench.endpoint.connect(PEER, PATH, SECOND_NS, bench.now_ns).unwrap();
    bench.endpoint.close(first, bench.now_ns);
    assert_eq!(bench.endpoint.link_count(), 0);
    let second = bench.up().peer;
    assert_eq!((first.0 & 0xffff, first == second), (second.0 & 0xffff, false));
    assert!(!bench.endpoint.is_up(first) && bench.endpoint.is_up(second));
    assert_eq!((bench.endpoint.path_of(first), bench.endpoint.peer_address(first)), (None, None));
    bench.endpoint.close(first, bench.now_ns);
    assert!(bench.endpoint.is_up(second));
}

/// Both sides ask, and the peer does not confirm what its Open said: after two seconds we forget
/// it, and ask under another token.
#[test]
fn an_unconfirmed_open_is_forgotten() {
    let mut bench = Bench::new(Config::new(1500));
    bench.endpoint.connect(PEER, PATH, 10 * SECOND_NS, bench.now_ns).unwrap();
    let first = bench.sent_one().open();
    assert_eq!(bench.ask_by(PATH, &open()).unwrap().open().token, first.token);
    let begin_ns = bench.now_ns;
    let mut opens = 0;
    while opens < 3 {
        for sent in bench.wait().iter().filter(|sent| sent.header.kind == FrameKind::Open) {
            let is_new = bench.now_ns >= begin_ns + 2 * SECOND_NS;
            assert_eq!(
                (sent.open().token != first.token, sent.open().opening > 1),
                (is_new, is_new)
            );
            let known = if is_new { 0 } else { PEER_INCARNATION };
            assert_eq!(sent.open().peer_incarnation, known);
            opens += u32::from(is_new);
        }
        assert!(bench.now_ns < begin_ns + 5 * SECOND_NS);
    }
}

/// Both sides ask. An Accept of a later opening than the peer's Open shows that an earlier link of
/// the peer knows our token: we ask under another one. The side with the smaller address waits
/// before it asks.
#[test]
fn an_accept_of_a_later_opening_makes_us_ask_anew() {
    for (node, waits) in [(4, false), (6, true)] {
        let mut bench = Bench::new(Config::new(1500));
        let from = FunctionId { node, function: 3 };
        let peer = bench.endpoint.connect(from, PATH, 10 * SECOND_NS, bench.now_ns).unwrap();
        let asked = bench.sent_one().open();
        bench.ask_by(PATH, &OpenBody { from, opening: 2, ..open() }).unwrap();
        let accept = |bench: &mut Bench, token, opening| {
            let body =
                OpenBody { from, opening, token: 6, peer_incarnation: INCARNATION, ..open() };
            bench.hand(header(FrameKind::Accept, 3, token), &body.emit());
        };
        accept(&mut bench, asked.token, 1);
        assert_eq!((refused(&bench), bench.sent().len()), ([0, 0, 1], 0), "it is an old one");
        accept(&mut bench, asked.token, 3);
        assert_eq!((refused(&bench), bench.endpoint.is_up(peer)), ([0, 0, 2], false));
        let mut sent = bench.sent();
        assert_eq!(sent.is_empty(), waits, "node {node}");
        if waits {
            sent = bench.wait();
        }
        let again = sent[0].open();
        assert_eq!((sent[0].header.kind, again.opening), (FrameKind::Open, 2));
        assert_ne!(again.token, asked.token);
        accept(&mut bench, asked.token, 3);
        assert_eq!(refused(&bench), [0, 0, 3], "the old token is gone");
        accept(&mut bench, again.token, 3);
        assert_eq!(bench.event(), Some(Event::Up { peer, address: from }));
    }
}

/// Unconfirmed Opens of one name from different places have a link each. The first that is
/// confirmed ends those of earlier openings, and no other. A later confirmation from another place
/// is not believed.
#[test]
fn the_first_confirmation_decides() {
    let confirm = |bench: &mut Bench, path, accept: &Sent| {
        let header = FrameHeader {
            acknowledged: accept.header.sequence,
            ..header(FrameKind::Acknowledge, PEER.function, accept.open().token)
        };
        bench.hand_by(PathId(path), header, &[]);
    };
    let ask = |bench: &mut Bench, path, from, opening, token| {
        bench.ask_by(PathId(path), &OpenBody { from, opening, token, ..open() }).unwrap()
    };
    let other = FunctionId { node: 8, ..PEER };
    for (confirmed, left) in [(1, 4), (2, 3)] {
        let mut bench = Bench::new(Config::new(1500));
        let earlier = ask(&mut bench, 10, PEER, 1, 5);
        let later = ask(&mut bench, 11, PEER, 2, 6);
        let same = ask(&mut bench, 12, PEER, 2, 7);
        ask(&mut bench, 13, other, 1, 8);
        assert_eq!(bench.endpoint.link_count(), 4);
        let (path, accept) = if confirmed == 1 { (10, &earlier) } else { (11, &later) };
        confirm(&mut bench, path, accept);
        assert!(matches!(bench.event(), Some(Event::Up { address: PEER, .. })));
        assert_eq!((bench.endpoint.link_count(), bench.event()), (left, None));
        assert_eq!((bench.counters().links_up, bench.counters().frames_elsewhere), (1, 0));
        confirm(&mut bench, 12, &same);
        assert_eq!((bench.endpoint.link_count(), bench.event()), (left - 1, None));
        assert_eq!((bench.counters().links_up, bench.counters().frames_elsewhere), (1, 1));
    }
}

/// Both sides use the features that both offer.
#[test]
fn common_features_are_agreed_on() {
    let mut bench = Bench::new(Config { features: [0b011, 0], ..Config::new(1500) });
    let accept = bench.ask_by(PATH, &OpenBody { features: 0b110, ..open() }).unwrap();
    assert_eq!((accept.open().features, accept.open().demanded), (0b010, 0));
    for (features, demanded) in [(0b111, 0b100), (0b010, 0b110)] {
        let mut bench = Bench::new(Config { features: [0b011, 0b010], ..Config::new(1500) });
        let wrong = OpenBody { features, demanded, ..open() };
        bench.hand(header(FrameKind::Open, PEER.function, 0), &wrong.emit());
        assert_eq!(refusal(&bench.sent_one()), RefuseReason::Feature);
    }
}
