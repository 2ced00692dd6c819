//! Two functions in one thread, over real sockets in a namespace of their own.

use super::*;
use crate::IoKind;
use crate::eth_device::{EthDevice, EthFunction, EthOptions};
use crate::namespace::{Namespace, ip};
use crate::testing::{enter_new_namespace, within_limit};
use crate::udp_device::{UdpDevice, UdpFunction, UdpOptions};
use bellwire_device::{KeySource, Kind, NodeInfo, Verdict};
use std::os::fd::AsFd;
use std::time::Instant;

/// Longest wait for anything: one thread does it all, so nothing here takes a hundredth of it.
pub(super) const LONG: Duration = Duration::from_secs(8);
pub(super) const PATIENCE: Duration = Duration::from_secs(7);
/// A queue pair.
pub(super) const QUEUE_PAIR: u32 = 7;

/// What an engine would hear.
pub(super) struct Heard {
    verdict: Verdict,
    offered: usize,
    pub(super) packets: Vec<(LinkId, FunctionAddress, PacketHeader, Vec<u8>)>,
    delivered: Vec<(LinkId, u64)>,
    pub(super) down: Vec<(LinkId, FunctionAddress, Status)>,
    ticks: usize,
}

impl Heard {
    pub(super) fn new() -> Heard {
        let (packets, delivered, down) = (Vec::new(), Vec::new(), Vec::new());
        Heard { verdict: Verdict::Taken, offered: 0, packets, delivered, down, ticks: 0 }
    }
}

impl Sink for Heard {
    fn packet(
        &mut self,
        link: LinkId,
        from: FunctionAddress,
        header: [u64; 3],
        payload: View<'_>,
    ) -> Verdict {
        self.offered += 1;
        if self.verdict == Verdict::Taken {
            let header = PacketHeader::from_words(header);
            self.packets.push((link, from, header, payload.to_vec()));
        }
        self.verdict
    }

    fn delivered(&mut self, link: LinkId, count: u64) {
        self.delivered.push((link, count));
    }

    fn link_down(&mut self, link: LinkId, peer: FunctionAddress, why: Status) {
        self.down.push((link, peer, why));
    }

