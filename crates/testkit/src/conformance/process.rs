//! Several processes of one host. Only for devices that other processes can open by name.

use super::bytes::{Ground, assert_same, kinds, pattern, sizes};
use super::child::{DEVICE, PEER, Process, ROLE, is_stopped, told};
use super::patience::limit;
use super::stage::{accepted, assert_all_end, refuses};
use super::{Fixture, Node, Patience};
use bellwire::{
    Address, Atomic, Completion, Device, DeviceOptions, Error, Get, Message, Operation, Put,
    RemoteKey, Rights, Status, Wait,
};
use std::time::{Duration, Instant};

/// Starts a child in `role` and tells it the parent's address.
fn start(fixture: &dyn Fixture, role: &str, peer: Address) -> Process {
    let name = fixture.name().expect("a device that other processes can open");
    let peer = peer.to_string();
    Process::start("process", &[(ROLE, role), (DEVICE, name), (PEER, &peer)])
}

/// Plays the role that the environment names.
pub fn play() {
    let device = Device::open(&told(DEVICE)).expect("the parent's device");
    let node = Node::of(device, 0, &Default::default());
    let parent: Address = told(PEER).parse().expect("an address");
    match told(ROLE).as_str() {
        "echo" => echo(node, parent),
        "count" => count(node, parent),
        "sleep" => sleep(node, parent),
        "victim" => victim(node, parent),
        "forker" => forker(node, parent),
        "caller" => caller(node, parent),
        other => panic!("no role {other}"),
    }
}

#[track_caller]
fn success(node: &mut Node, operation: Operation) -> Completion {
    let done = node.wait_success(Wait::Adaptive, format_args!("{operation:?}"));
    assert_eq!(done.operation, operation, "{done:?}");
    done
}

/// Sends a message, and waits until it has left.
#[track_caller]
fn say(node: &mut Node, message: Message<'_>) -> Completion {
    node.send(message);
    success(node, Operation::Send)
}

/// Says hello with the keys of its memory, then returns every message, until an empty one with
/// immediate 0 comes.
fn echo(mut node: Node, parent: Address) {
    let ground = Ground::new(&mut node, Rights::all());
    let mut keys = ground.allocated.remote_key().to_bytes().to_vec();
    keys.extend(ground.registered.remote_key().to_bytes());
    say(&mut node, Message::inline(&keys).to(parent));
    loop {
        node.receive(super::bytes::LONGEST, 0);
        let mut message = node.wait(Wait::Adaptive, "an answer");
        while message.operation == Operation::RemotePut {
            message = node.wait(Wait::Adaptive, "an answer");
        }
        assert_eq!(message.status, Status::Success, "{message:?}");
        let bytes = message.buffer.take().expect("its buffer").into_bytes(message.length);
        if message.immediate() == Some(0) {
            return;
        }
        say(&mut node, Message::buffer(bytes).to(message.peer));
    }
}

/// The parent's end of [`echo`]: the child, its address, and its keys.
fn meet(fixture: &dyn Fixture, node: &mut Node) -> (Process, Address, [RemoteKey; 2]) {
    let child = start(fixture, "echo", node.address());
    node.receive(48, 0);
    let hello = success(node, Operation::Receive);
    let bytes = hello.buffer.expect("its buffer").into_bytes(48);
    let keys = [0, 24].map(|at| RemoteKey::from_bytes(&bytes[at..at + 24]).expect("a key"));
    (child, hello.peer, keys)
}

fn dismiss(node: &mut Node, peer: Address, child: Process) {
    say(node, Message::inline(b"").to(peer).immediate(0));
    child.succeed();
}

/// Two processes exchange messages of every size class, from and to every kind of memory.
// shows: M-02
pub fn messages(fixture: &dyn Fixture) {
    let mut node = Node::open(fixture);
    let (child, peer, _) = meet(fixture, &mut node);
    let here = Ground::new(&mut node, Rights::REMOTE_READ);
    let there = Ground::new(&mut node, Rights::empty());
    for size in sizes(&node.function.limits()) {
        let bytes = pattern(size as u64, size);
        for &kind in kinds(size) {
            let story = format!("{size} bytes, {kind:?}");
            node.receive_into(there.destination(kind, size), 0);
            node.send(Message::buffer(here.source(kind, &bytes)).to(peer).immediate(1));
            let mut received = None;
            for _ in 0..2 {
                let done = node.wait(Wait::Adaptive, "an answer");
                assert_eq!(done.status, Status::Success, "{story}: {done:?}");
                if done.operation == Operation::Receive {
                    received = done.buffer;
                }
            }
            there.assert_received(kind, &received.expect("the echo"), &bytes, &story);
        }
    }
    dismiss(&mut node, peer, child);
    fixture.assert_way(&node);
}

