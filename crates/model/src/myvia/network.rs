//! Myrinet: cables and switches with wormhole routing by the source (paper 2.1). A packet begins with one byte for each switch on its way,
//! the port to leave by; each switch takes its byte off. The head goes on as soon as it may; what is behind it holds every cable it
//! has passed until the tail has gone by. If the receiver does not take a packet it stops where it is, and so does what waits for
//! its cables: that is Myrinet's flow control, which loses nothing.
//!
//! Without switches two nodes are joined directly, which is how the Ethernet of M-VIA is wired here.

use std::collections::VecDeque;

use crate::engine::{Handle, Pool, Schedule};
use crate::units::Span;

use super::machine::Happening;

/// Where a cable ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At a NIC.
    Node(u8),
    /// At a port of a switch.
    Port {
        /// Which switch.
        switch: u8,
        /// Which of its ports.
        port: u8,
    },
}

/// A cable, as network management sees it (M-07).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Where it begins and ends; it carries both ways.
    pub ends: [Place; 2],
    /// Whether it carries packets.
    pub up: bool,
}

/// One direction of a cable.
#[derive(Clone, Debug)]
struct Cable {
    from: Place,
    to: Place,
    up: bool,
    /// For a head, from the beginning to the end; that of the switch before it included.
    latency: Span,
    holder: Option<Handle>,
    waiting: VecDeque<Handle>,
}

/// A packet under way.
#[derive(Clone, Debug)]
pub struct Worm {
    /// Who sends it.
    pub source: u8,
    /// Bytes on the wire.
    pub bytes: u32,
    /// What the NICs know it by.
    pub job: Handle,
    /// Ports that are still to be taken.
    route: VecDeque<u8>,
    /// Cables that it holds, the first first.
    held: VecDeque<usize>,
}

/// What happens in the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkEvent {
    /// A head has come to the end of its last cable.
    Head(Handle),
    /// A tail has gone by: this cable is free.
    Free(u16),
}

/// What the machine has to do after an event.
#[derive(Clone, Debug)]
pub enum Arrival {
    /// A packet stands before this node until it is accepted.
    Before {
        /// The node.
        node: u8,
        /// The packet.
        worm: Handle,
    },
    /// Its route led to no NIC, or over a cable that is down: it was dropped, and its sender may go on.
    Lost(Worm),
}

/// How long an accepted packet takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Until its tail has left the sender.
    pub leaves: Span,
    /// Until its tail has come.
    pub comes: Span,
}

/// Cables, switches, and what is on them.
#[derive(Clone, Debug)]
pub struct Network {
    cables: Vec<Cable>,
    worms: Pool<Worm>,
    ps_per_byte: Span,
    /// Packets whose route led nowhere, or to a cable that is down.
    pub lost: u64,
    /// Packets that had to wait for a cable.
    pub blocked: u64,
}

impl Network {
    /// Cables between places, both ways. A byte takes `byte`; a head takes `cable` for each cable and `switch` for each switch.
    pub fn new(cables: &[(Place, Place)], byte: Span, cable: Span, switch: Span) -> Network {
        let directions = cables.iter().flat_map(|&(one, other)| [(one, other), (other, one)]);
        let cables = directions
            .map(|(from, to)| Cable {
                from,
                to,
                up: true,
                latency: if matches!(from, Place::Port { .. }) { cable + switch } else { cable },
                holder: None,
                waiting: VecDeque::new(),
            })
            .collect();
        Network { cables, worms: Pool::default(), ps_per_byte: byte, lost: 0, blocked: 0 }
    }

    /// All cables with their state, in the order in which they were given.
    pub fn links(&self) -> impl Iterator<Item = Link> {
        // Each cable is two directions, one behind the other.
        self.cables.chunks(2).map(|pair| Link { ends: [pair[0].from, pair[0].to], up: pair[0].up })
    }

    /// Takes a cable down, or up again; false if there is none between these places. A packet whose head is on it already passes; one that comes
    /// to it while it is down is lost.
    pub(super) fn set_link(&mut self, ends: [Place; 2], up: bool) -> bool {
        let [one, other] = ends;
        let mut found = false;
        for cable in &mut self.cables {
            if (cable.from, cable.to) == (one, other) || (cable.from, cable.to) == (other, one) {
                cable.up = up;
                found = true;
            }
        }
        found
    }

