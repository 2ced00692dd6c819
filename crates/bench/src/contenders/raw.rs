//! Limits of the network: frames and datagrams without any protocol. A message is cut into as many
//! as it needs, each stamped with its number. There is no retransmission and no reordering. The
//! only flow control is an occasional frame back, without which the receiver's ring would overflow.

use std::net::UdpSocket;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bellwire_ethernet::frame_io::FrameIo;
use bellwire_ethernet::interface::Interface;
use bellwire_ethernet::link_header::Mac;
use bellwire_ethernet::packet::PacketIo;
use bellwire_ethernet::xdp::{Mode, XdpIo};
use rustix::net::sockopt::set_socket_recv_buffer_size_force;

use super::copy_straight::stamp;
use super::{Contender, Kind, Start};
use crate::network::{ADDRESSES, INTERFACE};
use crate::op::{Op, Wire};
use crate::worker::{
    InHouse, LARGEST_NETWORK_BYTES, Outcome, Party, SharedMemory, Side, check_arrived, meet,
    spin_until, touched,
};

/// AF_XDP in generic mode, which every driver supports and which is fastest on veth.
pub const XDP: Contender = Contender {
    name: "raw-xdp",
    about: "raw frames by AF_XDP, no protocol",
    kind: Kind::Limit,
    wires: &[Wire::Frames1500],
    start: start(|party| {
        let interface = Interface::find(INTERFACE)?;
        let io = XdpIo::open(&interface, FUNCTION, Mode::Generic)?;
        Raw::open(party, Frames { io, to: partner(party, &interface) })
    }),
};

/// AF_PACKET: one send per frame, a mapped ring for arrivals.
pub const PACKET: Contender = Contender {
    name: "raw-packet",
    about: "raw frames by AF_PACKET, no protocol",
    kind: Kind::Limit,
    wires: &[Wire::Frames1500, Wire::Frames9000],
    start: start(|party| {
        let interface = Interface::find(INTERFACE)?;
        let io = PacketIo::open(&interface, FUNCTION)?;
        Raw::open(party, Frames { io, to: partner(party, &interface) })
    }),
};

/// UDP: one send and one receive per datagram. Programs that tolerate losses can use it directly,
/// too.
pub const UDP: Contender = Contender {
    name: "raw-udp",
    about: "kernel UDP datagrams, no protocol",
    kind: Kind::Limit,
    wires: &[Wire::Frames1500, Wire::Frames9000],
    start: start(|party| {
        let socket = UdpSocket::bind((ADDRESSES[party.index], UDP_PORT)).context("binding")?;
        meet(party.shared, party.index);
        socket.connect((ADDRESSES[1 - party.index], UDP_PORT)).context("connecting")?;
        socket.set_nonblocking(true)?;
        enlarge_receive_buffer(&socket)?;
        let mtu = Interface::find(INTERFACE)?.mtu;
        let payload_bytes = mtu - IP_AND_UDP_HEADER_BYTES;
        Raw::open(party, Datagrams { socket, payload_bytes, room: touched(mtu) })
    }),
};

const fn start(open: fn(&Party) -> Result<Box<dyn Side>>) -> Start {
    Start::InHouse(InHouse::pair(&[Op::Latency, Op::Rate, Op::Stream], open))
}

const FUNCTION: u8 = 1;
const UDP_PORT: u16 = 7700;
const IP_AND_UDP_HEADER_BYTES: usize = 28;

/// The fields before the data that the kernel's filter for our frames checks: version, kind and
/// function, and padding.
const HEAD_BYTES: usize = 8;

/// Most frames in flight, and frames between two reports of the receiver.
const WINDOW: u64 = 128;
const CREDIT: u64 = 32;

/// Control words after those of [`meet`]: each party's Ethernet address.
const TELL: usize = 2;

/// A frame that is not there after this time is lost.
const PATIENCE: Duration = Duration::from_secs(2);

