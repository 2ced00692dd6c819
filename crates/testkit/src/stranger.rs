//! Another user of the host: a process without privileges that takes names of ours, or connects and
//! says nothing.
//!
//! The process changes its user by itself, which needs root. Without root the test fails and says
//! that it did not run.

use crate::conformance::child::{Process, ROLE, told};
use crate::conformance::patience::{self, Patience};
use crate::conformance::stage::{Node, accepted};
use bellwire::{
    Device, DeviceOptions, Error, FunctionAddress, FunctionOptions, Message, Operation, Status,
};
use bellwire_device::{AccessMode, Kind, LinkId, PacketHeader, Sink, Transport, Verdict};
use bellwire_ring::memory::View;
use bellwire_shm::name::Job;
use bellwire_shm::{ShmDevice, ShmTransport};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The number of the other user.
pub const USER: u32 = 65_534;

/// Takes the names, and does not listen.
const BIND: &str = "bind";
/// Takes the names, and listens.
const LISTEN: &str = "listen";
/// Keeps connections to the name, says nothing, and replaces those that are closed.
const SILENT: &str = "silent";
/// The names, separated by blanks.
const NAMES: &str = "BELLWIRE_TEST_NAMES";
/// A socket name that the process takes when it is ready.
const READY: &str = "BELLWIRE_TEST_READY";

/// Connections that a silent stranger keeps.
const KEPT: usize = 500;
/// Maximum number of connections that it makes in its life.
const MADE: usize = 100_000;

/// How a stranger takes names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Squat {
    /// Its sockets are only bound: nobody can connect to them.
    Bound,
    /// Its sockets listen.
    Listening,
}

fn socket() -> OwnedFd {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
        .expect("a socket")
}

fn address(name: &str) -> SocketAddrUnix {
    SocketAddrUnix::new_abstract_name(name.as_bytes()).expect("a short name")
}

/// A stranger's main function.
pub fn play() {
    become_somebody_else();
    let (role, names) = (told(ROLE), told(NAMES));
    let mut held = Vec::new();
    if role == SILENT {
        let name = address(&names);
        let mut made = 0;
        refill(&mut held, &name, &mut made);
        let _ready = take(&told(READY), false);
        loop {
            held.retain(is_open);
            refill(&mut held, &name, &mut made);
            std::thread::yield_now();
        }
    }
    held.extend(names.split(' ').map(|name| take(name, role == LISTEN)));
    let _ready = take(&told(READY), false);
    loop {
        std::thread::park();
    }
}

/// Gives up root for good.
fn become_somebody_else() {
    // SAFETY: system calls on this process alone, which has one thread.
    let done = unsafe {
        libc::setgroups(0, std::ptr::null()) == 0
            && libc::setresgid(USER, USER, USER) == 0
            && libc::setresuid(USER, USER, USER) == 0
            // A change of the user clears this signal.
            && libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == 0
    };
    assert!(done, "NOT RUN: becoming another user needs root");
}

fn take(name: &str, listen: bool) -> OwnedFd {
    let socket = socket();
    rustix::net::bind(&socket, &address(name)).expect("the name is free");
    if listen {
        rustix::net::listen(&socket, 64).expect("it is bound");
    }
    socket
}

/// Connects until it keeps the full number, or the queue is full. After the first [`KEPT`] it
/// connects only once, so that each connection comes alone.
fn refill(held: &mut Vec<OwnedFd>, name: &SocketAddrUnix, made: &mut usize) {
    let first = *made < KEPT;
    while held.len() < KEPT && *made < MADE {
        let socket = socket();
        if rustix::net::connect(&socket, name).is_err() {
            return;
        }
        held.push(socket);
        *made += 1;
        if !first {
            return;
        }
    }
}

fn is_open(socket: &OwnedFd) -> bool {
    let flags = rustix::net::RecvFlags::DONTWAIT;
    rustix::net::recv(socket, &mut [0u8; 128], flags) == Err(rustix::io::Errno::AGAIN)
}

/// A job of this test alone.
fn job(access: AccessMode) -> Job {
    static JOBS: AtomicU32 = AtomicU32::new(0);
    let number = JOBS.fetch_add(1, Ordering::Relaxed);
    let name = format!("stranger-{}-{number}", std::process::id());
    Job::new(&name, access).expect("a good name")
}

