//! Functions of one job in one thread: all that they have with each other.

use bellwire_device::{
    AccessMode, AtomicOperation, Direct, Error, FunctionAddress, Gate, Kind, LinkId, Memory,
    NodeInfo, PacketHeader, Receipt, RemoteKey, Rights, SendError, Sink, Status, Transport,
    Verdict, sleep_until_readable,
};
use bellwire_ring::memory::View;
use bellwire_shm::{ShmDevice, ShmTransport};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Longest wait for anything: one thread does it all, so nothing here takes a hundredth of it.
const LONG: Duration = Duration::from_secs(8);
const PATIENCE: Duration = Duration::from_secs(7);
/// A queue pair.
const QUEUE_PAIR: u32 = 7;

/// What an engine would hear.
struct Heard {
    verdict: Verdict,
    offered: usize,
    packets: Vec<(LinkId, FunctionAddress, PacketHeader, Vec<u8>)>,
    down: Vec<(LinkId, FunctionAddress, Status)>,
    ticks: usize,
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

    fn link_down(&mut self, link: LinkId, peer: FunctionAddress, why: Status) {
        self.down.push((link, peer, why));
    }

    fn tick(&mut self, counters: &[(&'static str, u64)]) {
        assert!(counters.iter().any(|(name, _)| *name == "links"));
        self.ticks += 1;
    }
}

/// A function, and what its engine hears.
struct Node {
    it: ShmTransport,
    heard: Heard,
}

impl Node {
    fn poll(&mut self) -> usize {
        self.it.poll(&mut self.heard, 64)
    }

    fn counter(&self, name: &str) -> u64 {
        self.it.counter_rows().into_iter().find(|(row, _)| *row == name).expect(name).1
    }

    fn address(&self) -> FunctionAddress {
        self.it.address()
    }
}

/// A job that no other test has.
fn job() -> String {
    static JOBS: AtomicU32 = AtomicU32::new(0);
    format!("pair-{}-{}", std::process::id(), JOBS.fetch_add(1, Ordering::Relaxed))
}

fn open(job: &str, node: u32, weight: u8) -> Node {
    let device = ShmDevice::open(job, AccessMode::Owner, Some(node)).expect("the job is ours");
    let it = device.open_function(3, weight).expect("a function");
    let (packets, down) = (Vec::new(), Vec::new());
    let heard = Heard { verdict: Verdict::Taken, offered: 0, packets, down, ticks: 0 };
    Node { it, heard }
}

/// Polls all until it is so.
#[track_caller]
fn until<const N: usize>(
    nodes: &mut [Node; N],
    what: &str,
    mut is: impl FnMut(&mut [Node; N]) -> bool,
) {
    let since = Instant::now();
    while !is(nodes) {
        nodes.iter_mut().for_each(|node| _ = node.poll());
        assert!(since.elapsed() < LONG, "{what}");
    }
}

/// Two functions with a link that is up, and its numbers at both.
fn pair() -> ([Node; 2], [LinkId; 2]) {
    let job = job();
    let mut nodes = [open(&job, 0, 16), open(&job, 1, 16)];
    let to = nodes[1].address();
    let link = nodes[0].it.link(to, PATIENCE).expect("a link");
    assert_eq!(nodes[0].it.link(to, PATIENCE).expect("the same"), link);
    assert!(!nodes[0].it.is_up(link));
    assert_eq!(nodes[0].it.watch_gate(link, QUEUE_PAIR), None);
    let early = nodes[0].it.send(link, header(0), b"", View::empty());
    assert_eq!(early, Err(SendError::Busy));
    until(&mut nodes, "the link comes up", |[a, _]| a.it.is_up(link));
    let back = nodes[0].address();
    until(&mut nodes, "the link comes up there", |[_, b]| b.counter("links") == 1);
    let back = nodes[1].it.link(back, PATIENCE).expect("it is there");
    until(&mut nodes, "it is up there", |[_, b]| b.it.is_up(back));
    assert_eq!(nodes.each_ref().map(|it| it.counter("links")), [1, 1]);
    assert_eq!(nodes[0].counter("went_to_host_memory"), 0);
    (nodes, [link, back])
}

fn header(argument: u64) -> PacketHeader {
    PacketHeader::new(Kind::Send, QUEUE_PAIR, 4, argument)
}

fn payload(number: usize, length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 7 + number) as u8).collect()
}

