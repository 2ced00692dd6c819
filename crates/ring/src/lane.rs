//! A lane carries packets from one sending function to one receiving function, in order.
//!
//! It is DAMQ-PD's virtual port in software (D-01, D-02): a linked list of runs of lines that lie
//! scattered in shared memory. In PIO mode a run is an *extent* of the receiver's pool, granted to
//! this sender as credit. Without credit the sender falls back on a *host chunk* in the pair's own
//! memory (DMA mode, D-16). Packets fill a run from its start. When the next one does not fit, or
//! credit has come back, the sender writes a LINK to the next run. One list holds both modes, so
//! their order needs no further rule (D-19).
//!
//! ```text
//!  receiver's pool                                       pair's memory
//!    extent 5               extent 2                       host chunk 0
//!   [pkt][pkt][pkt][LINK]--->[pkt][pkt][LINK]------------->[pkt][pkt][LINK]---> next extent
//! ```
//!
//! **Validity.** A packet is valid when the first word of its line equals the run's *nonce*: 64
//! random bits that the receiver draws for every grant. Stale bytes of an earlier use cannot equal
//! a number that was drawn later, so nothing is ever cleared. One line crosses between the cores
//! per small packet and none comes back.
//!
//! **Parking.** An idle lane holds no credit and is not polled: the receiver *parks* it before it
//! sleeps, or when others wait for credit. A parked lane's next packet goes to a small chunk of the
//! pair's memory, and the sender rings the doorbell. Parking and sending race as follows. Both
//! sides write, then read:
//!
//! | sender | receiver |
//! |---|---|
//! | intent = 1 | command = parked, new nonce |
//! | *light fence* | *heavy fence* |
//! | command? parked: go to the small chunk | intent = 0, cursor empty? parked: take extents back |
//! | write packet, publish | otherwise: still parking, look again later |
//! | intent = 0; *light fence*; command? parked: ring | |
//!
//! Either the receiver sees the packet, or the sender sees the command and rings. No extent is
//! taken back while the sender writes to it. Two small chunks alternate: after a new parking the
//! sender's next packet does not overwrite an unread one in the old chunk.
//!
//! **Trust.** The receiver keeps its own record of all grants. From shared memory it reads only
//! tags, headers and payload; it copies each once and then checks it. A sender can harm its own
//! lane. It can also write to the receiver's pool beyond its grants: see the threat model in
//! docs/threat-model.md.

mod copies;
mod nonce;
mod receiver;
mod sender;

pub use receiver::{Arrival, Freed, LaneReceiver, LaneState};
pub use sender::{Full, LaneSender, Sent};

use crate::segment::{LINE_BYTES, LINE_WORDS, Words};

/// Sizes of a lane's parts, in lines. The same on both sides, fixed when the link is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    /// Chunks of the receiver's pool; at most 65,535.
    pub pool_chunks: usize,
    /// Lines of a chunk: the unit of credit, and of a host chunk.
    pub chunk_lines: usize,
    /// Lines of each of the two small chunks in the control block.
    pub small_lines: usize,
    /// Host chunks in the pair's memory; at least 2, because a LINK leads from one to the next.
    pub host_chunks: usize,
}

impl Geometry {
    /// The geometry of the shared-memory device: a pool of 1 MiB in chunks of 8 KiB. One
    /// direction's control block and small chunks fill 2 KiB, its host chunks 64 KiB.
    pub const STANDARD: Geometry =
        Geometry { pool_chunks: 128, chunk_lines: 128, small_lines: 13, host_chunks: 8 };

    /// Longest payload of one packet, in bytes: a chunk less the LINK's line and the header.
    pub const fn packet_bytes(&self) -> usize {
        (self.chunk_lines - 1) * LINE_WORDS * 8 - HEADER_WORDS * 8
    }

    /// Lines of one direction's control block, its two small chunks included.
    pub const fn control_lines(&self) -> usize {
        SMALL_LINE + 2 * self.small_lines
    }

    /// Lines of all host chunks of one direction.
    pub const fn host_lines(&self) -> usize {
        self.host_chunks * self.chunk_lines
    }
}

/// Words of a packet's header: tag and three words that belong to the engine.
pub const HEADER_WORDS: usize = 4;
/// What a packet's lines are rounded up with, in bytes.
const ROUNDED_UP: usize = HEADER_WORDS * 8 + LINE_BYTES - 1;

/// Grants that can be open at once.
pub const GRANTS: usize = 16;

