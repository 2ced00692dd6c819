//! Heuristic credit management: who may write into which part of a shared receive buffer.
//!
//! Source: DAMQ-PD's HCM. From the abstract and Sec. 3.2 and 3.4 we know (D-13 to D-18):
//!
//! - credits are computed in total and granted on demand, first come first served; none are
//!   reserved
//! - a sender that finds none uses its own queue in host memory instead of waiting
//! - a port that is alone obtains everything
//!
//! The section that gives the heuristic is lost; what follows is our design.
//!
//! A credit is an [`Extent`] of the buffer. A *lane* (one per sender) asks when it runs dry. If
//! something is free and no lane waits, it gets an extent at once. Otherwise it joins the end of
//! the waiting list, and sends by its own queue meanwhile. When extents come back, lanes are served
//! from the front of the list.
//!
//! [`Rations`] decides which lane is served and how much it gets, under its default policy. This
//! module adds which chunks they are. The model of the DAMQ-PD interface grants words by the same
//! [`Rations`].
//!
//! The used part of the buffer thus follows what is in flight, not the number of senders: a parked
//! lane holds nothing.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec;

use crate::canary::planted;
use crate::extents::{Extent, ExtentPool};
use crate::rations::{GrantPolicy, Rations};

/// "No lane" or "no extent", at the end of a list.
const NIL: u16 = u16::MAX;

/// Grants the chunks of one pool to lanes, first come first served.
///
/// Lanes are numbered from 0 and need no set-up: a lane that has not asked is an entry in a table.
/// Nothing is allocated after construction. Every operation takes a fixed time, with two
/// exceptions: a grant passes over the pool's bitmap, and [`park`](Self::park) visits the extents
/// of one lane.
///
/// After [`consumed`](Self::consumed) and [`park`](Self::park), call
/// [`next_grant`](Self::next_grant) until it returns `None` and tell each lane what it got.
///
/// Methods that take a lane panic if its number is not below the number given to
/// [`new`](Self::new). Lane numbers come from the owner's tables, never from a peer. Extents may
/// come from a peer and are checked.
pub struct CreditManager {
    pool: ExtentPool,
    /// How many chunks each lane holds, and how many the next one gets.
    rations: Rations,
    max_extents: u16,
    lanes: Box<[Lane]>,
    /// For the first chunk of each granted extent: its lane. Kept by chunk and not by lane, so that
    /// lanes without credit cost nothing here.
    grants: Box<[Grant]>,
}

#[derive(Clone, Copy)]
struct Lane {
    extents: u16,
    /// Asked while it held its most extents; joins the waiting list when it has returned one.
    at_limit: bool,
    /// First chunks of its oldest and its newest extent.
    oldest: u16,
    newest: u16,
}

#[derive(Clone, Copy)]
struct Grant {
    lane: u16,
    /// 0: no extent begins at this chunk.
    count: u16,
    /// Neighbours among the extents of the lane, in the order of granting.
    before: u16,
    after: u16,
}

const PARKED: Lane = Lane { extents: 0, at_limit: false, oldest: NIL, newest: NIL };

const UNGRANTED: Grant = Grant { lane: NIL, count: 0, before: NIL, after: NIL };

/// A lane returned an extent that it does not hold. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("lane {lane} returned {extent}, which it does not hold; distrust its peer")]
pub struct NotHeld {
    /// The lane that returned it.
    pub lane: u16,
    /// What it returned.
    pub extent: Extent,
}

impl CreditManager {
    /// A pool of `chunks` chunks for lanes `0..lanes`, each of which may hold `max_extents` extents
    /// at a time.
    ///
    /// # Panics
    /// If `chunks` is not in 1 to [`ExtentPool::MAX_CHUNKS`], if `lanes` is above 65,534, or if
    /// `max_extents` is 0.
    pub fn new(chunks: u16, lanes: u16, max_extents: u16) -> Self {
        assert!(
            lanes < NIL && max_extents > 0,
            "at most 65,534 lanes, at least one extent for each"
        );
        Self {
            pool: ExtentPool::new(chunks),
            rations: Rations::new(GrantPolicy::default(), chunks, 1, lanes),
            max_extents,
            lanes: vec![PARKED; lanes as usize].into(),
            grants: vec![UNGRANTED; chunks as usize].into(),
        }
    }