/// Puts, gets and atomics reach the memory of another process, of both kinds, at every size class
/// and alignment, while its program is idle.
// shows: C-22
pub fn memory(fixture: &dyn Fixture) {
    let mut node = Node::open(fixture);
    let (child, peer, keys) = meet(fixture, &mut node);
    let pair = node.queue_pair;
    let here = Ground::new(&mut node, Rights::empty());
    for size in sizes(&node.function.limits()) {
        let bytes = pattern(size as u64, size);
        for (number, key) in keys.into_iter().enumerate() {
            for (&from, at) in kinds(size).iter().zip([0, 1, 8, 63, 64, 100, 127, 7, 33]) {
                let story = format!("{size} bytes from {from:?} to {at} of region {number}");
                // A wider window, so that the bytes beside it are checked too.
                let window = key.slice(0, (size + 130) as u64);
                node.put(Put::new(vec![0x3c; size + 130], window));
                success(&mut node, Operation::Put);
                node.put(Put::new(vec![here.source(from, &bytes)], key.slice(at, size as u64)));
                success(&mut node, Operation::Put);
                node.get(Get::new(window, vec![0; size + 130]));
                let found = success(&mut node, Operation::Get).buffer.unwrap().into_vec().unwrap();
                let mut expected = vec![0x3c; size + 130];
                expected[at as usize..at as usize + size].copy_from_slice(&bytes);
                assert_same(&found, &expected, &story);
                let into = here.destination(from, size);
                node.get(Get::new(key.slice(at, size as u64), vec![into]));
                let got = success(&mut node, Operation::Get).buffer.unwrap();
                here.assert_received(from, &got, &bytes, &story);
            }
        }
    }
    for key in keys {
        let put = Put::new(5u64.to_le_bytes().to_vec(), key.slice(64, 8));
        node.put(put.event(peer.queue_pair, None));
        success(&mut node, Operation::Put);
        node.atomic(Atomic::fetch_add(key.at(64), 3));
        assert_eq!(success(&mut node, Operation::FetchAdd).value(), 5);
        node.atomic(Atomic::compare_swap(key.at(64), 8, 1));
        assert_eq!(success(&mut node, Operation::CompareSwap).value(), 8);
        for (forged, status) in [
            (RemoteKey { key: key.key ^ 2, ..key }, Status::WrongKey),
            (RemoteKey { length: u64::MAX, ..key }, Status::OutOfBounds),
        ] {
            let get = Get::new(forged.slice(1 << 40, 8), vec![1; 8]);
            if node.function.post_get(pair, get).is_ok() {
                assert_eq!(node.wait(Wait::Adaptive, "an answer").status, status);
            }
        }
    }
    dismiss(&mut node, peer, child);
    fixture.assert_way(&node);
}

/// Sends 3,000 numbered messages to the parent, and exits when the parent says so.
fn count(mut node: Node, parent: Address) {
    let pair = node.queue_pair;
    let mut number = 0u64;
    let mut patience = Patience::new();
    while number < 3_000 {
        let bytes = pattern(number, number as usize % 300);
        let send = Message::inline(&bytes).to(parent).immediate(number).unsignaled();
        if accepted(node.function.post_send(pair, send)) {
            number += 1;
            patience = Patience::new();
        } else {
            node.function.progress().expect("progress");
            patience.spend(|| format!("full at {number}: {:?}", node.counters()));
        }
    }
    node.receive(8, 0);
    success(&mut node, Operation::Receive);
}

