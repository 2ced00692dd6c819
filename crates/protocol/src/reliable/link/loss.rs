//! Which frames in flight are lost, by what the peer reports (H-14).

use bellwire_wire::frame::header::{FLAG_LOSE, FrameHeader};
use bellwire_wire::frame::section::RECEIVED_FIXED_BYTES;

use super::flight::Flight;
use super::paths::Paths;
use super::rtt::RoundTrip;
use crate::reliable::{PATHS, Recovery};

/// Largest number of later frames of a path that must have arrived before one counts as lost.
const MOST_REORDERED: u32 = 64;

pub(super) struct LossDetection {
    recovery: Recovery,
    /// Later frames of the same path that must have arrived before a frame counts as lost.
    reordered: u32,
    /// Repetitions that the peer has reported.
    repetitions: u32,
    /// Frames were retransmitted since the peer last reported a repetition.
    has_resent: bool,
    /// When frames were last declared lost.
    repaired_ns: u64,
    /// The gap that caused the last go-back, by the oldest unacknowledged number then.
    went_back: Option<u32>,
}

impl LossDetection {
    pub fn new(recovery: Recovery) -> Self {
        LossDetection {
            recovery,
            reordered: 1,
            repetitions: 0,
            has_resent: false,
            repaired_ns: 0,
            went_back: None,
        }
    }

    /// The peer reports so many repetitions.
    pub fn repeated(&mut self, repetitions: u32) {
        if repetitions == self.repetitions {
            return;
        }
        self.repetitions = repetitions;
        // The retransmitted frame had not been lost: the path reorders. Wait for more later frames
        // before the next gap counts as loss.
        if core::mem::take(&mut self.has_resent) {
            self.reordered = (self.reordered * 2).min(MOST_REORDERED);
        }
    }

    /// All frames in flight count as lost.
    pub fn timed_out(&mut self, now_ns: u64) {
        self.repaired_ns = now_ns;
    }

    /// Whether the round trip of a frame says something about the path. Frames sent before a loss
    /// was noticed may have waited for the repair.
    #[inline]
    pub fn is_telling(&self, sent_at_ns: u64) -> bool {
        sent_at_ns >= self.repaired_ns
    }

    /// Declares missing frames lost, after a frame with this header and selective acknowledgement.
    /// Returns when the newest of them was sent.
    #[cold]
    pub fn find(
        &mut self,
        header: &FrameHeader,
        received: Option<&[u8]>,
        flight: &mut Flight,
        paths: &mut Paths,
        round_trip: &RoundTrip,
        now_ns: u64,
    ) -> Option<u64> {
        let is_lose = header.flags & FLAG_LOSE != 0;
        let empty = received.is_none_or(|received| received.len() <= RECEIVED_FIXED_BYTES);
        if is_lose && empty {
            paths.narrow(now_ns);
        }
        let mut sent_at_ns = None;
        let patience_ns = round_trip.patience_ns();
        let mut dead = [false; PATHS];
        let count = match self.recovery {
            // Go back once for each gap: a peer that keeps early frames may report it often. A
            // timeout covers the rest.
            Recovery::GoBack if is_lose && self.went_back != Some(flight.oldest) => {
                self.went_back = Some(flight.oldest);
                flight.lose(|sent| {
                    paths.leave_flight(sent.path);
                    // The gap says nothing of a proved path. For another it was a failed trial.
                    dead[sent.path as usize] |= !paths.is_proved(sent.path);
                    sent_at_ns = Some(sent.sent_at_ns);
                    true
                })
            }
            Recovery::GoBack => 0,
            Recovery::Selective => {
                // Either the peer misses the oldest and had no room for a later one, or the last
                // frame of all was lost.
                let stuck = is_lose && empty && header.acknowledged == flight.oldest;
                let round_trip_ns = round_trip.smooth_ns * 2;
                let mut is_first = true;
                // A dead path gives no evidence about itself. Progress on other paths does (H-29).
                let may_be_dead = paths.are_several();
                flight.lose(|sent| {
                    let first = core::mem::take(&mut is_first);
                    let behind = paths.sent_behind(sent.path, sent.stamp);
                    let age_ns = now_ns.saturating_sub(sent.sent_at_ns);
                    let is_stranded = may_be_dead && age_ns > patience_ns;
                    dead[sent.path as usize] |= is_stranded && behind < 0;
                    let is_lost = behind >= self.reordered as i32
                        || is_stranded
                        || stuck && first && age_ns > round_trip_ns;
                    if is_lost {
                        paths.leave_flight(sent.path);
                        sent_at_ns = Some(sent_at_ns.unwrap_or(0).max(sent.sent_at_ns));
                    }
                    is_lost
                })
            }
        };
        paths.fail(dead, patience_ns, now_ns);
        if count == 0 {
            return None;
        }
        self.repaired_ns = now_ns;
        self.has_resent = true;
        sent_at_ns
    }
}

