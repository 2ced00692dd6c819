//! How links begin and end: Open, Accept, Refuse, Close, Unknown.
//!
//! A link is up at one side when the other has shown that it can read what was sent to it: the side that asked, when the
//! Accept carries the token of its Open; the side that answered, when any frame carries the token of its Accept. So neither an
//! old Open that the network kept nor a forged one makes a link, or ends the one that there is.

use bellwire_wire::frame::MIN_FRAME_BYTES;
use bellwire_wire::frame::finish::{CloseReason, RefuseBody, RefuseReason};
use bellwire_wire::frame::header::FrameHeader;
use bellwire_wire::frame::open::OpenBody;

use super::endpoint::{Reply, ReplyBody};
use super::link::{Link, NEVER, State, first_number};
use super::{Config, Endpoint, PathId, Why};
use crate::canary::planted;

/// How long an answered Open waits for its confirmation, in ns.
const CONFIRMATION_NS: u64 = 2_000_000_000;

impl Endpoint {
    pub(super) fn handle_open(
        &mut self,
        path: PathId,
        header: &FrameHeader,
        body: &[u8],
        now_ns: u64,
    ) {
        let Ok(open) = OpenBody::parse(body) else {
            self.counters.frames_malformed += 1;
            return;
        };
        if open.to.function != self.me.function {
            self.counters.frames_unknown += 1;
            return;
        }
        if open.to != self.me {
            return self.refuse(path, &open, RefuseReason::NotHere);
        }
        if common_version(&self.config, &open).is_none() {
            return self.refuse(path, &open, RefuseReason::Version);
        }
        if !features_agree(&self.config, &open) {
            return self.refuse(path, &open, RefuseReason::Feature);
        }
        if !is_workable(&open) {
            self.counters.frames_malformed += 1;
            return;
        }
        let age = (open.incarnation, open.opening);
        let mut half_open = 0;
        let mut place = None;
        for (slot, entry) in self.slots.iter_mut().enumerate() {
            let Some(link) = &mut entry.link else { continue };
            half_open += (link.state == State::Accepting) as usize;
            if link.peer != open.from || matches!(link.state, State::Down(_)) {
                continue;
            }
            let known = (link.peer_incarnation, link.peer_opening);
            if known > age && !planted("reliable-accept-old-incarnation") {
                self.counters.frames_stale += 1;
                return;
            }
            if known == age {
                // Our answer was lost, or this one was repeated.
                if link.peer_token != open.token {
                    self.counters.frames_stale += 1;
                    return;
                }
                link.paths.heard_by(path);
                link.accept_due = true;
                return self.settle(slot);
            }
            if matches!(link.state, State::Opening | State::Accepting) {
                if link.after.is_some() {
                    // Our own request waits for the end of an earlier link; the peer will ask again.
                    return;
                }
                place = Some(slot);
            }
        }
        let slot = match place {
            Some(slot) => {
                // Of two that ask each other only one asks anew; the other's answer is enough.
                let asks_anew = self.me > open.from;
                self.renew(slot, asks_anew, path, now_ns);
                slot
            }
            None => {
                // Links that nobody confirmed may take half of the places at most.
                let has_room = half_open <= self.config.links as usize / 2;
                let added = has_room
                    .then(|| self.add_link(open.from, State::Accepting, path, now_ns))
                    .flatten();
                let Some(id) = added else {
                    return self.refuse(path, &open, RefuseReason::Full);
                };
                if let Some(link) = self.link_mut(id) {
                    link.give_up_ns = now_ns + CONFIRMATION_NS;
                }
                self.by_peer.entry(open.from).or_insert(id);
                id.slot()
            }
        };
        let (config, frame_bytes) = (self.config, self.frame_bytes);
        if let Some(link) = &mut self.slots[slot].link {
            learn(link, &config, frame_bytes, header, &open);
            link.paths.heard_by(path);
            link.accept_due = true;
        }
        self.settle(slot);
    }

