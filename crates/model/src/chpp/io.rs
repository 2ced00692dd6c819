//! The PCIe crossbar for traffic between processors and I/O devices, and the devices (C-03, C-55;
//! cHPP sections 2.3 and 3.2).
//!
//! Ports: a processor's loads and stores to a device's global address use the same links as
//! doorbells and DMA. They cross here, not in the intra-DMA crossbar, and reach the device over its
//! own link. The data of a load returns the same way. Each controller has a PCIe crossbar for its
//! nodes and its devices.
//!
//! Requests of one node stay in order. The controller's port buffers `io.buffer` of them for each
//! node, separate from doorbells. So the back-pressure of a device stops its requesters, but
//! neither doorbells nor DMA.

use std::collections::VecDeque;

use super::config::Config;
use super::crossbar::{Bound, Crossbar, Grant};
use super::memory::NODE_SHIFT;
use super::node::Node;
use super::pcie::{COMPLETION_BYTES, Link, REQUEST_BYTES};
use super::{NicEvent, Packet, PacketHandle};
use crate::engine::{Pool, Random, Schedule, Waits};
use crate::stats::{Imbalance, Occupancy};
use crate::units::Time;

/// Set in the global address of a device, clear in that of memory: devices have the upper half of
/// each 64 GiB (C-05).
pub const DEVICE_BIT: u32 = 35;

/// Kind of place behind the PCIe crossbar's outputs: a node's port or a device.
const REQUESTS: u8 = 0;

/// A processor's access to a device.
#[derive(Clone, Debug)]
pub struct Access {
    /// Requesting node.
    pub node: usize,
    /// Device.
    pub device: usize,
    /// Whether it is a load.
    pub is_load: bool,
    /// Global address of the first byte.
    pub address: u64,
    /// The bytes stored or loaded.
    pub bytes: Vec<u8>,
    /// When the program requested it.
    pub posted: Time,
    /// When a load's data reached the processor, or a store's the device.
    pub done: Option<Time>,
}

/// The step of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A credit of the controller's port has come back to a node.
    Room,
    /// A packet has crossed the crossbar.
    Through,
    /// A device has a request.
    Served,
    /// A device has the data of a load ready.
    Answered,
    /// A processor has the data of a load.
    Finished,
}

/// A device with a range of addresses.
struct Device {
    memory: Vec<u8>,
    base: u64,
    /// Device to controller.
    up: Link,
    /// Controller to device.
    down: Link,
    /// Requests in flight to it.
    coming: VecDeque<PacketHandle>,
    /// Loads in service.
    loading: VecDeque<PacketHandle>,
    takes: bool,
}

/// The accesses of a node.
#[derive(Default)]
struct Source {
    /// Requests for which its port has room.
    room: usize,
    waiting: VecDeque<u32>,
    /// Accesses from request to end.
    occupancy: Occupancy,
    /// Loads whose data is on the last link.
    finishing: VecDeque<PacketHandle>,
}

/// PCIe crossbars and devices of all controllers.
pub struct Io {
    nodes: usize,
    devices_each: usize,
    /// Number of the first PCIe crossbar: their numbers follow those of the controllers' intra-DMA
    /// crossbars.
    first: usize,
    crossbars: Vec<Crossbar>,
    devices: Vec<Device>,
    sources: Vec<Source>,
    /// Packets between crossbar and output, by crossbar, then output.
    through: Vec<VecDeque<PacketHandle>>,
    grants: Vec<Grant>,
    accesses: Vec<Access>,
    /// Ended accesses whose programs have not been notified.
    pub ended: VecDeque<u32>,
}

