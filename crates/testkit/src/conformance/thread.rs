//! Several threads: functions of one device, and nodes of one job, at the same time.

use super::bytes::{assert_same, pattern};
use super::patience::limit;
use super::{Fixture, Node, Patience};
use bellwire::{
    Address, Atomic, Device, Function, Get, MemoryRegion, Message, Operation, Put, RemoteKey,
    Status, Wait,
};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A device is shared freely between threads; a function moves between them.
pub fn devices_are_shared_and_functions_move(fixture: &dyn Fixture) {
    fn shared<T: std::marker::Send + Sync>() {}
    fn moved<T: std::marker::Send>() {}
    shared::<Device>();
    moved::<Function>();
    moved::<bellwire::Completion>();
    shared::<MemoryRegion>();
    let node = Node::open(fixture);
    let node = std::thread::spawn(move || {
        let mut node = node;
        let to = node.address();
        node.receive(8, 1);
        node.send(Message::inline(b"to myself").to(to));
        node
    });
    let mut node = node.join().expect("the other thread");
    for _ in 0..2 {
        let done = node.wait(Wait::Adaptive, "moved");
        assert!([Status::Success, Status::Truncated].contains(&done.status), "{done:?}");
    }
    fixture.assert_way(&node);
}

/// Two threads drive two functions of each of two devices at full speed, with all operations:
/// nothing is lost or mixed up.
pub fn two_functions_in_two_threads(fixture: &dyn Fixture) {
    let devices = [(); 2].map(|()| fixture.open(&Default::default()).expect("a node opens"));
    std::thread::scope(|scope| {
        for number in 0..2 {
            let devices = devices.clone();
            scope.spawn(move || {
                let [first, second] =
                    devices.map(|device| Node::of(device, number, &Default::default()));
                exchange(fixture, first, second, u64::from(number));
            });
        }
    });
}

/// Two nodes in two threads use all operations.
pub fn two_nodes_in_two_threads(fixture: &dyn Fixture) {
    exchange(fixture, Node::open(fixture), Node::open(fixture), 9);
}

/// Messages of all lengths both ways, puts with events, gets and atomics, between two nodes in two
/// threads.
fn exchange(fixture: &dyn Fixture, first: Node, second: Node, seed: u64) {
    let mut nodes = [first, second];
    let addresses = [0, 1].map(|who| nodes[who].address());
    let regions = [0, 1].map(|who: usize| nodes[who].regions(100_000));
    let keys = [0, 1].map(|who| [0, 1].map(|kind| regions[who][kind].remote_key()));
    let finished = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for (who, node) in nodes.iter_mut().enumerate() {
            let (peer, theirs, finished) = (addresses[1 - who], keys[1 - who], &finished);
            scope.spawn(move || {
                side(node, peer, theirs, seed * 2 + who as u64);
                finished.fetch_add(1, Ordering::SeqCst);
                // The peer's operations may still need this side.
                let mut patience = Patience::new();
                while finished.load(Ordering::SeqCst) < 2 {
                    node.function.progress().expect("progress");
                    patience.spend(|| "the other side does not finish".to_owned());
                }
            });
        }
    });
    for node in &nodes {
        let counters = node.counters();
        assert_eq!(counters.total.sends_failed, 0, "{counters:?}");
        fixture.assert_way(node);
    }
}

const ROUNDS: u64 = 150;

