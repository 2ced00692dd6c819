//! The figures as one object.

use super::arena::window;
use super::limits::Socket;
use super::order::Op;
use super::order::WaitMode;
use super::plan::Plan;
use super::rounds::{Figures, Findings};
use super::statistics::{Spread, median};
use serde::Serialize;

/// The object that `--json` prints and the tables show.
#[derive(Serialize)]
pub struct Report {
    pub device: String,
    /// The mechanism that carries the messages.
    pub carried_by: String,
    /// The command that repeats the measurement.
    pub command: String,
    pub wait: WaitMode,
    pub pairs: u8,
    pub affinity: Affinity,
    /// How often other programs preempted the leader: each time spoils a figure.
    pub interruptions: u64,
    pub rows: Vec<Row>,
    /// Absent for a simulated device, which shares no limit with this machine.
    pub limits: Option<Limits>,
    /// Present for a simulated device, whose times are all virtual.
    pub simulated: Option<Simulated>,
}

/// The simulation's own figures.
#[derive(Clone, Copy, Serialize)]
pub struct Simulated {
    /// Virtual time from the first node to the end.
    pub virtual_ns: f64,
    /// The engine's packets that crossed.
    pub packets: u64,
    pub events: u64,
    /// Hash of all events and their times: equal for two identical runs.
    pub trace_hash: u64,
}

/// The processors of the two sides; empty: any.
#[derive(Serialize)]
pub struct Affinity {
    pub leader_cpus: Vec<usize>,
    pub follower_cpus: Vec<usize>,
}

/// One operation with one size.
#[derive(Serialize)]
pub struct Row {
    pub op: Op,
    pub bytes: usize,
    pub latency_ns: Spread,
    /// `half_round_trip`, or for a get `whole_operation`.
    pub latency_of: &'static str,
    /// Round trips timed as one.
    pub latency_batch: u64,
    /// All pairs together.
    pub rate_msgs_per_s: f64,
    /// All pairs together.
    pub bandwidth_bytes_per_s: f64,
    /// Transfers in flight.
    pub window: u64,
    pub pair_rates_msgs_per_s: Vec<f64>,
    /// One-way time of a cache line, around these measurements; absent with only one processor.
    pub line_ns: Option<Spread>,
    /// Messages compared byte by byte.
    pub compared_messages: u64,
    /// Absent for a simulated device.
    pub ratios: Option<Ratios>,
}

/// Bellwire against each reference at the same size; above 1 Bellwire is better.
#[derive(Serialize)]
pub struct Ratios {
    /// The cache line's time divided by ours: at most 1.
    pub line_latency: Option<f64>,
    pub unix_latency: f64,
    pub tcp_latency: f64,
    pub unix_rate: f64,
    pub tcp_rate: f64,
    pub memcpy_bandwidth: f64,
}

/// The reference measurements.
#[derive(Serialize)]
pub struct Limits {
    /// One-way time of a cache line between the two processors, over the whole run.
    pub line_ns: Option<Spread>,
    pub rows: Vec<LimitRow>,
}

/// The references for one size.
#[derive(Serialize)]
pub struct LimitRow {
    pub bytes: usize,
    pub memcpy_bytes_per_s: f64,
    pub unix: SocketRow,
    pub tcp: SocketRow,
}

#[derive(Clone, Copy, Serialize)]
pub struct SocketRow {
    pub latency_ns: Spread,
    pub rate_msgs_per_s: f64,
    pub bandwidth_bytes_per_s: f64,
}

