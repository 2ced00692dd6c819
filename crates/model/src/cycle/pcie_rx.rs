//! `pcie_rx`: takes the TLPs of the host apart (C-31, C-35, C-36; cHPP sections 4.1 and 5), as
//! `hardware/pcie_rx` builds it.
//!
//! Completions go to `read_arb` and stores to `bell_decode`, each byte on the lane of its address.
//! A request that wants an answer is told, and held until it is taken. All else is dropped.

use bellwire_wire::pcie::tlp::{
    ATTRIBUTES, BYTE_COUNT, CLASS, COMPLETION, FIRST, FORMAT, ID_ORDER, KIND, LAST, LENGTH, LONG,
    LOWER, MAX_BYTE_COUNT, MEMORY, OTHER_NON_POSTED, POISONED, REQUESTER, STATUS, SUCCESS, TAG,
    WITH_DATA, dword,
};
use bellwire_wire::span::MAX_LENGTH_DW;

use super::bell_decode::WINDOW_BITS;
use super::data_reorder::{BEAT_WORDS, LANES, SIZE_BITS};
use super::key_window::FUNCTION_BITS;
use super::line::{Beat, bytes_of};
use super::pcie_tx::{DEVICE_BITS, DW_BYTES, EMPTY_BITS};
use super::tag_alloc::TAG_BITS;

/// Bits of an address above those of the window.
pub const BASE_BITS: usize = 64 - WINDOW_BITS;
/// Bits of a completion's lower address.
pub const LOWER_BITS: usize = 7;
const BEAT_DW: usize = LANES / DW_BYTES;
const ALL_ENABLED: u64 = 0b1111;

crate::ports! {
    /// What enters in a cycle.
    pub struct In {
        /// Bus and device of the interface.
        device: u16 = DEVICE_BITS,
        /// The window's address, without the bits of its size.
        base: u64 = BASE_BITS,
        /// A read leaves for the host.
        read_valid: bool = 1,
        /// Its tag.
        read_tag: u8 = TAG_BITS,
        /// The low bits of the address behind its last byte.
        read_end: u8 = LOWER_BITS,
        /// A beat of a TLP is offered.
        in_valid: bool = 1,
        /// It is the last one.
        in_last: bool = 1,
        /// DWs that it lacks; only the last one may.
        in_empty: u8 = EMPTY_BITS,
        /// The beat: the byte that was sent first is the lowest one.
        in_data: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
        /// The request is taken, if there is one.
        request_ready: bool = 1,
    }

    /// What stands at the outputs in a cycle.
    pub struct Out {
        /// The beat is taken.
        in_ready: bool = 1,
        /// A beat of a completion comes.
        completion_valid: bool = 1,
        /// Its tag; zero if none comes, as all up to `completion_remaining`.
        completion_tag: u8 = TAG_BITS,
        /// The read has failed, and no more completions come.
        completion_failed: bool = 1,
        /// Bytes of this completion.
        completion_bytes: u16 = SIZE_BITS,
        /// Bytes that the read lacks, with those of this completion.
        completion_remaining: u16 = SIZE_BITS,
        /// A beat of a store comes.
        store_valid: bool = 1,
        /// Where in the window the store begins; zero if none comes.
        store_address: u16 = WINDOW_BITS,
        /// Its bytes; zero if none comes, if some are not meant, or if they are wrong.
        store_bytes: u16 = SIZE_BITS,
        /// The beat of a completion or of a store is the last one.
        out_last: bool = 1,
        /// The beat, with each byte on the lane of its address; zero if none comes.
        out_data: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
        /// A request wants an answer.
        request_valid: bool = 1,
        /// It reads a DW of the window; else it is not supported. Zero without a request, as all up
        /// to `request_lower`.
        request_is_read: bool = 1,
        /// Where in the window.
        request_address: u16 = WINDOW_BITS,
        /// Who asks.
        request_requester: u16 = 16,
        /// The request's tag.
        request_tag: u8 = 8,
        /// Its traffic class.
        request_class: u8 = 3,
        /// Its attributes.
        request_attributes: u8 = 3,
        /// Bytes that it wants; zero stands for 4096.
        request_count: u16 = 12,
        /// The low bits of the address of its first byte.
        request_lower: u8 = LOWER_BITS,
        /// The TLP that ended in the cycle before was dropped.
        dropped_valid: bool = 1,
        /// TLPs that were dropped since reset; behind its highest number comes zero.
        dropped: u32 = 32,
    }
}

/// What is done with a TLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Its payload goes on, by `Out` and the DWs by which it moves towards the beginning.
    Goes(usize),
    /// Its read has failed.
    Fails,
    /// It wants an answer.
    Asks,
    Drops,
}

/// The TLP that comes.
#[derive(Clone, Copy, Debug)]
struct Tlp {
    kind: Kind,
    /// What is told with its beats, or of its request.
    says: Out,
    /// DWs that it has by its header, from the next beat on.
    left: usize,
    /// The last beat that came.
    held: [u8; LANES],
}

