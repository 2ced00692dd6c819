//! `op_arb`: the arbiter of operations from here and from elsewhere (C-13, C-27, C-34; cHPP
//! sections 3.4 and 4.1, Fig. 11), as `hardware/op_arb` builds it.
//!
//! Two blocks take descriptors apart: those from here, and GETs from elsewhere. Their reads, moves
//! and immediate data go to one packer. Each operation goes there whole, and its data in the same
//! order as its moves. GETs from here have a packer of their own. An operation from here has a
//! place for its event before it begins.

use std::collections::VecDeque;

use bellwire_wire::ADDRESS_BITS;

use super::data_reorder::{BEAT_WORDS, LANES, SIZE_BITS};
use super::key_window::FUNCTION_BITS;
use super::packer::{BYTES_BITS, OPERATION_BITS};
use super::send_event::PLACE_BITS;

/// Blocks that take descriptors apart: one for those from here, one for GETs from elsewhere.
pub const EXTRACTS: usize = 2;
/// The number of the one for GETs from elsewhere.
pub const REMOTE: usize = 1;
/// Words of what stands beside a move. The block does not read it.
pub const SAYS_WORDS: usize = 4;
/// The mark in an operation's number: it answers a GET, of which software here does not know.
pub const MARK: u8 = 1 << PLACE_BITS;

const ADDRESS_WIDTH: usize = ADDRESS_BITS as usize;
const LANE_BITS: usize = LANES.ilog2() as usize;

crate::ports! {
    /// What enters in a cycle.
    pub struct In {
        /// By descriptor extract: a move is offered.
        move_valid: [bool; EXTRACTS] = EXTRACTS,
        /// It is the last of its operation.
        move_last: [bool; EXTRACTS] = EXTRACTS,
        /// That of the first one is a GET.
        move_get: bool = 1,
        /// Bytes of its operation.
        move_total: [u64; EXTRACTS] = EXTRACTS * BYTES_BITS,
        /// What else it says.
        move_says: [[u64; SAYS_WORDS]; EXTRACTS] = EXTRACTS * 64 * SAYS_WORDS,
        /// By descriptor extract: a read is offered.
        read_valid: [bool; EXTRACTS] = EXTRACTS,
        /// It is the last of its operation.
        read_ends: [bool; EXTRACTS] = EXTRACTS,
        /// The function that it is for.
        read_function: [u8; EXTRACTS] = EXTRACTS * FUNCTION_BITS,
        /// Global address of its first byte.
        read_address: [u64; EXTRACTS] = EXTRACTS * ADDRESS_WIDTH,
        /// Its bytes.
        read_bytes: [u16; EXTRACTS] = EXTRACTS * SIZE_BITS,
        /// By descriptor extract: a beat is offered.
        data_valid: [bool; EXTRACTS] = EXTRACTS,
        /// It is the last of its operation.
        data_ends: [bool; EXTRACTS] = EXTRACTS,
        /// That of the first one is of a GET.
        data_get: bool = 1,
        /// The lane of its last byte.
        data_to: [u8; EXTRACTS] = EXTRACTS * LANE_BITS,
        /// The beat.
        data: [[u64; BEAT_WORDS]; EXTRACTS] = EXTRACTS * 64 * BEAT_WORDS,
        /// The function of the first one's move has a free place for its event.
        place_ready: bool = 1,
        /// That place.
        place: u8 = PLACE_BITS,
        /// The packer takes a move, if one is offered.
        pack_ready: bool = 1,
        /// A read is taken, if one is offered.
        ask_ready: bool = 1,
        /// A beat is taken, if one is offered.
        put_ready: bool = 1,
        /// The packer of GETs takes a move, if one is offered.
        get_ready: bool = 1,
        /// It takes a beat, if one is offered.
        get_data_ready: bool = 1,
    }

    /// What stands at the outputs in a cycle. What stands beside a `valid` of zero is that of the
    /// first one.
    pub struct Out {
        /// By descriptor extract: its move is taken, if it offers one.
        move_ready: [bool; EXTRACTS] = EXTRACTS,
        /// Its read is taken, if it offers one.
        read_ready: [bool; EXTRACTS] = EXTRACTS,
        /// Its beat is taken, if it offers one.
        data_ready: [bool; EXTRACTS] = EXTRACTS,
        /// The operation of the first one's move takes the place for its event.
        place_valid: bool = 1,
        /// A move is offered to the packer.
        pack_valid: bool = 1,
        /// It is the last of its operation.
        pack_last: bool = 1,
        /// The operation: the place of its event, or the mark; zero if none is offered.
        pack_operation: u8 = OPERATION_BITS,
        /// What else it says.
        pack_says: [u64; SAYS_WORDS] = 64 * SAYS_WORDS,
        /// A read is offered.
        ask_valid: bool = 1,
        /// It is the last of its operation.
        ask_ends: bool = 1,
        /// The function that it is for.
        ask_function: u8 = FUNCTION_BITS,
        /// Global address of its first byte.
        ask_address: u64 = ADDRESS_WIDTH,
        /// Its bytes.
        ask_bytes: u16 = SIZE_BITS,
        /// A beat of immediate data is offered.
        put_valid: bool = 1,
        /// It is the last of its operation.
        put_ends: bool = 1,
        /// The lane of its last byte.
        put_to: u8 = LANE_BITS,
        /// The beat.
        put_data: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
        /// The first one's move is offered to the packer of GETs; its operation is the place.
        get_valid: bool = 1,
        /// The first one's beat is offered to it.
        get_data_valid: bool = 1,
    }
}

