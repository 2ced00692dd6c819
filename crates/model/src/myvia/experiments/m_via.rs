//! VIA on the host (B-16; 4): M-VIA over Ethernet of 100 Mb/s and 1 Gb/s, with a system call for
//! each post and interrupts.

use super::{LENGTHS, MESSAGES, SEED, latency_us, paper};
use crate::experiment::{Axis, Origin, Report};
use crate::myvia::Setup;
use crate::myvia::programs::{Lengths, Places, ping_pong, window};

/// Interrupts of the receiver per message, for messages sent one at a time.
fn interrupts_each(setup: &Setup, length: u32) -> Result<f64, String> {
    let flow = window(setup, Lengths::Fixed(length), Places::Reused, 1, SEED)?;
    Ok(flow.running.model.nodes[1].processor.counts.frame_interrupts as f64)
}

pub(super) fn run(report: &mut Report) -> Result<(), String> {
    let slow = paper("m-via-100")?;
    let fast = paper("m-via-gigabit")?;
    report.value("100 Mb/s, one way, 4 B", "us", latency_us(&slow, 4)?);
    let message = Axis::logarithmic("message", "B");
    let rate = Axis::linear("bandwidth", "MB/s");
    let mut curves = Vec::new();
    for (name, setup) in [("100 Mb/s", &slow), ("1 Gb/s", &fast)] {
        let (mut sent, mut came) = (Vec::new(), Vec::new());
        for length in LENGTHS {
            let flow = window(setup, Lengths::Fixed(length), Places::Reused, MESSAGES, SEED)?;
            let share = flow.program.received as f64 / MESSAGES as f64;
            sent.push((f64::from(length), flow.megabytes_per_second));
            came.push((f64::from(length), flow.megabytes_per_second * share));
        }
        let peak = came.iter().map(|point| point.1).fold(0.0, f64::max);
        report.value(format!("{name}, peak"), "MB/s", peak);
        curves.push((name, sent, came));
    }
    let figure = report.figure("M-VIA: bandwidth", message, rate);
    for (name, sent, came) in curves {
        figure.series(format!("{name}, sent"), Origin::Model, sent);
        figure.series(format!("{name}, received"), Origin::Model, came);
    }
    report.value("100 Mb/s, peak over the link", "%", report.values[1].model / 12.5 * 100.0);
    report.value("1 Gb/s, peak over the link", "%", report.values[2].model / 125.0 * 100.0);
    for (length, frames) in [(4, 1.0), (1484, 1.0), (4096, 3.0)] {
        let what = format!("interrupts for a message of {length} B, {frames} frames");
        report.value(what, "1", interrupts_each(&slow, length)?);
    }
    let alone = interrupts_each(&slow, 4)? >= 1.0;
    report.claim("at least one interrupt for a message that comes alone", alone);
    let base = ping_pong(&slow, Lengths::Fixed(4), 100, SEED)?;
    let mut without = slow.clone();
    without.software.interrupt = crate::units::Span::ZERO;
    let polled = ping_pong(&without, Lengths::Fixed(4), 100, SEED)?;
    let share = (base - polled).as_ns() / base.as_ns() * 100.0;
    report.value("share of the interrupt in 22 us", "%", share);
    Ok(())
}
