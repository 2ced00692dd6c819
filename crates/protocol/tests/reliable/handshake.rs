//! How links begin and end, and how restarted peers are told from the old ones.

use bellwire_protocol::reliable::{Channel, Config, DownReason, Event, FunctionId};
use bellwire_wire::frame::header::FrameKind;

use super::net::{Net, Node, function};

/// Connects nodes with different settings and returns why the link went down.
fn refused(ours: Config, theirs: Config) -> DownReason {
    let mut net = Net::new(&[ours, theirs], 1);
    net.connect(0, 1);
    net.run_until(|net| net.down_reason(0).is_some());
    assert!(net.nodes[1].events.is_empty(), "the side that refuses has no link");
    net.down_reason(0).unwrap()
}

/// Versions and features without overlap are refused, and the refusal names those of both sides.
#[test]
pub fn refusals_name_both_sides() {
    let config = Config::new(1500);
    let newer = Config { versions: [4, 5], ..config };
    assert_eq!(refused(config, newer), DownReason::Version { ours: [3, 3], theirs: [4, 5] });
    assert_eq!(refused(newer, config), DownReason::Version { ours: [4, 5], theirs: [3, 3] });
    let demanding = Config { features: [0b11, 0b01], ..config };
    assert_eq!(refused(demanding, config), DownReason::Feature { ours: 0b11, theirs: 0 });
    assert_eq!(refused(config, demanding), DownReason::Feature { ours: 0, theirs: 0b11 });
    let text = DownReason::Version { ours: [1, 1], theirs: [2, 5] }.to_string();
    assert!(text.contains("1 to 1") && text.contains("2 to 5"), "{text}");
}

/// Versions that overlap agree on the highest common one.
#[test]
pub fn overlapping_versions_agree() {
    let config = Config::new(1500);
    let mut net = Net::new(
        &[Config { versions: [1, 3], ..config }, Config { versions: [2, 9], ..config }],
        2,
    );
    net.link(0, 1);
}

/// A missing node, a full node, and silence are three different ends.
#[test]
pub fn the_other_refusals() {
    let mut net = Net::new(
        &[Config::new(1500), Config { links: 1, ..Config::new(1500) }, Config::new(1500)],
        3,
    );
    net.link(2, 1);
    net.connect(0, 1);
    net.run_until(|net| net.down_reason(0).is_some());
    assert_eq!(net.down_reason(0), Some(DownReason::Full));
    let mut net = Net::new(&[Config::new(1500); 2], 4);
    let elsewhere = FunctionId { node: 77, function: 1 };
    net.nodes[0].endpoint.connect(elsewhere, Net::path(1, 0), 1_000_000_000, 1).unwrap();
    net.run_until(|net| net.down_reason(0).is_some());
    assert_eq!(net.down_reason(0), Some(DownReason::NotHere));
    let mut net = Net::new(&[Config::new(1500); 2], 5);
    net.nodes[1].is_asleep = true;
    net.connect(0, 1);
    net.run_until(|net| net.down_reason(0).is_some());
    assert_eq!(net.down_reason(0), Some(DownReason::NoAnswer));
    assert!(net.now_ns >= 10_000_000_000);
}

/// Both sides ask at the same moment, and handshake frames are lost: each side gets one link.
#[test]
pub fn crossing_requests_make_one_link() {
    for seed in 0..200 {
        let mut net = Net::new(&[Config::new(1500); 2], seed);
        net.faults.loss = 300;
        net.faults.repeat = 300;
        net.faults.late = 300;
        let peers = [net.connect(0, 1), net.connect(1, 0)];
        net.run_until(|net| (0..2).all(|node| net.nodes[node].endpoint.is_up(peers[node])));
        net.faults = Default::default();
        net.send(0, peers[0], b"a").unwrap();
        net.send(1, peers[1], b"b").unwrap();
        net.run_until(|net| net.nodes.iter().all(|node| node.taken.len() == 1));
        for node in &net.nodes {
            assert_eq!((node.endpoint.link_count(), node.events.len()), (1, 1), "seed {seed}");
        }
    }
}

