//! Queues against closed formulas: event core, channels and random numbers together.

use bellwire_model::engine::{
    Chance, Channel, Event, Model, Random, Schedule, Server, Simulation, Timing,
};
use bellwire_model::units::{Span, Time};

#[derive(Clone, Copy)]
enum StationEvent {
    Make,
    Arrival,
    Room,
    Done,
}

impl Event for StationEvent {
    fn trace(self) -> u64 {
        self as u64
    }
}

/// The distribution of service times.
#[derive(Clone, Copy)]
enum Service {
    Constant,
    Exponential,
    /// Half of them zero, half of them double the mean.
    Extremes,
}

impl Service {
    const MEAN_PS: u64 = 1_000_000;

    fn draw(self, random: &mut Random) -> u64 {
        match self {
            Service::Constant => Service::MEAN_PS,
            Service::Exponential => random.exponential_of(Service::MEAN_PS),
            Service::Extremes => random.below(2) * 2 * Service::MEAN_PS,
        }
    }

    /// Variance over the square of the mean.
    fn spread(self) -> f64 {
        match self {
            Service::Constant => 0.0,
            Service::Exponential | Service::Extremes => 1.0,
        }
    }
}

/// Random arrivals, a queue without limit, one server.
struct Station {
    queue: Channel<(), StationEvent>,
    busy: bool,
    gap_ps: u64,
    service: Service,
}

impl Station {
    fn serve(&mut self, schedule: &mut Schedule<StationEvent>) {
        if !self.busy && self.queue.take(schedule).is_some() {
            self.busy = true;
            let time = self.service.draw(&mut schedule.random);
            schedule.after(Span::from_ps(time), StationEvent::Done);
        }
    }
}

impl Model for Station {
    type Event = StationEvent;

    fn handle(&mut self, event: StationEvent, schedule: &mut Schedule<StationEvent>) {
        match event {
            StationEvent::Make => {
                let _ = self.queue.offer(schedule, 1, ());
                let gap = schedule.random.exponential_of(self.gap_ps);
                schedule.after(Span::from_ps(gap), StationEvent::Make);
            }
            StationEvent::Done => {
                self.busy = false;
                self.serve(schedule);
            }
            StationEvent::Arrival => self.serve(schedule),
            StationEvent::Room => unreachable!("a queue without limit refuses nobody"),
        }
    }
}

/// Mean wait in units of the mean service, at the model's own server, which computes it at once.
fn mean_wait_at_server(service: Service, load: f64, seed: u64) -> f64 {
    const REQUESTS: u64 = 1_500_000;
    let gap_ps = (Service::MEAN_PS as f64 / load) as u64;
    let (mut server, mut random, mut now) = (Server::default(), Random::new(seed), Time::ZERO);
    for _ in 0..REQUESTS {
        server.reserve(now, Span::from_ps(service.draw(&mut random)));
        now += Span::from_ps(random.exponential_of(gap_ps));
    }
    server.waited().ps() as f64 / (REQUESTS * Service::MEAN_PS) as f64
}

/// The same in a queue with events for arrivals and ends.
fn mean_wait(service: Service, load: f64, seed: u64) -> f64 {
    let queue = Channel::new(
        "queue",
        Timing::default(),
        u32::MAX,
        StationEvent::Arrival,
        StationEvent::Room,
    );
    let gap_ps = (Service::MEAN_PS as f64 / load) as u64;
    let model = Station { queue, busy: false, gap_ps, service };
    let mut simulation = Simulation { model, schedule: Schedule::new(seed, Span::from_ns(100)) };
    simulation.schedule.at(Time::ZERO, StationEvent::Make);
    let end = Time::from_ps(1_500_000 * Service::MEAN_PS);
    simulation.run(end);
    let station = simulation.model;
    station.queue.audit(end).unwrap();
    station.queue.waited.mean() / Service::MEAN_PS as f64
}

/// Mean wait of a service under a load, for a seed.
type MeanWait = fn(Service, f64, u64) -> f64;

