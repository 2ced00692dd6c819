//! Which queue pairs of peers take sends, and what peers know of ours.
//!
//! A side asks once for the gate of a queue pair. It gets the answer, and every later change until
//! the link ends; nothing is told unasked. News travel in the stream of sequenced frames, so none
//! is lost or overtakes another. Pending news are one bit per queue pair, not a queue. A gate that
//! changes faster than frames go costs nothing, and the peer hears its last state.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::RefCell;

use bellwire_wire::frame::record::{GateState, News};

use super::PeerId;
use crate::canary::planted;

/// Queue pair numbers from here on belong to channels.
const CHANNEL_BASE: u32 = 1 << 31;
/// Channels of a function.
const CHANNELS: u32 = 1 << 16;
const PAGE: usize = 512;
/// Most requests for gates that wait for the next frame.
const WANTED: usize = 64;

/// A table whose pages are allocated at the first write, so that an idle link has none.
struct Paged {
    pages: Vec<Option<Box<[u8; PAGE]>>>,
}

impl Paged {
    const fn new() -> Self {
        Paged { pages: Vec::new() }
    }

    #[inline]
    fn at(&self, index: usize) -> u8 {
        let page = self.pages.get(index / PAGE);
        page.and_then(|page| page.as_deref()).map_or(0, |page| page[index % PAGE])
    }

    fn at_mut(&mut self, index: usize) -> &mut u8 {
        if self.pages.len() <= index / PAGE {
            self.pages.resize_with(index / PAGE + 1, || None);
        }
        &mut self.pages[index / PAGE]
            .get_or_insert_with(|| vec![0; PAGE].try_into().unwrap_or_else(|_| Box::new([0; PAGE])))
            [index % PAGE]
    }
}

/// The gates of our own queue pairs, and requests for gates of peers.
pub(super) struct FunctionGates {
    /// Queue pairs are numbered below this. Their gates have the same index; those of channels have
    /// the indices behind them.
    queue_pairs: u32,
    states: Vec<u8>,
    /// Requests that wait for the next frame.
    wanted: RefCell<VecDeque<(PeerId, u32)>>,
}

impl FunctionGates {
    pub fn new(queue_pairs: u32) -> Self {
        let queue_pairs = queue_pairs.min(CHANNEL_BASE);
        FunctionGates {
            queue_pairs,
            states: vec![0; (queue_pairs + CHANNELS) as usize],
            wanted: RefCell::new(VecDeque::with_capacity(WANTED)),
        }
    }

    /// The index of the gate of a queue pair or channel, if there is one.
    #[inline]
    pub fn index(&self, queue_pair: u32) -> Option<usize> {
        if queue_pair < self.queue_pairs {
            Some(queue_pair as usize)
        } else {
            let channel = queue_pair.checked_sub(CHANNEL_BASE)?;
            (channel < CHANNELS).then(|| (self.queue_pairs + channel) as usize)
        }
    }

    /// Sets the gate of one of our queue pairs. Returns its index if that is a change.
    pub fn set(&mut self, queue_pair: u32, state: GateState) -> Option<usize> {
        let index = self.index(queue_pair)?;
        let before = core::mem::replace(&mut self.states[index], state as u8);
        (before != state as u8).then_some(index)
    }

    /// What to tell the peer about a gate of ours, or to ask it about one of its own.
    pub fn news(&self, index: usize, is_question: bool) -> News {
        let queue_pair = match (index as u32).checked_sub(self.queue_pairs) {
            None => index as u32,
            Some(channel) => CHANNEL_BASE + channel,
        };
        if is_question {
            return News::Ask { queue_pair };
        }
        let state = GateState::from_code(self.states[index]).unwrap_or(GateState::Closed);
        News::Gate { queue_pair, state }
    }

    /// Notes that `peer` must be asked for a gate, if there is room.
    pub fn want(&self, peer: PeerId, queue_pair: u32) {
        let mut wanted = self.wanted.borrow_mut();
        if wanted.len() < WANTED && !wanted.contains(&(peer, queue_pair)) {
            wanted.push_back((peer, queue_pair));
        }
    }

    /// Whether peers must be asked.
    #[inline]
    pub fn has_wanted(&self) -> bool {
        !self.wanted.borrow().is_empty()
    }

