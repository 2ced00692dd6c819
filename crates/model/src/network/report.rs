//! The results of a run: latency and throughput with confidence, the bottleneck, and parameters
//! without effect.

use std::fmt;

use serde::Serialize;

use super::config::{Allocation, Select};
use super::experiment::Duration;
use super::fabric::{Counters, Fabric};
use super::packets::NONE;
use super::topology::Shape;
use super::traffic::{Arrival, Sizes, Traffic};
use crate::engine::Policy;
use crate::stats::{Estimate, Steady, Tally, Window};

/// The inputs of a report.
pub(super) struct Measured<'a> {
    pub fabric: &'a Fabric,
    pub traffic: &'a Traffic,
    pub windows: &'a [Window],
    pub window_cycles: u64,
    pub duration: Duration,
    pub delivered_from: &'a [u64],
    pub latency: Tally,
    pub begin: Crossings,
    pub events: u64,
    pub trace_hash: u64,
}

/// The results of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Cycles from the creation of a packet until its last beat is at its terminal.
    pub latency_cycles: Estimate,
    /// Beats delivered per terminal and cycle.
    pub throughput: Estimate,
    /// Cycles of warm-up, which do not count.
    pub warm_up_cycles: u64,
    /// Whether the run reached a steady state. If not, its means say little: the load exceeds
    /// saturation, or the run is too short.
    pub settled: bool,
    /// Mean number of routers that a delivered beat crossed, after the warm-up. Without a given
    /// warm-up, the second half of the run counts.
    pub mean_hops: f64,
    /// Latency of single packets, in cycles, after the warm-up. Without a given warm-up, the second
    /// half of the run counts.
    pub latency: Tally,
    /// Beats delivered from each terminal in the same time, for fairness.
    pub delivered_from: Vec<u64>,
    /// The bottleneck, or the resource closest to being one.
    pub limit: Limit,
    /// Where packets waited.
    pub waits: WaitCycles,
    /// Parameters without effect on this run.
    pub idle_parameters: Vec<IdleParameter>,
    /// Counters of the fabric.
    pub counters: Counters,
    /// Events of the core.
    pub events: u64,
    /// Hash of all events; 16 hexadecimal digits in JSON.
    #[serde(serialize_with = "crate::stats::hexadecimal")]
    pub trace_hash: u64,
}

/// The bottleneck of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Limit {
    /// Its name.
    pub resource: String,
    /// The fraction of time that it was in use.
    pub utilisation: f64,
    /// Whether it limits the throughput, or is only closest to it.
    pub binding: bool,
    /// One sentence that explains it.
    pub why: String,
}

/// Cycles that packets at the front of input queues spent waiting, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WaitCycles {
    /// For a virtual channel downstream.
    pub vc: u64,
    /// For room downstream.
    pub credit: u64,
    /// For their turn at an output, or for another packet of their input.
    pub turn: u64,
}

/// A parameter without effect on this run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct IdleParameter {
    /// Its name, as in TOML.
    pub parameter: &'static str,
    /// Why it had no effect.
    pub because: &'static str,
}

impl IdleParameter {
    /// A parameter and the reason why it had no effect; `None` if it had one.
    pub(crate) fn of(
        (parameter, is_idle, because): (&'static str, bool, &'static str),
    ) -> Option<IdleParameter> {
        is_idle.then_some(IdleParameter { parameter, because })
    }
}

/// Writes the lines of a report about parameters without effect.
pub(crate) fn idle_lines(f: &mut fmt::Formatter<'_>, idle: &[IdleParameter]) -> fmt::Result {
    idle.iter()
        .try_for_each(|idle| writeln!(f, "no effect    {}: {}", idle.parameter, idle.because))
}

