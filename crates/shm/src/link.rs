//! One link: everything that two functions share, both ways.
//!
//! The pair's memory, made by the side that connects:
//!
//! ```text
//!   page 0     control of the lane from the connecting side (2 KiB) | control of the lane to it (2 KiB)
//!   64 KiB     host chunks of the lane from the connecting side; pages only while in use
//!   64 KiB     host chunks of the lane to it; pages only while in use
//! ```
//! So an idle pair costs one page, whatever it did before.

use crate::attach::Process;
use crate::control::{Control, Introduction};
use crate::mapping::{self, PAGE_BYTES};
use crate::region::Reach;
use bellwire_device::{Address, FunctionAddress, Status};
use bellwire_ring::board::Board;
use bellwire_ring::doorbell::Doorbell;
use bellwire_ring::lane::{Geometry, LaneMemory, LaneReceiver, LaneSender};
use bellwire_ring::memory::Memory;
use bellwire_ring::segment::{LINE_BYTES, Segment};
use bellwire_ring::sync::Fences;
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Sizes of all lanes.
pub const GEOMETRY: Geometry = Geometry::STANDARD;
const CONTROL_BYTES: usize = GEOMETRY.control_lines() * LINE_BYTES;
const HOST_BYTES: usize = GEOMETRY.host_lines() * LINE_BYTES;
/// Bytes of the pair's memory.
pub const PAIR_BYTES: usize = PAGE_BYTES + 2 * HOST_BYTES;

const _: () = assert!(2 * CONTROL_BYTES == PAGE_BYTES && HOST_BYTES.is_multiple_of(PAGE_BYTES));

/// Queue pairs that a board has gates for.
pub const QUEUE_PAIRS: usize = 16_384;
/// Gates: those of queue pairs, then one for each channel.
pub const GATES: usize = QUEUE_PAIRS + 65_536;
/// Regions that a board has notices for.
pub const REGIONS: usize = 4_096;

/// The gate of a queue pair number; `GATES`, which is closed, for a number that cannot exist.
#[inline(always)]
pub fn gate_index(queue_pair: u32) -> usize {
    if (queue_pair as usize) < QUEUE_PAIRS {
        return queue_pair as usize;
    }
    match queue_pair.checked_sub(Address::CHANNEL_BASE) {
        Some(channel) if (channel as usize) < GATES - QUEUE_PAIRS => QUEUE_PAIRS + channel as usize,
        _ => GATES,
    }
}

/// Which end of the pair's memory we are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    Connecting,
    Accepting,
}

/// Memory of the lane that `side` sends on: its control block, and its host chunks.
fn lane_parts(pair: &Memory, side: Side) -> (Segment, Segment) {
    let second = usize::from(side == Side::Accepting);
    (
        Segment::new(pair, second * CONTROL_BYTES, CONTROL_BYTES),
        Segment::new(pair, PAGE_BYTES + second * HOST_BYTES, HOST_BYTES),
    )
}

/// The lane that `side` sends on, in `pool` of the other.
pub fn lane_memory(pair: &Memory, side: Side, pool: &Segment) -> LaneMemory<Segment> {
    let (control, host) = lane_parts(pair, side);
    LaneMemory { pool: pool.clone(), control, host }
}

/// The part of a link that exists once the peer has answered.
pub struct Up {
    pub sender: LaneSender<Segment>,
    /// The pair's memory and which host chunks are ours, for their pages.
    pub pair: Memory,
    pub side: Side,
    pub board: Board<Segment>,
    pub doorbell: Doorbell<Segment>,
    /// Our lane's number at the peer's doorbell.
    pub remote_lane: usize,
    pub peer: Introduction,
    /// The peer's process, if the kernel lets us reach its memory; found out when first needed.
    pub process: Option<Option<Process>>,
    pub pid: i32,
    /// The peer's regions that were used, by index.
    pub regions: Vec<Option<Reach>>,
    pub host_pages: HostPages,
}

/// When the pages of our host chunks were used. All counts are of entries into host chunks.
pub struct HostPages {
    /// Whose pages were given back.
    pub released: u64,
    /// Seen by the last look.
    pub seen: u64,
    /// When that changed.
    pub since: Instant,
}

impl Up {
    /// Whether the host chunks' pages could be had: called by the lane when it first needs them.
    pub fn populate_host(pair: &Memory, side: Side) -> bool {
        mapping::populate(pair, host_offset(side), HOST_BYTES)
    }

