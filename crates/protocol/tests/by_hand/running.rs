//! Frames of a link that is up: what the endpoint sends, when, and what it makes of the peer's.

use bellwire_protocol::reliable::{
    Channel, Config, DownReason, Event, GateState, PathId, PeerId, Recovery, SendError, Verdict,
    is_sound_frame,
};
use bellwire_wire::frame::FunctionId;
use bellwire_wire::frame::header::{FLAG_ANSWER, FLAG_DISCARDS, FLAG_LOSE, FrameHeader, FrameKind};
use bellwire_wire::frame::record::News;
use bellwire_wire::frame::section::{FLAG_CONTINUES, FLAG_UNFINISHED, SectionKind};

use super::bench::{
    Bench, CREDIT, FIRST, INCARNATION, OURS, PATH, PEER, PEER_TOKEN, Sent, Up, record, sealed,
    section, sections,
};

const MS: u64 = 1_000_000;

/// Settings without a congestion window.
fn fixed() -> Config {
    Config { congestion: false, ..Config::new(1500) }
}

fn requests(payload: &[u8]) -> Vec<u8> {
    section(SectionKind::Requests, 0, &record(payload))
}

/// The peer sends a request, and waits for its acknowledgement.
fn ask(bench: &mut Bench, up: &mut Up) {
    let header = FrameHeader { flags: FLAG_ANSWER, ..up.header(FrameKind::Data) };
    bench.hand(header, &requests(b"request"));
    up.sequence = up.sequence.wrapping_add(1);
}

fn numbers(sent: &[Sent], up: &Up) -> Vec<u32> {
    sent.iter().map(|sent| sent.header.sequence.wrapping_sub(up.first)).collect()
}

fn lengths(sent: &[Sent]) -> Vec<u16> {
    sent.iter().map(|sent| sent.header.length).collect()
}

fn ended(bench: &mut Bench, up: &Up) -> Option<DownReason> {
    match bench.event()? {
        Event::Down { peer, address, reason } => {
            assert_eq!((peer, address), (up.peer, PEER));
            Some(reason)
        }
        other => panic!("{other:?}"),
    }
}

/// A packet goes in a Data frame with the next number, the peer's token, our credit and what we
/// expect. It asks for an acknowledgement, because nothing more waits. The acknowledgement makes
/// the packet delivered.
#[test]
fn a_packet_goes_as_drawn() {
    let mut bench = Bench::new(Config::new(1500));
    let mut up = bench.up();
    for number in 0..3 {
        bench.send(&up, 5);
        assert_eq!(bench.endpoint.unacknowledged(up.peer), 1);
        let sent = bench.sent_one();
        let header = FrameHeader {
            flags: FLAG_ANSWER,
            length: 36 + 4 + record(&[5; 5]).len() as u16,
            sequence: up.first.wrapping_add(number),
            acknowledged: FIRST,
            credit: [up.first.wrapping_add(1 << 19); 2],
            ..FrameHeader::new(FrameKind::Data, PEER.function, OURS.function, PEER_TOKEN)
        };
        assert_eq!((sent.header, sent.path), (header, PATH));
        assert_eq!(sent.body, requests(&[5; 5]));
        up.acknowledged = up.acknowledged.wrapping_add(1);
        bench.acknowledge(&up);
        assert_eq!(bench.endpoint.unacknowledged(up.peer), 0);
    }
    assert_eq!(bench.user.delivered, [1, 2, 3]);
    let counters = bench.counters();
    assert_eq!((counters.frames_sent, counters.acknowledgements_received), (3, 3));
    assert_eq!((counters.packets_queued, counters.packets_acknowledged), (3, 3));
    assert_eq!((counters.acknowledgements_sent, counters.frames_resent), (1, 0));
}

/// An acknowledgement waits for 25 us and says so in units of 64 ns. A peer that asks gets it at
/// once.
#[test]
fn an_acknowledgement_says_how_long_it_waited() {
    let mut bench = Bench::new(Config::new(1500));
    let mut up = bench.up();
    let begin_ns = bench.now_ns;
    bench.data(&mut up, &requests(b"one"));
    assert!(bench.sent().is_empty());
    let sent = bench.wait();
    assert_eq!((bench.now_ns - begin_ns, sent.len()), (25_000, 1));
    assert_eq!((sent[0].header.kind, sent[0].header.flags), (FrameKind::Acknowledge, 0));
    assert_eq!((sent[0].header.held_back, &sent[0].body[..]), (390, &[][..]));
    assert_eq!(sent[0].header.acknowledged, FIRST.wrapping_add(1));
    let cost = 3 + 32;
    assert_eq!(sent[0].header.credit[0], up.first.wrapping_add((1 << 19) + cost));
    assert_eq!(sent[0].header.credit[1], up.first.wrapping_add(1 << 19));

    let asks = FrameHeader { flags: FLAG_ANSWER, ..up.header(FrameKind::Data) };
    bench.hand(asks, &requests(b"two"));
    let sent = bench.sent_one();
    assert_eq!((sent.header.kind, sent.header.held_back), (FrameKind::Acknowledge, 0));
    assert_eq!(sent.header.acknowledged, FIRST.wrapping_add(2));
    assert_eq!(bench.counters().packets_delivered, 2);

    let mut slow = Bench::new(Config { acknowledge_delay_ns: 50 * MS, ..Config::new(1500) });
    let mut up = slow.up();
    slow.data(&mut up, &requests(b"one"));
    let sent = slow.wait();
    assert_eq!(sent[0].header.held_back, u16::MAX, "more than fits");
}

/// A frame that acknowledges what was never sent is malformed, and nothing in it counts. The link
/// stays.
#[test]
fn an_impossible_acknowledgement_is_dropped() {
    let mut bench = Bench::new(Config::new(1500));
    let mut up = bench.up();
    bench.send(&up, 5);
    bench.sent_one();
    up.acknowledged = up.first.wrapping_add(2);
    bench.hand(up.header(FrameKind::Data), &requests(b"one"));
    assert_eq!((bench.counters().frames_malformed, bench.user.packets.len()), (1, 0));
    assert_eq!(bench.endpoint.unacknowledged(up.peer), 1);
    up.acknowledged = up.first.wrapping_sub(1);
    bench.data(&mut up, &requests(b"one"));
    assert_eq!((bench.counters().frames_malformed, bench.user.packets.len()), (1, 1));
    assert_eq!((bench.endpoint.is_up(up.peer), bench.event()), (true, None));
}

/// A frame under an unknown token is answered by Unknown, to the function and the token that it
/// names. Unknown under the peer's token ends the link.
#[test]
fn unknown_tokens_are_answered() {
    let mut bench = Bench::new(Config::new(1500));
    let up = bench.up();
    let other = FrameHeader { token: up.token ^ 1 << 50, ..up.header(FrameKind::Data) };
    bench.hand_by(PathId(30), other, &[]);
    assert_eq!(bench.counters().frames_unknown, 1);
    assert!(bench.endpoint.is_due(bench.now_ns));
    assert!(bench.endpoint.paths().any(|path| path == PathId(30)));
    let sent = bench.sent_one();
    assert_eq!((sent.header.kind, sent.path), (FrameKind::Unknown, PathId(30)));
    assert_eq!((sent.header.function, sent.header.token), (PEER.function, other.token));
    let unknown = FrameHeader { token: PEER_TOKEN, ..up.header(FrameKind::Unknown) };
    bench.hand(unknown, &[]);
    assert_eq!(ended(&mut bench, &up), Some(DownReason::Restarted));
    assert_eq!(bench.counters().links_down, 1);
    bench.hand(unknown, &[]);
    assert_eq!((bench.counters().frames_stale, bench.event()), (1, None));
}

/// At most 64 replies wait; further ones are dropped.
#[test]
fn replies_are_bounded() {
    let mut bench = Bench::new(Config::new(1500));
    for token in 1..100 {
        bench.hand(FrameHeader::new(FrameKind::Data, OURS.function, 1, token << 16), &[]);
    }
    let tokens: Vec<u64> = bench.sent().iter().map(|sent| sent.header.token >> 16).collect();
    assert_eq!(tokens, (1..65).collect::<Vec<_>>());
}

