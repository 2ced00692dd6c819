//! Runs one check in a process of its own, optionally with a planted fault.

use crate::agent;
use crate::attack::{From, Numbers, amplify, here, places, steal};
use crate::conformance::child::{Process, told};
use crate::conformance::{Fixture, Named, Stage, batch, find, flow, patience, process, run, stage};
use crate::crash::Residue;
use crate::network::traffic::Traffic;
use crate::network::{Carrier, Network, hub};
use crate::stranger;
use crate::ways::{Auto, Shm};
use bellwire::{Device, DeviceOptions, Result};

/// Names the check that a child runs.
const CHECK: &str = "BELLWIRE_TEST_CHECK";
/// Names the fault that is planted in it.
const CANARY: &str = "BELLWIRE_CANARY";
/// A check outside the conformance suite: opening and closing leaves no mapping behind.
pub const NO_MAPPING_STAYS: &str = "no mapping stays";
/// A check outside the suite: over a network, messages to a stopped peer do not complete. It starts
/// a process of its own.
pub const NO_DELIVERY_IS_GUESSED: &str = "no delivery is guessed";
/// A check outside the suite: on a hub, by AF_XDP, a bystander takes no frames of others.
pub const A_BYSTANDER_KEEPS_OUT: &str = "a bystander keeps out";
/// A check outside the suite: where AF_XDP was asked for, all messages come by it.
pub const ALL_BY_XDP: &str = "all by AF_XDP";
/// A check outside the suite: over UDP, long messages leave as segments that the kernel cuts.
pub const LONG_BY_SEGMENTS: &str = "long messages by segments";
/// A check of the suite over `auto`: peers of this host are reached by memory.
pub const NEAR_BY_MEMORY: &str = "near peers by memory";
/// A check outside the suite, over `auto` and UDP: lists of messages leave when their call ends.
pub const LISTS_LEAVE: &str = "lists leave at their end";

/// Checks outside the suite: those of strangers.
pub const STRANGERS: [(&str, fn()); 3] = [
    ("a squatted function", || stranger::squatted_function(stranger::Squat::Bound)),
    ("a silent connection", stranger::a_silent_connection_is_closed),
    ("many silent connections", stranger::silent_connections),
];

/// Attacks over a network, in which this thread drives the victim.
pub const ATTACKS: [(&str, fn()); 7] = [
    ("a stolen link on loopback", || steal::link_of_a_busy_peer(Carrier::Udp)),
    ("a stolen link on Ethernet", || steal::link_of_a_busy_peer(Carrier::Packet)),
    ("a stolen name on loopback", || steal::name(Carrier::Udp, Numbers::Chosen, From::Own)),
    ("a stolen name on Ethernet", || steal::name(Carrier::Xdp, Numbers::Natural, From::Twin)),
    ("unasked answers", || here::unasked(Carrier::Packet)),
    ("long answers", || amplify::single_frames(Carrier::Udp)),
    ("many addresses", || places::addresses(Carrier::Udp, places::ALL_NAMES)),
];

/// Checks of an agent, which run as root and become other users.
pub const AGENTS: [(&str, fn()); 5] = [
    ("refusals of an agent", agent::life::refusals_help),
    ("limits of an agent", agent::life::limits_hold),
    ("an agent without rules", agent::life::nothing_is_given_unrestricted),
    ("two lives of an agent", agent::life::programs_outlive_the_agent),
    ("a hostile program of an agent", agent::hostile::the_kernel_restricts_programs),
];

/// Whether a check succeeds, optionally with a fault: `TOPIC::CHECK` of the conformance suite on
/// the shared-memory device, or one of the checks above.
pub fn succeeds(check: &str, fault: Option<&str>) -> bool {
    // A check that hangs shows the fault too, so that a short limit does. A network needs 5 s to
    // find that a peer is gone. Without a fault a slow machine must not fail.
    let needs_time = [
        NO_DELIVERY_IS_GUESSED,
        A_BYSTANDER_KEEPS_OUT,
        ALL_BY_XDP,
        LONG_BY_SEGMENTS,
        NEAR_BY_MEMORY,
        LISTS_LEAVE,
        "many silent connections",
    ];
    let apart = ATTACKS.iter().map(|it| it.0).chain(AGENTS.iter().map(|it| it.0));
    let is_slow = needs_time.into_iter().chain(apart).any(|known| known == check);
    let limit = if is_slow { "30000" } else { "4000" };
    let mut environment = vec![(CHECK, check)];
    environment.extend(fault.iter().flat_map(|fault| [(CANARY, *fault), (patience::LIMIT, limit)]));
    Process::start("check", &environment).end().success()
}

/// The child's main function.
pub fn play() {
    match told(CHECK).as_str() {
        NO_MAPPING_STAYS => no_mapping_stays(),
        NO_DELIVERY_IS_GUESSED => run(process::a_silent_peer, &OverUdp::new()),
        ALL_BY_XDP => all_goes_by(Carrier::Xdp),
        LONG_BY_SEGMENTS => all_goes_by(Carrier::Udp),
        NEAR_BY_MEMORY => run(flow::many_senders_to_one_receiver, &Auto::new(true)),
        LISTS_LEAVE => run(lists_leave, &Auto::new(true)),
        A_BYSTANDER_KEEPS_OUT => hub::a_bystander_keeps_out(Carrier::Xdp),
        name if let Some((_, check)) = STRANGERS.iter().find(|(known, _)| *known == name) => {
            check()
        }
        name if let Some((_, check)) = AGENTS.iter().find(|(known, _)| *known == name) => check(),
        name if let Some((_, attack)) = ATTACKS.iter().find(|(known, _)| *known == name) => {
            // The victim runs in this thread, where the protocol looks for the fault.
            let _planted = crate::plant_from_environment();
            attack();
        }
        name => run(find(name).expect("a check of that name"), &Shm::attaching()),
    }
}

fn no_mapping_stays() {
    let before = Residue::count("nobody");
    for _ in 0..3 {
        let network = Named::new("shm");
        let mut stage = Stage::connected(&network);
        stage.nodes[stage::A]
            .function
            .allocate_region(4096, bellwire::Rights::all())
            .expect("room");
    }
    assert_eq!(Residue::count("nobody"), before);
}

fn lists_leave(fixture: &dyn Fixture) {
    batch::a_list_leaves_at_its_end(&mut Stage::pair(fixture));
}

/// Messages both ways between two hosts. The stage asserts the way.
fn all_goes_by(carrier: Carrier) {
    let network = Network::pair(carrier);
    let mut stage = network.stage();
    Traffic::both_ways(20).finish(&mut stage);
}

/// Two loopback addresses that only this process uses.
struct OverUdp([String; 2]);

impl OverUdp {
    fn new() -> OverUdp {
        let [_, high, middle, low] = std::process::id().to_be_bytes();
        let port = 20_000 + u16::from(high) % 64 * 256;
        OverUdp([1, 2].map(|last| format!("udp:127.{middle}.{low}.{last}?port={port}")))
    }
}

impl Fixture for OverUdp {
    fn open(&self, _: &DeviceOptions) -> Result<Device> {
        Device::open(&self.0[0])
    }

    fn name(&self) -> Option<&str> {
        Some(&self.0[1])
    }

    fn delivers_later(&self) -> bool {
        true
    }
}
