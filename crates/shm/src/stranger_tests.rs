//! What a function does with connections that are no proper peers.

use crate::control::{Control, Introduction, Refused, VERSION};
use crate::key::{KeyHash, RegionInfo};
use crate::layout::{GATES, GEOMETRY, LINKS, REGIONS};
use crate::mapping::{self, Sharing};
use crate::name::Job;
use crate::pending_peers::{BURST, PENDING_OF_USER, TICK};
use crate::socket;
use crate::testing::{self, Intruder, Reply};
use crate::transport::ShmTransport;
use crate::{NODES, ShmDevice};
use bellwire_device::{
    AccessMode, Direct, Error, FunctionAddress, LinkId, NodeInfo, RemoteKey, Rights, Sink, Status,
    Transport, Verdict,
};
use bellwire_ring::lane::Sent;
use bellwire_ring::memory::View;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(8);
/// A user who runs no test.
const ANOTHER: u32 = 65_533;
const FROM: FunctionAddress = FunctionAddress { node: NODES - 1, function: 2 };

/// Notes the links that go down, and takes and counts all packets.
#[derive(Default)]
struct Downs(Vec<(LinkId, FunctionAddress, Status)>, usize);

impl Sink for Downs {
    fn packet(&mut self, _: LinkId, _: FunctionAddress, _: [u64; 3], _: View<'_>) -> Verdict {
        self.1 += 1;
        Verdict::Taken
    }

    fn link_down(&mut self, link: LinkId, peer: FunctionAddress, why: Status) {
        self.0.push((link, peer, why));
    }
}

/// A function, and the name of its job.
struct Host {
    job: String,
    it: ShmTransport,
    downs: Downs,
}

impl Host {
    fn new() -> Host {
        static JOBS: AtomicU32 = AtomicU32::new(0);
        let number = JOBS.fetch_add(1, Ordering::Relaxed);
        let job = format!("stranger-{}-{number}", std::process::id());
        let device = ShmDevice::open(&job, AccessMode::Owner, Some(0)).expect("the job is ours");
        let it = device.open_function(1, 16).expect("a function");
        Host { job, it, downs: Downs::default() }
    }

    fn counter(&self, name: &str) -> u64 {
        self.it.counter_rows().into_iter().find(|(row, _)| *row == name).expect(name).1
    }

    fn intruder(&self) -> Intruder {
        let connected = Intruder::connect(&self.job, self.it.address()).expect("memory");
        connected.expect("somebody listens")
    }

    /// Polls until it is so.
    #[track_caller]
    fn until(&mut self, what: &str, mut is: impl FnMut(&mut Host) -> bool) {
        let since = Instant::now();
        while !is(self) {
            self.it.poll(&mut self.downs, 64);
            assert!(since.elapsed() < LONG, "{what}");
        }
    }

    #[track_caller]
    fn replies(&mut self, intruder: &mut Intruder, expected: Reply) {
        let mut reply = Reply::Nothing;
        self.until("a reply", |_| {
            reply = intruder.read();
            reply != Reply::Nothing
        });
        assert_eq!(reply, expected);
    }
}

fn introduction() -> Introduction {
    Introduction {
        version: VERSION,
        node: FROM.node,
        function: FROM.function,
        weight: 1,
        pool_chunks: GEOMETRY.pool_chunks as u32,
        gates: GATES as u32,
        regions: REGIONS as u32,
        ..Introduction::default()
    }
}

