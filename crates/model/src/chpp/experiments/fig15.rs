//! Fig. 15 (C-45, C-47): peak bandwidth of a PUT of 2 MB against the MTU, one read asking for one MTU.

use super::Kind;
use super::stream::stream;
use crate::chpp::Config;
use crate::chpp::sensitivity::without_effect;
use crate::experiment::{Report, Role};
use crate::units::{Bytes, Span};

/// The sweep, in bytes.
const MTUS: [u64; 7] = [16, 32, 64, 128, 256, 512, 1024];

/// Bytes that the test moves (5.1).
const MOVED: u64 = 2 << 20;

/// The prototype with this MTU: payloads, reads, and network packets.
pub fn with_mtu(mtu: u64) -> Config {
    let mut config = Config::prototype();
    config.pcie.max_payload = Bytes::new(mtu);
    config.pcie.read_request = Bytes::new(mtu);
    config.pcie.completion_boundary = Bytes::new(mtu.min(64));
    config.nic.put_payload = Bytes::new(mtu);
    config.nic.slot_batch = (mtu / 8).min(16) as usize;
    config.nic.reorder = Bytes::new((2 * config.nic.tags as u64 * mtu).max(8192));
    config
}

/// The second reading: completions never exceed 128 B whatever is asked for, and a read of 128 B takes 320 cycles.
fn second_reading(mtu: u64) -> Config {
    let mut config = with_mtu(mtu);
    config.pcie.max_payload = Bytes::new(mtu.min(128));
    config.nic.put_payload = Bytes::new(mtu.min(128));
    // A read of 128 B takes 143 cycles on the prototype.
    config.host.memory_latency += Span::from_ns((320 - 143) * 4);
    config
}

/// Runs the experiment.
///
/// # Errors
/// A sentence, if a stream does not end.
pub fn run() -> Result<Report, String> {
    let mut report = Report::new("fig15", "peak bandwidth against MTU", "C-45, C-47");
    let bandwidth =
        |config: &Config| stream(config, Kind::Put, MOVED, 1, 1).map(|stream| stream.gigabytes_s);
    let mut first = Vec::new();
    for mtu in MTUS {
        let run = stream(&with_mtu(mtu), Kind::Put, MOVED, 1, 1)?;
        let reached = run.gigabytes_s;
        report.note(format!("MTU {mtu} B: busiest are the {}.", run.limit));
        let published = (mtu == 128).then_some(3.2);
        report.value(format!("MTU {mtu} B"), "GB/s", Role::Predicted, reached, published);
        first.push(reached);
    }
    let mut second = Vec::new();
    for mtu in MTUS {
        let reached = bandwidth(&second_reading(mtu))?;
        let published = (mtu == 128).then_some(3.2);
        report.value(
            format!("MTU {mtu} B, second reading"),
            "GB/s",
            Role::Predicted,
            reached,
            published,
        );
        second.push(reached);
    }
    let linear =
        |of: &[f64]| (of[2] / of[3] - 0.5).abs() < 0.05 && (of[1] / of[3] - 0.25).abs() < 0.05;
    let flat = |of: &[f64]| of[4..].iter().all(|reached| (reached / of[3] - 1.0).abs() < 0.02);
    report.claim("grows linearly below 128 B", linear(&first)).explain(
        "With reads of 130 cycles (5.3), 32 tags are enough from 64 B on, and header and engine cycle of each packet make a curve: 67 % of 4 \
         GB/s at 64 B, 80 % at 128 B. A straight line needs a limit by tags, and so reads of 320 cycles: the second reading.",
    );
    report.claim("does not grow above 128 B", flat(&first)).explain(
        "If completions are as long as the MTU, header and engine cycle weigh less and less. The paper blames the number of tags, but fewer are \
         needed for larger requests (Eq. 2). It does not grow if the host cuts completions at 128 B, as bridges do whose payload is \
         128 B: the second reading.",
    );
    report
        .claim("second reading: grows linearly below 128 B", linear(&second))
        .explain("See the values.");
    report
        .claim("second reading: does not grow above 128 B", flat(&second))
        .explain("See the values.");
    // C-47: where tags are the limit, more of them or larger requests lift it.
    let mut scarce = with_mtu(256);
    scarce.host.memory_latency += Span::from_ns(4 * 1500);
    let limited = bandwidth(&scarce)?;
    let mut more_tags = scarce.clone();
    more_tags.nic.tags = 256;
    more_tags.pcie.non_posted_headers = 256;
    more_tags.nic.reorder = Bytes::new(256 << 10);
    let mut larger = scarce.clone();
    larger.pcie.read_request = Bytes::new(1024);
    larger.nic.reorder = Bytes::new(256 << 10);
    let (with_tags, with_larger) = (bandwidth(&more_tags)?, bandwidth(&larger)?);
    report.value(
        "MTU 256 B, reads of 1630 cycles, 32 tags",
        "GB/s",
        Role::Predicted,
        limited,
        None,
    );
    report.value("the same with 256 tags", "GB/s", Role::Predicted, with_tags, None);
    report.value("the same with requests of 1024 B", "GB/s", Role::Predicted, with_larger, None);
    report
        .claim("where tags are scarce, 256 of them lift the limit", with_tags > 1.2 * limited)
        .explain("See the values.");
    report
        .claim("where tags are scarce, larger requests lift the limit", with_larger > 1.2 * limited)
        .explain("See the values.");
    without_effect(&mut report, "a PUT of 32 KiB at an MTU of 128 B", &with_mtu(128), |config| {
        stream(config, Kind::Put, 32768, 1, 1).map(|stream| stream.gigabytes_s)
    })?;
    report.note(
        "The ceiling of 3.2 GB/s is not calibrated: 1 cycle of header, 8 of data, 1 of the engine for 128 B at 4 GB/s. The wires themselves \
         would carry 3.4 GB/s of completions of 128 B; only if a link-layer packet were sent as often as Neugebauer et al. assume (2.98 \
         GB/s) could the paper's 3.19 not be reached.",
    );
    Ok(report)
}
