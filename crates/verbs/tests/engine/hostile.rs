//! A hostile peer.

use crate::world::*;
use bellwire::*;
use bellwire_device::{
    Kind, LinkId, PacketFlags, PacketHeader, SendError, Sink, Transport, Verdict,
};
use bellwire_ring::memory::View;
use bellwire_testkit::loopback::Loopback;
use proptest::prelude::*;
use std::time::Duration;

fn link(hostile: &mut Loopback) -> LinkId {
    hostile.link(FunctionAddress { node: 1, function: 0 }, Duration::from_secs(1)).unwrap()
}

/// Sends one forged packet without payload to side 1.
pub fn send(mut hostile: Loopback, world: &mut World, forge: impl Fn(&mut PacketHeader)) {
    let link = link(&mut hostile);
    world.settle();
    let mut header = PacketHeader::new(Kind::Send, 1, 1, 0);
    forge(&mut header);
    hostile.send(link, header, &[], View::empty()).unwrap();
    world.settle();
}

/// Packets of unknown kinds are counted and dropped. Packets that are too short for their kind
/// close the link. Neither harms other peers.
// shows: C-37
#[test]
fn unknown_kinds_are_dropped_and_short_packets_close_the_link() {
    let mut world = World::pair();
    let address = |node| FunctionAddress { node, function: 0 };
    for kind in [0, 15, 200, 255] {
        let hostile = world.fabric.transport(address(50));
        send(hostile, &mut world, |header| header.kind = kind);
    }
    assert_eq!(world.sides[1].function.counters().function.unknown_kinds, 4);
    assert_eq!(world.sides[1].function.counters().function.violations, 0);
    for kind in 2..=9 {
        let hostile = world.fabric.transport(address(50));
        if kind == Kind::Data as u8 {
            continue;
        }
        send(hostile, &mut world, |header| header.kind = kind);
    }
    let counters = world.sides[1].function.counters().function;
    assert_eq!(counters.violations, 7);
    assert_eq!(counters.links_lost, 11);
    let to = world.sides[1].address();
    world.sides[1].receive(8, 1);
    world.sides[0].send(to, b"fine", 1);
    world.settle();
    assert_eq!(bytes(world.sides[1].take()), b"fine");
}

/// Records kind and payload of each packet.
#[derive(Default)]
struct Curious(Vec<(u8, Vec<u8>)>);

impl Sink for Curious {
    fn packet(
        &mut self,
        _: LinkId,
        _: FunctionAddress,
        header: [u64; 3],
        bytes: View<'_>,
    ) -> Verdict {
        self.0.push((header[0] as u8, bytes.to_vec()));
        Verdict::Taken
    }

    fn link_down(&mut self, _: LinkId, _: FunctionAddress, _: Status) {}
}

/// Messages that are posted together are one packet, and the padding of its records holds no data
/// for other peers.
#[test]
fn a_batch_is_one_packet_and_tells_nothing_else() {
    let mut world = World::pair();
    let secret = world.sides[1].address();
    let mut curious = world.fabric.transport(FunctionAddress { node: 50, function: 0 });
    curious.set_gate(3, bellwire_device::Gate::Open);
    let to = Address::new(50, 0, 3);
    let mut found = Curious::default();
    for number in 0..2 {
        let a = &mut world.sides[0];
        let mut sends = [(); 3].map(|()| Message::inline(&[0xff; 200]).to(secret));
        a.function.post_sends(a.qp, &mut sends).unwrap();
        let mut sends = [&b"1"[..], b"", b"seven b"].map(|bytes| Message::inline(bytes).to(to));
        a.function.post_sends(a.qp, &mut sends).unwrap();
        for _ in 0..10 {
            world.turn();
            curious.poll(&mut found, 64);
        }
        // The first time the link was not up yet, so each message waited alone.
        assert_eq!(found.0.len(), if number == 0 { 3 } else { 4 });
    }
    let (kind, payload) = found.0.pop().unwrap();
    assert_eq!(kind, Kind::Batch as u8);
    assert_eq!(payload, b"\x01\0\0\x001\0\0\0\0\0\0\0\x07\0\0\0seven b\0");
}