/// Each breach of the protocol ends the link, tells the peer, and fails what was queued.
#[test]
fn a_breach_of_the_protocol_ends_the_link() {
    let whole = record(b"whole");
    let part = |kind, flags, bytes: &[u8]| section(kind, flags, bytes);
    let long = record(&[0; 1001]);
    let news = |queue_pair| News::Gate { queue_pair, state: GateState::Open }.emit();
    let breaches: &[(&str, Vec<u8>)] = &[
        ("half a section", part(SectionKind::Requests, 0, &whole)[..8].to_vec()),
        ("an unknown section", vec![99, 0, 0, 0]),
        ("an end without a beginning", part(SectionKind::Requests, FLAG_CONTINUES, &whole)),
        ("a beginning that is whole", part(SectionKind::Responses, FLAG_UNFINISHED, &whole)),
        ("half a packet", part(SectionKind::Requests, 0, &whole[..whole.len() - 1])),
        ("a packet that is too long", part(SectionKind::Requests, 0, &long)),
        ("its beginning", part(SectionKind::Requests, FLAG_UNFINISHED, &long[..900])),
        ("half a news", part(SectionKind::News, 0, &news(1)[..4])),
        ("news of a gate that no one has", part(SectionKind::News, 0, &news(5000))),
        (
            "a part beside another section",
            [part(SectionKind::Requests, 0, &whole), part(SectionKind::Part, 0, &[0; 9])].concat(),
        ),
    ];
    for (what, body) in breaches {
        let config = Config { packet_bytes: 1000, ..Config::new(1500) };
        let mut bench = Bench::new(config);
        let mut up = bench.up();
        bench.send(&up, 5);
        bench.sent_one();
        bench.data(&mut up, body);
        let close = bench.sent_one();
        assert_eq!(close.header.kind, FrameKind::Close, "{what}");
        assert_eq!((close.header.token, &close.body[..]), (PEER_TOKEN, &[2][..]), "{what}");
        assert_eq!(ended(&mut bench, &up), Some(DownReason::Violation), "{what}");
        let counters = bench.counters();
        assert_eq!((counters.packets_failed, counters.links_down), (1, 1), "{what}");
        let refused = bench.endpoint.send(up.peer, Channel::Request, [1, 0, 0], &[], &[0; 1]);
        assert_eq!(refused, Err(SendError::Down), "{what}");
    }
}

/// The user's verdict that the peer broke a rule ends the link, too. It may fall when the packet is
/// offered in its frame, with the rest of it, or again later.
#[test]
fn the_users_verdict_ends_the_link() {
    let whole = record(&[7; 40]);
    for late in [false, true] {
        let mut bench = Bench::new(Config::new(1500));
        let mut up = bench.up();
        if late {
            bench.user.verdict = Verdict::Stalled;
            bench.data(&mut up, &requests(b"one"));
            bench.user.verdict = Verdict::Violation;
            bench.endpoint.deliver(&mut bench.user);
        } else {
            let begin = section(SectionKind::Requests, FLAG_UNFINISHED, &whole[..20]);
            bench.data(&mut up, &begin);
            bench.user.verdict = Verdict::Violation;
            bench.data(&mut up, &section(SectionKind::Requests, FLAG_CONTINUES, &whole[20..]));
        }
        assert_eq!(ended(&mut bench, &up), Some(DownReason::Violation));
        assert_eq!((bench.endpoint.has_deliverable(), bench.user.packets.len()), (false, 0));
    }
}

/// A packet may begin in one frame and end in a later one, wherever it is cut. Packets before and
/// behind it are taken in their frames.
#[test]
fn packets_may_be_cut_anywhere() {
    let packets = [&b"first"[..], &[7; 300], b"", b"last"];
    let stream: Vec<u8> = packets.iter().flat_map(|packet| record(packet)).collect();
    let ends: Vec<usize> = packets
        .iter()
        .scan(0, |end, packet| {
            *end += record(packet).len();
            Some(*end)
        })
        .collect();
    for cut in 1..stream.len() {
        for step in [1, 7, stream.len()] {
            let mut bench = Bench::new(Config::new(1500));
            let mut up = bench.up();
            let cuts = [0, cut, (cut + step).min(stream.len()), stream.len()];
            for (&from, &to) in cuts.iter().zip(&cuts[1..]).filter(|(from, to)| from < to) {
                let continues = from > 0 && !ends.contains(&from);
                let unfinished = !ends.contains(&to);
                let flags = if continues { FLAG_CONTINUES } else { 0 }
                    | if unfinished { FLAG_UNFINISHED } else { 0 };
                bench.data(&mut up, &section(SectionKind::Responses, flags, &stream[from..to]));
                let whole = ends.iter().filter(|&&end| end <= to).count();
                assert_eq!(bench.user.packets.len(), whole, "{cuts:?}");
            }
            for (packet, taken) in packets.iter().zip(&bench.user.packets) {
                assert_eq!(taken, &(Channel::Response, packet.to_vec()), "{cuts:?}");
            }
            assert_eq!((bench.event(), bench.endpoint.has_deliverable()), (None, false));
        }
    }
}

/// Refused packets are kept in order and offered again. When all of them, or a quarter of the
/// credit, have been taken, the peer learns at once (GO).
#[test]
fn refused_packets_are_offered_again() {
    let config = Config { packet_bytes: 60_000, receive_bytes: 1 << 16, ..Config::new(1500) };
    let mut bench = Bench::new(config);
    let mut up = bench.up();
    bench.user.verdict = Verdict::Stalled;
    bench.data(&mut up, &requests(b"one"));
    assert_eq!(bench.counters().packets_refused, 1);
    bench.data(&mut up, &requests(b"two"));
    assert_eq!((bench.counters().packets_refused, bench.endpoint.has_deliverable()), (1, true));
    bench.endpoint.deliver(&mut bench.user);
    assert_eq!((bench.user.packets.len(), bench.endpoint.has_deliverable()), (0, true));
    assert_eq!(bench.wait()[0].header.credit[0], up.first.wrapping_add(1 << 16));
    bench.user.verdict = Verdict::Taken;
    bench.endpoint.deliver(&mut bench.user);
    let packets: Vec<_> = bench.user.packets.iter().map(|packet| &packet.1[..]).collect();
    assert_eq!(packets, [b"one", b"two"]);
    assert_eq!((bench.counters().packets_delivered, bench.endpoint.has_deliverable()), (2, false));
    let go = bench.sent_one();
    assert_eq!(go.header.kind, FrameKind::Acknowledge);
    assert_eq!(go.header.credit[0], up.first.wrapping_add((1 << 16) + 2 * 35));

    // Taken at once, and less than a quarter: no frame of its own. A quarter: one.
    for _ in 0..12 {
        bench.data(&mut up, &requests(&[7; 1300]));
        assert!(bench.sent().is_empty());
    }
    bench.data(&mut up, &requests(&[7; 400]));
    let go = bench.sent_one();
    let cost = 2 * 35 + 12 * 1332 + 432;
    assert_eq!(go.header.credit[0], up.first.wrapping_add((1 << 16) + cost));
    assert_eq!(cost - 2 * 35, 16_416, "just more than a quarter");
    assert_eq!((bench.counters().packets_refused, bench.counters().packets_delivered), (1, 15));
    bench.user.verdict = Verdict::Stalled;
    bench.data(&mut up, &requests(b"last"));
    bench.user.verdict = Verdict::Taken;
    bench.endpoint.deliver(&mut bench.user);
    assert_eq!((bench.counters().packets_refused, bench.counters().packets_delivered), (2, 16));
}

/// What the peer sends beyond its credit ends the link.
#[test]
fn more_than_the_credit_is_a_breach() {
    let config = Config { packet_bytes: 1000, receive_bytes: 2048, ..Config::new(1500) };
    let mut bench = Bench::new(config);
    let mut up = bench.up();
    bench.user.verdict = Verdict::Stalled;
    let body = requests(&[7; 900]);
    let kept = body.len() - 4;
    bench.data(&mut up, &body);
    bench.data(&mut up, &body);
    assert_eq!(bench.event(), None);
    let rest = 2048 - 2 * kept;
    let overhead = record(&[7; 100]).len() - 100;
    bench.data(&mut up, &requests(&vec![7; rest - overhead]));
    assert_eq!(bench.event(), None, "exactly what is allowed");
    bench.data(&mut up, &requests(b""));
    assert_eq!(ended(&mut bench, &up), Some(DownReason::Violation));
}

