//! The results of a run: latency and throughput with their confidence, the bottleneck, and the
//! parameters without effect.

use std::fmt;

use serde::Serialize;

use super::plan::{Arrival, Traffic};
use crate::chpp::config::{Config, LinkKind, Start};
use crate::chpp::experiments::Kind;
use crate::chpp::machine::{Busy, Machine};
use crate::chpp::node::Node;
use crate::network::{IdleParameter, idle_lines};
use crate::stats::{Estimate, QueueUse, Steady, Window};
use crate::units::Span;

/// The inputs of a report.
pub(super) struct Measured<'a> {
    pub machine: &'a Machine,
    pub config: &'a Config,
    pub traffic: &'a Traffic,
    pub windows: &'a [Window],
    pub window: Span,
    pub warm_up: Option<Span>,
    pub latencies: Vec<u64>,
    pub delivered_from: Vec<u64>,
    pub under_way: u64,
}

/// The results of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Nanoseconds from a message's posting to its final event.
    pub latency_ns: Estimate,
    /// Gigabytes (10^9 B) of messages delivered per second, for each sending node.
    pub throughput_gb_s: Estimate,
    /// The warm-up, which is left out.
    pub warm_up: Span,
    /// Whether the run reached a steady state. If not, its means mean little: the load exceeds the
    /// capacity, or the run is too short.
    pub settled: bool,
    /// Latencies of single messages, from the end of the warm-up (or half of the run, if none was
    /// given) to the end.
    pub percentiles_ns: Percentiles,
    /// Number of these messages.
    pub messages: u64,
    /// Bytes delivered from each node in the same time, to measure fairness.
    pub delivered_from: Vec<u64>,
    /// Messages in flight at the end.
    pub under_way: u64,
    /// The busiest resource.
    pub limit: Limit,
    /// Every queue that was used, highest mean first. Little's law holds on each: otherwise there
    /// is no report.
    pub queues: Vec<QueueUse>,
    /// Parameters that had no effect on this run.
    pub idle_parameters: Vec<IdleParameter>,
    /// Events of the core.
    pub events: u64,
    /// Trace hash; 16 hexadecimal digits in JSON.
    #[serde(serialize_with = "crate::stats::hexadecimal")]
    pub trace_hash: u64,
}

/// Percentiles of latency in nanoseconds; nothing without messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Percentiles {
    /// Median.
    pub p50: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// Maximum.
    pub most: Option<f64>,
}

/// The busiest resource.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Limit {
    /// Its name.
    pub resource: String,
    /// Its utilisation, from 0 to 1.
    pub utilisation: f64,
    /// The explanation in one sentence.
    pub why: String,
}

impl Report {
    pub(super) fn new(measured: Measured<'_>) -> Report {
        let Measured { machine, config, traffic, windows, window, mut latencies, .. } = measured;
        let known = measured.warm_up.map(|span| span.ps().div_ceil(window.ps()) as usize);
        let steady = Steady::of(windows, known);
        let nodes = measured.delivered_from.len() as f64;
        // Bytes of a window to bytes per nanosecond and node.
        let rate = |bytes: f64| bytes / window.as_ns() / nodes;
        latencies.sort_unstable();
        let percentile = |hundredths: usize| {
            let at = (latencies.len() * hundredths).div_ceil(100).saturating_sub(1);
            latencies.get(at).map(|ps| *ps as f64 / 1e3)
        };
        Report {
            latency_ns: Estimate {
                mean: steady.latency.mean / 1e3,
                half_width: steady.latency.half_width / 1e3,
            },
            throughput_gb_s: Estimate {
                mean: rate(steady.amount.mean),
                half_width: rate(steady.amount.half_width),
            },
            warm_up: window * steady.warm_up as u64,
            settled: steady.settled,
            percentiles_ns: Percentiles {
                p50: percentile(50),
                p90: percentile(90),
                p99: percentile(99),
                most: percentile(100),
            },
            messages: latencies.len() as u64,
            limit: limit(machine, traffic, measured.under_way, measured.delivered_from.len()),
            delivered_from: measured.delivered_from,
            under_way: measured.under_way,
            queues: machine.queues(),
            idle_parameters: idle_parameters(machine, config, traffic),
            events: machine.events(),
            trace_hash: machine.trace_hash(),
        }
    }

    /// The ratio of the lowest to the highest number of bytes from one node: 1 is perfectly fair.
    pub fn fairness(&self) -> f64 {
        crate::stats::fairness(&self.delivered_from)
    }
}

