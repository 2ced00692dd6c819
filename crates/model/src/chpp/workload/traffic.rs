//! Synthetic traffic of a machine: a program that runs on all nodes at once.

use super::plan::{Arrival, Duration, Plan, Sizes, Traffic};
use super::report::{Measured, Report};
use crate::chpp::config::Config;
use crate::chpp::experiments::Kind;
use crate::chpp::experiments::single::{endpoint, post};
use crate::chpp::host::{Notice, RingKind};
use crate::chpp::machine::{HostApi, Machine, Program};
use crate::engine::{Chance, Ended, Random};
use crate::network::Destinations;
use crate::stats::Window;
use crate::units::{Span, Time};

/// A machine and its load.
pub struct Workload {
    /// The machine. A caller can turn on its records before a run, and inspect it afterwards.
    pub machine: Machine,
    config: Config,
    load: Load,
    duration: Duration,
}

/// Number of windows of a run.
const WINDOWS: u64 = 1000;

/// The traffic, and its measurements.
struct Load {
    traffic: Traffic,
    destinations: Destinations,
    random: Random,
    /// Mean time between messages, or between bursts.
    mean_gap: Span,
    goes_on: Chance,
    /// In a closed loop, the messages that a node keeps in flight.
    under_way: Option<u32>,
    /// Room for a message in the memory of a node: one for its own messages, and one for each
    /// source.
    place_bytes: u64,
    until: Time,
    windows: Vec<Window>,
    window: Span,
    measured_from: Time,
    /// Latencies since then, in picoseconds.
    latencies: Vec<u64>,
    delivered_from: Vec<u64>,
    made: u64,
    over: u64,
}

impl Workload {
    /// A machine before its start; `plan` has been checked against `config`.
    pub(super) fn new(config: &Config, plan: &Plan) -> Result<Workload, String> {
        let Plan { traffic, run, seed, .. } = plan;
        let machine = Machine::new(config, *seed).map_err(|error| error.to_string())?;
        let nodes = config.nodes();
        let mut random = Random::new(*seed).fork(2);
        let destinations = Destinations::new(&traffic.pattern, nodes as u32, &mut random);
        let mean = mean_bytes(&traffic.sizes);
        let (load, messages) = match traffic.arrival {
            Arrival::Random { load } => (load.bytes_per_second(), 1.0),
            Arrival::Bursts { load, messages } => (load.bytes_per_second(), messages),
            Arrival::Saturated | Arrival::Closed { .. } => (1, 1.0),
        };
        let mean_gap = Span::from_ps((mean * messages / load as f64 * 1e12) as u64);
        let under_way = match traffic.arrival {
            Arrival::Closed { window } => Some(window),
            Arrival::Saturated => Some(config.nic.doorbell_depth as u32),
            Arrival::Random { .. } | Arrival::Bursts { .. } => None,
        };
        let load = Load {
            traffic: traffic.clone(),
            destinations,
            random,
            mean_gap,
            goes_on: Chance::new(1.0 - 1.0 / messages),
            under_way,
            place_bytes: traffic.sizes.most().next_multiple_of(64),
            until: Time::ZERO + run.time,
            windows: vec![Window::default(); WINDOWS as usize],
            window: Span::from_ps(run.time.ps().div_ceil(WINDOWS)),
            measured_from: Time::ZERO + run.warm_up.unwrap_or(run.time / 2),
            latencies: Vec::new(),
            delivered_from: vec![0; nodes],
            made: 0,
            over: 0,
        };
        Ok(Workload { machine, config: config.clone(), load, duration: *run })
    }

    /// Runs to the end and reports. Calls `done` from time to time with the share done, from 0 to
    /// 1.
    ///
    /// # Errors
    /// A sentence: a deadlock with its cycle of waits, or a violated law of conservation.
    pub fn run(&mut self, mut done: impl FnMut(f64)) -> Result<Report, String> {
        const TOLD: u64 = 100;
        let Workload { machine, config, load, duration } = self;
        load.begin(&mut machine.api());
        for part in 1..=TOLD {
            let until = Time::ZERO
                + Span::from_ps(
                    (u128::from(duration.time.ps()) * u128::from(part) / u128::from(TOLD)) as u64,
                );
            let ended = machine.run_program(load, until).map_err(|stopped| stopped.to_string())?;
            done(part as f64 / TOLD as f64);
            if ended == Ended::Quiet {
                // The gap exceeds the remaining time: no further event occurs.
                done(1.0);
                break;
            }
        }
        machine.audit().map_err(|imbalance| imbalance.to_string())?;
        Ok(Report::new(Measured {
            machine,
            config,
            traffic: &load.traffic,
            windows: &load.windows,
            window: load.window,
            warm_up: duration.warm_up,
            latencies: std::mem::take(&mut load.latencies),
            delivered_from: load.delivered_from.clone(),
            under_way: load.made - load.over,
        }))
    }
}