/// Frames that come early are kept and reported at once, by a bit each. When the gap closes, all
/// are taken in order. A repeated frame is acknowledged at once, and one beyond the window is
/// dropped.
#[test]
fn early_frames_are_reported_by_their_bits() {
    let mut bench = Bench::new(Config { window_frames: 16, ..Config::new(1500) });
    let mut up = bench.up();
    let frame = |bench: &mut Bench, up: &Up, ahead: u32| {
        let sequence = FIRST.wrapping_add(ahead);
        let header = FrameHeader { sequence, ..up.header(FrameKind::Data) };
        bench.hand(header, &requests(&[ahead as u8]));
    };
    let received = |sent: &Sent| match &sections(&sent.body)[..] {
        [(SectionKind::Received, 0, bytes)] => bytes.clone(),
        other => panic!("{other:?}"),
    };
    frame(&mut bench, &up, 1);
    let lose = bench.sent_one();
    assert_eq!((lose.header.kind, lose.header.flags), (FrameKind::Acknowledge, FLAG_LOSE));
    assert_eq!((lose.header.acknowledged, received(&lose)), (FIRST, vec![0, 0, 0, 0, 0b1]));
    frame(&mut bench, &up, 10);
    let lose = bench.sent_one();
    assert_eq!(received(&lose), [0, 0, 0, 0, 0b1, 0b10]);
    frame(&mut bench, &up, 16);
    frame(&mut bench, &up, 17);
    assert!(bench.sent().is_empty());
    assert_eq!(bench.counters().frames_dropped, 2);
    frame(&mut bench, &up, 10);
    let lose = bench.sent_one();
    assert_eq!(received(&lose), [1, 0, 0, 0, 0b1, 0b10], "one repetition");
    assert_eq!((bench.counters().frames_early, bench.counters().frames_repeated), (2, 1));
    assert_eq!((bench.counters().loses_sent, bench.user.packets.len()), (3, 0));

    frame(&mut bench, &up, 0);
    assert_eq!(bench.user.packets.iter().map(|packet| packet.1[0]).collect::<Vec<_>>(), [0, 1]);
    let closed = bench.sent_one();
    assert_eq!((closed.header.flags, closed.header.acknowledged), (0, 0));
    assert_eq!(received(&closed), [1, 0, 0, 0, 0b1000_0000]);
    for ahead in 2..10 {
        frame(&mut bench, &up, ahead);
    }
    let closed = bench.sent_one();
    assert_eq!((closed.header.flags, closed.header.acknowledged), (0, FIRST.wrapping_add(11)));
    assert!(closed.body.is_empty());
    frame(&mut bench, &up, 4);
    let again = bench.sent_one();
    assert_eq!((again.header.kind, again.header.flags), (FrameKind::Acknowledge, 0));
    assert_eq!(received(&again), [2, 0, 0, 0], "the second repetition is told");
    let counters = bench.counters();
    assert_eq!((counters.frames_in_order, counters.frames_repeated), (11, 2));
    up.sequence = FIRST.wrapping_add(11);
    bench.data(&mut up, &requests(&[11]));
    assert!(bench.wait()[0].body.is_empty(), "a repetition is told once");
    let numbers: Vec<u8> = bench.user.packets.iter().map(|packet| packet.1[0]).collect();
    assert_eq!(numbers, (0..12).collect::<Vec<_>>());
}

/// A go-back receiver keeps nothing, and reports each gap once.
#[test]
fn a_gap_is_reported_once_when_nothing_is_kept() {
    let config = Config { recovery: Recovery::GoBack, ..Config::new(1500) };
    let mut bench = Bench::new(config);
    let mut up = bench.up();
    for gap in 1..4 {
        for ahead in 1..4 {
            let sequence = up.sequence.wrapping_add(ahead);
            let header = FrameHeader { sequence, ..up.header(FrameKind::Data) };
            bench.hand(header, &requests(b"early"));
            let sent = bench.sent();
            assert_eq!(sent.len(), usize::from(ahead == 1), "gap {gap}");
            if let Some(lose) = sent.first() {
                assert_eq!((lose.header.flags, &lose.body[..]), (FLAG_LOSE, &[][..]));
                assert_eq!(lose.header.acknowledged, up.sequence);
            }
        }
        bench.data(&mut up, &requests(b"next"));
        bench.wait();
        assert_eq!(
            (bench.user.packets.len(), bench.counters().frames_dropped),
            (gap, 3 * gap as u64)
        );
    }
}

/// Parts of one frame are joined in any order, even if they overlap or repeat, and the frame is
/// taken once. Impossible parts are ignored.
#[test]
fn parts_are_joined_in_any_order() {
    let whole = requests(&(0..200).collect::<Vec<u8>>());
    let total = whole.len();
    let part = |from: usize, to: usize| {
        let mut bytes = vec![from as u8, 0, total as u8, 0];
        bytes.extend_from_slice(&whole[from..to]);
        section(SectionKind::Part, 0, &bytes)
    };
    let orders: &[&[(usize, usize)]] = &[
        &[(0, 100), (100, total)],
        &[(100, total), (0, 100)],
        &[(50, 100), (0, 20), (100, total), (20, 50)],
        &[(0, 60), (40, 130), (120, total)],
        &[(10, 20), (30, 40), (50, 60), (0, 55), (60, total)],
        &[(10, 20), (10, 20), (5, 30), (30, total), (0, 5)],
    ];
    assert!(total < 256);
    for order in orders {
        let mut bench = Bench::new(Config::new(1500));
        let mut up = bench.up();
        let impossible =
            [vec![0, 0], vec![0, 0, 9, 0], vec![0, 0, 1, 0, 7, 7], vec![9, 0, 9, 0, 7]];
        for bytes in &impossible {
            bench.hand(up.header(FrameKind::Data), &section(SectionKind::Part, 0, bytes));
        }
        for &(from, to) in *order {
            assert!(bench.user.packets.is_empty());
            bench.hand(up.header(FrameKind::Data), &part(from, to));
        }
        assert_eq!(bench.user.packets.len(), 1, "{order:?}");
        assert_eq!(bench.user.packets[0].1, (0..200).collect::<Vec<u8>>());
        up.sequence = up.sequence.wrapping_add(1);
        bench.data(&mut up, &requests(b"next"));
        assert_eq!((bench.user.packets.len(), bench.event()), (2, None));
    }
}

/// A frame is sent again when its timeout ends: after 2 ms, 4 ms, 8 ms, up to 100 ms. After the
/// allowed number of timeouts the peer is dead.
#[test]
fn timeouts_double_until_the_peer_is_dead() {
    let mut bench = Bench::new(Config { retries: 8, ..Config::new(1500) });
    let up = bench.up();
    bench.send(&up, 5);
    let first = bench.sent_one();
    for (count, wait_ms) in (1..).zip([2, 4, 8, 16, 32, 64, 100, 100]) {
        let before_ns = bench.now_ns;
        let sent = bench.wait();
        assert_eq!((bench.now_ns - before_ns, sent.len()), (wait_ms * MS, 1));
        assert_eq!((&sent[0].body, sent[0].header), (&first.body, first.header));
        let counters = bench.counters();
        assert_eq!((counters.timeouts, counters.frames_resent), (count, count));
    }
    assert!(bench.wait().is_empty());
    assert_eq!(ended(&mut bench, &up), Some(DownReason::Dead));
    let counters = bench.counters();
    assert_eq!((counters.packets_failed, counters.frames_sent, counters.links_down), (1, 1, 1));
}

/// A peer that lives but never acknowledges a frame is given up, too: after eight transmissions for
/// each allowed timeout.
#[test]
fn a_frame_that_never_arrives_ends_the_link() {
    let mut bench = Bench::new(Config { retries: 2, ..Config::new(1500) });
    let up = bench.up();
    bench.send(&up, 5);
    let mut transmissions = bench.sent().len();
    while bench.endpoint.is_up(up.peer) && transmissions < 100 {
        bench.acknowledge(&up);
        transmissions += bench.wait().len();
    }
    assert_eq!((transmissions, ended(&mut bench, &up)), (24, Some(DownReason::Dead)));
}

