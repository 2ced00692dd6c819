//! Networks that a test makes itself: hosts are network namespaces, wires are veth pairs, and
//! faults are injected.
//!
//! | module | what |
//! |---|---|
//! | `host` | a namespace, and running something in it |
//! | [`traffic`] | numbered messages, and the proof that each came once, whole and in order |
//! | [`relay`] | a host that loses, duplicates, damages and delays frames, or adds garbage |
//! | [`command`] | the command `bellwire` |
//! | [`hub`] | a bystander on a link that floods |
//! | `garbage` | the frames of a hostile neighbour |
//! | [`liar`] | a neighbour that tells wrong places of nodes |
//! | `socket` | packet sockets |
//!
//! Nothing here has a name outside of the process. A namespace vanishes with the last descriptor,
//! process and socket in it, and its wires with it, however a test ends.

pub mod command;
mod garbage;
mod host;
pub mod hub;
pub mod liar;
pub mod relay;
pub(crate) mod socket;
pub mod traffic;

pub use host::Host;

use crate::conformance::child::{DEVICE, PEER, Process, ROLE};
use crate::conformance::{Fixture, Node, Stage};
use bellwire::{Address, Device, DeviceOptions, Result};
use bellwire_ethernet::testing::ip;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What carries messages over a wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Carrier {
    /// `eth` by AF_PACKET.
    Packet,
    /// `eth` by AF_XDP.
    Xdp,
    /// `eth` by the way that it measures to be faster.
    Faster,
    /// `udp`.
    Udp,
}

/// All ways of frames and datagrams.
pub const CARRIERS: [Carrier; 3] = [Carrier::Packet, Carrier::Xdp, Carrier::Udp];

/// Name of each host's interface.
pub const WIRE: &str = "wire";

/// Name of each host's second interface, where hosts have two.
pub const SECOND: &str = "second";

/// Hosts that reach each other, each with one interface called [`WIRE`].
pub struct Network {
    /// What carries messages.
    pub carrier: Carrier,
    /// The interfaces that `eth` uses, in the form of its device's name.
    interfaces: &'static str,
    /// The hosts; the first has the IP address 10.9.0.1, and so on.
    pub hosts: Vec<Host>,
    /// The bridge between them, if there is one.
    switch: Option<Host>,
    opened: AtomicUsize,
}

impl Network {
    fn new(carrier: Carrier, hosts: Vec<Host>, switch: Option<Host>) -> Network {
        for (number, host) in hosts.iter().enumerate() {
            let own = ip_of(number);
            host.run(|| ip(&format!("addr add {own}/24 dev {WIRE}\nlink set {WIRE} up")))
                .expect("an interface with an address");
        }
        Network { carrier, interfaces: WIRE, hosts, switch, opened: AtomicUsize::new(0) }
    }

    /// Two hosts at both ends of two veth pairs, the second with addresses from 10.9.1.1 on. `eth`
    /// uses both, `udp` the first.
    pub fn doubled(carrier: Carrier) -> Network {
        let network = Network { interfaces: "wire+second", ..Network::pair(carrier) };
        network.hosts[0].wire(SECOND, &network.hosts[1], SECOND);
        for (number, host) in network.hosts.iter().enumerate() {
            let [a, b, _, d] = ip_of(number).octets();
            let own = Ipv4Addr::new(a, b, 1, d);
            host.run(|| ip(&format!("addr add {own}/24 dev {SECOND}\nlink set {SECOND} up")))
                .expect("an interface with an address");
        }
        network
    }

    /// The kernel's count of frames that an interface of host `number` has sent.
    pub fn frames_sent(&self, number: usize, interface: &str) -> u64 {
        self.kernel_counts(number, interface, 9)
    }

    /// The kernel's count of frames that an interface of host `number` has received.
    pub fn frames_received(&self, number: usize, interface: &str) -> u64 {
        self.kernel_counts(number, interface, 1)
    }

