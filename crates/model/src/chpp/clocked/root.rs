//! The root complex of a host and its memory, for an interface that goes cycle by cycle. TLPs cross
//! the wires with the times of [`Link`], beat by beat at both ends.
//!
//! A beat of the interface goes onto the wires at once: they are as fast as its bus. Likewise the
//! first beat of a TLP is offered when it has come, and not with the last one. The host always has
//! room for what comes.

use std::collections::{BTreeMap, VecDeque};

use bellwire_wire::pcie::tlp::{Completion, Header, Request, SUCCESS, UNSUPPORTED};
use bellwire_wire::span::DwordSpan;

use super::super::config::Config;
use super::super::memory::HostMemory;
use super::super::pcie::{Link, cut_completions};
use crate::cycle::data_reorder::{BEAT_WORDS, LANES};
use crate::engine::Random;
use crate::units::{Span, Time};

/// Framing, sequence number and LCRC around a TLP on the wires.
const AROUND_BYTES: usize = 8;

/// The number of the root complex on the bus.
const REQUESTER: u16 = 0;

/// Bus and device of the interface.
pub const DEVICE: u16 = 1 << 5;
/// Bits of the function's number behind these.
const FUNCTION_BITS: u32 = 3;

/// A beat of a TLP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TlpBeat {
    /// It is the last one.
    pub last: bool,
    /// DWs that it lacks.
    pub empty: u8,
    /// The beat: the byte that was sent first is the lowest one.
    pub data: [u64; BEAT_WORDS],
}

/// Something that is due at a time.
enum Due {
    /// A TLP of the host goes onto the wires.
    Leaves(Vec<u8>),
    /// It begins to come to the interface.
    Comes(Vec<u8>),
    /// A TLP of the interface has come to the root complex.
    IsHere(Vec<u8>),
    /// The data of a read is there.
    Answers(Request),
    /// A write is visible: address and bytes.
    Lands(u64, Vec<u8>),
}

/// A root complex.
pub struct Root {
    /// The memory behind it.
    pub memory: HostMemory,
    up: Link,
    down: Link,
    boundary: u64,
    payload: u64,
    beat: Span,
    due: BTreeMap<(Time, u64), Due>,
    /// Things that were due so far or are.
    number: u64,
    /// TLPs at the interface, and bytes of the first one that it has taken.
    offered: VecDeque<Vec<u8>>,
    taken: usize,
    /// The TLP that comes from the interface, and when it began.
    coming: Vec<u8>,
    began: Time,
    /// TLPs of the interface that the host does not understand, and reads of what is not there.
    pub refused: u64,
}

impl Root {
    /// A root complex of `node` with zeroed memory.
    pub fn new(config: &Config, node: usize, random: Random) -> Root {
        let length = config.host.window.count() * config.nic.functions as u64;
        Root {
            memory: HostMemory::new(node, length, &config.host, random),
            up: Link::new(&config.pcie),
            down: Link::new(&config.pcie),
            boundary: config.pcie.completion_boundary.count(),
            payload: config.pcie.max_payload.count(),
            beat: config.nic.cycle(),
            due: BTreeMap::new(),
            number: 0,
            offered: VecDeque::new(),
            taken: 0,
            coming: Vec::new(),
            began: Time::ZERO,
            refused: 0,
        }
    }

    /// Stores a word of 8 bytes into the window of the interface, at `time`.
    pub fn store(&mut self, time: Time, address: u64, word: u64) {
        let header = Header::Request(Request {
            is_write: true,
            is_poisoned: false,
            class: 0,
            attributes: 0,
            requester: REQUESTER,
            tag: 0,
            address,
            dwords: 2,
            first: 0b1111,
            last: 0b1111,
        });
        self.plan(time, Due::Leaves(tlp(&header, &word.to_le_bytes())));
    }

    /// When the next thing is due.
    pub fn next(&self) -> Option<Time> {
        self.due.first_key_value().map(|((time, _), _)| *time)
    }

    /// The beat that the interface is offered.
    pub fn beat(&self) -> Option<TlpBeat> {
        let left = &self.offered.front()?[self.taken..];
        let here = left.len().min(LANES);
        let mut bytes = [0; LANES];
        bytes[..here].copy_from_slice(&left[..here]);
        Some(TlpBeat {
            last: here == left.len(),
            empty: ((LANES - here) / 4) as u8,
            data: words(bytes),
        })
    }

    /// The interface has taken it.
    pub fn took(&mut self) {
        self.taken += LANES;
        if self.offered.front().is_none_or(|tlp| self.taken >= tlp.len()) {
            self.offered.pop_front();
            self.taken = 0;
        }
    }

    /// Whether a beat of the interface is taken at `now`: between two TLPs the wires must be free.
    pub fn takes(&self, now: Time) -> bool {
        !self.coming.is_empty() || self.up.server.free_at() <= now
    }

