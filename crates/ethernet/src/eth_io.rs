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
