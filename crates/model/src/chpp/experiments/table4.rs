//! Table 4 (C-52, B-06): bandwidth and latency of the model among the other networks of the paper's
//! table.

use super::Kind;
use super::single::single;
use super::stream::stream;
use crate::chpp::Config;
use crate::experiment::Report;

/// Networks of Table 4 with their bandwidth in GB/s and latency in microseconds. InfiniBand's
/// bandwidth is printed as an upper bound.
pub const OTHERS: [(&str, f64, f64); 6] = [
    ("InfiniBand QDR", 3.2, 1.0),
    ("Cray Gemini", 6.1, 1.0),
    ("Cray Aries", 9.5, 1.2),
    ("BlueGene/Q", 2.0, 2.5),
    ("PEARL", 1.1, 1.2),
    ("Dolphin Express", 1.27, 14.0),
];

pub(super) fn run(report: &mut Report) -> Result<(), String> {
    let config = Config::prototype();
    let bandwidth = stream(&config, Kind::Put, 524_288, 32, 40)?.gigabytes_s;
    let latency = single(&config, Kind::NapImmediate, 1)?.latency.as_ns() / 1e3;
    report.value("cHPP, bandwidth", "GB/s", bandwidth);
    report.value("cHPP, latency", "us", latency);
    for (name, bandwidth, latency) in OTHERS {
        report.note(format!(
            "As published, for comparison: {name:<16} {bandwidth:>5} GB/s {latency:>5} us"
        ));
    }
    let faster = OTHERS.iter().filter(|(_, of_other, _)| *of_other > bandwidth).count();
    let published = OTHERS.iter().filter(|(_, of_other, _)| *of_other > 3.19).count();
    report.claim(
        "as many of the other networks have more bandwidth as in the paper",
        faster == published,
    );
    Ok(())
}
