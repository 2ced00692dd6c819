//! Two or four processors with all their units and links, in time (S-01 to S-08; SMP paper, section
//! 3 and Fig. 3).

use std::collections::VecDeque;

use bellwire_wire::link::network::Class;

use crate::engine::{Event, Model, Random, Schedule, Simulation};
use crate::units::{Span, Time};

use super::cc::checker::{Golden, check_copies};
use super::cc::message::Message;
use super::cc::unit::{Done, Outcome, Unit, Want};
use super::config::Config;
use super::lbt::{Lbt, Refused, Registers};
use super::link::{Link, LinkEvent};
use super::lmu::{Lmu, Way, links_of};
use super::network::NetworkPacket;

/// Bytes of a node's memory that block transfers can reach.
pub const MEMORY_BYTES: usize = 1_048_576;

/// Time for a message inside a node, from its cache to its directory or back.
const INSIDE: Span = Span::from_ns(8);

/// Time between accesses of a processor.
const THINKS: Span = Span::from_ns(4);

/// An event of a system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SystemEvent {
    /// An event of a link.
    Link {
        /// Its number.
        link: u16,
        /// Its event.
        event: LinkEvent,
    },
    /// A message arrives inside a node.
    Inside {
        /// The node.
        node: u8,
    },
    /// A processor makes its next access.
    Accesses {
        /// The node.
        node: u8,
    },
}

impl Event for SystemEvent {
    fn trace(self) -> u64 {
        match self {
            SystemEvent::Link { link, event } => event.trace() | u64::from(link) << 8,
            SystemEvent::Inside { node } => 1 << 32 | u64::from(node),
            SystemEvent::Accesses { node } => 2 << 32 | u64::from(node),
        }
    }
}

/// Random accesses of the processors to shared lines.
#[derive(Clone, Copy, Debug)]
pub struct Sharing {
    /// Total lines.
    pub lines: u32,
    /// Lines in a cache.
    pub capacity: usize,
    /// Accesses of each node.
    pub accesses: u64,
    /// The most waiting accesses of a node.
    pub waiting: usize,
}

/// An interrupt of a block unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupt {
    /// The transfer's number.
    pub transfer: u8,
    /// When.
    pub at: Time,
    /// Packets that the node's links had sent on channel 0 by then.
    pub sent: u64,
}

/// A processor with its units.
pub struct Node {
    /// Memory for block transfers.
    pub memory: Vec<u8>,
    /// Link management.
    pub lmu: Lmu,
    /// Block transfers.
    pub lbt: Lbt,
    /// Interrupts, in order.
    pub interrupts: Vec<Interrupt>,
    /// Block packets that arrived: source node, transfer, address.
    pub blocks: Vec<(u8, u8, u64)>,
    /// Coherence packets that arrived, by source node.
    pub messages: Vec<u64>,
    cc: Unit,
    inside: VecDeque<Message>,
    accesses_left: u64,
    waiting: usize,
    random: Random,
    /// Accesses done.
    pub accesses_done: u64,
}

/// The complete system.
pub struct System {
    /// Processors.
    pub nodes: Vec<Node>,
    /// Links, by the numbers of [`links_of`].
    pub links: Vec<Link<SystemEvent>>,
    ends: Vec<[usize; 2]>,
    config: Config,
    sharing: Sharing,
    golden: Golden,
    /// The first violation.
    pub fault: Option<String>,
}

/// The system with its schedule.
pub type Machine = Simulation<System>;

impl Machine {
    /// A system of 2, 3 or 4 nodes whose links are up.
    ///
    /// # Errors
    /// A sentence, if this number of nodes cannot be joined.
    pub fn new(
        nodes: usize,
        config: &Config,
        sharing: Sharing,
        seed: u64,
    ) -> Result<Machine, String> {
        config.check().map_err(|error| error.to_string())?;
        let ends = links_of(nodes)?;
        let mut schedule = Schedule::new(seed, config.cycle());
        let wrap = |link, event| SystemEvent::Link { link, event };
        let links = (0..ends.len() as u16)
            .map(|link| Link::trained(config, link, wrap, &mut schedule))
            .collect();
        let node = |at: usize, schedule: &mut Schedule<SystemEvent>| Node {
            memory: vec![0; MEMORY_BYTES],
            lmu: Lmu::new(at, nodes, &ends),
            lbt: Lbt::default(),
            interrupts: Vec::new(),
            blocks: Vec::new(),
            messages: vec![0; nodes],
            cc: Unit::new(at as u8, nodes as u8, sharing.lines, sharing.capacity, None),
            inside: VecDeque::new(),
            accesses_left: sharing.accesses,
            waiting: 0,
            random: schedule.random.fork(at as u64),
            accesses_done: 0,
        };
        let nodes = (0..nodes).map(|at| node(at, &mut schedule)).collect();
        let golden = Golden::new(sharing.lines as usize);
        let config = config.clone();
        let system = System { nodes, links, ends, config, sharing, golden, fault: None };
        let mut machine = Machine { model: system, schedule };
        for node in 0..machine.model.nodes.len() as u8 {
            machine.schedule.at(Time::ZERO, SystemEvent::Accesses { node });
        }
        Ok(machine)
    }

