//! Fixtures of devices that have several ways to a peer. Each says by which way its checks must go,
//! and fails if one went by another.

use crate::conformance::{Fixture, Named, Node};
use bellwire::{Device, DeviceOptions, Result};
use std::net::Ipv4Addr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

/// The shared-memory device, and whether the kernel copies between processes for it.
pub struct Shm {
    named: Named,
    attaches: bool,
}

impl Shm {
    /// Peers' memory is mapped, or copied by the kernel.
    ///
    /// # Panics
    /// If the kernel refuses to copy.
    pub fn attaching() -> Shm {
        let shm = Shm { named: Named::new("shm"), attaches: true };
        let told = shm.open(&DeviceOptions::default()).expect("a node opens").describe();
        assert!(told.contains(", cross-memory attach for memory"), "NOT RUN: {told}");
        shm
    }

    /// For a thread that the kernel refuses to copy for.
    pub fn refused() -> Shm {
        Shm { named: Named::new("shm"), attaches: false }
    }
}

impl Fixture for Shm {
    fn open(&self, options: &DeviceOptions) -> Result<Device> {
        self.named.open(options)
    }

    fn name(&self) -> Option<&str> {
        self.named.name()
    }

    fn assert_opened(&self, device: &Device) {
        let told = device.describe();
        assert_eq!(self.attaches, told.contains(", cross-memory attach for memory"), "{told}");
    }

    /// With the kernel's copies no region is reached by packets. Without them none is attached.
    /// Either way a peer maps what the library allocated. Every check that reaches memory reaches
    /// such memory, so some is mapped. How a region was reached is forgotten when its peer is lost,
    /// and when an access fails.
    fn assert_way(&self, node: &Node) {
        let [mapped, attached, by_packet] = regions(node);
        let counters = node.counters();
        let (function, total) = (counters.function, counters.total);
        if self.attaches {
            let served = function.served_puts + function.served_gets;
            assert_eq!((by_packet, served), (0, 0), "regions and accesses by packet: {function:?}");
        } else {
            assert_eq!(attached, 0, "regions that the kernel copies to and from");
        }
        let accesses = total.puts + total.gets + total.atomics;
        if accesses > 0 && (function.links_lost, total.sends_failed) == (0, 0) {
            assert!(mapped > 0, "nothing is mapped, {attached} attached, {by_packet} by packet");
        }
    }
}

/// The regions of peers that a node has used: mapped, attached, and by packet.
pub fn regions(node: &Node) -> [u64; 3] {
    ["regions_mapped", "regions_attached", "regions_by_packet"]
        .map(|name| node.device_counter(name).expect("it is counted"))
}

/// Nodes of `auto` over `udp` at loopback addresses, with ports that no other test uses.
pub struct Auto {
    network: u32,
    /// The port of its functions.
    pub port: u16,
    nodes: AtomicU32,
    /// Every second node is one of `udp` alone, which no peer reaches by memory.
    mixed: bool,
    /// The device name of another process's node.
    other: String,
    asked: Mutex<Asked>,
}

/// The functions that were asked by which way they reached their peers.
#[derive(Default)]
struct Asked {
    /// Functions of `auto`, and of `udp` alone.
    functions: [u64; 2],
    /// Most peers that one of `auto` reached by memory, and by the network.
    most: [u64; 2],
}

impl Auto {
    /// All nodes are of `auto`, or every second one.
    pub fn new(mixed: bool) -> Auto {
        /// Networks for processes. Those that share one begin with different ports.
        const NETWORKS: u32 = 120;
        /// Ports for nodes of a process, and how many of them lie between two processes.
        const PORTS: u32 = 150;
        const APART: u32 = 37;
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let process = std::process::id();
        let count = COUNT.fetch_add(1, Ordering::Relaxed) + process / NETWORKS * APART;
        let port = 20_000 + 256 * (count % PORTS) as u16;
        let network = 1 + process % NETWORKS;
        let other = format!("auto:udp:127.{network}.254.1?port={port}");
        Auto { network, port, nodes: AtomicU32::new(0), mixed, other, asked: Mutex::default() }
    }

    fn address(&self, node: u32) -> String {
        format!("127.{}.{}.{}", self.network, 100 + node / 250, 1 + node % 250)
    }

    /// A node with this kind of device.
    ///
    /// # Errors
    /// What [`Device::open_with`] says.
    pub fn node(&self, kind: &str, number: u32, options: &DeviceOptions) -> Result<Device> {
        let options = options.clone().setting("port", self.port);
        // A number that is an address is available only at that address.
        let own = options.node_asked().filter(|node| node >> 16 == 127 << 8 | self.network);
        let own = own.map(|own| Ipv4Addr::from(own).to_string());
        let address = own.unwrap_or_else(|| self.address(number));
        Device::open_with(&format!("{kind}:{address}"), &options)
    }
}

impl Fixture for Auto {
    fn open(&self, options: &DeviceOptions) -> Result<Device> {
        let node = self.nodes.fetch_add(1, Ordering::Relaxed);
        let kind = if self.mixed && node % 2 == 1 { "udp" } else { "auto:udp" };
        self.node(kind, node, options)
    }

    fn name(&self) -> Option<&str> {
        Some(&self.other)
    }

    /// Regions of peers that are reached by memory are reached by no packet.
    fn assert_way(&self, node: &Node) {
        let mut asked = self.asked.lock().expect("nobody panicked");
        let Some(near) = node.device_counter("peers_by_shared_memory") else {
            asked.functions[1] += 1;
            return;
        };
        let far = node.device_counter("peers_by_network").expect("it is counted");
        let by_packet = node.device_counter("shm_regions_by_packet");
        assert_eq!(by_packet, Some(0), "{}", node.device.describe());
        asked.functions[0] += 1;
        asked.most = [asked.most[0].max(near), asked.most[1].max(far)];
    }
}

/// A peer of `auto` is reached by memory, and one of `udp` by the network. So no node has more
/// peers by either way than there are functions of that kind. A link to itself has two ends.
impl Drop for Auto {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let Asked { functions, most } = self.asked.get_mut().expect("nobody panicked");
            let right = most[0] <= functions[0] + 1 && most[1] <= functions[1];
            assert!(right, "{most:?} peers by memory and network, {functions:?} functions");
        }
    }
}
