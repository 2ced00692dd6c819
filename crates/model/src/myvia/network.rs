//! Myrinet: cables and switches with wormhole routing and source routes (paper 2.1).
//!
//! A packet begins with one byte per switch on its route: the output port. Each switch removes its
//! byte. The head goes on as soon as it can. The packet holds every cable that the head has passed
//! until the tail has gone by. If the receiver does not take a packet, it stops where it is, and so
//! do packets that wait for its cables. This back-pressure is Myrinet's flow control; it loses
//! nothing.
//!
//! Without switches two nodes are joined directly. M-VIA's Ethernet is wired this way here.

use std::collections::VecDeque;

use bellwire_protocol::canary::planted;

use crate::engine::{Handle, Pool, Schedule};
use crate::units::Span;

use super::machine::NicEvent;
use super::pipeline::Job;

/// The end of a cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At a NIC.
    Node(u8),
    /// At a port of a switch.
    Port {
        /// The switch.
        switch: u8,
        /// Its port.
        port: u8,
    },
}

/// A cable, as network management sees it (M-07).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its ends; it carries both directions.
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
    /// Delay of a head from beginning to end, with the switch at the beginning.
    latency: Span,
    holder: Option<Handle>,
    waiting: VecDeque<Handle>,
}

/// A packet in flight.
#[derive(Clone, Debug)]
pub struct Worm {
    /// The sender.
    pub source: u8,
    /// Bytes on the wire.
    pub bytes: u32,
    /// The sender's job.
    pub job: Handle,
    /// The packet, as its receiver sees it.
    pub packet: Job,
    /// Remaining ports of the route.
    route: VecDeque<u8>,
    /// Cables that it holds, in the order of the route.
    held: VecDeque<usize>,
}

/// Events of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkEvent {
    /// A head has reached the end of its last cable.
    Head(Handle),
    /// A tail has passed: this cable is free.
    Free(u16),
}

/// What the machine must do after an event.
#[derive(Clone, Debug)]
pub enum Arrival {
    /// A packet waits at this node until it is accepted.
    Before {
        /// The node.
        node: u8,
        /// The packet.
        worm: Handle,
    },
    /// Its route led to no NIC, or over a cable that is down. It was dropped, and its sender may
    /// continue.
    Lost(Worm),
}

/// Times of an accepted packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Until its tail has left the sender.
    pub leaves: Span,
    /// Until its tail has arrived.
    pub comes: Span,
}

/// Cables, switches, and packets in flight.
#[derive(Clone, Debug)]
pub struct Network {
    cables: Vec<Cable>,
    worms: Pool<Worm>,
    ps_per_byte: Span,
    /// Packets lost: their route led nowhere, or to a cable that is down.
    pub lost: u64,
    /// Packets that waited for a cable.
    pub blocked: u64,
}

impl Network {
    /// Bidirectional cables between places. A byte takes `byte`; a head takes `cable` per cable and
    /// `switch` per switch.
    pub fn new(cables: &[(Place, Place)], byte: Span, cable: Span, switch: Span) -> Network {
        let directions = cables.iter().flat_map(|&(one, other)| [(one, other), (other, one)]);
        // Canary: a cable is charged in both directions.
        let cable = cable * if planted("myvia-cable-twice") { 2 } else { 1 };
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

    /// All cables with their state (M-07), in the order of [`Network::new`].
    pub fn links(&self) -> Vec<Link> {
        // Each cable is two adjacent entries, one per direction.
        let link = |pair: &[Cable]| Link { ends: [pair[0].from, pair[0].to], up: pair[0].up };
        self.cables.chunks(2).map(link).collect()
    }

    /// Takes a cable down or up; false if there is none between these places. A packet whose head
    /// is on it passes; one that reaches it while it is down is lost. Routes stay as they are.
    pub fn set_link(&mut self, [one, other]: [Place; 2], up: bool) -> bool {
        let mut found = false;
        for cable in &mut self.cables {
            if [(one, other), (other, one)].contains(&(cable.from, cable.to)) {
                cable.up = up;
                found = true;
            }
        }
        found
    }

    /// The ports of the shortest route between two nodes over cables that are up, if there is one
    /// (the kernel agent's network management).
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

    /// Sends a packet of `bytes` bytes from a node, by a route and for a job. The node must not
    /// send another before the tail has left.
    pub fn send(
        &mut self,
        schedule: &mut Schedule<NicEvent>,
        (source, job): (u8, Handle),
        route: &[u8],
        bytes: u32,
        packet: Job,
    ) {
        let (route, held) = (route.iter().copied().collect(), VecDeque::new());
        let worm = self.worms.put(Worm { source, bytes, job, packet, route, held });
        match self.cable_of(source) {
            Some(cable) => self.enter(schedule, worm, cable),
            None => soon(schedule, Span::ZERO, NicEvent::Network(NetworkEvent::Head(worm))),
        }
    }

    /// Handles an event.
    pub fn handle(
        &mut self,
        schedule: &mut Schedule<NicEvent>,
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

    /// Accepts the packet that waits at a node, and removes it from the network.
    pub fn accept(&mut self, schedule: &mut Schedule<NicEvent>, worm: Handle) -> (Worm, Flow) {
        let worm = self.worms.take(worm);
        let comes = self.ps_per_byte * u64::from(worm.bytes);
        let mut behind = Span::ZERO;
        let mut leaves = comes;
        // The tail passes the start of a cable earlier than the end of the route, by the head's
        // delay between the two.
        for &cable in worm.held.iter().rev() {
            behind += self.cables[cable].latency;
            leaves = comes.saturating_sub(behind);
            soon(schedule, leaves, NicEvent::Network(NetworkEvent::Free(cable as u16)));
        }
        (worm, Flow { leaves, comes })
    }

    /// A packet in flight.
    pub fn worm(&self, worm: Handle) -> &Worm {
        &self.worms[worm]
    }

    /// Packets in flight.
    pub fn under_way(&self) -> usize {
        self.worms.len()
    }

    fn cable_of(&self, node: u8) -> Option<usize> {
        self.cables.iter().position(|cable| cable.from == Place::Node(node))
    }

    /// Lets a head take the next cable, or wait for it. A cable that is down makes the route lead
    /// nowhere.
    fn enter(&mut self, schedule: &mut Schedule<NicEvent>, worm: Handle, cable: usize) {
        let entered = &mut self.cables[cable];
        if !entered.up {
            self.worms[worm].route.clear();
            return soon(schedule, Span::ZERO, NicEvent::Network(NetworkEvent::Head(worm)));
        }
        if entered.holder.is_some() {
            self.blocked += 1;
            entered.waiting.push_back(worm);
            return;
        }
        entered.holder = Some(worm);
        self.worms[worm].held.push_back(cable);
        soon(schedule, entered.latency, NicEvent::Network(NetworkEvent::Head(worm)));
    }

    fn advance(&mut self, schedule: &mut Schedule<NicEvent>, worm: Handle) -> Option<Arrival> {
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

    fn free(&mut self, schedule: &mut Schedule<NicEvent>, cable: usize) {
        self.cables[cable].holder = None;
        // A packet that is lost at a cable that is down does not take it, so all waiting ones go
        // on.
        while self.cables[cable].holder.is_none()
            && let Some(next) = self.cables[cable].waiting.pop_front()
        {
            self.enter(schedule, next, cable);
        }
    }
}

/// Schedules an event after `delay`; without a delay, at the end of this moment.
pub(super) fn soon(schedule: &mut Schedule<NicEvent>, delay: Span, event: NicEvent) {
    schedule.settle_at(schedule.now() + delay, event);
}