/// A restarted peer is a new peer, and the old link ends with that reason. A replayed frame of the
/// old life is never taken, ends no link and begins none.
#[test]
pub fn a_restarted_peer_is_not_confused_with_the_old_one() {
    use std::cell::RefCell;
    use std::rc::Rc;
    let mut net = Net::new(&[Config::new(1500); 2], 6);
    type Tape = RefCell<Vec<(usize, Vec<u8>)>>;
    let recorded: Rc<Tape> = Rc::default();
    let tape = recorded.clone();
    net.tap = Box::new(move |_, from, _, frame| tape.borrow_mut().push((from, frame.to_vec())));
    let peer = net.link(0, 1);
    let back = net.peer_of(1, function(0)).unwrap();
    for number in 0..10u32 {
        net.send(0, peer, &number.to_le_bytes()).unwrap();
        net.send(1, back, &number.to_le_bytes()).unwrap();
        net.run_until(Net::is_quiet);
    }
    let old: Vec<_> = recorded.take();
    assert!(old.len() > 20);

    // Node 1 restarts, even with the same seed, and asks for a link.
    let incarnation = net.nodes[1].endpoint.incarnation() + 1;
    net.nodes[1] = Node::new(Config::new(1500), 1, incarnation, 6 ^ 1);
    let taken = net.nodes[0].taken.len();
    for (from, frame) in &old {
        net.hand(1 - from, Net::path(*from, 0), frame);
    }
    assert_eq!(net.nodes[0].taken.len(), taken);
    assert!(net.nodes[1].taken.is_empty());
    let back = net.link(1, 0);
    assert_eq!(net.down_reason(0), Some(DownReason::Restarted));
    let peer = net.peer_of(0, function(1)).unwrap();
    for round in 0..3 {
        for (from, frame) in &old {
            net.hand(1 - from, Net::path(*from, 0), frame);
            // Node 0 has not closed the old link; there are no further links.
            let links = net.nodes.iter().map(|node| node.endpoint.link_count());
            assert_eq!(links.collect::<Vec<_>>(), [2, 1]);
            net.step();
        }
        net.send(0, peer, b"new").unwrap();
        net.send(1, back, b"new").unwrap();
        net.run_until(Net::is_quiet);
        assert_eq!(net.nodes[1].taken.len(), round + 1, "only what is new");
        assert_eq!(net.nodes[0].taken.len(), taken + round + 1);
    }
    net.run_for(5_000_000_000);
    assert!(net.nodes[0].endpoint.is_up(peer) && net.nodes[1].endpoint.is_up(back));
    let ups = |node: usize| {
        net.nodes[node].events.iter().filter(|event| matches!(event, Event::Up { .. })).count()
    };
    assert_eq!((ups(0), ups(1)), (2, 1), "old requests make no links");
}

/// Packets of the old link are taken before its end is reported, and before any packet of the new
/// link.
#[test]
pub fn the_old_link_is_emptied_first() {
    let mut net = Net::new(&[Config::new(1500); 2], 7);
    net.link(0, 1);
    let back = net.peer_of(1, function(0)).unwrap();
    net.nodes[0].appetite = [0; 2];
    net.send(1, back, b"old").unwrap();
    net.run_until(Net::is_quiet);
    let incarnation = net.nodes[1].endpoint.incarnation() + 1;
    net.nodes[1] = Node::new(Config::new(1500), 1, incarnation, 99);
    let back = net.link(1, 0);
    net.send(1, back, b"new").unwrap();
    net.run_until(Net::is_quiet);
    assert_eq!(net.down_reason(0), None, "there is still a packet of it");
    net.nodes[0].appetite = [usize::MAX; 2];
    net.run_until(|net| net.nodes[0].taken.len() == 2);
    assert_eq!(net.nodes[0].taken[0].payload, b"old");
    assert_eq!(net.nodes[0].taken[1].payload, b"new");
    net.transmit();
    assert_eq!(net.down_reason(0), Some(DownReason::Restarted));
}