fn limit(machine: &Machine, traffic: &Traffic, under_way: u64, nodes: usize) -> Limit {
    let Busy { resource, share: utilisation } = machine.busiest().swap_remove(0);
    let share = utilisation * 100.0;
    let why = match traffic.arrival {
        _ if utilisation >= 0.9 => format!("{resource} is in use {share:.0} % of the time"),
        Arrival::Closed { window } => format!(
            "no more than {window} messages of a node are under way; {resource} would be next, in use {share:.0} % of the time"
        ),
        Arrival::Random { .. } | Arrival::Bursts { .. } if under_way <= 64 * nodes as u64 => {
            format!(
                "nothing: all that was offered was carried; {resource} would be first, in use {share:.0} % of the time"
            )
        }
        _ => format!(
            "what waits for each other: even the busiest resource, {resource}, is in use {share:.0} % of the time only"
        ),
    };
    Limit { resource, utilisation, why }
}

fn idle_parameters(machine: &Machine, config: &Config, traffic: &Traffic) -> Vec<IdleParameter> {
    let nodes = machine.nodes();
    let none = |count: fn(&Node) -> u64| nodes.iter().all(|node| count(node) == 0);
    let no_gets = traffic.operation != Kind::Get;
    let is_nap = traffic.operation.is_nap();
    [
        ("nic.tags", none(|node| node.port.tags.refused), "no read ever found all tags taken"),
        (
            "nic.doorbell_depth",
            none(|node| node.host.held_back),
            "no function ever had that many operations outstanding",
        ),
        (
            "pcie.posted_headers, pcie.posted_data",
            none(|node| node.port.posted.waited.ps()),
            "no write ever waited for credits",
        ),
        (
            "pcie.non_posted_headers",
            none(|node| node.port.non_posted.waited.ps()),
            "no read ever waited for credits",
        ),
        ("crossbar.get_channel, nic.remote_get_depth", no_gets, "there were no GETs"),
        ("nic.slot_cache, nic.slot_batch, host.slots", !is_nap, "there were no NAPs"),
        ("nic.packing", !is_nap, "there were no NAPs"),
        (
            "link",
            config.link == LinkKind::Smp && config.links.is_none(),
            "there is one controller and nothing to link; add `links`",
        ),
        (
            "links.latency",
            config.link == LinkKind::Smp && config.links.is_some(),
            "direct links have times of their own",
        ),
        (
            "nic.descriptor_words",
            !matches!(config.nic.submission, Start::DamqPd | Start::Ring),
            "processors store no descriptors",
        ),
        ("host.memory_jitter", config.host.memory_jitter == Span::ZERO, "it is zero"),
        ("nic.arbitration", true, "all messages are those of one function"),
    ]
    .into_iter()
    .filter_map(IdleParameter::of)
    .collect()
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Estimate { mean, half_width } = self.latency_ns;
        writeln!(f, "latency      {mean:.1} +- {half_width:.1} ns")?;
        if half_width.is_infinite() {
            writeln!(
                f,
                "             too few messages ended to say how sure that is: give `time` in [run] more"
            )?;
        }
        let Percentiles { p50, p90, p99, most } = self.percentiles_ns;
        if let (Some(p50), Some(p90), Some(p99), Some(most)) = (p50, p90, p99, most) {
            writeln!(
                f,
                "             half within {p50:.1}, 90 % {p90:.1}, 99 % {p99:.1}, all {most:.1} ns"
            )?;
        }
        let Estimate { mean, half_width } = self.throughput_gb_s;
        writeln!(f, "throughput   {mean:.4} +- {half_width:.4} GB/s per node")?;
        let settled = if self.settled { "settled" } else { "NOT SETTLED" };
        writeln!(f, "warm-up      {}, {settled}", self.warm_up)?;
        writeln!(
            f,
            "messages     {} measured, {} under way at the end",
            self.messages, self.under_way
        )?;
        writeln!(
            f,
            "fairness     {:.3} (least through most delivered from a node)",
            self.fairness()
        )?;
        writeln!(f, "limit        {}", self.limit.why)?;
        // The fullest queues.
        let (shown, rest) = self.queues.split_at(self.queues.len().min(6));
        for QueueUse { queue, came, mean, most, mean_stay_ns } in shown {
            writeln!(
                f,
                "queue        {queue}: {mean:.2} on average, {most} at most, {came} came and stayed {mean_stay_ns:.1} ns"
            )?;
        }
        if !rest.is_empty() {
            writeln!(
                f,
                "             and {} more, which --json lists; Little's law holds on each",
                rest.len()
            )?;
        }
        idle_lines(f, &self.idle_parameters)?;
        writeln!(f, "trace        {:016x}, {} events", self.trace_hash, self.events)
    }
}
