//! Fig. 16 (C-48): bandwidth against payload, for the four primitives.

use super::Kind;
use super::stream::{stream, stream_of};
use crate::chpp::Config;
use crate::experiment::{Axis, Origin, Report, of_each_seed};
use crate::stats::Estimate;

/// The sweep, in bytes; NAPs end at 2048.
const PAYLOADS: [u64; 8] = [1, 64, 512, 1024, 2048, 16384, 131_072, 524_288];

pub(super) fn run(report: &mut Report) -> Result<(), String> {
    let config = Config::prototype();
    let mut one_at_a_time = [const { Vec::new() }; 4];
    let mut pipelined: [Vec<Estimate>; 4] = [const { Vec::new() }; 4];
    for (at, kind) in Kind::ALL.into_iter().enumerate() {
        for bytes in PAYLOADS.into_iter().filter(|bytes| !kind.is_nap() || *bytes <= 2048) {
            let count = (1_048_576 / bytes).clamp(3, 40);
            let alone = stream(&config, kind, bytes, 1, 8.min(count))?.gigabytes_s;
            let together = of_each_seed(|seed| {
                Ok(stream_of(&config, kind, bytes, 32, 32 + count, seed)?.gigabytes_s)
            })?;
            report.value(format!("{}, {bytes} B, one at a time", kind.name()), "GB/s", alone);
            let what = format!("{}, {bytes} B, 32 outstanding", kind.name());
            one_at_a_time[at].push(alone);
            pipelined[at].push(report.drawn(what, "GB/s", &together).estimate());
        }
    }
    let figure = report.figure(
        "Fig. 16: bandwidth against payload",
        Axis::logarithmic("payload", "B"),
        Axis::logarithmic("bandwidth", "GB/s"),
    );
    let payloads = || PAYLOADS.iter().map(|bytes| *bytes as f64);
    for (kind, of_kind) in Kind::ALL.into_iter().zip(&one_at_a_time) {
        let name = format!("{}, one at a time", kind.name());
        figure.series(name, Origin::Model, payloads().zip(of_kind.iter().copied()));
    }
    for (kind, of_kind) in Kind::ALL.into_iter().zip(&pipelined) {
        let name = format!("{}, 32 outstanding", kind.name());
        figure.drawn(name, payloads().zip(of_kind.iter().copied()));
    }
    let [immediate, indirect, put, get] = &one_at_a_time;
    report.claim(
        "PUT rises steeply, then flattens",
        put[4] > 100.0 * put[0] && put[7] / put[6] < 1.1,
    );
    let slightly = put.iter().zip(get).all(|(put, get)| get < put && *get > 0.9 * put);
    report.claim("GET is slightly lower than PUT", slightly);
    let best = immediate[0] > indirect[0] && immediate[0] > put[0] && immediate[0] > get[0];
    report.claim("at 1 B, immediate NAP is the highest of all", best);
    let gap = |at: usize| immediate[at] / indirect[at];
    report.claim(
        "the gap between the NAPs shrinks up to 2 KB",
        gap(4) < gap(3) && gap(3) < gap(1) && gap(4) < 1.05,
    );
    let most = |of: &[f64]| of.iter().copied().fold(0.0, f64::max);
    let least = |of: &[f64]| of.iter().copied().fold(f64::INFINITY, f64::min);
    let smallest: Vec<f64> = pipelined.iter().map(|of| of[0].mean).collect();
    for kind in Kind::ALL {
        let bytes = if kind.is_nap() { 2048 } else { 65536 };
        let limit = stream(&config, kind, bytes, 32, 64)?.limit;
        report
            .note(format!("{} of {bytes} B, 32 outstanding: busiest is the {limit}.", kind.name()));
    }
    report.vary("32 outstanding of any primitive with 1 KiB", &config, |config| {
        let rate = |kind| stream(config, kind, 1024, 32, 48).map(|stream| stream.gigabytes_s);
        Kind::ALL.into_iter().map(rate).collect::<Result<Vec<_>, _>>()
    })?;
    report.note(format!(
        "The reason that the paper gives for immediate NAP (one read less) concerns one operation at a time. With 32 outstanding, reads overlap, and \
         the four differ at 1 B by a factor of {:.2} only.",
        most(&smallest) / least(&smallest)
    ));
    Ok(())
}