/// Packets of all lengths arrive once, in order and whole, and both sides count the same.
#[test]
fn packets_arrive_as_they_were_sent() {
    let (mut nodes, [link, back]) = pair();
    let longest = nodes[0].it.limits().packet_bytes;
    assert_eq!(longest, 8096);
    let lengths = [0, 1, 8, 31, 32, 33, 64, 100, 2000, longest, longest - 1, 4000];
    for number in 0..600 {
        let bytes = payload(number, lengths[number % lengths.len()]);
        let (head, body) = bytes.split_at(bytes.len().min(5));
        let header = header(number as u64);
        until(&mut nodes, "there is room", |[a, _]| {
            match a.it.send(link, header, head, View::of(body)) {
                Ok(receipt) => receipt == Receipt::Delivered,
                Err(error) => {
                    assert_eq!(error, SendError::Busy);
                    false
                }
            }
        });
    }
    until(&mut nodes, "all arrive", |[_, b]| b.heard.packets.len() >= 600);
    let [a, b] = &mut nodes;
    for (number, (on, from, got, bytes)) in b.heard.packets.drain(..).enumerate() {
        let expected = payload(number, lengths[number % lengths.len()]);
        assert_eq!((on, from), (back, a.it.address()));
        let length = expected.len() as u32;
        assert_eq!(got, PacketHeader { length, ..header(number as u64) });
        assert!(bytes == expected, "packet {number}");
    }
    assert_eq!((a.counter("packets_sent"), b.counter("packets_received")), (600, 600));
    assert_eq!((b.counter("packets_sent"), a.counter("packets_received")), (0, 0));
    assert_eq!((b.heard.offered, a.heard.offered), (600, 0));
    assert!(a.heard.ticks > 0 && b.heard.ticks > 0);
}

/// A sender whose receiver does not poll is told that the lane is full, and no packet is lost.
#[test]
fn a_full_lane_takes_no_more() {
    let (mut nodes, [link, _]) = pair();
    let mut sent = 0;
    for round in 0..5 {
        while nodes[0].it.send(link, header(sent), b"", View::of(&[1; 1000])).is_ok() {
            sent += 1;
            assert!(sent < 10_000 * (round + 1), "a lane has an end");
        }
        assert_eq!(nodes[0].counter("lane_full"), round + 1);
        until(&mut nodes, "all arrive", |[_, b]| b.heard.packets.len() as u64 >= sent);
    }
    let numbers = nodes[1].heard.packets.iter().map(|(_, _, header, _)| header.argument);
    assert!(numbers.eq(0..sent));
    assert_eq!(nodes[0].counter("packets_sent"), sent);
    assert!(nodes[0].counter("went_to_host_memory") > 0 && nodes[1].counter("grants") > 0);
}

/// A message leaves only through an open gate.
#[test]
fn gates_open_and_close() {
    let (mut nodes, [link, _]) = pair();
    let word = View::of(b"word");
    for gate in [Gate::Closed, Gate::Open, Gate::Stopped, Gate::Open, Gate::Closed] {
        nodes[1].it.set_gate(QUEUE_PAIR, gate);
        assert_eq!(nodes[0].it.watch_gate(link, QUEUE_PAIR), Some(gate));
        assert_eq!(nodes[0].it.watch_gate(link, QUEUE_PAIR + 1), Some(Gate::Closed));
        for _ in 0..2 {
            let sent = nodes[0].it.send_message(link, header(5), b"a ", word);
            assert_eq!(sent, (gate == Gate::Open).then_some(Receipt::Delivered));
        }
    }
    until(&mut nodes, "they arrive", |[_, b]| b.heard.packets.len() >= 4);
    let all = nodes[1].heard.packets.drain(..).map(|(.., bytes)| bytes);
    assert!(all.eq([b"a word"; 4]));
    assert_eq!(nodes[0].counter("packets_sent"), 4);
    assert_eq!(nodes[0].it.send_message(LinkId(9), header(5), b"", word), None);
    // A message for which there is no room stays with the program.
    nodes[1].it.set_gate(QUEUE_PAIR, Gate::Open);
    let long = [1; 1000];
    let mut sent = 4;
    while nodes[0].it.send_message(link, header(5), b"", View::of(&long)).is_some() {
        sent += 1;
        assert!(sent < 10_000, "a lane has an end");
    }
    assert_eq!(nodes[0].counter("packets_sent"), sent);
}

/// What the engine does not take stays first, and what breaks its rules ends the link.
#[test]
fn stalled_packets_are_offered_again() {
    let (mut nodes, [link, back]) = pair();
    nodes[1].heard.verdict = Verdict::Stalled;
    for number in 0..3 {
        nodes[0].it.send(link, header(number), b"", View::empty()).expect("room");
    }
    until(&mut nodes, "it is offered twice", |[_, b]| b.heard.offered >= 2);
    assert_eq!(nodes[1].counter("packets_received"), 0);
    nodes[1].heard.verdict = Verdict::Taken;
    until(&mut nodes, "all are taken", |[_, b]| b.heard.packets.len() >= 3);
    let numbers = nodes[1].heard.packets.iter().map(|(_, _, header, _)| header.argument);
    assert!(numbers.eq(0..3));

    nodes[1].heard.verdict = Verdict::Violation;
    nodes[0].it.send(link, header(9), b"", View::empty()).expect("room");
    until(&mut nodes, "b ends the link", |[_, b]| !b.heard.down.is_empty());
    until(&mut nodes, "a is told", |[a, _]| !a.heard.down.is_empty());
    let [a, b] = &mut nodes;
    assert_eq!(b.heard.down, [(back, a.it.address(), Status::ProtocolViolation)]);
    assert_eq!(a.heard.down, [(link, b.it.address(), Status::PeerGone)]);
    assert_eq!((b.counter("violations"), a.counter("violations")), (1, 0));
    for (node, link, why) in [(a, link, Status::PeerGone), (b, back, Status::ProtocolViolation)] {
        let refused = node.it.send(link, header(9), b"", View::empty());
        assert_eq!(refused, Err(SendError::Down(why)));
        assert_eq!((node.it.is_up(link), node.it.watch_gate(link, 1)), (false, None));
        node.it.close(link);
    }
    until(&mut nodes, "both forget it", |nodes| {
        nodes.iter().all(|node| node.counter("links") == 0)
    });
}