    /// The kernel's count of frames that an interface of host `number` has received and that no
    /// protocol wanted.
    pub fn frames_unwanted(&self, number: usize, interface: &str) -> u64 {
        self.kernel_counts(number, interface, 3)
    }

    /// A number of proc(5), net/dev: eight of receiving, then eight of sending, bytes and frames
    /// first.
    fn kernel_counts(&self, number: usize, interface: &str, place: usize) -> u64 {
        // Of this thread's namespace.
        let table = self.hosts[number].run(|| std::fs::read_to_string("/proc/thread-self/net/dev"));
        let table = table.expect("the kernel counts");
        let row =
            table.lines().find_map(|row| row.trim().strip_prefix(interface)?.strip_prefix(':'));
        let row = row.unwrap_or_else(|| panic!("{interface} is not in {table}"));
        row.split_whitespace().nth(place).and_then(|count| count.parse().ok()).expect("a number")
    }

    /// Two hosts at both ends of a veth pair.
    pub fn pair(carrier: Carrier) -> Network {
        let [near, far] = [Host::new(), Host::new()];
        near.wire(WIRE, &far, WIRE);
        Network::new(carrier, vec![near, far], None)
    }

    /// Two hosts, with a third one between them that forwards frames as `faults` say.
    pub fn relayed(carrier: Carrier, faults: relay::Faults) -> (Network, relay::Relay) {
        let [near, middle, far] = [Host::new(), Host::new(), Host::new()];
        for (host, port) in [(&near, "near"), (&far, "far")] {
            host.wire(WIRE, &middle, port);
            // The relay must handle frames as they are on a real wire, not segmented bundles.
            host.run(|| ip(&format!("link set {WIRE} gso_max_segs 1"))).expect("an option");
        }
        middle.run(|| ip("link set near up\nlink set far up")).expect("both ports");
        let relay = middle.run(|| relay::Relay::start(["near", "far"], faults));
        (Network::new(carrier, vec![near, far], Some(middle)), relay)
    }

    /// Hosts around a bridge.
    pub fn bridged(carrier: Carrier, count: usize) -> Network {
        Self::around("bridge", carrier, count)
    }

    /// Hosts around a hub: a bridge that forgets learned addresses at once, so that it sends each
    /// frame to all.
    pub fn hub(carrier: Carrier, count: usize) -> Network {
        Self::around("bridge ageing_time 0", carrier, count)
    }

    fn around(kind: &str, carrier: Carrier, count: usize) -> Network {
        let switch = Host::new();
        switch
            .run(|| ip(&format!("link add bridge type {kind}\nlink set bridge up")))
            .expect("a bridge");
        let hosts: Vec<Host> = (0..count)
            .map(|number| {
                let (host, port) = (Host::new(), format!("p{number}"));
                switch.wire(&port, &host, WIRE);
                switch
                    .run(|| ip(&format!("link set {port} master bridge\nlink set {port} up")))
                    .expect("a port of the bridge");
                host
            })
            .collect();
        Network::new(carrier, hosts, Some(switch))
    }

    /// Name of the device of host `number`.
    pub fn device(&self, number: usize) -> String {
        match self.carrier {
            Carrier::Packet => format!("eth:{}?io=packet", self.interfaces),
            Carrier::Xdp => format!("eth:{}?io=xdp", self.interfaces),
            Carrier::Faster => format!("eth:{}", self.interfaces),
            Carrier::Udp => format!("udp:{}", ip_of(number)),
        }
    }

    /// Function 0 on host `number`.
    pub fn node(&self, number: usize) -> Node {
        let open = || {
            let device = Device::open(&self.device(number)).expect("a node opens");
            Node::of(device, 0, &Default::default())
        };
        let node = self.hosts[number].run(open);
        match self.carrier {
            Carrier::Packet => assert_way(&node.device, "packet"),
            Carrier::Xdp => assert_way(&node.device, "xdp"),
            Carrier::Faster | Carrier::Udp => {}
        }
        node
    }

