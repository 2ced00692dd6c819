//! Packets of the engine as operations of the modelled interface, and back.
//!
//! A function has one queue pair of the machine, its *place*. Two of a packet's three header words
//! travel as the software tail (C-10). The third, if it is not zero, precedes the payload.
//!
//! | bytes | goes as | to |
//! |---|---|---|
//! | up to 128 | NAP immediate (C-17) | a slot that the receiver's interface chooses |
//! | up to 2048 | NAP indirect (C-18), out of a buffer of the sender | the same |
//! | up to 8192 | PUT with event (C-14), out of a buffer of the sender | a buffer of the receiver |
//!
//! The sender reserves the receiver's buffer, slot and ring record directly. This has the effect of
//! credits, without messages that carry them (docs/model-chpp.md).

use crate::machine::{Machine, parts};
use bellwire_device::PacketHeader;
use bellwire_model::chpp::Config;
use bellwire_model::chpp::clocked::Told;
use bellwire_model::chpp::host::RingKind;
use bellwire_model::units::{Bytes, Span, Time};
use bellwire_ring::memory::View;
use bellwire_wire::descriptor::{DescriptorRepr, Work};
use bellwire_wire::endpoint::Endpoint;
use bellwire_wire::entry::{Chain, Entry};
use bellwire_wire::primitive::Primitive;
use bellwire_wire::tail::Tail;
use std::collections::{HashMap, VecDeque};

/// Size of a buffer for PUTs, and its alignment.
const BUFFER_BYTES: usize = 8192;

/// Longest payload of a packet: a buffer without the third header word.
pub(crate) const PAYLOAD_BYTES: usize = BUFFER_BYTES - 8;

/// Longest data that goes inside the descriptor.
const IMMEDIATE_BYTES: usize = 128;

/// Longest data that goes as a NAP.
const NAP_BYTES: usize = 2048;

/// Bit in the first header word in flight: the third word precedes the payload. No flag of the
/// engine uses this bit.
const HAS_ARGUMENT: u64 = 1 << 15;

/// The machine, its queue pairs, and the packets in flight.
pub(crate) struct Nic {
    pub(crate) config: Config,
    pub(crate) machine: Box<dyn Machine>,
    reader: Reader,
    places: Vec<Place>,
    /// Packets in flight, by sender's and receiver's place. The machine keeps their order.
    flights: HashMap<(usize, usize), VecDeque<Flight>>,
    pub(crate) packets: u64,
}

/// One queue pair of the machine.
struct Place {
    endpoint: Endpoint,
    taken: bool,
    /// Address of the first buffer.
    buffers: u64,
    /// Free buffers to PUT from, numbered from 0.
    free_sources: Vec<usize>,
    /// Free buffers that peers PUT to, numbered after those.
    free_targets: Vec<usize>,
    /// Own operations that the interface has not finished, each with its buffer.
    leaving: VecDeque<(Tail, Option<usize>)>,
    /// Packets to this place that were not read yet.
    expected: usize,
    /// The maximum of `expected`.
    expects: usize,
}

struct Flight {
    tail: Tail,
    tag: Tag,
    target: Option<usize>,
}

/// A packet's route: a wire, and the end of it that the packet goes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Tag {
    pub(crate) wire: usize,
    pub(crate) end: usize,
}

/// A packet that was read from a ring.
pub(crate) struct Read {
    /// The place of the ring.
    pub(crate) place: usize,
    pub(crate) tag: Tag,
    pub(crate) words: [u64; 3],
    pub(crate) payload: Vec<u8>,
}

/// Copies the data of events out when they are read.
#[derive(Default)]
struct Reader(VecDeque<(Told, Vec<u8>)>);

impl Reader {
    fn take(&mut self, told: &Told, memory: &mut dyn FnMut(u64, usize) -> Vec<u8>) {
        let event = &told.event;
        let bytes = match (told.ring, event.primitive) {
            (RingKind::Send, _) => Vec::new(),
            (RingKind::Receive, Primitive::Nap) => memory(event.address, event.length as usize),
            // The event belongs to the last packet. Its tail has the length of the whole.
            (RingKind::Receive, _) => {
                let [first, _] = words_of(event.tail);
                let length = (first >> 32) as usize + argument_bytes(first);
                let buffer = event.address & !(BUFFER_BYTES as u64 - 1);
                memory(buffer, length.min(BUFFER_BYTES))
            }
        };
        self.0.push_back((*told, bytes));
    }
}

