//! The sending end of a lane.

use super::copies::Copies;
use super::nonce::Nonces;
use super::{
    Area, BUSY, COMMAND, Cursor, GRANT_BASE, GRANT_RING, GRANTS, Geometry, HEADER_WORDS,
    HOST_CONSUMED, INTENT, LINK, LINK_HOST, LaneMemory, PARKED, WAITING, lines_for,
};
use crate::memory::{LONG_BYTES, View};
use crate::segment::{LINE_WORDS, Words};
use crate::sync::{Fences, Ordering, full_fence};
use core::ops::Range;

/// Lines that are claimed together.
const CLAIM: usize = 8;

/// The caller's next action after a packet was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sent {
    /// Nothing: the receiver polls this lane.
    Done,
    /// Ring the doorbell: the lane is parked.
    Ring,
}

/// There is neither credit nor room in the host chunks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full;

/// The sending end. All fields are private to the sending process.
pub struct LaneSender<W> {
    memory: LaneMemory<W>,
    geometry: Geometry,
    fences: Fences,
    cursor: Cursor,
    /// Lines of the run below this one were claimed; see [`claim`].
    claimed: usize,
    /// The last command that this side has obeyed.
    command: u64,
    /// Grants taken from the ring, counted from the start of the link.
    grants_taken: u64,
    /// Host chunks entered.
    host_entered: u64,
    /// Whether the host chunks' pages exist: they are requested when first needed.
    host_ready: bool,
    /// Times that the lane fell back on a host chunk for lack of credit.
    host_fallbacks: u64,
    nonces: Nonces,
    copies: Copies,
}

/// Writes to `lines`, so that they come into our cache together. Their last reader holds them, and
/// each write of a packet would wait for its line, with all stores behind it. On an AMD EPYC 9004
/// with far cores eight lines together take as long as two one by one. Prefetches for writing have
/// no such effect there. The word is the last of its line, and nobody reads it before a tag comes.
#[inline(always)]
fn claim<W: Words>(area: &W, lines: Range<usize>) {
    for line in lines {
        area.word(line * LINE_WORDS + LINE_WORDS - 1).store(0, Ordering::Relaxed);
    }
}

impl<W: Words> LaneSender<W> {
    /// A new lane, parked. The receiver has made its end already. `seed` starts the sequence of
    /// host nonces.
    pub fn new(memory: LaneMemory<W>, geometry: Geometry, fences: Fences, seed: u64) -> Self {
        memory.check(&geometry);
        let command = memory.control.word(COMMAND).load(Ordering::Acquire);
        let grants_taken = memory.control.word(GRANT_BASE).load(Ordering::Relaxed);
        LaneSender {
            memory,
            geometry,
            fences,
            cursor: geometry.small(command),
            claimed: 0,
            command,
            grants_taken,
            host_entered: 0,
            host_ready: false,
            host_fallbacks: 0,
            nonces: Nonces::new(seed),
            copies: Copies::new(),
        }
    }

