//! Sockets of one process, which talk to each other by the calls of C.

mod calls;

use bellwire_rsockets::c;
use calls::{
    LIMIT_MS, Number, bind, connect, good, last, open, option, pattern, poll, receive, send,
};
use libc::{c_int, socklen_t};
use std::ffi::c_void;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

const STREAM: c_int = libc::SOCK_STREAM;

/// A listener and its port.
fn listener(backlog: c_int) -> (Number, u16) {
    let number = open(STREAM);
    let port = bind(&number);
    good(c::rlisten(number.0, backlog));
    (number, port)
}

fn accept(listener: &Number) -> Number {
    // SAFETY: no address is wanted.
    Number(good(unsafe { c::raccept(listener.0, std::ptr::null_mut(), std::ptr::null_mut()) }))
}

fn pair() -> (Number, Number) {
    let (listener, port) = listener(1);
    let client = open(STREAM);
    good(connect(&client, port));
    let server = accept(&listener);
    (client, server)
}

/// Both sides send and read large streams at once, by writes of any length, through small buffers.
#[test]
fn both_sides_send_at_once() {
    let (client, server) = pair();
    let run = |own: Number, seed: usize| {
        std::thread::spawn(move || {
            let own = &own;
            let sent = pattern(5_000_000, seed);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let mut left = &sent[..];
                    let mut length = 1;
                    while !left.is_empty() {
                        let (part, rest) = left.split_at(length.min(left.len()));
                        assert_eq!(send(own, part, 0), part.len() as isize);
                        left = rest;
                        length = (length * 3 + 1) % 200_003;
                    }
                    good(c::rshutdown(own.0, libc::SHUT_WR));
                });
                let mut got: Vec<u8> = Vec::new();
                let mut part = vec![0; 70_001];
                loop {
                    match receive(own, &mut part, 0) {
                        0 => break,
                        count @ 1.. => got.extend(&part[..count as usize]),
                        _ => panic!("{}", io::Error::last_os_error()),
                    }
                }
                assert!(got == pattern(5_000_000, 1 - seed), "other bytes came");
            });
        })
    };
    let threads = [run(client, 0), run(server, 1)];
    threads.into_iter().for_each(|thread| thread.join().expect("it does not panic"));
}

/// A socket that does not block takes what there is room for, and is ready again once the peer has
/// read. One that is full is not writable, and one without data is not readable.
#[test]
fn without_blocking() {
    let (client, server) = pair();
    good(c::rfcntl(client.0, libc::F_SETFL, libc::O_NONBLOCK.into()));
    assert_ne!(c::rfcntl(client.0, libc::F_GETFL, 0) & libc::O_NONBLOCK, 0);
    let mut part = [0; 1000];
    assert_eq!((receive(&client, &mut part, 0), last()), (-1, libc::EAGAIN));
    assert_eq!((receive(&server, &mut part, libc::MSG_DONTWAIT), last()), (-1, libc::EAGAIN));
    let bytes = pattern(100_000, 3);
    let mut total = 0;
    loop {
        match send(&client, &bytes, 0) {
            -1 => break,
            count => total += count as usize,
        }
    }
    assert_eq!(last(), libc::EAGAIN);
    assert_eq!(poll(&client, libc::POLLIN | libc::POLLOUT, 0), 0);
    assert_eq!(poll(&server, libc::POLLIN | libc::POLLOUT, LIMIT_MS), libc::POLLIN | libc::POLLOUT);
    let mut got = 0;
    let mut room = vec![0; 50_000];
    while got < total {
        got += usize::try_from(receive(&server, &mut room, 0)).expect("bytes");
    }
    assert_eq!(poll(&client, libc::POLLOUT, LIMIT_MS), libc::POLLOUT);
    assert_eq!(poll(&server, libc::POLLIN, 0), 0);
}

/// A look leaves the bytes, and a wait for all of them waits.
#[test]
fn flags_of_receive() {
    let (client, server) = pair();
    assert_eq!(send(&client, b"abc", 0), 3);
    let mut part = [0; 6];
    assert_eq!(receive(&server, &mut part, libc::MSG_PEEK), 3);
    assert_eq!(&part[..3], b"abc");
    let server = Arc::new(server);
    let reader = std::thread::spawn({
        let server = server.clone();
        move || {
            let mut part = [0; 6];
            assert_eq!(receive(&server, &mut part, libc::MSG_WAITALL), 6);
            part
        }
    });
    // It has taken what was there, and waits.
    let since = Instant::now();
    while poll(&server, libc::POLLIN, 0) != 0 {
        assert!(since.elapsed() < Duration::from_millis(LIMIT_MS as u64), "it takes nothing");
        std::thread::yield_now();
    }
    assert_eq!(send(&client, b"def", 0), 3);
    assert_eq!(&reader.join().expect("it does not panic"), b"abcdef");
}