/// The receiver.
///
/// A beat goes on when the next one has come, since DWs of both make one. So what comes in cycle
/// `t` stands at the outputs from `t + 1` on, and the last DWs one cycle later if they make a beat
/// of their own. Nothing is taken in that cycle, nor while a request waits.
#[derive(Clone, Debug)]
pub struct PcieRx {
    /// By tag, where its last read ends.
    ends: Vec<u8>,
    /// The highest number that `dropped` can have.
    highest: u32,
    /// The TLP of which beats have come, and its last one has not.
    tlp: Option<Tlp>,
    /// One whose last DWs make a beat of their own.
    tail: Option<Tlp>,
    /// The outputs' registers.
    output: Out,
}

impl PcieRx {
    /// A receiver for reads with this many tags. The number of dropped TLPs has `dropped_bits`
    /// bits.
    ///
    /// # Panics
    /// Unless there are 1 to 256 tags, and 1 to 32 bits.
    pub fn new(tags: usize, dropped_bits: u32) -> PcieRx {
        assert!((1..=1 << TAG_BITS).contains(&tags), "1 to 256 tags");
        assert!((1..=32).contains(&dropped_bits), "1 to 32 bits");
        PcieRx {
            ends: vec![0; tags.next_power_of_two().max(2)],
            highest: u32::MAX >> (32 - dropped_bits),
            tlp: None,
            tail: None,
            output: Out::default(),
        }
    }

    /// One cycle. A completion's tag is one that a read has had, or is not below the number of
    /// tags, rounded up to a power of two.
    #[inline]
    pub fn cycle(&mut self, input: In) -> Out {
        let waits = self.output.request_valid;
        let in_ready = self.tail.is_none() && !waits;
        let out = Out { in_ready, ..self.output };
        let request = if waits && !input.request_ready { self.output } else { Out::default() };
        self.output = Out { dropped: out.dropped, ..request };
        if let Some(tlp) = self.tail.take() {
            self.send(&tlp, input.in_data, true);
        } else if in_ready && input.in_valid {
            self.beat(&input);
        }
        if input.read_valid {
            self.ends[usize::from(input.read_tag)] = input.read_end;
        }
        out
    }

    /// A beat comes.
    fn beat(&mut self, input: &In) {
        let goes_on = self.tlp.take();
        let mut tlp = goes_on.unwrap_or_else(|| self.begin(input));
        let came = BEAT_DW - usize::from(input.in_empty);
        let is_wrong = tlp.left != came;
        if let (Kind::Goes(shift), true) = (tlp.kind, input.in_last) {
            // One of which there are more or fewer DWs than its header says has more or fewer beats
            // than it should, so that nobody takes it for whole.
            let has_tail = match tlp.left {
                0..=BEAT_DW => (shift < tlp.left) != is_wrong,
                _ => false,
            };
            if goes_on.is_some() {
                self.send(&tlp, input.in_data, !has_tail);
            }
            tlp.held = bytes_of(input.in_data);
            self.tail = has_tail.then_some(tlp);
        } else if input.in_last {
            match tlp.kind {
                Kind::Fails if !is_wrong => self.tail = Some(tlp),
                Kind::Asks if !is_wrong => {
                    let (dropped, request_valid) = (self.output.dropped, true);
                    self.output = Out { dropped, request_valid, ..tlp.says };
                }
                _ => {}
            }
        } else {
            if matches!(tlp.kind, Kind::Goes(_)) && goes_on.is_some() {
                self.send(&tlp, input.in_data, false);
            }
            tlp.held = bytes_of(input.in_data);
            tlp.left = tlp.left.saturating_sub(BEAT_DW);
            self.tlp = Some(tlp);
        }
        if input.in_last && (is_wrong || tlp.kind == Kind::Drops) {
            self.output.dropped_valid = true;
            self.output.dropped = self.output.dropped.wrapping_add(1) & self.highest;
        }
    }

    /// A beat goes on: DWs of the one that is held, and of the one behind it.
    fn send(&mut self, tlp: &Tlp, behind: [u64; BEAT_WORDS], out_last: bool) {
        let dropped = self.output.dropped;
        let mut bytes = [0; LANES];
        if let Kind::Goes(shift) = tlp.kind {
            let both = [tlp.held, bytes_of(behind)].concat();
            bytes.copy_from_slice(&both[DW_BYTES * shift..][..LANES]);
        }
        let out_data = Beat { bytes, k: 0 }.words();
        self.output = Out { dropped, out_last, out_data, ..tlp.says };
    }

