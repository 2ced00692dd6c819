//! `desc_extract`: takes descriptors apart (C-25, C-28, C-29, C-34; cHPP section 4.1, Fig. 11), as
//! `hardware/desc_extract` builds it.
//!
//! A descriptor is stored as it comes, and checked as a whole before anything of it leaves. One
//! that is right leaves as reads for its data and as moves for the packer. Immediate data and GETs
//! leave as beats. One that is not right leaves as a report.

use std::collections::VecDeque;

use bellwire_wire::descriptor::{DescriptorRepr, Work};
use bellwire_wire::endpoint::Endpoint;
use bellwire_wire::event::Status;
use bellwire_wire::primitive::Primitive;
use bellwire_wire::{ADDRESS_BITS, WireError};

use super::data_reorder::{BEAT_WORDS, LANES, SIZE_BITS};
use super::key_window::FUNCTION_BITS;
use super::packer::{BYTES_BITS, OPERATION_BITS};

const ADDRESS_WIDTH: usize = ADDRESS_BITS as usize;
const ADDRESSES: u64 = (1 << ADDRESS_BITS) - 1;
const LANE_BITS: usize = LANES.ilog2() as usize;
const END_BITS: usize = Endpoint::BITS as usize;
/// Bits of the number of a queue pair of a function.
const QUEUE_PAIR_BITS: usize = 2;
/// Bits of the number of a processor.
const CPU_BITS: usize = END_BITS - FUNCTION_BITS - QUEUE_PAIR_BITS;
/// Bits of a status.
const STATUS_BITS: usize = 3;

crate::ports! {
    /// What enters in a cycle.
    pub struct In {
        /// The own processor.
        cpu: u8 = CPU_BITS,
        /// How many processors there are.
        cpus: u8 = CPU_BITS + 1,
        /// A word of a descriptor comes.
        in_valid: bool = 1,
        /// It is the last one; what follows up to `in_address` stands with each word.
        in_last: bool = 1,
        /// A read of the descriptor has failed: the word has no data.
        in_failed: bool = 1,
        /// Its doorbell was refused: the word has no data.
        in_refused: bool = 1,
        /// It has come in a GET from elsewhere.
        in_remote: bool = 1,
        /// The own function.
        in_function: u8 = FUNCTION_BITS,
        /// The own queue pair that such a GET reads from.
        in_pair: u8 = QUEUE_PAIR_BITS,
        /// The queue pair that sent it.
        in_peer: u16 = END_BITS,
        /// Where the descriptor lies.
        in_address: u64 = ADDRESS_WIDTH,
        /// The word.
        in_word: u64 = 64,
        /// The source of the cycle before lies in the function's window.
        source_fits: bool = 1,
        /// A read is taken, if one is offered.
        read_ready: bool = 1,
        /// A move is taken, if one is offered.
        move_ready: bool = 1,
        /// A beat is taken, if one is offered.
        data_ready: bool = 1,
        /// A report is taken, if one is offered.
        report_ready: bool = 1,
    }

    /// What stands at the outputs in a cycle. Without its `valid` each is zero.
    pub struct Out {
        /// The word is taken.
        in_ready: bool = 1,
        /// A source asks whether it lies in the function's window.
        source_valid: bool = 1,
        /// The function.
        source_function: u8 = FUNCTION_BITS,
        /// Global address of its first byte.
        source_address: u64 = ADDRESS_WIDTH,
        /// How many bytes.
        source_length: u64 = ADDRESS_WIDTH,
        /// A read is offered.
        read_valid: bool = 1,
        /// It is the last of its operation.
        read_ends: bool = 1,
        /// The function that it is for.
        read_function: u8 = FUNCTION_BITS,
        /// Global address of its first byte.
        read_address: u64 = ADDRESS_WIDTH,
        /// Its bytes.
        read_bytes: u16 = SIZE_BITS,
        /// A move is offered. That of a GET is for the packer of GETs.
        move_valid: bool = 1,
        /// It is the last of its operation.
        move_last: bool = 1,
        /// It answers a GET from elsewhere, of which software here does not know.
        move_remote: bool = 1,
        /// The code of its primitive.
        move_primitive: u8 = 4,
        /// The traffic class.
        move_traffic_class: u8 = 3,
        /// The key of the far queue pair.
        move_magic: u8 = 8,
        /// The own queue pair.
        move_source: u16 = END_BITS,
        /// The far one.
        move_destination: u16 = END_BITS,
        /// The last packet asks for an event.
        move_wants_event: bool = 1,
        /// Bytes of the tail.
        move_tail_bytes: u8 = 5,
        /// The tail.
        move_tail: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
        /// The operation.
        move_operation: u8 = OPERATION_BITS,
        /// Destination of the first byte; zero unless it is a PUT.
        move_address: u64 = ADDRESS_WIDTH,
        /// Bytes of this move.
        move_bytes: u64 = BYTES_BITS,
        /// Bytes of its operation.
        move_total: u64 = BYTES_BITS,
        /// Where its descriptor lies.
        move_descriptor: u64 = ADDRESS_WIDTH,
        /// A beat is offered: immediate data, or a GET's descriptor.
        data_valid: bool = 1,
        /// It is the last of its operation.
        data_ends: bool = 1,
        /// It is for the packer of GETs.
        data_get: bool = 1,
        /// The lane of its last byte.
        data_to: u8 = LANE_BITS,
        /// The beat.
        data: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
        /// A descriptor was refused, and its function is to learn of it.
        report_valid: bool = 1,
        /// The code of the reason, as in an event.
        report_status: u8 = STATUS_BITS,
        /// The function.
        report_function: u8 = FUNCTION_BITS,
        /// Its queue pair; zero if the descriptor names none.
        report_pair: u8 = QUEUE_PAIR_BITS,
        /// The far queue pair; queue pair 0 of the own function if the descriptor names none.
        report_peer: u16 = END_BITS,
        /// The code of its primitive; that of a NAP if the descriptor names none.
        report_primitive: u8 = 4,
        /// Where the descriptor lies.
        report_address: u64 = ADDRESS_WIDTH,
        /// A GET from elsewhere was dropped in the cycle before.
        dropped: bool = 1,
    }
}

