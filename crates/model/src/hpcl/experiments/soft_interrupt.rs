//! HPCL frames handed over by a soft interrupt, like frames of the network layer (B-24), instead of
//! being handled in the link layer (H-24).

use super::measure::{bandwidth, round_trip, round_trips};
use super::{LARGE, MESSAGE, Report, SMALL};
use crate::experiment::{Axis, Experiment, Origin};
use crate::hpcl::config::{Config, HandOver};
use crate::hpcl::process::Over;

pub(super) const EXPERIMENT: Experiment = Experiment {
    id: "soft-interrupt",
    title: "hand-over by soft interrupt",
    rows: "H-24, B-24",
    published: super::PUBLISHED,
    run,
};

fn run(report: &mut Report) -> Result<(), String> {
    let config = |hand_over| {
        let mut config = Config::paper();
        config.hpcl.hand_over = hand_over;
        config
    };
    let settings = [
        ("in the link layer", config(HandOver::LinkLayer)),
        ("by soft interrupt", config(HandOver::SoftInterrupt)),
    ];
    let mut curves = Vec::new();
    for (name, config) in &settings {
        curves.push(round_trips(config, Over::Hpcl)?);
        let trip = round_trip(config, Over::Hpcl, SMALL)?;
        let of = |what: &str| format!("{name}: {what}");
        report.value(of("128 B"), "us", trip.us);
        let soft = trip.each(|counters| counters.frames_by_soft_interrupt);
        report.value(of("frames by it, each"), "1", soft);
        let burst = bandwidth(config, Over::Hpcl, LARGE)?.bytes_per_second;
        report.value(of("1196 B"), "B/s", burst);
    }
    let below = curves[0].iter().zip(&curves[1]).all(|(link, soft)| link.1 < soft.1);
    report.claim("by soft interrupt, latency is higher at every size", below);
    let figure = report.figure(
        "B-24: round trip of HPCL, handled in the link layer and by soft interrupt",
        MESSAGE,
        Axis::linear("round trip", "us"),
    );
    for ((name, _), points) in settings.iter().zip(curves) {
        figure.series(*name, Origin::Model, points);
    }
    Ok(())
}
