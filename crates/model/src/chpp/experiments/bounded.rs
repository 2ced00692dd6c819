//! Short runs that one resource bounds of which the experiments have plenty: turns of an arbiter,
//! slots, records of a ring, reads in flight, places for GETs. Only `perturbed.rs` has them.

use bellwire_wire::endpoint::Endpoint;

use super::Kind;
use super::single::{endpoint, post, post_free};
use crate::chpp::host::{Notice, RingKind};
use crate::chpp::machine::{HostApi, Program};
use crate::chpp::{Config, Machine, Operation};
use crate::units::{Span, Time};

/// Bytes of a NAP: its data is inside its descriptor of 80 B.
const NAP: u64 = 64;

/// A function that sends: its node, its number, and the node that it sends to. It asks that node
/// for data instead if the operation is a GET.
type Sender = (usize, usize, usize);

/// The end of an operation at its receiver.
struct Arrival {
    time: Time,
    /// Node and function that posted it.
    from: (usize, usize),
}

/// Senders with a fixed number of operations each. With the event of one, its sender posts the
/// next.
struct Closed {
    kind: Kind,
    bytes: u64,
    /// Arrivals after which senders post no more.
    until: usize,
    arrivals: Vec<Arrival>,
}

impl Closed {
    fn post(&self, api: &mut HostApi<'_>, (node, function, to): Sender) -> Result<(), String> {
        let end = |node| Endpoint::new(node as u8, function as u8, 0);
        let ends = end(node).and_then(|from| Ok((from, end(to)?)));
        let posted = ends.and_then(|ends| post_free(api, self.kind, ends, self.bytes));
        posted.map(|_| ()).map_err(|error| error.to_string())
    }
}

impl Program for Closed {
    fn notified(&mut self, notice: &Notice, api: &mut HostApi<'_>) {
        if notice.ring != RingKind::Receive {
            return;
        }
        let Operation { node, function, peer, .. } = api.operations()[notice.operation as usize];
        self.arrivals.push(Arrival { time: notice.time, from: (node, function) });
        if self.arrivals.len() < self.until
            && let Some(to) = peer
        {
            self.post(api, (node, function, to)).expect("the same was posted before");
        }
    }
}

/// All arrivals, if each sender has `each` operations at a time and posts new ones until `until`
/// have arrived.
fn closed(
    config: &Config,
    (kind, bytes): (Kind, u64),
    senders: &[Sender],
    (each, until): (usize, usize),
) -> Result<Vec<Arrival>, String> {
    let mut machine = Machine::new(config, 1).map_err(|error| error.to_string())?;
    let mut program = Closed { kind, bytes, until, arrivals: Vec::new() };
    for _ in 0..each {
        for sender in senders {
            program.post(&mut machine.api(), *sender)?;
        }
    }
    machine.run_to_end(&mut program).map_err(|stopped| stopped.to_string())?;
    machine.audit().map_err(|imbalance| imbalance.to_string())?;
    Ok(program.arrivals)
}

/// The share of function 0 of node 0 in these arrivals, in percent.
fn share(arrivals: &[Arrival]) -> f64 {
    let of_first = arrivals.iter().filter(|arrival| arrival.from == (0, 0)).count();
    100.0 * of_first as f64 / arrivals.len() as f64
}

/// Nanoseconds from one arrival to the next, over these arrivals.
fn gap(arrivals: &[Arrival]) -> f64 {
    let [first, .., last] = arrivals else { return f64::NAN };
    (last.time - first.time).as_ns() / (arrivals.len() - 1) as f64
}

/// The share of function 0 in PUTs of 2 KiB, if all functions of node 0 always have some. They are
/// of one length and counted by rounds of the arbiter, so the share has no noise: 120 are whole
/// rounds of 6, 8 and 10 turns.
pub(super) fn share_of_function_0(config: &Config) -> Result<f64, String> {
    let senders: Vec<Sender> = (0..config.nic.functions).map(|function| (0, function, 1)).collect();
    let arrivals = closed(config, (Kind::Put, 2048), &senders, (16, 160))?;
    Ok(share(&arrivals[40..160]))
}

/// The share of node 0 in PUTs of 1 KiB to node 3, if nodes 0, 1 and 2 always have some. 48 are
/// whole rounds of 3 and 4 turns.
pub(super) fn share_of_node_0(config: &Config) -> Result<f64, String> {
    let senders = [(0, 0, 3), (1, 0, 3), (2, 0, 3)];
    let arrivals = closed(config, (Kind::Put, 1024), &senders, (16, 60))?;
    Ok(share(&arrivals[12..60]))
}

/// Nanoseconds for a NAP, if two nodes send them to a third one as fast as it has slots.
pub(super) fn naps_from_two(config: &Config) -> Result<f64, String> {
    let arrivals = closed(config, (Kind::NapImmediate, NAP), &[(0, 0, 1), (2, 0, 1)], (8, 41))?;
    Ok(gap(&arrivals[8..41]))
}

/// Nanoseconds for a NAP, if all their doorbells have come before. 48 are whole rounds of 2, 4 and
/// 8 descriptors that are read at once.
pub(super) fn naps_that_wait(config: &Config) -> Result<f64, String> {
    let arrivals = closed(config, (Kind::NapImmediate, NAP), &[(0, 0, 1)], (64, 0))?;
    Ok(gap(&arrivals[8..57]))
}

/// Bytes in a nanosecond that node 0 gets, if two nodes have eight GETs of 8 KiB each from each
/// other. Counted while both directions are busy.
pub(super) fn opposing_gets(config: &Config) -> Result<f64, String> {
    const BYTES: u64 = 8192;
    let mut arrivals = closed(config, (Kind::Get, BYTES), &[(0, 0, 1), (1, 0, 0)], (8, 40))?;
    arrivals.truncate(40);
    let of_one: Vec<Arrival> =
        arrivals.into_iter().skip(8).filter(|arrival| arrival.from.0 == 0).collect();
    Ok(BYTES as f64 / gap(&of_one))
}

