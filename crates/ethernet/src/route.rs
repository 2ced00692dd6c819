//! Where nodes are.

use crate::link_header::Mac;
use crate::multi_interface::Hop;
use bellwire_device::FunctionAddress;
use bellwire_protocol::discovery::{Binding, NeighbourTable, Neighbours};
use bellwire_wire::frame::UDP_PORT_BASE;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How a device finds the place of a node's function.
pub trait Route: NeighbourTable<Self::Path> + Send {
    /// The destination of a frame.
    type Path: Copy + Ord;

    /// The place of a function; `None`: ask for it by broadcast.
    fn find(&self, peer: FunctionAddress) -> Option<Self::Path>;

    /// Further places of it, through other interfaces (H-29).
    fn others(&self, _peer: FunctionAddress) -> Vec<Self::Path> {
        Vec::new()
    }

    /// Whether to ask for a node again, because another interface may reach it too.
    fn is_incomplete(&self, _node: u32) -> bool {
        false
    }

    /// The destination of a broadcast question for a node, if the network has broadcast.
    fn broadcast(&self) -> Option<Self::Path>;
}

/// What the functions of one device know together.
pub struct SharedNeighbours<P>(Arc<Mutex<Neighbours<P>>>);

impl<P> Clone for SharedNeighbours<P> {
    fn clone(&self) -> Self {
        SharedNeighbours(self.0.clone())
    }
}

impl<P: Copy + Eq> SharedNeighbours<P> {
    /// The place of a node.
    pub fn place(&self, node: u32) -> Option<P> {
        self.lock().place(node)
    }

    /// Locks the table, for a change.
    pub fn lock(&self) -> MutexGuard<'_, Neighbours<P>> {
        // Code that holds the lock cannot panic half way through a change.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<P: Copy + Eq> Default for SharedNeighbours<P> {
    fn default() -> Self {
        SharedNeighbours(Arc::default())
    }
}

/// Nodes by IP: a node's number is its IPv4 address, unless it has chosen another.
pub struct IpRoute {
    /// Where nodes were heard or found.
    pub known: SharedNeighbours<SocketAddr>,
    /// The port of function 0; the other functions have the ports after it.
    pub port: u16,
    /// Our own node number and address.
    pub own: (u32, IpAddr),
}

/// Whether a number is an IPv4 address that a host may have. Such a number belongs to that host.
pub(crate) fn is_host(node: u32) -> bool {
    // 0.x is no host's; addresses from 224.x on are multicast or reserved (RFC 6890).
    (1..224).contains(&(node >> 24))
}

impl Route for IpRoute {
    type Path = SocketAddr;

    fn find(&self, peer: FunctionAddress) -> Option<SocketAddr> {
        let known = self.known.place(peer.node).map(|place| place.ip());
        let ip = known.unwrap_or_else(|| IpAddr::V4(Ipv4Addr::from(peer.node)));
        Some(SocketAddr::new(ip, self.port.checked_add(peer.function.into())?))
    }

    fn broadcast(&self) -> Option<SocketAddr> {
        None
    }
}

impl NeighbourTable<SocketAddr> for IpRoute {
    fn binding(&self, node: u32, place: SocketAddr) -> Binding {
        let (own, ip) = self.own;
        let is_made_from = match place.ip() {
            IpAddr::V4(ip) => u32::from(ip) == node,
            IpAddr::V6(ip) => u128::from(ip) as u32 == node,
        };
        if is_made_from || node == own && place.ip() == ip {
            Binding::Here
        } else if node == own || place.is_ipv4() && is_host(node) {
            Binding::Elsewhere
        } else {
            Binding::None
        }
    }

    fn other_place(&self, node: u32, place: SocketAddr) -> Option<SocketAddr> {
        self.known.place(node).filter(|known| known.ip() != place.ip())
    }

    fn heard(&mut self, node: u32, place: SocketAddr) {
        // All ports of a host are one station.
        self.known.lock().heard(node, place, |other| other.ip() == place.ip());
    }

    /// No node is asked, so no node answers.
    fn announced(&mut self, _: u32, _: SocketAddr) -> bool {
        false
    }

    fn forget(&mut self, node: u32) {
        self.known.lock().forget(node);
    }
}

/// The default port of function 0.
pub const PORT: u16 = UDP_PORT_BASE;