/// Each direction ends by itself; after both a peer's program reads the end, and cannot write.
#[test]
fn ends_of_streams() {
    let (client, server) = pair();
    let mut part = [0; 10];
    assert_eq!(send(&client, b"last", 0), 4);
    good(c::rshutdown(client.0, libc::SHUT_WR));
    assert_eq!((send(&client, b"x", libc::MSG_NOSIGNAL), last()), (-1, libc::EPIPE));
    assert_eq!(receive(&server, &mut part, 0), 4);
    assert_eq!(receive(&server, &mut part, 0), 0);
    assert_eq!(receive(&server, &mut part, 0), 0, "and again");
    assert_ne!(poll(&server, libc::POLLIN | libc::POLLRDHUP, 0) & libc::POLLRDHUP, 0);
    assert_eq!(send(&server, b"answer", 0), 6, "the other direction goes on");
    assert_eq!(receive(&client, &mut part, 0), 6);
    drop(server);
    assert_eq!(receive(&client, &mut part, 0), 0);
    assert_ne!(poll(&client, libc::POLLIN, LIMIT_MS) & libc::POLLHUP, 0);
}

/// What was written before the close arrives, although the peer reads late.
#[test]
fn a_close_keeps_what_was_written() {
    let (client, server) = pair();
    let bytes = pattern(1_200_000, 5);
    assert_eq!(send(&client, &bytes, 0), bytes.len() as isize);
    drop(client);
    std::thread::sleep(Duration::from_millis(50));
    let mut got = vec![0; bytes.len()];
    assert_eq!(receive(&server, &mut got, libc::MSG_WAITALL), bytes.len() as isize);
    assert!(got == bytes);
    assert_eq!(receive(&server, &mut got, 0), 0);
}

/// A hang-up is told after the last byte was read: a program that sees it may read no more.
#[test]
fn a_hang_up_comes_last() {
    let (client, server) = pair();
    let mut part = [0; 10];
    assert_eq!(send(&client, &pattern(20, 5), 0), 20);
    drop(client);
    // The end of the connection comes after the bytes.
    std::thread::sleep(Duration::from_millis(50));
    for _ in 0..2 {
        assert_eq!(poll(&server, libc::POLLIN, LIMIT_MS), libc::POLLIN);
        assert_eq!(receive(&server, &mut part, 0), 10);
    }
    assert_eq!(poll(&server, 0, LIMIT_MS), libc::POLLHUP);
}

/// A close that lingers for no time breaks the connection: the peer reads what came, then an error.
#[test]
fn an_abort_is_a_reset() {
    let (client, server) = pair();
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    // SAFETY: the option is as long as it says.
    good(unsafe {
        c::rsetsockopt(
            client.0,
            libc::SOL_SOCKET,
            libc::SO_LINGER,
            (&raw const linger).cast(),
            size_of_val(&linger) as socklen_t,
        )
    });
    drop(client);
    let mut part = [0; 10];
    assert_eq!((receive(&server, &mut part, 0), last()), (-1, libc::ECONNRESET));
    assert_eq!((send(&server, b"x", libc::MSG_NOSIGNAL), last()), (-1, libc::EPIPE));
}

/// Nobody listens: the error comes at once, to one that blocks and to one that does not.
#[test]
fn nobody_listens() {
    let (listener, port) = listener(1);
    drop(listener);
    let client = open(STREAM);
    assert_eq!((connect(&client, port), last()), (-1, libc::ECONNREFUSED));
    let client = open(STREAM | libc::SOCK_NONBLOCK);
    assert_eq!((connect(&client, port), last()), (-1, libc::EINPROGRESS));
    assert_ne!(poll(&client, libc::POLLOUT, LIMIT_MS) & libc::POLLERR, 0);
    assert_eq!(option(&client, libc::SOL_SOCKET, libc::SO_ERROR), libc::ECONNREFUSED);
}

/// The kernel tells epoll(7) of a socket what it is, at each edge.
#[test]
fn epoll_sees_sockets() {
    let (client, server) = pair();
    let poller = Poller(good(c::repoll_create(libc::EPOLL_CLOEXEC)));
    let edge = (libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLET) as u32;
    let mut event = libc::epoll_event { events: edge, u64: 7 };
    // SAFETY: an event.
    good(unsafe { c::repoll_ctl(poller.0, libc::EPOLL_CTL_ADD, server.0, &raw mut event) });
    let mut part = [0; 100];
    for round in 0..50 {
        assert_eq!(poller.wait(0), None, "round {round}");
        assert_eq!(send(&client, b"abc", 0), 3);
        assert_eq!(poller.wait(LIMIT_MS), Some(libc::EPOLLIN as u32), "round {round}");
        assert_eq!(receive(&server, &mut part, libc::MSG_DONTWAIT), 3);
        assert_eq!((receive(&server, &mut part, libc::MSG_DONTWAIT), last()), (-1, libc::EAGAIN));
    }
    drop(client);
    let ended = poller.wait(LIMIT_MS).expect("the end is an event");
    assert_ne!(ended & libc::EPOLLRDHUP as u32, 0);
    assert_eq!(receive(&server, &mut part, 0), 0);
}

