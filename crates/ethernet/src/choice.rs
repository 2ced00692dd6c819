//! How frames of an interface get in and out: tried and measured at open, not assumed.
//!
//! If the card itself writes to our memory, AF_XDP is taken. Otherwise AF_XDP and AF_PACKET both
//! copy once, and driver and kernel decide which is faster. So both send a few frames to our own
//! address, which no other station takes, and the faster one wins.

use crate::frame_io::FrameIo;
use crate::interface::Interface;
use crate::link_header::Mac;
use crate::packet::PacketIo;
use crate::socket;
use crate::xdp::{Mode, XdpIo};
use std::fmt;
use std::io;
use std::time::{Duration, Instant};

/// The socket family that sends and receives frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IoKind {
    /// AF_XDP.
    Xdp,
    /// AF_PACKET.
    Packet,
}

impl IoKind {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            IoKind::Xdp => "AF_XDP",
            IoKind::Packet => "AF_PACKET",
        }
    }
}

/// What was chosen, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Choice {
    io: IoKind,
    mode: Option<Mode>,
    why: String,
}

impl Choice {
    pub fn handed_in() -> Choice {
        Choice { io: IoKind::Packet, mode: None, why: "its socket was handed in".into() }
    }

    pub fn by_agent() -> Choice {
        Choice { io: IoKind::Packet, mode: None, why: "the agent gave its socket".into() }
    }

