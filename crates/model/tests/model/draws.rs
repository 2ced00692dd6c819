//! Each figure of an experiment has a confidence interval, or no draw decides it: with other draws
//! everywhere it is the same, to the last bit. `bellwire paper` shows no interval then.

use bellwire_model::experiment::{Axis, Experiment, Origin, Report, Series, of_each_seed};
use bellwire_model::hpcl::config::Config;
use bellwire_model::hpcl::experiments::SMALL;
use bellwire_model::hpcl::experiments::measure::round_trip;
use bellwire_model::hpcl::process::Over;
use bellwire_model::system::System;
use bellwire_protocol::canary::plant;

use crate::support;

/// What is drawn and has no interval: system, experiment, a part of its name, and why.
const ALONE: [(&str, &str, &str, &str); 3] = [
    ("chpp", "fig19", "first seed", "one run, as in the paper: a mean hides its swings"),
    ("damq-pd", "fig9", "the run of 3.3", "one run, as in the paper"),
    ("damq-pd", "fig9", "the latest gap", "the greatest of 1000 seeds: its claim counts the tries"),
];

/// Experiments that run nothing for a figure without an interval, and what gives these figures.
const COMPUTED: [(&str, &str, &str); 2] = [
    ("chpp", "fig5", "formulas, and distances in graphs"),
    ("damq-pd", "rate", "formulas of the clock"),
];

/// What a report says without an interval: the name, and the numbers.
fn without_interval(report: &Report) -> Vec<(String, Vec<u64>)> {
    let values = report.values.iter().filter(|value| value.interval.is_none());
    let values = values.map(|value| (value.what.clone(), vec![value.model.to_bits()]));
    let curves = report.figures.iter().flat_map(|figure| {
        let is_alone = |curve: &&Series| curve.half_widths.is_empty();
        let of_model = figure.series.iter().filter(|curve| curve.origin == Origin::Model);
        of_model.filter(is_alone).map(|curve| {
            let points = curve.points.iter().flat_map(|(x, y)| [x.to_bits(), y.to_bits()]);
            (format!("{}: {}", figure.title, curve.name), points.collect())
        })
    });
    values.chain(curves).collect()
}

/// What other draws change in an experiment, though its report has it without an interval.
fn drawn_alone(experiment: &Experiment, report: &Report) -> Vec<String> {
    let alone = without_interval(report);
    if alone.is_empty() {
        return Vec::new();
    }
    let _planted = plant("other-draws");
    let others = without_interval(&experiment.run().expect("it runs"));
    assert_eq!(alone.len(), others.len(), "{}", experiment.id);
    let pairs = alone.into_iter().zip(others).filter(|(one, other)| one != other);
    pairs.map(|((name, _), _)| name).collect()
}

/// Each experiment of a system says which of its figures are drawn.
fn says_what_is_drawn(system: &str) {
    let of_paper = System::named(system).expect(system).paper.expect("a paper describes it");
    let mut told = Vec::new();
    let computed = |id| COMPUTED.iter().any(|(of, computed, _)| (*of, *computed) == (system, id));
    for experiment in of_paper.experiments.iter().filter(|of| !computed(of.id)) {
        let drawn = drawn_alone(experiment, &support::report(system, experiment.id));
        let alone = ALONE.iter().filter(|(of, id, ..)| (*of, *id) == (system, experiment.id));
        for (_, id, part, _) in alone.clone() {
            assert!(drawn.iter().any(|name| name.contains(part)), "{id}: no draw decides {part}");
        }
        let excused = |name: &str| alone.clone().any(|(_, _, part, _)| name.contains(part));
        let of_this = drawn.iter().filter(|name| !excused(name));
        told.extend(of_this.map(|name| format!("{}: {name}", experiment.id)));
    }
    assert_eq!(told, Vec::<String>::new(), "{system}: drawn, and without an interval");
}

/// cHPP.
#[test]
fn chpp() {
    says_what_is_drawn("chpp");
}

/// DAMQ-PD.
#[test]
fn damq_pd() {
    says_what_is_drawn("damq-pd");
}

/// MyVIA and the systems around it.
#[test]
fn myvia() {
    says_what_is_drawn("myvia");
}

/// The link between processors.
#[test]
fn smp() {
    says_what_is_drawn("smp");
}

/// HPCL and TCP/IP.
#[test]
fn hpcl() {
    says_what_is_drawn("hpcl");
}

/// A round trip over HPCL, whose system calls take times that are drawn.
fn drawn_us(seed: u64) -> Result<f64, String> {
    Ok(round_trip(&Config::paper(), Over::Hpcl, SMALL, seed)?.us)
}

/// Canary: a drawn figure of one seed is told, as a value and as a curve. The mean of eight seeds
/// is not, nor is a value that no draw decides.
#[test]
fn a_drawn_figure_without_an_interval_is_told() {
    let of = |run| Experiment { id: "planted", title: "", rows: "", published: "", run };
    let told = |experiment: &Experiment| drawn_alone(experiment, &experiment.run().unwrap());
    let one_seed = of(|report| {
        let us = drawn_us(1)?;
        report.value("one seed", "us", us);
        report.value("no draw", "us", 25.0);
        let x = Axis::linear("message", "B");
        let figure = report.figure("round trip", x, Axis::linear("round trip", "us"));
        figure.series("one seed", Origin::Model, [(f64::from(SMALL), us)]);
        Ok(())
    });
    assert_eq!(told(&one_seed), ["one seed", "round trip: one seed"]);
    let every_seed = of(|report| {
        report.drawn("eight seeds", "us", &of_each_seed(drawn_us)?);
        report.value("no draw", "us", 25.0);
        Ok(())
    });
    assert_eq!(told(&every_seed), Vec::<String>::new());
}
