//! `upload`: writes PUT and NAP packets to host memory, and asks for their events (C-09, C-14,
//! C-21, C-22, C-39; cHPP section 4.2, Fig. 12), as `hardware/upload` builds it.
//!
//! One packet is uploaded at a time. Its key, its target, its slot and its record of the event ring
//! are looked at before anything of it is written. Bytes leave on the lanes of their addresses.

use bellwire_wire::ADDRESS_BITS;
use bellwire_wire::endpoint::Endpoint;
use bellwire_wire::event::{EventRepr, Status};
use bellwire_wire::header::{Header, HeaderRepr, MAX_NAP_BYTES};
use bellwire_wire::primitive::Primitive;
use bellwire_wire::tail::Tail;

use super::data_reorder::{BEAT_WORDS, LANES, SIZE_BITS};
use super::event_ring::{EVENT_WORDS, RING_BITS};
use super::key_window::{FUNCTION_BITS, KEY_BITS, PAIR_BITS};
use super::line::{Beat, bytes_of};

const LANE_BITS: usize = LANES.ilog2() as usize;
/// Bits of the number of a processor.
const CPU_BITS: usize = Endpoint::BITS as usize - PAIR_BITS;
/// Bytes of a slot: those of the longest NAP (C-19).
const SLOT_BYTES: usize = MAX_NAP_BYTES;

crate::ports! {
    /// What enters in a cycle.
    pub struct In {
        /// The own processor, which packets must name.
        cpu: u8 = CPU_BITS,
        /// A beat of a packet comes.
        in_valid: bool = 1,
        /// It is the last of its packet.
        in_last: bool = 1,
        /// The lane of its last byte; counts with `in_last`.
        in_to: u8 = LANE_BITS,
        /// The beat.
        in_data: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
        /// The packet of the cycle before carries the key of its queue pair.
        packet_fits: bool = 1,
        /// The target of the cycle before lies in its window.
        target_fits: bool = 1,
        /// A slot leaves the cache of `take_pair`, if one is taken.
        take_ready: bool = 1,
        /// That queue pair has no list of slots.
        lacks_list: bool = 1,
        /// Global address of the slot that was taken last.
        slot: u64 = ADDRESS_BITS as usize,
        /// The event enters `event_ring`, if one is offered.
        event_ready: bool = 1,
        /// That ring is closed.
        lacks_ring: bool = 1,
        /// That ring is full.
        lacks_place: bool = 1,
        /// A beat of a write is taken, if one is offered.
        out_ready: bool = 1,
    }

    /// What stands at the outputs in a cycle.
    pub struct Out {
        /// The beat of a packet is taken.
        in_ready: bool = 1,
        /// A packet asks whether its key fits.
        packet_valid: bool = 1,
        /// Its queue pair; zero if none asks.
        packet_pair: u8 = PAIR_BITS,
        /// Its key; zero if none asks.
        packet_key: u8 = KEY_BITS,
        /// A packet asks whether its target, or its slot, lies in the window.
        target_valid: bool = 1,
        /// The function; zero if none asks, as all up to `target_length`.
        target_function: u8 = FUNCTION_BITS,
        /// Global address of the first byte.
        target_address: u64 = ADDRESS_BITS as usize,
        /// How many.
        target_length: u16 = SIZE_BITS,
        /// A NAP takes a slot.
        take_valid: bool = 1,
        /// The queue pair of the packet that came last.
        take_pair: u8 = PAIR_BITS,
        /// An event is offered.
        event_valid: bool = 1,
        /// The receive ring of `take_pair`.
        event_ring: u8 = RING_BITS,
        /// The record, without its phase; zero if none is offered.
        event_record: [u64; EVENT_WORDS] = 64 * EVENT_WORDS,
        /// A beat of a write is offered.
        out_valid: bool = 1,
        /// It is the last of its write.
        out_last: bool = 1,
        /// The function that the write is for; zero if none is offered.
        out_function: u8 = FUNCTION_BITS,
        /// Global address of its first byte; zero if none is offered.
        out_address: u64 = ADDRESS_BITS as usize,
        /// Bytes of the write; zero if none is offered.
        out_bytes: u16 = SIZE_BITS,
        /// The bytes, each on the lane of its address, and zeros beside.
        out_data: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
        /// A packet was dropped in the cycle before: it is no PUT and no NAP, or has a wrong form.
        unknown: bool = 1,
        /// It was dropped: it has a wrong key, or names another processor.
        refused: bool = 1,
        /// It was dropped: its target lies outside of the window.
        outside: bool = 1,
        /// It was dropped, or its event was: a list or a ring of its queue pair is closed.
        closed: bool = 1,
        /// A slot was passed over: it lies outside of the window.
        passed_over: bool = 1,
        /// A packet is longer or shorter than its header says: it was written, and has no event.
        mismatched: bool = 1,
    }
}

