//! What the kernel lets a program do with the sockets that the agent gave it. Each line of the
//! table in docs/threat-model.md is a function here.
//!
//! The attacker has two wires, `near`-`far` and `other`-`beyond`, and the agent serves `near`.
//! Before it gives up root, it opens sockets that see all frames at the far ends and on loopback.

use super::{GROUP, USER, become_user, enter, start_agent};
use crate::conformance::Patience;
use crate::conformance::child::{self, Process};
use bellwire_ethernet::agent::PATH;
use bellwire_ethernet::link_header::FUNCTION_OFFSET;
use bellwire_ethernet::testing::{AskedAgent, ip};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::Command;

/// Role of the attacker.
pub(super) const ROLE: &str = "hostile";
/// The attacker's functions.
const FUNCTION: u8 = 7;
/// Our EtherType, and that of IPv4.
const OURS: u16 = 0x88b5;
const IPV4: u16 = 0x0800;

/// Starts the attacker, which must find everything as docs/threat-model.md says.
pub fn the_kernel_restricts_programs() {
    enter();
    ip("link add near address 02:00:00:00:00:01 type veth peer name far address 02:00:00:00:00:02\n\
        link add other type veth peer name beyond\n\
        link set near up\nlink set far up\nlink set other up\nlink set beyond up")
    .expect("two veth pairs");
    let _agent = start_agent(&["near"], None);
    Process::start("agent", &[(child::ROLE, ROLE)]).succeed();
}

/// The attacker's main function.
pub(super) fn play() {
    hold_to_one_cpu();
    let observers = Observers {
        far: observer("far"),
        beyond: observer("beyond"),
        loopback: observer("lo"),
        near: observer("near"),
    };
    become_user(USER, &[GROUP]);
    let given = |function| {
        AskedAgent(PATH.into()).packet_socket("near", function).expect("the agent gives it")
    };
    let mut socket = given(FUNCTION);
    no_rights_of_its_own();
    filters_stay(&socket);
    marks_stay(&socket);
    only_own_frames(&socket, &observers);
    nothing_by_another_binding(&socket, &observers);
    nothing_by_membership(&socket, &observers);
    nothing_by_fanout(&socket, &observers, &given);
    // A socket can leave a fanout only with its end.
    drop(socket);
    socket = super::life::freed(FUNCTION);
    only_proper_frames_leave(&socket, &observers);
    memory_is_not_limited(&socket);
}

/// Frames that are sent on one CPU arrive in the order in which they were sent, whatever wire they
/// take: Linux has a queue for each CPU. So a frame that came shows what did not come before it.
fn hold_to_one_cpu() {
    let allowed = sched_getaffinity(None).expect("the kernel knows");
    let first = (0..CpuSet::MAX_CPU).find(|&cpu| allowed.is_set(cpu)).expect("this process runs");
    let mut one = CpuSet::new();
    one.set(first);
    sched_setaffinity(None, &one).expect("it is allowed");
}

/// Sockets of root that see all frames.
struct Observers {
    far: OwnedFd,
    beyond: OwnedFd,
    loopback: OwnedFd,
    near: OwnedFd,
}

fn packet_socket() -> io::Result<OwnedFd> {
    // SAFETY: a system call; the descriptor is ours alone.
    unsafe {
        let flags = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        let fd = libc::socket(libc::AF_PACKET, flags, 0);
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(fd)) }
    }
}

fn address(interface: &str, ethertype: u16) -> libc::sockaddr_ll {
    // SAFETY: zeros are a valid address.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = ethertype.to_be();
    let name = std::ffi::CString::new(interface).expect("no zero byte");
    // SAFETY: a string.
    address.sll_ifindex = unsafe { libc::if_nametoindex(name.as_ptr()) } as i32;
    address
}