fn side(node: &mut Node, peer: Address, theirs: [RemoteKey; 2], seed: u64) {
    let sizes = [8, 0, 5_000, 64, 60_000, 8_096];
    let size = |round: u64| sizes[round as usize % sizes.len()];
    let (mut heard, mut told, mut added) = (0, 0, 0);
    for round in 0..ROUNDS {
        node.receive(100_000, round);
        node.send(Message::buffer(pattern(round ^ (seed << 32), size(round))).to(peer).context(0));
        // Each thread has its own half of the peer's region, so that no other thread writes there.
        let key = theirs[round as usize % 2];
        let at = 64 + (seed & 1) * 40_000;
        let put = Put::new(pattern(round, 300), key.slice(at, 300)).context(1);
        node.put(put.event(peer.queue_pair, Some(round)));
        node.atomic(Atomic::fetch_add(key.at(0), 1).context(3));
        let (mut open, mut waited) = (3, false);
        let mut get = Some(Get::new(key.slice(at, 300), vec![0; 300]).context(2));
        // A round is over when its own operations are, and the peer's message of the round has
        // come.
        while open > 0 || heard <= round || told <= round || get.is_some() {
            let done = node.wait_success(Wait::Adaptive, format_args!("round {round}"));
            match done.operation {
                Operation::Receive => {
                    assert_eq!(done.length, size(heard));
                    let expected = pattern(heard ^ ((seed ^ 1) << 32), size(heard));
                    let bytes = done.buffer.unwrap().into_bytes(done.length);
                    assert_same(&bytes, &expected, "a message");
                    heard += 1;
                }
                Operation::RemotePut => {
                    assert_eq!(done.immediate(), Some(told));
                    told += 1;
                }
                Operation::Get => {
                    let bytes = done.buffer.unwrap().into_bytes(300);
                    assert_same(&bytes, &pattern(round, 300), "what was put just before");
                    open -= 1;
                }
                Operation::FetchAdd => {
                    assert_eq!(done.value(), added / 2, "nobody else adds to this word");
                    added += 1;
                    open -= 1;
                }
                Operation::Put => waited = true,
                _ => open -= 1,
            }
            if waited && let Some(get) = get.take() {
                node.get(get);
            }
        }
    }
}

/// Many threads, each with its own node, send to one node: every message arrives exactly once and
/// in its sender's order.
// shows: C-31
pub fn many_threads_to_one(fixture: &dyn Fixture) {
    const THREADS: usize = 6;
    const EACH: u64 = 2_000;
    let mut receiver = Node::open(fixture);
    let to = receiver.address();
    let arrived = &AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            let mut node = Node::open(fixture);
            scope.spawn(move || {
                for number in 0..EACH {
                    let bytes = number.to_le_bytes();
                    // One completion in a hundred shows that there is room.
                    let mut send = Message::inline(&bytes).to(to).immediate(number);
                    if number % 100 != 99 {
                        send = send.unsignaled();
                    }
                    node.send(send);
                    if number % 100 == 99 {
                        node.wait_success(Wait::Adaptive, "sent");
                    }
                }
                node.receive(8, 0);
                // It comes when the slowest has sent all, so there is time as long as that goes on.
                loop {
                    let before = arrived.load(Ordering::Relaxed);
                    match node.function.wait(node.completions, Wait::Block, limit()) {
                        Ok(_) => break,
                        Err(error) => {
                            let after = arrived.load(Ordering::Relaxed);
                            assert_ne!(before, after, "no good-bye: {error}");
                        }
                    }
                }
                fixture.assert_way(&node);
            });
        }
        let mut next = std::collections::HashMap::new();
        for context in 0..200 {
            receiver.receive(8, context);
        }
        for number in 0..THREADS as u64 * EACH {
            let done = receiver.wait(Wait::Adaptive, format_args!("after {number}, {next:?}"));
            let expected = next.entry(done.peer).or_insert(0);
            assert_eq!(done.immediate(), Some(*expected), "{done:?}");
            let bytes = done.buffer.unwrap().into_bytes(8);
            assert_eq!(bytes, expected.to_le_bytes());
            *expected += 1;
            arrived.store(number + 1, Ordering::Relaxed);
            receiver.receive(8, 0);
        }
        assert_eq!(next.len(), THREADS);
        for peer in next.into_keys() {
            receiver.send(Message::inline(b"good-bye").to(peer).unsignaled());
        }
        receiver.flush(receiver.queue_pair);
    });
    fixture.assert_way(&receiver);
}