/// Whoever is left is told once, after all that was sent before. A new link begins anew.
#[test]
fn the_end_comes_after_the_last_packet() {
    let (mut nodes, [mut link, mut back]) = pair();
    for round in 1..=3 {
        for number in 0..40 {
            nodes[0].it.send(link, header(number), b"", View::of(&[1; 100])).expect("room");
        }
        nodes[0].it.close(link);
        let unknown = nodes[0].it.send(link, header(0), b"", View::empty());
        assert_eq!(unknown, Err(SendError::Down(Status::PeerGone)));
        assert_eq!(nodes[0].counter("links"), 0);
        until(&mut nodes, "b is told", |[_, b]| !b.heard.down.is_empty());
        assert_eq!(nodes[1].heard.packets.len(), 40, "in round {round}");
        (0..200).for_each(|_| _ = nodes[1].poll());
        let own = nodes[0].address();
        assert_eq!(nodes[1].heard.down, [(back, own, Status::PeerGone)]);
        nodes[1].heard.packets.clear();
        nodes[1].heard.down.clear();
        nodes[1].it.close(back);
        assert_eq!(nodes[1].counter("links"), 0);
        link = nodes[0].it.link(nodes[1].it.address(), PATIENCE).expect("a new link");
        until(&mut nodes, "it is up", |[a, b]| a.it.is_up(link) && b.counter("links") == 1);
        back = nodes[1].it.link(own, PATIENCE).expect("it is there");
    }
    assert!(nodes[0].heard.down.is_empty());
}

/// A function that goes takes its links along.
#[test]
fn a_dropped_function_is_gone() {
    let (nodes, [_, back]) = pair();
    let [a, b] = nodes;
    let gone = a.address();
    drop(a);
    let mut nodes = [b];
    until(&mut nodes, "b is told", |[b]| !b.heard.down.is_empty());
    assert_eq!(nodes[0].heard.down, [(back, gone, Status::PeerGone)]);
}

/// A function that never polls hears of it, if it looks around.
#[test]
fn who_looks_around_is_told() {
    let ([a, mut b], [_, back]) = pair();
    let gone = a.address();
    drop(a);
    let since = Instant::now();
    while b.heard.down.is_empty() {
        b.it.look_around(&mut b.heard);
        assert!(since.elapsed() < LONG, "b is never told");
    }
    assert_eq!(b.heard.down, [(back, gone, Status::PeerGone)]);
}

/// Nobody is waited for longer than was asked, nor for less.
#[test]
fn nobody_is_waited_for_in_vain() {
    let mut nodes = [open(&job(), 0, 16)];
    let nobody = FunctionAddress { node: 5, function: 3 };
    assert!(!nodes[0].it.is_here(nobody));
    assert!(nodes[0].it.is_here(nodes[0].address()));
    let patience = Duration::from_millis(50);
    let since = Instant::now();
    let link = nodes[0].it.link(nobody, patience).expect("a link");
    while nodes[0].heard.down.is_empty() {
        nodes[0].it.sleep(Some(LONG)).expect("a sleep until the next attempt");
        nodes[0].poll();
        assert!(since.elapsed() < LONG, "it is never told");
    }
    assert!(since.elapsed() >= patience, "given up after {:?}", since.elapsed());
    assert_eq!(nodes[0].heard.down, [(link, nobody, Status::Unreachable)]);
    let refused = nodes[0].it.send(link, header(0), b"", View::empty());
    assert_eq!(refused, Err(SendError::Down(Status::Unreachable)));
    let key = RemoteKey { node: 5, function: 3, index: 0, key: 1, length: 8 };
    let put = nodes[0].it.put(link, key, 0, View::of(b"word"));
    assert_eq!(put, Direct::Refused(Status::Unreachable));
    assert_eq!(
        nodes[0].it.put(LinkId(9), key, 0, View::of(b"")),
        Direct::Refused(Status::PeerGone)
    );
}