/// To whom a node number belongs, as seen from a station. `own`: our own number. `is_own`: the
/// station is ours.
///
/// A number proves nothing about other stations, not even one that follows from the station's
/// address. 65,536 addresses have the same low half.
fn binding_of(node: u32, own: u32, is_own: bool) -> Binding {
    match (node == own, is_own) {
        (true, true) => Binding::Here,
        (true, false) => Binding::Elsewhere,
        (false, _) => Binding::None,
    }
}

/// Nodes by Ethernet address. Nodes answer questions for their address.
pub struct MacRoute {
    /// Addresses that nodes have announced.
    pub known: SharedNeighbours<Mac>,
    /// Our own node number and address.
    pub own: (u32, Mac),
}

impl Route for MacRoute {
    type Path = Mac;

    fn find(&self, peer: FunctionAddress) -> Option<Mac> {
        if peer.node == self.own.0 { Some(self.own.1) } else { self.known.place(peer.node) }
    }

    fn broadcast(&self) -> Option<Mac> {
        Some(Mac::BROADCAST)
    }
}

impl NeighbourTable<Mac> for MacRoute {
    fn binding(&self, node: u32, place: Mac) -> Binding {
        binding_of(node, self.own.0, place == self.own.1)
    }

    fn other_place(&self, node: u32, place: Mac) -> Option<Mac> {
        self.known.place(node).filter(|known| *known != place)
    }

    fn heard(&mut self, node: u32, place: Mac) {
        if place != self.own.1 {
            self.known.lock().heard(node, place, |other| other == place);
        }
    }

    fn announced(&mut self, node: u32, place: Mac) -> bool {
        if place.is_unicast() && self.known.place(node).is_none() {
            self.heard(node, place);
        }
        false
    }

    fn forget(&mut self, node: u32) {
        self.known.lock().forget(node);
    }
}

/// Nodes by Ethernet address on each of several interfaces.
pub struct HopRoute {
    /// Addresses that nodes have announced, by interface.
    pub known: Vec<SharedNeighbours<Mac>>,
    /// Our own node number, and our address on each interface.
    pub own: (u32, Vec<Mac>),
}

impl HopRoute {
    fn places(&self, peer: FunctionAddress) -> impl Iterator<Item = Hop> {
        let hop =
            |(through, to): (usize, Option<Mac>)| Some(Hop { through: through as u8, to: to? });
        self.known.iter().map(move |known| known.place(peer.node)).enumerate().filter_map(hop)
    }

    /// What is known of a place's interface; `None` if that place is ours.
    fn known_by(&self, place: Hop) -> Option<&SharedNeighbours<Mac>> {
        let known = self.known.get(usize::from(place.through))?;
        (!self.own.1.contains(&place.to)).then_some(known)
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

    fn broadcast(&self) -> Option<Hop> {
        Some(Hop::BROADCAST)
    }
}

impl NeighbourTable<Hop> for HopRoute {
    fn binding(&self, node: u32, place: Hop) -> Binding {
        binding_of(node, self.own.0, self.own.1.contains(&place.to))
    }

    fn other_place(&self, node: u32, place: Hop) -> Option<Hop> {
        let to = self.known_by(place)?.place(node).filter(|known| *known != place.to)?;
        Some(Hop { to, ..place })
    }

    fn heard(&mut self, node: u32, place: Hop) {
        if let Some(known) = self.known_by(place) {
            known.lock().heard(node, place.to, |other| other == place.to);
        }
    }

    fn announced(&mut self, node: u32, place: Hop) -> bool {
        let is_further = place.to.is_unicast()
            && node != self.own.0
            && self.known_by(place).is_some_and(|known| known.place(node).is_none());
        if is_further {
            self.heard(node, place);
        }
        is_further
    }

