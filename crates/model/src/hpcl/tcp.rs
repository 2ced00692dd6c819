//! TCP/IP (B-22), as far as it determines the paper's measurements. It has a stream in segments,
//! Nagle's rule, a window, and acknowledgements that are delayed or piggybacked on data.
//! Connections exist from the start. Congestion control and retransmission are not modelled:
//! nothing is lost where TCP is measured. If a segment is lost, the run reports it and is void.

use super::config;
use crate::units::{Span, Time};

/// A segment: the numbers of its bytes, without the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Number of its first byte.
    pub sequence: u64,
    /// Bytes of data.
    pub bytes: u32,
    /// Cumulative acknowledgement: all bytes before this number have arrived.
    pub acknowledged: u64,
    /// End of the receive window: the sender of this segment accepts bytes up to this number.
    pub window_end: u64,
}

/// One end of a connection.
#[derive(Clone, Debug)]
pub struct Socket {
    segment: u64,
    send_buffer: u64,
    receive_buffer: u64,
    acknowledge_every: u32,
    delayed: Span,

    /// Bytes written, sent and acknowledged so far.
    written: u64,
    sent: u64,
    acknowledged: u64,
    window_end: u64,
    /// The end of the last segment that was not full.
    small_until: u64,

    /// Bytes received, and bytes read.
    came: u64,
    read: u64,
    told_window_end: u64,
    /// Segments received since the last acknowledgement.
    waiting: u32,
    must_acknowledge: bool,
    /// When the oldest of them must be acknowledged.
    pub acknowledge_at: Option<Time>,
    /// A segment was lost, or another case occurred that is not modelled.
    pub broken: bool,
}

impl Socket {
    /// An end of a new connection.
    pub fn new(config: &config::Tcp) -> Socket {
        let receive_buffer = config.receive_buffer.count();
        Socket {
            segment: config.segment.count(),
            send_buffer: config.send_buffer.count(),
            receive_buffer,
            acknowledge_every: config.acknowledge_every,
            delayed: config.delayed,
            written: 0,
            sent: 0,
            acknowledged: 0,
            window_end: receive_buffer,
            small_until: 0,
            came: 0,
            read: 0,
            told_window_end: receive_buffer,
            waiting: 0,
            must_acknowledge: false,
            acknowledge_at: None,
            broken: false,
        }
    }

    /// Bytes that can be written now.
    pub fn room(&self) -> u64 {
        self.send_buffer - (self.written - self.acknowledged)
    }

