//! The receiving half of a link: which frame comes next, which came early, and what to acknowledge.

use bellwire_wire::frame::section::{
    RECEIVED_BITMAP_BYTES, RECEIVED_FIXED_BYTES, SECTION_BYTES, SectionKind,
};

use super::early::{EarlyFrames, EarlySet};
use super::parts::Parts;
use super::writer::Writer;
use crate::acknowledge::Acknowledge;
use crate::canary::planted;
use crate::reliable::{Config, Counters, Recovery};

pub(crate) struct Receiver {
    /// Sequence number of the next frame in order.
    pub expected: u32,
    pub early: EarlySet,
    /// The parts received of a frame that comes in parts.
    pub parts: Parts,
    /// When to acknowledge.
    pub acknowledge: Acknowledge,
    /// Frames that came again, and the number that the peer was told last.
    repetitions: u32,
    repetitions_told: u32,
    /// What it was told before the last [`write`](Self::write).
    told_before: u32,
    /// The gap that was reported last, by the number then expected.
    lose_reported: Option<u32>,
}

/// When a frame came, compared with the others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arrival {
    /// It is the expected one.
    InOrder,
    /// It has come before.
    Repeated,
    /// An earlier one is missing.
    Early,
}

impl Receiver {
    pub fn new(config: &Config) -> Self {
        Receiver {
            expected: 0,
            early: EarlySet::new(config.window_frames),
            parts: Parts::new(),
            acknowledge: Acknowledge::new(config.acknowledge_every, config.acknowledge_delay_ns),
            repetitions: 0,
            repetitions_told: 0,
            told_before: 0,
            lose_reported: None,
        }
    }

    /// Compares a frame with those that came.
    #[inline]
    pub fn arrival(&self, sequence: u32) -> Arrival {
        let ahead = sequence.wrapping_sub(self.expected) as i32;
        if ahead == 0 || planted("reliable-skip-sequence") {
            Arrival::InOrder
        } else if ahead < 0 {
            Arrival::Repeated
        } else {
            Arrival::Early
        }
    }

    /// The expected frame is taken.
    #[inline]
    pub fn advance(&mut self, now_ns: u64) {
        self.expected = self.expected.wrapping_add(1);
        self.acknowledge.arrived(now_ns);
    }

    /// A repetition: our acknowledgement was lost, so it goes again at once (H-18).
    pub fn repeated(&mut self) {
        self.repetitions = self.repetitions.wrapping_add(1);
        if !planted("reliable-no-reacknowledge") {
            self.acknowledge.due = true;
        }
    }

    /// A gap: keeps the frame, and tells the sender what is missing (LOSE, H-14).
    #[cold]
    pub fn keep_early(
        &mut self,
        sequence: u32,
        body: &[u8],
        config: &Config,
        frames: &mut EarlyFrames,
        counters: &mut Counters,
    ) {
        let ahead = sequence.wrapping_sub(self.expected);
        let was_kept = match config.recovery {
            Recovery::GoBack => {
                counters.frames_dropped += 1;
                // HPCL's sender goes back at each LOSE, so each gap is reported once. A timeout
                // covers the rest.
                if self.lose_reported.replace(self.expected) == Some(self.expected) {
                    return;
                }
                false
            }
            Recovery::Selective if ahead >= config.window_frames as u32 => {
                counters.frames_dropped += 1;
                return;
            }
            Recovery::Selective if self.early.contains(sequence) => {
                counters.frames_repeated += 1;
                self.repetitions = self.repetitions.wrapping_add(1);
                true
            }
            Recovery::Selective => {
                let frame_bytes = config.frame_bytes;
                let was_kept = body.len() <= frame_bytes
                    && self.early.keep(sequence, body, frames, frame_bytes);
                counters.frames_early += was_kept as u64;
                counters.frames_dropped += !was_kept as u64;
                was_kept
            }
        };
        if !planted("reliable-no-lose") {
            self.acknowledge.gap(was_kept);
        }
    }

    /// An early frame is taken: a gap is closed.
    pub fn advance_early(&mut self, now_ns: u64) {
        self.advance(now_ns);
        self.acknowledge.closed(self.early.is_empty());
    }

    /// Writes the selective acknowledgement if it says more than the header and leaves room for
    /// `content` bytes. `false`: there is no room.
    #[inline]
    pub fn write(&mut self, frame: &mut Writer<'_>, content: usize) -> bool {
        if self.early.is_empty() && self.repetitions == self.repetitions_told {
            return true;
        }
        let mut bitmap = [0; RECEIVED_BITMAP_BYTES];
        let length = self.early.bitmap(self.expected, &mut bitmap);
        if frame.room() < SECTION_BYTES + RECEIVED_FIXED_BYTES + length + content {
            return planted("reliable-lose-without-bitmap");
        }
        let bytes = frame.section(SectionKind::Received, 0, RECEIVED_FIXED_BYTES + length);
        let (fixed, rest) = bytes.split_at_mut(RECEIVED_FIXED_BYTES);
        fixed.copy_from_slice(&self.repetitions.to_le_bytes());
        rest.copy_from_slice(&bitmap[..length]);
        self.told_before = core::mem::replace(&mut self.repetitions_told, self.repetitions);
        true
    }

    /// The frame that [`write`](Self::write) wrote into does not go.
    pub fn unwrite(&mut self) {
        self.repetitions_told = self.told_before;
    }

    /// The acknowledgement goes. `is_whole`: with the selective acknowledgement. Returns whether a
    /// gap is reported, and how long the acknowledgement was held back, in ns.
    #[inline]
    pub fn went(&mut self, is_whole: bool, with_data: bool, now_ns: u64) -> (bool, u64) {
        // LOSE without the bitmap means that nothing was kept.
        let loses = self.acknowledge.lose && is_whole;
        if loses {
            self.repetitions_told = self.repetitions;
        }
        let held_back_ns = match is_whole {
            true => self.acknowledge.went(with_data, now_ns),
            false => self.acknowledge.went_in_part(now_ns),
        };
        (loses, held_back_ns)
    }
}
