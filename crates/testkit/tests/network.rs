//! Real faults on real wires: interfaces go down, peers and namespaces vanish, and traffic is
//! heavy. Frames are lost, duplicated, damaged, delayed, or sent by an attacker. Each test runs on
//! all carriers.
//!
//! The tests make their networks themselves, out of namespaces and veth pairs without a name
//! outside of this process (see `bellwire_testkit::network`). That needs root and iproute2: without
//! them each test fails and says that it did not run.

use bellwire::{Address, Device, Get, Message, Operation, Put, RemoteKey, Rights, Status};
use bellwire_testkit::conformance::bytes::pattern;
use bellwire_testkit::conformance::child::Process;
use bellwire_testkit::conformance::stage::accepted;
use bellwire_testkit::conformance::{Node, Patience, Stage, batch};
use bellwire_testkit::network::command::{Running, bellwire};
use bellwire_testkit::network::liar::Liar;
use bellwire_testkit::network::relay::Faults;
use bellwire_testkit::network::traffic::Traffic;
use bellwire_testkit::network::{Carrier, Network, WIRE, ip_of};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// One test for each carrier.
macro_rules! with_each_carrier {
    ($($name:ident)*) => {$(
        mod $name {
            use super::Carrier;
            #[test]
            fn packet() { super::run::$name(Carrier::Packet); }
            #[test]
            fn xdp() { super::run::$name(Carrier::Xdp); }
            #[test]
            fn udp() { super::run::$name(Carrier::Udp); }
        }
    )*};
}

with_each_carrier! {
    an_interface_is_down_for_a_while
    an_interface_is_down_for_too_long
    peers_are_killed_and_come_again
    a_wire_is_removed
    a_namespace_is_removed
    a_bad_network
    hostile_frames
    a_list_leaves_at_its_end
}

/// A program in the link layer, or a packet socket, takes our frames and leaves TCP alone. So does
/// UDP, behind the kernel's own stack.
mod tcp_goes_on_beside {
    use super::{Carrier, run::tcp_goes_on_beside};

    // shows: H-02, H-03
    #[test]
    fn packet() {
        tcp_goes_on_beside(Carrier::Packet);
    }

    // shows: H-02, H-03
    #[test]
    fn xdp() {
        tcp_goes_on_beside(Carrier::Xdp);
    }

    #[test]
    fn udp() {
        tcp_goes_on_beside(Carrier::Udp);
    }
}

/// Drives both nodes for a while, whatever happens.
fn keep_going(stage: &mut Stage<'_>, traffic: &mut Traffic, time: Duration) {
    let since = Instant::now();
    while since.elapsed() < time {
        traffic.step(stage);
    }
}

/// Waits until a node has no sends, puts, gets or atomics left. Returns their contexts and
/// statuses.
#[track_caller]
fn all_complete(node: &mut Node, others: &mut [Node]) -> Vec<(u64, Status)> {
    let (pair, mut ended) = (node.queue_pair, Vec::new());
    let mut patience = Patience::new();
    loop {
        while let Some(done) = node.poll() {
            if done.operation != Operation::Receive {
                ended.push((done.context, done.status));
            }
        }
        if node.function.query(pair).expect("it exists").posted_sends == 0 {
            return ended;
        }
        for other in others.iter_mut() {
            other.function.progress().expect("progress");
        }
        patience.spend(|| format!("never completed: {:?}", node.function.query(pair)));
    }
}

/// Descriptors that [`post_everything`] posts.
const POSTED: usize = 12;

/// Posts short messages, messages that the peer must fetch, puts and gets: none can succeed without
/// the peer.
#[track_caller]
fn post_everything(node: &mut Node, to: Address, key: RemoteKey) {
    let pair = node.queue_pair;
    for number in 0..POSTED as u64 {
        match number % 3 {
            0 => {
                let length = [100_000, 8][number as usize / 3 % 2];
                let send = Message::buffer(pattern(number, length)).to(to).context(number);
                node.function.post_send(pair, send.immediate(1)).expect("room");
            }
            1 => {
                let put = Put::new(vec![9; 4096], key.slice(0, 4096)).context(number);
                node.function.post_put(pair, put).expect("room");
            }
            _ => {
                let get = Get::new(key.slice(0, 4096), vec![0; 4096]).context(number);
                node.function.post_get(pair, get).expect("room");
            }
        }
    }
}

