//! Fig. 8 (H-27, B-22): bandwidth of a burst over HPCL and of a stream over TCP/IP, against size.

use super::measure::{Burst, Curve, bandwidth};
use super::{LARGE, MESSAGE, Report, SMALL};
use crate::experiment::{Axis, Experiment, draws};
use crate::hpcl::config::Config;
use crate::hpcl::process::Over;
use crate::stats::excess;

pub(super) const EXPERIMENT: Experiment = Experiment {
    id: "fig8",
    title: "bandwidth against size, beside TCP/IP",
    rows: "H-27, H-28, B-22",
    published: super::PUBLISHED,
    run,
};

/// A quantity that follows from the bytes per second.
type OfRate = fn(f64) -> f64;

/// Bytes per second of gigabit Ethernet, headers included.
const GIGABIT: f64 = 1.25e8;

fn run(report: &mut Report) -> Result<(), String> {
    let config = Config::paper();
    let curve = |over| Curve::of(|bytes, seed| bandwidth(&config, over, bytes, seed));
    let [hpcl, tcp] = [curve(Over::Hpcl)?, curve(Over::Tcp)?];
    let rate = |burst: &Burst| burst.bytes_per_second;
    let figure = report.figure("Fig. 8: bandwidth", MESSAGE, Axis::logarithmic("bandwidth", "B/s"));
    figure.drawn("HPCL/Ethernet", hpcl.points(rate));
    figure.drawn("TCP/IP", tcp.points(rate));
    let large: [(&str, &str, OfRate); 6] = [
        ("HPCL, 1196 B", "B/s", |rate| rate),
        ("HPCL, 1196 B, of a gigabit", "%", |rate| rate / GIGABIT * 100.0),
        ("HPCL, 1196 B", "Mb/s", |rate| rate * 8e-6),
        ("HPCL, 1196 B, messages", "1/s", |rate| rate / f64::from(LARGE)),
        ("HPCL, 1196 B, each", "us", |rate| f64::from(LARGE) / rate * 1e6),
        ("HPCL, 1196 B, beyond payload", "B", |rate| (GIGABIT / rate - 1.0) * f64::from(LARGE)),
    ];
    for (what, unit, of) in large {
        report.drawn(what, unit, &draws(hpcl.at(LARGE), |burst| of(rate(burst))));
    }
    for (name, curve) in [("HPCL", &hpcl), ("TCP/IP", &tcp)] {
        let of = |what: &str| format!("{name}, 1196 B, {what} in use");
        let runs = curve.at(LARGE);
        report.drawn(of("line"), "%", &draws(runs, |burst| burst.line * 100.0));
        for (node, what) in ["sender's processor", "receiver's processor"].into_iter().enumerate() {
            let share = draws(runs, |burst| burst.processors[node] * 100.0);
            report.drawn(of(what), "%", &share);
        }
    }
    let small = [&hpcl, &tcp].map(|curve| draws(curve.at(SMALL), rate));
    report.drawn("HPCL, 128 B", "B/s", &small[0]);
    report.drawn("TCP/IP, 128 B", "B/s", &small[1]);
    report.drawn("TCP/IP, 1196 B", "B/s", &draws(tcp.at(LARGE), rate));

    report.claim("at 128 B TCP/IP is ahead", excess(&small[1], &small[0]).is_above(0.0));
    let rises = hpcl.rises(rate).iter().all(|rise| rise.is_above(0.0));
    report.claim("HPCL's bandwidth rises steadily with size", rises);

    Ok(())
}