    /// Gives the host chunks' pages back if nobody has needed them for `linger`, so that an idle pair costs one page. `true`:
    /// they were needed later than that, so it should be tried again.
    pub fn tidy(&mut self, linger: Duration) -> bool {
        let entered = self.sender.went_host();
        let pages = &mut self.host_pages;
        if entered == pages.released {
            return false;
        }
        if entered != pages.seen {
            pages.seen = entered;
            pages.since = Instant::now();
        }
        if pages.since.elapsed() < linger {
            return true;
        }
        if self.sender.tidy() {
            mapping::release(&self.pair, host_offset(self.side), HOST_BYTES);
            pages.released = entered;
        }
        false
    }
}

fn host_offset(side: Side) -> usize {
    PAGE_BYTES + usize::from(side == Side::Accepting) * HOST_BYTES
}

/// Where a link is in its life.
pub enum State {
    /// Nobody listens there yet, or the peer has not answered; since when, and how long we are patient.
    Connecting { since: Instant, patience: Duration },
    /// The peer's attempt goes first: we wait for it.
    Crossed { since: Instant, patience: Duration },
    /// Packets flow.
    Up(Box<Up>),
    /// The peer is gone, and why; what it sent before may still be in its lane.
    Down(Status),
}

/// One link.
pub struct Link {
    pub peer: FunctionAddress,
    pub state: State,
    pub side: Side,
    pub socket: Option<OwnedFd>,
    /// Signals the peer's death even if a forked child of it holds copies of its sockets.
    pub death: Option<OwnedFd>,
    pub pair: Option<Memory>,
    /// Descriptor of the pair's memory, until it was handed over.
    pub pair_fd: Option<OwnedFd>,
    /// The lane from the peer to us; exists once the pair's memory does.
    pub receiver: Option<LaneReceiver<Segment>>,
    /// Whether the lane is in the polled set.
    pub polled: bool,
    /// The engine had no room for the packet at the cursor.
    pub stalled: bool,
    /// Whether the engine was told that the link is down.
    pub reported: bool,
    /// Whether the engine is done with the link.
    pub closed: bool,
    /// It was closed because the peer broke the rules, and the peer may not know yet and still write where it had credit. Nobody
    /// else gets that part of the pool before the peer has hung up.
    pub expelled: bool,
    /// How many more bells of the parked lane are answered without unparking it. A lane that is left parked needs no barrier
    /// before the next sleep, which is right for few messages from sleep to sleep; its sender rings for each, which is wrong for
    /// many.
    pub favours: u32,
    /// The last look found a packet, so that the next may find several.
    pub streaming: bool,
    /// Packets taken since the last look at idle lanes.
    pub recent: u64,
    pub weight: u32,
    /// Lines that the lane may still deliver in this round.
    pub allowance: i64,
    /// A packet found no room, or a gate was not open, since we slept last.
    pub refused: std::cell::Cell<bool>,
    /// The peer's receiver was told that we sleep until there is room.
    pub announced: bool,
    /// Control messages that found the socket full.
    pub unsent: VecDeque<(Control, Option<OwnedFd>)>,
}

impl Link {
    pub fn new(peer: FunctionAddress, state: State, side: Side) -> Link {
        Link {
            peer,
            state,
            side,
            socket: None,
            death: None,
            pair: None,
            pair_fd: None,
            receiver: None,
            polled: false,
            stalled: false,
            reported: false,
            closed: false,
            expelled: false,
            favours: 0,
            streaming: false,
            recent: 0,
            weight: 1,
            allowance: 0,
            refused: std::cell::Cell::new(false),
            announced: false,
            unsent: VecDeque::new(),
        }
    }

    /// The fences of the lane from `ours` to `theirs`: asymmetric if both processes can.
    pub fn fences(ours: bool, theirs: bool) -> Fences {
        if ours && theirs { Fences::Asymmetric } else { Fences::Symmetric }
    }

    #[inline]
    pub fn up(&self) -> Option<&Up> {
        match &self.state {
            State::Up(up) => Some(up),
            _ => None,
        }
    }

    #[inline]
    pub fn up_mut(&mut self) -> Option<&mut Up> {
        match &mut self.state {
            State::Up(up) => Some(up),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_queue_pair_number_has_its_own_gate_or_none() {
        assert_eq!(gate_index(0), 0);
        assert_eq!(gate_index(QUEUE_PAIRS as u32 - 1), QUEUE_PAIRS - 1);
        assert_eq!(gate_index(QUEUE_PAIRS as u32), GATES);
        assert_eq!(gate_index(Address::CHANNEL_BASE - 1), GATES);
        assert_eq!(gate_index(Address::CHANNEL_BASE), QUEUE_PAIRS);
        assert_eq!(gate_index(Address::CHANNEL_BASE + 65_535), GATES - 1);
        assert_eq!(gate_index(Address::CHANNEL_BASE + 65_536), GATES);
        assert_eq!(gate_index(u32::MAX), GATES);
    }
}
