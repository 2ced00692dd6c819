//! Hosts, NICs and the network in time, and the interface for programs.

use std::collections::VecDeque;

use super::agent::Agent;
use super::bus::{Bus, Master};
use super::config::{ConfigError, Queues, Setup};
use super::descriptor::PhysicalDescriptor;
use super::host::{Action, Processor, Task};
use super::journal::Journal;
use super::memory::{Extent, RegionId, RegisterError, Registered};
use super::network::{Arrival, Network, NetworkEvent, Place, Worm};
use super::pipeline::{Side, Step};
use super::ring::Rings;
use crate::engine::{Ended, Event, Handle, Model, Schedule, Simulation};
use crate::form::within;
use crate::units::{Span, Time};

/// All events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NicEvent {
    /// The bus of a host grants the next burst.
    Grant(u8),
    /// A burst has ended.
    Burst(u8),
    /// The NIC agent's state machine runs.
    Dispatch(u8),
    /// A host DMA requests the bus.
    DmaStarts(u8),
    /// A step of the processor or of the send DMA has ended.
    StepEnds { host: u8, job: Handle, step: Step },
    /// A try to lock an engine has failed; the step waits.
    TryFailed { host: u8, step: Step },
    /// A whole packet has arrived.
    Received { host: u8, job: Handle },
    /// A host's processor has ended its work.
    Worked(u8),
    /// In the network.
    Network(NetworkEvent),
}

impl Event for NicEvent {
    fn trace(self) -> u64 {
        let host = |kind: u64, host: u8| kind << 8 | u64::from(host);
        match self {
            NicEvent::Grant(at) => host(1, at),
            NicEvent::Burst(at) => host(2, at),
            NicEvent::Dispatch(at) => host(3, at),
            NicEvent::DmaStarts(at) => host(4, at),
            NicEvent::StepEnds { host: at, job, step } => {
                host(5, at) | (step as u64) << 16 | u64::from(job.index()) << 24
            }
            NicEvent::TryFailed { host: at, step } => host(6, at) | (step as u64) << 16,
            NicEvent::Received { host: at, job } => host(7, at) | u64::from(job.index()) << 24,
            NicEvent::Worked(at) => host(8, at),
            NicEvent::Network(NetworkEvent::Head(worm)) => {
                host(9, 0) | u64::from(worm.index()) << 24
            }
            NicEvent::Network(NetworkEvent::Free(cable)) => host(10, 0) | u64::from(cable) << 24,
        }
    }
}

/// The result of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Success.
    Success,
    /// The message was longer than the posted receive; nothing of it was delivered.
    TooLong,
}

/// A completion: an operation has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The host.
    pub host: u8,
    /// The VI on this host.
    pub vi: u16,
    /// The work queue.
    pub side: Side,
    /// Number of the operation in its work queue, from 0.
    pub number: u64,
    /// Number of the message, counted by its sender per VI.
    pub message: u64,
    /// Bytes of the message.
    pub length: u32,
    /// The result.
    pub status: Status,
    /// When the operation was posted.
    pub posted: Time,
}

/// Why an operation cannot be posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PostError {
    /// The VI has no peer, or does not exist.
    #[error("VI {0} of this host is not connected; connect it first")]
    NotConnected(u16),
    /// The work queue is full.
    #[error(
        "the work queue has {0} operations, which is all that it holds; wait for one to complete"
    )]
    QueueFull(usize),
    /// The region does not hold the range.
    #[error("the range ends at byte {end} of a region of {length} B")]
    OutsideRegion {
        /// The end of the range.
        end: u64,
        /// Length of the region; 0 if it does not exist.
        length: u64,
    },
}

/// An operation in progress.
#[derive(Clone, Debug)]
pub(super) struct Operation {
    pub completion: Completion,
    pub region: RegionId,
    pub offset: u64,
    /// The translation by the user agent.
    pub extents: Vec<Extent>,
}