    fn tick(&mut self, counters: &[(&'static str, u64)]) {
        assert!(counters.iter().any(|(name, _)| *name == "links"));
        self.ticks += 1;
    }
}

/// Two functions and what their engines hear.
pub(super) struct Both<A, B> {
    pub(super) a: A,
    pub(super) b: B,
    pub(super) at_a: Heard,
    pub(super) at_b: Heard,
}

impl<A: Transport, B: Transport> Both<A, B> {
    pub(super) fn new(a: A, b: B) -> Both<A, B> {
        Both { a, b, at_a: Heard::new(), at_b: Heard::new() }
    }

    /// Polls both until it is so.
    pub(super) fn until(&mut self, what: &str, is: impl Fn(&mut Self) -> bool) {
        let since = Instant::now();
        while !is(self) {
            self.a.poll(&mut self.at_a, 64);
            self.b.poll(&mut self.at_b, 64);
            assert!(since.elapsed() < LONG, "{what}");
        }
    }

    /// Sends from a to b, once there is room.
    fn send(&mut self, link: LinkId, head: &[u8], body: &[u8]) {
        let header = PacketHeader::new(Kind::Send, QUEUE_PAIR, 3, 99);
        let since = Instant::now();
        loop {
            match self.a.send(link, header, head, View::of(body)) {
                Ok(receipt) => {
                    assert!(matches!(receipt, Receipt::Pending(_)), "{receipt:?}");
                    return;
                }
                Err(error) => assert_eq!(error, SendError::Busy),
            }
            self.a.poll(&mut self.at_a, 64);
            self.b.poll(&mut self.at_b, 64);
            assert!(since.elapsed() < LONG, "no room");
        }
    }
}

fn counter(transport: &impl Transport, name: &str) -> u64 {
    let mut rows = Vec::new();
    transport.counters(&mut rows);
    rows.into_iter().find(|(row, _)| *row == name).expect(name).1
}

/// All that two functions have with each other, from the first link to the last.
fn converse<A: Transport, B: Transport>(a: A, b: B) {
    let mut both = Both::new(a, b);
    let (own, peer) = (both.a.address(), both.b.address());
    assert!(both.a.delivers_later());
    both.b.set_gate(QUEUE_PAIR, Gate::Open);
    let link = both.a.link(peer, PATIENCE).expect("a link");
    assert_eq!(both.a.link(peer, PATIENCE).expect("the same"), link);
    let header = PacketHeader::new(Kind::Send, QUEUE_PAIR, 3, 99);
    assert_eq!(both.a.send_message(link, header, b"early", View::empty()), None);
    assert!(!both.a.is_up(link));
    both.until("the gate opens", |it| it.a.watch_gate(link, QUEUE_PAIR) == Some(Gate::Open));
    assert!(both.a.is_up(link));
    let closed = |it: &mut Both<A, B>| it.a.watch_gate(link, QUEUE_PAIR + 1) == Some(Gate::Closed);
    both.until("no gate", closed);
    assert_eq!(counter(&both.a, "links"), 1);

    // Packets arrive once, in order and whole, and the sender is told.
    let lengths = [0, 1, 8, 100, 1400, 5000, PACKET_BYTES, 33, 64, 2000];
    let payload = |number: usize, length: usize| -> Vec<u8> {
        (0..length).map(|at| (at * 7 + number) as u8).collect()
    };
    for number in 0..50 {
        let bytes = payload(number, lengths[number % lengths.len()]);
        let (head, body) = bytes.split_at(bytes.len().min(5));
        both.send(link, head, body);
    }
    both.until("all arrive", |it| it.at_b.packets.len() >= 50);
    let back = both.at_b.packets[0].0;
    for (number, (from, sender, header, bytes)) in both.at_b.packets.drain(..).enumerate() {
        let expected = payload(number, lengths[number % lengths.len()]);
        assert_eq!((from, sender), (back, own));
        assert_eq!(header.length as usize, expected.len());
        let plain = PacketHeader::new(Kind::Send, QUEUE_PAIR, 3, 99);
        assert_eq!(PacketHeader { length: 0, ..header }, plain);
        assert!(bytes == expected, "packet {number}");
    }
    let told = |heard: &Heard| heard.delivered.last().map_or(0, |(_, count)| *count);
    both.until("all are told", |it| told(&it.at_a) >= 50);
    assert_eq!(told(&both.at_a), 50);
    assert!(both.at_a.delivered.iter().all(|(told, _)| *told == link));

    // A message leaves only through an open gate.
    let word = View::of(b"word");
    let sent = both.a.send_message(link, header, b"a ", word);
    assert!(matches!(sent, Some(Receipt::Pending(_))), "{sent:?}");
    both.until("it arrives", |it| !it.at_b.packets.is_empty());
    let (_, _, got, bytes) = both.at_b.packets.remove(0);
    assert_eq!((got.length, &bytes[..]), (6, &b"a word"[..]));
    for (gate, reopen) in [(Gate::Stopped, true), (Gate::Closed, false)] {
        both.b.set_gate(QUEUE_PAIR, gate);
        both.until("the gate", |it| it.a.watch_gate(link, QUEUE_PAIR) == Some(gate));
        assert_eq!(both.a.send_message(link, header, b"", word), None);
        if reopen {
            both.b.set_gate(QUEUE_PAIR, Gate::Open);
            both.until("open", |it| it.a.watch_gate(link, QUEUE_PAIR) == Some(Gate::Open));
        }
    }

    // What the engine does not take stays, and is offered again.
    both.at_b.verdict = Verdict::Stalled;
    let offered = both.at_b.offered;
    both.send(link, b"later", &[]);
    both.until("it is offered", |it| it.at_b.offered > offered);
    both.at_b.verdict = Verdict::Taken;
    both.until("it is taken", |it| !it.at_b.packets.is_empty());
    assert_eq!(both.at_b.packets.len(), 1);
    assert_eq!(both.at_b.packets.remove(0).3, b"later");

    // The way back is the same link.
    assert_eq!(both.b.link(own, PATIENCE).expect("it is there"), back);
    both.b.send(back, header, b"back", View::empty()).expect("room");
    both.until("it comes back", |it| !it.at_a.packets.is_empty());
    let (on, from, _, bytes) = both.at_a.packets.remove(0);
    assert_eq!((on, from, &bytes[..]), (link, peer, &b"back"[..]));

    // A function sleeps until a frame wakes it.
    both.until("b learns that it was taken", |it| told(&it.at_b) >= 1);
    let since = Instant::now();
    loop {
        assert!(since.elapsed() < LONG, "no sleep comes about");
        both.b.poll(&mut both.at_b, 64);
        both.a.poll(&mut both.at_a, 64);
        if both.b.arm() {
            break;
        }
    }
    let ticks = (both.at_a.ticks, both.at_b.ticks);
    both.until("more ticks", |it| it.at_a.ticks > ticks.0 + 1 && it.at_b.ticks > ticks.1 + 1);
    while !both.b.arm() {
        assert!(since.elapsed() < LONG, "no sleep comes about");
        both.b.poll(&mut both.at_b, 64);
        both.a.poll(&mut both.at_a, 64);
    }
    both.send(link, b"wake up", &[]);
    bellwire_device::sleep_until_readable(both.b.wait_fd(), Some(LONG)).expect("a wait");
    assert!(!both.b.arm(), "a frame is there");
    both.until("it woke for that", |it| !it.at_b.packets.is_empty());
    both.at_b.packets.clear();
    let before = counter(&both.b, "woken_by_frames");
    while counter(&both.b, "woken_by_frames") == before {
        assert!(since.elapsed() < LONG, "nothing wakes it");
        both.send(link, b"wake up", &[]);
        both.b.sleep(Some(Duration::from_secs(3))).expect("a sleep");
        both.b.poll(&mut both.at_b, 64);
        both.a.poll(&mut both.at_a, 64);
    }
    both.until("it wakes", |it| !it.at_b.packets.is_empty());
    assert!(counter(&both.b, "sleeps") > 0);

    // Whoever is left is told once.
    both.a.close(link);
    assert_eq!((counter(&both.a, "links"), both.a.is_up(link)), (0, false));
    assert_eq!(both.a.send(link, header, b"", word), Err(SendError::Down(Status::PeerGone)));
    both.until("b is told", |it| !it.at_b.down.is_empty());
    for _ in 0..20 {
        both.b.poll(&mut both.at_b, 64);
    }
    assert_eq!(both.at_b.down, [(back, own, Status::PeerGone)]);
    assert_eq!(both.b.send(back, header, b"", word), Err(SendError::Down(Status::PeerGone)));
    assert_eq!((both.b.watch_gate(back, 1), both.b.is_up(back)), (None, false));
    both.b.close(back);
    assert_eq!(counter(&both.b, "links"), 0);
    assert_eq!(both.at_a.down, []);
}

fn udp(address: &str, function: u8) -> UdpFunction {
    let device = UdpDevice::open(address, &UdpOptions::default()).expect("loopback");
    device.open_function(function).expect("a free port")
}

fn namespace() {
    enter_new_namespace().expect("NOT RUN: a network namespace needs root, and ip of iproute2");
}

#[test]
fn two_functions_over_udp() {
    namespace();
    converse(udp("127.0.0.1", 1), udp("127.0.0.2", 200));
}

/// Two hosts with this many wires between them.
pub(super) fn hosts(wires: usize) -> [Namespace; 2] {
    let [near, far] = [(); 2]
        .map(|()| Namespace::new().expect("NOT RUN: a namespace needs root, and ip of iproute2"));
    for number in 0..wires {
        let names = [format!("near{number}"), format!("far{number}")];
        near.wire(&names[0], &far, &names[1]).expect("a wire");
        for (host, name) in [&near, &far].into_iter().zip(names) {
            host.run(|| ip(&format!("link set {name} up"))).expect("here").expect("up");
        }
    }
    [near, far]
}

pub(super) fn eth(
    host: &Namespace,
    name: &str,
    io: IoKind,
    function: u8,
) -> (EthDevice, EthFunction) {
    let options = EthOptions { io: Some(io), ..EthOptions::default() };
    host.run(|| {
        let device = EthDevice::open(name, &options).expect("its interfaces");
        let function = device.open_function(function).expect("it is free");
        (device, function)
    })
    .expect("here")
}

/// A node is found by its number alone, and all that functions have with each other works by both
/// socket families.
#[test]
fn two_functions_by_af_packet() {
    let [near, far] = hosts(1);
    let (_near, a) = eth(&near, "near0", IoKind::Packet, 1);
    let (_far, b) = eth(&far, "far0", IoKind::Packet, 9);
    let (EthFunction::Packet(a), EthFunction::Packet(b)) = (a, b) else { panic!("AF_PACKET") };
    converse(*a, *b);
}

#[test]
fn two_functions_by_af_xdp() {
    let [near, far] = hosts(1);
    let (_near, a) = eth(&near, "near0", IoKind::Xdp, 1);
    let (_far, b) = eth(&far, "far0", IoKind::Xdp, 9);
    let (EthFunction::Xdp(a), EthFunction::Xdp(b)) = (a, b) else { panic!("AF_XDP") };
    converse(*a, *b);
}

/// Two interfaces carry one channel, and both of them carry frames.
#[test]
fn two_functions_over_two_interfaces() {
    let [near, far] = hosts(2);
    let (_near, a) = eth(&near, "near0+near1", IoKind::Packet, 1);
    let (_far, b) = eth(&far, "far0+far1", IoKind::Packet, 9);
    let (EthFunction::MultiInterface(a), EthFunction::MultiInterface(b)) = (a, b) else {
        panic!("several interfaces")
    };
    converse(*a, *b);
}

/// Two functions of one interface reach each other, which no card does for them.
#[test]
fn two_functions_of_one_interface() {
    let [near, _far] = hosts(1);
    let (device, a) = eth(&near, "near0", IoKind::Packet, 1);
    let b = near.run(|| device.open_function(2)).expect("here").expect("it is free");
    let again = near.run(|| device.open_function(2)).expect("here").err();
    assert!(matches!(again, Some(Error::BadFunction { function: 2, .. })), "{again:?}");
    assert!(device.open_function(255).is_err());
    let (EthFunction::Packet(a), EthFunction::Packet(b)) = (a, b) else { panic!("AF_PACKET") };
    converse(*a, *b);
}

/// A node that nobody has is sought for as long as was asked, and no longer.
#[test]
fn nobody_is_sought_for_ever() {
    let [near, _far] = hosts(1);
    let (_near, function) = eth(&near, "near0", IoKind::Packet, 1);
    let EthFunction::Packet(mut eth) = function else { panic!("AF_PACKET") };
    namespace();
    let nobody = FunctionAddress { node: 77, function: 1 };
    // Giving up is one event, and telling the engine another.
    assert_eq!(unreachable_is_told(&mut *eth, nobody), 2);
    assert_eq!(eth.links.unsettled, []);
    let host = u32::from(std::net::Ipv4Addr::new(127, 0, 0, 9));
    let mut udp = udp("127.0.0.1", 1);
    assert_eq!(unreachable_is_told(&mut udp, FunctionAddress { node: host, function: 1 }), 2);
    assert_eq!(udp.links.unsettled, []);
}

/// Returns how many events polls handled until then.
fn unreachable_is_told(transport: &mut impl Transport, nobody: FunctionAddress) -> usize {
    let mut events = 0;
    let mut heard = Heard::new();
    let patience = Duration::from_millis(60);
    let since = Instant::now();
    let link = transport.link(nobody, patience).expect("a link");
    let header = PacketHeader::new(Kind::Send, QUEUE_PAIR, 3, 99);
    assert!(!transport.is_up(link));
    assert_eq!(transport.watch_gate(link, QUEUE_PAIR), None);
    assert_eq!(transport.send(link, header, b"", View::empty()), Err(SendError::Busy));
    assert_eq!(transport.send_message(link, header, b"", View::empty()), None);
    while heard.down.is_empty() {
        transport.sleep(Some(LONG)).expect("a sleep until the next question");
        events += transport.poll(&mut heard, 64);
        assert!(since.elapsed() < LONG, "it is never told");
    }
    assert!(since.elapsed() >= patience, "given up after {:?}", since.elapsed());
    assert_eq!(heard.down, [(link, nobody, Status::Unreachable)]);
    let refused = transport.send(link, header, b"", View::empty());
    assert_eq!(refused, Err(SendError::Down(Status::Unreachable)));
    transport.poll(&mut heard, 64);
    assert_eq!(heard.down.len(), 1, "it is told once");
    transport.close(link);
    assert_eq!(counter(transport, "links"), 0);
    events
}

/// A function sends to itself: 256 packets at a time, and through its own gates.
#[test]
fn a_function_reaches_itself() {
    namespace();
    let mut it = udp("127.0.0.1", 1);
    let mut heard = Heard::new();
    let header = PacketHeader::new(Kind::Send, QUEUE_PAIR, 3, 99);
    let link = it.link(it.address(), PATIENCE).expect("a link");
    assert!(it.is_up(link));
    assert!(it.settle_down().is_some(), "no packet waits");
    assert_eq!(it.watch_gate(link, QUEUE_PAIR), Some(Gate::Closed));
    for gate in [Gate::Open, Gate::Stopped, Gate::Closed] {
        it.set_gate(QUEUE_PAIR, gate);
        assert_eq!(it.watch_gate(link, QUEUE_PAIR), Some(gate));
        let sent = it.send_message(link, header, b"he", View::of(b"llo"));
        assert_eq!(sent, (gate == Gate::Open).then_some(Receipt::Delivered));
    }
    assert!(!it.arm(), "a packet waits");
    assert_eq!(it.poll(&mut heard, 64), 1);
    let (on, from, got, bytes) = heard.packets.remove(0);
    assert_eq!((on, from, got.length), (link, it.address(), 5));
    assert_eq!(bytes, b"hello");

    for number in 0..256u32 {
        let sent = it.send(link, header, &number.to_le_bytes(), View::empty());
        assert_eq!(sent, Ok(Receipt::Delivered));
    }
    assert_eq!(it.send(link, header, b"", View::empty()), Err(SendError::Busy));
    heard.verdict = Verdict::Stalled;
    assert_eq!(it.poll(&mut heard, 64), 0);
    assert_eq!(heard.offered, 2, "the first stays the first");
    assert!(it.settle_down().is_some(), "the engine takes none for now");
    heard.verdict = Verdict::Taken;
    assert_eq!(it.poll(&mut heard, 100), 100);
    assert_eq!(it.poll(&mut heard, 1000), 156);
    assert_eq!(it.poll(&mut heard, 1000), 0);
    let numbers = heard.packets.drain(..).map(|(.., bytes)| bytes);
    assert!(numbers.eq((0..256u32).map(|number| number.to_le_bytes().to_vec())));

    it.send(link, header, b"bad", View::empty()).expect("room");
    heard.verdict = Verdict::Violation;
    it.poll(&mut heard, 64);
    it.poll(&mut heard, 64);
    assert_eq!(heard.down, [(link, it.address(), Status::ProtocolViolation)]);
    // A new link to ourselves begins without the packets of the old one.
    let again = it.link(it.address(), PATIENCE).expect("another");
    assert_ne!(again, link);
    heard.verdict = Verdict::Taken;
    assert_eq!(it.poll(&mut heard, 64), 0);
}

/// An answer that may wait stays until a packet is sent, and shares its frame. Without one it
/// leaves when its time is over, for which a sleep ends.
#[test]
fn an_answer_waits_for_a_packet() {
    namespace();
    let mut both = Both::new(udp("127.0.0.1", 1), udp("127.0.0.2", 1));
    let link = both.a.link(both.b.address(), PATIENCE).expect("a link");
    both.send(link, b"ask", &[]);
    both.until("it arrives", |it| !it.at_b.packets.is_empty());
    let back = both.at_b.packets[0].0;
    let (answer, word) = (PacketHeader::new(Kind::Done, 0, 0, 5), View::of(b"word"));
    let request = PacketHeader::new(Kind::Send, QUEUE_PAIR, 3, 99);
    let has = |count: usize| {
        move |it: &mut Both<UdpFunction, UdpFunction>| it.at_a.packets.len() >= count
    };
    // Other frames, such as acknowledgements, may leave between: one round without is enough.
    let is_shared = |_: u32| {
        both.b.answer_delay = AnswerDelay::within([u64::MAX; 2]);
        let before = counter(&both.b, "frames_sent");
        both.b.send_later(back, answer, b"", word).expect("room");
        for _ in 0..20 {
            both.b.poll(&mut both.at_b, 64);
            both.a.poll(&mut both.at_a, 64);
        }
        let waits = both.at_a.packets.is_empty();
        both.b.send_later(back, answer, b"", word).expect("room");
        both.b.send(back, request, b"", word).expect("room");
        both.until("all arrive", has(3));
        both.at_a.packets.clear();
        waits && counter(&both.b, "frames_sent") == before + 1
    };
    assert!((0..100).any(is_shared), "each answer has a frame of its own");

    // A packet of the program ends the wait also where it does not leave at once itself.
    both.until("all have left", |it| !it.b.endpoint.is_due(it.b.clock.now_ns()));
    both.b.pumped_ns = 0;
    both.b.send(back, request, b"", word).expect("room");
    both.b.pumped_ns = u64::MAX / 2;
    let before = counter(&both.b, "frames_sent");
    both.b.send_later(back, answer, b"", word).expect("room");
    assert!(both.b.answer_delay.is_on(0));
    both.b.send(back, request, b"", word).expect("room");
    assert!(!both.b.answer_delay.is_on(0));
    assert_eq!(counter(&both.b, "frames_sent"), before);
    both.until("all arrive", has(3));
    both.at_a.packets.clear();

    // An acknowledgement that is due waits with it. After turns of request and response one is
    // held back, and becomes due here.
    let owes = |_: u32| {
        both.send(link, b"ask", &[]);
        both.at_b.packets.clear();
        both.until("it arrives", |it| !it.at_b.packets.is_empty());
        both.b.endpoint.flush();
        let owes = both.b.endpoint.is_due(both.b.clock.now_ns());
        if !owes {
            both.b.send(back, request, b"", word).expect("room");
        }
        owes
    };
    assert!((0..10_000).any(owes), "each acknowledgement leaves at once");
    both.b.answer_delay = AnswerDelay::within([u64::MAX; 2]);
    let before = counter(&both.b, "frames_sent");
    both.b.send_later(back, answer, b"", word).expect("room");
    assert!(both.b.answer_delay.is_on(0));
    assert_eq!(counter(&both.b, "frames_sent"), before);
    both.b.send(back, request, b"", word).expect("room");
    both.until("all arrive", |it| {
        it.at_a.packets.iter().any(|(.., header, _)| header.kind == answer.kind)
    });
    both.at_a.packets.clear();

    // Its time is the only thing that ends the sleep.
    both.b.answer_delay = AnswerDelay::new();
    let since = Instant::now();
    both.b.send_later(back, answer, b"", word).expect("room");
    while both.at_a.packets.is_empty() {
        if both.b.arm() {
            bellwire_device::sleep_until_readable(both.b.wait_fd(), Some(LONG)).expect("a wait");
        }
        both.b.poll(&mut both.at_b, 64);
        both.a.poll(&mut both.at_a, 64);
        assert!(since.elapsed() < LONG, "it never leaves");
    }
    let (.., header, payload) = &both.at_a.packets[0];
    assert_eq!((header.length, &payload[..]), (4, &b"word"[..]));
}

/// The number of links is bounded, and one that is closed makes room for another.
#[test]
fn links_are_bounded() {
    namespace();
    let mut it = udp("127.0.0.1", 1);
    let peer = |number: u32| FunctionAddress { node: 0x7f01_0000 + number, function: 1 };
    let links: Vec<LinkId> = (0..LINKS as u32)
        .map(|number| it.link(peer(number), PATIENCE).expect("there is room"))
        .collect();
    assert_eq!(it.limits().links, LINKS);
    let full = it.link(peer(5000), PATIENCE);
    assert!(matches!(full, Err(Error::Exhausted { limit: 1024, .. })), "{full:?}");
    assert_eq!(it.link(peer(3), PATIENCE).expect("it is there"), links[3]);
    it.close(links[3]);
    let since = Instant::now();
    while it.link(peer(5000), PATIENCE).is_err() {
        it.poll(&mut Heard::new(), 64);
        assert!(since.elapsed() < LONG, "no room again");
    }
}

/// A capture has what was sent and what was received, once its device is gone.
#[test]
fn a_capture_has_both_directions() {
    namespace();
    let path = std::env::temp_dir().join(format!("bellwire-capture-{}", std::process::id()));
    let options = UdpOptions { capture: Some(path.clone()), ..UdpOptions::default() };
    let device = UdpDevice::open("127.0.0.1", &options).expect("loopback");
    let function = device.open_function(1).expect("a free port");
    let mut both = Both::new(function, udp("127.0.0.2", 1));
    let link = both.a.link(both.b.address(), PATIENCE).expect("a link");
    both.send(link, b"from a to b", &[]);
    both.until("it arrives", |it| !it.at_b.packets.is_empty());
    let back = both.at_b.packets[0].0;
    let header = PacketHeader::new(Kind::Send, QUEUE_PAIR, 3, 99);
    both.b.send(back, header, b"from b to a", View::empty()).expect("room");
    both.until("it comes back", |it| !it.at_a.packets.is_empty());
    let Both { a, b, .. } = both;
    drop(b);
    drop(a);
    let bytes = std::fs::read(&path).expect("a capture");
    std::fs::remove_file(&path).expect("it was made here");
    let times = |what: &[u8]| bytes.windows(what.len()).filter(|bytes| *bytes == what).count();
    assert!(times(b"from a to b") >= 1 && times(b"from b to a") >= 1);
}

/// With a key a long packet arrives, and a capture has it as it was before it was sealed.
#[test]
fn a_capture_shows_what_is_sealed() {
    namespace();
    let path = std::env::temp_dir().join(format!("bellwire-sealed-{}", std::process::id()));
    let key = KeySource::text(format!("shared {}", "07".repeat(32)));
    let open = |address, capture| {
        let options = UdpOptions { capture, key: Some(key.clone()), ..UdpOptions::default() };
        UdpDevice::open(address, &options).expect("loopback").open_function(1).expect("a port")
    };
    let mut both = Both::new(open("127.0.0.1", Some(path.clone())), open("127.0.0.2", None));
    let link = both.a.link(both.b.address(), PATIENCE).expect("a link");
    // A packet stays in its ring until it is sealed, unless it wraps there. Few of eight wrap.
    let packets: Vec<Vec<u8>> = (0..8_u32)
        .map(|number| (0..300).flat_map(|at| (number + at).to_le_bytes()).collect())
        .collect();
    for (number, packet) in packets.iter().enumerate() {
        both.send(link, &[], packet);
        both.until("it arrives", |it| it.at_b.packets.len() == number + 1);
        assert_eq!(both.at_b.packets[number].3, *packet);
    }
    drop(both);
    let bytes = std::fs::read(&path).expect("a capture");
    std::fs::remove_file(&path).expect("it was made here");
    for packet in &packets {
        assert!(bytes.windows(packet.len()).any(|bytes| bytes == packet));
    }
}

/// What was sent right before the end arrives: a closed function waits for its peers.
#[test]
fn the_last_packet_arrives() {
    namespace();
    let mut both = Both::new(udp("127.0.0.1", 1), udp("127.0.0.2", 1));
    let link = both.a.link(both.b.address(), PATIENCE).expect("a link");
    both.until("it is up", |it| it.a.is_up(link));
    // The last of them wait for the window.
    for number in 0..40u32 {
        both.send(link, &number.to_le_bytes(), &[0; 60_000]);
    }
    let Both { a, mut b, mut at_b, .. } = both;
    let leaving = std::thread::spawn(|| drop(a));
    let since = Instant::now();
    while at_b.packets.len() < 40 || at_b.down.is_empty() {
        b.poll(&mut at_b, 64);
        assert!(since.elapsed() < LONG, "{} of 40 arrive", at_b.packets.len());
    }
    leaving.join().expect("it goes");
    assert_eq!(at_b.down[0].2, Status::PeerGone);
}

/// A function whose peer is silent waits for it for a while, and not for ever.
#[test]
fn a_silent_peer_is_left() {
    let hosts = hosts(1);
    let (mut both, link) = linked(&hosts);
    hosts[1].run(|| ip("link set far0 down")).expect("here").expect("it goes down");
    let header = PacketHeader::new(Kind::Send, QUEUE_PAIR, 3, 99);
    both.a.send(link, header, b"lost", View::empty()).expect("room");
    let Both { a, b, .. } = both;
    let (left, leaves) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        drop(a);
        left.send(()).expect("the test waits");
    });
    leaves.recv_timeout(LONG).expect("it leaves");
    drop(b);
}

