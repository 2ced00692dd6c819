//! Effective bandwidth before and after the optimisation of the header (S-10, S-11, S-23, S-24,
//! B-20; 4.1).

use bellwire_wire::link::DW_BYTES;

use super::{LENGTH_AXIS, Report};
use crate::engine::Ended;
use crate::experiment::{Axis, Experiment, Origin, Role};
use crate::smp::bench::{Lengths, Machine};
use crate::smp::config::{Config, Header};
use crate::units::Time;

pub(super) const EXPERIMENT: Experiment = Experiment {
    id: "bandwidth",
    title: "effective bandwidth before and after the optimisation",
    rows: "S-10, S-11, S-23, S-24, B-20",
    run,
};

/// Lengths in DW, with the published ratio before and after in percent, and the published bandwidth
/// before in Gbps.
const PUBLISHED: [(usize, f64, f64, f64); 5] = [
    (4, 44.44, 80.0, 17.8),
    (20, 80.0, 95.2, 32.0),
    (32, 86.5, 97.0, 34.6),
    (64, 92.8, 98.5, 37.1),
    (128, 96.2, 99.2, 38.5),
];

/// Packets of a run.
const PACKETS: u64 = 400;

/// Gbps of all lanes together, coding included: the paper multiplies by this.
const RAW_GBPS: f64 = 40.0;

/// Results of a run at saturation.
struct Measured {
    /// Network packets over TLPs, in bytes: the paper's ratio.
    ratio: f64,
    /// Network packets that arrived, in Gbps in one direction, while both directions are busy.
    reached_gbps: f64,
}

fn measure(header: Header, length_dw: usize) -> Result<Measured, String> {
    let roomy = Config { headers: 127, data: 2000, ..Config::recommended() };
    let config = Config { header, replay_buffer: "64 KiB".parse().expect("a size"), ..roomy };
    let mut running = Machine::new(&config, 1);
    running.stimulate(0, 0, Lengths::Fixed(length_dw), PACKETS);
    running.stimulate(1, 0, Lengths::Fixed(length_dw), PACKETS);
    let ended = running.run(Time::from_ps(1_000_000_000));
    let bench = &running.model;
    if ended != Ended::Quiet || bench.mismatches > 0 || running.missing() > 0 {
        return Err(format!("{length_dw} DW: packets were lost"));
    }
    let counters = bench.link.end(0).counters;
    let useful = (PACKETS as usize * length_dw * DW_BYTES) as f64;
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
        for (length_dw, before, after, _) in PUBLISHED {
            let run = measure(header, length_dw)?;
            let published = [before, after][at];
            let what = format!("{name}, {length_dw} DW, packet over TLP");
            report.value(what, "%", Role::Predicted, run.ratio * 100.0, Some(published));
            means[at] += run.ratio * RAW_GBPS / PUBLISHED.len() as f64;
            reached.push((name, length_dw, run));
        }
    }
    let curve = |of: &'static str, value: fn(&Measured) -> f64| {
        let of_form = reached.iter().filter(move |(name, ..)| *name == of);
        of_form.map(move |(_, length_dw, run)| (*length_dw as f64, value(run)))
    };
    let printed =
        |at: usize| PUBLISHED.into_iter().map(move |row| (row.0 as f64, [row.1, row.2][at]));
    let y = Axis::linear("packet over TLP", "%");
    let figure = report.figure("Effective bandwidth (4.1)", LENGTH_AXIS, y);
    for (at, name) in ["before", "after"].into_iter().enumerate() {
        figure.series(name, Origin::Model, curve(name, |run| run.ratio * 100.0));
        figure.series(format!("{name}, published"), Origin::Published, printed(at));
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
    let printed = PUBLISHED.into_iter().map(|row| (row.0 as f64, row.3));
    figure.series("before, published", Origin::Published, printed);
    for ((name, length_dw, run), published) in
        reached.iter().zip(PUBLISHED.iter().map(|row| Some(row.3)).chain([None; 5]))
    {
        let what = format!("{name}, {length_dw} DW, of 40 Gbps one way");
        report.value(what, "Gbps", Role::Predicted, run.ratio * RAW_GBPS, published);
    }
    report.value("before, mean, one way", "Gbps", Role::Predicted, means[0], Some(32.0));
    report.value("before, mean, both ways", "Gbps", Role::Predicted, 2.0 * means[0], Some(64.0));
    report.value("after, mean, both ways", "Gbps", Role::Predicted, 2.0 * means[1], None);
    report.note(
        "The paper's abstract and conclusion give the optimised design 64 Gbps both ways. Its own numbers make that the design before the \
         optimisation; after it they make 75.2.",
    );
    for (name, length_dw, run) in &reached {
        let what = format!("{name}, {length_dw} DW, all counted");
        report.value(what, "Gbps", Role::Predicted, run.reached_gbps, None);
    }
    report.note(
        "\"All counted\" is what arrives in time with both ways saturated: 8b/10b (of 40 Gbps, 32 are left), 2 DW of framing, sequence and CRC \
         for each packet, acknowledgements and credits, which the paper names and does not count. As in the paper, the header counts as 4 DW of \
         use also where 2 travel, and packets are held up by the network layer, which is slower than the line.",
    );
    Ok(())
}
