//! The receiving end of a lane.

use super::*;
use crate::segment::Words;
use crate::sync::{Fences, Ordering, full_fence};
use std::collections::VecDeque;

/// A run of the pool that went back to the receiver: first chunk and number of chunks.
pub type Freed = (u16, u16);

/// What stands at the cursor.
#[derive(Clone, Copy, Debug)]
pub enum Arrival<P> {
    /// Nothing yet.
    Nothing,
    /// A packet: header words 1 to 3, copied once, and the payload, which is there until [`LaneReceiver::take`].
    Packet([u64; 3], P),
    /// The sender went on elsewhere. `freed` goes back to the pool; `dry`: it went to host memory for want of credit.
    Moved {
        /// The extent that the lane left.
        freed: Option<Freed>,
        /// Whether it left for a host chunk.
        dry: bool,
    },
    /// The sender broke the rules: close the link.
    Violation,
}

/// Whether the lane is polled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Position {
    /// Polled; may hold grants.
    Active,
    /// A parking has begun; still polled until it can be completed.
    Parking,
    /// Not polled; holds nothing; the sender rings.
    Parked,
}

/// The receiving end. All fields are private to the receiving process.
pub struct LaneReceiver<W> {
    memory: LaneMemory<W>,
    geometry: Geometry,
    fences: Fences,
    position: Position,
    at: Cursor,
    command: u64,
    /// Extents that were granted and not yet entered, in order, with their nonces.
    open: VecDeque<(u16, u16, u64)>,
    /// Grants written to the ring since the start of the link.
    granted: u64,
    host_consumed: u64,
    nonces: Nonces,
}

impl<W: Words> LaneReceiver<W> {
    /// A new lane, parked. `seed` must be unpredictable; `start` is where the counters begin (tests start near wrap-around).
    pub fn new(
        memory: LaneMemory<W>,
        geometry: Geometry,
        fences: Fences,
        seed: u64,
        start: u64,
    ) -> Self {
        memory.check(&geometry);
        let mut nonces = Nonces::new(seed);
        let command = nonces.draw() & !SECOND | PARKED;
        let control = &memory.control;
        control.word(GRANT_BASE).store(start, Ordering::Relaxed);
        control.word(HOST_CONSUMED).store(0, Ordering::Relaxed);
        control.word(COMMAND).store(command, Ordering::Release);
        LaneReceiver {
            at: geometry.small(command),
            memory,
            geometry,
            fences,
            position: Position::Parked,
            command,
            open: VecDeque::with_capacity(GRANTS),
            granted: start,
            host_consumed: 0,
            nonces,
        }
    }

    /// Settles which fences the two processes use, before the lane is polled for the first time.
    pub fn settle(&mut self, fences: Fences) {
        self.fences = fences;
    }

    /// Whether the lane is polled.
    #[inline]
    pub fn position(&self) -> Position {
        self.position
    }

    /// Grants that the sender has not yet entered.
    #[inline]
    pub fn open_grants(&self) -> usize {
        self.open.len()
    }

    /// Lines that the run at the cursor still has for packets, the LINK's not counted.
    pub fn room_lines(&self) -> usize {
        self.at.end.saturating_sub(self.at.line + 1)
    }

    /// Whether something stands at the cursor: one load, which stays in our cache until the sender writes there.
    #[inline(always)]
    pub fn is_ready(&self) -> bool {
        // Acquire: pairs with the release of the tag in `LaneSender::send`.
        self.memory.area(self.at.area).word(self.at.line * LINE_WORDS).load(Ordering::Acquire)
            == self.at.nonce
    }

