//! The sending half: numbers frames, keeps them until they are acknowledged, and retransmits them
//! (S-16, S-17).

use alloc::collections::VecDeque;

use super::sequence::{WINDOW, after, distance};
use crate::canary::planted;

/// Replays in a row without progress after which the link should be retrained.
const FRUITLESS_REPLAYS: u8 = 4;

/// The unacknowledged frames, oldest first, in a buffer of a fixed number of bytes that all virtual
/// channels share.
///
/// Call [`push`](Self::push) when the credits and [`has_room`](Self::has_room) allow it,
/// [`poll`](Self::poll) when the line is free, `handle_*` for what comes, and
/// [`handle_timeout`](Self::handle_timeout) at the [`deadline`](Self::deadline).
pub struct Transmitter<T> {
    frames: VecDeque<Kept<T>>,
    /// Sequence number of the oldest frame, or of the next one if there is none.
    oldest: u16,
    /// Index of the frame that goes over the line next.
    next: usize,
    held_bytes: usize,
    capacity_bytes: usize,
    replay_after: u64,
    deadline: Option<u64>,
    fruitless: u8,
    /// Frames sent, retransmissions included.
    pub frames_sent: u64,
    /// Frames retransmitted.
    pub frames_repeated: u64,
    /// Frames acknowledged.
    pub frames_acknowledged: u64,
}

struct Kept<T> {
    frame: T,
    bytes: usize,
    sent: bool,
}

/// An acknowledgement names a frame that was never sent: the peer or the CRC is broken. Nothing has
/// changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("frame {sequence} is acknowledged and was never sent; train the link anew")]
pub struct NotSent {
    /// The number that was named.
    pub sequence: u16,
}

/// What to do after a call of [`Transmitter::handle_timeout`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimedOut {
    /// The replay timer has not expired.
    NotYet,
    /// All frames are retransmitted.
    Replay,
    /// All frames are retransmitted, and the link should be retrained first: four replays brought
    /// no progress.
    Retrain,
}

impl<T> Transmitter<T> {
    /// An empty replay buffer of `capacity_bytes`. All frames are retransmitted if nothing is
    /// acknowledged for `replay_after` ticks.
    pub fn new(capacity_bytes: usize, replay_after: u64) -> Self {
        Self::starting_at(0, capacity_bytes, replay_after)
    }

    /// The same with the first frame numbered `sequence`, modulo 2^12: for tests of wrapping
    /// numbers.
    pub fn starting_at(sequence: u16, capacity_bytes: usize, replay_after: u64) -> Self {
        Transmitter {
            frames: VecDeque::new(),
            oldest: after(sequence, 0),
            next: 0,
            held_bytes: 0,
            capacity_bytes,
            replay_after,
            deadline: None,
            fruitless: 0,
            frames_sent: 0,
            frames_repeated: 0,
            frames_acknowledged: 0,
        }
    }

    /// Whether the replay buffer has room for a frame of `bytes` now.
    pub fn has_room(&self, bytes: usize) -> bool {
        self.held_bytes + bytes <= self.capacity_bytes && self.frames.len() < WINDOW
    }

    /// Numbers a frame and keeps it until it is acknowledged. Frames are sent in this order.
    ///
    /// # Errors
    /// The frame itself, if there is no room.
    pub fn push(&mut self, frame: T, bytes: usize) -> Result<u16, T> {
        if !self.has_room(bytes) {
            return Err(frame);
        }
        let sequence = after(self.oldest, self.frames.len() as u16);
        self.frames.push_back(Kept { frame, bytes, sent: false });
        self.held_bytes += bytes;
        Ok(sequence)
    }

    /// Whether a frame waits for the line.
    pub fn is_waiting(&self) -> bool {
        self.next < self.frames.len()
    }

    /// The next frame for the line, with its number and whether this is its first transmission.
    pub fn poll(&mut self, now: u64) -> Option<(u16, &T, bool)> {
        let sequence = after(self.oldest, self.next as u16);
        let kept = self.frames.get_mut(self.next)?;
        self.next += 1;
        self.frames_sent += 1;
        self.deadline.get_or_insert(now + self.replay_after);
        let is_first = !core::mem::replace(&mut kept.sent, true);
        self.frames_repeated += u64::from(!is_first);
        Some((sequence, &kept.frame, is_first))
    }

    /// All frames up to `sequence` have come. Calls `each` for the newly acknowledged ones, oldest
    /// first.
    ///
    /// # Errors
    /// [`NotSent`] for a number that is neither in flight nor acknowledged.
    pub fn handle_ack(
        &mut self,
        now: u64,
        sequence: u16,
        mut each: impl FnMut(T),
    ) -> Result<(), NotSent> {
        let count = usize::from(distance(self.oldest, after(sequence, 1)));
        if count >= WINDOW {
            // Older than all kept frames: a late or repeated acknowledgement.
            return Ok(());
        }
        let sent = self.frames.iter().take(count).filter(|kept| kept.sent).count();
        if sent < count {
            return Err(NotSent { sequence });
        }
        for kept in self.frames.drain(..count) {
            self.held_bytes -= kept.bytes;
            each(kept.frame);
        }
        self.oldest = after(self.oldest, count as u16);
        self.next = self.next.saturating_sub(count);
        self.frames_acknowledged += count as u64;
        if count > 0 {
            self.fruitless = 0;
            let under_way = self.frames.front().is_some_and(|kept| kept.sent);
            self.deadline = under_way.then_some(now + self.replay_after);
        }
        Ok(())
    }

    /// All frames up to `sequence` have come, and a later one was damaged: those behind are
    /// retransmitted.
    ///
    /// # Errors
    /// As [`handle_ack`](Self::handle_ack).
    pub fn handle_nak(
        &mut self,
        now: u64,
        sequence: u16,
        each: impl FnMut(T),
    ) -> Result<(), NotSent> {
        self.handle_ack(now, sequence, each)?;
        if !planted("link-ignore-nak") {
            self.rewind();
        }
        Ok(())
    }

    /// When to call [`handle_timeout`](Self::handle_timeout).
    pub fn deadline(&self) -> Option<u64> {
        self.deadline
    }

    /// Handles the replay timer, which may not have expired.
    pub fn handle_timeout(&mut self, now: u64) -> TimedOut {
        if self.deadline.is_none_or(|deadline| now < deadline) {
            return TimedOut::NotYet;
        }
        self.fruitless += 1;
        self.rewind();
        if self.fruitless < FRUITLESS_REPLAYS {
            return TimedOut::Replay;
        }
        self.fruitless = 0;
        TimedOut::Retrain
    }

    /// Bytes of the replay buffer in use.
    pub fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Frames in the replay buffer.
    pub fn held_frames(&self) -> usize {
        self.frames.len()
    }

    /// Retransmits all. The timer starts with the first of these frames, possibly after the link
    /// was retrained.
    fn rewind(&mut self) {
        self.next = 0;
        self.deadline = None;
    }
}
