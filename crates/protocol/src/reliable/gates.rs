//! Which queue pairs of peers take sends, and what peers know of ours.
//!
//! A side asks once for the gate of a queue pair. It gets the answer, and every later change until
//! the link ends; nothing is told unasked. News travel in the stream of sequenced frames, so none
//! is lost or overtakes another. Pending news are one bit per queue pair, not a queue. A gate that
//! changes faster than frames go costs nothing, and the peer hears its last state.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use bellwire_wire::frame::record::GateState;

use crate::canary::planted;

/// Queue pair numbers from here on belong to channels.
const CHANNEL_BASE: u32 = 1 << 31;
/// Channels of a function.
const CHANNELS: u32 = 1 << 16;
const PAGE: usize = 512;

/// Maps the numbers of queue pairs and of channels to indices of one table, and back.
#[derive(Clone, Copy)]
pub(super) struct GateNumbers {
    queue_pairs: u32,
}

impl GateNumbers {
    pub fn new(queue_pairs: u32) -> Self {
        GateNumbers { queue_pairs: queue_pairs.min(CHANNEL_BASE) }
    }

    pub fn count(self) -> usize {
        (self.queue_pairs + CHANNELS) as usize
    }

    #[inline]
    pub fn place(self, queue_pair: u32) -> Option<usize> {
        if queue_pair < self.queue_pairs {
            Some(queue_pair as usize)
        } else {
            let channel = queue_pair.checked_sub(CHANNEL_BASE)?;
            (channel < CHANNELS).then(|| (self.queue_pairs + channel) as usize)
        }
    }

    pub fn number(self, place: usize) -> u32 {
        match (place as u32).checked_sub(self.queue_pairs) {
            None => place as u32,
            Some(channel) => CHANNEL_BASE + channel,
        }
    }
}

/// A table whose pages are allocated at the first write, so that an idle link has none.
struct Paged {
    pages: Vec<Option<Box<[u8; PAGE]>>>,
}

impl Paged {
    const fn new() -> Self {
        Paged { pages: Vec::new() }
    }

    #[inline]
    fn at(&self, place: usize) -> u8 {
        match self.pages.get(place / PAGE) {
            Some(Some(page)) => page[place % PAGE],
            _ => 0,
        }
    }

    fn at_mut(&mut self, place: usize) -> &mut u8 {
        if self.pages.len() <= place / PAGE {
            self.pages.resize_with(place / PAGE + 1, || None);
        }
        &mut self.pages[place / PAGE]
            .get_or_insert_with(|| vec![0; PAGE].try_into().unwrap_or_else(|_| Box::new([0; PAGE])))
            [place % PAGE]
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
    pub fn peer(&self, place: usize) -> Option<GateState> {
        let entry = self.table.at(place);
        (entry & KNOWN != 0).then_some(match entry & 3 {
            1 => GateState::Open,
            2 => GateState::Stopped,
            _ => GateState::Closed,
        })
    }

    /// Whether the gate is neither known nor asked for.
    #[inline]
    pub fn is_unasked(&self, place: usize) -> bool {
        self.table.at(place) & (KNOWN | ASKED | TO_ASK) == 0
    }

    /// Notes that the peer must be asked.
    pub fn ask(&mut self, place: usize) {
        if self.is_unasked(place) {
            *self.table.at_mut(place) |= TO_ASK;
            self.owed += 1;
        }
    }

    /// The peer told the state of one of its gates; returns whether it changed.
    pub fn told(&mut self, place: usize, state: GateState) -> bool {
        let entry = self.table.at_mut(place);
        let before = *entry;
        *entry = *entry & !3 | KNOWN | state as u8;
        *entry != before
    }

    /// The peer asks for one of our gates.
    pub fn asked(&mut self, place: usize) {
        let entry = self.table.at_mut(place);
        *entry |= LISTENS;
        if *entry & TO_TELL == 0 {
            *entry |= TO_TELL;
            self.owed += 1;
        }
    }

    /// One of our gates changed; returns whether the peer must be told.
    pub fn changed(&mut self, place: usize) -> bool {
        if self.table.at(place) & LISTENS == 0 || planted("reliable-gate-untold") {
            return false;
        }
        let entry = self.table.at_mut(place);
        if *entry & TO_TELL == 0 {
            *entry |= TO_TELL;
            self.owed += 1;
        }
        true
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
                let place = page * PAGE + index;
                if *entry & TO_ASK != 0 {
                    *entry = *entry & !TO_ASK | ASKED;
                    self.owed -= 1;
                    self.cursor = place;
                    return Some((place, true));
                }
                if *entry & TO_TELL != 0 {
                    *entry &= !TO_TELL;
                    self.owed -= 1;
                    self.cursor = place;
                    return Some((place, false));
                }
            }
        }
        None
    }
}
