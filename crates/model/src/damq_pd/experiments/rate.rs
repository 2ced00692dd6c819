//! Section 3.4 and Table 1 (D-27, D-28, D-29): message rate against the number of virtual ports,
//! beside Aries (B-13) and the baselines.

use super::measure::{Window, measure};
use crate::damq_pd::{Config, Load, Organisation, Submission};
use crate::experiment::{Axis, Report, Sensitivity};
use crate::sensitivity;
use crate::stats::{Estimate, over_seeds};
use crate::units::{Bytes, Rate, Span};

/// Ports of the sweep.
pub const PORTS: [usize; 8] = [1, 2, 3, 4, 8, 16, 32, 64];

/// Turns the paper's interface into a baseline.
type Setting = fn(&mut Config);

/// The curve of the Aries interface: its message rates by number of processes.
const ARIES: &str = "Aries, as the paper quotes it";

/// Rates in M/s of `ports` saturated ports, one with each of ten seeds. The ports begin at random
/// moments within 3 us.
pub fn rates(config: &Config, ports: usize) -> Result<Vec<f64>, String> {
    const SEEDS: u64 = 10;
    let mut config = config.clone();
    config.nic.ports = ports;
    let load = Load { start: Span::from_ns(3000), ..Load::SATURATED };
    let rate = |seed| Ok(measure(&config, &vec![load; ports], seed, Window::SATURATED)?.rate);
    (0..SEEDS).map(rate).collect()
}

pub(super) fn run(report: &mut Report) -> Result<(), String> {
    let paper = Config::paper();
    let clock_mhz = paper.nic.clock.hz() as f64 / 1e6;
    let bound = clock_mhz / paper.nic.engine_cycles as f64;
    report.value("clock / cycles of a descriptor", "M/s", bound);
    report.value("clock x word", "GB/s", clock_mhz * paper.nic.word.count() as f64 / 1e3);
    let mut by_ports = Vec::new();
    for ports in PORTS {
        let rates = rates(&paper, ports)?;
        by_ports.push(report.drawn(format!("{ports} ports"), "M/s", &rates).estimate());
    }
    report.claim(
        "the rate of one port is below that of several, which is close to the bound",
        by_ports[0].is_below(0.8 * bound)
            && by_ports[3..].iter().all(|rate| rate.is_above(0.97 * bound)),
    );
    let aries = report.published.curve(ARIES).to_vec();
    report.claim(
        "equal maximum to Aries, with fewer processes",
        aries.iter().all(|(_, aries)| *aries <= 1.02 * bound) && by_ports[1].is_above(aries[1].1),
    );
    for (processes, aries) in aries {
        let Estimate { mean, half_width } = over_seeds(&rates(&paper, processes as usize)?);
        report.note(format!(
            "As published for Aries, {processes} processes: {aries} M/s; the model of DAMQ-PD with as many, within {half_width:.1} M/s at 95 %: {mean:.1} M/s."
        ));
    }
    let settings: [(&str, Setting); 4] = [
        ("SAMQ, credits of each port its own", |config| {
            config.nic.organisation = Organisation::Samq
        }),
        ("DAMQ-PF, pointers a cycle late", |config| config.nic.organisation = Organisation::DamqPf),
        ("PIO alone, blocking", |config| config.host.submission = Submission::Pio),
        ("DMA alone", |config| config.host.submission = Submission::Dma),
    ];
    let mut beside = Vec::new();
    for (name, set) in settings {
        let mut config = paper.clone();
        set(&mut config);
        let mut points = Vec::new();
        for ports in [1, 4, 16] {
            let rates = rates(&config, ports)?;
            let rate = report.drawn(format!("{name}, {ports} ports"), "M/s", &rates).estimate();
            points.push((ports as f64, rate));
        }
        beside.push((name, points));
    }
    let x = Axis::logarithmic("virtual ports, or processes", "");
    let figure =
        report.figure("Message rate (3.4, Tab. 1)", x, Axis::linear("message rate", "M/s"));
    figure.drawn("DAMQ-PD", PORTS.map(|ports| ports as f64).into_iter().zip(by_ports));
    for (name, points) in beside {
        figure.drawn(name, points);
    }
    // The paper's figure assumes that data has the wires to itself.
    let mut wires = paper.clone();
    wires.bus.rate = Rate::from_bytes_per_second(15_753_846_153);
    wires.bus.header = Bytes::new(24);
    for ports in [1, 4] {
        let what = format!("second reading, PCIe headers and coding, {ports} ports");
        report.drawn(what, "M/s", &rates(&wires, ports)?);
    }
    report.sensitivity.push(sensitivity()?);
    Ok(())
}

/// Varies the parameters of saturated ports, for a few rounds of credits.
///
/// # Errors
/// A sentence, if the run fails.
pub fn sensitivity() -> Result<Sensitivity, String> {
    let window = Window { warm_up_ns: 2_000, counted_ns: 8_000 };
    sensitivity::sensitivity("saturated ports for 10 us", &Config::paper(), |config| {
        let run = measure(config, &vec![Load::SATURATED; config.nic.ports], 1, window)?;
        Ok((run.by_port, run.mean_ns))
    })
}
