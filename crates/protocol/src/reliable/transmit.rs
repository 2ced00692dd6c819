//! Writes outgoing frames.

use bellwire_wire::frame::FRAME_OVERHEAD_BYTES;
use bellwire_wire::frame::check::{CHECK_BYTES, seal};
use bellwire_wire::frame::header::{
    FLAG_ANSWER, FLAG_DISCARDS, FLAG_LOSE, FrameHeader, FrameKind, HEADER_BYTES, HELD_BACK_UNIT_NS,
};
use bellwire_wire::frame::open::OPEN_BYTES;
use bellwire_wire::frame::record::{NEWS_BYTES, News};
use bellwire_wire::frame::section::{
    PART_FIXED_BYTES, RECEIVED_BITMAP_BYTES, RECEIVED_FIXED_BYTES, SECTION_BYTES, Section,
    SectionKind,
};

use alloc::vec::Vec;

use super::endpoint::{Reply, ReplyBody};
use super::flight::{STREAMS, Sent, SentState};
use super::link::Link;
use super::paths::Path;
use super::stream::Piece;
use super::{Config, Counters, Endpoint, GateState, Transmit};
use crate::canary::planted;

/// Bytes of an Open or Accept.
const OPEN_FRAME_BYTES: usize = FRAME_OVERHEAD_BYTES + OPEN_BYTES;

/// A section with less room than this is not begun.
const LEAST_SECTION_BYTES: usize = 64;

/// Most bytes of news that wait for a frame.
const MOST_NEWS_BYTES: u32 = 32 * NEWS_BYTES as u32;

const SECTIONS: [SectionKind; STREAMS] =
    [SectionKind::Requests, SectionKind::Responses, SectionKind::News];

impl Endpoint {
    /// Writes the next frame into `buffer`, which should have room for [`Config::frame_bytes`];
    /// `None` if nothing is to be sent now. The endpoint keeps what it may have to retransmit, so
    /// the buffer is free once the frame has gone.
    #[inline]
    pub fn poll_transmit(&mut self, now_ns: u64, buffer: &mut [u8]) -> Option<Transmit> {
        if now_ns >= self.next_timer_ns {
            self.run_timers(now_ns);
        }
        if self.has_wanted() {
            self.collect_wanted();
        }
        if buffer.len() < bellwire_wire::frame::MIN_FRAME_BYTES {
            return None;
        }
        if let Some(reply) = self.replies.pop_front() {
            return self.write_reply(&reply, buffer);
        }
        while let Some(&slot) = self.ready.front() {
            if let Some(transmit) = self.transmit(slot as usize, now_ns, buffer) {
                // Usually the link has no more to send. Checking costs less than another try, which
                // would delay this frame.
                if self.slots[slot as usize].link.as_ref().is_some_and(|link| !link.has_something())
                {
                    self.leave_ready(slot);
                } else if self.ready.len() > 1 && !planted("reliable-no-turns") {
                    // Links take turns, one frame each.
                    self.ready.rotate_left(1);
                }
                return Some(transmit);
            }
            self.leave_ready(slot);
        }
        None
    }

    /// Takes the first ready link, in `slot`, off the list: it has nothing to send.
    #[inline]
    fn leave_ready(&mut self, slot: u16) {
        self.ready.pop_front();
        if let Some(link) = &mut self.slots[slot as usize].link {
            link.is_ready = false;
        }
    }