impl Nic {
    /// The machine has as many hosts and functions as `config` says.
    pub(crate) fn new(config: &Config, mut machine: Box<dyn Machine>) -> Nic {
        let mut places = Vec::new();
        let per_function = config.nic.queue_pairs;
        // The host reports reads in steps of a quarter of the ring, so the interface may see it
        // fuller than it is.
        let records = config.host.ring_entries as usize;
        let expects = (records - (records / 4).max(1)).min(config.host.slots).max(1);
        for node in 0..config.nodes() {
            for function in 0..config.nic.functions {
                let [base, free] = machine.window(node, function);
                let free = free.next_multiple_of(BUFFER_BYTES as u64);
                let end = base + config.host.window.count();
                let share = (end - free) / per_function as u64 / BUFFER_BYTES as u64;
                let sources = config.nic.doorbell_depth.min(share as usize / 2);
                let targets = expects.min(share as usize - sources);
                for queue_pair in 0..per_function {
                    let endpoint = Endpoint::new(node as u8, function as u8, queue_pair as u8)
                        .expect("the configuration has been checked");
                    machine.consumes(endpoint, false, &mut |_, _| ());
                    places.push(Place {
                        endpoint,
                        taken: false,
                        buffers: free + queue_pair as u64 * share * BUFFER_BYTES as u64,
                        free_sources: (0..sources).rev().collect(),
                        free_targets: (sources..sources + targets).rev().collect(),
                        leaving: VecDeque::new(),
                        expected: 0,
                        expects,
                    });
                }
            }
        }
        let config = config.clone();
        let (reader, flights) = (Reader::default(), HashMap::new());
        Nic { config, machine, reader, places, flights, packets: 0 }
    }

    pub(crate) fn now(&self) -> Time {
        self.machine.now()
    }

    /// Takes a free place of `host` with no packet in flight to or from it. Prefers unused
    /// functions, because each has its own doorbells.
    pub(crate) fn take_place(&mut self, host: usize) -> Option<usize> {
        let (functions, pairs) = (self.config.nic.functions, self.config.nic.queue_pairs);
        let free = |place: &Place| !place.taken && place.expected == 0 && place.leaving.is_empty();
        let order = (0..pairs).flat_map(|pair| (0..functions).map(move |f| f * pairs + pair));
        let place = order
            .map(|within| host * functions * pairs + within)
            .find(|&place| free(&self.places[place]))?;
        self.places[place].taken = true;
        self.consumes(place, false);
        Some(place)
    }

    /// Frees a place. Packets that still arrive there are read and dropped.
    pub(crate) fn leave_place(&mut self, place: usize) {
        self.places[place].taken = false;
        self.consumes(place, true);
    }

    /// Executes the next event, if there is one at or before `until`. `false`: the time is now
    /// `until`.
    pub(crate) fn step(&mut self, until: Time) -> bool {
        self.machine.step(until, &mut |told, memory| self.reader.take(told, memory))
    }

    /// Packets that have arrived at a place and are unread.
    pub(crate) fn unread(&self, place: usize) -> usize {
        self.unread_in(place, RingKind::Receive)
    }

    /// Finished operations of a place with an unread completion.
    pub(crate) fn unnoticed(&self, place: usize) -> usize {
        self.unread_in(place, RingKind::Send)
    }

    fn unread_in(&self, place: usize, ring: RingKind) -> usize {
        self.machine.unread(self.places[place].endpoint, ring)
    }

    /// Reads the rings of a place.
    pub(crate) fn look(&mut self, place: usize) {
        if self.unread(place) + self.unnoticed(place) > 0 {
            self.consumes(place, true);
            self.consumes(place, false);
        }
    }

    fn consumes(&mut self, place: usize, yes: bool) {
        let endpoint = self.places[place].endpoint;
        self.machine.consumes(endpoint, yes, &mut |told, memory| self.reader.take(told, memory));
    }

    /// The next packet that was read, from any ring.
    pub(crate) fn next_read(&mut self) -> Option<Read> {
        while let Some((told, bytes)) = self.reader.0.pop_front() {
            let own = self.place_of(told.node, told.function, told.queue_pair);
            if told.ring == RingKind::Send {
                if let Some((tail, source)) = self.places[own].leaving.pop_front() {
                    debug_assert_eq!(tail, told.event.tail, "a queue pair keeps its order");
                    self.places[own].free_sources.extend(source);
                }
                continue;
            }
            let (node, function, pair) = parts(told.event.peer);
            let from = self.place_of(node, function, pair);
            let flight = self.flights.get_mut(&(from, own)).and_then(VecDeque::pop_front);
            let Some(Flight { tail, tag, target }) = flight else { continue };
            debug_assert_eq!(tail, told.event.tail, "the machine keeps the order of packets");
            self.places[own].expected -= 1;
            self.places[own].free_targets.extend(target);
            let [first, second] = words_of(told.event.tail);
            let (argument, payload) = bytes.split_at(argument_bytes(first).min(bytes.len()));
            let third = argument.try_into().map_or(0, u64::from_le_bytes);
            let words = [first & !HAS_ARGUMENT, second, third];
            return Some(Read { place: own, tag, words, payload: payload.to_vec() });
        }
        None
    }

    /// Processor time to build a packet of `bytes` bytes, up to the start of its operation.
    pub(crate) fn cost_of_sending(&self, bytes: usize) -> Span {
        self.config.program.send + self.cost_of_copying(bytes)
    }

