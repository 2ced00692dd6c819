//! What carries frames: one small trait, implemented by [`crate::udp`], [`crate::packet`] and
//! [`crate::xdp`].
//!
//! The sender writes a frame straight into the buffer that the kernel reads ([`FrameIo::room`],
//! [`FrameIo::stage`]). A batch costs one system call ([`FrameIo::flush`]). A received frame is a
//! slice of the buffer that the kernel wrote (H-20). So the program copies only once: to where the
//! bytes belong (H-21).
//!
//! Frames may be lost, duplicated, reordered and corrupted, here or on the network. The protocol
//! handles all of that.

use crate::pcapng::{Direction, LinkType};
use std::fmt::{Debug, Display};
use std::hash::Hash;
use std::io;
use std::os::fd::BorrowedFd;

/// Sends and receives the frames of one function of one device.
pub trait FrameIo: Send {
    /// The destination or source of a frame.
    type Path: Copy + Ord + Hash + Debug + Display + Send;

    /// The link type of a capture: the header that its frames begin with.
    const LINK_TYPE: LinkType;

    /// Longest frame, in bytes, without the headers that the network adds.
    fn frame_bytes(&self) -> usize;

    /// The buffer of the next frame, at least [`FrameIo::frame_bytes`] long; `None` if the kernel
    /// takes no more now.
    fn room(&mut self) -> Option<&mut [u8]>;

    /// Stages the first `length` bytes of [`FrameIo::room`] as a frame for `to`. It leaves with the
    /// next [`FrameIo::flush`], or earlier.
    fn stage(&mut self, to: Self::Path, length: usize);

    /// Hands staged frames to the kernel. Frames that the kernel does not take stay staged.
    /// `false`: some stayed.
    fn flush(&mut self) -> bool;

    /// Hands about `budget` received frames at most to `take`, each with its source; returns how
    /// many. A frame may be longer than it was sent, because Ethernet pads short ones.
    fn receive(&mut self, budget: usize, take: impl FnMut(Self::Path, &[u8])) -> usize;

    /// Descriptors that become readable when [`FrameIo::receive`] has something.
    fn wait_fds(&self) -> Vec<BorrowedFd<'_>>;

    /// The descriptor with this index in [`FrameIo::wait_fds`] became readable: the next
    /// [`FrameIo::receive`] must read it.
    fn wake(&mut self, _index: usize) {}

    /// Whether [`FrameIo::receive`] has something now. It may be a system call, so do not call it
    /// in every poll.
    fn is_ready(&self) -> bool;

    /// The headers that the network puts before `frame` to or from `peer`, for a capture.
    fn capture_header(&self, peer: Self::Path, direction: Direction, frame: &[u8]) -> Vec<u8>;

    /// The counters.
    fn counters(&self) -> IoCounters;
}

/// What frame I/O counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct IoCounters {
    /// Frames that the kernel accepted.
    pub frames_sent: u64,
    /// Bytes in them.
    pub bytes_sent: u64,
    /// Frames that were received.
    pub frames_received: u64,
    /// Bytes in them.
    pub bytes_received: u64,
    /// System calls that sent.
    pub send_calls: u64,
    /// System calls that received, or that made the kernel look for frames. A mapped ring needs
    /// none.
    pub receive_calls: u64,
    /// How often the kernel took no more for now.
    pub send_full: u64,
    /// Frames that the kernel refused for good: the interface is down, or nobody listens there.
    pub send_failed: u64,
    /// Frames that were lost because we received too slowly, as far as the kernel tells.
    pub receive_lost: u64,
    /// Copies between the kernel's buffers and ours, in frames, sent and received. What a card
    /// transfers to or from a shared buffer is not a copy.
    pub copies: u64,
    /// Frames for this function that AF_PACKET received because the XDP program left them to the
    /// kernel: the interface's address has changed. Only AF_XDP counts them.
    pub frames_past_xdp: u64,
    /// Frames that left as segments of longer datagrams (UDP_SEGMENT).
    pub frames_segmented: u64,
    /// Frames that came in coalesced datagrams (UDP_GRO).
    pub frames_coalesced: u64,
    /// How often the kernel refused to segment or to coalesce, from when on it was not asked again.
    pub segments_refused: u64,
}

impl IoCounters {
    /// The sum of both.
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
            frames_past_xdp: self.frames_past_xdp + other.frames_past_xdp,
            frames_segmented: self.frames_segmented + other.frames_segmented,
            frames_coalesced: self.frames_coalesced + other.frames_coalesced,
            segments_refused: self.segments_refused + other.segments_refused,
        }
    }

    /// Name and value of each counter.
    pub fn rows(&self) -> [(&'static str, u64); 14] {
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
            ("frames_past_xdp", self.frames_past_xdp),
            ("frames_segmented", self.frames_segmented),
            ("frames_coalesced", self.frames_coalesced),
            ("segments_refused", self.segments_refused),
        ]
    }
}

/// Whether a send may succeed later: the kernel has no buffer now, or the call was interrupted.
pub(crate) fn is_for_later(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::ENOBUFS | libc::EINTR))
}