    /// Fills a node's descriptor registers and starts the transfer.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn start(&mut self, node: u8, registers: Registers) -> Result<u8, Refused> {
        let nodes = self.model.nodes.len() as u8;
        let at = &mut self.model.nodes[usize::from(node)];
        let number = at.lbt.start(registers, node, nodes, MEMORY_BYTES as u64)?;
        self.model.send_blocks(&mut self.schedule, usize::from(node));
        Ok(number)
    }

    /// Checks that all work is done, nothing is left anywhere, and no law was violated.
    ///
    /// # Errors
    /// A sentence that names the fault.
    pub fn audit(&self) -> Result<(), String> {
        if let Some(fault) = &self.model.fault {
            return Err(fault.clone());
        }
        for (at, node) in self.model.nodes.iter().enumerate() {
            let idle = node.cc.is_idle() && node.lbt.is_idle() && node.lmu.is_empty();
            if !idle || node.accesses_left > 0 || node.waiting > 0 {
                return Err(format!("node {at} has not come to rest"));
            }
        }
        for link in &self.model.links {
            link.audit(self.schedule.now()).map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

impl System {
    fn access(&mut self, schedule: &mut Schedule<SystemEvent>, node: u8) {
        let at = usize::from(node);
        let own = &mut self.nodes[at];
        if own.accesses_left == 0 || own.waiting >= self.sharing.waiting {
            return;
        }
        let line = own.random.below(self.sharing.lines.into()) as u32;
        let is_write = own.random.below(3) == 0;
        let want = if is_write { Want::Write(self.golden.fresh()) } else { Want::Read };
        let mut out = Vec::new();
        match own.cc.access(line, want, &mut out) {
            Outcome::Busy => {}
            Outcome::Waits => {
                own.accesses_left -= 1;
                own.waiting += 1;
            }
            Outcome::Done(data) => {
                own.accesses_left -= 1;
                self.settle(at, Done { line, want, data });
            }
        }
        self.check(line);
        self.send_messages(schedule, at, &out);
        schedule.after(THINKS, SystemEvent::Accesses { node });
    }

    fn settle(&mut self, node: usize, done: Done) {
        self.nodes[node].accesses_done += 1;
        match done.want {
            Want::Write(value) => self.golden.wrote(done.line, value),
            Want::Read => {
                if let Err(error) = self.golden.read(node as u8, done.line, done.data) {
                    self.fault.get_or_insert(error.to_string());
                }
            }
        }
    }

    fn check(&mut self, line: u32) {
        let copies = self.nodes.iter().map(|node| node.cc.cached(line));
        if let Err(error) = check_copies(line, copies) {
            self.fault.get_or_insert(error.to_string());
        }
    }

    fn message_comes(
        &mut self,
        schedule: &mut Schedule<SystemEvent>,
        node: usize,
        message: Message,
    ) {
        let mut out = Vec::new();
        match self.nodes[node].cc.handle(message, &mut out) {
            Err(error) => {
                self.fault.get_or_insert(error.to_string());
            }
            Ok(None) => {}
            Ok(Some(done)) => {
                self.nodes[node].waiting -= 1;
                self.settle(node, done);
                schedule.settle(SystemEvent::Accesses { node: node as u8 });
            }
        }
        self.check(message.line);
        self.send_messages(schedule, node, &out);
    }

    fn send_messages(
        &mut self,
        schedule: &mut Schedule<SystemEvent>,
        node: usize,
        out: &[Message],
    ) {
        for message in out {
            if usize::from(message.to) == node {
                self.nodes[node].inside.push_back(*message);
                schedule.after(INSIDE, SystemEvent::Inside { node: node as u8 });
                continue;
            }
            let packet = message.to_packet();
            let way = self.nodes[node].lmu.way(&packet).expect("all nodes are joined");
            self.nodes[node].lmu.send(way, packet);
            self.pump(schedule, node, way);
        }
    }

    /// Lets the block unit fill the link management's queues.
    fn send_blocks(&mut self, schedule: &mut Schedule<SystemEvent>, node: usize) {
        loop {
            let Node { lbt, lmu, memory, .. } = &mut self.nodes[node];
            let accepts = |packet: &NetworkPacket| {
                lmu.way(packet).is_ok_and(|way| lmu.has_room(way, packet.channel))
            };
            let Some((packet, _)) = lbt.next(node as u8, memory, accepts) else { return };
            let way = lmu.way(&packet).expect("it was asked for");
            lmu.send(way, packet);
            self.pump(schedule, node, way);
        }
    }

    /// Offers a link the packets that wait for it.
    fn pump(&mut self, schedule: &mut Schedule<SystemEvent>, node: usize, way: Way) {
        let link = &mut self.links[usize::from(way.link)];
        for channel in 0..self.config.channels {
            while let Some(packet) = self.nodes[node].lmu.queue(way.link, channel).front() {
                let tlp = packet.to_tlp(self.config.header).expect("units make packets that fit");
                let ends = packet.header.class == Class::Block && packet.header.operation == 1;
                let tag = packet.header.tag;
                if link.offer(schedule, way.end, channel, tlp).is_err() {
                    break;
                }
                self.nodes[node].lmu.queue(way.link, channel).pop_front();
                if ends {
                    let count = link.end(way.end).handed()[usize::from(channel)];
                    self.nodes[node].lbt.last_handed(tag, way, count);
                }
            }
        }
    }

    /// Handles a packet sent by a link: it frees room, and a transfer may have ended.
    fn link_sent(&mut self, schedule: &mut Schedule<SystemEvent>, link: u16, end: u8) {
        let node = self.ends[usize::from(link)][usize::from(end)];
        self.pump(schedule, node, Way { link, end });
        let links = &self.links;
        let sent = |way: Way| links[usize::from(way.link)].end(way.end).sent()[0];
        let Node { lbt, interrupts, .. } = &mut self.nodes[node];
        for transfer in lbt.interrupts(sent) {
            let at = schedule.now();
            let of_node = self.ends.iter().enumerate().filter_map(|(link, ends)| {
                let end = ends.iter().position(|other| *other == node)?;
                Some(links[link].end(end as u8).sent()[0])
            });
            interrupts.push(Interrupt { transfer, at, sent: of_node.sum() });
        }
        self.send_blocks(schedule, node);
    }

    fn packet_comes(
        &mut self,
        schedule: &mut Schedule<SystemEvent>,
        link: u16,
        end: u8,
        channel: u8,
    ) {
        let node = self.ends[usize::from(link)][usize::from(end)];
        while let Some(tlp) = self.links[usize::from(link)].take(schedule, end, channel) {
            let packet = match NetworkPacket::from_tlp(&tlp, self.config.header) {
                Ok(packet) if usize::from(packet.header.target) == node => packet,
                wrong => {
                    self.fault.get_or_insert(format!("node {node} gets {wrong:?}"));
                    continue;
                }
            };
            let header = packet.header;
            if header.class == Class::Block {
                let start = header.address as usize;
                self.nodes[node].memory[start..start + packet.data.len()]
                    .copy_from_slice(&packet.data);
                self.nodes[node].blocks.push((header.source, header.tag, header.address));
                continue;
            }
            match Message::from_packet(&packet) {
                Some(message) => {
                    self.nodes[node].messages[usize::from(message.from)] += 1;
                    self.message_comes(schedule, node, message);
                }
                None => {
                    self.fault.get_or_insert(format!("node {node} gets {packet:?}"));
                }
            }
        }
    }
}

impl Model for System {
    type Event = SystemEvent;

    fn handle(&mut self, event: SystemEvent, schedule: &mut Schedule<SystemEvent>) {
        match event {
            SystemEvent::Accesses { node } => self.access(schedule, node),
            SystemEvent::Inside { node } => {
                let at = usize::from(node);
                if let Some(message) = self.nodes[at].inside.pop_front() {
                    self.message_comes(schedule, at, message);
                }
            }
            SystemEvent::Link { link, event } => match event {
                LinkEvent::Room { end, .. } => self.link_sent(schedule, link, end),
                LinkEvent::Arrived { end, channel } => {
                    self.packet_comes(schedule, link, end, channel);
                }
                event => self.links[usize::from(link)].handle(schedule, event),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::smp::cc::Fault;

    /// Two processors that did 20 accesses each.
    fn done() -> Machine {
        let sharing = Sharing { lines: 8, capacity: 4, accesses: 20, waiting: 2 };
        let mut running = Machine::new(2, &Config::recommended(), sharing, 1).unwrap();
        running.run(Time::NEVER);
        running
    }

    /// Canary: the audit finds a fault, each unit that has not come to rest, and a lost packet.
    #[test]
    fn unfinished_work_is_found() {
        crate::limit::limited(|| {
            let found = |plant: fn(&mut Machine)| {
                let mut running = done();
                running.audit().unwrap();
                plant(&mut running);
                running.audit().unwrap_err()
            };
            assert_eq!(found(|it| it.model.fault = Some("planted".to_owned())), "planted");
            for plant in [
                (|it| it.model.nodes[1].accesses_left = 1) as fn(&mut Machine),
                |it| it.model.nodes[1].waiting = 1,
                |it| {
                    let block = Registers { start: 0, length: 8, target: 1, target_start: 0 };
                    it.model.nodes[0].lbt.start(block, 0, 2, MEMORY_BYTES as u64).unwrap();
                },
            ] {
                assert!(found(plant).contains("has not come to rest"));
            }
        });
    }

    /// Each access is counted once when it is done.
    #[test]
    fn accesses_are_counted() {
        crate::limit::limited(|| {
            let running = done();
            let done: Vec<u64> = running.model.nodes.iter().map(|it| it.accesses_done).collect();
            assert_eq!(done, [20, 20]);
            assert!(running.model.nodes.iter().all(|it| it.accesses_left == 0 && it.waiting == 0));
        });
    }

    /// Canary: caches that keep what they should give up are seen as soon as another may write.
    #[test]
    fn two_owners_are_a_fault() {
        crate::limit::limited(|| {
            let sharing = Sharing { lines: 4, capacity: 4, accesses: 50, waiting: 2 };
            let mut running = Machine::new(2, &Config::recommended(), sharing, 1).unwrap();
            for (at, node) in (0..).zip(&mut running.model.nodes) {
                node.cc = Unit::new(at, 2, 4, 4, Some(Fault::KeepsInvalidated));
            }
            running.run(Time::NEVER);
            let told = running.audit().unwrap_err();
            assert!(told.contains("one node may write while another has a copy"), "{told}");
        });
    }

    /// A third of the accesses are writes.
    #[test]
    fn a_third_of_the_accesses_are_writes() {
        crate::limit::limited(|| {
            let sharing = Sharing { lines: 64, capacity: 64, accesses: 600, waiting: 1 };
            let mut running = Machine::new(2, &Config::recommended(), sharing, 1).unwrap();
            running.run(Time::NEVER);
            let writes = running.model.golden.fresh() - 2;
            assert!((300..500).contains(&writes), "{writes} of 1200");
        });
    }

    /// A packet for another node is a fault.
    #[test]
    fn a_packet_for_another_node_is_a_fault() {
        let mut running = done();
        let mut packet = {
            let block = Registers { start: 0, length: 8, target: 1, target_start: 0 };
            let mut lbt = Lbt::default();
            lbt.start(block, 0, 2, MEMORY_BYTES as u64).unwrap();
            lbt.next(0, &[0; 8], |_| true).unwrap().0
        };
        packet.header.target = 3;
        let tlp = packet.to_tlp(running.model.config.header).unwrap();
        running.model.links[0].offer(&mut running.schedule, 0, packet.channel, tlp).unwrap();
        running.run(Time::NEVER);
        assert!(running.audit().unwrap_err().contains("node 1 gets"));
    }

    /// An event's word in the trace is that of its link with the link's number above, or its kind
    /// above the node's number.
    #[test]
    fn events_are_told_apart() {
        let event = LinkEvent::Line { end: 1 };
        assert_eq!(SystemEvent::Link { link: 0x203, event }.trace(), 0x2_0311);
        assert_eq!(SystemEvent::Inside { node: 3 }.trace(), 0x1_0000_0003);
        assert_eq!(SystemEvent::Accesses { node: 3 }.trace(), 0x2_0000_0003);
    }
}
