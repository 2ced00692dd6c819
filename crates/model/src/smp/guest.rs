//! A link that carries packets of another model, of any length: cut into network packets of class
//! *guest*, and reassembled at the far end.
//!
//! Packets of one end and channel arrive in order, each once. The user bounds the queues by its own
//! credits.

use std::collections::VecDeque;

use bellwire_wire::link::DW_BYTES;
use bellwire_wire::link::network::{Class, NetworkHeader};

use super::link::{Link, LinkEvent};
use super::network::{LONGEST_BLOCK_BYTES, NetworkPacket};
use super::transport::CHANNELS;
use crate::engine::{Event, Schedule};

/// The link and the packets at its ends.
pub struct Carrier<E> {
    link: Link<E>,
    waiting: [[VecDeque<Vec<u8>>; CHANNELS]; 2],
    /// Bytes of packets that are not complete yet.
    partial: [[Vec<u8>; CHANNELS]; 2],
}

/// A packet that is complete at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carried {
    /// The end where it arrived.
    pub end: u8,
    /// Its channel.
    pub channel: u8,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl<E: Event> Carrier<E> {
    /// A carrier over a link without other users.
    pub fn new(link: Link<E>) -> Carrier<E> {
        Carrier { link, waiting: Default::default(), partial: Default::default() }
    }

    /// The link.
    pub fn link(&self) -> &Link<E> {
        &self.link
    }

    /// Whether nothing waits or is in flight.
    pub fn is_quiet(&self) -> bool {
        self.waiting.iter().flatten().all(VecDeque::is_empty) && self.link.is_quiet()
    }

    /// Sends a packet from an end over a channel.
    ///
    /// # Panics
    /// If it is empty: an error in the model.
    pub fn send(&mut self, schedule: &mut Schedule<E>, end: u8, channel: u8, bytes: &[u8]) {
        assert!(!bytes.is_empty(), "a packet has bytes");
        let pieces = bytes.chunks(LONGEST_BLOCK_BYTES);
        let last = pieces.len() - 1;
        for (at, piece) in pieces.enumerate() {
            let mut data = piece.to_vec();
            data.resize(piece.len().next_multiple_of(DW_BYTES), 0);
            let header = NetworkHeader {
                class: Class::Guest,
                operation: u8::from(at == last),
                target: 1 - end,
                source: end,
                // Padding bytes in the last DW.
                tag: (data.len() - piece.len()) as u8,
                address: (at * LONGEST_BLOCK_BYTES) as u64,
            };
            let form = self.link.config().header;
            let tlp = NetworkPacket { header, channel, data }.to_tlp(form);
            let tlp = tlp.expect("it was cut to fit");
            self.waiting[usize::from(end)][usize::from(channel)].push_back(tlp);
        }
        self.pump(schedule, end, channel);
    }

    /// Handles an event of the link; returns the packet that it completes, if any.
    ///
    /// # Panics
    /// If something arrives that no carrier sent: the link has other users.
    pub fn handle(&mut self, schedule: &mut Schedule<E>, event: LinkEvent) -> Option<Carried> {
        match event {
            LinkEvent::Room { end, channel } => {
                self.pump(schedule, end, channel);
                None
            }
            LinkEvent::Arrived { end, channel } => {
                let tlp = self.link.take(schedule, end, channel)?;
                let packet = NetworkPacket::from_tlp(&tlp, self.link.config().header);
                let packet = packet.expect("the link's CRCs let nothing else through");
                let partial = &mut self.partial[usize::from(end)][usize::from(channel)];
                assert_eq!(packet.header.address, partial.len() as u64, "pieces come in order");
                let length = packet.data.len() - usize::from(packet.header.tag);
                partial.extend_from_slice(&packet.data[..length]);
                let is_whole = packet.header.operation == 1;
                is_whole.then(|| Carried { end, channel, bytes: std::mem::take(partial) })
            }
            event => {
                self.link.handle(schedule, event);
                None
            }
        }
    }

    fn pump(&mut self, schedule: &mut Schedule<E>, end: u8, channel: u8) {
        let waiting = &mut self.waiting[usize::from(end)][usize::from(channel)];
        while let Some(tlp) = waiting.pop_front() {
            if let Err(tlp) = self.link.offer(schedule, end, channel, tlp) {
                waiting.push_front(tlp);
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Ended, Model, Random, Simulation};
    use crate::smp::Config;
    use crate::units::Time;

    #[derive(Clone, Copy)]
    struct OnLink(LinkEvent);

    impl Event for OnLink {
        fn trace(self) -> u64 {
            self.0.trace()
        }
    }

    struct Pair {
        carrier: Carrier<OnLink>,
        came: Vec<Carried>,
    }

    impl Model for Pair {
        type Event = OnLink;
        fn handle(&mut self, OnLink(event): OnLink, schedule: &mut Schedule<OnLink>) {
            self.came.extend(self.carrier.handle(schedule, event));
        }
    }

    /// Packets of one byte to several thousand bytes come out whole and in order on each channel,
    /// also over bad lanes.
    #[test]
    fn packets_of_any_length_are_carried() {
        for bit_errors in [0.0, 2e-5] {
            let config = Config { bit_errors, ..Config::recommended() };
            let mut schedule = Schedule::new(5, config.cycle());
            let link = Link::trained(&config, 0, |_, event| OnLink(event), &mut schedule);
            let pair = Pair { carrier: Carrier::new(link), came: Vec::new() };
            let mut simulation = Simulation { model: pair, schedule };
            let mut random = Random::new(4);
            let mut sent = Vec::new();
            for number in 0..300u32 {
                let length = 1 + random.below(if number % 3 == 0 { 5_000 } else { 70 });
                let bytes: Vec<u8> = (0..length).map(|_| random.word() as u8).collect();
                let (end, channel) = (random.below(2) as u8, random.below(2) as u8);
                let Simulation { model, schedule } = &mut simulation;
                model.carrier.send(schedule, end, channel, &bytes);
                assert!(!model.carrier.is_quiet());
                sent.push(Carried { end: 1 - end, channel, bytes });
            }
            let limit = Time::from_ps(1_000_000_000_000);
            while simulation.model.came.len() < 300 {
                assert!(!simulation.model.carrier.is_quiet());
                assert!(simulation.step(limit));
            }
            let ended = simulation.run(limit);
            assert_eq!(ended, Ended::Quiet);
            let (now, pair) = (simulation.now(), simulation.model);
            assert!(pair.carrier.is_quiet());
            pair.carrier.link().audit(now).unwrap();
            for place in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                let of_place = |all: &[Carried]| -> Vec<Carried> {
                    all.iter().filter(|one| (one.end, one.channel) == place).cloned().collect()
                };
                assert!(of_place(&pair.came) == of_place(&sent));
            }
        }
    }
}