/// A carrier of pieces of messages.
trait Carrier {
    /// Bytes that one frame carries.
    fn payload_bytes(&self) -> usize;
    fn send(&mut self, payload: &[u8]) -> Result<()>;
    /// Hands over at most one arrived frame; returns whether there was one.
    fn receive(&mut self, take: impl FnMut(&[u8])) -> Result<bool>;
}

struct Frames<Io: FrameIo> {
    io: Io,
    to: Io::Path,
}

impl<Io: FrameIo> Carrier for Frames<Io> {
    fn payload_bytes(&self) -> usize {
        self.io.frame_bytes() - HEAD_BYTES
    }

    #[inline]
    fn send(&mut self, payload: &[u8]) -> Result<()> {
        let room = self.io.room().context("no room to send")?;
        room[..HEAD_BYTES].copy_from_slice(&[0, 0, FUNCTION, 0, 0, 0, 0, 0]);
        room[HEAD_BYTES..HEAD_BYTES + payload.len()].copy_from_slice(payload);
        self.io.stage(self.to, HEAD_BYTES + payload.len());
        while !self.io.flush() {}
        Ok(())
    }

    #[inline]
    fn receive(&mut self, mut take: impl FnMut(&[u8])) -> Result<bool> {
        Ok(self.io.receive(1, |_, frame| take(&frame[HEAD_BYTES..])) > 0)
    }
}

struct Datagrams {
    socket: UdpSocket,
    payload_bytes: usize,
    room: Vec<u8>,
}

impl Carrier for Datagrams {
    fn payload_bytes(&self) -> usize {
        self.payload_bytes
    }

    #[inline]
    fn send(&mut self, payload: &[u8]) -> Result<()> {
        loop {
            match self.socket.send(payload) {
                Ok(_) => return Ok(()),
                Err(why) if why.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(why) => return Err(why).context("sending"),
            }
        }
    }

    #[inline]
    fn receive(&mut self, mut take: impl FnMut(&[u8])) -> Result<bool> {
        match self.socket.recv(&mut self.room) {
            Ok(length) => take(&self.room[..length]),
            Err(why) if why.kind() == std::io::ErrorKind::WouldBlock => return Ok(false),
            Err(why) => return Err(why).context("receiving"),
        }
        Ok(true)
    }
}

/// Sends the other party our Ethernet address, and reads its address.
fn partner(party: &Party, interface: &Interface) -> Mac {
    let mut own = [0; 8];
    own[..6].copy_from_slice(&interface.mac.0);
    // Release pairs with the Acquire of the other party.
    party.shared.word(TELL + party.index).store(u64::from_le_bytes(own), Ordering::Release);
    let theirs = party.shared.word(TELL + 1 - party.index);
    spin_until(|| theirs.load(Ordering::Acquire) != 0);
    let theirs = theirs.load(Ordering::Relaxed).to_le_bytes();
    Mac(std::array::from_fn(|at| theirs[at]))
}

/// Makes room for all bytes in flight; the usual limit is too small for jumbo frames.
fn enlarge_receive_buffer(socket: &UdpSocket) -> Result<()> {
    set_socket_recv_buffer_size_force(socket, 8 << 20).context("a larger receive buffer")
}

struct Raw<C> {
    index: usize,
    shared: SharedMemory,
    carrier: C,
    /// The message to send, and the expected one.
    out: Vec<u8>,
    into: Vec<u8>,
    /// Whether messages go one way, so that their frames are counted.
    one_way: bool,
    /// Frames sent, and frames that the other side reported as arrived.
    sent: u64,
    told: u64,
    /// Frames that arrived, without reports.
    came: u64,
}

/// The receiver's last report, in place of a number of frames.
const ALL_CAME: u64 = u64::MAX;

