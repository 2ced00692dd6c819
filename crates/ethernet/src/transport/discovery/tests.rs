//! What a function does about places, over real sockets in namespaces.

use super::super::tests::{Both, Heard, LONG, PATIENCE, Packet, QUEUE_PAIR, eth, hosts, linked};
use super::*;
use crate::eth_device::EthFunction;
use crate::interface::Interface;
use crate::link_header::{FUNCTION_OFFSET, LINK_HEADER_BYTES, Mac};
use crate::multi_interface::Hop;
use crate::namespace::Namespace;
use crate::packet::PacketIo;
use crate::{EthDevice, IoKind};
use bellwire_device::{Gate, Transport};
use bellwire_protocol::discovery::NeighbourTable;
use std::time::{Duration, Instant};

/// A node that nobody is.
const NODE: u32 = 77;
const PEER: FunctionAddress = FunctionAddress { node: NODE, function: 9 };

fn mac(last: u8) -> Mac {
    Mac([2, 0, 0, 0, 0, last])
}

fn packet(host: &Namespace, name: &str, function: u8) -> (EthDevice, Packet) {
    let (device, opened) = eth(host, name, IoKind::Packet, function);
    let EthFunction::Packet(opened) = opened else { panic!("AF_PACKET") };
    (device, *opened)
}

/// A link uses a further place of its node. A link that came up says where its node is.
#[test]
fn further_places_become_paths() {
    let [near, _far] = hosts(1);
    let (_device, mut it) = packet(&near, "near0", 1);
    it.search.route.heard(NODE, mac(1));
    it.link(PEER, LONG).expect("a link");
    it.search.further.push((NODE, mac(2)));
    it.poll(&mut Heard::new(), 64);
    assert!(it.search.further.is_empty());
    let path = it.search.path_id(mac(2), &it.endpoint);
    assert!(it.endpoint.paths().any(|it| it == path));
    it.search.came_up(NODE + 1, path);
    let found = it.search.route.find(FunctionAddress { node: NODE + 1, function: 1 });
    assert_eq!(found, Some(mac(2)));
}

/// A node that claims another place is asked for at its old one.
#[test]
fn a_node_that_moved_is_asked_at_its_old_place() {
    let [near, _far] = hosts(1);
    let (_device, mut it) = packet(&near, "near0", 1);
    let mut heard = Heard::new();
    it.poll(&mut heard, 64);
    it.search.route.heard(NODE, mac(1));
    let path = it.search.path_id(mac(2), &it.endpoint);
    let sent = it.io.counters().frames_sent;
    assert_eq!(it.search.check_place(NODE, path, it.clock.now_ns()), PlaceCheck::Pending);
    it.poll(&mut heard, 64);
    assert!(it.io.counters().frames_sent > sent);
}

/// Nodes that may be at further interfaces are asked for once in a second, and found places of a
/// link are paths of it.
#[test]
fn further_interfaces_are_asked_in_rounds() {
    let [near, _far] = hosts(2);
    let (_device, it) = eth(&near, "near0+near1", IoKind::Packet, 1);
    let EthFunction::MultiInterface(mut it) = it else { panic!("several interfaces") };
    let hop = |through| Hop { through, to: mac(through) };
    it.search.route.heard(NODE, hop(0));
    let LinkId(number) = it.link(PEER, LONG).expect("a link");
    for (now_ns, asks) in [(4, false), (5, true)] {
        (it.search.next_round_ns, it.unsent) = (5, false);
        it.ask_for_further_places(now_ns);
        assert_eq!(it.unsent, asks, "a question waits");
        assert_eq!(it.search.next_round_ns, if asks { 1_000_000_005 } else { 5 });
    }
    let Some(Link { state: State::Known(id), .. }) = it.links.at(number) else {
        panic!("its place is known")
    };
    let id = *id;
    it.search.route.heard(NODE, hop(1));
    it.add_others(id, PEER);
    let path = it.search.path_id(hop(1), &it.endpoint);
    assert!(it.endpoint.paths().any(|it| it == path));
}

/// A node that is found counts as an event. Of others that are sought, each is given up in its
/// time.
#[test]
fn each_sought_node_is_told_of() {
    let [near, far] = hosts(1);
    let (_near, a) = packet(&near, "near0", 1);
    let (_far, b) = packet(&far, "far0", 9);
    let mut both = Both::new(a, b);
    let nobody = |node| FunctionAddress { node, function: 1 };
    both.a.link(nobody(1), Duration::from_millis(60)).expect("a link");
    let link = both.a.link(both.b.address(), PATIENCE).expect("a link");
    both.a.link(nobody(2), Duration::from_millis(200)).expect("a link");
    both.until("two are given up", |it| it.at_a.down.len() == 2);
    both.until("one is found", |it| it.a.is_up(link));
    both.a.link(PEER, PATIENCE).expect("a link");
    both.a.search.route.heard(NODE, mac(1));
    assert_eq!(both.a.settle_links(&mut both.at_a), 1);
}

/// If another node is where a node was said to be, the node is sought again.
#[test]
fn a_node_that_is_not_there_is_sought_again() {
    let (mut both, _) = linked(&hosts(1));
    let place = both.a.search.route.find(both.b.address()).expect("it was found");
    both.a.search.route.heard(NODE, place);
    let LinkId(number) = both.a.link(PEER, PATIENCE).expect("a link");
    both.until("it is not there", |it| it.a.search.route.find(PEER).is_none());
    let state = both.a.links.at(number).map(|link| &link.state);
    assert!(matches!(state, Some(State::Seeking { .. })));
    assert_eq!(both.at_a.down, []);
}

/// A wrong answer about a node's place costs time, and no more.
#[test]
fn a_wrong_place_is_left_for_the_right_one() {
    let [near, far] = hosts(1);
    let (_near, mut a) = packet(&near, "near0", 1);
    let (_far, mut b) = packet(&far, "far0", 9);
    b.set_gate(QUEUE_PAIR, Gate::Open);
    a.search.route.heard(b.address().node, mac(1));
    let link = a.link(b.address(), PATIENCE).expect("a link");
    Both::new(a, b).until("it is up", |it| it.a.is_up(link));
}

/// A station gets a number only with a sound frame.
#[test]
fn stations_of_unsound_frames_have_no_number() {
    let [near, far] = hosts(1);
    let (_device, mut it) = packet(&near, "near0", 1);
    let to = near.run(|| Interface::find("near0")).expect("here").expect("it").mac;
    let far = far.run(|| Interface::find("far0").map(|it| (PacketIo::open(&it, 3), it.mac)));
    let (stranger, from) = far.expect("here").expect("it");
    let mut stranger = stranger.expect("a socket");
    let since = Instant::now();
    while it.io.counters().frames_received == 0 {
        let room = stranger.room().expect("room");
        room[..60].fill(0);
        room[FUNCTION_OFFSET - LINK_HEADER_BYTES] = 1;
        stranger.stage(to, 60);
        stranger.flush();
        it.poll(&mut Heard::new(), 64);
        assert!(since.elapsed() < LONG, "nothing comes");
    }
    assert_eq!(it.search.discovery.places.known_number(from), None);
}
