//! Which way frames of an interface get in and out: tried and measured at open, not assumed.
//!
//! If the card itself writes to our memory, that is taken. Else AF_XDP and AF_PACKET both copy once, and which is the faster
//! depends on driver and kernel; so both send a few frames to our own address, which no other station takes, and the faster wins.

use crate::frame_io::FrameIo;
use crate::interface::Interface;
use crate::link_header::Mac;
use crate::packet::PacketIo;
use crate::xdp::{Mode, XdpIo};
use std::fmt;
use std::io;
use std::time::{Duration, Instant};

/// A way of frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// AF_XDP.
    Xdp,
    /// AF_PACKET.
    Packet,
}

impl Way {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Way::Xdp => "AF_XDP",
            Way::Packet => "AF_PACKET",
        }
    }
}

/// What was chosen, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Choice {
    way: Way,
    mode: Option<Mode>,
    why: String,
}

impl Choice {
    pub fn handed_in() -> Choice {
        Choice { way: Way::Packet, mode: None, why: "its socket was handed in".into() }
    }
}

impl Choice {
    pub fn beside() -> Choice {
        let why = "another function of this device has AF_XDP, which has place for one".into();
        Choice { way: Way::Packet, mode: None, why }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "by {}", self.way.name())?;
        if let Some(mode) = self.mode {
            write!(f, ", {}", mode.name())?;
        }
        write!(f, ", because {}", self.why)
    }
}

pub(crate) enum Wire {
    Packet(Box<PacketIo>),
    Xdp(Box<XdpIo>),
}

/// Opens `function` of an interface in the way that was asked for, or in the best one.
///
/// # Errors
/// What was tried, and what the kernel said.
pub(crate) fn open(
    interface: &Interface,
    function: u8,
    asked: Option<Way>,
) -> Result<(Wire, Choice), (String, io::Error)> {
    let packet = || {
        PacketIo::open(interface, function)
            .map_err(|error| ("AF_PACKET is not to be had".to_owned(), error))
    };
    let xdp = || {
        open_xdp(interface, function).map_err(|error| ("AF_XDP is not to be had".to_owned(), error))
    };
    let by_xdp = |wire: XdpIo, why: String| {
        let choice = Choice { way: Way::Xdp, mode: Some(wire.mode()), why };
        (Wire::Xdp(Box::new(wire)), choice)
    };
    let by_packet = |wire: PacketIo, why: String| {
        (Wire::Packet(Box::new(wire)), Choice { way: Way::Packet, mode: None, why })
    };
    match asked {
        Some(Way::Packet) => return Ok(by_packet(packet()?, "it was asked for".into())),
        Some(Way::Xdp) => return Ok(by_xdp(xdp()?, "it was asked for".into())),
        None => {}
    }
    let mut fast = match xdp() {
        Ok(wire) if wire.mode() == Mode::ZeroCopy => {
            return Ok(by_xdp(wire, "the driver lets the card use our memory".into()));
        }
        Ok(wire) => wire,
        Err((what, error)) => return Ok(by_packet(packet()?, format!("{what}: {error}"))),
    };
    let mut plain = packet()?;
    let costs = [cost_ns(&mut fast, interface.mac), cost_ns(&mut plain, interface.mac)];
    let measured =
        format!("sending a frame takes {} ns by AF_XDP and {} ns by AF_PACKET", costs[0], costs[1]);
    Ok(if costs[0] <= costs[1] { by_xdp(fast, measured) } else { by_packet(plain, measured) })
}

/// How long the hook may be busy because the kernel still clears up after its last owner.
const CLEARING_UP: Duration = Duration::from_millis(100);

/// AF_XDP in the best mode that the driver has.
fn open_xdp(interface: &Interface, function: u8) -> io::Result<XdpIo> {
    let since = Instant::now();
    loop {
        let opened = XdpIo::open(interface, function, Mode::ZeroCopy)
            .or_else(|_| XdpIo::open(interface, function, Mode::Generic));
        match opened {
            Err(error)
                if matches!(error.raw_os_error(), Some(libc::EBUSY | libc::EEXIST))
                    && since.elapsed() < CLEARING_UP =>
            {
                std::thread::sleep(Duration::from_millis(2));
            }
            other => return other,
        }
    }
}

/// Frames of one measurement, and measurements: at most 160 frames of 64 bytes.
const FRAMES: u64 = 16;
const MEASUREMENTS: usize = 5;

/// What sending a short frame costs: the median of a few measurements, in ns.
fn cost_ns<Io: FrameIo<Path = Mac>>(io: &mut Io, own: Mac) -> u64 {
    let mut costs: [u64; MEASUREMENTS] = std::array::from_fn(|_| {
        let since = Instant::now();
        for _ in 0..FRAMES {
            if let Some(room) = io.room() {
                // All zero, which is none of the protocol's frames.
                room[..50].fill(0);
                io.stage(own, 50);
            }
            io.flush();
        }
        since.elapsed().as_nanos() as u64 / FRAMES
    });
    costs.sort_unstable();
    costs[MEASUREMENTS / 2]
}
