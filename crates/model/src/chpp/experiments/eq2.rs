//! Eq. 2 (C-46): how many tags make reads never wait for one. Compares the formula with the
//! smallest number that the model needs.

use super::Kind;
use super::fig15::with_mtu;
use super::stream::stream;
use crate::chpp::Config;
use crate::experiment::{Axis, Origin, Report};
use crate::units::Bytes;

/// Size of a read, and the MTU, in bytes.
const CASES: [(u64, u64); 7] =
    [(64, 64), (128, 128), (256, 128), (256, 256), (512, 128), (512, 512), (1024, 128)];

/// Additional memory latency, in cycles: reads of about 130, 320, 500 and 1000 cycles.
const LATER: [u64; 4] = [0, 190, 370, 870];

/// Bytes of the measured PUT.
const MOVED: u64 = 512 << 10;

/// Number of tags by Eq. 2, without its cap of 32: `t` cycles from taking a tag to the last
/// completion, reads of `size` bytes.
pub fn tags_by_formula(t: f64, size: u64, mtu: u64) -> u64 {
    let service = size / 16 + 2 * size.div_ceil(mtu);
    (t / service as f64).ceil() as u64
}

fn config(size: u64, mtu: u64, later: u64, tags: usize) -> Config {
    let mut config = with_mtu(mtu);
    config.pcie.read_request = Bytes::new(size);
    config.host.memory_latency += config.nic.cycle() * later;
    config.nic.tags = tags;
    config.nic.reorder = Bytes::new(1 << 20);
    config.pcie.non_posted_headers = 256;
    config
}

pub(super) fn run(report: &mut Report) -> Result<(), String> {
    let mut exact = 0;
    let mut near = 0;
    let mut cases = 0;
    let mut curves = Vec::new();
    for (size, mtu) in CASES {
        let mut found = Vec::new();
        for later in LATER {
            let rate = |tags: u64| {
                stream(&config(size, mtu, later, tags as usize), Kind::Put, MOVED, 1, 1)
                    .map(|stream| stream.gigabytes_s)
            };
            // With one tag, reads do not wait for each other, and t is the time of a read.
            let t =
                stream(&config(size, mtu, later, 1), Kind::Put, 8 * size, 1, 1)?.round_trip_cycles;
            let formula = tags_by_formula(t, size, mtu);
            let enough = rate(256)?;
            let mut least = formula.saturating_sub(3).max(1);
            while least < 256 && rate(least)? < 0.995 * enough {
                least += 1;
            }
            found.push((t, least as f64, formula as f64));
            cases += 1;
            exact += u64::from(least == formula);
            near += u64::from(least.abs_diff(formula) <= 1);
            let what = format!("reads of {size} B, MTU {mtu} B, t = {t:.0} cycles");
            // One tag of the formula's number, in percent.
            let one_tag = 100.0 / formula as f64;
            report.value(what, "tags", least as f64).beside(formula as f64).explain_within(
                one_tag * 1.001,
                "Compared with the formula, not with a measurement. One tag more or less: t is the time of a read that finds everything \
                 idle, and a tag is free again only when the last completion has passed the bus, which the formula counts too.",
            );
        }
        curves.push((format!("{size} B, MTU {mtu} B"), found));
    }
    let figure = report.figure(
        "Eq. 2: tags that are needed",
        Axis::linear("time of a read", "cycles"),
        Axis::linear("tags", ""),
    );
    for (name, found) in curves {
        figure.series(&name, Origin::Formula, found.iter().map(|&(t, _, formula)| (t, formula)));
        figure.series(&name, Origin::Model, found.iter().map(|&(t, least, _)| (t, least)));
    }
    report.claim(format!("the least number of tags without a stall is the formula's, within 1 ({near} of {cases}; exactly: {exact})"), near == cases);
    report.vary("the rate of reads of 128 B with 8 tags", &config(128, 128, 0, 8), |config| {
        stream(config, Kind::Put, 32768, 1, 1).map(|stream| stream.gigabytes_s)
    })
}
