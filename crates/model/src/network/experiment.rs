//! A network under synthetic traffic: runs it, finds its steady state, reports.

use serde::{Deserialize, Serialize};

use super::config::{ConfigError, FabricConfig};
use super::fabric::{Delivery, Fabric, Injection};
use super::packets::Packet;
use super::report::{Crossings, Measured, Report};
use super::topology::Topology;
use super::traffic::{Arrival, Destinations, Traffic};
use crate::engine::{Chance, Event, Failures, Model, Random, Schedule, Simulation, Waits};
use crate::stats::{Imbalance, Tally, Window};
use crate::units::Time;

/// The length of a run, and the part that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Duration {
    /// Total cycles.
    pub cycles: u64,
    /// Cycles of warm-up, which do not count; if absent, MSER-5 finds them.
    #[serde(default)]
    pub warm_up_cycles: Option<u64>,
}

/// The events of an experiment.
#[derive(Clone, Copy, Debug)]
enum NetworkEvent {
    /// The fabric does a cycle.
    Tick,
    /// A terminal makes a message.
    Make(u32),
}

impl Event for NetworkEvent {
    fn trace(self) -> u64 {
        match self {
            NetworkEvent::Tick => 0,
            NetworkEvent::Make(terminal) => 1 + u64::from(terminal),
        }
    }
}

/// A network, its traffic, and its measurements.
pub struct Experiment {
    simulation: Simulation<Bench>,
    duration: Duration,
}

struct Bench {
    fabric: Fabric,
    traffic: Traffic,
    destinations: Destinations,
    /// Cycles between messages (or bursts).
    gap: Failures,
    /// Probability that a burst goes on.
    goes_on: Chance,
    /// The destination of each terminal's burst; the terminal makes messages until the burst ends.
    bursts: Vec<Option<u32>>,
    random: Random,
    lengths: Vec<u16>,
    /// Scratch space, kept to reuse its memory.
    delivered: Vec<Delivery>,
    departed: Vec<Packet>,
    windows: Vec<Window>,
    window_cycles: u64,
    end: u64,
    measured_from: u64,
    delivered_from: Vec<u64>,
    latency: Tally,
}

impl Experiment {
    /// Prepares a run.
    ///
    /// # Errors
    /// An impossible parameter.
    pub fn new(
        topology: Topology,
        config: FabricConfig,
        traffic: Traffic,
        duration: Duration,
        seed: u64,
    ) -> Result<Experiment, ConfigError> {
        let terminals = topology.terminals() as u32;
        traffic.check(terminals)?;
        if duration.cycles < 100 {
            let why = format!("is {}, too few to say anything; take 100 or more", duration.cycles);
            return Err(ConfigError { parameter: "cycles", why });
        }
        if duration.warm_up_cycles.is_some_and(|warm_up| warm_up >= duration.cycles) {
            let why = "leaves nothing to measure; take fewer than `cycles`".to_owned();
            return Err(ConfigError { parameter: "warm_up_cycles", why });
        }
        let (longest, most) = (traffic.sizes.most_beats(), config.most_packet_beats());
        if u32::from(longest) > most {
            let why =
                format!("gives packets of {longest} beats, but buffers take {most} as a whole");
            return Err(ConfigError { parameter: "sizes", why });
        }
        let mut schedule = Schedule::new(seed, config.cycle());
        let fabric = Fabric::new(topology, config, schedule.random.word())?;
        let mut random = schedule.random.fork(1);
        let message = traffic.sizes.mean_beats();
        let (chance, goes_on) = match traffic.arrival {
            Arrival::Random { load } => (Chance::new(load / message), Chance::NEVER),
            Arrival::Bursts { load, packets } => {
                // A burst is `packets` messages back to back; the pause restores the mean load.
                let pause = packets * message * (1.0 - load) / load;
                (Chance::new(1.0 / (1.0 + pause)), Chance::new(1.0 - 1.0 / packets))
            }
            Arrival::Saturated | Arrival::Closed { .. } => (Chance::NEVER, Chance::NEVER),
        };
        let window_cycles = (duration.cycles / 1000).max(1);
        let windows = duration.cycles.div_ceil(window_cycles) as usize;
        let mut bench = Bench {
            destinations: Destinations::new(&traffic.pattern, terminals, &mut random),
            gap: Failures::before(chance),
            goes_on,
            bursts: vec![None; terminals as usize],
            random,
            lengths: Vec::new(),
            delivered: Vec::new(),
            departed: Vec::new(),
            windows: vec![Window::default(); windows],
            window_cycles,
            end: duration.cycles,
            measured_from: duration.warm_up_cycles.unwrap_or(duration.cycles / 2),
            delivered_from: vec![0; terminals as usize],
            latency: Tally::default(),
            traffic,
            fabric,
        };
        bench.begin(&mut schedule);
        Ok(Experiment { simulation: Simulation { model: bench, schedule }, duration })
    }

