//! What must follow when a parameter changes does follow, for every parameter of every system. The
//! expectations are in the `perturbed.toml` of each.

use bellwire_model::damq_pd::Config;
use bellwire_model::damq_pd::experiments::EXPERIMENTS;
use bellwire_model::damq_pd::experiments::perturbed::{EXPECTED, PROBES};
use bellwire_model::hpcl;
use bellwire_model::myvia;
use bellwire_model::perturbed::{Probe, perturbed, with_section};
use bellwire_model::system::{SYSTEMS, System};

/// Each change of each parameter of a system moves the figures that it must, in the direction and
/// by the size that it must, and no other.
fn moves_what_it_must(name: &str) {
    let perturbations = System::named(name).expect(name).perturbations;
    let found = (perturbations.run)(perturbations.file).expect(name);
    let none: [String; 0] = [];
    assert_eq!(found.contradictions(), none, "{name}");
}

/// DAMQ-PD.
#[test]
fn damq_pd() {
    moves_what_it_must("damq-pd");
}

/// The link between processors.
#[test]
fn smp() {
    moves_what_it_must("smp");
}

/// cHPP.
#[test]
fn chpp() {
    moves_what_it_must("chpp");
}

/// MyVIA and the systems around it.
#[test]
fn myvia() {
    moves_what_it_must("myvia");
}

/// HPCL and TCP/IP.
#[test]
fn hpcl() {
    moves_what_it_must("hpcl");
}

/// Switches and links.
#[test]
fn network() {
    moves_what_it_must("network");
}

/// The pages name what moves each figure, and what moves nothing, as the files say. `make docs`
/// writes these sections.
#[test]
fn pages_say_what_moves_nothing() {
    for perturbations in SYSTEMS.map(|system| system.perturbations) {
        let top = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        let page = std::fs::read_to_string(format!("{top}/{}", perturbations.page)).unwrap();
        let section = (perturbations.section)().unwrap();
        assert!(with_section(&page, &section) == page, "{}: run `make docs`", perturbations.page);
    }
}

/// What is wrong with the expectations of DAMQ-PD, as far as its start by PIO shows it, after a
/// change of their text.
fn told(from: &str, to: &str) -> Vec<String> {
    assert!(EXPECTED.contains(from), "{from}");
    let [start, ..] = PROBES;
    let found = perturbed(&EXPECTED.replacen(from, to, 1), &EXPERIMENTS, &[start]);
    found.map_or_else(|error| vec![error], |found| found.contradictions())
}

/// Canary: a parameter without a row fails, and a row without a parameter; so do a choice of which
/// nothing is expected, a figure that does not exist, an experiment without a figure, and a change
/// that no configuration can have.
#[test]
fn gaps_in_the_expectations_are_told() {
    let sound = told("", "");
    for (from, to, told_of) in [
        ("[\"nic.tags\"]", "[\"nic.tagz\"]", "the parameter nic.tags has no row"),
        ("[\"nic.tags\"]", "[\"nic.tagz\"]", "there is no parameter nic.tagz"),
        ("\"to samq\"", "\"to samqq\"", "nothing is expected of `samq`"),
        ("\"rate: 1 port\"", "\"rate: one port\"", "there is no figure `rate: one port`"),
        ("submission = \"It runs", "other = \"It runs", "the experiment submission has no figure"),
        ("\"to 4\"", "\"to 0\"", "nic.data_reads has no valid value `to 0`"),
    ] {
        let told = told(from, to);
        let is_told = |told: &[String]| told.iter().any(|line| line.contains(told_of));
        assert!(is_told(&told) && !is_told(&sound), "{told_of}: {told:?}");
    }
}

/// Canary: a row that says that its parameter cannot be changed alone, though it can, is told. So
/// is one that does not say so, though every other value is refused.
#[test]
fn parameters_that_were_not_tried_are_told() {
    let changes = "half = { \"sweep: DMA alone, 4 ports\" = \"x0.5 within 3\" }\n\n[\"nic.tags\"]";
    let told = told(changes, "alone = \"is refused\"\n\n[\"nic.tags\"]");
    let rule = |told: &[String], of: &str| {
        told.iter().any(|line| line.starts_with(&format!("{of}: its row must say")))
    };
    assert!(rule(&told, "nic.landing"), "{told:?}");
    use myvia::experiments::perturbed::{EXPECTED, PROBES};
    let [first, ..] = PROBES;
    let silent = EXPECTED.replacen("alone = \"is refused\"\n", "", 1);
    for (file, is_told) in [(silent.as_str(), true), (EXPECTED, false)] {
        let told = perturbed(file, &[], std::slice::from_ref(&first)).unwrap().contradictions();
        assert_eq!(rule(&told, "system.queues"), is_told, "{told:?}");
    }
}