/// What a link delivered behind an older, unread link is taken even if the link ends before that,
/// also with an unfinished last packet. (Guards against forgetting packets that the peer was told
/// are delivered.)
#[test]
pub fn what_waits_for_an_old_link_is_not_forgotten() {
    let mut net = Net::new(&[Config::new(1500); 2], 7);
    net.link(0, 1);
    net.nodes[0].appetite = [0; 2];
    let first_life = net.nodes[1].endpoint.incarnation();
    for (life, message) in [b"first", b"other", b"third"].into_iter().enumerate() {
        if life > 0 {
            let incarnation = first_life + life as u64;
            net.nodes[1] = Node::new(Config::new(1500), 1, incarnation, 90 + life as u64);
            net.drop_if = Box::new(|_, _, _| false);
            net.link(1, 0);
        }
        let back = net.peer_of(1, function(0)).unwrap();
        net.send(1, back, message).unwrap();
        net.run_until(Net::is_quiet);
        if life == 1 {
            // Only the first frame of a long packet arrives.
            let mut passes = 1;
            net.drop_if = Box::new(move |from, _, frame| {
                let is_data = from == 1 && frame[1] & 0xf == FrameKind::Data as u8;
                passes -= is_data as i32;
                is_data && passes < 0
            });
            net.send(1, back, &[7; 4_000]).unwrap();
            net.run_for(1_000_000);
        }
    }
    net.nodes[0].appetite = [usize::MAX; 2];
    net.run_until(|net| net.nodes[0].taken.iter().any(|packet| packet.payload == b"third"));
    let taken = net.nodes[0].taken.iter().map(|packet| &packet.payload[..]).collect::<Vec<_>>();
    assert_eq!(taken, [b"first", b"other", b"third"]);
}

/// A peer's altered Open, which makes its answers count as old, is forgotten unless it is
/// confirmed. After that the two sides find each other.
#[test]
pub fn an_altered_request_is_forgotten() {
    use std::cell::RefCell;
    use std::rc::Rc;
    let mut net = Net::new(&[Config::new(1500); 2], 3);
    let challenge = Rc::new(RefCell::new(None));
    let seen = challenge.clone();
    net.drop_if = Box::new(move |from, _, frame| {
        let kind = frame[1] & 0xf;
        if from == 0 && kind == FrameKind::Challenge as u8 {
            *seen.borrow_mut() = Some(frame.to_vec());
        }
        // Nothing arrives from node 1 unaltered.
        from == 1 || kind == FrameKind::Accept as u8
    });
    let peers = [net.connect(0, 1), net.connect(1, 0)];
    let opens = Rc::new(RefCell::new(Vec::new()));
    let tapped = opens.clone();
    net.tap = Box::new(move |_, from, _, frame| {
        if from == 1 {
            tapped.borrow_mut().push(frame.to_vec());
        }
    });
    net.transmit();
    let mut altered = opens.take().into_iter().find(|frame| frame[1] & 0xf == 1).expect("an Open");
    // A later incarnation, with the matching cookie.
    altered[32 + 39] ^= 0x20;
    for _ in 0..2 {
        bellwire_wire::frame::check::seal(&mut altered).unwrap();
        net.hand(0, Net::path(1, 0), &altered);
        net.transmit();
        if let Some(challenge) = challenge.take() {
            altered[8..16].copy_from_slice(&challenge[32..40]);
        }
    }
    net.run_for(50_000_000);
    net.drop_if = Box::new(|_, _, _| false);
    net.run_until(|net| {
        assert!(net.now_ns < 4_000_000_000, "the altered Open is not forgotten");
        (0..2).all(|node| net.nodes[node].endpoint.is_up(peers[node]))
    });
}

/// Any number of old links, in any slots, are emptied in the order in which they came up.
#[test]
pub fn many_old_links_are_emptied_in_order() {
    let mut net = Net::new(&[Config::new(1500); 3], 7);
    net.nodes[0].appetite = [0; 2];
    for life in 0..3u8 {
        let incarnation = net.nodes[1].endpoint.incarnation() + 1;
        net.nodes[1] = Node::new(Config::new(1500), 1, incarnation, 99 + life as u64);
        let back = net.link(1, 0);
        net.send(1, back, &[life]).unwrap();
        net.run_until(Net::is_quiet);
        // Another link occupies the second slot for a while, so that the last of these gets it.
        if life == 0 {
            net.link(0, 2);
        } else if life == 1 {
            let other = net.peer_of(0, function(2)).unwrap();
            net.close(0, other);
        }
    }
    net.nodes[0].appetite = [usize::MAX; 2];
    net.run_until(|net| net.nodes[0].taken.len() == 3);
    let order: Vec<u8> = net.nodes[0].taken.iter().map(|packet| packet.payload[0]).collect();
    assert_eq!(order, [0, 1, 2]);
}

