//! Peer: TCP between the two sides of a network, as most programs use it: one system call per
//! message on each side, without Nagle's algorithm. When spinning, it retries without sleeping;
//! otherwise it blocks.

use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;

use anyhow::{Context, Result};

use super::socket::Connection;
use super::{Contender, Kind, Start};
use crate::network::ADDRESSES;
use crate::op::{Op, Wire};
use crate::worker::{InHouse, Party, meet};

/// TCP, spinning and blocking.
pub const CONTENDER: Contender = Contender {
    name: "tcp",
    about: "kernel TCP, no delay, busy polling",
    kind: Kind::Peer,
    wires: &[Wire::Frames1500, Wire::Frames9000, Wire::Slow],
    start: Start::InHouse(InHouse::pair(OPS, |party| {
        let stream = connect(party, ADDRESSES[0])?;
        Ok(Box::new(Connection::new(party.index, stream, TcpStream::set_nonblocking)))
    })),
};

pub(super) const OPS: &[Op] = &[Op::Latency, Op::BlockingLatency, Op::Rate, Op::Stream, Op::Tail];

const PORT: u16 = 7600;

/// Longest busy poll in the kernel, in microseconds, where the kernel supports it.
const BUSY_POLL_US: i32 = 50;

/// Connects the parties by the leader's address `leader`.
pub(super) fn connect(party: &Party, leader: &str) -> Result<TcpStream> {
    let stream = if party.is_leader() {
        let listener = TcpListener::bind((leader, PORT)).context("listening")?;
        meet(party.shared, party.index);
        listener.accept().context("accepting")?.0
    } else {
        meet(party.shared, party.index);
        TcpStream::connect((leader, PORT)).context("connecting")?
    };
    stream.set_nodelay(true)?;
    let time_us = BUSY_POLL_US;
    let value = (&raw const time_us).cast();
    // SAFETY: the kernel reads one integer. A kernel that refuses does not support busy polling,
    // which is fine.
    unsafe {
        let (fd, bytes) = (stream.as_raw_fd(), size_of::<i32>() as libc::socklen_t);
        libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_BUSY_POLL, value, bytes);
    }
    Ok(stream)
}
