//! `get_packer`: makes a network packet of each GET (C-25, C-27, C-34; cHPP sections 3.4 and 4.1,
//! Fig. 11), as `hardware/get_packer` builds it.
//!
//! The descriptor is the payload, as it was stored. It has room here until it leaves, so a GET that
//! waits for the crossbar stops nothing that comes behind it from the descriptor extract module.

use std::collections::VecDeque;

use bellwire_wire::endpoint::Endpoint;
use bellwire_wire::header::{HEADER_BYTES, HeaderRepr};
use bellwire_wire::primitive::Primitive;
use bellwire_wire::span::ByteSpan;

use super::data_reorder::{BEAT_WORDS, LANES, SIZE_BITS};
use super::line::Beat;
use super::packer::{OPERATION_BITS, ROUTE_BITS};

const ENDPOINT_BITS: usize = Endpoint::BITS as usize;

crate::ports! {
    /// What enters in a cycle.
    pub struct In {
        /// The move of a GET comes: it says what the header does.
        move_valid: bool = 1,
        /// The traffic class.
        move_traffic_class: u8 = 3,
        /// The key of the far queue pair.
        move_magic: u8 = 8,
        /// The own queue pair.
        move_source: u16 = ENDPOINT_BITS,
        /// The far one.
        move_destination: u16 = ENDPOINT_BITS,
        /// Bytes of the descriptor.
        move_bytes: u16 = SIZE_BITS,
        /// The way of its packet through the crossbar.
        move_route: u8 = ROUTE_BITS,
        /// The operation.
        move_operation: u8 = OPERATION_BITS,
        /// A beat of a descriptor comes.
        in_valid: bool = 1,
        /// It is the last of its descriptor.
        in_ends: bool = 1,
        /// The beat.
        in_data: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
        /// A beat is taken, if one is offered. It says so of the channel that `out_route` names.
        out_ready: bool = 1,
        /// A report is taken, if one is offered.
        sent_ready: bool = 1,
    }

    /// What stands at the outputs in a cycle.
    pub struct Out {
        /// A move is taken.
        move_ready: bool = 1,
        /// The beat of a descriptor is taken.
        in_ready: bool = 1,
        /// A place is free again: the last beat of a packet left in the cycle before.
        credit: bool = 1,
        /// A beat is offered.
        out_valid: bool = 1,
        /// It is the last of its packet.
        out_last: bool = 1,
        /// The way of its packet; zero if none is offered.
        out_route: u8 = ROUTE_BITS,
        /// The beat; zero if none is offered.
        out_data: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
        /// An operation has left: the last beat of its packet has.
        sent_valid: bool = 1,
        /// The operation; zero if none is reported.
        sent_operation: u8 = OPERATION_BITS,
    }
}

/// The parameters of the module.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Places for GETs.
    pub gets: usize,
    /// Beats of a descriptor, at most.
    pub get_beats: usize,
}

/// What is known of a GET beside its descriptor.
#[derive(Clone, Copy, Debug)]
struct Move {
    header: [u64; BEAT_WORDS],
    route: u8,
    operation: u8,
}

/// A packer with places for whole GETs.
///
/// The header of a packet is offered in the cycle after its last beat has come, or two cycles
/// after its move, if all before it has left. One beat follows in every cycle.
#[derive(Clone, Debug)]
pub struct GetPacker {
    shape: Shape,
    moves: VecDeque<Move>,
    /// The oldest move has come out of its memory.
    is_shown: bool,
    /// Beats, and whether each is the last of its descriptor.
    beats: VecDeque<([u64; BEAT_WORDS], bool)>,
    /// Descriptors that have come whole.
    whole: usize,
    /// The header of the oldest packet has left.
    has_begun: bool,
    credit: bool,
    sent: Option<u8>,
}

