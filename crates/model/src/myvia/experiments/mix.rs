//! The traffic that the paper found in programs and designed for (2.2; M-31), on all systems.

use super::{MESSAGES, ROUNDS, paper};
use crate::engine::Random;
use crate::experiment::{Axis, Report, of_each_seed};
use crate::myvia::programs::{LONGEST_OF_MIX, Lengths, Places, ping_pong, window};
use crate::network::Sizes;
use crate::stats::over_seeds;

/// Lengths that are drawn with each seed, to compare their shares with the paper's.
const DRAWN: usize = 100_000;

pub(super) fn run(report: &mut Report) -> Result<(), String> {
    let share = |low: u64, high: u64| {
        of_each_seed(|seed| {
            let mut random = Random::new(seed);
            let inside =
                (0..DRAWN).filter(|_| (low..=high).contains(&Sizes::draw_bytes(&mut random)));
            Ok(inside.count() as f64 / DRAWN as f64 * 100.0)
        })
    };
    report.drawn("messages of 128 to 4096 B", "%", &share(128, 4096)?);
    report.drawn("messages above 8192 B", "%", &share(8193, u64::MAX)?);
    let mut rates = Vec::new();
    let mut points = Vec::new();
    for (place, name) in
        ["myvia-a", "berkeley-a", "m-via-100", "myvia-b", "berkeley-b", "gm-b", "m-via-gigabit"]
            .into_iter()
            .enumerate()
    {
        let setup = paper(name)?;
        let mix = |most| {
            of_each_seed(|seed| {
                let lengths = Lengths::Mix(Random::new(seed), most);
                let flow = window(&setup, lengths, Places::Reused, MESSAGES, seed)?;
                Ok([flow.megabytes_per_second, flow.messages_per_second / 1e3])
            })
        };
        let (flows, up_to_a_page) = (mix(LONGEST_OF_MIX)?, mix(4096)?);
        let draws = |flows: &[[f64; 2]], of: usize| -> Vec<f64> {
            flows.iter().map(|flow| flow[of]).collect()
        };
        let delays = of_each_seed(|seed| {
            let lengths = Lengths::Mix(Random::new(seed), LONGEST_OF_MIX);
            Ok(ping_pong(&setup, lengths, ROUNDS, seed)?.as_ns() / 1e3)
        })?;
        let (rate, up_to_a_page) = (draws(&flows, 0), draws(&up_to_a_page, 0));
        report.drawn(format!("{name}: bandwidth, of the mix up to 4096 B"), "MB/s", &up_to_a_page);
        let found = report.drawn(format!("{name}: bandwidth"), "MB/s", &rate).estimate();
        report.drawn(format!("{name}: messages"), "1000/s", &draws(&flows, 1));
        report.drawn(format!("{name}: mean time one way"), "us", &delays);
        rates.push((rate, up_to_a_page));
        points.push((place as f64, found));
    }
    // Both systems get the same messages with a seed, so that each seed gives a ratio.
    let ratio = |one: &[f64], other: &[f64]| {
        over_seeds(&one.iter().zip(other).map(|(one, other)| one / other).collect::<Vec<f64>>())
    };
    for (name, myvia, berkeley) in
        [("LANai4", &rates[0], &rates[1]), ("LANai9", &rates[3], &rates[4])]
    {
        let what = format!("{name}: MyVIA carries messages up to 4096 B faster than Berkeley VIA");
        let short = ratio(&myvia.1, &berkeley.1);
        report.claim_of(what, short.mean, short.is_above(1.0));
        let what = format!("{name}: MyVIA carries the mix faster than Berkeley VIA");
        let all = ratio(&myvia.0, &berkeley.0);
        report.claim_of(what, all.mean, all.is_above(1.0));
    }
    report.claim(
        "LANai9: GM carries the mix at least as fast as MyVIA",
        ratio(&rates[5].0, &rates[3].0).is_above(0.999),
    );
    let figure = report.figure(
        "The mix: bandwidth of myvia-a, berkeley-a, m-via-100, myvia-b, berkeley-b, gm-b, m-via-gigabit",
        Axis::linear("system", ""),
        Axis::linear("bandwidth", "MB/s"),
    );
    figure.drawn("window of 2000 messages", points);
    Ok(())
}
