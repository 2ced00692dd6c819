//! Where nodes are.

use crate::link_header::Mac;
use crate::several::Hop;
use bellwire_device::FunctionAddress;
use bellwire_wire::frame::UDP_PORT_BASE;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Nodes whose places are remembered, at most.
const NODES: usize = 65_536;

/// How a device finds the place of a node's function.
pub trait Route: Send {
    /// What a frame is sent to.
    type Path;

    /// The place of a function; `None`: ask around for it.
    fn find(&self, peer: FunctionAddress) -> Option<Self::Path>;

    /// Further places of it, by other interfaces (H-29).
    fn others(&self, _peer: FunctionAddress) -> Vec<Self::Path> {
        Vec::new()
    }

    /// Whether a node is worth asking for again, because it may be reached by another interface, too.
    fn is_incomplete(&self, _node: u32) -> bool {
        false
    }

    /// A frame that came from `path` told that `node` is there. Tells whether that is a further place, by an interface by which the
    /// node was not reached before.
    fn learn(&mut self, node: u32, path: Self::Path) -> bool;

    /// Nobody answers for the node where it was told to be.
    fn forget(&mut self, _node: u32) {}

    /// What a question for a node is sent to, if the network can carry one to everybody.
    fn everybody(&self) -> Option<Self::Path>;
}

/// What the functions of one device know together.
pub struct Known<P>(Arc<Mutex<HashMap<u32, P>>>);

impl<P> Clone for Known<P> {
    fn clone(&self) -> Self {
        Known(self.0.clone())
    }
}

impl<P: Copy> Known<P> {
    /// Nothing yet.
    pub fn new() -> Known<P> {
        Known(Arc::default())
    }

    /// Remembers the place of a node.
    pub fn insert(&self, node: u32, place: P) {
        let mut known = self.lock();
        if known.len() < NODES || known.contains_key(&node) {
            known.insert(node, place);
        }
    }

    /// The place of a node.
    pub fn place(&self, node: u32) -> Option<P> {
        self.lock().get(&node).copied()
    }

    fn remove(&self, node: u32) {
        self.lock().remove(&node);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u32, P>> {
        // Nothing that holds the lock can panic half way through a change.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<P: Copy> Default for Known<P> {
    fn default() -> Self {
        Self::new()
    }
}

/// Nodes by IP: a node's number is its IPv4 address, unless it has told another.
pub struct IpRoute {
    /// Addresses that nodes have told.
    pub known: Known<IpAddr>,
    /// Function 0 listens on this port, and the others on those that follow.
    pub port: u16,
}

impl Route for IpRoute {
    type Path = SocketAddr;

    fn find(&self, peer: FunctionAddress) -> Option<SocketAddr> {
        let told = self.known.place(peer.node);
        let ip = told.unwrap_or_else(|| IpAddr::V4(Ipv4Addr::from(peer.node)));
        Some(SocketAddr::new(ip, self.port.checked_add(peer.function.into())?))
    }

    fn learn(&mut self, node: u32, path: SocketAddr) -> bool {
        self.known.insert(node, path.ip());
        false
    }

    fn everybody(&self) -> Option<SocketAddr> {
        None
    }
}

/// The port of function 0 unless told otherwise.
pub const PORT: u16 = UDP_PORT_BASE;

/// Nodes by Ethernet address, which they tell when they are asked.
pub struct MacRoute {
    /// Addresses that nodes have told.
    pub known: Known<Mac>,
    /// Our own node number and address.
    pub own: (u32, Mac),
}

impl Route for MacRoute {
    type Path = Mac;

    fn find(&self, peer: FunctionAddress) -> Option<Mac> {
        if peer.node == self.own.0 { Some(self.own.1) } else { self.known.place(peer.node) }
    }

    fn learn(&mut self, node: u32, path: Mac) -> bool {
        if path.is_unicast() && path != self.own.1 {
            self.known.insert(node, path);
        }
        false
    }

    fn forget(&mut self, node: u32) {
        self.known.remove(node);
    }

    fn everybody(&self) -> Option<Mac> {
        Some(Mac::BROADCAST)
    }
}

/// Nodes by Ethernet address on each of several interfaces.
pub struct HopRoute {
    /// Addresses that nodes have told, by interface.
    pub known: Vec<Known<Mac>>,
    /// Our own node number, and our address on each interface.
    pub own: (u32, Vec<Mac>),
}

impl HopRoute {
    fn places(&self, peer: FunctionAddress) -> impl Iterator<Item = Hop> {
        let hop =
            |(through, to): (usize, Option<Mac>)| Some(Hop { through: through as u8, to: to? });
        self.known.iter().map(move |known| known.place(peer.node)).enumerate().filter_map(hop)
    }
}

impl Route for HopRoute {
    type Path = Hop;

    fn find(&self, peer: FunctionAddress) -> Option<Hop> {
        if peer.node == self.own.0 {
            return Some(Hop { through: 0, to: self.own.1[0] });
        }
        self.places(peer).next()
    }

    fn others(&self, peer: FunctionAddress) -> Vec<Hop> {
        if peer.node == self.own.0 { Vec::new() } else { self.places(peer).skip(1).collect() }
    }

    fn is_incomplete(&self, node: u32) -> bool {
        node != self.own.0 && self.known.iter().any(|known| known.place(node).is_none())
    }

    fn learn(&mut self, node: u32, Hop { through, to }: Hop) -> bool {
        let (Some(known), false) = (self.known.get(usize::from(through)), self.own.1.contains(&to))
        else {
            return false;
        };
        if !to.is_unicast() || node == self.own.0 {
            return false;
        }
        let is_further = known.place(node).is_none();
        known.insert(node, to);
        is_further
    }

    fn forget(&mut self, node: u32) {
        self.known.iter().for_each(|known| known.remove(node));
    }

    fn everybody(&self) -> Option<Hop> {
        Some(Hop::EVERYBODY)
    }
}
