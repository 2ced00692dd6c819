//! Frame I/O of a function of an Ethernet interface: the wire, and the local path to other
//! functions of the same interface.

use crate::frame_io::{FrameIo, IoCounters};
use crate::interface::Interface;
use crate::link_header::{FUNCTION_OFFSET, LINK_HEADER_BYTES, Mac};
use crate::local::Local;
use crate::pcapng::{Direction, LinkType};
use std::cell::Cell;
use std::os::fd::BorrowedFd;

/// Without a frame from a local function, one of this many polls reads their socket, because each
/// read is a system call.
const IDLE_POLLS: u32 = 512;
/// This many polls without a frame from a local function make their socket idle.
const BUSY_POLLS: u32 = 256;

/// The wire, and the local socket.
pub struct EthIo<Wire> {
    wire: Wire,
    local: Local,
    own: Mac,
    polls: u32,
    /// Remaining polls that each read the local socket.
    busy: Cell<u32>,
}

impl<Wire: FrameIo<Path = Mac>> EthIo<Wire> {
    pub(crate) fn new(wire: Wire, local: Local, interface: &Interface) -> EthIo<Wire> {
        EthIo { wire, local, own: interface.mac, polls: 0, busy: Cell::new(0) }
    }
}

impl<Wire: FrameIo<Path = Mac>> FrameIo for EthIo<Wire> {
    type Path = Mac;

    const LINK_TYPE: LinkType = LinkType::Ethernet;

    fn frame_bytes(&self) -> usize {
        self.wire.frame_bytes()
    }

    #[inline]
    fn room(&mut self) -> Option<&mut [u8]> {
        self.wire.room()
    }

    #[inline]
    fn stage(&mut self, to: Mac, length: usize) {
        if to == self.own {
            // The wire's buffer stays free for the next frame.
            let room = self.wire.room().expect("it was given before");
            let function = room[FUNCTION_OFFSET - LINK_HEADER_BYTES];
            self.local.send(function, &room[..length]);
            self.busy.set(BUSY_POLLS);
        } else {
            self.wire.stage(to, length);
        }
    }

    #[inline]
    fn flush(&mut self) -> bool {
        if self.local.is_waiting() {
            self.local.flush();
        }
        self.wire.flush() && !self.local.is_waiting()
    }

    #[inline]
    fn receive(&mut self, budget: usize, mut take: impl FnMut(Mac, &[u8])) -> usize {
        let mut frames = self.wire.receive(budget, &mut take);
        self.polls = self.polls.wrapping_add(1);
        if self.busy.get() > 0 || self.polls.is_multiple_of(IDLE_POLLS) {
            self.busy.set(self.busy.get().saturating_sub(1));
            while frames < budget {
                let Some(frame) = self.local.receive() else { break };
                take(self.own, frame);
                frames += 1;
                self.busy.set(BUSY_POLLS);
            }
        }
        frames
    }

