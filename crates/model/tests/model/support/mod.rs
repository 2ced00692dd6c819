//! Helpers of tests: descriptors, and readers of recorded formats.

use bellwire_model::chpp::experiments::Kind;
use bellwire_model::chpp::experiments::single::post_free;
use bellwire_model::chpp::{Config, Machine};
use bellwire_model::units::Span;
use bellwire_wire::descriptor::{DescriptorRepr, Work};
use bellwire_wire::endpoint::Endpoint;
use bellwire_wire::entry::{Chain, Entry};
use bellwire_wire::tail::Tail;

pub mod perfetto;

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