impl GetPacker {
    /// An empty one.
    ///
    /// # Panics
    /// Unless there is a place, and a descriptor has 1 to 256 beats.
    pub fn new(shape: Shape) -> GetPacker {
        let Shape { gets, get_beats } = shape;
        assert!(gets > 0, "a place");
        assert!((1..=1 << (SIZE_BITS - 1)).contains(&(LANES * get_beats)), "4 KiB at most");
        GetPacker {
            shape,
            moves: VecDeque::with_capacity(gets),
            is_shown: false,
            beats: VecDeque::with_capacity(gets * get_beats),
            whole: 0,
            has_begun: false,
            credit: false,
            sent: None,
        }
    }

    /// What stands at the outputs in this cycle; it does not depend on what enters.
    #[inline]
    pub fn out(&self) -> Out {
        let Shape { gets, get_beats } = self.shape;
        Out {
            move_ready: self.moves.len() < gets,
            in_ready: self.beats.len() < gets * get_beats,
            credit: self.credit,
            sent_valid: self.sent.is_some(),
            sent_operation: self.sent.unwrap_or(0),
            ..self.offer()
        }
    }

    /// One cycle.
    ///
    /// # Panics
    /// If a move has more bytes than a packet.
    #[inline]
    pub fn cycle(&mut self, input: In) -> Out {
        let out = self.out();
        if input.sent_ready {
            self.sent = None;
        }
        self.credit = out.out_valid && input.out_ready && out.out_last;
        if out.out_valid && input.out_ready {
            self.leave(out.out_last);
        }
        // A move that comes in this cycle is not seen in the next one.
        self.is_shown = !self.moves.is_empty();
        if input.move_valid && out.move_ready {
            self.moves.push_back(Move::of(&input));
        }
        if input.in_valid && out.in_ready {
            self.beats.push_back((input.in_data, input.in_ends));
            self.whole += usize::from(input.in_ends);
        }
        out
    }

    /// The beat at the output: a header if its packet is whole, and no report waits. So no packet
    /// stops on its way.
    fn offer(&self) -> Out {
        let Some(front) = self.moves.front().filter(|_| self.is_shown) else {
            return Out::default();
        };
        let beat = match self.beats.front() {
            Some(beat) if self.has_begun => *beat,
            Some(_) if self.whole > 0 && self.sent.is_none() => (front.header, false),
            _ => return Out::default(),
        };
        let (out_data, out_last) = beat;
        Out { out_valid: true, out_last, out_route: front.route, out_data, ..Out::default() }
    }

    /// The beat at the output has left.
    fn leave(&mut self, is_last: bool) {
        if self.has_begun {
            self.beats.pop_front();
        }
        self.has_begun = !is_last;
        if is_last {
            self.whole -= 1;
            self.sent = self.moves.pop_front().map(|gone| gone.operation);
        }
    }
}

impl Move {
    fn of(input: &In) -> Move {
        let endpoint = |bits: u16| {
            let [cpu, function, queue_pair] = [bits >> 5, bits >> 2 & 7, bits & 3];
            Endpoint::new(cpu as u8, function as u8, queue_pair as u8).expect("it has 9 bits")
        };
        let source = endpoint(input.move_source);
        let header = HeaderRepr {
            primitive: Primitive::Get,
            traffic_class: input.move_traffic_class,
            requester_id: u16::from(source.cpu()) << 8 | u16::from(source.function()),
            magic: input.move_magic,
            source,
            destination: endpoint(input.move_destination),
            wants_event: false,
            span: ByteSpan::new(0, input.move_bytes.into()).expect("it begins at zero"),
        };
        let mut bytes = [0; LANES];
        header.emit(&mut bytes).expect("a descriptor is no longer than what a packet can carry");
        Move {
            header: Beat { bytes, k: 0 }.words(),
            route: input.move_route,
            operation: input.move_operation,
        }
    }
}

const _: () = assert!(HEADER_BYTES == LANES);

#[cfg(test)]
mod tests;
