//! The UDP device does what every device must do, and also what only it does.

use bellwire::{Device, DeviceOptions, Error, Message, Result, Wait};
use bellwire_ethernet::testing::{enter_new_namespace, ip};
use bellwire_testkit::conformance::{self, Fixture, Node, Stage};
use bellwire_testkit::network::{Carrier, assert_frames_by};
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Nodes at loopback addresses, with ports that no other test uses. Loopback's MTU is longer than
/// any datagram, so frames are not segmented here. `frames_are_segmented` and the tests between
/// namespaces show that.
struct Udp {
    network: u32,
    port: u16,
    nodes: AtomicU32,
    /// The device name of another process's node.
    other: String,
}

fn udp() -> Udp {
    static COUNT: AtomicU16 = AtomicU16::new(0);
    // Each test has ports for 256 functions. Addresses differ between processes, so runs do not
    // meet.
    let port = 20_000 + 256 * (COUNT.fetch_add(1, Ordering::Relaxed) % 150);
    let network = 1 + std::process::id() % 120;
    let other = format!("udp:127.{network}.255.1?port={port}");
    Udp { network, port, nodes: AtomicU32::new(0), other }
}

impl Fixture for Udp {
    fn open(&self, options: &DeviceOptions) -> Result<Device> {
        let node = self.nodes.fetch_add(1, Ordering::Relaxed);
        let options = options.clone().setting("port", self.port);
        let (network, high, low) = (self.network, node / 250, 1 + node % 250);
        // A number that is an address is available only at that address.
        let own = options
            .node_asked()
            .filter(|node| node >> 16 == 127 << 8 | network)
            .map(Ipv4Addr::from);
        let address = own.map_or(format!("127.{network}.{high}.{low}"), |own| own.to_string());
        Device::open_with(&format!("udp:{address}"), &options)
    }

    fn name(&self) -> Option<&str> {
        Some(&self.other)
    }

    fn delivers_later(&self) -> bool {
        true
    }

    fn assert_way(&self, node: &Node) {
        assert_frames_by(Carrier::Udp, node);
    }
}

bellwire_testkit::conformance_tests!(udp);

/// Checks with a second process. Checks of several processes under one name are for devices of one
/// host.
mod process {
    use super::{conformance, udp};

    #[test]
    fn messages() {
        conformance::run(conformance::process::messages, &udp());
    }

    #[test]
    fn memory() {
        conformance::run(conformance::process::memory, &udp());
    }

    #[test]
    fn sleepers_wake_each_other() {
        conformance::run(conformance::process::sleepers_wake_each_other, &udp());
    }

    #[test]
    fn connections() {
        conformance::run(conformance::process::connections, &udp());
    }

    #[test]
    fn a_killed_peer() {
        conformance::run(conformance::process::a_killed_peer, &udp());
    }

    #[test]
    fn a_silent_peer() {
        conformance::run(conformance::process::a_silent_peer, &udp());
    }
}

/// A wrong key increments a counter at the target, and a region larger than the memory is refused.
mod host {
    use super::{conformance, udp};

    #[test]
    fn functions_as_configured() {
        conformance::run(conformance::host::functions_as_configured, &udp());
    }

    #[test]
    fn wrong_keys_are_counted() {
        conformance::run(conformance::host::wrong_keys_are_counted, &udp());
    }

    #[test]
    fn absurd_regions() {
        conformance::run(conformance::host::absurd_regions, &udp());
    }
}

/// A node's number is its address, or another one on request, and either is found by the name of
/// its host. An error lists what was tried.
#[test]
fn nodes_are_found_by_name() {
    let network = udp();
    let far = DeviceOptions::default().setting("port", network.port).node(77);
    let far = Device::open_with(&format!("udp:127.{}.9.9", network.network), &far).unwrap();
    assert_eq!(far.node(), 77);
    let near = Node::open(&network);
    let address: std::net::Ipv4Addr = near.device.node().into();
    assert_eq!(address.octets(), [127, network.network as u8, 0, 1]);
    let name = format!("127.{}.9.9", network.network);
    let error = near.device.lookup(&name, 0, Duration::from_millis(120)).unwrap_err();
    let told = error.to_string();
    assert!(matches!(error, Error::Unreachable { .. }) && told.contains(&name), "{told}");
    let error = near.device.lookup("no.such.host.invalid", 0, Duration::from_millis(50));
    assert!(error.unwrap_err().to_string().contains("no.such.host.invalid"));
    // Now another program has its function open, and polls it.
    let mut far = Node::of(far, 0, &Default::default());
    let found = std::thread::scope(|scope| {
        let asking = scope.spawn(|| near.device.lookup(&name, 0, Duration::from_secs(20)));
        while !asking.is_finished() {
            far.function.progress().unwrap();
        }
        asking.join().unwrap()
    });
    assert_eq!(found.unwrap(), 77);
    // From then on it is reached by that number.
    let to = far.address();
    assert_eq!(to.node, 77);
    let mut stage = Stage::with(&network, [near, far]);
    stage.nodes[1].receive(8, 0);
    let pair = stage.nodes[0].queue_pair;
    stage.nodes[0].function.post_send(pair, Message::inline(b"found").to(to)).unwrap();
    stage.success(1);
    stage.success(0);
}

