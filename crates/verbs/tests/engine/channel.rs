//! Channels.

use crate::world::*;
use bellwire::*;

fn open(world: &mut World, side: usize, number: u16) -> QueuePair {
    let side = &mut world.sides[side];
    side.function.open_channel(number, &QueuePairOptions::new(side.cq)).unwrap()
}

/// Members of a channel on all nodes talk to each other, and one wait gets the first message of any
/// of them.
// shows: H-22, H-23
#[test]
fn members_of_a_channel_talk() {
    let mut world = World::new(FabricOptions::default(), 5);
    let members: Vec<QueuePair> = (0..5).map(|side| open(&mut world, side, 7)).collect();
    (0..4).for_each(|number| {
        world.sides[0].function.post_receive(members[0], vec![0; 3000], number).unwrap();
    });
    let to = Address::channel(0, 0, 7);
    for (side, length) in [(3, 10), (1, 2500), (4, 0), (2, 1000)] {
        let message = Message::buffer(pattern(length, side as u64)).to(to);
        world.sides[side].function.post_send(members[side], message).unwrap();
        world.settle();
        let received = world.sides[0].take();
        assert_eq!(received.peer, Address::channel(side as u32, 0, 7));
        assert_eq!(received.queue_pair, members[0]);
        assert!(bytes(received) == pattern(length, side as u64));
    }
    world.check_counters();
}

/// A second owner of a number is refused on the same node, from any function, until the first one
/// closes it.
// shows: H-22
#[test]
fn a_channel_has_one_owner_per_node() {
    let mut world = World::pair();
    let first = open(&mut world, 0, 9);
    let side = &mut world.sides[0];
    let options = QueuePairOptions::new(side.cq);
    let taken = side.function.open_channel(9, &options).unwrap_err();
    assert!(matches!(taken, Error::ChannelTaken { channel: 9 }));
    let mut second = side.device.open_function(1).unwrap();
    let cq = second.create_completion_queue(8).unwrap();
    let taken = second.open_channel(9, &QueuePairOptions::new(cq)).unwrap_err();
    assert!(matches!(taken, Error::ChannelTaken { channel: 9 }));
    second.open_channel(10, &QueuePairOptions::new(cq)).unwrap();
    side.function.destroy_queue_pair(first).unwrap();
    second.open_channel(9, &QueuePairOptions::new(cq)).unwrap();
    drop(second);
    side.function.open_channel(9, &options).unwrap();
    open(&mut world, 1, 9);
}

/// Members of different channels exchange no messages: the post is refused. A sender that forges
/// its number is refused by the receiver.
// shows: H-22
#[test]
fn different_numbers_never_meet() {
    let mut world = World::pair();
    let member = open(&mut world, 0, 1);
    open(&mut world, 1, 1);
    let other = open(&mut world, 1, 2);
    world.sides[1].function.post_receive(other, vec![0; 8], 0).unwrap();
    let ordinary = world.sides[0].qp;
    for (from, to) in [
        (member, Address::channel(1, 0, 2)),
        (member, world.sides[1].address()),
        (ordinary, Address::channel(1, 0, 1)),
    ] {
        let side = &mut world.sides[0];
        refuses!(
            side.function.post_send(from, Message::inline(b"x").to(to)),
            Error::BadDestination(_)
        );
    }
    let liar = world.fabric.transport(FunctionAddress { node: 5, function: 0 });
    crate::hostile::send(liar, &mut world, |header| {
        header.kind = 1;
        header.destination = Address::channel(0, 0, 2).queue_pair;
        header.source = Address::channel(0, 0, 1).queue_pair;
    });
    world.settle();
    assert!(world.sides[1].done.is_empty());
    assert_eq!(world.sides[1].function.query(other).unwrap().counters.messages_refused, 1);
}

/// Also with a link to the peer, members send to their own channel only, the first one included,
/// and others to no channel. The errors say which it was.
#[test]
fn channels_are_kept_apart_on_a_link_that_is_up() {
    let mut world = World::pair();
    let members = [0, 1].map(|side| open(&mut world, side, 0));
    open(&mut world, 1, 1);
    let ordinary = world.sides[1].address();
    world.sides[1].function.post_receive(members[1], vec![0; 8], 7).unwrap();
    let a = &mut world.sides[0];
    for context in 0..2 {
        let hello = Message::inline(b"member").to(Address::channel(1, 0, 0)).context(context);
        a.function.post_send(members[0], hello).unwrap();
    }
    world.settle();
    assert_eq!(world.sides[1].take().context, 7);
    let a = &mut world.sides[0];
    let mut refused = |from: QueuePair, to: Address| {
        let refused = a.function.post_send(from, Message::inline(b"x").to(to)).unwrap_err();
        let sends = [(to, b"1"), (to, b"2")].map(|(to, bytes)| Message::inline(bytes).to(to));
        assert_eq!(a.function.post_sends(from, &mut { sends }).unwrap_err().posted, 0);
        refused.to_string()
    };
    let pair = a.qp;
    for to in [ordinary, Address::channel(1, 0, 1)] {
        let said = refused(members[0], to);
        assert!(said.contains("only to its own number"), "{said}");
    }
    for number in 0..2 {
        let said = refused(pair, Address::channel(1, 0, number));
        assert!(said.contains("open the channel first"), "{said}");
    }
    world.settle();
    assert!(world.sides[1].done.is_empty());
}
