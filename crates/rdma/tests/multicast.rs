//! Datagrams to groups: who gets them, and what strangers can do.

use bellwire_rdma::{
    Access, Adapter, Attributes, Bytes, Capacity, Cause, CqId, Datagram, GROUP_QUEUE_PAIR, GROUPS,
    MEMBERS, MULTICAST_PORT, Mask, Operation, QpState, QueuePairOptions, Refusal, SendRequest,
    Service, Sge, WorkCompletion, WorkOpcode, WorkStatus, work_flag,
};
use std::fs::OpenOptions;
use std::io::Write;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::unix::fs::OpenOptionsExt;
use std::time::{Duration, Instant};

const HOST: Ipv4Addr = Ipv4Addr::LOCALHOST;
const KEY: u32 = 0x1234;
const GRH: usize = 40;
/// Bytes of each receive.
const ROOM: usize = GRH + 4096;
const RECEIVES: usize = 8;

/// A group of this process and this test alone.
fn group(test: u8) -> Ipv4Addr {
    let [.., high, low] = std::process::id().to_be_bytes();
    Ipv4Addr::new(239, high, low, test)
}

/// An adapter with one queue pair for datagrams.
struct Side {
    adapter: Adapter,
    options: QueuePairOptions,
    queue: CqId,
    number: u32,
    key: u32,
    /// Freed after the adapter: fields drop in order.
    memory: Vec<u8>,
}

impl Side {
    fn new(device: &str) -> Side {
        let mut adapter = Adapter::open(device).unwrap();
        let domain = adapter.create_domain().unwrap();
        let queue = adapter.create_queue(1024, None, 0).unwrap();
        let options = QueuePairOptions {
            service: Service::Datagram,
            domain,
            send_queue: queue,
            receive_queue: queue,
            shared: None,
            capacity: Capacity {
                sends: 64,
                receives: 64,
                send_parts: 1,
                receive_parts: 1,
                inline_bytes: 64,
            },
            signal_all: true,
            object: 1,
        };
        let mut memory = vec![0; RECEIVES * ROOM + 8192];
        let (start, length) = (memory.as_mut_ptr(), memory.len());
        let base = start as u64;
        // SAFETY: the memory outlives the adapter, and is only read here.
        let key = unsafe { adapter.register(domain, start, length, base, Access::LOCAL_WRITE) };
        let key = key.unwrap();
        let mut side = Side { adapter, options, queue, number: 0, key, memory };
        side.number = side.queue_pair(Service::Datagram);
        side
    }

    /// Another queue pair, which is ready to send if it is for datagrams.
    fn queue_pair(&mut self, service: Service) -> u32 {
        let options = QueuePairOptions { service, ..self.options };
        let number = self.adapter.create_queue_pair(&options).unwrap();
        if service == Service::Datagram {
            let (mut new, _) = self.adapter.query(number).unwrap();
            let states = [QpState::Init, QpState::ReadyToReceive, QpState::ReadyToSend];
            let masks = [Mask::PKEY_INDEX | Mask::PORT | Mask::QKEY, Mask::empty(), Mask::SEND_PSN];
            for (state, mask) in states.into_iter().zip(masks) {
                new = Attributes { state, qkey: KEY, port: 1, ..new };
                self.adapter.modify(number, Mask::STATE | mask, &new).unwrap();
            }
        }
        number
    }

    fn part(&self, at: usize, length: usize) -> Sge {
        let address = self.memory.as_ptr() as u64 + at as u64;
        Sge { address, length: length as u32, key: self.key }
    }

    /// Posts the receive with number `place`, of a certain room.
    fn receive(&mut self, number: u32, place: usize, room: usize) {
        let part = self.part(place * ROOM, room);
        self.adapter.post_receive(number, place as u64, &[part]).unwrap();
    }

    fn received(&self, place: usize, length: usize) -> &[u8] {
        &self.memory[place * ROOM..][..length]
    }

    /// Sends from the start of the memory behind all receives.
    fn send(&mut self, to: Datagram, length: usize, immediate: Option<u32>) {
        let part = [self.part(RECEIVES * ROOM, length)];
        let request = SendRequest {
            id: 99,
            operation: Operation::Send { immediate, invalidate: None },
            bytes: Bytes::Listed(&part),
            signaled: true,
            solicited: false,
            fence: false,
            to: Some(to),
        };
        self.adapter.post_send(self.number, &request).unwrap();
    }

    /// Sends a few bytes that say which message it is.
    fn say(&mut self, to: Datagram, text: &str) {
        let request = SendRequest {
            id: 99,
            operation: Operation::Send { immediate: None, invalidate: None },
            bytes: Bytes::Inline(text.as_bytes()),
            signaled: true,
            solicited: false,
            fence: false,
            to: Some(to),
        };
        self.adapter.post_send(self.number, &request).unwrap();
    }

