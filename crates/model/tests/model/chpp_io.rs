//! Processors and I/O devices of the modelled cHPP controller: plain loads and stores beside DMA.

use bellwire_model::chpp::experiments::Kind;
use bellwire_model::chpp::experiments::single::{endpoint, pattern, post_free};
use bellwire_model::chpp::host::{Notice, RingKind};
use bellwire_model::chpp::machine::{HostApi, Program};
use bellwire_model::chpp::{Config, Machine};
use bellwire_model::engine::Standstill;
use bellwire_model::units::{Span, Time};
use bellwire_wire::endpoint::Endpoint;

fn config() -> Config {
    let mut config = Config::prototype();
    config.io.devices = 2;
    config
}

/// Every node stores to and loads from every device by its global address, over the links that
/// carry its DMA. The bytes are right, their neighbours do not change, and an address names the
/// same place for all nodes. Unmapped addresses are refused.
// shows: C-01, C-05, C-55
#[test]
fn plain_loads_and_stores_pass() {
    let mut machine = Machine::new(&config(), 1).unwrap();
    for node in 0..4 {
        for device in 0..2 {
            let base = machine.api().device(device).unwrap();
            for (at, length) in [(0, 1), (5, 3), (100, 64), (4000, 96), (65408, 128)] {
                let bytes: Vec<u8> = (0..length).map(|i| pattern(i + 7 * node + at)).collect();
                let before = machine.io().memory(base, 65536).unwrap().to_vec();
                let mut api = machine.api();
                let store = api.store(node, base + at as u64, &bytes).unwrap();
                // A load stays behind an earlier store of the same node.
                let load = api.load(node, base + at as u64, length).unwrap();
                machine.run_to_end(&mut ()).unwrap();
                let after = machine.io().memory(base, 65536).unwrap();
                assert_eq!(&after[at..at + length], bytes);
                assert!(
                    after[..at] == before[..at] && after[at + length..] == before[at + length..]
                );
                let api = machine.api();
                let (store, load) = (api.access(store).unwrap(), api.access(load).unwrap());
                assert_eq!(load.bytes, bytes);
                // A load crosses the links in both directions, a store in one.
                assert!(load.done.unwrap() - load.posted > store.done.unwrap() - store.posted);
            }
        }
    }
    machine.audit().unwrap();
    assert!(
        machine
            .nodes()
            .iter()
            .all(|node| node.port.down.packets == 20 && node.port.up.packets == 10)
    );
    let mut api = machine.api();
    let (base, memory) = (api.device(0).unwrap(), api.free_memory(0, 0));
    assert!(api.device(2).is_none());
    assert!(api.load(0, memory, 8).is_none() && api.load(0, base + 65536, 1).is_none());
    assert!(api.load(0, base + 65530, 8).is_none() && api.store(0, base, &[0; 129]).is_none());
    assert!(api.load(0, base, 0).is_none() && api.store(0, base + 4090, &[0; 16]).is_none());
}

/// A load of 8 B: a request of 24 B over the wires (6 ns and 166), a beat through the crossbar
/// (16), the request to the device (172), its latency (200), an answer of 28 B (173), two beats
/// (20), and the answer to the host (173). What comes over wires waits for an edge of 4 ns. Answers
/// follow each other in 12. A device holds two requests: the third crosses when the first answer
/// has, in 748. A store of 9 B has 36 B on the wires (175 twice) and two beats (20). The times are
/// those of both controllers, each with two nodes and three devices.
#[test]
fn accesses_take_the_times_of_their_way() {
    crate::limit::limited(|| {
        let mut config = config();
        (config.crossbar.ports, config.io.devices, config.io.buffer) = (2, 3, 2);
        let links = bellwire_model::chpp::config::LinksConfig {
            topology: bellwire_model::network::Shape::Mesh { radix: 2, dimensions: 1 },
            channel_packets: 32,
            latency: config.pcie.latency,
        };
        config.links = Some(links);
        for (node, device) in [(0, 0), (1, 2), (2, 3), (3, 5), (3, 4)] {
            let done = |ask: &dyn Fn(&mut HostApi<'_>, u64)| -> Vec<u64> {
                let mut machine = Machine::new(&config, 1).unwrap();
                let base = machine.api().device(device).unwrap();
                ask(&mut machine.api(), base);
                machine.run_to_end(&mut ()).unwrap();
                machine.audit().unwrap();
                let answers =
                    machine.nodes().iter().map(|it| it.port.up.packets).collect::<Vec<_>>();
                let api = machine.api();
                let loads = (0..).map_while(|it| api.access(it)).filter(|it| it.is_load).count();
                let due = (0..4).map(|it| if it == node { loads as u64 } else { 0 });
                assert!(due.eq(answers), "the answers come to the node that asked");
                let api = machine.api();
                let ends =
                    (0..).map_while(|it| api.access(it)).map(|it| it.done.unwrap().ps() / 1000);
                ends.collect()
            };
            let loads = done(&|api, base| {
                for _ in 0..3 {
                    api.load(node, base + 64, 8).unwrap();
                }
            });
            let third = 748 + 16 + 172 + 200 + 173 + 3 + 20 + 173;
            assert_eq!(loads, [929, 929 + 12, third], "node {node}, device {device}");
            let stored = done(&|api, base| {
                api.store(node, base + 64, &[7; 9]).unwrap();
            });
            assert_eq!(stored, [176 + 20 + 175], "node {node}, device {device}");
            let other = (node + 2) % 4;
            let mut machine = Machine::new(&config, 1).unwrap();
            let base = machine.api().device(device).unwrap();
            assert_eq!(machine.api().load(other, base, 8), None, "it is another controller's");
        }
    });
}

