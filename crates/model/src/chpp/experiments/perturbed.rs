//! Short measurements of the experiments, of a configuration that may have been changed:
//! `perturbed.toml` says what must follow. Bytes count with the receiver's event.

use super::Kind;
use super::fig15::{with_mtu, with_slow_reads};
use super::fig18::{self, point};
use super::single::single;
use super::staged::{DIRECT, STAGED, transfer};
use super::start;
use super::stream::stream;
use super::{bounded, links};
use crate::chpp::Config;
use crate::chpp::config::{Arbitration, Start};
use crate::engine::Policy;
use crate::network::Shape;
use crate::perturbed::{Probe, exact, within};
use crate::units::{Bytes, Frequency, Span};

/// What must follow from each change.
pub const EXPECTED: &str = include_str!("../perturbed.toml");

/// Bytes of one operation.
const BYTES: u64 = 64;

/// The measurements.
pub const PROBES: [Probe<Config>; 27] = [
    Probe {
        experiment: "table3",
        figures: &[
            exact("64 B: NAP immediate", "ns"),
            exact("64 B: NAP indirect", "ns"),
            exact("64 B: PUT", "ns"),
            exact("64 B: GET", "ns"),
        ],
        base: Config::prototype,
        run: |config| Kind::ALL.into_iter().map(|kind| latency(config, kind)).collect(),
    },
    Probe {
        experiment: "fig16",
        figures: &[within(0.5, "64 KB: PUTs", "GB/s")],
        base: Config::prototype,
        run: puts,
    },
    Probe {
        experiment: "fig16",
        figures: &[within(0.5, "doorbells wait: a NAP", "ns")],
        base: || {
            let mut config = at_once();
            config.nic.doorbell_depth = 64;
            config
        },
        run: |config| Ok(vec![bounded::naps_that_wait(config)?]),
    },
    Probe {
        experiment: "fig16",
        figures: &[within(0.3, "slots are scarce: a NAP", "ns")],
        base: || {
            let mut config = at_once();
            (config.nic.slot_cache, config.nic.slot_batch) = (4, 2);
            config
        },
        run: |config| Ok(vec![bounded::naps_from_two(config)?]),
    },
    Probe {
        experiment: "fig16",
        figures: &[
            exact("slow software: NAPs at a look", "1"),
            exact("slow software: PUTs at a look", "1"),
            exact("slow software: sent PUTs at a look", "1"),
        ],
        base: || {
            let mut config = at_once();
            (config.host.slots, config.host.ring_entries) = (8, 16);
            config.nic.doorbell_depth = 8;
            config
        },
        run: bounded::looks,
    },
    Probe {
        experiment: "fig16",
        figures: &[within(0.5, "opposing GETs: own channel", "GB/s")],
        base: || opposing_gets(true, 1),
        run: |config| Ok(vec![bounded::opposing_gets(config)?]),
    },
    Probe {
        experiment: "fig16",
        figures: &[within(0.5, "opposing GETs: one channel", "GB/s")],
        base: || opposing_gets(false, 8),
        run: |config| Ok(vec![bounded::opposing_gets(config)?]),
    },
    Probe {
        experiment: "fig16",
        figures: &[within(0.5, "few credits for writes: PUTs", "GB/s")],
        base: || {
            let mut config = at_once();
            (config.pcie.posted_headers, config.pcie.posted_data) = (4, 32);
            config
        },
        run: |config| few_puts(config, 16 << 10),
    },
    Probe {
        experiment: "fig16",
        // A descriptor's read, before the first event or after it, is one of 228.
        figures: &[within(1.0, "few credits for reads: PUTs", "GB/s")],
        base: || {
            let mut config = at_once();
            config.pcie.non_posted_headers = 2;
            config
        },
        run: |config| few_puts(config, 4096),
    },
    Probe {
        experiment: "fig15",
        figures: &[within(0.5, "MTU 256 B: PUTs", "GB/s")],
        base: || with_mtu(256),
        run: puts,
    },
    Probe {
        experiment: "fig15",
        // Tags are the bottleneck, so that some cycles of 1670 hardly count.
        figures: &[within(3.0, "slow reads, MTU 256 B: PUTs", "GB/s")],
        base: with_slow_reads,
        run: puts,
    },
    Probe {
        experiment: "fig15",
        figures: &[within(3.0, "slow reads, room for 16: PUTs", "GB/s")],
        base: || {
            let mut config = with_slow_reads();
            config.nic.reorder = Bytes::new(16 * 256);
            config
        },
        run: |config| few_puts(config, 16 << 10),
    },
    Probe {
        experiment: "fig15",
        figures: &[exact("unaligned: a read", "cycles")],
        base: || {
            let mut config = start::with(Start::Descriptor, 1);
            config.pcie.read_request = Bytes::new(256);
            config
        },
        run: |config| Ok(vec![bounded::unaligned_read(config)?]),
    },
    Probe {
        experiment: "eq2",
        figures: &[within(0.5, "one tag: a read", "cycles")],
        base: one_tag,
        run: |config| Ok(vec![stream(config, Kind::Put, 4096, 1, 1)?.round_trip_cycles]),
    },
    Probe {
        experiment: "eq2",
        figures: &[within(0.5, "memory of random times: a read", "cycles")],
        base: || {
            let mut config = one_tag();
            config.host.memory_jitter = Span::from_ns(400);
            config
        },
        // The mean of 512 draws.
        run: |config| Ok(vec![stream(config, Kind::Put, 64 << 10, 1, 1)?.round_trip_cycles]),
    },
    Probe {
        experiment: "fig18",
        figures: &[within(4.0, "full load: 4 ports", "of the peak")],
        base: || fig18::config(4, 2),
        run: |config| {
            let seeds = [1, 2, 3];
            let run = |seed| Ok(point(config, 1.0, Span::from_ns(120_000), seed)?.throughput);
            let runs = seeds.into_iter().map(run).collect::<Result<Vec<f64>, String>>()?;
            Ok(vec![runs.iter().sum::<f64>() / runs.len() as f64])
        },
    },
    Probe {
        experiment: "fig18",
        figures: &[exact("three senders, weights 2 : 1 : 1: share of node 0", "%")],
        base: three_senders,
        run: |config| Ok(vec![bounded::share_of_node_0(config)?]),
    },
    Probe {
        experiment: "fig19",
        figures: &[exact("always busy, weight 3 of 10: share of function 0", "%")],
        base: || {
            let mut config = at_once();
            config.nic.functions = 8;
            config.nic.arbitration =
                Arbitration { policy: Policy::Weighted, weights: vec![3, 1, 1, 1, 1, 1, 1, 1] };
            config
        },
        run: |config| Ok(vec![bounded::share_of_function_0(config)?]),
    },
    Probe {
        experiment: "staged",
        figures: &[
            within(0.2, "co-processors, 4 KB: direct", "ns"),
            within(0.2, "co-processors, 4 KB: staged", "ns"),
        ],
        base: Config::prototype,
        run: |config| {
            [DIRECT, STAGED].into_iter().map(|way| transfer(config, way, 4096, 4096, 1)).collect()
        },
    },
    Probe {
        experiment: "staged",
        figures: &[exact("I/O device: a load", "ns"), exact("I/O device: third load", "ns")],
        base: || {
            let mut config = at_once();
            config.io.buffer = 2;
            config
        },
        run: bounded::loads,
    },
    Probe {
        experiment: "start",
        figures: &[exact("stored descriptor: PUT, 64 B", "ns")],
        base: || start::with(Start::Descriptor, 1),
        run: |config| Ok(vec![latency(config, Kind::Put)?]),
    },
    Probe {
        experiment: "start",
        figures: &[exact("stored descriptor: PUT, 64 B, shared buffer", "ns")],
        base: || start::with(Start::DamqPd, 1),
        run: |config| Ok(vec![latency(config, Kind::Put)?]),
    },
    Probe {
        experiment: "start",
        figures: &[exact("stored descriptor: PUT, 64 B, own ring", "ns")],
        base: || start::with(Start::Ring, 1),
        run: |config| Ok(vec![latency(config, Kind::Put)?]),
    },
    Probe {
        experiment: "start",
        figures: &[exact("stored descriptors, own ring: third NAP", "ns")],
        base: || start::with(Start::Ring, 1),
        run: |config| Ok(vec![bounded::third_of_three(config)?]),
    },
    Probe {
        experiment: "start",
        figures: &[within(1.0, "stored descriptors: 4 threads", "op/us")],
        base: || start::with(Start::Descriptor, 4),
        run: |config| Ok(vec![start::many_of(config, 4, Span::from_ns(40_000), 1)?.per_us]),
    },
    Probe {
        experiment: "links",
        figures: &[exact("linked controllers: PUT, 64 B", "ns")],
        base: || links::config(Shape::Ring { routers: 4 }, 1),
        run: |config| Ok(vec![latency(config, Kind::Put)?]),
    },
    Probe {
        experiment: "links",
        figures: &[within(0.5, "linked controllers, room for 2: PUTs", "GB/s")],
        base: || {
            let mut config = links::config(Shape::Ring { routers: 4 }, 1);
            config.links.as_mut().expect("they are linked").channel_packets = 2;
            config
        },
        run: |config| few_puts(config, 16 << 10),
    },
];