/// A long frame that does not arrive goes in parts of half the length after six transmissions, and
/// of a third of it after eight. Progress begins the count anew: the next long frame goes six
/// times.
#[test]
fn long_frames_go_in_parts() {
    let mut bench = Bench::new(Config { coalesce: false, ..Config::new(1500) });
    let mut up = bench.up();
    bench.send(&up, 1400);
    let whole = bench.sent_one();
    let length = whole.header.length;
    assert!((1440..1470).contains(&length));
    let resent = |bench: &mut Bench, up: &Up| {
        bench.acknowledge(up);
        lengths(&bench.wait())
    };
    for _ in 1..6 {
        assert_eq!(resent(&mut bench, &up), [length]);
    }
    // Each part has a frame's overhead of 36, and 4 + 4 bytes of its own.
    let content = length - 36;
    let in_two = [750, content - (750 - 44) + 44];
    assert_eq!(resent(&mut bench, &up), in_two);
    assert_eq!(resent(&mut bench, &up), in_two);
    let in_four = [512, 512, 512, content - 3 * (512 - 44) + 44];
    bench.acknowledge(&up);
    let parts = bench.wait();
    assert_eq!(lengths(&parts), in_four);
    let mut joined = Vec::new();
    for part in &parts {
        assert_eq!(part.header.sequence, up.first);
        let sections = sections(&part.body);
        let (SectionKind::Part, 0, bytes) = &sections[0] else { panic!("{sections:?}") };
        assert_eq!(bytes[..2], (joined.len() as u16).to_le_bytes());
        assert_eq!(bytes[2..4], content.to_le_bytes());
        joined.extend_from_slice(&bytes[4..]);
    }
    assert_eq!(joined, whole.body);
    up.acknowledged = up.first.wrapping_add(1);
    bench.acknowledge(&up);
    assert_eq!(bench.user.delivered, [1]);
}

/// What was learnt of a peer's frame length, and what the network takes now, bounds all frames.
#[test]
fn frames_fit_the_network() {
    for (set, most) in [(400, 400), (100, 256), (9000, 1500)] {
        let mut bench = Bench::new(Config::new(1500));
        let up = bench.up();
        bench.endpoint.set_frame_bytes(set);
        bench.send(&up, 4000);
        let sent = bench.sent();
        assert_eq!(lengths(&sent).into_iter().max(), Some(most), "{set}");
        assert_eq!(bench.endpoint.config().frame_bytes, 1500);
    }
}

/// A silent peer is probed after a second and then five times as often, by a frame that asks for an
/// answer. After the allowed number of probes it is dead. Any frame of it begins the count anew.
#[test]
fn a_silent_peer_is_probed_until_it_is_dead() {
    let mut bench = Bench::new(Config { keep_alive_probes: 3, ..Config::new(1500) });
    let up = bench.up();
    for round in 0..2 {
        let mut before_ns = bench.now_ns;
        for (count, wait_ms) in (1..).zip([1000, 200, 200]) {
            let sent = bench.wait();
            assert_eq!((bench.now_ns - before_ns, sent.len()), (wait_ms * MS, 1));
            let header = sent[0].header;
            assert_eq!((header.kind, header.flags), (FrameKind::Acknowledge, FLAG_ANSWER));
            assert_eq!(header.sequence, up.first, "the next number");
            assert_eq!(bench.counters().probes_sent, 3 * round + count);
            before_ns = bench.now_ns;
        }
        if round == 0 {
            bench.acknowledge(&up);
        }
    }
    assert!(bench.wait().is_empty());
    assert_eq!(ended(&mut bench, &up), Some(DownReason::Dead));
    assert_eq!(bench.counters().probes_sent, 6);
}

/// What the peer's host says by one path makes us ask the peer only if there is no other path.
#[test]
fn a_refusal_by_one_path_of_two_is_no_sign() {
    for (paths, probes) in [(1, 1), (2, 0)] {
        let mut bench = Bench::new(Config::new(1500));
        let up = bench.up();
        if paths == 2 {
            bench.endpoint.add_path(up.peer, PathId(10));
        }
        bench.now_ns += 500 * MS;
        bench.endpoint.refused(PATH, bench.now_ns);
        assert_eq!(bench.sent().len(), probes, "{paths} paths");
    }
}

/// The smaller window of the two sides bounds the frames in flight, and each acknowledged frame
/// allows one more.
#[test]
fn the_smaller_window_counts() {
    for (ours, expected) in [(3, 3), (100, 64)] {
        let config = Config { window_frames: ours, coalesce: false, ..fixed() };
        let mut bench = Bench::new(config);
        let mut up = bench.up();
        assert_eq!(bench.endpoint.window_frames(up.peer), expected);
        (0..200).for_each(|_| bench.send(&up, 5));
        let sent = bench.sent();
        assert_eq!(numbers(&sent, &up), (0..expected).collect::<Vec<_>>());
        assert!(sent.iter().all(|sent| sent.header.flags == 0), "more waits");
        up.acknowledged = up.first.wrapping_add(2);
        bench.acknowledge(&up);
        assert_eq!(numbers(&bench.sent(), &up), [expected, expected + 1]);
        assert_eq!(bench.endpoint.window_frames(PeerId(77)), 0);
    }
}

/// A packet goes only with credit for all of it: its bytes and 32. A sender without credit counts a
/// STOP, and a GO when more is granted. An older credit takes nothing back.
#[test]
fn credit_is_spent_by_the_byte() {
    let mut bench = Bench::new(fixed());
    let mut up = bench.up();
    up.credit[0] = CREDIT;
    bench.send(&up, 30_000);
    bench.send(&up, 29_936);
    bench.send(&up, 0);
    let sent = bench.sent();
    let bytes: usize = sent.iter().map(|sent| sent.body.len() - 4).sum();
    assert_eq!(bytes, record(&vec![0; 30_000]).len() + record(&vec![0; 29_936]).len());
    assert_eq!((bench.counters().stops, bench.counters().gos), (1, 0));
    let last = sent.last().unwrap().header.sequence;
    up.acknowledged = last.wrapping_add(1);
    up.credit[0] = CREDIT - 5000;
    bench.acknowledge(&up);
    assert!(bench.sent().is_empty());
    up.credit[0] = CREDIT + 31;
    bench.acknowledge(&up);
    assert!(bench.sent().is_empty(), "one byte is missing");
    up.credit[0] = CREDIT + 32;
    bench.acknowledge(&up);
    assert_eq!(bench.sent_one().body, requests(b""));
    let counters = bench.counters();
    assert_eq!((counters.stops, counters.gos), (2, 2));
    assert_eq!(bench.user.delivered, [2]);
}

/// A packet longer than the peer takes, or than the queue holds, is refused and nothing is queued.
#[test]
fn what_cannot_be_queued_is_refused() {
    let config = Config { packet_bytes: 1000, send_bytes: 2048, ..fixed() };
    let mut bench = Bench::new(config);
    let up = bench.up();
    let queue = |bench: &mut Bench, bytes: usize| {
        let payload = vec![1; bytes];
        let (head, body) = payload.split_at(bytes / 3);
        bench.endpoint.send(up.peer, Channel::Request, [1, 0, 0], head, &body)
    };
    // The peer takes 65,536 bytes; our queue has room for 2048, 64 of them for headers.
    assert_eq!(queue(&mut bench, 1985), Err(SendError::TooLong { limit: 1984 }));
    assert_eq!(queue(&mut bench, 1984), Ok(1));
    assert_eq!(queue(&mut bench, 1000), Err(SendError::Busy));
    assert_eq!(bench.endpoint.unacknowledged(up.peer), 1);
    let wrong = bench.endpoint.send(PeerId(77), Channel::Request, [1, 0, 0], &[], &[0; 1]);
    assert_eq!(wrong, Err(SendError::Down));
    let asked = FunctionId { node: 8, function: 0 };
    let other = bench.endpoint.connect(asked, PATH, 1 << 40, bench.now_ns).unwrap();
    let early = bench.endpoint.send(other, Channel::Request, [1, 0, 0], &[], &[0; 1]);
    assert_eq!(early, Err(SendError::Busy));
    assert_eq!(bench.counters().packets_queued, 1);
}

