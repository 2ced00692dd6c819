//! The fabric block: routers on one clock, joined to a network.

use bellwire_protocol::canary::planted;

use super::config::{ConfigError, FabricConfig, Select};
use super::datapath::Beat;
use super::delay::Delay;
use super::packets::{NONE, Packet, PacketId, Packets};
use super::parts::{Lane, OutVc, Pair, Port, Queue, QueueStats, Router, Source, UNLIMITED};
use super::routing::{DatelineClass, Routes};
use super::topology::{Leads, Topology};
use crate::engine::{Event, Random, Schedule};
use crate::units::{Span, Time};

/// A packet that has arrived at its terminal as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The packet.
    pub packet: Packet,
    /// The virtual channel on which it arrived.
    pub vc: u8,
    /// The cycle in which its last beat arrived.
    pub cycle: u64,
}

/// Counters of the whole fabric.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counters {
    /// Packets injected.
    pub packets_in: u64,
    /// Packets delivered.
    pub packets_out: u64,
    /// Beats of injected packets.
    pub beats_in: u64,
    /// Beats of delivered packets.
    pub beats_out: u64,
    /// Switch crossings of beats: one beat through one router counts one.
    pub hops: u64,
    /// Cycles with any activity.
    pub cycles: u64,
    /// Contention in the first round of matching, summed over cycles: requests that an output
    /// refused, and inputs that declined a grant.
    pub lost_requests: u64,
    /// Times that a virtual channel was given to one of several inputs that waited for one.
    pub vc_contests: u64,
    /// Matches found after the first round.
    pub later_rounds: u64,
    /// Times that a packet got a virtual channel of a port while another packet held one.
    pub vcs_beside: u64,
}

/// A network of input-queued routers with virtual channels and credits.
///
/// Each cycle first takes in all arrivals; then every active router decides and moves beats. What
/// leaves arrives at least one cycle later, so the order of routers has no effect. The fabric
/// sleeps when nothing can move: an idle cycle costs nothing. A fabric that sleeps with packets
/// inside is deadlocked (C-26), see [`Fabric::waits`].
///
/// Numbering: the ports of the routers come first, router by router. One port for the sending side
/// of each terminal follows. Input queues and virtual channels are numbered by port times `vcs`;
/// the receiving ends of terminals follow those of the routers.
pub struct Fabric {
    pub(super) config: FabricConfig,
    pub(super) topology: Topology,
    pub(super) routes: Routes,
    /// The number of a virtual channel is port << vc_shift | vc.
    pub(super) vc_shift: u32,
    pub(super) routers: Vec<Router>,
    pub(super) ports: Vec<Port>,
    pub(super) queues: Vec<Queue>,
    pub(super) stats: Vec<QueueStats>,
    pub(super) out_vcs: Vec<OutVc>,
    pub(super) pairs: Vec<Pair>,
    pub(super) lanes: Vec<Lane>,
    pub(super) lanes_each: u32,
    pub(super) sources: Vec<Source>,
    pub(super) packets: Packets,
    /// Routers and sources that may have work.
    pub(super) active_routers: Vec<u64>,
    pub(super) active_sources: Vec<u64>,
    pub(super) beats: Delay<Beat>,
    pub(super) credits: Delay<u32>,
    /// Beats at terminals whose credits are not returned yet.
    pub(super) at_sinks: u64,
    pub(super) random: Random,
    /// Service of each (input, output) pair, by weight; for the weighted policy.
    pub(super) served: Vec<u64>,
    /// Scratch space, kept to reuse its memory.
    pub(super) matches: Vec<(u8, u8)>,
    pub(super) cycle: u64,
    /// The cycle for which a tick is scheduled.
    ticks_at: Option<u64>,
    period: Span,
    pub(super) counters: Counters,
    pub(super) delivered: Vec<Delivery>,
    pub(super) departed: Vec<Packet>,
}

/// A packet to inject.
#[derive(Clone, Copy, Debug)]
pub struct Injection {
    /// Source terminal.
    pub source: u32,
    /// Destination terminal; may be the source.
    pub destination: u32,
    /// Length in beats, at least 1.
    pub beats: u16,
    /// Message class.
    pub class: u8,
    /// The caller's value; the delivery returns it.
    pub tag: u64,
}