/// A virtual interface: two work queues and their peer.
#[derive(Clone, Debug)]
pub struct Vi {
    /// Host and VI of the peer.
    pub peer: Option<(u8, u16)>,
    /// Send and receive queue.
    pub queues: [Rings<PhysicalDescriptor>; 2],
    /// Operations posted so far, by queue.
    pub posted: [u64; 2],
    /// Operations in progress, by queue.
    pub outstanding: [usize; 2],
    /// The receive of the message that is arriving; the inner `None` means that it is dropped.
    pub(super) arriving: Option<Option<u16>>,
    /// Time that the send queue's small ring was empty on the NIC while the big one was not.
    pub dry: Span,
    pub(super) dry_since: Option<Time>,
}

/// A host with its NIC.
pub struct Node {
    /// Its processor.
    pub processor: Processor,
    /// The bus between host and NIC.
    pub bus: Bus,
    /// Its registered memory.
    pub memory: Registered,
    /// The NIC with its firmware.
    pub agent: Agent,
    /// Its VIs.
    pub vis: Vec<Vi>,
    pub(super) operations: Vec<Option<Operation>>,
    pub(super) free_tags: Vec<u16>,
    pub(super) routes: Vec<Option<Vec<u8>>>,
}

/// All hosts and their network.
pub struct Hardware {
    /// Its parameters.
    pub setup: Setup,
    /// The hosts.
    pub nodes: Vec<Node>,
    /// Cables and switches.
    pub network: Network,
    /// The uses of units.
    pub journal: Journal,
    /// Canary: the state machine once starts a step on a busy processor. The journal must show it.
    pub double_use: bool,
    pub(super) notices: VecDeque<Completion>,
}

/// A host with its NIC in an event, and what it shares with the others.
pub(super) struct Local<'a> {
    pub host: u8,
    pub node: &'a mut Node,
    pub setup: &'a Setup,
    pub network: &'a mut Network,
    pub journal: &'a mut Journal,
    pub double_use: &'a mut bool,
    pub notices: &'a mut VecDeque<Completion>,
    pub schedule: &'a mut Schedule<NicEvent>,
}

/// A program, or several, on all hosts.
pub trait Program {
    /// Handles a completion that the host's processor has seen.
    fn completed(&mut self, completion: &Completion, api: &mut HostApi<'_>);
}

/// The interface for programs.
pub struct HostApi<'a> {
    /// Hosts, NICs and network.
    pub machine: &'a mut Hardware,
    schedule: &'a mut Schedule<NicEvent>,
}

/// Hosts, NICs and network in time.
pub type Machine = Simulation<Hardware>;

impl Hardware {
    /// Registers memory of a host (kernel agent).
    ///
    /// # Errors
    /// If memory or the table on the NIC is full.
    pub fn register(&mut self, host: u8, bytes: u64) -> Result<RegionId, RegisterError> {
        self.nodes[usize::from(host)].memory.register(bytes)
    }

    /// Creates a VI on each of two hosts and connects them (kernel agent). Returns their numbers.
    pub fn connect(&mut self, one: u8, other: u8) -> (u16, u16) {
        let (first, second) = (self.create_vi(one), self.create_vi(other));
        self.nodes[usize::from(one)].vis[usize::from(first)].peer = Some((other, second));
        self.nodes[usize::from(other)].vis[usize::from(second)].peer = Some((one, first));
        (first, second)
    }

    /// Creates a VI without a peer.
    pub fn create_vi(&mut self, host: u8) -> u16 {
        let queues = [self.setup.rings(), self.setup.rings()];
        let vis = &mut self.nodes[usize::from(host)].vis;
        vis.push(Vi {
            peer: None,
            queues,
            posted: [0; 2],
            outstanding: [0; 2],
            arriving: None,
            dry: Span::ZERO,
            dry_since: None,
        });
        vis.len() as u16 - 1
    }

    /// Changes the route from one host to another (network management, M-07). The route is not
    /// checked.
    pub fn set_route(&mut self, from: u8, to: u8, ports: Vec<u8>) {
        self.nodes[usize::from(from)].routes[usize::from(to)] = Some(ports);
    }