/// A link that our user closed sends what is queued, drops what comes and says so. When all is
/// acknowledged, or after five seconds, it ends by a Close.
#[test]
fn a_closed_link_sends_what_is_queued() {
    for is_acknowledged in [true, false] {
        let config = Config { retries: 1000, keep_alive_probes: 1000, ..Config::new(1500) };
        let mut bench = Bench::new(config);
        let mut up = bench.up();
        bench.send(&up, 5);
        let begin_ns = bench.now_ns;
        bench.endpoint.close(up.peer, begin_ns);
        assert_eq!(bench.endpoint.peer_address(up.peer), None);
        assert_eq!((bench.endpoint.peers().count(), bench.endpoint.link_count()), (0, 1));
        assert_eq!(
            (bench.sent_one().header.flags, bench.endpoint.is_drained()),
            (FLAG_ANSWER, false)
        );
        bench.data(&mut up, &requests(b"late"));
        assert_eq!((bench.user.packets.len(), bench.endpoint.has_deliverable()), (0, false));
        let told = bench.wait();
        assert_eq!(told[0].header.flags & FLAG_DISCARDS, FLAG_DISCARDS);
        assert_eq!(told[0].header.acknowledged, FIRST.wrapping_add(1));
        let close = if is_acknowledged {
            up.acknowledged = up.first.wrapping_add(1);
            bench.acknowledge(&up);
            bench.sent_one()
        } else {
            let mut sent = bench.wait();
            while sent.last().unwrap().header.kind != FrameKind::Close {
                assert!(bench.now_ns < begin_ns + 5_000 * MS);
                sent = bench.wait();
            }
            assert_eq!(bench.now_ns, begin_ns + 5_000 * MS);
            sent.pop().unwrap()
        };
        assert_eq!((close.header.kind, &close.body[..]), (FrameKind::Close, &[1][..]));
        assert_eq!((close.header.token, close.path), (PEER_TOKEN, PATH));
        assert_eq!((bench.endpoint.link_count(), bench.event()), (0, None));
        let counters = bench.counters();
        assert_eq!(counters.packets_failed, u64::from(!is_acknowledged));
        assert_eq!((counters.links_down, bench.endpoint.is_drained()), (1, true));
    }
}

/// Packets that the user refused before it closed the link are not offered again.
#[test]
fn a_closed_link_offers_nothing() {
    let mut bench = Bench::new(Config::new(1500));
    let mut up = bench.up();
    bench.user.verdict = Verdict::Stalled;
    bench.data(&mut up, &requests(b"one"));
    assert!(bench.endpoint.has_deliverable());
    bench.send(&up, 5);
    bench.endpoint.close(up.peer, bench.now_ns);
    bench.user.verdict = Verdict::Taken;
    bench.endpoint.deliver(&mut bench.user);
    assert!(bench.user.packets.is_empty());
}

/// The peer's Close ends the link, for the reason that it names. What it sent before is still
/// taken.
#[test]
fn the_peer_may_close() {
    for (code, reason) in [(1, DownReason::Closed), (2, DownReason::Accused)] {
        let mut bench = Bench::new(Config::new(1500));
        let mut up = bench.up();
        bench.user.verdict = Verdict::Stalled;
        bench.data(&mut up, &requests(b"one"));
        bench.hand(up.header(FrameKind::Close), &[code]);
        assert_eq!((bench.event(), bench.endpoint.is_up(up.peer)), (None, false));
        bench.user.verdict = Verdict::Taken;
        bench.endpoint.deliver(&mut bench.user);
        assert_eq!(bench.user.packets.len(), 1);
        assert_eq!(ended(&mut bench, &up), Some(reason));
        assert_eq!((bench.endpoint.link_count(), bench.endpoint.next_deadline()), (1, u64::MAX));
        bench.endpoint.close(up.peer, bench.now_ns);
        assert_eq!((bench.endpoint.link_count(), bench.counters().links_down), (0, 1));
    }
}

/// A peer that asks for a gate is told its state, and then every change. It is not told of gates
/// that it did not ask for, or that do not exist.
#[test]
fn gates_are_told_to_those_who_ask() {
    let mut bench = Bench::new(Config::new(1500));
    let mut up = bench.up();
    let ask = |queue_pair| News::Ask { queue_pair }.emit();
    let told = |sent: &[Sent]| {
        let of = |sent: &Sent| match &sections(&sent.body)[..] {
            [(SectionKind::News, 0, bytes)] => {
                let (records, []) = bytes.as_chunks::<5>() else { panic!("{bytes:?}") };
                records.iter().map(|&record| News::parse(record).unwrap()).collect::<Vec<_>>()
            }
            other => panic!("{other:?}"),
        };
        sent.iter().filter(|sent| sent.header.kind == FrameKind::Data).flat_map(of).collect()
    };
    let gate = |queue_pair, state| News::Gate { queue_pair, state };
    let channel = 1 << 31;
    bench.endpoint.set_gate(4095, GateState::Open);
    bench.endpoint.set_gate(8, GateState::Open);
    let questions = [ask(7), ask(4095), ask(4096), ask(channel + 65_535), ask(channel - 1)];
    bench.data(&mut up, &section(SectionKind::News, 0, &questions.concat()));
    let news: Vec<News> = told(&bench.sent());
    assert_eq!(
        news,
        [
            gate(7, GateState::Closed),
            gate(4095, GateState::Open),
            gate(channel + 65_535, GateState::Closed),
        ]
    );
    bench.endpoint.set_gate(8, GateState::Stopped);
    bench.endpoint.set_gate(4095, GateState::Open);
    assert_eq!(bench.sent().len(), 0, "not asked for, and no change");
    bench.endpoint.set_gate(4095, GateState::Closed);
    bench.endpoint.set_gate(4095, GateState::Stopped);
    let news: Vec<News> = told(&bench.sent());
    assert_eq!(news, [gate(4095, GateState::Stopped)]);
}

/// Our question for a gate goes once. The answer and each change make an event; news without a
/// change make none.
#[test]
fn gates_are_asked_for_once() {
    let mut bench = Bench::new(Config::new(1500));
    let mut up = bench.up();
    assert_eq!(bench.endpoint.gate(PeerId(77), 7), None);
    assert_eq!(bench.endpoint.gate(up.peer, 4096), Some(GateState::Closed), "no such number");
    assert!(!bench.endpoint.is_due(bench.now_ns));
    for _ in 0..3 {
        assert_eq!(bench.endpoint.gate(up.peer, 7), None);
        assert!(bench.endpoint.is_due(bench.now_ns) && bench.endpoint.next_deadline() == 0);
    }
    let asked = bench.sent_one();
    assert_eq!(asked.body, section(SectionKind::News, 0, &News::Ask { queue_pair: 7 }.emit()));
    up.acknowledged = up.first.wrapping_add(1);
    bench.acknowledge(&up);
    assert_eq!(bench.endpoint.gate(up.peer, 7), None);
    assert!(!bench.endpoint.is_due(bench.now_ns), "asked already");
    for (state, is_new) in
        [(GateState::Open, true), (GateState::Open, false), (GateState::Stopped, true)]
    {
        let news = News::Gate { queue_pair: 7, state }.emit();
        bench.data(&mut up, &section(SectionKind::News, 0, &news));
        assert_eq!(bench.event(), is_new.then_some(Event::Gates { peer: up.peer }));
        assert_eq!(bench.endpoint.gate(up.peer, 7), Some(state));
        bench.wait();
        assert!(!bench.endpoint.is_due(bench.now_ns));
    }
    assert_eq!(bench.counters().frames_sent, 1);
}

/// At most 64 questions wait for the next frame; asking again repeats the others.
#[test]
fn questions_are_bounded() {
    let mut bench = Bench::new(Config::new(1500));
    let mut up = bench.up();
    // At most 32 in the stream at once.
    let mut asked = 0;
    (0..100).for_each(|pair| assert_eq!(bench.endpoint.gate(up.peer, pair), None));
    for frame in bench.sent() {
        let bytes = sections(&frame.body)[0].2.len();
        assert_eq!(bytes, 32 * 5);
        asked += bytes / 5;
    }
    assert_eq!(asked, 64);
    up.acknowledged = up.first.wrapping_add(bench.counters().frames_sent as u32);
    bench.acknowledge(&up);
    (0..100).for_each(|pair| assert_eq!(bench.endpoint.gate(up.peer, pair), None));
    asked += bench.sent().iter().map(|sent| sections(&sent.body)[0].2.len() / 5).sum::<usize>();
    assert_eq!(asked, 100);
}

/// Frames should go at once if nothing is in flight, or if they are full. Otherwise they may wait
/// for more packets.
#[test]
fn full_frames_are_urgent() {
    let mut bench = Bench::new(Config::new(1500));
    let up = bench.up();
    assert!(bench.endpoint.is_urgent(up.peer, 2), "nothing is in flight");
    assert!(!bench.endpoint.is_urgent(PeerId(77), 2));
    bench.send(&up, 5);
    bench.sent_one();
    assert!(!bench.endpoint.is_urgent(up.peer, 2));
    bench.send(&up, 2800);
    assert!(bench.endpoint.is_urgent(up.peer, 1) && !bench.endpoint.is_urgent(up.peer, 2));
    bench.send(&up, 200);
    assert!(bench.endpoint.is_urgent(up.peer, 2) && !bench.endpoint.is_urgent(up.peer, 3));
    bench.endpoint.close(up.peer, bench.now_ns);
    assert!(!bench.endpoint.is_urgent(up.peer, 1));
}

