//! The sending half of a link: its streams, what is in flight, and when to send it again.

use alloc::vec::Vec;

use bellwire_wire::frame::header::{FLAG_DISCARDS, FLAG_LOSE, FrameHeader, HELD_BACK_UNIT_NS};
use bellwire_wire::frame::open::OpenBody;
use bellwire_wire::frame::record::{NEWS_BYTES, News, PacketWords};
use bellwire_wire::frame::section::{
    PART_FIXED_BYTES, RECEIVED_FIXED_BYTES, SECTION_BYTES, Section, SectionKind,
};

use super::congestion::Congestion;
use super::flight::{Flight, Sent, SentState};
use super::loss::LossDetection;
use super::opening::first_number;
use super::paths::Paths;
use super::rtt::RoundTrip;
use super::stream::{Piece, STREAMS, SendStream};
use super::writer::{Left, Writer};
use crate::canary::planted;
use crate::reliable::interface::NEVER;
use crate::reliable::{Body, Channel, Config, Counters, PATHS, SendError};

/// A section with less room than this is not begun.
const LEAST_SECTION_BYTES: usize = 64;
/// The stream of news, behind those of the channels.
const NEWS: usize = 2;
/// Bytes of the stream of news.
const NEWS_STREAM_BYTES: u32 = 1 << 14;
/// Most bytes of news that wait for a frame.
const MOST_NEWS_BYTES: u32 = 32 * NEWS_BYTES as u32;

const SECTIONS: [SectionKind; STREAMS] =
    [SectionKind::Requests, SectionKind::Responses, SectionKind::News];

pub(crate) struct Sender {
    /// Of requests, responses and news.
    streams: [SendStream; STREAMS],
    pub(super) flight: Flight,
    loss: LossDetection,
    pub(super) round_trip: RoundTrip,
    congestion: Congestion,
    /// The agreed window, in frames.
    window: u32,
    /// Longest payload of a packet that the peer takes, in bytes.
    packet_bytes: u32,
    coalesce: bool,
    /// When the wait for an acknowledgement or for credit ends.
    pub timeout_ns: u64,
    /// The frame that goes in parts now: its number, the bytes sent, and its path.
    pub part: Option<(u32, usize, u8)>,
    /// Packets in `flight` and in `streams`, for the counters.
    pub packets_unacknowledged: u64,
    /// Requests queued so far, and how many of them the peer's user has taken or its endpoint
    /// keeps.
    requests_queued: u64,
    pub requests_delivered: u64,
    /// The peer's user has closed the link: an acknowledged packet no longer counts as delivered.
    discards: bool,
}

/// Where a written frame goes: the index of its path, and its sequence number.
pub(crate) type Written = (u8, u32);

/// Frames that one acknowledgement newly reports.
#[derive(Default)]
struct Arrivals {
    count: u32,
    /// When the newest of those that were transmitted once was sent.
    newest_ns: Option<u64>,
}

impl Arrivals {
    /// Records that a frame has arrived at the peer.
    #[inline]
    fn add(&mut self, sent: Sent, paths: &mut Paths, round_trip: &RoundTrip, now_ns: u64) {
        if sent.state == SentState::Received {
            return;
        }
        self.count += 1;
        let is_once = sent.attempts == 1;
        if sent.state == SentState::InFlight {
            paths.leave_flight(sent.path);
            if !is_once {
                paths.proves_nothing(sent.path, round_trip, now_ns);
            }
        }
        // Of several transmissions the last one arrived only if it went long enough ago (RFC 8985,
        // 6.2). Even then its round trip stays unknown (Karn).
        if is_once {
            paths.prove(sent.path);
        }
        if is_once || now_ns.saturating_sub(sent.sent_at_ns) >= round_trip.minimum_ns {
            paths.arrived(sent.path, sent.stamp);
        }
        if is_once {
            self.newest_ns = self.newest_ns.max(Some(sent.sent_at_ns));
        }
    }
}

impl Sender {
    /// The first frame has number `first`.
    pub fn new(config: &Config, first: u32) -> Self {
        let stream = || SendStream::new(config.send_bytes);
        let news = SendStream::new(config.send_bytes.min(NEWS_STREAM_BYTES));
        let target_ns = config.congestion.then_some(config.target_delay_ns);
        Sender {
            streams: [stream(), stream(), news],
            flight: Flight::new(first),
            loss: LossDetection::new(config.recovery),
            round_trip: RoundTrip::new(config.timeout_ns, config.first_timeout_ns),
            congestion: Congestion::new(config.window_frames, target_ns),
            window: config.window_frames as u32,
            packet_bytes: 0,
            coalesce: config.coalesce,
            timeout_ns: NEVER,
            part: None,
            packets_unacknowledged: 0,
            requests_queued: 0,
            requests_delivered: 0,
            discards: false,
        }
    }