/// Several processes with a queue pair each send to one process at the same time. Each message
/// arrives exactly once, in its sender's order, at its queue pair.
// shows: C-11, C-31
pub fn many_processes_to_one(fixture: &dyn Fixture) {
    const CHILDREN: usize = 4;
    let mut node = Node::open(fixture);
    let pairs: Vec<_> = (0..2).map(|_| node.another()).collect();
    for &pair in &pairs {
        for _ in 0..128 {
            node.receive_on(pair, 300, 0);
        }
    }
    let children: Vec<_> = (0..CHILDREN)
        .map(|child| start(fixture, "count", node.address_of(pairs[child % 2])))
        .collect();
    let mut next = std::collections::HashMap::new();
    for _ in 0..CHILDREN * 3_000 {
        let done = success(&mut node, Operation::Receive);
        let (pair, expected) = next.entry(done.peer).or_insert((done.queue_pair, 0));
        assert_eq!((done.queue_pair, done.immediate()), (*pair, Some(*expected)), "{done:?}");
        let bytes = done.buffer.unwrap().into_bytes(done.length);
        assert_same(&bytes, &pattern(*expected, *expected as usize % 300), "the data");
        *expected += 1;
        node.receive_on(done.queue_pair, 300, 0);
    }
    assert_eq!(next.len(), CHILDREN);
    for peer in next.into_keys() {
        say(&mut node, Message::inline(b"bye").to(peer));
    }
    children.into_iter().for_each(Process::succeed);
    fixture.assert_way(&node);
}

/// Answers each message, asleep until it comes.
fn sleep(mut node: Node, parent: Address) {
    let pair = node.queue_pair;
    node.receive(8, 0);
    node.send(Message::inline(b"ready").to(parent).unsignaled());
    node.flush(pair);
    for _ in 0..2_000 {
        node.wait_success(Wait::Block, "a message");
        node.receive(8, 0);
        node.send(Message::inline(b"pong").to(parent).unsignaled());
        node.flush(pair);
    }
}

/// Two processes that sleep wake each other thousands of times; no wake-up is lost.
pub fn sleepers_wake_each_other(fixture: &dyn Fixture) {
    let mut node = Node::open(fixture);
    let child = start(fixture, "sleep", node.address());
    node.receive(8, 0);
    let peer = success(&mut node, Operation::Receive).peer;
    let mut random = super::bytes::Random(77);
    for round in 0..2_000 {
        node.receive(8, round);
        node.send(Message::inline(b"ping").to(peer).unsignaled());
        let done = node.wait_success(Wait::Block, format_args!("round {round}"));
        assert_eq!(done.context, round, "{done:?}");
        (0..random.below(3_000)).for_each(|_| std::hint::spin_loop());
    }
    child.succeed();
    fixture.assert_way(&node);
}

/// Connects to the parent's listener, takes a message, and disconnects.
fn caller(mut node: Node, parent: Address) {
    let pair = node.queue_pair;
    let answer = node.function.connect(pair, parent, b"who is there", limit()).expect("accepted");
    assert_eq!(answer, b"me");
    node.receive(8, 0);
    assert_eq!(success(&mut node, Operation::Receive).length, 7);
    node.function.disconnect(pair).expect("connected");
    // The parent leaves first. So it hears of the disconnection, and not of our end.
    let listener = node.function.listen(3).expect("free");
    drop(
        node.function.wait_request(listener, Wait::Block, limit()).expect("the parent's good-bye"),
    );
}

/// Two processes connect, talk and disconnect; both learn of the end.
// shows: M-03
pub fn connections(fixture: &dyn Fixture) {
    let mut node = Node::open(fixture);
    let pair = node.queue_pair;
    let listener = node.function.listen(9).expect("free");
    let child = start(fixture, "caller", Address { queue_pair: 9, ..node.address() });
    let request = node.function.wait_request(listener, Wait::Block, limit()).expect("a request");
    assert_eq!(request.private_data, b"who is there");
    let peer = request.peer;
    node.function.accept(request, pair, b"me").expect("accepted");
    node.receive(8, 5);
    assert_eq!(say(&mut node, Message::inline(b"welcome")).peer, peer);
    let gone = node.wait(Wait::Adaptive, "an answer");
    assert_eq!((gone.status, gone.context), (Status::PeerGone, 5), "{gone:?}");
    let other = node.another();
    let farewell = Address { queue_pair: 3, ..peer };
    node.function.start_connect(other, farewell, b"", limit()).expect("asked");
    let mut patience = Patience::new();
    let mut child = child;
    while child.ended().is_none() {
        node.function.progress().expect("progress");
        patience.spend(|| "the child does not leave".to_owned());
    }
    child.succeed();
    fixture.assert_way(&node);
}

