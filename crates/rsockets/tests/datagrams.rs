//! Sockets of datagrams, which talk to each other by the calls of C.

mod calls;
#[path = "oracles/stranger.rs"]
mod stranger;

use bellwire_rsockets::c;
use bellwire_rsockets::datagram::frame::Ask;
use calls::{
    ADDRESS_BYTES, LIMIT_MS, Number, at, bind, connect, good, last, open, option, pattern, poll,
    receive, send,
};
use libc::{c_int, iovec, msghdr, sockaddr_in};
use std::mem::zeroed;
use stranger::Stranger;

const DATAGRAMS: c_int = libc::SOCK_DGRAM;
/// The most bytes of a datagram.
const MOST: usize = 4080;

fn send_to(number: &Number, bytes: &[u8], port: u16) -> isize {
    let to = at(port);
    let (start, length) = (bytes.as_ptr().cast(), bytes.len());
    // SAFETY: the bytes are as many, and the address is as long as it says.
    unsafe { c::rsendto(number.0, start, length, 0, (&raw const to).cast(), ADDRESS_BYTES) }
}

/// Receives a datagram, and the port of its sender.
fn receive_from(number: &Number, to: &mut [u8], flags: c_int) -> (isize, u16) {
    let (mut from, mut length) = (at(0), ADDRESS_BYTES);
    let (start, room) = (to.as_mut_ptr().cast(), to.len());
    let from_place = (&raw mut from).cast();
    // SAFETY: the room is as long, and the address as well.
    let count = unsafe { c::rrecvfrom(number.0, start, room, flags, from_place, &raw mut length) };
    assert_eq!((length, i32::from(from.sin_family)), (ADDRESS_BYTES, libc::AF_INET));
    assert_eq!(from.sin_addr.s_addr, at(0).sin_addr.s_addr);
    (count, u16::from_be(from.sin_port))
}

fn bound() -> (Number, u16) {
    let number = open(DATAGRAMS);
    let port = bind(&number);
    (number, port)
}

/// Datagrams of all lengths go forth and back between two that are not connected, each with the
/// address of its sender. The first ones go by UDP, the later ones from queue pair to queue pair.
#[test]
fn each_datagram_has_its_length_and_its_sender() {
    let ((server, port), (client, own)) = (bound(), bound());
    let mut room = vec![0; MOST + 10];
    for (round, length) in (0..200).zip((0..=MOST).step_by(510).cycle()) {
        let bytes = pattern(length, round);
        assert_eq!(send_to(&client, &bytes, port), length as isize);
        assert_eq!(receive_from(&server, &mut room, 0), (length as isize, own));
        assert!(room[..length] == bytes, "round {round}");
        assert_eq!(send_to(&server, &bytes, own), length as isize);
        assert_eq!(receive_from(&client, &mut room, 0), (length as isize, port));
        assert!(room[..length] == bytes, "round {round}");
    }
    assert_eq!((send_to(&client, &vec![0; MOST + 1], port), last()), (-1, libc::EMSGSIZE));
}

/// One that is connected needs no address, and hears its peer alone.
#[test]
fn a_connected_one_hears_its_peer_alone() {
    let ((server, port), (other, _)) = (bound(), bound());
    let client = open(DATAGRAMS);
    assert_eq!((send(&client, b"x", 0), last()), (-1, libc::EDESTADDRREQ));
    good(connect(&client, port));
    let (mut own, mut length) = (at(0), ADDRESS_BYTES);
    // SAFETY: the address is as long as it says.
    good(unsafe { c::rgetsockname(client.0, (&raw mut own).cast(), &raw mut length) });
    let own = u16::from_be(own.sin_port);
    let mut room = [0; 10];
    for _ in 0..3 {
        assert_eq!(send(&client, b"ask", 0), 3);
        assert_eq!(receive_from(&server, &mut room, 0), (3, own));
        assert_eq!(send_to(&other, b"strange", own), 7);
        assert_eq!(send_to(&server, b"own", own), 3);
        assert_eq!(receive(&client, &mut room, 0), 3);
        assert_eq!(&room[..3], b"own");
        assert_eq!((receive(&client, &mut room, libc::MSG_DONTWAIT), last()), (-1, libc::EAGAIN));
    }
    // SAFETY: the address is as long as it says.
    unsafe {
        let mut peer = at(0);
        good(c::rgetpeername(client.0, (&raw mut peer).cast(), &raw mut length));
        assert_eq!(u16::from_be(peer.sin_port), port);
        assert_eq!(c::rgetpeername(server.0, (&raw mut peer).cast(), &raw mut length), -1);
        assert_eq!(last(), libc::ENOTCONN);
    }
    good(c::rshutdown(client.0, libc::SHUT_RDWR));
    assert_eq!(receive(&client, &mut room, 0), 0);
    assert_eq!((send(&client, b"x", libc::MSG_NOSIGNAL), last()), (-1, libc::EPIPE));
}

