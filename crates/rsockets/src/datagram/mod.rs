//! A socket of datagrams: a socket of UDP for the port and for questions, and a queue pair on each
//! device that it uses.
//!
//! A datagram to an address whose way is not known goes by UDP, with a question. All others go from
//! queue pair to queue pair. As with UDP a datagram may be lost, and those by different ways may
//! overtake each other.

pub mod frame;
mod peers;
mod port;

use crate::options::Sizes;
use crate::runtime::Runtime;
use crate::state::{again, error};
use bellwire_rdma::EventQueue;
use bellwire_rdmacm::source_for;
use frame::{Ask, Hello, Seal, Secret};
use peers::{How, Peers};
use port::{MOST_BYTES, Port};
use rustix::time::{ClockId, clock_gettime};
use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd};
use std::sync::Arc;
use std::time::Duration;

/// Devices that one socket uses.
const MOST_PORTS: usize = 16;
/// Frames of UDP that are read before others of the process are served.
const FRAMES: usize = 64;

/// Where the bytes of a datagram are.
enum Place {
    /// At a port, in a place that is posted again after.
    Port(usize, u16, Range<usize>),
    /// It came by UDP.
    Own(Vec<u8>),
}

/// What a program has received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Received {
    /// Bytes that had room.
    pub copied: usize,
    /// Bytes of the datagram.
    pub whole: usize,
    /// Its sender.
    pub from: SocketAddrV4,
}

/// What a socket of datagrams has.
pub struct Datagrams {
    runtime: &'static Runtime,
    channel: Arc<EventQueue<usize>>,
    udp: UdpSocket,
    /// The only address that it sends to and hears.
    peer: Option<SocketAddrV4>,
    secret: Secret,
    peers: Peers,
    ports: Vec<Port>,
    /// What has come, the oldest first.
    came: VecDeque<(SocketAddrV4, Place)>,
    /// Bytes in `came` that came by UDP, and the most.
    own_bytes: usize,
    most_own_bytes: usize,
    /// The kernel's report of an earlier datagram: nobody is at the peer's address.
    refused: bool,
}