    /// Writes one packet: `words` are header words 1 to 3, the payload is `head` then `body`,
    /// together at most [`Geometry::packet_bytes`]. `host_memory` requests the host chunks' pages
    /// when they are needed, and returns whether they exist.
    #[inline(always)]
    pub fn send(
        &mut self,
        words: [u64; 3],
        head: &[u8],
        body: View<'_>,
        host_memory: impl FnOnce() -> bool,
    ) -> Result<Sent, Full> {
        let lines = lines_for(head.len() + body.len());
        let control = self.memory.control.front();
        // From here to the end of the packet the receiver takes back no extent.
        control[INTENT].store(1, Ordering::Relaxed);
        self.fences.light();
        // Acquire: pairs with the release of the command in `LaneReceiver::begin_park`, so the
        // grant base is visible with it.
        let command = control[COMMAND].load(Ordering::Acquire);
        if command != self.command {
            self.obey(command);
        }
        let fits_here =
            self.cursor.area == Area::Pool && self.cursor.line + lines < self.cursor.end;
        if !fits_here && !self.enter_next_run(lines, host_memory) {
            self.memory.control.front()[INTENT].store(0, Ordering::Release);
            return Err(Full);
        }
        let Cursor { area, line: at, nonce, end, .. } = self.cursor;
        let next = at + lines;
        self.cursor.line = next;
        let (control, area) = (self.memory.control.front(), self.memory.area(area));
        // SAFETY: the packet ends before the run does, because otherwise `enter_next_run` has moved
        // to a new run; runs lie inside their areas.
        let line = unsafe { area.line(at) };
        line[1].store(words[0], Ordering::Relaxed);
        line[2].store(words[1], Ordering::Relaxed);
        line[3].store(words[2], Ordering::Relaxed);
        let first = at * LINE_WORDS + HEADER_WORDS;
        if body.len() < LONG_BYTES {
            // SAFETY: as above.
            unsafe { area.fill(first, head, body) };
        } else {
            // SAFETY: as above.
            self.copies.copy(body, |body| unsafe { area.fill(first, head, body) });
        }
        // Release: pairs with the acquire of the tag in `LaneReceiver::peek`.
        line[0].store(nonce, publish_ordering());
        // Long packets take many lines each, and a copy of them overlaps the transfers by itself.
        if next >= self.claimed && lines <= CLAIM {
            self.claimed = end.min(next + CLAIM);
            claim(area, next..self.claimed);
        }
        // Release: pairs with the acquire of the intent in `LaneReceiver::try_park`: intent 0 means
        // that the packet is visible, and that nothing is written behind it.
        control[INTENT].store(0, Ordering::Release);
        if crate::canary::planted("skipped-wake-up") {
            return Ok(Sent::Done);
        }
        self.fences.light();
        let command = control[COMMAND].load(Ordering::Relaxed);
        Ok(if command & PARKED != 0 { Sent::Ring } else { Sent::Done })
    }

    /// Whether the pages of the host chunks can return to the system: they exist, and neither side
    /// uses them before they are requested again. The device calls this from time to time, so that
    /// an idle lane costs no pages.
    pub fn tidy(&mut self) -> bool {
        if !self.host_ready {
            return false;
        }
        let command = self.memory.control.word(COMMAND).load(Ordering::Acquire);
        if command != self.command {
            self.obey(command);
        }
        // Acquire: pairs with the release in `LaneReceiver::leave`; the receiver has left all
        // chunks that it counts.
        let consumed = self.memory.control.word(HOST_CONSUMED).load(Ordering::Acquire);
        if self.cursor.area == Area::Host || consumed != self.host_entered {
            return false;
        }
        self.host_ready = false;
        true
    }

    /// Announces that the sender is about to sleep because a packet found no room. The caller then
    /// tries once more. Either there is room now, or the receiver sees the word when it makes room
    /// (Dekker, with a full fence on both rare sides).
    pub fn announce_waiting(&self) {
        self.memory.control.word(WAITING).store(1, Ordering::Relaxed);
        full_fence();
    }

    /// Marks region `index` of the receiver as being copied by a system call, until
    /// [`LaneSender::mark_idle`]. After this, and before the copy, the caller reads the region's
    /// stamp. Either it sees that the region was withdrawn, or the owner sees the mark and keeps
    /// the memory (Dekker, both SeqCst).
    pub fn mark_busy(&self, index: u16) {
        self.memory.control.word(BUSY).store(u64::from(index) + 1, Ordering::SeqCst);
    }

    /// Takes the mark back.
    pub fn mark_idle(&self) {
        self.memory.control.word(BUSY).store(0, Ordering::Release);
    }

    /// Times that the lane fell back on host memory for lack of credit (D-16).
    pub fn host_fallbacks(&self) -> u64 {
        self.host_fallbacks
    }

    /// Whether the lane was parked when the last packet was tried. After a [`Full`] on a parked
    /// lane (no pages for the host chunks) ring the doorbell: otherwise the receiver never grants
    /// the awaited credit.
    pub fn is_parked(&self) -> bool {
        self.command & PARKED != 0
    }

