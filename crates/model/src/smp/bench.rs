//! The paper's test bench: two nodes joined by one link, with a stimulus per virtual channel above
//! each network layer. A checker compares received packets with sent ones (S-31; SMP paper, section
//! 3 and Fig. 4).

use std::collections::VecDeque;

use bellwire_wire::link::DW_BYTES;
use bellwire_wire::link::network::{Class, NetworkHeader};

use crate::engine::{Event, Model, Random, Schedule, Simulation};
use crate::units::Time;

use super::config::{Config, Header};
use super::link::{Link, LinkEvent};
use super::network::{HEADER_DW, LONGEST_COHERENCE_DW, NetworkPacket};
use super::transport::CHANNELS;

/// An event on the bench.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BenchEvent(pub LinkEvent);

impl Event for BenchEvent {
    fn trace(self) -> u64 {
        self.0.trace()
    }
}

/// The packet lengths of a stimulus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lengths {
    /// Packets of this many DW, of which the header counts 4 as in the paper; shorter ones are a
    /// header alone.
    Fixed(usize),
    /// A random length up to the longest.
    Random,
    /// A random length of those that the coherence unit may send (S-32).
    Coherence,
}

/// One stimulus: back to back, as fast as the transport layer takes packets.
#[derive(Clone, Debug)]
struct Stimulus {
    lengths: Lengths,
    left: u64,
    random: Random,
    /// A packet that is made and not yet accepted.
    next: Option<Vec<u8>>,
    serial: u64,
}

/// Both nodes.
pub struct Bench {
    /// The link.
    pub link: Link<BenchEvent>,
    form: Header,
    stimuli: [[Option<Stimulus>; CHANNELS]; 2],
    /// Packets that each channel must still deliver at each end, in order.
    expected: [[VecDeque<NetworkPacket>; CHANNELS]; 2],
    /// Channels at each end whose user takes no packets.
    blocked: [[bool; CHANNELS]; 2],
    /// Packets that differ from the expected ones.
    pub mismatches: u64,
    /// Packets compared.
    pub compared: u64,
    /// Bytes of packets that arrived at each end; a header counts 4 DW.
    pub useful_bytes: [u64; 2],
    /// When the last packet arrived.
    pub last_arrival: Time,
    /// Canary: the packet of this number is damaged behind the link, where no CRC covers it. The
    /// checker must notice.
    pub damage: Option<u64>,
}

/// The bench with its schedule.
pub type Machine = Simulation<Bench>;

impl Machine {
    /// A bench with a link that is up, and nothing to send yet.
    pub fn new(config: &Config, seed: u64) -> Machine {
        let mut schedule = Schedule::new(seed, config.cycle());
        let link = Link::trained(config, 0, |_, event| BenchEvent(event), &mut schedule);
        Machine::on(link, schedule)
    }

    /// A bench around a link.
    pub fn on(link: Link<BenchEvent>, schedule: Schedule<BenchEvent>) -> Machine {
        let bench = Bench {
            form: link.config().header,
            link,
            stimuli: Default::default(),
            expected: Default::default(),
            blocked: Default::default(),
            mismatches: 0,
            compared: 0,
            useful_bytes: [0; 2],
            last_arrival: Time::ZERO,
            damage: None,
        };
        Machine { model: bench, schedule }
    }

    /// Lets `end` send `packets` packets on a channel, starting now.
    pub fn stimulate(&mut self, end: u8, channel: u8, lengths: Lengths, packets: u64) {
        let random = self.schedule.random.fork(7);
        let stimulus = Stimulus { lengths, left: packets, random, next: None, serial: 0 };
        self.model.stimuli[usize::from(end)][usize::from(channel)] = Some(stimulus);
        self.model.feed(&mut self.schedule, end, channel);
    }

    /// Makes the user at `end` stop taking packets of a channel, or resume.
    pub fn block(&mut self, end: u8, channel: u8, blocked: bool) {
        self.model.blocked[usize::from(end)][usize::from(channel)] = blocked;
        self.model.collect(&mut self.schedule, end, channel);
    }

    /// Packets sent but not yet compared.
    pub fn missing(&self) -> usize {
        self.model.expected.iter().flatten().map(VecDeque::len).sum()
    }
}