/// Starts a stranger, and waits until it is ready.
fn start(role: &str, names: &str, job: &Job) -> Process {
    let ready = format!("bellwire-test.{}.{role}.ready", job.name);
    let environment = [(ROLE, role), (NAMES, names), (READY, &ready)];
    let mut stranger = Process::start("stranger", &environment);
    let mut patience = Patience::new();
    let is_there = || {
        let table = std::fs::read_to_string("/proc/net/unix").expect("procfs");
        table.lines().any(|line| line.ends_with(&format!("@{ready}")))
    };
    while !is_there() {
        if let Some(status) = stranger.ended() {
            panic!("NOT RUN: no process of another user ({status}): that needs root");
        }
        std::thread::sleep(Duration::from_millis(1));
        patience.spend(|| "the stranger does not begin".into());
    }
    stranger
}

/// A stranger that holds `names` of `job`.
fn squat(how: Squat, names: &[String], job: &Job) -> Process {
    let role = match how {
        Squat::Bound => BIND,
        Squat::Listening => LISTEN,
    };
    start(role, &names.join(" "), job)
}

/// A node with a chosen number is refused, with the stranger's user number. A node with any number
/// gets the next one, and says why. Two nodes exchange messages beside the stranger.
pub fn squatted_nodes(how: Squat) {
    let job = job(AccessMode::Owner);
    let _stranger = squat(how, &[job.node_socket(0), job.node_socket(1)], &job);
    let device = format!("shm:{}", job.name);

    let options = DeviceOptions::default().node(1);
    let error = Device::open_with(&device, &options).expect_err("a stranger has the name");
    assert!(matches!(error, Error::NameHeld { user: USER, .. }), "{error:?}");
    assert!(error.to_string().contains("user 65534 holds the name of node 1"), "{error}");

    let [left, right] = [2, 3].map(|expected| {
        let device = Device::open(&device).expect("there are other nodes");
        assert_eq!(device.node(), expected);
        let told = device.describe();
        assert!(
            told.contains("user 65534, who is not admitted, holds the name of node 0"),
            "{told}"
        );
        Node::of(device, 0, &FunctionOptions::default())
    });
    exchange(left, right);
}

/// A function whose name a stranger holds is refused with the stranger's user number, and never as
/// our own; so is a link to it. The other functions of the node exchange messages.
pub fn squatted_function(how: Squat) {
    let job = job(AccessMode::Owner);
    let squatted = FunctionAddress { node: 0, function: 1 };
    let _stranger = squat(how, &[job.function_socket(squatted)], &job);
    let open = || ShmDevice::open(&job.name, AccessMode::Owner, None).expect("nodes are free");
    let (first, second) = (open(), open());
    let Err(error) = first.open_function(1, 16) else { panic!("a stranger has the name") };
    assert!(matches!(error, Error::NameHeld { user: USER, .. }), "{error:?}");
    assert!(
        error.to_string().contains("user 65534 holds the name of node 0, function 1"),
        "{error}"
    );

    let mut other = second.open_function(0, 16).expect("its name is free");
    let mut seen = Seen::default();
    other.link(squatted, Duration::from_millis(20)).expect("room for a link");
    let mut patience = Patience::new();
    while seen.ends.is_empty() {
        other.poll(&mut seen, 16);
        patience.spend(|| "the link to the stranger does not end".into());
    }
    assert_eq!(seen.ends, [Status::Unreachable]);
    drop((first, second, other));

    let device = format!("shm:{}", job.name);
    let node = || {
        let device = Device::open(&device).expect("nodes are free");
        Node::of(device, 0, &FunctionOptions::default())
    };
    exchange(node(), node());
}

/// Messages in both directions, each of which arrives.
fn exchange(mut left: Node, mut right: Node) {
    const MESSAGES: u64 = 100;
    let addresses = [left.address(), right.address()];
    for number in 0..MESSAGES {
        for (from, to) in [(0, 1), (1, 0)] {
            let nodes = [&mut left, &mut right];
            nodes[to].receive(8, number);
            let send = Message::buffer(number.to_le_bytes().to_vec()).to(addresses[to]);
            assert!(accepted(nodes[from].function.post_send(nodes[from].queue_pair, send)));
            let mut patience = Patience::new();
            let received = loop {
                if let Some(done) = nodes[from].poll() {
                    assert_eq!(done.status, Status::Success, "{done:?}");
                }
                match nodes[to].poll() {
                    Some(done) if done.operation == Operation::Receive => break done,
                    _ => patience.spend(|| format!("message {number} does not arrive")),
                }
            };
            assert_eq!(received.status, Status::Success, "{received:?}");
            let bytes = received.buffer.expect("the receive's buffer").into_vec();
            assert_eq!(bytes.as_deref(), Some(&number.to_le_bytes()[..]));
        }
    }
}