impl Report {
    pub fn new(
        plan: &Plan,
        connect: Option<&str>,
        carried_by: String,
        interruptions: u64,
        simulated: Option<Simulated>,
        findings: Vec<Findings>,
    ) -> Report {
        let all_lines: Vec<f64> = findings
            .iter()
            .flat_map(|finding| &finding.ops)
            .flat_map(|(_, figures)| figures.lines_ns.iter().copied())
            .collect();
        let mut rows = Vec::new();
        let mut limits = Vec::new();
        for finding in &findings {
            let limit = simulated.is_none().then(|| LimitRow::of(finding));
            let row = |(op, figures): &(Op, Figures)| {
                Row::of(*op, figures, finding.bytes, limit.as_ref())
            };
            rows.extend(finding.ops.iter().map(row));
            limits.extend(limit);
        }
        Report {
            device: plan.device.clone(),
            carried_by,
            command: plan.command(connect),
            wait: plan.wait,
            pairs: plan.pairs,
            affinity: Affinity {
                leader_cpus: plan.leader_cpus.clone(),
                follower_cpus: plan.follower_cpus.clone(),
            },
            interruptions,
            rows,
            limits: simulated
                .is_none()
                .then(|| Limits { line_ns: Spread::of(&all_lines), rows: limits }),
            simulated,
        }
    }

    pub fn sizes(&self) -> Vec<usize> {
        let mut sizes: Vec<usize> = self.rows.iter().map(|row| row.bytes).collect();
        sizes.dedup();
        sizes
    }

    /// The references for a size, if they were measured.
    pub fn limit(&self, bytes: usize) -> Option<&LimitRow> {
        self.limits.as_ref()?.rows.iter().find(|row| row.bytes == bytes)
    }

    /// The row of an operation and size, if that was measured.
    pub fn row(&self, op: Op, bytes: usize) -> Option<&Row> {
        self.rows.iter().find(|row| row.op == op && row.bytes == bytes)
    }
}

impl Row {
    fn of(op: Op, figures: &Figures, bytes: usize, limit: Option<&LimitRow>) -> Row {
        let latency_ns = spread(&figures.times_ns);
        let rate = median(&figures.totals).unwrap_or(0.0);
        let bandwidth = rate * bytes as f64;
        let line_ns = Spread::of(&figures.lines_ns);
        let pairs = figures.shares.first().map_or(0, Vec::len);
        let share = |pair: usize| {
            let of_pair: Vec<f64> = figures.shares.iter().map(|round| round[pair]).collect();
            median(&of_pair).unwrap_or(0.0)
        };
        Row {
            op,
            bytes,
            latency_ns,
            latency_of: if op == Op::Get { "whole_operation" } else { "half_round_trip" },
            latency_batch: figures.batch,
            rate_msgs_per_s: rate,
            bandwidth_bytes_per_s: bandwidth,
            window: window(bytes),
            pair_rates_msgs_per_s: (0..pairs).map(share).collect(),
            line_ns,
            compared_messages: figures.compared,
            ratios: limit.map(|limit| Ratios {
                line_latency: line_ns.map(|line| line.p50 / latency_ns.p50),
                unix_latency: limit.unix.latency_ns.p50 / latency_ns.p50,
                tcp_latency: limit.tcp.latency_ns.p50 / latency_ns.p50,
                unix_rate: rate / limit.unix.rate_msgs_per_s,
                tcp_rate: rate / limit.tcp.rate_msgs_per_s,
                memcpy_bandwidth: bandwidth / limit.memcpy_bytes_per_s,
            }),
        }
    }
}

impl LimitRow {
    fn of(finding: &Findings) -> LimitRow {
        let bytes = finding.bytes;
        let socket = |which: Socket| {
            let found = finding.sockets.iter().find(|(socket, _)| *socket == which);
            let (times, totals) = found
                .map_or((&[][..], &[][..]), |(_, figures)| (&figures.times_ns, &figures.totals));
            let rate_msgs_per_s = median(totals).unwrap_or(0.0);
            SocketRow {
                latency_ns: spread(times),
                rate_msgs_per_s,
                bandwidth_bytes_per_s: rate_msgs_per_s * bytes as f64,
            }
        };
        LimitRow {
            bytes,
            memcpy_bytes_per_s: median(&finding.memcpy).unwrap_or(0.0),
            unix: socket(Socket::Unix),
            tcp: socket(Socket::Tcp),
        }
    }
}

fn spread(times_ns: &[f64]) -> Spread {
    Spread::of(times_ns).unwrap_or(Spread { min: 0.0, p50: 0.0, p99: 0.0 })
}
