//! Table 3 (C-49): latency against payload, for the four primitives.

use super::Kind;
use super::single::single;
use crate::chpp::Config;
use crate::chpp::sensitivity::without_effect;
use crate::experiment::{Axis, Experiment, Origin, Report, Role};

pub(super) const EXPERIMENT: Experiment = Experiment {
    id: "table3",
    title: "latency against payload, four primitives",
    rows: "C-49",
    run,
};

/// Payloads of Table 3 up to the limit of a NAP, in bytes, then those of PUT and GET. The paper
/// misprints three of these (10284, 51036, 262116): its own latencies only fit the powers of two.
pub const PAYLOADS: [u64; 10] = [1, 64, 256, 1024, 2048, 4096, 16384, 65536, 262_144, 1_048_576];

/// Latencies of Table 3 in microseconds, by kind and payload.
pub const PUBLISHED: [&[f64]; 4] = [
    &[1.242, 1.254, 1.458, 2.514, 3.922],
    &[1.846, 1.862, 2.018, 2.858, 3.978],
    &[1.762, 1.778, 1.838, 2.078, 2.398, 3.054, 6.894, 22.254, 83.694, 329.454],
    &[1.838, 1.854, 1.914, 2.154, 2.474, 3.13, 6.97, 22.33, 83.77, 329.53],
];

fn run(report: &mut Report) -> Result<(), String> {
    let config = Config::prototype();
    let mut latencies = Vec::new();
    for (kind, published) in Kind::ALL.into_iter().zip(PUBLISHED) {
        let mut of_kind = Vec::new();
        for (bytes, published) in PAYLOADS.into_iter().zip(published) {
            let latency = single(&config, kind, bytes)?.latency.as_ns() / 1e3;
            of_kind.push(latency);
            let fitted = kind == Kind::NapImmediate && bytes == 1;
            let role = if fitted { Role::Calibrated } else { Role::Predicted };
            let value = report.value(
                format!("{}, {bytes} B", kind.name()),
                "us",
                role,
                latency,
                Some(*published),
            );
            value.explain(match kind {
                Kind::NapImmediate | Kind::NapIndirect => {
                    "From 1 B to 64 B the paper's NAP grows by 3 or 4 cycles. Its data passes the wires twice, the bus, the descriptor path (8 B a \
                     cycle) and the crossbar, each time as a whole; we count all of them, 19 cycles for an immediate NAP."
                }
                Kind::Put | Kind::Get => {
                    "From 1 B to 128 B a completion and a write grow by 32 ns each on the wires, which the paper's row does not show: it is \
                     exactly 10 cycles for 128 B and nothing else, also for less than 128 B, as if wires and memory passed bytes on \
                     before a packet is checked."
                }
            });
        }
        latencies.push(of_kind);
    }
    let figure = report.figure(
        "Table 3: latency against payload",
        Axis::logarithmic("payload", "B"),
        Axis::logarithmic("latency", "us"),
    );
    for (kind, (of_kind, published)) in Kind::ALL.into_iter().zip(latencies.iter().zip(PUBLISHED)) {
        let points = |of: &[f64]| PAYLOADS.map(|bytes| bytes as f64).into_iter().zip(of.to_vec());
        figure.series(kind.name(), Origin::Model, points(of_kind));
        figure.series(kind.name(), Origin::Published, points(published));
    }
    let slope = |of: &[f64]| (of[4] - of[3]) / 1024.0 * 1e3;
    for (kind, (of_kind, published)) in
        Kind::ALL.into_iter().zip(latencies.iter().zip([1.375, 1.0938, 0.3125, 0.3125]))
    {
        let name = format!("{}, slope from 1024 to 2048 B", kind.name());
        report.value(name, "ns/B", Role::Predicted, slope(of_kind), Some(published));
    }
    let get_over_put = (latencies[3][0] - latencies[2][0]) * 1e3;
    report.value("GET above PUT, 1 B", "ns", Role::Predicted, get_over_put, Some(76.0)).explain(
        "A GET's way to the far send engine is packer, crossbar, dispatch, extract: 23 cycles here, 19 in the paper. That it is so few in \
         the paper too speaks for the trip being inside of one controller.",
    );
    let at_1 = |kind: usize| latencies[kind][0];
    report
        .claim("at 1 B: NAP immediate < PUT < GET < NAP indirect", at_1(0) < at_1(2) && at_1(2) < at_1(3) && at_1(3) < at_1(1))
        .explain(
            "NAP immediate is first and PUT before GET, but an indirect NAP is as fast as a PUT here. The paper gives it one more memory read, \
             for its slot address; a read would cost 130 cycles, its table shows 21, and with prefetched slots (Fig. 17) it costs none.",
        );
    // The second reading: data from memory streams through the packer, as a PUT's does.
    let mut streaming = config;
    streaming.nic.nap_in_one_piece = false;
    let at = |bytes| single(&streaming, Kind::NapIndirect, bytes).map(|run| run.latency.as_ns());
    let slope = (at(2048)? - at(1024)?) / 1024.0;
    report.note(format!(
        "Second reading, an indirect NAP streams through the packer instead of being gathered in it: it grows by {slope:.4} ns/B."
    ));
    without_effect(report, "any primitive with 64 B", &Config::prototype(), |config| {
        Kind::ALL
            .map(|kind| single(config, kind, 64).map(|run| run.latency))
            .into_iter()
            .collect::<Result<Vec<_>, _>>()
    })?;
    report.note(
        "That a NAP moves from stage to stage in one piece was chosen knowing the paper's slopes, which nothing else in it explains; with that, \
         44 and 36 cycles for 128 B follow from the widths of the buses (paper: 44 and 35).",
    );
    report.note(
        "The clock starts when the processor begins with the descriptor (Oc, 200 ns) and stops when the receiver's event is visible. If it \
         started at the doorbell, two posted writes would have to take longer than a read, which goes both ways.",
    );
    Ok(())
}
