//! A researcher's way in: an interface, its parameters, its experiment, and a test. The page
//! docs/model-new-nic.md follows these files.

mod nic;

use bellwire_model::experiment::{Axis, Experiment, Origin, Report, Role};
use bellwire_model::sensitivity::sources;
use bellwire_model::units::Time;
use nic::{Config, machine, post};

const EXPERIMENT: Experiment = Experiment {
    id: "fig2",
    title: "latency and bandwidth against payload",
    rows: "",
    published: include_str!("published.toml"),
    run,
};

/// Bytes of a message.
const PAYLOADS: [u32; 6] = [8, 64, 512, 4096, 32_768, 262_144];

/// Sends `count` messages at once; the time until the last is complete, in nanoseconds.
fn time_ns(config: &Config, bytes: u32, count: usize) -> Result<f64, String> {
    config.check().map_err(|error| error.to_string())?;
    let mut machine = machine(config, 1);
    (0..count).for_each(|_| post(&mut machine, bytes));
    machine.run(Time::NEVER);
    let done = machine.model.messages.iter().map(|message| message.completed);
    let last = done.max().flatten().ok_or("a message is not complete")?;
    Ok((last - Time::ZERO).as_ns())
}

fn run(report: &mut Report) -> Result<(), String> {
    let config = Config::paper();
    let (mut latency, mut bandwidth) = (Vec::new(), Vec::new());
    for bytes in PAYLOADS {
        let one = time_ns(&config, bytes, 1)? / 1e3;
        let many = 32.0 * f64::from(bytes) / time_ns(&config, bytes, 32)?;
        report.value(format!("{bytes} B, latency"), "us", one);
        report.value(format!("{bytes} B, 32 at once"), "GB/s", many);
        latency.push((f64::from(bytes), one));
        bandwidth.push((f64::from(bytes), many));
    }
    report.claim("bandwidth rises with the payload", bandwidth.is_sorted_by(|a, b| a.1 < b.1));
    let payload = Axis::logarithmic("payload", "B");
    let figure = report.figure("Fig. 2: latency", payload, Axis::logarithmic("latency", "us"));
    figure.series("doorbell", Origin::Model, latency);
    let figure = report.figure("Fig. 3: bandwidth", payload, Axis::linear("bandwidth", "GB/s"));
    figure.series("doorbell, 32 at once", Origin::Model, bandwidth);
    report.vary("a message of 4 KiB", &config, |config| time_ns(config, 4096, 1))
}

/// The experiment agrees with what is published, or says why not. One value is calibrated.
#[test]
fn fig_2() {
    let report = EXPERIMENT.run().unwrap();
    println!("{report}");
    assert_eq!(report.unexplained(), Vec::<&str>::new(), "{report}");
    let calibrated = report.values.iter().filter(|value| value.role == Role::Calibrated);
    assert_eq!(calibrated.count(), 1);
    assert!(report.figures.iter().all(|figure| figure.series.len() == 2), "model and paper");
}

/// Every parameter has a source and an effect, and the result rests on the two that are not
/// printed and on the calibrated one.
#[test]
fn parameters_matter() {
    let report = EXPERIMENT.run().unwrap();
    let found = &report.sensitivity[0];
    assert_eq!(found.without_effect, Vec::<String>::new());
    assert_eq!(found.rests_on, ["host.post", "nic.engine", "pcie.latency"]);
    let file = include_str!("nic.toml");
    assert_eq!(sources(file).len(), found.with_effect.len());
}

/// One seed gives one run, and everything that was posted is complete at the end.
#[test]
fn runs_repeat() {
    let hash = |seed| {
        let mut machine = machine(&Config::paper(), seed);
        (0..20).for_each(|at| post(&mut machine, 1 + 37 * at));
        machine.run(Time::NEVER);
        assert!(machine.standstill().is_none() && machine.pending() == 0);
        machine.trace_hash()
    };
    assert_eq!(hash(1), hash(1));
}

/// Each block of the page that is not a command is a part of one of these files.
#[test]
fn the_page_quotes_the_files() {
    let files = [
        include_str!("nic.rs"),
        include_str!("main.rs"),
        include_str!("nic.toml"),
        include_str!("published.toml"),
    ];
    let page = include_str!("../../../../docs/model-new-nic.md");
    let quoted = |block: &&str| block.starts_with("rust\n") || block.starts_with("toml\n");
    let blocks: Vec<&str> = page.split("```").skip(1).step_by(2).filter(quoted).collect();
    assert!(blocks.len() > 5, "{}", blocks.len());
    for block in blocks {
        let code = &block["rust\n".len()..];
        assert!(files.iter().any(|file| file.contains(code)), "no file has this:\n{code}");
    }
}