/// Each descriptor of [`post_everything`] completed once, with an error.
#[track_caller]
fn assert_all_failed(mut ended: Vec<(u64, Status)>) {
    ended.sort_unstable_by_key(|(context, _)| *context);
    let contexts: Vec<u64> = ended.iter().map(|(context, _)| *context).collect();
    assert_eq!(contexts, (0..POSTED as u64).collect::<Vec<_>>());
    let gone = |status| matches!(status, Status::PeerGone | Status::Unreachable);
    assert!(ended.iter().all(|&(_, status)| gone(status)), "{ended:?}");
}

/// The first message of a new echo. Returns its address, and the keys of its memory.
#[track_caller]
fn greeting(node: &mut Node) -> (Address, [RemoteKey; 2]) {
    node.receive(48, 0);
    let mut patience = Patience::new();
    let hello = loop {
        match node.poll() {
            Some(done) if done.operation == Operation::Receive => break done,
            Some(done) => assert!(done.status.is_success(), "{done:?}"),
            None => patience.spend(|| "the other process says nothing".into()),
        }
    };
    assert_eq!(hello.status, Status::Success);
    let bytes = hello.buffer.expect("its buffer").into_bytes(48);
    let keys = [0, 24].map(|at| RemoteKey::from_bytes(&bytes[at..at + 24]).expect("a key"));
    (hello.peer, keys)
}

/// Sends a message to an echo, and gets it back.
#[track_caller]
fn round_trip(node: &mut Node, peer: Address, seed: u64, length: usize) {
    let bytes = pattern(seed, length);
    node.receive(length, 0);
    let send = Message::buffer(bytes.clone()).to(peer).immediate(1);
    node.function.post_send(node.queue_pair, send).expect("room");
    let mut patience = Patience::new();
    let (mut sent, mut back) = (false, false);
    while !(sent && back) {
        let Some(done) = node.poll() else {
            patience.spend(|| format!("round trip {seed}: {:?}", node.counters()));
            continue;
        };
        assert!(done.status.is_success(), "{done:?}");
        if done.operation == Operation::Receive {
            assert!(done.buffer.expect("its buffer").into_bytes(done.length) == bytes);
            back = true;
        } else {
            sent = true;
        }
    }
}

/// The canary of the traffic's checks: a wrong byte in a message is noticed.
#[test]
#[should_panic(expected = "message 3 from 0 to 1 is another one")]
fn a_false_message_is_noticed() {
    let network = Network::pair(Carrier::Udp);
    let mut traffic = Traffic::new([(0, 1)], 10);
    traffic.falsified = Some(3);
    traffic.finish(&mut network.stage());
}

/// Sixteen hosts around a bridge all send to all others, messages of many sizes.
// shows: H-30
#[test]
fn sixteen_hosts_all_to_all() {
    for carrier in [Carrier::Packet, Carrier::Udp] {
        let network = Network::bridged(carrier, 16);
        let mut traffic = Traffic::all_to_all(16, 20);
        traffic.longest = 5_000;
        traffic.window = 4;
        traffic.finish(&mut network.stage());
    }
}

