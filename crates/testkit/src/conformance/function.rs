//! Functions: shares of a device with queues, keys and accounts of their own.

use super::stage::{A, B, Stage, accepted, refuses};
use super::{Fixture, Node};
use bellwire::{
    Device, DeviceOptions, Error, FunctionOptions, Get, Message, Operation, QueuePairOptions,
    RemoteKey, Status,
};

fn open(fixture: &dyn Fixture) -> Device {
    fixture.open(&DeviceOptions::default()).expect("a node opens")
}

/// A node, and beside it `count` functions of another one.
fn beside(fixture: &dyn Fixture, count: u8) -> Stage<'_> {
    let mut stage = Stage::of(fixture, 1);
    let device = open(fixture);
    let function = |number| Node::of(device.clone(), number, &FunctionOptions::default());
    (0..count).for_each(|number| stage.nodes.push(function(number)));
    stage
}

/// There are eight functions by default. Each can be opened by itself, once at a time, with at
/// least four queue pairs.
// shows: C-38
pub fn eight_by_default(fixture: &dyn Fixture) {
    let device = open(fixture);
    for number in [3, 0, 7, 1] {
        let mut node = Node::of(device.clone(), number, &FunctionOptions::default());
        assert_eq!(node.function.address().function, number);
        assert_eq!(node.function.address().node, device.node());
        refuses!(device.open_function(number), Error::BadFunction { .. });
        for _ in 0..3 {
            node.another();
        }
        assert_eq!(node.function.queue_pairs().len(), 4);
    }
    let all: Vec<_> =
        (0..8).map(|number| device.open_function(number).expect("closed before")).collect();
    refuses!(device.open_function(8), Error::BadFunction { function: 8, .. });
    drop(all);
}

/// Function numbers belong to their node, and closing one function leaves the others as they are.
// shows: C-32
pub fn closing_one_leaves_the_others(fixture: &dyn Fixture) {
    let mut stage = beside(fixture, 3);
    let to: Vec<_> = stage.nodes.iter().map(Node::address).collect();
    let full = stage.nodes[A].function.limits().eager_bytes + 1;
    // Function 1 has the maximum in flight, and its queue is full as well.
    let busy = stage.nodes[2].queue_pair;
    while accepted(
        stage.nodes[2].function.post_send(busy, Message::buffer(vec![1; full]).to(to[A])),
    ) {}
    for who in [1, 3] {
        for _ in 0..20 {
            let other = stage.nodes[A].another();
            stage.nodes[A].receive_on(other, 8, 1);
            let address = stage.nodes[A].address_of(other);
            stage.nodes[who].send(Message::inline(b"alongside").to(address));
            stage.next(A);
            stage.success(who);
        }
    }
    stage.nodes.remove(2);
    for who in [1, 2] {
        let theirs = stage.nodes[who].address();
        stage.nodes[who].receive(8, 0);
        stage.nodes[A].send(Message::inline(b"still there").to(theirs));
        while stage.next(A).operation != Operation::Send {}
        stage.next(who);
    }
}