#[cfg(test)]
mod tests {
    use super::super::flight::{Flight, Sent, SentState};
    use super::super::stream::{Piece, STREAMS};
    use super::{FLAG_LOSE, FrameHeader, LossDetection, Paths, Recovery, RoundTrip};
    use crate::reliable::PathId;
    use alloc::vec::Vec;
    use bellwire_wire::frame::header::FrameKind;

    /// A selective acknowledgement that reports a frame, and one that reports none.
    const SOME: Option<&[u8]> = Some(&[0, 0, 0, 0, 1]);
    const EMPTY: Option<&[u8]> = Some(&[0, 0, 0, 0]);

    struct Case {
        loss: LossDetection,
        flight: Flight,
        paths: Paths,
        round_trip: RoundTrip,
    }

    /// Frames in flight from number 50 on, the n-th sent at time n by the path that is given.
    fn case(recovery: Recovery, by: &[u8]) -> Case {
        let mut paths = Paths::new(PathId(1), false);
        paths.add(PathId(2));
        if by.iter().all(|&path| path == 0) {
            paths.forget(PathId(2));
        }
        let mut flight = Flight::new(50);
        for (sent_at_ns, &path) in (0..).zip(by) {
            let (stamp, state) = (paths.send(path), SentState::InFlight);
            let pieces = [Piece::default(); STREAMS];
            flight.push(Sent { sent_at_ns, stamp, path, state, attempts: 1, pieces });
        }
        let mut round_trip = RoundTrip::new([1, 1 << 40], 1);
        round_trip.sample(1_000, 1);
        Case { loss: LossDetection::new(recovery), flight, paths, round_trip }
    }

    impl Case {
        /// Takes in a report; returns what `find` returns.
        fn find(&mut self, flags: u8, received: Option<&[u8]>, now_ns: u64) -> Option<u64> {
            let header = FrameHeader {
                flags,
                acknowledged: 50,
                ..FrameHeader::new(FrameKind::Acknowledge, 0, 0, 1)
            };
            self.find_with(&header, received, now_ns)
        }

        fn find_with(
            &mut self,
            header: &FrameHeader,
            received: Option<&[u8]>,
            now_ns: u64,
        ) -> Option<u64> {
            let Case { loss, flight, paths, round_trip } = self;
            loss.find(header, received, flight, paths, round_trip, now_ns)
        }

        /// The frames that count as lost, by their place behind the oldest.
        fn lost(&self) -> Vec<usize> {
            let is_lost = |index: &usize| self.flight.at(*index).unwrap().state == SentState::Lost;
            (0..self.flight.len()).filter(is_lost).collect()
        }

        /// The frame at this place has arrived.
        fn arrived(&mut self, index: usize) {
            let sent = self.flight.received(index).unwrap();
            self.paths.leave_flight(sent.path);
            self.paths.arrived(sent.path, sent.stamp);
        }
    }

    /// A frame is lost when one that went later by the same path has arrived. What went by another
    /// path says nothing.
    #[test]
    fn a_later_arrival_tells_of_a_loss() {
        let mut it = case(Recovery::Selective, &[0, 0, 0, 0, 0]);
        assert_eq!((it.find(0, SOME, 10), it.lost()), (None, [].into()));
        it.arrived(3);
        assert_eq!((it.find(0, SOME, 10), it.lost()), (Some(2), [0, 1, 2].into()));
        assert_eq!(it.flight.in_flight, 1);
        let mut it = case(Recovery::Selective, &[0, 1, 0, 1, 0]);
        it.arrived(3);
        assert_eq!((it.find(0, SOME, 10), it.lost()), (Some(1), [1].into()));
    }

    /// Each repetition after a retransmission doubles the number of later frames that must have
    /// arrived, up to 64. Another count without a retransmission changes nothing.
    #[test]
    fn repetitions_tell_of_reordering() {
        let mut it = case(Recovery::Selective, &[0; 70]);
        it.loss.repeated(1);
        it.arrived(69);
        for (repetitions, reordered) in (2..).zip([1, 2, 4, 8, 16, 32, 64, 64]) {
            // All frames but the last count as in flight again.
            while let Some(index) = it.flight.first_lost() {
                let stamp = it.flight.at(index).unwrap().stamp;
                it.flight.resend(index, 0, 0, stamp);
                it.paths.send(0);
            }
            it.find(0, SOME, 10);
            assert_eq!(it.lost(), (0..70 - reordered).collect::<Vec<_>>(), "{reordered}");
            it.loss.repeated(repetitions);
            it.loss.repeated(repetitions);
            it.loss.repeated(repetitions + 100);
        }
    }

