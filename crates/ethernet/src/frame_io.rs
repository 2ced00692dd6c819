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

    /// As [`FrameIo::stage`], of a frame whose bytes before its check value are `apart` and not in
    /// the room. Sealing moves them. Only an I/O that [drops altered
    /// frames](FrameIo::drops_altered) is called so.
    fn stage_apart(&mut self, _to: Self::Path, _length: usize, _apart: &[u8]) {
        unreachable!("a frame with a check value is whole");
    }

    /// Hands staged frames to the kernel. Frames that the kernel does not take stay staged.
    /// `false`: some stayed.
    fn flush(&mut self) -> bool;

    /// Hands about `budget` received frames at most to `take`, each with its source; returns how
    /// many. A frame may be longer than it was sent, because Ethernet pads short ones.
    fn receive(&mut self, budget: usize, take: impl FnMut(Self::Path, &[u8])) -> usize;

    /// A place where nobody receives any more, as its host says.
    fn take_refused(&mut self) -> Option<Self::Path> {
        None
    }

    /// Descriptors that become readable when [`FrameIo::receive`] has something.
    fn wait_fds(&self) -> Vec<BorrowedFd<'_>>;

    /// Counts the changes of [`FrameIo::wait_fds`]; `None`: they may change at any time.
    fn generation(&self) -> Option<u64> {
        None
    }

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

    /// Whether altered frames are dropped already, so that frames need no check value.
    fn drops_altered(&self) -> bool {
        false
    }

    /// Adds what is counted only with a key.
    fn key_rows(&self, _rows: &mut Vec<(&'static str, u64)>) {}
}

bellwire_protocol::counters! {
    /// What frame I/O counts.
    IoCounters {
        /// Frames that the kernel accepted.
        frames_sent,
        /// Bytes in them.
        bytes_sent,
        /// Frames that were received.
        frames_received,
        /// Bytes in them.
        bytes_received,
        /// System calls that sent.
        send_calls,
        /// System calls that received, or that made the kernel look for frames. A mapped ring needs
        /// none.
        receive_calls,
        /// How often the kernel took no more for now.
        send_full,
        /// Frames that the kernel refused for good: the interface is down, or nobody listens there.
        send_failed,
        /// Frames that were lost because we received too slowly, as far as the kernel tells.
        receive_lost,
        /// Copies between the kernel's buffers and ours, in frames, sent and received. What a card
        /// transfers to or from a shared buffer is not a copy.
        copies,
        /// Frames for this function that AF_PACKET received because the XDP program left them to
        /// the kernel: the interface's address has changed. Only AF_XDP counts them.
        frames_past_xdp,
        /// Frames that left as segments of longer datagrams (UDP_SEGMENT).
        frames_segmented,
        /// Frames that came in coalesced datagrams (UDP_GRO).
        frames_coalesced,
        /// How often the kernel refused to segment or to coalesce. From then on it is not asked
        /// again.
        segments_refused,
    }
}

/// Whether a send may succeed later: the kernel has no buffer now, or the call was interrupted.
pub(crate) fn is_for_later(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::ENOBUFS | libc::EINTR))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_errors_pass() {
        for (code, passes) in [
            (libc::EAGAIN, true),
            (libc::ENOBUFS, true),
            (libc::EINTR, true),
            (libc::ENETDOWN, false),
            (libc::EMSGSIZE, false),
        ] {
            assert_eq!(is_for_later(&io::Error::from_raw_os_error(code)), passes, "{code}");
        }
        assert!(!is_for_later(&io::Error::other("no number")));
    }
}
