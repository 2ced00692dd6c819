//! Creates links in slots, runs their timers, and ends them.

use bellwire_wire::frame::FunctionId;
use bellwire_wire::frame::finish::CloseReason;

use super::Endpoint;
use super::replies::{Reply, ReplyBody};
use crate::canary::planted;
use crate::reliable::link::{Link, Opening, State};
use crate::reliable::{DownReason, PathId, PeerId};
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
        let id = self.links.reserve()?;
        self.openings += 1;
        let opening = Opening::new(self.new_token(id.slot()), self.openings);
        self.links.insert(Link::new(&self.config, id, peer, state, path, opening, now_ns));
        Some(id)
    }

    /// Gives a half-open link a new token. An earlier link of the peer may have learnt the old
    /// token; its frames must not count for the new link. If the link asks anew it also takes a
    /// later opening, because the peer drops a second token under the same opening.
    pub(super) fn renew(&mut self, slot: usize, asks_anew: bool, now_ns: u64) {
        let token = self.new_token(slot);
        let Some(link) = self.links.at_mut(slot) else { return };
        if link.opening.peer_token == 0 {
            return;
        }
        let mut number = link.opening.number;
        if asks_anew && link.state == State::Opening {
            self.openings += 1;
            number = self.openings;
        }
        link.renew(&self.config, token, number, now_ns);
    }

    /// Frees a slot.
    pub(super) fn remove(&mut self, slot: usize) {
        if let Some(mut link) = self.links.remove(slot) {
            link.receiver.early.clear(&mut self.early);
            self.release_successor(link.id);
        }
    }

    /// Ends a link. Packets that came by it are kept until they are taken.
    pub(super) fn fail(&mut self, slot: usize, reason: DownReason) {
        self.count_failed(slot);
        let Some(link) = self.links.at_mut(slot) else { return };
        if link.is_down() {
            return;
        }
        if link.is_running() {
            self.counters.links_down += 1;
        }
        if reason == DownReason::Violation {
            self.replies.push(close(link, CloseReason::Violation));
            link.backlogs.forget();
        }
        // The end of a half-open link that the peer asked for concerns no user.
        let is_silent = link.is_closing() || link.state == State::Accepting;
        let (id, peer) = (link.id, link.peer);
        link.state = State::Down(reason);
        link.receiver.early.clear(&mut self.early);
        self.links.retire(peer, id);
        if is_silent {
            self.remove(slot);
        } else {
            self.links.settle(slot);
        }
    }

    /// Counts the unacknowledged packets of an ended link as failed.
    pub(super) fn count_failed(&mut self, slot: usize) {
        if let Some(link) = self.links.at_mut(slot) {
            self.counters.packets_failed +=
                core::mem::take(&mut link.sender.packets_unacknowledged);
        }
    }

    /// Lets the link that waits for `id` send its Open or offer its packets, unless another link
    /// still precedes it.
    pub(super) fn release_successor(&mut self, id: PeerId) {
        for slot in 0..self.links.slots() {
            let Some(link) = self.links.at(slot).filter(|link| link.predecessor == Some(id)) else {
                continue;
            };
            let is_opening = link.state == State::Opening;
            let predecessor =
                if is_opening { self.lingering(link.peer) } else { self.undelivered_before(link) };
            if let Some(link) = self.links.at_mut(slot) {
                link.predecessor = predecessor;
                link.opening.open_due = is_opening && predecessor.is_none();
                self.links.settle(slot);
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
            true => earlier.opening.peer_age() < link.opening.peer_age(),
        };
        let is_undelivered = |earlier: &&Link| {
            earlier.peer == link.peer
                && is_before(earlier)
                && earlier.is_down()
                && (earlier.notices.down || earlier.backlogs.are_waiting())
        };
        self.links.iter().find(is_undelivered).map(|link| link.id)
    }

    /// A link that its user has closed ends when everything is acknowledged.
    pub(super) fn finish_closing(&mut self, slot: usize) {
        let Some(link) = self.links.at(slot) else { return };
        if link.is_closing() && link.sender.is_drained() {
            self.abandon(slot);
        } else {
            self.links.settle(slot);
        }
    }

    /// Ends a link that our user has closed, and tells the peer.
    pub(super) fn abandon(&mut self, slot: usize) {
        self.count_failed(slot);
        if let Some(link) = self.links.at(slot) {
            self.counters.links_down += 1;
            self.replies.push(close(link, CloseReason::Done));
            self.remove(slot);
        }
    }

    /// The link to `peer` that its user has closed and that still sends queued packets.
    pub(super) fn lingering(&self, peer: FunctionId) -> Option<PeerId> {
        self.links.iter().find(|link| link.peer == peer && link.is_closing()).map(|link| link.id)
    }

    /// Serves each link whose deadline has passed, and finds the next deadline.
    #[cold]
    pub(super) fn run_timers(&mut self, now_ns: u64) {
        for slot in 0..self.links.slots() {
            if self.links.deadlines_ns[slot] > now_ns {
                continue;
            }
            self.forget_unconfirmed(slot, now_ns);
            let Some(link) = self.links.at_mut(slot) else { continue };
            if let Some(reason) = link.run_timers(&self.config, &mut self.counters, now_ns) {
                // The lingering time of a link that the user closed is over.
                match link.is_closing() {
                    true => self.abandon(slot),
                    false => self.fail(slot, reason),
                }
            }
            self.links.settle(slot);
        }
        self.links.next_timer_ns = self.links.deadline_ns();
    }

    /// Both sides asked, and the peer has not confirmed what its Open said. The Open may have been
    /// altered, so that the peer's answers count as old: asks the peer anew.
    fn forget_unconfirmed(&mut self, slot: usize, now_ns: u64) {
        if let Some(link) = self.links.at(slot)
            && link.state == State::Opening
            && now_ns >= link.opening.forget_ns
            && !planted("reliable-keep-unconfirmed")
        {
            self.renew(slot, true, now_ns);
        }
    }

    /// A token for the link in `slot`. 48 bits cannot be guessed, even with the tokens of other
    /// links.
    fn new_token(&mut self, slot: usize) -> u64 {
        self.tokens += 1;
        self.secret.derive(Purpose::Token, &[self.incarnation, self.tokens]) & !0xffff | slot as u64
    }
}

/// The Close of a link.
fn close(link: &Link, reason: CloseReason) -> Reply {
    Reply {
        path: link.way_back(),
        function: link.peer.function,
        token: link.opening.peer_token,
        body: ReplyBody::Close(reason),
    }
}
