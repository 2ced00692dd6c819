//! A stream without I/O: what may be sent, what has come, and who owes credit to whom.
//!
//! Bytes to send wait in a ring until they are acknowledged. Each message takes one receive of the
//! peer, so it takes a credit. Without credit bytes gather in the ring, and leave as one message:
//! small writes to a slow reader coalesce.
//!
//! A received message stays in its slot until the program has read it. Then the slot is posted
//! again, and the peer gets the credit with the next message, or alone once half of the slots are
//! owed.
//!
//! The caller moves the bytes: this knows offsets in its memory only.

use crate::canary::planted;
use crate::message::{Hello, Kind};
use std::collections::VecDeque;
use std::ops::Range;

/// The peer broke the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Broken(pub &'static str);

/// A message to be posted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transmit {
    /// What it is. A map's bytes are the caller's.
    pub kind: Kind,
    /// Its immediate value.
    pub immediate: u32,
    /// Its bytes in the ring: two parts if they wrap around.
    pub parts: [Range<usize>; 2],
}

/// What becomes of a slot into which a message came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Slot {
    /// The program reads it.
    Kept,
    /// The caller posts it again.
    Free,
    /// As `Free`, after the caller has read a mapping from it.
    Mapping,
}

/// The side that sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sending {
    Open,
    /// The end follows what waits.
    Ending,
    Ended,
}

/// A message that the program has not read.
struct Filled {
    slot: u16,
    read: Range<u32>,
}

/// A stream.
pub struct Stream {
    /// The ring: its size, its oldest byte that is used, the bytes that are used, and those of them
    /// that were posted.
    size: usize,
    start: usize,
    used: usize,
    posted: usize,
    /// What each posted message frees in the ring.
    flights: VecDeque<usize>,
    most_flights: usize,
    sending: Sending,
    /// Mappings that wait to be announced.
    maps: usize,
    credit: u16,
    peer: Hello,
    own: Hello,
    filled: VecDeque<Filled>,
    filled_bytes: usize,
    owed: u16,
    has_ended: bool,
    discards: bool,
}

impl Stream {
    /// A stream with a ring of `size` bytes, whose slots are as `own` says, and the peer's as
    /// `peer`. `most_flights` messages may be posted at a time.
    pub fn new(size: usize, most_flights: usize, own: Hello, peer: Hello) -> Stream {
        Stream {
            size,
            start: 0,
            used: 0,
            posted: 0,
            flights: VecDeque::new(),
            most_flights,
            sending: Sending::Open,
            maps: 0,
            credit: peer.slots,
            peer,
            own,
            filled: VecDeque::new(),
            filled_bytes: 0,
            owed: 0,
            has_ended: false,
            discards: false,
        }
    }

    /// What the peer has said of itself.
    pub fn peer(&self) -> &Hello {
        &self.peer
    }

    // Sending.

    /// Bytes that the ring takes.
    pub fn room(&self) -> usize {
        if self.sending == Sending::Open { self.size - self.used } else { 0 }
    }

    /// Whether a writer should go on: a quarter of the ring is free.
    pub fn has_much_room(&self) -> bool {
        self.room() >= self.size / 4
    }

    /// Whether nothing waits to be posted.
    pub fn is_posted(&self) -> bool {
        self.posted == self.used && self.maps == 0 && self.sending != Sending::Ending
    }

    /// Takes up to `length` bytes of room. The caller copies that many bytes into the parts.
    pub fn put(&mut self, length: usize) -> [Range<usize>; 2] {
        let length = length.min(self.room());
        let parts = self.parts(self.used, length);
        self.used += length;
        parts
    }

    /// Up to `length` bytes of the ring from the `from`-th used one on.
    fn parts(&self, from: usize, length: usize) -> [Range<usize>; 2] {
        let first = (self.start + from) % self.size;
        let before_end = length.min(self.size - first);
        let wrapped = if planted("ring-wrap") { 1 } else { 0 };
        [first..first + before_end, wrapped..wrapped + length - before_end]
    }

    /// Whether `length` bytes may be sent at once, past the empty ring.
    pub fn may_pass(&self, length: usize) -> bool {
        self.sending == Sending::Open
            && self.posted == self.used
            && self.maps == 0
            && self.credit > 0
            && self.flights.len() < self.most_flights
            && length <= self.peer.slot_bytes as usize
    }

    /// Takes what a message past the ring needs. Returns its immediate value.
    pub fn pass(&mut self) -> u32 {
        self.credit -= 1;
        self.flights.push_back(0);
        Kind::Data.with(self.take_owed())
    }

    /// Room of the ring for bytes that go elsewhere than into the stream, before all that follows:
    /// `None` while others wait before them, or there is no room. Otherwise the caller posts them
    /// from the part, which is in one piece and may be shorter.
    pub fn aside(&mut self, length: usize) -> Option<Range<usize>> {
        let may_post = self.posted == self.used && self.flights.len() < self.most_flights;
        if !may_post || self.room() == 0 || self.maps > 0 {
            return None;
        }
        let length = length.min(self.room());
        let [part, _] = self.parts(self.used, length);
        self.used += part.len();
        self.posted += part.len();
        self.flights.push_back(part.len());
        Some(part)
    }

