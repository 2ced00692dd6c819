//! Creates links in slots and ends them.

use alloc::boxed::Box;

use bellwire_wire::frame::FunctionId;
use bellwire_wire::frame::finish::CloseReason;

use super::backlog::Backlog;
use super::endpoint::{Reply, ReplyBody, Slot};
use super::link::{Link, NEVER, State};
use super::{Endpoint, PathId, PeerId, Why};
use crate::canary::planted;
use crate::secret::Purpose;

impl Endpoint {
    /// Makes a new link, if a slot is free.
    pub(super) fn add_link(
        &mut self,
        peer: FunctionId,
        state: State,
        path: PathId,
        now_ns: u64,
    ) -> Option<PeerId> {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None if self.slots.len() < self.config.links as usize => {
                self.slots.push(Slot { generation: 0, link: None });
                self.deadlines_ns.push(NEVER);
                self.slots.len() as u16 - 1
            }
            None => return None,
        };
        let token = self.new_token(slot);
        self.openings += 1;
        let entry = &mut self.slots[slot as usize];
        entry.generation = entry.generation.wrapping_add(1);
        let id = PeerId::new(slot, entry.generation);
        let mut link = Link::new(&self.config, id, peer, state, path, token, now_ns);
        link.opening = self.openings;
        entry.link = Some(Box::new(link));
        Some(id)
    }

    /// Gives a half-open link a new token. An earlier link of the peer may have learnt the old
    /// token; its frames must not count for the new link. If the link asks anew it also takes a
    /// later opening, because the peer drops a second token under the same opening.
    pub(super) fn renew(&mut self, slot: usize, asks_anew: bool, path: PathId, now_ns: u64) {
        let token = self.new_token(slot as u16);
        let Some(old) = self.slots[slot].link.as_deref() else { return };
        if old.peer_token == 0 {
            return;
        }
        let mut link = Link::new(&self.config, old.id, old.peer, old.state, path, token, now_ns);
        link.opening = old.opening;
        if asks_anew && old.state == State::Opening {
            self.openings += 1;
            link.opening = self.openings;
        }
        link.paths = old.paths;
        link.give_up_ns = old.give_up_ns;
        link.patience_ns = old.patience_ns;
        link.repeats = old.repeats;
        link.open_due = old.state == State::Opening;
        link.after = old.after;
        link.is_ready = old.is_ready;
        link.is_deliverable = old.is_deliverable;
        link.has_event = old.has_event;
        self.slots[slot].link = Some(Box::new(link));
    }

    /// Frees a slot.
    pub(super) fn remove(&mut self, slot: usize) {
        if let Some(mut link) = self.slots[slot].link.take() {
            link.early.clear(&mut self.early);
            self.release_successor(link.id);
            self.free.push(slot as u16);
            self.deadlines_ns[slot] = NEVER;
        }
    }

    /// Ends a link. Packets that came by it are kept until they are taken.
    pub(super) fn fail(&mut self, slot: usize, why: Why) {
        self.count_failed(slot);
        let Some(link) = &mut self.slots[slot].link else { return };
        if matches!(link.state, State::Down(_)) {
            return;
        }
        let (id, peer, was_closing) = (link.id, link.peer, link.state == State::Closing);
        // The end of a half-open link that the peer asked for concerns no user.
        let is_silent = was_closing || link.state == State::Accepting;
        if link.is_running() {
            self.counters.links_down += 1;
        }
        if matches!(why, Why::Violation) {
            let reply = Reply {
                path: link.way_back(),
                function: link.peer.function,
                token: link.peer_token,
                body: ReplyBody::Close(CloseReason::Violation),
            };
            for backlog in &mut link.backlogs {
                backlog.forget();
            }
            self.reply(reply);
        }
        if self.by_peer.get(&peer) == Some(&id) {
            self.by_peer.remove(&peer);
        }
        let Some(link) = &mut self.slots[slot].link else { return };
        link.state = State::Down(why);
        link.early.clear(&mut self.early);
        if is_silent {
            self.remove(slot);
        } else {
            self.settle(slot);
        }
    }

    /// Counts the unacknowledged packets of an ended link as failed.
    pub(super) fn count_failed(&mut self, slot: usize) {
        if let Some(link) = &mut self.slots[slot].link {
            self.counters.packets_failed += core::mem::take(&mut link.packets_unacknowledged);
        }
    }

    /// Lets the link that waits for `id` send its Open or offer its packets, unless another link
    /// still precedes it.
    pub(super) fn release_successor(&mut self, id: PeerId) {
        for slot in 0..self.slots.len() {
            let Some(link) = self.slots[slot].link.as_ref().filter(|link| link.after == Some(id))
            else {
                continue;
            };
            let is_opening = link.state == State::Opening;
            let after =
                if is_opening { self.lingering(link.peer) } else { self.undelivered_before(link) };
            if let Some(link) = &mut self.slots[slot].link {
                link.after = after;
                link.open_due = is_opening && after.is_none();
                self.settle(slot);
            }
        }
    }

    /// An earlier link from the same function whose packets are still to be taken, or whose end is
    /// still to be told.
    pub(super) fn undelivered_before(&self, link: &Link) -> Option<PeerId> {
        // Order by when links came up here, not by the peer's openings. If two ask each other, one
        // may answer on a link that it made for an earlier Open. That link's opening may be smaller
        // than the opening of a link that has already come and gone.
        let is_before = |earlier: &Link| match planted("reliable-order-by-opening") {
            false => earlier.came_up < link.came_up,
            true => {
                let age = |link: &Link| (link.peer_incarnation, link.peer_opening);
                age(earlier) < age(link)
            }
        };
        self.slots
            .iter()
            .filter_map(|slot| slot.link.as_ref())
            .find(|earlier| {
                earlier.peer == link.peer
                    && is_before(earlier)
                    && matches!(earlier.state, State::Down(_))
                    && (earlier.down_untold || earlier.backlogs.iter().any(Backlog::is_waiting))
            })
            .map(|earlier| earlier.id)
    }

    /// A link that its user has closed ends when everything is acknowledged.
    pub(super) fn finish_closing(&mut self, slot: usize) {
        let Some(link) = &mut self.slots[slot].link else { return };
        if link.state == State::Closing && link.is_drained() {
            self.abandon(slot);
        } else {
            self.settle(slot);
        }
    }

    /// Ends a link that our user has closed, and tells the peer.
    pub(super) fn abandon(&mut self, slot: usize) {
        self.count_failed(slot);
        if let Some(link) = &mut self.slots[slot].link {
            let reply = Reply {
                path: link.way_back(),
                function: link.peer.function,
                token: link.peer_token,
                body: ReplyBody::Close(CloseReason::Done),
            };
            self.counters.links_down += 1;
            self.reply(reply);
            self.remove(slot);
        }
    }

    /// The link to `peer` that its user has closed and that still sends queued packets.
    pub(super) fn lingering(&self, peer: FunctionId) -> Option<PeerId> {
        self.slots
            .iter()
            .filter_map(|slot| slot.link.as_ref())
            .find(|link| link.peer == peer && link.state == State::Closing)
            .map(|link| link.id)
    }

    /// A token for the link in `slot`. 48 bits cannot be guessed, even with the tokens of other
    /// links.
    fn new_token(&mut self, slot: u16) -> u64 {
        self.tokens += 1;
        self.secret.derive(Purpose::Token, &[self.incarnation, self.tokens]) & !0xffff | slot as u64
    }
}
