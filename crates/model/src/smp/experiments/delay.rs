//! Transfer delay by length: store-and-forward against cut-through, with one and two channels (S-20
//! to S-22, B-19; 4.2(1), Fig. 5).

use super::{LENGTH_AXIS, LENGTHS_DW, Report};
use crate::experiment::{Axis, Experiment, Origin, Sensitivity};
use crate::sensitivity;
use crate::smp::bench::{Lengths, Machine};
use crate::smp::config::{Config, Receive};
use crate::units::{Span, Time};

pub(super) const EXPERIMENT: Experiment = Experiment {
    id: "fig5",
    title: "transfer delay against length",
    rows: "S-20, S-21, S-22, B-19",
    published: super::PUBLISHED,
    run,
};

/// Buffers large enough that nothing blocks.
pub(super) fn roomy(receive: Receive, channels: u8) -> Config {
    let replay_buffer = "64 KiB".parse().expect("a size");
    let base = Config::recommended();
    Config { receive, channels, headers: 127, data: 2000, replay_buffer, ..base }
}

/// Mean delay in ns of `packets` packets back to back on each channel. It runs from the first flit
/// at the sender's network layer to the last flit at the receiver's.
fn delay(receive: Receive, channels: u8, length_dw: usize, packets: u64) -> Result<f64, String> {
    delay_of(&roomy(receive, channels), length_dw, packets)
}

pub(super) fn delay_of(config: &Config, length_dw: usize, packets: u64) -> Result<f64, String> {
    let mut running = Machine::new(config, 1);
    for channel in 0..config.channels {
        running.stimulate(0, channel, Lengths::Fixed(length_dw), packets);
    }
    running.run(Time::ZERO + Span::from_ns(1_000_000));
    if running.model.mismatches > 0 || running.missing() > 0 {
        return Err(format!("{length_dw} DW: packets were lost"));
    }
    Ok(running.model.link.end(1).receive.delays.mean() / 1000.0)
}

/// A curve over [`LENGTHS_DW`].
fn points(values: impl Iterator<Item = f64>) -> Vec<(f64, f64)> {
    LENGTHS_DW.into_iter().map(|length_dw| length_dw as f64).zip(values).collect()
}

fn run(report: &mut Report) -> Result<(), String> {
    let policies = [("SF", Receive::StoreAndForward), ("CT", Receive::CutThrough)];
    let mut single = Vec::new();
    let mut curves = Vec::new();
    for (name, receive) in policies {
        let mut of_policy = Vec::new();
        for length_dw in LENGTHS_DW {
            let reached = delay(receive, 1, length_dw, 1)?;
            let what = format!("{name}, {length_dw} DW");
            report.value(what, "ns", reached);
            of_policy.push(reached);
        }
        let over = |values: &[f64]| points(values.iter().copied());
        curves.push((format!("{name}, one channel"), Origin::Model, over(&of_policy)));
        single.push(of_policy);
    }
    let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len() as f64;
    for ((name, _), of_policy) in policies.iter().zip(&single) {
        let what = format!("{name}, mean over 1, 2, 4 .. 128 DW");
        report.value(what, "ns", mean(of_policy));
        let what = format!("{name}, mean over 4, 8 .. 128 DW");
        let shorter = mean(&of_policy[2..]);
        report.value(what, "ns", shorter);
    }
    report.value("physical layer's part", "ns", 50.0);
    let slope = |of: &[f64]| (of[7] - of[4]) / 112.0;
    report.value("SF, slope from 16 to 128 DW", "ns/DW", slope(&single[0]));
    report.value("CT, slope from 16 to 128 DW", "ns/DW", slope(&single[1]));
    let lower = single[0].iter().zip(&single[1]).all(|(sf, ct)| ct < sf);
    let gains: Vec<f64> = single[0].iter().zip(&single[1]).map(|(sf, ct)| sf - ct).collect();
    let grows = gains[2..].windows(2).all(|pair| pair[0] < pair[1]);
    report.claim("CT is lower than SF, the more so the longer the packet", lower && grows);
    // S-22: with both channels in use.
    for (name, receive) in policies {
        let mut extra = Vec::new();
        for (at, length_dw) in LENGTHS_DW.into_iter().enumerate() {
            let with_two = delay(receive, 2, length_dw, 1)?;
            let what = format!("{name}, {length_dw} DW, a packet on each channel at once");
            report.value(what, "ns", with_two);
            extra.push(with_two - single[usize::from(receive == Receive::CutThrough)][at]);
        }
        let with_two = single[usize::from(receive == Receive::CutThrough)].iter().zip(&extra);
        let with_two = points(with_two.map(|(one, wait)| one + wait));
        curves.push((format!("{name}, two channels"), Origin::Model, with_two));
        let waits = extra.iter().all(|wait| *wait > 0.0);
        let grows = extra[2..].windows(2).all(|pair| pair[0] < pair[1]);
        report.claim(format!("{name}: with two channels there is an extra wait"), waits);
        report.claim(format!("{name}: it grows with the length"), grows);
    }
    let y = Axis::linear("transfer delay", "ns");
    let figure = report.figure("Fig. 5: transfer delay", LENGTH_AXIS, y);
    for (name, origin, points) in curves {
        figure.series(name, origin, points);
    }
    for (name, receive) in policies {
        let in_a_row = delay(receive, 1, 32, 16)?;
        let what = format!("{name}, 32 DW, 16 packets back to back");
        report.value(what, "ns", in_a_row);
    }
    report.sensitivity.push(sensitivity()?);
    Ok(())
}

/// Varies the parameters of a stream of packets on each channel, in the recommended setting.
///
/// # Errors
/// A sentence, if packets are lost.
pub fn sensitivity() -> Result<Sensitivity, String> {
    sensitivity::sensitivity(
        "50 packets of 32 DW on each channel",
        &Config::recommended(),
        |config| delay_of(config, 32, 50),
    )
}
