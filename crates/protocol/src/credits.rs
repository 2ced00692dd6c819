//! Heuristic credit management: who may write into which part of a shared receive buffer.
//!
//! Source: DAMQ-PD's HCM. Of it we know, from the abstract and Sec. 3.2 and 3.4, that credits are computed in total and
//! granted on demand, first come first served, that none are reserved, that one who finds none goes over to its own
//! queue in host memory instead of waiting, and that a port which is alone obtains everything (D-13 to D-18). The
//! section that gives the heuristic is lost; what follows is our design.
//!
//! A credit is an [`Extent`] of the buffer. A *lane* (one per sender) asks when it runs dry. If something is free and
//! nobody waits, it gets it there and then; else it gets nothing, is put at the end of the waiting list, and sends by
//! the other way meanwhile. When extents come back the lanes are served from the front of the list.
//!
//! How much a lane gets follows from its history:
//!
//! - one chunk at first, and twice as much as before each time that it runs dry: a sender that cannot be kept supplied
//!   is either fast or far away, and few large grants cost less than many small ones;
//! - half as much each time that it is served while others wait, and then no more than an equal part of what is free;
//! - one chunk again after [`park`](CreditManager::park).
//!
//! The buffer in use thus follows what is in flight, not the number of senders: a parked lane holds nothing.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use core::fmt;

use crate::canary::planted;
use crate::extents::{Extent, ExtentPool};

/// "No lane" or "no extent", at the end of a list.
const NIL: u16 = u16::MAX;

/// Grants the chunks of one pool to lanes, first come first served.
///
/// Lanes are numbered from 0 and need no set-up: a lane that has not asked is an entry in a table. Nothing is allocated
/// after construction. Every operation takes a fixed time, apart from the pass over the pool's bitmap in a grant and
/// from [`park`](Self::park), which visits the extents of one lane.
///
/// After [`consumed`](Self::consumed) and [`park`](Self::park), call [`next_grant`](Self::next_grant) until it returns
/// `None` and tell each lane what it got.
///
/// Methods that take a lane panic if its number is not below the number given to [`new`](Self::new): numbers of lanes
/// come from the owner's tables, never from a peer. Extents may come from a peer and are checked.
pub struct CreditManager {
    pool: ExtentPool,
    max_extents: u16,
    lanes: Box<[Lane]>,
    /// For the first chunk of each granted extent, to whom it is granted. Kept by chunk and not by lane, so that lanes
    /// without credit cost nothing here.
    grants: Box<[Grant]>,
    /// Lanes that wait, in the order in which they asked.
    first_waiting: u16,
    last_waiting: u16,
    waiting: u16,
}

#[derive(Clone, Copy)]
struct Lane {
    /// Chunks that the next grant should have; 0 if the lane has not asked since it was parked.
    size: u16,
    chunks: u16,
    extents: u16,
    /// First chunks of the extent granted first and of the one granted last.
    oldest: u16,
    newest: u16,
    demand: Demand,
    /// Neighbours on the waiting list.
    before: u16,
    after: u16,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Demand {
    /// Has what it asked for.
    Met,
    /// Waits on the list.
    Waits,
    /// Asked while it held as many extents as it may; joins the list when it has returned one.
    AtLimit,
}

#[derive(Clone, Copy)]
struct Grant {
    lane: u16,
    /// 0: no extent begins at this chunk.
    count: u16,
    /// Neighbours among the extents of the lane, in the order in which they were granted.
    before: u16,
    after: u16,
}

const PARKED: Lane = Lane {
    size: 0,
    chunks: 0,
    extents: 0,
    oldest: NIL,
    newest: NIL,
    demand: Demand::Met,
    before: NIL,
    after: NIL,
};

const UNGRANTED: Grant = Grant { lane: NIL, count: 0, before: NIL, after: NIL };

/// An extent was returned that is not granted to the lane that returned it. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotHeld {
    /// The lane that returned it.
    pub lane: u16,
    /// What it returned.
    pub extent: Extent,
}

impl fmt::Display for NotHeld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lane, extent } = self;
        write!(f, "lane {lane} returned {extent}, which it does not hold; distrust its peer")
    }
}

impl core::error::Error for NotHeld {}

impl CreditManager {
    /// A pool of `chunks` chunks for lanes `0..lanes`, each of which may hold `max_extents` extents at a time.
    ///
    /// # Panics
    /// If `chunks` is not in 1 to [`ExtentPool::MAX_CHUNKS`], if `lanes` is above 65,534, or if `max_extents` is 0.
    pub fn new(chunks: u16, lanes: u16, max_extents: u16) -> Self {
        assert!(
            lanes < NIL && max_extents > 0,
            "at most 65,534 lanes, at least one extent for each"
        );
        Self {
            pool: ExtentPool::new(chunks),
            max_extents,
            lanes: vec![PARKED; lanes as usize].into(),
            grants: vec![UNGRANTED; chunks as usize].into(),
            first_waiting: NIL,
            last_waiting: NIL,
            waiting: 0,
        }
    }

