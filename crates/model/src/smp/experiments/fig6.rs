//! Fig. 6 (S-25 to S-28): packets before a stall by length and receive buffer, one channel, replay
//! buffer 2 KB.

use super::run_length::{FOR_EVER, RunLength, run_length, run_lengths};
use super::{LENGTH_AXIS, LENGTHS_DW, RUN_AXIS, Report};
use crate::experiment::{Experiment, Origin};
use crate::smp::bench::Lengths;
use crate::smp::config::Config;
use crate::smp::transport::Stall;

pub(super) const EXPERIMENT: Experiment = Experiment {
    id: "fig6",
    title: "packets before a stall, one channel",
    rows: "S-25, S-26, S-27, S-28",
    published: super::PUBLISHED,
    run,
};

/// Packets of 32 DW, to see which runs above [`FOR_EVER`] have an end.
const LONGER: u64 = 4000;

fn run(report: &mut Report) -> Result<(), String> {
    let base = Config { channels: 1, ..Config::recommended() };
    let settings = [
        ("2 KB default", base.clone().with_default_credits(2)),
        ("4 KB default", base.clone().with_default_credits(4)),
        ("8 KB default", base.clone().with_default_credits(8)),
        ("2 KB optimised", base.with_optimised_credits(2, 32)),
    ];
    for (name, config) in &settings {
        let (h, d) = (config.headers.into(), config.data.into());
        report.value(format!("{name}, header credits"), "1", h);
        report.value(format!("{name}, data credits"), "1", d);
    }
    let mut runs: Vec<Vec<RunLength>> = Vec::new();
    for (name, config) in &settings {
        let mut of_setting = Vec::new();
        for length_dw in LENGTHS_DW {
            let run = run_length(config, length_dw)?;
            let what = format!("{name}, {length_dw} DW: {}", run.ending());
            report.value(what, "packets", run.capped());
            of_setting.push(run);
        }
        runs.push(of_setting);
    }
    let figure = report.figure("Fig. 6: one channel, by receive buffer", LENGTH_AXIS, RUN_AXIS);
    for ((name, _), runs) in settings.iter().zip(&runs) {
        let points = LENGTHS_DW.into_iter().zip(runs);
        figure.series(*name, Origin::Model, points.map(|(x, run)| (x as f64, run.capped())));
    }
    let [small, middle, large, optimised] = runs.as_slice() else { unreachable!("four settings") };
    let short = &small[2..4];
    report.claim(
        "2 KB: header credits limit below 16 DW",
        short.iter().all(|run| run.lacks == Some(Stall::Headers)),
    );
    report.claim(
        "2 KB: data credits limit above 16 DW",
        small[5..].iter().all(|run| run.lacks == Some(Stall::Data)),
    );
    let sent = |run: &RunLength| run.packets.unwrap_or(u64::MAX);
    let no_fewer = |less: &[RunLength], more: &[RunLength]| {
        less.iter().zip(more).all(|(less, more)| sent(less) <= sent(more))
    };
    report
        .claim("more buffer, no fewer packets", no_fewer(small, middle) && no_fewer(middle, large));
    let falls = small[5..].windows(2).all(|pair| pair[0].capped() > pair[1].capped());
    report.claim("2 KB: beyond that, it falls with the length", falls);
    report.claim(
        "32 DW: a stall at 2 KB for data credits, more than 64 packets go from 4 KB on",
        small[5].lacks == Some(Stall::Data)
            && [middle, large, optimised].iter().all(|of| of[5].is_for_ever()),
    );
    let go = |of: &[RunLength]| of[..6].iter().all(|run| run.is_for_ever());
    report.claim(
        "2 KB optimised beside 8 KB: up to 32 DW more than 64 packets go with both",
        go(large) && go(optimised),
    );
    report.claim(
        "2 KB optimised beside 8 KB: 64 DW stop after as many",
        !large[6].is_for_ever() && large[6] == optimised[6],
    );
    let mut ends = Vec::new();
    for (name, config) in &settings[1..] {
        let end = run_lengths(config, Lengths::Fixed(32), LONGER)?.packets;
        ends.push(match end {
            Some(packets) => format!("{name} stops after {packets}"),
            None => format!("{name} does not stop"),
        });
    }
    report.note(format!(
        "{} means more than {FOR_EVER}, which the paper calls sending for ever. The receiving \
         network layer takes packets of 32 DW a little slower than the line brings them, so that \
         such a run may have an end all the same. Of {LONGER} packets of 32 DW: {}.",
        FOR_EVER + 1,
        ends.join("; ")
    ));
    Ok(())
}