    /// A beat of the interface.
    pub fn take(&mut self, now: Time, beat: TlpBeat) {
        if self.coming.is_empty() {
            self.began = now;
        }
        let bytes = beat.data.map(u64::to_le_bytes);
        self.coming.extend(&bytes.as_flattened()[..LANES - 4 * usize::from(beat.empty)]);
        if beat.last {
            let tlp = std::mem::take(&mut self.coming);
            let passage = self.up.transmit(self.began, (tlp.len() + AROUND_BYTES) as u64);
            // The last beat may have been late.
            let latency = passage.arrives - passage.left;
            self.plan(passage.left.max(now) + latency, Due::IsHere(tlp));
        }
    }

    /// Carries out what is due up to `now`. Writes that have become visible are told by address.
    pub fn advance(&mut self, now: Time, lands: &mut Vec<u64>) {
        while self.next().is_some_and(|time| time <= now) {
            let Some(((time, _), due)) = self.due.pop_first() else { return };
            match due {
                Due::Leaves(tlp) => {
                    let passage = self.down.transmit(time, (tlp.len() + AROUND_BYTES) as u64);
                    let latency = passage.arrives - passage.left;
                    self.plan(passage.begins + self.beat + latency, Due::Comes(tlp));
                }
                Due::Comes(tlp) => self.offered.push_back(tlp),
                Due::IsHere(tlp) => self.is_here(time, &tlp),
                Due::Answers(request) => self.answer(time, &request),
                Due::Lands(address, bytes) => {
                    match self.memory.slice_mut(address, bytes.len()) {
                        Some(memory) => memory.copy_from_slice(&bytes),
                        None => self.refused += 1,
                    }
                    lands.push(address);
                }
            }
        }
    }

    fn plan(&mut self, time: Time, due: Due) {
        self.due.insert((time, self.number), due);
        self.number += 1;
    }

    /// A TLP of the interface is here.
    fn is_here(&mut self, time: Time, tlp: &[u8]) {
        let request = match Header::parse(tlp) {
            Ok(header @ Header::Request(request)) => {
                let payload = &tlp[header.buffer_len()..];
                (payload.len() == 4 * header.payload_dw()).then_some((request, payload))
            }
            // The host has no reads under way.
            Ok(Header::Completion(_)) | Err(_) => None,
        };
        // Only the functions of the interface send requests.
        let request = request.filter(|(request, _)| request.requester >> FUNCTION_BITS == DEVICE);
        let span = request.and_then(|(request, payload)| Some((run(&request)?, request, payload)));
        let Some(((address, length), request, payload)) = span else {
            self.refused += 1;
            return;
        };
        let bytes = 4 * u64::from(request.dwords);
        if request.is_write {
            let lead = (address - request.address) as usize;
            let bytes = payload[lead..lead + length].to_vec();
            let ends = self.memory.serve_write(time, payload.len() as u64).ends;
            self.plan(ends, Due::Lands(address, bytes));
        } else {
            let ends = self.memory.serve_read(time, bytes).ends;
            self.plan(ends, Due::Answers(request));
        }
    }

    /// Sends the completions of a read.
    fn answer(&mut self, time: Time, request: &Request) {
        let says = Completion {
            is_poisoned: false,
            class: request.class,
            attributes: request.attributes,
            completer: REQUESTER,
            status: SUCCESS,
            byte_count: 0,
            requester: request.requester,
            tag: request.tag,
            lower: 0,
            dwords: 0,
        };
        let Some((address, length)) = run(request) else { return };
        if self.memory.slice(address, length).is_none() {
            self.refused += 1;
            let lower = (address % 128) as u8;
            let says = Completion { status: UNSUPPORTED, byte_count: length as u16, lower, ..says };
            self.plan(time, Due::Leaves(tlp(&Header::Completion(says), &[])));
            return;
        }
        let mut left = length as u64;
        for run in cut_completions(address, left, self.boundary, self.payload) {
            let (first, end) =
                (run.address / 4 * 4, (run.address + run.length).next_multiple_of(4));
            let says = Completion {
                byte_count: left as u16,
                lower: (run.address % 128) as u8,
                dwords: ((end - first) / 4) as u16,
                ..says
            };
            // Whole DWs of memory lie in it: it ends at a multiple of 4.
            let payload = self.memory.slice(first, (end - first) as usize).unwrap_or_default();
            let bytes = tlp(&Header::Completion(says), payload);
            self.plan(time, Due::Leaves(bytes));
            left -= run.length;
        }
    }
}

/// Address and length of the bytes that a request means, if they are one run.
fn run(request: &Request) -> Option<(u64, usize)> {
    let span = DwordSpan {
        address: request.address,
        length_dw: request.dwords,
        first_enables: request.first,
        last_enables: request.last,
    };
    let span = span.to_bytes().ok()?;
    Some((span.address(), span.len()))
}

/// A TLP with this payload.
fn tlp(header: &Header, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; header.buffer_len()];
    header.emit(&mut bytes).expect("all its numbers come from what fits");
    bytes.extend_from_slice(payload);
    bytes
}

fn words(bytes: [u8; LANES]) -> [u64; BEAT_WORDS] {
    let (words, _) = bytes.as_chunks();
    [0, 1].map(|word: usize| u64::from_le_bytes(words[word]))
}