/// A link that its user closes sends what was queued, and the peer hears of the end after the last
/// packet. The number is then free for another link.
#[test]
pub fn closing_sends_what_was_queued() {
    let mut net = Net::new(&[Config::new(1500); 2], 8);
    net.faults.loss = 200;
    let peer = net.link(0, 1);
    for number in 0..200u32 {
        net.send(0, peer, &vec![number as u8; 1000]).unwrap();
    }
    net.close(0, peer);
    assert!(net.send(0, peer, b"late").is_err());
    net.run_until(|net| net.nodes[0].endpoint.link_count() == 0);
    assert_eq!(net.nodes[1].taken.len(), 200);
    net.faults.loss = 0;
    net.run_until(|net| net.down_reason(1).is_some());
    assert!(matches!(
        net.down_reason(1),
        Some(DownReason::Closed | DownReason::Restarted | DownReason::Dead)
    ));
    net.check_books();
}

/// Frames made up without knowledge of the link's tokens do nothing to it, whatever their kind.
#[test]
pub fn strangers_cannot_touch_a_link() {
    use bellwire_wire::frame::check::seal;
    use bellwire_wire::frame::header::FrameHeader;
    let mut net = Net::new(&[Config::new(1500); 2], 9);
    let peer = net.link(0, 1);
    let mut chance = super::net::Chance(10);
    for round in 0..100_000u64 {
        let kind = FrameKind::from_code(1 + (round % 9) as u8).unwrap();
        let length = if kind == FrameKind::Close { 1 } else { chance.below(120) as usize };
        let mut frame = vec![0; 36 + length];
        for byte in &mut frame {
            *byte = if chance.hits(500) { 0 } else { chance.next() as u8 };
        }
        let header = FrameHeader {
            length: frame.len() as u16,
            sequence: chance.next() as u32,
            acknowledged: chance.next() as u32,
            // The slot of the link is easy to guess; the other 48 bits are not.
            ..FrameHeader::new(kind, function(0).function, 1, chance.next() & !0xffff)
        };
        header.emit(&mut frame).unwrap();
        if kind == FrameKind::Close {
            frame[32] = 1;
        }
        seal(&mut frame).unwrap();
        net.hand(0, Net::path(1, 0), &frame);
        if round % 64 == 0 {
            let mut buffer = vec![0; 1500];
            while net.nodes[0].endpoint.poll_transmit(net.now_ns, &mut buffer).is_some() {}
        }
    }
    assert!(net.nodes[0].taken.is_empty());
    assert!(net.nodes[0].endpoint.is_up(peer));
    net.send(0, peer, b"still").unwrap();
    net.run_until(|net| net.nodes[1].taken.len() == 1);
}

/// A function may be its own peer: its packets come back in order and reliably by one link.
#[test]
pub fn a_function_may_be_its_own_peer() {
    let mut net = Net::new(&[Config::new(1500)], 11);
    net.faults.loss = 200;
    let peer = net.connect(0, 0);
    net.run_until(|net| net.nodes[0].endpoint.is_up(peer));
    for number in 0..100u32 {
        net.send(0, peer, &[number as u8; 700]).unwrap();
    }
    net.run_until(Net::is_quiet);
    let taken: Vec<_> = net.nodes[0].taken.iter().map(|packet| packet.payload[0]).collect();
    assert_eq!(taken, (0..100).collect::<Vec<u8>>());
    assert_eq!(net.nodes[0].endpoint.link_count(), 1);
    net.faults.loss = 0;
    net.close(0, peer);
    net.run_until(|net| net.nodes[0].endpoint.link_count() == 0);
}

/// A link that is closed and asked for again at once still sends what was queued, and the new link
/// begins after that. The peer takes every packet, hears of the end, and then of the beginning.
#[test]
pub fn a_new_link_waits_for_the_end_of_the_old_one() {
    for seed in 0..50 {
        let mut net = Net::new(&[Config::new(1500); 2], seed);
        net.faults.loss = if seed < 10 { 0 } else { 200 };
        let peer = net.link(0, 1);
        for number in 0..100u32 {
            net.send(0, peer, &[number as u8; 1000]).unwrap();
        }
        net.close(0, peer);
        let again = net.connect(0, 1);
        assert_ne!(peer, again);
        net.run_until(|net| net.nodes[0].endpoint.is_up(again));
        net.send(0, again, b"again").unwrap();
        net.run_until(|net| net.nodes[1].taken.len() == 101);
        assert_eq!(net.nodes[1].taken[100].payload, b"again");
        let events: Vec<_> =
            net.nodes[1].events.iter().map(|event| matches!(event, Event::Up { .. })).collect();
        assert_eq!(events, [true, false, true], "up, down, up");
    }
}