    /// The next request, if any.
    pub fn next_wanted(&mut self) -> Option<(PeerId, u32)> {
        self.wanted.get_mut().pop_front()
    }
}

const ASKED: u8 = 4;
const KNOWN: u8 = 8;
const TO_ASK: u8 = 16;
const TO_TELL: u8 = 32;
const LISTENS: u8 = 64;

/// What one link knows of gates, and what it has to tell or ask the peer.
pub(super) struct LinkGates {
    /// For each index: the peer's gate (low bits, if `KNOWN`), and the flags above.
    table: Paged,
    /// Entries with `TO_ASK` or `TO_TELL` set.
    owed: usize,
    /// Where the search for the next of them begins.
    cursor: usize,
}

impl LinkGates {
    pub const fn new() -> Self {
        LinkGates { table: Paged::new(), owed: 0, cursor: 0 }
    }

    /// The peer's gate, if known.
    #[inline]
    pub fn peer(&self, index: usize) -> Option<GateState> {
        let entry = self.table.at(index);
        let state = GateState::from_code(entry & 3).unwrap_or(GateState::Closed);
        (entry & KNOWN != 0).then_some(state)
    }

    /// Whether the gate is neither known nor asked for.
    #[inline]
    pub fn is_unasked(&self, index: usize) -> bool {
        self.table.at(index) & (KNOWN | ASKED | TO_ASK) == 0
    }

    /// Notes that the peer must be asked.
    pub fn ask(&mut self, index: usize) {
        if self.is_unasked(index) {
            *self.table.at_mut(index) |= TO_ASK;
            self.owed += 1;
        }
    }

    /// The peer told the state of one of its gates; returns whether it changed.
    pub fn told(&mut self, index: usize, state: GateState) -> bool {
        let entry = self.table.at_mut(index);
        let before = *entry;
        *entry = *entry & !3 | KNOWN | state as u8;
        *entry != before
    }

    /// The peer asks for one of our gates.
    pub fn asked(&mut self, index: usize) {
        *self.table.at_mut(index) |= LISTENS;
        self.owe(index);
    }

    /// One of our gates changed; returns whether the peer must be told.
    pub fn changed(&mut self, index: usize) -> bool {
        if self.table.at(index) & LISTENS == 0 || planted("reliable-gate-untold") {
            return false;
        }
        self.owe(index);
        true
    }

    /// Notes that the peer must be told.
    fn owe(&mut self, index: usize) {
        let entry = self.table.at_mut(index);
        self.owed += (*entry & TO_TELL == 0) as usize;
        *entry |= TO_TELL;
    }

    /// Whether there is something to tell or to ask.
    #[inline]
    pub fn is_owing(&self) -> bool {
        self.owed > 0
    }

