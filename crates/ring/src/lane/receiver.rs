//! The receiving end of a lane.

use super::nonce::Nonces;
use super::{
    Area, BUSY, COMMAND, Cursor, GRANT_BASE, GRANT_RING, GRANTS, Geometry, HEADER_WORDS,
    HOST_CONSUMED, INTENT, LINK, LINK_HOST, LaneMemory, PARKED, SECOND, SMALL_LINE, WAITING,
    lines_for,
};
use crate::segment::{LINE_WORDS, Words};
use crate::sync::{Fences, Ordering, full_fence};
use std::collections::VecDeque;

/// A run of the pool that went back to the receiver: first chunk and number of chunks.
pub type Freed = (u16, u16);

/// The content at the cursor.
#[derive(Clone, Copy, Debug)]
pub enum Arrival<P> {
    /// Nothing yet.
    Nothing,
    /// A packet: header words 1 to 3, copied once, and the payload, valid until
    /// [`LaneReceiver::take`].
    Packet([u64; 3], P),
    /// The lane continues in another run.
    Moved {
        /// The extent that the lane left, which returns to the pool.
        freed: Option<Freed>,
        /// Whether it fell back on a host chunk for lack of credit.
        starved: bool,
    },
    /// The sender broke the rules: close the link.
    Violation,
}

/// Whether the lane is polled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LaneState {
    /// Polled; may hold grants.
    Active,
    /// Parking has begun; still polled until it completes.
    Parking,
    /// Not polled; holds nothing; the sender rings.
    Parked,
}

/// The receiving end. All fields are private to the receiving process.
pub struct LaneReceiver<W> {
    memory: LaneMemory<W>,
    geometry: Geometry,
    fences: Fences,
    state: LaneState,
    cursor: Cursor,
    command: u64,
    /// Extents that were granted and not yet entered, in order, with their nonces.
    open: VecDeque<(u16, u16, u64)>,
    /// Grants written to the ring since the start of the link.
    granted: u64,
    host_consumed: u64,
    nonces: Nonces,
}

