//! Segmented messages: too long for one packet, and short enough that a copy costs less than a
//! fetch.
//!
//! The first segment is an eager message that gives the whole length, and it matches a receive. The
//! others follow in order, each with its offset in the message. The receiver copies each straight
//! to its destination while the sender is at the next. So the whole message is in flight without a
//! round trip, and both sides copy at once.
//!
//! A sender segments one message to a peer at a time. If its packets find no room, the rest is kept
//! and sent later. Until then all heads to this receiver carry a flag. A head without it, while
//! segments are missing, shows that a link lost them.

use crate::completion::Peer;
use crate::envelope::Envelope;
use crate::head::Head;
use crate::matching::Matched;

/// Longest message that is sent in segments, in bytes. Two copies by two processors at once take
/// less time than one by the kernel while all of it stays in the second-level cache.
pub const SEGMENTED_BYTES: usize = 128 << 10;

/// Bytes that a sender may be ahead of what it knows to be consumed, for a message to go in
/// segments. Beyond that a message is offered: a receiver that is behind would copy twice, and from
/// colder memory. Room for two of the longest.
pub(crate) const SEGMENTED_AHEAD_BYTES: usize = 2 * SEGMENTED_BYTES;

/// Bytes that a burst may send in segments before messages to a further peer are offered.
const BURST_BYTES: usize = 128 << 10;

/// Longest message that goes in segments whatever the burst has sent, in bytes.
const ALWAYS_SEGMENTED_BYTES: usize = 32 << 10;

/// Credit window in bytes: what one sender may have at one receiver without a posted receive. Each
/// message counts slightly more than its own bytes.
pub const WINDOW_BYTES: usize = 512 << 10;

/// Bytes before those of each later segment: head, offset.
pub(crate) const SEGMENT_HEAD_BYTES: usize = Head::BYTES + 8;

/// What an endpoint has sent in segments since something came.
///
/// A program that sends long messages to many peers at once fills more memory than the second-level
/// cache holds, before any of them is read. Two copies take longer there than one by the kernel.
#[derive(Clone, Copy)]
pub(crate) struct Burst {
    /// The peer of the last message, and the bytes that it was sent since another one was.
    last: (Peer, usize),
    /// Bytes before those.
    others: usize,
}

impl Burst {
    pub(crate) const fn new() -> Burst {
        Burst { last: (Peer(u32::MAX), 0), others: 0 }
    }

    /// Bytes for other peers than `to`.
    fn for_others(&self, to: Peer) -> usize {
        self.others + if self.last.0 == to { 0 } else { self.last.1 }
    }

    /// Whether a message of `length` bytes to `to` should not go in segments.
    pub(crate) fn forbids(&self, to: Peer, length: usize) -> bool {
        length > ALWAYS_SEGMENTED_BYTES && self.for_others(to) >= BURST_BYTES
    }

    /// A message of `length` bytes went in segments.
    pub(crate) fn add(&mut self, to: Peer, length: usize) {
        if self.last.0 != to {
            *self = Burst { last: (to, 0), others: self.for_others(to) };
        }
        self.last.1 += length;
    }
}

/// The rest of a message that found no room, at its sender.
pub(crate) struct UnsentSegments {
    bytes: Box<[u8]>,
    /// Offset of `bytes` in the message.
    start: usize,
    sent: usize,
}

impl UnsentSegments {
    /// The bytes of a message from `start` on.
    pub(crate) fn new(bytes: Box<[u8]>, start: usize) -> UnsentSegments {
        UnsentSegments { bytes, start, sent: 0 }
    }

    /// The next segment of at most `limit` bytes, and its offset in the message. `None`: all are
    /// sent.
    pub(crate) fn next(&self, limit: usize) -> Option<(usize, &[u8])> {
        let rest = &self.bytes[self.sent..];
        (!rest.is_empty()).then(|| (self.start + self.sent, &rest[..rest.len().min(limit)]))
    }