/// Our own names are never reported as a stranger's.
pub fn own_names_are_our_own() {
    let job = job(AccessMode::Owner);
    let device = ShmDevice::open(&job.name, AccessMode::Owner, Some(0)).expect("a node");
    let _function = device.open_function(0, 16).expect("a function");
    let Err(error) = device.open_function(0, 16) else { panic!("it is open") };
    assert!(matches!(error, Error::BadFunction { .. }), "{error:?}");
    let Err(error) = ShmDevice::open(&job.name, AccessMode::Owner, Some(0)) else {
        panic!("taken")
    };
    assert!(matches!(error, Error::DeviceUnavailable { .. }), "{error:?}");
    let second = Device::open(&format!("shm:{}", job.name)).expect("another node");
    assert_eq!(second.node(), 1);
    assert!(!second.describe().contains("holds"), "{}", second.describe());
}

/// Reasons why links ended, and the number of received packets.
#[derive(Default)]
struct Seen {
    ends: Vec<Status>,
    packets: u64,
    from: Option<LinkId>,
}

impl Sink for Seen {
    fn packet(
        &mut self,
        link: LinkId,
        _: FunctionAddress,
        [_, _, argument]: [u64; 3],
        _: View<'_>,
    ) -> Verdict {
        assert_eq!(argument, self.packets, "the next packet");
        self.packets += 1;
        self.from = Some(link);
        Verdict::Taken
    }

    fn link_down(&mut self, _: LinkId, _: FunctionAddress, why: Status) {
        self.ends.push(why);
    }
}

fn counter(transport: &ShmTransport, name: &str) -> u64 {
    transport.counter_rows().iter().find(|row| row.0 == name).expect("a counter").1
}

fn send(from: &mut ShmTransport, seen: &mut Seen, link: LinkId, number: u64) {
    let header = PacketHeader::new(Kind::Send, 1, 1, number);
    let mut patience = Patience::new();
    while from.send(link, header, &[], View::of(&[7; 100])).is_err() {
        from.poll(seen, 16);
        patience.spend(|| format!("packet {number} finds no room"));
    }
}

/// Maximum number of wake-ups in a tick: one for each connection before the listener is paused, a
/// few to empty its queue.
const WAKE_UPS: u64 = 160;
/// The tick in which the listener counts connections.
const TICK: Duration = Duration::from_millis(250);

/// Silent connections come to a sleeping function one by one, each when the one before had its
/// chance to wake it. Of those that come within a tick, it takes a bounded number as they come.
fn silent_connections_one_by_one(sleeper: &mut ShmTransport, name: &SocketAddrUnix) {
    /// Connections of a round. A round that is shorter than a tick meets two ticks at most.
    const ROUND: u64 = 2 * WAKE_UPS + 40;
    let taken = |sleeper: &ShmTransport| {
        ["silent_connections", "silent_connections_closed"].map(|name| counter(sleeper, name))
    };
    let mut seen = Seen::default();
    let patience = Patience::new();
    // No other process has a part in this. A round that is slower than a tick shows nothing.
    loop {
        let (since, mut wake_ups) = (Instant::now(), 0);
        let connections = (0..ROUND).map(|_| {
            let connection = socket();
            rustix::net::connect(&connection, name).expect("the queue takes a round");
            let before = taken(sleeper);
            sleeper.sleep(Some(Duration::ZERO)).expect("sleeping works");
            sleeper.poll(&mut seen, 16);
            wake_ups += u64::from(taken(sleeper) != before);
            connection
        });
        let connections: Vec<OwnedFd> = connections.collect();
        if since.elapsed() < TICK {
            assert!(wake_ups <= 2 * WAKE_UPS, "{wake_ups} wake-ups by {ROUND} connections");
            return;
        }
        drop(connections);
        assert!(!patience.is_over(), "{ROUND} connections always take longer than {TICK:?}");
        // The connections of the next round find an empty queue.
        while counter(sleeper, "silent_connections") > 0 {
            sleeper.sleep(Some(TICK)).expect("sleeping works");
            sleeper.poll(&mut seen, 16);
        }
    }
}