fn say(intruder: &Intruder, message: Control, fds: &[BorrowedFd<'_>]) {
    let socket = intruder.socket().try_clone_to_owned().expect("a descriptor");
    socket::send(&socket, message, fds).expect("room");
}

fn hello(intruder: &Intruder, peer: Introduction) {
    say(intruder, Control::Hello(peer), &intruder.descriptors());
}

/// A connection that says nothing is kept for a while, and is a peer as soon as it says Hello.
#[test]
fn a_silent_connection_may_still_become_a_peer() {
    let mut host = Host::new();
    let mut intruder = host.intruder();
    host.until("it is kept", |host| host.counter("silent_connections") == 1);
    assert_eq!(host.counter("links"), 0);
    hello(&intruder, introduction());
    host.replies(&mut intruder, Reply::Welcome);
    assert_eq!((host.counter("silent_connections"), host.counter("links")), (0, 1));
    assert_eq!((host.counter("refused_links"), host.counter("violations")), (0, 0));
    drop(intruder);
    host.until("it is missed", |host| !host.downs.0.is_empty());
    let (link, from, why) = host.downs.0[0];
    assert_eq!((from, why), (FROM, Status::PeerGone));
    host.it.close(link);
    assert_eq!(host.counter("links"), 0);
    // One that stays silent is closed, and so are all but the newest of a user.
    let mut silent: Vec<Intruder> = (0..=PENDING_OF_USER).map(|_| host.intruder()).collect();
    host.until("the oldest goes", |host| host.counter("silent_connections_closed") == 1);
    host.replies(&mut silent[0], Reply::Closed);
    host.until("all go", |host| host.counter("silent_connections") == 0);
    assert_eq!(host.counter("silent_connections_closed"), 1 + PENDING_OF_USER as u64);
    host.replies(&mut silent[PENDING_OF_USER], Reply::Closed);
    assert_eq!(host.counter("listener_pauses"), 0, "so few are no burst");
}

/// What is no proper Hello makes no link, and is counted.
#[test]
fn improper_first_messages_are_refused() {
    let mut host = Host::new();
    // Another version is told ours.
    let mut other = host.intruder();
    hello(&other, Introduction { version: VERSION + 1, ..introduction() });
    host.replies(&mut other, Reply::Other);
    assert_eq!((host.counter("refused_links"), host.counter("links")), (1, 0));
    host.replies(&mut other, Reply::Closed);
    // Another message, and no message at all.
    for count in 1..=2 {
        let mut bad = host.intruder();
        if count == 1 {
            say(&bad, Control::Kick, &[]);
        } else {
            rustix::io::write(bad.socket(), b"no message").expect("room");
        }
        host.replies(&mut bad, Reply::Closed);
        assert_eq!(host.counter("violations"), count);
    }
    assert_eq!((host.counter("refused_links"), host.counter("links")), (1, 0));
    // Memory of another shape, and descriptors that are missing.
    let good = introduction();
    let shapes = [
        Introduction { pool_chunks: good.pool_chunks + 1, ..good },
        Introduction { gates: good.gates - 1, ..good },
        Introduction { regions: good.regions + 1, ..good },
        Introduction { lane: LINKS as u32, ..good },
        good,
    ];
    for (number, shape) in shapes.into_iter().enumerate() {
        let mut bad = host.intruder();
        match number {
            4 => say(&bad, Control::Hello(shape), &bad.descriptors()[..2]),
            _ => hello(&bad, shape),
        }
        host.replies(&mut bad, Reply::Closed);
        host.until("it is told", |host| host.downs.0.len() > number);
        let (link, from, why) = host.downs.0[number];
        assert_eq!((from, why), (FROM, Status::ProtocolViolation), "shape {number}");
        host.it.close(link);
        assert_eq!(host.counter("violations"), 3 + number as u64);
    }
    assert_eq!(host.counter("links"), 0);
    // The last lane that there is is a proper one.
    let mut proper = host.intruder();
    hello(&proper, Introduction { lane: LINKS as u32 - 1, ..good });
    host.replies(&mut proper, Reply::Welcome);
}

/// The address of a peer that is alive belongs to it. Nobody is welcomed in our own name.
#[test]
fn impostors_are_refused() {
    let mut host = Host::new();
    let mut first = host.intruder();
    hello(&first, Introduction { probe_value: 7, ..introduction() });
    host.replies(&mut first, Reply::Welcome);
    let mut impostor = host.intruder();
    hello(&impostor, Introduction { probe_value: 8, ..introduction() });
    host.replies(&mut impostor, Reply::Closed);
    assert_eq!((host.counter("refused_links"), host.counter("links")), (1, 1));
    // The same opening asks a second time: that is its own attempt, which crossed ours.
    let mut crossed = host.intruder();
    hello(&crossed, Introduction { probe_value: 7, ..introduction() });
    host.replies(&mut crossed, Reply::Other);
    assert_eq!((host.counter("refused_links"), host.counter("links")), (1, 1));
    assert!(host.downs.0.is_empty());
    // Once it is gone, another may have the address.
    drop(first);
    host.until("it is missed", |host| !host.downs.0.is_empty());
    let mut next = host.intruder();
    hello(&next, Introduction { probe_value: 8, ..introduction() });
    host.replies(&mut next, Reply::Welcome);
}

/// Messages that do not belong on a link that is up end it, and are counted once.
#[test]
fn improper_messages_end_a_link() {
    for number in 0..4 {
        let mut host = Host::new();
        let mut peer = host.intruder();
        hello(&peer, introduction());
        host.replies(&mut peer, Reply::Welcome);
        match number {
            0 => hello(&peer, introduction()),
            1 => say(&peer, Control::Welcome(introduction()), &peer.descriptors()[1..]),
            2 => say(&peer, Control::Refuse(Refused::Crossed, VERSION), &[]),
            _ => _ = rustix::io::write(peer.socket(), b"no message").expect("room"),
        }
        host.until("it is told", |host| !host.downs.0.is_empty());
        assert_eq!(host.downs.0[0].2, Status::ProtocolViolation, "message {number}");
        assert_eq!((host.counter("violations"), host.counter("refused_links")), (1, 0));
        host.replies(&mut peer, Reply::Closed);
        // Its lane stays reserved until it has hung up.
        host.it.close(host.downs.0[0].0);
        assert_eq!(host.counter("links"), 1);
        // Until then nothing that it says counts.
        say(&peer, Control::Ask { index: 3, key: 77 }, &[]);
        rustix::io::write(peer.socket(), b"no message").expect("room");
        drop(peer);
        host.until("it is forgotten", |host| host.counter("links") == 0);
        assert_eq!(host.downs.0.len(), 1);
        assert_eq!((host.counter("violations"), host.it.wrong_keys()), (1, 0));
    }
}

/// Questions for keys that are not valid are answered, and counted.
#[test]
fn wrong_keys_are_answered() {
    let mut host = Host::new();
    let mut peer = host.intruder();
    hello(&peer, introduction());
    host.replies(&mut peer, Reply::Welcome);
    say(&peer, Control::Ask { index: 3, key: 77 }, &[]);
    host.replies(&mut peer, Reply::Other);
    assert_eq!(host.it.wrong_keys(), 1);
    say(&peer, Control::WrongKey { index: 3 }, &[]);
    host.until("it counts", |host| host.it.wrong_keys() == 2);
    // An answer that nobody asked for changes nothing.
    say(&peer, Control::Answer { index: 3, key: 77, length: 8, writable: true }, &[]);
    say(&peer, Control::Kick, &[]);
    for _ in 0..2000 {
        host.it.poll(&mut host.downs, 64);
    }
    assert!(host.downs.0.is_empty());
}

/// A peer that grants puts, and then hands over memory that may not be written, gets its puts as
/// packets: nothing panics.
#[test]
fn an_answer_that_contradicts_the_board_counts_as_no_memory() {
    for writable in [false, true] {
        let mut host = Host::new();
        let mut peer = host.intruder();
        let board = peer.board();
        let key =
            RemoteKey { node: FROM.node, function: FROM.function, index: 3, key: 9, length: 64 };
        let rights = Rights::REMOTE_WRITE;
        let region = RegionInfo { address: 4096, length: 64, rights, mappable: true };
        board.post(3, KeyHash::of(key).mask(region));
        hello(&peer, introduction());
        host.replies(&mut peer, Reply::Welcome);
        let link = host.it.link(FROM, LONG).expect("it is there");
        let put = |host: &mut Host| host.it.put(link, key, 8, View::of(&[1; 8]));
        assert!(matches!(put(&mut host), Direct::Pending));
        host.replies(&mut peer, Reply::Other);
        let memory = mapping::create("region", 64, 64, Sharing::ReadWrite).expect("memory");
        let answer = Control::Answer { index: 3, key: 9, length: 64, writable };
        say(&peer, answer, &[memory.fd.as_fd()]);
        let mut done = Direct::Pending;
        host.until("an answer", |host| {
            done = put(host);
            !matches!(done, Direct::Pending)
        });
        assert_eq!(matches!(done, Direct::Done(_)), writable, "{done:?}");
        assert_eq!(host.it.window(link, key).is_some(), writable);
        assert!(host.it.window(link, RemoteKey { key: 8, ..key }).is_none());
        let expected = if writable { [1; 8] } else { [0; 8] };
        assert_eq!(memory.memory.view().part(8, 8).expect("it has 64").to_vec(), expected);
    }
}

/// A flood of connections makes the listener rest, for a tick, and a proper peer still gets in.
#[test]
fn a_flood_makes_the_listener_rest() {
    let mut host = Host::new();
    let name =
        Job::new(&host.job, AccessMode::Owner).expect("a name").function_socket(host.it.address());
    let (mut flood, mut last) = (Vec::new(), None);
    host.until("it rests", |host| {
        // All within a tick, unless the machine is busy: then some time later again. They are far
        // fewer than a tick accepts, and the last check finds the queue empty.
        if last.is_none_or(|last: Instant| last.elapsed() >= 2 * TICK) {
            last = Some(Instant::now());
            flood.extend((0..=2 * BURST).filter_map(|_| socket::connect(&name).ok()));
        }
        host.counter("listener_pauses") >= 1
    });
    drop(flood);
    let mut peer = None;
    host.until("there is room in the queue", |host| {
        peer = Intruder::connect(&host.job, host.it.address()).expect("memory");
        peer.is_some()
    });
    let mut peer = peer.expect("it is connected");
    hello(&peer, introduction());
    host.replies(&mut peer, Reply::Welcome);
    assert_eq!(host.counter("links"), 1);
}

/// Both sides connect at once: the attempt of the lower address stands, and the other one is told
/// so.
#[test]
fn attempts_that_cross_make_one_link() {
    let mut host = Host::new();
    host.it.link(FROM, LONG).expect("an attempt");
    let mut higher = host.intruder();
    hello(&higher, introduction());
    host.replies(&mut higher, Reply::Other);
    assert_eq!((host.counter("refused_links"), host.counter("links")), (0, 1));
    let lower = FunctionAddress { node: 0, function: 0 };
    host.it.link(lower, LONG).expect("an attempt");
    let mut first = host.intruder();
    hello(&first, Introduction { node: lower.node, function: lower.function, ..introduction() });
    host.replies(&mut first, Reply::Welcome);
    assert_eq!((host.counter("refused_links"), host.counter("links")), (0, 2));
    assert!(host.downs.0.is_empty());
}

/// An attempt that nobody answers ends with its patience, and is told once.
#[test]
fn an_attempt_has_an_end() {
    let mut host = Host::new();
    let link = host.it.link(FROM, Duration::from_millis(50)).expect("an attempt");
    host.until("it is told", |host| !host.downs.0.is_empty());
    assert_eq!(host.downs.0, [(link, FROM, Status::Unreachable)]);
    host.it.close(link);
    assert_eq!((host.counter("links"), host.counter("violations")), (0, 0));
}

/// A packet of a peer that ends before it can ring is delivered, before its end is told.
#[test]
fn a_packet_without_a_bell_is_delivered() {
    let mut host = Host::new();
    let mut peer = host.intruder();
    hello(&peer, introduction());
    host.replies(&mut peer, Reply::Welcome);
    let mut sender = peer.sender().expect("it is welcome");
    let sent = sender.send([0; 3], &[], View::empty(), || true);
    assert_eq!(sent, Ok(Sent::Ring), "nobody polls the lane");
    for _ in 0..1_000 {
        host.it.poll(&mut host.downs, 64);
    }
    assert_eq!(host.downs.1, 0);
    drop(peer);
    host.until("its end is told", |host| !host.downs.0.is_empty());
    assert_eq!(host.downs.1, 1);
}

/// Finds that each packet breaks the rules.
struct Refusing;

impl Sink for Refusing {
    fn packet(&mut self, _: LinkId, _: FunctionAddress, _: [u64; 3], _: View<'_>) -> Verdict {
        Verdict::Violation
    }

    fn link_down(&mut self, _: LinkId, _: FunctionAddress, _: Status) {}
}

/// A sender whose packet broke the rules may be in the middle of the next one. So its credit is not
/// given to others before it hangs up, not even if its bell comes late.
#[test]
fn an_expelled_sender_keeps_its_credit_until_it_hangs_up() {
    let mut host = Host::new();
    let mut peer = host.intruder();
    hello(&peer, introduction());
    host.replies(&mut peer, Reply::Welcome);
    let mut sender = peer.sender().expect("it is welcome");
    let mut send = || {
        let sent = sender.send([0; 3], &[], View::empty(), || true);
        if sent.expect("room") == Sent::Ring {
            peer.ring(0);
        }
    };
    let free = |host: &Host| host.counter("credit_chunks_free");
    let all = free(&host);
    let mut count = 0;
    host.until("it has credit", |host| {
        send();
        count += 1;
        free(host) < all
    });
    host.until("all is taken", |host| host.downs.1 == count);
    let held = all - free(&host);
    send();
    peer.ring(0);
    for _ in 0..1_000 {
        host.it.poll(&mut Refusing, 64);
        assert_eq!(all - free(&host), held);
    }
    assert_eq!(host.counter("violations"), 1);
    drop(peer);
    host.until("it has hung up", |host| free(host) == all);
}

/// Memory that the kernel copies to for a peer stays after its region has ended, until the peer is
/// done with it.
#[test]
fn memory_that_a_peer_uses_is_kept() {
    testing::alone(|| {
        let mut host = Host::new();
        let mut peer = host.intruder();
        hello(&peer, introduction());
        host.replies(&mut peer, Reply::Welcome);
        let sender = peer.sender().expect("it is welcome");
        let FunctionAddress { node, function } = host.it.address();
        let key = RemoteKey { node, function, index: 3, key: 77, length: 5000 };
        let memory = host.it.allocate(5000, Rights::REMOTE_WRITE).expect("memory");
        host.it.export(key, &memory, Rights::REMOTE_WRITE).expect("room");
        let begin = format!("{:x}-", memory.view().as_ptr() as usize);
        drop(memory);
        let is_mapped = || {
            let maps = std::fs::read_to_string("/proc/self/maps").expect("procfs");
            maps.lines().any(|line| line.starts_with(&begin) && line.contains("bellwire region"))
        };
        sender.mark_busy(3);
        host.it.retract(key);
        let since = Instant::now();
        host.until("time passes", |_| since.elapsed() > Duration::from_millis(20));
        assert!(is_mapped());
        sender.mark_idle();
        host.until("it is given back", |_| !is_mapped());
    });
}

/// A user whom the job does not admit is refused, in both roles, and its nodes are skipped.
#[test]
fn other_users_are_refused() {
    let mut host = Host::new();
    let job = Job::new(&host.job, AccessMode::Owner).expect("a name");
    let squatted = Job::new(&format!("{}-squat", host.job), AccessMode::Owner).expect("a name");
    let names = [
        squatted.node_socket(0),
        squatted.node_socket(1),
        job.function_socket(FROM),
        job.function_socket(host.it.address()),
    ];
    let mut other = testing::begin_alone("stranger_tests::is_another_user", &names.join(" "));
    host.until("it is refused", |host| {
        let ended = other.try_wait().expect("it was started here");
        assert!(ended.is_none(), "NOT RUN: becoming another user needs root");
        host.counter("refused_links") == 1
    });
    assert_eq!((host.counter("links"), host.counter("silent_connections")), (0, 0));
    let link = host.it.link(FROM, LONG).expect("an attempt");
    host.until("it is told", |host| !host.downs.0.is_empty());
    assert_eq!(host.downs.0, [(link, FROM, Status::Unreachable)]);
    assert_eq!(host.counter("refused_links"), 2);
    let device = ShmDevice::open(&squatted.name, AccessMode::Owner, None).expect("a free node");
    let said = device.describe();
    assert!(device.node() == 2 && said.contains("hold 1 more"), "{said}");
    let held = ShmDevice::open(&squatted.name, AccessMode::Owner, Some(1)).err();
    assert!(matches!(held, Some(Error::NameHeld { user: ANOTHER, .. })), "{held:?}");
    other.kill().and_then(|()| other.wait()).expect("it was started here");
}

/// Not a test of its own: the other user of the one before.
#[test]
#[ignore = "another test starts it"]
fn is_another_user() {
    let Some(names) = testing::role() else { return };
    // SAFETY: system calls on this process alone.
    let is_other = unsafe {
        libc::setgroups(0, std::ptr::null()) == 0
            && libc::setresgid(ANOTHER, ANOTHER, ANOTHER) == 0
            && libc::setresuid(ANOTHER, ANOTHER, ANOTHER) == 0
    };
    assert!(is_other, "it needs root");
    let names: Vec<&str> = names.split(' ').collect();
    let _nodes = [0, 1].map(|node: usize| socket::reserve(names[node]).expect("a free name"));
    let _function = socket::listen(names[2]).expect("a free name");
    let _connection = socket::connect(names[3]).expect("somebody listens");
    std::thread::sleep(2 * LONG);
}

/// Another process may link to us, and not in our name. Its death is noticed although its child has
/// copies of its sockets.
#[test]
fn the_death_of_another_process_is_noticed() {
    let mut host = Host::new();
    let mut child = testing::begin_alone("stranger_tests::is_another_process", &host.job);
    host.until("it is gone", |host| !host.downs.0.is_empty());
    let (_, from, why) = host.downs.0[0];
    assert_eq!((from, why), (FunctionAddress { node: 1, function: 2 }, Status::PeerGone));
    assert_eq!((host.counter("refused_links"), host.counter("violations")), (1, 0));
    assert!(child.wait().expect("it was started here").success());
}

/// Not a test of its own: the other process of the one before.
#[test]
#[ignore = "another test starts it"]
fn is_another_process() {
    let Some(job) = testing::role() else { return };
    let to = FunctionAddress { node: 0, function: 1 };
    let mut intruder = Intruder::connect(&job, to).expect("memory").expect("somebody listens");
    hello(&intruder, Introduction { node: to.node, function: to.function, ..introduction() });
    let since = Instant::now();
    while intruder.read() != Reply::Closed {
        assert!(since.elapsed() < LONG, "it is not refused");
    }
    let device = ShmDevice::open(&job, AccessMode::Owner, Some(1)).expect("a node");
    let mut it = device.open_function(2, 16).expect("a function");
    let link = it.link(to, LONG).expect("a link");
    while !it.is_up(link) {
        it.poll(&mut Downs::default(), 64);
        assert!(since.elapsed() < LONG, "no link comes up");
    }
    // SAFETY: the child sleeps, and ends. It has copies of all descriptors meanwhile.
    unsafe {
        if libc::fork() == 0 {
            libc::sleep(2 * LONG.as_secs() as u32);
        }
        libc::_exit(0)
    }
}
