//! Peers available to every program: a Unix stream socket, and TCP over the loopback interface.
//! Each side makes one system call per message, and both sides block.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::{Context, Result};

use super::copy_straight::{LARGEST_STREAM_BYTES, stamp};
use super::{Contender, Kind, Start};
use crate::op::{Op, STREAM_WINDOW, Wire};
use crate::worker::{InHouse, Outcome, Party, Side, check_arrived, spin_until, touched};

/// A Unix stream socket.
pub const UNIX: Contender = Contender {
    name: "unix-socket",
    about: "Unix stream socket, blocking",
    kind: Kind::Peer,
    wires: &[Wire::Memory],
    start: Start::InHouse(InHouse {
        ops: &[Op::Latency, Op::Rate, Op::Stream],
        followers: 1,
        shared_bytes: 0,
        open: |party| Ok(Box::new(Stream::new(party.index, unix(party)?))),
    }),
};

/// TCP over the loopback interface.
pub const TCP: Contender = Contender {
    name: "tcp-loopback",
    about: "TCP over loopback, no delay, blocking",
    kind: Kind::Peer,
    wires: &[Wire::Memory],
    start: Start::InHouse(InHouse {
        ops: &[Op::Latency, Op::Rate, Op::Stream],
        followers: 1,
        shared_bytes: 0,
        open: |party| Ok(Box::new(Stream::new(party.index, tcp(party)?))),
    }),
};

/// The control word with the leader's port.
const PORT: usize = 2;

/// Connects the parties by a listening socket without a file name.
fn unix(party: &Party) -> Result<UnixStream> {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixListener};

    let name = format!("bellwire-bench-{}", party.leader_pid);
    let address = SocketAddr::from_abstract_name(name).context("an abstract socket name")?;
    let port = party.shared.word(PORT);
    if party.is_leader() {
        let listener = UnixListener::bind_addr(&address).context("listening")?;
        port.store(1, Ordering::Release);
        Ok(listener.accept().context("accepting")?.0)
    } else {
        spin_until(|| port.load(Ordering::Acquire) != 0);
        UnixStream::connect_addr(&address).context("connecting")
    }
}

fn tcp(party: &Party) -> Result<TcpStream> {
    let port = party.shared.word(PORT);
    let stream = if party.is_leader() {
        let listener = TcpListener::bind("127.0.0.1:0").context("listening on loopback")?;
        port.store(u64::from(listener.local_addr()?.port()), Ordering::Release);
        listener.accept().context("accepting")?.0
    } else {
        spin_until(|| port.load(Ordering::Acquire) != 0);
        let port = port.load(Ordering::Relaxed) as u16;
        TcpStream::connect(("127.0.0.1", port)).context("connecting over loopback")?
    };
    stream.set_nodelay(true)?;
    Ok(stream)
}

struct Stream<S> {
    index: usize,
    socket: S,
    buffers: Vec<u8>,
}

impl<S: Read + Write> Stream<S> {
    fn new(index: usize, socket: S) -> Stream<S> {
        Stream { index, socket, buffers: touched(STREAM_WINDOW * LARGEST_STREAM_BYTES) }
    }

    fn send(&mut self, number: u64) -> Result<()> {
        self.socket.write_all(&number.to_ne_bytes()).context("sending")
    }

    fn receive(&mut self, number: u64) -> Result<()> {
        let mut message = [0; 8];
        self.socket.read_exact(&mut message).context("receiving")?;
        check_arrived(number, u64::from_ne_bytes(message))
    }

    fn ping_pong(&mut self, count: u64) -> Result<()> {
        for number in 0..count {
            if self.index == 0 {
                self.send(number)?;
                self.receive(number)?;
            } else {
                self.receive(number)?;
                self.send(number)?;
            }
        }
        Ok(())
    }

    /// Small messages one way: the sender makes one call per message, the receiver takes all bytes
    /// that are there.
    fn one_way_small(&mut self, count: u64) -> Result<()> {
        if self.index == 0 {
            (0..count).try_for_each(|number| self.send(number))?;
            return self.receive(count);
        }
        let (mut number, mut filled) = (0, 0);
        while number < count {
            filled += self.socket.read(&mut self.buffers[filled..READ_BYTES]).context("reading")?;
            let whole = filled / 8 * 8;
            for message in self.buffers[..whole].chunks_exact(8) {
                check_arrived(number, stamp(message))?;
                number += 1;
            }
            self.buffers.copy_within(whole..filled, 0);
            filled -= whole;
        }
        self.send(count)
    }

    fn one_way_large(&mut self, bytes: usize, count: u64) -> Result<()> {
        for number in 0..count {
            let offset = number as usize % STREAM_WINDOW * bytes;
            let message = &mut self.buffers[offset..offset + bytes];
            if self.index == 0 {
                message[..8].copy_from_slice(&number.to_ne_bytes());
                self.socket.write_all(message).context("sending")?;
            } else {
                self.socket.read_exact(message).context("receiving")?;
                check_arrived(number, stamp(message))?;
            }
        }
        if self.index == 0 { self.receive(count) } else { self.send(count) }
    }
}

/// Most bytes that the receiver of small messages takes at once.
const READ_BYTES: usize = 64 << 10;

impl<S: Read + Write> Side for Stream<S> {
    fn run(&mut self, op: Op, bytes: usize, count: u64) -> Result<Outcome> {
        // One round trip first, so that both sides are awake.
        self.ping_pong(1)?;
        let start = Instant::now();
        match op {
            Op::Latency => self.ping_pong(count)?,
            Op::Rate => self.one_way_small(count)?,
            _ => self.one_way_large(bytes, count)?,
        }
        Ok(Outcome::since(start))
    }
}