/// The patience of a new request counts from its first Open, not while the old link still sends.
/// The new link comes up after a longer wait; an unanswered one is given up that long after the old
/// link's end.
#[test]
pub fn patience_begins_when_the_old_link_has_ended() {
    const PATIENCE_NS: u64 = 1_000_000_000;
    for answers in [true, false] {
        let mut net = Net::new(&[Config::new(1500); 2], 1);
        let peer = net.link(0, 1);
        net.send(0, peer, b"old").unwrap();
        // Nothing arrives for twice the patience or, without answers, forever.
        net.mtu = 0;
        let begin = net.now_ns;
        net.nodes[0].endpoint.close(peer, begin);
        let address = net.nodes[1].endpoint.address();
        let path = Net::path(1, 0);
        let again =
            net.nodes[0].endpoint.connect(address, path, PATIENCE_NS, begin).expect("a link");
        net.run_until(|net| net.now_ns > begin + 2 * PATIENCE_NS);
        assert!(net.nodes[0].events.len() == 1, "{:?}", net.nodes[0].events);
        if answers {
            net.mtu = usize::MAX;
            net.run_until(|net| net.nodes[0].endpoint.is_up(again));
            assert_eq!(net.nodes[1].taken[0].payload, b"old");
            continue;
        }
        net.run_until(|net| net.nodes[0].events.len() == 2);
        let Event::Down { peer, reason: DownReason::NoAnswer, .. } = net.nodes[0].events[1] else {
            panic!("{:?}", net.nodes[0].events);
        };
        assert_eq!(peer, again);
        // The old one lingers for 5 s, or until its peer has been silent that long, which began a
        // little earlier.
        let least_ns = 4_900_000_000 + PATIENCE_NS;
        assert!(net.now_ns - begin >= least_ns, "after {} ns", net.now_ns - begin);
    }
}

/// Whether a frame is an Open that carries a cookie.
fn has_cookie(frame: &[u8]) -> bool {
    frame[1] & 0xf == FrameKind::Open as u8 && frame[8..16] != [0; 8]
}

/// Two sides that ask each other while Opens of both former lives are in flight agree after a few
/// frames. (Guards against alternating requests without end.)
#[test]
pub fn requests_that_cross_old_ones_come_to_an_end() {
    use std::cell::RefCell;
    use std::rc::Rc;
    for seed in 0..40 {
        let mut net = Net::new(&[Config::new(1500); 2], seed);
        net.latency_ns = 1_000 << (seed % 17);
        let old = Rc::new(RefCell::new(Vec::new()));
        let seen = old.clone();
        net.tap = Box::new(move |_, _, to, frame| seen.borrow_mut().push((to, frame.to_vec())));
        for life in 0..3 {
            net.nodes =
                (0..2).map(|node| Node::new(Config::new(1500), node, 2000 + life, seed)).collect();
            net.wire.clear();
            net.connect(0, 1);
            net.connect(1, 0);
            if life < 2 {
                // Both ask with a cookie, and hear no answer.
                net.drop_if = Box::new(|_, _, frame| frame[1] & 0xf == FrameKind::Accept as u8);
                net.run_for(4 * net.latency_ns);
                continue;
            }
            // Both first learn the tokens of the earlier lives.
            let mut opens = old.borrow().clone();
            opens.retain(|(_, frame)| has_cookie(frame));
            assert!(opens.len() >= 4, "seed {seed}: {} Opens", opens.len());
            for (to, frame) in opens {
                net.hand(to, Net::path(1 - to, 0), &frame);
            }
            // The first Open of one side is lost, so that the other hears its answer first.
            let (unlucky, mut left) = (seed as usize & 1, 1);
            net.drop_if = Box::new(move |from, _, frame| {
                let is_open = frame[1] & 0xf == FrameKind::Open as u8;
                let drops = left > 0 && from == unlucky && is_open;
                left -= drops as u32;
                drops
            });
            net.sent = [0; 16];
            net.run_until(|net| {
                let [opens, accepts] =
                    [FrameKind::Open, FrameKind::Accept].map(|kind| net.sent[kind as usize]);
                assert!(opens + accepts < 60, "seed {seed}: no end of asking");
                (0..2).all(|node| {
                    net.peer_of(node, function(1 - node as u32))
                        .is_some_and(|peer| net.nodes[node].endpoint.is_up(peer))
                })
            });
        }
    }
}