    /// Looks at the cursor. A LINK is followed, and reported so that the pool can be told.
    #[inline(always)]
    pub fn peek(&mut self) -> Arrival<W::Payload<'_>> {
        let Cursor { area, line: at, end, nonce, .. } = self.at;
        // SAFETY: the cursor stands before the end of its run, or in the control block if it has none; both lie inside their areas.
        let line = unsafe { self.memory.area(area).line(at) };
        // Acquire: as in `is_ready`.
        if line[0].load(Ordering::Acquire) != nonce {
            return Arrival::Nothing;
        }
        let words = [1, 2, 3].map(|i: usize| line[i].load(Ordering::Relaxed));
        if words[0] as u8 == LINK as u8 {
            // As a value of its own, so that the header's words need no place in memory on the way of a packet.
            return match self.follow(words[0], words[1]) {
                Some((freed, dry)) => Arrival::Moved { freed, dry },
                None => Arrival::Violation,
            };
        }
        let payload = (words[0] >> 32) as usize;
        if payload > self.geometry.packet_bytes() || at + lines_for(payload) >= end {
            return Arrival::Violation;
        }
        let (area, word) = (self.memory.area(area), at * LINE_WORDS + HEADER_WORDS);
        // SAFETY: the packet ends before the run does, and runs lie inside their areas.
        Arrival::Packet(words, unsafe { area.payload(word, payload) })
    }

    /// Steps over the packet that `peek` returned; `first` is its first header word.
    #[inline(always)]
    pub fn take(&mut self, first: u64) {
        self.at.line += lines_for((first >> 32) as usize);
    }

    /// Grants an extent of the pool. Only while active, and with fewer than [`GRANTS`] open.
    pub fn grant(&mut self, first: u16, chunks: u16) {
        assert!(self.position == Position::Active && self.open.len() < GRANTS);
        assert!(usize::from(first) + usize::from(chunks) <= self.geometry.pool_chunks);
        let nonce = self.nonces.draw();
        let entry = GRANT_RING + (self.granted as usize % GRANTS) * 2;
        self.granted = self.granted.wrapping_add(1);
        let word =
            u64::from(self.granted as u32) << 32 | u64::from(first) << 16 | u64::from(chunks);
        self.open.push_back((first, chunks, nonce));
        let control = &self.memory.control;
        if crate::canary::planted("grant-before-nonce") {
            control.word(entry).store(word, Ordering::Release);
        }
        control.word(entry + 1).store(nonce, Ordering::Relaxed);
        // Release: pairs with the acquire in `LaneSender::next_grant`, so that the nonce is seen with the grant.
        control.word(entry).store(word, Ordering::Release);
    }

    /// Begins to park an active lane. The caller then issues the heavy fence, once for all lanes that it parks, and calls
    /// [`LaneReceiver::try_park`].
    pub fn begin_park(&mut self) {
        assert!(self.position == Position::Active);
        self.position = Position::Parking;
        let second = self.command & SECOND ^ SECOND;
        self.command = self.nonces.draw() & !SECOND | second | PARKED;
        let control = &self.memory.control;
        control.word(GRANT_BASE).store(self.granted, Ordering::Relaxed);
        // Release: pairs with the acquire of the command in `LaneSender::send`.
        control.word(COMMAND).store(self.command, Ordering::Release);
    }

    /// The heavy half of the race with the sender: between [`LaneReceiver::begin_park`] and [`LaneReceiver::try_park`].
    pub fn fences(&self) -> Fences {
        self.fences
    }

    /// Completes a parking if the sender has no packet under way and none is left; `freed` is given every extent that comes
    /// back. `false`: a packet is there or is being written; it must be drained first.
    ///
    /// After `true` the caller looks at [`LaneReceiver::is_ready`] before it forgets the lane: the sender may have sent to the new
    /// place already, and its bell may have been answered while the lane was parking. It does not ring again.
    pub fn try_park(&mut self, mut freed: impl FnMut(Freed)) -> bool {
        assert!(self.position == Position::Parking);
        // Acquire: pairs with the release of intent 0 in `LaneSender::send`: its packet is visible before we look.
        if self.memory.control.word(INTENT).load(Ordering::Acquire) != 0
            && !crate::canary::planted("park-ignores-intent")
        {
            return false;
        }
        if self.is_ready() {
            return false;
        }
        if let Some(extent) = self.leave() {
            freed(extent);
        }
        for (first, chunks, _) in self.open.drain(..) {
            freed((first, chunks));
        }
        self.at = self.geometry.small(self.command);
        self.position = Position::Parked;
        true
    }

    /// Polls a parked lane again, after its doorbell rang.
    pub fn unpark(&mut self) {
        assert!(self.position == Position::Parked);
        self.position = Position::Active;
        self.command &= !PARKED;
        self.memory.control.word(COMMAND).store(self.command, Ordering::Release);
    }

    /// Whether the sender sleeps until there is room; the answer is given once. To be asked after room was made.
    pub fn take_waiting(&self) -> bool {
        let waiting = self.is_waiting();
        if waiting {
            self.memory.control.word(WAITING).store(0, Ordering::Relaxed);
        }
        waiting
    }

    /// Whether the sender sleeps until there is room.
    pub fn is_waiting(&self) -> bool {
        full_fence();
        self.memory.control.word(WAITING).load(Ordering::Relaxed) != 0
    }

    /// The region of ours that the sender is copying by a system call right now, if it says so.
    pub fn busy_region(&self) -> Option<u16> {
        let mark = self.memory.control.word(BUSY).load(Ordering::SeqCst);
        u16::try_from(mark.checked_sub(1)?).ok()
    }

    /// Gives up the lane for good, its sender being gone: everything that it held, to `freed`.
    pub fn abandon(&mut self, mut freed: impl FnMut(Freed)) {
        if self.at.area == Area::Pool {
            freed(self.at.extent(&self.geometry));
        }
        for (first, chunks, _) in self.open.drain(..) {
            freed((first, chunks));
        }
        self.at =
            Cursor { area: Area::Control, line: SMALL_LINE, end: SMALL_LINE, chunks: 0, nonce: 1 };
        self.position = Position::Parked;
    }

    /// Follows a LINK to where the sender went on: what [`Arrival::Moved`] says, or `None` for a violation.
    #[cold]
    fn follow(&mut self, target: u64, nonce: u64) -> Option<(Option<Freed>, bool)> {
        // An honest sender enters a run only to write a packet there. A ring of empty runs would keep us busy for ever.
        if self.at.is_fresh(&self.geometry) {
            return None;
        }
        if target & LINK_HOST == 0 {
            let (first, chunks, nonce) = self.open.pop_front()?;
            let freed = self.leave();
            self.at = self.geometry.extent(first.into(), chunks.into(), nonce);
            return Some((freed, false));
        }
        let index = (target >> 16) as usize & 0xffff;
        if index >= self.geometry.host_chunks || nonce & 1 == 0 {
            return None;
        }
        let freed = self.leave();
        self.at = self.geometry.host(index, nonce);
        Some((freed, true))
    }

    /// Leaves the current run: an extent goes back to the pool, a host chunk to the sender.
    fn leave(&mut self) -> Option<Freed> {
        match self.at.area {
            Area::Pool => Some(self.at.extent(&self.geometry)),
            Area::Control => None,
            Area::Host => {
                self.host_consumed = self.host_consumed.wrapping_add(1);
                // Release: pairs with the acquire in `LaneSender::go_on`: we have read all of the chunk.
                self.memory
                    .control
                    .word(HOST_CONSUMED)
                    .store(self.host_consumed, Ordering::Release);
                None
            }
        }
    }
}