/// Sixteen hosts always have more to send to one than it takes. All messages arrive in order, each
/// host gets its fair share once all are active, and retransmissions stay a small part of the
/// traffic. All hosts have equal shares of one thread, so that network and protocol decide, not a
/// scheduler.
#[test]
fn sixteen_to_one_is_fair_and_does_not_collapse() {
    const MESSAGES: u64 = 1_000;
    const UNDER_WAY: u64 = 100;
    const BYTES: usize = 8_000;
    for carrier in [Carrier::Packet, Carrier::Udp] {
        let network = Network::bridged(carrier, 17);
        let mut stage = network.stage();
        let addresses: Vec<Address> = stage.nodes.iter().map(Node::address).collect();
        let to = addresses[16];
        let (mut posted, mut counts) = ([0; 16], [0; 16]);
        let (mut under_way, mut at_first_end) = (None, None);
        (0..128).for_each(|_| stage.nodes[16].receive(BYTES, 0));
        // The turn rotates: the first in a fixed order would always be the first to find room.
        let mut turn = 0;
        let mut patience = Patience::new();
        while counts.iter().any(|&count| count < MESSAGES) {
            // No host runs ahead before all have delivered one message.
            let allowed = if counts.iter().all(|&count| count > 0) { MESSAGES } else { 1 };
            turn += 1;
            for number in (0..16).map(|index| (index + turn) % 16) {
                let (node, number) = (&mut stage.nodes[number], &mut posted[number]);
                let pair = node.queue_pair;
                while *number < allowed {
                    let send = Message::buffer(pattern(*number, BYTES)).to(to);
                    if !accepted(node.function.post_send(pair, send)) {
                        break;
                    }
                    *number += 1;
                }
                while let Some(done) = node.poll() {
                    assert!(done.status.is_success(), "{done:?}");
                }
            }
            for _ in 0..64 {
                let Some(done) = stage.nodes[16].poll() else { break };
                let from = addresses.iter().position(|&address| address == done.peer);
                let from = from.expect("one of the senders");
                let bytes = done.buffer.expect("its buffer").into_bytes(done.length);
                assert!(
                    bytes == pattern(counts[from], BYTES),
                    "message {} of {from}",
                    counts[from]
                );
                counts[from] += 1;
                if counts.iter().all(|&count| count >= UNDER_WAY) {
                    under_way.get_or_insert(counts);
                }
                if counts[from] == MESSAGES {
                    at_first_end.get_or_insert(counts);
                }
                stage.nodes[16].receive(BYTES, 0);
                patience = Patience::new();
            }
            patience.spend(|| format!("nothing arrives: {counts:?}"));
        }
        let (begin, mut counts) =
            (under_way.expect("all"), at_first_end.expect("somebody was first"));
        counts.iter_mut().zip(begin).for_each(|(count, begin)| *count -= begin);
        eprintln!("{carrier:?}: until the first had sent all: {counts:?}");
        assert!(is_fair(&counts, 2), "{counts:?} after {begin:?}");
        let [sent, again] = ["frames_sent", "frames_resent"]
            .map(|counter| shown_by(std::process::id() as i32, counter).iter().sum::<u64>());
        eprintln!("{carrier:?}: of {sent} frames {again} were sent again");
        assert!(again * 4 < sent, "{again} of {sent} frames were sent again");
    }
}

/// Whether the smallest count is at least the largest divided by `parts`.
fn is_fair(counts: &[u64], parts: u64) -> bool {
    counts.iter().min().unwrap_or(&0) * parts >= *counts.iter().max().unwrap_or(&0)
}

/// The canary of the fairness check: a share below half is noticed.
#[test]
fn unfairness_is_noticed() {
    assert!(is_fair(&[100, 50, 70], 2));
    assert!(!is_fair(&[100, 49, 70], 2));
}

/// A killed process leaves no program in the link layer, and its interface can be opened again at
/// once.
// shows: H-05
#[test]
fn nothing_stays_attached_after_a_crash() {
    let network = Network::pair(Carrier::Xdp);
    let mut node = network.node(0);
    for life in 0..5 {
        let mut child = network.echo(1, node.address());
        let (peer, _) = greeting(&mut node);
        round_trip(&mut node, peer, life, 3_000);
        assert!(ip_tells(&network, 1).contains("xdp"), "{}", ip_tells(&network, 1));
        child.signal(libc::SIGKILL);
        child.end();
        let mut patience = Patience::new();
        while ip_tells(&network, 1).contains("xdp") {
            patience.spend(|| format!("it stays attached: {}", ip_tells(&network, 1)));
        }
    }
}

/// `bellwire perf` measures between two hosts, named by address, and every byte that it compares is
/// right. It measures round trips, and streams of messages (the paper's programs pingpong and
/// burst).
// shows: H-28
#[test]
fn perf_runs_between_hosts() {
    for carrier in [Carrier::Packet, Carrier::Xdp, Carrier::Udp] {
        let network = Network::pair(carrier);
        let mut command = bellwire();
        command.args(["perf", &network.device(1), "--listen"]);
        let _listener = network.hosts[1].run(|| Running::listener(&mut command));
        let mut command = bellwire();
        command.args(["perf", &network.device(0), "--connect", &ip_of(1).to_string()]);
        command.args(["--quick", "--sizes", "8,4KiB", "--wait", "adaptive"]);
        let output = network.hosts[0].run(|| command.output()).expect("it starts");
        let told = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{carrier:?}: {told}{errors}");
        assert!(told.contains("All data was right"), "{carrier:?}: {told}{errors}");
    }
}

