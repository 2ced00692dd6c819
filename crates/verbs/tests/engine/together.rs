//! Messages that are posted together (`Function::post_sends`).

use crate::world::*;
use bellwire::*;

/// Posts these messages together, from the first side to `to`.
fn post(world: &mut World, to: Address, messages: &[&[u8]]) -> Result<(), PartialPost> {
    let mut sends: Vec<Message<'_>> =
        messages.iter().map(|&bytes| Message::inline(bytes).to(to)).collect();
    let a = &mut world.sides[0];
    a.function.post_sends(a.qp, &mut sends)
}

/// A pair with a link.
fn linked(options: FabricOptions) -> (World, Address) {
    let mut world = World::new(options, 2);
    let to = world.sides[1].address();
    world.sides[1].receive(8, 0);
    world.sides[0].send(to, b"link", 0);
    world.settle();
    world.sides.iter_mut().for_each(|side| side.done.clear());
    (world, to)
}

fn received(world: &mut World, side: usize) -> Vec<Vec<u8>> {
    world.settle();
    world.sides[side].take_all(Operation::Receive).into_iter().map(bytes).collect()
}

/// Two messages and more share a packet. One alone does not become a batch.
#[test]
fn two_share_a_packet() {
    let (mut world, to) = linked(FabricOptions::default());
    let peer = to.function_address();
    for (messages, packets) in [(&[&b"1"[..]][..], 1), (&[b"2", b"3"], 1), (&[b"4", b"5", b"6"], 1)]
    {
        messages.iter().for_each(|_| world.sides[1].receive(8, 0));
        post(&mut world, to, messages).unwrap();
        assert_eq!(world.fabric.packets_towards(peer), packets);
        assert_eq!(received(&mut world, 1), messages);
    }
    // Each message counts, and no batch does.
    assert_eq!(world.sides[1].function.counters().function.packets_taken, 1 + 6);
    world.check_counters();
}

/// Messages for several destinations that are posted together go each to its own.
#[test]
fn each_goes_to_its_own_destination() {
    let mut world = World::new(FabricOptions::default(), 3);
    let to = [1, 2].map(|side: usize| world.sides[side].address());
    for round in 0..2 {
        (1..3).for_each(|side| (0..4).for_each(|_| world.sides[side].receive(8, 0)));
        let order = [0, 0, 1, 1, 0, 1, 1, 0];
        let bytes = [0, 1, 2, 3, 4, 5, 6, 7].map(|number: u8| [number]);
        let mut sends: Vec<Message<'_>> = order
            .iter()
            .zip(&bytes)
            .map(|(&to_, bytes)| Message::inline(bytes).to(to[to_]))
            .collect();
        let a = &mut world.sides[0];
        a.function.post_sends(a.qp, &mut sends).unwrap();
        assert_eq!(received(&mut world, 1), [[0], [1], [4], [7]], "round {round}");
        assert_eq!(received(&mut world, 2), [[2], [3], [5], [6]], "round {round}");
    }
}

/// A batch overtakes nothing that waits, and one that finds no room is not lost.
#[test]
fn a_batch_keeps_the_order() {
    let (mut world, to) = linked(FabricOptions { link_packets: 2, ..Default::default() });
    (0..7).for_each(|_| world.sides[1].receive(8, 0));
    (1..4).for_each(|number: u8| world.sides[0].send(to, &[number], 0));
    // Now the link has room, and the third message still waits.
    world.sides[1].turn();
    post(&mut world, to, &[&[4], &[5]]).unwrap();
    post(&mut world, to, &[&[6], &[7]]).unwrap();
    assert_eq!(received(&mut world, 1), [[1], [2], [3], [4], [5], [6], [7]]);

    (0..4).for_each(|_| world.sides[1].receive(8, 0));
    (1..3).for_each(|number: u8| world.sides[0].send(to, &[number], 0));
    post(&mut world, to, &[&[3], &[4]]).unwrap();
    assert_eq!(received(&mut world, 1), [[1], [2], [3], [4]]);
    world.check_counters();
}

