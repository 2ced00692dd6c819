//! Tests: what another user of this host can do to the port of a function. The kernel knows users
//! by thread, so the other user is a thread of the test.

use super::UdpIo;
use super::address::to_native;
use super::connected_socket::{STEPS, connected};
use crate::frame_io::FrameIo;
use crate::socket;
use crate::testing::enter_new_namespace;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A user who is neither root nor the owner of the test.
const OTHER_USER: libc::uid_t = 65_533;

/// Options with which a socket may share an address: none, either, both.
const SHARING: [&[i32]; 4] =
    [&[], &[libc::SO_REUSEADDR], &[libc::SO_REUSEPORT], &[libc::SO_REUSEADDR, libc::SO_REUSEPORT]];

/// Binds a new socket to the address with each choice of [`SHARING`], and closes it again.
fn try_all(address: SocketAddr) -> [io::Result<()>; 4] {
    SHARING.map(|options| {
        let domain = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
        let socket = socket::open(domain, libc::SOCK_DGRAM, 0)?;
        for &option in options {
            socket::set(socket.as_fd(), libc::SOL_SOCKET, option, &1i32)?;
        }
        let (native, length) = to_native(address);
        socket::bind(socket.as_fd(), &native, length)
    })
}

/// Whether the kernel refused each attempt because the address has an owner.
fn all_refused(attempts: &[io::Result<()>]) -> bool {
    let refused = |attempt: &io::Result<()>| matches!(attempt, Err(e) if e.kind() == io::ErrorKind::AddrInUse);
    attempts.iter().all(refused)
}

/// Switches the calling thread to another user.
fn become_another_user() {
    // SAFETY: system calls that answer, or change this thread alone. libc's setresuid would change
    // all threads, so it is not used.
    unsafe {
        assert_eq!(libc::geteuid(), 0, "NOT RUN: to be another user needs root");
        let [user, group] = [libc::SYS_setresuid, libc::SYS_setresgid];
        for call in [group, user] {
            let result = libc::syscall(call, OTHER_USER, OTHER_USER, OTHER_USER);
            assert_eq!(result, 0, "{}", io::Error::last_os_error());
        }
        assert_eq!(libc::geteuid(), OTHER_USER);
    }
}

/// Another user, who tries an address on request.
struct Thief {
    ask: Sender<SocketAddr>,
    answers: Receiver<[io::Result<()>; 4]>,
}

impl Thief {
    fn new() -> Thief {
        let (ask, asked) = channel();
        let (answer, answers) = channel();
        std::thread::spawn(move || {
            become_another_user();
            for address in asked {
                if answer.send(try_all(address)).is_err() {
                    break;
                }
            }
        });
        Thief { ask, answers }
    }

    fn tries(&self, address: SocketAddr) -> [io::Result<()>; 4] {
        self.ask.send(address).expect("NOT RUN: to be another user needs root");
        self.answers.recv().expect("NOT RUN: to be another user needs root")
    }

    /// Waits until it can bind to the address by every option, as nobody has it any more. A closed
    /// socket can live on for a moment: a process that another test starts has a copy of it until
    /// its `execve`.
    fn gets(&self, address: SocketAddr) {
        let since = Instant::now();
        while !self.tries(address).iter().all(Result::is_ok) {
            assert!(since.elapsed() < Duration::from_secs(60), "somebody has {address} still");
        }
    }
}

/// Another user, who tries an address in a loop until this ends.
struct Loop {
    over: &'static AtomicBool,
    rounds: &'static AtomicU64,
    thread: JoinHandle<Option<String>>,
}

impl Loop {
    fn new(address: SocketAddr) -> Loop {
        let over: &AtomicBool = Box::leak(Box::default());
        let rounds: &AtomicU64 = Box::leak(Box::default());
        let thread = std::thread::spawn(move || {
            become_another_user();
            while !over.load(Ordering::Relaxed) {
                let attempts = try_all(address);
                if !all_refused(&attempts) {
                    return Some(format!("{attempts:?}"));
                }
                rounds.fetch_add(1, Ordering::Relaxed);
            }
            None
        });
        Loop { over, rounds, thread }
    }

    fn rounds(&self) -> u64 {
        self.rounds.load(Ordering::Relaxed)
    }

    /// Waits until it has made another whole round, or has ended.
    fn goes_on(&self) {
        let (since, before) = (Instant::now(), self.rounds());
        while self.rounds() < before + 2 && !self.thread.is_finished() {
            assert!(since.elapsed() < Duration::from_secs(60), "the thief hangs");
            std::thread::yield_now();
        }
    }

    /// Ends the loop. Returns what it got although it should not.
    fn ends(self) -> Option<String> {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().expect("NOT RUN: to be another user needs root")
    }
}