/// A sleeper is woken by a packet, and by nothing else.
#[test]
fn a_packet_wakes_a_sleeper() {
    let (mut nodes, [link, back]) = pair();
    for round in 0..30 {
        until(&mut nodes, "it falls asleep", |[_, b]| b.it.arm());
        let waits = |node: &Node| {
            let since = Instant::now();
            sleep_until_readable(node.it.wait_fd(), Some(Duration::from_millis(1)))
                .expect("a wait");
            since.elapsed() >= Duration::from_millis(1)
        };
        assert!(round > 0 || waits(&nodes[1]), "nothing has come yet");
        nodes[0].it.send(link, header(round), b"", View::of(&[7; 100])).expect("room");
        sleep_until_readable(nodes[1].it.wait_fd(), Some(LONG)).expect("a wait");
        let since = Instant::now();
        while nodes[1].heard.packets.is_empty() {
            nodes[1].poll();
            assert!(since.elapsed() < LONG, "it woke for nothing");
        }
        let (.., got, _) = nodes[1].heard.packets.remove(0);
        assert_eq!(got.argument, round);
        nodes[1].it.send(back, header(round), b"", View::empty()).expect("room");
        until(&mut nodes, "the answer comes", |[a, _]| !a.heard.packets.is_empty());
        nodes[0].heard.packets.clear();
    }
    assert!(nodes[0].counter("kicks") > 0 && nodes[0].counter("rings") > 0);
    assert!(nodes[1].counter("parks") > 0);
    assert_eq!(nodes[0].counter("packets_sent"), 30);
}

/// A sender that sleeps because a lane is full is woken once there is room.
#[test]
fn room_wakes_a_sleeper() {
    let (mut nodes, [link, _]) = pair();
    for round in 1..4 {
        let mut sent = 0;
        while nodes[0].it.send(link, header(0), b"", View::of(&[7; 4000])).is_ok() {
            sent += 1;
            assert!(sent < 10_000, "a lane has an end");
        }
        let since = Instant::now();
        while !nodes[0].it.arm() {
            nodes[0].poll();
            _ = nodes[0].it.send(link, header(0), b"", View::of(&[7; 4000]));
            assert!(since.elapsed() < LONG, "it does not fall asleep");
        }
        let before = nodes[1].counter("kicks");
        while nodes[1].poll() > 0 {}
        sleep_until_readable(nodes[0].it.wait_fd(), Some(LONG)).expect("a wait");
        assert!(nodes[1].counter("kicks") > before, "round {round}");
        until(&mut nodes, "there is room", |[a, _]| {
            a.it.send(link, header(0), b"", View::of(&[7; 4000])).is_ok()
        });
        until(&mut nodes, "it is read", |[_, b]| b.poll() == 0);
    }
}

/// A stopped gate that opens wakes whoever waits for it.
#[test]
fn an_open_gate_wakes_a_sleeper() {
    let (mut nodes, [link, _]) = pair();
    nodes[1].it.set_gate(QUEUE_PAIR, Gate::Stopped);
    assert_eq!(nodes[0].it.watch_gate(link, QUEUE_PAIR), Some(Gate::Stopped));
    let since = Instant::now();
    while !nodes[0].it.arm() {
        nodes[0].poll();
        assert_eq!(nodes[0].it.watch_gate(link, QUEUE_PAIR), Some(Gate::Stopped));
        assert!(since.elapsed() < LONG, "it does not fall asleep");
    }
    let before = nodes[1].counter("kicks");
    nodes[1].it.set_gate(QUEUE_PAIR, Gate::Open);
    assert_eq!(nodes[1].counter("kicks"), before + 1);
    sleep_until_readable(nodes[0].it.wait_fd(), Some(LONG)).expect("a wait");
    assert_eq!(nodes[0].it.watch_gate(link, QUEUE_PAIR), Some(Gate::Open));
}

/// Whether one of a hundred sleeps lasts as long as it may. The first ones may end early: there are
/// pages to give back, and peers to tell.
fn comes_to_sleep(nodes: &mut [Node; 2], which: usize) -> bool {
    let limit = Duration::from_millis(400);
    (0..100).any(|_| {
        nodes.iter_mut().for_each(|node| _ = node.poll());
        let since = Instant::now();
        nodes[which].it.sleep(Some(limit)).expect("a sleep");
        since.elapsed() >= limit
    })
}

/// A sleep without a message lasts as long as it may, once all is at rest.
#[test]
fn an_undisturbed_sleep_lasts() {
    let (mut nodes, _) = pair();
    assert!(comes_to_sleep(&mut nodes, 1), "each sleep ends early");
}

/// Pages that a burst has used are given back. Then nothing ends a sleep early any more.
#[test]
fn a_sleep_lasts_after_a_burst() {
    let (mut nodes, [link, _]) = pair();
    while nodes[0].it.send(link, header(0), b"", View::of(&[1; 4000])).is_ok() {}
    assert!(nodes[0].counter("went_to_host_memory") > 0);
    until(&mut nodes, "all arrive", |[_, b]| b.poll() == 0);
    assert!(comes_to_sleep(&mut nodes, 0), "each sleep ends early");
}

/// Before a sender whose lane was full sleeps, it tells the receiver, and looks once more: there
/// may be room by now. It does so anew after the receiver has made room.
#[test]
fn a_refused_sender_tells_before_it_sleeps() {
    let (mut nodes, [link, _]) = pair();
    until(&mut nodes, "all is at rest", |[a, _]| a.it.arm());
    for round in 0..3 {
        while nodes[0].it.send(link, header(0), b"", View::of(&[1; 4000])).is_ok() {}
        assert!(!nodes[0].it.arm(), "it has told nobody, in round {round}");
        let kicks = nodes[1].counter("kicks") + nodes[1].counter("grants");
        while nodes[1].poll() > 0 {}
        assert!(nodes[1].counter("kicks") + nodes[1].counter("grants") > kicks);
        (0..1_000).for_each(|_| nodes.iter_mut().for_each(|node| _ = node.poll()));
    }
}

