//! The paths of one link: interfaces that carry the same channel (H-29). Each frame goes by the
//! path with the fewest frames in flight, so that bandwidths add up in proportion. Losses are
//! judged among the frames of one path, so that a slow path causes no false losses. A path by which
//! nothing arrives is left out, and tried with one frame from time to time.
//!
//! A path on which the peer appears by itself is not proved: an attacker may forward the peer's
//! frames from another address. Until a frame that went by this path alone is acknowledged, it gets
//! one Data frame at a time. It gets no more bytes of other frames than came from it (after RFC
//! 9000, 8.1 and 9.3).
//!
//! Spreading makes frames arrive out of order. A receiver without room for early frames drops them,
//! and a go-back sender then sends all again. Such links use one path at a time.

use super::rtt::RoundTrip;
use crate::canary::planted;
use crate::reliable::{PATHS, PathId};

/// How long a path is left out at first, in timeouts; it doubles with each failed trial.
const REST_TIMEOUTS: u64 = 8;
/// Longest rest, in ns.
const LONGEST_REST_NS: u64 = 2_000_000_000;

/// How long frames are not spread after the peer dropped an early one, in ns.
const NARROW_NS: u64 = 1_000_000_000;

#[derive(Clone, Copy)]
struct Path {
    id: PathId,
    in_flight: u32,
    /// Frames sent so far: the stamp of the next.
    stamp: u32,
    /// Latest stamp that is known to have arrived.
    arrived: u32,
    /// Failed trials since something last arrived.
    failures: u32,
    /// Not to be used until then, unless all others are out, too.
    rest_until_ns: u64,
    /// The peer was heard by this path.
    is_heard: bool,
    /// Cookie for Opens by this path, from the peer's Challenge; 0: none yet.
    cookie: u64,
    /// Bytes of unacknowledged frame kinds that may still go by it; `None` once the peer has shown
    /// that it receives there.
    unproved_bytes: Option<u32>,
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
            cookie: 0,
            unproved_bytes: None,
        }
    }

    /// Frames sent by it were not acknowledged in time: leaves the path out for a while.
    fn fail(&mut self, timeout_ns: u64, now_ns: u64) {
        let rest_ns = (REST_TIMEOUTS * timeout_ns) << self.failures.min(10);
        self.rest_until_ns = now_ns + rest_ns.min(LONGEST_REST_NS);
        self.failures += 1;
    }

    /// Whether a frame of `bytes` that is not acknowledged may go by it.
    #[inline]
    fn may_have(&self, bytes: usize) -> bool {
        self.unproved_bytes.is_none_or(|left| left as usize >= bytes)
    }

    /// Whether it should carry the next frame only if all other paths are out, too.
    #[inline]
    fn is_out(&self, now_ns: u64) -> bool {
        (self.failures > 0 || self.unproved_bytes.is_some())
            && (self.in_flight > 0 || self.rest_until_ns > now_ns)
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Paths {
    paths: [Path; PATHS],
    count: u8,
    turn: u8,
    heard: u8,
    /// The path whose Challenge came last; the next Open goes there.
    challenged: Option<u8>,
    /// Some paths are guesses. Once the peer is heard, only the paths by which it was heard are
    /// kept.
    are_guesses: bool,
    /// Until then one path at a time is used.
    narrow_until_ns: u64,
    /// When a timeout last declared all frames in flight lost.
    timed_out_ns: u64,
}

impl Paths {
    /// `is_narrow`: one path at a time, for as long as the link lives.
    pub fn new(first: PathId, is_narrow: bool) -> Self {
        Paths {
            paths: [Path::new(first); PATHS],
            count: 1,
            turn: 0,
            heard: 0,
            challenged: None,
            are_guesses: false,
            narrow_until_ns: if is_narrow { u64::MAX } else { 0 },
            timed_out_ns: 0,
        }
    }

    /// Adds a path unless it is known or the table is full.
    #[inline]
    pub fn add(&mut self, id: PathId) {
        self.index_of(id);
    }

    /// A path by which the peer has shown that it receives: the last one heard, if that is proved.
    pub fn proved_id(&self) -> PathId {
        self.paths[self.back(usize::MAX) as usize].id
    }

    /// Whether the link has this path.
    pub fn contains(&self, id: PathId) -> bool {
        self.paths[..self.count as usize].iter().any(|path| path.id == id)
    }

    /// The numbers of all paths.
    pub fn ids(&self) -> impl Iterator<Item = PathId> {
        self.paths[..self.count as usize].iter().map(|path| path.id)
    }

    /// The peer was heard by this path, and has shown that it receives there.
    pub fn proved_by(&mut self, id: PathId) {
        if let Some(index) = self.index_of(id) {
            self.heard = index;
            self.paths[index as usize].is_heard = true;
            self.paths[index as usize].unproved_bytes = None;
        }
    }

    /// A frame of `bytes` came by this path. Frames that are not acknowledged preferably go back
    /// there.
    #[inline]
    pub fn heard_by(&mut self, id: PathId, bytes: usize) {
        let heard = &mut self.paths[self.heard as usize];
        if heard.id == id && heard.is_heard && heard.unproved_bytes.is_none() {
            return;
        }
        self.look_up(id, bytes);
    }

    fn look_up(&mut self, id: PathId, bytes: usize) {
        let is_new = !self.contains(id);
        let Some(index) = self.index_of(id) else { return };
        let path = &mut self.paths[index as usize];
        if is_new && !planted("reliable-believe-new-path") {
            path.unproved_bytes = Some(0);
        }
        path.is_heard = true;
        if let Some(left) = &mut path.unproved_bytes {
            *left = left.saturating_add(bytes as u32);
        }
        self.heard = index;
    }

    /// Stores the cookie for Opens by this path, and sends the next Open there. `None`: the cookie
    /// is not new, or the path is unknown. Otherwise: whether it is the first cookie of this path.
    pub fn challenge(&mut self, id: PathId, cookie: u64) -> Option<bool> {
        let count = self.count as usize;
        let index = self.paths[..count].iter().position(|path| path.id == id)?;
        let before = core::mem::replace(&mut self.paths[index].cookie, cookie);
        if before == cookie {
            return None;
        }
        self.challenged = Some(index as u8);
        Some(before == 0)
    }

    /// The path for the next Open.
    pub fn ask_by(&mut self, now_ns: u64) -> u8 {
        self.challenged.take().unwrap_or_else(|| self.choose(now_ns))
    }

    /// Whether both have a path in common.
    pub fn share(&self, others: &Paths) -> bool {
        self.ids().any(|id| others.contains(id))
    }

    /// Charges a frame of `bytes` that is not acknowledged to this path.
    #[inline]
    pub fn spend(&mut self, index: u8, bytes: usize) {
        if let Some(left) = &mut self.at_mut(index).unproved_bytes {
            *left = left.saturating_sub(bytes as u32);
        }
    }

    /// Adds a path where the peer may be, and sends the next frame there. `false`: the path is
    /// known already.
    pub fn guess(&mut self, id: PathId) -> bool {
        if self.contains(id) {
            return false;
        }
        self.are_guesses = true;
        if let Some(index) = self.index_of(id) {
            self.turn = (index + self.count - 1) % self.count;
        }
        true
    }

    /// Removes a path that does not lead to the peer. `false`: it is the only path. No frame may be
    /// in flight.
    pub fn forget(&mut self, id: PathId) -> bool {
        let count = self.count as usize;
        let Some(index) = self.paths[..count].iter().position(|path| path.id == id) else {
            return true;
        };
        if count == 1 {
            return false;
        }
        self.paths.copy_within(index + 1..count, index);
        self.count -= 1;
        (self.turn, self.heard, self.challenged) = (0, 0, None);
        true
    }

    /// If some paths are guesses, keeps only those by which the peer was heard and that are proved.
    /// No frame may be in flight.
    pub fn forget_guesses(&mut self) {
        if !core::mem::take(&mut self.are_guesses) {
            return;
        }
        let heard = self.proved_id();
        let mut kept = 0;
        for index in 0..self.count as usize {
            if self.paths[index].is_heard && self.paths[index].unproved_bytes.is_none() {
                self.paths[kept] = self.paths[index];
                kept += 1;
            }
        }
        self.count = kept.max(1) as u8;
        self.turn = 0;
        self.heard = 0;
        self.proved_by(heard);
    }

    /// The path for a frame of `bytes` that is not acknowledged: where the peer was last heard, if
    /// that path may have as many bytes.
    #[inline]
    pub fn back(&self, bytes: usize) -> u8 {
        if self.paths[self.heard as usize].may_have(bytes) { self.heard } else { self.proved() }
    }

    /// The first proved path. There is always one: the path by which the link was made.
    #[cold]
    fn proved(&self) -> u8 {
        let is_proved = |index: &u8| self.paths[*index as usize].unproved_bytes.is_none();
        (0..self.count).find(is_proved).unwrap_or(0)
    }

    #[inline]
    fn index_of(&mut self, id: PathId) -> Option<u8> {
        let count = self.count as usize;
        if let Some(index) = self.paths[..count].iter().position(|path| path.id == id) {
            return Some(index as u8);
        }
        if count == PATHS {
            // A guess makes room. Guesses are evicted in turn, because none is known to be worse.
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

    /// Whether the link has more than one path.
    pub fn are_several(&self) -> bool {
        self.count > 1
    }

    /// The peer keeps no early frames now: one path at a time for 1 s.
    pub fn narrow(&mut self, now_ns: u64) {
        self.narrow_until_ns = self.narrow_until_ns.max(now_ns.saturating_add(NARROW_NS));
    }

    /// All frames in flight count as lost. Twice in short succession: the peer may keep too few
    /// early frames.
    pub fn timed_out(&mut self, timeout_ns: u64, now_ns: u64) {
        if now_ns.saturating_sub(self.timed_out_ns) < REST_TIMEOUTS * timeout_ns {
            self.narrow(now_ns);
        }
        self.timed_out_ns = now_ns;
    }

    #[inline]
    fn at(&self, index: u8) -> &Path {
        &self.paths[index as usize % PATHS]
    }

    #[inline]
    fn at_mut(&mut self, index: u8) -> &mut Path {
        &mut self.paths[index as usize % PATHS]
    }

    /// The device's number of a path.
    #[inline]
    pub fn id(&self, index: u8) -> PathId {
        self.at(index).id
    }

    /// The cookie for Opens by a path; 0: none yet.
    pub fn cookie(&self, index: u8) -> u64 {
        self.at(index).cookie
    }

    /// A frame goes by this path; returns its stamp.
    #[inline]
    pub fn send(&mut self, index: u8) -> u32 {
        let path = self.at_mut(index);
        let stamp = path.stamp;
        path.stamp = stamp.wrapping_add(1);
        path.in_flight += 1;
        stamp
    }

    /// A frame that went by this path is acknowledged or declared lost.
    #[inline]
    pub fn leave_flight(&mut self, index: u8) {
        self.at_mut(index).in_flight -= 1;
    }

    /// The frame with this stamp has arrived. If the path is not proved, another may have carried
    /// it.
    #[inline]
    pub fn arrived(&mut self, index: u8, stamp: u32) {
        let path = self.at_mut(index);
        let is_believed = path.unproved_bytes.is_none() || planted("reliable-believe-late");
        if is_believed && stamp.wrapping_sub(path.arrived) as i32 > 0 {
            path.arrived = stamp;
            path.failures = 0;
        }
    }

    /// Whether a frame that went by this path alone has arrived.
    #[inline]
    pub fn is_proved(&self, index: u8) -> bool {
        self.at(index).unproved_bytes.is_none()
    }

    /// A frame that went by this path and no other has arrived.
    #[inline]
    pub fn prove(&mut self, index: u8) {
        self.at_mut(index).unproved_bytes = None;
    }

    /// A frame that went last by this path has arrived, perhaps by another one. If the path is not
    /// proved, that counts as a failed trial: else an attacker who delays acknowledgements would
    /// draw one frame each round trip.
    #[inline]
    pub(super) fn proves_nothing(&mut self, index: u8, round_trip: &RoundTrip, now_ns: u64) {
        if !self.is_proved(index) && !planted("reliable-believe-late") {
            self.at_mut(index).fail(round_trip.patience_ns(), now_ns);
        }
    }

    /// How many frames later than the one with this stamp the newest arrived one was sent; negative
    /// if it was sent earlier.
    #[inline]
    pub fn sent_behind(&self, index: u8, stamp: u32) -> i32 {
        self.at(index).arrived.wrapping_sub(stamp) as i32
    }

    /// Frames sent by these paths were not acknowledged in time: leaves the paths out for a while.
    pub fn fail(&mut self, failed: [bool; PATHS], timeout_ns: u64, now_ns: u64) {
        for (path, _) in self.paths.iter_mut().zip(failed).filter(|(_, failed)| *failed) {
            path.fail(timeout_ns, now_ns);
        }
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
                let is_out = path.is_out(now_ns);
                // If all are out, prefer a proved one.
                (is_out, is_out && path.unproved_bytes.is_some(), path.in_flight)
            })
            .unwrap_or(0)
    }

    /// The first of the paths with the fewest failures since something arrived.
    #[cold]
    fn most_reliable(&self, now_ns: u64) -> u8 {
        let failed = |index: &u8| {
            let path = &self.paths[*index as usize];
            (path.is_out(now_ns), path.unproved_bytes.is_some(), path.failures)
        };
        (0..self.count).min_by_key(failed).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::{PATHS, PathId, Paths, RoundTrip};
    use alloc::vec::Vec;

    const MS: u64 = 1_000_000;

    fn paths(count: u64) -> Paths {
        let mut paths = Paths::new(PathId(10), false);
        (11..10 + count).for_each(|id| paths.add(PathId(id)));
        paths
    }

    fn ids(paths: &Paths) -> Vec<u64> {
        paths.ids().map(|id| id.0).collect()
    }

    /// Fails path `index`.
    fn fail(paths: &mut Paths, index: usize, now_ns: u64) {
        let mut failed = [false; PATHS];
        failed[index] = true;
        paths.fail(failed, MS, now_ns);
    }

    /// The paths of the next frames, in ascending order.
    fn next(paths: &mut Paths, now_ns: u64) -> Vec<u8> {
        let mut next: Vec<u8> = (0..PATHS).map(|_| paths.choose(now_ns)).collect();
        next.sort_unstable();
        next.dedup();
        next
    }

    /// Paths take turns, and the one with the fewest frames in flight goes first.
    #[test]
    fn the_idlest_path_is_next() {
        let mut it = paths(3);
        let turns: Vec<u8> = (0..6).map(|_| it.choose(0)).collect();
        assert_eq!(turns, [1, 2, 0, 1, 2, 0]);
        assert_eq!((it.send(0), it.send(0), it.send(1)), (1, 2, 1));
        assert_eq!(next(&mut it, 0), [2]);
        it.send(2);
        assert_eq!(next(&mut it, 0), [1, 2]);
        it.leave_flight(0);
        it.leave_flight(0);
        assert_eq!(next(&mut it, 0), [0]);
        assert_eq!(next(&mut paths(1), 0), [0]);
        assert!(it.are_several() && !paths(1).are_several());
    }

    /// A path that failed rests for eight timeouts, then for twice as long each time, and for two
    /// seconds at most. After its rest it carries one frame; an arrival ends all this.
    #[test]
    fn a_failed_path_rests() {
        let mut it = paths(2);
        let mut now_ns = 100;
        for rest_ms in [8, 16, 32, 64, 128, 256, 512, 1024, 2000, 2000, 2000, 2000] {
            fail(&mut it, 0, now_ns);
            assert_eq!(next(&mut it, now_ns + rest_ms * MS - 1), [1], "{rest_ms} ms");
            now_ns += rest_ms * MS;
            assert_eq!(next(&mut it, now_ns), [0, 1], "{rest_ms} ms");
        }
        let stamp = it.send(0);
        assert_eq!(next(&mut it, now_ns), [1]);
        it.leave_flight(0);
        it.arrived(0, stamp);
        fail(&mut it, 0, now_ns);
        assert_eq!(next(&mut it, now_ns + 8 * MS), [0, 1], "the count began anew");
        // An older arrival is no progress.
        it.arrived(0, stamp);
        fail(&mut it, 0, now_ns);
        assert_eq!(next(&mut it, now_ns + 8 * MS), [1]);
        assert_eq!((it.sent_behind(0, stamp), it.sent_behind(0, stamp + 3)), (0, -3));
        // If all are out, the idlest goes on.
        fail(&mut it, 1, now_ns);
        it.send(1);
        assert_eq!(next(&mut it, now_ns), [0]);
    }

    /// For a second after a report that nothing is kept, or after two timeouts in short succession,
    /// one path is used: the one with the fewest failures.
    #[test]
    fn spreading_pauses() {
        const SECOND_NS: u64 = 1_000 * MS;
        let mut it = paths(3);
        it.narrow(5);
        assert_eq!(next(&mut it, 4 + SECOND_NS), [0]);
        assert_eq!(next(&mut it, 5 + SECOND_NS), [0, 1, 2]);
        let now_ns = 10 * SECOND_NS;
        it.timed_out(MS, now_ns);
        assert_eq!(next(&mut it, now_ns), [0, 1, 2]);
        it.timed_out(MS, now_ns + 8 * MS);
        assert_eq!(next(&mut it, now_ns + 8 * MS), [0, 1, 2]);
        let now_ns = now_ns + 16 * MS - 1;
        it.timed_out(MS, now_ns);
        assert_eq!(next(&mut it, now_ns), [0]);
        fail(&mut it, 0, now_ns);
        assert_eq!(next(&mut it, now_ns), [1]);
        it.heard_by(PathId(13), 1);
        fail(&mut it, 1, now_ns);
        fail(&mut it, 2, now_ns);
        assert_eq!(next(&mut it, now_ns + 20 * MS), [0], "as few failures as 1, and proved");
        let mut narrow = Paths::new(PathId(10), true);
        narrow.add(PathId(11));
        assert_eq!(next(&mut narrow, u64::MAX - 1), [0]);
    }

    /// A place where the peer appears gets no more bytes than came from it, and one frame of data
    /// at a time. That ends when a frame that went there alone has arrived. A known path stays as
    /// it is.
    #[test]
    fn a_new_place_gets_what_it_gave() {
        let mut it = paths(2);
        it.heard_by(PathId(11), 5);
        assert_eq!((it.back(9_000), it.proved_id()), (1, PathId(11)));
        it.heard_by(PathId(12), 100);
        assert_eq!((it.back(100), it.back(101), it.proved_id()), (2, 0, PathId(10)));
        it.spend(2, 60);
        assert_eq!((it.back(40), it.back(41)), (2, 0));
        it.heard_by(PathId(12), 50);
        assert_eq!((it.back(90), it.back(91)), (2, 0));
        it.spend(2, 91);
        assert_eq!((it.back(0), it.back(1)), (2, 0));
        assert_eq!(next(&mut it, 0), [0, 1, 2]);
        it.send(2);
        for index in [0, 0, 1, 1] {
            it.send(index);
        }
        assert_eq!(next(&mut it, 0), [0, 1], "one frame at a time");
        it.prove(2);
        assert_eq!((it.back(9_000), next(&mut it, 0)), (2, [2].into()));
        it.heard_by(PathId(10), 1);
        assert_eq!(it.back(9_000), 0);
        it.heard_by(PathId(13), 1);
        it.heard_by(PathId(14), 1);
        assert_eq!((ids(&it), it.back(0)), ([10, 11, 12, 13].into(), 3), "the table is full");
        it.proved_by(PathId(13));
        assert_eq!(it.back(9_000), 3);
        let mut it = paths(1);
        it.heard_by(PathId(11), 100);
        it.add(PathId(12));
        it.forget(PathId(10));
        assert_eq!((ids(&it), it.back(100), it.back(101)), ([11, 12].into(), 0, 1));
    }

    /// A path that is not proved rests longer after each frame that another may have carried.
    #[test]
    fn an_arrival_by_whichever_path_proves_nothing() {
        let mut round_trip = RoundTrip::new([1, 1 << 40], 1);
        round_trip.sample(MS / 3, 1);
        let mut it = paths(1);
        it.heard_by(PathId(11), 1);
        let mut now_ns = 100;
        for rest_ms in [8, 16, 32] {
            assert!(!it.is_proved(1));
            let stamp = it.send(1);
            it.leave_flight(1);
            it.proves_nothing(1, &round_trip, now_ns);
            it.arrived(1, stamp);
            assert_eq!(it.sent_behind(1, stamp), -(stamp as i32));
            let rest_ns = rest_ms * round_trip.patience_ns();
            assert_eq!(next(&mut it, now_ns + rest_ns - 1), [0], "{rest_ms}");
            now_ns += rest_ns;
            assert_eq!(next(&mut it, now_ns), [0, 1], "{rest_ms}");
        }
        it.prove(1);
        let stamp = it.send(1);
        it.leave_flight(1);
        it.proves_nothing(1, &round_trip, now_ns);
        assert_eq!(next(&mut it, now_ns), [0, 1]);
        it.arrived(1, stamp);
        assert!(it.is_proved(1) && it.sent_behind(1, stamp) == 0);
    }

    /// A guess is asked next. When the table is full, a guess makes room for the next one, but no
    /// place does where the peer was heard. Once the peer is known, only the places are kept that
    /// it has proved.
    #[test]
    fn guesses_make_room() {
        let mut it = paths(1);
        for (index, id) in [(1, 11), (2, 12), (3, 13)] {
            assert!(it.guess(PathId(id)) && !it.guess(PathId(id)));
            assert_eq!(it.choose(0), index);
        }
        it.heard_by(PathId(10), 1);
        it.heard_by(PathId(12), 1);
        for id in 14..24 {
            assert!(it.guess(PathId(id)));
            let index = it.choose(0);
            assert_eq!((it.id(index), ids(&it).len()), (PathId(id), 4));
            assert!(it.contains(PathId(10)) && it.contains(PathId(12)));
        }
        it.heard_by(PathId(23), 1);
        it.forget_guesses();
        assert_eq!((ids(&it), it.proved_id()), ([10, 12, 23].into(), PathId(23)));
        assert!(it.guess(PathId(30)));
        it.heard_by(PathId(40), 1);
        it.forget_guesses();
        assert_eq!(ids(&it), [10, 12, 23], "it was heard at 40 and is not proved there");
        let mut full = paths(1);
        assert!((11..14).all(|id| full.guess(PathId(id))));
        (100..200).for_each(|id| full.heard_by(PathId(id), 1));
        assert_eq!(ids(&full), [101, 102, 103, 100], "the first to be heard");
        let mut sure = paths(3);
        sure.heard_by(PathId(11), 1);
        sure.forget_guesses();
        assert_eq!(ids(&sure), [10, 11, 12]);
    }

    /// A path that leads elsewhere is removed, unless it is the only one. Two links share a path if
    /// any of theirs is the same.
    #[test]
    fn a_wrong_path_is_removed() {
        let mut it = paths(3);
        assert!(it.share(&paths(1)) && it.forget(PathId(99)));
        assert!(it.forget(PathId(10)));
        assert_eq!(ids(&it), [11, 12]);
        assert!(!it.share(&paths(1)) && it.share(&paths(2)));
        assert!(it.forget(PathId(12)) && !it.forget(PathId(11)));
        assert_eq!((ids(&it), it.back(9), it.choose(0)), ([11].into(), 0, 0));
    }

    /// A new cookie makes its path the next one to ask by, once.
    #[test]
    fn the_challenged_path_is_asked_next() {
        let mut it = paths(3);
        assert_eq!((it.cookie(2), it.challenge(PathId(99), 5)), (0, None));
        assert_eq!(it.challenge(PathId(12), 5), Some(true));
        assert_eq!(it.challenge(PathId(12), 5), None);
        assert_eq!(it.challenge(PathId(12), 6), Some(false));
        assert_eq!((it.cookie(0), it.cookie(1), it.cookie(2)), (0, 0, 6));
        assert_eq!((it.ask_by(0), it.ask_by(0)), (2, 1));
    }
}