/// Nobody is at the peer's address: the kernel of its host says so, and a later call tells it.
#[test]
fn nobody_is_there() {
    let (server, port) = bound();
    drop(server);
    let client = open(DATAGRAMS);
    good(connect(&client, port));
    assert_eq!(send(&client, b"x", 0), 1);
    assert_ne!(poll(&client, libc::POLLIN, LIMIT_MS) & libc::POLLERR, 0);
    assert_eq!((receive(&client, &mut [0; 9], 0), last()), (-1, libc::ECONNREFUSED));
    assert_eq!((receive(&client, &mut [0; 9], libc::MSG_DONTWAIT), last()), (-1, libc::EAGAIN));
}

/// A process that takes the address of one that has gone gets datagrams again, within seconds.
#[test]
fn another_one_at_the_address() {
    let (server, port) = bound();
    let (client, _) = bound();
    let mut room = [0; 9];
    for _ in 0..2 {
        assert_eq!(send_to(&client, b"one", port), 3);
        assert_eq!(receive(&server, &mut room, 0), 3);
    }
    drop(server);
    let server = open(DATAGRAMS);
    let to = at(port);
    // SAFETY: the address is as long as it says.
    good(unsafe { c::rbind(server.0, (&raw const to).cast(), ADDRESS_BYTES) });
    // The client's first ones go to the queue pair that is gone.
    loop {
        assert_eq!(send_to(&client, b"two", port), 3);
        if poll(&server, libc::POLLIN, 50) != 0 {
            break;
        }
    }
    assert_eq!(receive(&server, &mut room, 0), 3);
    assert_eq!(&room[..3], b"two");
}

/// A list is one datagram, a look leaves it, and a part that has no room is dropped.
#[test]
fn lists_looks_and_cut_ends() {
    let ((server, port), (client, own)) = (bound(), bound());
    let mut to = at(port);
    for _ in 0..3 {
        let parts = [&b"ab"[..], b"", b"cdef"];
        let mut list = parts
            .map(|part| iovec { iov_base: part.as_ptr().cast_mut().cast(), iov_len: part.len() });
        // SAFETY: all its fields are numbers and pointers.
        let mut message: msghdr = unsafe { zeroed() };
        (message.msg_iov, message.msg_iovlen) = (list.as_mut_ptr(), list.len());
        (message.msg_name, message.msg_namelen) = ((&raw mut to).cast(), ADDRESS_BYTES);
        // SAFETY: the message has what it says.
        assert_eq!(unsafe { c::rsendmsg(client.0, &raw const message, 0) }, 6);
        let mut room = [0; 9];
        assert_eq!(receive_from(&server, &mut room, libc::MSG_PEEK), (6, own));
        assert_eq!(receive_from(&server, &mut room[..1], libc::MSG_PEEK | libc::MSG_TRUNC).0, 6);
        let mut from: sockaddr_in = at(0);
        let (mut first, mut second) = ([0u8; 3], [0u8; 2]);
        let mut list = [first.as_mut_slice(), &mut second]
            .map(|part| iovec { iov_base: part.as_mut_ptr().cast(), iov_len: part.len() });
        (message.msg_iov, message.msg_iovlen) = (list.as_mut_ptr(), list.len());
        message.msg_name = (&raw mut from).cast();
        // SAFETY: the message has what it says.
        assert_eq!(unsafe { c::rrecvmsg(server.0, &raw mut message, 0) }, 5);
        assert_eq!((&first, &second), (b"abc", b"de"));
        assert_eq!(u16::from_be(from.sin_port), own);
        assert_ne!(message.msg_flags & libc::MSG_TRUNC, 0);
        assert_eq!(receive(&server, &mut room, libc::MSG_DONTWAIT), -1, "the rest is gone");
    }
    assert_eq!(option(&server, libc::SOL_SOCKET, libc::SO_TYPE), libc::SOCK_DGRAM);
    assert_eq!(option(&server, libc::SOL_SOCKET, libc::SO_PROTOCOL), libc::IPPROTO_UDP);
    assert_eq!((c::rlisten(server.0, 1), last()), (-1, libc::EOPNOTSUPP));
}

