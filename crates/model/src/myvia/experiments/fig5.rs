//! Fig. 5 (M-26, M-27, B-14): latency and bandwidth of MyVIA and Berkeley VIA on LANai4, and of
//! M-VIA on 100 Mb/s.

use super::{Curve, LENGTHS, bandwidth, draw, paper};
use crate::experiment::Report;

pub(super) fn run(report: &mut Report) -> Result<(), String> {
    let setups = (paper("myvia-a")?, paper("berkeley-a")?);
    let myvia = Curve::of("MyVIA", &setups.0)?;
    let berkeley = Curve::of("Berkeley VIA", &setups.1)?;
    let m_via = Curve::of("M-VIA, 100 Mb/s", &paper("m-via-100")?)?;
    report.value("MyVIA, peak", "MB/s", myvia.peak());
    report.value("Berkeley VIA, peak", "MB/s", berkeley.peak());
    report.value("peak of MyVIA over Berkeley VIA", "1", myvia.peak() / berkeley.peak());
    report.value("MyVIA's peak over the bus", "%", myvia.peak() / 132.0 * 100.0);
    let crossing =
        crossing(|length| Ok(bandwidth(&setups.0, length)? - bandwidth(&setups.1, length)?))?;
    report.value("the bandwidths are the same at", "B", crossing);
    for curve in [&myvia, &berkeley] {
        report.value(format!("{}, one way, 4 B", curve.name), "us", curve.latency_at(4));
    }
    let apart = |length| (myvia.latency_at(length) / berkeley.latency_at(length) - 1.0).abs();
    let furthest =
        LENGTHS.into_iter().filter(|length| *length <= 4096).map(apart).fold(0.0, f64::max);
    report.value("latencies up to 4 KB differ by at most", "%", furthest * 100.0);
    report.claim("the curves of latency almost coincide up to 4 KB (10 %)", furthest < 0.10);
    let lower = |length| myvia.bandwidth_at(length) < berkeley.bandwidth_at(length);
    let below = LENGTHS.into_iter().filter(|length| *length < 1900).all(lower);
    let above = LENGTHS.into_iter().filter(|length| *length > 2100).any(lower);
    report.claim("below 2000 B MyVIA is lower, above higher", below && !above);
    let slightly = myvia.bandwidth_at(1024) / berkeley.bandwidth_at(1024);
    report.value("MyVIA over Berkeley VIA, bandwidth, 1 KB", "1", slightly);
    let far = myvia.bandwidth_at(64) / berkeley.bandwidth_at(64);
    report.value("the same, 64 B", "1", far);
    report.claim_of("below 2000 B it is only slightly lower (25 %)", far, far > 0.75);
    draw(report, "Fig. 5", "LANai4", [&myvia, &berkeley, &m_via]);
    Ok(())
}

/// Where a difference of bandwidths changes its sign, between 512 B and 4 KB, by bisection.
fn crossing(difference: impl Fn(u32) -> Result<f64, String>) -> Result<f64, String> {
    let (mut low, mut high) = (512, 4096);
    if difference(low)? > 0.0 || difference(high)? < 0.0 {
        return Ok(f64::NAN);
    }
    while high - low > 8 {
        let middle = (low + high) / 2;
        if difference(middle)? < 0.0 { low = middle } else { high = middle }
    }
    Ok(f64::from(low + high) / 2.0)
}
