//! What happens because time has passed.

use super::link::{Link, NEVER, State};
use super::{Endpoint, Why};
use crate::canary::planted;

impl Endpoint {
    /// Looks at each link whose time has come, and finds the next time.
    #[cold]
    pub(super) fn run_timers(&mut self, now_ns: u64) {
        self.next_timer_ns = NEVER;
        for slot in 0..self.slots.len() {
            let Some(link) = &mut self.slots[slot].link else { continue };
            if link.wake_ns <= now_ns
                && let Some(why) = self.look(slot, now_ns)
            {
                self.give_up(slot, why);
            }
            self.settle(slot);
        }
    }

    fn give_up(&mut self, slot: usize, why: Why) {
        // What the user closed has lingered long enough.
        let is_closing =
            self.slots[slot].link.as_ref().is_some_and(|link| link.state == State::Closing);
        if is_closing {
            self.abandon(slot);
        } else {
            self.fail(slot, why);
        }
    }

    /// Does what is due for one link; why it is over, if it is.
    fn look(&mut self, slot: usize, now_ns: u64) -> Option<Why> {
        let config = self.config;
        let counters = &mut self.counters;
        let link = self.slots[slot].link.as_deref_mut()?;
        link.wake_ns = NEVER;
        match link.state {
            State::Down(_) => return None,
            State::Opening | State::Accepting => {
                if now_ns >= link.give_up_ns {
                    return Some(Why::NoAnswer);
                }
                if now_ns >= link.repeat_ns {
                    link.repeat_ns = NEVER;
                    link.open_due = link.state == State::Opening;
                    link.accept_due = link.state == State::Accepting;
                }
                link.wake_at(link.give_up_ns.min(link.repeat_ns));
                return None;
            }
            State::Closing if now_ns >= link.give_up_ns => return Some(Why::Closed),
            State::Closing | State::Up => {}
        }
        if let Some(deadline_ns) = link.acknowledge.deadline() {
            if now_ns >= deadline_ns {
                link.acknowledge.due = true;
            } else {
                link.wake_at(deadline_ns);
            }
        }
        if now_ns >= link.timeout_ns && !link.timed_out(&config, counters, now_ns) {
            return Some(Why::Dead);
        }
        link.wake_at(link.timeout_ns);
        // Questions count, not time, so that a program that slept itself does not find all its peers dead (see PROTOCOL.md).
        link.regrow(now_ns);
        if now_ns >= keep_alive_deadline(link, config.keep_alive_ns)
            && !planted("reliable-no-keep-alive")
        {
            if link.probes >= config.keep_alive_probes {
                return Some(Why::Dead);
            }
            link.probes += 1;
            link.probed_ns = now_ns;
            link.probe_due = true;
            counters.probes_sent += 1;
        }
        link.wake_at(keep_alive_deadline(link, config.keep_alive_ns).max(now_ns + 1));
        if link.state == State::Closing {
            link.wake_at(link.give_up_ns);
        }
        None
    }
}

fn keep_alive_deadline(link: &Link, keep_alive_ns: u64) -> u64 {
    link.heard_ns.max(link.probed_ns).saturating_add(keep_alive_ns)
}