/// A port has one owner, and an address of another host is refused with a reason.
#[test]
fn places_have_one_owner() {
    let network = udp();
    let first = Node::open(&network);
    let same = DeviceOptions::default().setting("port", network.port);
    let same = Device::open_with(first.device.name(), &same).unwrap();
    assert!(matches!(same.open_function(0), Err(Error::BadFunction { function: 0, .. })));
    same.open_function(1).unwrap();
    let foreign = Device::open("udp:192.0.2.1").unwrap_err().to_string();
    assert!(foreign.contains("not an address of this host"), "{foreign}");
    for bad in ["udp:", "udp:0.0.0.0", "udp:no.such.host.invalid"] {
        let told = Device::open(bad).unwrap_err().to_string();
        assert!(told.contains("names no device"), "{bad}: {told}");
    }
}

/// Weights, which this device does not support, are refused and not ignored.
#[test]
fn weights_are_refused() {
    let device = udp().open(&DeviceOptions::default()).unwrap();
    let options = bellwire::FunctionOptions::default().weight(17);
    let error = device.open_function_with(0, &options).unwrap_err();
    assert!(matches!(error, Error::OutOfRange { parameter: "weight", .. }), "{error}");
    assert!(error.to_string().contains("shm has weights"), "{error}");
    device.open_function(0).expect("nothing is left of it");
}

/// A capture holds every frame both ways, with headers that Wireshark can parse.
#[test]
fn captures_hold_both_ways() {
    let network = udp();
    let path = std::env::temp_dir().join(format!("bellwire-udp-{}.pcapng", std::process::id()));
    let options = DeviceOptions::default().setting("pcap", path.display());
    let watched = network.open(&options).unwrap();
    let nodes = [Node::of(watched, 0, &Default::default()), Node::open(&network)];
    let mut stage = Stage::with(&network, nodes);
    let to = stage.nodes[1].address();
    let pair = stage.nodes[0].queue_pair;
    for _ in 0..5 {
        stage.nodes[1].receive(16, 0);
        let send = Message::inline(b"captured message").to(to);
        stage.nodes[0].function.post_send(pair, send).unwrap();
        stage.success(1);
        stage.success(0);
    }
    stage.nodes.remove(0);
    let file = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap()) as usize;
    let (mut at, mut ways, mut messages) = (0, [0; 3], 0);
    while at < file.len() {
        if word(at) == 6 {
            let frame = &file[at + 28..][..word(at + 20)];
            assert_eq!((frame[0], frame[9]), (0x45, 17), "IPv4 and UDP");
            assert_eq!(frame[28], 0xb1, "a frame of the protocol");
            ways[file[at + word(at + 4) - 12] as usize] += 1;
            messages += usize::from(frame.windows(16).any(|bytes| bytes == b"captured message"));
        }
        at += word(at + 4);
    }
    assert!(ways[1] >= 2 && ways[2] >= 6, "received and sent: {ways:?}");
    assert!(messages >= 5, "each message, and some again: {messages}");
}

/// Nodes at a loopback interface of MTU 1500, where frames leave as segments of longer datagrams.
/// With its usual MTU they do not, because one frame is as long as a datagram can be.
struct Segmented {
    network: Udp,
    frames_segmented: AtomicU64,
    frames_coalesced: AtomicU64,
}

impl Fixture for Segmented {
    fn open(&self, options: &DeviceOptions) -> Result<Device> {
        self.network.open(options)
    }

    fn delivers_later(&self) -> bool {
        true
    }

    fn assert_way(&self, node: &Node) {
        self.network.assert_way(node);
        for (name, sum) in [
            ("frames_segmented", &self.frames_segmented),
            ("frames_coalesced", &self.frames_coalesced),
        ] {
            sum.fetch_add(node.device_counter(name).expect("it is counted"), Ordering::Relaxed);
        }
    }
}

/// Messages and puts of every size, and floods, go as segments that the kernel cuts and joins. It
/// refuses neither.
#[test]
fn frames_are_segmented() {
    enter_new_namespace()
        .and_then(|()| ip("link set lo mtu 1500\nlink set lo up"))
        .expect("NOT RUN: making a network namespace needs root, and ip of iproute2");
    for check in [
        conformance::message::every_size_and_memory,
        conformance::onesided::put_every_size_and_memory,
        conformance::flow::floods_both_ways,
    ] {
        let segmented = Segmented {
            network: udp(),
            frames_segmented: AtomicU64::new(0),
            frames_coalesced: AtomicU64::new(0),
        };
        conformance::run(check, &segmented);
        let Segmented { frames_segmented, frames_coalesced, .. } = segmented;
        let counts = [frames_segmented, frames_coalesced].map(AtomicU64::into_inner);
        assert!(counts.iter().all(|&count| count > 0), "segmented and coalesced: {counts:?}");
    }
}

/// A message wakes a sleeping receiver, also after a while without any.
#[test]
fn sleepers_are_woken() {
    let network = udp();
    let mut sleeper = Node::open(&network);
    let mut sender = Node::open(&network);
    let (to, pair) = (sleeper.address(), sender.queue_pair);
    std::thread::scope(|scope| {
        let sleeping = scope.spawn(move || {
            for _ in 0..5 {
                sleeper.receive(8, 0);
                let limit = Duration::from_secs(30);
                let done = sleeper.function.wait(sleeper.completions, Wait::Block, limit);
                assert!(done.expect("a message").status.is_success());
            }
        });
        for pause_ms in [0, 3, 40, 1, 200] {
            std::thread::sleep(Duration::from_millis(pause_ms));
            sender.function.post_send(pair, Message::inline(b"wake").to(to)).unwrap();
            let limit = Duration::from_secs(30);
            let done = sender.function.wait(sender.completions, Wait::Block, limit).unwrap();
            assert!(done.status.is_success());
        }
        while !sleeping.is_finished() {
            sender.function.progress().unwrap();
        }
    });
}