    /// A mapping is to be announced.
    pub fn announce(&mut self) {
        self.maps += 1;
    }

    /// No more data follows what waits.
    pub fn end(&mut self) {
        if self.sending == Sending::Open {
            self.sending = Sending::Ending;
        }
    }

    /// The next message that can be posted. The caller posts it.
    pub fn transmit(&mut self) -> Option<Transmit> {
        if self.flights.len() >= self.most_flights {
            return None;
        }
        let none = [0..0, 0..0];
        let waiting = self.used - self.posted;
        let (kind, parts) = if self.maps > 0 && self.credit > 0 {
            self.maps -= 1;
            (Kind::Map, none)
        } else if waiting > 0 && self.credit > 0 {
            let length = waiting.min(self.peer.slot_bytes as usize);
            (Kind::Data, self.parts(self.posted, length))
        } else if waiting == 0 && self.maps == 0 && self.sending == Sending::Ending {
            self.sending = Sending::Ended;
            (Kind::End, none)
        } else if self.owed >= (self.own.slots / 2).max(1) && !planted("credit-kept") {
            (Kind::Credit, none)
        } else {
            return None;
        };
        if matches!(kind, Kind::Data | Kind::Map) {
            self.credit -= 1;
        }
        let length = parts[0].len() + parts[1].len();
        self.posted += length;
        self.flights.push_back(length);
        Some(Transmit { kind, immediate: kind.with(self.take_owed()), parts })
    }

    /// The oldest posted message has arrived.
    pub fn completed(&mut self) {
        let Some(length) = self.flights.pop_front() else { return };
        self.start = (self.start + length) % self.size;
        self.used -= length;
        self.posted -= length;
    }

    /// Whether all that was written has arrived, and the end if it was wanted.
    pub fn is_delivered(&self) -> bool {
        self.used == 0 && self.flights.is_empty() && self.sending != Sending::Ending
    }

    /// Whether the program may not write any more.
    pub fn is_ending(&self) -> bool {
        self.sending != Sending::Open
    }

    // Receiving.

    /// A message of `length` bytes came into a slot.
    pub fn arrived(&mut self, slot: u16, immediate: u32, length: u32) -> Result<Slot, Broken> {
        let (kind, credit) = Kind::parse(immediate).ok_or(Broken("no immediate value of ours"))?;
        let sum = self.credit.checked_add(credit).filter(|sum| *sum <= self.peer.slots);
        self.credit = sum.ok_or(Broken("more credit than receives"))?;
        if self.has_ended && matches!(kind, Kind::Data | Kind::End) && !planted("after-end") {
            return Err(Broken("a message after the end"));
        }
        let taken = self.filled.len() + usize::from(self.owed);
        let needs_credit = matches!(kind, Kind::Data | Kind::Map);
        if needs_credit && taken >= usize::from(self.own.slots) && !planted("overrun") {
            return Err(Broken("a message without credit"));
        }
        match kind {
            Kind::Credit => Ok(Slot::Free),
            Kind::End => {
                self.has_ended = true;
                Ok(Slot::Free)
            }
            Kind::Map => {
                self.owed += 1;
                Ok(Slot::Mapping)
            }
            Kind::Data if length == 0 || length > self.own.slot_bytes => {
                Err(Broken("a message of a length that no slot has"))
            }
            Kind::Data if self.discards => {
                self.owed += 1;
                Ok(Slot::Free)
            }
            Kind::Data => {
                self.filled.push_back(Filled { slot, read: 0..length });
                self.filled_bytes += length as usize;
                Ok(Slot::Kept)
            }
        }
    }

    /// The unread bytes: slot, and their place in it. The oldest first.
    pub fn unread(&self) -> impl Iterator<Item = (u16, Range<usize>)> {
        let place = |it: &Filled| (it.slot, it.read.start as usize..it.read.end as usize);
        self.filled.iter().map(place)
    }

    /// Bytes that wait for the program.
    pub fn unread_bytes(&self) -> usize {
        self.filled_bytes
    }

    /// The program has read `length` bytes of the oldest message. Returns its slot if the caller is
    /// to post it again.
    pub fn read(&mut self, length: usize) -> Option<u16> {
        let front = self.filled.front_mut()?;
        let length = length.min(front.read.len());
        front.read.start += length as u32;
        self.filled_bytes -= length;
        if front.read.is_empty() {
            self.owed += 1;
            return self.filled.pop_front().map(|it| it.slot);
        }
        None
    }

    /// The program reads nothing any more: what comes is dropped.
    pub fn discard(&mut self) {
        self.discards = true;
    }

    /// Whether the peer has sent its end.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    fn take_owed(&mut self) -> u16 {
        std::mem::take(&mut self.owed)
    }
}