/// The time between two looks of slow software. All that there is room for arrives meanwhile.
const BETWEEN: Span = Span::from_ns(50_000);

/// Software of a node that looks at its rings twice, and from the second look on reads all events
/// at once, so that the machine comes to its end.
struct Slow {
    node: usize,
    ring: RingKind,
    queue_pairs: usize,
    /// Events that it finds at its second look.
    found: u64,
}

impl Slow {
    fn reads(&self, api: &mut HostApi<'_>, yes: bool) {
        (0..self.queue_pairs).for_each(|queue_pair| api.consumes(self.node, 0, queue_pair, yes));
    }
}

impl Program for Slow {
    fn notified(&mut self, notice: &Notice, _: &mut HostApi<'_>) {
        let is_watched = (notice.node, notice.ring) == (self.node, self.ring);
        self.found += u64::from(is_watched && notice.time == Time::ZERO + BETWEEN * 2);
    }

    fn woken(&mut self, look: u32, api: &mut HostApi<'_>) {
        self.reads(api, true);
        if look == 1 {
            self.reads(api, false);
            api.wake(api.now() + BETWEEN, 2);
        }
    }
}

/// How many events software of `node` finds in a ring if it looks seldom. Node 0 has posted `count`
/// operations of 64 B, in turn to `queue_pairs` queue pairs of node 1.
fn found(
    config: &Config,
    (node, ring): (usize, RingKind),
    (kind, count): (Kind, usize),
    queue_pairs: usize,
) -> Result<f64, String> {
    let mut machine = Machine::new(config, 1).map_err(|error| error.to_string())?;
    let mut slow = Slow { node, ring, queue_pairs, found: 0 };
    let mut api = machine.api();
    slow.reads(&mut api, false);
    for at in 0..count {
        let to = Endpoint::new(1, 0, (at % queue_pairs) as u8);
        let posted = to.and_then(|to| post_free(&mut api, kind, (endpoint(0), to), 64));
        posted.map_err(|error| error.to_string())?;
    }
    api.wake(Time::ZERO + BETWEEN, 1);
    machine.run_to_end(&mut slow).map_err(|stopped| stopped.to_string())?;
    machine.audit().map_err(|imbalance| imbalance.to_string())?;
    Ok(slow.found as f64)
}

/// What slow software finds at a look: NAPs at all queue pairs of a receiver, PUTs at one, and PUTs
/// that a sender has sent. Twice as much is posted as two looks find with twice the room.
pub(super) fn looks(config: &Config) -> Result<Vec<f64>, String> {
    let receiver = (1, RingKind::Receive);
    Ok(vec![
        found(config, receiver, (Kind::NapImmediate, 128), config.nic.queue_pairs)?,
        found(config, receiver, (Kind::Put, 64), 1)?,
        found(config, (0, RingKind::Send), (Kind::Put, 40), 1)?,
    ])
}

/// The latency of the third of three NAPs that are posted at once, in nanoseconds.
pub(super) fn third_of_three(config: &Config) -> Result<f64, String> {
    let mut machine = Machine::new(config, 1).map_err(|error| error.to_string())?;
    for _ in 0..3 {
        let ends = (endpoint(0), endpoint(1));
        post_free(&mut machine.api(), Kind::NapImmediate, ends, NAP)
            .map_err(|error| error.to_string())?;
    }
    machine.run_to_end(&mut ()).map_err(|stopped| stopped.to_string())?;
    machine.audit().map_err(|imbalance| imbalance.to_string())?;
    let latency = machine.operations()[2].latency().ok_or("the third has not ended")?;
    Ok(latency.as_ns())
}

/// Cycles of the read of a PUT's 152 B from byte 104 of a block of 256: two completions, of which
/// the first ends at the completion boundary.
pub(super) fn unaligned_read(config: &Config) -> Result<f64, String> {
    let mut machine = Machine::new(config, 1).map_err(|error| error.to_string())?;
    let mut api = machine.api();
    let places = (api.free_memory(0, 0) + 104, api.free_memory(1, 0));
    post(&mut api, Kind::Put, (endpoint(0), endpoint(1)), places, 152)
        .map_err(|error| error.to_string())?;
    machine.run_to_end(&mut ()).map_err(|stopped| stopped.to_string())?;
    machine.audit().map_err(|imbalance| imbalance.to_string())?;
    let cycle = config.nic.cycle().ps() as f64;
    Ok(machine.nodes()[0].port.round_trip.mean() / cycle)
}

/// Nanoseconds of the first and of the third of three loads that a processor posts at once: of the
/// last word of an I/O device of the prototype.
pub(super) fn loads(config: &Config) -> Result<Vec<f64>, String> {
    let mut machine = Machine::new(config, 1).map_err(|error| error.to_string())?;
    let mut api = machine.api();
    let word = api.device(0).ok_or("there is no I/O device")? + (64 << 10) - 8;
    for _ in 0..3 {
        api.load(0, word, 8).ok_or("the I/O device has no such word")?;
    }
    machine.run_to_end(&mut ()).map_err(|stopped| stopped.to_string())?;
    machine.audit().map_err(|imbalance| imbalance.to_string())?;
    let took = |at: usize| {
        let access = machine.io().accesses().get(at)?;
        Some((access.done? - access.posted).as_ns())
    };
    [0, 2].into_iter().map(|at| took(at).ok_or_else(|| "a load has not ended".to_owned())).collect()
}
