//! Fig. 6 (M-28, M-29, B-14, B-17): latency and bandwidth of MyVIA, Berkeley VIA and GM on LANai9.

use super::{Curve, LENGTHS, Lengths, Places, SEED, bandwidth, draw, paper, ping_pong, window};
use crate::experiment::{Report, Sensitivity};
use crate::sensitivity;
use crate::stats::{Estimate, LEAST_SEEDS};

pub(super) fn run(report: &mut Report) -> Result<(), String> {
    let myvia = Curve::of("MyVIA", &paper("myvia-b")?)?;
    let berkeley_setup = paper("berkeley-b")?;
    // With its two buffers the bandwidth depends on where the round-robin of each unit starts.
    let berkeley = Curve::drawn("Berkeley VIA", &berkeley_setup)?;
    let gm = Curve::of("GM", &paper("gm-b")?)?;
    report.value("MyVIA, one way, 4 B", "us", myvia.latency_at(4));
    for curve in [&berkeley, &gm] {
        report.value(format!("{}, one way, 4 B", curve.name), "us", curve.latency_at(4));
    }
    let at_4k = myvia.bandwidth_at(4096);
    report.value("MyVIA, 4 KB", "MB/s", at_4k);
    report.value("MyVIA, time for a message of 4 KB", "us", 4096.0 / at_4k);
    for curve in [&myvia, &gm] {
        report.value(format!("{}, 32 KB", curve.name), "MB/s", curve.bandwidth_at(32_768));
    }
    let large = berkeley.estimate_at(32_768);
    report.estimated("Berkeley VIA, 32 KB", "MB/s", large, LEAST_SEEDS);
    let mut strict = berkeley_setup;
    (strict.system.send_buffers, strict.system.receive_buffers) = (1, 1);
    let what = "Berkeley VIA without any overlap, 32 KB";
    report.value(what, "MB/s", bandwidth(&strict, 32_768)?);
    let over_berkeley = |length| {
        let (rate, Estimate { mean, half_width }) =
            (myvia.bandwidth_at(length), berkeley.estimate_at(length));
        Estimate { mean: rate / mean, half_width: rate / mean * (half_width / mean) }
    };
    for length in [1024, 2048, 4096] {
        let what = format!("MyVIA over Berkeley VIA, {length} B");
        report.estimated(what, "1", over_berkeley(length), LEAST_SEEDS);
    }
    report.estimated("the same, 16 KB", "1", over_berkeley(16_384), LEAST_SEEDS);
    let all = |better: &Curve, worse: &Curve| {
        LENGTHS.into_iter().all(|length| {
            better.bandwidth_at(length) >= worse.bandwidth_at(length) * 0.999
                && better.latency_at(length) <= worse.latency_at(length) * 1.001
        })
    };
    report.claim("GM is at least as good as MyVIA at every length", all(&gm, &myvia));
    let gain = myvia.latency_at(4) / gm.latency_at(4) - 1.0;
    report.claim("it is only slightly better (15 % in latency)", (0.0..0.15).contains(&gain));
    report.claim("MyVIA is better than Berkeley VIA at every length", {
        let short = LENGTHS.into_iter().filter(|length| *length <= 4096);
        let latency = short.into_iter().all(|at| myvia.latency_at(at) < berkeley.latency_at(at));
        let bandwidth =
            LENGTHS.into_iter().all(|at| berkeley.estimate_at(at).is_below(myvia.bandwidth_at(at)));
        latency && bandwidth
    });
    let link = at_4k / 250.0 * 100.0;
    report.value("MyVIA at 4 KB over a link of 250 MB/s", "%", link);
    draw(report, "Fig. 6", "LANai9", [&myvia, &berkeley, &gm]);
    report.sensitivity.push(sensitivity()?);
    Ok(())
}

/// Varies the parameters of MyVIA on LANai9, in a short ping-pong and a short window.
///
/// # Errors
/// A sentence, if a run fails.
pub fn sensitivity() -> Result<Sensitivity, String> {
    sensitivity::sensitivity("MyVIA, 4 KB, ten messages", &paper("myvia-b")?, |setup| {
        let one_way = ping_pong(setup, Lengths::Fixed(4096), 5, SEED)?;
        Ok((one_way, window(setup, Lengths::Fixed(4096), Places::Reused, 10, SEED)?.took))
    })
}
