//! Takes in incoming frames.

use bellwire_wire::frame::check::{CHECK_BYTES, is_sound};
use bellwire_wire::frame::header::{FLAG_ANSWER, FrameHeader, FrameKind, HEADER_BYTES};
use bellwire_wire::frame::record::{NEWS_BYTES, News};
use bellwire_wire::frame::section::{Section, SectionKind};

use super::endpoint::{Discard, Reply, ReplyBody};
use super::link::State;
use super::{Channel, Endpoint, PathId, Recovery, Sink, Why};
use crate::canary::planted;

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
        if !is_sound(frame) && !planted("reliable-skip-check") {
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
        let Some(slot) = self.slot_of(header.token) else {
            self.counters.frames_unknown += 1;
            let (function, token) = (header.from, header.token);
            return self.reply(Reply { path, function, token, body: ReplyBody::Unknown });
        };
        let Some(link) = self.slots[slot].link.as_deref_mut() else { return };
        match link.state {
            State::Up | State::Closing => link.heard(now_ns),
            // A frame of the link overtook the Accept. Its sender has read our token.
            State::Opening | State::Accepting if link.peer_token != 0 => {
                link.paths.heard_by(path, header.length as usize);
                if !self.come_up(slot, now_ns) {
                    return;
                }
            }
            _ => return,
        }
        let Some(link) = self.slots[slot].link.as_deref_mut() else { return };
        link.paths.heard_by(path, header.length as usize);
        let received = match Section::split(body) {
            Ok(Some((section, _))) if section.kind == SectionKind::Received => Some(section.bytes),
            _ => None,
        };
        let counters = &mut self.counters;
        counters.acknowledgements_received += (header.kind == FrameKind::Acknowledge) as u64;
        let delivered = link.requests_delivered;
        if !link.acknowledged(header, received, &self.config, counters, now_ns) {
            counters.frames_malformed += 1;
            return;
        }
        if link.requests_delivered != delivered {
            sink.delivered(link.id, link.requests_delivered);
        }
        if header.flags & FLAG_ANSWER != 0 {
            match header.kind == FrameKind::Data && header.sequence == link.expected {
                true => link.acknowledge.want(),
                false => link.acknowledge.due = true,
            }
        }
        if header.kind == FrameKind::Data {
            if header.flags & FLAG_ANSWER == 0 {
                self.shares.sends(&mut link.sent_in_span, now_ns);
            }
            match part_of(body) {
                None => self.handle_data(slot, header.sequence, body, now_ns, sink),
                Some(part) => {
                    // A frame that no longer fits the path comes in parts. Once whole, it is
                    // handled like any other.
                    if let Some(whole) = link.parts.arrive(link.expected, header.sequence, part) {
                        self.handle_data(slot, header.sequence, &whole, now_ns, sink);
                    }
                }
            }
        }
        let Some(link) = self.slots[slot].link.as_deref_mut() else { return };
        if link.state == State::Closing {
            self.finish_closing(slot);
        } else {
            self.settle(slot);
        }
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
        let Some(link) = self.slots[slot].link.as_deref_mut() else { return };
        let ahead = sequence.wrapping_sub(link.expected) as i32;
        if ahead == 0 || planted("reliable-skip-sequence") {
            self.take_in_order(slot, body, now_ns, sink);
        } else if ahead < 0 {
            // A repetition: our acknowledgement was lost, so it goes again at once (H-18).
            self.counters.frames_repeated += 1;
            link.repetitions = link.repetitions.wrapping_add(1);
            link.acknowledge.due |= !planted("reliable-no-reacknowledge");
            if planted("reliable-deliver-repeated") {
                self.take_sections(slot, body, sink);
            }
        } else {
            self.keep_early(slot, sequence, ahead as u32, body);
        }
    }

    fn take_in_order(&mut self, slot: usize, body: &[u8], now_ns: u64, sink: &mut impl Sink) {
        self.counters.frames_in_order += 1;
        if !self.take_sections(slot, body, sink) {
            return self.fail(slot, Why::Violation);
        }
        let Some(link) = self.slots[slot].link.as_deref_mut() else { return };
        link.expected = link.expected.wrapping_add(1);
        link.acknowledge.arrived(now_ns);
        if !link.early.is_empty() {
            self.take_early(slot, now_ns, sink);
        }
        self.consumed(slot);
    }

    /// Takes early frames whose turn has come.
    #[cold]
    fn take_early(&mut self, slot: usize, now_ns: u64, sink: &mut impl Sink) {
        loop {
            let Some(link) = self.slots[slot].link.as_deref_mut() else { return };
            let Some((buffer, length)) = link.early.take(link.expected) else { break };
            let bytes = self.early.lend(buffer);
            let is_sound = self.take_sections(slot, &bytes[..length], sink);
            self.early.give_back(buffer, bytes);
            if !is_sound {
                return self.fail(slot, Why::Violation);
            }
            self.counters.frames_in_order += 1;
            let Some(link) = self.slots[slot].link.as_deref_mut() else { return };
            link.expected = link.expected.wrapping_add(1);
            link.acknowledge.arrived(now_ns);
            link.acknowledge.closed(link.early.is_empty());
        }
    }

    /// A gap: keeps the frame, and tells the sender what is missing (LOSE, H-14).
    #[cold]
    fn keep_early(&mut self, slot: usize, sequence: u32, ahead: u32, body: &[u8]) {
        let Some(link) = self.slots[slot].link.as_deref_mut() else { return };
        let was_kept = match self.config.recovery {
            Recovery::GoBack => {
                self.counters.frames_dropped += 1;
                // HPCL's sender goes back at each LOSE, so each gap is reported once. A timeout
                // covers the rest.
                if link.lose_reported == Some(link.expected) {
                    return;
                }
                link.lose_reported = Some(link.expected);
                false
            }
            Recovery::Selective if ahead >= self.config.window_frames as u32 => {
                self.counters.frames_dropped += 1;
                return;
            }
            Recovery::Selective if link.early.contains(sequence) => {
                self.counters.frames_repeated += 1;
                link.repetitions = link.repetitions.wrapping_add(1);
                true
            }
            Recovery::Selective => {
                let frame_bytes = self.config.frame_bytes;
                let was_kept = body.len() <= frame_bytes
                    && link.early.keep(sequence, body, &mut self.early, frame_bytes);
                self.counters.frames_early += was_kept as u64;
                self.counters.frames_dropped += !was_kept as u64;
                was_kept
            }
        };
        if planted("reliable-no-lose") {
            return;
        }
        link.acknowledge.gap(was_kept);
    }

    /// Takes in the sections of a frame whose turn has come. `false`: the peer broke the protocol.
    #[inline]
    fn take_sections(&mut self, slot: usize, body: &[u8], sink: &mut impl Sink) -> bool {
        let mut rest = body;
        loop {
            let (section, behind) = match Section::split(rest) {
                Ok(Some(split)) => split,
                Ok(None) => return true,
                Err(_) => return false,
            };
            rest = behind;
            let is_sound = match section.kind {
                SectionKind::Requests => self.take_packets(slot, Channel::Request, &section, sink),
                SectionKind::Responses => {
                    let mixed = planted("reliable-mix-channels");
                    let channel = if mixed { Channel::Request } else { Channel::Response };
                    self.take_packets(slot, channel, &section, sink)
                }
                SectionKind::News => self.take_news(slot, section.bytes),
                SectionKind::Received => true,
                // A part is alone in its frame, and parts were joined before.
                SectionKind::Part => false,
            };
            if !is_sound {
                return false;
            }
        }
    }

    #[inline]
    fn take_packets(
        &mut self,
        slot: usize,
        channel: Channel,
        section: &Section<'_>,
        sink: &mut impl Sink,
    ) -> bool {
        let Some(link) = self.slots[slot].link.as_deref_mut() else { return false };
        let may_offer = link.after.is_none();
        let backlog = &mut link.backlogs[channel as usize];
        let (before, was_held) = (backlog.packets, backlog.held);
        let id = link.id;
        if link.state == State::Closing {
            link.has_discarded = true;
            return backlog.arrive(id, channel, section, true, &mut Discard);
        }
        let is_sound = backlog.arrive(id, channel, section, may_offer, sink);
        self.counters.packets_delivered += backlog.packets - before;
        self.counters.packets_refused += (backlog.held && !was_held) as u64;
        is_sound
    }

    fn take_news(&mut self, slot: usize, bytes: &[u8]) -> bool {
        let (records, []) = bytes.as_chunks::<NEWS_BYTES>() else { return false };
        for &record in records {
            let Ok(news) = News::parse(record) else { return false };
            let Some(link) = self.slots[slot].link.as_deref_mut() else { return false };
            match news {
                News::Gate { queue_pair, state } => {
                    // A peer tells only what was asked for, and we ask only for numbers that exist
                    // here.
                    let Some(place) = self.numbers.place(queue_pair) else { return false };
                    if link.gates.told(place, state) {
                        link.gates_untold = true;
                        self.tell(slot);
                    }
                }
                News::Ask { queue_pair } => {
                    if let Some(place) = self.numbers.place(queue_pair) {
                        link.gates.asked(place);
                    }
                }
            }
        }
        true
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
