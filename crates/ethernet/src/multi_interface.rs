//! Several interfaces that carry one channel (H-29). Their bandwidths add up, and if one goes down
//! the others carry on.
//!
//! The protocol chooses the interface of each frame (`bellwire_protocol::reliable`, paths). Here
//! the interfaces stand side by side, and a place is an address together with the interface that
//! leads there.

use crate::choice::Wire;
use crate::eth_io::EthIo;
use crate::frame_io::{FrameIo, IoCounters};
use crate::link_header::Mac;
use crate::packet::PacketIo;
use crate::pcapng::{Direction, LinkType};
use crate::xdp::XdpIo;
use std::fmt;
use std::os::fd::BorrowedFd;

/// Maximum number of interfaces of one device: the protocol's number of paths for a link.
pub const INTERFACES: usize = bellwire_protocol::reliable::PATHS;

/// Frames that are taken from one interface in its turn.
const TURN: usize = 8;

/// An address, and the interface through which frames go there or come from there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Hop {
    /// Index of the interface in the device's name; [`Hop::ALL`]: all of them.
    pub through: u8,
    /// The station.
    pub to: Mac,
}

impl Hop {
    /// Every interface.
    pub const ALL: u8 = u8::MAX;
    /// Broadcast on all interfaces.
    pub const BROADCAST: Hop = Hop { through: Hop::ALL, to: Mac::BROADCAST };
}

impl fmt::Display for Hop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} by interface {}", self.to, self.through)
    }
}

/// One interface, by AF_PACKET or AF_XDP.
pub(crate) enum InterfaceIo {
    Packet(EthIo<PacketIo>),
    Xdp(EthIo<XdpIo>),
}

/// Runs the same expression on either.
macro_rules! with {
    ($interface:expr, $io:ident => $what:expr) => {
        match $interface {
            InterfaceIo::Packet($io) => $what,
            InterfaceIo::Xdp($io) => $what,
        }
    };
}

/// The interfaces of one function.
pub struct MultiInterfaceIo {
    interfaces: Vec<InterfaceIo>,
    frame_bytes: usize,
    /// The interface whose room was given last. A frame that leaves by another interface is copied
    /// there. So this is the one whose turn it is.
    given: usize,
    /// The interface that the next receive starts with.
    first: usize,
    lost: u64,
}

impl MultiInterfaceIo {
    pub(crate) fn new(interfaces: Vec<InterfaceIo>) -> MultiInterfaceIo {
        let frame_bytes =
            interfaces.iter().map(|interface| with!(interface, io => io.frame_bytes())).min();
        MultiInterfaceIo {
            interfaces,
            frame_bytes: frame_bytes.unwrap_or(0),
            given: 0,
            first: 0,
            lost: 0,
        }
    }

    /// Copies the frame from the room that was given to interface `through`, and stages it there.
    #[cold]
    fn copy_to(&mut self, through: usize, to: Mac, length: usize) {
        let mut frame = [0; 9216];
        let mut long = Vec::new();
        let frame = match frame.get_mut(..length) {
            Some(frame) => frame,
            None => {
                long.resize(length, 0);
                &mut long[..]
            }
        };
        let written = with!(&mut self.interfaces[self.given], io => io.room());
        frame.copy_from_slice(&written.expect("it was given before")[..length]);
        with!(&mut self.interfaces[through], io => match io.room() {
            Some(room) => {
                room[..length].copy_from_slice(frame);
                io.stage(to, length);
            }
            // The protocol treats the frame as lost: a blocked interface does not stop the others.
            None => self.lost += 1,
        });
    }
}

impl FrameIo for MultiInterfaceIo {
    type Path = Hop;

    const LINK_TYPE: LinkType = LinkType::Ethernet;

    fn frame_bytes(&self) -> usize {
        self.frame_bytes
    }

    fn room(&mut self) -> Option<&mut [u8]> {
        let count = self.interfaces.len();
        let has_room = |interface: &mut InterfaceIo| with!(interface, io => io.room().is_some());
        self.given = (0..count)
            .map(|step| (self.given + step) % count)
            .find(|&number| has_room(&mut self.interfaces[number]))?;
        with!(&mut self.interfaces[self.given], io => io.room())
    }

    fn stage(&mut self, to: Hop, length: usize) {
        let count = self.interfaces.len();
        if to.through == Hop::ALL {
            let given = self.given;
            for number in (0..count).filter(|&number| number != given) {
                self.copy_to(number, to.to, length);
            }
        }
        let through = if to.through == Hop::ALL { self.given } else { usize::from(to.through) };
        if through == self.given {
            with!(&mut self.interfaces[through], io => io.stage(to.to, length));
        } else if through < count {
            self.copy_to(through, to.to, length);
        }
        // Mostly the protocol uses the interfaces in turn.
        self.given = (through + 1) % count;
    }

    fn flush(&mut self) -> bool {
        let flush = |done, interface: &mut InterfaceIo| with!(interface, io => io.flush()) && done;
        self.interfaces.iter_mut().fold(true, flush)
    }

    fn receive(&mut self, budget: usize, mut take: impl FnMut(Hop, &[u8])) -> usize {
        let count = self.interfaces.len();
        let mut frames = 0;
        // A few frames of each in turn, so that frames of one message arrive together.
        loop {
            let before = frames;
            for step in 0..count {
                let through = (self.first + step) % count;
                frames += with!(&mut self.interfaces[through], io => {
                    io.receive(TURN, |to, bytes| take(Hop { through: through as u8, to }, bytes))
                });
            }
            if frames == before || frames >= budget {
                break;
            }
        }
        self.first = (self.first + 1) % count;
        frames
    }

    fn wait_fds(&self) -> Vec<BorrowedFd<'_>> {
        self.interfaces.iter().flat_map(|interface| with!(interface, io => io.wait_fds())).collect()
    }

    fn wake(&mut self, index: usize) {
        let mut before = 0;
        for interface in &mut self.interfaces {
            let count = with!(interface, io => io.wait_fds().len());
            if index < before + count {
                return with!(interface, io => io.wake(index - before));
            }
            before += count;
        }
    }

    fn is_ready(&self) -> bool {
        self.interfaces.iter().any(|interface| with!(interface, io => io.is_ready()))
    }

    fn capture_header(&self, peer: Hop, direction: Direction, frame: &[u8]) -> Vec<u8> {
        let through = if peer.through == Hop::ALL { 0 } else { usize::from(peer.through) };
        with!(&self.interfaces[through], io => io.capture_header(peer.to, direction, frame))
    }

    fn counters(&self) -> IoCounters {
        let mut sum = IoCounters { send_full: self.lost, ..IoCounters::default() };
        self.interfaces.iter().for_each(|interface| sum += with!(interface, io => io.counters()));
        sum
    }
}

impl InterfaceIo {
    pub(crate) fn new(
        wire: Wire,
        local: crate::local::Local,
        interface: &crate::interface::Interface,
    ) -> InterfaceIo {
        match wire {
            Wire::Packet(wire) => InterfaceIo::Packet(EthIo::new(*wire, local, interface)),
            Wire::Xdp(wire) => InterfaceIo::Xdp(EthIo::new(*wire, local, interface)),
        }
    }
}
