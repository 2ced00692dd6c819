//! The cost of other protocols in the same machine: longer headers (B-04) and conversion between
//! bus and network (B-05).

use super::Kind;
use super::single::single;
use super::stream::stream;
use crate::chpp::Config;
use crate::chpp::journal::Stage;
use crate::experiment::Report;
use crate::units::Bytes;

/// Headers, and their networks (3.2).
const HEADERS: [(u64, &str); 3] =
    [(16, "cHPP"), (32, "BlueGene/Q and Tofu"), (94, "InfiniBand at most")];

fn with_header(bytes: u64) -> Config {
    let mut config = Config::prototype();
    config.nic.packet_header = Bytes::new(bytes);
    config
}

pub(super) fn run(report: &mut Report) -> Result<(), String> {
    let mut reached = Vec::new();
    for (bytes, whose) in HEADERS {
        let run = stream(&with_header(bytes), Kind::Put, 2 << 20, 1, 1)?;
        let name = format!("PUT of 2 MiB, header of {bytes} B ({whose})");
        report.value(name, "GB/s", run.gigabytes_s);
        report.note(format!("Header of {bytes} B: busiest is {}.", run.limit));
        // 128 B of data, the header and an engine cycle, at 16 B a cycle.
        let formula = 4.0 * 128.0 / (128.0 + bytes.next_multiple_of(16) as f64 + 16.0);
        report
            .value(format!("the same, beats of the crossbar ({bytes} B)"), "GB/s", formula)
            .by_formula();
        reached.push((run.gigabytes_s, formula));
    }
    report.claim(
        "on the same link, a longer header leaves less bandwidth",
        reached.windows(2).all(|pair| pair[1].0 < pair[0].0),
    );
    report.claim(
        "and it is what the beats leave, within 2 %",
        reached.iter().all(|(model, formula)| (model / formula - 1.0).abs() < 0.02),
    );

    let plain = Config::prototype();
    let mut converting = plain.clone();
    converting.nic.conversion = true;
    // Packets in conversion occupy the receive buffer.
    converting.crossbar.receive_packets *= 2;
    let mut both_ends = true;
    for bytes in [1, 128, 4096] {
        let [direct, converted] =
            [&plain, &converting].map(|config| single(config, Kind::Put, bytes));
        let (direct, converted) = (direct?, converted?);
        for (name, run) in [("one protocol", &direct), ("converted", &converted)] {
            let what = format!("PUT of {bytes} B, {name}");
            report.value(what, "ns", run.latency.as_ns());
        }
        let more = |stage| {
            converted.explanation.time_in(stage).as_ns() - direct.explanation.time_in(stage).as_ns()
        };
        let (packing, unpacking) = (more(Stage::Packer), more(Stage::Dispatch));
        for (name, more) in [("packing", packing), ("unpacking", unpacking)] {
            report.value(format!("of that {name}, {bytes} B"), "ns", more);
        }
        both_ends &= packing > 0.0 && unpacking > 0.0;
    }
    report.claim("packing and unpacking add delay at both ends", both_ends);
    let rate =
        |config: &Config| stream(config, Kind::Put, 2 << 20, 1, 1).map(|run| run.gigabytes_s);
    report.value("PUT of 2 MiB, converted", "GB/s", rate(&converting)?);
    report.vary("a converted PUT of 4 KiB", &converting, |config| {
        single(config, Kind::Put, 4096).map(|run| run.latency)
    })
}
