//! The ways of submission in another interface: the cHPP model with doorbells, with DAMQ-PD's
//! shared buffer, and with one ring per function.

use bellwire_wire::endpoint::Endpoint;

use crate::chpp::config::Start;
use crate::chpp::experiments::Kind;
use crate::chpp::experiments::single::{post, single};
use crate::chpp::host::{Notice, RingKind};
use crate::chpp::machine::{HostApi, Program};
use crate::chpp::{Config, Machine};
use crate::experiment::{Report, draws, of_each_seed};
use crate::stats::excess;
use crate::units::{Bytes, Span, Time};

/// The ways, by their names in a configuration.
pub const WAYS: [(&str, Start); 3] =
    [("doorbell", Start::Doorbell), ("damq-pd", Start::DamqPd), ("ring", Start::Ring)];

/// Functions of the interface, each with its own processor.
const FUNCTIONS: usize = 8;

/// Bytes of each PUT: small, so that starting is the bottleneck.
const BYTES: u64 = 16;

/// Operations that a function keeps in flight.
const UNDER_WAY: usize = 16;

/// The prototype with this way of submission.
pub fn with(start: Start) -> Config {
    let mut config = Config::prototype();
    config.nic.submission = start;
    config.host.processors = FUNCTIONS;
    config.host.window = Bytes::new(4 << 20);
    config
}

/// Results of a stream of small PUTs.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    /// Operations per microsecond.
    pub per_us: f64,
    /// Share of the descriptors that processors stored into the interface, in percent.
    pub stored: f64,
    /// Descriptors that the interface read from memory.
    pub reads: u64,
    /// All operations.
    pub operations: u64,
}

struct Streams {
    until: Time,
}

impl Streams {
    fn post(function: usize, api: &mut HostApi<'_>) {
        let end = |node| Endpoint::new(node, function as u8, 0).expect("8 functions at most");
        let places = (api.free_memory(0, function), api.free_memory(1, function));
        post(api, Kind::Put, (end(0), end(1)), places, BYTES).expect("16 bytes can be described");
    }
}

impl Program for Streams {
    fn notified(&mut self, notice: &Notice, api: &mut HostApi<'_>) {
        if notice.ring == RingKind::Send && notice.time < self.until {
            Streams::post(notice.function, api);
        }
    }
}

/// Lets `active` functions send small PUTs for 200 us.
///
/// # Errors
/// A sentence, if the machine stops or a law does not hold.
pub fn stream(start: Start, active: usize, seed: u64) -> Result<Stream, String> {
    let mut machine = Machine::new(&with(start), seed).map_err(|error| error.to_string())?;
    let lasts = Span::from_ns(200_000);
    for function in 0..active {
        for _ in 0..UNDER_WAY {
            Streams::post(function, &mut machine.api());
        }
    }
    let mut program = Streams { until: Time::ZERO + lasts };
    machine.run_to_end(&mut program).map_err(|stopped| stopped.to_string())?;
    machine.audit().map_err(|imbalance| imbalance.to_string())?;
    let operations = machine.operations().len() as u64;
    let node = &machine.nodes()[0];
    Ok(Stream {
        per_us: operations as f64 / lasts.as_ns() * 1e3,
        stored: node.host.submission.counts[0] as f64 / operations as f64 * 100.0,
        reads: node.port.reads_sent[0],
        operations,
    })
}

pub(super) fn run(report: &mut Report) -> Result<(), String> {
    let mut latencies = Vec::new();
    let mut stored = Vec::new();
    for (name, start) in WAYS {
        let config = with(start);
        for (kind, bytes) in [(Kind::NapImmediate, 1), (Kind::Put, 64)] {
            let latency = single(&config, kind, bytes)?.latency.as_ns();
            report.value(format!("{name}: {}, {bytes} B, latency", kind.name()), "ns", latency);
            latencies.push(latency);
        }
        for active in [1, FUNCTIONS] {
            // The seed decides who goes first where two functions meet.
            let runs = of_each_seed(|seed| stream(start, active, seed))?;
            let what = |quantity: &str| format!("{name}: {active} functions, {quantity}");
            report.drawn(what("PUTs"), "op/us", &draws(&runs, |run| run.per_us));
            let of_runs = draws(&runs, |run| run.stored);
            report.drawn(what("stored"), "%", &of_runs);
            stored.push(of_runs);
        }
        let words = if start == Start::Doorbell { 0 } else { config.nic.descriptor_words };
        report.value(format!("{name}: memory for descriptors"), "B", f64::from(words) * 32.0);
    }
    report.claim("a ring is the fastest to start one operation", latencies[4] < latencies[0]);
    report.claim(
        "of the same memory one function alone gets more stored with the shared buffer",
        excess(&stored[2], &stored[4]).is_above(0.0),
    );
    Ok(())
}