/// Canary: a wrong sign, a wrong size, and a figure that should stay but moves are contradictions.
#[test]
fn wrong_expectations_are_told() {
    for (from, to) in [
        ("\"start: by PIO\" = \"-8\"", "\"start: by PIO\" = \"up\""),
        ("\"start: by PIO\" = \"-8\"", "\"start: by PIO\" = \"-9\""),
        ("\"start: by PIO\" = \"-8\", ", ""),
    ] {
        let told = told(from, to);
        let moved: Vec<_> = told.iter().filter(|line| line.contains(" should be ")).collect();
        assert!(moved[0].starts_with("nic.clock, double: `start: by PIO`"), "{moved:?}");
        assert_eq!(moved.len(), 1, "{moved:?}");
    }
}

/// Which parameters of DAMQ-PD have contradictions if the probe of `figure` has another `run`.
fn caught(figure: &str, run: fn(&Config) -> Result<Vec<f64>, String>) -> Vec<String> {
    let probe = PROBES.into_iter().find(|probe| probe.figures[0].name == figure);
    let faulty = Probe { run, ..probe.expect(figure) };
    let told = perturbed(EXPECTED, &EXPERIMENTS, &[faulty]).unwrap().contradictions();
    let moved = told.iter().filter(|line| line.contains(" should be "));
    moved.filter_map(|line| Some(line.split_once(',')?.0.to_owned())).collect()
}

/// What the sound probe of a figure measures.
fn measured(figure: &str, config: &Config) -> Result<Vec<f64>, String> {
    let probe = PROBES.into_iter().find(|probe| probe.figures[0].name == figure);
    (probe.expect(figure).run)(config)
}

/// Canary: the table catches a bus whose rate is ignored, a loop of credits that costs nothing, and
/// a buffer that gives each port all of it.
#[test]
fn planted_faults_are_caught() {
    let ignores_the_rate = caught("rate: 4 ports", |config| {
        let mut faulty = config.clone();
        faulty.bus.rate = Config::paper().bus.rate;
        measured("rate: 4 ports", &faulty)
    });
    assert!(ignores_the_rate.contains(&"bus.rate".to_owned()), "{ignores_the_rate:?}");
    let credits_cost_nothing = caught("rate: 1 port", |config| {
        let mut faulty = config.clone();
        (faulty.bus.pio_read, faulty.bus.one_way) = Default::default();
        measured("rate: 1 port", &faulty)
    });
    for parameter in ["bus.pio_read", "nic.depth"] {
        assert!(credits_cost_nothing.contains(&parameter.to_owned()), "{credits_cost_nothing:?}");
    }
    let words = "analysis: words under way of one port";
    let takes_every_part = caught(words, |config| {
        let mut faulty = config.clone();
        faulty.nic.organisation = Config::paper().nic.organisation;
        measured("analysis: words under way of one port", &faulty)
    });
    assert_eq!(takes_every_part, ["nic.organisation"]);
}

/// Canary: the round trip over TCP/IP follows from the gap between interrupts alone. The table
/// catches one that waits for the switch as well, and one that does not wait for the gap.
#[test]
fn a_round_trip_of_tcp_that_follows_from_something_else_is_caught() {
    use hpcl::experiments::perturbed::{EXPECTED, PROBES};
    let tcp = || PROBES.into_iter().find(|probe| probe.figures[0].name == "round trip: TCP/IP");
    let caught = |run: fn(&hpcl::config::Config) -> Result<Vec<f64>, String>| {
        let probe = Probe { run, ..tcp().expect("it is measured") };
        perturbed(EXPECTED, &[], &[probe]).unwrap().contradictions()
    };
    let waits_for_the_switch = caught(|config| {
        let delay_us = config.wire.switch_delay.as_ns() / 1e3;
        Ok(vec![2.0 * config.nic.interrupt_gap.as_ns() / 1e3 + 2.0 * delay_us])
    });
    let names = |told: &[String], start: &str| told.iter().any(|line| line.starts_with(start));
    let switch = "wire.switch_delay, double: `round trip: TCP/IP` should be same";
    assert!(names(&waits_for_the_switch, switch), "{waits_for_the_switch:?}");
    let does_not_wait = caught(|_| Ok(vec![482.0]));
    let gap = "nic.interrupt_gap, double: `round trip: TCP/IP` should be x2";
    assert!(names(&does_not_wait, gap), "{does_not_wait:?}");
}
