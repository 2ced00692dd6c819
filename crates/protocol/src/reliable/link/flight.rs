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

#[cfg(test)]
mod tests {
    use super::{Flight, Piece, STREAMS, Sent, SentState};

    fn sent(stamp: u32) -> Sent {
        let pieces = [Piece::default(); STREAMS];
        Sent { sent_at_ns: 1, stamp, path: 0, state: SentState::InFlight, attempts: 1, pieces }
    }

    /// Frames are lost, retransmitted, received and acknowledged in any order, across the wrap of
    /// their numbers. The counts follow, and the oldest lost frame is found each time.
    #[test]
    fn each_frame_is_counted_in_its_state() {
        let mut it = Flight::new(u32::MAX - 1);
        assert!(it.is_empty());
        (0..6).for_each(|stamp| it.push(sent(stamp)));
        assert_eq!((it.len(), it.in_flight, it.next()), (6, 6, 4));
        assert_eq!(it.first_lost(), None);

        assert_eq!(it.lose(|sent| [2, 4].contains(&sent.stamp)), 2);
        assert_eq!((it.in_flight, it.has_lost(), it.first_lost()), (4, true, Some(2)));
        assert_eq!(it.lose(|sent| [1, 2].contains(&sent.stamp)), 1, "2 was lost before");
        assert_eq!((it.in_flight, it.first_lost()), (3, Some(1)));

        it.resend(1, 9, 3, 70);
        let again = it.at(1).unwrap();
        assert_eq!((again.sent_at_ns, again.path, again.stamp, again.attempts), (9, 3, 70, 2));
        assert_eq!((it.in_flight, it.first_lost()), (4, Some(2)));

        assert_eq!(it.received(4).unwrap().state, SentState::Lost);
        assert_eq!(it.received(5).unwrap().state, SentState::InFlight);
        assert!(it.received(5).is_none() && it.received(6).is_none());
        assert_eq!((it.len(), it.in_flight, it.first_lost()), (6, 3, Some(2)));

        assert_eq!(it.pop().unwrap().stamp, 0);
        assert_eq!((it.oldest, it.in_flight, it.first_lost()), (u32::MAX, 2, Some(1)));
        assert_eq!(it.pop().unwrap().stamp, 70);
        assert_eq!((it.oldest, it.in_flight, it.first_lost()), (0, 1, Some(0)));
        assert_eq!(it.pop().unwrap().stamp, 2);
        assert_eq!((it.in_flight, it.has_lost(), it.first_lost()), (1, false, None));
        assert_eq!(it.pop().unwrap().stamp, 3);
        assert_eq!((it.in_flight, it.pop().unwrap().stamp, it.in_flight), (0, 4, 0));
        assert_eq!((it.pop().unwrap().stamp, it.pop().is_none(), it.is_empty()), (5, true, true));
        assert_eq!((it.oldest, it.next()), (4, 4));
    }
}
