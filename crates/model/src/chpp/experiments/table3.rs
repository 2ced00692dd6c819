//! Table 3 (C-49): latency against payload, for the four primitives.

use super::Kind;
use super::single::single;
use crate::chpp::Config;
use crate::chpp::config::Packing;
use crate::experiment::{Axis, Origin, Report, Sensitivity};
use crate::sensitivity;

/// Payloads of Table 3 up to the limit of a NAP, in bytes, then those of PUT and GET. The paper
/// misprints three of these (10284, 51036, 262116): its own latencies only fit the powers of two.
pub const PAYLOADS: [u64; 10] = [1, 64, 256, 1024, 2048, 4096, 16384, 65536, 262_144, 1_048_576];

pub(super) fn run(report: &mut Report) -> Result<(), String> {
    let config = Config::prototype();
    let mut latencies = Vec::new();
    for kind in Kind::ALL {
        let mut of_kind = Vec::new();
        for bytes in PAYLOADS.into_iter().filter(|bytes| !kind.is_nap() || *bytes <= 2048) {
            let latency = single(&config, kind, bytes)?.latency.as_ns() / 1e3;
            of_kind.push(latency);
            report.value(format!("{}, {bytes} B", kind.name()), "us", latency);
        }
        latencies.push(of_kind);
    }
    let figure = report.figure(
        "Table 3: latency against payload",
        Axis::logarithmic("payload", "B"),
        Axis::logarithmic("latency", "us"),
    );
    for (kind, of_kind) in Kind::ALL.into_iter().zip(&latencies) {
        let payloads = PAYLOADS.iter().map(|bytes| *bytes as f64);
        figure.series(kind.name(), Origin::Model, payloads.zip(of_kind.iter().copied()));
    }
    let slope = |of: &[f64]| (of[4] - of[3]) / 1024.0 * 1e3;
    for (kind, of_kind) in Kind::ALL.into_iter().zip(&latencies) {
        let name = format!("{}, slope from 1024 to 2048 B", kind.name());
        report.value(name, "ns/B", slope(of_kind));
    }
    let get_over_put = (latencies[3][0] - latencies[2][0]) * 1e3;
    report.value("GET above PUT, 1 B", "ns", get_over_put);
    let at_1 = |kind: usize| latencies[kind][0];
    report.claim_of(
        "at 1 B: NAP immediate < PUT < GET < NAP indirect",
        at_1(1) / at_1(3),
        at_1(0) < at_1(2) && at_1(2) < at_1(3) && at_1(3) < at_1(1),
    );
    // The second reading: data from memory streams through the packer, as a PUT's does.
    let mut streaming = config;
    streaming.nic.packing = Packing::Streamed;
    let at = |bytes| single(&streaming, Kind::NapIndirect, bytes).map(|run| run.latency.as_ns());
    let slope = (at(2048)? - at(1024)?) / 1024.0;
    report.note(format!(
        "Second reading, an indirect NAP streams through the packer instead of being gathered in it: it grows by {slope:.4} ns/B."
    ));
    report.sensitivity.push(sensitivity()?);
    Ok(())
}

/// Varies the parameters of one operation of each kind.
///
/// # Errors
/// A sentence, if an operation does not end.
pub fn sensitivity() -> Result<Sensitivity, String> {
    sensitivity::sensitivity("any primitive with 64 B", &Config::prototype(), |config| {
        Kind::ALL
            .map(|kind| single(config, kind, 64).map(|run| run.latency))
            .into_iter()
            .collect::<Result<Vec<_>, _>>()
    })
}