impl Fabric {
    /// An empty network. The seed decides the initial turns and all random draws.
    ///
    /// # Errors
    /// An impossible parameter.
    pub fn new(topology: Topology, config: FabricConfig, seed: u64) -> Result<Fabric, ConfigError> {
        config.check(Routes::dateline_classes(&topology))?;
        if let Some(why) = Routes::refuses(&topology) {
            return Err(ConfigError { parameter: "topology", why });
        }
        Ok(Fabric::build(topology, config, seed))
    }

    /// [`Fabric::new`] without checks.
    pub(super) fn build(topology: Topology, config: FabricConfig, seed: u64) -> Fabric {
        let mut random = Random::new(seed);
        let vcs = u32::from(config.vcs);
        let vc_shift = vcs.next_power_of_two().trailing_zeros();
        let stride = 1 << vc_shift;
        let room = if config.buffer_beats == 0 { UNLIMITED } else { config.buffer_beats };
        let sink_room = if config.sink_beats == 0 { UNLIMITED } else { config.sink_beats };
        let terminals = topology.terminals() as u32;
        let mut routers = Vec::with_capacity(topology.routers());
        let (mut first_port, mut first_pair) = (0, 0);
        for router in 0..topology.routers() {
            let ports = topology.ports(router).len() as u32;
            routers.push(Router { first_port, ports, first_pair, outputs: 0, waited: 0 });
            first_port += ports;
            first_pair += ports * ports;
        }
        let router_ports = first_port;
        let free_vcs = if vcs == 32 { u32::MAX } else { (1 << vcs) - 1 };
        let (mut ports, mut out_vcs) = (Vec::new(), Vec::new());
        for (number, router) in routers.iter().enumerate() {
            for leads in topology.ports(number) {
                let (other, latency, credits) = match *leads {
                    Leads::Nowhere => (NONE, 1, 0),
                    Leads::Terminal(terminal) => {
                        (router_ports + terminal, config.terminal_cycles, sink_room)
                    }
                    Leads::Router(to, at) => (
                        routers[to as usize].first_port + u32::from(at),
                        // Canary: the link of the network is as short as a terminal's.
                        match planted("network-short-links") {
                            true => config.terminal_cycles + config.pipeline_cycles,
                            false => config.link_cycles + config.pipeline_cycles,
                        },
                        room,
                    ),
                };
                let turn = |random: &mut Random, of: u32| random.below(u64::from(of)) as u8;
                ports.push(Port {
                    free_vcs,
                    to: other,
                    latency,
                    from: other,
                    router: number as u32,
                    grant_turn: turn(&mut random, router.ports),
                    accept_turn: turn(&mut random, router.ports),
                    vc_turn: turn(&mut random, vcs),
                    wait_turn: turn(&mut random, router.ports),
                    pick_turn: turn(&mut random, vcs),
                    ..Port::default()
                });
                out_vcs.extend((0..stride).map(|_| OutVc { credits, owner: NONE, sent: 0 }));
            }
        }
        for terminal in 0..topology.terminals() {
            let (router, at) = topology.place(terminal);
            ports.push(Port {
                free_vcs,
                to: routers[router as usize].first_port + u32::from(at),
                vc_turn: random.below(u64::from(vcs)) as u8,
                ..Port::default()
            });
            out_vcs.extend((0..stride).map(|_| OutVc { credits: room, owner: NONE, sent: 0 }));
        }
        let queues: Vec<Queue> = (0..router_ports << vc_shift)
            .map(|queue| {
                let port = ports[(queue >> vc_shift) as usize];
                let router = port.router;
                let vc = queue & (stride - 1);
                Queue {
                    head: NONE,
                    // An unconnected port receives nothing and returns no credits.
                    back: if port.from == NONE { NONE } else { port.from << vc_shift | vc },
                    router,
                    port: ((queue >> vc_shift) - routers[router as usize].first_port) as u8,
                    vc: vc as u8,
                    ..Queue::default()
                }
            })
            .collect();
        let lanes_each = match config.select {
            Select::Destination => vcs,
            Select::Free => config.classes.len().max(1) as u32,
        };
        let lane = Lane { head: NONE, out_vc: NONE, ..Lane::default() };
        let longest = config.link_cycles.max(config.terminal_cycles) + config.pipeline_cycles;
        Fabric {
            vc_shift,
            stats: vec![QueueStats::default(); queues.len()],
            pairs: vec![Pair::default(); first_pair as usize],
            served: vec![0; first_pair as usize],
            matches: Vec::new(),
            lanes: vec![lane; (terminals * lanes_each) as usize],
            lanes_each,
            sources: (0..terminals)
                .map(|_| Source { lanes: 0, turn: random.below(u64::from(lanes_each)) as u8 })
                .collect(),
            packets: Packets::default(),
            active_routers: vec![0; routers.len().div_ceil(64)],
            active_sources: vec![0; (terminals as usize).div_ceil(64)],
            beats: Delay::new(longest),
            credits: Delay::new(config.credit_cycles),
            at_sinks: 0,
            random: random.fork(2),
            cycle: 0,
            ticks_at: None,
            period: config.cycle(),
            counters: Counters::default(),
            delivered: Vec::new(),
            departed: Vec::new(),
            routes: Routes::new(&topology),
            config,
            topology,
            routers,
            ports,
            queues,
            out_vcs,
        }
    }