impl Io {
    /// Idle crossbars, and devices with zeros.
    pub fn new(config: &Config, controllers: usize, random: &mut Random) -> Io {
        let (nodes, devices_each) = (config.crossbar.ports, config.io.devices);
        let ports = nodes + devices_each;
        let room = config.io.buffer;
        // A processor always has room for requested data.
        let places = |output: usize, _| if output < nodes { usize::MAX } else { room };
        let device = |number: usize| Device {
            memory: vec![0; config.io.memory.count() as usize],
            base: (number as u64) << NODE_SHIFT | 1 << DEVICE_BIT,
            up: Link::new(&config.pcie),
            down: Link::new(&config.pcie),
            coming: VecDeque::new(),
            loading: VecDeque::new(),
            takes: true,
        };
        let source = |_| Source { room, ..Source::default() };
        Io {
            nodes,
            devices_each,
            first: controllers,
            crossbars: (0..controllers)
                .map(|at| Crossbar::new(config, (controllers + at, ports, 1), places, random))
                .collect(),
            devices: (0..controllers * devices_each).map(device).collect(),
            sources: (0..controllers * nodes).map(source).collect(),
            through: vec![VecDeque::new(); controllers * ports],
            grants: Vec::new(),
            accesses: Vec::new(),
            ended: VecDeque::new(),
        }
    }

    /// Global address of the first byte of a device; nothing if it does not exist.
    pub fn base(&self, device: usize) -> Option<u64> {
        self.devices.get(device).map(|device| device.base)
    }

    /// Bytes of a device's range at a global address; nothing if not all of them exist.
    pub fn memory(&self, address: u64, length: usize) -> Option<&[u8]> {
        let device = self.devices.get(device_of(address)?)?;
        let start = usize::try_from(address.checked_sub(device.base)?).ok()?;
        device.memory.get(start..start.checked_add(length)?)
    }

    /// All accesses so far.
    pub fn accesses(&self) -> &[Access] {
        &self.accesses
    }

    /// Whether this is the number of a PCIe crossbar.
    pub fn is_crossbar(&self, number: usize) -> bool {
        number >= self.first
    }

    /// Makes a device take requests, or leave them queued.
    pub fn takes(&mut self, schedule: &mut Schedule<NicEvent>, device: usize, yes: bool) {
        if let Some(state) = self.devices.get_mut(device) {
            state.takes = yes;
            for _ in 0..if yes { state.coming.len() } else { 0 } {
                schedule.after(crate::units::Span::ZERO, step(Step::Served, device));
            }
        }
    }

    /// A processor loads (`store` is none) or stores up to one bus packet of bytes. Returns the
    /// access's number, or nothing if no device of the node's controller has all these addresses.
    pub fn ask(
        &mut self,
        cx: IoContext,
        (node, address, length): (usize, u64, usize),
        store: Option<&[u8]>,
    ) -> Option<u32> {
        self.memory(address, length)?;
        let device = device_of(address)?;
        let fits = (1..=cx.config.pcie.max_payload.count()).contains(&(length as u64));
        let page = address % 4096 + length as u64 <= 4096;
        if device / self.devices_each != node / self.nodes || !fits || !page {
            return None;
        }
        let posted = cx.schedule.now();
        let number = self.accesses.len() as u32;
        self.accesses.push(Access {
            node,
            device,
            is_load: store.is_none(),
            address,
            bytes: store.map_or_else(|| vec![0; length], <[u8]>::to_vec),
            posted,
            done: None,
        });
        let source = &mut self.sources[node];
        source.occupancy.enter(posted);
        source.waiting.push_back(number);
        self.send(cx, node);
        Some(number)
    }

    /// Sends a node's waiting requests as long as the port has room.
    fn send(&mut self, cx: IoContext, node: usize) {
        let IoContext { schedule, config, nodes, packets } = cx;
        let source = &mut self.sources[node];
        while source.room > 0
            && let Some(number) = source.waiting.pop_front()
        {
            source.room -= 1;
            let access = &self.accesses[number as usize];
            let data = if access.is_load { 0 } else { dwords(&access.bytes) };
            let passage = nodes[node].port.down.transmit(schedule.now(), REQUEST_BYTES + data);
            let bytes = if access.is_load { Vec::new() } else { access.bytes.clone() };
            let packet = packets.put(Packet { bytes, operation: number, part: 0, is_get: false });
            let (controller, input) = (node / self.nodes, node % self.nodes);
            let output = (self.nodes + access.device % self.devices_each) as u8;
            let bound = bound(config, packet, data, (node, output));
            let head = config.nic.edge(passage.arrives);
            self.crossbars[controller].inject(schedule, (input, 0), bound, head);
        }
    }

