//! The paper's experiments, one file each. Each states the calibrated, the predicted and the
//! published values.
//!
//! Five constants are calibrated on five published values, for all experiments together. A sixth,
//! `firmware.via.descriptor`, is calibrated on a statement without a number (latencies on LANai4
//! "almost coincide"):
//!
//! | constant | value | fitted to |
//! |---|---|---|
//! | `firmware.via.match_packet` | 255 | 4: 8.46 us, MyVIA on LANai9 |
//! | `bus.a.read_overhead` | 19 | 4: 76.2 MB/s, MyVIA on LANai4 |
//! | `firmware.via.lock` | 142 | 4: the bandwidths on LANai4 cross at about 2000 B |
//! | `software.interrupt` | 5.7 us | 4: 22 us, M-VIA on 100 Mb/s |
//! | `software.copy` | 65.6 MB/s | 4: 59.7 MB/s, M-VIA on gigabit Ethernet |

mod dma;
mod fig5;
mod fig6;
mod m_via;
mod mix;
pub mod perturbed;
mod pipelines;
mod rings;
mod translation;

use super::programs::{Lengths, Places, ping_pong, window};
use super::{ConfigError, Setup};
use crate::experiment::{Axis, Experiment, Origin, Report, Run, of_each_seed};
use crate::stats::{Estimate, over_seeds};

pub use fig6::sensitivity;

/// What the paper publishes, by experiment.
const PUBLISHED: &str = include_str!("../published.toml");

/// All experiments, in the order of the paper.
pub const EXPERIMENTS: [Experiment; 8] = [
    of(
        "tlb",
        "what translation costs, by class and by locality",
        "M-10, B-14, B-15",
        translation::run,
    ),
    of("pipelines", "stages, buffers and units at work", "M-18, M-19, M-20, M-21", pipelines::run),
    of(
        "rings",
        "small ring, low mark, interrupts and an idle NIC",
        "M-12, M-13, M-14, M-15, M-16, M-17",
        rings::run,
    ),
    of("dma", "one DMA for many pages, and one for each", "M-22, M-23, B-18", dma::run),
    of("fig5", "latency and bandwidth on LANai4", "M-26, M-27, M-30, B-14", fig5::run),
    of("fig6", "latency and bandwidth on LANai9", "M-28, M-29, M-30, B-14, B-17", fig6::run),
    of("m-via", "VIA on the host, over Ethernet", "B-16, M-30", m_via::run),
    of("mix", "the traffic that the paper designs for", "M-31", mix::run),
];

const fn of(id: &'static str, title: &'static str, rows: &'static str, run: Run) -> Experiment {
    Experiment { id, title, rows, published: PUBLISHED, run }
}

/// Round trips of a ping-pong (4).
const ROUNDS: u64 = 1000;
/// Messages of a window (4).
const MESSAGES: u64 = 2000;
/// The seed of runs that no draw decides: it says where the round-robin of each unit starts.
const SEED: u64 = 1;

/// Message lengths of the curves, in bytes.
const LENGTHS: [u32; 14] =
    [4, 16, 64, 128, 256, 512, 1024, 1536, 2048, 3072, 4096, 8192, 16_384, 32_768];

/// Latency and bandwidth of a system by message length.
#[derive(Clone, Debug)]
struct Curve {
    name: &'static str,
    latency_us: Vec<(f64, f64)>,
    bandwidth: Vec<(f64, Estimate)>,
    /// Whether the seed decides the bandwidths, so that they are means over seeds.
    drawn: bool,
}

impl Curve {
    /// Runs both programs at all lengths.
    fn of(name: &'static str, setup: &Setup) -> Result<Curve, String> {
        Curve::with(name, setup, false, |length| {
            Ok(Estimate { mean: bandwidth(setup, length)?, half_width: 0.0 })
        })
    }

    /// The same of a system whose bandwidth differs with the seed.
    fn drawn(name: &'static str, setup: &Setup) -> Result<Curve, String> {
        Curve::with(name, setup, true, |length| {
            Ok(over_seeds(&of_each_seed(|seed| bandwidth_of(setup, length, seed))?))
        })
    }

    fn with(
        name: &'static str,
        setup: &Setup,
        drawn: bool,
        bandwidth: impl Fn(u32) -> Result<Estimate, String>,
    ) -> Result<Curve, String> {
        let mut curve = Curve { name, latency_us: Vec::new(), bandwidth: Vec::new(), drawn };
        for length in LENGTHS {
            let at = f64::from(length);
            curve.latency_us.push((at, latency_us(setup, length)?));
            curve.bandwidth.push((at, bandwidth(length)?));
        }
        Ok(curve)
    }

    /// The mean bandwidth, and the confidence in it.
    fn estimate_at(&self, length: u32) -> Estimate {
        let found = self.bandwidth.iter().find(|point| point.0 == f64::from(length));
        found.map_or(Estimate { mean: f64::NAN, half_width: f64::NAN }, |point| point.1)
    }

    fn bandwidth_at(&self, length: u32) -> f64 {
        self.estimate_at(length).mean
    }

    fn latency_at(&self, length: u32) -> f64 {
        let found = self.latency_us.iter().find(|point| point.0 == f64::from(length));
        found.map_or(f64::NAN, |point| point.1)
    }

    /// The highest bandwidth.
    fn peak(&self) -> f64 {
        self.bandwidth.iter().map(|point| point.1.mean).fold(0.0, f64::max)
    }
}

/// Draws latency up to 4 KB and bandwidth of some systems.
fn draw(report: &mut Report, figure: &str, nic: &str, curves: [&Curve; 3]) {
    let message = Axis::logarithmic("message", "B");
    let axis = Axis::linear("one way", "us");
    let latency = report.figure(format!("{figure}: latency on {nic}"), message, axis);
    for curve in curves {
        let short = curve.latency_us.iter().copied().filter(|point| point.0 <= 4096.0);
        latency.series(curve.name, Origin::Model, short);
    }
    let axis = Axis::linear("bandwidth", "MB/s");
    let bandwidth = report.figure(format!("{figure}: bandwidth on {nic}"), message, axis);
    for curve in curves {
        if curve.drawn {
            bandwidth.drawn(curve.name, curve.bandwidth.iter().copied());
        } else {
            let points = curve.bandwidth.iter().map(|(at, rate)| (*at, rate.mean));
            bandwidth.series(curve.name, Origin::Model, points);
        }
    }
}

/// A system of the paper.
fn paper(name: &str) -> Result<Setup, String> {
    Setup::paper(name).map_err(|error: ConfigError| error.to_string())
}

/// Mean one-way time of a ping-pong, in us.
fn latency_us(setup: &Setup, length: u32) -> Result<f64, String> {
    let latency = ping_pong(setup, Lengths::Fixed(length), ROUNDS, SEED)?;
    Ok(latency.as_ns() / 1e3)
}

/// Bandwidth of a window, in decimal MB/s.
fn bandwidth(setup: &Setup, length: u32) -> Result<f64, String> {
    bandwidth_of(setup, length, SEED)
}

fn bandwidth_of(setup: &Setup, length: u32, seed: u64) -> Result<f64, String> {
    let flow = window(setup, Lengths::Fixed(length), Places::Reused, MESSAGES, seed)?;
    Ok(flow.megabytes_per_second)
}