/// One of two sides that ask each other knows an outdated token, so only answers to its own Opens
/// help. They are always due when the other side repeats its Open, and go all the same. (Guards
/// against an Open that replaces the answer each time.)
#[test]
pub fn an_answer_goes_even_when_its_sender_asks_again_just_then() {
    use std::cell::{Cell, RefCell};
    use std::rc::Rc;
    for latency_ns in [1_000, 17_000, 900_000] {
        let mut net = Net::new(&[Config::new(1500); 2], 1);
        net.latency_ns = latency_ns;
        let sent = Rc::new(RefCell::new(Vec::new()));
        let seen = sent.clone();
        net.tap = Box::new(move |_, _, to, frame| seen.borrow_mut().push((to, frame.to_vec())));
        // At first nothing arrives by itself.
        let is_cut = Rc::new(Cell::new([true; 2]));
        let cut = is_cut.clone();
        net.drop_if = Box::new(move |from, _, _| cut.get()[from]);
        // Carries an Open and its Challenge by hand; returns the Open with the cookie.
        let prove = |net: &mut Net, from: usize| {
            net.transmit();
            for to in [1 - from, from] {
                let (meant, frame) = sent.take().pop().expect("an Open, then a Challenge");
                assert_eq!(meant, to);
                net.hand(to, Net::path(1 - to, 0), &frame);
                net.transmit();
            }
            let (_, open) = sent.take().pop().expect("an Open with a cookie");
            assert!(has_cookie(&open));
            open
        };
        let given_up = net.connect(1, 0);
        let first = prove(&mut net, 1);
        net.close(1, given_up);
        let ours = net.connect(0, 1);
        let second = prove(&mut net, 0);
        let theirs = net.connect(1, 0);
        let third = prove(&mut net, 1);
        let peers = [ours, theirs];
        // Node 0 learns of the abandoned Open, node 1 of node 0's, and node 0 of the later one: it
        // takes a new token.
        for (to, frame) in [(0, first), (1, second), (0, third)] {
            net.hand(to, Net::path(1 - to, 0), &frame);
            net.transmit();
        }
        // Its new Open must cause no Challenge, which would shift its timing.
        prove(&mut net, 0);
        // Now node 0 hears node 1, whose Opens soon come in step with node 0's own; then both hear
        // each other.
        is_cut.set([true, false]);
        net.run_for(1_500_000_000);
        assert!((0..2).all(|node| !net.nodes[node].endpoint.is_up(peers[node])));
        is_cut.set([false; 2]);
        net.run_until(|net| {
            // It must not depend on an expired cookie or a forgotten Open, which would shift the
            // timing, too.
            assert!(net.now_ns < 1_950_000_000, "{latency_ns}: no answer when they should");
            (0..2).all(|node| net.nodes[node].endpoint.is_up(peers[node]))
        });
    }
}

