//! Fig. 7 and the recommendation (S-29, S-30): two channels with a receive buffer each, one replay
//! buffer.

use super::run_length::{FOR_EVER, RunLength, run_length, run_lengths, run_lengths_of};
use super::{LENGTH_AXIS, LENGTHS_DW, RUN_AXIS, Report};
use crate::experiment::{Experiment, Origin, of_seeds};
use crate::smp::bench::Lengths;
use crate::smp::config::Config;
use crate::smp::network::LONGEST_COHERENCE_DW;
use crate::smp::transport::Stall;
use crate::units::Bytes;

pub(super) const EXPERIMENT: Experiment = Experiment {
    id: "fig7",
    title: "packets before a stall, two channels, and the recommended setting",
    rows: "S-17, S-26, S-29, S-30",
    published: super::PUBLISHED,
    run,
};

/// Packets of each length on each channel, for the recommended setting.
const PACKETS: u64 = 20_000;

/// Seeds of a mix of these lengths.
const MIXES: usize = 30;

/// Packets of a mix on each channel.
const MIXED: u64 = 2_000;

fn run(report: &mut Report) -> Result<(), String> {
    let base = Config::recommended();
    let replay = |kilobytes: u64, config: Config| Config {
        replay_buffer: Bytes::new(kilobytes << 10),
        ..config
    };
    let optimised = base.clone().with_optimised_credits(2, 32);
    let larger = base.clone().with_default_credits(4);
    let settings = [
        ("(2K, 2K) optimised", replay(2, optimised.clone())),
        ("(4K, 2K) optimised", replay(4, optimised.clone())),
        ("(4K, 4K) default", replay(4, larger.clone())),
        ("(4K, 4K) optimised", replay(4, Config { headers: 32, data: 192, ..larger })),
        ("(2K, 2K) default", replay(2, base.clone().with_default_credits(2))),
    ];
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
    let for_ever = |setting: usize, from: usize, to: usize| {
        runs[setting][from..to].iter().all(|run| run.is_for_ever())
    };
    let stops = |setting: usize, at: usize, lacks: Stall| {
        let run = runs[setting][at];
        !run.is_for_ever() && run.lacks == Some(lacks)
    };
    report.claim("(2K, 2K): below 32 DW more than 64 packets go", for_ever(0, 0, 5));
    report.claim(
        "(2K, 2K): 64 and 128 DW stop, for the replay buffer first",
        stops(0, 6, Stall::Replay) && stops(0, 7, Stall::Replay),
    );
    report.claim("(4K, 2K): 64 DW, more than 64 packets go", for_ever(1, 6, 7));
    report.claim("(4K, 4K): 128 DW still stop, for data credits", stops(2, 7, Stall::Data));
    report.claim(
        "(4K, 4K) with 192 data credits: 128 DW, more than 64 packets go (calibrated)",
        for_ever(3, 7, 8),
    );
    let figure = report.figure("Fig. 7: two channels, (replay, receive)", LENGTH_AXIS, RUN_AXIS);
    for ((name, _), runs) in settings.iter().zip(&runs) {
        let points = LENGTHS_DW.into_iter().zip(runs);
        figure.series(*name, Origin::Model, points.map(|(x, run)| (x as f64, run.capped())));
    }
    let recommended = Config::recommended();
    report.value("recommended, header credits", "1", recommended.headers.into());
    report.value("recommended, data credits", "1", recommended.data.into());
    let storage = recommended.receive_buffer().count() as f64;
    report.value("recommended, receive buffer of a channel", "B", storage);
    let mut stalled = 0;
    for length_dw in 1..=LONGEST_COHERENCE_DW {
        let run = run_lengths(&recommended, Lengths::Fixed(length_dw), PACKETS)?;
        stalled += u64::from(run.packets.is_some());
    }
    report.value("recommended, lengths of 1 to 16 DW that stalled", "1", stalled as f64);
    let channels = u64::from(recommended.channels);
    // These runs draw nothing, and packets of a run depend on each other: they are no tries.
    let claim = format!(
        "recommended: no length that coherence uses (up to 16 DW) stalls in {} packets",
        PACKETS * channels
    );
    report.claim(claim, stalled == 0);
    let mixes =
        of_seeds(MIXES, |seed| run_lengths_of(&recommended, Lengths::Coherence, MIXED, seed))?;
    let stalled = mixes.iter().filter(|run| run.packets.is_some()).count();
    let claim = format!(
        "recommended: a random mix of these lengths does not stall in {} packets",
        MIXED * channels
    );
    report.claim_of(claim, stalled as f64, stalled == 0).tries = Some(MIXES as u64);
    let ends = settings.iter().zip(&runs).flat_map(|((name, _), runs)| {
        let runs = LENGTHS_DW.into_iter().zip(runs);
        runs.filter_map(move |(length_dw, run)| {
            let packets = run.packets.filter(|packets| *packets > FOR_EVER)?;
            Some(format!("{name} at {length_dw} DW after {packets}"))
        })
    });
    let ends: Vec<String> = ends.collect();
    report.note(format!(
        "The paper counts more than {FOR_EVER} packets as sending for ever, and so do the claims. \
         Of {} packets, these runs stop later than that: {}.",
        4 * FOR_EVER,
        ends.join("; ")
    ));
    Ok(())
}
