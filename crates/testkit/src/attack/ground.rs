//! Where an attack happens: addresses of loopback, or hosts around a bridge.

use super::station::Station;
use crate::conformance::{Fixture, Node, Stage};
use crate::network::{Carrier, Network, WIRE, assert_frames_by};
use bellwire::{Device, DeviceOptions, Result};
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU32, Ordering};

/// The place of the function that is attacked.
pub const VICTIM: usize = 0;
/// The place of the honest peer.
pub const PEER: usize = 1;
/// The place of the hostile station.
pub const HOSTILE: usize = 2;
/// A place for another honest peer.
pub const SPARE: usize = 3;
/// Number of the third node of a stage, which is opened later than the first two.
pub const NEWCOMER: usize = 2;
const PLACES: usize = 4;

/// First two bytes of the Ethernet addresses of honest hosts.
const OUI: [u8; 2] = [0x02, 0xb0];

/// Four places that reach each other.
pub struct Ground {
    /// What carries frames.
    pub carrier: Carrier,
    /// Tells this ground from all others of this process.
    number: u32,
    /// The hosts, unless the carrier is UDP.
    network: Option<Network>,
}

impl Ground {
    /// A new one. UDP needs nothing for it; Ethernet needs root.
    pub fn new(carrier: Carrier) -> Ground {
        static COUNT: AtomicU32 = AtomicU32::new(1);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        assert!(number < 128, "each ground has addresses of its own");
        let network = (carrier != Carrier::Udp).then(|| Network::bridged(carrier, PLACES));
        let ground = Ground { carrier, number, network };
        if let Some(network) = &ground.network {
            for place in 0..PLACES {
                let mac = ground.mac(place).map(|byte| format!("{byte:02x}")).join(":");
                network.ip(place, &format!("link set {WIRE} address {mac}"));
            }
        }
        ground
    }

    /// Function 0 at a place, with a chosen node number or the one that follows from the address.
    pub fn open(&self, place: usize, node: Option<u32>) -> Node {
        let device = self.try_open(place, node).expect("a node opens");
        self.run(place, || Node::of(device, 0, &Default::default()))
    }

    /// The device of a place.
    ///
    /// # Errors
    /// What [`Device::open`] says.
    pub fn try_open(&self, place: usize, node: Option<u32>) -> Result<Device> {
        let mut name = match &self.network {
            Some(network) => network.device(place),
            None => format!("udp:{}?port={}", self.ip(place), self.port()),
        };
        if let Some(node) = node {
            name += &format!("&node={node}");
        }
        self.run(place, || Device::open(&name))
    }

    /// Nodes with one function each, driven by this thread.
    pub fn stage(&self, nodes: impl IntoIterator<Item = Node>) -> Stage<'_> {
        let mut stage = Stage::with(self, nodes);
        stage.case = format!("{:?}", self.carrier);
        stage
    }

    /// The hostile station, which sends to the victim.
    pub fn hostile(&self) -> Station {
        match &self.network {
            Some(network) => {
                let macs = [HOSTILE, VICTIM, PEER].map(|place| self.mac(place));
                network.hosts[HOSTILE].run(|| Station::on_wire(macs))
            }
            None => Station::on_loopback(self.ip(HOSTILE), (self.ip(VICTIM), self.port()).into()),
        }
    }

    /// The node number that follows from the address of a place.
    pub fn natural(&self, place: usize) -> u32 {
        let [_, _, low @ ..] = self.mac(place);
        match self.carrier {
            Carrier::Udp => self.ip(place).into(),
            Carrier::Packet | Carrier::Xdp | Carrier::Faster => u32::from_be_bytes(low),
        }
    }

    /// A node number that follows from no address. `which`: below 16.
    pub fn chosen(&self, which: u32) -> u32 {
        16 * self.number + which
    }

    /// Port of function 0.
    pub fn port(&self) -> u16 {
        20_000
    }

    /// IP address of a place, for UDP.
    pub fn ip(&self, place: usize) -> Ipv4Addr {
        // Processes that run at the same time have networks of their own.
        let network = 121 + std::process::id() % 120;
        Ipv4Addr::new(127, network as u8, self.number as u8, 1 + place as u8)
    }

    fn mac(&self, place: usize) -> [u8; 6] {
        [OUI[0], OUI[1], 0x5a, 0, self.number as u8, 1 + place as u8]
    }

    fn run<T>(&self, place: usize, what: impl FnOnce() -> T) -> T {
        match &self.network {
            Some(network) => network.hosts[place].run(what),
            None => what(),
        }
    }
}

impl Fixture for Ground {
    fn open(&self, _: &DeviceOptions) -> Result<Device> {
        self.try_open(SPARE, None)
    }

    fn delivers_later(&self) -> bool {
        true
    }

    fn assert_way(&self, node: &Node) {
        assert_frames_by(self.carrier, node);
    }
}