/// A packet that comes alone counts as others do.
#[test]
fn single_packets_are_counted() {
    let (mut nodes, [link, _]) = pair();
    for number in 1..=100 {
        nodes[0].it.send(link, header(number), b"", View::of(b"alone")).expect("room");
        until(&mut nodes, "it arrives", |[_, b]| b.heard.packets.len() as u64 == number);
        assert_eq!(nodes[1].counter("packets_received"), number);
        // Looks that find nothing: then the lane is no stream any more.
        (0..3).for_each(|_| _ = nodes[1].poll());
    }
}

/// A peer that opens its function later is found, without another request.
#[test]
fn a_peer_may_come_later() {
    let job = job();
    let mut nodes = [open(&job, 0, 16)];
    let late = FunctionAddress { node: 1, function: 3 };
    let link = nodes[0].it.link(late, PATIENCE).expect("a link");
    let since = Instant::now();
    until(&mut nodes, "time passes", |_| since.elapsed() > Duration::from_millis(20));
    let [first] = nodes;
    let mut nodes = [first, open(&job, 1, 16)];
    until(&mut nodes, "it is found", |[a, _]| a.it.is_up(link));
}

/// The key of nobody's memory. Each use of it is told to the owner, by a control message.
fn guess(owner: &Node) -> RemoteKey {
    key_of(owner, 1, 77, 8)
}

/// Control messages that find no room in the socket leave once there is some. None is lost.
#[test]
fn control_messages_wait_for_room() {
    const GUESSES: u64 = 5_000;
    let (mut nodes, [link, _]) = pair();
    let key = guess(&nodes[1]);
    for _ in 0..GUESSES {
        let put = nodes[0].it.put(link, key, 0, View::of(b"!"));
        assert_eq!(put, Direct::Refused(Status::WrongKey));
    }
    // More than the socket holds, and the owner has not looked yet.
    assert_eq!(nodes[1].it.wrong_keys(), 0);
    until(&mut nodes, "the owner counts them", |[_, b]| b.it.wrong_keys() >= GUESSES);
    (0..1_000).for_each(|_| nodes.iter_mut().for_each(|node| _ = node.poll()));
    assert_eq!(nodes[1].it.wrong_keys(), GUESSES);
    assert!(nodes.iter().all(|node| node.heard.down.is_empty()));
}

/// A peer that reads none of many thousands of control messages loses its link.
#[test]
fn a_peer_that_never_listens_is_given_up() {
    let (mut nodes, [link, _]) = pair();
    let key = guess(&nodes[1]);
    for _ in 0..20_000 {
        _ = nodes[0].it.put(link, key, 0, View::of(b"!"));
    }
    let since = Instant::now();
    while nodes[0].heard.down.is_empty() {
        nodes[0].poll();
        assert!(since.elapsed() < LONG, "its messages pile up");
    }
    let peer = nodes[1].address();
    assert_eq!(nodes[0].heard.down, [(link, peer, Status::ProtocolViolation)]);
    assert_eq!(nodes[0].counter("violations"), 1);
}

/// An engine gets the rows that monitoring shows.
#[test]
fn the_engine_gets_all_counters() {
    let (nodes, _) = pair();
    let mut rows = vec![("before", 1)];
    nodes[0].it.counters(&mut rows);
    assert_eq!(rows[0], ("before", 1));
    assert_eq!(rows[1..], nodes[0].it.counter_rows());
    assert!(rows.contains(&("links", 1)));
}

const ALL: Rights = Rights::all();

fn key_of(owner: &Node, index: u16, key: u64, length: usize) -> RemoteKey {
    let FunctionAddress { node, function } = owner.address();
    RemoteKey { node, function, index, key, length: length as u64 }
}

/// Repeats an access until the owner has answered.
#[track_caller]
fn access(nodes: &mut [Node; 2], mut access: impl FnMut(&mut ShmTransport) -> Direct) -> Direct {
    let mut direct = Direct::Pending;
    until(nodes, "the owner answers", |[a, _]| {
        direct = access(&mut a.it);
        direct != Direct::Pending
    });
    direct
}