/// Has regions, and is there until it is killed.
fn victim(mut node: Node, parent: Address) {
    let registered = node.function.register(vec![0; 4096], Rights::all()).expect("registered");
    let allocated = node.function.allocate_region(4096, Rights::all()).expect("allocated");
    let keys = [registered, allocated].map(|region| region.remote_key().to_bytes());
    say(&mut node, Message::inline(keys.as_flattened()).to(parent));
    // Some devices need the owner for puts.
    let since = Instant::now();
    while since.elapsed() < limit() {
        node.function.progress().expect("progress");
    }
}

/// When a peer is killed, or stopped and then killed, every descriptor that was posted for it
/// completes with an error. Its buffer comes back, and the node's number is free again.
pub fn a_killed_peer(fixture: &dyn Fixture) {
    let mut node = Node::open(fixture);
    for how in [Wait::Spin, Wait::Block] {
        let mut child = start(fixture, "victim", node.address());
        node.receive(2 * RemoteKey::BYTES, 0);
        let hello = success(&mut node, Operation::Receive);
        let keys = hello.buffer.unwrap().into_bytes(2 * RemoteKey::BYTES);
        let keys = [0, 1].map(|which| {
            let bytes = &keys[which * RemoteKey::BYTES..][..RemoteKey::BYTES];
            RemoteKey::from_bytes(bytes).expect("a key")
        });
        // Later puts may go ways that earlier ones have found.
        for key in keys.into_iter().cycle().take(6) {
            node.put(Put::new(vec![1; 4096], key));
            success(&mut node, Operation::Put);
        }
        let long = node.function.limits().eager_bytes + 1;
        for context in 0..10 {
            node.send(Message::buffer(vec![1; long]).to(hello.peer).context(context));
        }
        child.signal(libc::SIGKILL);
        assert_all_end((0..10).map(|_| node.wait(how, "all complete")), Status::PeerGone);
        // The one to allocated memory first, while nothing waits in front of it.
        let [registered, allocated] = keys;
        for key in [allocated, registered] {
            node.put(Put::new(vec![1; 4096], key));
        }
        for _ in keys {
            let done = node.wait(Wait::Adaptive, "an answer");
            assert!([Status::PeerGone, Status::Unreachable].contains(&done.status), "{done:?}");
        }
        child.end();
        let options = DeviceOptions::default().node(hello.peer.node);
        fixture.open(&options).expect("the number is free again");
    }
    fixture.assert_way(&node);
}

/// A node's number belongs to one process at a time.
pub fn node_numbers_are_owned(fixture: &dyn Fixture) {
    let mut node = Node::open(fixture);
    let (child, peer, _) = meet(fixture, &mut node);
    let open = |node| fixture.open(&DeviceOptions::default().node(node));
    for taken in [node.device.node(), peer.node] {
        refuses!(open(taken), Error::DeviceUnavailable { .. });
    }
    assert_eq!(open(1_234).expect("free").node(), 1_234);
    dismiss(&mut node, peer, child);
}

/// Forks. The child can use nothing of its parent, but can open the device anew; the parent is not
/// affected.
fn forker(mut node: Node, parent: Address) {
    let pair = node.queue_pair;
    say(&mut node, Message::inline(b"before").to(parent));
    // SAFETY: the process has one thread, except for the test harness, which waits for this thread.
    match unsafe { libc::fork() } {
        0 => {
            let refused = node.function.post_send(pair, Message::inline(b"never").to(parent));
            let forked = matches!(refused, Err(refused) if matches!(refused.error, Error::Forked));
            drop(node);
            let device = Device::open(&told(DEVICE)).expect("anew");
            let mut node = Node::of(device, 0, &Default::default());
            let word: &[u8] = if forked { b"child" } else { b"wrong" };
            say(&mut node, Message::inline(word).to(parent));
            node.receive(8, 0);
            success(&mut node, Operation::Receive);
            // SAFETY: ends the child at once, so that the test harness in it does not go on.
            unsafe { libc::_exit(0) };
        }
        child => {
            assert!(child > 0);
            node.receive(8, 0);
            success(&mut node, Operation::Receive);
            let mut status = 0;
            // SAFETY: waits for the child just made.
            unsafe { libc::waitpid(child, &mut status, 0) };
            assert_eq!(status, 0, "the forked child");
            say(&mut node, Message::inline(b"after").to(parent));
        }
    }
}