    /// Matches inputs and outputs of a PCIe crossbar.
    pub fn matches(&mut self, cx: IoContext, number: usize) {
        let controller = number - self.first;
        let ports = self.nodes + self.devices_each;
        self.crossbars[controller].matches(cx.schedule, &mut self.grants);
        for Grant { bound, tail, .. } in self.grants.drain(..) {
            let place = controller * ports + usize::from(bound.output);
            self.through[place].push_back(bound.packet);
            cx.schedule.at(tail, step(Step::Through, place));
        }
    }

    /// A packet has crossed a PCIe crossbar.
    pub fn crossed(&mut self, cx: IoContext, number: usize, input: usize, output: usize) {
        let controller = number - self.first;
        self.crossbars[controller].crossed(cx.schedule, input, output);
        match input.checked_sub(self.nodes) {
            None => {
                let node = controller * self.nodes + input;
                cx.schedule.after(cx.config.pcie.latency, step(Step::Room, node));
            }
            // The answer to a load has left the device, which frees the load's place.
            Some(_) => {
                self.crossbars[controller].credit_returned(cx.schedule, input, REQUESTS.into());
            }
        }
    }

    /// Runs the next step of an access.
    pub fn step(&mut self, cx: IoContext, step_of: Step, at: usize) {
        let ports = self.nodes + self.devices_each;
        match step_of {
            Step::Room => {
                self.sources[at].room += 1;
                self.send(cx, at);
            }
            Step::Through => {
                let (controller, output) = (at / ports, at % ports);
                let Some(packet) = self.through[at].pop_front() else { return };
                let data = dwords(&cx.packets[packet].bytes);
                let now = cx.schedule.now();
                if let Some(device) = output.checked_sub(self.nodes) {
                    let device = controller * self.devices_each + device;
                    let state = &mut self.devices[device];
                    let passage = state.down.transmit(now, REQUEST_BYTES + data);
                    state.coming.push_back(packet);
                    cx.schedule.at(passage.arrives, step(Step::Served, device));
                } else {
                    let node = controller * self.nodes + output;
                    let passage = cx.nodes[node].port.up.transmit(now, COMPLETION_BYTES + data);
                    self.sources[node].finishing.push_back(packet);
                    cx.schedule.at(passage.arrives, step(Step::Finished, node));
                }
            }
            Step::Served => self.serve(cx, at),
            Step::Answered => {
                let state = &mut self.devices[at];
                let Some(packet) = state.loading.pop_front() else { return };
                let data = dwords(&cx.packets[packet].bytes);
                let passage = state.up.transmit(cx.schedule.now(), COMPLETION_BYTES + data);
                let node = self.accesses[cx.packets[packet].operation as usize].node;
                let (controller, input) =
                    (at / self.devices_each, self.nodes + at % self.devices_each);
                let bound = bound(cx.config, packet, data, (node, (node % self.nodes) as u8));
                let head = cx.config.nic.edge(passage.arrives);
                self.crossbars[controller].inject(cx.schedule, (input, 0), bound, head);
            }
            Step::Finished => {
                let Some(packet) = self.sources[at].finishing.pop_front() else { return };
                let Packet { bytes, operation, .. } = cx.packets.take(packet);
                self.accesses[operation as usize].bytes = bytes;
                self.end(cx.schedule.now(), operation);
            }
        }
    }

    /// A device has a request: a store is done, a load takes the device's latency.
    fn serve(&mut self, cx: IoContext, device: usize) {
        let state = &mut self.devices[device];
        if !state.takes {
            return;
        }
        let Some(packet) = state.coming.pop_front() else { return };
        let operation = cx.packets[packet].operation;
        let access = &self.accesses[operation as usize];
        let start = (access.address - state.base) as usize;
        let window = &mut state.memory[start..start + access.bytes.len()];
        if access.is_load {
            cx.packets[packet].bytes.extend_from_slice(window);
            state.loading.push_back(packet);
            cx.schedule.after(cx.config.io.latency, step(Step::Answered, device));
        } else {
            window.copy_from_slice(&cx.packets.take(packet).bytes);
            let (controller, output) =
                (device / self.devices_each, self.nodes + device % self.devices_each);
            self.crossbars[controller].credit_returned(cx.schedule, output, REQUESTS.into());
            self.end(cx.schedule.now(), operation);
        }
    }