/// Another user keeps 500 silent connections to a sleeping function, and replaces each that is
/// closed. The function wakes up a bounded number of times, and a proper peer connects and
/// exchanges packets meanwhile. Before, connections come one by one.
pub fn silent_connections() {
    /// The number of packets each way.
    const PACKETS: u64 = 100;
    /// The stranger goes on until this many connections were closed.
    const CLOSED: u64 = 1_000;

    let job = job(AccessMode::Everyone);
    let open = |node| ShmDevice::open(&job.name, job.access, Some(node)).expect("a free node");
    let (here, there) = (open(0), open(1));
    let mut sleeper = here.open_function(0, 16).expect("a function");
    let at = sleeper.address();
    silent_connections_one_by_one(&mut sleeper, &address(&job.function_socket(at)));
    let closed = counter(&sleeper, "silent_connections_closed") + CLOSED;
    let attacked = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let sleeps = scope.spawn(|| {
            let (mut seen, mut echoed, mut wake_ups) = (Seen::default(), 0, 0);
            let mut since = Instant::now();
            let patience = Patience::new();
            while seen.packets < PACKETS || counter(&sleeper, "silent_connections_closed") < closed
            {
                while echoed < seen.packets {
                    let link = seen.from.expect("a packet came");
                    send(&mut sleeper, &mut seen, link, echoed);
                    echoed += 1;
                }
                if sleeper.poll(&mut seen, 16) == 0 && echoed == seen.packets {
                    sleeper.sleep(Some(Duration::from_secs(1))).expect("sleeping works");
                    wake_ups += 1;
                }
                if !attacked.load(Ordering::Relaxed) {
                    (since, wake_ups) = (Instant::now(), 0);
                }
                assert!(!patience.is_over(), "{:?}", sleeper.counter_rows());
            }
            let ticks = since.elapsed().as_nanos() / TICK.as_nanos();
            // Each packet of the peer wakes the sleeper too, and a link takes a few wake-ups.
            let most = WAKE_UPS * (ticks as u64 + 2) + 4 * PACKETS;
            println!(
                "{wake_ups} wake-ups in {ticks} ticks, of {most}: {:?}",
                sleeper.counter_rows()
            );
            assert!(wake_ups <= most, "{wake_ups} wake-ups in {ticks} ticks of {TICK:?}");
            assert!(counter(&sleeper, "silent_connections") <= 16, "of one user");
        });
        let _stranger = start(SILENT, &job.function_socket(at), &job);
        attacked.store(true, Ordering::Relaxed);
        let mut peer = there.open_function(0, 16).expect("a function");
        let link = peer.link(at, patience::limit()).expect("room for a link");
        let mut seen = Seen::default();
        let mut patience = Patience::new();
        for number in 0..PACKETS {
            send(&mut peer, &mut seen, link, number);
            while seen.packets <= number {
                peer.poll(&mut seen, 16);
                assert_eq!(seen.ends, []);
                patience.spend(|| format!("packet {number} does not come back"));
            }
        }
        if let Err(why) = sleeps.join() {
            std::panic::resume_unwind(why);
        }
    });
}

/// A silent connection to a sleeping function is closed, whichever user made it. Then the function
/// sleeps on.
pub fn a_silent_connection_is_closed() {
    let job = job(AccessMode::Owner);
    let device = ShmDevice::open(&job.name, job.access, Some(0)).expect("a free node");
    let mut sleeper = device.open_function(0, 16).expect("a function");
    let silent = socket();
    rustix::net::connect(&silent, &address(&job.function_socket(sleeper.address())))
        .expect("it listens");
    let mut seen = Seen::default();
    let patience = Patience::new();
    while is_open(&silent) {
        if sleeper.poll(&mut seen, 16) == 0 {
            // Only the strangers' clock ends this sleep before the limit.
            sleeper.sleep(Some(patience::limit())).expect("sleeping works");
        }
        sleeper.poll(&mut seen, 16);
        assert!(!patience.is_over(), "it stays open: {:?}", sleeper.counter_rows());
    }
    assert_eq!(counter(&sleeper, "silent_connections"), 0);
    assert_eq!(counter(&sleeper, "silent_connections_closed"), 1);
    let since = Instant::now();
    let pause = Duration::from_millis(600);
    let mut wake_ups = 0;
    while since.elapsed() < pause {
        sleeper.poll(&mut seen, 16);
        sleeper.sleep(Some(pause.saturating_sub(since.elapsed()))).expect("sleeping works");
        wake_ups += 1;
    }
    // The last wake-up is the end of the pause; one more may be an early timer.
    assert!(wake_ups <= 3, "{wake_ups} wake-ups with nobody there");
}