    /// One node on each host, driven by this thread.
    pub fn stage(&self) -> Stage<'_> {
        let mut stage = Stage::with(self, (0..self.hosts.len()).map(|number| self.node(number)));
        stage.case = format!("{:?}", self.carrier);
        stage
    }

    /// A process on host `number` that greets `peer` and returns every message.
    pub fn echo(&self, number: usize, peer: Address) -> Process {
        let (device, peer) = (self.device(number), peer.to_string());
        let environment = [(ROLE, "echo"), (DEVICE, &device), (PEER, &peer)];
        self.hosts[number].run(|| Process::start("process", &environment))
    }

    /// Runs commands of ip(8) on host `number`.
    #[track_caller]
    pub fn ip(&self, number: usize, commands: &str) {
        self.hosts[number].run(|| ip(commands)).expect("it can be done");
    }

    /// Removes a host: its namespace vanishes with the last process in it, and then its wire.
    pub fn remove_last(&mut self) {
        self.hosts.pop();
        self.switch = None;
    }
}

/// Panics unless the frames of a device's newest function go by `way`, as requested, on each of its
/// interfaces.
#[track_caller]
pub fn assert_way(device: &Device, way: &str) {
    let told = device.describe();
    let name = format!("AF_{}", way.to_uppercase());
    let right = |interface: &str| {
        let (by, why) = interface.split_once(", because ").unwrap_or((interface, ""));
        by.contains(&format!(", by {name}")) && why == "it was asked for"
    };
    assert!(told.split(" + ").all(right), "not by {name}: {told}");
}

/// Panics if the counters of a node say that frames went by another way than `carrier`. Received
/// frames passed the XDP program, or came by system calls instead of from a mapped ring. Sent ones
/// went one by one, because the kernel refused to segment, or because they were never segmented.
#[track_caller]
pub fn assert_frames_by(carrier: Carrier, node: &Node) {
    let count = |name| {
        node.device_counter(name).unwrap_or_else(|| panic!("{carrier:?} has no counter {name}"))
    };
    let none = match carrier {
        Carrier::Packet => "receive_calls",
        Carrier::Xdp | Carrier::Faster => "frames_past_xdp",
        Carrier::Udp => "segments_refused",
    };
    let told = &node.device;
    assert_eq!(count(none), 0, "{none} of {}, by {carrier:?}", told.describe());
    if carrier == Carrier::Udp && cuts_messages(node) {
        assert!(count("frames_segmented") > 0, "nothing is segmented: {:?}", node.counters());
    }
}

/// Whether a node must have had the kernel segment: its messages were long, and took many frames.
/// At the MTU of loopback it need not, since a datagram holds one full frame.
fn cuts_messages(node: &Node) -> bool {
    const LONGEST_DATAGRAM: u64 = 65_535;
    let told = node.device.describe();
    let (_, mtu) = told.split_once("MTU ").unwrap_or_else(|| panic!("no MTU in {told}"));
    let mtu: u64 = mtu.split(' ').next().and_then(|mtu| mtu.parse().ok()).expect("a number");
    let total = node.counters().total;
    let (bytes, count) = (total.bytes_sent + total.put_bytes, total.messages_sent + total.puts);
    2 * mtu <= LONGEST_DATAGRAM && count > 0 && bytes / count >= 10 * mtu
}

/// IP address of host `number`.
pub fn ip_of(number: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 9, 0, number as u8 + 1)
}

impl Fixture for Network {
    fn open(&self, options: &DeviceOptions) -> Result<Device> {
        let number = self.opened.fetch_add(1, Ordering::Relaxed);
        let name = self.device(number);
        let bare = name.split('?').next().unwrap_or(&name);
        self.hosts[number].run(|| Device::open_with(bare, options))
    }

    fn delivers_later(&self) -> bool {
        true
    }

    fn assert_way(&self, node: &Node) {
        assert_frames_by(self.carrier, node);
    }
}