/// A poll counts each packet that it delivers, and one more if there were frames.
#[test]
fn polls_count_what_they_deliver() {
    let (mut both, link) = linked(&hosts(1));
    both.until("nothing is left to do", |it| it.b.poll(&mut it.at_b, 64) == 0);
    let header = PacketHeader::new(Kind::Send, QUEUE_PAIR, 3, 99);
    for _ in 0..5 {
        both.a.send(link, header, b"word", View::empty()).expect("room");
    }
    both.a.pump(both.a.clock.now_ns());
    let (mut counted, since) = (0, Instant::now());
    while both.at_b.packets.len() < 5 {
        counted += both.b.poll(&mut both.at_b, 64);
        assert!(since.elapsed() < LONG, "{} of 5 arrive", both.at_b.packets.len());
    }
    assert!(counted > 5, "{counted}");
}

/// Each reason of the protocol has its status.
#[test]
fn reasons_have_a_status() {
    for (reason, status) in [
        (DownReason::NoAnswer, Status::Unreachable),
        (DownReason::Full, Status::Unreachable),
        (DownReason::NotHere, Status::Unreachable),
        (DownReason::Elsewhere, Status::Unreachable),
        (DownReason::Closed, Status::PeerGone),
        (DownReason::Dead, Status::PeerGone),
        (DownReason::Restarted, Status::PeerGone),
        (DownReason::Accused, Status::ProtocolViolation),
        (DownReason::Violation, Status::ProtocolViolation),
    ] {
        assert_eq!(status_of(reason), status, "{reason}");
    }
}