    /// Processor time to receive a packet of `bytes` bytes.
    pub(crate) fn cost_of_receiving(&self, bytes: usize) -> Span {
        self.config.program.receive + self.cost_of_copying(bytes)
    }

    fn cost_of_copying(&self, bytes: usize) -> Span {
        self.config.program.copy.time(Bytes::new(bytes as u64))
    }

    /// Most packets that may be in flight to a place or unread there at once.
    pub(crate) fn expects(&self, place: usize) -> usize {
        self.places[place].expects
    }

    /// Whether a packet of `length` bytes can be sent between two places now. The sender's
    /// interface must take one more operation (C-33), and the receiver must have room.
    pub(crate) fn takes(
        &self,
        (from, to): (usize, usize),
        header: PacketHeader,
        length: usize,
    ) -> bool {
        let bytes = length + if header.argument != 0 { 8 } else { 0 };
        let (sender, receiver) = (&self.places[from], &self.places[to]);
        let (node, function, _) = parts(sender.endpoint);
        receiver.expected < receiver.expects
            && (bytes <= NAP_BYTES || !receiver.free_targets.is_empty())
            && (bytes <= IMMEDIATE_BYTES || !sender.free_sources.is_empty())
            && self.machine.has_place(node, function)
    }

    /// Sends a packet between two places now. The caller has checked [`Nic::takes`]. Returns the
    /// time at which the processor has started it.
    pub(crate) fn send(
        &mut self,
        (from, to): (usize, usize),
        tag: Tag,
        mut header: PacketHeader,
        head: &[u8],
        body: View<'_>,
    ) -> Time {
        header.length = (head.len() + body.len()) as u32;
        let [mut first, second, argument] = header.to_words();
        first |= HAS_ARGUMENT * u64::from(argument != 0);
        let argument = argument.to_le_bytes();
        let argument = if header.argument != 0 { &argument[..] } else { &[] };
        let bytes = [argument, head, &body.to_vec()].concat();

        let (needs_source, is_put) = (bytes.len() > IMMEDIATE_BYTES, bytes.len() > NAP_BYTES);
        let source = if needs_source { self.places[from].free_sources.pop() } else { None };
        let target = if is_put { self.places[to].free_targets.pop() } else { None };
        let tail = [first, second].map(u64::to_le_bytes);
        let tail = Tail::new(tail.as_flattened()).expect("16 bytes");
        let started = self.post((from, to), (source, target), tail, &bytes);
        self.places[from].leaving.push_back((tail, source));
        self.places[to].expected += 1;
        self.flights.entry((from, to)).or_default().push_back(Flight { tail, tag, target });
        self.packets += 1;
        started + self.config.host.cpu_start
    }

    /// Writes the descriptor and lets the processor ring. Returns when the processor starts.
    fn post(
        &mut self,
        (from, to): (usize, usize),
        (source, target): (Option<usize>, Option<usize>),
        tail: Tail,
        bytes: &[u8],
    ) -> Time {
        let (near, far) = (&self.places[from], &self.places[to]);
        let (source, target) = (source.map(|at| near.buffer(at)), target.map(|at| far.buffer(at)));
        let entry = |address: Option<u64>| {
            [Entry { address: address.unwrap_or(0), length: bytes.len() as u64 }]
        };
        let (sources, destinations) = (entry(source), entry(target));
        if let Some(address) = source {
            self.machine.write(address, bytes);
        }
        let work = match (source, target) {
            (None, _) => Work::NapImmediate(bytes),
            (Some(_), None) => Work::NapIndirect((&sources[..]).into()),
            (Some(_), Some(_)) => Work::Put(Chain {
                sources: (&sources[..]).into(),
                destinations: (&destinations[..]).into(),
            }),
        };
        let descriptor = DescriptorRepr {
            destination: far.endpoint,
            queue_pair: near.endpoint.queue_pair(),
            traffic_class: 0,
            magic: self.machine.key(far.endpoint),
            wants_event: true,
            work,
            tail,
        };
        let (node, function, _) = parts(near.endpoint);
        let started = self.machine.post(node, function, &descriptor);
        started.expect("lengths and addresses are in range")
    }

    fn place_of(&self, node: usize, function: usize, queue_pair: usize) -> usize {
        (node * self.config.nic.functions + function) * self.config.nic.queue_pairs + queue_pair
    }
}

impl Place {
    fn buffer(&self, at: usize) -> u64 {
        self.buffers + (at * BUFFER_BYTES) as u64
    }
}

fn words_of(tail: Tail) -> [u64; 2] {
    let word = |at: usize| {
        let bytes = tail.as_bytes().get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u64::from_le_bytes)
    };
    [word(0), word(8)]
}

fn argument_bytes(first: u64) -> usize {
    if first & HAS_ARGUMENT != 0 { 8 } else { 0 }
}
