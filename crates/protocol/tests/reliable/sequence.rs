//! Sequence numbers: past, expected, repeated and future frames, and the sender's reaction to each.

use std::cell::Cell;
use std::rc::Rc;

use bellwire_protocol::reliable::{Channel, Config};
use bellwire_wire::frame::check::{CHECK_BYTES, seal};
use bellwire_wire::frame::header::{FLAG_LOSE, FrameHeader, FrameKind, HEADER_BYTES};
use bellwire_wire::frame::section::{RECEIVED_FIXED_BYTES, Section, SectionKind};

use super::net::{Net, function};

/// Two linked nodes with the same settings, and the data frames that the first sends for `count`
/// packets of 8 bytes, one in each.
pub fn frames(config: Config, count: u32, seed: u64) -> (Net, Vec<Vec<u8>>) {
    let mut net = Net::new(&[Config { coalesce: false, ..config }; 2], seed);
    let peer = net.link(0, 1);
    net.run_until(Net::is_quiet);
    for number in 0..count {
        net.send(0, peer, &number.to_le_bytes()).unwrap();
    }
    let mut buffer = vec![0; 65_536];
    let mut frames = Vec::new();
    while let Some(transmit) = net.nodes[0].endpoint.poll_transmit(net.now_ns, &mut buffer) {
        if buffer[1] & 0xf == FrameKind::Data as u8 {
            frames.push(buffer[..transmit.length].to_vec());
            assert!(frames.len() <= count as usize, "frames without end");
        }
    }
    (net, frames)
}

/// Hands frame `index` to node 1. Returns its immediate answer, if any, with the selective
/// acknowledgement.
fn hand(net: &mut Net, frames: &[Vec<u8>], index: usize) -> Option<(FrameHeader, Vec<u8>)> {
    net.hand(1, Net::path(0, 0), &frames[index]);
    let mut buffer = vec![0; 65_536];
    let transmit = net.nodes[1].endpoint.poll_transmit(net.now_ns, &mut buffer)?;
    let header = FrameHeader::parse(&buffer).unwrap();
    let received = match Section::split(&buffer[HEADER_BYTES..transmit.length - 4]).unwrap() {
        Some((section, _)) if section.kind == SectionKind::Received => section.bytes.to_vec(),
        _ => Vec::new(),
    };
    Some((header, received))
}

fn taken(net: &Net) -> Vec<u32> {
    net.nodes[1]
        .taken
        .iter()
        .map(|packet| u32::from_le_bytes(packet.payload.as_slice().try_into().unwrap()))
        .collect()
}

/// The expected data frame is taken; a past or repeated one is acknowledged again and not taken. A
/// future one is kept, reported with a bitmap, and taken when the gap closes.
// shows: H-14, H-18
#[test]
pub fn each_kind_of_data_frame_is_handled() {
    for seed in 0..20 {
        let (mut net, frames) = frames(Config::new(1500), 5, seed);
        let first = FrameHeader::parse(&frames[0]).unwrap().sequence;
        assert_eq!(hand(&mut net, &frames, 0), None, "an acknowledgement may wait");
        assert_eq!(taken(&net), [0]);
        let (answer, _) = hand(&mut net, &frames, 0).expect("a repetition is acknowledged at once");
        assert_eq!(answer.kind, FrameKind::Acknowledge);
        assert_eq!((answer.acknowledged, answer.flags), (first.wrapping_add(1), 0));
        let (answer, received) = hand(&mut net, &frames, 2).expect("a gap is reported at once");
        assert_eq!((answer.acknowledged, answer.flags), (first.wrapping_add(1), FLAG_LOSE));
        assert_eq!(received, [1, 0, 0, 0, 0b1]);
        let (_, received) = hand(&mut net, &frames, 4).unwrap();
        assert_eq!(received, [1, 0, 0, 0, 0b101]);
        let (_, received) = hand(&mut net, &frames, 4).unwrap();
        assert_eq!(received, [2, 0, 0, 0, 0b101]);
        assert_eq!(taken(&net), [0]);
        let (answer, received) = hand(&mut net, &frames, 1).expect("a closed gap is reported");
        assert_eq!(answer.acknowledged, first.wrapping_add(3));
        assert_eq!(received, [2, 0, 0, 0, 0b1]);
        assert_eq!(taken(&net), [0, 1, 2]);
        let (answer, _) = hand(&mut net, &frames, 3).unwrap();
        assert_eq!(answer.acknowledged, first.wrapping_add(5));
        assert_eq!(taken(&net), [0, 1, 2, 3, 4]);
        for past in 0..5 {
            assert!(hand(&mut net, &frames, past).is_some());
        }
        assert_eq!(taken(&net), [0, 1, 2, 3, 4]);
        let counters = net.nodes[1].endpoint.counters();
        assert_eq!((counters.frames_in_order, counters.frames_early), (5, 2));
        assert_eq!((counters.frames_repeated, counters.frames_dropped), (7, 0));
        assert_eq!(counters.packets_delivered, 5);
    }
}

