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

    /// Frames that left by each interface.
    #[cfg(test)]
    pub(crate) fn frames_sent(&self) -> Vec<u64> {
        let sent = |interface: &InterfaceIo| with!(interface, io => io.counters().frames_sent);
        self.interfaces.iter().map(sent).collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::Interface;
    use crate::link_header::{FUNCTION_OFFSET, LINK_HEADER_BYTES};
    use crate::local::Local;
    use crate::testing::{enter_new_namespace, ip, within_limit};
    use std::time::{Duration, Instant};

    const FUNCTION: u8 = 5;

    /// One function of several near interfaces, with the given MTUs, and the same function at each
    /// of their far ends.
    fn wires<const N: usize>(mtus: [usize; N]) -> (MultiInterfaceIo, [PacketIo; N], [Mac; N]) {
        enter_new_namespace().expect("NOT RUN: making a network namespace needs root");
        let mut number = 0;
        let far = mtus.map(|mtu| {
            ip(&format!(
                "link add near{number} mtu {mtu} type veth peer name far{number} mtu {mtu}\n\
                 link set near{number} up\nlink set far{number} up"
            ))
            .expect("NOT RUN: making a network needs ip of iproute2");
            let far = Interface::find(&format!("far{number}")).expect("it was just made");
            number += 1;
            (PacketIo::open(&far, FUNCTION).expect("a socket"), far.mac)
        });
        let near = (0..N).map(|number| near_end(number, FUNCTION)).collect();
        let mut near = MultiInterfaceIo::new(near);
        let macs = std::array::from_fn(|number| far[number].1);
        let mut far = far.map(|(io, _)| io);
        let since = Instant::now();
        for (number, far) in far.iter_mut().enumerate() {
            while far.receive(64, |_, _| {}) == 0 {
                assert!(since.elapsed() < Duration::from_secs(8), "the wire stays dead");
                send(&mut near, Hop { through: number as u8, to: macs[number] }, 60, 0);
                near.flush();
            }
            while far.is_ready() {
                far.receive(64, |_, _| {});
            }
        }
        (near, far, macs)
    }

    fn near_end(number: usize, function: u8) -> InterfaceIo {
        let interface = Interface::find(&format!("near{number}")).expect("it was just made");
        let wire = PacketIo::open(&interface, function).expect("a socket");
        let local = Local::open(interface.index, function, interface.mtu).expect("a socket");
        InterfaceIo::new(Wire::Packet(Box::new(wire)), local, &interface)
    }

    fn send<Io: FrameIo>(io: &mut Io, to: Io::Path, length: usize, what: u8) {
        let room = io.room().expect("room");
        room[..length].fill(what);
        room[FUNCTION_OFFSET - LINK_HEADER_BYTES] = FUNCTION;
        io.stage(to, length);
    }

    /// All that waits at a far end: lengths, and the last bytes.
    fn collect(io: &mut PacketIo) -> Vec<(usize, u8)> {
        let mut got = Vec::new();
        while io.receive(64, |_, bytes| got.push((bytes.len(), bytes[bytes.len() - 1]))) > 0 {}
        got
    }

    /// Each frame leaves by the interface that it is for, whichever gave the room, and a broadcast
    /// by all of them.
    // shows: H-29
    #[test]
    fn frames_leave_by_their_interface() {
        let (mut near, mut far, macs) = wires([60_000, 50_000, 55_000]);
        assert_eq!(near.frame_bytes(), 50_000);
        let hop = |through: usize| Hop { through: through as u8, to: macs[through] };
        let order = [0, 1, 2, 0, 2, 1, 1, 1, 0, 0, 2, 2, 0, 1, 2];
        let mut expected = [(); 3].map(|()| Vec::new());
        for (number, through) in order.into_iter().enumerate() {
            let length = if number % 2 == 0 { 200 } else { 20_000 };
            send(&mut near, hop(through), length, number as u8);
            assert_eq!(near.given, (through + 1) % 3, "the next one's turn");
            expected[through].push((length, number as u8));
        }
        for given in 0..3 {
            near.given = given;
            let all = Hop { through: Hop::ALL, to: Mac::BROADCAST };
            send(&mut near, all, 300, 50 + given as u8);
            expected.iter_mut().for_each(|it| it.push((300, 50 + given as u8)));
            assert_eq!(near.given, (given + 1) % 3);
        }
        // Nothing leaves by an interface that is not there.
        send(&mut near, Hop { through: 3, to: macs[0] }, 300, 99);
        assert!(near.flush());
        assert_eq!(far.each_mut().map(collect), expected);
        assert_eq!(near.counters().send_full, 0);
        assert!(near.counters().frames_sent >= 24);
        near.lost = 2;
        assert_eq!(near.counters().send_full, 2);
        assert_eq!(hop(1).to_string(), format!("{} by interface 1", macs[1]));
    }

    /// Interfaces are read a few frames at a time, in turn, and a budget ends that.
    #[test]
    fn interfaces_are_read_in_turn() {
        within_limit(read_in_turn);
    }

    fn read_in_turn() {
        let (mut near, mut far, macs) = wires([1500, 1500]);
        let own = near.capture_header(Hop { through: 1, to: macs[1] }, Direction::Sent, &[]);
        let own: Mac = Mac(own[6..12].try_into().expect("six bytes"));
        assert_eq!(own, Interface::find("near1").expect("it").mac);
        let all = near.capture_header(Hop::BROADCAST, Direction::Sent, &[]);
        let first = Interface::find("near0").expect("it").mac;
        assert_eq!(all[6..12], first.0);
        let to = [first, own];
        let fill = |far: &mut [PacketIo; 2], counts: [usize; 2]| {
            for (number, far) in far.iter_mut().enumerate() {
                (0..counts[number]).for_each(|_| send(far, to[number], 60, 1));
                assert!(far.flush());
            }
        };
        let receive = |near: &mut MultiInterfaceIo, budget| {
            let mut through = Vec::new();
            let frames = near.receive(budget, |from, _| {
                assert_eq!(from.to, macs[usize::from(from.through)]);
                through.push(from.through);
            });
            assert_eq!(frames, through.len());
            through
        };
        assert!(!near.is_ready());
        near.first = 0;
        fill(&mut far, [20, 10]);
        assert!(near.is_ready());
        let turns = [vec![0; 8], vec![1; 8], vec![0; 8], vec![1; 2], vec![0; 4]].concat();
        assert_eq!(receive(&mut near, 1000), turns);
        assert_eq!(near.first, 1);
        assert!(!near.is_ready());
        fill(&mut far, [0, 20]);
        assert!(near.is_ready(), "the second interface has something");
        assert_eq!(receive(&mut near, 9), [1; 16]);
        assert_eq!((near.first, receive(&mut near, 1000)), (0, vec![1; 4]));
        fill(&mut far, [3, 3]);
        near.first = 1;
        assert_eq!(receive(&mut near, 1), [1, 1, 1, 0, 0, 0]);
    }

    /// A descriptor wakes its own interface.
    #[test]
    fn descriptors_wake_their_interface() {
        let (mut near, _far, macs) = wires([1500, 1500]);
        assert_eq!((near.wait_fds().len(), near.generation()), (4, None));
        for (number, mac) in ["near0", "near1"].into_iter().enumerate() {
            let own = Interface::find(mac).expect("it").mac;
            let InterfaceIo::Packet(mut neighbour) = near_end(number, FUNCTION + 1) else {
                panic!("AF_PACKET")
            };
            // Until no interface reads its local socket any more.
            (0..600).for_each(|_| _ = near.receive(64, |_, _| {}));
            let mut got = 0;
            // One poll in 512 reads without a reason.
            for _ in 0..2 {
                send(&mut neighbour, own, 60, 7);
                near.wake(2 * number + 1);
                near.receive(64, |from, _| {
                    assert_eq!(from, Hop { through: number as u8, to: own });
                    got += 1;
                });
            }
            assert_eq!(got, 2);
        }
        near.wake(4);
        assert_ne!(macs[0], macs[1]);
    }
}
