//! `pcie_tx`: makes TLPs of reads, writes and answers (C-22, C-34; cHPP sections 4.1, 4.2 and 5),
//! as `hardware/pcie_tx` builds it.
//!
//! Reads come from `read_arb` and writes from `write_arb`. Answers are completions of the host's
//! own reads. Whole TLPs take turns, and leave in the order in which they were taken.

use bellwire_wire::ADDRESS_BITS;
use bellwire_wire::pcie::tlp::{Completion, Header, MAX_BYTE_COUNT, Request};
use bellwire_wire::span::{ByteSpan, DwordSpan};

use super::data_reorder::{BEAT_WORDS, LANES, SIZE_BITS};
use super::key_window::FUNCTION_BITS;
use super::line::{Beat, bytes_of};
use super::tag_alloc::TAG_BITS;

/// Bits of the numbers of bus and device.
pub const DEVICE_BITS: usize = 13;
/// Bits of the count of DWs that a beat lacks.
pub const EMPTY_BITS: usize = 2;
/// Bytes of a DW.
pub const DW_BYTES: usize = 4;
/// No request crosses a multiple of these bytes.
const PAGE_BYTES: u64 = 4096;

crate::ports! {
    /// What enters in a cycle.
    pub struct In {
        /// Bus and device of the interface.
        device: u16 = DEVICE_BITS,
        /// A read is offered.
        read_valid: bool = 1,
        /// The function it is for.
        read_function: u8 = FUNCTION_BITS,
        /// Global address of its first byte.
        read_address: u64 = ADDRESS_BITS as usize,
        /// Its bytes.
        read_bytes: u16 = SIZE_BITS,
        /// Its tag.
        read_tag: u8 = TAG_BITS,
        /// The host has room for one more read.
        read_credit: bool = 1,
        /// A beat of a write is offered.
        write_valid: bool = 1,
        /// It is the last of its write.
        write_last: bool = 1,
        /// The function it is for; the same for all beats of a write, as all up to `write_bytes`.
        write_function: u8 = FUNCTION_BITS,
        /// Global address of the first byte of the write.
        write_address: u64 = ADDRESS_BITS as usize,
        /// Bytes of the write.
        write_bytes: u16 = SIZE_BITS,
        /// The beat, with each byte on the lane of its address.
        write_data: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
        /// An answer is offered.
        answer_valid: bool = 1,
        /// The function that was asked.
        answer_function: u8 = FUNCTION_BITS,
        /// Who asked.
        answer_requester: u16 = 16,
        /// The tag of the request.
        answer_tag: u8 = 8,
        /// Its traffic class.
        answer_class: u8 = 3,
        /// Its attributes.
        answer_attributes: u8 = 3,
        /// What became of it.
        answer_status: u8 = 3,
        /// Bytes that it wanted; zero stands for 4096.
        answer_count: u16 = 12,
        /// The low bits of the address of its first byte.
        answer_lower: u8 = 7,
        /// The answer has a DW of data.
        answer_has_data: bool = 1,
        /// That DW.
        answer_data: u32 = 32,
        /// A beat is taken, if one is offered.
        out_ready: bool = 1,
    }

    /// What stands at the outputs in a cycle.
    pub struct Out {
        /// The read is taken.
        read_ready: bool = 1,
        /// The beat of a write is taken.
        write_ready: bool = 1,
        /// The answer is taken.
        answer_ready: bool = 1,
        /// A beat of a TLP is offered.
        out_valid: bool = 1,
        /// It is the last one.
        out_last: bool = 1,
        /// DWs that it lacks.
        out_empty: u8 = EMPTY_BITS,
        /// The beat: the byte that is sent first is the lowest one; zero if there is none.
        out_data: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
        /// A read, or a write's last beat, that was taken in the cycle before made no TLP.
        refused: bool = 1,
    }
}

/// Who asks, in the order of the arbiter; answers are the third.
const READ: usize = 0;
const WRITE: usize = 1;
const SENDERS: usize = 3;

/// The transmitter. The sender behind the one that was served last goes first; after reset, reads
/// do.
///
/// A beat that is taken in cycle `t` is offered from `t + 1` on. A write can have one beat more as
/// a TLP, which needs a cycle in which nothing is taken.
#[derive(Clone, Debug)]
pub struct PcieTx {
    /// Bytes of a read and of a write, at most.
    most: [usize; 2],
    /// The sender whose turn is next.
    next: usize,
    /// Beats of a write have been taken, and its last one has not.
    mid: bool,
    /// Bytes of the TLP that were taken, and have no beat yet.
    rest: Vec<u8>,
    refused: bool,
    /// The output's register: fields of `out_`.
    output: Out,
}

impl PcieTx {
    /// An idle one. Reads have up to `max_read` bytes, and writes `max_payload`.
    ///
    /// # Panics
    /// Unless both are powers of two from 128 to 4096.
    pub fn new(max_read: usize, max_payload: usize) -> PcieTx {
        let most = [max_read, max_payload];
        let is_legal = |most: &usize| most.is_power_of_two() && (128..=4096).contains(most);
        assert!(most.iter().all(is_legal), "128, 256, ... 4096");
        PcieTx {
            most,
            next: READ,
            mid: false,
            rest: Vec::new(),
            refused: false,
            output: Out::default(),
        }
    }