    /// The network.
    pub fn fabric(&self) -> &Fabric {
        &self.simulation.model.fabric
    }

    /// Runs to the end and reports.
    ///
    /// # Errors
    /// A conservation law that does not hold, or a deadlock with its cycle of waits: the model is
    /// wrong.
    pub fn run(&mut self) -> Result<Report, Imbalance> {
        self.run_telling(|_| {})
    }

    /// Like [`Experiment::run`], and reports progress from 0 to 1 now and then.
    ///
    /// # Errors
    /// Those of [`Experiment::run`].
    pub fn run_telling(&mut self, mut done: impl FnMut(f64)) -> Result<Report, Imbalance> {
        const TOLD: u64 = 100;
        let cycle = self.simulation.model.fabric.config().cycle();
        let last = self.duration.cycles - 1;
        let measured_from = self.simulation.model.measured_from;
        let mut begin = None;
        for part in 1..=TOLD {
            let until = (u128::from(last) * u128::from(part) / u128::from(TOLD)) as u64;
            if begin.is_none() && until >= measured_from {
                if measured_from > 0 {
                    self.simulation.run(Time::ZERO + cycle * measured_from);
                }
                begin = Some(Crossings::of(&self.simulation.model.fabric));
            }
            self.simulation.run(Time::ZERO + cycle * until);
            done(part as f64 / TOLD as f64);
        }
        let bench = &self.simulation.model;
        bench.fabric.audit()?;
        if bench.fabric.stands_still() {
            let mut waits = Waits::default();
            bench.fabric.waits(&mut waits, |terminal| format!("terminal {terminal}"));
            return Err(Imbalance {
                queue: bench.fabric.topology().name().to_owned(),
                law: "packets are inside and nothing can move",
                details: waits
                    .cycle()
                    .map_or("no circle of waits".to_owned(), |cycle| cycle.to_string()),
            });
        }
        Ok(Report::new(Measured {
            fabric: &bench.fabric,
            traffic: &bench.traffic,
            windows: &bench.windows,
            window_cycles: bench.window_cycles,
            duration: self.duration,
            delivered_from: &bench.delivered_from,
            latency: bench.latency,
            begin: begin.unwrap_or_default(),
            events: self.simulation.events(),
            trace_hash: self.simulation.trace_hash(),
        }))
    }
}

impl Model for Bench {
    type Event = NetworkEvent;

    fn handle(&mut self, event: NetworkEvent, schedule: &mut Schedule<NetworkEvent>) {
        match event {
            NetworkEvent::Tick => self.tick(schedule),
            NetworkEvent::Make(terminal) => self.make(terminal, schedule),
        }
    }
}

