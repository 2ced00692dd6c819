//! How much of a shared buffer each lane gets, and when: the credit manager's heuristic, as plain
//! numbers.
//!
//! Source: DAMQ-PD's HCM. From the abstract and Sec. 3.2 and 3.4 we know: credits are computed in
//! total and granted on demand, first come first served. None are private, and a port that is alone
//! obtains everything (D-14). The section that gives the heuristic is lost, so [`GrantPolicy`] has
//! three, and docs/model-damq-pd.md compares them.
//!
//! The model of the NIC counts words of its buffer with this. The shared-memory device counts
//! chunks of its pool, and [`CreditManager`](crate::CreditManager) adds which chunks they are.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec;

use crate::canary::planted;

/// "No lane", at the end of the waiting list.
const NIL: u16 = u16::MAX;

/// How much is granted at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GrantPolicy {
    /// All that is free.
    All,
    /// Half of what is free, so that the next lane finds something, too.
    HalfOfFree,
    /// The lane's history decides:
    ///
    /// - The least grant at first, and twice as much each time that it runs dry. A sender that runs
    ///   dry is fast or far away, and few large grants cost less than many small ones.
    /// - Half as much each time that it is served while others wait, and then no more than an equal
    ///   part of what is free.
    /// - The least grant again after [`park`](Rations::park).
    #[default]
    History,
}

/// Grants credits out of one total to lanes, first come first served.
///
/// Lanes are numbered from 0 and need no set-up. Nothing is allocated after construction, and every
/// operation takes a fixed time. After [`give_back`](Self::give_back) and [`park`](Self::park),
/// call [`next_grant`](Self::next_grant) until it returns `None`.
///
/// Methods that take a lane panic if its number is not below the number given to
/// [`new`](Self::new).
pub struct Rations {
    policy: GrantPolicy,
    total: u16,
    least: u16,
    free: u16,
    lanes: Box<[Lane]>,
    /// Waiting lanes, in the order in which they asked.
    first_waiting: u16,
    last_waiting: u16,
    waiting: u16,
}

#[derive(Clone, Copy)]
struct Lane {
    /// Size of the next grant under [`GrantPolicy::History`]; 0 if the lane has not asked since it
    /// was parked.
    size: u16,
    held: u16,
    waits: bool,
    /// Neighbours on the waiting list.
    before: u16,
    after: u16,
}

const PARKED: Lane = Lane { size: 0, held: 0, waits: false, before: NIL, after: NIL };

impl Rations {
    /// `total` credits for lanes `0..lanes`. A grant has at least `least` credits: fewer would be
    /// useless.
    ///
    /// # Panics
    /// If `least` is not in `1..=total`, or `lanes` is above 65,534.
    pub fn new(policy: GrantPolicy, total: u16, least: u16, lanes: u16) -> Self {
        assert!(
            (1..=total).contains(&least),
            "the least grant is at least 1 and at most everything"
        );
        assert!(lanes < NIL, "at most 65,534 lanes");
        Self {
            policy,
            total,
            least,
            free: total,
            lanes: vec![PARKED; lanes as usize].into(),
            first_waiting: NIL,
            last_waiting: NIL,
            waiting: 0,
        }
    }

    /// `lane` has run dry (or asks for the first time). Returns how much more it has now.
    ///
    /// `None` means that there is none, or that other lanes wait. [`next_grant`](Self::next_grant)
    /// then serves the lane in its turn; asking again meanwhile changes nothing.
    #[inline]
    pub fn want(&mut self, lane: u16) -> Option<u16> {
        if self.lanes[lane as usize].waits {
            return None;
        }
        self.runs_dry(lane);
        if self.waiting > 0 || self.free < self.least {
            self.wait(lane);
            return None;
        }
        Some(self.grant(lane))
    }

    /// Notes that `lane` used up what it had, without asking for more.
    #[inline]
    pub fn runs_dry(&mut self, lane: u16) {
        let size = &mut self.lanes[lane as usize].size;
        *size = size.saturating_mul(2).clamp(self.least, self.total);
    }

    /// Puts `lane` at the end of the waiting list, unless it is on it already.
    #[inline]
    pub fn wait(&mut self, lane: u16) {
        if self.lanes[lane as usize].waits {
            return;
        }
        let before = core::mem::replace(&mut self.last_waiting, lane);
        match self.lanes.get_mut(before as usize) {
            Some(before) => before.after = lane,
            None => self.first_waiting = lane,
        }
        let state = &mut self.lanes[lane as usize];
        (state.waits, state.before, state.after) = (true, before, NIL);
        self.waiting += 1;
    }

    /// Gives `lane` more before it runs dry, if that takes nothing from other lanes. `None` if
    /// other lanes wait, less than `least` is free, or the lane is parked. It is not put on the
    /// waiting list then.
    #[inline]
    pub fn top_up(&mut self, lane: u16) -> Option<u16> {
        let may = self.lanes[lane as usize].size > 0 && self.waiting == 0;
        if may && self.free >= self.least { Some(self.grant(lane)) } else { None }
    }

