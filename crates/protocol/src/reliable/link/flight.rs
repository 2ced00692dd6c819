//! Frames that were sent and are not acknowledged: their content, time and path.

use alloc::collections::VecDeque;

use super::stream::{Piece, STREAMS};
use crate::canary::planted;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SentState {
    /// Neither acknowledged nor declared lost.
    InFlight,
    /// The receiver has it, but not all frames before it.
    Received,
    /// To be retransmitted.
    Lost,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub sent_at_ns: u64,
    /// Number of frames sent by the same path before.
    pub stamp: u32,
    pub path: u8,
    pub state: SentState,
    /// Number of transmissions.
    pub attempts: u16,
    pub pieces: [Piece; STREAMS],
}

/// The frames from the oldest unacknowledged one to the newest.
pub(super) struct Flight {
    frames: VecDeque<Sent>,
    /// Sequence number of the oldest.
    pub oldest: u32,
    /// Number of frames that are neither acknowledged nor lost.
    pub in_flight: u32,
    lost: u32,
    /// Every lost frame has at least this index.
    lost_from: usize,
}

impl Flight {
    pub fn new(first: u32) -> Self {
        Flight { frames: VecDeque::new(), oldest: first, in_flight: 0, lost: 0, lost_from: 0 }
    }

    /// Number of unacknowledged frames.
    #[inline]
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Whether everything is acknowledged.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Whether a frame is to be retransmitted.
    #[inline]
    pub fn has_lost(&self) -> bool {
        self.lost > 0
    }

    /// Sequence number of the next new frame.
    #[inline]
    pub fn next(&self) -> u32 {
        self.oldest.wrapping_add(self.frames.len() as u32)
    }

    #[inline]
    pub fn push(&mut self, sent: Sent) {
        self.frames.push_back(sent);
        self.in_flight += 1;
    }

    /// Removes the oldest frame, which is acknowledged.
    #[inline]
    pub fn pop(&mut self) -> Option<Sent> {
        let sent = self.frames.pop_front()?;
        match sent.state {
            SentState::InFlight => self.in_flight -= 1,
            SentState::Lost => self.lost -= 1,
            SentState::Received => {}
        }
        self.oldest = self.oldest.wrapping_add(1);
        self.lost_from = self.lost_from.saturating_sub(1);
        Some(sent)
    }

    /// The frame `index` behind the oldest.
    #[inline]
    pub fn at(&self, index: usize) -> Option<&Sent> {
        self.frames.get(index)
    }

    /// The receiver reports that it has the frame `index` behind the oldest. Returns the frame's
    /// previous state, if that is news.
    #[inline]
    pub fn received(&mut self, index: usize) -> Option<Sent> {
        let sent = self.frames.get_mut(index)?;
        let before = *sent;
        match sent.state {
            SentState::InFlight => self.in_flight -= 1,
            SentState::Lost => self.lost -= 1,
            SentState::Received => return None,
        }
        sent.state = SentState::Received;
        Some(before)
    }

    /// Declares lost each frame in flight that `is_lost` selects, and returns their number.
    pub fn lose(&mut self, mut is_lost: impl FnMut(&Sent) -> bool) -> u32 {
        let mut count = 0;
        for (index, sent) in self.frames.iter_mut().enumerate() {
            if sent.state == SentState::InFlight && is_lost(sent) {
                sent.state = if planted("reliable-forget-lost") {
                    SentState::Received
                } else {
                    SentState::Lost
                };
                self.lost_from =
                    if self.lost == 0 && count == 0 { index } else { self.lost_from.min(index) };
                count += 1;
            }
        }
        self.in_flight -= count;
        if !planted("reliable-forget-lost") {
            self.lost += count;
        }
        count
    }

    /// Index of the oldest lost frame.
    pub fn first_lost(&mut self) -> Option<usize> {
        if self.lost == 0 {
            return None;
        }
        let index = (self.lost_from..self.frames.len())
            .find(|&index| self.frames[index].state == SentState::Lost)?;
        self.lost_from = index;
        Some(index)
    }

    /// Marks the lost frame `index` behind the oldest as retransmitted.
    pub fn resend(&mut self, index: usize, now_ns: u64, path: u8, stamp: u32) {
        let sent = &mut self.frames[index];
        debug_assert_eq!(sent.state, SentState::Lost);
        sent.state = SentState::InFlight;
        sent.sent_at_ns = now_ns;
        sent.path = path;
        sent.stamp = stamp;
        sent.attempts = sent.attempts.saturating_add(1);
        self.lost -= 1;
        self.in_flight += 1;
        self.lost_from = index + 1;
    }
}
