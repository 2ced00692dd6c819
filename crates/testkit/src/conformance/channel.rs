//! Channels: one number, one context, one shared receive buffer, one wait for all peers.

use super::stage::{A, B, Stage, refuses};
use super::{Fixture, Node};
use bellwire::{Address, Error, Message, QueuePairOptions, Status};

/// Members of the same number talk; members of different numbers never meet.
// shows: H-22
pub fn the_same_number_talks(fixture: &dyn Fixture) {
    let mut stage = Stage::of(fixture, 3);
    let numbers = [0, 1, 77, u16::MAX];
    let mut members = Vec::new();
    for node in stage.nodes.iter_mut() {
        let options = QueuePairOptions::new(node.completions);
        let open = |&number: &u16| node.function.open_channel(number, &options).expect("free");
        members.push(numbers.iter().map(open).collect::<Vec<_>>());
    }
    for (index, &number) in numbers.iter().enumerate() {
        for from in 0..3 {
            for to in 0..3 {
                stage.case = format!("channel {number}, from {from} to {to}");
                stage.nodes[to].receive_on(members[to][index], 8, 1);
                let address = Address::channel(stage.nodes[to].device.node(), 0, number);
                assert_eq!(stage.nodes[to].address_of(members[to][index]), address);
                let send = Message::inline(b"hello").to(address);
                stage.nodes[from].send_on(members[from][index], send);
                // Messages to itself arrive at the same queue.
                for who in [from, to] {
                    let done = stage.success(who);
                    let other = if done.context == 1 { from } else { to };
                    let peer = Address::channel(stage.nodes[other].device.node(), 0, number);
                    assert_eq!(done.peer, peer, "{}", stage.case);
                    assert_eq!(done.queue_pair, members[who][index], "{}", stage.case);
                }
            }
        }
    }
    // A node that is not in a channel reaches nobody there.
    stage.nodes[2].function.destroy_queue_pair(members[2][1]).expect("it exists");
    let absent = Address::channel(stage.nodes[2].device.node(), 0, numbers[1]);
    stage.nodes[A].send_on(members[A][1], Message::inline(b"anybody?").to(absent));
    assert_eq!(stage.next(A).status, Status::NoSuchQueuePair);
}

/// A second owner of a number on the same node is refused, whichever function asks, until the first
/// gives it up. Other nodes are not affected.
// shows: H-22
pub fn a_second_owner_is_refused(fixture: &dyn Fixture) {
    let mut stage = Stage::pair(fixture);
    let device = stage.nodes[A].device.clone();
    let mut neighbour = Node::of(device, 1, &Default::default());
    let options = [A, B].map(|who| QueuePairOptions::new(stage.nodes[who].completions));
    let first = stage.nodes[A].function.open_channel(5, &options[A]).expect("free");
    let function = &mut stage.nodes[A].function;
    refuses!(function.open_channel(5, &options[A]), Error::ChannelTaken { channel: 5 });
    let others = QueuePairOptions::new(neighbour.completions);
    refuses!(neighbour.function.open_channel(5, &others), Error::ChannelTaken { channel: 5 });
    stage.nodes[B].function.open_channel(5, &options[B]).expect("another node");
    stage.nodes[A].function.destroy_queue_pair(first).expect("it exists");
    neighbour.function.open_channel(5, &others).expect("free again");
    drop(neighbour);
    stage.nodes[A].function.open_channel(5, &options[A]).expect("free when its owner is gone");
}

/// One wait serves all peers: a receive takes the first message of any sender, and its completion
/// names the sender.
// shows: H-23
pub fn one_wait_for_all_peers(fixture: &dyn Fixture) {
    const PEERS: usize = 8;
    let mut stage = Stage::of(fixture, PEERS + 1);
    let mut members = Vec::new();
    for node in stage.nodes.iter_mut() {
        let options = QueuePairOptions::new(node.completions);
        members.push(node.function.open_channel(9, &options).expect("free"));
    }
    let to = Address::channel(stage.nodes[PEERS].device.node(), 0, 9);
    for turn in 0..3 * PEERS {
        let who = turn * 5 % PEERS;
        stage.nodes[PEERS].receive_on(members[PEERS], 8, turn as u64);
        let send = Message::inline(&[1; 8]).to(to).immediate(who as u64).unsignaled();
        stage.nodes[who].send_on(members[who], send);
        let done = stage.success(PEERS);
        assert_eq!((done.context, done.immediate()), (turn as u64, Some(who as u64)));
        assert_eq!(done.peer, Address::channel(stage.nodes[who].device.node(), 0, 9));
    }
}

/// A barrier made of channel messages: no node leaves before all have entered. An exchange of all
/// with all finishes.
// shows: C-54, H-30
pub fn barriers_and_exchanges(fixture: &dyn Fixture) {
    const NODES: usize = 16;
    let mut stage = Stage::of(fixture, NODES);
    let mut members = Vec::new();
    for node in stage.nodes.iter_mut() {
        let options = QueuePairOptions::new(node.completions);
        members.push(node.function.open_channel(3, &options).expect("free"));
    }
    let numbers: Vec<_> = stage.nodes.iter().map(|node| node.device.node()).collect();
    // Node `late` enters last: until then no other has heard from all.
    for late in [0, 7, NODES - 1] {
        let mut heard = [0; NODES];
        for (node, &member) in stage.nodes.iter_mut().zip(&members) {
            for context in 0..NODES as u64 - 1 {
                node.receive_on(member, 8, context);
            }
        }
        let enter = |stage: &mut Stage<'_>, who: usize| {
            for &node in numbers.iter().filter(|&&node| node != numbers[who]) {
                let send =
                    Message::inline(b"entered").to(Address::channel(node, 0, 3)).unsignaled();
                stage.nodes[who].send_on(members[who], send);
            }
        };
        (0..NODES).filter(|&who| who != late).for_each(|who| enter(&mut stage, who));
        let mut take = |stage: &mut Stage<'_>, who: usize, expected: usize| {
            while heard[who] < expected {
                stage.success(who);
                heard[who] += 1;
            }
        };
        for who in 0..NODES {
            take(&mut stage, who, if who == late { NODES - 1 } else { NODES - 2 });
        }
        (0..NODES).filter(|&who| who != late).for_each(|who| stage.fence(late, who));
        for who in (0..NODES).filter(|&who| who != late) {
            assert!(stage.nodes[who].poll().is_none(), "node {who} left before {late} entered");
        }
        enter(&mut stage, late);
        (0..NODES).for_each(|who| take(&mut stage, who, NODES - 1));
    }
}

/// Messages that do not belong to a channel, or to a connection, are dropped and counted.
// shows: H-22
pub fn strangers_are_not_heard(fixture: &dyn Fixture) {
    let mut stage = Stage::of(fixture, 3);
    let [first, second] = [A, B].map(|who| stage.nodes[who].queue_pair);
    stage.connect((A, first), (B, second));
    let connected = stage.nodes[B].address();
    stage.nodes[B].receive(8, 1);
    stage.nodes[2].send(Message::inline(b"stranger").to(connected));
    stage.until("the stranger to be noticed", |stage| {
        let state = stage.nodes[B].function.query(second).unwrap();
        (state.counters.messages_refused == 1).then_some(())
    });
    assert!(stage.nodes[B].poll().is_none(), "the receive is still there");
    stage.nodes[A].send(Message::inline(b"friend"));
    let done = stage.success(B);
    assert_eq!(done.buffer.unwrap().into_bytes(done.length), b"friend");
}