/// A frame ahead of the expected one is kept if it is the last of the window. The one behind it is
/// dropped, as is any further one.
#[test]
pub fn frames_beyond_the_window_are_dropped() {
    const WINDOW: u16 = 8;
    for seed in 0..20 {
        let config = Config { window_frames: WINDOW, congestion: false, ..Config::new(1500) };
        let (mut net, frames) = frames(config, 100, seed);
        assert_eq!(frames.len(), usize::from(WINDOW), "the sender keeps to the window");
        let last = frames.len() - 1;
        // A sender that does not: the frame that would be the next, and one far ahead.
        for ahead in [1, 2, u32::from(WINDOW), 1 << 20] {
            let mut frame = frames[last].clone();
            let mut header = FrameHeader::parse(&frame).unwrap();
            header.sequence = header.sequence.wrapping_add(ahead);
            header.emit(&mut frame).unwrap();
            seal(&mut frame).unwrap();
            assert!(hand(&mut net, &[frame], 0).is_none(), "{ahead} ahead is not reported");
        }
        let counters = net.nodes[1].endpoint.counters();
        assert_eq!((counters.frames_early, counters.frames_dropped), (0, 4));
        let (_, received) = hand(&mut net, &frames, last).expect("a gap is reported at once");
        // The bitmap begins behind the expected frame.
        assert_eq!(received.last(), Some(&(1 << (WINDOW - 2))));
        let counters = net.nodes[1].endpoint.counters();
        assert_eq!((counters.frames_early, counters.frames_dropped), (1, 4));
        for index in 0..last {
            hand(&mut net, &frames, index);
        }
        assert_eq!(taken(&net), (0..u32::from(WINDOW)).collect::<Vec<_>>());
    }
}

/// The same frames under HPCL's rules: each in-order frame is acknowledged at once, and a repeated
/// one again. A future one is dropped and reported as a gap, once.
// shows: H-13, H-18
#[test]
pub fn each_kind_of_data_frame_is_handled_as_by_hpcl() {
    let (mut net, frames) = frames(Config::hpcl(1500), 5, 1);
    let first = FrameHeader::parse(&frames[0]).unwrap().sequence;
    let (answer, _) = hand(&mut net, &frames, 0).expect("each frame is acknowledged at once");
    assert_eq!((answer.acknowledged, answer.flags), (first.wrapping_add(1), 0));
    let (answer, received) = hand(&mut net, &frames, 2).expect("a gap is reported at once");
    assert_eq!((answer.acknowledged, answer.flags), (first.wrapping_add(1), FLAG_LOSE));
    assert!(received.is_empty(), "nothing is kept");
    assert_eq!(hand(&mut net, &frames, 3), None, "the gap is known already");
    for index in 1..5 {
        let (answer, _) = hand(&mut net, &frames, index).unwrap();
        assert_eq!(answer.acknowledged, first.wrapping_add(index as u32 + 1));
    }
    assert!(hand(&mut net, &frames, 2).is_some(), "a repetition is acknowledged");
    assert_eq!(taken(&net), [0, 1, 2, 3, 4]);
}

/// With HPCL's settings there is exactly one acknowledgement for each message that comes in order.
// shows: H-13
#[test]
pub fn hpcl_acknowledges_each_message() {
    let mut net = Net::new(&[Config::hpcl(1500); 2], 3);
    let peer = net.link(0, 1);
    net.run_until(Net::is_quiet);
    net.is_eager = true;
    let before = net.nodes[1].endpoint.counters().acknowledgements_sent;
    for number in 0..100u32 {
        net.send(0, peer, &number.to_le_bytes()).unwrap();
    }
    net.run_until(Net::is_quiet);
    assert_eq!(net.nodes[0].endpoint.counters().frames_sent, 100);
    assert_eq!(net.nodes[1].endpoint.counters().acknowledgements_sent - before, 100);
}