/// A half-open link that the peer has given up ends as soon as a later one is up. A late frame of
/// it neither brings it up nor brings packets behind those of the later link.
#[test]
pub fn a_late_confirmation_revives_nothing() {
    use std::cell::RefCell;
    use std::rc::Rc;
    let mut net = Net::new(&[Config::new(1500); 2], 5);
    let first = net.link(0, 1);
    net.run_until(Net::is_quiet);
    // The asker gives its link up and asks anew; the network holds the Close and all that followed
    // the Open.
    let kept = Rc::new(RefCell::new(Vec::new()));
    let keep = kept.clone();
    net.drop_if = Box::new(move |from, _, frame| {
        let kind = frame[1] & 0xf;
        let is_kept =
            from == 0 && (kind >= FrameKind::Data as u8 && kind <= FrameKind::Close as u8);
        if is_kept {
            keep.borrow_mut().push(frame.to_vec());
        }
        is_kept
    });
    net.close(0, first);
    let second = net.connect(0, 1);
    net.run_until(|net| net.nodes[0].endpoint.is_up(second));
    net.send(0, second, b"old").unwrap();
    net.run_for(1_000_000);
    // The other side learns that its link is gone, and asks itself.
    let lost = net.peer_of(1, function(0)).unwrap();
    net.send(1, lost, b"lost").unwrap();
    net.run_until(|net| net.down_reason(1) == Some(DownReason::Restarted));
    net.close(1, lost);
    net.drop_if = Box::new(|_, _, _| false);
    let third = net.connect(1, 0);
    net.run_until(|net| net.nodes[1].endpoint.is_up(third) && net.down_reason(0).is_some());
    let new = net.peer_of(0, function(1)).unwrap();
    net.send(0, new, b"new").unwrap();
    net.run_until(|net| net.nodes[1].taken.len() == 1);
    for frame in kept.borrow().iter() {
        net.hand(1, Net::path(0, 0), frame);
    }
    net.run_for(1_000_000);
    assert_eq!(net.nodes[1].taken.len(), 1, "{:?}", net.nodes[1].taken);
    assert_eq!(net.nodes[1].taken[0].payload, b"new");
    assert!(net.nodes[1].endpoint.is_up(third));
}

/// A later link can have an earlier opening: a half-open link made for an old Open serves the next
/// one. Its packets still come behind the untaken packets of the earlier link.
#[test]
pub fn a_link_with_an_earlier_opening_may_be_the_later_one() {
    use std::cell::RefCell;
    use std::rc::Rc;
    let mut net = Net::new(&[Config::new(1500); 2], 3);
    let first = net.link(0, 1);
    net.run_until(Net::is_quiet);
    let lost = net.peer_of(1, function(0)).unwrap();
    // The Close is late, and the answer to the Open is lost.
    let closes = Rc::new(RefCell::new(Vec::new()));
    let late = closes.clone();
    net.drop_if = Box::new(move |from, _, frame| {
        let kind = frame[1] & 0xf;
        if kind == FrameKind::Close as u8 {
            late.borrow_mut().push(frame.to_vec());
        }
        kind == FrameKind::Close as u8 || from == 1 && kind == FrameKind::Accept as u8
    });
    net.close(0, first);
    let asked = net.connect(0, 1);
    net.run_for(1_000_000);
    assert_eq!(net.down_reason(1), None);
    net.hand(1, Net::path(0, 0), &closes.borrow()[0]);
    net.run_until(|net| net.down_reason(1) == Some(DownReason::Closed));
    net.close(1, lost);
    let answered = net.connect(1, 0);
    net.run_until(|net| {
        net.nodes[0].endpoint.is_up(asked) && net.nodes[1].endpoint.is_up(answered)
    });
    net.drop_if = Box::new(|_, _, _| false);
    // The requests of this link are not taken, and it ends.
    net.nodes[0].appetite = [0, usize::MAX];
    for number in 0..3 {
        net.send(1, answered, &[number]).unwrap();
    }
    net.run_until(Net::is_quiet);
    net.close(1, answered);
    net.run_for(1_000_000);
    // The other side asks again, and the new link brings a response at once.
    let again = net.connect(0, 1);
    net.run_until(|net| net.nodes[0].endpoint.is_up(again));
    net.run_until(|net| net.peer_of(1, function(0)).is_some_and(|peer| peer != answered));
    let new = net.peer_of(1, function(0)).unwrap();
    net.nodes[1].endpoint.send(new, Channel::Response, [0; 3], &[], &&[3u8][..]).unwrap();
    net.run_for(1_000_000);
    assert_eq!(net.nodes[0].taken.len(), 0, "{:?}", net.nodes[0].taken);
    net.nodes[0].appetite = [usize::MAX; 2];
    net.run_until(|net| net.nodes[0].taken.len() == 4);
    let order: Vec<u8> = net.nodes[0].taken.iter().map(|packet| packet.payload[0]).collect();
    assert_eq!(order, [0, 1, 2, 3], "{:?}", net.nodes[0].taken);
}
