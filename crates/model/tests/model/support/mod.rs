//! Helpers of tests: descriptors, and readers of recorded formats.

use bellwire_wire::descriptor::{DescriptorRepr, Work};
use bellwire_wire::endpoint::Endpoint;
use bellwire_wire::entry::{Chain, Entry};
use bellwire_wire::tail::Tail;

pub mod perfetto;

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
