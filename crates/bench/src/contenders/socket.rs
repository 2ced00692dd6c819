//! Peers available to every program: a Unix stream socket, and TCP over the loopback interface.
//! Each side makes one system call per message, and both sides block.

use std::io::{ErrorKind, Read, Result as IoResult, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use super::{Contender, Kind, Start};
use crate::op::{Op, STREAM_WINDOW, Wire};
use crate::worker::{
    Delays, InHouse, LARGEST_NETWORK_BYTES, Outcome, Party, Schedule, Side, check_message, mark,
    now_ns, spin_until, stamp, touched,
};

pub const UNIX: Contender = Contender {
    name: "unix-socket",
    about: "Unix stream socket, blocking",
    kind: Kind::Peer,
    wires: &[Wire::Memory],
    start: Start::InHouse(InHouse::pair(OPS, |party| {
        Ok(Box::new(Connection::new(party.index, unix(party)?, |_, _| Ok(()))))
    })),
};

/// TCP over the loopback interface.
pub const TCP: Contender = Contender {
    name: "tcp-loopback",
    about: "TCP over loopback, no delay, blocking",
    kind: Kind::Peer,
    wires: &[Wire::Memory],
    start: Start::InHouse(InHouse::pair(OPS, |party| {
        Ok(Box::new(Connection::new(party.index, tcp(party)?, |_, _| Ok(()))))
    })),
};

const OPS: &[Op] = &[Op::Latency, Op::Rate, Op::Stream];

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

/// One side of a connected stream socket.
pub struct Connection<S> {
    index: usize,
    socket: S,
    buffers: Vec<u8>,
    /// Told before each operation whether to spin, and so not to block.
    spin: fn(&S, bool) -> IoResult<()>,
}

/// Most bytes that the receiver of small messages takes at once.
const READ_BYTES: usize = 64 << 10;

impl<S: Read + Write> Connection<S> {
    pub fn new(index: usize, socket: S, spin: fn(&S, bool) -> IoResult<()>) -> Connection<S> {
        let buffers = touched(STREAM_WINDOW * LARGEST_NETWORK_BYTES);
        Connection { index, socket, buffers, spin }
    }

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

    /// Receives small messages, all bytes that are there at a time, and shows each to `taken`.
    fn take_small(&mut self, bytes: usize, count: u64, mut taken: impl FnMut(&[u8])) -> Result<()> {
        let (mut number, mut filled) = (0, 0);
        while number < count {
            filled += self.read(filled, READ_BYTES)?;
            let whole = filled / bytes * bytes;
            for message in self.buffers[..whole].chunks_exact(bytes) {
                check_message(message, number)?;
                taken(message);
                number += 1;
            }
            self.buffers.copy_within(whole..filled, 0);
            filled -= whole;
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
        self.take_small(bytes, count, |_| {})?;
        self.send(0, 8, count)
    }

    /// Messages at random times to the leader.
    fn paced(&mut self, bytes: usize, count: u64) -> Result<Outcome> {
        if self.index == 0 {
            let mut delays = Delays::new(count);
            self.take_small(bytes, count, |message| delays.arrived(message))?;
            return Ok(delays.outcome());
        }
        let mut schedule = Schedule::new(bytes);
        for number in 0..count {
            let due_ns = schedule.next_ns();
            spin_until(|| now_ns() >= due_ns);
            stamp(&mut self.buffers[..bytes], due_ns);
            self.send(0, bytes, number)?;
        }
        Ok(Outcome::default())
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

impl<S: Read + Write> Side for Connection<S> {
    fn run(&mut self, op: Op, bytes: usize, count: u64) -> Result<Outcome> {
        (self.spin)(&self.socket, op != Op::BlockingLatency)?;
        // One round trip first, so that both sides are awake.
        self.ping_pong(8, 1)?;
        let start = Instant::now();
        match op {
            Op::Tail => return self.paced(bytes, count),
            Op::Latency | Op::BlockingLatency => self.ping_pong(bytes, count)?,
            Op::Rate => self.one_way_small(bytes, count)?,
            _ => self.one_way_large(bytes, count)?,
        }
        Ok(Outcome::since(start))
    }
}