    /// `lane` has run dry (or asks for the first time), and wants more credit.
    ///
    /// `None` means that there is none now, or that other lanes wait.
    /// [`next_grant`](Self::next_grant) then serves the lane in its turn; asking again meanwhile
    /// changes nothing.
    #[inline]
    pub fn want(&mut self, lane: u16) -> Option<Extent> {
        let state = &mut self.lanes[lane as usize];
        if state.at_limit || self.rations.waits(lane) {
            return None;
        }
        if state.extents == self.max_extents {
            state.at_limit = true;
            self.rations.runs_dry(lane);
            return None;
        }
        let chunks = self.rations.want(lane)?;
        Some(self.grant(lane, chunks))
    }

    /// Gives `lane` more credit before it runs dry, as much as it got last, if that takes nothing
    /// from other lanes.
    ///
    /// `None` if other lanes wait, nothing is free, the lane holds its most extents, or it is
    /// parked. It is not put on the waiting list then.
    #[inline]
    pub fn top_up(&mut self, lane: u16) -> Option<Extent> {
        let state = self.lanes[lane as usize];
        if state.at_limit || state.extents == self.max_extents {
            return None;
        }
        let chunks = self.rations.top_up(lane)?;
        Some(self.grant(lane, chunks))
    }

    /// `lane` has used up `extent`, which may be granted again now.
    ///
    /// # Errors
    /// [`NotHeld`] if the lane does not hold exactly this extent; nothing has changed then.
    #[inline]
    pub fn consumed(&mut self, lane: u16, extent: Extent) -> Result<(), NotHeld> {
        match self.grants.get(extent.first as usize) {
            Some(grant) if grant.lane == lane && grant.count == extent.count => {}
            _ => return Err(NotHeld { lane, extent }),
        }
        self.take_back(lane, extent);
        self.rations.give_back(lane, extent.count);
        if core::mem::take(&mut self.lanes[lane as usize].at_limit) {
            self.rations.wait(lane);
        }
        Ok(())
    }

    /// Serves the lane that has waited longest, if something is free. Call it until it returns
    /// `None`.
    #[inline]
    pub fn next_grant(&mut self) -> Option<(u16, Extent)> {
        let (lane, chunks) = self.rations.next_grant()?;
        Some((lane, self.grant(lane, chunks)))
    }

    /// Takes back everything that `lane` holds, forgets its history and its demand, and returns the
    /// number of chunks.
    ///
    /// Only for a lane whose sender can no longer write there: it has agreed to stop, or is gone.
    pub fn park(&mut self, lane: u16) -> u16 {
        while let Some(extent) = self.oldest(lane) {
            self.take_back(lane, extent);
        }
        self.lanes[lane as usize] = PARKED;
        self.rations.park(lane)
    }

    /// The oldest extent that `lane` holds: an orderly sender fills it first.
    #[inline]
    pub fn oldest(&self, lane: u16) -> Option<Extent> {
        let first = self.lanes[lane as usize].oldest;
        let grant = self.grants.get(first as usize)?;
        Some(Extent { first, count: grant.count })
    }

    /// The extents that `lane` holds, in the order of granting.
    pub fn held(&self, lane: u16) -> impl Iterator<Item = Extent> {
        core::iter::successors(self.oldest(lane), |extent| {
            let first = self.grants[extent.first as usize].after;
            let grant = self.grants.get(first as usize)?;
            Some(Extent { first, count: grant.count })
        })
    }

    /// Chunks that `lane` holds.
    #[inline]
    pub fn granted_to(&self, lane: u16) -> u16 {
        self.rations.held(lane)
    }

