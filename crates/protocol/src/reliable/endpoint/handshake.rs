//! How links begin and end: Open, Accept, Refuse, Close, Unknown.
//!
//! A link comes up at one side when the other side has shown that it can read what was sent to it.
//! The asking side needs an Accept with the token of its Open. The answering side needs any frame
//! with the token of its Accept. So an old or forged Open neither makes a link nor ends an existing
//! one.
//!
//! A peer is identified by its place. An Open counts only with a cookie that was sent to its place,
//! so its sender receives there. If a link with the named peer exists, the Open must come from a
//! place where that peer was asked for or heard. An Open from elsewhere makes us ask the peer for a
//! sign of life; the peer must be found dead first.

use bellwire_wire::frame::challenge::ChallengeBody;
use bellwire_wire::frame::finish::{CloseReason, RefuseBody, RefuseReason};
use bellwire_wire::frame::header::FrameHeader;
use bellwire_wire::frame::open::OpenBody;
use bellwire_wire::frame::{FunctionId, MIN_FRAME_BYTES};

use super::replies::{Reply, ReplyBody};
use super::{Endpoint, MOST_INCARNATION};
use crate::canary::planted;
use crate::reliable::link::{Link, State};
use crate::reliable::{Config, DownReason, PathId, PlaceCheck, Sink};
use crate::secret::Purpose;

/// How long an answered Open waits for its confirmation, in ns. Its values are forgotten then.
const CONFIRMATION_NS: u64 = 2_000_000_000;
/// One place may have at most this fraction of all links: a quarter.
const PLACE_SHARE: usize = 4;
/// One place may have this many links, however few there are: an old one, and one after a restart.
const LEAST_OF_PLACE: usize = 4;

/// The link that an Open is about.
enum OpenTarget {
    /// No link. The Open is dropped, or needs no further work.
    None,
    /// The link in this slot, which is not up yet: it takes over the values of the Open.
    HalfOpen(usize),
    /// A new one.
    New,
}

impl Endpoint {
    pub(super) fn handle_open(
        &mut self,
        path: PathId,
        header: &FrameHeader,
        body: &[u8],
        now_ns: u64,
        sink: &mut impl Sink,
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
        if self.config.common_version(open.version_low, open.version_high).is_none() {
            return self.refuse(path, &open, RefuseReason::Version);
        }
        if !features_agree(&self.config, &open) {
            return self.refuse(path, &open, RefuseReason::Feature);
        }
        if !is_workable(&open) {
            self.counters.frames_malformed += 1;
            return;
        }
        // Up to here nothing is stored, and no link is looked at.
        if !self.is_proved(path, header, &open, now_ns) && !planted("reliable-skip-cookie") {
            return self.challenge(path, &open, now_ns);
        }
        match sink.check_place(open.from.node, path) {
            PlaceCheck::Belongs => {}
            PlaceCheck::Elsewhere => {
                self.counters.frames_elsewhere += 1;
                return self.refuse(path, &open, RefuseReason::Elsewhere);
            }
            PlaceCheck::Pending => {
                self.counters.frames_elsewhere += 1;
                return;
            }
        }
        let slot = match self.link_of(path, &open, now_ns) {
            OpenTarget::None => return,
            OpenTarget::HalfOpen(slot) => {
                // If two ask each other, only one asks anew; the other's answer is enough.
                let asks_anew = self.me > open.from;
                self.renew(slot, asks_anew, now_ns);
                slot
            }
            OpenTarget::New => {
                let Some(slot) = self.add_half_open(path, &open, now_ns) else {
                    return self.refuse(path, &open, RefuseReason::Full);
                };
                slot
            }
        };
        if let Some(link) = self.links.at_mut(slot) {
            link.learn(&self.config, self.frame_bytes, header, &open);
            link.opening.forget_ns = now_ns + CONFIRMATION_NS;
            link.paths.proved_by(path);
            link.opening.accept_due = true;
        }
        self.links.settle(slot);
    }