    /// Takes over the peer's limits from its Open or Accept.
    pub fn learn(&mut self, config: &Config, header: &FrameHeader, open: &OpenBody) {
        self.packet_bytes = open.packet_bytes.min(config.send_bytes - 64);
        self.window = config.window_frames.min(open.window) as u32;
        for (stream, credit) in self.streams.iter_mut().zip(header.credit) {
            stream.begin(first_number(open.token), credit);
        }
    }

    /// Queues a packet. Returns the number of requests queued so far.
    #[inline]
    pub fn push(
        &mut self,
        channel: Channel,
        words: [u64; 3],
        head: &[u8],
        body: &(impl Body + ?Sized),
    ) -> Result<u64, SendError> {
        let length = head.len() + body.len();
        if length > self.packet_bytes as usize {
            return Err(SendError::TooLong { limit: self.packet_bytes });
        }
        let words = PacketWords(words).with_payload_bytes(length as u32);
        if !self.streams[channel as usize].push_packet(words, head, body) {
            return Err(SendError::Busy);
        }
        self.packets_unacknowledged += 1;
        self.requests_queued += (channel == Channel::Request) as u64;
        if planted("reliable-queued-is-delivered") {
            self.requests_delivered = self.requests_queued - 1;
        }
        Ok(self.requests_queued)
    }

    /// Whether news may be queued.
    pub fn takes_news(&self) -> bool {
        self.streams[NEWS].waiting_bytes() < MOST_NEWS_BYTES
    }

    pub fn push_news(&mut self, news: News) {
        let is_queued = self.streams[NEWS].push_news(&news.emit());
        debug_assert!(is_queued, "what is in flight of news is bounded by the window");
    }

    /// Whether all that was queued is acknowledged.
    pub fn is_drained(&self) -> bool {
        self.flight.is_empty() && self.streams.iter().all(SendStream::is_empty)
    }

    /// Whether all that was queued is sent, so that the user can only wait.
    #[inline]
    pub fn is_all_sent(&self) -> bool {
        !self.flight.has_lost() && self.streams.iter().all(|stream| stream.waiting_bytes() == 0)
    }

    /// Most frames in flight now.
    #[inline]
    pub fn window_frames(&self) -> u32 {
        self.congestion.frames().min(self.window)
    }

    /// Whether the windows allow one more frame.
    #[inline]
    pub fn may_send(&self) -> bool {
        self.flight.in_flight < self.window_frames() || planted("reliable-ignore-window")
    }

    /// Whether one more frame may be without acknowledgement.
    #[inline]
    pub fn may_send_new(&self) -> bool {
        (self.flight.len() as u32) < self.window || planted("reliable-ignore-window")
    }

    /// Whether a frame of data must go. `has_news`: whether gates have changed.
    #[inline]
    pub fn has_data(&self, has_news: bool) -> bool {
        self.flight.has_lost()
            || self.may_send_new() && (has_news || self.streams.iter().any(SendStream::is_sendable))
    }

    /// Whether to send without waiting for more packets: nothing is in flight, or so many bytes
    /// wait.
    #[inline]
    pub fn is_urgent(&self, bytes: usize) -> bool {
        let is_much =
            |stream: &SendStream| stream.waiting_bytes() as usize + 64 >= bytes && !stream.stopped;
        self.may_send() && (self.flight.in_flight == 0 || self.streams.iter().any(is_much))
    }