    /// The header comes.
    fn begin(&self, input: &In) -> Tlp {
        let bytes = bytes_of(input.in_data);
        let [first, second, third, fourth] = [0, 1, 2, 3].map(|number| dword(&bytes, number));
        let (format, kind) = (FORMAT.of(first) as u8, KIND.of(first) as u8);
        let is_long = format & LONG != 0;
        let header = if is_long { 4 } else { 3 };
        let length = LENGTH.of(first) as usize;
        let dwords = if length == 0 { MAX_LENGTH_DW.into() } else { length };
        let payload = if format & WITH_DATA != 0 { dwords } else { 0 };
        let address = if is_long { (third << 32) + fourth } else { third } / 4 * 4;
        let is_window = address >> WINDOW_BITS == input.base;
        // Formats from 4 on are prefixes.
        let (kind, says) = if format > 3 {
            (Kind::Drops, Out::default())
        } else if kind == MEMORY && payload > 0 && is_window {
            let shift = header - address as usize / DW_BYTES % BEAT_DW;
            (Kind::Goes(shift), store(first, second, address, dwords))
        } else if kind == MEMORY && payload == 0 {
            (Kind::Asks, read(first, second, address, dwords, is_window))
        } else if kind == COMPLETION && !is_long {
            self.complete(input.device, [first, second, third], payload)
        } else if OTHER_NON_POSTED >> kind & 1 != 0 {
            (Kind::Asks, Out { request_count: 4, ..asker(first, second) })
        } else {
            (Kind::Drops, Out::default())
        };
        Tlp { kind, says, left: header + payload, held: bytes }
    }

    /// A completion comes: it is a piece of a read, or tells that one has failed.
    fn complete(&self, device: u16, dwords: [u64; 3], payload: usize) -> (Kind, Out) {
        let [first, second, third] = dwords;
        let count = BYTE_COUNT.of(second) as u16;
        let remaining = if count == 0 { MAX_BYTE_COUNT } else { count };
        let lower = LOWER.of(third) as u16;
        let tag = TAG.of(third) as u8;
        let room = (DW_BYTES * payload) as u16 - if payload > 0 { lower % 4 } else { 0 };
        let bytes = remaining.min(room);
        let says = Out {
            completion_valid: true,
            completion_tag: tag,
            completion_bytes: bytes,
            completion_remaining: remaining,
            ..Out::default()
        };
        let failed = (Kind::Fails, Out { completion_failed: true, ..says });
        let is_mine = REQUESTER.of(third) >> FUNCTION_BITS == device.into();
        let end = self.ends.get(usize::from(tag)).filter(|_| is_mine);
        let (Some(&end), is_good) = (end, STATUS.of(second) == SUCCESS.into()) else {
            return (Kind::Drops, says);
        };
        // Where a read ends says where each piece of it must begin (C-35).
        let fits = (lower + remaining) % (1 << LOWER_BITS) == end.into()
            && room < remaining + DW_BYTES as u16;
        match (payload > 0, is_good) {
            (false, false) => failed,
            (true, true) if !fits => (Kind::Drops, says),
            // Behind a piece that is not the last one more may come, so its tag is not free.
            (true, true) if POISONED.is_set(first) && bytes < remaining => (Kind::Drops, says),
            (true, true) if POISONED.is_set(first) => failed,
            (true, true) => (Kind::Goes(BEAT_DW - 1 - usize::from(lower) / 4 % BEAT_DW), says),
            _ => (Kind::Drops, says),
        }
    }
}

/// A store into the window. One with bytes that are not meant, or that are wrong, has none.
fn store(first: u64, second: u64, address: u64, dwords: usize) -> Out {
    let is_whole = FIRST.of(second) == ALL_ENABLED
        && (dwords == 1 || LAST.of(second) == ALL_ENABLED)
        && !POISONED.is_set(first);
    Out {
        store_valid: true,
        store_address: address as u16,
        store_bytes: if is_whole { (DW_BYTES * dwords) as u16 } else { 0 },
        ..Out::default()
    }
}

/// A read by the host.
fn read(first: u64, second: u64, address: u64, dwords: usize, is_window: bool) -> Out {
    let (enabled, last) = (FIRST.of(second), LAST.of(second));
    let lead = if enabled == 0 { 0 } else { enabled.trailing_zeros() };
    let highest = if dwords == 1 { enabled } else { last };
    let trail = if highest == 0 { 3 } else { highest.leading_zeros() - 60 };
    let bytes = DW_BYTES * dwords - lead as usize - trail as usize;
    Out {
        request_is_read: is_window && dwords == 1,
        request_address: address as u16,
        request_count: bytes as u16 % MAX_BYTE_COUNT,
        request_lower: address as u8 % (1 << LOWER_BITS) + lead as u8,
        ..asker(first, second)
    }
}

/// Who asks.
fn asker(first: u64, second: u64) -> Out {
    Out {
        request_requester: REQUESTER.of(second) as u16,
        request_tag: TAG.of(second) as u8,
        request_class: CLASS.of(first) as u8,
        request_attributes: (4 * ID_ORDER.of(first) + ATTRIBUTES.of(first)) as u8,
        ..Out::default()
    }
}

#[cfg(test)]
mod tests;