impl<W: Words> LaneReceiver<W> {
    /// A new lane, parked. `seed` must be unpredictable; `start` is the first value of the counters
    /// (tests start near wrap-around).
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
            cursor: geometry.small(command),
            memory,
            geometry,
            fences,
            state: LaneState::Parked,
            command,
            open: VecDeque::with_capacity(GRANTS),
            granted: start,
            host_consumed: 0,
            nonces,
        }
    }

    /// Sets the fences that the two processes use, before the first poll of the lane.
    pub fn set_fences(&mut self, fences: Fences) {
        self.fences = fences;
    }

    /// Whether the lane is polled.
    #[inline]
    pub fn state(&self) -> LaneState {
        self.state
    }

    /// Grants that the sender has not yet entered.
    #[inline]
    pub fn open_grants(&self) -> usize {
        self.open.len()
    }

    /// Lines left for packets in the current run, without the LINK's.
    pub fn room_lines(&self) -> usize {
        self.cursor.end.saturating_sub(self.cursor.line + 1)
    }

    /// Whether a packet or LINK stands at the cursor. One load of a line that stays in our cache
    /// until the sender writes to it.
    #[inline(always)]
    pub fn is_ready(&self) -> bool {
        // Acquire: pairs with the release of the tag in `LaneSender::send`.
        self.memory
            .area(self.cursor.area)
            .word(self.cursor.line * LINE_WORDS)
            .load(Ordering::Acquire)
            == self.cursor.nonce
    }

    /// Looks at the cursor. Follows a LINK, and reports it so that the device can update the pool.
    #[inline(always)]
    pub fn peek(&mut self) -> Arrival<W::Payload<'_>> {
        let Cursor { area, line: at, end, nonce, .. } = self.cursor;
        // SAFETY: the cursor stands before the end of its run, or in the control block without a
        // run; both lie inside their areas.
        let line = unsafe { self.memory.area(area).line(at) };
        // Acquire: as in `is_ready`.
        if line[0].load(Ordering::Acquire) != nonce {
            return Arrival::Nothing;
        }
        let words = [1, 2, 3].map(|i: usize| line[i].load(Ordering::Relaxed));
        if words[0] as u8 == LINK as u8 {
            // A separate value, so that a packet's header words stay in registers.
            return match self.follow(words[0], words[1]) {
                Some((freed, starved)) => Arrival::Moved { freed, starved },
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
        self.cursor.line += lines_for((first >> 32) as usize);
    }

    /// Grants an extent of the pool. Only while active, and with fewer than [`GRANTS`] open.
    pub fn grant(&mut self, first: u16, chunks: u16) {
        assert!(self.state == LaneState::Active && self.open.len() < GRANTS);
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
        // Release: pairs with the acquire in `LaneSender::next_grant`, so the nonce is visible with
        // the grant.
        control.word(entry).store(word, Ordering::Release);
    }

    /// Begins to park an active lane. The caller then issues one heavy fence for all lanes that it
    /// parks, and calls [`LaneReceiver::try_park`].
    pub fn begin_park(&mut self) {
        assert!(self.state == LaneState::Active);
        self.state = LaneState::Parking;
        let second = self.command & SECOND ^ SECOND;
        self.command = self.nonces.draw() & !SECOND | second | PARKED;
        let control = &self.memory.control;
        control.word(GRANT_BASE).store(self.granted, Ordering::Relaxed);
        // Release: pairs with the acquire of the command in `LaneSender::send`.
        control.word(COMMAND).store(self.command, Ordering::Release);
    }

    /// The fences for the heavy side of the race, between [`LaneReceiver::begin_park`] and
    /// [`LaneReceiver::try_park`].
    pub fn fences(&self) -> Fences {
        self.fences
    }

    /// Completes a parking if the sender is writing no packet and none is left. Passes every extent
    /// that comes back to `freed`. `false`: a packet is there or is being written. Drain it first.
    ///
    /// After `true` the caller checks [`LaneReceiver::is_ready`] before it stops polling the lane.
    /// The sender may have sent to the new small chunk already, and its bell may have been answered
    /// during the parking. It does not ring again.
    pub fn try_park(&mut self, mut freed: impl FnMut(Freed)) -> bool {
        assert!(self.state == LaneState::Parking);
        // Acquire: pairs with the release of intent 0 in `LaneSender::send`: its packet is visible
        // to the check below.
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
        self.cursor = self.geometry.small(self.command);
        self.state = LaneState::Parked;
        true
    }

    /// Polls a parked lane again, after its doorbell rang.
    pub fn unpark(&mut self) {
        assert!(self.state == LaneState::Parked);
        self.state = LaneState::Active;
        self.command &= !PARKED;
        self.memory.control.word(COMMAND).store(self.command, Ordering::Release);
    }

    /// Whether the sender sleeps until there is room. Clears the mark. Call it after making room.
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

    /// The region of ours that the sender has marked as being copied by a system call.
    pub fn busy_region(&self) -> Option<u16> {
        let mark = self.memory.control.word(BUSY).load(Ordering::SeqCst);
        u16::try_from(mark.checked_sub(1)?).ok()
    }

    /// Gives up the lane of a dead sender. Passes every extent that it held to `freed`.
    pub fn abandon(&mut self, mut freed: impl FnMut(Freed)) {
        if self.cursor.area == Area::Pool {
            freed(self.cursor.extent(&self.geometry));
        }
        for (first, chunks, _) in self.open.drain(..) {
            freed((first, chunks));
        }
        self.cursor =
            Cursor { area: Area::Control, line: SMALL_LINE, end: SMALL_LINE, chunks: 0, nonce: 1 };
        self.state = LaneState::Parked;
    }

    /// Follows a LINK to the next run. Returns the fields of [`Arrival::Moved`], or `None` for a
    /// violation.
    #[cold]
    fn follow(&mut self, target: u64, nonce: u64) -> Option<(Option<Freed>, bool)> {
        // An honest sender enters a run only to write a packet. A ring of empty runs would be an
        // endless loop here.
        if self.cursor.is_fresh(&self.geometry) {
            return None;
        }
        if target & LINK_HOST == 0 {
            let (first, chunks, nonce) = self.open.pop_front()?;
            let freed = self.leave();
            self.cursor = self.geometry.extent(first.into(), chunks.into(), nonce);
            return Some((freed, false));
        }
        let index = (target >> 16) as usize & 0xffff;
        if index >= self.geometry.host_chunks || nonce & 1 == 0 {
            return None;
        }
        let freed = self.leave();
        self.cursor = self.geometry.host(index, nonce);
        Some((freed, true))
    }

    /// Leaves the current run: an extent goes back to the pool, a host chunk to the sender.
    fn leave(&mut self) -> Option<Freed> {
        match self.cursor.area {
            Area::Pool => Some(self.cursor.extent(&self.geometry)),
            Area::Control => None,
            Area::Host => {
                self.host_consumed = self.host_consumed.wrapping_add(1);
                // Release: pairs with the acquire in `LaneSender::enter_next_run`: the whole chunk
                // has been read.
                self.memory
                    .control
                    .word(HOST_CONSUMED)
                    .store(self.host_consumed, Ordering::Release);
                None
            }
        }
    }
}
