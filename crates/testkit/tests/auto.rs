//! `auto` does what every device must do, by every way to a peer, and takes the right way for each.

use bellwire::{Device, DeviceOptions, Error, Message, Operation};
use bellwire_testkit::conformance::bytes::pattern;
use bellwire_testkit::conformance::child::{DEVICE, PEER, Process, ROLE};
use bellwire_testkit::conformance::stage::{A, B};
use bellwire_testkit::conformance::{self, Node, Patience, Stage};
use bellwire_testkit::network::{Carrier, Network, WIRE, ip_of};
use bellwire_testkit::ways::Auto;
use std::time::Duration;

/// All peers are on this host.
mod near {
    use super::Auto;

    fn auto() -> Auto {
        Auto::new(false)
    }

    bellwire_testkit::conformance_tests!(auto);
}

/// Peers are reached by memory and by UDP, alternately.
mod mixed {
    use super::Auto;

    fn auto() -> Auto {
        Auto::new(true)
    }

    bellwire_testkit::conformance_tests!(auto);
}

/// Checks with a second process.
mod process {
    use super::{Auto, conformance};

    #[test]
    fn messages() {
        conformance::run(conformance::process::messages, &Auto::new(false));
    }

    #[test]
    fn memory() {
        conformance::run(conformance::process::memory, &Auto::new(false));
    }

    #[test]
    fn sleepers_wake_each_other() {
        conformance::run(conformance::process::sleepers_wake_each_other, &Auto::new(false));
    }

    #[test]
    fn connections() {
        conformance::run(conformance::process::connections, &Auto::new(false));
    }

    #[test]
    fn a_killed_peer() {
        conformance::run(conformance::process::a_killed_peer, &Auto::new(false));
    }
}

/// Promises of devices of one host only.
mod host {
    use super::{Auto, conformance};

    #[test]
    fn functions_as_configured() {
        conformance::run(conformance::host::functions_as_configured, &Auto::new(false));
    }

    #[test]
    fn weights_share_the_receiver() {
        conformance::run(conformance::host::weights_share_the_receiver, &Auto::new(false));
    }

    #[test]
    fn wrong_keys_are_counted() {
        conformance::run(conformance::host::wrong_keys_are_counted, &Auto::new(false));
        conformance::run(conformance::host::wrong_keys_are_counted, &Auto::new(true));
    }

    #[test]
    fn absurd_regions() {
        conformance::run(conformance::host::absurd_regions, &Auto::new(false));
    }
}

/// What a node tells of its peers: how many it reaches by memory, and by the network.
fn told(node: &Node) -> (usize, usize) {
    let text = node.device.describe();
    let counts: Vec<usize> = text
        .split(" now)")
        .filter_map(|part| {
            let digits = part.rsplit(|c: char| !c.is_ascii_digit()).next()?;
            digits.parse().ok()
        })
        .collect();
    assert_eq!(counts.len(), 2, "{text}");
    (counts[0], counts[1])
}

/// A message from each node to each other.
#[track_caller]
fn all_talk(stage: &mut Stage<'_>) {
    for from in 0..stage.nodes.len() {
        for to in (0..stage.nodes.len()).filter(|&to| to != from) {
            let bytes = pattern((from * 7 + to) as u64, 2_000);
            stage.nodes[to].receive(2_000, 0);
            let address = stage.nodes[to].address();
            let pair = stage.nodes[from].queue_pair;
            let send = Message::buffer(bytes.clone()).to(address);
            stage.nodes[from].function.post_send(pair, send).expect("room");
            let done = stage.success(to);
            assert!(done.buffer.expect("its buffer").into_bytes(2_000) == bytes, "{from} to {to}");
            stage.success(from);
        }
    }
}

/// Each pair of peers takes the way that both can take, and reports it.
#[test]
fn each_peer_is_reached_by_its_own_way() {
    let fixture = Auto::new(true);
    let nodes = ["auto:udp", "auto:udp", "udp", "auto:udp"].into_iter().enumerate();
    let open = |(number, kind): (usize, &str)| {
        let device = fixture.node(kind, number as u32, &DeviceOptions::default());
        Node::of(device.expect("a node opens"), 0, &Default::default())
    };
    let mut stage = Stage::with(&fixture, nodes.map(open));
    all_talk(&mut stage);
    for who in [0, 1, 3] {
        assert_eq!(told(&stage.nodes[who]), (2, 1), "{}", stage.nodes[who].device.describe());
    }
    let limits = stage.nodes[0].function.limits();
    assert!(limits.packet_bytes <= stage.nodes[2].function.limits().packet_bytes);
}

