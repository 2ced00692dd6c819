//! Takes in incoming frames.

use bellwire_wire::frame::check::{CHECK_BYTES, is_sound};
use bellwire_wire::frame::header::{FLAG_ANSWER, FrameHeader, FrameKind, HEADER_BYTES};
use bellwire_wire::frame::section::{Section, SectionKind};

use super::Endpoint;
use super::replies::{Reply, ReplyBody};
use crate::canary::planted;
use crate::reliable::link::{Arrival, State};
use crate::reliable::{DownReason, PathId, Sink};

/// Whether the bytes are an unaltered frame of the protocol: for devices that give a path its
/// number only then.
pub fn is_sound_frame(bytes: &[u8]) -> bool {
    FrameHeader::parse(bytes).is_ok_and(|header| is_sound(&bytes[..header.length as usize]))
}

impl Endpoint {
    /// Takes in one frame that came by `path`; `bytes` may end with padding. Packets that it
    /// completes are offered to `sink` before this returns. No input causes a panic or exceeds a
    /// limit.
    #[inline]
    pub fn handle_frame(&mut self, path: PathId, bytes: &[u8], now_ns: u64, sink: &mut impl Sink) {
        let header = match FrameHeader::parse(bytes) {
            Ok(header) => header,
            Err(_) => {
                self.counters.frames_malformed += 1;
                return;
            }
        };
        let frame = &bytes[..header.length as usize];
        if self.config.has_check && !is_sound(frame) && !planted("reliable-skip-check") {
            self.counters.frames_damaged += 1;
            return;
        }
        let body = &frame[HEADER_BYTES..frame.len() - CHECK_BYTES];
        match header.kind {
            FrameKind::Data | FrameKind::Acknowledge => {
                self.handle_running(path, &header, body, now_ns, sink)
            }
            FrameKind::Open => self.handle_open(path, &header, body, now_ns, sink),
            FrameKind::Accept => self.handle_accept(path, &header, body, now_ns),
            FrameKind::Refuse => self.handle_refuse(path, body),
            FrameKind::Close => self.handle_close(&header, body),
            FrameKind::Unknown => self.handle_unknown(&header),
            FrameKind::Challenge => self.handle_challenge(path, &header, body),
            // Devices exchange these.
            FrameKind::Seek | FrameKind::Here => self.counters.frames_unknown += 1,
        }
    }

    #[inline]
    fn handle_running(
        &mut self,
        path: PathId,
        header: &FrameHeader,
        body: &[u8],
        now_ns: u64,
        sink: &mut impl Sink,
    ) {
        let Some(slot) = self.links.slot_of(header.token) else {
            self.counters.frames_unknown += 1;
            let (function, token) = (header.from, header.token);
            return self.replies.push(Reply { path, function, token, body: ReplyBody::Unknown });
        };
        let Some(link) = self.links.at_mut(slot) else { return };
        match link.state {
            State::Up | State::Closing { .. } => link.liveness.heard(now_ns),
            // A frame of the link overtook the Accept. Its sender has read our token.
            State::Opening | State::Accepting if link.opening.peer_token != 0 => {
                link.paths.heard_by(path, header.length as usize);
                if !self.come_up(slot, now_ns) {
                    return;
                }
            }
            _ => return,
        }
        let Some(link) = self.links.at_mut(slot) else { return };
        link.paths.heard_by(path, header.length as usize);
        let received = match Section::split(body) {
            Ok(Some((section, _))) if section.kind == SectionKind::Received => Some(section.bytes),
            _ => None,
        };
        let counters = &mut self.counters;
        counters.acknowledgements_received += (header.kind == FrameKind::Acknowledge) as u64;
        let delivered = link.sender.requests_delivered;
        if !link.acknowledged(header, received, counters, now_ns) {
            counters.frames_malformed += 1;
            return;
        }
        if link.sender.requests_delivered != delivered {
            sink.delivered(link.id, link.sender.requests_delivered);
        }
        let is_data = header.kind == FrameKind::Data;
        if header.flags & FLAG_ANSWER != 0 {
            link.asked(is_data.then_some(header.sequence));
        } else if is_data {
            self.shares.sends(&mut link.sent_in_span, now_ns);
        }
        if is_data {
            match part_of(body) {
                None => self.handle_data(slot, header.sequence, body, now_ns, sink),
                Some(part) => {
                    // A frame that no longer fits the path comes in parts. Once whole, it is
                    // handled like any other.
                    if let Some(whole) =
                        link.receiver.parts.arrive(link.receiver.expected, header.sequence, part)
                    {
                        self.handle_data(slot, header.sequence, &whole, now_ns, sink);
                    }
                }
            }
        }
        self.finish_closing(slot);
    }

    /// Handles a sequenced frame: a repetition, the expected one, or an early one.
    #[inline]
    fn handle_data(
        &mut self,
        slot: usize,
        sequence: u32,
        body: &[u8],
        now_ns: u64,
        sink: &mut impl Sink,
    ) {
        let Some(link) = self.links.at_mut(slot) else { return };
        match link.receiver.arrival(sequence) {
            Arrival::InOrder => self.take_in_order(slot, body, now_ns, sink),
            Arrival::Repeated => {
                self.counters.frames_repeated += 1;
                link.receiver.repeated();
                if planted("reliable-deliver-repeated") {
                    self.take_sections(slot, body, sink);
                }
            }
            Arrival::Early => {
                let Endpoint { config, early, counters, .. } = self;
                link.receiver.keep_early(sequence, body, config, early, counters);
            }
        }
    }

    fn take_in_order(&mut self, slot: usize, body: &[u8], now_ns: u64, sink: &mut impl Sink) {
        self.counters.frames_in_order += 1;
        if !self.take_sections(slot, body, sink) {
            return self.fail(slot, DownReason::Violation);
        }
        let Some(link) = self.links.at_mut(slot) else { return };
        link.receiver.advance(now_ns);
        if !link.receiver.early.is_empty() {
            self.take_early(slot, now_ns, sink);
        }
        self.consumed(slot);
    }

    /// Takes early frames whose turn has come.
    #[cold]
    fn take_early(&mut self, slot: usize, now_ns: u64, sink: &mut impl Sink) {
        loop {
            let Some(link) = self.links.at_mut(slot) else { return };
            let Some((buffer, length)) = link.receiver.early.take(link.receiver.expected) else {
                break;
            };
            let bytes = self.early.lend(buffer);
            let is_sound = self.take_sections(slot, &bytes[..length], sink);
            self.early.give_back(buffer, bytes);
            if !is_sound {
                return self.fail(slot, DownReason::Violation);
            }
            self.counters.frames_in_order += 1;
            let Some(link) = self.links.at_mut(slot) else { return };
            link.receiver.advance_early(now_ns);
        }
    }

    /// Takes in the sections of a frame whose turn has come. `false`: the peer broke the protocol.
    #[inline]
    fn take_sections(&mut self, slot: usize, body: &[u8], sink: &mut impl Sink) -> bool {
        let Some(link) = self.links.at_mut(slot) else { return false };
        let is_sound = link.take_sections(body, &self.gates, &mut self.counters, sink);
        if link.notices.gates {
            self.links.eventful.push(slot);
        }
        is_sound
    }
}

/// The part in the body of a frame, if it carries one.
#[inline]
fn part_of(body: &[u8]) -> Option<&[u8]> {
    match body.first() {
        Some(&kind) if kind == SectionKind::Part as u8 => match Section::split(body) {
            Ok(Some((section, []))) => Some(section.bytes),
            _ => None,
        },
        _ => None,
    }
}