    /// Takes in the acknowledgement and the credit of a frame. `received` is the selective
    /// acknowledgement. Returns how many more frames are acknowledged from the oldest on; `None`:
    /// one was never sent.
    #[inline]
    pub fn acknowledged(
        &mut self,
        header: &FrameHeader,
        received: Option<&[u8]>,
        paths: &mut Paths,
        counters: &mut Counters,
        now_ns: u64,
    ) -> Option<u32> {
        for (stream, credit) in self.streams.iter_mut().zip(header.credit) {
            counters.gos += stream.grant(credit) as u64;
        }
        let advance = header.acknowledged.wrapping_sub(self.flight.oldest);
        if advance as usize > self.flight.len() {
            // A reordered older acknowledgement says nothing new.
            return ((advance as i32) < 0).then_some(0);
        }
        self.discards |=
            header.flags & FLAG_DISCARDS != 0 && !planted("reliable-discarded-is-delivered");
        let limited = self.flight.in_flight + 1 >= self.window_frames();
        let mut arrivals = Arrivals::default();
        for _ in 0..advance {
            let Some(sent) = self.flight.pop() else { break };
            self.release(&sent, counters);
            arrivals.add(sent, paths, &self.round_trip, now_ns);
        }
        if let Some((fixed, bitmap)) =
            received.and_then(|bytes| bytes.split_first_chunk::<RECEIVED_FIXED_BYTES>())
        {
            self.loss.repeated(u32::from_le_bytes(*fixed));
            for (byte, &bits) in bitmap.iter().enumerate() {
                let mut bits = bits;
                while bits != 0 {
                    let index = byte * 8 + bits.trailing_zeros() as usize + 1;
                    bits &= bits - 1;
                    if let Some(sent) = self.flight.received(index) {
                        arrivals.add(sent, paths, &self.round_trip, now_ns);
                    }
                }
            }
        }
        if arrivals.count > 0 {
            self.progress(header, &arrivals, limited, now_ns);
        }
        let is_lose = header.flags & FLAG_LOSE != 0;
        counters.loses_received += is_lose as u64;
        if received.is_some() || is_lose {
            let Sender { loss, flight, round_trip, .. } = self;
            let sent_at_ns = loss.find(header, received, flight, paths, round_trip, now_ns);
            if let Some(sent_at_ns) = sent_at_ns {
                self.congestion.lost(sent_at_ns, now_ns);
            }
        }
        Some(advance)
    }

    /// The content of a frame is acknowledged.
    #[inline]
    fn release(&mut self, sent: &Sent, counters: &mut Counters) {
        for (index, (stream, piece)) in self.streams.iter_mut().zip(&sent.pieces).enumerate() {
            if piece.length == 0 {
                continue;
            }
            stream.release(piece);
            if index == Channel::Request as usize
                && (!self.discards || planted("reliable-deliver-discarded"))
            {
                self.requests_delivered += piece.packets as u64;
            }
            if index != NEWS {
                counters.packets_acknowledged += piece.packets as u64;
                self.packets_unacknowledged -= piece.packets as u64;
            }
        }
    }

    #[inline]
    fn progress(&mut self, header: &FrameHeader, arrivals: &Arrivals, limited: bool, now_ns: u64) {
        self.round_trip.backoff = 0;
        let mut round_trip_ns = self.round_trip.smooth_ns;
        if let Some(sent_at_ns) = arrivals.newest_ns.filter(|&at_ns| self.loss.is_telling(at_ns)) {
            let held_back_ns = header.held_back as u64 * HELD_BACK_UNIT_NS;
            round_trip_ns = now_ns.saturating_sub(sent_at_ns).saturating_sub(held_back_ns);
            self.round_trip.sample(round_trip_ns, now_ns);
        }
        let minimum_ns = self.round_trip.minimum_ns.min(round_trip_ns);
        self.congestion.acknowledged(arrivals.count, round_trip_ns, minimum_ns, limited, now_ns);
        self.timeout_ns = NEVER;
        self.arm_timeout(now_ns);
    }

    /// Arms the timeout if there is something that it must recover (H-17).
    #[inline]
    pub fn arm_timeout(&mut self, now_ns: u64) {
        let waits = !self.flight.is_empty() || self.streams.iter().any(|stream| stream.stopped);
        if !waits {
            self.timeout_ns = NEVER;
        } else if self.timeout_ns == NEVER && !planted("reliable-no-timeout") {
            self.timeout_ns = now_ns + self.round_trip.timeout_ns();
        }
    }

    /// The wait for an acknowledgement, or for credit, timed out: all frames in flight count as
    /// lost. Returns how often the oldest frame went.
    pub fn timed_out(&mut self, paths: &mut Paths, now_ns: u64) -> u32 {
        self.loss.timed_out(now_ns);
        self.round_trip.backoff += 1;
        let timeout_ns = self.round_trip.timeout_ns();
        let mut failed = [false; PATHS];
        let lost = self.flight.lose(|sent| {
            paths.leave_flight(sent.path);
            // Nothing sent later by the same path has arrived.
            failed[sent.path as usize] |= paths.sent_behind(sent.path, sent.stamp) < 0;
            true
        });
        paths.fail(failed, timeout_ns, now_ns);
        if lost > 0 {
            paths.timed_out(timeout_ns, now_ns);
            self.congestion.timed_out(now_ns);
        }
        self.timeout_ns = NEVER;
        self.arm_timeout(now_ns);
        self.flight.at(0).map_or(0, |oldest| oldest.attempts as u32)
    }

    /// Bytes of the sections of the unacknowledged frame `index` behind the oldest.
    pub fn content_bytes(&self, index: usize) -> usize {
        let pieces = self.flight.at(index).map_or([Piece::default(); STREAMS], |sent| sent.pieces);
        let of_piece = |piece: &Piece| SECTION_BYTES + piece.length as usize;
        pieces.iter().filter(|piece| piece.length > 0).map(of_piece).sum()
    }