    /// What a cookie vouches for: the sender, its path and the link that it asks for.
    fn cookie_words(path: PathId, open: &OpenBody) -> [u64; 6] {
        let FunctionId { node, function } = open.from;
        [path.0, node as u64, function as u64, open.incarnation, open.opening, open.token]
    }

    /// Whether the sender of an Open has read what was recently sent to its address.
    fn is_proved(&self, path: PathId, header: &FrameHeader, open: &OpenBody, now_ns: u64) -> bool {
        let words = Self::cookie_words(path, open);
        self.secret.is_fresh(Purpose::Cookie, words, header.token, now_ns)
    }

    /// Asks the sender of an Open to prove its address.
    fn challenge(&mut self, path: PathId, open: &OpenBody, now_ns: u64) {
        self.counters.frames_challenged += 1;
        let words = Self::cookie_words(path, open);
        let cookie = self.secret.derive_now(Purpose::Cookie, words, now_ns);
        self.replies.push(Reply {
            path,
            function: open.from.function,
            token: open.token,
            body: ReplyBody::Challenge(ChallengeBody { cookie }),
        });
    }

    /// The peer demands a proof that we receive at our address, for the Open that went by `path`.
    pub(super) fn handle_challenge(&mut self, path: PathId, header: &FrameHeader, body: &[u8]) {
        let Ok(ChallengeBody { cookie }) = ChallengeBody::parse(body) else {
            self.counters.frames_malformed += 1;
            return;
        };
        let slot = self.links.slot_of(header.token);
        let link = slot.and_then(|slot| self.links.at_mut(slot));
        let Some((slot, link)) = slot.zip(link).filter(|(_, link)| link.state == State::Opening)
        else {
            self.counters.frames_stale += 1;
            return;
        };
        if let Some(is_first) = link.paths.challenge(path, cookie) {
            let waits = link.predecessor.is_some();
            link.opening.open_due = !waits;
            if is_first {
                // Something answers there: earlier attempts do not count.
                link.opening.repeats = 0;
            }
            self.links.settle(slot);
        }
    }

    /// Finds the link that an Open is about. Its sender has proved that it receives at `path`.
    fn link_of(&mut self, path: PathId, open: &OpenBody, now_ns: u64) -> OpenTarget {
        let age = (open.incarnation, open.opening);
        let mut target = OpenTarget::New;
        for slot in 0..self.links.slots() {
            let Some(link) = self.links.at_mut(slot) else { continue };
            if link.peer != open.from || link.is_down() {
                continue;
            }
            let known = link.opening.peer_age();
            if known == age && link.opening.peer_token == open.token {
                // Our answer was lost, or this Open was repeated. No one else knows the token.
                link.paths.proved_by(path);
                link.opening.accept_due = true;
                self.links.settle(slot);
                return OpenTarget::None;
            }
            if !link.paths.contains(path) && !planted("reliable-skip-source") {
                // A peer is where it was asked for or heard. Unconfirmed Opens from different
                // places have a link each.
                if link.state == State::Accepting {
                    continue;
                }
                if !link.doubt(now_ns) {
                    self.counters.frames_elsewhere += 1;
                    self.links.settle(slot);
                    return OpenTarget::None;
                }
            }
            if known >= age && !planted("reliable-accept-old-incarnation") {
                self.counters.frames_stale += 1;
                return OpenTarget::None;
            }
            if matches!(link.state, State::Opening | State::Accepting) {
                if link.predecessor.is_some() {
                    // Our own Open waits for the end of an earlier link; the peer will ask again.
                    return OpenTarget::None;
                }
                target = OpenTarget::HalfOpen(slot);
            }
        }
        target
    }

