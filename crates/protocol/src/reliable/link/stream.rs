//! What one link sends on one channel: a ring of records, from the oldest packet that is not wholly
//! acknowledged to the newest. Frames are cut from it and, when lost, filled from it again.
//!
//! ```text
//!      head            next                 tail
//!       v               v                    v
//!   ----[ in flight ... | waiting to be sent ]----      positions count bytes modulo 2^32
//! ```

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use bellwire_wire::frame::record::{PACKET_COST_BYTES, PACKET_HEADER_MAX_BYTES, PacketWords};
use bellwire_wire::frame::section::{FLAG_CONTINUES, FLAG_UNFINISHED};

use crate::canary::planted;
use crate::reliable::Body;

/// In a frame that is not empty, a record is begun only if at least this much of it fits. A record
/// that is longer than a frame is begun anyway: it is cut in any case, and frames of equal length
/// share a datagram.
const WORTH_BEGINNING_BYTES: u32 = 256;
/// Positions begin shortly before they wrap, so that wrapping happens often.
const FIRST_POSITION: u32 = u32::MAX - 1000;
/// First size of a ring.
const FIRST_BYTES: u32 = 1 << 12;

/// Streams that have a piece in each frame: requests, responses, news.
pub(super) const STREAMS: usize = 3;

/// A run of bytes of a stream, as it lies in one frame.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct Piece {
    pub start: u32,
    pub length: u32,
    /// Flags of the section.
    pub flags: u8,
    /// Packets that end in it.
    pub packets: u16,
}

#[derive(Clone, Copy)]
struct Record {
    bytes: u32,
    cost: u32,
}

pub(super) struct SendStream {
    ring: Vec<u8>,
    limit: u32,
    head: u32,
    next: u32,
    tail: u32,
    /// Records that are not yet wholly cut.
    records: VecDeque<Record>,
    /// Bytes already cut from the first record.
    begun: u32,
    /// Credit spent, and granted by the peer, as sums of costs modulo 2^32.
    spent: u32,
    granted: u32,
    /// The next record waits for credit (STOP).
    pub stopped: bool,
}

impl SendStream {
    /// An empty stream that holds at most `limit` bytes, a power of two.
    pub fn new(limit: u32) -> Self {
        SendStream {
            ring: Vec::new(),
            limit,
            head: FIRST_POSITION,
            next: FIRST_POSITION,
            tail: FIRST_POSITION,
            records: VecDeque::new(),
            begun: 0,
            spent: 0,
            granted: 0,
            stopped: false,
        }
    }

    /// Starts the credit count at `base`; the peer has granted credit up to `granted`.
    pub fn begin(&mut self, base: u32, granted: u32) {
        self.spent = base;
        self.granted = granted;
    }

    /// Bytes that wait to be sent.
    #[inline]
    pub fn waiting_bytes(&self) -> u32 {
        self.tail.wrapping_sub(self.next)
    }

    /// Whether everything is acknowledged.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    /// Queues a packet; `false` if it does not fit, and then nothing has changed.
    #[inline]
    pub fn push_packet(
        &mut self,
        words: PacketWords,
        head: &[u8],
        body: &(impl Body + ?Sized),
    ) -> bool {
        let mut header = [0; PACKET_HEADER_MAX_BYTES];
        let header_bytes = words.emit(&mut header);
        let payload = words.payload_bytes();
        let bytes = header_bytes as u32 + payload;
        if !self.make_room(bytes) {
            return false;
        }
        self.append(&header[..header_bytes]);
        if !head.is_empty() {
            self.append(head);
        }
        let length = body.len();
        let (first, second) = self.spans(self.tail, length as u32);
        body.read(0, &mut self.ring[first]);
        if !second.is_empty() {
            body.read(length - second.len(), &mut self.ring[second]);
        }
        self.tail = self.tail.wrapping_add(length as u32);
        self.records.push_back(Record { bytes, cost: payload + PACKET_COST_BYTES });
        true
    }

    /// Queues a record that costs no credit.
    pub fn push_news(&mut self, bytes: &[u8]) -> bool {
        if !self.make_room(bytes.len() as u32) {
            return false;
        }
        self.append(bytes);
        self.records.push_back(Record { bytes: bytes.len() as u32, cost: 0 });
        true
    }