    pub(super) fn handle_accept(
        &mut self,
        path: PathId,
        header: &FrameHeader,
        body: &[u8],
        now_ns: u64,
    ) {
        let Ok(accept) = OpenBody::parse(body) else {
            self.counters.frames_malformed += 1;
            return;
        };
        let (config, frame_bytes) = (self.config, self.frame_bytes);
        let incarnation = self.incarnation;
        let [low, high] = config.versions;
        let Some(slot) = self.slot_of(header.token) else {
            self.counters.frames_stale += 1;
            return;
        };
        let Some(link) = &mut self.slots[slot].link else { return };
        let is_ours = accept.from == link.peer
            && accept.peer_incarnation == incarnation
            && (low..=high).contains(&accept.version)
            && accept.features & !config.features[0] == 0
            && config.features[1] & !accept.features == 0
            && is_workable(&accept);
        if !is_ours {
            self.counters.frames_stale += 1;
            return;
        }
        let age = (accept.incarnation, accept.opening);
        if link.state == State::Opening
            && link.peer_token != 0
            && age > (link.peer_incarnation, link.peer_opening)
        {
            // Our token is known to an earlier link of the peer, too: ask again with another.
            self.counters.frames_stale += 1;
            let waits = self.me < link.peer && !planted("reliable-both-ask-anew");
            self.renew(slot, true, path, now_ns);
            if waits && let Some(link) = &mut self.slots[slot].link {
                // Two that ask anew whenever the other does would never end: one of them gives the other time to be answered.
                link.open_due = false;
                link.wait_to_ask(now_ns);
            }
            return self.settle(slot);
        }
        match link.state {
            State::Opening if age >= (link.peer_incarnation, link.peer_opening) => {
                learn(link, &config, frame_bytes, header, &accept);
                link.paths.heard_by(path);
                link.acknowledge.due = true;
                self.come_up(slot, now_ns);
            }
            State::Up if link.peer_token == accept.token => {
                // It does not know yet that we are up.
                link.acknowledge.due = true;
                self.settle(slot);
            }
            _ => self.counters.frames_stale += 1,
        }
    }

    pub(super) fn handle_refuse(&mut self, body: &[u8]) {
        let Ok(refuse) = RefuseBody::parse(body) else {
            self.counters.frames_malformed += 1;
            return;
        };
        let slot = self.slot_of(refuse.token).filter(|&slot| {
            self.slots[slot].link.as_ref().is_some_and(|link| link.state == State::Opening)
        });
        let Some(slot) = slot else {
            self.counters.frames_stale += 1;
            return;
        };
        let why = match refuse.reason {
            RefuseReason::Version => Why::Version {
                ours: self.config.versions,
                theirs: [refuse.version_low, refuse.version_high],
            },
            RefuseReason::Feature => {
                Why::Feature { ours: self.config.features[0], theirs: refuse.features }
            }
            RefuseReason::NotHere => Why::NotHere,
            RefuseReason::Full => Why::Full,
        };
        self.fail(slot, why);
    }

    pub(super) fn handle_close(&mut self, header: &FrameHeader, body: &[u8]) {
        let why = match CloseReason::parse(body) {
            Ok(CloseReason::Done) => Why::Closed,
            Ok(CloseReason::Violation) => Why::Accused,
            Err(_) => {
                self.counters.frames_malformed += 1;
                return;
            }
        };
        match self.slot_of(header.token) {
            Some(slot) => self.fail(slot, why),
            None => self.counters.frames_unknown += 1,
        }
    }

    /// The peer does not know the token that we used: if it is the one of a link, that link is over.
    pub(super) fn handle_unknown(&mut self, header: &FrameHeader) {
        let slot = self.slots.iter().position(|slot| {
            slot.link.as_ref().is_some_and(|link| {
                link.peer_token == header.token && link.is_running() && header.token != 0
            })
        });
        match slot {
            Some(slot) => self.fail(slot, Why::Restarted),
            None => self.counters.frames_stale += 1,
        }
    }