/// An operation that has begun: whose it is, and whether its moves and its data have left.
#[derive(Clone, Copy, Debug)]
struct Operation {
    of: usize,
    moved: bool,
    fetched: bool,
}

/// An arbiter. An operation that is offered in cycle `t` leaves from `t + 1` on, if no other one is
/// under way. If two begin in the same cycle, the one goes first whose extract last went second.
#[derive(Clone, Debug)]
pub struct OpArb {
    /// Operations that have begun, one of each extract at most, in their order.
    begun: VecDeque<Operation>,
    /// The extract whose operation was the first one of them last.
    first: usize,
    /// The place of the operation from here.
    place: u8,
}

impl Default for OpArb {
    fn default() -> OpArb {
        OpArb { begun: VecDeque::with_capacity(EXTRACTS), first: REMOTE, place: 0 }
    }
}

impl OpArb {
    /// The extracts whose moves leave, and whose data.
    fn owners(&self) -> [Option<usize>; 2] {
        let mover = self.begun.iter().find(|it| !it.moved).map(|it| it.of);
        let fetcher = self.begun.iter().find(|it| !it.fetched).map(|it| it.of);
        [mover, fetcher]
    }

    /// By extract, whether its operation begins.
    fn enters(&self, input: &In) -> [bool; EXTRACTS] {
        let gets = [input.move_get, false];
        [0, 1].map(|each: usize| {
            let is_new = self.begun.iter().all(|it| it.of != each);
            let has_place = each == REMOTE || input.place_ready;
            input.move_valid[each] && !gets[each] && is_new && has_place
        })
    }

    /// What stands at the outputs in this cycle, by what enters.
    #[inline]
    pub fn out(&self, input: &In) -> Out {
        let [mover, fetcher] = self.owners();
        let (pack, from) = (mover.unwrap_or(0), fetcher.unwrap_or(0));
        let gets = [input.move_get, false];
        let get_beats = [input.data_get, false];
        let is_of = |owner: Option<usize>, each| owner == Some(each);
        let enters = self.enters(input);
        let get_moves = input.move_valid[0] && input.move_get;
        let mut out = Out {
            move_ready: [0, 1].map(|each: usize| match gets[each] {
                true => input.get_ready && input.place_ready,
                false => is_of(mover, each) && input.pack_ready,
            }),
            read_ready: [0, 1].map(|each: usize| is_of(fetcher, each) && input.ask_ready),
            data_ready: [0, 1].map(|each: usize| match get_beats[each] {
                true => input.get_data_ready,
                false => is_of(fetcher, each) && input.put_ready,
            }),
            place_valid: enters[0] || (get_moves && input.get_ready),
            pack_valid: mover.is_some() && input.move_valid[pack] && !gets[pack],
            pack_last: input.move_last[pack],
            pack_says: input.move_says[pack],
            ask_valid: fetcher.is_some() && input.read_valid[from],
            ask_ends: input.read_ends[from],
            ask_function: input.read_function[from],
            ask_address: input.read_address[from],
            ask_bytes: input.read_bytes[from],
            put_valid: fetcher.is_some() && input.data_valid[from] && !get_beats[from],
            put_ends: input.data_ends[from],
            put_to: input.data_to[from],
            put_data: input.data[from],
            get_valid: get_moves && input.place_ready,
            get_data_valid: input.data_valid[0] && input.data_get,
            ..Out::default()
        };
        if out.pack_valid {
            out.pack_operation = if pack == REMOTE { MARK } else { self.place };
        }
        out
    }

    /// One cycle.
    #[inline]
    pub fn cycle(&mut self, input: In) -> Out {
        let (out, enters) = (self.out(&input), self.enters(&input));
        let [mover, fetcher] = self.owners();
        for operation in &mut self.begun {
            let of = Some(operation.of);
            operation.moved |= of == mover && out.pack_valid && input.pack_ready && out.pack_last;
            let asked = out.ask_valid && input.ask_ready && out.ask_ends;
            let put = out.put_valid && input.put_ready && out.put_ends;
            operation.fetched |= of == fetcher && (asked || put);
        }
        self.begun.retain(|it| !(it.moved && it.fetched));
        let order = if self.first == 0 { [1, 0] } else { [0, 1] };
        for of in order.into_iter().filter(|&of| enters[of]) {
            let fetched = input.move_total[of] == 0;
            self.begun.push_back(Operation { of, moved: false, fetched });
        }
        if enters[0] {
            self.place = input.place;
        }
        self.first = self.begun.front().map_or(self.first, |it| it.of);
        out
    }
}

#[cfg(test)]
mod tests;