/// A peer that comes up while it is sought is reached by memory, whichever side asks first. A peer
/// that comes again as another kind is reached by the other way.
#[test]
fn the_way_is_found_anew_for_each_life() {
    let fixture = Auto::new(true);
    let options = DeviceOptions::default();
    let near = fixture.node("auto:udp", 0, &options).expect("a node opens");
    let mut stage = Stage::with(&fixture, [Node::of(near, 0, &Default::default())]);
    for (life, kind) in ["auto:udp", "udp", "auto:udp", "auto:udp", "udp"].into_iter().enumerate() {
        let device = fixture.node(kind, 1, &options).expect("a node opens");
        // Requested before the peer is there: the post begins to seek it.
        let to = bellwire::Address::new(device.node(), 0, 1);
        let pair = stage.nodes[A].queue_pair;
        let send = Message::inline(b"early").to(to);
        stage.nodes[A].function.post_send(pair, send).expect("room");
        stage.nodes.push(Node::of(device, 0, &Default::default()));
        stage.nodes[B].receive(5, 0);
        stage.success(B);
        stage.success(A);
        all_talk(&mut stage);
        let expected = if kind == "udp" { (0, 1) } else { (1, 0) };
        let mut patience = Patience::new();
        while told(&stage.nodes[A]) != expected {
            stage.nodes[A].function.progress().expect("progress");
            patience.spend(|| format!("life {life}: {}", stage.nodes[A].device.describe()));
        }
        stage.nodes.remove(B);
        // Waits until its end is noticed; otherwise the next life would get the report.
        let mut patience = Patience::new();
        while told(&stage.nodes[A]) != (0, 0) {
            stage.nodes[A].function.progress().expect("progress");
            patience.spend(|| format!("life {life}: {}", stage.nodes[A].device.describe()));
        }
    }
}

/// Messages that are posted together leave at the end of the call, by memory and by UDP.
#[test]
fn a_list_leaves_at_its_end() {
    for mixed in [false, true] {
        let fixture = Auto::new(mixed);
        conformance::batch::a_list_leaves_at_its_end(&mut Stage::pair(&fixture));
    }
}

/// A function has one owner on the host. Invalid names are refused, and so is what the network
/// refuses.
#[test]
fn bad_names_and_taken_functions_are_refused() {
    let fixture = Auto::new(false);
    let first = Node::open(&fixture);
    let options = DeviceOptions::default().setting("port", fixture.port);
    let same = Device::open_with(first.device.name(), &options).expect("the same node");
    assert!(matches!(same.open_function(0), Err(Error::BadFunction { function: 0, .. })));
    same.open_function(1).expect("another function");
    for bad in ["auto:", "auto:udp", "auto:udp:", "auto:shm:job", "auto:auto:udp:127.0.0.1"] {
        let told = Device::open(bad).expect_err("no such device").to_string();
        assert!(told.contains("names no device") && told.contains("auto:"), "{bad}: {told}");
    }
    let foreign = Device::open("auto:udp:192.0.2.1").expect_err("not ours").to_string();
    assert!(foreign.contains("not an address of this host"), "{foreign}");
}

/// Waits for the greeting of an echo.
#[track_caller]
fn greeting(node: &mut Node) -> bellwire::Address {
    node.receive(48, 0);
    let mut patience = Patience::new();
    loop {
        match node.poll() {
            Some(done) if done.operation == Operation::Receive => return done.peer,
            Some(done) => panic!("{done:?}"),
            None => patience.spend(|| "the other process says nothing".into()),
        }
    }
}

/// Sends messages to an echo and gets them back; the last one ends it.
#[track_caller]
fn talk(node: &mut Node, peer: bellwire::Address) {
    for (number, length) in [8, 5_000, 100_000].into_iter().enumerate() {
        let bytes = pattern(number as u64, length);
        node.receive(length, 0);
        let send = Message::buffer(bytes.clone()).to(peer).immediate(1);
        node.function.post_send(node.queue_pair, send).expect("room");
        let mut patience = Patience::new();
        let (mut sent, mut back) = (false, false);
        while !(sent && back) {
            let Some(done) = node.poll() else {
                patience.spend(|| format!("no answer from {peer}"));
                continue;
            };
            assert!(done.status.is_success(), "{done:?}");
            if done.operation == Operation::Receive {
                assert!(done.buffer.expect("its buffer").into_bytes(done.length) == bytes);
                back = true;
            } else {
                sent = true;
            }
        }
    }
}

/// A process on another host of the network, or one on this host with a second address of it.
fn echo(network: &Network, host: usize, device: &str, peer: bellwire::Address) -> Process {
    let peer = peer.to_string();
    let environment = [(ROLE, "echo"), (DEVICE, device), (PEER, &peer)];
    network.hosts[host].run(|| Process::start("process", &environment))
}

