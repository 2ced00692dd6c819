//! Section 3.4 and Table 1 (D-27, D-28, D-29): message rate against the number of virtual ports,
//! beside Aries (B-13) and the baselines.

use super::measure::{Window, measure};
use crate::damq_pd::{Config, Load, Organisation, Submission};
use crate::experiment::{Axis, Experiment, Origin, Report, Role};
use crate::units::{Bytes, Rate, Span};

pub(super) const EXPERIMENT: Experiment = Experiment {
    id: "rate",
    title: "message rate against virtual ports",
    rows: "D-27, D-28, D-29, B-13",
    run,
};

/// Ports of the sweep.
pub const PORTS: [usize; 8] = [1, 2, 3, 4, 8, 16, 32, 64];

/// Turns the paper's interface into a baseline.
type Setting = fn(&mut Config);

/// The paper's rate for a number of ports; our copy lacks the full table.
fn published(ports: usize) -> f64 {
    if ports == 1 { 96.0 } else { 125.0 }
}

/// Message rates of the Aries interface by number of processes, as the paper quotes them.
pub const ARIES: [(usize, f64); 3] = [(1, 7.5), (4, 25.0), (21, 120.0)];

/// Mean rate in M/s of `ports` saturated ports. They begin at random moments within 3 us; the mean
/// is over ten draws.
///
/// # Errors
/// A sentence, if a run fails.
pub fn rate(config: &Config, ports: usize) -> Result<f64, String> {
    const SEEDS: u64 = 10;
    let mut config = config.clone();
    config.nic.ports = ports;
    let load = Load { start: Span::from_ns(3000), ..Load::SATURATED };
    let mut sum = 0.0;
    for seed in 0..SEEDS {
        sum += measure(&config, &vec![load; ports], seed, Window::SATURATED)?.rate;
    }
    Ok(sum / SEEDS as f64)
}

fn run(report: &mut Report) -> Result<(), String> {
    let paper = Config::paper();
    let clock_mhz = paper.nic.clock.hz() as f64 / 1e6;
    let bound = clock_mhz / paper.nic.engine_cycles as f64;
    report.value("clock / cycles of a descriptor", "M/s", Role::Formula, bound, Some(125.0));
    let width = clock_mhz * paper.nic.word.count() as f64 / 1e3;
    report.value("clock x word", "GB/s", Role::Formula, width, Some(16.0));
    let mut rates = Vec::new();
    for ports in PORTS {
        let rate = rate(&paper, ports)?;
        rates.push(rate);
        report
            .value(format!("{ports} ports"), "M/s", Role::Predicted, rate, Some(published(ports)))
            .explain(
                "The buffer holds 256 descriptors, 2048 ns of sending; each of two ports is silent for 600 ns in every round, and now and then \
                 both are. It would be 125 if each had half and they took exact turns. The more ports, the rarer it is that all are silent. The paper says \"close to\" of all counts from two on; its table is not in our copy.",
            );
    }
    report.claim(
        "the rate of one port is below that of several, which is close to the bound",
        rates[0] < 0.8 * bound && rates[3..].iter().all(|rate| *rate > 0.97 * bound),
    );
    report.claim(
        "equal maximum to Aries, with fewer processes",
        ARIES.iter().all(|(_, aries)| *aries <= 1.02 * bound) && rates[1] > ARIES[1].1,
    );
    for (processes, aries) in ARIES {
        let ours = rate(&paper, processes)?;
        report.note(format!(
            "As published for Aries, {processes} processes: {aries} M/s; the model of DAMQ-PD with as many: {ours:.1} M/s."
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
            let rate = rate(&config, ports)?;
            report.value(format!("{name}, {ports} ports"), "M/s", Role::Predicted, rate, None);
            points.push((ports as f64, rate));
        }
        beside.push((name, points));
    }
    let x = Axis::logarithmic("virtual ports, or processes", "");
    let figure =
        report.figure("Message rate (3.4, Tab. 1)", x, Axis::linear("message rate", "M/s"));
    let over = |rates: &[f64]| PORTS.map(|ports| ports as f64).into_iter().zip(rates.to_vec());
    figure.series("DAMQ-PD", Origin::Model, over(&rates));
    figure.series(
        "DAMQ-PD, published (from two ports on \"close to\")",
        Origin::Published,
        over(&PORTS.map(published)),
    );
    let aries = ARIES.map(|(processes, aries)| (processes as f64, aries));
    figure.series("Aries, as the paper quotes it", Origin::Published, aries);
    for (name, points) in beside {
        figure.series(name, Origin::Model, points);
    }
    // The paper's figure assumes that data has the wires to itself.
    let mut wires = paper.clone();
    wires.bus.rate = Rate::from_bytes_per_second(15_753_846_153);
    wires.bus.header = Bytes::new(24);
    for ports in [1, 4] {
        let rate = rate(&wires, ports)?;
        report.value(
            format!("second reading, PCIe headers and coding, {ports} ports"),
            "M/s",
            Role::Predicted,
            rate,
            None,
        );
    }
    report.note(
        "Second reading: the paper counts 128 B of a descriptor against 16 GB/s. Two bursts of 64 B with 24 B around each, at 128b/130b, take 11.2 ns, \
         so that PCIe 3.0 x16 would not let it come to 125.",
    );
    Ok(())
}
