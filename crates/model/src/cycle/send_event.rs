//! `send_event`: the sender of events (C-13, C-16, C-39; cHPP sections 3.3, 4 and 4.2), as
//! `hardware/send_event` builds it.
//!
//! Each function has places for the operations that it has begun. Events leave in the order in
//! which these began, when the packers say that they are done. They share the port of `event_ring`
//! with events of the upload module.

use std::collections::VecDeque;

use bellwire_wire::ADDRESS_BITS;
use bellwire_wire::endpoint::Endpoint;
use bellwire_wire::event::Status;

use super::data_reorder::BEAT_WORDS;
use super::doorbell_fifo::FUNCTIONS;
use super::event_ring::{EVENT_WORDS, RING_BITS};
use super::key_window::FUNCTION_BITS;
use super::packer::{BYTES_BITS, OPERATION_BITS};

/// Packers that report: that of data, and that of GETs.
pub const PACKERS: usize = 2;
/// Bits of the number of a place. It is the operation's number in a packer, where the bit above it
/// is left for answers to GETs, of which software here does not know.
pub const PLACE_BITS: usize = OPERATION_BITS - 1;
const END_BITS: usize = Endpoint::BITS as usize;
/// Bits of the number of a queue pair of a function.
const QUEUE_PAIR_BITS: usize = 2;
/// Status and length in a record's last word.
const OUTCOME: u64 = 0xff << 48 | ((1 << BYTES_BITS) - 1);

crate::ports! {
    /// What enters in a cycle.
    pub struct In {
        /// An operation begins.
        move_valid: bool = 1,
        /// Its function; counts without `move_valid`, too.
        move_function: u8 = FUNCTION_BITS,
        /// Its queue pair.
        move_pair: u8 = QUEUE_PAIR_BITS,
        /// The far queue pair.
        move_peer: u16 = END_BITS,
        /// The code of its primitive.
        move_primitive: u8 = 4,
        /// Bytes of its tail.
        move_tail_bytes: u8 = 5,
        /// Its tail; zeros behind its bytes.
        move_tail: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
        /// Its bytes.
        move_total: u64 = BYTES_BITS,
        /// Where its descriptor lies.
        move_descriptor: u64 = ADDRESS_BITS as usize,
        /// By packer: an operation has left.
        sent_valid: [bool; PACKERS] = PACKERS,
        /// By packer: its data failed.
        sent_failed: [bool; PACKERS] = PACKERS,
        /// By packer: its place.
        sent_place: [u8; PACKERS] = PACKERS * PLACE_BITS,
        /// A descriptor was refused.
        report_valid: bool = 1,
        /// The code of the reason.
        report_status: u8 = 3,
        /// Its function; counts without `report_valid`, too.
        report_function: u8 = FUNCTION_BITS,
        /// Its queue pair.
        report_pair: u8 = QUEUE_PAIR_BITS,
        /// The far queue pair.
        report_peer: u16 = END_BITS,
        /// The code of its primitive.
        report_primitive: u8 = 4,
        /// Where it lies.
        report_address: u64 = ADDRESS_BITS as usize,
        /// The upload module offers an event.
        upload_valid: bool = 1,
        /// Its ring; counts without `upload_valid`, too.
        upload_ring: u8 = RING_BITS,
        /// The record.
        upload_record: [u64; EVENT_WORDS] = 64 * EVENT_WORDS,
        /// The event enters `event_ring`, if one is offered.
        event_ready: bool = 1,
        /// That ring is closed.
        lacks_ring: bool = 1,
        /// That ring is full.
        lacks_place: bool = 1,
    }

    /// What stands at the outputs in a cycle.
    pub struct Out {
        /// The operation has a place.
        move_ready: bool = 1,
        /// That place.
        move_place: u8 = PLACE_BITS,
        /// The report is taken.
        report_ready: bool = 1,
        /// By function: free places.
        room: [u8; FUNCTIONS] = 8 * FUNCTIONS,
        /// The upload module's event enters `event_ring`, if it offers one.
        upload_ready: bool = 1,
        /// Its ring is closed.
        upload_lacks_ring: bool = 1,
        /// Its ring is full, or an event of this block stands before it.
        upload_lacks_place: bool = 1,
        /// An event is offered to `event_ring`.
        event_valid: bool = 1,
        /// Its ring; the upload module's, if this block offers none.
        event_ring: u8 = RING_BITS,
        /// The record, without its phase; zero if none is offered.
        event_record: [u64; EVENT_WORDS] = 64 * EVENT_WORDS,
        /// An event was dropped in the cycle before, because its ring is closed.
        dropped_valid: bool = 1,
        /// Its function; zero if none was dropped.
        dropped_function: u8 = FUNCTION_BITS,
        /// Events that were dropped since reset; behind its highest number comes zero.
        dropped: u32 = 32,
    }
}