/// Function 0 of a device in the namespace of this thread.
fn open(device: &str) -> Node {
    Node::of(Device::open(device).expect("a node opens"), 0, &Default::default())
}

/// Between hosts: a process on our host is reached by memory, and one on another host by the
/// network, at the same time.
#[test]
fn one_peer_is_here_and_one_elsewhere() {
    let network = Network::pair(Carrier::Udp);
    network.ip(0, &format!("addr add 10.9.0.11/24 dev {WIRE}"));
    network.hosts[0].run(|| {
        let mut node = open(&format!("auto:udp:{}", ip_of(0)));
        let to = node.address();
        let _here = echo(&network, 0, "auto:udp:10.9.0.11", to);
        let here = greeting(&mut node);
        talk(&mut node, here);
        let _there = echo(&network, 1, &format!("auto:udp:{}", ip_of(1)), to);
        let there = greeting(&mut node);
        talk(&mut node, there);
        talk(&mut node, here);
        assert_eq!(told(&node), (1, 1), "{}", node.device.describe());
    });
}

/// The same over frames, where functions of one interface are peers.
#[test]
fn functions_of_one_interface_meet_in_memory() {
    let network = Network::pair(Carrier::Packet);
    let name = format!("auto:eth:{WIRE}?io=packet");
    network.hosts[0].run(|| {
        let mut first = open(&name);
        let _there = echo(&network, 1, &name, first.address());
        let peer = greeting(&mut first);
        talk(&mut first, peer);
        let second = Device::open(&name).expect("a node opens");
        let nodes = [first, Node::of(second, 1, &Default::default())];
        let mut stage = Stage::with(&network, nodes);
        all_talk(&mut stage);
        assert_eq!(told(&stage.nodes[0]), (1, 1), "{}", stage.nodes[0].device.describe());
        assert_eq!(told(&stage.nodes[1]), (1, 0), "{}", stage.nodes[1].device.describe());
    });
}

/// Another host has the node number of a process here. It is refused while that process lives. If
/// it was looked up by its address, it is the one that is reached.
#[test]
fn another_host_with_the_same_number_is_not_confused() {
    const NUMBER: u32 = 4711;
    let network = Network::pair(Carrier::Udp);
    network.ip(0, &format!("addr add 10.9.0.11/24 dev {WIRE}"));
    let here = format!("auto:udp:10.9.0.11?node={NUMBER}");
    let there = format!("auto:udp:{}?node={NUMBER}", ip_of(1));
    network.hosts[0].run(|| {
        let mut node = open(&format!("auto:udp:{}", ip_of(0)));
        let _here = echo(&network, 0, &here, node.address());
        let peer = greeting(&mut node);
        assert_eq!(peer.node, NUMBER);
        // The own process's greeting was taken. The greeting of a process elsewhere that claims its
        // number is not.
        node.receive(48, 0);
        let impostor = echo(&network, 1, &there, node.address());
        let patience = Patience::of(Duration::from_secs(4));
        while !patience.is_over() {
            if let Some(done) = node.poll() {
                panic!("the impostor was heard: {done:?}");
            }
            std::thread::sleep(Duration::from_micros(50));
        }
        drop(impostor);
        talk_with_posted(&mut node, peer);
        assert_eq!(told(&node), (1, 0), "{}", node.device.describe());
    });
    network.hosts[0].run(|| {
        let port = "&port=30000";
        let mut node = open(&format!("auto:udp:{}?port=30000", ip_of(0)));
        let to = node.address();
        let _there = echo(&network, 1, &format!("{there}{port}"), to);
        let host = ip_of(1).to_string();
        let found = node.device.lookup(&host, 0, Duration::from_secs(30)).expect("it answers");
        assert_eq!(found, NUMBER);
        let _here = echo(&network, 0, &format!("{here}{port}"), to);
        let peer = greeting(&mut node);
        talk(&mut node, peer);
        assert_eq!(told(&node), (0, 1), "{}", node.device.describe());
    });
}

/// Like [`talk`], with a receive still posted that no message came for.
fn talk_with_posted(node: &mut Node, peer: bellwire::Address) {
    let send = Message::buffer(pattern(5, 48)).to(peer).immediate(1);
    node.function.post_send(node.queue_pair, send).expect("room");
    let mut patience = Patience::new();
    let mut back = 0;
    while back < 2 {
        match node.poll() {
            Some(done) => {
                assert!(done.status.is_success(), "{done:?}");
                back += 1;
            }
            None => patience.spend(|| "no answer".into()),
        }
    }
    talk(node, peer);
}
