//! Links between controllers of the SMP paper's kind (`link = "smp"`): with their own frames,
//! credits, replay and errors.
//!
//! A packet is cut into TLPs, carried, and reassembled at the far end, where the crossbar has
//! reserved a place for it. So every arriving packet is accepted, and links cannot deadlock. GETs
//! use virtual channel 1, other packets 0.

use std::collections::VecDeque;

use super::NicEvent;
use super::crossbar::Bound;
use super::links::Links;
use crate::engine::Schedule;
use crate::smp::guest::Carrier;
use crate::smp::transport::CHANNELS;
use crate::smp::{Config, Link, LinkEvent};
use crate::units::Span;

/// A packet that has arrived.
#[derive(Clone, Copy, Debug)]
pub struct LinkDelivery {
    pub bound: Bound,
    /// Controller that sent it.
    pub near: usize,
    /// Controller and port that received it.
    pub far: (usize, u8),
}

/// Packets in flight with their bytes, in order.
type Queue = VecDeque<(Bound, Vec<u8>)>;

/// Controller and port.
type Place = (usize, u8);

/// All links of a machine.
pub struct CarriedLinks {
    carriers: Vec<Carrier<NicEvent>>,
    /// Both ends of each link.
    ends: Vec<[Place; 2]>,
    /// By link, sending end, and channel.
    under_way: Vec<[[Queue; CHANNELS]; 2]>,
}

impl CarriedLinks {
    /// One link for each pair of ports that the topology connects, in the recommended setting.
    pub fn new(links: &Links, schedule: &mut Schedule<NicEvent>) -> CarriedLinks {
        let controllers = links.topology().routers();
        let places = (0..controllers).flat_map(|controller| {
            (1..links.topology().ports(controller).len() as u8).map(move |port| (controller, port))
        });
        let ends: Vec<[Place; 2]> = places
            .filter_map(|near| links.far_end(near.0, near.1).map(|far| [near, far]))
            .filter(|[near, far]| near < far)
            .collect();
        let config = Config::recommended();
        let wrap = |link, event| NicEvent::Link { link, event };
        let carriers = (0..ends.len() as u16)
            .map(|link| Carrier::new(Link::trained(&config, link, wrap, schedule)))
            .collect();
        let under_way = ends.iter().map(|_| Default::default()).collect();
        CarriedLinks { carriers, ends, under_way }
    }

    /// Sends a packet with these bytes from a controller by a port.
    pub fn send(
        &mut self,
        schedule: &mut Schedule<NicEvent>,
        place: Place,
        channel: usize,
        (bound, bytes): (Bound, Vec<u8>),
    ) {
        let Some((link, end)) = self.end_at(place) else { return };
        self.carriers[link].send(schedule, end, channel as u8, &bytes);
        self.under_way[link][usize::from(end)][channel].push_back((bound, bytes));
    }

    /// Handles an event on a link; returns the packet that has arrived, if any.
    ///
    /// # Panics
    /// If the link has changed a packet or the order of packets, which it must not.
    pub fn handle(
        &mut self,
        schedule: &mut Schedule<NicEvent>,
        link: usize,
        event: LinkEvent,
    ) -> Option<LinkDelivery> {
        let carried = self.carriers[link].handle(schedule, event)?;
        let (end, channel) = (usize::from(carried.end), usize::from(carried.channel));
        let (bound, bytes) = self.under_way[link][1 - end][channel].pop_front()?;
        assert!(bytes == carried.bytes, "what comes out of a link is what went in");
        let ends = self.ends[link];
        Some(LinkDelivery { bound, near: ends[1 - end].0, far: ends[end] })
    }

    /// Packets on links.
    pub fn under_way(&self) -> u64 {
        self.under_way.iter().flatten().flatten().map(|queue| queue.len() as u64).sum()
    }

    /// How long the wires that leave a controller by a port were busy.
    pub fn busy(&self, place: Place) -> Span {
        let end = self.end_at(place);
        end.map_or(Span::ZERO, |(link, end)| self.carriers[link].link().end(end).line.busy())
    }

    /// The links, each with the controllers at its ends.
    pub fn links(&self) -> impl Iterator<Item = (&Link<NicEvent>, [usize; 2])> {
        let ends = self.ends.iter().map(|ends| ends.map(|end| end.0));
        self.carriers.iter().map(Carrier::link).zip(ends)
    }

    fn end_at(&self, place: Place) -> Option<(usize, u8)> {
        self.ends.iter().enumerate().find_map(|(link, ends)| {
            let end = ends.iter().position(|end| *end == place)?;
            Some((link, end as u8))
        })
    }
}
