//! Fig. 8 (H-27, B-22): bandwidth of a burst over HPCL and of a stream over TCP/IP, against size.

use super::measure::bandwidth;
use super::{LARGE, MESSAGE, Report, SIZES, SMALL};
use crate::experiment::{Axis, Experiment, Origin};
use crate::hpcl::config::Config;
use crate::hpcl::process::Over;

pub(super) const EXPERIMENT: Experiment = Experiment {
    id: "fig8",
    title: "bandwidth against size, beside TCP/IP",
    rows: "H-27, H-28, B-22",
    published: super::PUBLISHED,
    run,
};

/// Bytes per second of gigabit Ethernet, headers included.
const GIGABIT: f64 = 1.25e8;

fn run(report: &mut Report) -> Result<(), String> {
    let config = Config::paper();
    let mut curves = [Vec::new(), Vec::new()];
    let mut in_use = Vec::new();
    for (over, curve) in [Over::Hpcl, Over::Tcp].into_iter().zip(&mut curves) {
        for bytes in SIZES {
            let burst = bandwidth(&config, over, bytes)?;
            curve.push((f64::from(bytes), burst.bytes_per_second));
            if bytes == LARGE {
                in_use.push((burst.line * 100.0, burst.processors.map(|share| share * 100.0)));
            }
        }
    }
    let [hpcl, tcp] = &curves;
    let figure = report.figure("Fig. 8: bandwidth", MESSAGE, Axis::logarithmic("bandwidth", "B/s"));
    figure.series("HPCL/Ethernet", Origin::Model, hpcl.iter().copied());
    figure.series("TCP/IP", Origin::Model, tcp.iter().copied());
    let at = |curve: &[(f64, f64)], bytes: u32| {
        curve.iter().find(|point| point.0 == f64::from(bytes)).map_or(f64::NAN, |point| point.1)
    };
    let large = at(hpcl, LARGE);
    report.value("HPCL, 1196 B", "B/s", large);
    report.value("HPCL, 1196 B, of a gigabit", "%", large / GIGABIT * 100.0);
    report.value("HPCL, 1196 B", "Mb/s", large * 8e-6);
    let rate = large / f64::from(LARGE);
    report.value("HPCL, 1196 B, messages", "1/s", rate);
    report.value("HPCL, 1196 B, each", "us", 1e6 / rate);
    report.value("HPCL, 1196 B, beyond payload", "B", GIGABIT / rate - f64::from(LARGE));
    for (name, (line, [sender, receiver])) in ["HPCL", "TCP/IP"].into_iter().zip(in_use) {
        let of = |what: &str| format!("{name}, 1196 B, {what} in use");
        report.value(of("line"), "%", line);
        report.value(of("sender's processor"), "%", sender);
        report.value(of("receiver's processor"), "%", receiver);
    }
    for (what, curve, bytes) in [
        ("HPCL, 128 B", hpcl, SMALL),
        ("TCP/IP, 128 B", tcp, SMALL),
        ("TCP/IP, 1196 B", tcp, LARGE),
    ] {
        report.value(what, "B/s", at(curve, bytes));
    }

    report.claim("at 128 B TCP/IP is ahead", at(tcp, SMALL) > at(hpcl, SMALL));
    let rises = hpcl.windows(2).all(|pair| pair[0].1 < pair[1].1);
    report.claim("HPCL's bandwidth rises steadily with size", rises);

    Ok(())
}