impl<C: Carrier + 'static> Raw<C> {
    fn open(party: &Party, carrier: C) -> Result<Box<dyn Side>> {
        let [out, into] = [0; 2].map(|_| touched(LARGEST_NETWORK_BYTES + 8));
        let (index, shared) = (party.index, party.shared);
        // Frames sent before the other side has its socket would be lost.
        meet(shared, index);
        let (one_way, sent, told, came) = (false, 0, 0, 0);
        Ok(Box::new(Raw { index, shared, carrier, out, into, one_way, sent, told, came }))
    }

    /// Sends a message; each of its frames begins with its number.
    #[inline]
    fn send(&mut self, bytes: usize, number: u64) -> Result<()> {
        let most = self.carrier.payload_bytes();
        let mut start = 0;
        while start < bytes {
            let end = (start + most).min(bytes);
            // The buffer has room past the longest message for the number in a short last frame.
            self.out[start..start + 8].copy_from_slice(&number.to_ne_bytes());
            let since = Instant::now();
            while self.one_way && self.sent == self.told + WINDOW {
                self.hear()?;
                ensure!(since.elapsed() < PATIENCE, "frames were lost");
            }
            self.carrier.send(&self.out[start..end.max(start + 8)])?;
            self.sent += 1;
            start = end;
        }
        Ok(())
    }

    /// Receives the expected message, and checks all of its frames.
    #[inline]
    fn receive(&mut self, bytes: usize, due: u64) -> Result<()> {
        let most = self.carrier.payload_bytes();
        let mut start = 0;
        let mut since = None;
        while start < bytes {
            let end = (start + most).min(bytes);
            let into = &mut self.into[start..end.max(start + 8)];
            let mut whole = false;
            let came = self.carrier.receive(|frame| {
                // Short frames arrive padded.
                whole = frame.len() >= into.len();
                if whole {
                    into.copy_from_slice(&frame[..into.len()]);
                }
            })?;
            if !came {
                let since = since.get_or_insert_with(Instant::now);
                ensure!(since.elapsed() < PATIENCE, "a frame of message {due} was lost");
                continue;
            }
            ensure!(whole, "a frame of message {due} was cut");
            check_arrived(due, stamp(&self.into[start..]))?;
            (start, since) = (end, None);
            self.came += 1;
            if self.one_way && self.came.is_multiple_of(CREDIT) {
                self.carrier.send(&self.came.to_ne_bytes())?;
            }
        }
        Ok(())
    }

    fn ping_pong(&mut self, bytes: usize, count: u64) -> Result<()> {
        for number in 0..count {
            if self.index == 0 {
                self.send(bytes, number)?;
                self.receive(bytes, number)?;
            } else {
                self.receive(bytes, number)?;
                self.send(bytes, number)?;
            }
        }
        Ok(())
    }

    /// Messages one way. Now and then the receiver reports how many frames have arrived.
    fn one_way(&mut self, bytes: usize, count: u64) -> Result<()> {
        (self.sent, self.told, self.came) = (0, 0, 0);
        if self.index == 1 {
            (0..count).try_for_each(|number| self.receive(bytes, number))?;
            return self.carrier.send(&ALL_CAME.to_ne_bytes());
        }
        (0..count).try_for_each(|number| self.send(bytes, number))?;
        let since = Instant::now();
        while self.told != ALL_CAME {
            self.hear()?;
            ensure!(since.elapsed() < PATIENCE, "frames were lost");
        }
        Ok(())
    }

    /// Takes a report of the receiver, if there is one.
    #[inline]
    fn hear(&mut self) -> Result<()> {
        let told = &mut self.told;
        self.carrier.receive(|frame| {
            *told = stamp(frame);
        })?;
        Ok(())
    }
}

impl<C: Carrier + 'static> Side for Raw<C> {
    fn run(&mut self, op: Op, bytes: usize, count: u64) -> Result<Outcome> {
        meet(self.shared, self.index);
        self.one_way = op != Op::Latency;
        let start = Instant::now();
        match op {
            Op::Latency => self.ping_pong(bytes, count)?,
            _ => self.one_way(bytes, count)?,
        }
        Ok(Outcome::since(start))
    }
}