/// A sleeper is woken by a datagram of either way, by poll and by epoll.
#[test]
fn sleepers_are_woken() {
    let ((server, port), (client, own)) = (bound(), bound());
    let reader = std::thread::spawn(move || {
        let poller = good(c::repoll_create(libc::EPOLL_CLOEXEC));
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 7 };
        let mut room = [0; 9];
        for round in 0..20 {
            if round == 10 {
                let event = &raw mut event;
                // SAFETY: an event.
                good(unsafe { c::repoll_ctl(poller, libc::EPOLL_CTL_ADD, server.0, event) });
            }
            if round < 10 {
                assert_ne!(poll(&server, libc::POLLIN, LIMIT_MS) & libc::POLLIN, 0);
            } else {
                // SAFETY: room for one event.
                assert_eq!(unsafe { c::repoll_wait(poller, &raw mut event, 1, LIMIT_MS) }, 1);
            }
            assert_eq!(receive_from(&server, &mut room, libc::MSG_DONTWAIT), (1, own));
            assert_eq!(receive(&server, &mut room, libc::MSG_DONTWAIT), -1);
            assert_eq!(send_to(&server, &room[..1], own), 1);
        }
        // SAFETY: it was opened here.
        unsafe { libc::close(poller) };
    });
    for round in 0..20 {
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert_eq!(send_to(&client, &[round], port), 1);
        let mut room = [0; 9];
        assert_eq!(receive(&client, &mut room, 0), 1);
        assert_eq!(room[0], round);
    }
    reader.join().expect("it does not panic");
}

/// More than there is room for is dropped, and what has room arrives once, in order, with a socket
/// that works on.
#[test]
fn what_has_no_room_is_dropped() {
    let ((server, port), (client, _)) = (bound(), bound());
    let mut room = [0; 1000];
    for _ in 0..2 {
        assert_eq!(send_to(&client, b"way", port), 3);
        assert_eq!(receive(&server, &mut room, 0), 3);
    }
    for number in 0..2000u16 {
        let mut bytes = [0; 1000];
        bytes[..2].copy_from_slice(&number.to_ne_bytes());
        assert_eq!(send_to(&client, &bytes, port), 1000);
    }
    let mut last_number = None;
    while poll(&server, libc::POLLIN, 300) != 0 {
        assert_eq!(receive(&server, &mut room, libc::MSG_DONTWAIT), 1000);
        let number = u16::from_ne_bytes([room[0], room[1]]);
        assert!(last_number.is_none_or(|last| last < number), "{last_number:?} before {number}");
        last_number = Some(number);
    }
    assert!(last_number.is_some());
    assert_eq!(send_to(&client, b"on", port), 2);
    assert_eq!(receive(&server, &mut room, 0), 2);
}

/// More frames of UDP than one look takes are all heard, in order.
#[test]
fn many_questions_at_once() {
    let (server, port) = bound();
    let stranger = Stranger::new();
    for number in 0..200 {
        let frame = Ask { nonce: 5, data: Some(&[number]) }.emit();
        stranger.udp.send_to(&frame, ("127.0.0.1", port)).expect("sent");
    }
    let mut room = [0; 9];
    for number in 0..200 {
        assert_ne!(poll(&server, libc::POLLIN, LIMIT_MS), 0);
        assert_eq!(receive_from(&server, &mut room, 0), (1, stranger.port()));
        assert_eq!(room[0], number);
    }
}

/// What a stranger with a queue pair of its own sends is heard with the seal that its address was
/// given, and not with another one. Its answers count with the nonce of a question.
#[test]
fn strangers_cannot_send_in_the_name_of_others() {
    stranger::seals_are_checked(true);
    stranger::nonces_are_checked();
}

/// Frames of UDP that are too short, too long, of another version or of no kind are dropped.
#[test]
fn hostile_frames_are_dropped() {
    let (server, port) = bound();
    let mut stranger = Stranger::new();
    let hello = stranger.ask(port);
    for frame in stranger::hostile_frames(&hello) {
        stranger.udp.send_to(&frame, ("127.0.0.1", port)).expect("sent");
    }
    assert_eq!(stranger.ask(port).queue_pair, hello.queue_pair);
    let mut room = [0; 9];
    assert_eq!(receive(&server, &mut room, libc::MSG_DONTWAIT), -1, "{room:?}");
}