/// What the block holds and asks for.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Descriptors that are right and have not left.
    pub places: usize,
    /// Beats of a descriptor, at most.
    pub beats: usize,
    /// Beats of a read, at most; a read ends at a multiple of them.
    pub request: usize,
}

/// An entry of a list, or what is left of it.
#[derive(Clone, Copy, Debug)]
struct Run {
    address: u64,
    length: u64,
}

/// What is left to do on one side of an operation: its beats in the memory, the one that was
/// fetched, the entry that is offered, and the bytes of all entries that were not.
#[derive(Clone, Debug, Default)]
struct Side {
    beats: VecDeque<[u64; BEAT_WORDS]>,
    ahead: Option<[u64; BEAT_WORDS]>,
    offered: Option<Run>,
    left: u64,
}

impl Side {
    fn is_done(&self) -> bool {
        self.beats.is_empty() && self.ahead.is_none() && self.offered.is_none()
    }

    /// The memory's output is free, or `takes` it. Then the next beat is fetched.
    fn fetch(&mut self, takes: bool) {
        if self.ahead.is_none() || takes {
            self.ahead = self.beats.pop_front();
        }
    }

    /// The fetched beat becomes the offered entry, if that one `gone` or there is none. An empty
    /// entry is passed over.
    fn step(&mut self, gone: bool) {
        if gone {
            self.offered = None;
        }
        let takes = self.offered.is_none();
        if let Some([address, length]) = self.ahead.filter(|_| takes) {
            self.offered = (length > 0).then_some(Run { address, length });
        }
        self.fetch(takes);
    }
}

/// A descriptor that is right.
#[derive(Clone, Debug)]
struct Operation {
    /// What stands with each of its moves.
    says: Out,
    /// Its data leaves as beats.
    is_data: bool,
    /// Sources, or the beats of its data.
    from: Side,
    /// Destinations.
    to: Side,
    /// Its tail has not been fetched, and then is not at the moves.
    tail: Option<[u64; BEAT_WORDS]>,
    tail_ahead: bool,
    /// The one move of an operation without destinations was not offered.
    is_single: bool,
}

/// A descriptor that is refused, for software.
#[derive(Clone, Copy, Debug)]
struct Report {
    status: Status,
    function: u8,
    pair: u8,
    peer: u16,
    primitive: u8,
    address: u64,
}