/// A function's key opens nothing through another function, of the same node or of its peer.
/// Handles of one function are invalid in another.
// shows: C-39
pub fn functions_are_isolated(fixture: &dyn Fixture) {
    let mut stage = beside(fixture, 2);
    // Regions of both, with the same index if the library numbers them alike.
    let keys: Vec<_> = [1, 2]
        .map(|who| {
            let region = stage.nodes[who].region(4096);
            region.write(0, &[who as u8; 4096]);
            region.remote_key()
        })
        .into();
    for (own, other) in [(0, 1), (1, 0)] {
        let forged = [
            RemoteKey { function: keys[other].function, ..keys[own] },
            RemoteKey { function: keys[other].function, index: keys[other].index, ..keys[own] },
        ];
        for key in forged {
            stage.nodes[A].get(Get::new(key.slice(0, 64), vec![0xaa; 64]));
            let done = stage.next(A);
            assert_eq!(done.status, Status::WrongKey, "{done:?}");
            assert_eq!(done.buffer.unwrap().into_vec(), Some(vec![0xaa; 64]));
        }
        stage.nodes[A].get(Get::new(keys[own].slice(0, 64), vec![0xaa; 64]));
        let got = stage.success(A).buffer.unwrap().into_vec();
        assert_eq!(got, Some(vec![own as u8 + 1; 64]));
    }
    // Queue pairs with the same number are different queue pairs.
    let [first, second] = [1, 2].map(|who| stage.nodes[who].address());
    assert_eq!(first.queue_pair, second.queue_pair, "numbers start anew in each function");
    for who in [1, 2] {
        stage.nodes[who].receive(8, who as u64);
        let bytes = [who as u8];
        stage.nodes[A].send(Message::inline(&bytes).to([first, second][who - 1]));
        let done = stage.success(who);
        assert_eq!(done.buffer.unwrap().into_bytes(done.length), [who as u8]);
        stage.success(A);
    }
    // Handles are not valid across functions.
    let theirs = stage.nodes[1].queue_pair;
    let function = &mut stage.nodes[2].function;
    refuses!(function.query(theirs), Error::NoSuchQueuePair);
}

/// Each function counts for itself.
pub fn counters_are_separate(fixture: &dyn Fixture) {
    let mut stage = beside(fixture, 2);
    let to = stage.nodes[1].address();
    for _ in 0..10 {
        stage.nodes[1].receive(8, 0);
        stage.nodes[A].send(Message::inline(b"one").to(to));
        stage.success(1);
        stage.success(A);
    }
    let [first, second] = [1, 2].map(|who| stage.nodes[who].counters());
    assert_eq!((first.total.messages_received, first.total.bytes_received), (10, 30));
    assert_eq!((second.total.messages_received, second.total.messages_arrived), (0, 0));
}

/// Options outside their range are refused with the range.
pub fn options_are_checked(fixture: &dyn Fixture) {
    let device = open(fixture);
    let good = FunctionOptions::default();
    let bad = [good.clone().weight(0), good.clone().outstanding(0), good.outstanding(1025)];
    for options in bad {
        refuses!(device.open_function_with(1, &options), Error::OutOfRange { .. });
    }
    let mut function = device.open_function(1).expect("nothing is left over");
    for depth in [0, (1 << 20) + 1] {
        refuses!(function.create_completion_queue(depth), Error::OutOfRange { .. });
    }
    for depth in [0, 65_537] {
        refuses!(function.create_shared_receive_queue(depth), Error::OutOfRange { .. });
        let completions = function.create_completion_queue(4).expect("a queue");
        let options = QueuePairOptions::new(completions);
        for options in [options.clone().send_depth(depth), options.receive_depth(depth)] {
            refuses!(function.create_queue_pair(&options), Error::OutOfRange { .. });
        }
    }
}

/// A function can be closed and opened again any number of times; peers of the old one reach the
/// new one.
pub fn functions_can_be_reopened(fixture: &dyn Fixture) {
    let mut stage = Stage::pair(fixture);
    for round in 0..20 {
        stage.case = format!("round {round}");
        let to = stage.nodes[B].address();
        stage.nodes[B].receive(8, round);
        let bytes = round.to_le_bytes();
        stage.nodes[A].send(Message::inline(&bytes).to(to));
        stage.success(A);
        let done = stage.success(B);
        assert_eq!(done.buffer.unwrap().into_bytes(8), round.to_le_bytes());
        let Node { device, function, .. } = stage.nodes.remove(B);
        drop(function);
        stage.nodes.push(Node::of(device, 0, &FunctionOptions::default()));
        // Until its end is noticed, short messages still go to the old one.
        stage.until("the end of the old function to be noticed", |stage| {
            let lost = stage.nodes[A].counters().function.links_lost;
            (lost == round + 1).then_some(())
        });
    }
}