impl Bench {
    fn feed(&mut self, schedule: &mut Schedule<BenchEvent>, end: u8, channel: u8) {
        let Some(stimulus) = &mut self.stimuli[usize::from(end)][usize::from(channel)] else {
            return;
        };
        while stimulus.left > 0 {
            let expected = &mut self.expected[usize::from(1 - end)][usize::from(channel)];
            let tlp = stimulus.next.take().unwrap_or_else(|| {
                let packet = stimulus.packet(end, channel);
                let tlp = packet.to_tlp(self.form).expect("the stimulus makes packets that fit");
                expected.push_back(packet);
                tlp
            });
            match self.link.offer(schedule, end, channel, tlp) {
                Ok(()) => stimulus.left -= 1,
                Err(tlp) => {
                    stimulus.next = Some(tlp);
                    return;
                }
            }
        }
    }

    fn collect(&mut self, schedule: &mut Schedule<BenchEvent>, end: u8, channel: u8) {
        let (at, on) = (usize::from(end), usize::from(channel));
        if self.blocked[at][on] {
            return;
        }
        while let Some(tlp) = self.link.take(schedule, end, channel) {
            let mut came = NetworkPacket::from_tlp(&tlp, self.form);
            if let (Some(number), Ok(packet)) = (self.damage, &mut came)
                && number == self.compared
            {
                packet.header.tag ^= 1;
            }
            let expected = self.expected[at][on].pop_front();
            self.compared += 1;
            self.last_arrival = schedule.now();
            match (came, expected) {
                (Ok(came), Some(expected)) if came == expected => {
                    self.useful_bytes[at] += (came.length_dw() * DW_BYTES) as u64;
                }
                _ => self.mismatches += 1,
            }
        }
    }
}

impl Stimulus {
    fn packet(&mut self, end: u8, channel: u8) -> NetworkPacket {
        let length_dw = match self.lengths {
            Lengths::Fixed(length_dw) => length_dw,
            Lengths::Random => HEADER_DW + self.random.below(125) as usize,
            Lengths::Coherence => 1 + self.random.below(LONGEST_COHERENCE_DW as u64) as usize,
        };
        let data = (0..length_dw.saturating_sub(HEADER_DW) * DW_BYTES)
            .map(|_| self.random.word() as u8)
            .collect();
        self.serial += 1;
        let header = NetworkHeader {
            class: Class::Block,
            operation: 0,
            target: 1 - end,
            source: end,
            tag: self.serial as u8,
            address: self.serial,
        };
        NetworkPacket { header, channel, data }
    }
}

impl Model for Bench {
    type Event = BenchEvent;

    fn handle(&mut self, BenchEvent(event): BenchEvent, schedule: &mut Schedule<BenchEvent>) {
        match event {
            LinkEvent::Room { end, channel } => self.feed(schedule, end, channel),
            LinkEvent::Arrived { end, channel } => self.collect(schedule, end, channel),
            event => self.link.handle(schedule, event),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets of a stimulus are numbered, go to the other end, and have every length up to the
    /// longest. A header alone is the shortest.
    #[test]
    fn a_stimulus_makes_packets() {
        let (lengths, random) = (Lengths::Coherence, Random::new(3));
        let mut stimulus = Stimulus { lengths, left: 0, random, next: None, serial: 0 };
        let mut seen = Vec::new();
        for number in 1..=500 {
            let packet = stimulus.packet(1, 0);
            let NetworkHeader { source, target, tag, address, .. } = packet.header;
            assert_eq!((source, target, tag, address), (1, 0, number as u8, number));
            seen.push(packet.data.len());
        }
        seen.sort_unstable();
        seen.dedup();
        let expected = (0..=LONGEST_COHERENCE_DW - HEADER_DW).map(|dw| dw * DW_BYTES);
        assert!(seen.iter().copied().eq(expected), "{seen:?}");
    }

    /// Canary: a damaged packet is noticed, whatever its tag was. The first has tag 1.
    #[test]
    fn damage_is_noticed() {
        for number in 0..2 {
            let mut running = Machine::new(&Config::recommended(), 1);
            running.model.damage = Some(number);
            running.stimulate(0, 0, Lengths::Fixed(8), 3);
            running.run(Time::NEVER);
            assert_eq!((running.model.compared, running.model.mismatches), (3, 1), "{number}");
        }
    }

    /// Events of a link have their own words in the trace.
    #[test]
    fn events_are_told_apart() {
        let events = [LinkEvent::Up, LinkEvent::Line { end: 0 }, LinkEvent::Timer { end: 1 }];
        let [up, line, timer] = events.map(|event| BenchEvent(event).trace());
        assert!(up != line && line != timer && timer != up);
    }
}
