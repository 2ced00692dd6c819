//! Kernel buffers that are allocated and copied per message (B-25), instead of fixed buffers that
//! kernel and user share (H-20, H-21).

use super::measure::{bandwidths, round_trips};
use super::{LARGE, MESSAGE, Report, SMALL};
use crate::experiment::{Axis, Experiment, draws};
use crate::hpcl::config::{Buffers, Config};
use crate::hpcl::process::Over;
use crate::stats::excess;

pub(super) const EXPERIMENT: Experiment = Experiment {
    id: "buffers",
    title: "dynamic buffers with copies",
    rows: "H-20, H-21, B-25",
    published: super::PUBLISHED,
    run,
};

fn run(report: &mut Report) -> Result<(), String> {
    let config = |buffers| {
        let mut config = Config::paper();
        config.hpcl.buffers = buffers;
        config
    };
    let settings = [("fixed", config(Buffers::Fixed)), ("dynamic", config(Buffers::Dynamic))];
    let mut curves = Vec::new();
    let mut copies = Vec::new();
    let mut made = Vec::new();
    for (name, config) in &settings {
        let curve = round_trips(config, Over::Hpcl)?;
        let of = |what: &str| format!("{name}: {what}");
        let trips = curve.at(SMALL);
        report.drawn(of("128 B"), "us", &draws(trips, |trip| trip.us));
        // Two messages in a round trip.
        let each = draws(trips, |trip| {
            let copies = trip.each(|counters| {
                counters.copies_from_user + counters.copies_to_ring + counters.copies_to_user
            });
            copies / 2.0
        });
        report.drawn(of("copies of a message"), "1", &each);
        copies.push(each);
        let allocations = draws(trips, |trip| trip.each(|counters| counters.allocations) / 2.0);
        report.drawn(of("buffers made for it"), "1", &allocations);
        made.push(allocations);
        report.drawn(of("1196 B"), "B/s", &bandwidths(config, LARGE)?);
        curves.push(curve);
    }
    let each = |of: &[f64], count: f64| of.iter().all(|found| *found == count);
    report.claim("fixed: one copy of a message, on receive", each(&copies[0], 1.0));
    report.claim("fixed: no buffer is made for a message", each(&made[0], 0.0));
    report.claim("dynamic: more copies", excess(&copies[1], &copies[0]).is_above(0.0));
    report.claim("dynamic: more allocations", excess(&made[1], &made[0]).is_above(0.0));
    let later = curves[1].exceeds(&curves[0], |trip| trip.us);
    report.claim("dynamic: latency is higher at every size", later);
    let figure = report.figure(
        "B-25: round trip of HPCL, with fixed and with dynamic buffers",
        MESSAGE,
        Axis::linear("round trip", "us"),
    );
    for ((name, _), curve) in settings.iter().zip(curves) {
        figure.drawn(*name, curve.points(|trip| trip.us));
    }
    Ok(())
}
