//! Independent checks of the interface: laws that hold for all parameters.

use crate::support::latency;
use bellwire_model::chpp::Config;
use bellwire_model::chpp::experiments::Kind;
use bellwire_model::chpp::experiments::single::{endpoint, single};
use bellwire_model::chpp::experiments::stream::stream;
use bellwire_model::units::{Bytes, Span};

/// Time for each packet after the first, in nanoseconds, over n packets.
fn each_further_packet_ns(config: &Config, packets: u64) -> f64 {
    let latency =
        |packets: u64| single(config, Kind::Put, 128 * packets).expect("it runs").latency.as_ns();
    (latency(packets) - latency(1)) / (packets - 1) as f64
}

/// A pipeline takes the sum of its stage times for the first packet, and the slowest stage's time
/// for each further one (pipelined DMA). The slowest stage is the internal bus with 10 cycles, also
/// with a slower engine. With half the lanes it is the wires, which carry 152 B for a packet of
/// 128. Canary: the second-slowest stage gives a different time.
#[test]
fn a_chain_is_as_fast_as_its_slowest_stage() {
    let prototype = Config::prototype();
    let mut engine = prototype.clone();
    engine.nic.engine_cycles = 5;
    let mut lanes = prototype.clone();
    lanes.pcie.lanes = 4;
    // Acknowledgements and credit updates would come in between; other tests check them.
    lanes.pcie.ack_limit = Bytes::new(1 << 30);
    lanes.pcie.credit_limit = Bytes::new(1 << 30);
    for (config, slowest_ns, next_ns) in
        [(&prototype, 40.0, 38.0), (&engine, 56.0, 38.0), (&lanes, 76.0, 40.0)]
    {
        for packets in [9, 33] {
            let found = each_further_packet_ns(config, packets);
            // The last packet may fall on another clock edge than the first.
            let edge = 4.0 / (packets - 1) as f64;
            assert!((found - slowest_ns).abs() <= edge + 0.01, "{found} of {slowest_ns} ns");
            assert!((found - next_ns).abs() > edge + 0.5, "canary: {found} is not {next_ns} ns");
        }
    }
}

/// All nodes are equal: an operation takes the same time between any two, to the picosecond.
/// Canary: slower processors make a difference.
#[test]
fn nodes_are_alike() {
    let between = |from: u8, to: u8, config: &Config| {
        latency(config, 1, Kind::Put, (endpoint(from), endpoint(to)), 1000)
    };
    let config = Config::prototype();
    let first = between(0, 1, &config);
    for (from, to) in [(1, 0), (0, 3), (3, 2), (2, 1)] {
        assert_eq!(between(from, to, &config), first, "{from} to {to}");
    }
    let mut other = config;
    other.host.cpu_start += Span::from_ns(4);
    assert_ne!(between(0, 1, &other), first);
}

/// More credits never carry less. Canary: with one credit of each kind, less is carried than with
/// many.
#[test]
fn more_credits_never_hurt() {
    type Change = fn(&mut Config, u64);
    let changes: [(&str, Change); 2] = [
        ("posted headers", |config, many| config.pcie.posted_headers = many),
        ("non-posted headers", |config, many| config.pcie.non_posted_headers = many),
    ];
    for (name, change) in changes {
        let carried = |many: u64| {
            let mut config = Config::prototype();
            change(&mut config, many);
            stream(&config, Kind::Put, 16384, 2, 8).expect("it runs").gigabytes_s
        };
        let all = [1, 2, 4, 16, 64].map(carried);
        assert!(all.windows(2).all(|pair| pair[1] > 0.999 * pair[0]), "{name}: {all:?}");
        assert!(all[0] < 0.9 * all[4], "canary: {name}: {all:?}");
    }
}