/// A packet that is queued has not been sent, until its frame has gone.
#[test]
fn what_is_queued_is_not_all_sent() {
    let mut bench = Bench::new(Config::new(1500));
    let up = bench.up();
    assert!(bench.endpoint.is_all_sent(up.peer) && bench.endpoint.is_all_sent(PeerId(77)));
    bench.send(&up, 5);
    assert!(!bench.endpoint.is_all_sent(up.peer));
    bench.sent_one();
    assert!(bench.endpoint.is_all_sent(up.peer));
}

/// A packet, and a question whether the peer is there, do not wait for what goes soon.
#[test]
fn a_packet_and_a_probe_may_not_wait() {
    let mut bench = Bench::new(Config::new(1500));
    let mut up = bench.up();
    assert!(bench.endpoint.may_wait(up.peer) && !bench.endpoint.may_wait(PeerId(77)));
    bench.send(&up, 5);
    assert!(!bench.endpoint.may_wait(up.peer));
    bench.sent_one();
    assert!(bench.endpoint.may_wait(up.peer));
    up.acknowledged = up.first.wrapping_add(1);
    bench.acknowledge(&up);
    // The peer is silent until it must be asked. Without room for a frame only the time passes.
    let silent_ns = bench.endpoint.next_deadline();
    assert_eq!(bench.endpoint.poll_transmit(silent_ns, &mut []), None);
    assert!(!bench.endpoint.may_wait(up.peer));
}

/// An endpoint is due while a frame can go, and then when its next timer ends. What it says of
/// itself and of its link is what was agreed.
#[test]
fn an_endpoint_says_when_it_is_due() {
    let mut bench = Bench::new(Config::new(1500));
    assert_eq!((bench.endpoint.address(), bench.endpoint.incarnation()), (OURS, INCARNATION));
    assert!(!bench.endpoint.is_due(u64::MAX - 1));
    let up = bench.up();
    assert_eq!(bench.endpoint.peer_address(up.peer), Some(PEER));
    assert_eq!(bench.endpoint.path_of(up.peer), Some(PATH));
    assert_eq!(bench.endpoint.path_of(PeerId(77)), None);
    assert!(!bench.endpoint.is_due(bench.now_ns));
    let idle_ns = bench.endpoint.next_deadline();
    assert_eq!(idle_ns, bench.now_ns + 1_000 * MS);
    assert!(bench.endpoint.is_due(idle_ns));
    bench.send(&up, 5);
    assert!(bench.endpoint.is_due(bench.now_ns));
    assert_eq!(bench.endpoint.next_deadline(), 0);
    bench.sent_one();
    assert!(!bench.endpoint.is_due(bench.now_ns));
    assert_eq!(bench.endpoint.next_deadline(), bench.now_ns + 2 * MS);
    // The existing link is found, whatever path is named.
    let again = bench.endpoint.connect(PEER, PathId(10), 1, bench.now_ns);
    assert_eq!((again, bench.endpoint.link_count()), (Some(up.peer), 1));
    assert!(bench.endpoint.paths().any(|path| path == PathId(10)));
}

/// Frames that are no frames, damaged, or not for endpoints are counted apart. Padding behind a
/// frame does no harm.
#[test]
fn frames_that_are_none_are_counted() {
    let mut bench = Bench::new(Config::new(1500));
    let up = bench.up();
    let frame = sealed(up.header(FrameKind::Data), &requests(b"one"));
    let hand = |bench: &mut Bench, bytes: &[u8]| {
        assert!(bench.user.packets.is_empty());
        bench.endpoint.handle_frame(PATH, bytes, bench.now_ns, &mut bench.user);
        let counters = bench.counters();
        [counters.frames_malformed, counters.frames_damaged, counters.frames_unknown]
    };
    assert_eq!(hand(&mut bench, &frame[..frame.len() - 1]), [1, 0, 0]);
    let mut damaged = frame.clone();
    damaged[40] ^= 4;
    assert_eq!(hand(&mut bench, &damaged), [1, 1, 0]);
    for (count, kind) in [(1, FrameKind::Seek), (2, FrameKind::Here)] {
        assert_eq!(hand(&mut bench, &sealed(up.header(kind), &[])), [1, 1, count]);
    }
    let padded = [&frame[..], &[9; 20]].concat();
    assert!(is_sound_frame(&frame) && is_sound_frame(&padded));
    assert!(!is_sound_frame(&damaged) && !is_sound_frame(&frame[..frame.len() - 1]));
    assert_eq!(hand(&mut bench, &padded), [1, 1, 2]);
    assert_eq!(bench.user.packets.len(), 1);
}

/// A buffer that is shorter than the shortest MTU gets nothing. After its last frame, an endpoint
/// is not due any more.
#[test]
fn short_buffers_get_nothing() {
    let mut bench = Bench::new(Config::new(1500));
    let up = bench.up();
    bench.send(&up, 5);
    assert_eq!(bench.endpoint.poll_transmit(bench.now_ns, &mut [0; 255]), None);
    assert!(bench.endpoint.is_due(bench.now_ns));
    assert!(bench.endpoint.poll_transmit(bench.now_ns, &mut [0; 256]).is_some());
    assert!(!bench.endpoint.is_due(bench.now_ns));
}

/// A retransmitted frame carries the selective acknowledgement if there is room for it. If one byte
/// is missing, a frame of its own follows at once.
#[test]
fn a_retransmission_carries_the_bitmap_if_it_fits() {
    let overhead = record(&[1; 1400]).len() - 1400;
    // Frame overhead 36, section heads 4 each, the count of repetitions 4 and a byte of bitmap.
    let exact = 1500 - 36 - 4 - overhead - (4 + 4 + 1);
    for (bytes, fits) in [(exact, true), (exact + 1, false)] {
        let mut bench = Bench::new(Config::new(1500));
        let up = bench.up();
        bench.send(&up, bytes);
        bench.sent_one();
        let early = FrameHeader { sequence: FIRST.wrapping_add(2), ..up.header(FrameKind::Data) };
        bench.hand(early, &requests(b"early"));
        assert_eq!(bench.sent_one().header.flags, FLAG_LOSE);
        let sent = bench.wait();
        let kinds = |sent: &Sent| sections(&sent.body).iter().map(|it| it.0).collect::<Vec<_>>();
        if fits {
            assert_eq!((sent.len(), sent[0].header.length), (1, 1500));
            assert_eq!(kinds(&sent[0]), [SectionKind::Received, SectionKind::Requests]);
        } else {
            assert_eq!((sent.len(), sent[0].header.length), (2, 1492));
            assert_eq!(kinds(&sent[0]), [SectionKind::Requests]);
            assert_eq!(kinds(&sent[1]), [SectionKind::Received]);
            assert_eq!(sent[1].header.kind, FrameKind::Acknowledge);
        }
    }
}

/// After eight turns of request and response, the acknowledgement of a request waits 1 us for the
/// response. A question without data is answered at once.
#[test]
fn turns_make_the_acknowledgement_wait() {
    let mut bench = Bench::new(Config::new(1500));
    let mut up = bench.up();
    for turn in 0..8 {
        ask(&mut bench, &mut up);
        assert!(bench.endpoint.is_due(bench.now_ns), "turn {turn}");
        bench.send(&up, 5);
        let sent = bench.sent_one();
        assert_eq!((sent.header.kind, sent.header.acknowledged), (FrameKind::Data, up.sequence));
        up.acknowledged = up.acknowledged.wrapping_add(1);
    }
    ask(&mut bench, &mut up);
    assert!(bench.sent().is_empty());
    let begin_ns = bench.now_ns;
    assert_eq!(bench.wait()[0].header.kind, FrameKind::Acknowledge);
    assert_eq!(bench.now_ns - begin_ns, 1_000);
    let header = FrameHeader { flags: FLAG_ANSWER, ..up.header(FrameKind::Acknowledge) };
    bench.hand(header, &[]);
    assert_eq!(bench.sent_one().header.kind, FrameKind::Acknowledge);
}