/// Put, get and atomics reach memory by a mapping or by the kernel, within their bounds and rights.
fn reach(nodes: &mut [Node; 2], link: LinkId, memory: &Memory, key: RemoteKey, is_mapped: bool) {
    let length = memory.len();
    memory.view().write(0, &payload(3, length));
    let put = |nodes: &mut [Node; 2], at: u64, bytes: &[u8]| {
        access(nodes, |a| a.put(link, key, at, View::of(bytes)))
    };
    for _ in 0..3 {
        assert_eq!(put(nodes, 16, b"put here"), Direct::Done(0));
    }
    let mut bytes = vec![0; 40];
    let got = access(nodes, |a| a.get(link, key, 0, View::of_mut(&mut bytes)));
    assert_eq!(got, Direct::Done(0));
    let mut expected = payload(3, 40);
    expected[16..24].copy_from_slice(b"put here");
    assert_eq!(bytes, expected);
    assert_eq!(memory.view().part(0, 40).expect("it").to_vec(), expected);
    let end = length as u64;
    assert_eq!(put(nodes, end - 8, b"the last"), Direct::Done(0));
    assert_eq!(put(nodes, end, b""), Direct::Done(0));
    for (at, bytes) in [(end - 7, &b"too long"[..]), (end, b"!"), (end + 1, b""), (u64::MAX, b"!")]
    {
        assert_eq!(put(nodes, at, bytes), Direct::Refused(Status::OutOfBounds), "{at}");
        let mut into = bytes.to_vec();
        let got = access(nodes, |a| a.get(link, key, at, View::of_mut(&mut into)));
        assert_eq!(got, Direct::Refused(Status::OutOfBounds), "{at}");
    }
    memory.view().store(24, 40).expect("aligned");
    let add = AtomicOperation::FetchAdd(2);
    let atomic = access(nodes, |a| a.atomic(link, key, 24, add));
    if !is_mapped {
        assert_eq!(atomic, Direct::ByPacket, "the kernel's copies are not atomic");
        return;
    }
    assert_eq!((atomic, memory.view().load(24)), (Direct::Done(40), Some(42)));
    let odd = access(nodes, |a| a.atomic(link, key, 25, add));
    assert_eq!(odd, Direct::Refused(Status::Misaligned));
    let out = access(nodes, |a| a.atomic(link, key, end - 7, add));
    assert_eq!(out, Direct::Refused(Status::OutOfBounds));
}

/// Memory of the library is mapped, and memory of the program is copied by the kernel. A key that
/// is not valid opens nothing.
#[test]
fn regions_are_reached_without_their_owner() {
    let (mut nodes, [link, _]) = pair();
    let mapped = nodes[1].it.allocate(5000, ALL).expect("memory");
    assert_eq!(mapped.len(), 5000);
    let brought = Memory::from_vec(vec![0; 3000]);
    let keys = [key_of(&nodes[1], 2, 77, 5000), key_of(&nodes[1], 9, 78, 3000)];
    nodes[1].it.export(keys[0], &mapped, ALL).expect("room");
    nodes[1].it.export(keys[1], &brought, ALL).expect("room");
    reach(&mut nodes, link, &mapped, keys[0], true);
    reach(&mut nodes, link, &brought, keys[1], false);
    let by_way = |node: &Node| {
        ["regions_mapped", "regions_attached", "regions_by_packet"].map(|row| node.counter(row))
    };
    assert_eq!(by_way(&nodes[0]), [1, 1, 0]);
    assert_eq!(nodes[1].it.wrong_keys(), 0);

    let wrong = RemoteKey { key: 79, ..keys[0] };
    for (number, key) in [wrong, RemoteKey { index: 3, ..keys[0] }].into_iter().enumerate() {
        let put = access(&mut nodes, |a| a.put(link, key, 0, View::of(b"!")));
        assert_eq!(put, Direct::Refused(Status::WrongKey));
        let told = number as u64 + 1;
        until(&mut nodes, "the owner counts it", |[_, b]| b.it.wrong_keys() == told);
    }
    // The one that is right still works.
    let put = access(&mut nodes, |a| a.put(link, keys[0], 0, View::of(b"!")));
    assert_eq!(put, Direct::Done(0));
    for key in keys {
        nodes[1].it.retract(key);
        let put = access(&mut nodes, |a| a.put(link, key, 0, View::of(b"!")));
        assert_eq!(put, Direct::Refused(Status::WrongKey));
        let got = access(&mut nodes, |a| a.get(link, key, 0, View::empty()));
        assert_eq!(got, Direct::Refused(Status::WrongKey));
    }
    assert_eq!(by_way(&nodes[0]), [0, 0, 0]);
    // Another region at the same place has its own key.
    let key = key_of(&nodes[1], 2, 80, 3000);
    nodes[1].it.export(key, &brought, ALL).expect("room");
    let stale = access(&mut nodes, |a| a.put(link, keys[0], 0, View::of(b"!")));
    assert_eq!(stale, Direct::Refused(Status::WrongKey));
    reach(&mut nodes, link, &brought, key, false);
}