/// As many are posted as the completion queue has room for. The error says how many.
#[test]
fn the_room_for_completions_limits_a_batch() {
    let (mut world, to) = linked(FabricOptions::default());
    let a = &mut world.sides[0];
    let small = a.function.create_completion_queue(3).unwrap();
    a.qp = a.function.create_queue_pair(&QueuePairOptions::new(small)).unwrap();
    (0..6).for_each(|_| world.sides[1].receive(8, 0));
    let refused = post(&mut world, to, &[b"1", b"2", b"3", b"4"]).unwrap_err();
    assert_eq!(refused.posted, 3);
    assert!(matches!(refused.error, Error::QueueFull { depth: 3, .. }), "{}", refused.error);
    let a = &mut world.sides[0];
    for _ in 0..3 {
        assert!(a.function.next_completion(small).unwrap().is_some());
    }
    post(&mut world, to, &[b"4", b"5"]).unwrap();
    assert_eq!(received(&mut world, 1), [b"1", b"2", b"3", b"4", b"5"]);
    world.check_counters();
}

/// A batch that is taken in part stays in its link, and goes on where it stopped.
#[test]
fn a_batch_goes_on_where_it_stopped() {
    let (mut world, to) = linked(FabricOptions::default());
    world.sides[1].receive(8, 1);
    post(&mut world, to, &[b"1", b"2", b"3"]).unwrap();
    let poll = |world: &mut World| {
        let b = &mut world.sides[1];
        b.function.poll(b.cq).unwrap().map(bytes)
    };
    // The second stays in the link, because the program may post a receive for it.
    for expected in [b"1", b"2", b"3"] {
        assert_eq!(poll(&mut world).as_deref(), Some(&expected[..]));
        world.sides[1].receive(8, 1);
    }
    assert_eq!(poll(&mut world), None);
    assert_eq!(world.sides[1].state().counters.messages_arrived, 4);
    world.check_counters();
}

/// Messages of these numbers, gathered at the first side.
fn gathered(world: &World, numbers: &[u8]) -> PackedMessages {
    let mut packed = PackedMessages::new();
    for &number in numbers {
        let (head, body) = ([number], [number; 2]);
        let function = &world.sides[0].function;
        assert!(function.gather(&mut packed, number.into(), &head, View::of(&body)).unwrap());
    }
    packed
}

/// Posts them from the first side.
fn post_packed(world: &mut World, to: Address, packed: &mut PackedMessages) -> Result<()> {
    let a = &mut world.sides[0];
    a.function.post_packed(a.qp, to, packed, 5, false)
}

/// Messages that were gathered one by one share a packet, and count one by one. Behind messages
/// that wait they keep their place.
#[test]
fn gathered_messages_share_a_packet() {
    let (mut world, to) = linked(FabricOptions { link_packets: 4, ..Default::default() });
    (0..14).for_each(|_| world.sides[1].receive(8, 0));
    let before = world.sides[0].state().counters;
    // The first one finds the way to the link.
    let mut packed = gathered(&world, &[0, 0, 0]);
    post_packed(&mut world, to, &mut packed).unwrap();
    assert_eq!(received(&mut world, 1), [[0; 3]; 3]);
    for numbers in [&[1, 2][..], &[3], &[4, 5, 6]] {
        let mut packed = gathered(&world, numbers);
        post_packed(&mut world, to, &mut packed).unwrap();
        assert!(packed.is_empty());
    }
    assert_eq!(world.fabric.packets_towards(to.function_address()), 3);
    // The first of two has the last place. Then there is room, but the second one goes first.
    world.sides[0].send(to, &[7], 0);
    world.sides[0].send(to, &[8], 0);
    world.sides[1].turn();
    let mut packed = gathered(&world, &[9, 10, 11]);
    post_packed(&mut world, to, &mut packed).unwrap();
    world.settle();
    let done = world.sides[1].take_all(Operation::Receive);
    assert_eq!(done[8].immediate(), Some(9));
    let came: Vec<_> = done.into_iter().map(bytes).collect();
    let single = |number: u8| vec![number; if (7..=8).contains(&number) { 1 } else { 3 }];
    assert_eq!(came, (1..=11).map(single).collect::<Vec<_>>());
    let after = world.sides[0].state().counters;
    assert_eq!(after.messages_sent - before.messages_sent, 14);
    assert_eq!(after.bytes_sent - before.bytes_sent, 38);
    // Only those that are signaled complete.
    assert_eq!(world.sides[0].take_all(Operation::Send).len(), 2);
    world.check_counters();
}