/// A batch with a record that does not lie inside it closes the link, after the records before it
/// were delivered. An empty batch has no effect.
#[test]
fn batches_must_hold_their_records() {
    let record = |length: u16, flags: u8| [length as u8, (length >> 8) as u8, flags, 0];
    let good = [record(4, 0), *b"good"].concat();
    let bad: [&[u8]; 6] = [
        &[1],
        &record(1, 0),
        &record(u16::MAX, 0),
        &[record(0, 1), [0; 4]].concat(),
        &[&record(5, 0)[..], b"four"].concat(),
        &[&record(4, 1)[..], &[0; 8], b"abc"].concat(),
    ];
    let mut world = World::pair();
    for (number, bad) in bad.into_iter().enumerate() {
        let mut hostile = world.fabric.transport(FunctionAddress { node: 50, function: 0 });
        let link = link(&mut hostile);
        world.sides[1].receive(8, number as u64);
        world.settle();
        let header = PacketHeader::new(Kind::Batch, 1, 1, 0);
        hostile.send(link, header, &[], View::empty()).unwrap();
        hostile.send(link, header, &good, View::of(bad)).unwrap();
        world.settle();
        assert_eq!(bytes(world.sides[1].take()), b"good");
        let counters = world.sides[1].function.counters().function;
        assert_eq!(
            (counters.violations, counters.links_lost),
            (number as u64 + 1, number as u64 + 1)
        );
    }
    world.check_counters();
}

/// A forged or late answer to an operation is counted and changes nothing.
#[test]
fn forged_answers_are_ignored() {
    let mut world = World::narrow();
    let region = world.sides[0].function.allocate_region(5000, Rights::all()).unwrap();
    let b = &mut world.sides[1];
    b.function.post_get(b.qp, Get::new(region.remote_key(), vec![0; 5000])).unwrap();
    for operation in (0..4u64).map(|serial| serial << 16).chain([u64::MAX]) {
        for kind in [Kind::Done, Kind::Data] {
            let mut hostile = world.fabric.transport(FunctionAddress { node: 60, function: 0 });
            let link = link(&mut hostile);
            world.sides[1].turn();
            let mut header = PacketHeader::new(kind, 0, 0, operation);
            header.aux = if kind == Kind::Data { 1 } else { 0 };
            header.flags = PacketFlags::LAST;
            hostile.send(link, header, &[0; 16], View::empty()).unwrap();
            world.sides[1].turn();
        }
    }
    region.write(0, &pattern(5000, 1));
    world.settle();
    assert_eq!(world.sides[1].function.counters().function.stale_operations, 10);
    let done = world.sides[1].take();
    assert_eq!((done.status, done.length), (Status::Success, 5000));
}