/// Each right permits its own kind of access only.
#[test]
fn rights_are_checked() {
    let (mut nodes, [link, _]) = pair();
    let rights = [Rights::REMOTE_READ, Rights::REMOTE_WRITE, Rights::REMOTE_ATOMIC];
    for (number, right) in rights.into_iter().enumerate() {
        let index = number as u16;
        let memory = nodes[1].it.allocate(64, right).expect("memory");
        let key = key_of(&nodes[1], index, 77, 64);
        nodes[1].it.export(key, &memory, right).expect("room");
        let brought = Memory::from_vec(vec![0; 64]);
        let copied = RemoteKey { index: index + 3, ..key };
        nodes[1].it.export(copied, &brought, right).expect("room");
        for (key, is_mapped) in [(key, true), (copied, false)] {
            let mut into = [0; 8];
            let directs = [
                access(&mut nodes, |a| a.get(link, key, 0, View::of_mut(&mut into))),
                access(&mut nodes, |a| a.put(link, key, 0, View::of(b"12345678"))),
                access(&mut nodes, |a| a.atomic(link, key, 8, AtomicOperation::FetchAdd(1))),
            ];
            for (kind, direct) in directs.into_iter().enumerate() {
                let permitted = match (kind, is_mapped) {
                    (2, false) => Direct::ByPacket,
                    _ => Direct::Done(0),
                };
                let refused = Direct::Refused(Status::NotPermitted);
                let expected = if kind == number { permitted } else { refused };
                assert_eq!(direct, expected, "kind {kind} with {right:?}");
            }
        }
    }
}

/// A receiver serves its senders in proportion to their weights, and every one of them.
#[test]
fn senders_are_served_by_weight() {
    let job = job();
    let mut nodes: [Node; 4] =
        [(0, 16), (1, 16), (2, 32), (3, 64)].map(|(node, weight)| open(&job, node, weight));
    let to = nodes[0].address();
    let mut links = [LinkId(0); 4];
    for (node, link) in nodes.iter_mut().zip(&mut links).skip(1) {
        *link = node.it.link(to, PATIENCE).expect("a link");
    }
    until(&mut nodes, "all are up", |nodes| {
        (1..4).all(|number| nodes[number].it.is_up(links[number]))
    });
    // All of them have more to send than is served here.
    let fill = |nodes: &mut [Node; 4]| {
        for number in 1..4 {
            let node = &mut nodes[number].it;
            while node.send(links[number], header(0), b"", View::of(&[7; 2000])).is_ok() {}
        }
    };
    let since = Instant::now();
    while nodes[0].heard.packets.len() < 4000 {
        fill(&mut nodes);
        nodes[0].it.poll(&mut nodes[0].heard, 16);
        (1..4).for_each(|number| _ = nodes[number].poll());
        assert!(since.elapsed() < LONG, "{} of 4000", nodes[0].heard.packets.len());
    }
    let mut counts = [0; 4];
    for (_, from, ..) in nodes[0].heard.packets.iter().skip(1000) {
        counts[from.node as usize] += 1;
    }
    let [none, one, two, four] = counts;
    assert!(none == 0 && one > 0, "{counts:?}");
    let is_near = |count: i32, times: i32| (count - times * one).abs() <= times * one / 4;
    assert!(is_near(two, 2) && is_near(four, 4), "{counts:?}");
}

/// Many idle lanes are parked, so that a receiver polls a few; each of them wakes up again.
#[test]
fn many_idle_lanes_are_parked() {
    let job = job();
    let mut nodes: [Node; 13] = std::array::from_fn(|node| open(&job, node as u32, 16));
    let to = nodes[0].address();
    let free = nodes[0].counter("credit_chunks_free");
    let links: Vec<LinkId> =
        nodes[1..].iter_mut().map(|node| node.it.link(to, PATIENCE).expect("a link")).collect();
    until(&mut nodes, "all are up", |nodes| {
        nodes[1..].iter().zip(&links).all(|(node, link)| node.it.is_up(*link))
    });
    for round in 0..3 {
        for (node, link) in nodes[1..].iter_mut().zip(&links) {
            for _ in 0..5 {
                node.it.send(*link, header(round), b"", View::of(&[7; 100])).expect("room");
            }
        }
        let all = 12 * 5 * (round as usize + 1);
        until(&mut nodes, "all arrive", |nodes| nodes[0].heard.packets.len() >= all);
        assert_eq!(nodes[0].heard.packets.len(), all);
        until(&mut nodes, "they are parked", |nodes| nodes[0].counter("lanes_polled") <= 8);
        // What they had as credit comes back.
        until(&mut nodes, "all sleep", |nodes| nodes[0].it.arm());
        assert_eq!(nodes[0].counter("lanes_polled"), 0);
        assert_eq!(nodes[0].counter("credit_chunks_free"), free);
        assert_eq!(nodes[0].counter("lanes_waiting_for_credit"), 0);
    }
    assert!(nodes[0].counter("parks") >= 12);
}

/// Both ends ask at once, and one link comes of it.
#[test]
fn two_that_ask_at_once_have_one_link() {
    for _ in 0..5 {
        let job = job();
        let mut nodes = [open(&job, 0, 16), open(&job, 1, 16)];
        let [to_a, to_b] = nodes.each_ref().map(Node::address);
        let links = [
            nodes[0].it.link(to_b, PATIENCE).expect("a link"),
            nodes[1].it.link(to_a, PATIENCE).expect("a link"),
        ];
        until(&mut nodes, "both are up", |[a, b]| a.it.is_up(links[0]) && b.it.is_up(links[1]));
        for (number, link) in links.into_iter().enumerate() {
            nodes[number].it.send(link, header(7), b"", View::empty()).expect("room");
        }
        until(&mut nodes, "both hear", |nodes| {
            nodes.iter().all(|node| node.heard.packets.len() == 1)
        });
        for (number, node) in nodes.iter().enumerate() {
            assert_eq!(node.counter("links"), 1);
            assert_eq!(node.heard.packets[0].0, links[number]);
            assert!(node.heard.down.is_empty());
        }
    }
}