/// The stage that takes descriptors apart.
///
/// If the last word of a descriptor is taken in cycle `t`, its report is offered from `t + 2` on,
/// and its first read or beat from `t + 5` or `t + 4` on, if all earlier ones have left. One read,
/// one move and one beat leave in a cycle.
#[derive(Clone, Debug)]
pub struct DescExtract {
    shape: Shape,
    /// Words of the descriptor that comes, up to one more than it may have, and what stood with
    /// the last one.
    words: Vec<u64>,
    about: In,
    /// A word without data has come.
    is_void: bool,
    /// A source lies outside of the window; one was asked for in the cycle before.
    fault: bool,
    asked: bool,
    /// The descriptor has come to its end.
    judging: bool,
    kept: VecDeque<Operation>,
    current: Option<Operation>,
    number: u8,
    report: Option<Report>,
    dropped: bool,
}

impl DescExtract {
    /// Empty places.
    ///
    /// # Panics
    /// Unless all numbers are powers of two, there are at least two places, a descriptor has at
    /// most 256 beats, and a read at most as many.
    pub fn new(shape: Shape) -> DescExtract {
        let Shape { places, beats, request } = shape;
        assert!([places, beats, request].iter().all(|count| count.is_power_of_two()));
        assert!(places > 1 && beats > 1, "two at least");
        assert!(beats.max(request) <= (1 << (SIZE_BITS - 1)) / LANES, "4 KiB at most");
        DescExtract {
            shape,
            words: Vec::with_capacity(BEAT_WORDS * beats + 1),
            about: In::default(),
            is_void: false,
            fault: false,
            asked: false,
            judging: false,
            kept: VecDeque::with_capacity(places),
            current: None,
            number: 0,
            report: None,
            dropped: false,
        }
    }

    /// What stands at the outputs in this cycle, by what enters.
    #[inline]
    pub fn out(&self, input: &In) -> Out {
        let held = self.kept.len() + usize::from(self.current.is_some());
        let in_ready = held < self.shape.places && !self.judging;
        let takes = input.in_valid && in_ready;
        let source = if takes { self.source(input) } else { None };
        let mut out = Out { in_ready, dropped: self.dropped, ..self.offer(input) };
        if let Some(Run { address, length }) = source {
            out.source_valid = true;
            out.source_function = input.in_function;
            (out.source_address, out.source_length) = (address, length);
        }
        if let Some(report) = self.report {
            out.report_valid = true;
            out.report_status = report.status.code();
            (out.report_function, out.report_pair) = (report.function, report.pair);
            (out.report_peer, out.report_primitive) = (report.peer, report.primitive);
            out.report_address = report.address;
        }
        out
    }

    /// One cycle.
    #[inline]
    pub fn cycle(&mut self, input: In) -> Out {
        let out = self.out(&input);
        self.step(&input, &out);
        if input.report_ready {
            self.report = None;
        }
        self.dropped = false;
        self.fault |= self.asked && !input.source_fits;
        if self.judging {
            self.judge(&input);
        }
        self.asked = out.source_valid;
        if input.in_valid && out.in_ready {
            self.is_void |= input.in_failed || input.in_refused;
            if self.words.len() <= BEAT_WORDS * self.shape.beats {
                self.words.push(input.in_word);
            }
            self.about = input;
            self.judging = input.in_last;
        }
        out
    }

    /// The source that the word completes, if the function must have it in its window (C-39). The
    /// sources of a GET lie elsewhere.
    fn source(&self, input: &In) -> Option<Run> {
        let sources = self.words.first()? >> 48 & 0xff;
        let is_far = self.words[0] & 0xf == u64::from(Primitive::Get.code()) && !input.in_remote;
        let (beat, half) = (self.words.len() / BEAT_WORDS, self.words.len() % BEAT_WORDS);
        let is_source = half == 1 && (1..=sources).contains(&(beat as u64)) && !is_far;
        let length = input.in_word & ADDRESSES;
        let address = *self.words.last()? & ADDRESSES;
        (is_source && length > 0 && beat < self.shape.beats).then_some(Run { address, length })
    }

