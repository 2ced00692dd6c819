//! `host_regs`: what software stores beside doorbells (C-09, C-14, C-19, C-32, C-38, C-39; cHPP
//! sections 3.4, 4.1 and 4.2), as `hardware/host_regs` builds it.
//!
//! The layouts are those of `bellwire_wire::registers`. A store into the page of registers opens a
//! ring or a list, or sets a window or a key. One into the upper half of a function's page reports
//! what that function has consumed or listed. All other stores go on to `bell_decode`.

use bellwire_wire::registers::{FUNCTIONS, PAGE, REPORTS, RegisterRepr, STORE_BYTES};

use super::bell_decode::WINDOW_BITS;
use super::data_reorder::{BEAT_WORDS, LANES, SIZE_BITS};
use super::key_window::{FUNCTION_BITS, KEY_BITS, PAGE_BITS, PAGE_SHIFT, PAIR_BITS};
use super::{event_ring, slot_cache};

crate::ports! {
    /// What enters in a cycle.
    pub struct In {
        /// A beat of a store comes.
        store_valid: bool = 1,
        /// It is the last one.
        store_last: bool = 1,
        /// Where in the window the store begins; counts with the first beat, as its bytes.
        store_address: u16 = WINDOW_BITS,
        /// Bytes of the store.
        store_bytes: u16 = SIZE_BITS,
        /// The beat, with each byte on the lane of its address.
        store_data: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
        /// What was written to keys, rings or slots in the cycle before cannot be.
        refused: [bool; 3] = 3,
        /// The boundary has dropped a TLP of the host.
        tlp_dropped: bool = 1,
        /// A request has made no TLP.
        tlp_refused: bool = 1,
    }

    /// What stands at the outputs in a cycle. All below `bell_valid` is of the store that ended in
    /// the cycle before, and zero where it says nothing.
    pub struct Out {
        /// The beat is for `bell_decode`.
        bell_valid: bool = 1,
        /// A window or a key is set: `host_` of `key_window`, as all up to `keys_key`.
        keys_valid: bool = 1,
        /// See `keys_valid`.
        keys_window: bool = 1,
        /// See `keys_valid`.
        keys_function: u8 = FUNCTION_BITS,
        /// See `keys_valid`.
        keys_base: u32 = PAGE_BITS,
        /// See `keys_valid`.
        keys_pages: u32 = PAGE_BITS + 1,
        /// See `keys_valid`.
        keys_pair: u8 = PAIR_BITS,
        /// See `keys_valid`.
        keys_opens: bool = 1,
        /// See `keys_valid`.
        keys_key: u8 = KEY_BITS,
        /// A ring is opened, or reported: `host_` of `event_ring`, as all up to `rings_count`.
        rings_valid: bool = 1,
        /// See `rings_valid`.
        rings_opens: bool = 1,
        /// See `rings_valid`.
        rings_ring: u8 = event_ring::RING_BITS,
        /// See `rings_valid`.
        rings_base: u64 = event_ring::BASE_BITS,
        /// See `rings_valid`.
        rings_count: u16 = event_ring::COUNT_BITS,
        /// A list is opened, or reported: `host_` of `slot_cache`, as all up to `slots_count`.
        slots_valid: bool = 1,
        /// See `slots_valid`.
        slots_opens: bool = 1,
        /// See `slots_valid`.
        slots_pair: u8 = PAIR_BITS,
        /// See `slots_valid`.
        slots_page: u32 = PAGE_BITS,
        /// See `slots_valid`.
        slots_count: u16 = slot_cache::COUNT_BITS,
        /// Stores that were dropped here since reset; behind its highest number comes zero.
        dropped: u32 = 32,
        /// What was refused since reset, likewise.
        refusals: u32 = 32,
        /// TLPs of the host that were dropped since reset, likewise.
        tlps_dropped: u32 = 32,
        /// Requests that made no TLP since reset, likewise.
        tlps_refused: u32 = 32,
    }
}

/// The block. What a store's last beat brings in cycle `t` stands at the outputs in `t + 1`.
#[derive(Clone, Debug)]
pub struct HostRegs {
    /// The highest number that counts can have.
    highest: u32,
    /// A beat of the store has come, and its last one has not: whether it is for this block.
    mid: Option<bool>,
    output: Out,
}

impl HostRegs {
    /// The block, whose counts have `count_bits` bits.
    ///
    /// # Panics
    /// Unless these are 1 to 32.
    pub fn new(count_bits: u32) -> HostRegs {
        assert!((1..=32).contains(&count_bits), "1 to 32 bits");
        HostRegs { highest: u32::MAX >> (32 - count_bits), mid: None, output: Out::default() }
    }

    /// One cycle.
    #[inline]
    pub fn cycle(&mut self, input: In) -> Out {
        let is_own = self.mid.unwrap_or_else(|| is_own(input.store_address));
        let out = Out { bell_valid: input.store_valid && !is_own, ..self.output };
        let ends = input.store_valid && input.store_last && is_own;
        let is_whole = self.mid.is_none() && input.store_bytes == STORE_BYTES;
        let says = if ends && is_whole { said(&input) } else { None };
        let next = |count: u32, moves: bool| count.wrapping_add(moves.into()) & self.highest;
        self.output = Out {
            dropped: next(out.dropped, ends && says.is_none()),
            refusals: next(out.refusals, input.refused != [false; 3]),
            tlps_dropped: next(out.tlps_dropped, input.tlp_dropped),
            tlps_refused: next(out.tlps_refused, input.tlp_refused),
            ..says.map(writes).unwrap_or_default()
        };
        if input.store_valid {
            self.mid = (!input.store_last).then_some(is_own);
        }
        out
    }
}

/// A store that begins here is for this block.
fn is_own(address: u16) -> bool {
    let (page, place) = (address >> PAGE_SHIFT, address % (1 << PAGE_SHIFT));
    page == PAGE || (page < FUNCTIONS && place >= REPORTS)
}

/// What a store of one beat says.
fn said(input: &In) -> Option<RegisterRepr> {
    let word = usize::from(input.store_address) % LANES / usize::from(STORE_BYTES);
    RegisterRepr::parse(input.store_address, input.store_data[word]).ok()
}

/// What is written where.
fn writes(says: RegisterRepr) -> Out {
    let out = Out::default();
    match says {
        RegisterRepr::Window { function, base, pages } => Out {
            keys_valid: true,
            keys_window: true,
            keys_function: function,
            keys_base: base,
            keys_pages: pages,
            ..out
        },
        RegisterRepr::Key { pair, key } => Out {
            keys_valid: true,
            keys_pair: pair,
            keys_opens: key.is_some(),
            keys_key: key.unwrap_or(0),
            ..out
        },
        RegisterRepr::Ring { ring, base, entries } => Out {
            rings_valid: true,
            rings_opens: true,
            rings_ring: ring,
            rings_base: base,
            rings_count: entries,
            ..out
        },
        RegisterRepr::RingReport { ring, count } => {
            Out { rings_valid: true, rings_ring: ring, rings_count: count, ..out }
        }
        RegisterRepr::List { pair, page, entries } => Out {
            slots_valid: true,
            slots_opens: true,
            slots_pair: pair,
            slots_page: page,
            slots_count: entries,
            ..out
        },
        RegisterRepr::ListReport { pair, count } => {
            Out { slots_valid: true, slots_pair: pair, slots_count: count, ..out }
        }
    }
}

#[cfg(test)]
mod tests;