    /// Makes a half-open link for an Open and returns its slot. `None`: there is no room.
    fn add_half_open(&mut self, path: PathId, open: &OpenBody, now_ns: u64) -> Option<usize> {
        let mut half_open = 0;
        let mut from_here = 0;
        let mut oldest = None;
        for link in self.links.iter() {
            from_here += link.paths.contains(path) as usize;
            if link.state == State::Accepting {
                half_open += 1;
                let age = (link.opening.give_up_ns, link.id.slot());
                oldest = Some(oldest.map_or(age, |oldest: (u64, usize)| oldest.min(age)));
            }
        }
        let links = self.config.links as usize;
        if from_here >= (links / PLACE_SHARE).max(LEAST_OF_PLACE) {
            return None;
        }
        // Half-open links may take half of all. The oldest one makes room, because a live peer
        // confirms soon.
        let is_full = half_open > links / 2 || self.links.is_full();
        if let Some((_, slot)) = oldest.filter(|_| is_full) {
            self.fail(slot, DownReason::NoAnswer);
        }
        let id = self.add_link(open.from, State::Accepting, path, now_ns)?;
        if let Some(link) = self.links.get_mut(id) {
            link.opening.give_up_ns = now_ns + CONFIRMATION_NS;
        }
        if self.links.newest(open.from).is_none() {
            self.links.newest.insert(open.from, id);
        }
        Some(id.slot())
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
        let Some(slot) = self.links.slot_of(header.token) else {
            self.counters.frames_stale += 1;
            return;
        };
        let Some(link) = self.links.at_mut(slot) else { return };
        let config = &self.config;
        let [low, high] = config.versions;
        // An Accept must come from where the Open went.
        let is_ours = accept.from == link.peer
            && (link.paths.contains(path) || planted("reliable-skip-source"))
            && accept.peer_incarnation == self.incarnation
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
            && link.opening.peer_token != 0
            && age > link.opening.peer_age()
        {
            // An earlier link of the peer knows our token, too: ask again with another.
            self.counters.frames_stale += 1;
            let waits = self.me < link.peer && !planted("reliable-both-ask-anew");
            self.renew(slot, true, now_ns);
            if waits && let Some(link) = self.links.at_mut(slot) {
                // If both sides asked anew whenever the other does, it would never end. One side
                // waits to be answered.
                link.opening.open_due = false;
                link.opening.wait_to_ask(now_ns);
            }
            return self.links.settle(slot);
        }
        match link.state {
            State::Opening if age >= link.opening.peer_age() => {
                link.learn(config, self.frame_bytes, header, &accept);
                link.paths.proved_by(path);
                link.receiver.acknowledge.due = true;
                self.come_up(slot, now_ns);
            }
            State::Up if link.opening.peer_token == accept.token => {
                // The peer does not know yet that we are up.
                link.receiver.acknowledge.due = true;
                self.links.settle(slot);
            }
            _ => self.counters.frames_stale += 1,
        }
    }

    pub(super) fn handle_refuse(&mut self, path: PathId, body: &[u8]) {
        let Ok(refuse) = RefuseBody::parse(body) else {
            self.counters.frames_malformed += 1;
            return;
        };
        let slot = self.links.slot_of(refuse.token);
        let link = slot.and_then(|slot| self.links.at_mut(slot));
        let Some((slot, link)) = slot.zip(link).filter(|(_, link)| link.state == State::Opening)
        else {
            self.counters.frames_stale += 1;
            return;
        };
        if link.paths.forget(path) {
            // It was asked at other places, too.
            return;
        }
        let reason = match refuse.reason {
            RefuseReason::Version => DownReason::Version {
                ours: self.config.versions,
                theirs: [refuse.version_low, refuse.version_high],
            },
            RefuseReason::Feature => {
                DownReason::Feature { ours: self.config.features[0], theirs: refuse.features }
            }
            RefuseReason::NotHere => DownReason::NotHere,
            RefuseReason::Full => DownReason::Full,
            RefuseReason::Elsewhere => DownReason::Elsewhere,
        };
        self.fail(slot, reason);
    }

