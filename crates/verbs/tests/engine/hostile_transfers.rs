//! A hostile peer within transfers that its victim takes part in.

use crate::world::*;
use bellwire::*;
use bellwire_device::{Gate, Kind, LinkId, PacketFlags, PacketHeader, Sink, Transport, Verdict};
use bellwire_ring::memory::View;
use bellwire_testkit::loopback::Loopback;

/// `aux` of a `Data`: of a long message, or for a get.
const TRANSFER: u16 = 0;
const REPLY: u16 = 1;

/// A hostile function with a link to side 1, and what it has heard.
struct Hostile {
    it: Loopback,
    link: LinkId,
    heard: Heard,
}

#[derive(Default)]
struct Heard(Vec<(PacketHeader, Vec<u64>)>);

impl Sink for Heard {
    fn packet(
        &mut self,
        _: LinkId,
        _: FunctionAddress,
        header: [u64; 3],
        bytes: View<'_>,
    ) -> Verdict {
        let bytes = bytes.to_vec();
        let words = bytes.chunks_exact(8);
        let words = words.map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect();
        self.0.push((PacketHeader::from_words(header), words));
        Verdict::Taken
    }

    fn link_down(&mut self, _: LinkId, _: FunctionAddress, _: Status) {}
}

impl Hostile {
    fn new(world: &mut World, node: u32) -> Hostile {
        let mut it = world.fabric.transport(FunctionAddress { node, function: 0 });
        it.set_gate(3, Gate::Open);
        let victim = world.sides[1].address().function_address();
        let link = it.link(victim, LONG).unwrap();
        world.settle();
        Hostile { it, link, heard: Heard::default() }
    }

    /// Sends a packet of these words and bytes, which side 1 takes in.
    fn say(&mut self, world: &mut World, header: PacketHeader, words: &[u64], bytes: &[u8]) {
        let head: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.it.send(self.link, header, &head, View::of(bytes)).unwrap();
        world.sides[1].turn();
        world.sides[1].turn();
    }

    /// The last packet of a kind from side 1.
    fn hear(&mut self, kind: Kind) -> (PacketHeader, Vec<u64>) {
        self.it.poll(&mut self.heard, 64);
        let found = self.heard.0.iter().rev().find(|(header, _)| header.kind == kind as u8);
        found.expect("it was sent").clone()
    }
}

fn violations(world: &World) -> u64 {
    world.sides[1].function.counters().function.violations
}

/// A receiver may ask for a long message once, for a part that there is, and only on the message's
/// own link.
#[test]
fn grants_are_checked() {
    // In each case: the part that is asked for, and whether it is right.
    for (case, from, to, good) in
        [(0, 0, 3_001, false), (1, 9, 8, false), (2, 0, 3_000, true), (3, 3_000, 3_000, true)]
    {
        let mut world = World::new(by_packets(), 2);
        let mut hostile = Hostile::new(&mut world, 50);
        let mut other = Hostile::new(&mut world, 51);
        let address = Address::new(50, 0, 3);
        world.sides[1].send(address, &[7; 3_000], 1);
        world.sides[1].turn();
        let (_, offer) = hostile.hear(Kind::Offer);
        let (operation, total) = (offer[0], offer[1]);
        assert_eq!(total, 3_000);
        let grant = PacketHeader::new(Kind::Grant, 0, 0, operation);
        other.say(&mut world, grant, &[5, 0, 3_000], b"");
        assert_eq!(other.hear(Kind::Data).0.aux, 2, "it learns that there is nothing");
        assert_eq!(world.sides[1].function.counters().function.stale_operations, 1);
        assert_eq!(violations(&world), 0);

        hostile.say(&mut world, grant, &[5, from, to], b"");
        assert_eq!(violations(&world), u64::from(!good), "case {case}");
        if good {
            hostile.say(&mut world, grant, &[5, from, to], b"");
            assert_eq!(violations(&world), 1, "case {case}: it asks twice");
        }
        world.settle();
        let done = world.sides[1].take_all(Operation::Send);
        assert_eq!(done[0].status, Status::ProtocolViolation);
    }
}