    /// Whether the next packet would go to the receiver's pool.
    pub fn is_in_pool(&self) -> bool {
        self.cursor.area == Area::Pool
    }

    /// Obeys a command that differs from the last. One with a new nonce moves the cursor to its
    /// small chunk and voids all open grants. This holds for unparked lanes, too: the receiver may
    /// have parked and unparked the lane since the last look.
    #[cold]
    fn obey(&mut self, command: u64) {
        let seen = crate::canary::planted("unseen-parking") && command & PARKED == 0;
        if command | PARKED != self.command | PARKED && !seen {
            self.cursor = self.geometry.small(command);
            self.claimed = 0;
            self.grants_taken = self.memory.control.word(GRANT_BASE).load(Ordering::Relaxed);
        }
        self.command = command;
    }

    /// Moves to the next run if the packet does not fit, or if credit has come back in DMA mode
    /// (D-17).
    #[cold]
    fn enter_next_run(&mut self, lines: usize, host_memory: impl FnOnce() -> bool) -> bool {
        assert!(lines < self.geometry.chunk_lines, "a packet fits a chunk with its LINK");
        let fits = self.cursor.line + lines < self.cursor.end;
        if let Some(extent) = self.next_grant() {
            self.link(LINK, 0);
            self.grants_taken = self.grants_taken.wrapping_add(1);
            self.cursor = extent;
            self.claimed = 0;
            return true;
        }
        if fits {
            return true;
        }
        // Acquire: pairs with the release in `LaneReceiver::leave`; the receiver has read the whole
        // chunk that is reused.
        let consumed = self.memory.control.word(HOST_CONSUMED).load(Ordering::Acquire);
        if self.host_entered.wrapping_sub(consumed) >= self.geometry.host_chunks as u64
            && !crate::canary::planted("host-reuse")
        {
            return false;
        }
        self.host_ready = self.host_ready || host_memory();
        if !self.host_ready {
            return false;
        }
        let index = (self.host_entered % self.geometry.host_chunks as u64) as usize;
        let nonce = self.nonces.draw();
        self.link(LINK | LINK_HOST | (index as u64) << 16, nonce);
        self.host_entered = self.host_entered.wrapping_add(1);
        self.host_fallbacks += 1;
        self.cursor = self.geometry.host(index, nonce);
        self.claimed = 0;
        true
    }

    /// The next grant in the ring, if there is one.
    fn next_grant(&self) -> Option<Cursor> {
        let entry = GRANT_RING + (self.grants_taken as usize % GRANTS) * 2;
        // Acquire: pairs with the release in `LaneReceiver::grant`.
        let word = self.memory.control.word(entry).load(Ordering::Acquire);
        if (word >> 32) as u32 != (self.grants_taken as u32).wrapping_add(1) {
            return None;
        }
        let (first, chunks) = ((word >> 16) as usize & 0xffff, word as usize & 0xffff);
        // A hostile receiver may write anything here; ignore a grant outside the pool.
        if chunks == 0 || first + chunks > self.geometry.pool_chunks {
            return None;
        }
        let nonce = self.memory.control.word(entry + 1).load(Ordering::Relaxed);
        Some(self.geometry.extent(first, chunks, nonce))
    }

    /// Writes a LINK at the cursor; its line is reserved.
    fn link(&self, target: u64, nonce: u64) {
        let area = self.memory.area(self.cursor.area);
        let first = self.cursor.line * LINE_WORDS;
        area.word(first + 1).store(target, Ordering::Relaxed);
        area.word(first + 2).store(nonce, Ordering::Relaxed);
        // Release: pairs with the acquire of the tag in `LaneReceiver::peek`.
        area.word(first).store(self.cursor.nonce, Ordering::Release);
    }
}

#[inline(always)]
fn publish_ordering() -> Ordering {
    if crate::canary::planted("relaxed-publish") { Ordering::Relaxed } else { Ordering::Release }
}
