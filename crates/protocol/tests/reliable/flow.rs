//! Credit: STOP, GO, and why responses have their own.

use bellwire_protocol::reliable::{Channel, Config, SendError};
use bellwire_wire::frame::header::FrameKind;

use super::net::Net;

/// Small buffers, so that they fill.
fn small() -> Config {
    Config { packet_bytes: 2000, send_bytes: 4096, receive_bytes: 4096, ..Config::new(1500) }
}

/// Queues packets of `length` until there is no room, and lets them travel for a while.
fn fill(
    net: &mut Net,
    from: usize,
    peer: bellwire_protocol::reliable::PeerId,
    length: usize,
) -> usize {
    let mut queued = 0;
    for _ in 0..200 {
        while net.send(from, peer, &vec![queued as u8; length]).is_ok() {
            queued += 1;
        }
        net.run_for(50_000);
    }
    queued
}

/// A receiver that takes nothing stops the sender when its buffer is full (STOP): no frame is
/// refused, lost or resent. When it takes packets again the sender goes on by itself (GO), and all
/// arrive in order.
// shows: H-15, H-16
#[test]
pub fn a_full_receiver_stops_the_sender() {
    for config in [small(), Config { recovery: Config::hpcl(1500).recovery, ..small() }] {
        let mut net = Net::new(&[config; 2], 1);
        let peer = net.link(0, 1);
        net.nodes[1].appetite = [0; 2];
        let queued = fill(&mut net, 0, peer, 100);
        assert!(net.send(0, peer, &[0; 100]) == Err(SendError::Busy));
        // The buffer holds 4096 / 132 packets, and as many again wait at the sender.
        assert!((31 + 35..=31 + 40).contains(&queued), "{queued}");
        let counters = net.nodes[0].endpoint.counters();
        assert_eq!((counters.stops, counters.gos), (1, 0));
        assert_eq!((counters.frames_resent, counters.packets_acknowledged), (0, 31));
        net.nodes[1].appetite = [usize::MAX; 2];
        net.run_until(Net::is_quiet);
        let taken: Vec<_> = net.nodes[1].taken.iter().map(|packet| packet.payload[0]).collect();
        assert_eq!(taken, (0..queued).map(|number| number as u8).collect::<Vec<_>>());
        let counters = net.nodes[0].endpoint.counters();
        assert!(counters.gos >= 1 && counters.frames_resent == 0);
        assert_eq!(net.nodes[1].endpoint.counters().frames_dropped, 0);
        net.check_books();
    }
}

/// The frame with the GO is lost: the stopped sender asks after a timeout and goes on.
// shows: H-16, H-17
#[test]
pub fn a_lost_go_is_recovered() {
    let mut net = Net::new(&[small(); 2], 2);
    let peer = net.link(0, 1);
    net.nodes[1].appetite = [0; 2];
    let queued = fill(&mut net, 0, peer, 100);
    net.drop_if = Box::new(|from, _, _| from == 1);
    net.nodes[1].appetite = [usize::MAX; 2];
    net.deliver(1);
    net.transmit();
    net.drop_if = Box::new(|_, _, _| false);
    net.run_until(|net| net.nodes[1].taken.len() == queued);
    assert!(net.nodes[0].endpoint.counters().timeouts > 0);
}

/// Each channel has credit of its own: a receiver that takes no requests still gets responses.
// shows: C-27
#[test]
pub fn responses_pass_where_requests_are_stuck() {
    let mut net = Net::new(&[small(); 2], 3);
    let peer = net.link(0, 1);
    net.nodes[1].appetite = [0, usize::MAX];
    fill(&mut net, 0, peer, 100);
    let before = net.nodes[1].taken.len();
    for number in 0..100u64 {
        let words = [1, 0, number];
        while net.nodes[0].endpoint.send(peer, Channel::Response, words, &[], b"answer").is_err() {
            net.step();
        }
    }
    net.run_until(|net| net.nodes[1].taken.len() == before + 100);
    assert!(net.nodes[1].taken.iter().all(|packet| packet.channel == Channel::Response));
}