    /// The ports of the shortest way between two nodes over cables that are up (the kernel agent's network management), if there is one.
    pub fn route(&self, from: u8, to: u8) -> Option<Vec<u8>> {
        let start = self.cable_of(from).filter(|&cable| self.cables[cable].up)?;
        let mut seen = vec![false; self.cables.len()];
        let mut fringe = VecDeque::from([(start, Vec::new())]);
        while let Some((at, ports)) = fringe.pop_front() {
            match self.cables[at].to {
                Place::Node(node) if node == to => return Some(ports),
                Place::Node(_) => {}
                Place::Port { switch, .. } => {
                    for (next, cable) in self.cables.iter().enumerate() {
                        if let Place::Port { switch: out, port } = cable.from
                            && out == switch
                            && cable.up
                            && !std::mem::replace(&mut seen[next], true)
                        {
                            let mut ports = ports.clone();
                            ports.push(port);
                            fringe.push_back((next, ports));
                        }
                    }
                }
            }
        }
        None
    }

    /// A node sends a packet of `bytes` bytes by a route. The node must not send another before this one's tail has left.
    pub fn send(
        &mut self,
        schedule: &mut Schedule<Happening>,
        source: u8,
        route: &[u8],
        bytes: u32,
        job: Handle,
    ) {
        let route = route.iter().copied().collect();
        let worm = self.worms.put(Worm { source, bytes, job, route, held: VecDeque::new() });
        match self.cable_of(source) {
            Some(cable) => self.enter(schedule, worm, cable),
            None => soon(schedule, Span::ZERO, Happening::Network(NetworkEvent::Head(worm))),
        }
    }

    /// Lets an event happen.
    pub fn handle(
        &mut self,
        schedule: &mut Schedule<Happening>,
        event: NetworkEvent,
    ) -> Option<Arrival> {
        match event {
            NetworkEvent::Head(worm) => self.advance(schedule, worm),
            NetworkEvent::Free(cable) => {
                self.free(schedule, usize::from(cable));
                None
            }
        }
    }

    /// The packet before a node flows in. It is forgotten here.
    pub fn accept(&mut self, schedule: &mut Schedule<Happening>, worm: Handle) -> (Worm, Flow) {
        let worm = self.worms.take(worm);
        let comes = self.ps_per_byte * u64::from(worm.bytes);
        let mut behind = Span::ZERO;
        let mut leaves = comes;
        // The tail passes the beginning of each cable as long before the end as a head takes from there.
        for &cable in worm.held.iter().rev() {
            behind += self.cables[cable].latency;
            leaves = comes.saturating_sub(behind);
            soon(schedule, leaves, Happening::Network(NetworkEvent::Free(cable as u16)));
        }
        (worm, Flow { leaves, comes })
    }

    /// A packet that is under way.
    pub fn worm(&self, worm: Handle) -> &Worm {
        &self.worms[worm]
    }

    /// Packets that are under way.
    pub fn under_way(&self) -> usize {
        self.worms.len()
    }

    fn cable_of(&self, node: u8) -> Option<usize> {
        self.cables.iter().position(|cable| cable.from == Place::Node(node))
    }

    /// A head takes the next cable, or waits for it. Behind one that is down its route leads nowhere.
    fn enter(&mut self, schedule: &mut Schedule<Happening>, worm: Handle, cable: usize) {
        let entered = &mut self.cables[cable];
        if !entered.up {
            self.worms[worm].route.clear();
            return soon(schedule, Span::ZERO, Happening::Network(NetworkEvent::Head(worm)));
        }
        if entered.holder.is_some() {
            self.blocked += 1;
            entered.waiting.push_back(worm);
            return;
        }
        entered.holder = Some(worm);
        self.worms[worm].held.push_back(cable);
        soon(schedule, entered.latency, Happening::Network(NetworkEvent::Head(worm)));
    }

    fn advance(&mut self, schedule: &mut Schedule<Happening>, worm: Handle) -> Option<Arrival> {
        let end = self.worms[worm].held.back().map(|&cable| self.cables[cable].to);
        match end {
            Some(Place::Node(node)) => return Some(Arrival::Before { node, worm }),
            Some(Place::Port { switch, .. }) => {
                let port = self.worms[worm].route.pop_front();
                let next = port.and_then(|port| {
                    let from = Place::Port { switch, port };
                    self.cables.iter().position(|cable| cable.from == from)
                });
                if let Some(next) = next {
                    self.enter(schedule, worm, next);
                    return None;
                }
            }
            None => {}
        }
        self.lost += 1;
        let (worm, _) = self.accept(schedule, worm);
        Some(Arrival::Lost(worm))
    }

    fn free(&mut self, schedule: &mut Schedule<Happening>, cable: usize) {
        self.cables[cable].holder = None;
        // Those that are lost at a cable that is down do not take it, so all of them are let go.
        while self.cables[cable].holder.is_none()
            && let Some(next) = self.cables[cable].waiting.pop_front()
        {
            self.enter(schedule, next, cable);
        }
    }
}

/// Lets something happen after `delay`, which may be nothing and at the end of this moment.
pub(super) fn soon(schedule: &mut Schedule<Happening>, delay: Span, happening: Happening) {
    schedule.settle_at(schedule.now() + delay, happening);
}