    /// Cuts what fits into `room` bytes of a frame, at most `most` records; `None` if nothing fits
    /// or credit is missing.
    #[inline]
    pub fn cut(&mut self, room: u32, most: u16) -> Option<Piece> {
        let mut piece = Piece { start: self.next, length: 0, flags: 0, packets: 0 };
        while let Some(&Record { bytes, cost }) = self.records.front() {
            let left = room - piece.length;
            if piece.packets >= most || left == 0 {
                break;
            }
            if self.begun == 0 {
                let credit = self.granted.wrapping_sub(self.spent);
                if cost > credit && !planted("reliable-ignore-credit") {
                    self.stopped = true;
                    break;
                }
                // A record waits for the next frame, unless much of it fits here or it is cut
                // anyway.
                let is_short = left < WORTH_BEGINNING_BYTES && bytes <= room;
                if bytes > left && is_short && piece.length > 0 {
                    break;
                }
                self.spent = self.spent.wrapping_add(cost);
            } else if piece.length == 0 {
                piece.flags |= FLAG_CONTINUES;
            }
            let rest = bytes - self.begun;
            if rest > left {
                self.begun += left;
                piece.length += left;
                if !planted("reliable-no-unfinished") {
                    piece.flags |= FLAG_UNFINISHED;
                }
                break;
            }
            piece.length += rest;
            piece.packets += 1;
            self.begun = 0;
            self.records.pop_front();
        }
        self.next = self.next.wrapping_add(piece.length);
        (piece.length > 0).then_some(piece)
    }

    /// Copies the bytes of a piece.
    #[inline]
    pub fn copy(&self, piece: &Piece, into: &mut [u8]) {
        let (first, second) = self.spans(piece.start, piece.length);
        debug_assert_eq!(into.len(), piece.length as usize);
        let (a, b) = into.split_at_mut(first.len());
        a.copy_from_slice(&self.ring[first]);
        if !second.is_empty() {
            b.copy_from_slice(&self.ring[second]);
        }
    }

    /// The bytes of a piece, if they do not wrap.
    #[inline]
    pub fn run(&self, piece: &Piece) -> Option<&[u8]> {
        let (first, second) = self.spans(piece.start, piece.length);
        second.is_empty().then(|| &self.ring[first])
    }

    /// A piece, and all before it, is acknowledged.
    #[inline]
    pub fn release(&mut self, piece: &Piece) {
        debug_assert_eq!(self.head, piece.start, "pieces are released in order");
        self.head = piece.start.wrapping_add(piece.length);
    }

    /// The peer grants credit up to `limit`; returns whether a record waited for it (GO).
    #[inline]
    pub fn grant(&mut self, limit: u32) -> bool {
        let more = limit.wrapping_sub(self.granted);
        if more == 0 || more > 1 << 31 {
            return false;
        }
        self.granted = limit;
        core::mem::take(&mut self.stopped)
    }

    /// Whether bytes wait that may be sent.
    #[inline]
    pub fn is_sendable(&self) -> bool {
        self.waiting_bytes() > 0 && !self.stopped
    }

    fn append(&mut self, bytes: &[u8]) {
        let (first, second) = self.spans(self.tail, bytes.len() as u32);
        let (a, b) = bytes.split_at(first.len());
        self.ring[first].copy_from_slice(a);
        self.ring[second].copy_from_slice(b);
        self.tail = self.tail.wrapping_add(bytes.len() as u32);
    }

    /// Where `length` bytes from `position` lie in the ring: one run, and a second at its start if
    /// they wrap.
    #[inline]
    fn spans(
        &self,
        position: u32,
        length: u32,
    ) -> (core::ops::Range<usize>, core::ops::Range<usize>) {
        let size = self.ring.len();
        let at = position as usize & size.wrapping_sub(1);
        let first = (size - at.min(size)).min(length as usize);
        (at..at + first, 0..length as usize - first)
    }

    #[inline]
    fn make_room(&mut self, bytes: u32) -> bool {
        let needed = self.tail.wrapping_sub(self.head) as u64 + bytes as u64;
        needed <= self.ring.len() as u64 || self.grow(needed)
    }