    fn end(&mut self, now: Time, number: u32) {
        let access = &mut self.accesses[number as usize];
        access.done = Some(now);
        self.sources[access.node].occupancy.leave(access.posted, now);
        self.ended.push_back(number);
    }

    /// Whether no access is in flight.
    pub fn is_idle(&self) -> bool {
        self.sources.iter().all(|source| source.occupancy.inside() == 0)
    }

    /// Adds the waits of processors for accesses in flight.
    pub fn waits(&self, waits: &mut Waits) {
        for (node, source) in self.sources.iter().enumerate() {
            let inside = source.occupancy.inside();
            if inside > 0 {
                waits.add(format!("node {node}"), "", format!("{inside} accesses to I/O devices"));
            }
        }
    }

    /// The occupancy of each node's accesses in flight and of each channel, with its name.
    pub fn occupancies(&self) -> Vec<(String, &Occupancy)> {
        let sources = self
            .sources
            .iter()
            .enumerate()
            .map(|(node, source)| (format!("I/O accesses of node {node}"), &source.occupancy));
        let channels = self.crossbars.iter().flat_map(Crossbar::occupancies);
        let channels = channels.map(|(name, occupancy)| (format!("I/O: {name}"), occupancy));
        sources.chain(channels).collect()
    }

    /// Checks Little's law on the accesses of each node and on every channel.
    ///
    /// # Errors
    /// The violated law.
    pub fn audit(&self, now: Time) -> Result<(), Imbalance> {
        self.crossbars.iter().try_for_each(|crossbar| crossbar.audit(now))?;
        self.sources.iter().enumerate().try_for_each(|(node, source)| {
            let under_way = self
                .accesses
                .iter()
                .filter(|access| access.node == node && access.done.is_none())
                .map(|access| access.posted);
            source.occupancy.audit(&format!("I/O accesses of node {node}"), now, under_way)
        })
    }
}

/// What this block can reach outside itself.
pub struct IoContext<'a> {
    /// Clock and pending events.
    pub schedule: &'a mut Schedule<NicEvent>,
    /// Parameters.
    pub config: &'a Config,
    /// The nodes, whose links carry accesses too.
    pub nodes: &'a mut [Node],
    /// All packets.
    pub packets: &'a mut Pool<Packet>,
}

fn step(step: Step, at: usize) -> NicEvent {
    NicEvent::Io { step, at: at as u16 }
}

fn bound(config: &Config, packet: PacketHandle, data: u64, (from, output): (usize, u8)) -> Bound {
    let beats = config.nic.header_cycles + data.div_ceil(config.nic.bus.count());
    Bound { packet, beats, from: from as u8, to: output, output, credit_class: REQUESTS }
}

/// The device of a global address, if it is not memory.
fn device_of(address: u64) -> Option<usize> {
    (address >> DEVICE_BIT & 1 == 1).then_some((address >> NODE_SHIFT) as usize)
}

/// Bytes of the DWs that carry this data from an aligned address.
fn dwords(bytes: &[u8]) -> u64 {
    (bytes.len() as u64).next_multiple_of(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Queues have the names of their nodes. Canary: an access that nobody asked for is noticed.
    #[test]
    fn accesses_are_accounted_for() {
        let mut config = Config::prototype();
        config.io.devices = 1;
        let mut io = Io::new(&config, 1, &mut Random::new(1));
        let names: Vec<String> = io.occupancies().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names[..2], ["I/O accesses of node 0", "I/O accesses of node 1"]);
        assert!(names.len() > 4 && names[4..].iter().all(|name| name.starts_with("I/O: ")));
        assert!(io.audit(Time::ZERO).is_ok());
        io.sources[1].occupancy.enter(Time::ZERO);
        assert!(io.audit(Time::ZERO).is_err());
    }
}
