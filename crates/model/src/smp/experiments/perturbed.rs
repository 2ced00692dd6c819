//! Short measurements of every experiment, of a configuration that may have been changed:
//! `perturbed.toml` says what must follow. Bytes and times are those of packets that a receiver has
//! compared with the sent ones.

use super::bandwidth::both_ways;
use super::delay::{delay_of, roomy};
use super::run_length::run_lengths_of;
use crate::perturbed::{Probe, exact, within};
use crate::smp::bench::Lengths;
use crate::smp::config::{Config, Receive};
use crate::units::Bytes;

/// What must follow from each change.
pub const EXPECTED: &str = include_str!("../perturbed.toml");

/// Packets that a run without a stall sends.
const PACKETS: u64 = 1000;

/// Runs of a link whose bits err.
const SEEDS: u64 = 50;

/// The measurements.
pub const PROBES: [Probe<Config>; 9] = [
    Probe {
        experiment: "fig5",
        figures: &[exact("fig5: cut-through, 16 DW", "ns")],
        base: || roomy(Receive::CutThrough, 1),
        run: |config| Ok(vec![delay_of(config, 16, 1)?]),
    },
    Probe {
        experiment: "fig5",
        figures: &[exact("fig5: store-and-forward, 128 DW", "ns")],
        base: || roomy(Receive::StoreAndForward, 1),
        run: |config| Ok(vec![delay_of(config, 128, 1)?]),
    },
    Probe {
        experiment: "fig5",
        figures: &[exact("fig5: 16 DW on each of two channels", "ns")],
        base: || roomy(Receive::CutThrough, 2),
        run: |config| Ok(vec![delay_of(config, 16, 1)?]),
    },
    Probe {
        experiment: "bandwidth",
        figures: &[
            exact("bandwidth: 32 DW, packet over TLP", "1"),
            within(1.0, "bandwidth: 32 DW, both ways busy", "Gbps"),
        ],
        base: || roomy(Receive::CutThrough, 2),
        run: |config| {
            let run = both_ways(config, 32)?;
            Ok(vec![run.ratio, run.reached_gbps])
        },
    },
    Probe {
        experiment: "fig6",
        figures: &[exact("fig6: 2 KB, 32 DW before a stall", "packets")],
        base: || Config { channels: 1, ..Config::recommended() }.with_default_credits(2),
        run: |config| before_a_stall(config, 32),
    },
    Probe {
        experiment: "fig6",
        figures: &[exact("fig6: 8 KB, 128 DW before a stall", "packets")],
        base: || Config { channels: 1, ..Config::recommended() }.with_default_credits(8),
        run: |config| before_a_stall(config, 128),
    },
    Probe {
        experiment: "fig7",
        figures: &[exact("fig7: (2K, 2K), 64 DW before a stall", "packets")],
        base: || Config::recommended().with_optimised_credits(2, 32),
        run: |config| before_a_stall(config, 64),
    },
    Probe {
        experiment: "fig7",
        figures: &[exact("fig7: (4K, 4K), 128 DW before a stall", "packets")],
        base: || {
            let replay_buffer = Bytes::new(4 << 10);
            Config { replay_buffer, ..Config::recommended() }.with_default_credits(4)
        },
        run: |config| before_a_stall(config, 128),
    },
    Probe {
        experiment: "fig7",
        figures: &[exact("fig7: recommended, 15 DW before a stall", "packets")],
        base: Config::recommended,
        run: |config| before_a_stall(config, 15),
    },
];

/// Packets before a stall; all of them if there is none. The mean over seeds where bits err; else
/// nothing is drawn.
fn before_a_stall(config: &Config, length_dw: usize) -> Result<Vec<f64>, String> {
    let seeds = if config.bit_errors > 0.0 { SEEDS } else { 1 };
    let mut packets = 0;
    for seed in 1..=seeds {
        let run = run_lengths_of(config, Lengths::Fixed(length_dw), PACKETS, seed)?;
        packets += run.packets.unwrap_or(PACKETS);
    }
    Ok(vec![packets as f64 / seeds as f64])
}