impl Report {
    pub(super) fn new(measured: Measured<'_>) -> Report {
        let Measured { fabric, traffic, windows, window_cycles, duration, .. } = measured;
        let terminals = fabric.topology().terminals() as f64;
        let known = duration.warm_up_cycles.map(|cycles| (cycles / window_cycles) as usize);
        let steady = Steady::of(windows, known);
        let beats = window_cycles as f64 * terminals;
        let throughput = Estimate {
            mean: steady.amount.mean / beats,
            half_width: steady.amount.half_width / beats,
        };
        let waits = wait_cycles(fabric);
        let counters = fabric.counters();
        Report {
            latency_cycles: steady.latency,
            throughput,
            warm_up_cycles: steady.warm_up as u64 * window_cycles,
            settled: steady.settled,
            mean_hops: Crossings::of(fabric).mean_hops_since(measured.begin),
            latency: measured.latency,
            delivered_from: measured.delivered_from.to_vec(),
            limit: limit(fabric, traffic, waits),
            waits,
            idle_parameters: idle_parameters(fabric, traffic, waits),
            counters,
            events: measured.events,
            trace_hash: measured.trace_hash,
        }
    }

    /// The fewest beats from one terminal over the most: 1 is perfectly fair.
    pub fn fairness(&self) -> f64 {
        crate::stats::fairness(&self.delivered_from)
    }
}

fn wait_cycles(fabric: &Fabric) -> WaitCycles {
    WaitCycles {
        vc: fabric.stats.iter().map(|stats| stats.vc_wait).sum(),
        credit: fabric.stats.iter().map(|stats| stats.credit_wait).sum(),
        turn: fabric.counters().lost_requests,
    }
}

/// How many routers beats crossed up to a time, and how many beats were delivered.
#[derive(Clone, Copy, Default)]
pub(super) struct Crossings {
    hops: u64,
    delivered: u64,
}

impl Crossings {
    pub(super) fn of(fabric: &Fabric) -> Crossings {
        let to_terminal = |port: &usize| {
            let to = fabric.ports[*port].to;
            to != NONE && to >= fabric.router_ports()
        };
        let ports = (0..fabric.router_ports() as usize).filter(to_terminal);
        Crossings {
            hops: fabric.counters().hops,
            delivered: ports.map(|port| fabric.sent(port)).sum(),
        }
    }

    /// Routers for each beat since `begin`. In a steady state, beats that were inside then stand
    /// for those that are inside now.
    fn mean_hops_since(self, begin: Crossings) -> f64 {
        (self.hops - begin.hops) as f64 / (self.delivered - begin.delivered).max(1) as f64
    }
}

fn limit(fabric: &Fabric, traffic: &Traffic, waits: WaitCycles) -> Limit {
    let cycles = fabric.cycle().max(1);
    let busiest = (0..fabric.ports.len()).max_by_key(|&port| fabric.sent(port)).unwrap_or(0);
    let utilisation = fabric.sent(busiest) as f64 / cycles as f64;
    let resource = port_name(fabric, busiest);
    let backlog: u64 = fabric.lanes.iter().map(|lane| u64::from(lane.packets)).sum();
    let held_back = match traffic.arrival {
        Arrival::Saturated => true,
        Arrival::Closed { .. } => backlog > 0,
        Arrival::Random { .. } | Arrival::Bursts { .. } => {
            backlog > 4 * fabric.sources.len() as u64
        }
    };
    if utilisation >= 0.95 {
        let why =
            format!("{resource} carries a beat in {:.1} % of all cycles", utilisation * 100.0);
        return Limit { resource, utilisation, binding: true, why };
    }
    if !held_back {
        let why = match traffic.arrival {
            Arrival::Closed { .. } => {
                "the window of the closed loop lets no more packets under way".to_owned()
            }
            _ => format!("nothing: all that was offered was carried; {resource} would be first"),
        };
        let resource = if matches!(traffic.arrival, Arrival::Closed { .. }) {
            "window".to_owned()
        } else {
            resource
        };
        return Limit { resource, utilisation, binding: false, why };
    }
    let single = fabric.config().vcs == 1;
    let (resource, cycles_lost, what) = [
        ("virtual channels", waits.vc, "waited for a virtual channel that another packet had"),
        ("input buffers", waits.credit, "waited for room (credits) in the next buffer"),
        (
            "switch allocation",
            waits.turn,
            if single {
                "lost against others, and blocked what stood behind them"
            } else {
                "lost against others"
            },
        ),
    ]
    .into_iter()
    .max_by_key(|cause| cause.1)
    .unwrap_or(("", 0, ""));
    let why = format!(
        "packets at the front of input queues {what} for {cycles_lost} cycles; the busiest line, {}, is used in {:.1} % only",
        port_name(fabric, busiest),
        utilisation * 100.0
    );
    Limit { resource: resource.to_owned(), utilisation, binding: true, why }
}