    /// Retransmits a lost frame with the same content and number.
    pub fn resend(
        &mut self,
        index: usize,
        frame: &mut Writer<'_>,
        paths: &mut Paths,
        now_ns: u64,
    ) -> Option<Written> {
        let sent = self.flight.at(index)?;
        for ((stream, piece), kind) in self.streams.iter().zip(&sent.pieces).zip(SECTIONS) {
            if piece.length > 0 {
                stream.copy(piece, frame.section(kind, piece.flags, piece.length as usize));
            }
        }
        let path = paths.choose(now_ns);
        self.flight.resend(index, now_ns, path, paths.send(path));
        Some((path, self.flight.oldest.wrapping_add(index as u32)))
    }

    /// Sends the next part of a frame that is too long for the path now.
    #[cold]
    pub fn send_part(
        &mut self,
        index: usize,
        frame: &mut Writer<'_>,
        paths: &mut Paths,
        now_ns: u64,
    ) -> Option<Written> {
        let sent = self.flight.at(index)?;
        let sequence = self.flight.oldest.wrapping_add(index as u32);
        let mut whole = Vec::new();
        for ((stream, piece), kind) in self.streams.iter().zip(&sent.pieces).zip(SECTIONS) {
            if piece.length > 0 {
                whole.extend_from_slice(&Section::head(kind, piece.flags, piece.length as u16));
                let at = whole.len();
                whole.resize(at + piece.length as usize, 0);
                stream.copy(piece, &mut whole[at..]);
            }
        }
        // All parts go by one path, so that they stay in order where the network keeps order.
        let (offset, path) = match self.part {
            Some((part_of, offset, path)) if part_of == sequence && offset < whole.len() => {
                (offset, path)
            }
            _ => (0, paths.choose(now_ns)),
        };
        let length = (frame.room() - SECTION_BYTES - PART_FIXED_BYTES).min(whole.len() - offset);
        let bytes = frame.section(SectionKind::Part, 0, PART_FIXED_BYTES + length);
        bytes[..2].copy_from_slice(&(offset as u16).to_le_bytes());
        bytes[2..4].copy_from_slice(&(whole.len() as u16).to_le_bytes());
        bytes[PART_FIXED_BYTES..].copy_from_slice(&whole[offset..offset + length]);
        if offset + length < whole.len() {
            self.part = Some((sequence, offset + length, path));
        } else {
            self.part = None;
            self.flight.resend(index, now_ns, path, paths.send(path));
        }
        Some((path, sequence))
    }

    /// The bytes of a piece that stayed in its stream.
    #[inline]
    pub fn left(&self, left: Left) -> &[u8] {
        self.streams[left.stream].run(&left.piece).expect("it was left because it is one run")
    }

    /// Fills a new frame from the streams.
    #[inline]
    pub fn send_new(
        &mut self,
        frame: &mut Writer<'_>,
        paths: &mut Paths,
        counters: &mut Counters,
        now_ns: u64,
    ) -> Option<Written> {
        let most = if self.coalesce { u16::MAX } else { 1 };
        let mut pieces = [Piece::default(); STREAMS];
        let mut is_filled = false;
        // News first, because they are few. Then the channels take turns to be first, so that
        // neither starves.
        let sequence = self.flight.next();
        let first = sequence as usize & 1;
        let is_alone = self.streams.iter().filter(|stream| stream.is_sendable()).count() == 1;
        for index in [NEWS, first, 1 - first] {
            let stream = &mut self.streams[index];
            let room = frame.room();
            if !stream.is_sendable() || is_filled && (room < LEAST_SECTION_BYTES || !self.coalesce)
            {
                continue;
            }
            if let Some(piece) = stream.cut((room - SECTION_BYTES) as u32, most) {
                let may_stay = is_alone && frame.may_leave(piece.length);
                let bytes = frame.section(SECTIONS[index], piece.flags, piece.length as usize);
                match may_stay && stream.run(&piece).is_some() {
                    true => frame.leave(index, piece),
                    false => stream.copy(&piece, bytes),
                }
                pieces[index] = piece;
                is_filled = true;
            }
            counters.stops += stream.stopped as u64;
        }
        if !is_filled {
            return None;
        }
        let path = paths.choose(now_ns);
        let (stamp, state) = (paths.send(path), SentState::InFlight);
        self.flight.push(Sent { sent_at_ns: now_ns, stamp, path, state, attempts: 1, pieces });
        counters.frames_sent += 1;
        Some((path, sequence))
    }
}