/// An operation, or a descriptor that was refused.
#[derive(Clone, Copy, Debug)]
struct Operation {
    /// Its event, if all goes well.
    record: [u64; EVENT_WORDS],
    pair: u8,
    is_done: bool,
    failed: bool,
}

impl Operation {
    fn of(input: &In) -> Operation {
        let (tail, status) = (input.move_tail_bytes, Status::Success.code());
        let at = u64::from(input.move_peer) << 48 | u64::from(tail) << 40 | input.move_descriptor;
        let word = last(input.move_pair, status, input.move_primitive) | input.move_total;
        let [low, high] = input.move_tail;
        let record = [low, high, at, word];
        Operation { record, pair: input.move_pair, is_done: false, failed: false }
    }

    fn refused(input: &In) -> Operation {
        let at = u64::from(input.report_peer) << 48 | input.report_address;
        let word = last(input.report_pair, input.report_status, input.report_primitive);
        let record = [0, 0, at, word];
        Operation { record, pair: input.report_pair, is_done: true, failed: false }
    }

    /// Its event, without the phase. Nobody knows how far an operation came whose data failed.
    fn event(&self) -> [u64; EVENT_WORDS] {
        let [low, high, at, word] = self.record;
        let fault = u64::from(Status::SourceFault.code()) << 48;
        [low, high, at, if self.failed { word & !OUTCOME | fault } else { word }]
    }
}

/// A record's last word, without a length.
fn last(pair: u8, status: u8, primitive: u8) -> u64 {
    u64::from(pair) << 56 | u64::from(status) << 48 | u64::from(primitive) << 40
}

/// The parameters of the module.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Functions.
    pub functions: usize,
    /// Places of each.
    pub depth: usize,
    /// Bits of the number of dropped events.
    pub dropped_bits: u32,
}

/// The sender of events.
///
/// An operation whose packer reports in cycle `t`, and which is the oldest of its function, is
/// offered from `t + 2` on, if no other function goes before. One event leaves in two cycles at
/// most. One whose ring is full lets the next function go.
#[derive(Clone, Debug)]
pub struct SendEvent {
    shape: Shape,
    /// By function: what it has begun, oldest first, and how much that was since reset.
    places: Vec<(VecDeque<Operation>, usize)>,
    /// The function whose turn is next.
    next: usize,
    /// The function whose oldest event is offered.
    offered: Option<usize>,
    /// An event of this block has entered since the last one of the upload module.
    yields: bool,
    /// The function whose event was dropped in the cycle before.
    told: Option<usize>,
    dropped: u32,
}

impl SendEvent {
    /// Empty places.
    ///
    /// # Panics
    /// Unless functions and places are powers of two, at least 2, there are at most 8 functions and
    /// 128 places, and 1 to 32 bits.
    pub fn new(shape: Shape) -> SendEvent {
        let Shape { functions, depth, dropped_bits } = shape;
        assert!([functions, depth].iter().all(|it| it.is_power_of_two() && *it > 1));
        assert!(functions <= FUNCTIONS && functions * depth <= 1 << PLACE_BITS, "places");
        assert!((1..=32).contains(&dropped_bits), "1 to 32 bits");
        SendEvent {
            shape,
            places: vec![(VecDeque::with_capacity(depth), 0); functions],
            next: 0,
            offered: None,
            yields: false,
            told: None,
            dropped: 0,
        }
    }