    /// Takes the next pending item: its index, and whether it is a question.
    pub fn next_owed(&mut self) -> Option<(usize, bool)> {
        if self.owed == 0 {
            return None;
        }
        let pages = self.table.pages.len();
        for step in 0..=pages {
            let page = (self.cursor / PAGE + step) % pages;
            let from = if step == 0 { self.cursor % PAGE } else { 0 };
            let Some(Some(entries)) = self.table.pages.get_mut(page) else { continue };
            for (index, entry) in entries.iter_mut().enumerate().skip(from) {
                let is_question = *entry & TO_ASK != 0;
                if is_question {
                    *entry = *entry & !TO_ASK | ASKED;
                } else if *entry & TO_TELL != 0 {
                    *entry &= !TO_TELL;
                } else {
                    continue;
                }
                self.owed -= 1;
                self.cursor = page * PAGE + index;
                return Some((self.cursor, is_question));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::{CHANNEL_BASE, FunctionGates, GateState, LinkGates, News, PeerId, WANTED};

    /// Queue pairs have the first indices, and channels those behind them.
    #[test]
    fn channels_are_behind_queue_pairs() {
        let mut gates = FunctionGates::new(10);
        let channel = |number| CHANNEL_BASE + number;
        assert_eq!([0, 9, 10].map(|pair| gates.index(pair)), [Some(0), Some(9), None]);
        assert_eq!(gates.index(CHANNEL_BASE - 1), None);
        let numbers = [0, 65_535, 65_536].map(|number| gates.index(channel(number)));
        assert_eq!(numbers, [Some(10), Some(65_545), None]);
        for queue_pair in [0, 9, channel(0), channel(65_535)] {
            let index = gates.index(queue_pair).unwrap();
            let closed = News::Gate { queue_pair, state: GateState::Closed };
            assert_eq!(gates.news(index, false), closed);
            assert_eq!(gates.news(index, true), News::Ask { queue_pair });
            assert_eq!(gates.set(queue_pair, GateState::Closed), None, "no change");
            assert_eq!(gates.set(queue_pair, GateState::Open), Some(index));
            assert_eq!(gates.set(queue_pair, GateState::Open), None);
            let open = News::Gate { queue_pair, state: GateState::Open };
            assert_eq!(gates.news(index, false), open);
        }
        assert_eq!(gates.set(10, GateState::Open), None);
    }

    /// Requests are kept once each, in order, as many as there is room for.
    #[test]
    fn requests_are_bounded() {
        let mut gates = FunctionGates::new(1000);
        assert!(!gates.has_wanted());
        for pair in 0..100 {
            gates.want(PeerId(1), pair);
            gates.want(PeerId(1), 0);
        }
        assert!(gates.has_wanted());
        for pair in 0..WANTED as u32 {
            assert_eq!(gates.next_wanted(), Some((PeerId(1), pair)));
        }
        assert_eq!((gates.next_wanted(), gates.has_wanted()), (None, false));
    }

    /// What is owed is found in turn across pages, also in front of the place where the search
    /// begins. A question goes before an answer.
    #[test]
    fn what_is_owed_is_found_in_turn() {
        let mut gates = LinkGates::new();
        assert!(!gates.is_owing() && gates.next_owed().is_none());
        gates.asked(700);
        gates.asked(5);
        gates.ask(5);
        gates.ask(5);
        gates.asked(5);
        let mut owed = [(); 4].map(|()| gates.next_owed());
        assert_eq!(owed, [Some((5, true)), Some((5, false)), Some((700, false)), None]);
        assert!(!gates.is_owing());
        assert!(gates.changed(5) && !gates.changed(6), "who did not ask is not told");
        gates.asked(600);
        gates.asked(2_000);
        assert!(gates.is_owing());
        owed = [(); 4].map(|()| gates.next_owed());
        assert_eq!(owed, [Some((2_000, false)), Some((5, false)), Some((600, false)), None]);
        assert!(gates.changed(700) && gates.changed(700));
        owed = [(); 4].map(|()| gates.next_owed());
        assert_eq!(owed, [Some((700, false)), None, None, None]);
    }

    /// The table grows to the page of the highest index that was written. Reading adds none.
    #[test]
    fn the_table_has_the_pages_that_it_needs() {
        let mut gates = LinkGates::new();
        assert!(gates.is_unasked(4_000) && gates.table.pages.is_empty());
        gates.told(4_000, GateState::Open);
        gates.told(0, GateState::Open);
        assert_eq!(gates.table.pages.len(), 8);
        assert_eq!(gates.table.pages.iter().flatten().count(), 2);
    }

    /// A gate is unasked until we ask for it or are told. What we are told is news if it is a
    /// change.
    #[test]
    fn what_is_told_is_known() {
        let mut gates = LinkGates::new();
        let states = [GateState::Open, GateState::Stopped, GateState::Closed];
        for index in [0, 511, 512, 4_000] {
            assert!(gates.is_unasked(index));
            assert_eq!(gates.peer(index), None);
            gates.ask(index);
            assert!(!gates.is_unasked(index));
            assert_eq!(gates.next_owed(), Some((index, true)));
            assert!(!gates.is_unasked(index));
            gates.ask(index);
            assert!(!gates.is_owing(), "asked once");
            for state in states {
                assert!(gates.told(index, state) && !gates.told(index, state));
                assert_eq!(gates.peer(index), Some(state));
            }
            assert_eq!(gates.peer(index + 1), None);
        }
        assert!(gates.told(7, GateState::Open) && !gates.is_unasked(7));
        gates.asked(7);
        assert_eq!((gates.peer(7), gates.next_owed()), (Some(GateState::Open), Some((7, false))));
        assert!(gates.is_unasked(8));
    }
}