/// A host is found by its name or address, and a device knows which nodes are elsewhere.
#[test]
fn hosts_are_found_by_name() {
    within_limit(find_hosts);
}

fn find_hosts() {
    namespace();
    let device = UdpDevice::open("127.0.0.1", &UdpOptions::default()).expect("loopback");
    let options = UdpOptions { node: Some(42), ..UdpOptions::default() };
    let other = UdpDevice::open("127.0.0.2", &options).expect("loopback");
    assert!(device.describe().contains("127.0.0.1"), "{}", device.describe());
    assert_eq!((device.node(), other.node()), (0x7f00_0001, 42));
    let mut function = other.open_function(3).expect("a free port");
    let ends = std::sync::atomic::AtomicBool::new(false);
    let ends = &ends;
    let node = std::thread::scope(|scope| {
        scope.spawn(move || {
            while !ends.load(std::sync::atomic::Ordering::Relaxed) {
                function.poll(&mut Heard::new(), 64);
                std::thread::yield_now();
            }
        });
        let node = device.lookup("127.0.0.2", 3, PATIENCE);
        ends.store(true, std::sync::atomic::Ordering::Relaxed);
        node
    });
    assert_eq!(node.expect("it answers"), 42);
    let elsewhere = device.elsewhere();
    assert!(!elsewhere(42) && !elsewhere(43), "127.0.0.2 is an address of this host");
    let nobody = device.lookup("127.0.0.7", 3, Duration::from_millis(80)).expect_err("nobody");
    let said = nobody.to_string();
    let questions = said.split(" questions, no answer").next().expect("a text");
    let questions = questions.rsplit(' ').next().and_then(|it| it.parse::<u32>().ok());
    assert!(said.contains("127.0.0.7") && questions.is_some_and(|it| it > 0), "{said}");
    let said = device.lookup("::1", 3, PATIENCE).expect_err("another kind").to_string();
    assert!(said.contains("not of the same kind"), "{said}");
}