    fn forget(&mut self, node: u32) {
        self.known.iter().for_each(|known| known.lock().forget(node));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number that is an address belongs to the host with that address, and our own to us. A
    /// chosen number belongs to the node that had it first.
    #[test]
    fn numbers_belong_to_addresses() {
        let ip = |text: &str| text.parse::<IpAddr>().expect("an address");
        let at = |text: &str| SocketAddr::new(ip(text), 49_664);
        let number = |text: &str| u32::from(text.parse::<Ipv4Addr>().expect("an IPv4 address"));
        let mut route =
            IpRoute { known: SharedNeighbours::default(), port: PORT, own: (5, ip("10.0.0.1")) };
        assert_eq!(route.binding(number("10.0.0.2"), at("10.0.0.2")), Binding::Here);
        assert_eq!(route.binding(number("10.0.0.2"), at("10.0.0.3")), Binding::Elsewhere);
        assert_eq!(route.binding(5, at("10.0.0.1")), Binding::Here);
        assert_eq!(route.binding(5, at("10.0.0.3")), Binding::Elsewhere);
        assert_eq!(route.binding(7, at("10.0.0.3")), Binding::None);
        assert_eq!(route.binding(0x3344_5566, at("fd00::3344:5566")), Binding::Here);
        assert_eq!(route.binding(0x3344_5566, at("fd00::1")), Binding::None);
        assert_eq!(route.other_place(7, at("10.0.0.3")), None);
        route.heard(7, at("10.0.0.3"));
        assert_eq!(route.other_place(7, at("10.0.0.3")), None);
        assert_eq!(route.other_place(7, at("10.0.0.4")), Some(at("10.0.0.3")));
        assert!(!route.announced(7, at("10.0.0.4")));
        assert_eq!(route.known.place(7), Some(at("10.0.0.3")));
    }

    /// An Ethernet address proves no number, because several have the same one. An answer does not
    /// move a node that is known.
    #[test]
    fn numbers_belong_to_stations() {
        let mac = |last: u8| Mac([2, 0, 0, 0, 0, last]);
        let mut route = MacRoute { known: SharedNeighbours::default(), own: (5, mac(1)) };
        assert_eq!(route.binding(2, mac(2)), Binding::None);
        assert_eq!(route.binding(2, mac(3)), Binding::None);
        assert_eq!(route.binding(5, mac(1)), Binding::Here);
        assert_eq!(route.binding(5, mac(3)), Binding::Elsewhere);
        assert_eq!(route.binding(5, mac(5)), Binding::Elsewhere);
        let twin = Mac([2, 1, 0, 0, 0, 2]);
        assert_eq!(twin.node(), mac(2).node());
        route.heard(2, mac(2));
        assert_eq!(
            (route.binding(2, twin), route.other_place(2, twin)),
            (Binding::None, Some(mac(2)))
        );
        route.announced(7, mac(3));
        route.announced(7, mac(4));
        assert_eq!(route.other_place(7, mac(4)), Some(mac(3)));
        route.forget(7);
        assert_eq!(route.other_place(7, mac(4)), None);
    }

    /// A node's function has its own port, at the place where the node was heard or by its number.
    #[test]
    fn functions_have_ports() {
        let mut route = IpRoute {
            known: SharedNeighbours::default(),
            port: 5000,
            own: (5, IpAddr::from([10, 0, 0, 1])),
        };
        let peer = FunctionAddress { node: 0x0a00_0007, function: 3 };
        assert_eq!(route.find(peer), Some(SocketAddr::from(([10, 0, 0, 7], 5003))));
        let heard = SocketAddr::from(([10, 9, 9, 9], 1));
        route.heard(peer.node, heard);
        assert_eq!(route.find(peer), Some(SocketAddr::from(([10, 9, 9, 9], 5003))));
        // Another port of the same host is the same station.
        route.heard(peer.node, SocketAddr::from(([10, 9, 9, 9], 2)));
        assert_eq!(route.other_place(peer.node, SocketAddr::from(([10, 9, 9, 9], 7))), None);
        route.forget(peer.node);
        assert_eq!(route.find(peer), Some(SocketAddr::from(([10, 0, 0, 7], 5003))));
        assert_eq!((route.broadcast(), route.others(peer)), (None, vec![]));
        assert!(!route.is_incomplete(peer.node));
        let last = IpRoute { port: 65_534, ..route };
        assert_eq!(last.find(FunctionAddress { node: 1, function: 2 }), None);
    }

    /// Each interface has its own knowledge of a node, and only stations of others count.
    // shows: H-29
    #[test]
    fn interfaces_know_stations_apart() {
        let mac = |last: u8| Mac([2, 0, 0, 0, 0, last]);
        let hop = |through: u8, last: u8| Hop { through, to: mac(last) };
        let known = vec![SharedNeighbours::default(), SharedNeighbours::default()];
        let mut route = HopRoute { known, own: (5, vec![mac(1), mac(2)]) };
        let at = |node| FunctionAddress { node, function: 1 };
        assert_eq!((route.find(at(5)), route.others(at(5))), (Some(hop(0, 1)), vec![]));
        assert_eq!((route.find(at(7)), route.others(at(7))), (None, vec![]));
        assert!(route.is_incomplete(7) && !route.is_incomplete(5));
        assert!(route.announced(7, hop(1, 9)));
        assert!(!route.announced(7, hop(1, 8)), "it is known there");
        assert_eq!((route.find(at(7)), route.others(at(7))), (Some(hop(1, 9)), vec![]));
        assert!(route.is_incomplete(7));
        assert!(route.announced(7, hop(0, 10)), "it is new there");
        assert!(!route.is_incomplete(7));
        assert_eq!((route.find(at(7)), route.others(at(7))), (Some(hop(0, 10)), vec![hop(1, 9)]));
        assert_eq!(route.other_place(7, hop(1, 9)), None);
        assert_eq!(route.other_place(7, hop(1, 33)), Some(hop(1, 9)));
        assert_eq!(route.other_place(7, hop(0, 33)), Some(hop(0, 10)));
        assert_eq!(route.other_place(7, hop(0, 1)), None, "that place is ours");
        assert_eq!(route.other_place(7, hop(2, 33)), None, "there is no such interface");
        route.forget(7);
        assert_eq!((route.find(at(7)), route.is_incomplete(7)), (None, true));
        // Not a group, not ourselves, and no station of ours.
        let group = Hop { through: 0, to: Mac::BROADCAST };
        for (node, place) in [(8, group), (5, hop(0, 9)), (8, hop(0, 2)), (8, hop(2, 9))] {
            assert!(!route.announced(node, place), "{node} at {place}");
        }
        route.heard(8, hop(1, 2));
        assert_eq!(route.find(at(8)), None);
        route.heard(8, hop(1, 20));
        // The first station that has it keeps it.
        route.heard(8, hop(1, 20));
        assert_eq!(route.find(at(8)), Some(hop(1, 20)));
        assert_eq!(route.broadcast(), Some(Hop::BROADCAST));
        let binding = |node, place| route.binding(node, place);
        assert_eq!(binding(5, hop(0, 2)), Binding::Here);
        assert_eq!(binding(5, hop(0, 3)), Binding::Elsewhere);
        assert_eq!(binding(6, hop(0, 3)), Binding::None);
        let mut single = MacRoute { known: SharedNeighbours::default(), own: (5, mac(1)) };
        assert_eq!((single.find(at(5)), single.find(at(7))), (Some(mac(1)), None));
        single.heard(7, mac(1));
        assert_eq!(single.find(at(7)), None, "that place is ours");
        single.heard(7, mac(9));
        single.heard(7, mac(9));
        assert_eq!(single.find(at(7)), Some(mac(9)));
        assert_eq!(single.broadcast(), Some(Mac::BROADCAST));
    }

    /// A station has at most 256 names, and a new one replaces its oldest. Names of others stay.
    #[test]
    fn a_station_has_a_bounded_number_of_names() {
        let mac = |last: u8| Mac([2, 0, 0, 0, 0, last]);
        let mut stations = MacRoute { known: SharedNeighbours::default(), own: (5, mac(1)) };
        let hop = |last: u8| Hop { through: 0, to: mac(last) };
        let mut hops =
            HopRoute { known: vec![SharedNeighbours::default()], own: (5, vec![mac(1)]) };
        let ip = |last: u8| SocketAddr::from(([10, 0, 0, last], 1));
        let mut hosts = IpRoute {
            known: SharedNeighbours::default(),
            port: PORT,
            own: (5, IpAddr::from([10, 0, 0, 1])),
        };
        for (node, last) in (0..260).map(|number| (1000 + number, if number < 3 { 2 } else { 3 })) {
            stations.heard(node, mac(last));
            hops.heard(node, hop(last));
            hosts.heard(node, ip(last));
        }
        let known = |node: u32| {
            let [a, b] = [&stations.known, &hops.known[0]].map(|it| it.place(node).is_some());
            assert_eq!((a, a), (b, hosts.known.place(node).is_some()), "{node}");
            a
        };
        assert_eq!([1000, 1002, 1003, 1004, 1259].map(known), [true, true, false, true, true]);
    }
}