    fn next(&mut self) -> WorkCompletion {
        let started = Instant::now();
        loop {
            if let Some(done) = self.adapter.poll(self.queue) {
                return done;
            }
            assert!(started.elapsed() < limit(), "no completion came");
            std::thread::yield_now();
        }
    }

    /// The next completion of a receive.
    fn next_received(&mut self) -> WorkCompletion {
        loop {
            let done = self.next();
            if done.opcode == WorkOpcode::Receive {
                return done;
            }
            assert_eq!(done.status, WorkStatus::Success, "{done:?}");
        }
    }

    /// What the next message says.
    fn next_text(&mut self) -> String {
        let done = self.next_received();
        assert_eq!(done.status, WorkStatus::Success, "{done:?}");
        let bytes = self.received(done.id as usize, done.length as usize);
        String::from_utf8(bytes[GRH..].to_vec()).unwrap()
    }
}

/// How long a completion may take. A planted fault keeps it away.
fn limit() -> Duration {
    Duration::from_secs(if std::env::var_os("BELLWIRE_CANARY").is_some() { 5 } else { 60 })
}

fn device() -> String {
    format!("udp:{HOST}")
}

fn to(host: Ipv4Addr) -> Datagram {
    Datagram { host, queue_pair: GROUP_QUEUE_PAIR, key: KEY }
}

/// Each attached queue pair of each context gets one copy, the sender too, with the group in its
/// route header; others get none.
#[test]
fn each_attached_queue_pair_gets_a_copy() {
    let group = group(1);
    let (mut one, mut two, mut outside) =
        (Side::new(&device()), Side::new(&device()), Side::new(&device()));
    let second = one.queue_pair(Service::Datagram);
    for (side, number) in [(&mut one, None), (&mut two, None), (&mut outside, None)] {
        side.receive(number.unwrap_or(side.number), 0, ROOM);
        side.receive(number.unwrap_or(side.number), 1, ROOM);
    }
    one.receive(second, 2, ROOM);
    one.receive(second, 3, ROOM);
    for number in [one.number, second] {
        one.adapter.attach(number, group).unwrap();
        // Once more changes nothing.
        one.adapter.attach(number, group).unwrap();
    }
    two.adapter.attach(two.number, group).unwrap();

    for (at, byte) in one.memory[RECEIVES * ROOM..].iter_mut().enumerate() {
        *byte = at as u8;
    }
    let sent: Vec<u8> = one.memory[RECEIVES * ROOM..][..4096].to_vec();
    one.send(to(group), 4096, Some(7));
    one.send(to(group), 0, None);
    let source = one.number;
    let mut copies = Vec::new();
    for side in [&mut one, &mut two] {
        let expected = if side.number == source { 4 } else { 2 };
        for _ in 0..expected {
            let done = side.next_received();
            assert_eq!((done.status, done.source), (WorkStatus::Success, source), "{done:?}");
            assert_ne!(done.flags & work_flag::GRH, 0);
            let bytes = side.received(done.id as usize, done.length as usize);
            assert_eq!(bytes[32..36], HOST.octets(), "the source of the route header");
            assert_eq!(bytes[36..40], group.octets(), "its destination");
            if done.flags & work_flag::IMMEDIATE != 0 {
                assert_eq!((done.word, &bytes[GRH..]), (7, &sent[..]));
            } else {
                assert_eq!(done.length as usize, GRH);
            }
            copies.push((done.queue_pair, done.length));
        }
    }
    let mut expected = Vec::new();
    for number in [one.number, second, two.number] {
        expected.extend([(number, GRH as u32), (number, ROOM as u32)]);
    }
    copies.sort_unstable();
    expected.sort_unstable();
    assert_eq!(copies, expected);
    assert_eq!(outside.adapter.poll(outside.queue), None);
}

/// A wrong key, a queue pair without a receive, one that is detached and a wrong number each mean
/// that a datagram is dropped, and the next one comes.
#[test]
fn what_nobody_waits_for_is_dropped() {
    let group = group(2);
    let (mut sender, mut receiver) = (Side::new(&device()), Side::new(&device()));
    let number = receiver.number;
    receiver.adapter.attach(number, group).unwrap();
    sender.say(to(group), "without a receive");
    // What is sent to oneself as well says when the first one is over.
    sender.adapter.attach(sender.number, group).unwrap();
    sender.receive(sender.number, 0, ROOM);
    sender.say(to(group), "second");
    assert_eq!(sender.next_text(), "second");
    while receiver.adapter.progress() > 0 {}

    receiver.receive(number, 0, ROOM);
    receiver.receive(number, 1, ROOM);
    sender.say(Datagram { key: KEY + 1, ..to(group) }, "wrong key");
    sender.say(Datagram { queue_pair: number, ..to(group) }, "wrong number");
    // The upper bit asks for the sender's own key.
    sender.say(Datagram { key: 0x8000_0000, ..to(group) }, "own key");
    assert_eq!(receiver.next_text(), "own key");

    receiver.adapter.detach(number, group).unwrap();
    sender.say(to(group), "detached");
    receiver.adapter.attach(number, group).unwrap();
    sender.say(to(group), "attached again");
    assert_eq!(receiver.next_text(), "attached again");
}