    /// Chunks that no lane holds.
    #[inline]
    pub fn free_chunks(&self) -> u16 {
        self.pool.free_chunks()
    }

    /// Lanes on the waiting list.
    #[inline]
    pub fn waiting(&self) -> u16 {
        self.rations.waiting()
    }

    /// Walks all lists and reports the first error; for tests.
    ///
    /// # Errors
    /// A sentence, if a chunk is granted twice, or granted and free, or neither (D-13, D-14). Also
    /// if the waiting list lacks a lane, has one twice, or has one that does not wait.
    pub fn check(&self) -> Result<(), String> {
        let mut granted = vec![false; self.grants.len()];
        for lane in 0..self.lanes.len() as u16 {
            let state = &self.lanes[lane as usize];
            let (mut chunks, mut extents) = (0, 0);
            for extent in self.held(lane) {
                if self.grants[extent.first as usize].lane != lane {
                    return Err(format!("lane {lane} lists {extent}, which is another's"));
                }
                for chunk in extent.chunks() {
                    if core::mem::replace(&mut granted[chunk], true) {
                        return Err(format!("chunk {chunk} is granted twice"));
                    }
                }
                chunks += extent.count;
                extents += 1;
            }
            let held = (self.rations.held(lane), state.extents);
            if (chunks, extents) != held || extents > self.max_extents {
                return Err(format!("lane {lane} holds {chunks} chunks in {extents} extents"));
            }
        }
        for (chunk, &granted) in granted.iter().enumerate() {
            if granted == self.pool.is_free(chunk as u16) {
                return Err(format!("chunk {chunk}: granted is {granted}, and so is free"));
            }
        }
        if self.pool.free_chunks() != self.rations.free() {
            return Err(format!(
                "{} chunks are free, counted {}",
                self.pool.free_chunks(),
                self.rations.free()
            ));
        }
        self.rations.check()
    }

    /// Gives `lane` a run of at most `chunks` free chunks, as its newest extent. `Rations` has
    /// counted `chunks` for it; the ones that are not contiguous go back there.
    fn grant(&mut self, lane: u16, chunks: u16) -> Extent {
        let extent = self.pool.take_up_to(chunks).expect("what is counted as free is free");
        self.rations.give_back(lane, chunks - extent.count);
        let state = &mut self.lanes[lane as usize];
        if planted("credit-double-grant") {
            let _ = self.pool.give(extent);
        }
        self.grants[extent.first as usize] =
            Grant { lane, count: extent.count, before: state.newest, after: NIL };
        match self.grants.get_mut(state.newest as usize) {
            Some(newest) => newest.after = extent.first,
            None => state.oldest = extent.first,
        }
        state.newest = extent.first;
        state.extents += 1;
        extent
    }

    /// Moves an extent that `lane` holds back to the pool.
    fn take_back(&mut self, lane: u16, extent: Extent) {
        self.pool.give(extent).expect("what is granted is not free");
        let grant = core::mem::replace(&mut self.grants[extent.first as usize], UNGRANTED);
        let state = &mut self.lanes[lane as usize];
        match self.grants.get_mut(grant.before as usize) {
            Some(before) => before.after = grant.after,
            None => state.oldest = grant.after,
        }
        match self.grants.get_mut(grant.after as usize) {
            Some(after) => after.before = grant.before,
            None => state.newest = grant.before,
        }
        state.extents -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Canary: the checker notices a wrong count of a lane's extents, and more of them than are
    /// allowed.
    #[test]
    fn wrong_counts_are_noticed() {
        let mut credits = CreditManager::new(8, 2, 2);
        assert!(credits.want(0).is_some());
        assert_eq!(credits.check(), Ok(()));
        credits.lanes[0].extents += 1;
        assert!(credits.check().is_err());
        credits.lanes[0].extents -= 1;
        credits.max_extents = 0;
        assert!(credits.check().is_err());
    }
}
