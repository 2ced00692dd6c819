//! Receiving by interrupts (B-23) instead of reaping (H-08, H-09): a waiting process sleeps and is
//! woken.

use super::measure::{bandwidth, round_trip, round_trip_with_gap, round_trips};
use super::{LARGE, MESSAGE, Report, SMALL};
use crate::experiment::{Axis, Experiment, Origin};
use crate::hpcl::config::{Config, Receive};
use crate::hpcl::process::Over;
use crate::units::Span;

pub(super) const EXPERIMENT: Experiment = Experiment {
    id: "reaping",
    title: "interrupts in place of reaping",
    rows: "H-07, H-08, H-09, B-23",
    published: super::PUBLISHED,
    run,
};

/// An interrupt gap so long that a run has no interrupts.
const NO_INTERRUPTS: Span = Span::from_ns(3_600_000_000_000);

fn run(report: &mut Report) -> Result<(), String> {
    let config = |receive, gap: Option<Span>| {
        let mut config = Config::paper();
        config.hpcl.receive = receive;
        config.nic.interrupt_gap = gap.unwrap_or(config.nic.interrupt_gap);
        config
    };
    let settings = [
        ("reaping", config(Receive::Reap, None)),
        ("interrupts", config(Receive::Interrupt, None)),
        ("interrupts at once", config(Receive::Interrupt, Some(Span::ZERO))),
    ];
    let mut curves = Vec::new();
    for (name, config) in &settings {
        curves.push((*name, round_trips(config, Over::Hpcl)?));
    }
    let figure = report.figure(
        "B-23: round trip of HPCL, by reaping and by interrupts",
        MESSAGE,
        Axis::logarithmic("round trip", "us"),
    );
    for (name, points) in curves {
        figure.series(name, Origin::Model, points);
    }
    let mut times = Vec::new();
    for (name, config) in &settings {
        let trip = round_trip(config, Over::Hpcl, SMALL)?;
        let of = |what: &str| format!("{name}: {what}");
        report.value(of("128 B"), "us", trip.us);
        let interrupts = trip.each(|counters| counters.interrupts);
        report.value(of("interrupts each"), "1", interrupts);
        let woken = trip.each(|counters| counters.wake_ups);
        report.value(of("woken each"), "1", woken);
        times.push(trip);
        let burst = bandwidth(config, Over::Hpcl, LARGE)?.bytes_per_second;
        report.value(of("1196 B"), "B/s", burst);
    }
    let silent = round_trip_with_gap(&settings[0].1, Over::Hpcl, SMALL, NO_INTERRUPTS)?;
    report.value("reaping, no interrupts: 128 B", "us", silent.us);
    let [reaping, interrupts, at_once] = &times[..] else { unreachable!("three settings") };
    report.claim("by interrupts, latency is higher", interrupts.us > reaping.us);
    report.claim("and that even if they come at once", at_once.us > reaping.us);
    report.claim(
        format!(
            "who waits by reaping needs no interrupt: with none, all {} messages come, as fast",
            2 * silent.rounds
        ),
        silent.counters.interrupts == 0
            && silent.counters.received == 2 * silent.rounds
            && (silent.us / reaping.us - 1.0).abs() < 0.02,
    );
    let needless = |trip: &super::measure::RoundTrip| trip.counters.needless_reaps;
    report.claim(
        format!(
            "in {} round trips the handler was not called while a message waited",
            reaping.rounds + silent.rounds
        ),
        needless(reaping) == 0 && needless(&silent) == 0,
    );
    Ok(())
}