impl Out {
    /// Asks whether these bytes lie in the window of a packet's function.
    fn asks_target(&mut self, header: &HeaderRepr, address: u64, length: usize) {
        self.target_valid = true;
        self.target_function = header.destination.function();
        self.target_address = address;
        self.target_length = length as u16;
    }
}

/// What is told of a packet in the next cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Unknown,
    Refused,
    Outside,
    Closed,
    PassedOver,
    Mismatched,
}

/// The packet that is uploaded.
#[derive(Clone, Debug)]
struct Packet {
    header: HeaderRepr,
    /// Destination of the data.
    address: u64,
    /// The beats that have come behind the header, and zeros for those that never do.
    bytes: Vec<u8>,
    /// Bytes behind the header, once the last beat has come.
    came: Option<usize>,
    /// Bytes of data that have been written.
    written: usize,
    /// Address and bytes of the write that goes on.
    write: (u64, u16),
}

impl Packet {
    fn is_nap(&self) -> bool {
        self.header.primitive == Primitive::Nap
    }

    fn wants_event(&self) -> bool {
        self.is_nap() || self.header.wants_event
    }

    /// A PUT names its target, if it has bytes.
    fn names_target(&self) -> bool {
        !self.is_nap() && !self.header.span.is_empty()
    }

    /// Bytes of its whole DWs.
    fn data_bytes(&self) -> usize {
        self.header.span.to_dwords().byte_len()
    }

    fn lacks_data(&self) -> bool {
        self.bytes.len() < self.data_bytes()
    }

    fn has_written_all(&self) -> bool {
        self.written == self.header.span.len()
    }

    /// A beat comes; lanes behind its last byte count as they are.
    fn take(&mut self, input: &In) {
        let before = self.bytes.len();
        self.bytes.extend_from_slice(&bytes_of(input.in_data));
        if input.in_last {
            self.came = Some(before + usize::from(input.in_to) + 1);
        }
    }

    /// The next beat of a write of up to `most` bytes.
    fn next_beat(&mut self, most: usize) -> Out {
        let span = self.header.span;
        let at = self.address + self.written as u64;
        let (in_write, lane) = (at as usize % most, at as usize % LANES);
        let left = span.len() - self.written;
        if self.written == 0 || in_write == 0 {
            self.write = (at, left.min(most - in_write) as u16);
        }
        let count = left.min(LANES - lane);
        let from = span.lead() + self.written;
        let mut bytes = [0; LANES];
        bytes[lane..lane + count].copy_from_slice(&self.bytes[from..from + count]);
        self.written += count;
        let (out_address, out_bytes) = self.write;
        Out {
            out_valid: true,
            out_last: count == left || in_write + count == most,
            out_function: self.header.destination.function(),
            out_address,
            out_bytes,
            out_data: Beat { bytes, k: 0 }.words(),
            ..Out::default()
        }
    }

    /// The bytes behind the data, if they are a tail.
    fn tail(&self) -> Option<Tail> {
        let tail = self.bytes.get(self.data_bytes()..self.came?)?;
        Tail::new(tail).ok()
    }