impl Datagrams {
    /// A socket without an address, whose queue pairs raise events of `channel`.
    pub fn new(
        runtime: &'static Runtime,
        channel: Arc<EventQueue<usize>>,
    ) -> io::Result<Datagrams> {
        let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: it takes numbers. By its number, as a preloaded library stands in for it.
        let udp = unsafe { libc::syscall(libc::SYS_socket, libc::AF_INET, kind, 0) };
        if udp < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Datagrams {
            runtime,
            channel,
            // SAFETY: it was opened above.
            udp: unsafe { UdpSocket::from_raw_fd(udp as i32) },
            peer: None,
            secret: Secret::new()?,
            peers: Peers::default(),
            ports: Vec::new(),
            came: VecDeque::new(),
            own_bytes: 0,
            most_own_bytes: 0,
            refused: false,
        })
    }

    /// The socket of UDP.
    pub fn udp(&self) -> BorrowedFd<'_> {
        self.udp.as_fd()
    }

    // Addresses.

    /// Takes an address.
    pub fn bind(&mut self, to: SocketAddrV4) -> io::Result<()> {
        rustix::net::bind(&self.udp, &to)?;
        Ok(())
    }

    /// Its own address.
    pub fn local(&self) -> SocketAddrV4 {
        match self.udp.local_addr() {
            Ok(SocketAddr::V4(local)) => local,
            _ => SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0),
        }
    }

    /// Sends to this address and hears it alone.
    pub fn connect(&mut self, mut to: SocketAddrV4) -> io::Result<()> {
        if to.ip().is_unspecified() {
            to.set_ip(Ipv4Addr::LOCALHOST);
        }
        self.udp.connect(to)?;
        self.peer = Some(to);
        // What strangers have sent before is dropped, too.
        let kept = std::mem::take(&mut self.came);
        let (kept, strange) = kept.into_iter().partition(|(from, _)| *from == to);
        self.came = kept;
        for (_, place) in Vec::from(strange) {
            self.free(place);
        }
        Ok(())
    }

    /// The address that it is connected to.
    pub fn peer(&self) -> Option<SocketAddrV4> {
        self.peer
    }

    // Sending.

    /// Sends the parts as one datagram.
    ///
    /// # Errors
    /// `EDESTADDRREQ`, `EMSGSIZE`, `EAGAIN`; `ECONNREFUSED`: of an earlier one. Those of the
    /// kernel for UDP.
    pub fn send(
        &mut self,
        parts: &[&[u8]],
        to: Option<SocketAddrV4>,
        sizes: Sizes,
    ) -> io::Result<usize> {
        let Some(mut to) = to.or(self.peer) else { return Err(error(libc::EDESTADDRREQ)) };
        if to.ip().is_unspecified() {
            to.set_ip(Ipv4Addr::LOCALHOST);
        }
        let length = parts.iter().fold(0usize, |sum, part| sum.saturating_add(part.len()));
        if length > MOST_BYTES {
            return Err(error(libc::EMSGSIZE));
        }
        if std::mem::take(&mut self.refused) {
            return Err(error(libc::ECONNREFUSED));
        }
        let now = now();
        let source = match self.peers.source(to) {
            Some(source) => source,
            None => {
                let bound = *self.local().ip();
                let source = if bound.is_unspecified() { source_for(*to.ip())? } else { bound };
                self.peers.add(to, source, now);
                source
            }
        };
        if let How::Direct { way, asks } = self.peers.how(to, now) {
            if asks {
                // A question that is lost is repeated.
                let _ = self.ask(to, None);
            }
            let port = self.port_of(source, sizes)?;
            return match self.ports[port].send(&way, parts)? {
                true => Ok(length),
                false => Err(again()),
            };
        }
        self.ask(to, Some(&parts.concat()))?;
        Ok(length)
    }

    fn ask(&self, to: SocketAddrV4, data: Option<&[u8]>) -> io::Result<()> {
        self.send_frame(to, &Ask { nonce: self.secret.nonce(to), data }.emit())
    }

    fn send_frame(&self, to: SocketAddrV4, frame: &[u8]) -> io::Result<()> {
        rustix::net::sendto(&self.udp, frame, rustix::net::SendFlags::DONTWAIT, &to)?;
        Ok(())
    }

    /// The port on the device of an address of this host, made at first use.
    fn port_of(&mut self, host: Ipv4Addr, sizes: Sizes) -> io::Result<usize> {
        let device = self.runtime.devices.of(host)?;
        let known = self.ports.iter().position(|port| Arc::ptr_eq(&port.device, &device));
        if let Some(known) = known {
            return Ok(known);
        }
        if self.ports.len() == MOST_PORTS {
            return Err(error(libc::ENOMEM));
        }
        self.ports.push(Port::new(device, sizes, &self.channel)?);
        Ok(self.ports.len() - 1)
    }

    // Receiving.

    /// Takes what has completed. Whether anything has.
    pub fn pump(&mut self) -> bool {
        let (mut any, mut came) = (false, Vec::new());
        for index in 0..self.ports.len() {
            any |= self.ports[index].pump(&mut came);
            for it in came.drain(..) {
                let place = Place::Port(index, it.place, it.bytes);
                match Seal::parse(&it.seal).filter(|seal| self.secret.has_given(seal)) {
                    Some(seal) if self.hears(seal.from) => self.came.push_back((seal.from, place)),
                    _ => self.free(place),
                }
            }
        }
        any
    }

    fn hears(&self, from: SocketAddrV4) -> bool {
        self.peer.is_none_or(|peer| peer == from)
    }

    /// Takes what has come by UDP: questions, answers, and datagrams with a question. Whether more
    /// may be there.
    pub fn look_at_udp(&mut self, sizes: Sizes) -> bool {
        self.most_own_bytes = sizes.receive_bytes;
        let mut frame = [0; Ask::BYTES + MOST_BYTES + 1];
        for _ in 0..FRAMES {
            match self.udp.recv_from(&mut frame) {
                Ok((length, SocketAddr::V4(from))) => self.heard(&frame[..length], from, sizes),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    self.refused = true;
                }
                Ok(_) | Err(_) => {}
            }
        }
        true
    }

    fn heard(&mut self, frame: &[u8], from: SocketAddrV4, sizes: Sizes) {
        if !self.hears(from) {
            return;
        }
        if let Some(hello) = Hello::parse(frame) {
            if self.secret.has_asked(from, hello.nonce) {
                self.peers.heard(from, hello, now());
            }
            return;
        }
        let Some(ask) = Ask::parse(frame) else { return };
        if let Some(data) = ask.data {
            if data.len() > MOST_BYTES || self.own_bytes + data.len() > self.most_own_bytes {
                return;
            }
            // An empty one takes memory, too.
            self.own_bytes += data.len().max(64);
            self.came.push_back((from, Place::Own(data.to_vec())));
        }
        match self.way_for(from, ask.nonce, sizes) {
            Ok(hello) => {
                // Without an answer it goes on by UDP.
                let _ = self.send_frame(from, &hello.emit());
            }
            Err(error) => crate::log::say(format_args!("no queue pair for {from}: {error}")),
        }
    }

    fn way_for(&mut self, from: SocketAddrV4, nonce: u64, sizes: Sizes) -> io::Result<Hello> {
        let bound = *self.local().ip();
        let source = if bound.is_unspecified() { source_for(*from.ip())? } else { bound };
        let port = self.port_of(source, sizes)?;
        Ok(self.ports[port].hello(nonce, self.secret.seal(from)))
    }

    /// Receives the oldest datagram into the parts, or looks at it.
    ///
    /// # Errors
    /// `EAGAIN`: none. `ECONNREFUSED`.
    pub fn receive(&mut self, parts: &mut [&mut [u8]], peeks: bool) -> io::Result<Received> {
        if self.came.is_empty() && std::mem::take(&mut self.refused) {
            return Err(error(libc::ECONNREFUSED));
        }
        let Some((from, place)) = self.came.front() else { return Err(again()) };
        let (from, whole) = (*from, place.length());
        let mut copied = 0;
        for part in parts {
            let count = part.len().min(whole - copied);
            let to = &mut part[..count];
            match place {
                Place::Port(port, _, range) => {
                    let start = range.start + copied;
                    self.ports[*port].copy(start..start + count, to);
                }
                Place::Own(bytes) => to.copy_from_slice(&bytes[copied..copied + count]),
            }
            copied += count;
        }
        if !peeks && let Some((_, place)) = self.came.pop_front() {
            self.free(place);
        }
        Ok(Received { copied, whole, from })
    }

    fn free(&mut self, place: Place) {
        match place {
            Place::Port(port, place, _) => {
                if self.ports[port].post(place).is_err() {
                    crate::log::say("a place for datagrams is lost");
                }
            }
            Place::Own(bytes) => self.own_bytes -= bytes.len().max(64),
        }
    }

    // State.

    /// Bytes of the datagram that would be received next.
    pub fn next_bytes(&self) -> Option<usize> {
        self.came.front().map(|(_, place)| place.length())
    }

    /// Whether an error waits for the program.
    pub fn is_refused(&self) -> bool {
        self.refused
    }

    /// Whether an error waited for the program. It waits no more.
    pub fn take_refused(&mut self) -> bool {
        std::mem::take(&mut self.refused)
    }

    /// Whether each queue pair takes a datagram.
    pub fn has_room(&self) -> bool {
        self.ports.iter().all(Port::has_room)
    }

    /// Whether all that was sent has left.
    pub fn is_sent(&self) -> bool {
        self.ports.iter().all(Port::is_sent)
    }

    /// The next completion raises an event of the channel. `false`: it does already.
    pub fn arm(&mut self) -> bool {
        // Each is to be armed.
        self.ports.iter_mut().fold(false, |any, port| any | port.arm())
    }

    /// The program sleeps, so the threads of the devices make progress.
    pub fn sleeps(&self) {
        self.ports.iter().for_each(|port| port.device.context.sleeps());
    }
}

impl Place {
    fn length(&self) -> usize {
        match self {
            Place::Port(_, _, range) => range.len(),
            Place::Own(bytes) => bytes.len(),
        }
    }
}

/// The time since any start, to some milliseconds: reading it is cheap.
fn now() -> Duration {
    let time = clock_gettime(ClockId::MonotonicCoarse);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