fn bind(socket: &OwnedFd, interface: &str, ethertype: u16) -> io::Result<()> {
    let address = address(interface, ethertype);
    let length = size_of::<libc::sockaddr_ll>() as u32;
    // SAFETY: an address of this length.
    let result = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn observer(interface: &str) -> OwnedFd {
    let socket = packet_socket().expect("root");
    bind(&socket, interface, libc::ETH_P_ALL as u16).expect("the interface exists");
    socket
}

fn set<T>(socket: &OwnedFd, level: i32, name: i32, value: &T) -> io::Result<()> {
    let length = size_of::<T>() as u32;
    // SAFETY: `length` bytes at `value`.
    let result = unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, name, std::ptr::from_ref(value).cast(), length)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A frame, whose last bytes say `what`.
fn frame(to: [u8; 6], from: [u8; 6], ethertype: u16, function: u8, what: u8) -> Vec<u8> {
    let mut frame = [&to[..], &from, &ethertype.to_be_bytes(), &[0; 46]].concat();
    frame[FUNCTION_OFFSET] = function;
    frame[59] = what;
    frame[58] = 0x5a;
    frame
}

/// Sends a frame by an interface, whatever the kernel says: a frame that a rule drops is an error
/// or not, by kernel version.
fn send(socket: &OwnedFd, interface: &str, frame: &[u8]) {
    let address = address(interface, OURS);
    let length = size_of::<libc::sockaddr_ll>() as u32;
    // SAFETY: bytes and an address of these lengths.
    unsafe {
        libc::sendto(
            socket.as_raw_fd(),
            frame.as_ptr().cast(),
            frame.len(),
            0,
            (&raw const address).cast(),
            length,
        );
    }
}

/// The marks at the ends of all frames of ours that have come in and were not read yet.
fn seen(socket: &OwnedFd) -> Vec<u8> {
    let mut all = Vec::new();
    let mut room = [0u8; 2048];
    loop {
        // SAFETY: the kernel writes at most the room's length.
        let got =
            unsafe { libc::recv(socket.as_raw_fd(), room.as_mut_ptr().cast(), room.len(), 0) };
        let Ok(length) = usize::try_from(got) else { return all };
        let frame = &room[..length];
        // With or without a header of virtio in front.
        let start = length.saturating_sub(60);
        if frame.get(start + 58) == Some(&0x5a) {
            all.push(frame[start + 59]);
        }
    }
}

/// The marks that come in until `last` does.
fn seen_until(socket: &OwnedFd, last: u8) -> Vec<u8> {
    let mut all = Vec::new();
    let mut patience = Patience::new();
    while !all.contains(&last) {
        all.extend(seen(socket));
        patience.spend(|| format!("frame {last} does not come, only {all:?}"));
    }
    all
}

/// The marks that come to an observer, up to `marker`, which root sends last by `interface`.
fn arrived(observers: &Observers, interface: &str, at: &OwnedFd, marker: u8) -> Vec<u8> {
    send(&observers.near, interface, &frame(ALL, NEAR, OURS, 255, marker));
    let mut all = seen_until(at, marker);
    // At loopback a marker comes twice, out and in.
    all.retain(|&mark| mark < MARKERS);
    all
}

/// The first marker. Marks of other frames are less.
const MARKERS: u8 = 40;

const NEAR: [u8; 6] = [2, 0, 0, 0, 0, 1];
const FAR: [u8; 6] = [2, 0, 0, 0, 0, 2];
const ALL: [u8; 6] = [0xff; 6];

#[track_caller]
fn denied<T: std::fmt::Debug>(result: io::Result<T>) {
    let error = result.expect_err("it needs a right");
    assert_eq!(error.raw_os_error(), Some(libc::EPERM), "{error}");
}

/// A program makes no packet socket, and no map and no program of BPF.
fn no_rights_of_its_own() {
    denied(packet_socket());
    // BPF_MAP_CREATE of a map of AF_XDP sockets.
    let attributes = [17u32, 4, 4, 1, 0, 0, 0, 0];
    // SAFETY: the kernel reads 32 bytes.
    let map = unsafe { libc::syscall(libc::SYS_bpf, 0, attributes.as_ptr(), 32) };
    assert_eq!((map, io::Error::last_os_error().raw_os_error()), (-1, Some(libc::EPERM)));
}

/// The filter cannot be replaced, removed or unlocked.
fn filters_stay(socket: &OwnedFd) {
    let mut all = [libc::sock_filter { code: 6, jt: 0, jf: 0, k: u32::MAX }];
    let program = libc::sock_fprog { len: 1, filter: all.as_mut_ptr() };
    for (name, what) in [(libc::SO_DETACH_FILTER, 0), (libc::SO_LOCK_FILTER, 0), (SO_ATTACH_BPF, 9)]
    {
        denied(set(socket, libc::SOL_SOCKET, name, &what));
    }
    denied(set(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program));
}

const SO_ATTACH_BPF: i32 = 50;

/// The mark cannot be changed, neither for the socket nor for one message.
fn marks_stay(socket: &OwnedFd) {
    denied(set(socket, libc::SOL_SOCKET, libc::SO_MARK, &0u32));
    let bytes = frame(FAR, NEAR, OURS, FUNCTION, 1);
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let mut control = [0u64; 3];
    // SAFETY: zeros are a valid header.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = 20;
    // SAFETY: the control message lies in `control`, which has room for it.
    let sent = unsafe {
        let first = libc::CMSG_FIRSTHDR(&raw const message);
        (*first).cmsg_level = libc::SOL_SOCKET;
        (*first).cmsg_type = libc::SO_MARK;
        (*first).cmsg_len = libc::CMSG_LEN(4) as usize;
        libc::sendmsg(socket.as_raw_fd(), &raw const message, 0)
    };
    assert_eq!((sent, io::Error::last_os_error().raw_os_error()), (-1, Some(libc::EPERM)));
}

/// Frames that observers at the far ends send to the near ones: one for each kind that the attacker
/// must not get, those that it may, and at last one for another function, whose arrival shows that
/// all are there.
fn offer(observers: &Observers) {
    send(&observers.beyond, "beyond", &frame(ALL, FAR, OURS, FUNCTION, 20));
    let other = [2, 0, 0, 0, 0, 9];
    for (number, (to, ethertype, function)) in [
        (NEAR, OURS, FUNCTION + 1),
        (NEAR, IPV4, FUNCTION),
        (other, OURS, FUNCTION),
        ([3, 0, 0, 0, 0, 9], OURS, FUNCTION),
        (ALL, IPV4, FUNCTION),
        (ALL, OURS, FUNCTION + 1),
        (NEAR, OURS, FUNCTION),
        (ALL, OURS, 255),
        (NEAR, OURS, FUNCTION + 1),
    ]
    .into_iter()
    .enumerate()
    {
        send(&observers.far, "far", &frame(to, FAR, ethertype, function, number as u8));
    }
    seen_until(&observers.near, 8);
}

/// Numbers of the frames in [`offer`] that the attacker may get.
const PROPER: [u8; 2] = [6, 7];

/// It receives frames for its function and for all functions, and no others.
fn only_own_frames(socket: &OwnedFd, observers: &Observers) {
    offer(observers);
    assert_eq!(seen(socket), PROPER);
}

/// It can bind the socket to every interface and every EtherType. It then receives the same or
/// nothing, and after binding it back the same as before.
fn nothing_by_another_binding(socket: &OwnedFd, observers: &Observers) {
    for interface in ["near", "other", "lo", ""] {
        for ethertype in [libc::ETH_P_ALL as u16, OURS, IPV4] {
            bind(socket, interface, ethertype).expect("Linux asks for no right");
            offer(observers);
            send(&observers.near, "near", &frame(FAR, NEAR, OURS, FUNCTION, 30));
            let same = ["near", ""].contains(&interface) && ethertype != IPV4;
            let rightful = if same { &PROPER[..] } else { &[] };
            assert_eq!(seen(socket), rightful, "{interface} {ethertype:#x}");
        }
    }
    bind(socket, "near", OURS).expect("Linux asks for no right");
    only_own_frames(socket, observers);
}

/// It can make an interface promiscuous, and gains no frame by that.
fn nothing_by_membership(socket: &OwnedFd, observers: &Observers) {
    for interface in ["near", "other"] {
        let membership = libc::packet_mreq {
            mr_ifindex: address(interface, 0).sll_ifindex,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        set(socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &membership)
            .expect("Linux asks for no right");
    }
    let told = Command::new("ip").args(["-details", "link", "show", "other"]).output();
    let told = String::from_utf8_lossy(&told.expect("iproute2").stdout).into_owned();
    assert!(told.contains("promiscuity 1"), "{told}");
    only_own_frames(socket, observers);
}

/// In a fanout with another socket of its own it gets no frame that neither had got alone, and its
/// program for the choice is refused.
fn nothing_by_fanout(socket: &OwnedFd, observers: &Observers, given: &dyn Fn(u8) -> OwnedFd) {
    let second = given(FUNCTION + 2);
    let group = 77 | libc::PACKET_FANOUT_CBPF << 16;
    for member in [socket, &second] {
        set(member, libc::SOL_PACKET, libc::PACKET_FANOUT, &group)
            .expect("Linux asks for no right");
    }
    let mut first = [libc::sock_filter { code: 6, jt: 0, jf: 0, k: 0 }];
    let program = libc::sock_fprog { len: 1, filter: first.as_mut_ptr() };
    denied(set(socket, libc::SOL_PACKET, libc::PACKET_FANOUT_DATA, &program));
    offer(observers);
    let (first, second) = (seen(socket), seen(&second));
    assert!(!first.is_empty() || !second.is_empty(), "the fanout receives nothing");
    assert!(first.iter().all(|number| PROPER.contains(number)), "{first:?}");
    assert!(second.iter().all(|number| *number == 7), "{second:?}");
}

/// Only frames of our EtherType, from the interface's own address, leave, and by that interface
/// only, whichever way it sends.
fn only_proper_frames_leave(socket: &OwnedFd, observers: &Observers) {
    let wires =
        [("near", &observers.far), ("other", &observers.beyond), ("lo", &observers.loopback)];
    for (interface, observer) in wires {
        arrived(observers, interface, observer, MARKERS);
    }
    send(socket, "near", &frame(FAR, NEAR, OURS, 3, 1));
    assert_eq!(arrived(observers, "near", &observers.far, MARKERS + 1), [1], "what is proper");
    let other = [2, 0, 0, 0, 0, 9];
    let vlan = {
        let mut frame = frame(FAR, NEAR, 0x8100, 3, 9);
        frame[16..18].copy_from_slice(&OURS.to_be_bytes());
        frame
    };
    for bypass in [0, 1] {
        set(socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &bypass)
            .expect("Linux asks for no right");
        for interface in ["near", "other", "lo"] {
            for (number, (from, ethertype)) in
                [(NEAR, OURS), (NEAR, IPV4), (other, OURS), (other, IPV4)].into_iter().enumerate()
            {
                if (interface, number) != ("near", 0) {
                    let number = 10 + number as u8;
                    send(socket, interface, &frame(ALL, from, ethertype, 3, number));
                }
            }
            send(socket, interface, &vlan);
        }
        for (interface, observer) in wires {
            let all = arrived(observers, interface, observer, MARKERS + 2 + bypass as u8);
            assert_eq!(all, [], "by {interface}, bypass {bypass}");
        }
    }
    set(socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &0).expect("as before");
    // The source function is the program's own word.
    let mut forged = frame(FAR, NEAR, OURS, 3, 2);
    forged[17] = FUNCTION + 1;
    send(socket, "near", &forged);
    let all = arrived(observers, "near", &observers.far, MARKERS + 4);
    assert_eq!(all, [2], "Linux compares no function of the sender");
}

/// Rings take memory of the kernel, which no limit of the user counts.
fn memory_is_not_limited(socket: &OwnedFd) {
    let request = libc::tpacket_req {
        tp_block_size: 1 << 20,
        tp_block_nr: 32,
        tp_frame_size: 1 << 16,
        tp_frame_nr: 32 * 16,
    };
    set(socket, libc::SOL_PACKET, libc::PACKET_TX_RING, &request).expect("32 MiB");
}
