//! Functions and queue pairs of the modelled cHPP interface, and the limit that tags set to its
//! reads.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::latency;
use bellwire_model::chpp::experiments::Kind;
use bellwire_model::chpp::experiments::single::{endpoint, post_free, single};
use bellwire_model::chpp::experiments::stream::stream;
use bellwire_model::chpp::host::{Notice, RingKind};
use bellwire_model::chpp::{Config, Machine};
use bellwire_wire::endpoint::Endpoint;
use bellwire_wire::event::EVENT_BYTES;

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
                post_free(&mut api, Kind::NapIndirect, ends.into(), 100).unwrap();
            }
        }
    }
    let mut notices: Vec<Notice> = Vec::new();
    machine.run_to_end(&mut notices).unwrap();
    // By node, ring, function and queue pair.
    let mut counted: BTreeMap<_, u32> = BTreeMap::new();
    for Notice { node, ring, function, queue_pair, .. } in notices {
        *counted.entry((node, ring == RingKind::Send, function, queue_pair)).or_default() += 1;
    }
    assert_eq!(counted.len(), 64);
    assert!(counted.values().all(|events| *events == 5));
    assert!(counted.keys().all(|(node, sent, _, _)| *sent == (*node == 0)));
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
        let ends = [0, 1].map(|node| Endpoint::new(node, function, 0).unwrap());
        let mut machine = Machine::new(&config, 1).unwrap();
        let operation = post_free(&mut machine.api(), Kind::NapImmediate, ends.into(), 40).unwrap();
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
        let mut one_tag = config.clone();
        one_tag.nic.tags = 1;
        let idle = stream(&one_tag, Kind::Put, 1024, 1, 1).unwrap();
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
    let (config, ends) = (Config::prototype(), (endpoint(0), endpoint(1)));
    let first = single(&config, Kind::Put, 5000).unwrap().latency;
    assert!((0..20).all(|seed| latency(&config, seed, Kind::Put, ends, 5000) == first));
}