    #[inline]
    fn transmit(&mut self, slot: usize, now_ns: u64, buffer: &mut [u8]) -> Option<Transmit> {
        let link = self.slots[slot].link.as_deref_mut()?;
        if link.open_due || link.accept_due {
            return self.write_open(slot, now_ns, buffer);
        }
        if !link.is_running() {
            return None;
        }
        let limit = buffer.len().min(link.frame_bytes);
        let mut frame = Writer { buffer: &mut buffer[..limit], at: HEADER_BYTES, is_silent: false };
        let mut sent = None;
        if link.may_send() && !link.acknowledge.is_next {
            if let Some(index) = link.flight.first_lost() {
                sent = resend(link, index, &mut frame, now_ns);
                self.counters.frames_resent += sent.is_some() as u64;
            } else if (link.flight.len() as u32) < link.window || planted("reliable-ignore-window")
            {
                if link.gates.is_owing() {
                    owe_news(link, self.numbers, &self.own_gates);
                }
                write_received(link, &mut frame, 0);
                sent = send_new(link, &self.config, &mut self.counters, &mut frame, now_ns);
            }
        }
        if sent.is_none() {
            let is_due = link.acknowledge.due && !planted("reliable-drop-acknowledgement");
            if !is_due && !link.probe_due {
                link.arm_timeout(now_ns);
                self.settle_deadline(slot);
                return None;
            }
            frame.at = HEADER_BYTES;
            write_received(link, &mut frame, 0);
            self.counters.acknowledgements_sent += 1;
            self.counters.loses_sent += link.acknowledge.lose as u64;
        }
        let kind = if sent.is_some() { FrameKind::Data } else { FrameKind::Acknowledge };
        let (path, sequence) = match sent {
            Some(sent) => sent,
            None => {
                let path = link.paths.back(frame.at + CHECK_BYTES);
                link.paths.spend(path, frame.at + CHECK_BYTES);
                (path, link.flight.next())
            }
        };
        let length = frame.at + CHECK_BYTES;
        // LOSE without the bitmap means that nothing was kept.
        let loses = link.acknowledge.lose && !frame.is_silent;
        if loses {
            link.repetitions_told = link.repetitions;
        }
        link.advertise(self.shares.bytes());
        let asks = link.probe_due || sent.is_some() && link.is_all_sent();
        let flags = if loses { FLAG_LOSE } else { 0 }
            | if asks { FLAG_ANSWER } else { 0 }
            | if link.has_discarded { FLAG_DISCARDS } else { 0 };
        link.probe_due = false;
        let held_back_ns = match frame.is_silent {
            true => link.acknowledge.went_in_part(now_ns),
            false => link.acknowledge.went(kind == FrameKind::Data, now_ns),
        };
        let header = FrameHeader {
            kind,
            function: link.peer.function,
            from: self.me.function,
            flags,
            length: length as u16,
            held_back: (held_back_ns / HELD_BACK_UNIT_NS).min(u16::MAX as u64) as u16,
            token: link.peer_token,
            sequence,
            acknowledged: link.expected.wrapping_add(planted("reliable-acknowledge-ahead") as u32),
            credit: link.advertised,
        };
        let buffer = &mut frame.buffer[..length];
        header.emit(buffer).ok()?;
        if planted("reliable-corrupt-before-check") && sequence % 16 == 15 {
            buffer[length - CHECK_BYTES - 1] ^= 0x40;
        }
        seal(buffer).ok()?;
        link.arm_timeout(now_ns);
        let path = link.paths.at(path).id;
        self.settle_deadline(slot);
        Some(Transmit { path, length })
    }

    /// Writes an Open or an Accept.
    #[cold]
    fn write_open(&mut self, slot: usize, now_ns: u64, buffer: &mut [u8]) -> Option<Transmit> {
        let link = self.slots[slot].link.as_deref_mut()?;
        let is_accept = link.accept_due;
        link.accept_due = false;
        link.open_due &= is_accept;
        if !is_accept || !link.is_running() {
            link.wait_to_ask(now_ns);
            link.asked_ns = now_ns;
        }
        link.advertise(self.shares.bytes());
        let path = match is_accept {
            true => link.paths.back(OPEN_FRAME_BYTES),
            false => link.paths.ask_by(now_ns),
        };
        let Path { id: path, cookie, .. } = *link.paths.at(path);
        let link = self.slots[slot].link.as_deref()?;
        let header = FrameHeader {
            sequence: link.first_sequence,
            credit: link.advertised,
            ..FrameHeader::new(
                if is_accept { FrameKind::Accept } else { FrameKind::Open },
                link.peer.function,
                self.me.function,
                if is_accept { link.peer_token } else { cookie },
            )
        };
        let length = write_whole(header, &self.open_body(link, is_accept).emit(), buffer)?;
        self.settle_deadline(slot);
        Some(Transmit { path, length })
    }

