//! What is due by the clock, sleep, and the end.

use crate::adapter::Adapter;
use crate::completion::Cause;
use crate::head::{Head, Opcode};
use bellwire_ring::steps::step;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// How often peers that are silent are asked.
const TICK: Duration = Duration::from_millis(250);
/// Ticks between two questions to a peer that nothing waits for.
const IDLE_TICKS: u32 = 4;

impl Adapter {
    /// Does what is due by the clock.
    pub fn keep_time(&mut self) {
        let now = Instant::now();
        let mut held = std::mem::take(&mut self.state.held);
        held.retain(|&number| {
            let Some(qp) = self.state.qps.get_mut(number) else { return false };
            let waits = qp.hold_until.is_some_and(|until| until > now);
            if !waits {
                qp.hold_until = None;
                self.state.list(number);
            }
            waits
        });
        self.state.held.append(&mut held);
        if now.saturating_duration_since(self.state.last_tick) >= TICK {
            self.state.last_tick = now;
            self.state.ticks = self.state.ticks.wrapping_add(1);
            self.probe(now);
        }
        self.run_ready();
    }

    /// Asks the peers that something waits for, and now and then the others.
    fn probe(&mut self, now: Instant) {
        let state = &mut self.state;
        let also_idle = state.ticks.is_multiple_of(IDLE_TICKS);
        for number in state.qps.numbers() {
            let Some(qp) = state.qps.get_mut(number) else { continue };
            let waits = qp.sends.unacknowledged > 0 || qp.asked.is_some();
            let Some(peer) = qp.peer else { continue };
            let heard = std::mem::take(&mut qp.heard);
            qp.met |= heard;
            if qp.is_over(now) {
                state.give_up(number, Cause::Unreachable);
                continue;
            }
            if heard || !qp.is_reliable() || !qp.state().receives() || !(waits || also_idle) {
                continue;
            }
            let head = Head::new(Opcode::Probe, qp.attributes.peer, number);
            state.peers.answer(peer, head, Vec::new());
        }
    }

    /// Whether something waits for a time, so that a sleep must be short.
    pub fn waits_for_time(&self) -> bool {
        !self.state.held.is_empty() || !self.state.ready.is_empty() || !self.state.todo.is_empty()
    }

    /// Whether requests wait for peers.
    pub fn waits_for_peers(&self) -> bool {
        self.state.qps.iter().any(|qp| qp.state().receives())
    }

    /// Prepares a sleep at [`Adapter::wait_fd`]. `false`: there is something to do.
    pub fn may_sleep(&mut self) -> bool {
        if self.progress() > 0 {
            return false;
        }
        self.settle();
        self.keep_time();
        self.function.arm().unwrap_or(false)
    }

    /// Nobody sleeps at [`Adapter::wait_fd`] any more.
    pub(crate) fn disarm(&mut self) {
        self.function.disarm();
    }

    /// Sends the acknowledgements that peers wait for.
    pub(crate) fn settle(&mut self) {
        self.quiet_since = None;
        self.state.settle();
        self.flush();
    }

    /// Tells all peers that their queue pairs here end in order, for the end of a program.
    pub fn leave(&mut self) {
        self.state.settle();
        for number in self.state.qps.numbers() {
            self.state.leave(number);
        }
        self.flush();
        step("rdma-left");
    }

    /// Waits until peers have what was sent, for at most `limit`: what the device still holds ends
    /// with the process.
    pub fn finish(&mut self, limit: Duration) {
        let begin = Instant::now();
        let mut is_marked = false;
        while begin.elapsed() < limit {
            // The marks come behind all that waits.
            if !is_marked && !self.state.peers.has_answers() {
                self.state.marks = self.state.peers.mark(&mut self.function);
                is_marked = true;
            }
            if is_marked && self.state.marks == 0 {
                return;
            }
            if self.progress() == 0 {
                std::thread::yield_now();
            }
        }
    }

    /// A descriptor that is readable when there is something to do, after [`Adapter::may_sleep`].
    pub fn wait_fd(&self) -> BorrowedFd<'_> {
        self.function.wait_fd()
    }
}