impl Load {
    /// Each node starts.
    fn begin(&mut self, api: &mut HostApi<'_>) {
        for node in 0..self.delivered_from.len() {
            match self.under_way {
                Some(window) => (0..window).for_each(|_| self.send(node, api)),
                None => self.wake_later(node, api),
            }
        }
    }

    fn wake_later(&mut self, node: usize, api: &mut HostApi<'_>) {
        let gap = Span::from_ps(self.random.exponential_of(self.mean_gap.ps()));
        let next = api.now() + gap;
        if next < self.until {
            api.wake(next, node as u32);
        }
    }

    fn send(&mut self, node: usize, api: &mut HostApi<'_>) {
        let to = self.destinations.draw(node as u32, &mut self.random) as usize;
        self.send_to(node, to, api);
    }

    fn send_to(&mut self, node: usize, to: usize, api: &mut HostApi<'_>) {
        let bytes = match self.traffic.sizes {
            Sizes::Bytes(bytes) => bytes.count(),
            Sizes::Mix => crate::network::Sizes::draw_bytes(&mut self.random),
        };
        let place =
            |at: usize, number: usize| api.free_memory(at, 0) + self.place_bytes * number as u64;
        let kind = self.traffic.operation;
        let (near, far) = match kind == Kind::Get {
            true => (place(node, 1 + to), place(to, 0)),
            false => (place(node, 0), place(to, 1 + node)),
        };
        let ends = (endpoint(node as u8), endpoint(to as u8));
        // The plan's lengths were checked against the limits of a descriptor.
        let posted = post(api, kind, ends, (near, far), bytes);
        debug_assert!(posted.is_ok(), "{posted:?}");
        self.made += u64::from(posted.is_ok());
    }
}

impl Program for Load {
    fn notified(&mut self, notice: &Notice, api: &mut HostApi<'_>) {
        if notice.ring != RingKind::Receive {
            return;
        }
        let operation = api.operations()[notice.operation as usize];
        let latency = (notice.time - operation.posted).ps();
        self.over += 1;
        let at = (notice.time - Time::ZERO) / self.window;
        if let Some(window) = self.windows.get_mut(at as usize) {
            window.count += 1;
            window.latency += latency;
            window.amount += operation.bytes;
        }
        if notice.time >= self.measured_from {
            self.latencies.push(latency);
            self.delivered_from[operation.node] += operation.bytes;
        }
        if self.under_way.is_some() {
            self.send(operation.node, api);
        }
    }

    fn woken(&mut self, node: u32, api: &mut HostApi<'_>) {
        let node = node as usize;
        let to = self.destinations.draw(node as u32, &mut self.random) as usize;
        self.send_to(node, to, api);
        if let Arrival::Bursts { .. } = self.traffic.arrival {
            while self.random.chance(self.goes_on) {
                self.send_to(node, to, api);
            }
        }
        self.wake_later(node, api);
    }
}

/// The mean length of a message; the mix is sampled with a fixed seed.
pub(super) fn mean_bytes(sizes: &Sizes) -> f64 {
    match sizes {
        Sizes::Bytes(bytes) => bytes.count() as f64,
        Sizes::Mix => {
            let mut random = Random::new(0);
            let sample = 100_000;
            let sum: u64 =
                (0..sample).map(|_| crate::network::Sizes::draw_bytes(&mut random)).sum();
            sum as f64 / f64::from(sample)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Bytes;

    /// The mean length is that of all messages, or of the mix within five percent.
    #[test]
    fn lengths_have_their_mean() {
        assert_eq!(mean_bytes(&Sizes::Bytes(Bytes::new(100))), 100.0);
        // Bands of one factor of two have a mean of 1.5 of their beginning: 127/7 for the first
        // seven, 31/5 of 128 for the next five, 4096, and 7/3 of 8192.
        let bands = [
            (5.0, 127.0 / 7.0),
            (82.0, 128.0 * 31.0 / 5.0),
            (5.0, 4096.0),
            (8.0, 8192.0 * 7.0 / 3.0),
        ];
        let mean: f64 = bands.iter().map(|(percent, begin)| 1.5 * percent / 100.0 * begin).sum();
        let ratio = mean_bytes(&Sizes::Mix) / mean;
        assert!((ratio - 1.0).abs() < 0.05, "{ratio}");
    }
}