    /// Its event, without the phase.
    fn event(&self) -> [u64; EVENT_WORDS] {
        let HeaderRepr { primitive, source, destination, span, .. } = self.header;
        let event = EventRepr {
            phase: false,
            primitive,
            status: Status::Success,
            queue_pair: destination.queue_pair(),
            peer: source,
            address: self.address,
            length: span.len() as u64,
            tail: self.tail().expect("a packet of another length has no event"),
        };
        let mut bytes = [0; 8 * EVENT_WORDS];
        event.emit(&mut bytes).expect("its address and length are those of a packet");
        let (words, _) = bytes.as_chunks();
        std::array::from_fn(|word| u64::from_le_bytes(words[word]))
    }
}

/// What is waited for.
#[derive(Clone, Debug)]
enum State {
    /// A header.
    Header,
    /// Slot and record; in the first cycle, the answers about key and target.
    Room { packet: Packet, is_new: bool },
    /// A slot was taken, and stands at the input.
    Slot(Packet),
    /// The answer about the slot.
    Window(Packet),
    /// Beats of data, and the output.
    Data(Packet),
    /// A beat of tail.
    Tail(Packet),
    /// The ring of the event.
    Event(Packet),
    /// The end of a packet that was dropped.
    Drop,
}

/// The upload module.
///
/// A header comes in cycle `t`, and the answers about its key and its target in `t + 1`. So the
/// first beat of a PUT's data is taken in `t + 2` and offered from `t + 3` on, and one follows in
/// every cycle. A NAP needs two cycles more, for its slot. The event is offered when the last beat
/// of data was taken.
#[derive(Clone, Debug)]
pub struct Upload {
    /// Bytes of a write, at most.
    most: usize,
    state: State,
    /// The queue pair of the packet that came last.
    pair: u8,
    /// The output's register: fields of `out_`.
    output: Out,
    told: Option<Told>,
}

impl Upload {
    /// An idle one. Writes have up to `most` bytes, and end at multiples of that.
    ///
    /// # Panics
    /// Unless `most` is a power of two from 16 to 4096.
    pub fn new(most: usize) -> Upload {
        assert!(most.is_power_of_two() && (LANES..=4096).contains(&most), "16, 32, ... 4096");
        Upload { most, state: State::Header, pair: 0, output: Out::default(), told: None }
    }

    /// One cycle; slots are aligned.
    #[inline]
    pub fn cycle(&mut self, input: In) -> Out {
        let mut out = self.out();
        self.told = None;
        let has_output = !out.out_valid || input.out_ready;
        if has_output {
            self.output = Out::default();
        }
        self.state = match std::mem::replace(&mut self.state, State::Header) {
            State::Header => {
                out.in_ready = true;
                if input.in_valid { self.begin(&input, &mut out) } else { State::Header }
            }
            State::Room { is_new: true, .. } if !input.packet_fits => self.drops(Told::Refused),
            State::Room { ref packet, is_new: true }
                if packet.names_target() && !input.target_fits =>
            {
                self.drops(Told::Outside)
            }
            State::Room { packet, .. } => self.provide(packet, &input, &mut out),
            State::Slot(packet) => {
                let address = input.slot;
                out.asks_target(&packet.header, address, SLOT_BYTES);
                State::Window(Packet { address, ..packet })
            }
            State::Window(packet) if input.target_fits => State::Data(packet),
            State::Window(packet) => {
                self.told = Some(Told::PassedOver);
                State::Room { packet, is_new: false }
            }
            State::Data(packet) if has_output => self.write(packet, &input, &mut out),
            State::Data(packet) => State::Data(packet),
            State::Tail(packet) => {
                out.in_ready = true;
                if input.in_valid { self.end(packet, &input) } else { State::Tail(packet) }
            }
            State::Event(packet) if out.out_valid => State::Event(packet),
            State::Event(packet) => {
                if input.event_ready {
                    State::Header
                } else if input.lacks_ring {
                    self.told = Some(Told::Closed);
                    State::Header
                } else {
                    State::Event(packet)
                }
            }
            State::Drop => {
                out.in_ready = true;
                if input.in_valid && input.in_last { State::Header } else { State::Drop }
            }
        };
        out
    }

