//! Short measurements of every experiment, of a configuration that may have been changed:
//! `perturbed.toml` says what must follow. All figures are counted where words leave the interface
//! or where data arrives in it.

use super::analysis::fill;
use super::fig9::{Reader, gaps, test_of};
pub use super::measure::{Window, measure};
pub use super::polling::{crowded, polling_of};
use super::start::start;
use crate::damq_pd::{Config, Load, Submission, Traffic};
use crate::perturbed::{Probe, exact, within};
use crate::units::Span;

/// What must follow from each change.
pub const EXPECTED: &str = include_str!("../perturbed.toml");

/// Ports that always have a message, from a random moment on.
pub const SATURATED: Load = Load { start: Span::from_ns(3000), ..Load::SATURATED };

/// Some twenty rounds of credits, after those in which grants grow.
const SHORT: Window = Window { warm_up_ns: 15_000, counted_ns: 60_000 };

/// Enough messages of the open load that its draws hardly count.
const LONG: Window = Window { counted_ns: 400_000, ..SHORT };

/// Ports of the open load.
const OPEN_PORTS: usize = 16;

/// Messages per second of the open load, in millions.
const OPEN_RATE: f64 = 60.0;

/// The measurements.
pub const PROBES: [Probe<Config>; 12] = [
    Probe {
        experiment: "start",
        figures: &[
            exact("start: by PIO", "ns"),
            exact("start: packets by PIO", "1"),
            exact("start: bytes by PIO", "B"),
        ],
        base: || ports(1),
        run: |config| {
            let start = start(config, Submission::Pio)?;
            let down = &start.machine.model.bus.down;
            let packets = down.packets(Traffic::PioWrite) as f64;
            Ok(vec![start.latency.as_ns(), packets, down.bytes(Traffic::PioWrite) as f64])
        },
    },
    Probe {
        experiment: "start",
        figures: &[exact("start: by DMA", "ns")],
        base: || ports(1),
        run: |config| Ok(vec![start(config, Submission::Dma)?.latency.as_ns()]),
    },
    Probe {
        experiment: "polling",
        figures: &[
            within(4.0, "polling: data by PIO alone", "GB/s"),
            within(8.0, "polling: reads for credits", "M/s"),
        ],
        base: || {
            // Reads for credits and reads of data that take equally long fall into step.
            let mut config = crowded(Submission::Pio);
            config.bus.dma_read = Span::from_ns(900);
            config
        },
        run: polling,
    },
    Probe {
        experiment: "polling",
        figures: &[within(2.0, "polling: data by PIO and DMA", "GB/s")],
        base: || crowded(Submission::PioAndDma),
        run: |config| Ok(vec![polling(config)?[0]]),
    },
    Probe {
        experiment: "analysis",
        figures: &[exact("analysis: words under way of one port", "words")],
        base: || ports(16),
        run: |config| Ok(vec![fill(config, 1, true)?.submitted as f64]),
    },
    Probe {
        experiment: "analysis",
        figures: &[exact("analysis: words in the buffer, 4 ports active", "words")],
        base: || ports(16),
        run: |config| Ok(vec![fill(config, 4, false)?.peak as f64]),
    },
    Probe {
        experiment: "fig9",
        figures: &[exact("fig9: cycles without output", "cycles")],
        base: || ports(4),
        run: |config| {
            let run = test_of(config, Reader::Eager, 1, 2000);
            Ok(vec![gaps(&run).0 as f64])
        },
    },
    Probe {
        experiment: "rate",
        figures: &[within(2.0, "rate: 1 port", "M/s")],
        base: || ports(1),
        run: |config| rate(config),
    },
    Probe {
        experiment: "rate",
        figures: &[within(2.0, "rate: 4 ports", "M/s")],
        base: || ports(4),
        run: |config| rate(config),
    },
    Probe {
        experiment: "policies",
        figures: &[
            within(2.0, "policies: open load, rate", "M/s"),
            within(5.0, "policies: open load, mean time", "ns"),
        ],
        base: || ports(OPEN_PORTS),
        run: |config| {
            let gap = Span::from_ps((1e6 / OPEN_RATE) as u64) * OPEN_PORTS as u64;
            let loads = vec![Load { gap, ..Load::SATURATED }; config.nic.ports];
            let run = measure(config, &loads, 1, LONG)?;
            Ok(vec![run.rate, run.mean_ns])
        },
    },
    Probe {
        experiment: "sweep",
        figures: &[within(2.0, "sweep: 64 words, 1 port", "M/s")],
        base: || {
            let mut config = ports(1);
            config.nic.depth = 64;
            config
        },
        run: |config| rate(config),
    },
    Probe {
        experiment: "sweep",
        figures: &[within(2.0, "sweep: DMA alone, 4 ports", "M/s")],
        base: || {
            let mut config = ports(4);
            config.host.submission = Submission::Dma;
            config
        },
        run: |config| rate(config),
    },
];

/// The paper's interface with this many ports.
fn ports(ports: usize) -> Config {
    let mut config = Config::paper();
    config.nic.ports = ports;
    config
}

/// The message rate of saturated ports.
fn rate(config: &Config) -> Result<Vec<f64>, String> {
    Ok(vec![measure(config, &vec![SATURATED; config.nic.ports], 1, SHORT)?.rate])
}

/// Data over the bus in GB/s and reads for credits in M/s of saturated ports, as means over three
/// random beginnings.
fn polling(config: &Config) -> Result<Vec<f64>, String> {
    const SEEDS: u64 = 3;
    let (mut data, mut reads) = (0.0, 0.0);
    for seed in 0..SEEDS {
        let used = polling_of(config, SATURATED, seed, SHORT)?;
        data += used.data / SEEDS as f64;
        reads += used.reads / SEEDS as f64;
    }
    Ok(vec![data, reads])
}
