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
    pub const EVERYBODY: Hop = Hop { through: Hop::ALL, to: Mac::BROADCAST };
}

impl fmt::Display for Hop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} by interface {}", self.to, self.through)
    }
}

/// One interface, with either way of frames.
pub(crate) enum Any {
    Packet(EthIo<PacketIo>),
    Xdp(EthIo<XdpIo>),
}

/// Runs the same expression on either.
macro_rules! with {
    ($any:expr, $io:ident => $what:expr) => {
        match $any {
            Any::Packet($io) => $what,
            Any::Xdp($io) => $what,
        }
    };
}

/// The interfaces of one function.
pub struct Several {
    interfaces: Vec<Any>,
    frame_bytes: usize,
    /// The interface whose room was given last. A frame that leaves by another interface is copied
    /// there. So this is the one whose turn it is.
    given: usize,
    /// The interface that the next receive starts with.
    first: usize,
    lost: u64,
}

impl Several {
    pub(crate) fn new(interfaces: Vec<Any>) -> Several {
        let frame_bytes = interfaces.iter().map(|any| with!(any, io => io.frame_bytes())).min();
        Several { interfaces, frame_bytes: frame_bytes.unwrap_or(0), given: 0, first: 0, lost: 0 }
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

impl FrameIo for Several {
    type Path = Hop;

    const LINK_TYPE: LinkType = LinkType::Ethernet;

    fn frame_bytes(&self) -> usize {
        self.frame_bytes
    }

    fn room(&mut self) -> Option<&mut [u8]> {
        let count = self.interfaces.len();
        let has_room = |any: &mut Any| with!(any, io => io.room().is_some());
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
        let flush = |done, any: &mut Any| with!(any, io => io.flush()) && done;
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
        self.interfaces.iter().flat_map(|any| with!(any, io => io.wait_fds())).collect()
    }

    fn wake(&mut self, place: usize) {
        let mut before = 0;
        for any in &mut self.interfaces {
            let count = with!(any, io => io.wait_fds().len());
            if place < before + count {
                return with!(any, io => io.wake(place - before));
            }
            before += count;
        }
    }

    fn is_ready(&self) -> bool {
        self.interfaces.iter().any(|any| with!(any, io => io.is_ready()))
    }

    fn capture_header(&self, peer: Hop, direction: Direction, frame: &[u8]) -> Vec<u8> {
        let through = if peer.through == Hop::ALL { 0 } else { usize::from(peer.through) };
        with!(&self.interfaces[through], io => io.capture_header(peer.to, direction, frame))
    }

    fn counters(&self) -> IoCounters {
        let counters = self.interfaces.iter().map(|any| with!(any, io => io.counters()));
        let mut sum = counters.fold(IoCounters::default(), |sum, one| sum.plus(&one));
        sum.send_full += self.lost;
        sum
    }
}

impl Any {
    pub(crate) fn new(
        wire: Wire,
        local: crate::local::Local,
        interface: &crate::interface::Interface,
    ) -> Any {
        match wire {
            Wire::Packet(wire) => Any::Packet(EthIo::new(*wire, local, interface)),
            Wire::Xdp(wire) => Any::Xdp(EthIo::new(*wire, local, interface)),
        }
    }
}