/// Two nodes get from each other at the same time. A node takes a request only when it has room for
/// the answer, and answers at once. Returns whether all answers came before progress ended.
fn gets_both_ways(separate_channels: bool) -> bool {
    const GETS: usize = 300;
    let config = Config { separate_channels, ..small() };
    let mut net = Net::new(&[config; 2], 4);
    let there = net.link(0, 1);
    let back = net.peer_of(1, super::net::function(0)).unwrap();
    let peers = [there, back];
    let mut asked = [0; 2];
    let mut owed = [0; 2];
    let mut seen = [0; 2];
    let mut answers = [0; 2];
    for node in &mut net.nodes {
        node.appetite = [1, usize::MAX];
    }
    // Ten seconds of virtual time are ten thousand round trips.
    while net.now_ns < 10_000_000_000 {
        for node in 0..2 {
            for packet in &net.nodes[node].taken[seen[node]..] {
                match packet.words[0] as u8 {
                    7 => owed[node] += 1,
                    _ => answers[node] += 1,
                }
            }
            seen[node] = net.nodes[node].taken.len();
            let endpoint = &mut net.nodes[node].endpoint;
            while owed[node] > 0
                && endpoint.send(peers[node], Channel::Response, [8, 0, 0], &[], &[0; 1500]).is_ok()
            {
                owed[node] -= 1;
            }
            net.nodes[node].appetite = [(owed[node] == 0) as usize, usize::MAX];
            let endpoint = &mut net.nodes[node].endpoint;
            while asked[node] < GETS
                && endpoint.send(peers[node], Channel::Request, [7, 0, 0], &[], &[0; 64]).is_ok()
            {
                asked[node] += 1;
            }
        }
        if answers == [GETS; 2] {
            return true;
        }
        net.step();
    }
    false
}

/// Without a channel of their own, responses wait behind requests that wait for responses: gets in
/// both directions deadlock.
// shows: C-26
#[test]
pub fn gets_both_ways_deadlock_in_one_channel() {
    assert!(!gets_both_ways(false));
}

/// The same load finishes when responses have a channel of their own.
// shows: C-27
#[test]
pub fn gets_both_ways_finish_with_a_channel_for_answers() {
    assert!(gets_both_ways(true));
}

/// While packets are taken as they come the protocol keeps none of them, and acknowledgements are
/// fewer than data frames.
#[test]
pub fn what_is_taken_at_once_is_not_kept() {
    let mut net = Net::new(&[Config::new(1500); 2], 5);
    let peer = net.link(0, 1);
    for number in 0..1000u32 {
        while net.send(0, peer, &number.to_le_bytes()).is_err() {
            net.step();
        }
        assert!(!net.nodes[1].endpoint.has_deliverable());
    }
    net.run_until(Net::is_quiet);
    assert!(net.sent[FrameKind::Acknowledge as usize] <= net.sent[FrameKind::Data as usize]);
}

/// Credit does not leak: a receiver that stops taking is sent the same number of packets each time.
// shows: H-15
#[test]
pub fn credit_does_not_leak() {
    let mut net = Net::new(&[small(); 2], 6);
    let peer = net.link(0, 1);
    let mut held = Vec::new();
    for _ in 0..20 {
        let before = net.nodes[1].taken.len() as u64;
        net.nodes[1].appetite = [0; 2];
        let acknowledged = net.nodes[0].endpoint.counters().packets_acknowledged;
        assert_eq!(before, acknowledged);
        let queued = fill(&mut net, 0, peer, 1);
        assert!(queued > 0);
        held.push(net.nodes[0].endpoint.counters().packets_acknowledged - acknowledged);
        net.nodes[1].appetite = [usize::MAX; 2];
        net.run_until(Net::is_quiet);
    }
    // 4096 / 33 packets of one byte.
    assert_eq!(held, [124; 20]);
}