/// At most N_asy frames are sent without an acknowledgement, whatever is queued. Each
/// acknowledgement releases as many as it covers.
// shows: H-12
#[test]
pub fn the_window_bounds_what_is_in_flight() {
    for (config, window) in [
        (Config::hpcl(1500), 8),
        (Config { window_frames: 5, congestion: false, ..Config::new(1500) }, 5),
    ] {
        let (mut net, frames) = frames(config, 100, 4);
        assert_eq!(frames.len(), window);
        for frame in &frames[..3] {
            net.hand(1, Net::path(0, 0), frame);
        }
        net.nodes[1].endpoint.flush();
        let mut buffer = vec![0; 65_536];
        let transmit = net.nodes[1].endpoint.poll_transmit(net.now_ns, &mut buffer).unwrap();
        net.hand(0, Net::path(1, 0), &buffer[..transmit.length]);
        let mut more = 0;
        while net.nodes[0].endpoint.poll_transmit(net.now_ns, &mut buffer).is_some() {
            more += 1;
        }
        assert_eq!(more, 3, "three were acknowledged");
    }
}

/// HPCL's window is the same before, during and after losses; the production window is not.
// shows: H-19
#[test]
pub fn hpcl_windows_are_constant() {
    for (config, is_constant) in [(Config::hpcl(1500), true), (Config::new(1500), false)] {
        let mut net = Net::new(&[config; 2], 5);
        let peer = net.link(0, 1);
        let mut windows = std::collections::BTreeSet::new();
        net.faults.loss = 50;
        for number in 0..300u32 {
            net.send(0, peer, &vec![number as u8; 1000]).unwrap();
        }
        while net.nodes[1].taken.len() < 300 {
            net.step();
            windows.insert(net.nodes[0].endpoint.window_frames(peer));
        }
        assert_eq!(windows.len() == 1, is_constant, "{windows:?}");
        assert!(net.nodes[0].endpoint.counters().frames_resent > 0);
    }
}

/// A frame lost in the middle is resent because of the gap, long before any timeout. The production
/// settings resend just that frame, HPCL's all from there on.
// shows: H-14
#[test]
pub fn a_gap_is_filled_without_a_timeout() {
    for config in [Config::new(1500), Config::hpcl(1500)] {
        let mut net = Net::new(&[Config { coalesce: false, ..config }; 2], 6);
        let peer = net.link(0, 1);
        net.run_until(Net::is_quiet);
        let mut data = 0;
        net.drop_if = Box::new(move |from, _, frame| {
            data += (from == 0 && frame[1] & 0xf == FrameKind::Data as u8) as u32;
            data == 3 && from == 0
        });
        let begin = net.now_ns;
        for number in 0..8u32 {
            net.send(0, peer, &number.to_le_bytes()).unwrap();
        }
        net.run_until(|net| net.nodes[1].taken.len() == 8);
        let counters = net.nodes[0].endpoint.counters();
        assert_eq!(counters.timeouts, 0);
        assert!(counters.loses_received >= 1);
        let resent = if config == Config::hpcl(1500) { 6 } else { 1 };
        assert_eq!(counters.frames_resent, resent);
        assert!(net.now_ns - begin < 4 * net.latency_ns, "in about one round trip more");
    }
}

