//! Waiting, and the agent that makes progress while the program does not.
//!
//! A waiter polls briefly, then sleeps. One thread sleeps at the function's descriptor, the others
//! at a condition variable that it signals. A thread that finds what another waits for ends that
//! sleep.

use crate::abi::Return;
use crate::callback::Call;
use crate::handle::Handle;
use crate::nic::{Entered, State, enter};
use crate::waiters::Sleeper;
use bellwire::{Error, Wait};
use std::ffi::c_ulong;
use std::sync::PoisonError;
use std::time::Duration;

/// How long a waiter polls before it sleeps.
const LOOKING: Duration = Duration::from_micros(50);
/// Longest sleep while we wait for a peer that may not know that it must wake us.
const SHORT_SLEEP: Duration = Duration::from_millis(1);
/// Longest sleep of all, in case a wake-up is lost.
const LONG_SLEEP: Duration = Duration::from_millis(100);
/// How long the agent rests after the program itself made progress.
const AGENT_REST: Duration = Duration::from_millis(4);
/// Longest step under the lock with virtual time.
const VIRTUAL_STEP: Duration = Duration::from_micros(20);
/// An infinite timeout.
const FOR_EVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// A timeout of C, in milliseconds.
pub fn timeout_of(timeout_ms: c_ulong) -> Duration {
    match timeout_ms {
        // `INFINITE` had 32 bits in the programs of 1998 to 2005.
        0xffff_ffff | c_ulong::MAX => FOR_EVER,
        timeout_ms => Duration::from_millis(timeout_ms).min(FOR_EVER),
    }
}

/// Waits until `look` finds something: the frame of all waiting calls.
pub fn wait_on_nic<R>(
    handle: Option<Handle>,
    timeout: Duration,
    mut look: impl FnMut(&mut State) -> Result<Option<R>, Return>,
) -> Result<R, Return> {
    let mut entered = enter(handle.ok_or(Return::InvalidParameter)?)?;
    let started = entered.function.now();
    let mut first = true;
    entered.waiters.count += 1;
    let result = loop {
        if entered.closing {
            break Err(Return::InvalidParameter);
        }
        entered.waiters.uses += 1;
        // A thread that sleeps at the descriptor handles arrivals. This thread's own post may have
        // completed already, so look once.
        if first || entered.waiters.sleeper != Sleeper::Program {
            entered.drain();
        }
        if let Some(found) = look(&mut entered).transpose() {
            break found;
        }
        let waited = entered.function.now().saturating_duration_since(started);
        if waited >= timeout && !first {
            break Err(Return::Timeout);
        }
        if std::mem::replace(&mut first, false) || waited >= LOOKING {
            entered.watch();
            if let Some(found) = look(&mut entered).transpose() {
                break found;
            }
        }
        if waited >= timeout {
            break Err(Return::Timeout);
        }
        let left = timeout - waited;
        let step = match () {
            _ if entered.is_virtual => entered.pass_time(left),
            _ if waited < LOOKING => Ok(entered.look_again()),
            _ => Ok(entered.sleep(left)),
        };
        match step {
            Ok(again) => entered = again,
            Err((again, code)) => {
                entered = again;
                break Err(code);
            }
        }
    };
    entered.waiters.count -= 1;
    if entered.closing {
        entered.nic.changed.notify_all();
    }
    entered.waiters.news |= entered.waiters.count > 0;
    entered.leave();
    result
}

impl Entered {
    /// Releases the lock for a moment.
    fn look_again(mut self) -> Entered {
        let nic = self.nic;
        if std::mem::take(&mut self.waiters.news)
            && (self.waiters.count > 1 || !self.calls.due.is_empty())
        {
            self.wake_others();
        }
        drop(self);
        std::hint::spin_loop();
        Entered { nic, guard: nic.lock() }
    }

    /// Sleeps until something may have happened.
    fn sleep(mut self, left: Duration) -> Entered {
        let limit = if self.waits_for_peers() { SHORT_SLEEP } else { LONG_SLEEP };
        if std::mem::take(&mut self.waiters.news) && self.waiters.count > 1 {
            self.wake_others();
        }
        match self.waiters.sleeper {
            Sleeper::Nobody => self.sleep_at_descriptor(Sleeper::Program, left.min(limit)),
            Sleeper::Agent => {
                // The agent gives up its place, and the new sleeper signals this thread.
                self.wake_others();
                self.sleep_at_condition(left.min(SHORT_SLEEP))
            }
            Sleeper::Program => self.sleep_at_condition(left.min(limit)),
        }
    }

    fn sleep_at_condition(self, limit: Duration) -> Entered {
        let nic = self.nic;
        let woken = nic.changed.wait_timeout(self.guard, limit);
        let (guard, _) = woken.unwrap_or_else(PoisonError::into_inner);
        Entered { nic, guard }
    }

    /// Sleeps at the function's descriptor.
    fn sleep_at_descriptor(mut self, who: Sleeper, limit: Duration) -> Entered {
        if !self.calls.due.is_empty() {
            self.nic.changed.notify_all();
        }
        // Calls since the last look made progress too; what they took in no longer wakes a sleeper.
        self.waiters.news = false;
        self.drain();
        if self.waiters.news || !self.function.arm().unwrap_or(false) {
            return self;
        }
        let nic = self.nic;
        let sleep = self.waiters.begin_sleep(who);
        drop(self);
        sleep(limit);
        let mut entered = Entered { nic, guard: nic.lock() };
        entered.waiters.end_sleep();
        if who == Sleeper::Agent {
            // A waiting thread of the program takes the place.
            nic.changed.notify_all();
        }
        entered
    }

    /// Advances virtual time, and calls the program's handlers.
    fn pass_time(mut self, left: Duration) -> Result<Entered, (Entered, Return)> {
        let queue = self.completions;
        match self.function.wait(queue, Wait::Block, left.min(VIRTUAL_STEP)) {
            Ok(completion) => self.complete(completion),
            Err(Error::TimedOut { .. }) => self.watch(),
            Err(_) => return Err((self, Return::Error)),
        }
        let nic = self.nic;
        let calls = std::mem::take(&mut self.calls.due);
        drop(self);
        calls.into_iter().for_each(Call::run);
        Ok(Entered { nic, guard: nic.lock() })
    }
}

/// The kernel agent of a NIC, as a thread. While the program is busy, it makes progress, so that
/// peers reach the program's memory, and it notices peers that are gone. It also calls the
/// program's handlers. A program that polls makes progress itself; then the agent rests.
pub fn agent(handle: Handle) {
    let mut uses_seen = 0;
    loop {
        let Ok(mut entered) = enter(handle) else { return };
        if entered.closing {
            return;
        }
        // A waiting thread makes progress too, and signals when a handler is due.
        if entered.waiters.count == 0 {
            entered.drain();
            entered.watch();
        }
        let calls = std::mem::take(&mut entered.calls.due);
        if !calls.is_empty() {
            drop(entered);
            for call in calls {
                // A panic in a handler must not end the agent.
                let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| call.run()));
            }
            continue;
        }
        let uses = std::mem::replace(&mut uses_seen, entered.waiters.uses);
        drop(match entered.waiters.sleeper {
            _ if entered.waiters.count > 0 => entered.sleep_at_condition(LONG_SLEEP),
            Sleeper::Nobody if uses == entered.waiters.uses => {
                let limit = if entered.waits_for_peers() { SHORT_SLEEP } else { LONG_SLEEP };
                entered.sleep_at_descriptor(Sleeper::Agent, limit)
            }
            _ => entered.sleep_at_condition(AGENT_REST),
        });
    }
}
