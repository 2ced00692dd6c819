//! The memory that functions share: sizes, and where each part lies.
//!
//! The pair's memory, made by the side that connects:
//!
//! ```text
//!   page 0     control of the lane from the connecting side (2 KiB), of the lane to it (2 KiB)
//!   64 KiB     host chunks of the lane from the connecting side; pages only while in use
//!   64 KiB     host chunks of the lane to it; pages only while in use
//! ```
//! So an idle pair costs one page, whatever it did before.

use crate::mapping::PAGE_BYTES;
use bellwire_device::Address;
use bellwire_ring::board::Board;
use bellwire_ring::doorbell::{DOORBELL_LINES, Doorbell, LANES};
use bellwire_ring::lane::{Geometry, LaneMemory};
use bellwire_ring::memory::Memory;
use bellwire_ring::segment::{LINE_BYTES, Segment};

/// Maximum number of links of one function: the doorbell has a bit for each.
pub const LINKS: usize = LANES;

/// Sizes of all lanes.
pub const GEOMETRY: Geometry = Geometry::STANDARD;
const CONTROL_BYTES: usize = GEOMETRY.control_lines() * LINE_BYTES;
/// Bytes of one direction's host chunks.
pub const HOST_BYTES: usize = GEOMETRY.host_lines() * LINE_BYTES;
/// Bytes of the pair's memory.
pub const PAIR_BYTES: usize = PAGE_BYTES + 2 * HOST_BYTES;
/// Bytes of a function's pool.
pub const POOL_BYTES: usize = GEOMETRY.pool_chunks * GEOMETRY.chunk_lines * LINE_BYTES;
/// Bytes of the segment with doorbell and pool.
pub const POOL_SEGMENT_BYTES: usize = PAGE_BYTES + POOL_BYTES;

const _: () = assert!(2 * CONTROL_BYTES == PAGE_BYTES && HOST_BYTES.is_multiple_of(PAGE_BYTES));
const _: () = assert!(DOORBELL_LINES * LINE_BYTES <= PAGE_BYTES);

/// Maximum number of queue pairs: the board has a gate for each.
pub const QUEUE_PAIRS: usize = 16_384;
/// Gates: those of queue pairs, then one for each channel.
pub const GATES: usize = QUEUE_PAIRS + 65_536;
/// Maximum number of regions: the board has a notice for each.
pub const REGIONS: usize = 4_096;
/// Bytes of the board.
pub const BOARD_BYTES: usize =
    (Board::<Segment>::words(GATES, REGIONS) * 8).next_multiple_of(PAGE_BYTES);

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

/// An end of the pair's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    Connecting,
    Accepting,
}

/// Where the host chunks begin that `side` fills.
pub fn host_offset(side: Side) -> usize {
    PAGE_BYTES + usize::from(side == Side::Accepting) * HOST_BYTES
}

/// The lane that `side` sends on, in `pool` of the other.
pub fn lane_memory(pair: &Memory, side: Side, pool: Segment) -> LaneMemory<Segment> {
    let control = usize::from(side == Side::Accepting) * CONTROL_BYTES;
    LaneMemory {
        pool,
        control: Segment::new(pair, control, CONTROL_BYTES),
        host: Segment::new(pair, host_offset(side), HOST_BYTES),
    }
}

/// The pool of a segment whose first page is the doorbell's.
pub fn pool_of(memory: &Memory) -> Segment {
    Segment::new(memory, PAGE_BYTES, POOL_BYTES)
}

/// The doorbell of that segment.
pub fn doorbell_of(memory: &Memory) -> Doorbell<Segment> {
    Doorbell::new(Segment::new(memory, 0, PAGE_BYTES))
}

/// The board in a segment.
pub fn board_of(memory: &Memory) -> Board<Segment> {
    Board::new(Segment::new(memory, 0, BOARD_BYTES), GATES, REGIONS)
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
        assert_eq!(gate_index(Address::CHANNEL_BASE + 65_537), GATES);
        assert_eq!(gate_index(u32::MAX), GATES);
    }

    /// The parts of the pair's memory lie side by side, and end where it does.
    #[test]
    fn the_parts_of_a_pair_do_not_overlap() {
        use crate::mapping::{Sharing, create};
        use bellwire_ring::segment::Words;
        use bellwire_ring::sync::Ordering;
        let make = |bytes| create("test", bytes, 0, Sharing::ReadWrite).expect("memory").memory;
        let (memory, pool) = (make(PAIR_BYTES), make(POOL_SEGMENT_BYTES));
        let sides = [Side::Connecting, Side::Accepting];
        assert_eq!(sides.map(host_offset), [PAGE_BYTES, PAGE_BYTES + HOST_BYTES]);
        let lanes = sides.map(|side| lane_memory(&memory, side, pool_of(&pool)));
        for (number, lane) in lanes.iter().enumerate() {
            let mark = 1 + number as u64;
            lane.control.word(0).store(mark, Ordering::Relaxed);
            lane.host.word(0).store(mark, Ordering::Relaxed);
            lane.host.word(HOST_BYTES / 8 - 1).store(10 + mark, Ordering::Relaxed);
        }
        let at = |offset: usize| memory.view().load(offset).expect("aligned");
        assert_eq!([at(0), at(PAGE_BYTES / 2)], [1, 2]);
        assert_eq!([at(PAGE_BYTES), at(PAGE_BYTES + HOST_BYTES)], [1, 2]);
        assert_eq!([at(PAGE_BYTES + HOST_BYTES - 8), at(PAIR_BYTES - 8)], [11, 12]);
        pool_of(&pool).word(POOL_BYTES / 8 - 1).store(7, Ordering::Relaxed);
        assert_eq!(pool.view().load(POOL_SEGMENT_BYTES - 8), Some(7));
    }
}