    /// The network's graph.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Its parameters.
    pub fn config(&self) -> &FabricConfig {
        &self.config
    }

    /// The counters so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Cycles since the beginning.
    pub fn cycle(&self) -> u64 {
        self.cycle
    }

    /// Packets between injection and delivery, those in the sources included.
    pub fn packets_inside(&self) -> usize {
        self.packets.len()
    }

    /// Whether packets are inside and nothing can move; [`Fabric::waits`] says why. A terminal's
    /// [`Fabric::release`] may end it.
    pub fn stands_still(&self) -> bool {
        self.ticks_at.is_none() && self.packets_inside() > 0
    }

    /// Packets at a terminal that have not fully left. A model of a NIC checks this before it
    /// injects.
    pub fn waiting(&self, terminal: u32) -> u32 {
        let first = (terminal * self.lanes_each) as usize;
        self.lanes[first..first + self.lanes_each as usize].iter().map(|lane| lane.packets).sum()
    }

    /// Puts a packet into its terminal's queue. It leaves when the network takes it, one beat per
    /// cycle. `tick` is the model's event that calls [`Fabric::tick`].
    ///
    /// # Panics
    /// If a terminal does not exist, or the packet has no beats or more than
    /// [`FabricConfig::most_packet_beats`].
    pub fn inject<E: Event>(
        &mut self,
        schedule: &mut Schedule<E>,
        injection: Injection,
        tick: E,
    ) -> PacketId {
        let Injection { source, destination, beats, class, tag } = injection;
        let most = self.config.most_packet_beats();
        assert!(
            (1..=most).contains(&u32::from(beats)),
            "packets have 1 to {most} beats, not {beats}"
        );
        assert!((destination as usize) < self.sources.len(), "there is no terminal {destination}");
        let now = self.cycle_at(schedule.now());
        let packet = Packet { source, destination, beats, class, tag, born: now };
        self.counters.packets_in += 1;
        self.counters.beats_in += u64::from(beats);
        let packet = self.packets.put(packet);
        let at = self.lane_of(class, destination);
        let lane = &mut self.lanes[(source * self.lanes_each + at) as usize];
        if lane.head == NONE {
            (lane.packet, lane.left, lane.head_here) = (packet, beats, true);
            self.sources[source as usize].lanes |= 1 << at;
            set(&mut self.active_sources, source);
        }
        lane.packets += 1;
        self.packets.append((&mut lane.head, &mut lane.tail), packet, now);
        self.wake(schedule, now, tick);
        PacketId(packet)
    }

    /// Does one cycle. Call it for each `tick` event, which the fabric schedules itself; then read
    /// [`Fabric::deliveries`].
    pub fn tick<E: Event>(&mut self, schedule: &mut Schedule<E>, tick: E) {
        let now = self.cycle_at(schedule.now());
        if self.ticks_at != Some(now) {
            return;
        }
        self.ticks_at = None;
        self.cycle = now;
        self.counters.cycles += 1;
        self.take_in();
        self.send_from_sources();
        self.route_all();
        self.cycle = now + 1;
        if let Some(next) = self.next_work() {
            self.wake(schedule, next, tick);
        }
    }

