//! Kernel buffers that are allocated and copied per message (B-25), instead of fixed buffers that
//! kernel and user share (H-20, H-21).

use super::measure::{bandwidth, round_trip, round_trips};
use super::{LARGE, MESSAGE, Report, SMALL};
use crate::experiment::{Axis, Experiment, Origin};
use crate::hpcl::config::{Buffers, Config};
use crate::hpcl::process::Over;

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
        curves.push(round_trips(config, Over::Hpcl)?);
        let trip = round_trip(config, Over::Hpcl, SMALL)?;
        let of = |what: &str| format!("{name}: {what}");
        report.value(of("128 B"), "us", trip.us);
        // Two messages in a round trip.
        let each = trip.each(|counters| {
            counters.copies_from_user + counters.copies_to_ring + counters.copies_to_user
        }) / 2.0;
        report.value(of("copies of a message"), "1", each);
        copies.push(each);
        let allocations = trip.each(|counters| counters.allocations) / 2.0;
        report.value(of("buffers made for it"), "1", allocations);
        made.push(allocations);
        let burst = bandwidth(config, Over::Hpcl, LARGE)?.bytes_per_second;
        report.value(of("1196 B"), "B/s", burst);
    }
    report.claim("fixed: one copy of a message, on receive", copies[0] == 1.0);
    report.claim("fixed: no buffer is made for a message", made[0] == 0.0);
    report.claim("dynamic: more copies", copies[1] > copies[0]);
    report.claim("dynamic: more allocations", made[1] > made[0]);
    let slower = curves[0].iter().zip(&curves[1]).all(|(fixed, dynamic)| fixed.1 < dynamic.1);
    report.claim("dynamic: latency is higher at every size", slower);
    let figure = report.figure(
        "B-25: round trip of HPCL, with fixed and with dynamic buffers",
        MESSAGE,
        Axis::linear("round trip", "us"),
    );
    for ((name, _), points) in settings.iter().zip(curves) {
        figure.series(*name, Origin::Model, points);
    }
    Ok(())
}