/// A neighbour claims that a node is at an unused address, or at another node's. Unasked claims
/// have no effect. False answers only cost time: we ask for the node again, and find it.
#[test]
fn forged_places_are_outlived() {
    const NOBODY: [u8; 6] = [2, 0, 0, 0, 0x99, 0x99];
    for carrier in [Carrier::Packet, Carrier::Xdp] {
        for is_somebody in [false, true] {
            let network = Network::bridged(carrier, 4);
            let [mut node, mut peer, mut stranger] = [0, 1, 2].map(|number| network.node(number));
            let liar = Liar::on(&network.hosts[3]);
            let place = if is_somebody { address_of(&network, 2) } else { NOBODY };
            let [from, to] = [node.address(), peer.address()];
            let lie = || liar.tell(from.node, to.node, place);
            assert!(!lie(), "nobody has asked");
            let send = Message::buffer(pattern(1, 5_000)).to(to).immediate(1);
            peer.receive(5_000, 0);
            // Received before anything is asked.
            (0..1_000).for_each(|_| assert!(node.poll().is_none()));
            node.function.post_send(node.queue_pair, send).expect("room");
            let (mut looks, mut patience, mut was_asked) = (0, Patience::new(), false);
            let done = loop {
                if let Some(done) = node.poll() {
                    break done;
                }
                // The liar is the first to answer.
                if let Some(done) = was_asked.then(|| peer.poll()).flatten() {
                    let bytes = done.buffer.expect("its buffer").into_bytes(done.length);
                    assert!(bytes == pattern(1, 5_000));
                }
                assert!(stranger.poll().is_none());
                looks += 1;
                if looks % 1_000 == 0 {
                    was_asked |= lie();
                }
                patience.spend(|| format!("not found: {:?}", node.counters()));
            };
            assert_eq!(done.status, Status::Success, "{carrier:?}, {place:x?}");
        }
    }
}

/// The Ethernet address of a host.
fn address_of(network: &Network, host: usize) -> [u8; 6] {
    let told = ip_tells(network, host);
    let text = told.split("link/ether ").nth(1).expect("an Ethernet address");
    let mut bytes = text[..17].split(':').map(|byte| u8::from_str_radix(byte, 16).expect("hex"));
    std::array::from_fn(|_| bytes.next().expect("six bytes"))
}