    /// The descriptor that has come is kept, reported or dropped. Nothing of it has left, so one
    /// whose lists differ moves nothing (C-29).
    fn judge(&mut self, input: &In) {
        let bytes: Vec<u8> = self.words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let is_long = bytes.len() > LANES * self.shape.beats;
        let repr = match DescriptorRepr::parse(&bytes) {
            Ok(repr) if !is_long && !self.is_void => Ok(repr),
            Err(WireError::UnequalSums { .. }) if !is_long && !self.is_void => {
                Err(Status::UnequalSums)
            }
            _ => Err(Status::BadDescriptor),
        };
        let verdict = repr.and_then(|repr| self.verdict(&repr, input));
        match verdict {
            Ok(operation) => self.kept.push_back(operation),
            Err(_) if self.about.in_remote => self.dropped = true,
            // The report of an earlier one waits.
            Err(_) if self.report.is_some() => return,
            Err(status) => self.report = Some(self.refusal(status, input.cpu)),
        }
        self.judging = false;
        self.words.clear();
        (self.is_void, self.fault) = (false, false);
    }

    /// What a descriptor of a right form asks for.
    fn verdict(&self, repr: &DescriptorRepr<'_>, input: &In) -> Result<Operation, Status> {
        let In { in_remote, in_function, in_pair, in_peer, in_address, .. } = self.about;
        let far = if in_remote { in_peer } else { repr.destination.to_bits() };
        if far >> (END_BITS - CPU_BITS) >= input.cpus.into() {
            return Err(Status::Unreachable);
        }
        let (primitive, magic) = match repr.work {
            // It answers a GET from elsewhere (C-25).
            Work::Get { return_magic, .. } if in_remote => (Primitive::Put, return_magic),
            _ if in_remote => return Err(Status::BadDescriptor),
            _ => (repr.work.primitive(), repr.magic),
        };
        if self.fault {
            return Err(Status::SourceFault);
        }
        let beats: VecDeque<_> = self.words.as_chunks::<BEAT_WORDS>().0.iter().copied().collect();
        let part = |from: usize, count: usize| -> VecDeque<_> {
            beats.iter().skip(from).take(count).copied().collect()
        };
        let is_get = primitive == Primitive::Get;
        let (total, sources, destinations) = match repr.work {
            _ if is_get => ((LANES * beats.len()) as u64, part(0, beats.len()), part(0, 0)),
            Work::NapImmediate(data) => {
                (data.len() as u64, part(1, data.len().div_ceil(LANES)), part(0, 0))
            }
            Work::NapIndirect(list) => {
                (list.total_bytes().unwrap_or(0), part(1, list.len()), part(0, 0))
            }
            Work::Put(chain) | Work::Get { chain, .. } => {
                let (sources, destinations) = (chain.sources.len(), chain.destinations.len());
                let total = chain.total_bytes().unwrap_or(0);
                (total, part(1, sources), part(1 + sources, destinations))
            }
        };
        // A GET carries its tail in its descriptor.
        let tail_bytes = if is_get { 0 } else { repr.tail.len() };
        // A PUT without bytes has one move, as its packet brings event and tail.
        let is_single = primitive != Primitive::Put || total == 0;
        let side = |beats, left| Side { beats, left, ..Side::default() };
        Ok(Operation {
            says: Out {
                move_remote: in_remote,
                move_primitive: primitive.code(),
                move_traffic_class: repr.traffic_class,
                move_magic: magic,
                move_source: end(0, in_function, if in_remote { in_pair } else { repr.queue_pair }),
                move_destination: far,
                move_wants_event: primitive == Primitive::Nap || (repr.wants_event && !is_get),
                move_tail_bytes: tail_bytes as u8,
                move_total: total,
                move_descriptor: in_address,
                ..Out::default()
            },
            is_data: is_get || matches!(repr.work, Work::NapImmediate(_)),
            from: side(sources, total),
            to: side(if is_single { part(0, 0) } else { destinations }, total),
            tail: (tail_bytes > 0).then(|| beats[beats.len() - 1]),
            tail_ahead: false,
            is_single,
        })
    }