/// On a long path a response is waited for as long as a round trip, and no longer, even if
/// responses took longer than half of that.
#[test]
fn a_long_path_waits_longer_for_a_response() {
    let mut bench = Bench::new(Config::new(1500));
    let mut up = bench.up_after(60_000);
    for turn in 0..20 {
        ask(&mut bench, &mut up);
        let alone = bench.sent().len();
        assert_eq!(alone, usize::from(turn < 8), "turn {turn}");
        bench.now_ns += 40_000;
        assert!(bench.sent().is_empty(), "turn {turn}");
        bench.send(&up, 5);
        assert_eq!(bench.sent_one().header.kind, FrameKind::Data);
        // The peer's next question takes its acknowledgement along, after a round trip.
        bench.now_ns += 60_000;
        up.acknowledged = up.acknowledged.wrapping_add(1);
    }
    ask(&mut bench, &mut up);
    let begin_ns = bench.now_ns;
    assert_eq!(bench.wait()[0].header.kind, FrameKind::Acknowledge);
    assert_eq!(bench.now_ns - begin_ns, 60_000);
}

/// A packet may wait if nothing is due but an acknowledgement to its peer. It may not with other
/// packets, with news, with the report of a loss, or while another peer has something due.
#[test]
fn a_packet_may_wait_with_an_acknowledgement() {
    let mut bench = Bench::new(Config::new(1500));
    let mut up = bench.up_after(60_000);
    let may_wait = |bench: &Bench, up: &Up| bench.endpoint.may_wait(up.peer);
    assert!(may_wait(&bench, &up) && !bench.endpoint.may_wait(PeerId(77)));
    assert_eq!(bench.endpoint.round_trip_ns(up.peer), 60_000);
    assert_eq!(bench.endpoint.round_trip_ns(PeerId(77)), 0);

    ask(&mut bench, &mut up);
    assert!(bench.endpoint.is_due(bench.now_ns) && may_wait(&bench, &up));
    bench.send(&up, 5);
    assert!(!may_wait(&bench, &up), "a packet waits");
    bench.sent_one();
    assert!(may_wait(&bench, &up));

    bench.endpoint.gate(up.peer, 7);
    assert!(!may_wait(&bench, &up), "a question about a gate waits");
    bench.sent_one();
    let other = bench
        .endpoint
        .connect(FunctionId { node: 8, function: 1 }, PATH, 1 << 40, bench.now_ns)
        .unwrap();
    assert!(!may_wait(&bench, &up), "another peer is asked");
    assert_eq!((bench.sent_one().header.kind, other == up.peer), (FrameKind::Open, false));
    assert!(may_wait(&bench, &up));

    up.sequence = up.sequence.wrapping_add(1);
    bench.data(&mut up, &requests(b"behind a gap"));
    assert!(!may_wait(&bench, &up), "a loss is reported");
}

/// The congestion window begins at 16 frames. What is reported behind a gap leaves the flight, but
/// not the peer's window.
#[test]
fn a_gap_holds_the_window() {
    let config = Config { coalesce: false, ..Config::new(1500) };
    let mut bench = Bench::new(config);
    let up = bench.up();
    (0..40).for_each(|_| bench.send(&up, 5));
    assert_eq!(bench.sent().len(), 16);

    let mut bench = Bench::new(Config { window_frames: 3, coalesce: false, ..fixed() });
    let mut up = bench.up();
    (0..9).for_each(|_| bench.send(&up, 5));
    let first = bench.sent();
    assert_eq!(numbers(&first, &up), [0, 1, 2]);
    let received = section(SectionKind::Received, 0, &[0, 0, 0, 0, 0b11]);
    bench.hand(up.header(FrameKind::Acknowledge), &received);
    let again = bench.sent();
    assert_eq!((numbers(&again, &up), &again[0].body), (vec![0], &first[0].body));
    assert_eq!((bench.counters().frames_resent, bench.user.delivered.len()), (1, 0));
    up.acknowledged = up.first.wrapping_add(3);
    bench.acknowledge(&up);
    assert_eq!(numbers(&bench.sent(), &up), [3, 4, 5]);
    assert_eq!(bench.user.delivered, [3]);
}

/// Requests and responses have a section each in the same frame, and take turns to be first. Only
/// requests count as delivered.
#[test]
fn channels_take_turns_in_frames() {
    let mut bench = Bench::new(fixed());
    let mut up = bench.up();
    for round in 0..4 {
        let mut send =
            |channel| bench.endpoint.send(up.peer, channel, [1, 2, 3], &[], &[round; 9]).unwrap();
        let counts = [send(Channel::Response), send(Channel::Request), send(Channel::Response)];
        let before = u64::from(round);
        assert_eq!(counts, [before, before + 1, before + 1]);
        let sent = bench.sent_one();
        let kinds: Vec<_> = sections(&sent.body).into_iter().map(|it| it.0).collect();
        let mut expected = [SectionKind::Requests, SectionKind::Responses];
        if sent.header.sequence % 2 == 1 {
            expected.reverse();
        }
        assert_eq!(kinds, expected);
        up.acknowledged = up.acknowledged.wrapping_add(1);
        bench.acknowledge(&up);
    }
    assert_eq!(bench.user.delivered, [1, 2, 3, 4]);
    let one = Config { separate_channels: false, ..fixed() };
    let mut bench = Bench::new(one);
    let up = bench.up();
    bench.endpoint.send(up.peer, Channel::Response, [1, 2, 3], &[], &[1; 9]).unwrap();
    assert_eq!(bench.sent_one().body, requests(&[1; 9]));
}

/// Progress begins the count of transmissions anew: the next long frame, too, goes six times before
/// it goes in parts.
#[test]
fn progress_lets_frames_stay_long() {
    let mut bench = Bench::new(Config { coalesce: false, ..Config::new(1500) });
    let mut up = bench.up();
    for (payload, most) in [(1400, 750), (690, 512)] {
        bench.send(&up, payload);
        let whole = bench.sent_one();
        for _ in 1..6 {
            bench.acknowledge(&up);
            assert_eq!(lengths(&bench.wait()), [whole.header.length]);
        }
        bench.acknowledge(&up);
        assert_eq!(lengths(&bench.wait())[..1], [most]);
        up.acknowledged = up.acknowledged.wrapping_add(1);
        bench.acknowledge(&up);
    }
}

/// A frame that fills the MTU exactly is sent again as it was.
#[test]
fn a_full_frame_is_sent_again_whole() {
    let mut bench = Bench::new(Config::new(1500));
    let up = bench.up();
    bench.send(&up, 4000);
    let sent = bench.sent();
    assert_eq!(sent[0].header.length, 1500);
    let again = bench.wait();
    assert_eq!((&again[0].body, again[0].header.length), (&sent[0].body, 1500));
    assert_eq!(numbers(&again, &up), [0, 1], "the window is two frames after a timeout");
}

/// The frame that follows an acknowledgement in part is its other part, even if more data must go.
#[test]
fn the_rest_of_an_acknowledgement_goes_first() {
    let mut bench = Bench::new(Config { coalesce: false, ..fixed() });
    let up = bench.up();
    let bytes = 1460 - record(&[1; 1400]).len() + 1400;
    bench.send(&up, bytes);
    bench.send(&up, bytes);
    assert_eq!(lengths(&bench.sent()), [1500, 1500]);
    let early = FrameHeader { sequence: FIRST.wrapping_add(2), ..up.header(FrameKind::Data) };
    bench.hand(early, &requests(b"early"));
    bench.sent_one();
    let kinds: Vec<FrameKind> = bench.wait().iter().map(|sent| sent.header.kind).collect();
    let (data, acknowledge) = (FrameKind::Data, FrameKind::Acknowledge);
    assert_eq!(kinds, [data, acknowledge, data, acknowledge]);
}

/// The timeout follows the round trip of the newest frame that is acknowledged and was sent once.
/// The time for which the peer held the acknowledgement back does not count.
#[test]
fn round_trips_are_measured_of_frames_sent_once() {
    let mut bench = Bench::new(Config { timeout_ns: [1, 1 << 40], coalesce: false, ..fixed() });
    let mut up = bench.up_after(8_000);
    // The mean is 8,000 and the variation half of it.
    let timeout = |bench: &mut Bench, up: &Up| {
        bench.send(up, 5);
        bench.sent_one();
        bench.endpoint.next_deadline() - bench.now_ns
    };
    assert_eq!(timeout(&mut bench, &up), 24_000);
    bench.now_ns += 1_000;
    bench.send(&up, 5);
    bench.sent_one();
    bench.now_ns += 16_000 + 6_400;
    up.acknowledged = up.first.wrapping_add(2);
    bench.hand(FrameHeader { held_back: 100, ..up.header(FrameKind::Acknowledge) }, &[]);
    assert_eq!(timeout(&mut bench, &up), 29_000, "as by RFC 6298 for 16,000");
    assert_eq!(bench.wait().len(), 1);
    bench.now_ns += 77_777;
    up.acknowledged = up.first.wrapping_add(3);
    bench.acknowledge(&up);
    assert_eq!(timeout(&mut bench, &up), 29_000, "which transmission arrived is unknown");
}

