//! Runs the timers of links.

use super::Endpoint;
use crate::canary::planted;
use crate::reliable::DownReason;
use crate::reliable::link::{Link, State};

impl Endpoint {
    /// Serves each link whose deadline has passed, and finds the next deadline.
    #[cold]
    pub(super) fn run_timers(&mut self, now_ns: u64) {
        for slot in 0..self.links.slots() {
            if !self.links.is_expired(slot, now_ns) {
                continue;
            }
            self.forget_unconfirmed(slot, now_ns);
            let Some(link) = self.links.at_mut(slot) else { continue };
            if let Some(reason) = link.run_timers(&self.config, &mut self.counters, now_ns) {
                self.give_up(slot, reason);
            }
            self.links.settle(slot);
        }
        self.links.reset_timer();
    }

    /// Both sides asked, and the peer has not confirmed what its Open said. The Open may have been
    /// altered, so that the peer's answers count as old: asks the peer anew.
    fn forget_unconfirmed(&mut self, slot: usize, now_ns: u64) {
        if let Some(link) = self.links.at(slot)
            && link.state() == State::Opening
            && link.opening.is_unconfirmed(now_ns)
            && !planted("reliable-keep-unconfirmed")
        {
            self.renew(slot, true, now_ns);
        }
    }

    fn give_up(&mut self, slot: usize, reason: DownReason) {
        // The lingering time of a link that the user closed is over.
        if self.links.at(slot).is_some_and(Link::is_closing) {
            self.abandon(slot);
        } else {
            self.fail(slot, reason);
        }
    }
}
