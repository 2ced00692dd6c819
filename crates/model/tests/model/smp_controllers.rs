//! cHPP controllers joined by the direct link of the SMP paper instead of PCIe wires: one line of
//! configuration.

use crate::oracle::random_traffic;
use bellwire_model::chpp::config::{LinkKind, LinksConfig};
use bellwire_model::chpp::experiments::Kind;
use bellwire_model::chpp::experiments::single::{endpoint, post, post_free, single};
use bellwire_model::chpp::{Config, Machine};
use bellwire_model::network::Shape;
use bellwire_model::units::{Bytes, Span, Time};

fn linked(topology: Shape, nodes: usize, channel_packets: usize) -> Config {
    let mut config = Config::prototype();
    config.link = LinkKind::Smp;
    config.crossbar.ports = nodes;
    config.links = Some(LinksConfig { topology, channel_packets, latency: config.pcie.latency });
    config.nic.functions = 2;
    config.host.window = Bytes::new(4 << 20);
    config
}

/// Random traffic of all primitives between controllers over direct links is byte-exact in several
/// topologies, even with room for one packet at the far ends. The links lose no packet and no
/// credit.
// shows: C-02
#[test]
fn controllers_talk_over_direct_links() {
    for (topology, nodes, channel_packets) in [
        (Shape::FullyConnected { routers: 4 }, 2, 16),
        (Shape::Ring { routers: 5 }, 2, 16),
        (Shape::Torus { radix: 3, dimensions: 2 }, 1, 1),
    ] {
        let config = linked(topology.clone(), nodes, channel_packets);
        let (machine, traffic) = random_traffic(&config, 3, 300, false);
        assert_eq!((traffic.checked, traffic.mismatches), (300, 0), "{topology:?}");
        machine.audit().unwrap();
        let carried = machine.controllers().carried().unwrap();
        assert_eq!(carried.under_way(), 0);
        let sent: u64 = carried
            .links()
            .flat_map(|(link, _)| [link.end(0).sent(), link.end(1).sent()])
            .flatten()
            .sum();
        assert!(sent > 200, "{topology:?}: {sent}");
        assert!(carried.links().all(|(link, _)| link.end(0).counters.refused == 0));
    }
}

/// The line `link = "smp"` selects the direct link, and any other value is refused.
#[test]
fn one_line_chooses_the_link() {
    let text = bellwire_model::chpp::config::PROTOTYPE;
    let smp = text.replace("link = \"pcie\"", "link = \"smp\"");
    assert_eq!(Config::parse(&smp).unwrap().link, LinkKind::Smp);
    assert_eq!(Config::parse(text).unwrap().link, LinkKind::Pcie);
    assert!(Config::parse(&text.replace("link = \"pcie\"", "link = \"hypertransport\"")).is_err());
    // Without links between controllers, the setting has no effect.
    Machine::new(&Config::parse(&smp).unwrap(), 1).unwrap();
    // With links, it decides the latency of operations between controllers.
    let links = "[links]\ntopology = { fully-connected = { routers = 2 } }\nchannel_packets = 16\nlatency = \"166 ns\"\n";
    let [direct, pcie] = ["smp", "pcie"].map(|kind| {
        let config = Config::parse(&format!("link = \"{kind}\"\n{links}")).unwrap();
        single(&config, Kind::Put, 1).unwrap().latency
    });
    assert!(direct < pcie, "{direct} {pcie}");
}

/// A short PUT between two controllers has its link's delay and no unexplained time. The direct
/// link's layers and Serdes take less than the 166 ns of the PCIe wires.
#[test]
fn the_delay_is_that_of_the_direct_link() {
    crate::limit::limited(|| {
        let latency = |kind| {
            let mut config = linked(Shape::FullyConnected { routers: 2 }, 1, 16);
            config.link = kind;
            let mut machine = Machine::new(&config, 1).unwrap();
            machine.open_journal();
            let mut api = machine.api();
            let places = (api.free_memory(0, 0), api.free_memory(1, 0));
            let put = post(&mut api, Kind::Put, (endpoint(0), endpoint(1)), places, 1).unwrap();
            machine.run_to_end(&mut ()).unwrap();
            let latency = machine.operations()[put as usize].latency().unwrap();
            assert_eq!(machine.explain(put).unwrap().accounted(), latency);
            latency
        };
        let (pcie, smp) = (latency(LinkKind::Pcie), latency(LinkKind::Smp));
        assert!(smp < pcie && pcie.saturating_sub(smp) < Span::from_ns(80), "{smp} {pcie}");
    });
}

/// Places and credits of the links are accounted for while packets are on them, and the links tell
/// how long they were busy.
#[test]
fn packets_on_links_are_accounted_for() {
    let mut machine =
        Machine::new(&linked(Shape::FullyConnected { routers: 2 }, 1, 16), 1).unwrap();
    for kind in [Kind::Put, Kind::Get] {
        post_free(&mut machine.api(), kind, (endpoint(0), endpoint(1)), 1000).unwrap();
    }
    let mut most = 0;
    while machine.step_program(&mut (), Time::NEVER) {
        machine.audit().unwrap();
        most = most.max(machine.controllers().carried().unwrap().under_way());
    }
    let carried = machine.controllers().carried().unwrap();
    assert!(most > 1 && carried.under_way() == 0, "{most}");
    assert!(carried.busy((0, 1)) > Span::ZERO && carried.busy((1, 1)) > Span::ZERO);
}