/// A peer that requests more answers than the bound, and does not take them, loses its link.
#[test]
fn endless_requests_are_cut_off() {
    let options = FabricOptions { queue_pairs: 4, link_packets: 8, ..FabricOptions::default() };
    let mut world = World::new(options, 2);
    let mut hostile = world.fabric.transport(FunctionAddress { node: 50, function: 0 });
    let link = link(&mut hostile);
    world.settle();
    let header = PacketHeader::new(Kind::Connect, 9, 9, 9);
    for _ in 0..100_000 {
        match hostile.send(link, header, &[], View::empty()) {
            Ok(_) => {}
            Err(SendError::Busy) => {
                world.sides[1].turn();
            }
            Err(SendError::Down(why)) => {
                assert_eq!(why, Status::ProtocolViolation);
                return;
            }
        }
    }
    panic!("it was never cut off");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Random packets with often plausible fields never cause a panic, never touch memory without
    /// the key, and never harm the traffic of others.
    #[test]
    fn random_packets_harm_nobody(
        packets in prop::collection::vec(
            (
                0..16u8, any::<u8>(), 0..4u16, 0..4u32, 0..4u32,
                prop_oneof![Just(0u64), (0..40u64).prop_map(|n| n << 15), any::<u64>()],
                prop::collection::vec(prop_oneof![0..9u64, any::<u64>()], 0..8),
            ),
            1..60,
        ),
        direct in any::<bool>(),
    ) {
        let options = FabricOptions {
            direct_allocated: direct,
            direct_brought: direct,
            ..FabricOptions::default()
        };
        let mut world = World::new(options, 2);
        let to = world.sides[1].address();
        let region = world.sides[1].function.allocate_region(64, Rights::all()).unwrap();
        let key = world.sides[0].function.allocate_region(3000, Rights::all()).unwrap().remote_key();
        let b = &mut world.sides[1];
        b.receive(3000, 1);
        b.function.listen(1).unwrap();
        b.function.post_get(b.qp, Get::new(key, vec![0; 3000]).context(2)).unwrap();
        b.send(Address::new(50, 0, 3), &[1; 3000], 3);
        let mut hostile = world.fabric.transport(FunctionAddress { node: 50, function: 0 });
        hostile.set_gate(3, bellwire_device::Gate::Open);
        let mut link = link(&mut hostile);
        world.sides[1].turn();
        for (kind, flags, aux, destination, source, argument, words) in packets {
            let mut header = PacketHeader::new(Kind::Send, destination, source, argument);
            header.kind = kind;
            header.flags = PacketFlags::from_bits_truncate(flags);
            header.aux = aux;
            let payload: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            if let Err(SendError::Down(_)) = hostile.send(link, header, &payload, View::empty()) {
                hostile.close(link);
                link = self::link(&mut hostile);
            }
            world.sides[1].turn();
            hostile.poll(&mut Curious::default(), 64);
        }
        drop(hostile);
        world.settle();
        prop_assert_eq!(part(&region, 0, 64), [0; 64]);
        world.sides[1].done.clear();
        // Until no packet of the hostile peer waits any more: one of its batches may have held many
        // messages.
        loop {
            let b = &mut world.sides[1];
            let state = b.function.query(b.qp).unwrap();
            (state.posted_receives..200).for_each(|number| b.receive(3000, number as u64));
            world.settle();
            world.sides[1].done.clear();
            if state.backlog_messages == 0 {
                break;
            }
        }
        world.sides[0].send(to, &pattern(3000, 1), 9);
        world.settle();
        let received = world.sides[1].take_all(Operation::Receive);
        prop_assert_eq!(received.len(), 1);
        prop_assert!(received.into_iter().all(|one| bytes(one) == pattern(3000, 1)));
        world.check_counters();
    }
}

/// A put whose event finds no room in the backlog writes nothing and waits. When there is room, its
/// bytes are written, and its event is reported once.
// shows: C-23
#[test]
fn a_put_without_room_for_its_event_waits() {
    let options = FunctionOptions::default().backlog_bytes(64 << 10);
    let fabric = FabricOptions { link_packets: 4_096, ..FabricOptions::default() };
    let mut world = World::with(fabric, 2, &options);
    let region = world.sides[1].function.allocate_region(64, Rights::REMOTE_WRITE).unwrap();
    let key = region.remote_key();
    // A peer that ignores STOP fills the backlog of a queue pair without receives.
    let mut flood = world.fabric.transport(FunctionAddress { node: 50, function: 0 });
    let filled = link(&mut flood);
    let mut messages = 0;
    loop {
        let header = PacketHeader::new(Kind::Send, 1, 1, 0);
        if flood.send(filled, header, b"as long as an event.", View::empty()).is_ok() {
            messages += 1;
        }
        world.settle();
        if world.sides[1].function.counters().function.packets_stalled > 0 {
            break;
        }
    }
    let mut hostile = world.fabric.transport(FunctionAddress { node: 51, function: 0 });
    let link = link(&mut hostile);
    world.settle();
    let mut header = PacketHeader::new(Kind::Put, 1, 1, 0);
    header.flags = PacketFlags::LAST | PacketFlags::EVENT | PacketFlags::IMMEDIATE;
    let words = [key.key, u64::from(key.index), 8, 16, 77, 8];
    let head: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    hostile.send(link, header, &head, View::of(b"8 bytes!")).unwrap();
    world.settle();
    let written = || {
        let mut found = [0; 64];
        region.read(0, &mut found);
        found
    };
    assert_eq!(written(), [0; 64], "nothing is written while there is no room");
    assert_eq!(world.sides[1].function.counters().function.served_puts, 0);
    let mut received = 0;
    let mut events = Vec::new();
    while received < messages {
        for context in 0..64 {
            world.sides[1].receive(64, context);
        }
        world.settle();
        received += world.sides[1].take_all(Operation::Receive).len();
        events.append(&mut world.sides[1].take_all(Operation::RemotePut));
    }
    assert_eq!(written()[8..16], *b"8 bytes!");
    assert_eq!(events.len(), 1, "its event is reported once");
    assert_eq!((events[0].immediate(), events[0].length), (Some(77), 8));
    world.check_counters();
}

