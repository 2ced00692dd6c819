//! The paths of one link: interfaces that carry the same channel (H-29). Each frame goes by the path with the fewest frames in
//! flight, so that bandwidth adds up in proportion; losses are judged among the frames of one path, so that a path that is
//! slower than another loses nothing by it. A path by which nothing arrives is left out, and tried with one frame from time to time.
//!
//! Spreading makes frames arrive out of order. A receiver that cannot keep an early frame drops it, and a sender that goes back sends
//! all again: for them spreading is all loss, so they get one path at a time.

use super::config::PATHS;
use crate::canary::planted;

/// How long a path is left out at first, in timeouts; it doubles with each failed trial.
const REST_TIMEOUTS: u64 = 8;
/// Longest rest, in ns.
const LONGEST_REST_NS: u64 = 2_000_000_000;

/// How long frames are not spread after the peer dropped an early one, in ns.
const NARROW_NS: u64 = 1_000_000_000;

/// A path, as the device numbers it. To the protocol it is only a name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct PathId(pub u32);

#[derive(Clone, Copy)]
pub(super) struct Path {
    pub id: PathId,
    pub in_flight: u32,
    /// Frames sent so far: the stamp of the next.
    pub stamp: u32,
    /// Latest stamp that is known to have arrived.
    pub arrived: u32,
    /// Trials that failed since something arrived.
    failures: u32,
    /// Not to be used until then, unless all others are out, too.
    rest_until_ns: u64,
    /// The peer was heard by it.
    is_heard: bool,
}

impl Path {
    const fn new(id: PathId) -> Self {
        Path {
            id,
            in_flight: 0,
            stamp: 1,
            arrived: 0,
            failures: 0,
            rest_until_ns: 0,
            is_heard: false,
        }
    }

    /// The frame with this stamp has arrived.
    #[inline]
    pub fn arrive(&mut self, stamp: u32) {
        if stamp.wrapping_sub(self.arrived) as i32 > 0 {
            self.arrived = stamp;
            self.failures = 0;
        }
    }

    /// What was sent by it did not arrive, while time enough passed.
    pub fn fail(&mut self, timeout_ns: u64, now_ns: u64) {
        let rest_ns = (REST_TIMEOUTS * timeout_ns) << self.failures.min(10);
        self.rest_until_ns = now_ns + rest_ns.min(LONGEST_REST_NS);
        self.failures += 1;
    }

    /// Whether it should carry the next frame only if all others should not either.
    #[inline]
    fn is_out(&self, now_ns: u64) -> bool {
        self.failures > 0 && (self.in_flight > 0 || self.rest_until_ns > now_ns)
    }
}

#[derive(Clone, Copy)]
pub(super) struct Paths {
    paths: [Path; PATHS],
    count: u8,
    turn: u8,
    heard: u8,
    /// Some of them are guesses: only one where the peer is heard is kept.
    are_guesses: bool,
    /// Until then one path at a time is used.
    narrow_until_ns: u64,
    /// When a timeout last found all in flight lost.
    timed_out_ns: u64,
}

impl Paths {
    pub fn new(first: PathId) -> Self {
        Paths {
            paths: [Path::new(first); PATHS],
            count: 1,
            turn: 0,
            heard: 0,
            are_guesses: false,
            narrow_until_ns: 0,
            timed_out_ns: 0,
        }
    }

    /// Adds a path unless it is there or there are enough.
    #[inline]
    pub fn add(&mut self, id: PathId) {
        self.index_of(id);
    }

    /// A frame came by this path: what needs no acknowledgement itself best goes back there.
    #[inline]
    pub fn heard_by(&mut self, id: PathId) {
        if let Some(index) = self.index_of(id) {
            self.heard = index;
            self.paths[index as usize].is_heard = true;
        }
    }

    /// Perhaps the peer is there, and not where the other paths lead: the next frame goes there. `false`: the path is there already.
    pub fn guess(&mut self, id: PathId) -> bool {
        if self.paths[..self.count as usize].iter().any(|path| path.id == id) {
            return false;
        }
        self.are_guesses = true;
        if let Some(index) = self.index_of(id) {
            self.turn = (index + self.count - 1) % self.count;
        }
        true
    }

    /// The peer was heard, so guesses are of no use any more. No frame may be in flight.
    pub fn forget_guesses(&mut self) {
        if !core::mem::take(&mut self.are_guesses) {
            return;
        }
        let heard = self.paths[self.heard as usize].id;
        let mut kept = 0;
        for index in 0..self.count as usize {
            if self.paths[index].is_heard {
                self.paths[kept] = self.paths[index];
                kept += 1;
            }
        }
        self.count = kept.max(1) as u8;
        self.turn = 0;
        self.heard = 0;
        self.heard_by(heard);
    }

    /// The path by which the peer was heard last.
    #[inline]
    pub fn back(&self) -> u8 {
        self.heard
    }

    #[inline]
    fn index_of(&mut self, id: PathId) -> Option<u8> {
        let count = self.count as usize;
        if let Some(index) = self.paths[..count].iter().position(|path| path.id == id) {
            return Some(index as u8);
        }
        if count == PATHS {
            // A guess makes room: in turns, as nobody knows which is the worst.
            let guess = self.are_guesses.then(|| {
                self.turn = (self.turn + 1) % self.count;
                (0..self.count)
                    .map(|index| (index + self.turn) % self.count)
                    .find(|&index| !self.paths[index as usize].is_heard)
            });
            let index = guess??;
            self.paths[index as usize] = Path::new(id);
            return Some(index);
        }
        self.paths[count] = Path::new(id);
        self.count += 1;
        Some(count as u8)
    }

    /// Whether there are several.
    pub fn are_several(&self) -> bool {
        self.count > 1
    }

    /// The peer keeps no early frames now: one path at a time for a while.
    pub fn narrow(&mut self, now_ns: u64) {
        self.narrow_until_ns = self.narrow_until_ns.max(now_ns.saturating_add(NARROW_NS));
    }

    /// All in flight counts as lost. Twice in short succession: perhaps the peer keeps too few early frames.
    pub fn timed_out(&mut self, timeout_ns: u64, now_ns: u64) {
        if now_ns.saturating_sub(self.timed_out_ns) < REST_TIMEOUTS * timeout_ns {
            self.narrow(now_ns);
        }
        self.timed_out_ns = now_ns;
    }

    /// One path at a time, for as long as the link lives.
    pub fn narrow_for_good(&mut self) {
        self.narrow_until_ns = u64::MAX;
    }

    #[inline]
    pub fn at(&mut self, index: u8) -> &mut Path {
        &mut self.paths[index as usize % PATHS]
    }

    /// The path for the next frame.
    #[inline]
    pub fn choose(&mut self, now_ns: u64) -> u8 {
        if self.count == 1 {
            return 0;
        }
        if now_ns < self.narrow_until_ns && !planted("reliable-always-spread") {
            return self.most_reliable(now_ns);
        }
        self.turn = (self.turn + 1) % self.count;
        (0..self.count)
            .map(|index| (index + self.turn) % self.count)
            .min_by_key(|&index| {
                let path = &self.paths[index as usize];
                (path.is_out(now_ns), path.in_flight)
            })
            .unwrap_or(0)
    }

    /// The first of the paths that failed least since something arrived by them.
    #[cold]
    fn most_reliable(&self, now_ns: u64) -> u8 {
        let failed = |index: &u8| {
            let path = &self.paths[*index as usize];
            (path.is_out(now_ns), path.failures)
        };
        (0..self.count).min_by_key(failed).unwrap_or(0)
    }
}