/// What `ip` reports of the interface of a host.
fn ip_tells(network: &Network, host: usize) -> String {
    let ask = || Command::new("ip").args(["-d", "link", "show", WIRE]).output();
    let output = network.hosts[host].run(ask).expect("ip");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Bodies of the tests that run with each carrier.
mod run {
    use super::*;

    /// Messages that are posted together leave at the end of the call.
    pub fn a_list_leaves_at_its_end(carrier: Carrier) {
        batch::a_list_leaves_at_its_end(&mut Network::pair(carrier).stage());
    }

    /// An interface that is down for 300 ms in the middle of a stream, three times, costs time and
    /// nothing else.
    pub fn an_interface_is_down_for_a_while(carrier: Carrier) {
        let network = Network::pair(carrier);
        let mut stage = network.stage();
        let mut traffic = Traffic::both_ways(120);
        for host in [1, 0, 1] {
            let until = traffic.received() + 60;
            traffic.until(&mut stage, |traffic| traffic.received() >= until);
            network.ip(host, "link set wire down");
            keep_going(&mut stage, &mut traffic, Duration::from_millis(300));
            network.ip(host, "link set wire up");
        }
        traffic.finish(&mut stage);
    }

    /// If it is down for longer than a peer may be silent (5 s: PROTOCOL.md, "Liveness"), every
    /// descriptor completes with an error. The next connection works, and so does everything else.
    pub fn an_interface_is_down_for_too_long(carrier: Carrier) {
        let network = Network::pair(carrier);
        let mut stage = network.stage();
        let mut traffic = Traffic::both_ways(5);
        traffic.finish(&mut stage);
        network.ip(1, "link set wire down");
        let since = Instant::now();
        let to = stage.nodes[1].address();
        let region = stage.nodes[1].function.allocate_region(4096, Rights::all()).expect("memory");
        post_everything(&mut stage.nodes[0], to, region.remote_key());
        let (near, far) = stage.nodes.split_at_mut(1);
        let ended = all_complete(&mut near[0], far);
        eprintln!("{carrier:?}: the loss of the peer was told after {:?}", since.elapsed());
        assert_all_failed(ended);
        network.ip(1, "link set wire up");
        let [near, far] = [0, 1].map(|number: usize| stage.nodes[number].another());
        stage.connect((0, near), (1, far));
        Traffic::both_ways(5).finish(&mut stage);
    }

    /// A killed peer is reported with every descriptor. A peer that is started again at its address
    /// can talk, and gets nothing that was meant for the previous one.
    pub fn peers_are_killed_and_come_again(carrier: Carrier) {
        let network = Network::pair(carrier);
        let mut node = network.node(0);
        let here = node.address();
        for life in 0..4 {
            let mut child = network.echo(1, here);
            let (peer, [key, _]) = greeting(&mut node);
            for (seed, length) in [8, 1196, 100_000].into_iter().enumerate() {
                round_trip(&mut node, peer, seed as u64, length);
            }
            child.signal(libc::SIGKILL);
            child.end();
            let since = Instant::now();
            post_everything(&mut node, peer, key);
            // Every other time the next peer is there before the death is noticed, and its greeting
            // ends the old link.
            let next = (life % 2 == 1).then(|| network.echo(1, here));
            if next.is_some() {
                node.receive(48, 0);
            }
            let mut ended = Vec::new();
            let mut greeted = next.is_none();
            let mut patience = Patience::new();
            while ended.len() < POSTED || !greeted {
                match node.poll() {
                    Some(done) if done.operation == Operation::Receive => {
                        assert_eq!((done.status, done.length), (Status::Success, 48), "{done:?}");
                        greeted = true;
                    }
                    Some(done) => ended.push((done.context, done.status)),
                    None => patience.spend(|| format!("{ended:?}; {:?}", node.counters())),
                }
            }
            let how = if next.is_some() { "next one came" } else { "peer was silent" };
            eprintln!("{carrier:?}: the {how}: told after {:?}", since.elapsed());
            assert_all_failed(ended);
            if let Some(next) = next {
                // If it had received anything of the old messages, it would return that first.
                round_trip(&mut node, peer, 77, 1196);
                end_echo(next, &mut node, peer);
            }
        }
    }

    /// If a wire is removed while messages are in flight, every descriptor ends with an error:
    /// nothing hangs, nothing panics.
    pub fn a_wire_is_removed(carrier: Carrier) {
        let network = Network::pair(carrier);
        let mut stage = network.stage();
        Traffic::both_ways(20).finish(&mut stage);
        let regions = [0, 1].map(|number: usize| {
            stage.nodes[number].function.allocate_region(4096, Rights::all()).expect("memory")
        });
        let keys = regions.each_ref().map(|region| region.remote_key());
        network.ip(0, "link del wire");
        for (from, to) in [(0, 1), (1, 0)] {
            let there = stage.nodes[to].address();
            post_everything(&mut stage.nodes[from], there, keys[to]);
        }
        for _ in 0..2 {
            let (first, rest) = stage.nodes.split_at_mut(1);
            assert_all_failed(all_complete(&mut first[0], rest));
            stage.nodes.rotate_left(1);
        }
        let error = network.hosts[0].run(|| match Device::open(&network.device(0)) {
            Ok(device) => device.open_function(1).err(),
            Err(error) => Some(error),
        });
        let told = error.expect("there is no such device any more").to_string();
        assert!(told.contains("ip link show") || told.contains("ip address show"), "{told}");
    }

    /// A namespace that loses its name stays with its processes (`ip netns del` does only that). It
    /// vanishes with the last of them, and takes the wire along. The other end then gets errors.
    pub fn a_namespace_is_removed(carrier: Carrier) {
        let mut network = Network::pair(carrier);
        let mut node = network.node(0);
        let mut child = network.echo(1, node.address());
        let (peer, [key, _]) = greeting(&mut node);
        network.remove_last();
        round_trip(&mut node, peer, 1, 5_000);
        child.signal(libc::SIGKILL);
        child.end();
        post_everything(&mut node, peer, key);
        assert_all_failed(all_complete(&mut node, &mut []));
        let mut patience = Patience::new();
        while ip_tells(&network, 0).contains(WIRE) {
            patience.spend(|| "the wire stays".into());
        }
        post_everything(&mut node, peer, key);
        assert_all_failed(all_complete(&mut node, &mut []));
    }

    /// A network that loses, duplicates, damages and reorders 1 % of all frames each costs time and
    /// nothing else.
    pub fn a_bad_network(carrier: Carrier) {
        let faults =
            Faults { seed: 5, lose: 10, repeat: 10, damage: 10, delay: 10, ..Faults::default() };
        let (network, relay) = Network::relayed(carrier, faults);
        let mut stage = network.stage();
        Traffic::both_ways(150).finish(&mut stage);
        for (name, count) in relay.done() {
            assert!(count > 0 || name == "hostile", "{name}: {:?}", relay.done());
        }
        eprintln!("{carrier:?}: {:?}", relay.done());
    }

    /// Tens of thousands of hostile frames disturb nothing. A process that gets them in the middle
    /// of its work finishes that work, counts them, and neither grows nor keeps anything.
    pub fn hostile_frames(carrier: Carrier) {
        let faults = Faults { seed: 11, hostile: 4, ..Faults::default() };
        let (network, relay) = Network::relayed(carrier, faults);
        let mut node = network.node(0);
        let mut victim = network.echo(1, node.address());
        let (peer, _) = greeting(&mut node);
        let work = |node: &mut Node, frames: u64| {
            let mut number = 0;
            while relay.count("hostile") < frames {
                round_trip(node, peer, number, [8, 1196, 20_000][number as usize % 3]);
                number += 1;
            }
        };
        // Warm up first: one-time allocations are not growth.
        work(&mut node, 8_000);
        let before = Footprint::of(victim.id());
        work(&mut node, 40_000);
        let after = Footprint::of(victim.id());
        eprintln!("{carrier:?}: {:?}; {before:?}, then {after:?}", relay.done());
        assert_eq!(victim.ended(), None);
        // Over udp the connected socket comes and goes; there is one at most.
        let spare = usize::from(carrier == Carrier::Udp);
        assert!(after.descriptors.abs_diff(before.descriptors) <= spare, "{before:?} {after:?}");
        assert!(after.bytes < before.bytes + (8 << 20), "it grows: {before:?} {after:?}");
        for counter in ["frames_damaged", "frames_malformed", "frames_unknown", "frames_repeated"] {
            let mut patience = Patience::new();
            while shown_by(victim.id(), counter).iter().sum::<u64>() == 0 {
                round_trip(&mut node, peer, 1, 8);
                patience.spend(|| format!("{counter} stays 0"));
            }
        }
        end_echo(victim, &mut node, peer);
    }

    /// TCP and messages use one interface at once, both ways, and both arrive whole. If iperf3 is
    /// installed, it keeps going too.
    pub fn tcp_goes_on_beside(carrier: Carrier) {
        let network = Network::pair(carrier);
        let mut stage = network.stage();
        let (is_over, bytes) = (AtomicBool::new(false), AtomicU64::new(0));
        let listener =
            network.hosts[1].run(|| TcpListener::bind((ip_of(1), 9_000))).expect("a port");
        let iperf = Iperf::start(&network);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (stream, _) = listener.accept().expect("somebody");
                receive_all(stream);
            });
            let stream = network.hosts[0].run(|| TcpStream::connect((ip_of(1), 9_000)));
            let (stream, is_over, bytes) = (stream.expect("it listens"), &is_over, &bytes);
            scope.spawn(move || send_until(stream, is_over, bytes));
            // Ends the other threads also if this one fails.
            let _end = RaiseOnDrop(is_over);
            let (mut rounds, mut traffic) = (0, Traffic::both_ways(0));
            while rounds < 3 || iperf.as_ref().is_some_and(Iperf::is_running) {
                let before = bytes.load(Ordering::Relaxed);
                traffic.messages += 60;
                traffic.finish(&mut stage);
                let mut patience = Patience::new();
                while bytes.load(Ordering::Relaxed) < before + (1 << 20) {
                    stage.turn();
                    patience.spend(|| "TCP stands still beside messages".into());
                }
                rounds += 1;
            }
        });
        eprintln!("{carrier:?}: {} bytes by TCP", bytes.load(Ordering::Relaxed));
        if let Some(iperf) = iperf {
            iperf.succeed();
        }
    }
}