    fn wait_fds(&self) -> Vec<BorrowedFd<'_>> {
        let mut fds = self.wire.wait_fds();
        fds.push(self.local.fd());
        fds
    }

    fn generation(&self) -> Option<u64> {
        self.wire.generation()
    }

    fn wake(&mut self, index: usize) {
        let wires = self.wire.wait_fds().len();
        if index < wires {
            return self.wire.wake(index);
        }
        self.busy.set(self.busy.get().max(1));
    }

    fn is_ready(&self) -> bool {
        if self.wire.is_ready() {
            return true;
        }
        let waits = crate::socket::is_readable(self.local.fd());
        if waits {
            self.busy.set(BUSY_POLLS);
        }
        waits
    }

    fn capture_header(&self, peer: Mac, direction: Direction, frame: &[u8]) -> Vec<u8> {
        self.wire.capture_header(peer, direction, frame)
    }

    fn counters(&self) -> IoCounters {
        self.wire.counters()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    const OWN: Mac = Mac([2, 0, 0, 0, 0, 1]);
    const OTHER: Mac = Mac([2, 0, 0, 0, 0, 2]);
    const FRAME_BYTES: usize = 100;

    /// A wire of memory.
    struct Wire {
        room: [u8; FRAME_BYTES],
        staged: Vec<(Mac, usize)>,
        arrived: VecDeque<[u8; 60]>,
        takes: bool,
        woken: Vec<usize>,
        fds: [UnixStream; 2],
    }

    impl FrameIo for Wire {
        type Path = Mac;
        const LINK_TYPE: LinkType = LinkType::Ethernet;

        fn frame_bytes(&self) -> usize {
            FRAME_BYTES
        }

        fn room(&mut self) -> Option<&mut [u8]> {
            Some(&mut self.room)
        }

        fn stage(&mut self, to: Mac, length: usize) {
            self.staged.push((to, length));
        }

        fn flush(&mut self) -> bool {
            self.takes
        }

        fn receive(&mut self, budget: usize, mut take: impl FnMut(Mac, &[u8])) -> usize {
            let frames: Vec<_> = self.arrived.drain(..budget.min(self.arrived.len())).collect();
            frames.iter().for_each(|frame| take(OTHER, frame));
            frames.len()
        }

        fn wait_fds(&self) -> Vec<BorrowedFd<'_>> {
            self.fds.iter().map(AsFd::as_fd).collect()
        }

        fn wake(&mut self, index: usize) {
            self.woken.push(index);
        }

        fn is_ready(&self) -> bool {
            !self.arrived.is_empty()
        }

        fn capture_header(&self, peer: Mac, _: Direction, frame: &[u8]) -> Vec<u8> {
            [&peer.0[..], frame].concat()
        }

        fn counters(&self) -> IoCounters {
            IoCounters { frames_sent: 5, ..IoCounters::default() }
        }
    }

    /// Functions 1 and 2 of an interface with a number that no other test has.
    fn pair(number: u32) -> [EthIo<Wire>; 2] {
        let interface = Interface {
            name: "wire".into(),
            index: 0x6000_0000 | number << 24 | std::process::id(),
            mac: OWN,
            mtu: FRAME_BYTES,
            is_up: true,
            queues: 1,
        };
        [1, 2].map(|function| {
            let wire = Wire {
                room: [0; FRAME_BYTES],
                staged: Vec::new(),
                arrived: VecDeque::new(),
                takes: true,
                woken: Vec::new(),
                fds: UnixStream::pair().expect("sockets").into(),
            };
            let local = Local::open(interface.index, function, FRAME_BYTES).expect("a socket");
            EthIo::new(wire, local, &interface)
        })
    }

    fn send(io: &mut EthIo<Wire>, to: Mac, function: u8, what: u8) {
        let room = io.room().expect("room");
        room[..60].fill(what);
        room[FUNCTION_OFFSET - LINK_HEADER_BYTES] = function;
        io.stage(to, 60);
    }

    fn received(io: &mut EthIo<Wire>, budget: usize) -> Vec<(Mac, u8)> {
        let mut got = Vec::new();
        let frames = io.receive(budget, |from, bytes| {
            assert_eq!(bytes.len(), 60);
            got.push((from, bytes[20]));
        });
        assert_eq!(frames, got.len());
        got
    }

    /// Frames to our own address take the local socket, and all others the wire. One receive takes
    /// from both, within its budget.
    #[test]
    fn our_own_frames_stay_here() {
        let [mut a, mut b] = pair(1);
        send(&mut a, OTHER, 2, 1);
        assert_eq!(a.wire.staged, [(OTHER, 60)]);
        for what in 2..6 {
            send(&mut a, OWN, 2, what);
        }
        assert_eq!(a.wire.staged.len(), 1, "none of them is on the wire");
        assert!(a.flush());
        b.wire.arrived.push_back([9; 60]);
        assert!(b.is_ready());
        b.wake(2);
        assert_eq!(received(&mut b, 3), [(OTHER, 9), (OWN, 2), (OWN, 3)]);
        assert_eq!(received(&mut b, 3), [(OWN, 4), (OWN, 5)]);
        assert!(!b.is_ready());
        assert_eq!(a.frame_bytes(), FRAME_BYTES);
        assert_eq!(a.capture_header(OTHER, Direction::Sent, b"!"), [2, 0, 0, 0, 0, 2, b'!']);
        assert_eq!(a.counters().frames_sent, 5);
    }

    /// The local socket is read at every 512th poll, or at the next one after it was seen to be
    /// readable, and then for 256 polls. A function that sends there expects an answer.
    #[test]
    fn the_local_socket_is_read_when_something_may_be_there() {
        let [mut a, mut b] = pair(2);
        let polls = |io: &mut EthIo<Wire>| {
            (1..2000).find(|_| !received(io, 64).is_empty()).expect("it is read in time")
        };
        send(&mut a, OWN, 2, 7);
        assert_eq!(polls(&mut b), IDLE_POLLS);
        // The frame made it busy: 256 polls read on.
        for _ in 1..BUSY_POLLS {
            assert_eq!(received(&mut b, 64), []);
        }
        send(&mut a, OWN, 2, 7);
        assert_eq!(polls(&mut b), 1);
        for _ in 0..BUSY_POLLS {
            assert_eq!(received(&mut b, 64), []);
        }
        send(&mut a, OWN, 2, 7);
        // 1,024 polls are over.
        assert_eq!(polls(&mut b), IDLE_POLLS);
        // a has sent, so that it reads.
        send(&mut b, OWN, 1, 8);
        assert_eq!(polls(&mut a), 1);
        // Whoever asks whether something is there has it with the next poll.
        (0..BUSY_POLLS).for_each(|_| assert_eq!(received(&mut a, 64), []));
        send(&mut b, OWN, 1, 8);
        assert!(a.is_ready());
        assert_eq!(polls(&mut a), 1);
    }

    /// A descriptor that became readable is the wire's own, or the local socket behind them.
    #[test]
    fn each_descriptor_wakes_its_own() {
        let [mut a, mut b] = pair(3);
        assert_eq!(a.wait_fds().len(), 3);
        a.wake(0);
        a.wake(1);
        assert_eq!((&a.wire.woken[..], a.busy.get()), (&[0, 1][..], 0));
        a.wake(2);
        assert_eq!((a.wire.woken.len(), a.busy.get()), (2, 1));
        send(&mut b, OWN, 1, 8);
        assert_eq!(received(&mut a, 64), [(OWN, 8)]);
        a.wake(2);
        assert_eq!(a.busy.get(), BUSY_POLLS, "more than one poll is left");
    }

    /// A flush is done once neither the wire nor a neighbour has frames left to take.
    #[test]
    fn a_flush_is_for_both() {
        let [mut a, mut b] = pair(4);
        a.wire.takes = false;
        assert!(!a.flush());
        a.wire.takes = true;
        assert!(a.flush());
        // More than a neighbour's socket holds.
        let mut sent = 0;
        while !a.local.is_waiting() {
            send(&mut a, OWN, 2, 7);
            sent += 1;
        }
        assert!(!a.flush());
        b.wake(2);
        let mut got = 0;
        while got < sent {
            got += received(&mut b, 64).len();
            a.flush();
            b.wake(2);
        }
        assert!(a.flush());
    }
}
