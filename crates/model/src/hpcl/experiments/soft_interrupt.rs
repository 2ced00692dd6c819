//! HPCL frames handed over by a soft interrupt, like frames of the network layer (B-24), instead of
//! being handled in the link layer (H-24).

use super::measure::{bandwidths, round_trips};
use super::{LARGE, MESSAGE, Report, SMALL};
use crate::experiment::{Axis, Experiment, draws};
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
        let curve = round_trips(config, Over::Hpcl)?;
        let of = |what: &str| format!("{name}: {what}");
        let trips = curve.at(SMALL);
        report.drawn(of("128 B"), "us", &draws(trips, |trip| trip.us));
        let soft = draws(trips, |trip| trip.each(|counters| counters.frames_by_soft_interrupt));
        report.drawn(of("frames by it, each"), "1", &soft);
        report.drawn(of("1196 B"), "B/s", &bandwidths(config, LARGE)?);
        curves.push(curve);
    }
    let later = curves[1].exceeds(&curves[0], |trip| trip.us);
    report.claim("by soft interrupt, latency is higher at every size", later);
    let figure = report.figure(
        "B-24: round trip of HPCL, handled in the link layer and by soft interrupt",
        MESSAGE,
        Axis::linear("round trip", "us"),
    );
    for ((name, _), curve) in settings.iter().zip(curves) {
        figure.drawn(*name, curve.points(|trip| trip.us));
    }
    Ok(())
}
