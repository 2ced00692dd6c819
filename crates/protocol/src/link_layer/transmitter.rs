//! The sending half: numbers frames, keeps them until they are acknowledged, and sends them again (S-16, S-17).

use alloc::collections::VecDeque;
use core::fmt;

use super::sequence::{WINDOW, after, distance};
use crate::canary::planted;

/// How often in a row all is sent again without anything being acknowledged, before the link should be trained anew.
const FRUITLESS_REPLAYS: u8 = 4;

/// Frames from the oldest that is not acknowledged to the newest, in a buffer of a fixed number of bytes that all virtual channels share.
///
/// The cycle is [`push`](Self::push) when the credits allow it and [`has_room`](Self::has_room), [`poll`](Self::poll) when the line
/// is free, `handle_*` for what comes, and [`handle_timeout`](Self::handle_timeout) at the [`deadline`](Self::deadline).
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
    /// Frames sent, the repeated ones included.
    pub frames_sent: u64,
    /// Frames sent again.
    pub frames_repeated: u64,
    /// Frames acknowledged.
    pub frames_acknowledged: u64,
}

struct Kept<T> {
    frame: T,
    bytes: usize,
    sent: bool,
}

/// An acknowledgement names a frame that was never sent: the peer or the CRC is broken. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotSent {
    /// The number that was named.
    pub sequence: u16,
}

impl fmt::Display for NotSent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "frame {} is acknowledged and was never sent; train the link anew", self.sequence)
    }
}

impl core::error::Error for NotSent {}

/// What to do when the replay timer ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimedOut {
    /// It had not.
    NotYet,
    /// All is sent again.
    Replay,
    /// All is sent again, and it should go over a link that was trained anew: repeating did not help four times.
    Retrain,
}

impl<T> Transmitter<T> {
    /// An empty replay buffer of `capacity_bytes`. All is sent again if nothing is acknowledged for `replay_after` ticks.
    pub fn new(capacity_bytes: usize, replay_after: u64) -> Self {
        Self::starting_at(0, capacity_bytes, replay_after)
    }

    /// The same with the first frame numbered `sequence`, modulo 2^12: for tests of numbers that go round.
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

    /// Whether a frame that takes `bytes` in the replay buffer can be kept now.
    pub fn has_room(&self, bytes: usize) -> bool {
        self.held_bytes + bytes <= self.capacity_bytes && self.frames.len() < WINDOW
    }

    /// Numbers a frame and keeps it until it is acknowledged; it is sent when those before it are.
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

    /// The next frame for the line, with its number and whether it goes for the first time.
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

    /// All frames up to `sequence` have come. Calls `each` for those of which that is news, oldest first.
    ///
    /// # Errors
    /// [`NotSent`] for a number that is neither of a frame under way nor of one before.
    pub fn handle_ack(
        &mut self,
        now: u64,
        sequence: u16,
        mut each: impl FnMut(T),
    ) -> Result<(), NotSent> {
        let count = usize::from(distance(self.oldest, after(sequence, 1)));
        if count >= WINDOW {
            // Older than all that is kept: a late or repeated acknowledgement.
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

    /// All frames up to `sequence` have come and something behind was damaged: what is behind goes again.
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

    /// When [`handle_timeout`](Self::handle_timeout) wants to be called.
    pub fn deadline(&self) -> Option<u64> {
        self.deadline
    }

    /// The time has come, perhaps.
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

    /// All goes again. The timer runs from when it does, which may be after the link was trained.
    fn rewind(&mut self) {
        self.next = 0;
        self.deadline = None;
    }
}