    /// The report of a descriptor that is refused.
    fn refusal(&self, status: Status, cpu: u8) -> Report {
        let In { in_function, in_address, .. } = self.about;
        let own = |pair| end(cpu, in_function, pair);
        let (pair, peer, primitive) = match (status, self.words.first()) {
            (Status::BadDescriptor, _) | (_, None) => (0, own(0), Primitive::Nap.code()),
            (_, Some(word)) => {
                ((word >> 20 & 3) as u8, (word >> 32 & 0x1ff) as u16, (word & 0xf) as u8)
            }
        };
        Report { status, function: in_function, pair, peer, primitive, address: in_address }
    }

    /// What the oldest operation offers.
    fn offer(&self, input: &In) -> Out {
        let Some(current) = &self.current else { return Out::default() };
        let mut out = current.offer_to(self.number, input);
        current.offer_from(self.shape.request, &mut out);
        out
    }

    /// The next step of the oldest operation.
    fn step(&mut self, input: &In, out: &Out) {
        let Some(current) = &mut self.current else {
            self.current = self.kept.pop_front();
            return;
        };
        if current.is_done() {
            self.current = None;
            self.number = self.number.wrapping_add(1);
            return;
        }
        current.step_to(out.move_valid && input.move_ready);
        current.step_from(input, out);
    }
}

impl Operation {
    fn is_done(&self) -> bool {
        self.from.is_done() && self.to.is_done() && self.tail.is_none() && !self.is_single
    }

    /// The side of the destinations: first the tail, then the moves.
    fn offer_to(&self, number: u8, input: &In) -> Out {
        let Some(Run { address, length }) = self.to.offered else { return Out::default() };
        Out {
            move_valid: true,
            move_last: length == self.to.left,
            move_source: end(input.cpu, 0, 0) | self.says.move_source,
            move_operation: number,
            move_address: address,
            move_bytes: length,
            ..self.says
        }
    }

    /// Its next step; the move that is offered has `gone`, or none is or has.
    fn step_to(&mut self, gone: bool) {
        if let Some(run) = self.to.offered.filter(|_| gone) {
            self.to.left -= run.length;
        }
        if !self.tail_ahead && self.tail.is_some() {
            self.tail_ahead = true;
        } else if let Some(tail) = self.tail.take() {
            self.says.move_tail = tail;
            self.to.fetch(true);
        } else if self.is_single {
            self.is_single = false;
            self.to.offered = Some(Run { address: 0, length: self.says.move_total });
        } else {
            self.to.step(gone);
        }
    }

    /// The side of the sources, or of the data.
    fn offer_from(&self, request: usize, out: &mut Out) {
        let Operation { from, is_data, says, .. } = self;
        if *is_data {
            if let Some(beat) = from.ahead {
                (out.data_valid, out.data) = (true, beat);
                out.data_ends = from.beats.is_empty();
                out.data_get = says.move_primitive == Primitive::Get.code();
                let last = (says.move_total.wrapping_sub(1) % LANES as u64) as u8;
                out.data_to = if out.data_ends { last } else { LANES as u8 - 1 };
            }
        } else if let Some(run) = &from.offered {
            // No read crosses a page, as each ends at a multiple of its longest.
            let most = (request * LANES) as u64;
            let bytes = run.length.min(most - run.address % most);
            out.read_valid = true;
            out.read_ends = bytes == from.left;
            out.read_function = (says.move_source >> QUEUE_PAIR_BITS) as u8;
            (out.read_address, out.read_bytes) = (run.address, bytes as u16);
        }
    }

    /// Its next step.
    fn step_from(&mut self, input: &In, out: &Out) {
        let from = &mut self.from;
        if self.is_data {
            from.fetch(input.data_ready);
            return;
        }
        let mut gone = false;
        if let Some(run) = from.offered.as_mut().filter(|_| input.read_ready) {
            let bytes = u64::from(out.read_bytes);
            from.left -= bytes;
            run.address += bytes;
            run.length -= bytes;
            gone = run.length == 0;
        }
        from.step(gone);
    }
}

/// The number of a queue pair among those of all processors.
fn end(cpu: u8, function: u8, pair: u8) -> u16 {
    u16::from(cpu) << (FUNCTION_BITS + QUEUE_PAIR_BITS)
        | u16::from(function) << QUEUE_PAIR_BITS
        | u16::from(pair)
}

#[cfg(test)]
mod tests;