fn port_name(fabric: &Fabric, number: usize) -> String {
    let port = fabric.ports[number];
    let routers = fabric.router_ports();
    if port.router == NONE {
        return format!("the line from terminal {}", number as u32 - routers);
    }
    let at = number as u32 - fabric.routers[port.router as usize].first_port;
    if port.to != NONE && port.to >= routers {
        return format!("the line to terminal {}", port.to - routers);
    }
    format!("the link from router {}, port {at}", port.router)
}

fn idle_parameters(fabric: &Fabric, traffic: &Traffic, waits: WaitCycles) -> Vec<IdleParameter> {
    let config = fabric.config();
    let counters = fabric.counters();
    let no_credit_waits = waits.credit == 0 && config.buffer_beats != 0;
    let weighted = config.allocation == Allocation::Policy(Policy::Weighted);
    [
        ("buffer_beats", no_credit_waits, "no beat ever waited for a credit"),
        ("credit_cycles", waits.credit == 0, "no beat ever waited for a credit"),
        (
            "vcs",
            config.vcs > 1 && counters.vcs_beside == 0,
            "no port ever had two packets under way at once",
        ),
        (
            "select",
            config.vcs == 1 && config.select != Select::Free,
            "there is one virtual channel only",
        ),
        (
            "allocation",
            counters.lost_requests == 0 && counters.vc_contests == 0,
            "no two inputs ever wanted one output, or a virtual channel of it, at once",
        ),
        (
            "iterations",
            config.iterations > 1 && counters.later_rounds == 0,
            "the first round always matched all",
        ),
        (
            "weights",
            !config.weights.is_empty() && !weighted,
            "the allocation does not look at weights",
        ),
        (
            "switching",
            traffic.sizes == Sizes::Beats(1),
            "a packet of one beat is whole when its head is there",
        ),
        (
            "link_cycles",
            fabric.topology().shape == Shape::Single,
            "there are no links between routers",
        ),
    ]
    .into_iter()
    .filter_map(IdleParameter::of)
    .collect()
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Estimate { mean, half_width } = self.latency_cycles;
        writeln!(f, "latency      {mean:.2} +- {half_width:.2} cycles")?;
        let Estimate { mean, half_width } = self.throughput;
        writeln!(f, "throughput   {mean:.4} +- {half_width:.4} beats per terminal and cycle")?;
        let settled = if self.settled { "settled" } else { "NOT SETTLED" };
        writeln!(f, "warm-up      {} cycles, {settled}", self.warm_up_cycles)?;
        writeln!(f, "hops         {:.3} routers", self.mean_hops)?;
        writeln!(f, "limit        {}: {}", self.limit.resource, self.limit.why)?;
        let WaitCycles { vc, credit, turn } = self.waits;
        writeln!(f, "waits        {vc} cycles for a VC, {credit} for a credit, {turn} for a turn")?;
        idle_lines(f, &self.idle_parameters)?;
        writeln!(f, "trace        {:016x}, {} events", self.trace_hash, self.events)
    }
}