    /// The switch ports from one host to another.
    pub fn route(&self, from: u8, to: u8) -> Option<&[u8]> {
        self.nodes[usize::from(from)].routes[usize::from(to)].as_deref()
    }

    /// All routes: source, destination, ports (M-07).
    pub fn routes(&self) -> Vec<(u8, u8, &[u8])> {
        let nodes = self.nodes.iter().zip(0..);
        let routes = nodes.flat_map(|(node, from)| {
            let known = node.routes.iter().zip(0..);
            known.filter_map(move |(route, to)| Some((from, to, route.as_deref()?)))
        });
        routes.collect()
    }

    /// Recomputes all routes: the shortest over cables that are up, none to unreachable hosts
    /// (M-07). Routes never change automatically.
    pub fn map_routes(&mut self) {
        let hosts = self.nodes.len() as u8;
        for (node, from) in self.nodes.iter_mut().zip(0..) {
            node.routes = (0..hosts).map(|to| self.network.route(from, to)).collect();
        }
    }

    /// Checks the laws that hold at any time. Pools and queues balance, Little's law holds on every
    /// queue of the NICs, and no unit is used twice at one time.
    ///
    /// # Errors
    /// The first law that does not hold.
    pub fn audit(&self, now: Time) -> Result<(), String> {
        for (host, node) in self.nodes.iter().enumerate() {
            node.agent.audit(host, now)?;
            for (number, vi) in node.vis.iter().enumerate() {
                for rings in &vi.queues {
                    let counts = rings.counts;
                    let came = counts.direct + counts.refilled;
                    if came != counts.taken + rings.small_len() as u64
                        || counts.overflowed != counts.refilled + rings.big_len() as u64
                    {
                        let lost = format!("descriptors were lost: {counts:?}");
                        return Err(format!("host {host}, VI {number}: {lost}"));
                    }
                }
            }
            let held = node.operations.iter().flatten().count();
            let outstanding: usize = node.vis.iter().flat_map(|vi| vi.outstanding).sum();
            if held != outstanding {
                let sums = format!("{held} operations are known, {outstanding} outstanding");
                return Err(format!("host {host}: {sums}"));
            }
        }
        self.journal.check().map_err(|error| error.to_string())
    }

    fn local<'a>(&'a mut self, schedule: &'a mut Schedule<NicEvent>, host: u8) -> Local<'a> {
        let Hardware { setup, nodes, network, journal, double_use, notices } = self;
        let node = &mut nodes[usize::from(host)];
        Local { host, node, setup, network, journal, double_use, notices, schedule }
    }
}

impl Local<'_> {
    /// Posts an operation: queues it for the host's processor.
    fn post(
        &mut self,
        (vi, side): (u16, Side),
        region: RegionId,
        offset: u64,
        length: u32,
    ) -> Result<u64, PostError> {
        let Local { setup, node, .. } = self;
        let known = node.vis.get_mut(usize::from(vi)).filter(|vi| vi.peer.is_some());
        let state = known.ok_or(PostError::NotConnected(vi))?;
        // Only rings on the NIC overflow into a big one (M-13).
        let overflow = match setup.system.queues {
            Queues::NicRing => setup.system.big_ring,
            Queues::HostQueue | Queues::Kernel => 0,
        };
        let capacity = setup.system.small_ring + overflow;
        let outstanding = &mut state.outstanding[side as usize];
        if *outstanding >= capacity {
            return Err(PostError::QueueFull(*outstanding));
        }
        let (end, region_length) = (offset + u64::from(length), node.memory.length(region));
        if end > region_length {
            return Err(PostError::OutsideRegion { end, length: region_length });
        }
        *outstanding += 1;
        let number = state.posted[side as usize];
        state.posted[side as usize] += 1;
        let largest = setup.system.largest_dma.count() as u32;
        let extents = node.memory.extents(region, offset, length, largest);
        let pieces = extents.len() as u64;
        let completion = Completion {
            host: self.host,
            vi,
            side,
            number,
            message: number,
            length,
            status: Status::Success,
            posted: self.schedule.now(),
        };
        let operation = Operation { completion, region, offset, extents };
        let tag = node.free_tags.pop().unwrap_or_else(|| {
            node.operations.push(None);
            node.operations.len() as u16 - 1
        });
        node.operations[usize::from(tag)] = Some(operation);
        let software = &setup.software;
        let cycles = match setup.system.queues {
            Queues::Kernel => {
                let frames = match side {
                    Side::Send => u64::from(length).div_ceil(setup.system.packet.count()).max(1),
                    Side::Receive => 0,
                };
                software.post + software.trap + software.frame * frames
            }
            Queues::NicRing => software.post + software.translate * pieces,
            Queues::HostQueue => software.post,
        };
        let work = setup.host_cycles(cycles);
        self.work(Task { work, action: Action::Post { vi, side, tag } });
        Ok(number)
    }
}