    /// The peer has shown that it is there now.
    pub(super) fn come_up(&mut self, slot: usize, now_ns: u64) {
        let Some(link) = &mut self.slots[slot].link else { return };
        let (id, peer, incarnation) = (link.id, link.peer, link.peer_incarnation);
        let age = (incarnation, link.peer_opening);
        if link.repeats == 1 {
            // Asked once, answered once: the first round trip (RFC 6298 takes the handshake's, too).
            link.round_trip.sample(now_ns.saturating_sub(link.asked_ns), now_ns);
        }
        link.state = State::Up;
        link.paths.forget_guesses();
        link.heard(now_ns);
        link.open_due = false;
        link.give_up_ns = NEVER;
        link.up_untold = true;
        self.counters.links_up += 1;
        link.came_up = self.counters.links_up;
        // A later link of the same function takes the place of the earlier one, even of one that was never confirmed: a frame of
        // that one could still do so, and would end this one.
        for other in 0..self.slots.len() {
            let Some(link) = self.slots[other].link.as_ref().filter(|link| link.id != id) else {
                continue;
            };
            let is_obsolete = link.state == State::Accepting
                && (link.peer_incarnation, link.peer_opening) < age
                && !planted("reliable-keep-half-open");
            if link.peer == peer && (link.is_running() || is_obsolete) {
                let is_restart = link.peer_incarnation != incarnation;
                self.fail(other, if is_restart { Why::Restarted } else { Why::Closed });
            }
        }
        self.by_peer.insert(peer, id);
        let after = self.slots[slot].link.as_ref().and_then(|link| self.undelivered_before(link));
        if let Some(link) = &mut self.slots[slot].link {
            link.after = after;
        }
        self.tell(slot);
        self.settle(slot);
    }

    fn refuse(&mut self, path: PathId, open: &OpenBody, reason: RefuseReason) {
        self.reply(Reply {
            path,
            function: open.from.function,
            token: 0,
            body: ReplyBody::Refuse(RefuseBody {
                reason,
                version_low: self.config.versions[0],
                version_high: self.config.versions[1],
                features: self.config.features[0],
                token: open.token,
            }),
        });
    }

    /// The body of the Open or Accept of a link.
    pub(super) fn open_body(&self, link: &Link, is_accept: bool) -> OpenBody {
        OpenBody {
            version_low: self.config.versions[0],
            version_high: self.config.versions[1],
            version: if is_accept { link.version } else { 0 },
            demanded: self.config.features[1],
            features: if is_accept { link.features } else { self.config.features[0] },
            packet_bytes: self.config.packet_bytes,
            from: self.me,
            to: link.peer,
            incarnation: self.incarnation,
            opening: link.opening,
            token: link.token,
            peer_incarnation: link.peer_incarnation,
            window: self.config.window_frames,
            frame_bytes: self.config.frame_bytes as u16,
        }
    }
}

/// Highest version that both speak.
fn common_version(config: &Config, open: &OpenBody) -> Option<u8> {
    let low = config.versions[0].max(open.version_low);
    let high = config.versions[1].min(open.version_high);
    (low <= high).then_some(high)
}

fn features_agree(config: &Config, open: &OpenBody) -> bool {
    open.demanded & !config.features[0] == 0 && config.features[1] & !open.features == 0
}

/// Whether the peer's sizes can work at all.
fn is_workable(open: &OpenBody) -> bool {
    open.frame_bytes as usize >= MIN_FRAME_BYTES
        && open.window > 0
        && open.token != 0
        && open.incarnation != 0
}

/// Takes over what the peer says of itself.
fn learn(
    link: &mut Link,
    config: &Config,
    frame_bytes: usize,
    header: &FrameHeader,
    open: &OpenBody,
) {
    link.peer_token = open.token;
    link.peer_incarnation = open.incarnation;
    link.peer_opening = open.opening;
    link.peer_packet_bytes = open.packet_bytes.min(config.send_bytes - 64);
    link.expected = header.sequence;
    link.window = config.window_frames.min(open.window) as u32;
    link.peer_frame_bytes = open.frame_bytes as usize;
    link.agree_on_frame_bytes(frame_bytes);
    link.version = common_version(config, open).unwrap_or(0);
    link.features = open.features & config.features[0];
    for (stream, credit) in link.streams.iter_mut().zip(header.credit) {
        stream.begin(first_number(open.token), credit);
    }
}