/// The error of a device that cannot be opened says what and why.
fn refused(name: &str, options: &EthOptions) -> String {
    EthDevice::open(name, options).err().expect("it is refused").to_string()
}

/// Names of interfaces are checked before anything is opened.
#[test]
fn names_that_mean_no_interfaces_are_refused() {
    namespace();
    let plain = EthOptions::default();
    ip("link add near type veth peer name far\nlink set near up").expect("a wire");
    let many = ["near"; crate::multi_interface::INTERFACES + 1].join("+");
    assert!(refused(&many, &plain).contains("interfaces at most"));
    let most: Vec<String> =
        (0..crate::multi_interface::INTERFACES).map(|number| format!("no{number}")).collect();
    assert!(refused(&most.join("+"), &plain).contains("no0 cannot be used"));
    assert!(refused("near+no+near", &plain).contains("named twice"));
    assert!(refused("no+near+near", &plain).contains("named twice"));
    assert!(refused("far", &plain).contains("is down"));
    let handed_in = EthOptions { socket: Some(1 << 20), ..EthOptions::default() };
    assert!(refused("near+no", &handed_in).contains("for one interface"));
    let device = EthDevice::open("near", &plain).expect("it is up");
    let mac = crate::interface::Interface::find("near").expect("just made").mac;
    assert_eq!(device.node(), mac.node());
    let said = device.describe();
    assert!(said.contains(&mac.to_string()) && said.contains("is chosen when"), "{said}");
    let asked = EthOptions { node: Some(5), io: Some(IoKind::Packet), ..EthOptions::default() };
    let device = EthDevice::open("near", &asked).expect("it is up");
    assert_eq!(device.node(), 5);
    assert!(device.describe().contains("by AF_PACKET as was asked for"), "{}", device.describe());
    let function = device.open_function(1).expect("it is free");
    let said = device.describe();
    assert!(said.contains("by AF_PACKET, because it was asked for"), "{said}");
    drop(function);
    let socket = crate::socket::open(libc::AF_PACKET, libc::SOCK_RAW, 0).expect("a socket");
    let socket = std::os::fd::IntoRawFd::into_raw_fd(socket);
    let handed_in = EthOptions { socket: Some(socket), ..EthOptions::default() };
    let device = EthDevice::open("near", &handed_in).expect("it is up");
    drop(device.open_function(1).expect("it is free"));
    assert!(device.describe().contains("handed in"), "{}", device.describe());
    let denied = io::Error::from(io::ErrorKind::PermissionDenied);
    let other = io::Error::from(io::ErrorKind::NotFound);
    let hint = |error| match crate::eth_device::no_right("eth:near", "it", error) {
        Error::DeviceUnavailable { hint, .. } => hint,
        error => panic!("{error}"),
    };
    assert!(hint(&denied).contains("setcap") && !hint(&other).contains("setcap"));
}