    /// A peer that reports a gap and keeps nothing misses the oldest frame: it is lost once it is
    /// older than two round trips. Nothing else is.
    #[test]
    fn the_oldest_frame_is_lost_when_nothing_is_kept() {
        for received in [None, EMPTY] {
            let mut it = case(Recovery::Selective, &[0, 0, 0]);
            assert_eq!(it.find(FLAG_LOSE, received, 2_000), None);
            assert_eq!(it.find(0, received, 2_001), None);
            assert_eq!(it.find(FLAG_LOSE, SOME, 2_001), None);
            let newer = FrameHeader {
                flags: FLAG_LOSE,
                acknowledged: 51,
                ..FrameHeader::new(FrameKind::Data, 0, 0, 1)
            };
            assert_eq!(it.find_with(&newer, received, 2_001), None);
            assert_eq!(it.find(FLAG_LOSE, received, 2_001), Some(0));
            assert_eq!(it.lost(), [0]);
        }
    }

    /// A report that nothing is kept makes the sender use one path for a while.
    #[test]
    fn a_peer_that_keeps_nothing_gets_one_path() {
        for (flags, received, spreads) in [
            (FLAG_LOSE, None, false),
            (FLAG_LOSE, EMPTY, false),
            (FLAG_LOSE, SOME, true),
            (0, EMPTY, true),
        ] {
            let mut it = case(Recovery::Selective, &[0, 1]);
            it.find(flags, received, 10);
            let first = it.paths.choose(20);
            assert_eq!(it.paths.choose(20) != first, spreads, "{flags} {received:?}");
        }
    }

    /// With several paths, a frame is lost when it is older than the timeout. Its path fails if
    /// nothing newer came by it.
    #[test]
    fn a_dead_path_is_told_by_the_others() {
        // The timeout is 1,000 + 4 * 500.
        let mut it = case(Recovery::Selective, &[0, 1, 0, 1]);
        it.arrived(0);
        assert_eq!((it.find(0, SOME, 3_001), it.lost()), (None, [].into()));
        assert_eq!((it.find(0, SOME, 3_003), it.lost()), (Some(2), [1, 2].into()));
        let mut it = case(Recovery::Selective, &[0, 1, 0, 1]);
        it.arrived(2);
        assert_eq!(it.find(0, SOME, 3_003), Some(1));
        assert_eq!(it.lost(), [0, 1]);
        it.paths.leave_flight(1);
        assert_eq!((it.paths.choose(3_003), it.paths.choose(3_003)), (0, 0), "1 rests");
        // A lone path gives no evidence about itself.
        let mut it = case(Recovery::Selective, &[0, 0]);
        assert_eq!(it.find(0, SOME, 1 << 30), None);
    }

    /// A go-back sender declares all lost once for each gap, and only for a reported one.
    #[test]
    fn going_back_is_once_for_each_gap() {
        let mut it = case(Recovery::GoBack, &[0, 0, 0]);
        assert_eq!((it.find(0, SOME, 10), it.lost()), (None, [].into()));
        assert_eq!((it.find(FLAG_LOSE, None, 10), it.lost()), (Some(2), [0, 1, 2].into()));
        while let Some(index) = it.flight.first_lost() {
            let stamp = it.paths.send(0);
            it.flight.resend(index, 20, 0, stamp);
        }
        assert_eq!((it.find(FLAG_LOSE, None, 30), it.lost()), (None, [].into()));
        it.flight.pop();
        assert_eq!((it.find(FLAG_LOSE, None, 40), it.lost()), (Some(20), [0, 1].into()));
    }

    /// Going back over a frame that went by a path that is not proved was a failed trial: the path
    /// rests. One that is proved goes on.
    #[test]
    fn going_back_makes_an_unproved_path_rest() {
        for is_proved in [false, true] {
            let mut it = case(Recovery::GoBack, &[0]);
            match is_proved {
                true => it.paths.add(PathId(2)),
                false => it.paths.heard_by(PathId(2), 1),
            }
            let stamp = it.paths.send(1);
            it.flight.push(Sent { stamp, path: 1, ..*it.flight.at(0).unwrap() });
            assert_eq!(it.find(FLAG_LOSE, SOME, 10), Some(0));
            let carries: Vec<u8> = (0..2).map(|_| it.paths.choose(10)).collect();
            assert_eq!(carries.contains(&1), is_proved);
        }
    }

    /// Round trips of frames that went before a repair say nothing.
    #[test]
    fn only_later_frames_tell_the_round_trip() {
        let mut it = case(Recovery::Selective, &[0, 0]);
        assert!(it.loss.is_telling(0));
        it.find(0, SOME, 400);
        assert!(it.loss.is_telling(0), "nothing was lost");
        it.arrived(1);
        it.find(0, SOME, 500);
        assert!(!it.loss.is_telling(499) && it.loss.is_telling(500));
        it.loss.timed_out(600);
        assert!(!it.loss.is_telling(599) && it.loss.is_telling(600));
    }
}
