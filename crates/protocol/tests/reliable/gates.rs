//! Gates of queue pairs, known at the peer.

use std::cell::RefCell;
use std::rc::Rc;

use bellwire_protocol::reliable::{Config, Event, GateState};
use bellwire_wire::frame::header::FrameKind;

use super::net::Net;

/// A gate is unknown until the answer comes; then every change comes by itself, even if a third of
/// all frames is lost. The last state told is the true one, and nothing is told unasked.
// shows: H-15, H-16
#[test]
pub fn changes_of_gates_reach_those_who_asked() {
    for seed in 0..20 {
        let mut net = Net::new(&[Config::new(1500); 2], seed);
        net.faults.loss = 300;
        let peer = net.link(0, 1);
        let pairs = [0, 7, 4095, 1 << 31, (1 << 31) + 65_535];
        let gate = |net: &Net, pair| net.nodes[0].endpoint.gate(peer, pair);
        net.nodes[1].endpoint.set_gate(7, GateState::Open);
        for pair in pairs {
            assert_eq!(gate(&net, pair), None);
        }
        net.run_until(|net| pairs.iter().all(|&pair| gate(net, pair).is_some()));
        assert_eq!(gate(&net, 0), Some(GateState::Closed));
        assert_eq!(gate(&net, 7), Some(GateState::Open));
        let states = [GateState::Open, GateState::Stopped, GateState::Closed];
        for round in 0..1000usize {
            let pair = pairs[round % pairs.len()];
            net.nodes[1].endpoint.set_gate(pair, states[(round / 3) % 3]);
            if round % 10 == 0 {
                net.step();
            }
        }
        for (index, &pair) in pairs.iter().enumerate() {
            net.nodes[1].endpoint.set_gate(pair, states[index % 3]);
        }
        net.run_for(3_000_000_000);
        for (index, &pair) in pairs.iter().enumerate() {
            assert_eq!(gate(&net, pair), Some(states[index % 3]), "queue pair {pair:#x}");
        }
        assert!(net.nodes[0].events.iter().any(|event| matches!(event, Event::Gates { .. })));
        assert_eq!(gate(&net, 5000), Some(GateState::Closed), "no such number");
        // No peer asked for 9.
        net.run_until(Net::is_quiet);
        let before = net.nodes[1].endpoint.counters().frames_sent;
        net.nodes[1].endpoint.set_gate(9, GateState::Open);
        net.run_for(1_000_000);
        assert_eq!(net.nodes[1].endpoint.counters().frames_sent, before);
    }
}

/// Thirty-two pieces of news share a frame, and further ones go in the next.
#[test]
pub fn news_share_a_frame() {
    let mut net = Net::new(&[Config::new(1500); 2], 1);
    let peer = net.link(0, 1);
    net.run_until(Net::is_quiet);
    let lengths = Rc::new(RefCell::new(Vec::new()));
    let tapped = lengths.clone();
    net.tap = Box::new(move |_, from, _, frame| {
        if from == 0 && frame[1] & 0xf == FrameKind::Data as u8 {
            tapped.borrow_mut().push(frame.len());
        }
    });
    let is_known = |net: &Net| {
        let known = (0..40).filter(|&pair| net.nodes[0].endpoint.gate(peer, pair).is_some());
        known.count() == 40
    };
    net.run_until(is_known);
    // Around 5 bytes for each are a header, a section's header and a check value.
    assert_eq!(*lengths.borrow(), [36 + 4 + 32 * 5, 36 + 4 + 8 * 5]);
}