/// What fills a packet goes in one. What exceeds it goes in two.
#[test]
fn gathered_messages_fit_a_packet() {
    let (mut world, to) = linked(FabricOptions { packet_bytes: 64, ..Default::default() });
    (0..10).for_each(|_| world.sides[1].receive(8, 0));
    let mut packed = gathered(&world, &[0]);
    post_packed(&mut world, to, &mut packed).unwrap();
    assert_eq!(received(&mut world, 1), [[0; 3]]);
    for (numbers, packets) in [(&[1, 2, 3, 4][..], 1), (&[5, 6, 7, 8, 9], 3)] {
        let mut packed = gathered(&world, numbers);
        post_packed(&mut world, to, &mut packed).unwrap();
        assert_eq!(world.fabric.packets_towards(to.function_address()), packets);
    }
    let came = received(&mut world, 1);
    assert_eq!(came, (1..=9).map(|number| vec![number; 3]).collect::<Vec<_>>());
    world.check_counters();
}

/// Where a device can hold packets, those of a list wait for each other. They leave at the end of
/// the call, also of one that is refused. Gathered messages that others follow wait for the next
/// packet, the next poll or a sleep.
#[test]
fn packets_of_a_list_are_held() {
    let (mut world, to) = linked(FabricOptions { holds: true, ..Default::default() });
    let towards = |world: &World| world.fabric.packets_towards(to.function_address());
    let post_packed = |world: &mut World, numbers: &[u8], more: bool| {
        let mut packed = gathered(world, numbers);
        let a = &mut world.sides[0];
        a.function.post_packed(a.qp, to, &mut packed, 5, more).unwrap();
    };
    (0..9).for_each(|_| world.sides[1].receive(8, 0));
    post(&mut world, to, &[b"1", b"2", b"3"]).unwrap();
    assert_eq!(towards(&world), 3);
    let refused = post(&mut world, to, &[b"4", &[0; 2000], b"5"]).unwrap_err();
    assert_eq!((refused.posted, towards(&world)), (1, 4));
    post_packed(&mut world, &[5], true);
    assert_eq!(towards(&world), 4, "it waits");
    post_packed(&mut world, &[6, 7], false);
    assert_eq!(towards(&world), 7);
    post_packed(&mut world, &[8], true);
    assert_eq!(towards(&world), 7, "it waits");
    world.sides[0].turn();
    assert_eq!(towards(&world), 8);
    post_packed(&mut world, &[9], true);
    world.sides[0].function.arm().unwrap();
    assert_eq!(towards(&world), 9);
    let came = received(&mut world, 1);
    assert_eq!(came[..4], [b"1", b"2", b"3", b"4"]);
    assert_eq!(came[4..], [5, 6, 7, 8, 9].map(|number| [number; 3]));
    world.check_counters();
}

/// Gathered messages that find no room stay, and go later in the same order.
#[test]
fn gathered_messages_wait_for_room() {
    let (mut world, to) = linked(FabricOptions { link_packets: 1, ..Default::default() });
    let a = &mut world.sides[0];
    a.qp = a.function.create_queue_pair(&QueuePairOptions::new(a.cq).send_depth(2)).unwrap();
    (0..6).for_each(|_| world.sides[1].receive(8, 0));
    world.sides[0].send(to, &[1], 0);
    let mut packed = gathered(&world, &[2, 3, 4, 5, 6]);
    let refused = post_packed(&mut world, to, &mut packed).unwrap_err();
    assert!(matches!(refused, Error::QueueFull { .. }), "{refused}");
    assert!(!packed.is_empty());
    world.settle();
    post_packed(&mut world, to, &mut packed).unwrap();
    assert_eq!(world.fabric.packets_towards(to.function_address()), 1);
    let came = received(&mut world, 1);
    assert_eq!(came[0], [1]);
    assert_eq!(came[1..], [2, 3, 4, 5, 6].map(|number| [number; 3]));
    world.check_counters();
}