    /// One cycle; numbers of functions and places are below those that there are.
    #[inline]
    pub fn cycle(&mut self, input: In) -> Out {
        let out = self.out(&input);
        self.told = None;
        let ends = input.event_ready || input.lacks_ring || input.lacks_place;
        if let Some(function) = self.own(&input) {
            self.offer(function, &input);
            if ends {
                self.offered = None;
            }
        } else {
            if input.upload_valid {
                self.yields &= !ends;
            }
            if self.offered.is_none() {
                self.choose();
            }
        }
        self.store(&input, &out);
        out
    }

    /// The function whose event stands at `event_ring`, if it is not the upload module's.
    fn own(&self, input: &In) -> Option<usize> {
        self.offered.filter(|_| !(self.yields && input.upload_valid))
    }

    /// What stands at the outputs in this cycle, by what enters. Of that which `event_ring` says,
    /// only what the upload module is told depends.
    pub fn out(&self, input: &In) -> Out {
        let depth = self.shape.depth;
        let mut out = Out {
            dropped_valid: self.told.is_some(),
            dropped_function: self.told.unwrap_or(0) as u8,
            dropped: self.dropped,
            ..Out::default()
        };
        for (room, (begun, _)) in out.room.iter_mut().zip(&self.places) {
            *room = (depth - begun.len()) as u8;
        }
        let function = usize::from(input.move_function);
        out.move_ready = out.room[function] > 0;
        out.move_place = (function * depth + self.places[function].1 % depth) as u8;
        // There is one place for both to come in.
        out.report_ready = out.room[usize::from(input.report_function)] > 0
            && !(input.move_valid && out.move_ready);
        if let Some(function) = self.own(input) {
            let begun = &self.places[function].0;
            let operation = begun.front().expect("it stays until its event is taken");
            out.upload_lacks_place = true;
            out.event_valid = true;
            out.event_ring = (function as u8) << (QUEUE_PAIR_BITS + 1) | operation.pair << 1;
            out.event_record = operation.event();
        } else {
            (out.upload_ready, out.upload_lacks_ring) = (input.event_ready, input.lacks_ring);
            out.upload_lacks_place = input.lacks_place;
            (out.event_valid, out.event_ring) = (input.upload_valid, input.upload_ring);
            if input.upload_valid {
                out.event_record = input.upload_record;
            }
        }
        out
    }

    /// The oldest event of a function stands at `event_ring`.
    fn offer(&mut self, function: usize, input: &In) {
        let begun = &mut self.places[function].0;
        if input.event_ready {
            self.yields = true;
            begun.pop_front();
        } else if input.lacks_ring {
            begun.pop_front();
            self.told = Some(function);
            self.dropped =
                self.dropped.wrapping_add(1) & u32::MAX >> (32 - self.shape.dropped_bits);
        }
    }

    /// The next function whose oldest operation is done.
    fn choose(&mut self) {
        let functions = self.shape.functions;
        let is_done = |function: &usize| {
            self.places[*function].0.front().is_some_and(|operation| operation.is_done)
        };
        self.offered = (0..functions).map(|step| (self.next + step) % functions).find(is_done);
        if let Some(function) = self.offered {
            self.next = function + 1;
        }
    }

    /// Operations are done, and others begin.
    fn store(&mut self, input: &In, out: &Out) {
        let depth = self.shape.depth;
        for packer in (0..PACKERS).filter(|&packer| input.sent_valid[packer]) {
            let place = usize::from(input.sent_place[packer]);
            let (begun, count) = &mut self.places[place / depth];
            let behind = (*count + depth - 1 - place % depth) % depth;
            // What is said of a free place counts for nothing.
            if let Some(operation) = begun.iter_mut().rev().nth(behind) {
                (operation.is_done, operation.failed) = (true, input.sent_failed[packer]);
            }
        }
        let (function, operation) = if input.move_valid && out.move_ready {
            (input.move_function, Operation::of(input))
        } else if input.report_valid && out.report_ready {
            (input.report_function, Operation::refused(input))
        } else {
            return;
        };
        let (begun, count) = &mut self.places[usize::from(function)];
        begun.push_back(operation);
        *count += 1;
    }
}

#[cfg(test)]
mod tests;