/// One function of a device has AF_XDP, and the others AF_PACKET beside it; once it is gone, the
/// next one has it.
#[test]
fn one_function_has_af_xdp() {
    let [near, _far] = hosts(1);
    let (device, first) = eth(&near, "near0", IoKind::Xdp, 1);
    let open =
        |function| near.run(|| device.open_function(function)).expect("here").expect("it is free");
    assert!(matches!(first, EthFunction::Xdp(_)));
    let second = open(2);
    assert!(matches!(second, EthFunction::Packet(_)));
    assert!(device.describe().contains("another function"), "{}", device.describe());
    drop(first);
    assert!(matches!(open(3), EthFunction::Xdp(_)));
}

/// A node is found by the address of its interface, or by an IP address, and is then known to be
/// elsewhere.
#[test]
fn stations_are_found_by_address() {
    within_limit(find_stations);
}

fn find_stations() {
    let [near, far] = hosts(1);
    for (host, name, address) in [(&near, "near0", "10.0.0.1"), (&far, "far0", "10.0.0.2")] {
        let command = format!("address add {address}/24 dev {name}");
        host.run(|| ip(&command)).expect("here").expect("an address");
    }
    let (device, _own) = eth(&near, "near0", IoKind::Packet, 1);
    let (there, function) = eth(&far, "far0", IoKind::Packet, 3);
    let EthFunction::Packet(mut function) = function else { panic!("AF_PACKET") };
    let mac = far.run(|| crate::interface::Interface::find("far0")).expect("here").expect("it").mac;
    let ends = &std::sync::atomic::AtomicBool::new(false);
    let elsewhere = device.elsewhere();
    assert!(!elsewhere(there.node()));
    let found = std::thread::scope(|scope| {
        scope.spawn(move || {
            while !ends.load(std::sync::atomic::Ordering::Relaxed) {
                function.poll(&mut Heard::new(), 64);
                std::thread::yield_now();
            }
        });
        let found = near.run(|| {
            let names = [mac.to_string(), "10.0.0.2".to_owned()];
            names.map(|name| device.lookup(&name, 3, PATIENCE))
        });
        ends.store(true, std::sync::atomic::Ordering::Relaxed);
        found.expect("here")
    });
    assert_eq!(found.map(|node| node.expect("it answers")), [there.node(); 2]);
    assert!(elsewhere(there.node()) && !elsewhere(device.node()) && !elsewhere(12345));
    let patience = Duration::from_millis(80);
    let nobody = near.run(|| device.lookup("10.0.0.9", 3, patience)).expect("here");
    let said = nobody.expect_err("nobody has it").to_string();
    assert!(said.contains("no neighbour of near0 has it"), "{said}");
    let kind = near.run(|| device.lookup("::1", 3, patience)).expect("here");
    let said = kind.expect_err("not by IPv6").to_string();
    assert!(said.contains("only IPv4"), "{said}");
}

/// The descriptor to wait for says what happened.
#[test]
fn an_alarm_goes_off_and_is_reset() {
    let mut sleeper = Sleeper::new().expect("descriptors");
    let waits = |sleeper: &Sleeper| !crate::socket::is_readable(sleeper.wait_fd().as_fd());
    assert!(sleeper.set_alarm(None, 9));
    assert_eq!(sleeper.rows()[0], ("sleeps", 0), "there was no alarm to reset");
    assert!(sleeper.set_alarm(Some(8), 9));
    bellwire_device::sleep_until_readable(sleeper.wait_fd(), Some(LONG)).expect("a wait");
    assert!(!waits(&sleeper));
    assert!(sleeper.set_alarm(None, 9));
    assert!(waits(&sleeper));
    assert_eq!(sleeper.rows(), [("sleeps", 2), ("woken_by_frames", 0)]);
    let alarm = sleeper.set_alarm(Some(10), 9);
    let mut woken = Vec::new();
    let (ready, idle) = std::os::unix::net::UnixStream::pair().expect("sockets");
    sleeper.sleep(&[ready.as_fd()], Some(Duration::from_millis(1)), |_| panic!()).expect("a sleep");
    std::io::Write::write_all(&mut &idle, b"!").expect("room");
    let fds = [idle.as_fd(), ready.as_fd()];
    sleeper.sleep(&fds, Some(LONG), |index| woken.push(index)).expect("a sleep");
    assert_eq!((alarm, woken), (true, vec![1]));
    assert_eq!(sleeper.rows(), [("sleeps", 5), ("woken_by_frames", 1)]);
    let again = |sleeper: &mut Sleeper| sleeper.watch(&fds, None);
    assert!(again(&mut sleeper) && again(&mut sleeper), "watching twice is no error");
    assert!(sleeper.set_alarm(None, 9) && !waits(&sleeper));
    sleeper.unwatch(&fds);
    sleeper.unwatch(&fds);
    assert!(waits(&sleeper), "nothing is watched");
    assert!(sleeper.set_alarm(Some(10), 9));
    bellwire_device::sleep_until_readable(sleeper.wait_fd(), Some(LONG)).expect("a wait");
    assert!(!waits(&sleeper), "the alarm is");
    // The kernel is asked once for each generation.
    let mut other = Sleeper::new().expect("descriptors");
    assert!(other.watch(&fds[..1], Some(0)) && other.watch(&fds, Some(0)));
    assert!(waits(&other), "the second one is of no new generation");
    assert!(other.watch(&fds, Some(1)) && !waits(&other));
    other.unwatch(&fds);
    assert!(waits(&other));
    assert!(other.watch(&fds, Some(1)) && !waits(&other), "they are watched anew");
}

/// An alarm that is set stays for a later deadline, and no longer once it is over.
#[test]
fn an_earlier_alarm_stays() {
    const HOUR_NS: u64 = 3_600_000_000_000;
    let goes_off = |sleeper: &Sleeper| {
        bellwire_device::sleep_until_readable(sleeper.wait_fd(), Some(LONG)).expect("a wait");
        crate::socket::is_readable(sleeper.wait_fd())
    };
    let mut sleeper = Sleeper::new().expect("descriptors");
    assert!(sleeper.set_alarm(Some(1001), 1000) && sleeper.set_alarm(Some(HOUR_NS), 1000));
    assert!(goes_off(&sleeper));
    assert!(sleeper.set_alarm(Some(HOUR_NS), 1001));
    assert!(!crate::socket::is_readable(sleeper.wait_fd()), "what is over is reset");
    assert!(sleeper.set_alarm(Some(1003), 1002));
    assert!(goes_off(&sleeper));
}

/// The network is looked at once in ten microseconds, unless it was just read or written.
#[test]
fn unread_frames_are_looked_for_now_and_then() {
    let mut readiness = Readiness::default();
    readiness.received(1000);
    assert!(!readiness.has_unread(10_999, || panic!("too early")));
    assert!(!readiness.has_unread(11_000, || false));
    assert!(!readiness.has_unread(20_999, || panic!("too early")));
    readiness.sent(20_000);
    assert!(!readiness.has_unread(29_999, || panic!("it has just sent")));
    assert!(readiness.has_unread(30_000, || true));
    assert!(readiness.has_unread(99_000, || panic!("it is known")));
    readiness.received(99_000);
    assert!(!readiness.has_unread(99_001, || panic!("all were read")));
}