impl HostApi<'_> {
    /// The current time.
    pub fn now(&self) -> Time {
        self.schedule.now()
    }

    /// Posts a send and returns its number on its VI.
    ///
    /// # Errors
    /// Why it cannot be posted; nothing has changed then.
    pub fn send(
        &mut self,
        host: u8,
        vi: u16,
        region: RegionId,
        offset: u64,
        length: u32,
    ) -> Result<u64, PostError> {
        let mut local = self.machine.local(self.schedule, host);
        local.post((vi, Side::Send), region, offset, length)
    }

    /// Posts a receive and returns its number on its VI.
    ///
    /// # Errors
    /// Why it cannot be posted; nothing has changed then.
    pub fn receive(
        &mut self,
        host: u8,
        vi: u16,
        region: RegionId,
        offset: u64,
        length: u32,
    ) -> Result<u64, PostError> {
        let mut local = self.machine.local(self.schedule, host);
        local.post((vi, Side::Receive), region, offset, length)
    }
}

impl Machine {
    /// Hosts at the ports of one switch; two hosts are joined directly if the setup has no switch.
    ///
    /// # Errors
    /// The fault of the setup or of the number of hosts.
    pub fn new(setup: &Setup, hosts: u8, seed: u64) -> Result<Machine, ConfigError> {
        let ports = setup.wire.ports;
        let cables: Vec<(Place, Place)> = match ports {
            0 => vec![(Place::Node(0), Place::Node(1))],
            _ => (0..hosts.min(ports))
                .map(|node| (Place::Node(node), Place::Port { switch: 0, port: node }))
                .collect(),
        };
        let most = if ports == 0 { 2 } else { ports };
        within([("hosts", u64::from(hosts), 2..=u64::from(most))])?;
        Machine::wired(setup, hosts, &cables, seed)
    }

    /// Hosts and switches with the caller's own cabling.
    ///
    /// # Errors
    /// The fault of the setup.
    pub fn wired(
        setup: &Setup,
        hosts: u8,
        cables: &[(Place, Place)],
        seed: u64,
    ) -> Result<Machine, ConfigError> {
        setup.check()?;
        let mut schedule = Schedule::new(seed, Span::from_ns(100));
        let wire = &setup.wire;
        let byte = Span::from_ps(1_000_000_000_000 / wire.rate.bytes_per_second());
        let pages = setup.host.memory.count() / super::kmem::PAGE;
        let node = |host| {
            let bus = Bus::new(&setup.bus, &mut schedule.random);
            let (layout, random) = (setup.system.layout, schedule.random.fork(host));
            Node {
                processor: Processor::default(),
                bus,
                memory: Registered::new(pages, layout, setup.table_pages(), random),
                agent: Agent::new(setup, &mut schedule.random),
                vis: Vec::new(),
                operations: Vec::new(),
                free_tags: Vec::new(),
                routes: Vec::new(),
            }
        };
        let mut model = Hardware {
            setup: setup.clone(),
            nodes: (0..u64::from(hosts)).map(node).collect(),
            network: Network::new(cables, byte, wire.cable, wire.switch),
            journal: Journal::default(),
            double_use: false,
            notices: VecDeque::new(),
        };
        model.map_routes();
        Ok(Machine { model, schedule })
    }