/// A device that takes nothing keeps loads waiting, and the report names their node.
#[test]
fn waiting_accesses_are_named() {
    let mut machine = Machine::new(&config(), 1).unwrap();
    let base = machine.api().device(0).unwrap();
    machine.api().device_takes(0, false);
    machine.api().load(2, base, 8).unwrap();
    machine.api().load(2, base, 8).unwrap();
    let Err(Standstill::Starved(waits)) = machine.run_to_end(&mut ()) else { panic!("it waits") };
    assert_eq!(waits.len(), 1);
    assert!(waits[0].starts_with("node 2") && waits[0].contains("2 accesses"), "{waits:?}");
    machine.api().device_takes(0, true);
    machine.run_to_end(&mut ()).unwrap();
}

/// The laws hold while accesses are under way.
#[test]
fn accesses_under_way_are_accounted_for() {
    let mut machine = Machine::new(&config(), 1).unwrap();
    let base = machine.api().device(0).unwrap();
    for node in [1, 1, 3] {
        machine.api().load(node, base, 8).unwrap();
    }
    while machine.step_program(&mut (), Time::NEVER) {
        machine.audit().unwrap();
    }
}

/// A device that stands still has two requests, and the port of the node two more. The other six
/// stay in the host.
#[test]
fn requests_wait_for_room() {
    let mut config = config();
    config.io.buffer = 2;
    let mut machine = Machine::new(&config, 1).unwrap();
    let base = machine.api().device(0).unwrap();
    machine.api().device_takes(0, false);
    for _ in 0..10 {
        machine.api().load(2, base, 8).unwrap();
    }
    machine.run_to_end(&mut ()).unwrap_err();
    assert_eq!(machine.nodes()[2].port.down.packets, 4);
    machine.api().device_takes(0, true);
    machine.run_to_end(&mut ()).unwrap();
    assert_eq!(machine.nodes()[2].port.down.packets, 10);
}

/// A node, and the next of the four.
fn to_next(node: usize) -> (Endpoint, Endpoint) {
    (endpoint(node as u8), endpoint((node as u8 + 1) % 4))
}

/// All nodes send PUTs and access the device, with a fixed number of each in flight.
struct Both {
    until: Time,
    put: u64,
    accessed: u64,
    access_ps: u64,
}

impl Both {
    fn run(puts: u64, accesses: u64) -> (Both, Machine) {
        let mut machine = Machine::new(&config(), 1).unwrap();
        let until = Time::ZERO + Span::from_ns(300_000);
        let mut both = Both { until, put: 0, accessed: 0, access_ps: 0 };
        for node in 0..4 {
            for _ in 0..puts {
                both.put(&mut machine.api(), node);
            }
            for at in 0..accesses {
                both.access(&mut machine.api(), node, at);
            }
        }
        machine.run_to_end(&mut both).unwrap();
        machine.audit().unwrap();
        (both, machine)
    }