/// A resent full frame has no room for the bitmap of early frames. It does not say LOSE then, which
/// would mean that nothing was kept; LOSE with the bitmap follows in a frame of its own.
// shows: H-14
#[test]
pub fn lose_comes_with_what_was_kept() {
    let mut net = Net::new(&[Config::new(1500); 2], 11);
    let peers = [net.link(0, 1), net.peer_of(1, function(0)).unwrap()];
    net.faults.loss = 50;
    let loses = Rc::new(Cell::new(0));
    let seen = loses.clone();
    net.tap = Box::new(move |_, from, _, frame| {
        let header = FrameHeader::parse(frame).unwrap();
        if header.flags & FLAG_LOSE != 0 {
            seen.set(seen.get() + 1);
            let body = &frame[HEADER_BYTES..frame.len() - CHECK_BYTES];
            let received = match Section::split(body) {
                Ok(Some((section, _))) if section.kind == SectionKind::Received => section.bytes,
                _ => &[],
            };
            assert!(received.len() > RECEIVED_FIXED_BYTES, "{from} says that it kept nothing");
        }
    });
    for number in 0..200u32 {
        for (from, peer) in peers.into_iter().enumerate() {
            while net.send(from, peer, &vec![number as u8; 20_000]).is_err() {
                net.step();
            }
        }
    }
    net.run_until(|net| net.nodes.iter().all(|node| node.taken.len() == 200));
    for node in &net.nodes {
        let counters = node.endpoint.counters();
        assert_eq!(counters.frames_dropped, 0);
        assert!(counters.frames_resent > 0);
    }
    assert!(loses.get() > 100, "{} gaps were reported", loses.get());
}

/// A lost last message, which leaves no gap to report, is recovered by the timeout. So is a lost
/// acknowledgement, and the repeated message is taken once.
// shows: H-17, H-18
#[test]
pub fn a_lost_end_and_a_lost_acknowledgement_are_recovered() {
    for config in [Config::new(1500), Config::hpcl(1500)] {
        for lost in [FrameKind::Data, FrameKind::Acknowledge] {
            let mut net = Net::new(&[config; 2], 7);
            let peer = net.link(0, 1);
            net.run_until(Net::is_quiet);
            let mut is_lost = false;
            net.drop_if = Box::new(move |_, _, frame| {
                !is_lost && frame[1] & 0xf == lost as u8 && {
                    is_lost = true;
                    true
                }
            });
            net.send(0, peer, b"last").unwrap();
            net.run_until(Net::is_quiet);
            assert_eq!(net.nodes[1].taken.len(), 1);
            assert_eq!(net.nodes[0].endpoint.counters().timeouts, 1);
            let repeated = net.nodes[1].endpoint.counters().frames_repeated;
            assert_eq!(repeated, (lost == FrameKind::Acknowledge) as u64);
        }
    }
}

/// Every frame comes twice: every packet is taken once.
// shows: H-18
#[test]
pub fn repeated_frames_are_taken_once() {
    let mut net = Net::new(&[Config { coalesce: false, ..Config::new(1500) }; 2], 8);
    let peer = net.link(0, 1);
    net.faults.repeat = 1000;
    for number in 0..200u32 {
        net.send(0, peer, &number.to_le_bytes()).unwrap();
    }
    net.run_until(Net::is_quiet);
    assert_eq!(taken(&net), (0..200).collect::<Vec<_>>());
    assert!(net.nodes[1].endpoint.counters().frames_repeated >= 200);
}

/// In a ping-pong of small messages every acknowledgement rides on the answer: no other frames are
/// needed.
#[test]
pub fn a_ping_pong_takes_no_extra_frames() {
    let mut net = Net::new(&[Config::new(1500); 2], 9);
    let there = net.link(0, 1);
    let back = net.peer_of(1, super::net::function(0)).unwrap();
    net.run_until(Net::is_quiet);
    let before = net.sent;
    for round in 1..=100 {
        net.send(0, there, b"ping").unwrap();
        net.run_until(|net| net.nodes[1].taken.len() == round);
        net.send(1, back, b"pong").unwrap();
        net.run_until(|net| net.nodes[0].taken.len() == round);
    }
    assert_eq!(net.sent[FrameKind::Data as usize] - before[FrameKind::Data as usize], 200);
    assert_eq!(net.sent[FrameKind::Acknowledge as usize], before[FrameKind::Acknowledge as usize]);
    // The last acknowledgement goes when its delay ends, or at a flush before a sleep.
    net.nodes[0].endpoint.flush();
    let mut buffer = vec![0; 1500];
    let transmit = net.nodes[0].endpoint.poll_transmit(net.now_ns, &mut buffer);
    assert!(transmit.is_some() && buffer[1] & 0xf == FrameKind::Acknowledge as u8);
    assert_eq!(net.nodes[0].taken[0].channel, Channel::Request);
}