/// A datagram that is longer than the receive fails the queue pair, and one above the MTU the
/// request.
#[test]
fn lengths_are_checked() {
    let group = group(3);
    let mut side = Side::new(&device());
    let number = side.number;
    side.adapter.attach(number, group).unwrap();
    side.send(to(group), 4097, None);
    assert_eq!(side.next().status, WorkStatus::LocalLength);
    let mut side = Side::new(&device());
    let number = side.number;
    side.adapter.attach(number, group).unwrap();
    side.receive(number, 0, GRH + 10);
    side.send(to(group), 11, None);
    let done = side.next_received();
    assert_eq!((done.status, done.cause), (WorkStatus::LocalLength, Cause::TooLong));
    assert_eq!(side.adapter.query(number).unwrap().0.state, QpState::Error);
}

/// A queue pair that wants none of its own datagrams gets those of others.
#[test]
fn own_datagrams_are_ignored_on_request() {
    let group = group(7);
    let (mut one, mut two) = (Side::new(&device()), Side::new(&device()));
    for side in [&mut one, &mut two] {
        side.adapter.attach(side.number, group).unwrap();
        side.adapter.ignore_own(side.number);
        side.receive(side.number, 0, ROOM);
    }
    one.say(to(group), "one");
    assert_eq!(two.next_text(), "one");
    two.say(to(group), "two");
    assert_eq!(one.next_text(), "two");
}

/// Calls are refused as their manual pages say, and nothing is left of a group without members.
#[test]
fn wrong_calls_are_refused() {
    let group = group(4);
    let mut side = Side::new(&device());
    let (number, connected) = (side.number, side.queue_pair(Service::ReliableConnection));
    let adapter = &mut side.adapter;
    let is_invalid = |result| matches!(result, Err(Refusal::Invalid(_)));
    assert!(is_invalid(adapter.attach(connected, group)));
    assert!(is_invalid(adapter.attach(number, HOST)));
    assert!(is_invalid(adapter.attach(number + 1, group)));
    assert!(is_invalid(adapter.detach(number, group)));
    adapter.attach(number, group).unwrap();
    assert!(matches!(adapter.destroy_queue_pair(number), Err(Refusal::Busy(_))));
    adapter.detach(number, group).unwrap();
    assert!(is_invalid(adapter.detach(number, group)));
    adapter.destroy_queue_pair(number).unwrap();
}

/// There are limits, and what ends makes room.
#[test]
fn there_are_limits() {
    let mut side = Side::new(&device());
    let number = side.number;
    let [.., high, low] = std::process::id().to_be_bytes();
    let groups: Vec<Ipv4Addr> =
        (0..=GROUPS as u8).map(|last| Ipv4Addr::new(238, high, low, last)).collect();
    for group in &groups[..GROUPS] {
        side.adapter.attach(number, *group).unwrap();
    }
    assert!(matches!(side.adapter.attach(number, groups[GROUPS]), Err(Refusal::Full(_))));
    side.adapter.detach(number, groups[1]).unwrap();
    side.adapter.attach(number, groups[GROUPS]).unwrap();
    for _ in 1..MEMBERS {
        let member = side.queue_pair(Service::Datagram);
        side.adapter.attach(member, groups[0]).unwrap();
    }
    let member = side.queue_pair(Service::Datagram);
    assert!(matches!(side.adapter.attach(member, groups[0]), Err(Refusal::Full(_))));
}