struct Poller(c_int);

impl Poller {
    fn wait(&self, timeout: c_int) -> Option<u32> {
        let mut event = libc::epoll_event { events: 0, u64: 0 };
        // SAFETY: room for one event.
        let count = good(unsafe { c::repoll_wait(self.0, &raw mut event, 1, timeout) });
        (count == 1).then_some(event.events)
    }
}

impl Drop for Poller {
    fn drop(&mut self) {
        // SAFETY: it was opened here.
        unsafe { libc::close(self.0) };
    }
}

/// Memory of the program that the peer writes: all is there before what is sent later.
#[test]
fn peers_write_to_mapped_memory() {
    let (listener, port) = listener(1);
    let client = open(STREAM);
    for number in [&listener, &client] {
        let one: c_int = 1;
        // SAFETY: the option is a number.
        good(unsafe { c::rsetsockopt(number.0, 0x10000, 3, (&raw const one).cast(), 4) });
    }
    good(connect(&client, port));
    let server = accept(&listener);
    let mut memory = vec![0u8; 200_000];
    let start = memory.as_mut_ptr().cast::<c_void>();
    // SAFETY: the memory lasts until it is unmapped.
    assert_eq!(unsafe { c::riomap(server.0, start, 200_000, libc::PROT_WRITE, 0, 1000) }, 1000);
    // SAFETY: as above; one is all that the peer allows.
    let more = unsafe { c::riomap(server.0, start, 10, libc::PROT_WRITE, 0, 0) };
    assert_eq!((more, last()), (-1, libc::ENOMEM));
    assert_eq!(send(&server, b"go", 0), 2);
    let mut word = [0; 2];
    assert_eq!(receive(&client, &mut word, libc::MSG_WAITALL), 2);
    let bytes = pattern(150_000, 9);
    let write = |offset| {
        // SAFETY: the bytes are as many.
        unsafe { c::riowrite(client.0, bytes.as_ptr().cast(), bytes.len(), offset, 0) }
    };
    assert_eq!((write(0), last()), (-1, libc::EINVAL), "nothing is mapped there");
    assert_eq!(write(1100), bytes.len() as isize);
    assert_eq!(send(&client, b"ok", 0), 2);
    assert_eq!(receive(&server, &mut word, libc::MSG_WAITALL), 2);
    assert!(memory[100..150_100] == bytes);
    assert!(memory[..100].iter().chain(&memory[150_100..]).all(|&byte| byte == 0));
    good(c::riounmap(server.0, start, 200_000));
}

/// Connections beyond the backlog wait, and all are served in the end.
#[test]
fn more_clients_than_the_backlog() {
    let (listener, port) = listener(2);
    let clients: Vec<_> = (0..6)
        .map(|number: u8| {
            std::thread::spawn(move || {
                let own = open(STREAM);
                good(connect(&own, port));
                assert_eq!(send(&own, &[number], 0), 1);
                let mut answer = [0];
                assert_eq!(receive(&own, &mut answer, 0), 1);
                assert_eq!(answer[0], number);
            })
        })
        .collect();
    for _ in 0..6 {
        let server = accept(&listener);
        let mut byte = [0];
        assert_eq!(receive(&server, &mut byte, 0), 1);
        assert_eq!(send(&server, &byte, 0), 1);
    }
    clients.into_iter().for_each(|client| client.join().expect("it does not panic"));
}

/// Other kinds and families are not offered, and say so.
#[test]
fn other_sockets_are_refused() {
    assert_eq!(c::rsocket(libc::AF_INET, libc::SOCK_SEQPACKET, 0), -1);
    assert_eq!(last(), libc::EPROTONOSUPPORT);
    assert_eq!(c::rsocket(libc::AF_INET, libc::SOCK_DGRAM, libc::IPPROTO_TCP), -1);
    assert_eq!(last(), libc::EPROTONOSUPPORT);
    assert_eq!(c::rsocket(libc::AF_UNIX, libc::SOCK_STREAM, 0), -1);
    assert_eq!(last(), libc::EAFNOSUPPORT);
}