    /// What stands at the outputs in this cycle whatever enters: what is told, the write that is
    /// offered, the event, and the numbers of the queue pair.
    pub fn out(&self) -> Out {
        let is_told = |told| self.told == Some(told);
        let event = match &self.state {
            State::Event(packet) if !self.output.out_valid => Some(packet.event()),
            _ => None,
        };
        Out {
            event_valid: event.is_some(),
            event_record: event.unwrap_or_default(),
            take_pair: self.pair,
            event_ring: self.pair << 1 | 1,
            unknown: is_told(Told::Unknown),
            refused: is_told(Told::Refused),
            outside: is_told(Told::Outside),
            closed: is_told(Told::Closed),
            passed_over: is_told(Told::PassedOver),
            mismatched: is_told(Told::Mismatched),
            ..self.output
        }
    }

    /// The packet is dropped, and more of it comes.
    fn drops(&mut self, told: Told) -> State {
        self.told = Some(told);
        State::Drop
    }

    /// A header comes.
    fn begin(&mut self, input: &In, out: &mut Out) -> State {
        let bytes = bytes_of(input.in_data);
        let destination = Header::new(&bytes).expect("a beat has 16 bytes").destination();
        self.pair = destination.function() << 2 | destination.queue_pair();
        if input.in_last {
            // Every packet has a DW behind its header.
            self.told = Some(Told::Unknown);
            return State::Header;
        }
        let header = HeaderRepr::parse(&bytes).ok();
        // The dispatch module keeps GETs.
        let Some(header) = header.filter(|header| header.primitive != Primitive::Get) else {
            return self.drops(Told::Unknown);
        };
        if destination.cpu() != input.cpu {
            return self.drops(Told::Refused);
        }
        let address = header.span.address();
        let packet =
            Packet { header, address, bytes: Vec::new(), came: None, written: 0, write: (0, 0) };
        (out.packet_valid, out.packet_pair, out.packet_key) = (true, self.pair, header.magic);
        if packet.names_target() {
            out.asks_target(&header, address, header.span.len());
        }
        State::Room { packet, is_new: true }
    }

    /// The packet gets what it needs, all of it at once (C-21), or waits.
    fn provide(&mut self, packet: Packet, input: &In, out: &mut Out) -> State {
        if !packet.wants_event() {
            return State::Data(packet);
        }
        if input.lacks_ring {
            return self.drops(Told::Closed);
        }
        if !input.lacks_place {
            if !packet.is_nap() {
                return State::Data(packet);
            }
            out.take_valid = true;
            if input.take_ready {
                return State::Slot(packet);
            }
            if input.lacks_list {
                return self.drops(Told::Closed);
            }
        }
        State::Room { packet, is_new: false }
    }

    /// The output is free: a beat of data comes, or the last one goes on, and bytes are written.
    fn write(&mut self, mut packet: Packet, input: &In, out: &mut Out) -> State {
        if packet.lacks_data() {
            if packet.came.is_some() {
                packet.bytes.extend_from_slice(&[0; LANES]);
            } else {
                out.in_ready = true;
                if !input.in_valid {
                    return State::Data(packet);
                }
                packet.take(input);
            }
        }
        if !packet.has_written_all() {
            self.output = packet.next_beat(self.most);
        }
        if packet.lacks_data() || !packet.has_written_all() {
            State::Data(packet)
        } else if packet.came.is_some() {
            self.finish(packet)
        } else {
            State::Tail(packet)
        }
    }

    /// The beat behind the data comes: the tail, or the rest of it.
    fn end(&mut self, mut packet: Packet, input: &In) -> State {
        packet.take(input);
        if input.in_last { self.finish(packet) } else { self.drops(Told::Mismatched) }
    }

    /// The whole packet has come, and is written.
    fn finish(&mut self, packet: Packet) -> State {
        if packet.tail().is_none() {
            self.told = Some(Told::Mismatched);
        } else if packet.wants_event() {
            return State::Event(packet);
        }
        State::Header
    }
}

#[cfg(test)]
mod tests;
