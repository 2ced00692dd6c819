//! What carries frames: one small trait, three ways ([`crate::udp`], [`crate::packet`], [`crate::xdp`]).
//!
//! A frame goes out by being written straight into the buffer that the kernel reads ([`FrameIo::room`], [`FrameIo::stage`]); a
//! batch costs one system call ([`FrameIo::flush`]). A frame comes in as a slice of the buffer that the kernel wrote (H-20): the
//! only copy by a program is the one to where its bytes belong (H-21).
//!
//! Frames may be lost, repeated, reordered and damaged, here or on their way: all of that is the protocol's business.

use crate::pcapng::{Direction, LinkType};
use std::fmt::{Debug, Display};
use std::hash::Hash;
use std::io;
use std::os::fd::BorrowedFd;

/// Frames in and out of one function of one device.
pub trait FrameIo: Send {
    /// Where a frame goes to, or came from.
    type Path: Copy + Ord + Hash + Debug + Display + Send;

    /// What frames begin with in a capture.
    const LINK_TYPE: LinkType;

    /// Longest frame, in bytes, without what the network adds.
    fn frame_bytes(&self) -> usize;

    /// Where to write the next frame, at least [`FrameIo::frame_bytes`] long; `None` if the kernel takes no more now.
    fn room(&mut self) -> Option<&mut [u8]>;

    /// The first `length` bytes of [`FrameIo::room`] are a frame for `to`. It leaves with the next [`FrameIo::flush`], or before.
    fn stage(&mut self, to: Self::Path, length: usize);

    /// Hands what is staged to the kernel. What the kernel takes no more of stays staged. `false`: something stayed.
    fn flush(&mut self) -> bool;

    /// Hands at most about `budget` received frames to `take`, with where each came from; returns how many. A frame may be longer
    /// than it was sent, because Ethernet pads short ones.
    fn receive(&mut self, budget: usize, take: impl FnMut(Self::Path, &[u8])) -> usize;

    /// Descriptors that become readable when [`FrameIo::receive`] has something.
    fn wait_fds(&self) -> Vec<BorrowedFd<'_>>;

    /// The descriptor at this place among these became readable: the next [`FrameIo::receive`] has to look there.
    fn wake(&mut self, _place: usize) {}

    /// Whether [`FrameIo::receive`] has something now. May ask the kernel, so it is not for every poll.
    fn is_ready(&self) -> bool;

    /// The headers that the network puts before `frame` to or from `peer`, for a capture.
    fn capture_header(&self, peer: Self::Path, direction: Direction, frame: &[u8]) -> Vec<u8>;

    /// What was counted so far.
    fn counters(&self) -> IoCounters;
}

/// What frame I/O counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct IoCounters {
    /// Frames that the kernel took.
    pub frames_sent: u64,
    /// Bytes in them.
    pub bytes_sent: u64,
    /// Frames that came.
    pub frames_received: u64,
    /// Bytes in them.
    pub bytes_received: u64,
    /// Calls that sent.
    pub send_calls: u64,
    /// Calls that received, or asked the kernel to look; none is needed where the kernel writes to a mapped ring.
    pub receive_calls: u64,
    /// The kernel took no more for now.
    pub send_full: u64,
    /// Frames that the kernel refused for good: the interface is down, or nobody listens there.
    pub send_failed: u64,
    /// Frames that were lost because we were slow to take them, as far as the kernel tells.
    pub receive_lost: u64,
    /// Copies between the kernel's buffers and ours, counted in frames: sent and received. What a card writes by itself into a
    /// shared buffer is none.
    pub copies: u64,
}

impl IoCounters {
    /// Both together.
    pub(crate) fn plus(&self, other: &IoCounters) -> IoCounters {
        IoCounters {
            frames_sent: self.frames_sent + other.frames_sent,
            bytes_sent: self.bytes_sent + other.bytes_sent,
            frames_received: self.frames_received + other.frames_received,
            bytes_received: self.bytes_received + other.bytes_received,
            send_calls: self.send_calls + other.send_calls,
            receive_calls: self.receive_calls + other.receive_calls,
            send_full: self.send_full + other.send_full,
            send_failed: self.send_failed + other.send_failed,
            receive_lost: self.receive_lost + other.receive_lost,
            copies: self.copies + other.copies,
        }
    }

    /// Name and value of each.
    pub fn rows(&self) -> [(&'static str, u64); 10] {
        [
            ("frames_sent", self.frames_sent),
            ("bytes_sent", self.bytes_sent),
            ("frames_received", self.frames_received),
            ("bytes_received", self.bytes_received),
            ("send_calls", self.send_calls),
            ("receive_calls", self.receive_calls),
            ("send_full", self.send_full),
            ("send_failed", self.send_failed),
            ("receive_lost", self.receive_lost),
            ("copies", self.copies),
        ]
    }
}

/// Whether an error of a send means "later" (`Some(true)`), "not this frame" (`Some(false)`), or is unexpected.
pub(crate) fn is_for_later(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::ENOBUFS | libc::EINTR))
}