    /// Doubles the ring until it holds `needed`, up to the limit. An idle link costs nothing, and a
    /// busy one stops allocating.
    #[cold]
    fn grow(&mut self, needed: u64) -> bool {
        if needed > self.limit as u64 {
            return false;
        }
        let size = (needed.next_power_of_two() as u32).max(FIRST_BYTES).min(self.limit);
        let kept = self.tail.wrapping_sub(self.head);
        let mut grown = SendStream { ring: vec![0; size as usize], ..SendStream::new(size) };
        if kept > 0 {
            let (first, second) = self.spans(self.head, kept);
            (grown.head, grown.tail) = (self.head, self.head);
            grown.append(&self.ring[first]);
            grown.append(&self.ring[second]);
        }
        self.ring = grown.ring;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::{FLAG_CONTINUES, FLAG_UNFINISHED, PacketWords, Piece, SendStream};
    use alloc::vec;
    use alloc::vec::Vec;

    const ALL: u16 = u16::MAX;

    /// Length, flags and ended packets of the next piece.
    fn cut(stream: &mut SendStream, room: u32, most: u16) -> Option<(u32, u8, u16)> {
        stream.cut(room, most).map(|piece| (piece.length, piece.flags, piece.packets))
    }

    fn bytes(stream: &SendStream, piece: &Piece) -> Vec<u8> {
        let mut bytes = vec![0; piece.length as usize];
        stream.copy(piece, &mut bytes);
        bytes
    }

    /// A record is begun in a frame that has others only if 256 bytes of it fit. What is begun goes
    /// on in the next piece.
    #[test]
    fn records_are_begun_if_it_is_worth_it() {
        let stream = |lengths: &[usize]| {
            let mut stream = SendStream::new(1 << 16);
            lengths.iter().for_each(|&length| assert!(stream.push_news(&vec![1; length])));
            stream
        };
        let mut it = stream(&[100, 300, 300]);
        assert_eq!(cut(&mut it, 355, ALL), Some((100, 0, 1)), "255 bytes would fit");
        let mut it = stream(&[100, 300, 300]);
        assert_eq!(cut(&mut it, 356, ALL), Some((356, FLAG_UNFINISHED, 1)));
        assert_eq!(it.waiting_bytes(), 344);
        assert_eq!(cut(&mut it, 43, ALL), Some((43, FLAG_CONTINUES | FLAG_UNFINISHED, 0)));
        assert_eq!(cut(&mut it, 1000, ALL), Some((301, FLAG_CONTINUES, 2)));
        assert_eq!(
            (cut(&mut it, 1000, ALL), it.waiting_bytes(), it.is_sendable()),
            (None, 0, false)
        );
        let mut it = stream(&[300, 300, 300]);
        assert_eq!(cut(&mut it, 50, ALL), Some((50, FLAG_UNFINISHED, 0)), "nothing else is there");
        assert_eq!(cut(&mut it, 250, 1), Some((250, FLAG_CONTINUES, 1)));
        assert_eq!(cut(&mut it, 1000, 1), Some((300, 0, 1)));
        assert_eq!(cut(&mut it, 300, ALL), Some((300, 0, 1)));
        let mut it = stream(&[100, 50, 50]);
        assert_eq!(cut(&mut it, 150, ALL), Some((150, 0, 2)), "they fit exactly");
        let mut it = stream(&[10]);
        assert_eq!((cut(&mut it, 0, ALL), cut(&mut it, 10, ALL)), (None, Some((10, 0, 1))));
    }

    /// A packet is begun only with credit for all of it, which is spent as a whole. Only a newer
    /// grant counts, and only one that lets a stopped stream go on is a GO.
    #[test]
    fn credit_is_spent_for_whole_packets() {
        let mut it = SendStream::new(1 << 16);
        it.begin(u32::MAX - 5, (u32::MAX - 5).wrapping_add(131));
        let words = PacketWords([1, 2, 3]).with_payload_bytes(100);
        assert!(it.push_packet(words, &[1; 40], &[2; 60]) && it.is_sendable() && !it.stopped);
        assert_eq!((cut(&mut it, 1000, ALL), it.stopped, it.is_sendable()), (None, true, false));
        assert!(!it.grant(125) && !it.grant(124) && it.stopped);
        assert!(!it.grant(125 + (1 << 31) + 1), "half of all sums away is older");
        let mut far = SendStream::new(1 << 16);
        assert!(far.push_packet(words, &[], &[2; 100]) && far.cut(1000, ALL).is_none());
        assert!(far.grant(1 << 31), "exactly half is newer");
        assert!(it.grant(126) && !it.stopped && it.is_sendable());
        assert_eq!(cut(&mut it, 50, ALL), Some((50, FLAG_UNFINISHED, 0)));
        assert_eq!(
            cut(&mut it, 1000, ALL).map(|piece| (piece.1, piece.2)),
            Some((FLAG_CONTINUES, 1))
        );
        assert!(!it.grant(126 + 40), "nobody waited");
        assert!(it.push_packet(PacketWords([1, 2, 3]).with_payload_bytes(8), &[], &[3; 8]));
        assert_eq!(cut(&mut it, 1000, ALL).map(|piece| piece.2), Some(1), "exactly enough");
        assert!(it.push_packet(PacketWords([1, 2, 3]).with_payload_bytes(0), &[], &[0; 0]));
        assert_eq!(cut(&mut it, 1000, ALL), None);
    }

    /// Bytes stay what they are while positions and the ring wrap and the ring grows. The stream is
    /// full at its limit, and has room again when pieces are released.
    #[test]
    fn bytes_survive_wrapping_and_growing() {
        assert!(SendStream::new(1 << 13).push_news(&[1; 1 << 13]), "all of it at once");
        assert!(!SendStream::new(1 << 13).push_news(&[1; (1 << 13) + 1]));
        let mut it = SendStream::new(1 << 13);
        let mut pieces: Vec<(Piece, u8)> = Vec::new();
        let mut number = 0;
        let mut check = |it: &mut SendStream, pieces: &mut Vec<(Piece, u8)>, length: usize| {
            number = number % 250 + 1;
            let pushed = it.push_news(&vec![number; length]);
            if pushed {
                let piece = it.cut(length as u32, ALL).unwrap();
                assert_eq!(piece.length as usize, length);
                pieces.push((piece, number));
            }
            for (piece, number) in pieces {
                assert_eq!(bytes(it, piece), vec![*number; piece.length as usize]);
            }
            pushed
        };
        assert!(it.is_empty());
        // Positions begin 1001 bytes before they wrap; the ring has 4096 bytes at first.
        assert!((0..4).all(|_| check(&mut it, &mut pieces, 1000)));
        for (piece, _) in pieces.drain(..2) {
            it.release(&piece);
        }
        assert!(check(&mut it, &mut pieces, 1900) && !it.is_empty());
        assert!((0..4).all(|_| check(&mut it, &mut pieces, 1000)), "the ring has grown");
        assert!(!check(&mut it, &mut pieces, 293));
        assert!(check(&mut it, &mut pieces, 292), "8192 in all");
        assert!(!check(&mut it, &mut pieces, 1));
        it.release(&pieces.remove(0).0);
        assert!(check(&mut it, &mut pieces, 999) && check(&mut it, &mut pieces, 1));
        assert!(!check(&mut it, &mut pieces, 1));
        for (piece, _) in pieces.drain(..) {
            assert!(!it.is_empty());
            it.release(&piece);
        }
        assert!(it.is_empty());
        assert!((0..30).all(|_| {
            let fits = check(&mut it, &mut pieces, 700);
            it.release(&pieces.remove(0).0);
            fits
        }));
    }

    /// A packet's head and body lie behind its header, also where the ring wraps.
    #[test]
    fn packets_lie_as_one_run() {
        for before in (900..1100).chain(3900..4096) {
            let mut it = SendStream::new(1 << 12);
            it.begin(0, 1 << 20);
            assert!(it.push_news(&vec![0; before]));
            let piece = it.cut(before as u32, ALL).unwrap();
            it.release(&piece);
            let words = PacketWords([1, 2, 3]).with_payload_bytes(70);
            let body: Vec<u8> = (100..150).collect();
            assert!(it.push_packet(words, &[7; 20], &body[..]));
            let piece = it.cut(1000, ALL).unwrap();
            let record = bytes(&it, &piece);
            let (read, header) = PacketWords::parse(&record).unwrap().unwrap();
            assert_eq!((read.0, record.len()), (words.0, header + 70));
            assert_eq!(
                (&record[header..header + 20], &record[header + 20..]),
                (&[7; 20][..], &body[..])
            );
        }
    }
}
