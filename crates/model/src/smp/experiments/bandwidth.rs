//! Effective bandwidth before and after the optimisation of the header (S-10, S-11, S-23, S-24,
//! B-20; 4.1).

use super::{LENGTH_AXIS, Report};
use crate::engine::Ended;
use crate::experiment::{Axis, Experiment, Origin};
use crate::smp::bench::{Lengths, Machine};
use crate::smp::config::{Config, Header};
use crate::units::Time;

pub(super) const EXPERIMENT: Experiment = Experiment {
    id: "bandwidth",
    title: "effective bandwidth before and after the optimisation",
    rows: "S-10, S-11, S-23, S-24, B-20",
    published: super::PUBLISHED,
    run,
};

/// The paper's lengths in DW.
const LENGTHS_DW: [usize; 5] = [4, 20, 32, 64, 128];

/// Packets of a run.
const PACKETS: u64 = 400;

/// Gbps of all lanes together, coding included: the paper multiplies by this.
const RAW_GBPS: f64 = 40.0;

/// Results of a run at saturation.
pub(super) struct Measured {
    /// Network packets over TLPs, in bytes: the paper's ratio.
    pub ratio: f64,
    /// Network packets that arrived, in Gbps in one direction, while both directions are busy.
    pub reached_gbps: f64,
}

fn measure(header: Header, length_dw: usize) -> Result<Measured, String> {
    let roomy = Config { headers: 127, data: 2000, ..Config::recommended() };
    let config = Config { header, replay_buffer: "64 KiB".parse().expect("a size"), ..roomy };
    both_ways(&config, length_dw)
}

/// Sends packets in both directions at once.
///
/// # Errors
/// A sentence, if packets are lost.
pub(super) fn both_ways(config: &Config, length_dw: usize) -> Result<Measured, String> {
    let mut running = Machine::new(config, 1);
    running.stimulate(0, 0, Lengths::Fixed(length_dw), PACKETS);
    running.stimulate(1, 0, Lengths::Fixed(length_dw), PACKETS);
    let ended = running.run(Time::from_ps(1_000_000_000));
    let bench = &running.model;
    if ended != Ended::Quiet || bench.mismatches > 0 || running.missing() > 0 {
        return Err(format!("{length_dw} DW: packets were lost"));
    }
    let counters = bench.link.end(0).counters;
    // Counted at the receiver, packet by packet.
    let useful = bench.useful_bytes[1] as f64;
    let last = bench.last_arrival.ps() as f64;
    Ok(Measured {
        ratio: useful / counters.tlp_bytes as f64,
        reached_gbps: useful * 8.0 / (last / 1000.0),
    })
}

fn run(report: &mut Report) -> Result<(), String> {
    let mut means = [0.0; 2];
    let mut reached = Vec::new();
    for (at, (name, header)) in
        [("before", Header::Standard), ("after", Header::Optimised)].into_iter().enumerate()
    {
        for length_dw in LENGTHS_DW {
            let run = measure(header, length_dw)?;
            let what = format!("{name}, {length_dw} DW, packet over TLP");
            report.value(what, "%", run.ratio * 100.0);
            means[at] += run.ratio * RAW_GBPS / LENGTHS_DW.len() as f64;
            reached.push((name, length_dw, run));
        }
    }
    let curve = |of: &'static str, value: fn(&Measured) -> f64| {
        let of_form = reached.iter().filter(move |(name, ..)| *name == of);
        of_form.map(move |(_, length_dw, run)| (*length_dw as f64, value(run)))
    };
    let y = Axis::linear("packet over TLP", "%");
    let figure = report.figure("Effective bandwidth (4.1)", LENGTH_AXIS, y);
    for name in ["before", "after"] {
        figure.series(name, Origin::Model, curve(name, |run| run.ratio * 100.0));
    }
    let y = Axis::linear("one way", "Gbps");
    let figure = report.figure("Effective bandwidth in numbers (4.1)", LENGTH_AXIS, y);
    for name in ["before", "after"] {
        figure.series(
            format!("{name}, of 40 Gbps"),
            Origin::Model,
            curve(name, |run| run.ratio * RAW_GBPS),
        );
        figure.series(
            format!("{name}, all counted"),
            Origin::Model,
            curve(name, |run| run.reached_gbps),
        );
    }
    for (name, length_dw, run) in &reached {
        let what = format!("{name}, {length_dw} DW, of 40 Gbps one way");
        report.value(what, "Gbps", run.ratio * RAW_GBPS);
    }
    report.value("before, mean, one way", "Gbps", means[0]);
    report.value("before, mean, both ways", "Gbps", 2.0 * means[0]);
    report.value("after, mean, both ways", "Gbps", 2.0 * means[1]);
    for (name, length_dw, run) in &reached {
        let what = format!("{name}, {length_dw} DW, all counted");
        report.value(what, "Gbps", run.reached_gbps);
    }
    Ok(())
}