    /// One cycle. The last beat of a write is the one that has its last byte.
    #[inline]
    pub fn cycle(&mut self, input: In) -> Out {
        let mut out = Out { refused: self.refused, ..self.output };
        self.refused = false;
        if self.output.out_valid && !input.out_ready {
            return out;
        }
        self.output = Out::default();
        if !self.mid && !self.rest.is_empty() {
            self.send(true);
            return out;
        }
        match self.arbitrate(&input, &mut out) {
            Some(READ) => self.read(&input),
            Some(WRITE) => self.write(&input),
            Some(_) => self.answer(&input),
            None => {}
        }
        out
    }

    /// Who is served. A sender is ready if no other one before it asks, whether it asks or not.
    fn arbitrate(&mut self, input: &In, out: &mut Out) -> Option<usize> {
        if self.mid {
            out.write_ready = true;
            return input.write_valid.then_some(WRITE);
        }
        let asks = [input.read_valid && input.read_credit, input.write_valid, input.answer_valid];
        let mut ready = [false; SENDERS];
        let mut taken = None;
        for step in 0..SENDERS {
            let sender = (self.next + step) % SENDERS;
            ready[sender] = taken.is_none();
            if asks[sender] && taken.is_none() {
                taken = Some(sender);
            }
        }
        [out.read_ready, out.write_ready, out.answer_ready] = ready;
        out.read_ready &= input.read_credit;
        self.next = taken.map_or(self.next, |sender| sender + 1);
        taken
    }

    /// What a request means, if it can be a TLP.
    fn span(&self, sender: usize, address: u64, bytes: u16) -> Option<DwordSpan> {
        let length = usize::from(bytes);
        let fits = (1..=self.most[sender]).contains(&length)
            && address % PAGE_BYTES + u64::from(bytes) <= PAGE_BYTES;
        // What lies in a page lies in the address space.
        fits.then(|| ByteSpan::new(address, length).expect("it lies in a page").to_dwords())
    }

    fn read(&mut self, input: &In) {
        let span = self.span(READ, input.read_address, input.read_bytes);
        let Some(span) = span else {
            self.refused = true;
            return;
        };
        let header = request(false, input.device, input.read_function, input.read_tag, span);
        self.header(Header::Request(header));
        self.send(true);
    }

    /// A beat of a write.
    fn write(&mut self, input: &In) {
        let begins = !std::mem::replace(&mut self.mid, !input.write_last);
        let (address, bytes) = (input.write_address, input.write_bytes);
        let Some(span) = self.span(WRITE, address, bytes) else {
            self.refused = input.write_last;
            return;
        };
        let lane = |address: u64| address as usize % LANES / DW_BYTES * DW_BYTES;
        let (mut from, mut to) = (0, LANES);
        if begins {
            let header = request(true, input.device, input.write_function, 0, span);
            self.header(Header::Request(header));
            from = lane(address);
        }
        if input.write_last {
            to = lane(address + u64::from(bytes) - 1) + DW_BYTES;
        }
        self.rest.extend_from_slice(&bytes_of(input.write_data)[from..to]);
        self.send(input.write_last);
    }

    fn answer(&mut self, input: &In) {
        let count = input.answer_count;
        self.header(Header::Completion(Completion {
            is_poisoned: false,
            class: input.answer_class,
            attributes: input.answer_attributes,
            completer: identity(input.device, input.answer_function),
            status: input.answer_status,
            byte_count: if count == 0 { MAX_BYTE_COUNT } else { count },
            requester: input.answer_requester,
            tag: input.answer_tag,
            lower: input.answer_lower,
            dwords: input.answer_has_data.into(),
        }));
        if input.answer_has_data {
            self.rest.extend_from_slice(&input.answer_data.to_le_bytes());
        }
        self.send(true);
    }

    /// A TLP begins with this header.
    fn header(&mut self, header: Header) {
        self.rest.resize(header.buffer_len(), 0);
        header.emit(&mut self.rest).expect("each field has as many bits as its port");
    }

    /// The next beat of the TLP moves to the output. The rest `ends` with what was taken.
    fn send(&mut self, ends: bool) {
        let count = self.rest.len().min(LANES);
        let mut bytes = [0; LANES];
        bytes[..count].copy_from_slice(&self.rest[..count]);
        self.rest.drain(..count);
        self.output = Out {
            out_valid: true,
            out_last: ends && self.rest.is_empty(),
            out_empty: ((LANES - count) / DW_BYTES) as u8,
            out_data: Beat { bytes, k: 0 }.words(),
            ..Out::default()
        };
    }
}

/// Bus, device and function in one number.
fn identity(device: u16, function: u8) -> u16 {
    (device << FUNCTION_BITS) + u16::from(function)
}

/// A request with the least traffic class, and ordered strictly.
fn request(is_write: bool, device: u16, function: u8, tag: u8, span: DwordSpan) -> Request {
    Request {
        is_write,
        is_poisoned: false,
        class: 0,
        attributes: 0,
        requester: identity(device, function),
        tag,
        address: span.address,
        dwords: span.length_dw,
        first: span.first_enables,
        last: span.last_enables,
    }
}

#[cfg(test)]
mod tests;
