//! Runs the timers of links.

use super::link::{NEVER, State};
use super::{Endpoint, Why};
use crate::canary::planted;

impl Endpoint {
    /// Serves each link whose deadline has passed, and finds the next deadline.
    #[cold]
    pub(super) fn run_timers(&mut self, now_ns: u64) {
        for slot in 0..self.slots.len() {
            if self.deadlines_ns[slot] <= now_ns {
                self.forget_unconfirmed(slot, now_ns);
                if let Some(why) = self.look(slot, now_ns) {
                    self.give_up(slot, why);
                }
                self.settle(slot);
            }
        }
        self.next_timer_ns = self.deadlines_ns.iter().copied().min().unwrap_or(NEVER);
    }

    /// Both sides asked, and the peer has not confirmed what its Open said. The Open may have been
    /// altered, so that the peer's answers count as old: asks the peer anew.
    fn forget_unconfirmed(&mut self, slot: usize, now_ns: u64) {
        let Some(link) = self.slots[slot].link.as_deref_mut() else { return };
        if link.state == State::Opening
            && now_ns >= link.forget_ns
            && !planted("reliable-keep-unconfirmed")
        {
            let path = link.way_back();
            self.renew(slot, true, path, now_ns);
        }
    }

    fn give_up(&mut self, slot: usize, why: Why) {
        // The lingering time of a link that the user closed is over.
        let is_closing =
            self.slots[slot].link.as_ref().is_some_and(|link| link.state == State::Closing);
        if is_closing {
            self.abandon(slot);
        } else {
            self.fail(slot, why);
        }
    }

    /// Does what is due for one link. Returns the reason if the link is over.
    fn look(&mut self, slot: usize, now_ns: u64) -> Option<Why> {
        let config = self.config;
        let counters = &mut self.counters;
        let link = self.slots[slot].link.as_deref_mut()?;
        match link.state {
            State::Down(_) => return None,
            State::Opening | State::Accepting => {
                if now_ns >= link.give_up_ns {
                    return Some(Why::NoAnswer);
                }
                if now_ns >= link.repeat_ns {
                    link.repeat_ns = NEVER;
                    // An answer to the peer's Open may be due just now; our own Open must not
                    // replace it. If both ask and the delay is constant, the two would collide each
                    // time. The peer may also know an older token of our opening.
                    if planted("reliable-open-instead-of-accept") {
                        link.accept_due = false;
                    }
                    link.open_due |= link.state == State::Opening;
                    link.accept_due |= link.state == State::Accepting;
                }
                return None;
            }
            State::Closing if now_ns >= link.give_up_ns => return Some(Why::Closed),
            State::Closing | State::Up => {}
        }
        link.acknowledge.due |= now_ns >= link.acknowledge.deadline_ns();
        if now_ns >= link.timeout_ns && !link.timed_out(&config, counters, now_ns) {
            return Some(Why::Dead);
        }
        link.regrow(now_ns);
        // Probes count, not time: a program that was suspended must not find all its peers dead
        // (see PROTOCOL.md).
        if now_ns >= link.keep_alive_deadline_ns() {
            if link.probes >= config.keep_alive_probes {
                return Some(Why::Dead);
            }
            link.probes += 1;
            link.probed_ns = now_ns;
            link.probe_due = true;
            counters.probes_sent += 1;
        }
        None
    }
}