    pub fn beside() -> Choice {
        let why = "another function of this device has AF_XDP, which takes one function".into();
        Choice { io: IoKind::Packet, mode: None, why }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "by {}", self.io.name())?;
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

/// Opens `function` of an interface by the requested socket family, or by the best one.
///
/// # Errors
/// What was tried, and what the kernel said.
pub(crate) fn open(
    interface: &Interface,
    function: u8,
    asked: Option<IoKind>,
) -> Result<(Wire, Choice), (String, io::Error)> {
    let packet = || {
        PacketIo::open(interface, function)
            .map_err(|error| ("AF_PACKET is not available".to_owned(), error))
    };
    let xdp = || {
        open_xdp(interface, function).map_err(|error| ("AF_XDP is not available".to_owned(), error))
    };
    let by_xdp = |wire: XdpIo, why: String| {
        let choice = Choice { io: IoKind::Xdp, mode: Some(wire.mode()), why };
        (Wire::Xdp(Box::new(wire)), choice)
    };
    let by_packet = |wire: PacketIo, why: String| {
        (Wire::Packet(Box::new(wire)), Choice { io: IoKind::Packet, mode: None, why })
    };
    match asked {
        Some(IoKind::Packet) => return Ok(by_packet(packet()?, "it was asked for".into())),
        Some(IoKind::Xdp) => return Ok(by_xdp(xdp()?, "it was asked for".into())),
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

/// How long the hook may stay busy while the kernel cleans up after its last owner.
const CLEARING_UP: Duration = Duration::from_millis(100);

/// AF_XDP in the best mode that the driver has.
fn open_xdp(interface: &Interface, function: u8) -> io::Result<XdpIo> {
    socket::retry(CLEARING_UP, &[libc::EBUSY, libc::EEXIST], || {
        XdpIo::open(interface, function, Mode::ZeroCopy)
            .or_else(|_| XdpIo::open(interface, function, Mode::Generic))
    })
}

/// Frames of one measurement, and number of measurements: 160 frames of 64 bytes at most.
const FRAMES: u64 = 16;
const MEASUREMENTS: usize = 5;

/// What sending a short frame costs: the median of a few measurements, in ns.
fn cost_ns<Io: FrameIo<Path = Mac>>(io: &mut Io, own: Mac) -> u64 {
    let mut costs: [u64; MEASUREMENTS] = std::array::from_fn(|_| {
        let since = Instant::now();
        for _ in 0..FRAMES {
            if let Some(room) = io.room() {
                // All zero: not a frame of the protocol.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link_header::{self, EVERY_FUNCTION, FUNCTION_OFFSET};
    use crate::testing::{enter_new_namespace, ip};
    use std::collections::BTreeSet;
    use std::mem::size_of;
    use std::os::fd::{AsFd, OwnedFd};

    const OWN: Mac = Mac([2, 0, 0, 0, 0, 1]);
    const NEW: Mac = Mac([2, 0, 0, 0, 0, 2]);
    const OTHER: Mac = Mac([2, 0, 0, 0, 0, 7]);
    const GROUP: Mac = Mac([3, 0, 0, 0, 0, 1]);
    const FUNCTION: u8 = 3;

    /// A virtual wire. Its near end is promiscuous, and the returned socket is at its far end.
    fn wire() -> OwnedFd {
        enter_new_namespace()
            .and_then(|()| {
                ip(&format!(
                    "link add near address {OWN} type veth peer name far\n\
                     link set near promisc on\nlink set near up\nlink set far up"
                ))
            })
            .expect("NOT RUN: making a network namespace needs root, and ip of iproute2");
        let far = socket::open(libc::AF_PACKET, libc::SOCK_RAW, 0).expect("a packet socket");
        // SAFETY: zeros are a valid address.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_ifindex = Interface::find("far").expect("it was just made").index as i32;
        socket::bind(far.as_fd(), &address, size_of::<libc::sockaddr_ll>()).expect("its end");
        far
    }

    /// Receives until the frames numbered `expected` have come, then drains the rest. Returns the
    /// numbers of all frames.
    fn numbers<Io: FrameIo<Path = Mac>>(io: &mut Io, expected: &[u8]) -> BTreeSet<u8> {
        let (since, mut got) = (Instant::now(), BTreeSet::new());
        let mut after = 0;
        while after < 64 {
            io.receive(64, |_, bytes| {
                got.insert(bytes[4]);
            });
            after += u32::from(expected.iter().all(|number| got.contains(number)));
            assert!(since.elapsed() < Duration::from_secs(60), "{got:?} and not {expected:?}");
        }
        got
    }

    /// Sends one frame to each address and function, 20 times. Asserts that the interface takes
    /// those at the places `expected`, and no others.
    fn takes_only(
        io: IoKind,
        far: &OwnedFd,
        near: &mut Wire,
        frames: &[(Mac, u8)],
        expected: &[u8],
    ) {
        for _ in 0..20 {
            for (number, (to, function)) in frames.iter().enumerate() {
                let mut frame = [0; 60];
                link_header::emit(&mut frame, *to, OTHER);
                frame[FUNCTION_OFFSET] = *function;
                frame[FUNCTION_OFFSET + 2] = number as u8;
                socket::send(far.as_fd(), &frame).expect("room");
            }
            let got = match near {
                Wire::Packet(io) => numbers(&mut **io, expected),
                Wire::Xdp(io) => numbers(&mut **io, expected),
            };
            assert_eq!(got.into_iter().collect::<Vec<_>>(), expected, "{io:?}");
        }
    }

    fn open_by(io: IoKind) -> Wire {
        let interface = Interface::find("near").expect("it was just made");
        let (wire, choice) = open(&interface, FUNCTION, Some(io)).expect("it is available");
        assert_eq!(choice.io, io);
        wire
    }

    /// Both ways take the same frames on a promiscuous interface: those for this station or
    /// broadcast, and for the function or all functions.
    // shows: H-02, H-03
    #[test]
    fn both_ways_take_the_same_frames() {
        for io in [IoKind::Packet, IoKind::Xdp] {
            let far = wire();
            let mut near = open_by(io);
            let frames = [
                (OTHER, FUNCTION),
                (OTHER, EVERY_FUNCTION),
                (GROUP, FUNCTION),
                (GROUP, EVERY_FUNCTION),
                (OWN, FUNCTION + 1),
                (Mac::BROADCAST, FUNCTION + 1),
                (Mac::BROADCAST, FUNCTION),
                (Mac::BROADCAST, EVERY_FUNCTION),
                (OWN, EVERY_FUNCTION),
                (OWN, FUNCTION),
            ];
            takes_only(io, &far, &mut near, &frames, &[6, 7, 8, 9]);
        }
    }

    /// When the interface's address changes, AF_PACKET follows it and AF_XDP takes frames for both
    /// addresses. Neither takes frames for a third station.
    #[test]
    fn an_address_that_changes() {
        for (io, expected) in [(IoKind::Packet, &[2][..]), (IoKind::Xdp, &[1, 2])] {
            let far = wire();
            let mut near = open_by(io);
            ip(&format!("link set near address {NEW}")).expect("it can change while it is up");
            let frames = [(OTHER, FUNCTION), (OWN, FUNCTION), (NEW, FUNCTION)];
            takes_only(io, &far, &mut near, &frames, expected);
        }
    }

    /// A socket whose batches take longer and longer.
    struct Slow {
        room: [u8; 64],
        staged: usize,
        flushes: u32,
    }

    impl FrameIo for Slow {
        type Path = Mac;
        const LINK_TYPE: crate::pcapng::LinkType = crate::pcapng::LinkType::Ethernet;

        fn frame_bytes(&self) -> usize {
            64
        }

        fn room(&mut self) -> Option<&mut [u8]> {
            self.room.fill(9);
            Some(&mut self.room)
        }

        fn stage(&mut self, to: Mac, length: usize) {
            assert_eq!((to, &self.room[..length]), (OWN, &[0; 50][..]));
            self.staged += 1;
        }

        fn flush(&mut self) -> bool {
            // The last three of five measurements are slow.
            if self.flushes >= 2 * FRAMES as u32 {
                std::thread::sleep(Duration::from_millis(1));
            }
            self.flushes += 1;
            true
        }

        fn receive(&mut self, _: usize, _: impl FnMut(Mac, &[u8])) -> usize {
            0
        }

        fn wait_fds(&self) -> Vec<std::os::fd::BorrowedFd<'_>> {
            Vec::new()
        }

        fn is_ready(&self) -> bool {
            false
        }

        fn capture_header(&self, _: Mac, _: crate::pcapng::Direction, _: &[u8]) -> Vec<u8> {
            Vec::new()
        }

        fn counters(&self) -> crate::frame_io::IoCounters {
            crate::frame_io::IoCounters::default()
        }
    }

    /// What a frame costs is the median of the measurements, for one frame.
    #[test]
    fn a_frame_costs_the_median() {
        let mut slow = Slow { room: [9; 64], staged: 0, flushes: 0 };
        let since = Instant::now();
        let cost_ns = cost_ns(&mut slow, OWN);
        assert!(cost_ns >= 1_000_000, "{cost_ns} ns");
        assert!(u128::from(cost_ns * FRAMES) <= since.elapsed().as_nanos());
        assert_eq!(slow.staged as u64, FRAMES * MEASUREMENTS as u64);
    }
}