/// The bytes of a long message come in order, fill the receive exactly, and end where it ends.
#[test]
fn data_of_a_long_message_is_checked() {
    let last = PacketFlags::LAST;
    let none = PacketFlags::empty();
    // Bytes that come before as they should, and what follows.
    let cases = [
        (0, 8, 8, none, TRANSFER),
        (0, 0, 65, last, TRANSFER),
        (0, 0, 64, none, TRANSFER),
        (0, 0, 8, last, TRANSFER),
        (0, 0, 8, none, 3),
        (32, 32, 40, none, TRANSFER),
        (32, 0, 32, last, TRANSFER),
        (32, 32, 32, last, TRANSFER),
    ];
    for (case, (before, offset, length, flags, aux)) in cases.into_iter().enumerate() {
        let mut world = World::new(by_packets(), 2);
        let mut hostile = Hostile::new(&mut world, 50);
        world.sides[1].receive(64, 1);
        let offer = PacketHeader::new(Kind::Offer, 1, 3, 0);
        hostile.say(&mut world, offer, &[9, 100], b"");
        let (_, grant) = hostile.hear(Kind::Grant);
        assert_eq!(grant[1..], [0, 64], "what the receive takes");
        if before > 0 {
            hostile.say(&mut world, PacketHeader::data(0, grant[0]), &[], &vec![7; before]);
        }
        let mut data = PacketHeader::data(offset, grant[0]);
        (data.flags, data.aux) = (flags, aux);
        hostile.say(&mut world, data, &[], &vec![7; length]);
        let good = case + 1 == cases.len();
        assert_eq!(violations(&world), u64::from(!good), "case {case}");
        world.settle();
        let done = world.sides[1].take();
        let status = if good { Status::Truncated } else { Status::ProtocolViolation };
        assert_eq!((done.status, done.context), (status, 1), "case {case}");
        world.check_counters();
    }
}

/// An offer names memory of its sender, and a part of it that is there.
#[test]
fn offers_of_foreign_memory_are_refused() {
    let cases = [(51, 0, 100), (50, 1, 100), (50, 101, 0), (50, u64::MAX, 1)];
    for (case, (node, offset, total)) in cases.into_iter().enumerate() {
        let mut world = World::pair();
        let mut hostile = Hostile::new(&mut world, 50);
        world.sides[1].receive(200, 1);
        let key = RemoteKey { node, function: 0, index: 1, key: 77, length: 100 }.to_bytes();
        let word = |at: usize| u64::from_le_bytes(key[8 * at..8 * at + 8].try_into().unwrap());
        let words = [9, total, word(0), word(1), word(2), offset];
        hostile.say(&mut world, PacketHeader::new(Kind::Offer, 1, 3, 0), &words, b"");
        assert_eq!(violations(&world), 1, "case {case}");
        assert_eq!(world.sides[1].state().posted_receives, 1);
    }
}

/// The bytes for a get come in order, and as many as were asked for. A second answer is stale.
#[test]
fn data_for_a_get_is_checked() {
    let last = PacketFlags::LAST;
    let none = PacketFlags::empty();
    // Bytes that come before as they should, and what follows.
    let cases = [
        (0, 8, 8, none),
        (0, 0, 65, last),
        (0, 0, 64, none),
        (0, 0, 8, last),
        (32, 32, 40, none),
        (32, 0, 32, last),
        (0, 0, 64, last),
    ];
    for (case, (before, offset, length, flags)) in cases.into_iter().enumerate() {
        let mut world = World::new(by_packets(), 2);
        let mut hostile = Hostile::new(&mut world, 50);
        let key = RemoteKey { node: 50, function: 0, index: 1, key: 77, length: 64 };
        let b = &mut world.sides[1];
        b.function.post_get(b.qp, Get::new(key, vec![0; 64]).context(4)).unwrap();
        b.turn();
        let (get, _) = hostile.hear(Kind::Get);
        if before > 0 {
            let mut data = PacketHeader::data(0, get.argument);
            data.aux = REPLY;
            hostile.say(&mut world, data, &[], &vec![7; before]);
        }
        let mut data = PacketHeader::data(offset, get.argument);
        (data.flags, data.aux) = (flags, REPLY);
        let good = case + 1 == cases.len();
        if good {
            // Both arrive before anything else happens.
            let (link, bytes) = (hostile.link, [7; 64]);
            hostile.it.send(link, data, &[], View::of(&bytes)).unwrap();
            let done = PacketHeader::new(Kind::Done, 0, 0, get.argument);
            hostile.it.send(link, done, &[0; 16], View::empty()).unwrap();
            world.sides[1].turn();
        } else {
            hostile.say(&mut world, data, &[], &vec![7; length]);
        }
        assert_eq!(violations(&world), u64::from(!good), "case {case}");
        world.settle();
        let done = world.sides[1].take();
        let status = if good { Status::Success } else { Status::ProtocolViolation };
        assert_eq!((done.status, done.context), (status, 4), "case {case}");
        let stale = world.sides[1].function.counters().function.stale_operations;
        assert_eq!(stale, u64::from(good));
        if good {
            assert_eq!(bytes(done), [7; 64]);
        }
    }
}