    #[cold]
    fn write_reply(&mut self, reply: &Reply, buffer: &mut [u8]) -> Option<Transmit> {
        let header = |kind| FrameHeader::new(kind, reply.function, self.me.function, reply.token);
        let length = match reply.body {
            ReplyBody::Unknown => write_whole(header(FrameKind::Unknown), &[], buffer),
            ReplyBody::Close(reason) => {
                write_whole(header(FrameKind::Close), &[reason as u8], buffer)
            }
            ReplyBody::Refuse(body) => write_whole(header(FrameKind::Refuse), &body.emit(), buffer),
            ReplyBody::Challenge(body) => {
                write_whole(header(FrameKind::Challenge), &body.emit(), buffer)
            }
        }?;
        Some(Transmit { path: reply.path, length })
    }
}

/// Writes a frame with a body of fixed length.
fn write_whole(mut header: FrameHeader, body: &[u8], buffer: &mut [u8]) -> Option<usize> {
    let length = FRAME_OVERHEAD_BYTES + body.len();
    let frame = buffer.get_mut(..length)?;
    header.length = length as u16;
    header.emit(frame).ok()?;
    frame[HEADER_BYTES..HEADER_BYTES + body.len()].copy_from_slice(body);
    seal(frame).ok()?;
    Some(length)
}

/// The frame being written, between header and check value.
struct Writer<'a> {
    buffer: &'a mut [u8],
    at: usize,
    /// The selective acknowledgement did not fit.
    is_silent: bool,
}

impl Writer<'_> {
    /// Bytes that may still be written, without the check value.
    #[inline]
    fn room(&self) -> usize {
        self.buffer.len() - self.at - CHECK_BYTES
    }

    #[inline]
    fn section(&mut self, kind: SectionKind, flags: u8, length: usize) -> &mut [u8] {
        let at = self.at;
        self.buffer[at..at + SECTION_BYTES].copy_from_slice(&Section::head(
            kind,
            flags,
            length as u16,
        ));
        self.at = at + SECTION_BYTES + length;
        &mut self.buffer[at + SECTION_BYTES..at + SECTION_BYTES + length]
    }
}

/// Writes the selective acknowledgement if it says more than the header and leaves room for
/// `content` bytes.
#[inline]
fn write_received(link: &mut Link, frame: &mut Writer<'_>, content: usize) {
    if link.early.is_empty() && link.repetitions == link.repetitions_told {
        return;
    }
    let mut bitmap = [0; RECEIVED_BITMAP_BYTES];
    let length = link.early.bitmap(link.expected, &mut bitmap);
    if frame.room() < SECTION_BYTES + RECEIVED_FIXED_BYTES + length + content {
        frame.is_silent = !planted("reliable-lose-without-bitmap");
        return;
    }
    let bytes = frame.section(SectionKind::Received, 0, RECEIVED_FIXED_BYTES + length);
    let (fixed, rest) = bytes.split_at_mut(RECEIVED_FIXED_BYTES);
    fixed.copy_from_slice(&link.repetitions.to_le_bytes());
    rest.copy_from_slice(&bitmap[..length]);
    link.repetitions_told = link.repetitions;
}

/// Retransmits a lost frame with the same content and number. Returns its path and number.
fn resend(link: &mut Link, index: usize, frame: &mut Writer<'_>, now_ns: u64) -> Option<(u8, u32)> {
    let sent = *link.flight.at(index)?;
    let content: usize = sent
        .pieces
        .iter()
        .filter(|piece| piece.length > 0)
        .map(|piece| SECTION_BYTES + piece.length as usize)
        .sum();
    if content > frame.room() {
        // A part is alone in its frame.
        frame.is_silent = !link.early.is_empty() && !planted("reliable-lose-without-bitmap");
        return send_part(link, index, frame, now_ns);
    }
    write_received(link, frame, content);
    for ((stream, piece), kind) in link.streams.iter().zip(&sent.pieces).zip(SECTIONS) {
        if piece.length > 0 {
            stream.copy(piece, frame.section(kind, piece.flags, piece.length as usize));
        }
    }
    let path = link.paths.choose(now_ns);
    let stamp = stamp(link, path);
    link.flight.resend(index, now_ns, path, stamp);
    Some((path, link.flight.oldest.wrapping_add(index as u32)))
}

