//! Several interfaces carry one channel: `eth:ONE+ANOTHER`. Two hosts with two wires between them,
//! in networks that the tests make themselves, for which they need root and iproute2.

use bellwire::{Device, Error};
use bellwire_testkit::conformance::{Node, Stage};
use bellwire_testkit::network::traffic::Traffic;
use bellwire_testkit::network::{Carrier, Network, SECOND, WIRE};
use std::time::{Duration, Instant};

const BOTH: [&str; 2] = [WIRE, SECOND];

/// By both ways of frames.
const CARRIERS: [Carrier; 2] = [Carrier::Packet, Carrier::Xdp];

/// Frames that each interface of a host has sent since the counts `before`.
fn sent(network: &Network, host: usize, before: [u64; 2]) -> [u64; 2] {
    let now = BOTH.map(|interface| network.frames_sent(host, interface));
    [0, 1].map(|number| now[number] - before[number])
}

/// Sends this many further messages both ways.
#[track_caller]
fn exchange(stage: &mut Stage<'_>, traffic: &mut Traffic, messages: u64) {
    traffic.messages += messages;
    traffic.finish(stage);
}

/// Frames of one pair of queue pairs use both interfaces about equally, though only one place of
/// the peer is known at first. Every message comes once, whole and in order.
// shows: H-29
#[test]
fn one_channel_goes_by_both_interfaces() {
    for carrier in CARRIERS {
        let network = Network::doubled(carrier);
        let (mut stage, mut traffic) = (network.stage(), Traffic::both_ways(20));
        traffic.finish(&mut stage);
        let since = Instant::now();
        for host in [0, 1] {
            // For a second, an interface that was just switched on, or that has lost a frame,
            // carries few frames.
            loop {
                let before = sent(&network, host, [0; 2]);
                exchange(&mut stage, &mut traffic, 50);
                let [first, second] = sent(&network, host, before);
                if first.min(second) > 100 && first.max(second) < 2 * first.min(second) {
                    break;
                }
                let late = since.elapsed() > Duration::from_secs(60);
                assert!(!late, "{carrier:?}: {first} and {second} frames; {}", stage.story());
            }
        }
    }
}

/// An interface goes down in the middle of a transfer: the other one carries on, and nothing is
/// lost or duplicated. When it is up again, frames use it again. The same with the other one, at
/// the other host.
// shows: H-29
#[test]
fn one_interface_goes_down_and_the_other_carries_on() {
    for carrier in CARRIERS {
        let network = Network::doubled(carrier);
        let (mut stage, mut traffic) = (network.stage(), Traffic::both_ways(20));
        traffic.finish(&mut stage);
        for (host, interface) in [(1, 1), (0, 0)] {
            let half = traffic.received() + 200;
            traffic.messages += 200;
            traffic.until(&mut stage, |traffic| traffic.received() >= half);
            network.ip(host, &format!("link set {} down", BOTH[interface]));
            // All remaining messages arrive while it is down.
            traffic.finish(&mut stage);
            network.ip(host, &format!("link set {} up", BOTH[interface]));
            let since = Instant::now();
            let before = sent(&network, 0, [0; 2]);
            while sent(&network, 0, before)[interface] < 100 {
                exchange(&mut stage, &mut traffic, 5);
                assert!(since.elapsed() < Duration::from_secs(60), "it is not used again");
            }
        }
    }
}

/// A node with two interfaces and one with only the first of these talk, and find each other by IP
/// address.
#[test]
fn a_peer_with_one_interface_is_reached_by_that() {
    for address in ["10.9.0.2", "10.9.1.2"] {
        let network = Network::doubled(Carrier::Packet);
        let near = network.node(0);
        let name = if address == "10.9.0.2" { "eth:wire" } else { "eth:second" };
        let far = network.hosts[1].run(|| {
            let device = Device::open(&format!("{name}?io=packet")).expect("a node opens");
            Node::of(device, 0, &Default::default())
        });
        let mut stage = Stage::with(&network, [near, far]);
        stage.case = address.into();
        let device = network.hosts[0].run(|| Device::open("eth:wire+second?io=packet"));
        let (device, node) = (device.expect("it opens"), stage.nodes[1].address().node);
        let found = std::thread::scope(|scope| {
            let asking = scope.spawn(|| {
                network.hosts[0].run(|| device.lookup(address, 0, Duration::from_secs(10)))
            });
            while !asking.is_finished() {
                stage.nodes[1].function.progress().expect("progress");
            }
            asking.join().expect("no panic")
        });
        assert_eq!(found.expect("it answers"), node);
        Traffic::both_ways(20).finish(&mut stage);
    }
}

/// Invalid names are refused with the reason.
#[test]
fn bad_names_are_refused() {
    let network = Network::doubled(Carrier::Packet);
    let open = |name: &str| network.hosts[0].run(|| Device::open(name)).expect_err("it is refused");
    for (name, why) in [
        ("eth:wire+wire", "named twice"),
        ("eth:wire+second+a+b+c", "4 interfaces at most"),
        ("eth:wire+second?fd=3", "for one interface"),
    ] {
        let error = open(name);
        assert!(matches!(error, Error::BadDeviceName { .. }), "{name}: {error}");
        assert!(error.to_string().contains(why), "{name}: {error}");
    }
    let error = open("eth:wire+none").to_string();
    assert!(error.contains("the interface none cannot be used"), "{error}");
    network.ip(0, "link set second down");
    let error = open("eth:wire+second").to_string();
    assert!(error.contains("the interface second is down"), "{error}");
}
