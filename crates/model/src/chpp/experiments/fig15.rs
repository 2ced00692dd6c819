//! Fig. 15 (C-45, C-47): peak bandwidth of a PUT of 2 MB against the MTU; a read requests one MTU.

use super::Kind;
use super::stream::stream;
use crate::chpp::Config;
use crate::experiment::{Axis, Origin, Report};
use crate::units::{Bytes, Span};

/// The sweep, in bytes.
const MTUS: [u64; 7] = [16, 32, 64, 128, 256, 512, 1024];

/// Bytes that the test moves (5.1).
const MOVED: u64 = 2 << 20;

/// The maximum payload of the prototype's host, in both directions (5.2). A device may request more
/// in one read, but the answer comes in packets of the host's size.
const HOST_PAYLOAD: u64 = 128;

/// A machine with this MTU in its payloads, reads and network packets; its host supports it.
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

/// The prototype with this MTU: reads request that much, and payloads are as long as the host
/// allows.
fn on_prototype(mtu: u64) -> Config {
    let mut config = with_mtu(mtu);
    config.pcie.max_payload = Bytes::new(mtu.min(HOST_PAYLOAD));
    config.nic.put_payload = Bytes::new(mtu.min(HOST_PAYLOAD));
    config
}

/// The second reading: the same, but a read of 128 B takes 320 cycles.
fn second_reading(mtu: u64) -> Config {
    let mut config = on_prototype(mtu);
    // A read of 128 B takes 143 cycles on the prototype.
    config.host.memory_latency += Span::from_ns((320 - 143) * 4);
    config
}

/// A machine whose tags are the bottleneck: reads of 256 B that take some 1630 cycles.
pub(super) fn with_slow_reads() -> Config {
    let mut config = with_mtu(256);
    config.host.memory_latency += config.nic.cycle() * 1500;
    config
}

/// A machine with an MTU.
type Reading = fn(u64) -> Config;

/// The suffix of a value's name, the name of a curve, and the machine.
const READINGS: [(&str, &str, Reading); 3] = [
    ("", "the prototype", on_prototype),
    (", second reading", "second reading: reads of 320 cycles", second_reading),
    (", third reading", "third reading: a host whose payload follows the MTU", with_mtu),
];

pub(super) fn run(report: &mut Report) -> Result<(), String> {
    let bandwidth =
        |config: &Config| stream(config, Kind::Put, MOVED, 1, 1).map(|stream| stream.gigabytes_s);
    let mut curves = Vec::new();
    for (suffix, name, machine) in READINGS {
        let mut curve = Vec::new();
        for mtu in MTUS {
            let run = stream(&machine(mtu), Kind::Put, MOVED, 1, 1)?;
            if suffix.is_empty() {
                report.note(format!("MTU {mtu} B: busiest are the {}.", run.limit));
            }
            let what = format!("MTU {mtu} B{suffix}");
            report.value(what, "GB/s", run.gigabytes_s);
            curve.push(run.gigabytes_s);
        }
        curves.push((name, curve));
    }
    let along = |of: &[f64]| MTUS.map(|mtu| mtu as f64).into_iter().zip(of.to_vec());
    let figure = report.figure(
        "Fig. 15: peak bandwidth against MTU",
        Axis::logarithmic("MTU", "B"),
        Axis::linear("bandwidth of a PUT of 2 MB", "GB/s"),
    );
    for (name, curve) in &curves {
        figure.series(*name, Origin::Model, along(curve));
    }
    let ceiling = MTUS.map(|mtu| {
        let words = (mtu / 16) as f64;
        4.0 * words / (words + 2.0)
    });
    figure.series("header and engine cycle only", Origin::Formula, along(&ceiling));
    let [(_, first), (_, second), (_, third)] = &curves[..] else {
        return Err("three readings".to_owned());
    };
    let climbs = |of: &[f64]| of[..4].windows(2).all(|pair| pair[1] > 1.15 * pair[0]);
    let linear =
        |of: &[f64]| (of[2] / of[3] - 0.5).abs() < 0.05 && (of[1] / of[3] - 0.25).abs() < 0.05;
    let flat = |of: &[f64]| of[4..].iter().all(|reached| (reached / of[3] - 1.0).abs() < 0.02);
    report.claim("grows up to 128 B", climbs(first));
    report.claim_of("grows linearly below 128 B", first[2] / first[3], linear(first));
    report.claim("second reading: grows linearly below 128 B", linear(second));
    if flat(first) && flat(second) {
        report.note(
            "The first two readings do not grow above 128 B by construction: their host takes \
             payloads of 128 B at most, whatever is asked for (C-45).",
        );
    }
    let grown = third[6] / third[3];
    report.claim_of("third reading: does not grow above 128 B", grown, flat(third));
    // C-47: where tags are the bottleneck, more tags or larger requests help.
    let scarce = with_slow_reads();
    let limited = bandwidth(&scarce)?;
    let mut more_tags = scarce.clone();
    more_tags.nic.tags = 256;
    more_tags.pcie.non_posted_headers = 256;
    more_tags.nic.reorder = Bytes::new(256 << 10);
    let mut larger = scarce.clone();
    larger.pcie.read_request = Bytes::new(1024);
    larger.nic.reorder = Bytes::new(256 << 10);
    let (with_tags, with_larger) = (bandwidth(&more_tags)?, bandwidth(&larger)?);
    report.value("MTU 256 B, reads of 1630 cycles, 32 tags", "GB/s", limited);
    report.value("the same with 256 tags", "GB/s", with_tags);
    report.value("the same with requests of 1024 B", "GB/s", with_larger);
    report.claim("where tags are scarce, 256 of them lift the limit", with_tags > 1.2 * limited);
    report.claim(
        "where tags are scarce, larger requests lift the limit",
        with_larger > 1.2 * limited,
    );
    report.vary("a PUT of 32 KiB at an MTU of 128 B", &with_mtu(128), |config| {
        stream(config, Kind::Put, 32768, 1, 1).map(|stream| stream.gigabytes_s)
    })
}
