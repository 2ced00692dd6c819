//! The traffic that the paper found in programs and designed for (2.2; M-31), on all systems.

use super::{MESSAGES, ROUNDS, SEED, paper};
use crate::engine::Random;
use crate::experiment::{Axis, Origin, Report};
use crate::myvia::programs::{LONGEST_OF_MIX, Lengths, Places, ping_pong, window};
use crate::network::Sizes;

pub(super) fn run(report: &mut Report) -> Result<(), String> {
    let mut random = Random::new(SEED);
    let drawn: Vec<u64> = (0..100_000).map(|_| Sizes::draw_bytes(&mut random)).collect();
    let share = |low: u64, high: u64| {
        let inside = drawn.iter().filter(|bytes| (low..=high).contains(*bytes)).count();
        inside as f64 / drawn.len() as f64 * 100.0
    };
    report.value("messages of 128 to 4096 B", "%", share(128, 4096));
    report.value("messages above 8192 B", "%", share(8193, u64::MAX));
    let mut rates = Vec::new();
    let mut points = Vec::new();
    for (place, name) in
        ["myvia-a", "berkeley-a", "m-via-100", "myvia-b", "berkeley-b", "gm-b", "m-via-gigabit"]
            .into_iter()
            .enumerate()
    {
        let setup = paper(name)?;
        let mix = |most| {
            window(&setup, Lengths::Mix(Random::new(SEED), most), Places::Reused, MESSAGES, SEED)
        };
        let (flow, up_to_a_page) = (mix(LONGEST_OF_MIX)?, mix(4096)?.megabytes_per_second);
        let delay =
            ping_pong(&setup, Lengths::Mix(Random::new(SEED), LONGEST_OF_MIX), ROUNDS, SEED)?;
        let rate = flow.megabytes_per_second;
        report.value(format!("{name}: bandwidth, of the mix up to 4096 B"), "MB/s", up_to_a_page);
        report.value(format!("{name}: bandwidth"), "MB/s", rate);
        report.value(format!("{name}: messages"), "1000/s", flow.messages_per_second / 1e3);
        let mean = delay.as_ns() / 1e3;
        report.value(format!("{name}: mean time one way"), "us", mean);
        rates.push((rate, up_to_a_page));
        points.push((place as f64, rate));
    }
    for (name, myvia, berkeley) in [("LANai4", rates[0], rates[1]), ("LANai9", rates[3], rates[4])]
    {
        let what = format!("{name}: MyVIA carries messages up to 4096 B faster than Berkeley VIA");
        report.claim_of(what, myvia.1 / berkeley.1, myvia.1 > berkeley.1);
        let what = format!("{name}: MyVIA carries the mix faster than Berkeley VIA");
        report.claim_of(what, myvia.0 / berkeley.0, myvia.0 > berkeley.0);
    }
    report.claim(
        "LANai9: GM carries the mix at least as fast as MyVIA",
        rates[5].0 >= rates[3].0 * 0.999,
    );
    let figure = report.figure(
        "The mix: bandwidth of myvia-a, berkeley-a, m-via-100, myvia-b, berkeley-b, gm-b, m-via-gigabit",
        Axis::linear("system", ""),
        Axis::linear("bandwidth", "MB/s"),
    );
    figure.series("window of 2000 messages", Origin::Model, points);
    Ok(())
}