/// Checks the mean wait at a single server against Pollaczek and Khinchine: rho (1 + c^2) / (2 (1 -
/// rho)). With constant service that is M/D/1, with exponential service M/M/1.
fn check_wait(by: MeanWait, service: Service, load: f64, spread: f64) -> Result<(), String> {
    let got = (0..2).map(|seed| by(service, load, seed)).sum::<f64>() / 2.0;
    let expected = load * (1.0 + spread) / (2.0 * (1.0 - load));
    let fits = (got / expected - 1.0).abs() < 0.03;
    fits.then_some(()).ok_or_else(|| format!("load {load}: {got}, {expected}"))
}

/// M/D/1, M/M/1 and a two-valued service wait as the formulas say, at the model's server and in a
/// queue with events. There Little's law holds exactly.
#[test]
fn single_servers_wait_as_the_formulas_say() {
    for by in [mean_wait_at_server, mean_wait as MeanWait] {
        for service in [Service::Constant, Service::Exponential, Service::Extremes] {
            for load in [0.3, 0.6, 0.8] {
                check_wait(by, service, load, service.spread()).unwrap();
            }
        }
        // Canary: a service with the wrong variance is noticed.
        check_wait(by, Service::Constant, 0.6, 0.1).unwrap_err();
    }
}

/// A switch with output queues that accept everything, slot by slot: W = (N-1)/N p / (2 (1-p))
/// slots of waiting (Karol).
struct OutputQueued {
    outputs: Vec<Channel<(), Slot>>,
    load: Chance,
}

#[derive(Clone, Copy)]
enum Slot {
    Begins,
    Ends,
    Arrival,
    Room,
}

impl Event for Slot {
    fn trace(self) -> u64 {
        self as u64
    }
}

const SLOT: Span = Span::from_ns(100);

impl Model for OutputQueued {
    type Event = Slot;

    fn handle(&mut self, event: Slot, schedule: &mut Schedule<Slot>) {
        match event {
            Slot::Begins => {
                for _ in 0..self.outputs.len() {
                    if schedule.random.chance(self.load) {
                        let output = schedule.random.below(self.outputs.len() as u64) as usize;
                        let _ = self.outputs[output].offer(schedule, 1, ());
                    }
                }
                schedule.settle(Slot::Ends);
                schedule.after(SLOT, Slot::Begins);
            }
            Slot::Ends => self.outputs.iter_mut().for_each(|output| {
                output.take(schedule);
            }),
            Slot::Arrival => {}
            Slot::Room => unreachable!("a queue without limit refuses nobody"),
        }
    }
}

fn check_output_queueing(ports: usize, load: f64, expected: f64) -> Result<(), String> {
    let output = || Channel::new("output", Timing::default(), u32::MAX, Slot::Arrival, Slot::Room);
    let outputs = (0..ports).map(|_| output()).collect();
    let model = OutputQueued { outputs, load: Chance::new(load) };
    let mut simulation = Simulation { model, schedule: Schedule::new(3, SLOT) };
    simulation.schedule.at(Time::ZERO, Slot::Begins);
    let end = Time::ZERO + SLOT * (4_000_000 / ports as u64);
    simulation.run(end);
    let (mut waits, mut cells) = (0.0, 0.0);
    for output in &simulation.model.outputs {
        output.audit(end).unwrap();
        waits += output.waited.sum() as f64 / SLOT.ps() as f64;
        cells += output.waited.count() as f64;
    }
    let got = waits / cells;
    let fits = (got / expected - 1.0).abs() < 0.03;
    fits.then_some(()).ok_or_else(|| format!("{ports} ports at {load}: {got}, {expected}"))
}

/// An output-queued switch waits as Karol, Hluchyj and Morgan say.
#[test]
fn output_queues_wait_as_karol_says() {
    check_output_queueing(16, 0.8, 1.875).unwrap();
    check_output_queueing(16, 0.9, 4.219).unwrap();
    check_output_queueing(4, 0.8, 1.5).unwrap();
    // Canary: one port more than assumed is noticed.
    check_output_queueing(5, 0.8, 1.5).unwrap_err();
}