// The control block, by lines. Each line has one writer.
//   line 0     receiver: command, first valid grant, host chunks consumed
//   line 1     sender:   intent, region that it copies by system call, sleeps until there is room
//   lines 2-5  receiver: grant ring, 16 x {sequence | first chunk | chunks, nonce}
//   lines 6-   sender:   two small chunks
const COMMAND: usize = 0;
const GRANT_BASE: usize = 1;
const HOST_CONSUMED: usize = 2;
const INTENT: usize = LINE_WORDS;
const BUSY: usize = LINE_WORDS + 1;
const WAITING: usize = LINE_WORDS + 2;
const GRANT_RING: usize = 2 * LINE_WORDS;
const SMALL_LINE: usize = 6;

const _: () = assert!(GRANT_RING + GRANTS * 2 == SMALL_LINE * LINE_WORDS);
const _: () = assert!(Geometry::STANDARD.control_lines() * LINE_WORDS * 8 == 2048);

/// Command bit: parked.
const PARKED: u64 = 1;
/// Command bit: which small chunk.
const SECOND: u64 = 2;

/// First header word of a LINK: kind 255, which no packet has. Bit 8: the target is a host chunk,
/// with its index in bits 16 to 31.
const LINK: u64 = 0xff;
const LINK_HOST: u64 = 1 << 8;

/// Lines of a packet with `payload` bytes.
#[inline(always)]
fn lines_for(payload: usize) -> usize {
    // An addition and a shift; `div_ceil` would also test the remainder.
    (payload + ROUNDED_UP) / LINE_BYTES
}

/// The three areas with lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Area {
    Pool,
    Control,
    Host,
}

/// The position of a side: the next line, and the end of the run, which lies inside its area. The
/// last line before `end` is reserved for a LINK.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Cursor {
    area: Area,
    line: usize,
    /// First line after the run; its `chunks` chunks end here.
    end: usize,
    chunks: usize,
    nonce: u64,
}

impl Cursor {
    /// Whether this run, in the pool or in host memory, is still unused.
    fn is_fresh(&self, geometry: &Geometry) -> bool {
        self.area != Area::Control && self.line + self.chunks * geometry.chunk_lines == self.end
    }

    /// First chunk and number of chunks, of a run in the pool.
    fn extent(&self, geometry: &Geometry) -> (u16, u16) {
        ((self.end / geometry.chunk_lines - self.chunks) as u16, self.chunks as u16)
    }
}

impl Geometry {
    /// The small chunk that a parking command names.
    fn small(&self, command: u64) -> Cursor {
        let second =
            usize::from(command & SECOND != 0 && !crate::canary::planted("one-small-chunk"));
        let line = SMALL_LINE + second * self.small_lines;
        let end = line + self.small_lines;
        Cursor { area: Area::Control, line, end, chunks: 0, nonce: command | PARKED }
    }

    fn host(&self, index: usize, nonce: u64) -> Cursor {
        let line = index * self.chunk_lines;
        Cursor { area: Area::Host, line, end: line + self.chunk_lines, chunks: 1, nonce }
    }

    fn extent(&self, first: usize, chunks: usize, nonce: u64) -> Cursor {
        let line = first * self.chunk_lines;
        Cursor { area: Area::Pool, line, end: line + chunks * self.chunk_lines, chunks, nonce }
    }
}

/// The memory of a lane.
#[derive(Clone)]
pub struct LaneMemory<W> {
    /// The receiver's pool.
    pub pool: W,
    /// This direction's control block, with the two small chunks.
    pub control: W,
    /// This direction's host chunks.
    pub host: W,
}

impl<W: Words> LaneMemory<W> {
    /// Checks once that each part has the lines of `geometry`, so that no cursor can leave them.
    fn check(&self, geometry: &Geometry) {
        assert!(self.pool.lines() >= geometry.pool_chunks * geometry.chunk_lines);
        assert!(self.control.lines() >= geometry.control_lines());
        assert!(self.host.lines() >= geometry.host_lines());
    }
}

impl<W> LaneMemory<W> {
    #[inline(always)]
    fn area(&self, area: Area) -> &W {
        match area {
            Area::Pool => &self.pool,
            Area::Control => &self.control,
            Area::Host => &self.host,
        }
    }
}

// Each condition in a line of its own: cargo-mutants takes only `cfg(test)` for test code.
#[cfg(test)]
#[cfg(loom)]
mod exhaustive_tests;
#[cfg(test)]
#[cfg(not(loom))]
mod hostile_tests;
#[cfg(test)]
#[cfg(loom)]
mod model_tests;
#[cfg(test)]
#[cfg(not(loom))]
mod tests;