/// The prototype with one function and a processor that takes no time, so that only the engine and
/// its surroundings bound a stream.
fn at_once() -> Config {
    let mut config = Config::prototype();
    config.host.cpu_start = Span::ZERO;
    config.nic.functions = 1;
    config
}

/// Reads that wait for no other.
fn one_tag() -> Config {
    let mut config = Config::prototype();
    config.nic.tags = 1;
    config
}

/// An output whose inputs have unequal weights.
fn three_senders() -> Config {
    let mut config = at_once();
    config.crossbar.arbitration = Arbitration { policy: Policy::Weighted, weights: vec![2, 1, 1] };
    config
}

/// An engine of twice the clock, so that the wires to the host bound GETs in both directions. GETs
/// have a channel of their own or not, and so many places for those from elsewhere. A node has
/// eight GETs under way: without a channel of their own they need a place each.
fn opposing_gets(get_channel: bool, places: usize) -> Config {
    let mut config = at_once();
    config.nic.clock = Frequency::from_mhz(500);
    config.crossbar.get_channel = get_channel;
    config.crossbar.channel_packets = 4;
    config.nic.remote_get_depth = places;
    config
}

/// The bandwidth of PUTs of 64 KB, four of them at a time.
fn puts(config: &Config) -> Result<Vec<f64>, String> {
    Ok(vec![stream(config, Kind::Put, 64 << 10, 4, 12)?.gigabytes_s])
}

/// The same of eight PUTs of `bytes`.
fn few_puts(config: &Config, bytes: u64) -> Result<Vec<f64>, String> {
    Ok(vec![stream(config, Kind::Put, bytes, 4, 8)?.gigabytes_s])
}

fn latency(config: &Config, kind: Kind) -> Result<f64, String> {
    Ok(single(config, kind, BYTES)?.latency.as_ns())
}