    /// The interface for programs, before and between runs.
    pub fn api(&mut self) -> HostApi<'_> {
        HostApi { machine: &mut self.model, schedule: &mut self.schedule }
    }

    /// Runs until no event is left or `until`, and tells the program of completions.
    pub fn run_program(&mut self, program: &mut impl Program, until: Time) -> Ended {
        self.run_with(until, |machine, schedule| {
            while let Some(completion) = machine.notices.pop_front() {
                program.completed(&completion, &mut HostApi { machine, schedule });
            }
        })
    }
}

impl Model for Hardware {
    type Event = NicEvent;

    fn handle(&mut self, event: NicEvent, schedule: &mut Schedule<NicEvent>) {
        match event {
            NicEvent::Grant(host) => {
                self.nodes[usize::from(host)].bus.grant(schedule, NicEvent::Burst(host));
            }
            NicEvent::Burst(host) => {
                let mut local = self.local(schedule, host);
                match local.node.bus.burst_done(local.schedule, NicEvent::Grant(host)) {
                    Some(Master::Host) => local.wrote(),
                    Some(Master::Nic) => local.dma_moved(),
                    None => {}
                }
            }
            NicEvent::Dispatch(host) => self.local(schedule, host).dispatch(),
            NicEvent::DmaStarts(host) => self.local(schedule, host).dma_asks(),
            NicEvent::StepEnds { host, job, step } => {
                self.local(schedule, host).step_ends(job, step);
            }
            NicEvent::TryFailed { host, step } => self.local(schedule, host).try_failed(step),
            NicEvent::Received { host, job } => {
                self.local(schedule, host).step_ends(job, Step::Arrive);
            }
            NicEvent::Worked(host) => self.local(schedule, host).worked(),
            NicEvent::Network(event) => match self.network.handle(schedule, event) {
                Some(Arrival::Before { node, worm }) => self.local(schedule, node).knocks(worm),
                Some(Arrival::Lost(Worm { source: host, job, .. })) => {
                    schedule.settle(NicEvent::StepEnds { host, job, step: Step::Transmit });
                }
                None => {}
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::engine::Pool;

    /// Two hosts with a VI each.
    fn two(name: &str, change: impl FnOnce(&mut Setup)) -> (Machine, RegionId) {
        let mut setup = Setup::paper(name).unwrap();
        change(&mut setup);
        let mut running = Machine::new(&setup, 2, 1).unwrap();
        running.model.connect(0, 1);
        let region = running.model.register(0, 1 << 20).unwrap();
        (running, region)
    }

    /// The processor's work to post a send, which is the time of the first event.
    fn posting(name: &str, length: u32, change: impl FnOnce(&mut Setup)) -> Span {
        let (mut running, region) = two(name, change);
        running.api().send(0, 0, region, 0, length).unwrap();
        assert!(running.step(Time::NEVER));
        running.now() - Time::ZERO
    }

    /// A descriptor for a ring on the NIC takes a translation of each piece, one for the kernel a
    /// trap and the work of each frame, and one in host memory neither.
    #[test]
    fn posting_takes_the_work_of_its_queue() {
        let setup = Setup::paper("myvia-a").unwrap();
        let software = &setup.software;
        let cycles = |pieces| setup.host_cycles(software.post + software.translate * pieces);
        let one_by_one = |it: &mut Setup| it.system.largest_dma = crate::units::Bytes::new(4096);
        assert_eq!(posting("myvia-a", 4096, one_by_one), cycles(1));
        assert_eq!(posting("myvia-a", 3 * 4096, one_by_one), cycles(3));
        let setup = Setup::paper("m-via-gigabit").unwrap();
        let (software, packet) = (&setup.software, setup.system.packet.count() as u32);
        let cycles =
            |frames| setup.host_cycles(software.post + software.trap + software.frame * frames);
        for (length, frames) in [(0, 1), (packet, 1), (packet + 1, 2), (5 * packet, 5)] {
            assert_eq!(posting("m-via-gigabit", length, |_| {}), cycles(frames), "{length} B");
        }
        let setup = Setup::paper("berkeley-a").unwrap();
        let post = setup.host_cycles(setup.software.post);
        assert_eq!(posting("berkeley-a", 20_000, |_| {}), post);
    }

    /// Canary: each law of the audit is broken once.
    #[test]
    fn broken_laws_are_found() {
        let found = |plant: fn(&mut Hardware)| {
            let (mut running, region) = two("myvia-a", |_| {});
            running.api().send(0, 0, region, 0, 9_000).unwrap();
            let mut jobs = 0;
            while jobs == 0 {
                assert!(running.step(Time::NEVER));
                jobs = running.model.nodes[0].agent.jobs();
            }
            running.model.audit(running.now()).unwrap();
            plant(&mut running.model);
            running.model.audit(running.now()).unwrap_err()
        };
        let lost = "descriptors were lost";
        assert!(found(|it| it.nodes[0].vis[0].queues[0].counts.direct += 1).contains(lost));
        assert!(found(|it| it.nodes[0].vis[0].queues[1].counts.overflowed += 1).contains(lost));
        let outstanding = found(|it| it.nodes[1].vis[0].outstanding[1] = 1);
        assert_eq!(outstanding, "host 1: 0 operations are known, 1 outstanding");
        assert!(found(|it| it.nodes[0].agent.lose_a_buffer()).contains("do not add up"));
    }

    /// A small ring of 2 that asks for a refill only when it is empty runs dry while the big one
    /// has descriptors, and is measured to be so (M-16).
    #[test]
    fn a_dry_ring_is_measured() {
        let (mut running, region) =
            two("myvia-a", |it| (it.system.small_ring, it.system.low_mark) = (2, 0));
        for _ in 0..20 {
            running.api().send(0, 0, region, 0, 64).unwrap();
        }
        let (mut since, mut dry) = (None, Span::ZERO);
        while running.step(Time::NEVER) {
            let queue = &running.model.nodes[0].vis[0].queues[0];
            let is_dry = queue.small_len() == 0 && queue.big_len() > 0;
            match since {
                None if is_dry => since = Some(running.now()),
                Some(began) if !is_dry => {
                    dry += running.now() - began;
                    since = None;
                }
                _ => {}
            }
        }
        assert!(dry > Span::ZERO);
        assert_eq!(running.model.nodes[0].vis[0].dry, dry);
    }

    /// An event's word in the trace is the host, and above it the kind, the step and the job or
    /// cable, in bytes of their own.
    #[test]
    fn events_are_told_apart() {
        let mut pool = Pool::default();
        let job = (0..6).map(|_| pool.put(())).last().expect("six");
        assert_eq!(job.index(), 5);
        let host = 0x21;
        let step = Step::Match;
        assert_eq!(step as u64, 13);
        for (event, word) in [
            (NicEvent::Grant(host), 0x121),
            (NicEvent::Burst(host), 0x221),
            (NicEvent::Dispatch(host), 0x321),
            (NicEvent::DmaStarts(host), 0x421),
            (NicEvent::StepEnds { host, job, step }, 0x50d_0521),
            (NicEvent::TryFailed { host, step }, 0xd_0621),
            (NicEvent::Received { host, job }, 0x500_0721),
            (NicEvent::Worked(host), 0x821),
            (NicEvent::Network(NetworkEvent::Head(job)), 0x500_0900),
            (NicEvent::Network(NetworkEvent::Free(0x0203)), 0x2_0300_0a00),
        ] {
            assert_eq!(event.trace(), word, "{event:?}");
        }
        // Also where a host's and a step's bits are all set.
        let last = NicEvent::StepEnds { host: 255, job, step: Step::ReceiveReported };
        assert_eq!(last.trace(), 0x514_05ff);
    }
}
