//! What an endpoint and its user exchange.

use bellwire_wire::frame::FunctionId;

/// "Never" as a time.
pub(super) const NEVER: u64 = u64::MAX;

/// A link to a peer function, as the endpoint numbers it. A number is used again only after
/// [`Endpoint::close`](crate::reliable::Endpoint::close).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct PeerId(pub u32);

impl PeerId {
    #[inline]
    pub(super) fn new(slot: u16, generation: u16) -> Self {
        PeerId((generation as u32) << 16 | slot as u32)
    }

    #[inline]
    pub(super) fn slot(self) -> usize {
        self.0 as usize & 0xffff
    }
}

/// A path, by the device's number. The protocol does not interpret it. A number is never reused for
/// another place, because cookies are bound to it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct PathId(pub u64);

/// The two virtual channels of a link. Each has its own credit, so that responses pass blocked
/// requests (C-27).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Channel {
    /// Packets that may make the receiver send something in turn.
    Request = 0,
    /// Packets that the receiver takes without having to send anything.
    Response = 1,
}

/// What a user does with an offered packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The user has consumed the packet.
    Taken,
    /// No room now. The endpoint keeps the packet and those behind it on the same channel, and
    /// offers them again at [`Endpoint::deliver`](crate::reliable::Endpoint::deliver).
    Stalled,
    /// The peer broke the rules of the layer above: end the link.
    Violation,
}

/// Whether a node that asks for a link may be where it asks from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlaceCheck {
    /// The node may be there.
    Belongs,
    /// The node's number belongs to another address: refuse, and say so.
    Elsewhere,
    /// The node was last heard at another place and is being asked there: do not answer for now.
    Pending,
}

/// The receiver of packets.
pub trait Sink {
    /// A packet: words 1 to 3 of its header (the upper half of the first is the payload's length),
    /// and its payload.
    fn packet(
        &mut self,
        peer: PeerId,
        channel: Channel,
        words: [u64; 3],
        payload: &[u8],
    ) -> Verdict;

    /// A function of `node` asks for a link by `path`, and has shown that it receives there.
    /// Returns whether the node may be there.
    #[inline]
    fn check_place(&mut self, node: u32, path: PathId) -> PlaceCheck {
        let _ = (node, path);
        PlaceCheck::Belongs
    }

    /// The first `count` requests sent to `peer` over this link are delivered: its user has taken
    /// them, or its endpoint keeps them. Later requests may be delivered, too; if the link goes
    /// down, that stays unknown.
    #[inline]
    fn delivered(&mut self, peer: PeerId, count: u64) {
        let _ = (peer, count);
    }
}

impl<F: FnMut(PeerId, Channel, [u64; 3], &[u8]) -> Verdict> Sink for F {
    #[inline]
    fn packet(
        &mut self,
        peer: PeerId,
        channel: Channel,
        words: [u64; 3],
        payload: &[u8],
    ) -> Verdict {
        self(peer, channel, words, payload)
    }
}

/// Memory from which a packet's payload is read, once.
pub trait Body {
    /// Length in bytes.
    fn len(&self) -> usize;

    /// Whether the length is 0.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies `into.len()` bytes, starting at `offset`. The protocol never reads past the end.
    fn read(&self, offset: usize, into: &mut [u8]);
}

impl Body for [u8] {
    #[inline]
    fn len(&self) -> usize {
        <[u8]>::len(self)
    }

    #[inline]
    fn read(&self, offset: usize, into: &mut [u8]) {
        into.copy_from_slice(&self[offset..offset + into.len()]);
    }
}

impl<const N: usize> Body for [u8; N] {
    #[inline]
    fn len(&self) -> usize {
        N
    }

    #[inline]
    fn read(&self, offset: usize, into: &mut [u8]) {
        self[..].read(offset, into);
    }
}

impl<T: Body + ?Sized> Body for &T {
    #[inline]
    fn len(&self) -> usize {
        (**self).len()
    }

    #[inline]
    fn read(&self, offset: usize, into: &mut [u8]) {
        (**self).read(offset, into);
    }
}