    /// `lane` returns `credits` of its credits.
    ///
    /// # Panics
    /// If it holds fewer: the caller keeps its own count, and checks what a peer says.
    #[inline]
    pub fn give_back(&mut self, lane: u16, credits: u16) {
        let held = &mut self.lanes[lane as usize].held;
        *held = held.checked_sub(credits).expect("a lane returns what it holds");
        self.free += credits;
    }

    /// Serves the lane that has waited longest, if enough is free. Call it until it returns `None`.
    #[inline]
    pub fn next_grant(&mut self) -> Option<(u16, u16)> {
        let lane = self.first_waiting;
        if lane == NIL || self.free < self.least {
            return None;
        }
        if self.waiting > 1 {
            let share = (self.free / self.waiting).max(self.least);
            let size = &mut self.lanes[lane as usize].size;
            *size = (*size / 2).clamp(self.least, share);
        }
        self.unwait(lane);
        Some((lane, self.grant(lane)))
    }

    /// Takes back everything that `lane` holds, forgets its history and its demand, and returns the
    /// number of credits.
    pub fn park(&mut self, lane: u16) -> u16 {
        self.unwait(lane);
        let held = core::mem::replace(&mut self.lanes[lane as usize], PARKED).held;
        self.free += held;
        held
    }

    /// Credits that `lane` holds.
    #[inline]
    pub fn held(&self, lane: u16) -> u16 {
        self.lanes[lane as usize].held
    }

    /// Whether `lane` is on the waiting list.
    #[inline]
    pub fn waits(&self, lane: u16) -> bool {
        self.lanes[lane as usize].waits
    }

    /// Credits that no lane holds.
    #[inline]
    pub fn free(&self) -> u16 {
        self.free
    }

    /// Lanes on the waiting list.
    #[inline]
    pub fn waiting(&self) -> u16 {
        self.waiting
    }

    /// Counts everything and reports the first error; for tests.
    ///
    /// # Errors
    /// A sentence, if credits were made or lost (D-14). Also if the waiting list lacks a lane, has
    /// one twice, or has one that does not wait.
    pub fn check(&self) -> Result<(), String> {
        let held: u32 = self.lanes.iter().map(|lane| u32::from(lane.held)).sum();
        if held + u32::from(self.free) != u32::from(self.total) {
            let (free, total) = (self.free, self.total);
            return Err(format!("{held} credits are held and {free} free, of {total}"));
        }
        let mut listed = vec![false; self.lanes.len()];
        let (mut lane, mut before, mut length) = (self.first_waiting, NIL, 0);
        while lane != NIL {
            let state = &self.lanes[lane as usize];
            if core::mem::replace(&mut listed[lane as usize], true) || state.before != before {
                return Err(format!("the waiting list is knotted at lane {lane}"));
            }
            length += 1;
            before = lane;
            lane = state.after;
        }
        if (length, before) != (self.waiting, self.last_waiting) {
            return Err(format!("the waiting list has {length} lanes, counted {}", self.waiting));
        }
        for (lane, (state, listed)) in self.lanes.iter().zip(listed).enumerate() {
            if listed != state.waits {
                return Err(format!(
                    "lane {lane}: on the waiting list is {listed}, waiting is not"
                ));
            }
        }
        Ok(())
    }

    /// Moves as much to `lane` as the policy says; the caller has checked that at least `least` is
    /// free.
    #[inline]
    fn grant(&mut self, lane: u16) -> u16 {
        let state = &mut self.lanes[lane as usize];
        let wanted = match self.policy {
            GrantPolicy::All => self.free,
            GrantPolicy::HalfOfFree => self.free / 2,
            GrantPolicy::History => state.size,
        };
        let credits = wanted.clamp(self.least, self.free);
        state.held += credits;
        if !planted("rations-overgrant") {
            self.free -= credits;
        }
        credits
    }

    /// Takes `lane` off the waiting list, if it is on it.
    fn unwait(&mut self, lane: u16) {
        if !self.lanes[lane as usize].waits {
            return;
        }
        let state = &mut self.lanes[lane as usize];
        let (before, mut after) = (state.before, state.after);
        (state.waits, state.before, state.after) = (false, NIL, NIL);
        self.waiting -= 1;
        if planted("credit-starve") && after != NIL {
            after = self.lanes[after as usize].after;
        }
        match self.lanes.get_mut(before as usize) {
            Some(before) => before.after = after,
            None => self.first_waiting = after,
        }
        match self.lanes.get_mut(after as usize) {
            Some(after) => after.before = before,
            None => self.last_waiting = before,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Canary: the checker notices a waiting list that is not the same from both ends.
    #[test]
    fn a_knot_is_noticed() {
        let mut rations = Rations::new(GrantPolicy::All, 8, 1, 4);
        for lane in 0..4 {
            rations.want(lane);
        }
        assert_eq!((rations.waiting, rations.check()), (3, Ok(())));
        rations.lanes[2].before = 3;
        assert!(rations.check().is_err());
    }
}
