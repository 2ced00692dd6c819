//! Receiving by interrupts (B-23) instead of reaping (H-08, H-09): a waiting process sleeps and is
//! woken.

use super::measure::{bandwidths, round_trip_with_gap, round_trips};
use super::{LARGE, MESSAGE, Report, SMALL};
use crate::experiment::{Axis, Experiment, draws, of_each_seed};
use crate::hpcl::config::{Config, Receive};
use crate::hpcl::process::Over;
use crate::stats::{excess, over_seeds};
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
        let curve = round_trips(config, Over::Hpcl)?;
        let of = |what: &str| format!("{name}: {what}");
        let trips = curve.at(SMALL);
        report.drawn(of("128 B"), "us", &draws(trips, |trip| trip.us));
        let interrupts = draws(trips, |trip| trip.each(|counters| counters.interrupts));
        report.drawn(of("interrupts each"), "1", &interrupts);
        let woken = draws(trips, |trip| trip.each(|counters| counters.wake_ups));
        report.drawn(of("woken each"), "1", &woken);
        report.drawn(of("1196 B"), "B/s", &bandwidths(config, LARGE)?);
        curves.push(curve);
    }
    let figure = report.figure(
        "B-23: round trip of HPCL, by reaping and by interrupts",
        MESSAGE,
        Axis::logarithmic("round trip", "us"),
    );
    for ((name, _), curve) in settings.iter().zip(&curves) {
        figure.drawn(*name, curve.points(|trip| trip.us));
    }
    let silent = of_each_seed(|seed| {
        round_trip_with_gap(&settings[0].1, Over::Hpcl, SMALL, NO_INTERRUPTS, seed)
    })?;
    let silent_us = draws(&silent, |trip| trip.us);
    report.drawn("reaping, no interrupts: 128 B", "us", &silent_us);
    let reaping = curves[0].at(SMALL);
    let us = |of: usize| draws(curves[of].at(SMALL), |trip| trip.us);
    let later = |of: usize| excess(&us(of), &us(0)).is_above(0.0);
    report.claim("by interrupts, latency is higher", later(1));
    report.claim("and that even if they come at once", later(2));
    let (slower, allowed) = (excess(&silent_us, &us(0)), over_seeds(&us(0)).mean * 0.02);
    let messages: u64 = silent.iter().map(|trip| 2 * trip.rounds).sum();
    report.claim(
        format!(
            "who waits by reaping needs no interrupt: with none, all {messages} messages come, as fast"
        ),
        silent.iter().all(|trip| {
            trip.counters.interrupts == 0 && trip.counters.received == 2 * trip.rounds
        }) && slower.is_above(-allowed)
            && slower.is_below(allowed),
    );
    let runs = || reaping.iter().chain(&silent);
    let rounds: u64 = runs().map(|trip| trip.rounds).sum();
    let needless: u64 = runs().map(|trip| trip.counters.needless_reaps).sum();
    let what = format!("in {rounds} round trips the handler was not called while a message waited");
    report.claim_of(what, needless as f64, needless == 0).tries = Some(runs().count() as u64);
    Ok(())
}
