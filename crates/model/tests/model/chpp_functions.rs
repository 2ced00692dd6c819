//! Functions and queue pairs of the modelled cHPP interface, and the limit that tags set to its
//! reads.

use std::collections::{BTreeMap, BTreeSet};

use bellwire_model::chpp::experiments::Kind;
use bellwire_model::chpp::experiments::single::{endpoint, post, single};
use bellwire_model::chpp::experiments::stream::stream;
use bellwire_model::chpp::host::Notice;
use bellwire_model::chpp::machine::{HostApi, Program};
use bellwire_model::chpp::port::RingKind;
use bellwire_model::chpp::{Config, Machine};
use bellwire_wire::endpoint::Endpoint;
use bellwire_wire::event::EVENT_BYTES;

/// Counts events by ring, function and queue pair.
#[derive(Default)]
struct Counted(BTreeMap<(usize, bool, usize, usize), u32>);

impl Program for Counted {
    fn notified(&mut self, notice: &Notice, _: &mut HostApi<'_>) {
        let sent = notice.ring == RingKind::Send;
        *self.0.entry((notice.node, sent, notice.function, notice.queue_pair)).or_default() += 1;
    }
}

/// All 32 queue pairs of an interface ring at once, each several times. Every doorbell is served
/// exactly once, and each queue pair gets its own events and no others.
// shows: C-11, C-31, C-38
#[test]
fn all_queue_pairs_work_at_once() {
    let config = Config::prototype();
    let mut machine = Machine::new(&config, 4).unwrap();
    let mut api = machine.api();
    for _ in 0..5 {
        for function in 0..8 {
            for queue_pair in 0..4 {
                let ends = [0, 1].map(|node| Endpoint::new(node, function, queue_pair).unwrap());
                let near = api.free_memory(0, function.into());
                post(&mut api, Kind::NapIndirect, (ends[0], ends[1]), (near, 0), 100).unwrap();
            }
        }
    }
    let mut counted = Counted::default();
    machine.run_to_end(&mut counted).unwrap();
    assert_eq!(counted.0.len(), 64);
    assert!(counted.0.values().all(|events| *events == 5));
    assert!(counted.0.keys().all(|(node, sent, _, _)| *sent == (*node == 0)));
    let counters = machine.nodes()[0].descriptors.counters;
    assert_eq!((counters.doorbells, counters.read, counters.extracted), (160, 160, 160));
}

/// A ring lies at the base that it was given at initialisation: its first record is written there,
/// and nowhere else. Bases of four places differ, by function and by window size. Nothing else
/// does: the history is the same to the picosecond.
// shows: C-15
#[test]
fn rings_may_lie_anywhere() {
    let mut bases = BTreeSet::new();
    let mut latency = |function: u8, window: &str| {
        let mut config = Config::prototype();
        config.host.window = window.parse().unwrap();
        let mut machine = Machine::new(&config, 1).unwrap();
        let mut api = machine.api();
        let ends = [0, 1].map(|node| Endpoint::new(node, function, 0).unwrap());
        let near = api.free_memory(0, function.into());
        let operation =
            post(&mut api, Kind::NapImmediate, (ends[0], ends[1]), (near, 0), 40).unwrap();
        let rings = |machine: &Machine| -> Vec<(u64, Vec<u8>)> {
            let pairs = machine.nodes()[1].layouts.iter().flat_map(|layout| &layout.queue_pairs);
            let bases = pairs.map(|pair| pair.receive_ring);
            bases
                .map(|base| {
                    (
                        base,
                        machine.nodes()[1].port.memory.slice(base, EVENT_BYTES).unwrap().to_vec(),
                    )
                })
                .collect()
        };
        let before = rings(&machine);
        machine.run_to_end(&mut ()).unwrap();
        let after = rings(&machine);
        let written = before.iter().zip(&after).filter(|(before, after)| before != after);
        let written: Vec<u64> = written.map(|(_, (base, _))| *base).collect();
        let place = &machine.nodes()[1].layouts[usize::from(function)].queue_pairs[0];
        assert_eq!(written, [place.receive_ring], "one record, at the base");
        assert!(bases.insert(place.receive_ring), "the bases differ");
        machine.operations()[operation as usize].latency().unwrap()
    };
    let first = latency(0, "8 MiB");
    for (function, window) in [(5, "8 MiB"), (7, "16 MiB"), (3, "4 MiB")] {
        assert_eq!(latency(function, window), first, "{function} {window}");
    }
}

/// Where tags are scarce, bandwidth is tags x request size / round trip (Neugebauer et al.), with
/// the round trip of a read on an idle machine. Canary: with enough tags, the bandwidth is far from
/// that formula.
#[test]
fn few_tags_bound_reads() {
    let bound = |tags: usize| {
        let mut config = Config::prototype();
        config.nic.tags = tags;
        let idle = stream(
            &Config {
                nic: {
                    let mut nic = config.nic.clone();
                    nic.tags = 1;
                    nic
                },
                ..config.clone()
            },
            Kind::Put,
            1024,
            1,
            1,
        )
        .unwrap();
        let run = stream(&config, Kind::Put, 1 << 20, 1, 1).unwrap();
        let formula = tags as f64 * 128.0 / (idle.round_trip_cycles * 4.0);
        run.gigabytes_s / formula
    };
    for tags in [2, 4, 8] {
        assert!((bound(tags) - 1.0).abs() < 0.03, "{tags}: {}", bound(tags));
    }
    assert!(bound(32) < 0.6);
}

/// A message on an idle machine takes the same time for every seed: the seed only decides ties.
#[test]
fn an_idle_machine_knows_no_chance() {
    let latency = |seed| {
        let mut machine = Machine::new(&Config::prototype(), seed).unwrap();
        let mut api = machine.api();
        let places = (api.free_memory(0, 0), api.free_memory(1, 0));
        let operation =
            post(&mut api, Kind::Put, (endpoint(0), endpoint(1)), places, 5000).unwrap();
        machine.run_to_end(&mut ()).unwrap();
        machine.operations()[operation as usize].latency().unwrap()
    };
    let first = single(&Config::prototype(), Kind::Put, 5000).unwrap().latency;
    assert!((0..20).all(|seed| latency(seed) == first));
}