/// Two functions by AF_PACKET, once a link between them is up.
pub(super) fn linked(hosts: &[Namespace; 2]) -> (Both<Packet, Packet>, LinkId) {
    let (_near, a) = eth(&hosts[0], "near0", IoKind::Packet, 1);
    let (_far, b) = eth(&hosts[1], "far0", IoKind::Packet, 9);
    let (EthFunction::Packet(a), EthFunction::Packet(b)) = (a, b) else { panic!("AF_PACKET") };
    let mut both = Both::new(*a, *b);
    both.b.set_gate(QUEUE_PAIR, Gate::Open);
    let link = both.a.link(both.b.address(), PATIENCE).expect("a link");
    both.until("the gate opens", |it| it.a.watch_gate(link, QUEUE_PAIR) == Some(Gate::Open));
    (both, link)
}

pub(super) type Packet = EthernetTransport<
    crate::keyed_io::KeyedIo<crate::eth_io::EthIo<crate::packet::PacketIo>>,
    crate::route::MacRoute,
>;

/// What is settled is not looked at again: neither a link that was found, nor one that answers.
#[test]
fn settled_links_are_left_alone() {
    let (mut both, _) = linked(&hosts(1));
    both.until("its place is believed", |it| it.a.links.unanswered.is_empty());
    assert_eq!(both.a.links.unsettled, []);
    assert!(!both.a.unsent, "the kernel has all frames");
}

/// On a quiet line a packet leaves at once. On a busy one it waits for others, until the line has
/// been quiet for ten microseconds. A gate that closes is told at once.
#[test]
fn packets_wait_on_a_busy_line_only() {
    let (mut both, link) = linked(&hosts(1));
    let header = PacketHeader::new(Kind::Send, QUEUE_PAIR, 3, 99);
    let mut leaves_at_once = |pumped_ns: u64| {
        both.until("all have left", |it| !it.a.endpoint.is_due(it.a.clock.now_ns()));
        both.a.pumped_ns = pumped_ns;
        let before = both.a.io.counters().frames_sent;
        both.a.send(link, header, b"word", View::empty()).expect("room");
        both.a.io.counters().frames_sent > before
    };
    assert!(leaves_at_once(0));
    assert!(!leaves_at_once(u64::MAX / 2), "the line was just used");
    assert!(leaves_at_once(0));
    both.until("all arrive", |it| it.at_b.packets.len() == 3);
    let before = both.b.io.counters().frames_sent;
    both.b.set_gate(QUEUE_PAIR, Gate::Closed);
    assert!(both.b.io.counters().frames_sent > before);
}

/// Packets that wait on a busy line have not left. A flush sends them, as far as the window allows.
#[test]
fn a_flush_sends_what_waits() {
    let (mut both, link) = linked(&hosts(1));
    let header = PacketHeader::new(Kind::Send, QUEUE_PAIR, 3, 99);
    both.until("all have left", |it| !it.a.endpoint.is_due(it.a.clock.now_ns()));
    both.a.pumped_ns = 0;
    both.a.send(link, header, b"in flight", View::empty()).expect("room");
    assert!(both.a.has_sent_all(link));
    both.a.pumped_ns = u64::MAX / 2;
    both.a.send(link, header, b"waits", View::empty()).expect("room");
    assert!(!both.a.has_sent_all(link));
    let before = both.a.io.counters().frames_sent;
    both.a.flush();
    assert!(both.a.has_sent_all(link) && both.a.io.counters().frames_sent == before + 1);
    both.until("both arrive", |it| it.at_b.packets.len() == 2);
    // More than a window, of which the peer reads nothing.
    while both.a.send(link, header, &[7; 1400], View::empty()).is_ok() {}
    both.a.flush();
    assert!(!both.a.has_sent_all(link));
    both.until("all have left", |it| it.a.has_sent_all(link));
    assert!(both.a.has_sent_all(LinkId(1000)), "nothing waits for nobody");
}

/// Held packets wait for each other, on a quiet line too. They leave in one frame: when they are
/// let go, with the next packet, or with the next poll.
#[test]
fn held_packets_leave_together() {
    let (mut both, link) = linked(&hosts(1));
    let header = PacketHeader::new(Kind::Send, QUEUE_PAIR, 3, 99);
    let mut came = 0;
    for at_once in [Some(true), Some(false), None] {
        both.until("all have left", |it| !it.a.endpoint.is_due(it.a.clock.now_ns()));
        let before = both.a.io.counters().frames_sent;
        both.a.hold();
        for _ in 0..4 {
            both.a.pumped_ns = 0;
            both.a.send(link, header, b"word", View::empty()).expect("room");
            assert_eq!(both.a.io.counters().frames_sent, before);
        }
        came += 4;
        match at_once {
            Some(true) => both.a.let_go(true),
            Some(false) => {
                both.a.let_go(false);
                assert_eq!(both.a.io.counters().frames_sent, before);
                both.a.send(link, header, b"word", View::empty()).expect("room");
                came += 1;
            }
            None => _ = both.a.poll(&mut both.at_a, 64),
        }
        assert_eq!(both.a.io.counters().frames_sent, before + 1, "{at_once:?}");
        both.until("all arrive", |it| it.at_b.packets.len() == came);
        both.a.let_go(false);
    }
}

/// On a busy line held packets wait for the next poll, as others do. 72 KiB wait for nothing,
/// though nobody has polled since the first packet.
#[test]
fn held_packets_wait_as_others_on_a_busy_line() {
    let (mut both, link) = linked(&hosts(1));
    let header = PacketHeader::new(Kind::Send, QUEUE_PAIR, 3, 99);
    both.until("all have left", |it| !it.a.endpoint.is_due(it.a.clock.now_ns()));
    both.a.pumped_ns = 0;
    both.a.send(link, header, b"in flight", View::empty()).expect("room");
    let before = both.a.io.counters().frames_sent;
    both.a.hold();
    both.a.pumped_ns = u64::MAX / 2;
    both.a.send(link, header, b"word", View::empty()).expect("room");
    both.a.let_go(true);
    assert_eq!(both.a.io.counters().frames_sent, before, "the line was just used");
    both.until("both arrive", |it| it.at_b.packets.len() == 2);

    both.a.hold();
    let before = both.a.io.counters().frames_sent;
    let mut sent = 0;
    while both.a.io.counters().frames_sent == before {
        both.a.pumped_ns = u64::MAX / 2;
        both.a.send(link, header, &[7; 1400], View::empty()).expect("room");
        sent += 1;
        assert!(sent < 64, "they wait");
    }
    assert!(sent >= 48, "{sent} are few");
    both.a.let_go(true);
    both.until("all arrive", |it| it.at_b.packets.len() == 2 + sent);

    both.a.hold();
    both.a.send(link, header, b"word", View::empty()).expect("room");
    both.a.flush();
    assert!(both.a.has_sent_all(link) && !both.a.holds, "it leaves, and holds nothing back");
}