/// Sends the next part of a frame that is too long for the path now. Returns its path and number.
#[cold]
fn send_part(
    link: &mut Link,
    index: usize,
    frame: &mut Writer<'_>,
    now_ns: u64,
) -> Option<(u8, u32)> {
    let sent = *link.flight.at(index)?;
    let sequence = link.flight.oldest.wrapping_add(index as u32);
    let mut whole = Vec::new();
    for ((stream, piece), kind) in link.streams.iter().zip(&sent.pieces).zip(SECTIONS) {
        if piece.length > 0 {
            whole.extend_from_slice(&Section::head(kind, piece.flags, piece.length as u16));
            let at = whole.len();
            whole.resize(at + piece.length as usize, 0);
            stream.copy(piece, &mut whole[at..]);
        }
    }
    // All parts go by one path, so that they stay in order where the network keeps order.
    let (offset, path) = match link.part {
        Some((part_of, offset, path)) if part_of == sequence && offset < whole.len() => {
            (offset, path)
        }
        _ => (0, link.paths.choose(now_ns)),
    };
    let length = (frame.room() - SECTION_BYTES - PART_FIXED_BYTES).min(whole.len() - offset);
    let bytes = frame.section(SectionKind::Part, 0, PART_FIXED_BYTES + length);
    bytes[..2].copy_from_slice(&(offset as u16).to_le_bytes());
    bytes[2..4].copy_from_slice(&(whole.len() as u16).to_le_bytes());
    bytes[PART_FIXED_BYTES..].copy_from_slice(&whole[offset..offset + length]);
    if offset + length < whole.len() {
        link.part = Some((sequence, offset + length, path));
    } else {
        link.part = None;
        let stamp = stamp(link, path);
        link.flight.resend(index, now_ns, path, stamp);
    }
    Some((path, sequence))
}

/// Fills a new frame from the streams. Returns its path and number.
#[inline]
fn send_new(
    link: &mut Link,
    config: &Config,
    counters: &mut Counters,
    frame: &mut Writer<'_>,
    now_ns: u64,
) -> Option<(u8, u32)> {
    let most = if config.coalesce { u16::MAX } else { 1 };
    let mut pieces = [Piece::default(); STREAMS];
    let mut is_filled = false;
    // News first, because they are few. Then the channels take turns to be first, so that neither
    // starves.
    let first = link.flight.next() as usize & 1;
    for index in [2, first, 1 - first] {
        let stream = &mut link.streams[index];
        let room = frame.room();
        if stream.waiting_bytes() == 0
            || stream.stopped
            || is_filled && (room < LEAST_SECTION_BYTES || !config.coalesce)
        {
            continue;
        }
        if let Some(piece) = stream.cut((room - SECTION_BYTES) as u32, most) {
            let bytes = frame.section(SECTIONS[index], piece.flags, piece.length as usize);
            stream.copy(&piece, bytes);
            pieces[index] = piece;
            is_filled = true;
        }
        counters.stops += stream.stopped as u64;
    }
    if !is_filled {
        return None;
    }
    let path = link.paths.choose(now_ns);
    let stamp = stamp(link, path);
    let sequence = link.flight.next();
    link.flight.push(Sent {
        sent_at_ns: now_ns,
        stamp,
        path,
        state: SentState::InFlight,
        attempts: 1,
        pieces,
    });
    counters.frames_sent += 1;
    Some((path, sequence))
}

/// Counts a frame on a path and returns its stamp.
#[inline]
fn stamp(link: &mut Link, path: u8) -> u32 {
    let path = link.paths.at(path);
    let stamp = path.stamp;
    path.stamp = stamp.wrapping_add(1);
    path.in_flight += 1;
    stamp
}

/// Moves pending news of gates into the stream of news, as far as there is room. They tell the
/// current state.
#[cold]
fn owe_news(link: &mut Link, numbers: super::gates::GateNumbers, own_gates: &[u8]) {
    while link.streams[2].waiting_bytes() < MOST_NEWS_BYTES {
        let Some((place, is_question)) = link.gates.next_owed() else { return };
        let queue_pair = numbers.number(place);
        let news = if is_question {
            News::Ask { queue_pair }
        } else {
            let state = match own_gates[place] {
                1 => GateState::Open,
                2 => GateState::Stopped,
                _ => GateState::Closed,
            };
            News::Gate { queue_pair, state }
        };
        let is_queued = link.streams[2].push_news(&news.emit());
        debug_assert!(is_queued, "what is in flight of news is bounded by the window");
    }
}