/// Loopback addresses of both kinds. Each test has its own namespace, where all ports are free.
const LOOPBACK: [&str; 2] = ["127.0.0.1", "::1"];
const VICTIM: u16 = 7000;
const PEERS: u16 = 7001;

fn in_a_namespace() {
    enter_new_namespace()
        .expect("NOT RUN: making a network namespace needs root, and ip of iproute2");
}

/// A function's socket.
fn open(ip: &str, port: u16) -> UdpIo {
    let ip: IpAddr = ip.parse().expect("an address");
    UdpIo::open(SocketAddr::new(ip, port), 1500).expect("a free port")
}

/// Walks through opening a connected socket with `sharing`. Another user tries the address after
/// each step. Returns the steps at which that user was not refused, and those at which our own user
/// was not.
fn walk(thief: &Thief, ip: &str, sharing: i32) -> [Vec<&'static str>; 2] {
    let all = open(ip, VICTIM);
    let address = all.address;
    let peer = SocketAddr::new(address.ip(), PEERS);
    let mut taken = [vec![], vec![]];
    let mut steps = 0;
    let look = |step| {
        steps += 1;
        for (attempts, taken) in [thief.tries(address), try_all(address)].iter().zip(&mut taken) {
            if !all_refused(attempts) {
                taken.push(step);
            }
        }
    };
    let own = connected(all.socket.as_fd(), address, peer, sharing, look);
    own.expect("the second socket of the address");
    assert_eq!(steps, STEPS.len());
    drop(all);
    thief.gets(address);
    taken
}

/// At no step of opening a connected socket can another user bind to our address, by any option. A
/// second function of our own user is refused too, except at the steps at which our two sockets
/// share.
#[test]
fn no_step_of_a_change_lets_another_user_in() {
    in_a_namespace();
    let thief = Thief::new();
    for address in LOOPBACK {
        let [others, own] = walk(&thief, address, libc::SO_REUSEPORT);
        assert_eq!(others, [""; 0], "{address}");
        assert_eq!(own, ["shared", "bound", "connected"], "{address}");
    }
}

/// The canary of the test above: it notices a change that shares by SO_REUSEADDR, as an earlier
/// version did.
#[test]
fn a_change_that_lets_others_in_is_noticed() {
    in_a_namespace();
    let thief = Thief::new();
    for address in LOOPBACK {
        let [others, _] = walk(&thief, address, libc::SO_REUSEADDR);
        assert_eq!(others, ["shared", "bound", "connected"], "{address}");
    }
}

/// Sends datagrams from `from` until `to` connects a socket to it.
fn court(from: &mut UdpIo, to: &mut UdpIo) {
    let since = Instant::now();
    while to.connected.socket_to(from.address).is_none() {
        assert!(since.elapsed() < Duration::from_secs(60), "it never gets the connected socket");
        for _ in 0..16 {
            from.room().expect("room")[..40].fill(7);
            from.stage(to.address, 40);
        }
        assert!(from.flush());
        for _ in 0..4 {
            to.receive(64, |_, _| ());
        }
    }
}

/// Changes of the connected socket that the test waits for.
const CHANGES: usize = 40;

/// Two peers take turns at the connected socket while another user tries to bind in a loop. Every
/// attempt is refused, and the function still hears both peers and a third one.
#[test]
fn a_thief_gets_nothing_while_favourites_change() {
    in_a_namespace();
    let mut victim = open("127.0.0.1", VICTIM);
    let address = victim.address;
    let mut peers = [PEERS, PEERS + 1].map(|port| open("127.0.0.1", port));
    let thief = Loop::new(address);
    for change in 0..CHANGES {
        court(&mut peers[change % 2], &mut victim);
        thief.goes_on();
    }
    let rounds = thief.rounds();
    let got = thief.ends();
    assert_eq!(got, None, "after {rounds} rounds");
    assert!(rounds >= CHANGES as u64, "{rounds} rounds");
    // The victim lives and has lost nothing.
    let mut third = open("127.0.0.1", PEERS + 2);
    for io in [&mut third].into_iter().chain(&mut peers) {
        let since = Instant::now();
        let mut heard = false;
        while !heard {
            assert!(since.elapsed() < Duration::from_secs(60), "the victim is deaf");
            io.room().expect("room")[..40].fill(9);
            io.stage(address, 40);
            assert!(io.flush());
            let from = io.address;
            victim.receive(64, |who, bytes| heard |= who == from && bytes == [9; 40]);
        }
    }
    // Control: the thief can bind to a free address.
    let asked = Thief::new();
    assert!(all_refused(&asked.tries(address)), "it is the victim's");
    drop(victim);
    asked.gets(address);
}