/// A peer's unsent answers have a stated bound: 1,024, and two for each queue pair.
#[test]
fn the_bound_of_answers_is_exact() {
    let options = FabricOptions { queue_pairs: 4, link_packets: 8, ..FabricOptions::default() };
    let mut world = World::new(options, 2);
    let mut hostile = Hostile::new(&mut world, 50);
    let request = PacketHeader::new(Kind::Connect, 9, 9, 9);
    while violations(&world) == 0 {
        let asked = world.sides[1].function.counters().function.connections_refused;
        assert!(asked < 2_000, "there is no bound");
        hostile.say(&mut world, request, &[], b"");
    }
    // Eight more are in the link, and the last one was too much.
    let asked = world.sides[1].function.counters().function.connections_refused;
    assert_eq!(asked, 8 + 1_024 + 2 * 3 + 1);
}

/// A message from a channel's number, the first one too, is refused by queue pairs that are not
/// members.
#[test]
fn numbers_of_channels_send_to_members_only() {
    let mut world = World::pair();
    let mut hostile = Hostile::new(&mut world, 50);
    world.sides[1].receive(8, 1);
    for (count, channel) in [(1, 0), (2, 5)] {
        let source = Address::CHANNEL_BASE + channel;
        hostile.say(&mut world, PacketHeader::new(Kind::Send, 1, source, 0), &[], b"forged");
        assert_eq!(world.sides[1].state().counters.messages_refused, count);
    }
    hostile.say(&mut world, PacketHeader::new(Kind::Send, 1, 3, 0), &[], b"proper");
    assert_eq!(bytes(world.sides[1].take()), b"proper");
}

/// A put fails if any of its pieces does, also while other puts fail. A piece that raises an event
/// is the last.
#[test]
fn pieces_of_puts_are_checked() {
    let mut world = World::new(by_packets(), 2);
    let region = world.sides[1].function.allocate_region(8, Rights::REMOTE_WRITE).unwrap();
    let key = region.remote_key();
    let mut hostile = Hostile::new(&mut world, 50);
    let mut piece = |operation, secret: u64, flags| {
        let mut header = PacketHeader::new(Kind::Put, 0, 3, operation);
        header.flags = flags;
        let words = [secret, key.index.into(), 0, 8];
        hostile.say(&mut world, header, &words, b"12345678");
        (flags == PacketFlags::LAST).then(|| hostile.hear(Kind::Done).0)
    };
    let (none, last) = (PacketFlags::empty(), PacketFlags::LAST);
    for operation in [1, 2] {
        piece(operation, key.key ^ 1, none);
    }
    let good = piece(3, key.key, last).expect("an answer").aux;
    for operation in [1, 2] {
        let answer = piece(operation, key.key, last).expect("an answer");
        assert_eq!(answer.argument, operation);
        assert_ne!(answer.aux, good, "put {operation}");
    }
    let mut header = PacketHeader::new(Kind::Put, world.sides[1].qp.number, 3, 4);
    header.flags = PacketFlags::EVENT;
    hostile.say(&mut world, header, &[key.key, key.index.into(), 0, 8, 0, 8], b"12345678");
    assert_eq!(violations(&world), 1);
}