/// Bytes of strangers are dropped, however near they come to a frame, and the next datagram comes.
#[test]
fn strangers_are_not_heard() {
    let group = group(5);
    let (mut sender, mut receiver) = (Side::new(&device()), Side::new(&device()));
    let number = receiver.number;
    receiver.adapter.attach(number, group).unwrap();
    for place in 0..RECEIVES {
        receiver.receive(number, place, ROOM);
    }
    // A frame, as it is on the line.
    let listener = listener(group);
    sender.say(to(group), "a frame");
    let mut frame = vec![0; 5000];
    let length = listener.recv(&mut frame).unwrap();
    frame.truncate(length);
    assert_eq!(receiver.next_text(), "a frame");

    let stranger = UdpSocket::bind((HOST, 0)).unwrap();
    rustix::net::sockopt::set_ip_multicast_if(&stranger, &HOST).unwrap();
    let say = |bytes: &[u8]| {
        stranger.send_to(bytes, (group, MULTICAST_PORT)).unwrap();
    };
    for length in 0..frame.len() {
        say(&frame[..length]);
    }
    for bit in 0..frame.len() * 8 {
        let mut bytes = frame.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        say(&bytes);
        if bit % 16 == 0 {
            receiver.adapter.progress();
        }
    }
    // Fields that are wrong, with a check value that fits: see `multicast/frame.rs`.
    let changes = [(0, b'b'), (3, 0), (4, 0), (4, 2), (5, 4), (5, 0x80), (6, 6), (7, 1), (11, 1)];
    for (at, value) in changes {
        let mut bytes = frame.clone();
        bytes[at] = value;
        let check = crc32c::crc32c_append(crc32c::crc32c(&bytes[..20]), &bytes[24..]);
        bytes[20..24].copy_from_slice(&check.to_le_bytes());
        say(&bytes);
        receiver.adapter.progress();
    }
    say(&[frame.clone(), vec![0]].concat());
    say(&vec![0; 60_000]);
    while receiver.adapter.progress() > 0 {}
    sender.say(to(group), "after strangers");
    assert_eq!(receiver.next_text(), "after strangers");
    // Whoever knows the Q_Key is heard, as on a wire of cards: docs/threat-model.md.
    say(&frame);
    assert_eq!(receiver.next_text(), "a frame");
}

/// A socket in a group.
fn listener(group: Ipv4Addr) -> UdpSocket {
    use rustix::net::{AddressFamily, SocketType, bind, socket, sockopt};
    let made = socket(AddressFamily::INET, SocketType::DGRAM, None).unwrap();
    sockopt::set_socket_reuseaddr(&made, true).unwrap();
    bind(&made, &std::net::SocketAddrV4::new(group, MULTICAST_PORT)).unwrap();
    let made = UdpSocket::from(made);
    made.join_multicast_v4(&group, &HOST).unwrap();
    made.set_read_timeout(Some(limit())).unwrap();
    made
}

/// A device says that it carries no groups, to receivers and to senders.
fn refuses(device: &str) {
    let mut side = Side::new(device);
    let number = side.number;
    assert!(!side.adapter.has_multicast());
    let refused = side.adapter.attach(number, group(6));
    assert!(matches!(refused, Err(Refusal::Unsupported(_))), "{refused:?}");
    side.say(to(group(6)), "nobody");
    let done = side.next();
    assert_eq!((done.status, done.cause), (WorkStatus::LocalQueuePairOperation, Cause::Device));
}

/// A device without an address carries no groups.
#[test]
fn devices_without_addresses_refuse() {
    refuses(&format!("shm:rdma-multicast-{}", std::process::id()));
}

/// A device with a key carries no groups, because what goes to them is not sealed.
#[test]
fn devices_with_a_key_refuse() {
    let key = std::env::temp_dir().join(format!("rdma-multicast-{}.key", std::process::id()));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&key).unwrap();
    writeln!(file, "shared {:064}", 1).unwrap();
    refuses(&format!("udp:127.0.0.1?key={}", key.display()));
    std::fs::remove_file(&key).unwrap();
}

/// Each fault that is planted makes a test above fail, and without one they pass.
#[cfg(feature = "canaries")]
mod canaries {
    use std::process::Command;

    fn passes(test: &str, fault: Option<&str>) -> bool {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", test]).env_remove("BELLWIRE_CANARY");
        command.envs(fault.map(|fault| ("BELLWIRE_CANARY", fault)));
        let output = command.output().expect("this program can be executed");
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(printed.contains("running 1 test"), "no test is called {test}: {printed}");
        output.status.success()
    }

    /// Each check of a frame is missed when it is gone, and so is a copy.
    #[test]
    fn missing_checks_are_noticed() {
        let parser = ["magic", "version", "flags", "length", "source", "check"];
        let tries = parser.map(|check| (format!("multicast-{check}"), "strangers_are_not_heard"));
        let copies = ("multicast-first-only".to_owned(), "each_attached_queue_pair_gets_a_copy");
        for test in ["strangers_are_not_heard", "each_attached_queue_pair_gets_a_copy"] {
            assert!(passes(test, None), "{test} fails although nothing is planted");
        }
        for (fault, test) in tries.into_iter().chain([copies]) {
            assert!(!passes(test, Some(&fault)), "{test} does not notice {fault}");
        }
    }
}