    /// `lane` has run dry (or asks for the first time), and wants more credit.
    ///
    /// `None` means that there is none now, or that others came first. The lane is then served by
    /// [`next_grant`](Self::next_grant) when its turn comes; to ask again meanwhile changes nothing.
    #[inline]
    pub fn want(&mut self, lane: u16) -> Option<Extent> {
        let chunks = self.pool.chunks();
        let state = &mut self.lanes[lane as usize];
        if state.demand != Demand::Met {
            return None;
        }
        state.size = (state.size * 2).clamp(1, chunks);
        if state.extents == self.max_extents {
            state.demand = Demand::AtLimit;
            None
        } else if self.waiting > 0 || self.pool.free_chunks() == 0 {
            self.enqueue(lane);
            None
        } else {
            self.grant(lane)
        }
    }

    /// Gives `lane` more credit before it runs dry, as much as it got last, if that takes nothing from anybody.
    ///
    /// `None` if others wait, if nothing is free, if the lane holds as many extents as it may, or if it is parked. It
    /// is not put on the waiting list then.
    #[inline]
    pub fn top_up(&mut self, lane: u16) -> Option<Extent> {
        let state = self.lanes[lane as usize];
        let may = state.size > 0 && state.demand == Demand::Met && state.extents < self.max_extents;
        if may && self.waiting == 0 { self.grant(lane) } else { None }
    }

    /// `lane` has used up `extent`, which may be granted again from now on.
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
        if self.lanes[lane as usize].demand == Demand::AtLimit {
            self.enqueue(lane);
        }
        Ok(())
    }

    /// Serves the lane that has waited longest, if something is free. Call it until it returns `None`.
    #[inline]
    pub fn next_grant(&mut self) -> Option<(u16, Extent)> {
        let lane = self.first_waiting;
        if lane == NIL || self.pool.free_chunks() == 0 {
            return None;
        }
        if self.waiting > 1 {
            let share = (self.pool.free_chunks() / self.waiting).max(1);
            let state = &mut self.lanes[lane as usize];
            state.size = (state.size / 2).clamp(1, share);
        }
        self.dequeue(lane);
        let extent = self.grant(lane)?;
        Some((lane, extent))
    }

    /// Takes everything back that `lane` holds, forgets its history and its demand, and returns the number of chunks.
    ///
    /// Only for a lane whose sender can no longer write there: one that agreed to stop, or that is gone.
    pub fn park(&mut self, lane: u16) -> u16 {
        let chunks = self.lanes[lane as usize].chunks;
        while let Some(extent) = self.oldest(lane) {
            self.take_back(lane, extent);
        }
        if self.lanes[lane as usize].demand == Demand::Waits {
            self.dequeue(lane);
        }
        self.lanes[lane as usize] = PARKED;
        chunks
    }

    /// Of the extents that `lane` holds, the one granted first: the one that an orderly sender fills now.
    #[inline]
    pub fn oldest(&self, lane: u16) -> Option<Extent> {
        let first = self.lanes[lane as usize].oldest;
        let grant = self.grants.get(first as usize)?;
        Some(Extent { first, count: grant.count })
    }

    /// The extents that `lane` holds, in the order in which they were granted.
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
        self.lanes[lane as usize].chunks
    }

    /// Chunks that no lane holds.
    #[inline]
    pub fn free_chunks(&self) -> u16 {
        self.pool.free_chunks()
    }

    /// Lanes on the waiting list.
    #[inline]
    pub fn waiting(&self) -> u16 {
        self.waiting
    }

    /// Walks all lists and says what is wrong with the first one that is; for tests.
    ///
    /// # Errors
    /// A sentence, if a chunk is granted twice, or granted and free, or neither (D-13, D-14), or if the waiting list
    /// lacks a lane, has one twice, or has one that does not wait.
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
            if (chunks, extents) != (state.chunks, state.extents) || extents > self.max_extents {
                return Err(format!("lane {lane} holds {chunks} chunks in {extents} extents"));
            }
        }
        for (chunk, &granted) in granted.iter().enumerate() {
            if granted == self.pool.is_free(chunk as u16) {
                return Err(format!("chunk {chunk}: granted is {granted}, and so is free"));
            }
        }
        self.check_waiting()
    }

    fn check_waiting(&self) -> Result<(), String> {
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
            if listed != (state.demand == Demand::Waits) {
                return Err(format!(
                    "lane {lane}: on the waiting list is {listed}, waiting is not"
                ));
            }
        }
        Ok(())
    }

    /// Moves a run of free chunks to `lane`, at the end of its extents.
    fn grant(&mut self, lane: u16) -> Option<Extent> {
        let state = &mut self.lanes[lane as usize];
        let extent = self.pool.take_up_to(state.size)?;
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
        state.chunks += extent.count;
        state.extents += 1;
        Some(extent)
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
        state.chunks -= extent.count;
        state.extents -= 1;
    }

    /// Puts `lane`, which does not wait, at the end of the waiting list.
    fn enqueue(&mut self, lane: u16) {
        let before = core::mem::replace(&mut self.last_waiting, lane);
        match self.lanes.get_mut(before as usize) {
            Some(before) => before.after = lane,
            None => self.first_waiting = lane,
        }
        let state = &mut self.lanes[lane as usize];
        (state.demand, state.before, state.after) = (Demand::Waits, before, NIL);
        self.waiting += 1;
    }

    /// Takes `lane`, which waits, off the waiting list.
    fn dequeue(&mut self, lane: u16) {
        let state = &mut self.lanes[lane as usize];
        let (before, mut after) = (state.before, state.after);
        (state.demand, state.before, state.after) = (Demand::Met, NIL, NIL);
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