    /// Packets delivered since the last call.
    pub fn deliveries(&mut self) -> std::vec::Drain<'_, Delivery> {
        self.delivered.drain(..)
    }

    /// Packets whose last beat has left the source since the last call: the source's buffer is
    /// free.
    pub fn departures(&mut self) -> std::vec::Drain<'_, Packet> {
        self.departed.drain(..)
    }

    /// Returns the credits of `beats` beats that a terminal has taken out of virtual channel `vc`.
    /// Only where [`FabricConfig::sink_beats`] is a limit; then call it for every delivery.
    pub fn release<E: Event>(
        &mut self,
        schedule: &mut Schedule<E>,
        terminal: u32,
        vc: u8,
        beats: u16,
        tick: E,
    ) {
        if self.config.sink_beats == 0 {
            return;
        }
        let (router, port) = self.topology.place(terminal as usize);
        let port = self.routers[router as usize].first_port + u32::from(port);
        // A terminal takes a beat in the cycle in which it arrives, as a router does.
        let back = self.edge(schedule.now()) + u64::from(self.config.credit_cycles);
        for _ in 0..beats {
            self.credits.put(back, port << self.vc_shift | u32::from(vc));
        }
        self.at_sinks -= u64::from(beats);
        self.wake(schedule, back, tick);
    }

    /// The next cycle to settle at `time`.
    fn cycle_at(&self, time: Time) -> u64 {
        self.edge(time).max(self.cycle)
    }

    /// The first clock edge at or after `time`.
    fn edge(&self, time: Time) -> u64 {
        time.ps().div_ceil(self.period.ps())
    }

    fn wake<E: Event>(&mut self, schedule: &mut Schedule<E>, cycle: u64, tick: E) {
        if self.ticks_at.is_none_or(|at| cycle < at) {
            self.ticks_at = Some(cycle);
            schedule.settle_at(Time::ZERO + self.period * cycle, tick);
        }
    }

    fn next_work(&self) -> Option<u64> {
        let busy = |words: &[u64]| words.iter().any(|&word| word != 0);
        if busy(&self.active_routers) || busy(&self.active_sources) {
            return Some(self.cycle);
        }
        [self.beats.next(self.cycle), self.credits.next(self.cycle)].into_iter().flatten().min()
    }

    fn lane_of(&self, class: u8, destination: u32) -> u32 {
        match self.config.select {
            Select::Free => u32::from(class),
            Select::Destination => {
                let class = self.config.class(class.into());
                u32::from(class.first_vc) + destination % u32::from(class.vcs)
            }
        }
    }

    /// The virtual channels that a packet may use on its next link.
    pub(super) fn allowed(&self, packet: &Packet, dateline_class: DatelineClass) -> u32 {
        let class = self.config.class(packet.class.into());
        let (first, vcs) = (u32::from(class.first_vc), u32::from(class.vcs));
        match (self.config.select, dateline_class) {
            (Select::Destination, _) => some(first + packet.destination % vcs, 1),
            (Select::Free, DatelineClass::Any) => some(first, vcs),
            // The configuration refuses a ring with one channel; tests build one to see it
            // deadlock.
            (Select::Free, _) if vcs == 1 => some(first, 1),
            (Select::Free, DatelineClass::Before) => some(first, vcs.div_ceil(2)),
            (Select::Free, DatelineClass::After) => some(first + vcs.div_ceil(2), vcs / 2),
        }
    }

    pub(super) fn router_ports(&self) -> u32 {
        (self.ports.len() - self.sources.len()) as u32
    }

    /// Beats that a port has sent.
    pub(super) fn sent(&self, port: usize) -> u64 {
        let first = port << self.vc_shift;
        self.out_vcs[first..first + (1 << self.vc_shift)].iter().map(|vc| vc.sent).sum()
    }

    /// Beats on links and returning credits, by virtual channel; for the audit.
    pub(super) fn under_way(&self) -> (Vec<u32>, Vec<u32>) {
        let mut beats = vec![0; self.queues.len() + (self.sources.len() << self.vc_shift)];
        for beat in self.beats.iter() {
            beats[beat.queue as usize] += 1;
        }
        let mut credits = vec![0; self.out_vcs.len()];
        for &vc in self.credits.iter() {
            credits[vc as usize] += 1;
        }
        (beats, credits)
    }
}

/// The set of `vcs` virtual channels from `first` on.
pub(super) fn some(first: u32, vcs: u32) -> u32 {
    (((1u64 << vcs) - 1) << first) as u32
}

#[inline]
pub(super) fn set(words: &mut [u64], bit: u32) {
    words[bit as usize / 64] |= 1 << (bit % 64);
}
