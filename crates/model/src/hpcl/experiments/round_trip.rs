//! Fig. 7 (H-26, B-22): round trips of a pingpong over HPCL, and of request and response over
//! TCP/IP, against size.

use super::measure::{few_round_trips, round_trips, small_us};
use super::{MESSAGE, Report, SMALL};
use crate::experiment::{Axis, Experiment, Sensitivity, draws};
use crate::hpcl::config::Config;
use crate::hpcl::process::Over;
use crate::sensitivity;
use crate::stats::{excess, over_seeds};
use crate::units::{Bytes, Span};

pub(super) const EXPERIMENT: Experiment = Experiment {
    id: "fig7",
    title: "round trip against size, beside TCP/IP",
    rows: "H-26, H-28, B-22, B-27",
    published: super::PUBLISHED,
    run,
};

fn run(report: &mut Report) -> Result<(), String> {
    let config = Config::paper();
    let curves = [round_trips(&config, Over::Hpcl)?, round_trips(&config, Over::Tcp)?];
    let figure =
        report.figure("Fig. 7: round trip", MESSAGE, Axis::logarithmic("round trip", "us"));
    let names = ["HPCL/Ethernet", "TCP/IP"];
    for (name, curve) in names.into_iter().zip(&curves) {
        figure.drawn(name, curve.points(|trip| trip.us));
    }
    let [hpcl, tcp] = [0, 1].map(|of: usize| draws(curves[of].at(SMALL), |trip| trip.us));
    let over_hpcl =
        |tcp: &[f64]| -> Vec<f64> { tcp.iter().zip(&hpcl).map(|(tcp, hpcl)| tcp / hpcl).collect() };
    report.drawn("HPCL, 128 B", "us", &hpcl);
    let tcp_us = report.drawn("TCP/IP, 128 B", "us", &tcp).estimate().mean;
    report.drawn("TCP/IP over HPCL, 128 B", "1", &over_hpcl(&tcp));
    let gap = |us: u64| {
        let mut config = config.clone();
        config.nic.interrupt_gap = Span::from_ns(us * 1000);
        config
    };
    let no_gap = small_us(&gap(0), Over::Tcp)?;
    for (what, us) in [
        ("TCP/IP, 128 B, 8000 interrupts/s", &small_us(&gap(125), Over::Tcp)?),
        ("TCP/IP, 128 B, interrupts at once", &no_gap),
        ("HPCL, 128 B, interrupts at once", &small_us(&gap(0), Over::Hpcl)?),
        ("TCP/IP over HPCL, 128 B, interrupts at once", &over_hpcl(&no_gap)),
    ] {
        let unit = if what.starts_with("TCP/IP over") { "1" } else { "us" };
        report.drawn(what, unit, us);
    }
    let wires = on_wires(&config, SMALL).as_ns() / 1e3;
    report.value("HPCL, 128 B: wires and switch alone", "us", wires);

    report.claim(
        "TCP/IP takes about one order of magnitude longer (by the gap between interrupts, an input)",
        over_seeds(&over_hpcl(&tcp)).is_above(10.0),
    );
    let moved = on_other_machines(&config)?;
    report.claim(
        "the gap alone decides TCP/IP's round trip: other wires, switches, buses and hosts do not move it",
        moved.iter().all(|us| {
            let moved = excess(us, &tcp);
            moved.is_above(-0.01 * tcp_us) && moved.is_below(0.01 * tcp_us)
        }),
    );
    // Draws can hide the 0.3 us that 8 B more take: no step contradicts the order.
    let rises = curves[0].rises(|trip| trip.us).iter().all(|rise| !rise.is_below(0.0));
    report.claim("HPCL: longer messages do not take less time", rises);
    report.claim(
        "the order of magnitude is the interrupts': without a gap between them TCP/IP is within a factor of 2",
        over_seeds(&over_hpcl(&no_gap)).is_below(2.0),
    );

    report.note(format!(
        "25.4 us is read as a round trip, as the figure's title says. The text says latency: if it is one way, a round trip takes 50.8 us, and \
         driver_frame would have to be {:.2} us, not {}. Nothing else would change: TCP's figure is the interrupts' alone.",
        other_reading(&config, over_seeds(&hpcl).mean)?,
        config.host.driver_frame
    ));
    report.sensitivity.push(sensitivity()?);
    Ok(())
}

/// Varies the parameters of three round trips, over HPCL and over TCP/IP.
///
/// # Errors
/// The fault.
pub fn sensitivity() -> Result<Sensitivity, String> {
    let config = Config { nodes: 2, ..Config::paper() };
    sensitivity::sensitivity("three round trips of 128 B", &config, |config| {
        [Over::Hpcl, Over::Tcp]
            .map(|over| few_round_trips(config, over))
            .into_iter()
            .collect::<Result<Vec<_>, _>>()
    })
}

/// TCP/IP's round trip with each seed in microseconds, with each part of its path slower or faster
/// in turn.
fn on_other_machines(config: &Config) -> Result<Vec<Vec<f64>>, String> {
    let changes: [fn(&mut Config); 5] = [
        |config| config.wire.cable = config.wire.cable * 40,
        |config| config.wire.switch_delay = config.wire.switch_delay * 2,
        |config| config.pci.overhead_cycles *= 2,
        |config| config.host.driver_frame = config.host.driver_frame * 2,
        |config| config.host.copy_start = config.host.copy_start * 4,
    ];
    let other = |change: &fn(&mut Config)| {
        let mut config = config.clone();
        change(&mut config);
        small_us(&config, Over::Tcp)
    };
    changes.iter().map(other).collect()
}

/// Time of wires and switch in a round trip, independent of the nodes.
fn on_wires(config: &Config, bytes: u32) -> Span {
    use crate::hpcl::frame::{BETWEEN_BYTES, CHECK_BYTES, HEADER_BYTES};
    // Frame header, section, packet header with a length of one byte, check value.
    let protocol = bellwire_wire::frame::FRAME_OVERHEAD_BYTES + 4 + 3;
    let frame = bytes as usize + protocol + HEADER_BYTES + CHECK_BYTES + BETWEEN_BYTES;
    let line = config.wire.rate.time(Bytes::new(frame as u64)) + config.wire.cable;
    (line * 2 + config.wire.switch_delay) * 2
}

/// `driver_frame` in microseconds if a round trip took twice as long.
fn other_reading(config: &Config, us: f64) -> Result<f64, String> {
    let time = config.host.driver_frame;
    let mut slower = config.clone();
    slower.host.driver_frame = time * 4;
    let slow = over_seeds(&small_us(&slower, Over::Hpcl)?).mean;
    let slope = (slow - us) / (time.as_ns() * 3.0);
    Ok((time.as_ns() + us / slope) / 1e3)
}