/// Why a packet was not queued. Nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendError {
    /// The link is being set up or its queue is full; try again after frames have been handled.
    Busy,
    /// There is no such link, or it is down.
    Down,
    /// The packet is longer than the peer takes.
    TooLong {
        /// Longest payload that the peer takes.
        limit: u32,
    },
}

/// Why a link is down.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DownReason {
    /// No answer came within the patience of `connect`.
    #[error("no answer came in time; check that the peer runs and that frames reach it")]
    NoAnswer,
    /// The peer's versions have none in common with ours.
    #[error(
        "we speak versions {} to {} and the peer {} to {}; install versions that overlap",
        ours[0], ours[1], theirs[0], theirs[1]
    )]
    Version {
        /// Lowest and highest version that we speak.
        ours: [u8; 2],
        /// Lowest and highest version that the peer speaks.
        theirs: [u8; 2],
    },
    /// One side demands a feature that the other does not offer.
    #[error(
        "we offer features {ours:#x} and the peer {theirs:#x}, and one side demands a feature that the other lacks; install the same version on both"
    )]
    Feature {
        /// Features that we offer.
        ours: u32,
        /// Features that the peer offers.
        theirs: u32,
    },
    /// That node or function is not there.
    #[error("the peer's host has no such node or function; check the address")]
    NotHere,
    /// The peer has no room for one more link.
    #[error("the peer has no link left; close some there, or raise its limit")]
    Full,
    /// The peer holds that our node number belongs to an address other than ours.
    #[error(
        "our node number belongs to another address than ours, as the peer sees it; choose a number below 2^24 with ?node="
    )]
    Elsewhere,
    /// The peer closed it.
    #[error("the peer closed the link")]
    Closed,
    /// The peer says that we broke the protocol.
    #[error("the peer closed the link because we broke the protocol; report this")]
    Accused,
    /// The peer broke the protocol.
    #[error("the peer broke the protocol; the link was closed")]
    Violation,
    /// The peer does not answer any more.
    #[error("the peer is silent: it died, hangs, or is cut off")]
    Dead,
    /// The peer has forgotten this link, or a later incarnation of it has asked for a new one.
    #[error("the peer was restarted and knows nothing of this link; connect again")]
    Restarted,
}

/// News of links.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A link is up. We or the peer asked for it.
    Up {
        /// The link.
        peer: PeerId,
        /// The function at its other end.
        address: FunctionId,
    },
    /// A link is down, and all packets that came by it were offered and taken. It keeps its number
    /// until [`Endpoint::close`](crate::reliable::Endpoint::close).
    Down {
        /// The link.
        peer: PeerId,
        /// The function at its other end.
        address: FunctionId,
        /// Why.
        reason: DownReason,
    },
    /// The gates of some of the peer's queue pairs have changed.
    Gates {
        /// The link.
        peer: PeerId,
    },
}

/// A frame that [`Endpoint::poll_transmit`](crate::reliable::Endpoint::poll_transmit) wrote.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transmit {
    /// The path by which it goes.
    pub path: PathId,
    /// Its length in bytes.
    pub length: usize,
}

#[cfg(test)]
mod tests {
    use super::{Body, PeerId};

    /// Slices, arrays and references to them are read from any offset.
    #[test]
    fn bodies_are_read_from_any_offset() {
        fn read(body: &(impl Body + ?Sized)) -> (usize, bool, [u8; 2]) {
            let mut into = [0; 2];
            body.read(1, &mut into);
            (body.len(), body.is_empty(), into)
        }
        let array = [1, 2, 3, 4];
        assert_eq!(read(&array), (4, false, [2, 3]));
        assert_eq!(read(&array[..3]), (3, false, [2, 3]));
        assert_eq!(read(&&array), (4, false, [2, 3]));
        assert!(Body::is_empty(&[0; 0]) && Body::len(&[0; 0]) == 0);
    }

    /// The number of a link has its slot below and its generation above.
    #[test]
    fn numbers_of_links_differ_by_generation() {
        assert_eq!(PeerId::new(3, 7), PeerId(0x7_0003));
        assert_eq!(PeerId::new(0xffff, 0xffff).slot(), 0xffff);
    }
}
