//! One link: everything that two functions share, both ways.
//!
//! The pair's memory, made by the side that connects:
//!
//! ```text
//!   page 0     control of the lane from the connecting side (2 KiB), of the lane to it (2 KiB)
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

/// Maximum number of queue pairs: the board has a gate for each.
pub const QUEUE_PAIRS: usize = 16_384;
/// Gates: those of queue pairs, then one for each channel.
pub const GATES: usize = QUEUE_PAIRS + 65_536;
/// Maximum number of regions: the board has a notice for each.
pub const REGIONS: usize = 4_096;

/// The gate index of a queue pair number. Numbers that cannot exist get `GATES`, which is closed.
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

/// The lane that `side` sends on: its control block, and its host chunks.
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
    /// The pair's memory, and our side of it, to populate and release our host chunks.
    pub pair: Memory,
    pub side: Side,
    pub board: Board<Segment>,
    pub doorbell: Doorbell<Segment>,
    /// Our lane's number at the peer's doorbell.
    pub remote_lane: usize,
    pub peer: Introduction,
    /// The peer's process, if the kernel lets us reach its memory; probed on first use.
    pub process: Option<Option<Process>>,
    pub pid: i32,
    /// The peer's regions that were used, by index.
    pub regions: Vec<Option<Reach>>,
    pub host_pages: HostPages,
}

/// When the pages of our host chunks were used. All counts are of entries into host chunks.
pub struct HostPages {
    /// The count at which the pages were last given back.
    pub released: u64,
    /// The count at the last check.
    pub seen: u64,
    /// When `seen` last changed.
    pub since: Instant,
}

impl Up {
    /// Allocates the pages of the host chunks. The lane calls it when it first needs them. `false`:
    /// no memory.
    pub fn populate_host(pair: &Memory, side: Side) -> bool {
        mapping::populate(pair, host_offset(side), HOST_BYTES)
    }

    /// Gives the host chunks' pages back if they were unused for `linger`, so that an idle pair
    /// costs one page. `true`: they were used since, so try again.
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

/// The state of a link.
pub enum State {
    /// The peer does not listen yet, or has not answered; since when, and our patience.
    Connecting { since: Instant, patience: Duration },
    /// The peer's attempt takes precedence: we wait for it.
    Crossed { since: Instant, patience: Duration },
    /// Packets flow.
    Up(Box<Up>),
    /// The peer is gone, and why; its lane may still hold packets.
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
    /// Descriptor of the pair's memory, until it is handed over.
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
    /// It was closed because the peer broke the rules. The peer may not know yet, and may still
    /// write where it had credit. So that part of the pool stays reserved until the peer has hung
    /// up.
    pub expelled: bool,
    /// Remaining bells of the parked lane that are answered without unparking it. A parked lane
    /// needs no barrier before the next sleep, which is cheap for few messages between sleeps. Its
    /// sender rings for each message, which is expensive for many.
    pub favours: u32,
    /// The last poll found a packet, so the next may find several.
    pub streaming: bool,
    /// Packets taken since the last check for idle lanes.
    pub recent: u64,
    pub weight: u32,
    /// Lines that the lane may still deliver in this round.
    pub allowance: i64,
    /// Since our last sleep a packet found no room, or a gate was not open.
    pub refused: bool,
    /// The peer's receiver was told that we sleep until there is room.
    pub announced: bool,
    /// Control messages that wait because the socket was full.
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
            refused: false,
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
