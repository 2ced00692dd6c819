//! Peer: TCP between the two sides of a network, as most programs use it: one system call per
//! message on each side, without Nagle's algorithm. When spinning, it retries without sleeping;
//! otherwise it blocks.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use super::{Contender, Kind, Start};
use crate::network::ADDRESSES;
use crate::op::{Op, STREAM_WINDOW, Wire};
use crate::worker::{
    InHouse, LARGEST_NETWORK_BYTES, Outcome, Party, Side, check_message, mark, meet, touched,
};

/// TCP, spinning and blocking.
pub const CONTENDER: Contender = Contender {
    name: "tcp",
    about: "kernel TCP, no delay, busy polling",
    kind: Kind::Peer,
    wires: &[Wire::Frames1500, Wire::Frames9000],
    start: Start::InHouse(InHouse {
        ops: &[Op::Latency, Op::BlockingLatency, Op::Rate, Op::Stream],
        followers: 1,
        shared_bytes: 0,
        open: |party| {
            let (index, socket) = (party.index, connect(party)?);
            let buffers = touched(STREAM_WINDOW * LARGEST_NETWORK_BYTES);
            Ok(Box::new(Connection { index, socket, buffers }))
        },
    }),
};

const PORT: u16 = 7600;

/// Longest busy poll in the kernel, in microseconds, where the kernel supports it.
const BUSY_POLL_US: i32 = 50;

/// Most bytes that the receiver of small messages takes at once.
const READ_BYTES: usize = 64 << 10;

fn connect(party: &Party) -> Result<TcpStream> {
    let stream = if party.is_leader() {
        let listener = TcpListener::bind((ADDRESSES[0], PORT)).context("listening")?;
        meet(party.shared, party.index);
        listener.accept().context("accepting")?.0
    } else {
        meet(party.shared, party.index);
        TcpStream::connect((ADDRESSES[0], PORT)).context("connecting")?
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

struct Connection {
    index: usize,
    socket: TcpStream,
    buffers: Vec<u8>,
}

impl Connection {
    fn send(&mut self, start: usize, bytes: usize, number: u64) -> Result<()> {
        mark(&mut self.buffers[start..start + bytes], number);
        let mut rest = &self.buffers[start..start + bytes];
        while !rest.is_empty() {
            match self.socket.write(rest) {
                Ok(written) => rest = &rest[written..],
                Err(why) if why.kind() == ErrorKind::WouldBlock => {}
                Err(why) => return Err(why).context("sending"),
            }
        }
        Ok(())
    }

    fn receive(&mut self, start: usize, bytes: usize, number: u64) -> Result<()> {
        let mut came = 0;
        while came < bytes {
            came += self.read(start + came, start + bytes)?;
        }
        check_message(&self.buffers[start..start + bytes], number)
    }

    /// Reads the available bytes into a part of the buffers.
    fn read(&mut self, start: usize, end: usize) -> Result<usize> {
        match self.socket.read(&mut self.buffers[start..end]) {
            Ok(0) => bail!("the other side has closed the connection"),
            Ok(came) => Ok(came),
            Err(why) if why.kind() == ErrorKind::WouldBlock => Ok(0),
            Err(why) => Err(why).context("receiving"),
        }
    }

    fn ping_pong(&mut self, bytes: usize, count: u64) -> Result<()> {
        for number in 0..count {
            if self.index == 0 {
                self.send(0, bytes, number)?;
                self.receive(0, bytes, number)?;
            } else {
                self.receive(0, bytes, number)?;
                self.send(0, bytes, number)?;
            }
        }
        Ok(())
    }

    /// Small messages one way: the sender makes one call per message, the receiver takes all bytes
    /// that are there.
    fn one_way_small(&mut self, bytes: usize, count: u64) -> Result<()> {
        if self.index == 0 {
            (0..count).try_for_each(|number| self.send(0, bytes, number))?;
            return self.receive(0, 8, count);
        }
        let (mut number, mut filled) = (0, 0);
        while number < count {
            filled += self.read(filled, READ_BYTES)?;
            let whole = filled / bytes * bytes;
            for message in self.buffers[..whole].chunks_exact(bytes) {
                check_message(message, number)?;
                number += 1;
            }
            self.buffers.copy_within(whole..filled, 0);
            filled -= whole;
        }
        self.send(0, 8, count)
    }

    fn one_way_large(&mut self, bytes: usize, count: u64) -> Result<()> {
        for number in 0..count {
            let start = number as usize % STREAM_WINDOW * bytes;
            if self.index == 0 {
                self.send(start, bytes, number)?;
            } else {
                self.receive(start, bytes, number)?;
            }
        }
        if self.index == 0 { self.receive(0, 8, count) } else { self.send(0, 8, count) }
    }
}

impl Side for Connection {
    fn run(&mut self, op: Op, bytes: usize, count: u64) -> Result<Outcome> {
        self.socket.set_nonblocking(op != Op::BlockingLatency)?;
        // One round trip first, so that both sides are awake.
        self.ping_pong(8, 1)?;
        let start = Instant::now();
        match op {
            Op::Latency | Op::BlockingLatency => self.ping_pong(bytes, count)?,
            Op::Rate => self.one_way_small(bytes, count)?,
            _ => self.one_way_large(bytes, count)?,
        }
        Ok(Outcome::since(start))
    }
}