/// A gate is unknown while a frame waits that may close it.
#[test]
fn an_unread_frame_may_close_a_gate() {
    let (mut both, link) = linked(&hosts(1));
    both.b.set_gate(QUEUE_PAIR, Gate::Closed);
    let since = Instant::now();
    while both.a.watch_gate(link, QUEUE_PAIR).is_some() {
        assert!(since.elapsed() < LONG, "it is not noticed");
    }
    both.until("it is read", |it| it.a.watch_gate(link, QUEUE_PAIR) == Some(Gate::Closed));
}

/// Frames of a stream are sent at once in batches of 72 KiB, of eight frames at least.
#[test]
fn streams_leave_in_batches() {
    let [near, far] = hosts(1);
    for (mtu, frames) in [(1500, 49), (9000, 8), (60_000, 8)] {
        for (host, name) in [(&near, "near0"), (&far, "far0")] {
            host.run(|| ip(&format!("link set {name} mtu {mtu}"))).expect("here").expect("an mtu");
        }
        let (_near, a) = eth(&near, "near0", IoKind::Packet, 1);
        let EthFunction::Packet(a) = a else { panic!("AF_PACKET") };
        assert_eq!(a.stream_batch_frames, frames, "{mtu}");
    }
}

/// While a node is sought, pauses double: 2 ms, 4 ms and so on, to 200 ms.
#[test]
fn pauses_between_questions_double() {
    let [near, _far] = hosts(1);
    let (_near, function) = eth(&near, "near0", IoKind::Packet, 1);
    let EthFunction::Packet(mut it) = function else { panic!("AF_PACKET") };
    let mut heard = Heard::new();
    let nobody = FunctionAddress { node: 77, function: 1 };
    let LinkId(number) = it.link(nobody, LONG).expect("a link");
    for (pause, next) in [(2, 4), (4, 8), (100, 200), (101, 200), (200, 200)] {
        let state = &mut it.links.at_mut(number).expect("the link").state;
        let State::Seeking { ask_again_ns, pause_ns, .. } = state else { panic!("it is known") };
        (*ask_again_ns, *pause_ns) = (0, pause * 1_000_000);
        let before = it.clock.now_ns();
        it.poll(&mut heard, 64);
        let after = it.clock.now_ns();
        let state = &it.links.at(number).expect("the link").state;
        let State::Seeking { ask_again_ns, pause_ns, .. } = *state else { panic!("it is known") };
        assert_eq!(pause_ns, next * 1_000_000);
        let asks = before + pause * 1_000_000..=after + pause * 1_000_000;
        assert!(asks.contains(&ask_again_ns), "{ask_again_ns} is not in {asks:?}");
    }
}

/// A node that does not answer where it was said to be is asked for again after 20 ms, then in
/// pauses that double to 200 ms.
#[test]
fn a_place_that_does_not_answer_is_doubted() {
    use bellwire_protocol::discovery::NeighbourTable;
    let [near, _far] = hosts(1);
    let (_near, function) = eth(&near, "near0", IoKind::Packet, 1);
    let EthFunction::Packet(mut it) = function else { panic!("AF_PACKET") };
    let mut heard = Heard::new();
    it.search.route.heard(77, crate::link_header::Mac([2, 0, 0, 0, 0, 77]));
    let before = it.clock.now_ns();
    it.link(FunctionAddress { node: 77, function: 1 }, LONG).expect("a link");
    let after = it.clock.now_ns();
    let [asked] = it.links.unanswered[..] else { panic!("it is believed") };
    assert_eq!(asked.pause_ns, 20_000_000);
    assert!((before + 20_000_000..=after + 20_000_000).contains(&asked.ask_again_ns));
    for (pause, next) in [(20, 40), (99, 198), (101, 200), (200, 200)] {
        it.links.unanswered[0].ask_again_ns = u64::MAX;
        it.links.unanswered[0].pause_ns = pause * 1_000_000;
        it.poll(&mut heard, 64);
        let [asked] = it.links.unanswered[..] else { panic!("it is believed") };
        assert_eq!((asked.ask_again_ns, asked.pause_ns), (u64::MAX, pause * 1_000_000), "early");
        it.links.unanswered[0].ask_again_ns = 0;
        let (before, sent) = (it.clock.now_ns(), it.io.counters().frames_sent);
        it.poll(&mut heard, 64);
        let after = it.clock.now_ns();
        let [asked] = it.links.unanswered[..] else { panic!("it is believed") };
        assert_eq!(asked.pause_ns, next * 1_000_000);
        let asks = before + pause * 1_000_000..=after + pause * 1_000_000;
        assert!(asks.contains(&asked.ask_again_ns), "{} is not in {asks:?}", asked.ask_again_ns);
        assert!(it.io.counters().frames_sent > sent, "the question leaves");
    }
}

/// What strangers ask and announce waits in bounded numbers; announcements only while links wait.
#[test]
fn questions_and_answers_wait_in_bounded_numbers() {
    use bellwire_protocol::discovery::seek;
    use bellwire_wire::frame::seek::SeekBody;
    let [near, _far] = hosts(1);
    let (_near, function) = eth(&near, "near0", IoKind::Packet, 1);
    let EthFunction::Packet(mut it) = function else { panic!("AF_PACKET") };
    let mut room = [0; seek::FRAME_BYTES];
    let from = |number: usize| crate::link_header::Mac([2, 0, 0, 0, 1, number as u8]);
    let now_ns = it.clock.now_ns();
    let body = SeekBody { from: 9, to: it.address.node, frame_bytes: 1500, nonce: 1 };
    seek::emit(SeekFrame::Seek(body), 3, 255, &mut room);
    for number in 0..70 {
        assert!(it.search.handle_frame(from(number), &room, false, now_ns));
        assert_eq!(it.search.answers.len(), (number + 1).min(64));
    }
    let asked = it.search.discovery.seek(77, now_ns);
    let body = SeekBody { from: 77, to: asked.from, ..asked };
    seek::emit(SeekFrame::Here(body), 3, 255, &mut room);
    for number in 0..70 {
        assert!(it.search.handle_frame(from(number), &room, false, now_ns));
    }
    assert_eq!(it.search.announced_count(), 0, "nobody waits for it");
    for number in 0..70 {
        assert!(it.search.handle_frame(from(number), &room, true, now_ns));
        assert_eq!(it.search.announced_count(), (number + 1).min(64));
    }
    assert!(!it.search.handle_frame(from(1), b"no question", true, now_ns));
}

/// A link between hosts with two wires uses both of them, though only one was known at first.
#[test]
fn both_wires_carry_frames() {
    let [near, far] = hosts(2);
    let (_near, a) = eth(&near, "near0+near1", IoKind::Packet, 1);
    let (_far, b) = eth(&far, "far0+far1", IoKind::Packet, 9);
    let (EthFunction::MultiInterface(a), EthFunction::MultiInterface(b)) = (a, b) else {
        panic!("several interfaces")
    };
    let mut both = Both::new(*a, *b);
    let link = both.a.link(both.b.address(), PATIENCE).expect("a link");
    let since = Instant::now();
    // More than questions for places, of which there is one in a second.
    while both.a.io.carrier().frames_sent().into_iter().any(|frames| frames < 200) {
        assert!(
            since.elapsed() < LONG,
            "{:?} frames by the wires",
            both.a.io.carrier().frames_sent()
        );
        both.send(link, &[1; 32], &[2; 4000]);
    }
}
