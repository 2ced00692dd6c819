//! Packets of one link that were acknowledged but not yet taken, and the credit for more. These are
//! packets that the user refused (STOP, H-15), and the beginning of a packet whose end is missing
//! (H-25). Most packets bypass it: they are offered in the frame.

use alloc::vec::Vec;

use bellwire_wire::frame::record::{PACKET_COST_BYTES, PacketWords};
use bellwire_wire::frame::section::{FLAG_CONTINUES, FLAG_UNFINISHED, Section};

use crate::canary::planted;
use crate::reliable::{Channel, Config, Counters, PeerId, Sink, Verdict};

/// The backlogs of both channels, and the credit that the peer was told.
pub(crate) struct Backlogs {
    channels: [Backlog; 2],
    advertised: [u32; 2],
    /// Our user has closed the link, and packets for it were discarded.
    pub has_discarded: bool,
}

/// The packets of one channel.
struct Backlog {
    bytes: Vec<u8>,
    /// Offset of the first record.
    at: usize,
    /// The end of the last record has not arrived.
    unfinished: bool,
    /// The user has refused the first record, or it may not be offered yet.
    held: bool,
    /// All refused records have been taken, and the sender does not know it.
    just_emptied: bool,
    /// Sum of the costs of packets taken, modulo 2^32.
    consumed: u32,
    /// Packets taken.
    packets: u64,
    limit: u32,
    packet_bytes: u32,
}

/// What happened to the offered records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Offered {
    /// All whole records were taken: this many bytes.
    All(usize),
    /// The user has no room for the record at this offset.
    Held(usize),
    /// A record is malformed, or the user reports a violation.
    Violation,
}

impl Backlogs {
    /// Empty backlogs. Credit is counted from `base`.
    pub fn new(config: &Config, base: u32) -> Self {
        let backlog = || Backlog::new(config.receive_bytes, config.packet_bytes, base);
        Backlogs { channels: [backlog(), backlog()], advertised: [base; 2], has_discarded: false }
    }

    /// Whether a whole packet may be here that the user has not taken.
    #[inline]
    pub fn are_waiting(&self) -> bool {
        self.channels.iter().any(Backlog::is_waiting)
    }

    /// Takes in the packets of one section, and offers those that are whole if `may_offer`.
    /// `false`: the sender broke the protocol, or the user reports a violation.
    #[inline]
    pub fn arrive(
        &mut self,
        peer: PeerId,
        channel: Channel,
        section: &Section<'_>,
        may_offer: bool,
        counters: &mut Counters,
        sink: &mut impl Sink,
    ) -> bool {
        let backlog = &mut self.channels[channel as usize];
        let (before, was_held) = (backlog.packets, backlog.held);
        let is_sound = backlog.arrive(peer, channel, section, may_offer, sink);
        counters.packets_delivered += backlog.packets - before;
        counters.packets_refused += (backlog.held && !was_held) as u64;
        is_sound
    }

    /// Takes and drops the packets of one section, for a link that our user has closed. `false`: as
    /// for [`arrive`](Self::arrive).
    pub fn discard(&mut self, peer: PeerId, channel: Channel, section: &Section<'_>) -> bool {
        self.has_discarded = true;
        let mut taken = |_: PeerId, _: Channel, _: [u64; 3], _: &[u8]| Verdict::Taken;
        self.channels[channel as usize].arrive(peer, channel, section, true, &mut taken)
    }

    /// Offers what is kept. `false`: as for [`arrive`](Self::arrive).
    pub fn offer(&mut self, peer: PeerId, counters: &mut Counters, sink: &mut impl Sink) -> bool {
        let mut is_sound = true;
        for channel in [Channel::Request, Channel::Response] {
            let backlog = &mut self.channels[channel as usize];
            if backlog.is_waiting() {
                let before = backlog.packets;
                is_sound &= backlog.offer(peer, channel, sink);
                counters.packets_delivered += backlog.packets - before;
            }
        }
        is_sound
    }

    /// Drops all packets.
    pub fn forget(&mut self) {
        self.channels.iter_mut().for_each(Backlog::forget);
    }

    /// The credit that the next frame advertises. `share` is the peer's share of the credit now.
    #[inline]
    pub fn advertise(&mut self, share: u32) -> [u32; 2] {
        for (backlog, advertised) in self.channels.iter().zip(&mut self.advertised) {
            *advertised = backlog.credit(share, *advertised);
        }
        self.advertised
    }

    /// Packets were taken. Returns whether much room, or all of it, became free: the peer must know
    /// soon (GO, H-16).
    #[inline]
    pub fn frees_room(&mut self, share: u32) -> bool {
        let mut frees = false;
        for (backlog, advertised) in self.channels.iter_mut().zip(self.advertised) {
            let more = backlog.credit(share, advertised).wrapping_sub(advertised);
            let was_emptied = core::mem::take(&mut backlog.just_emptied);
            frees |= more >= share / 4 || more > 0 && was_emptied;
        }
        frees
    }
}