    fn put(&mut self, api: &mut HostApi<'_>, node: usize) {
        post_free(api, Kind::Put, to_next(node), 16384).unwrap();
    }

    fn access(&mut self, api: &mut HostApi<'_>, node: usize, at: u64) {
        let address = api.device(0).unwrap() + at % 64 * 64;
        match at % 2 {
            0 => api.load(node, address, 8),
            _ => api.store(node, address, &[1; 64]),
        };
    }

    /// Rate of a node's DMA in GB/s.
    fn dma(&self) -> f64 {
        (self.put * 16384) as f64 / 4.0 / 300_000.0
    }
}

impl Program for Both {
    fn notified(&mut self, notice: &Notice, api: &mut HostApi<'_>) {
        if notice.ring == RingKind::Receive && api.now() < self.until {
            self.put += 1;
            self.put(api, (notice.node + 3) % 4);
        }
    }

    fn accessed(&mut self, access: u32, api: &mut HostApi<'_>) {
        let ended = api.access(access).unwrap();
        let (node, took) = (ended.node, ended.done.unwrap() - ended.posted);
        if api.now() < self.until {
            self.accessed += 1;
            self.access_ps += took.ps();
            self.access(api, node, self.accessed);
        }
    }
}

/// While DMA saturates, all accesses to the device complete, but later than on an idle machine.
/// While accesses of all nodes saturate the device, DMA loses only their share of the common wires.
// shows: C-03, C-55
#[test]
fn io_and_dma_do_not_stop_each_other() {
    let (alone, _) = Both::run(4, 0);
    let (quiet, _) = Both::run(0, 1);
    let (both, _) = Both::run(4, 1);
    let (flooded, machine) = Both::run(4, 64);
    assert!(alone.dma() > 2.5, "{}", alone.dma());
    assert!(both.dma() > 0.9 * alone.dma(), "{} of {}", both.dma(), alone.dma());
    let mean = |run: &Both| run.access_ps as f64 / run.accessed as f64;
    assert!(mean(&both) > mean(&quiet) && mean(&both) < 3.0 * mean(&quiet));
    assert!(flooded.dma() > 0.9 * alone.dma(), "{} of {}", flooded.dma(), alone.dma());
    assert!(flooded.accessed > 4 * both.accessed);
    assert!(machine.operations().iter().all(|operation| operation.finished.is_some()));
}

/// A device that accepts nothing blocks the nodes that access it, and the machine reports it; their
/// DMA continues. When the device accepts again, all accesses complete.
// shows: C-03
#[test]
fn a_device_that_stands_still_does_not_stop_dma() {
    let mut machine = Machine::new(&config(), 1).unwrap();
    let mut api = machine.api();
    api.device_takes(0, false);
    let base = api.device(0).unwrap();
    for node in 0..4 {
        for at in 0..100 {
            api.store(node, base + 8 * at, &[1; 8]).unwrap();
        }
        for _ in 0..40 {
            post_free(&mut api, Kind::Put, to_next(node), 3000).unwrap();
        }
    }
    let Err(Standstill::Starved(waits)) = machine.run_to_end(&mut ()) else { panic!("it stands") };
    assert!(
        waits.iter().any(|wait| wait == "node 2 waits for 100 accesses to I/O devices"),
        "{waits:?}"
    );
    assert!(machine.operations().iter().all(|operation| operation.finished.is_some()));
    machine.api().device_takes(0, true);
    machine.run_to_end(&mut ()).unwrap();
    machine.audit().unwrap();
    assert!(machine.io().accesses().iter().all(|access| access.done.is_some()));
}

/// A program is told of each access that has ended, when it has.
#[test]
fn a_program_is_told_of_its_accesses() {
    struct Told(Vec<u32>);
    impl Program for Told {
        fn notified(&mut self, _: &Notice, _: &mut HostApi<'_>) {}
        fn accessed(&mut self, access: u32, api: &mut HostApi<'_>) {
            assert!(api.access(access).unwrap().done.is_some());
            self.0.push(access);
        }
    }
    let mut machine = Machine::new(&config(), 1).unwrap();
    let base = machine.api().device(0).unwrap();
    let mut told = Told(Vec::new());
    for expected in [vec![0], vec![0, 1]] {
        machine.api().load(0, base, 8).unwrap();
        machine.run_to_end(&mut told).unwrap();
        assert_eq!(told.0, expected);
    }
}