/// A forked child is a process of its own: it cannot use its parent's function, but can open the
/// device anew. Both then talk to a third process.
pub fn forked_children_open_their_own(fixture: &dyn Fixture) {
    let mut node = Node::open(fixture);
    let child = start(fixture, "forker", node.address());
    let heard = |node: &mut Node| {
        node.receive(8, 0);
        let done = success(node, Operation::Receive);
        (done.peer, done.buffer.unwrap().into_bytes(done.length))
    };
    let (first, word) = heard(&mut node);
    assert_eq!(word, b"before");
    let (second, word) = heard(&mut node);
    assert_eq!(word, b"child");
    assert_ne!(first, second, "the child is a node of its own");
    for peer in [second, first] {
        say(&mut node, Message::inline(b"go on").to(peer));
    }
    assert_eq!(heard(&mut node), (first, b"after".to_vec()));
    child.succeed();
    fixture.assert_way(&node);
}

/// Messages to a stopped peer complete only when they are in its memory. On a device that delivers
/// later none completes. When the peer is killed, all complete with that error, the silent ones
/// too, and their buffers come back. On a device that writes to the peer's memory all were
/// delivered.
pub fn a_silent_peer(fixture: &dyn Fixture) {
    const POSTED: u64 = 24;
    let mut node = Node::open(fixture);
    let pair = node.queue_pair;
    for how in [Wait::Spin, Wait::Block] {
        let (mut child, peer, _) = meet(fixture, &mut node);
        // Both know each other, and nothing is in flight.
        node.receive(8, 0);
        node.send(Message::inline(b"here").to(peer));
        let mut back =
            [node.wait(Wait::Adaptive, "an answer"), node.wait(Wait::Adaptive, "an answer")];
        back.sort_by_key(|done| done.operation as u8);
        assert!(back.iter().all(|done| done.status.is_success()), "{back:?}");
        child.signal(libc::SIGSTOP);
        let mut patience = Patience::new();
        while !is_stopped(child.id()) {
            patience.spend(|| "the child does not stop".into());
        }
        for context in 0..POSTED {
            let length = [0, 8, 1196, 4000][context as usize % 4];
            let send = Message::buffer(vec![3; length]).to(peer).context(context);
            node.send(if context % 3 == 0 { send.unsignaled() } else { send });
        }
        let (since, mut early) = (Instant::now(), Vec::new());
        while since.elapsed() < Duration::from_millis(100) {
            early.extend(node.poll());
        }
        let posted = node.function.query(pair).expect("it exists").posted_sends;
        if !fixture.delivers_later() {
            assert!(early.iter().all(|done| done.status.is_success()), "{early:?}");
            assert_eq!((early.len() as u64, posted), (POSTED - POSTED / 3, 0));
            child.signal(libc::SIGKILL);
            child.end();
            continue;
        }
        assert!(early.is_empty(), "nobody took it: {early:?}");
        assert_eq!(posted as u64, POSTED, "they are on their way");
        child.signal(libc::SIGKILL);
        for context in 0..POSTED {
            let done = node.wait(how, "all complete");
            let told = (done.status, done.operation, done.context, done.length);
            assert_eq!(told, (Status::PeerGone, Operation::Send, context, 0), "in order: {done:?}");
            let length = [0, 8, 1196, 4000][context as usize % 4];
            let buffer = done.buffer.and_then(bellwire::Buffer::into_vec);
            assert_eq!(buffer, Some(vec![3; length]));
        }
        assert_eq!(node.function.query(pair).expect("it exists").posted_sends, 0);
        child.end();
    }
    fixture.assert_way(&node);
}