    /// The user has written bytes; there must be room for them.
    pub fn write(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.room());
        self.written += bytes;
    }

    /// Bytes that can be read now.
    pub fn readable(&self) -> u64 {
        self.came - self.read
    }

    /// The user has read bytes. If much room is free again, the sender gets a window update.
    pub fn read(&mut self, bytes: u64) {
        self.read += bytes.min(self.readable());
        let more = self.own_window_end() - self.told_window_end;
        if more >= 2 * self.segment && more >= self.receive_buffer / 2 {
            self.must_acknowledge = true;
        }
    }

    /// The next segment: a full one; otherwise the remaining bytes, unless a segment that was not
    /// full is in flight (Nagle's rule in Minshall's form, as in Linux); otherwise a pure
    /// acknowledgement.
    pub fn transmit(&mut self) -> Option<Segment> {
        let ready = self.written - self.sent;
        let allowed = self.window_end.saturating_sub(self.sent);
        let bytes = ready.min(allowed).min(self.segment);
        let may_be_small = self.small_until <= self.acknowledged && bytes == ready;
        let goes = bytes > 0 && (bytes == self.segment || may_be_small);
        if !goes && !self.must_acknowledge {
            return None;
        }
        let bytes = if goes { bytes } else { 0 };
        let segment = Segment {
            sequence: self.sent,
            bytes: bytes as u32,
            acknowledged: self.came,
            window_end: self.own_window_end(),
        };
        self.sent += bytes;
        if bytes > 0 && bytes < self.segment {
            self.small_until = self.sent;
        }
        self.told_window_end = segment.window_end;
        (self.waiting, self.must_acknowledge, self.acknowledge_at) = (0, false, None);
        Some(segment)
    }

    /// Handles a received segment.
    pub fn handle(&mut self, segment: &Segment, now: Time) {
        if segment.acknowledged > self.sent || segment.bytes > 0 && segment.sequence != self.came {
            self.broken = true;
            return;
        }
        self.acknowledged = self.acknowledged.max(segment.acknowledged);
        self.window_end = self.window_end.max(segment.window_end);
        if segment.bytes > 0 {
            self.came += u64::from(segment.bytes);
            self.waiting += 1;
            if self.waiting >= self.acknowledge_every {
                self.must_acknowledge = true;
            } else {
                self.acknowledge_at.get_or_insert(now + self.delayed);
            }
        }
    }

    /// Checks whether a delayed acknowledgement is due.
    pub fn look(&mut self, now: Time) {
        if self.acknowledge_at.is_some_and(|at| at <= now) {
            self.must_acknowledge = true;
        }
    }

    /// Bytes written, sent, acknowledged, received and read.
    pub fn books(&self) -> [u64; 5] {
        [self.written, self.sent, self.acknowledged, self.came, self.read]
    }

    fn own_window_end(&self) -> u64 {
        self.read + self.receive_buffer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket() -> Socket {
        Socket::new(&super::super::Config::paper().tcp)
    }

    /// Nagle's rule: the first small write goes at once. Later ones wait for its acknowledgement
    /// and go together. Full segments always go.
    #[test]
    fn small_writes_share_segments() {
        let (mut near, mut far) = (socket(), socket());
        near.write(100);
        let first = near.transmit().expect("nothing is under way");
        assert_eq!(first.bytes, 100);
        for _ in 0..5 {
            near.write(100);
            assert_eq!(near.transmit(), None);
        }
        far.handle(&first, Time::ZERO);
        assert_eq!(far.readable(), 100);
        assert_eq!(far.transmit(), None, "an acknowledgement waits for data to ride on");
        far.look(Time::ZERO + Span::from_ns(40_000_000));
        let answer = far.transmit().expect("but not for ever");
        assert_eq!((answer.bytes, answer.acknowledged), (0, 100));
        near.handle(&answer, Time::ZERO);
        assert_eq!(near.transmit().expect("all that waited").bytes, 500);
        near.write(1460);
        assert_eq!(near.transmit().expect("a full one").bytes, 1460);
    }

    /// Every second segment is acknowledged at once. A full receive buffer stops the sender; a read
    /// lets it continue.
    #[test]
    fn windows_and_acknowledgements() {
        let (mut near, mut far) = (socket(), socket());
        let mut sent = 0;
        near.write(near.room());
        while let Some(segment) = near.transmit() {
            far.handle(&segment, Time::ZERO);
            sent += u64::from(segment.bytes);
            if let Some(answer) = far.transmit() {
                near.handle(&answer, Time::ZERO);
            }
            near.write(near.room());
        }
        // The rest of the window is smaller than a segment, and no small segment goes while others
        // are in flight.
        assert!((64 * 1024 - 1460..=64 * 1024).contains(&sent), "{sent}");
        assert_eq!(far.readable(), sent);
        far.read(sent);
        let answer = far.transmit().expect("the window has opened");
        near.handle(&answer, Time::ZERO);
        assert!(near.transmit().is_some());
    }

    /// A gap is not repaired, but it is noticed.
    #[test]
    fn a_lost_segment_breaks_the_run() {
        let (mut near, mut far) = (socket(), socket());
        near.write(2920);
        let _lost = near.transmit();
        far.handle(&near.transmit().expect("the second"), Time::ZERO);
        assert!(far.broken);
    }

    /// A socket with segments of 100 B and buffers of 1000 B to send and 600 B to receive.
    fn small() -> Socket {
        use crate::units::Bytes;
        let mut config = super::super::Config::paper().tcp;
        config.segment = Bytes::new(100);
        config.send_buffer = Bytes::new(1000);
        config.receive_buffer = Bytes::new(600);
        Socket::new(&config)
    }

    /// Room is what was written and not acknowledged; what can be read is what came and was not
    /// read.
    #[test]
    fn buffers_fill_and_empty() {
        let (mut near, mut far) = (small(), small());
        near.write(250);
        assert_eq!(near.room(), 750);
        let first = near.transmit().expect("a full one");
        assert_eq!(
            (first.sequence, first.bytes, first.acknowledged, first.window_end),
            (0, 100, 0, 600)
        );
        far.handle(&first, Time::ZERO);
        far.read(30);
        assert_eq!(far.readable(), 70);
        let second = near.transmit().expect("another");
        far.handle(&second, Time::ZERO);
        assert_eq!(far.readable(), 170);
        let answer = far.transmit().expect("two segments came");
        assert_eq!((answer.acknowledged, answer.window_end, answer.sequence), (200, 630, 0));
        near.handle(&answer, Time::ZERO);
        assert_eq!((near.room(), far.transmit()), (950, None));
        assert_eq!(near.books(), [250, 200, 200, 0, 0]);
    }

    /// A window is told again when two segments and half of the buffer are free: 300 B of 600.
    #[test]
    fn windows_are_told_when_much_is_free() {
        for (segment, read, told) in
            [(100, 299, false), (100, 300, true), (200, 399, false), (200, 400, true)]
        {
            let (mut near, mut far) = (small(), small());
            (near.segment, far.segment) = (segment, segment);
            near.write(600);
            while let Some(segment) = near.transmit() {
                far.handle(&segment, Time::ZERO);
                far.must_acknowledge = false;
            }
            assert_eq!(far.readable(), 600);
            assert_eq!(far.transmit(), None);
            far.read(read);
            assert_eq!(far.transmit().is_some(), told, "{read} B of segments of {segment}");
        }
    }

    /// A small segment goes when no other small one is in flight, and if it is all that is left;
    /// a full window lets none go. A segment without data changes no count.
    #[test]
    fn what_may_go_goes() {
        let mut near = small();
        near.write(150);
        assert_eq!(near.transmit().expect("a full one").bytes, 100);
        assert_eq!(near.transmit().expect("the rest, beside a full one").bytes, 50);
        near.write(10);
        assert_eq!(near.transmit(), None, "a small one is in flight");
        let told =
            |acknowledged, window_end| Segment { sequence: 0, bytes: 0, acknowledged, window_end };
        near.handle(&told(100, 150), Time::ZERO);
        assert_eq!(near.transmit(), None, "it still is");
        near.window_end = 155;
        near.handle(&told(150, 155), Time::ZERO);
        assert_eq!(near.transmit(), None, "only half of what is left may go");
        near.handle(&told(150, 160), Time::ZERO);
        assert_eq!(near.transmit().expect("all that is left").bytes, 10);
        assert_eq!((near.waiting, near.acknowledge_at, near.broken), (0, None, false));
        // A pure acknowledgement is no small segment, and has a place in the stream of its own.
        near.handle(&told(160, 700), Time::ZERO);
        near.write(100);
        assert_eq!(near.transmit().expect("a full one").bytes, 100);
        near.must_acknowledge = true;
        assert_eq!(near.transmit().expect("it was asked for").bytes, 0);
        near.write(10);
        assert_eq!(near.transmit().expect("no small one is in flight").bytes, 10);
        near.handle(&Segment { sequence: 7, ..told(260, 700) }, Time::ZERO);
        assert_eq!((near.broken, near.acknowledged), (false, 260));
        near.handle(&told(270, 700), Time::ZERO);
        // An acknowledgement of all that was sent is sound, and one of more is not.
        near.handle(&told(270, 700), Time::ZERO);
        assert!(!near.broken);
        near.handle(&told(271, 700), Time::ZERO);
        assert!(near.broken);
    }
}
