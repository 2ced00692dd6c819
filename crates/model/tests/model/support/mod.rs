//! Helpers of tests: reports of experiments, descriptors, and readers of recorded formats.

use std::sync::{LazyLock, OnceLock};

use bellwire_model::chpp::experiments::Kind;
use bellwire_model::chpp::experiments::single::post_free;
use bellwire_model::chpp::{Config, Machine};
use bellwire_model::experiment::{Experiment, Report};
use bellwire_model::system::System;
use bellwire_model::units::Span;
use bellwire_wire::descriptor::{DescriptorRepr, Work};
use bellwire_wire::endpoint::Endpoint;
use bellwire_wire::entry::{Chain, Entry};
use bellwire_wire::tail::Tail;

pub mod perfetto;

/// An experiment of a system, and its report.
type Ran = (&'static str, &'static Experiment, OnceLock<Report>);

/// Each experiment runs once for all tests.
static REPORTS: LazyLock<Vec<Ran>> = LazyLock::new(|| {
    let of = |(system, paper): (&'static System, bellwire_model::system::Paper)| {
        paper.experiments.iter().map(|experiment| (system.name, experiment, OnceLock::new()))
    };
    System::of_papers().flat_map(of).collect()
});

/// The report of a system's experiment.
pub fn report(system: &str, id: &str) -> Report {
    let found = REPORTS.iter().find(|(of, experiment, _)| *of == system && experiment.id == id);
    let (_, experiment, report) = found.expect("the experiment exists");
    report.get_or_init(|| experiment.run().expect("it runs")).clone()
}

/// The latency of one operation between the free memories of two queue pairs of a new machine.
pub fn latency(
    config: &Config,
    seed: u64,
    kind: Kind,
    ends: (Endpoint, Endpoint),
    bytes: u64,
) -> Span {
    let mut machine = Machine::new(config, seed).unwrap();
    machine.open_journal();
    let operation = post_free(&mut machine.api(), kind, ends, bytes).unwrap();
    machine.run_to_end(&mut ()).unwrap();
    machine.audit().unwrap();
    let latency = machine.operations()[operation as usize].latency().unwrap();
    assert_eq!(machine.explain(operation).unwrap().accounted(), latency);
    latency
}

/// A PUT by queue pair 0 to a queue pair with its key, with an event at the end and no tail.
pub fn put<'a>(
    (destination, magic): (Endpoint, u8),
    sources: &'a [Entry],
    destinations: &'a [Entry],
) -> DescriptorRepr<'a> {
    DescriptorRepr {
        destination,
        queue_pair: 0,
        traffic_class: 0,
        magic,
        wants_event: true,
        work: Work::Put(Chain { sources: sources.into(), destinations: destinations.into() }),
        tail: Tail::EMPTY,
    }
}
