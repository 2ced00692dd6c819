//! Several interfaces that carry one link.

use std::cell::Cell;
use std::rc::Rc;

use bellwire_protocol::reliable::{Config, Recovery};

use super::net::Net;

/// Time for 4 MB over `interfaces` links of 1 byte per ns that differ in latency, and the number of
/// resent frames.
fn transfer(interfaces: u32) -> (u64, u64) {
    let config = Config { send_bytes: 1 << 20, receive_bytes: 1 << 20, ..Config::new(1500) };
    let mut net = Net::new(&[config; 2], 1);
    net.ns_per_byte = 1.0;
    net.extra_ns = [0, 20_000, 40_000, 0];
    let peer = net.link(0, 1);
    for interface in 1..interfaces {
        net.nodes[0].endpoint.add_path(peer, Net::path(1, interface));
    }
    let begin = net.now_ns;
    let payload = [5; 4096];
    for _ in 0..1000 {
        while net.send(0, peer, &payload).is_err() {
            net.step();
        }
    }
    net.run_until(|net| net.nodes[1].taken.len() == 1000);
    (net.now_ns - begin, net.nodes[0].endpoint.counters().frames_resent)
}

/// A peer that is not where it was asked is asked at every other suggested place, however many
/// there are. Once it answers, frames go only where it was heard.
#[test]
pub fn a_peer_is_found_among_guesses() {
    let mut net = Net::new(&[Config::new(1500); 9], 1);
    let address = net.nodes[1].endpoint.address();
    let now = net.now_ns;
    let peer = net.nodes[0].endpoint.connect(address, Net::path(2, 0), 1_000_000_000, now).unwrap();
    net.run_for(50_000_000);
    assert!(!net.nodes[0].endpoint.is_up(peer));
    for place in [2, 3, 4, 5, 6, 1, 7, 8] {
        net.nodes[0].endpoint.guess_path(peer, Net::path(place, 0));
        net.transmit();
    }
    net.run_until(|net| net.nodes[0].endpoint.is_up(peer));
    let strangers = Rc::new(Cell::new(0));
    let count = strangers.clone();
    net.tap = Box::new(move |_, _, to, _| count.set(count.get() + (to > 1) as u32));
    for number in 0..1000u32 {
        while net.send(0, peer, &number.to_le_bytes()).is_err() {
            net.step();
        }
    }
    net.run_until(|net| net.nodes[1].taken.len() == 1000);
    assert_eq!(strangers.get(), 0, "frames for strangers");
    // Too late to be used.
    net.nodes[0].endpoint.guess_path(peer, Net::path(2, 0));
    net.send(0, peer, b"last").unwrap();
    net.run_until(|net| net.nodes[1].taken.len() == 1001);
    assert_eq!(strangers.get(), 0);
    assert_eq!(net.nodes[0].endpoint.counters().frames_resent, 0);
}

/// Bandwidth adds up: two interfaces take about half the time of one, and three a third. Their
/// frames constantly overtake each other, and none counts as lost because of that.
// shows: H-29
#[test]
pub fn bandwidth_grows_with_interfaces() {
    let (one, _) = transfer(1);
    for interfaces in [2, 3] {
        let (time, resent) = transfer(interfaces);
        let ideal = one / interfaces as u64;
        assert!(time < ideal * 5 / 4, "{interfaces} interfaces: {time} ns, one: {one} ns");
        assert_eq!(resent, 0);
    }
}

/// A failed interface is left out: everything arrives by the other, and soon nearly all frames go
/// there. When it works again it is used again.
// shows: H-29
#[test]
pub fn a_failed_interface_is_left_out() {
    let mut net = Net::new(&[Config::new(1500); 2], 2);
    let peer = net.link(0, 1);
    net.nodes[0].endpoint.add_path(peer, Net::path(1, 1));
    net.ns_per_byte = 1.0;
    let send = |net: &mut Net, count: usize| {
        let target = net.nodes[1].taken.len() + count;
        for number in 0..count {
            while net.send(0, peer, &[number as u8; 1400]).is_err() {
                net.step();
            }
        }
        net.run_until(|net| net.nodes[1].taken.len() == target);
    };
    send(&mut net, 300);
    assert!(
        net.sent_by[1] > 100,
        "both are used: {:?} {:?}",
        net.sent_by,
        net.nodes[0].endpoint.counters()
    );
    net.dead[1] = true;
    send(&mut net, 1000);
    let before = net.sent_by;
    send(&mut net, 1000);
    let [first, second] = [0, 1].map(|interface| net.sent_by[interface] - before[interface]);
    assert!(second < first / 10, "{second} of {first} frames by the dead interface");
    net.dead[1] = false;
    net.run_for(5_000_000_000);
    send(&mut net, 1000);
    let before = net.sent_by[1];
    send(&mut net, 1000);
    assert!(net.sent_by[1] - before > 300, "it is used again");
}

/// Frames that overtake each other do no harm where early ones are not kept: such links use one
/// interface at a time. (Guards against resending everything, or a timeout, with every frame.)
// shows: H-29
#[test]
pub fn early_frames_that_nobody_keeps_do_no_harm() {
    let production = Config { send_bytes: 1 << 20, receive_bytes: 1 << 20, ..Config::new(1500) };
    let keeps_none = Config { early_frames: 0, ..production };
    let keeps_few = Config { early_frames: 2, ..production };
    let goes_back = Config { recovery: Recovery::GoBack, ..production };
    let hpcl = Config { send_bytes: 1 << 20, receive_bytes: 1 << 20, ..Config::hpcl(1500) };
    for (sender, receiver) in [
        (production, keeps_none),
        (production, keeps_few),
        (production, goes_back),
        (goes_back, production),
        (goes_back, keeps_few),
        (hpcl, hpcl),
        (hpcl, production),
        (production, hpcl),
    ] {
        let mut net = Net::new(&[sender, receiver], 3);
        net.ns_per_byte = 1.0;
        net.extra_ns = [100_000, 0, 30_000, 0];
        net.faults.loss = 5;
        let peer = net.link(0, 1);
        for interface in 1..3 {
            net.nodes[0].endpoint.add_path(peer, Net::path(1, interface));
        }
        for number in 0..1000 {
            while net.send(0, peer, &[number as u8; 1400]).is_err() {
                net.step();
            }
        }
        net.run_until(|net| net.nodes[1].taken.len() == 1000);
        let counters = net.nodes[0].endpoint.counters();
        assert!(counters.timeouts < 30 && counters.frames_resent < 1000, "{counters:?}");
    }
}