/// A frame that was sent twice and is acknowledged sooner than a round trip after that was not
/// lost. It says nothing about frames that went before its second transmission.
#[test]
fn an_early_acknowledgement_is_of_the_first_transmission() {
    for (later_ns, is_lost) in [(9_999, false), (10_000, true)] {
        let mut bench = Bench::new(Config { coalesce: false, ..fixed() });
        let mut up = bench.up_after(10_000);
        (0..3).for_each(|_| bench.send(&up, 5));
        assert_eq!(bench.sent().len(), 3);
        bench.now_ns += 10_000;
        let received = |bits| section(SectionKind::Received, 0, &[0, 0, 0, 0, bits]);
        bench.hand(up.header(FrameKind::Acknowledge), &received(0b1));
        assert_eq!(numbers(&bench.sent(), &up), [0]);
        bench.now_ns += later_ns;
        up.acknowledged = up.first.wrapping_add(2);
        bench.hand(up.header(FrameKind::Acknowledge), &received(0));
        assert_eq!(bench.sent().len(), usize::from(is_lost), "after {later_ns} ns");
    }
}

/// From the first frame on by which the peer says that its user has closed the link, what it
/// acknowledges does not count as delivered. A report of a gap is counted.
#[test]
fn what_the_peer_discards_is_not_delivered() {
    let mut bench = Bench::new(Config { coalesce: false, ..fixed() });
    let mut up = bench.up();
    (0..3).for_each(|_| bench.send(&up, 5));
    bench.sent();
    for (count, flags) in [(1, 0), (2, FLAG_DISCARDS), (3, FLAG_LOSE)] {
        up.acknowledged = up.first.wrapping_add(count);
        bench.hand(FrameHeader { flags, ..up.header(FrameKind::Acknowledge) }, &[]);
        assert_eq!(bench.counters().packets_acknowledged, u64::from(count));
        assert_eq!(bench.counters().loses_received, u64::from(count / 3));
    }
    assert_eq!(bench.user.delivered, [1]);
}

/// The window grows if all of it, but for one frame, was used.
#[test]
fn a_window_that_is_used_grows() {
    for (frames, window) in [(14, 16), (15, 31), (16, 32)] {
        let mut bench = Bench::new(Config { coalesce: false, ..Config::new(1500) });
        let mut up = bench.up();
        (0..frames).for_each(|_| bench.send(&up, 5));
        assert_eq!(bench.sent().len(), frames as usize);
        up.acknowledged = up.first.wrapping_add(frames);
        bench.acknowledge(&up);
        assert_eq!(bench.endpoint.window_frames(up.peer), window, "{frames} frames");
    }
}

/// Frames that acknowledge nothing new do not shorten the next timeout.
#[test]
fn only_progress_ends_the_doubling() {
    let mut bench = Bench::new(Config::new(1500));
    let mut up = bench.up();
    bench.send(&up, 5);
    bench.sent_one();
    for wait_ms in [2, 4, 8, 16] {
        let before_ns = bench.now_ns;
        bench.acknowledge(&up);
        assert_eq!((bench.wait().len(), bench.now_ns - before_ns), (1, wait_ms * MS));
    }
    up.acknowledged = up.first.wrapping_add(1);
    bench.acknowledge(&up);
    bench.send(&up, 5);
    bench.sent_one();
    assert_eq!(bench.endpoint.next_deadline(), bench.now_ns + 2 * MS);
}

/// A path by which nothing arrived before the timeout is left out; the other one carries the
/// retransmission.
#[test]
fn a_path_that_times_out_is_left_out() {
    let mut bench = Bench::new(Config { coalesce: false, ..fixed() });
    let up = bench.up();
    bench.endpoint.add_path(up.peer, PathId(10));
    (0..2).for_each(|_| bench.send(&up, 5));
    let paths = |sent: &[Sent]| sent.iter().map(|sent| sent.path.0).collect::<Vec<_>>();
    assert_eq!(paths(&bench.sent()), [10, PATH.0]);
    bench.now_ns += 10_000;
    let received = section(SectionKind::Received, 0, &[0, 0, 0, 0, 0b1]);
    bench.hand(up.header(FrameKind::Acknowledge), &received);
    assert!(bench.sent().is_empty());
    assert_eq!(paths(&bench.wait()), [PATH.0]);
    assert_eq!(bench.counters().timeouts, 1);
    (0..4).for_each(|_| bench.send(&up, 5));
    assert_eq!(paths(&bench.sent()), [PATH.0; 4]);
}

/// A sender that waits for credit asks the peer when its timeout ends. The path is not to blame, so
/// the window stays.
#[test]
fn a_wait_for_credit_is_not_a_loss() {
    let mut bench = Bench::new(Config::new(1500));
    let mut up = bench.up();
    bench.send(&up, 59_000);
    let mut sent = bench.sent().len() as u32;
    bench.send(&up, 2_000);
    while bench.endpoint.unacknowledged(up.peer) > 1 {
        up.acknowledged = up.first.wrapping_add(sent);
        bench.acknowledge(&up);
        sent += bench.sent().len() as u32;
    }
    let window = bench.endpoint.window_frames(up.peer);
    assert!(window > 16);
    for count in 1..4 {
        let asks = bench.wait();
        assert_eq!((asks.len(), asks[0].header.kind), (1, FrameKind::Acknowledge));
        assert_eq!(asks[0].header.flags, FLAG_ANSWER);
        assert_eq!((bench.counters().timeouts, bench.counters().frames_resent), (count, 0));
        assert_eq!(bench.endpoint.window_frames(up.peer), window);
    }
    up.credit[0] = CREDIT + 2_000;
    bench.acknowledge(&up);
    assert_eq!(bench.sent().len(), 2);
    assert_eq!((bench.counters().stops, bench.counters().gos), (1, 1));
}

/// A frame whose predecessor arrives while it goes in parts begins with its own first part.
#[test]
fn parts_of_a_later_frame_begin_at_its_start() {
    let mut bench = Bench::new(Config { coalesce: false, ..fixed() });
    let mut up = bench.up();
    bench.send(&up, 1400);
    bench.send(&up, 1300);
    assert_eq!(bench.sent().len(), 2);
    bench.endpoint.set_frame_bytes(700);
    bench.now_ns = bench.endpoint.next_deadline();
    assert!(bench.endpoint.poll_transmit(bench.now_ns, &mut [0; 1500]).is_some());
    up.acknowledged = up.first.wrapping_add(1);
    bench.acknowledge(&up);
    let parts = bench.sent();
    assert_eq!(numbers(&parts, &up), [1, 1]);
    let mut offset = 0;
    for part in &parts {
        let bytes = &sections(&part.body)[0].2;
        assert_eq!(bytes[..2], u16::to_le_bytes(offset));
        offset += bytes.len() as u16 - 4;
    }
    assert_eq!(offset as usize, 4 + record(&[1; 1300]).len());
}

/// A further section is begun in a frame if 64 bytes are left.
#[test]
fn sections_are_begun_in_64_bytes() {
    let overhead = record(&[1; 1300]).len() - 1300;
    for (record_bytes, frames) in [(1396, 1), (1397, 2)] {
        let mut bench = Bench::new(fixed());
        let up = bench.up();
        let other = [Channel::Request, Channel::Response];
        let first = up.first as usize & 1;
        let mut send = |channel, payload: &[u8]| {
            bench.endpoint.send(up.peer, channel, [1, 2, 3], &[], &payload).unwrap()
        };
        send(other[first], &vec![1; record_bytes - overhead]);
        send(other[1 - first], &[2; 8]);
        assert_eq!(bench.sent().len(), frames, "{record_bytes} bytes");
    }
}

/// The end of a link is told once, also if a gate that the peer listened to changes afterwards.
#[test]
fn an_end_is_told_once() {
    let mut bench = Bench::new(Config::new(1500));
    let mut up = bench.up();
    let ask = News::Ask { queue_pair: 7 }.emit();
    bench.data(&mut up, &section(SectionKind::News, 0, &ask));
    assert_eq!(bench.sent().len(), 1);
    bench.hand(up.header(FrameKind::Close), &[1]);
    assert_eq!(ended(&mut bench, &up), Some(DownReason::Closed));
    bench.endpoint.set_gate(7, GateState::Open);
    assert_eq!((bench.event(), bench.sent().len()), (None, 0));
}