/// Tells an echo to end, and checks that it succeeds.
#[track_caller]
fn end_echo(child: Process, node: &mut Node, peer: Address) {
    let send = Message::inline(b"").to(peer).immediate(0);
    node.function.post_send(node.queue_pair, send).expect("room");
    let ended = all_complete(node, &mut []);
    assert_eq!(ended.len(), 1);
    child.succeed();
}

/// The resources of a process.
#[derive(Debug)]
struct Footprint {
    bytes: u64,
    descriptors: usize,
}

impl Footprint {
    fn of(process: i32) -> Footprint {
        let read = |name: &str| std::fs::read_to_string(format!("/proc/{process}/{name}"));
        let pages: u64 = read("statm").unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let descriptors = std::fs::read_dir(format!("/proc/{process}/fd")).unwrap().count();
        Footprint { bytes: pages * 4096, descriptors }
    }
}

/// A counter of each open function's device, as the process shows it to `bellwire stat`.
fn shown_by(process: i32, counter: &str) -> Vec<u64> {
    let files = bellwire::stat::files_of(process as u32).expect("our child");
    // A closing function removes its file.
    let texts = files.iter().filter_map(|file| bellwire::stat::read(file).ok().flatten());
    let value = |text: String| {
        let found = text.split(&format!("\"{counter}\":")).nth(1)?.to_owned();
        let digits: String = found.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    };
    texts.filter_map(value).collect()
}

