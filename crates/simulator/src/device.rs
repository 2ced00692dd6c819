//! What a device puts around an endpoint: names for places, and a book of nodes' places.

use bellwire_protocol::Secret;
use bellwire_protocol::discovery::{
    Binding, Discovery, NEIGHBOURS, NeighbourTable, Neighbours, PLACES,
};
use bellwire_protocol::reliable::{Endpoint, PathId, is_sound_frame};
use bellwire_wire::frame::seek::SeekBody;

use crate::scenario::Scenario;

/// Source or destination of frames: the host in the lower half, the interface in the upper.
/// Function `i` is at host `i`.
pub type Place = u32;

/// Time between two broadcast Seeks for a node, in ns.
const ASK_PAUSE_NS: u64 = 2_000_000;

/// The place of a host on an interface.
pub fn place(host: usize, interface: u32) -> Place {
    interface << 16 | host as u32
}

/// The host of a place.
pub fn host(place: Place) -> usize {
    (place & 0xffff) as usize
}

/// The device of one function.
pub struct Device {
    /// Numbers of places, nonces and claims.
    pub discovery: Discovery<Place>,
    /// What the device knows of nodes' places.
    pub directory: Directory,
    /// Nodes that the program looks for, and when to ask for each next, in ns.
    pub sought: Vec<(u32, u64)>,
}

/// The book of nodes' places.
pub struct Directory {
    /// Node of each function, by index.
    owners: Vec<u32>,
    own: u32,
    /// Node numbers are chosen, and do not follow from addresses.
    are_chosen: bool,
    /// Where nodes were heard.
    pub nodes: Neighbours<Place>,
}

impl Device {
    /// The device of a function of node `own`.
    pub fn new(scenario: &Scenario, own: u32, frame_bytes: usize, secret: Secret) -> Self {
        Device {
            discovery: Discovery::new(own, frame_bytes, secret),
            directory: Directory {
                owners: scenario.functions.iter().map(|(address, _)| address.node).collect(),
                own,
                are_chosen: scenario.seeks(),
                nodes: Neighbours::default(),
            },
            sought: Vec::new(),
        }
    }

    /// The number of a place for the endpoint.
    pub fn path_of(&mut self, place: Place, endpoint: &Endpoint) -> PathId {
        self.discovery.places.number(place, || endpoint.paths())
    }

    /// The number of the place that a frame came from; `None` if the place is new and the frame is
    /// not sound.
    pub fn path_of_sender(
        &mut self,
        from: Place,
        bytes: &[u8],
        endpoint: &Endpoint,
    ) -> Option<PathId> {
        match self.discovery.places.known_number(from) {
            Some(path) => Some(path),
            None if !is_sound_frame(bytes) => None,
            None => Some(self.path_of(from, endpoint)),
        }
    }

    /// Broadcast Seeks that are due, for nodes that are still sought.
    pub fn seeks(&mut self, now_ns: u64) -> Vec<SeekBody> {
        let nodes = &self.directory.nodes;
        self.sought.retain(|(node, _)| nodes.place(*node).is_none());
        let mut seeks = Vec::new();
        for (node, ask_ns) in &mut self.sought {
            if now_ns >= *ask_ns {
                *ask_ns = now_ns + ASK_PAUSE_NS;
                seeks.push(self.discovery.seek(*node, now_ns));
            }
        }
        seeks
    }

    /// When it asks next.
    pub fn deadline_ns(&self) -> u64 {
        let sought = self.sought.iter().map(|(_, ask_ns)| *ask_ns).min();
        self.discovery.next_deadline().min(sought.unwrap_or(u64::MAX))
    }

    /// Reports a table that has grown beyond its limit.
    pub fn check(&mut self) -> Result<(), String> {
        let (places, nodes) = (self.discovery.places.count(), self.directory.nodes.count());
        match places <= PLACES && nodes <= NEIGHBOURS {
            true => Ok(()),
            false => Err(format!("tables without end: {places} places, {nodes} nodes")),
        }
    }

    /// The place of a function that the program wants to ask for a link. If it is unknown, the
    /// device starts to seek its node.
    pub fn find(&mut self, index: usize, now_ns: u64) -> Option<Place> {
        if !self.directory.are_chosen {
            return Some(place(index, 0));
        }
        let node = self.directory.owners[index];
        // The functions of a node have hosts of their own, as functions of UDP have ports.
        let is_known = node == self.directory.own || self.directory.nodes.place(node).is_some();
        if !is_known && !self.sought.iter().any(|sought| sought.0 == node) {
            self.sought.push((node, now_ns));
        }
        let heard = self.directory.nodes.place(node);
        let station = heard.filter(|place| self.directory.station(*place) != Some(node));
        is_known.then(|| station.unwrap_or(place(index, 0)))
    }
}

impl Directory {
    /// The node that is really at a place.
    fn station(&self, place: Place) -> Option<u32> {
        self.owners.get(host(place)).copied()
    }
}

impl NeighbourTable<Place> for Directory {
    fn binding(&self, node: u32, place: Place) -> Binding {
        let is_there = self.station(place) == Some(node);
        let is_made_from_address = !self.are_chosen && self.owners.contains(&node);
        match is_made_from_address || node == self.own {
            true if is_there => Binding::Here,
            true => Binding::Elsewhere,
            false => Binding::None,
        }
    }

    fn other_place(&self, node: u32, place: Place) -> Option<Place> {
        let known = self.nodes.place(node)?;
        let same = known == place
            || self.station(known).is_some() && self.station(known) == self.station(place);
        (!same).then_some(known)
    }

    fn heard(&mut self, node: u32, place: Place) {
        let owners = &self.owners;
        let station = |place: Place| owners.get(host(place)).ok_or(host(place));
        self.nodes.heard(node, place, |other| station(other) == station(place));
    }

    fn announced(&mut self, node: u32, place: Place) -> bool {
        if self.nodes.place(node).is_none() {
            self.heard(node, place);
        }
        false
    }

    fn forget(&mut self, node: u32) {
        self.nodes.forget(node);
    }
}