/// A function reaches itself.
#[test]
fn a_function_reaches_itself() {
    let mut nodes = [open(&job(), 0, 16)];
    let own = nodes[0].address();
    let link = nodes[0].it.link(own, PATIENCE).expect("a link");
    until(&mut nodes, "it is up", |[a]| a.it.is_up(link));
    for number in 0..100 {
        nodes[0].it.send(link, header(number), b"to me", View::empty()).expect("room");
    }
    until(&mut nodes, "all arrive", |[a]| a.heard.packets.len() >= 100);
    assert!(nodes[0].heard.packets.iter().all(|(_, from, ..)| *from == own));
}

/// Numbers of nodes are given out once, and are free again after their owner.
#[test]
fn nodes_have_one_owner() {
    let job = job();
    let join = |node| ShmDevice::open(&job, AccessMode::Owner, node);
    let first = join(None).expect("the first");
    let third = join(Some(2)).expect("the third");
    let second = join(None).expect("the second");
    let fourth = join(None).expect("the fourth");
    let numbers = [&first, &second, &third, &fourth].map(|device| device.node());
    assert_eq!(numbers, [0, 1, 2, 3]);
    let taken = join(Some(2)).err().expect("it is taken").to_string();
    assert!(taken.contains("node 2 is taken"), "{taken}");
    drop(second);
    assert_eq!(join(None).expect("it is free").node(), 1);
    assert!(matches!(join(Some(65_536)), Err(Error::OutOfRange { value: 65_536, .. })));
    assert_eq!(join(Some(65_535)).expect("the last").node(), 65_535);
    let bad = ShmDevice::open("a job/with a slash", AccessMode::Owner, None).err();
    assert!(matches!(bad, Some(Error::BadDeviceName { .. })), "{bad:?}");
    let said = first.describe();
    assert!(said.contains(&format!("node 0 of job {job}")) && said.contains("1024 KiB"), "{said}");
    // Processes that share a node have its functions one by one.
    let shared = [(); 2].map(|()| ShmDevice::share(&job, AccessMode::Owner, 70_000).expect("it"));
    let function = shared[0].open_function(1, 16).expect("it is free");
    let again = shared[1].open_function(1, 16).err();
    assert!(matches!(again, Some(Error::BadFunction { function: 1, .. })), "{again:?}");
    drop(function);
    shared[1].open_function(1, 16).expect("it is free again");
}

/// Runs a test in a child, which has one thread, and fails if it does not end in some seconds.
fn alone(test: fn()) {
    // SAFETY: the child runs the test and ends at once; no other test holds a lock that it takes.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::alarm(LONG.as_secs() as u32);
            let passes = std::panic::catch_unwind(test).is_ok();
            libc::_exit(i32::from(!passes));
        }
        let mut status = -1;
        assert_eq!(libc::waitpid(child, &mut status, 0), child);
        assert_eq!(status, 0, "how the child ended, as wait(2) says it");
    }
}

/// Memory of the program is mapped while it is shared, and otherwise copied by the kernel.
#[test]
fn shared_memory_of_the_program_is_mapped() {
    alone(|| {
        let (mut nodes, [link, _]) = pair();
        let memory = Memory::from_vec(vec![0; 1 << 20]);
        let long = key_of(&nodes[1], 5, 76, memory.len());
        let by_way = |nodes: &mut [Node; 2], index| {
            let key = key_of(&nodes[1], index, 77, memory.len());
            nodes[1].it.export(key, &memory, ALL).expect("room");
            let put = access(nodes, |a| a.put(link, key, 5000, View::of(b"words")));
            assert_eq!(put, Direct::Done(0));
            // All of it, with what lies beside whole pages.
            let (sent, mut got) = (payload(index.into(), memory.len()), vec![0; memory.len()]);
            let put = access(nodes, |a| a.put(link, key, 0, View::of(&sent)));
            let get = access(nodes, |a| a.get(link, key, 0, View::of_mut(&mut got)));
            assert_eq!((put, get, sent == got), (Direct::Done(0), Direct::Done(0), true));
            assert!(memory.view().to_vec() == sent);
            let by_way = ["regions_mapped", "regions_attached"].map(|row| nodes[0].counter(row));
            nodes[1].it.retract(key);
            by_way
        };
        assert_eq!(by_way(&mut nodes, 0), [0, 1]);
        nodes[1].it.share(long, &memory, ALL);
        assert_eq!(by_way(&mut nodes, 1), [1, 1]);
        nodes[1].it.unshare(long);
        assert_eq!(by_way(&mut nodes, 2), [1, 2]);
    });
}
