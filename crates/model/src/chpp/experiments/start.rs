//! Two ways to start an operation (B-01, C-31): a doorbell for a descriptor in memory, or the
//! descriptor itself into the engine under a lock.

use super::Kind;
use super::single::{post_free, single};
use crate::chpp::config::Start;
use crate::chpp::host::{Notice, RingKind};
use crate::chpp::machine::{HostApi, Program};
use crate::chpp::{Config, Machine};
use crate::experiment::{Report, draws, of_each_seed};
use crate::stats::excess;
use crate::units::{Bytes, Span, Time};
use bellwire_wire::endpoint::Endpoint;

/// Threads, each with its own processor and function.
const THREADS: [usize; 4] = [1, 2, 4, 8];

/// Bytes of each PUT in the test with many threads: small, so that starting is the bottleneck.
const BYTES: u64 = 16;

pub(super) fn with(start: Start, threads: usize) -> Config {
    let mut config = Config::prototype();
    config.nic.submission = start;
    config.host.processors = threads;
    config.host.window = Bytes::new(4 << 20);
    config
}

/// PUTs that each thread keeps in flight, so that it always has one to start.
const UNDER_WAY: usize = 16;

/// Threads that only start PUTs.
struct Threads {
    until: Time,
}

impl Threads {
    fn post(function: usize, api: &mut HostApi<'_>) {
        let end = |node| Endpoint::new(node, function as u8, 0).expect("8 functions at most");
        post_free(api, Kind::Put, (end(0), end(1)), BYTES).expect("16 bytes can be described");
    }
}

impl Program for Threads {
    fn notified(&mut self, notice: &Notice, api: &mut HostApi<'_>) {
        if notice.ring == RingKind::Send && notice.time < self.until {
            Threads::post(notice.function, api);
        }
    }
}

/// The result of many threads.
pub(super) struct Many {
    /// Operations in a microsecond.
    pub per_us: f64,
    /// Mean wait for the lock, in nanoseconds.
    lock_ns: f64,
}

/// Many threads with each seed, which decides who goes first where two meet.
fn many(start: Start, threads: usize) -> Result<Vec<Many>, String> {
    let config = with(start, threads);
    of_each_seed(|seed| many_of(&config, threads, Span::from_ns(200_000), seed))
}

/// Lets `threads` functions start PUTs.
pub(super) fn many_of(
    config: &Config,
    threads: usize,
    lasts: Span,
    seed: u64,
) -> Result<Many, String> {
    let mut machine = Machine::new(config, seed).map_err(|error| error.to_string())?;
    let mut program = Threads { until: Time::ZERO + lasts };
    for function in 0..threads {
        for _ in 0..UNDER_WAY {
            Threads::post(function, &mut machine.api());
        }
    }
    machine.run_to_end(&mut program).map_err(|stopped| stopped.to_string())?;
    machine.audit().map_err(|imbalance| imbalance.to_string())?;
    let operations = machine.operations().len() as f64;
    let waited = machine.nodes()[0].host.lock.waited().as_ns();
    Ok(Many { per_us: operations / lasts.as_ns() * 1e3, lock_ns: waited / operations })
}

pub(super) fn run(report: &mut Report) -> Result<(), String> {
    let mut nearer = true;
    let mut gains = Vec::new();
    for kind in Kind::ALL {
        for bytes in [1, 2048, 1 << 20] {
            if kind.is_nap() && bytes > 2048 {
                continue;
            }
            let latency = |start| -> Result<f64, String> {
                Ok(single(&with(start, 1), kind, bytes)?.latency.as_ns())
            };
            let (doorbell, stored) = (latency(Start::Doorbell)?, latency(Start::Descriptor)?);
            for (name, value) in [("doorbell", doorbell), ("descriptor", stored)] {
                let what = format!("{}, {bytes} B, {name} start", kind.name());
                report.value(what, "ns", value);
            }
            gains.push((bytes, stored / doorbell));
            // A descriptor with immediate data is long: word by word, it takes longer than a read.
            nearer &= stored < doorbell || kind == Kind::NapImmediate && bytes > 1;
        }
    }
    let (mut waits, mut free) = (Vec::new(), true);
    for threads in THREADS {
        let (rung, stored) = (many(Start::Doorbell, threads)?, many(Start::Descriptor, threads)?);
        let name = |what: &str| format!("{threads} threads, {what}");
        report.drawn(name("doorbell start"), "op/us", &draws(&rung, |many| many.per_us));
        report.drawn(name("descriptor start"), "op/us", &draws(&stored, |many| many.per_us));
        let wait = draws(&stored, |many| many.lock_ns);
        report.drawn(name("wait for the lock"), "ns", &wait);
        free &= rung.iter().all(|many| many.lock_ns == 0.0);
        waits.push(wait);
    }
    report.claim("with one thread descriptor start is faster", nearer);
    report.claim(
        "for large transfers it makes no difference (below 1 % at 1 MiB)",
        gains
            .iter()
            .filter(|(bytes, _)| *bytes > 2048)
            .all(|(_, ratio)| (ratio - 1.0).abs() < 0.01),
    );
    report.claim(
        "with more threads, more time is lost at the lock",
        waits.windows(2).all(|pair| excess(&pair[1], &pair[0]).is_above(0.0)),
    );
    report.claim("a doorbell needs no lock", free);
    let start = with(Start::Descriptor, 1);
    report.vary("descriptor start of a PUT of 64 B", &start, |config| {
        single(config, Kind::Put, 64).map(|run| run.latency)
    })
}