    pub(super) fn handle_close(&mut self, header: &FrameHeader, body: &[u8]) {
        let reason = match CloseReason::parse(body) {
            Ok(CloseReason::Done) => DownReason::Closed,
            Ok(CloseReason::Violation) => DownReason::Accused,
            Err(_) => {
                self.counters.frames_malformed += 1;
                return;
            }
        };
        match self.links.slot_of(header.token) {
            Some(slot) => self.fail(slot, reason),
            None => self.counters.frames_unknown += 1,
        }
    }

    /// The peer does not know the token that we used. If a link uses that token, the link is over.
    pub(super) fn handle_unknown(&mut self, header: &FrameHeader) {
        let uses = |link: &&Link| {
            link.opening.peer_token == header.token && link.is_running() && header.token != 0
        };
        let slot = self.links.iter().find(uses).map(|link| link.id.slot());
        match slot {
            Some(slot) => self.fail(slot, DownReason::Restarted),
            None => self.counters.frames_stale += 1,
        }
    }

    /// The peer has confirmed the link. `false`: another place was confirmed as that peer before,
    /// or the peer is being asked there.
    pub(super) fn come_up(&mut self, slot: usize, now_ns: u64) -> bool {
        let Some(link) = self.links.at(slot) else { return false };
        let is_elsewhere = |other: &Link| {
            other.peer == link.peer
                && other.id != link.id
                && (other.is_running() || other.state == State::Opening)
                && !other.paths.share(&link.paths)
        };
        let is_late = link.state == State::Accepting && self.links.iter().any(is_elsewhere);
        if is_late && !planted("reliable-skip-source") {
            self.counters.frames_elsewhere += 1;
            self.fail(slot, DownReason::NoAnswer);
            return false;
        }
        let Some(link) = self.links.at_mut(slot) else { return false };
        let (id, peer, age) = (link.id, link.peer, link.opening.peer_age());
        self.counters.links_up += 1;
        link.come_up(self.counters.links_up, now_ns);
        // A later link of the same function replaces the earlier one, even a half-open one.
        // Otherwise a late frame could confirm the earlier link and end this one.
        for other in 0..self.links.slots() {
            let Some(link) = self.links.at(other).filter(|link| link.id != id) else { continue };
            let is_obsolete = link.state == State::Accepting
                && link.opening.peer_age() < age
                && !planted("reliable-keep-half-open");
            if link.peer == peer && (link.is_running() || is_obsolete) {
                let is_restart = link.opening.peer_incarnation != age.0;
                let reason = if is_restart { DownReason::Restarted } else { DownReason::Closed };
                self.fail(other, reason);
            }
        }
        self.links.newest.insert(peer, id);
        let predecessor = self.links.at(slot).and_then(|link| self.undelivered_before(link));
        if let Some(link) = self.links.at_mut(slot) {
            link.predecessor = predecessor;
        }
        self.links.eventful.push(slot);
        self.links.settle(slot);
        true
    }

    fn refuse(&mut self, path: PathId, open: &OpenBody, reason: RefuseReason) {
        self.replies.push(Reply {
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
        let (version, features) = (link.opening.version, link.opening.features);
        OpenBody {
            version_low: self.config.versions[0],
            version_high: self.config.versions[1],
            version: if is_accept { version } else { 0 },
            demanded: self.config.features[1],
            features: if is_accept { features } else { self.config.features[0] },
            packet_bytes: self.config.packet_bytes,
            from: self.me,
            to: link.peer,
            incarnation: self.incarnation,
            opening: link.opening.number,
            token: link.opening.token,
            peer_incarnation: link.opening.peer_incarnation,
            window: self.config.window_frames,
            frame_bytes: self.config.frame_bytes as u16,
        }
    }
}

fn features_agree(config: &Config, open: &OpenBody) -> bool {
    open.demanded & !config.features[0] == 0 && config.features[1] & !open.features == 0
}

/// Whether the peer's values are in range.
fn is_workable(open: &OpenBody) -> bool {
    open.frame_bytes as usize >= MIN_FRAME_BYTES
        && open.window > 0
        && open.token != 0
        && (1..=MOST_INCARNATION).contains(&open.incarnation)
}