    /// The next segment, of `length` bytes, was sent.
    pub(crate) fn advance(&mut self, length: usize) {
        self.sent += length;
    }
}

/// A message at its receiver that lacks segments.
pub(crate) struct Incoming {
    pub(crate) envelope: Envelope,
    pub(crate) destination: Destination,
    received: usize,
}

/// Where the segments of a message go.
pub(crate) enum Destination {
    Receive(Matched),
    /// A place among the unexpected messages.
    Unexpected(u32),
    /// Nowhere: the program discarded the message.
    Discarded,
}

impl Incoming {
    /// A message of which the first `received` bytes have come.
    pub(crate) fn new(envelope: Envelope, received: usize, destination: Destination) -> Incoming {
        Incoming { envelope, destination, received }
    }

    /// Whether a message of `whole` bytes can begin with a segment of `first`.
    pub(crate) fn can_begin(whole: usize, first: usize) -> bool {
        (1..whole).contains(&first) && whole <= WINDOW_BYTES
    }

    /// Whether a segment of `length` bytes at offset `at` is the next one.
    pub(crate) fn is_next(&self, at: usize, length: usize) -> bool {
        at == self.received && length <= self.envelope.length - at
    }

    /// `length` bytes more have come. Returns whether the message is whole.
    pub(crate) fn advance(&mut self, length: usize) -> bool {
        self.received += length;
        self.received == self.envelope.length
    }

    /// Bytes that have come, from the first on.
    pub(crate) fn received(&self) -> usize {
        self.received
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message begins with some of its bytes and not with all, within the window. Each segment is
    /// the next one, and none goes beyond the end.
    #[test]
    fn segments_follow_each_other() {
        let can_begin = [(2, 1), (2, 2), (2, 0), (WINDOW_BYTES, 1), (WINDOW_BYTES + 1, 1)]
            .map(|(whole, first)| Incoming::can_begin(whole, first));
        assert_eq!(can_begin, [true, false, false, true, false]);
        let (peer, tagged, tag, data, operation) = (Peer(0), false, 0, None, None);
        let envelope = Envelope { peer, tagged, tag, data, length: 10, operation };
        let mut incoming = Incoming::new(envelope, 4, Destination::Discarded);
        let is_next = [(4, 6), (4, 7), (5, 1), (3, 1)].map(|(at, n)| incoming.is_next(at, n));
        assert_eq!(is_next, [true, false, false, false]);
        assert!(!incoming.advance(5) && incoming.received() == 9 && incoming.advance(1));
    }

    /// What found no room is sent in order, from its place in the message.
    #[test]
    fn the_rest_is_sent_in_order() {
        let mut unsent = UnsentSegments::new(vec![1, 2, 3, 4, 5].into(), 100);
        assert_eq!(unsent.next(2), Some((100, &[1, 2][..])));
        unsent.advance(2);
        assert_eq!(unsent.next(9), Some((102, &[3, 4, 5][..])));
        unsent.advance(3);
        assert_eq!(unsent.next(9), None);
    }

    /// Long messages to one peer go on in segments. After a burst those to further peers do not,
    /// and short ones do.
    #[test]
    fn a_burst_to_many_peers_ends_segments() {
        let mut burst = Burst::new();
        for _ in 0..10 {
            assert!(!burst.forbids(Peer(0), SEGMENTED_BYTES));
            burst.add(Peer(0), SEGMENTED_BYTES);
        }
        assert!(burst.forbids(Peer(1), (32 << 10) + 1));
        assert!(!burst.forbids(Peer(1), 32 << 10));
        let mut burst = Burst::new();
        burst.add(Peer(0), BURST_BYTES / 2);
        burst.add(Peer(1), BURST_BYTES / 2);
        assert!(
            !burst.forbids(Peer(1), SEGMENTED_BYTES) && burst.forbids(Peer(2), SEGMENTED_BYTES)
        );
    }
}
