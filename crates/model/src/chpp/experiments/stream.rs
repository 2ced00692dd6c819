//! A steady stream of operations of one kind from node 0 to node 1, to measure bandwidth. With
//! linked controllers it goes to the first node of the second controller.

use super::Kind;
use super::single::{endpoint, other, post_free};
use crate::chpp::host::{Notice, RingKind};
use crate::chpp::machine::{HostApi, Program};
use crate::chpp::{Config, Machine};
use crate::units::Time;

/// The results of a stream.
#[derive(Clone, Debug)]
pub struct Stream {
    /// Bytes per nanosecond between the first event and the last.
    pub gigabytes_s: f64,
    /// Mean time from taking a tag to the last completion, in cycles.
    pub round_trip_cycles: f64,
    /// Reads that found no free tag when due.
    pub reads_without_tag: u64,
    /// The busiest resource.
    pub limit: String,
    /// Events of the core.
    pub events: u64,
    /// Trace hash.
    pub trace_hash: u64,
}

struct Streamer {
    kind: Kind,
    to: u8,
    bytes: u64,
    left: u64,
    received: u64,
    first: Option<Time>,
    last: Time,
}

impl Streamer {
    fn post(&mut self, api: &mut HostApi<'_>) {
        if self.left > 0 {
            self.left -= 1;
            post_free(api, self.kind, (endpoint(0), endpoint(self.to)), self.bytes)
                .expect("the length was checked when the stream began");
        }
    }
}

impl Program for Streamer {
    fn notified(&mut self, notice: &Notice, api: &mut HostApi<'_>) {
        if notice.ring == RingKind::Receive {
            self.received += 1;
            self.first.get_or_insert(notice.time);
            self.last = notice.time;
            // Closed loop: the end of one operation starts the next.
            self.post(api);
        }
    }
}

/// Runs `count` operations of `bytes` each, `outstanding` of them at a time.
///
/// # Errors
/// A sentence, if the machine cannot be built, a descriptor cannot express the operation, or it
/// does not end.
pub fn stream(
    config: &Config,
    kind: Kind,
    bytes: u64,
    outstanding: u64,
    count: u64,
) -> Result<Stream, String> {
    stream_of(config, kind, bytes, outstanding, count, 1)
}

/// The same with a seed, which decides who goes first where two operations meet.
///
/// # Errors
/// Those of [`stream`].
pub fn stream_of(
    config: &Config,
    kind: Kind,
    bytes: u64,
    outstanding: u64,
    count: u64,
    seed: u64,
) -> Result<Stream, String> {
    let mut machine = Machine::new(config, seed).map_err(|error| error.to_string())?;
    machine.forget_operations();
    let to = other(config);
    let mut streamer =
        Streamer { kind, to, bytes, left: count, received: 0, first: None, last: Time::ZERO };
    if kind.is_nap() && bytes > 2048 || bytes > config.host.window.count() / 2 {
        return Err(format!("{} of {bytes} bytes is too long", kind.name()));
    }
    for _ in 0..outstanding {
        streamer.post(&mut machine.api());
    }
    machine.run_to_end(&mut streamer).map_err(|stopped| stopped.to_string())?;
    machine.audit().map_err(|imbalance| imbalance.to_string())?;
    // For a single operation, the whole time counts.
    let (first, counted) = match streamer.first {
        Some(first) if count > outstanding => (first, streamer.received - 1),
        _ => (Time::ZERO, streamer.received),
    };
    let port = &machine.nodes()[if kind == Kind::Get { usize::from(to) } else { 0 }].port;
    Ok(Stream {
        gigabytes_s: (counted * bytes) as f64 / (streamer.last - first).as_ns(),
        round_trip_cycles: port.round_trip.mean() / config.nic.cycle().ps() as f64,
        reads_without_tag: port.tags.refused,
        limit: machine.busiest().first().map_or(String::new(), |busy| {
            format!("{} ({:.0} %)", busy.resource, busy.share * 100.0)
        }),
        events: machine.events(),
        trace_hash: machine.trace_hash(),
    })
}
