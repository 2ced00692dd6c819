//! Fig. 7 (H-26, B-22): round trips of a pingpong over HPCL, and of request and response over
//! TCP/IP, against size.

use super::measure::{few_round_trips, round_trip, round_trips};
use super::{MESSAGE, Report, SMALL};
use crate::experiment::{Axis, Experiment, Origin, Sensitivity};
use crate::hpcl::config::Config;
use crate::hpcl::process::Over;
use crate::sensitivity;
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
    let small = f64::from(SMALL);
    let names = ["HPCL/Ethernet", "TCP/IP"];
    for (name, curve) in names.into_iter().zip(&curves) {
        figure.series(name, Origin::Model, curve.iter().copied());
    }
    let at_small = |curve: &[(f64, f64)]| {
        curve.iter().find(|point| point.0 == small).map_or(f64::NAN, |point| point.1)
    };
    let [hpcl, tcp] = [at_small(&curves[0]), at_small(&curves[1])];
    report.value("HPCL, 128 B", "us", hpcl);
    report.value("TCP/IP, 128 B", "us", tcp);
    report.value("TCP/IP over HPCL, 128 B", "1", tcp / hpcl);
    let gap = |us: u64| {
        let mut config = config.clone();
        config.nic.interrupt_gap = Span::from_ns(us * 1000);
        config
    };
    let no_gap = round_trip(&gap(0), Over::Tcp, SMALL)?.us;
    for (what, us) in [
        ("TCP/IP, 128 B, 8000 interrupts/s", round_trip(&gap(125), Over::Tcp, SMALL)?.us),
        ("TCP/IP, 128 B, interrupts at once", no_gap),
        ("HPCL, 128 B, interrupts at once", round_trip(&gap(0), Over::Hpcl, SMALL)?.us),
        ("TCP/IP over HPCL, 128 B, interrupts at once", no_gap / hpcl),
    ] {
        let unit = if what.starts_with("TCP/IP over") { "1" } else { "us" };
        report.value(what, unit, us);
    }
    let wires = on_wires(&config, SMALL).as_ns() / 1e3;
    report.value("HPCL, 128 B: wires and switch alone", "us", wires);

    report.claim(
        "TCP/IP takes about one order of magnitude longer (by the gap between interrupts, an input)",
        tcp / hpcl >= 10.0,
    );
    let moved = on_other_machines(&config)?;
    report.claim(
        "the gap alone decides TCP/IP's round trip: other wires, switches, buses and hosts do not move it",
        moved.iter().all(|us| (us - tcp).abs() < 0.01 * tcp),
    );
    let rises = curves[0].windows(2).all(|pair| pair[0].1 <= pair[1].1);
    report.claim("HPCL: longer messages do not take less time", rises);
    report.claim(
        "the order of magnitude is the interrupts': without a gap between them TCP/IP is within a factor of 2",
        no_gap / hpcl < 2.0,
    );

    report.note(format!(
        "25.4 us is read as a round trip, as the figure's title says. The text says latency: if it is one way, a round trip takes 50.8 us, and \
         driver_frame would have to be {:.2} us, not {}. Nothing else would change: TCP's figure is the interrupts' alone.",
        other_reading(&config, hpcl)?,
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

/// TCP/IP's round trip with each part of its path slower or faster in turn, in microseconds.
fn on_other_machines(config: &Config) -> Result<Vec<f64>, String> {
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
        round_trip(&config, Over::Tcp, SMALL).map(|trip| trip.us)
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
    let slope = (round_trip(&slower, Over::Hpcl, SMALL)?.us - us) / (time.as_ns() * 3.0);
    Ok((time.as_ns() + us / slope) / 1e3)
}
