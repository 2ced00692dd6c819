//! Several modelled cHPP controllers, linked in many topologies.

use crate::chpp_records::read_capture;
use crate::oracle::random_traffic;
use crate::support::latency;
use bellwire_model::chpp::config::{LinkKind, LinksConfig};
use bellwire_model::chpp::experiments::Kind;
use bellwire_model::chpp::experiments::single::{endpoint, post_free};
use bellwire_model::chpp::record::frames::capture;
use bellwire_model::chpp::{Config, Machine};
use bellwire_model::engine::Standstill;
use bellwire_model::network::Shape;
use bellwire_model::units::{Bytes, Span, Time};

/// Controllers with `nodes` nodes each, linked as `topology`.
fn linked(topology: Shape, nodes: usize) -> Config {
    let mut config = Config::prototype();
    config.crossbar.ports = nodes;
    let latency = config.pcie.latency;
    config.links = Some(LinksConfig { topology, channel_packets: 32, latency });
    config.nic.functions = 2;
    config.host.window = Bytes::new(4 << 20);
    config
}

/// Every kind of topology, with one to four nodes per controller; the last one is given as a list
/// of links.
fn networks() -> Vec<(Shape, usize)> {
    let ring_with_chords =
        vec![(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (1, 3), (0, 5), (5, 6), (6, 4)];
    vec![
        (Shape::Ring { routers: 5 }, 3),
        (Shape::Ring { routers: 8 }, 2),
        (Shape::Mesh { radix: 4, dimensions: 2 }, 1),
        (Shape::Mesh { radix: 2, dimensions: 1 }, 4),
        (Shape::Torus { radix: 4, dimensions: 2 }, 1),
        (Shape::Torus { radix: 3, dimensions: 2 }, 1),
        (Shape::Hypercube { dimensions: 4 }, 1),
        (Shape::Hypercube { dimensions: 2 }, 4),
        (Shape::FullyConnected { routers: 4 }, 4),
        (Shape::Links { routers: 7, terminals: 1, links: ring_with_chords }, 2),
    ]
}

/// Random traffic of all primitives among the nodes of linked controllers is byte-exact in every
/// kind of topology. Packets cross more than one controller, and the links conserve packets, places
/// and credits.
// shows: C-02, C-01
#[test]
fn controllers_reach_each_other_in_any_topology() {
    for (topology, nodes) in networks() {
        let config = linked(topology.clone(), nodes);
        let (machine, traffic) = random_traffic(&config, 3, 400, false);
        assert_eq!((traffic.checked, traffic.mismatches), (400, 0), "{topology:?}");
        machine.audit().unwrap();
        let crossed: u64 =
            machine.controllers().crossbars.iter().flat_map(|crossbar| &crossbar.crossed).sum();
        let sent: u64 = machine.nodes().iter().map(|node| node.packer.packets).sum();
        assert!(crossed as f64 > 1.4 * sent as f64, "{topology:?}: {crossed} of {sent}");
    }
}

/// All nodes PUT to and GET from all others at once, with room for one packet per link channel.
/// Nothing deadlocks in any topology, because routes form no cycle and GETs have their own
/// channels.
// shows: C-02, C-27
#[test]
fn full_links_do_not_lock_up() {
    for (topology, nodes) in networks() {
        let mut config = linked(topology.clone(), nodes);
        config.links.as_mut().unwrap().channel_packets = 1;
        config.crossbar.channel_packets = 1;
        config.crossbar.receive_packets = 1;
        let mut machine = Machine::new(&config, 1).unwrap();
        flood(&config, &mut machine);
        machine.run_to_end(&mut ()).unwrap_or_else(|stopped| panic!("{topology:?}: {stopped}"));
        machine.audit().unwrap();
        assert!(machine.operations().iter().all(|operation| operation.finished.is_some()));
    }
}

/// Posts a PUT and a GET of 2000 B from each node to each other.
fn flood(config: &Config, machine: &mut Machine) {
    let mut api = machine.api();
    for from in 0..config.nodes() {
        for to in (0..config.nodes()).filter(|to| *to != from) {
            let ends = (endpoint(from as u8), endpoint(to as u8));
            for kind in [Kind::Put, Kind::Get] {
                post_free(&mut api, kind, ends, 2000).unwrap();
            }
        }
    }
}

/// GETs between opposite corners of a ring of controllers deadlock without a GET channel, and the
/// reported cycle of waits includes links. With a GET channel the same load completes.
// shows: C-26, C-27
#[test]
fn gets_over_links_need_their_own_channel_too() {
    let run = |get_channel: bool| {
        let mut config = linked(Shape::Ring { routers: 4 }, 1);
        config.links.as_mut().unwrap().channel_packets = 4;
        config.crossbar.channels = 1;
        config.crossbar.channel_packets = 4;
        config.crossbar.get_channel = get_channel;
        let mut machine = Machine::new(&config, 1).unwrap();
        let mut api = machine.api();
        for node in 0..4u8 {
            let ends = (endpoint(node), endpoint((node + 2) % 4));
            for _ in 0..32 {
                post_free(&mut api, Kind::Get, ends, 4096).unwrap();
            }
        }
        machine.run_to_end(&mut ())
    };
    let outcome = run(false);
    let Err(Standstill::Deadlock(cycle)) = outcome else { panic!("no deadlock: {outcome:?}") };
    let told = cycle.to_string();
    assert!(told.contains("of controller") && told.contains("GETs for node"), "{told}");
    run(true).unwrap();
}

/// On a line of controllers, each additional controller costs the same: 16 ns of its module, 28 B
/// on the wires (7 ns) and 166, at an edge of 4 ns. No hop is free or charged twice. A header of
/// 94 B makes 106 B on the wires, 26.5 ns. The direct link of the SMP paper carries it, too.
// shows: C-02
#[test]
fn each_hop_costs_the_same() {
    let hops = |change: fn(&mut Config)| -> Vec<Span> {
        let mut config = linked(Shape::Mesh { radix: 5, dimensions: 1 }, 1);
        change(&mut config);
        let latency = |to: u8| latency(&config, 1, Kind::Put, (endpoint(0), endpoint(to)), 1);
        (1..4).map(|to| latency(to + 1) - latency(to)).collect()
    };
    assert_eq!(hops(|_| {}), [Span::from_ns(192); 3]);
    let long: fn(&mut Config) = |config| config.nic.packet_header = "94 B".parse().unwrap();
    assert_eq!(hops(long), [Span::from_ns(212); 3]);
    let by_smp = hops(|config| config.link = LinkKind::Smp);
    let long_by_smp = hops(|config| {
        config.link = LinkKind::Smp;
        config.nic.packet_header = "94 B".parse().unwrap();
    });
    assert!(by_smp.iter().zip(&long_by_smp).all(|(short, long)| short < long), "{long_by_smp:?}");
}

/// Links slower than the crossbars delay packets and lose none.
#[test]
fn slow_links_hold_up_the_crossbar() {
    crate::limit::limited(|| {
        let mut config = linked(Shape::Mesh { radix: 2, dimensions: 1 }, 1);
        config.pcie.lanes = 2;
        let (machine, traffic) = random_traffic(&config, 5, 200, false);
        assert_eq!((traffic.checked, traffic.mismatches), (200, 0));
        machine.audit().unwrap();
    });
}

/// Controllers that cannot be linked are refused with the remedy.
#[test]
fn impossible_links_are_refused() {
    let said = |topology, nodes| linked(topology, nodes).check().unwrap_err().to_string();
    assert!(said(Shape::Ring { routers: 5 }, 4).contains("take fewer"));
    let mut many = linked(Shape::Ring { routers: 4 }, 1);
    many.io.devices = 5;
    assert!(many.check().unwrap_err().to_string().contains("io.devices"));
    many.io.devices = 4;
    assert!(many.check().is_ok());
    assert!(said(Shape::Torus { radix: 2, dimensions: 2 }, 1).contains("hypercube"));
    assert!(said(Shape::Crossbar { ports: 4 }, 1).contains("crossbar.ports"));
    let text = bellwire_model::chpp::config::PROTOTYPE.to_owned()
        + "\n[links]\ntopology = { links = { routers = 3, terminals = 1, links = [[0, 1], [1, 2]] } }\nchannel_packets = 8\nlatency = \"166 ns\"\n";
    assert_eq!(Config::parse(&text).unwrap().nodes(), 12);
}

/// Places and credits of links are accounted for at every moment, also those of GETs. A channel has
/// the name of its controller.
#[test]
fn links_are_accounted_for_at_every_moment() {
    let mut config = linked(Shape::FullyConnected { routers: 2 }, 2);
    config.links.as_mut().unwrap().channel_packets = 2;
    let mut machine = Machine::new(&config, 1).unwrap();
    let name = |node| machine.controllers().channel_name(node, 0);
    assert_eq!(name(3), "channel 0 of input 1 of controller 1");
    assert_eq!(name(2), "channel 0 of input 0 of controller 1");
    for (from, to) in [(0, 3), (3, 0), (1, 2)] {
        for kind in [Kind::Put, Kind::Get] {
            post_free(&mut machine.api(), kind, (endpoint(from), endpoint(to)), 1000).unwrap();
        }
    }
    while machine.step_program(&mut (), Time::NEVER) {
        machine.audit().unwrap();
    }
    assert!(machine.operations().iter().all(|operation| operation.finished.is_some()));
}

/// Packets between opposite controllers of a ring go either way, by their pair of nodes. What
/// passes a link is in the capture.
#[test]
fn opposite_controllers_have_two_ways() {
    let mut machine = Machine::new(&linked(Shape::Ring { routers: 8 }, 1), 1).unwrap();
    machine.capture_frames();
    for node in 0..8 {
        let ends = (endpoint(node), endpoint((node + 4) % 8));
        post_free(&mut machine.api(), Kind::Put, ends, 8).unwrap();
    }
    machine.run_to_end(&mut ()).unwrap();
    let mut used = [0; 2];
    machine.controllers().busy(|name, busy| {
        for (at, step) in [1, 7].into_iter().enumerate() {
            let is_so =
                |near| name == format!("link from controller {near} to {}", (near + step) % 8);
            used[at] += u32::from(busy > Span::ZERO && (0..8).any(is_so));
        }
    });
    assert!(used.iter().all(|&links| links > 0), "{used:?}");
    let frames = read_capture(&capture(&machine)).unwrap();
    let between = frames.iter().filter(|frame| frame.0.contains("to controller ")).count();
    assert_eq!(between, 8 * 4, "each packet passes four links");
}
