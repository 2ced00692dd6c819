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
        let count = match self.recovery {
            // Go back once for each gap: a peer that keeps early frames may report it often. A
            // timeout covers the rest.
            Recovery::GoBack if is_lose && self.went_back != Some(flight.oldest) => {
                self.went_back = Some(flight.oldest);
                flight.lose(|sent| {
                    paths.leave_flight(sent.path);
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
                let patience_ns = round_trip.patience_ns();
                let may_be_dead = paths.are_several();
                let mut dead = [false; PATHS];
                let count = flight.lose(|sent| {
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
                });
                paths.fail(dead, patience_ns, now_ns);
                count
            }
        };
        if count == 0 {
            return None;
        }
        self.repaired_ns = now_ns;
        self.has_resent = true;
        sent_at_ns
    }
}