impl Backlog {
    /// An empty backlog for a sender with `limit` credit whose packets have at most `packet_bytes`.
    /// Credit is counted from `base`.
    fn new(limit: u32, packet_bytes: u32, base: u32) -> Self {
        Backlog {
            bytes: Vec::new(),
            at: 0,
            unfinished: false,
            held: false,
            just_emptied: false,
            consumed: base,
            packets: 0,
            limit,
            packet_bytes,
        }
    }

    /// Bytes kept.
    #[inline]
    fn len(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Whether a whole packet may be here that the user has not taken.
    #[inline]
    fn is_waiting(&self) -> bool {
        self.len() > 0 && (self.held || !self.unfinished)
    }

    /// The limit up to which the sender may spend credit, for a share of `share`. It never falls
    /// below `advertised`.
    #[inline]
    fn credit(&self, share: u32, advertised: u32) -> u32 {
        let more = if planted("reliable-credit-too-high") { 64 } else { 0 };
        let credit = self.consumed.wrapping_add(share.min(self.limit)).wrapping_add(more);
        if (credit.wrapping_sub(advertised) as i32) < 0 { advertised } else { credit }
    }

    /// Takes in the bytes of one section. `false`: the sender broke the protocol, or the user
    /// reports a violation.
    #[inline]
    fn arrive(
        &mut self,
        peer: PeerId,
        channel: Channel,
        section: &Section<'_>,
        may_offer: bool,
        sink: &mut impl Sink,
    ) -> bool {
        let mut bytes = section.bytes;
        let continues = section.flags & FLAG_CONTINUES != 0;
        let unfinished = section.flags & FLAG_UNFINISHED != 0;
        if continues != self.unfinished {
            return false;
        }
        if self.held || !may_offer {
            // Some of the packets may be whole, even if the last is not. The link's end must wait
            // for them.
            self.held |= !planted("reliable-forget-unoffered");
            return self.keep(bytes, unfinished);
        }
        // Whole packets are here only if they could not be offered before.
        if self.len() > 0 && !self.offer(peer, channel, sink) {
            return false;
        }
        if self.held {
            return self.keep(bytes, unfinished);
        }
        if self.len() > 0 {
            // Completes the packet that is here already; the packets behind it need not be kept.
            let (end, behind) = bytes.split_at(self.missing().min(bytes.len()));
            let is_whole = !behind.is_empty();
            if !self.keep(end, unfinished && !is_whole) || !self.offer(peer, channel, sink) {
                return false;
            }
            if !is_whole {
                return true;
            }
            if self.held {
                return self.keep(behind, unfinished);
            }
            bytes = behind;
        }
        let (rest, held) = match self.offer_from(bytes, peer, channel, sink) {
            Offered::All(taken) => (&bytes[taken..], false),
            Offered::Held(taken) => (&bytes[taken..], true),
            Offered::Violation => return false,
        };
        self.held = held;
        if held {
            self.keep(rest, unfinished)
        } else {
            rest.is_empty() != unfinished && (rest.is_empty() || self.keep(rest, unfinished))
        }
    }

    /// Missing bytes of the packet whose beginning is all that is kept; `usize::MAX` if even its
    /// header is incomplete.
    fn missing(&self) -> usize {
        match PacketWords::parse(&self.bytes[self.at..]) {
            Ok(Some((words, header))) => {
                (header + words.payload_bytes() as usize).saturating_sub(self.len())
            }
            _ => usize::MAX,
        }
    }

    /// Offers what is kept, from the first packet on. `false`: as for `arrive`.
    fn offer(&mut self, peer: PeerId, channel: Channel, sink: &mut impl Sink) -> bool {
        let bytes = core::mem::take(&mut self.bytes);
        let offered = self.offer_from(&bytes[self.at..], peer, channel, sink);
        self.bytes = bytes;
        let (taken, held) = match offered {
            Offered::All(taken) => (taken, false),
            Offered::Held(taken) => (taken, true),
            Offered::Violation => return false,
        };
        self.at += taken;
        if self.at == self.bytes.len() {
            self.bytes.clear();
            self.at = 0;
            self.just_emptied |= self.held;
        }
        self.held = held;
        // Bytes that remain and are not held are the beginning of an unfinished record, and nothing
        // else.
        held || (self.len() > 0) == self.unfinished
    }

    /// Drops all records.
    fn forget(&mut self) {
        self.bytes = Vec::new();
        self.at = 0;
        self.held = false;
        self.unfinished = false;
    }

    /// Offers whole records at the front of `bytes`.
    #[inline]
    fn offer_from(
        &mut self,
        bytes: &[u8],
        peer: PeerId,
        channel: Channel,
        sink: &mut impl Sink,
    ) -> Offered {
        let mut at = 0;
        while at < bytes.len() {
            let (words, header) = match PacketWords::parse(&bytes[at..]) {
                Ok(Some(parsed)) => parsed,
                Ok(None) => break,
                Err(_) => return Offered::Violation,
            };
            let length = words.payload_bytes();
            if length > self.packet_bytes {
                return Offered::Violation;
            }
            let end = at + header + length as usize;
            let Some(payload) = bytes.get(at + header..end) else { break };
            match sink.packet(peer, channel, words.0, payload) {
                Verdict::Taken => {}
                Verdict::Stalled => return Offered::Held(at),
                Verdict::Violation => return Offered::Violation,
            }
            let leak = planted("reliable-credit-leak") as u32;
            self.consumed = self.consumed.wrapping_add(length + PACKET_COST_BYTES - leak);
            self.packets += 1;
            at = end;
        }
        Offered::All(at)
    }

    /// Appends `bytes`; refuses more than the credit allowed.
    fn keep(&mut self, bytes: &[u8], unfinished: bool) -> bool {
        self.unfinished = unfinished;
        if self.len() + bytes.len() > self.limit as usize {
            return false;
        }
        // Compact only when the bytes taken are at least those to move: each byte then moves about
        // once.
        if self.at > 0 && self.at >= self.len() {
            self.bytes.drain(..self.at);
            self.at = 0;
        }
        self.bytes.extend_from_slice(bytes);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Backlog, Backlogs, Channel, Config, Counters, PACKET_COST_BYTES, PacketWords, PeerId,
        Section, Verdict,
    };
    use alloc::vec::Vec;
    use bellwire_wire::frame::record::PACKET_HEADER_MAX_BYTES;
    use bellwire_wire::frame::section::SectionKind;

    /// Takes in a packet of 100 bytes, of which the user refuses all but `appetite`.
    fn arrive(backlog: &mut Backlog, appetite: &mut usize) -> bool {
        let mut bytes = Vec::from([0; PACKET_HEADER_MAX_BYTES]);
        let words = PacketWords([1, 2, 3]).with_payload_bytes(100);
        let header = words.emit((&mut bytes[..]).try_into().unwrap());
        bytes.truncate(header);
        bytes.resize(header + 100, 7);
        let section = Section { kind: SectionKind::Requests, flags: 0, bytes: &bytes };
        backlog.arrive(PeerId(1), Channel::Request, &section, true, &mut user(appetite))
    }

    fn user(appetite: &mut usize) -> impl FnMut(PeerId, Channel, [u64; 3], &[u8]) -> Verdict {
        move |_, _, _, payload| {
            assert_eq!(payload, [7; 100]);
            match appetite.checked_sub(1) {
                None => Verdict::Stalled,
                Some(left) => {
                    *appetite = left;
                    Verdict::Taken
                }
            }
        }
    }

    /// A user who is always some packets behind does not make the memory grow: it is at most twice
    /// what is kept.
    #[test]
    fn a_slow_user_costs_no_more_than_its_backlog() {
        for behind in [1, 2, 9] {
            let mut backlog = Backlog::new(1 << 12, 100, 0);
            let mut appetite = 0;
            for count in 1..1000 {
                assert!(arrive(&mut backlog, &mut appetite));
                if count > behind {
                    appetite = 1;
                    assert!(backlog.offer(PeerId(1), Channel::Request, &mut user(&mut appetite)));
                }
                let kept = backlog.len();
                assert!(kept <= behind * 125 && backlog.bytes.len() <= 2 * kept + 250, "{count}");
            }
            appetite = behind;
            assert!(backlog.offer(PeerId(1), Channel::Request, &mut user(&mut appetite)));
            assert_eq!((appetite, backlog.packets, backlog.bytes.len()), (0, 999, 0));
            assert_eq!(backlog.credit(0, 0), 999 * (100 + PACKET_COST_BYTES));
        }
    }

    /// Credit follows what is taken and the share, but what was advertised stays.
    #[test]
    fn advertised_credit_is_never_taken_back() {
        let mut backlog = Backlog::new(1000, 500, u32::MAX - 9);
        let base = u32::MAX - 9;
        assert_eq!(backlog.credit(2000, base), base.wrapping_add(1000), "the limit");
        assert_eq!(backlog.credit(400, base), base.wrapping_add(400));
        assert_eq!(backlog.credit(400, base.wrapping_add(401)), base.wrapping_add(401));
        assert!(arrive(&mut backlog, &mut 1));
        assert_eq!(backlog.credit(400, base.wrapping_add(401)), base.wrapping_add(532));
        assert_eq!(backlog.credit(400, base.wrapping_add(533)), base.wrapping_add(533));
    }

    /// A user who takes all that it had refused frees room that the peer must know of, unless the
    /// peer knows of as much already.
    #[test]
    fn room_that_the_peer_knows_of_is_no_news() {
        for (share, frees) in [(4096, true), (3964, false), (3965, true)] {
            let config = Config { receive_bytes: 1 << 12, ..Config::new(1500) };
            let mut backlogs = Backlogs::new(&config, 0);
            assert_eq!(backlogs.advertise(4096), [4096; 2]);
            assert!(arrive(&mut backlogs.channels[0], &mut 0));
            assert!(!backlogs.frees_room(share));
            let mut counters = Counters::default();
            assert!(backlogs.offer(PeerId(1), &mut counters, &mut user(&mut 1)));
            assert_eq!((counters.packets_delivered, backlogs.are_waiting()), (1, false));
            assert_eq!(backlogs.frees_room(share), frees, "a share of {share}");
            assert!(!backlogs.frees_room(share), "told once");
        }
    }
}
