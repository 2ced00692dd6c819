//! Numbers of functions, queue pairs and processors, and where all of a function lies.

use bellwire_model::engine::Random;
use bellwire_wire::ADDRESS_BITS;
use bellwire_wire::endpoint::Endpoint;
use bellwire_wire::entry::Entry;

pub(super) const FUNCTIONS: u64 = 8;
/// Functions that begin operations and have rings and lists: all but the last one. That one has a
/// window, keys, and rings of two queue pairs for what comes. What else it needs is dropped there.
pub(super) const HEARING: u64 = FUNCTIONS - 1;
pub(super) const PAIRS: u64 = 4 * HEARING;
/// The numbers of both processors, which differ in each bit, and how many there are.
pub(super) const CPUS: [u8; 2] = [6, 9];
pub(super) const ALL_CPUS: u8 = 12;
pub(super) const LANES: u64 = 16;
// What a function has of host memory: descriptors, sources, destinations, slots of each of its
// queue pairs, the pages of their lists, and its rings. Lists and rings lie behind its window, as
// the interface does not look whether they are in it.
pub(super) const WINDOW: u64 = 1 << 19;
pub(super) const DESCRIPTORS: u64 = 0;
pub(super) const SOURCES: u64 = 0x1_0000;
pub(super) const SOURCE_BYTES: u64 = 0x1_0000;
pub(super) const TARGETS: u64 = 0x2_0000;
pub(super) const SLOTS: u64 = 0x4_0000;
pub(super) const LISTS: u64 = 0x7_0000;
pub(super) const RINGS: u64 = 0x7_8000;
/// Pages of the window of each function. It ends with an edge, which holds the same bytes in all,
/// counted from its end. So copies between edges change nothing.
pub(super) const PAGES: [u64; FUNCTIONS as usize] =
    [0x58, 0x5d, 0x62, 0x67, 0x69, 0x6c, 0x6e, 0x70];
pub(super) const EDGE: u64 = 0x2000;
/// Bytes before an edge that always are one packet.
pub(super) const PACKET: u64 = 64;
pub(super) const DESCRIPTOR_BYTES: u64 = 512;
/// Places for descriptors; reads of the last one fail. As many follow for doorbells that name
/// what another function has.
pub(super) const PLACES: u64 = 16;
pub(super) const SLOT_BYTES: u64 = 2048;
/// Entries of a list of slots, at most.
pub(super) const LONGEST_LIST: u64 = 11;
/// Bytes from ring to ring.
pub(super) const RING_BYTES: u64 = 0x1080;
/// Reads of sources from here on fail.
pub(super) const BROKEN: u64 = SOURCES + SOURCE_BYTES - 0x1000;

/// The first address of a function's window.
pub(super) fn window(function: u64) -> u64 {
    // Windows lie all over host memory: each bit of their addresses is 1 in one, and 0 in another.
    (function + 1) * 0x5_2a95 % (1 << (ADDRESS_BITS - WINDOW.ilog2())) * WINDOW
}

/// The place of a descriptor at this address, whose low bits may be turned, among the function's.
pub(super) fn place_of(address: u64) -> u64 {
    address % WINDOW / DESCRIPTOR_BYTES % PLACES
}

/// The function in whose window an address is.
pub(super) fn owner(address: u64) -> u64 {
    let holds = |function: &u64| window(*function) == address / WINDOW * WINDOW;
    (0..FUNCTIONS).find(holds).expect("it is in a window")
}

/// The first address behind a function's window.
pub(super) fn edge(function: u64) -> u64 {
    window(function) + PAGES[function as usize] * 4096
}

/// Entries of the list of a queue pair, and of a ring.
pub(super) fn list_entries(pair: u64) -> u64 {
    3 + pair * 4 % (LONGEST_LIST - 2)
}

/// See `list_entries`.
pub(super) fn ring_entries(ring: u64) -> u64 {
    1 + ring * 5 % 9
}

/// Whether a queue pair has a ring for what comes, and for a NAP also a list of slots.
pub(super) fn hears(pair: u64, is_nap: bool) -> bool {
    pair < PAIRS || (pair < PAIRS + 2 && !is_nap)
}

/// Where an address is in a node's memory, which holds the windows only.
pub(super) fn index(address: u64) -> usize {
    (owner(address) * WINDOW + address % WINDOW) as usize
}

/// The key of a queue pair of a node.
pub(super) fn key(node: u8, pair: u64) -> u8 {
    // Each bit is 1 in one, and 0 in another.
    (u64::from(node) * 0x95 + pair * 0x4b) as u8
}

/// Where a ring lies.
pub(super) fn ring_address(ring: u64) -> u64 {
    window(ring / 8) + RINGS + ring % 8 * RING_BYTES
}

/// A queue pair among those of all processors.
pub(super) fn end(cpu: u8, pair: u64) -> Endpoint {
    Endpoint::new(cpu, (pair / 4) as u8, (pair % 4) as u8).expect("it exists")
}

/// Something that reaches out of a function's window. The last number is what its length has more.
pub(super) fn outside(random: &mut Random, function: u64, length: u64) -> (Entry, u64) {
    let bits = random.below(7);
    let beyond = 1 + random.below(1 << bits);
    let (from, behind) = (window(function), edge(function));
    let more = 1 << random.below(ADDRESS_BITS.into());
    match random.below(3) {
        0 => (Entry { address: from - beyond, length }, 0),
        1 if behind + more <= 1 << ADDRESS_BITS => {
            (Entry { address: behind - length, length: length + more }, more)
        }
        _ => (Entry { address: behind - length + beyond, length }, 0),
    }
}