impl Bench {
    fn begin(&mut self, schedule: &mut Schedule<NetworkEvent>) {
        for terminal in 0..self.bursts.len() as u32 {
            let messages = match self.traffic.arrival {
                Arrival::Random { .. } | Arrival::Bursts { .. } => {
                    let gap = self.gap.draw(&mut self.random);
                    self.make_after(gap, terminal, schedule);
                    0
                }
                // Two, so that the next is ready when one leaves.
                Arrival::Saturated => 2,
                Arrival::Closed { window } => window,
            };
            for _ in 0..messages {
                self.inject(terminal, schedule);
            }
        }
    }

    fn make_after(&mut self, cycles: u64, terminal: u32, schedule: &mut Schedule<NetworkEvent>) {
        let cycle = self.fabric.config().cycle();
        // Events beyond the end do not matter, and a rare event may exceed the range of time.
        if cycles <= self.end {
            schedule.after(cycle * cycles, NetworkEvent::Make(terminal));
        }
    }

    /// One message, then the wait for the next.
    fn make(&mut self, terminal: u32, schedule: &mut Schedule<NetworkEvent>) {
        let beats = self.inject(terminal, schedule);
        let burst = matches!(self.traffic.arrival, Arrival::Bursts { .. });
        if burst && self.random.chance(self.goes_on) {
            self.make_after(beats, terminal, schedule);
        } else {
            self.bursts[terminal as usize] = None;
            let busy = if burst { beats } else { 1 };
            let gap = busy + self.gap.draw(&mut self.random);
            self.make_after(gap, terminal, schedule);
        }
    }

    /// Sends a message and returns its beats.
    fn inject(&mut self, source: u32, schedule: &mut Schedule<NetworkEvent>) -> u64 {
        let destination = match self.bursts[source as usize] {
            Some(destination) => destination,
            None => self.destinations.draw(source, &mut self.random),
        };
        if matches!(self.traffic.arrival, Arrival::Bursts { .. }) {
            self.bursts[source as usize] = Some(destination);
        }
        let mut lengths = std::mem::take(&mut self.lengths);
        self.traffic.sizes.draw(&mut self.random, &mut lengths);
        let mut sum = 0;
        for &beats in &lengths {
            sum += u64::from(beats);
            let injection = Injection { source, destination, beats, class: 0, tag: 0 };
            self.fabric.inject(schedule, injection, NetworkEvent::Tick);
        }
        self.lengths = lengths;
        sum
    }

    fn tick(&mut self, schedule: &mut Schedule<NetworkEvent>) {
        self.fabric.tick(schedule, NetworkEvent::Tick);
        let mut delivered = std::mem::take(&mut self.delivered);
        delivered.extend(self.fabric.deliveries());
        for &delivery in &delivered {
            self.measure(delivery, schedule);
            let Packet { destination, beats, .. } = delivery.packet;
            self.fabric.release(schedule, destination, delivery.vc, beats, NetworkEvent::Tick);
        }
        let mut departed = std::mem::take(&mut self.departed);
        departed.extend(self.fabric.departures());
        match self.traffic.arrival {
            Arrival::Saturated => departed.iter().for_each(|packet| {
                self.inject(packet.source, schedule);
            }),
            Arrival::Closed { .. } => delivered.iter().for_each(|delivery| {
                self.inject(delivery.packet.source, schedule);
            }),
            Arrival::Random { .. } | Arrival::Bursts { .. } => {}
        }
        delivered.clear();
        departed.clear();
        (self.delivered, self.departed) = (delivered, departed);
    }

    fn measure(&mut self, delivery: Delivery, schedule: &mut Schedule<NetworkEvent>) {
        let Delivery { packet, cycle, .. } = delivery;
        schedule.witness(u64::from(packet.source) << 32 | u64::from(packet.destination));
        let latency = cycle - packet.born;
        if let Some(window) = self.windows.get_mut((cycle / self.window_cycles) as usize) {
            window.count += 1;
            window.latency += latency;
            window.amount += u64::from(packet.beats);
        }
        if cycle >= self.measured_from {
            self.delivered_from[packet.source as usize] += u64::from(packet.beats);
            self.latency.add(latency);
        }
    }
}