/// An acceptance that names the right request is taken from the function that was asked, and from
/// no other.
#[test]
fn a_stranger_accepts_nothing() {
    let mut world = World::pair();
    let listener = world.sides[1].function.listen(5).unwrap();
    let a = &mut world.sides[0];
    a.function.start_connect(a.qp, Address::new(1, 0, 5), b"", LONG).unwrap();
    world.settle();
    for request in 0..3 {
        let mut hostile = world.fabric.transport(FunctionAddress { node: 50, function: 0 });
        let link =
            hostile.link(FunctionAddress { node: 0, function: 0 }, Duration::from_secs(1)).unwrap();
        world.settle();
        for kind in [Kind::Accept, Kind::Reject] {
            let header = PacketHeader::new(kind, 1, 1, request);
            hostile.send(link, header, &[], View::empty()).unwrap();
        }
        world.settle();
        let a = &mut world.sides[0];
        assert_eq!(a.function.poll_connection(a.qp).unwrap(), ConnectionProgress::Waiting);
    }
    let (a, b) = world.both();
    let request = b.function.next_request(listener).unwrap().expect("it waits");
    b.function.accept(request, b.qp, b"").unwrap();
    a.function.progress().unwrap();
    assert!(matches!(a.state().connection, ConnectionState::Connected { .. }));
}

/// What peers ask of memory is counted by kind, and why it is refused, too.
#[test]
fn served_and_refused_requests_are_counted() {
    let mut world = World::new(by_packets(), 2);
    let region = world.sides[1].function.allocate_region(64, Rights::all()).unwrap();
    let key = region.remote_key();
    for _ in 0..2 {
        let a = &mut world.sides[0];
        a.function.post_put(a.qp, Put::new(vec![1; 8], key.slice(0, 8))).unwrap();
        a.function.post_get(a.qp, Get::new(key.slice(0, 8), vec![0; 8])).unwrap();
        a.function.post_atomic(a.qp, Atomic::fetch_add(key.at(8), 1)).unwrap();
    }
    world.settle();
    let mut hostile = world.fabric.transport(FunctionAddress { node: 50, function: 0 });
    let link = link(&mut hostile);
    world.settle();
    let mut header = PacketHeader::new(Kind::Atomic, 0, 0, 1);
    (header.aux, _) = bellwire_device::AtomicOperation::FetchAdd(1).to_packet();
    let words = [key.key, u64::from(key.index), 9, 1, 0];
    let head: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    for _ in 0..3 {
        hostile.send(link, header, &head, View::empty()).unwrap();
    }
    world.settle();
    let counters = world.sides[1].function.counters().function;
    let served = (counters.served_puts, counters.served_gets, counters.served_atomics);
    assert_eq!(served, (2, 2, 2));
    assert_eq!((counters.misaligned, counters.violations), (3, 0));
    assert_eq!(world.sides[1].function.counters().function.links_opened, 2);
    assert_eq!(region.load_u64(8), 2);
}