/// Sets a flag when it is dropped.
struct RaiseOnDrop<'a>(&'a AtomicBool);

impl Drop for RaiseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Length of one block of TCP data, in bytes.
const BLOCK: usize = 64 << 10;

/// Sends blocks with known contents until the flag is set.
fn send_until(mut stream: TcpStream, is_over: &AtomicBool, bytes: &AtomicU64) {
    let mut block = 0;
    while !is_over.load(Ordering::Relaxed) {
        stream.write_all(&pattern(block, BLOCK)).expect("the connection stays up");
        block += 1;
        bytes.fetch_add(BLOCK as u64, Ordering::Relaxed);
    }
}

/// Compares all blocks with the expected contents.
fn receive_all(mut stream: TcpStream) {
    let (mut block, mut room) = (0, vec![0; BLOCK]);
    loop {
        match stream.read_exact(&mut room) {
            Ok(()) => assert!(room == pattern(block, BLOCK), "TCP block {block} was altered"),
            Err(_) => return,
        }
        block += 1;
    }
}

/// Whether somebody in the network of a process listens at the port of iperf3.
fn is_listening(process: u32) -> bool {
    // The columns of proc(5): number, local address and port, remote address, state (0A: listens).
    let listens = |line: &str| {
        let mut columns = line.split_whitespace().skip(1);
        let port = columns.next().and_then(|local| local.rsplit(':').next());
        let port = port.and_then(|port| u16::from_str_radix(port, 16).ok());
        port == Some(5201) && columns.nth(1) == Some("0A")
    };
    ["tcp", "tcp6"].into_iter().any(|table| {
        let table = std::fs::read_to_string(format!("/proc/{process}/net/{table}"));
        table.is_ok_and(|table| table.lines().any(listens))
    })
}

/// iperf3 between the two hosts, for two seconds.
struct Iperf {
    server: Running,
    client: Running,
}

impl Iperf {
    /// `None` if it is not installed.
    fn start(network: &Network) -> Option<Iperf> {
        let start = |host: usize, arguments: &[&str]| {
            let mut command = Command::new("iperf3");
            command.args(arguments).stdout(Stdio::null());
            network.hosts[host].run(|| command.spawn()).ok().map(Running)
        };
        let server = start(1, &["-s", "-1"])?;
        let mut patience = Patience::new();
        while !is_listening(server.0.id()) {
            std::thread::sleep(Duration::from_millis(1));
            patience.spend(|| "iperf3 does not listen".into());
        }
        let client = start(0, &["-c", &ip_of(1).to_string(), "-t", "2"])?;
        Some(Iperf { server, client })
    }

    fn is_running(&self) -> bool {
        let state = std::fs::read_to_string(format!("/proc/{}/stat", self.client.0.id()));
        state.is_ok_and(|state| !state.contains(") Z "))
    }

    #[track_caller]
    fn succeed(mut self) {
        assert!(
            self.client.0.wait().expect("our child").success(),
            "iperf3 failed beside messages"
        );
        self.server.0.wait().expect("our child");
    }
}
