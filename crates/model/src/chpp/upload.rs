//! The receive engine: dispatch, PUT upload, NAP upload (C-09, C-14, C-21, C-22, C-37, C-39; cHPP
//! section 4.2, Fig. 12).
//!
//! Ports: packets come from the crossbar; GETs go to the send engine, data and events to host
//! memory. A packet that lacks a NAP slot or an event record waits in front, with head-of-line
//! blocking.

use bellwire_protocol::canary::planted;
use bellwire_wire::event::{EVENT_BYTES, EventRepr, Status};
use bellwire_wire::header::{HEADER_BYTES, HeaderRepr};
use bellwire_wire::packet::PacketRepr;
use bellwire_wire::primitive::Primitive;
use bellwire_wire::tail::Tail;

use super::config::NicConfig;
use super::descriptor::{DescriptorUnit, RemoteGet, Transfer};
use super::function::Layout;
use super::host::RingKind;
use super::journal::{Cause, Stage};
use super::node::Step;
use super::pcie::{Run, first_request};
use super::port::{Note, PendingWrite, Port, Written};
use super::ring::{EventRing, Place};
use super::slots::SlotCache;
use super::{Context, PacketHandle};
use crate::engine::Server;
use crate::stats::Queue;
use crate::units::Time;

/// Buffer management of one queue pair, and its key.
pub struct QueuePair {
    /// Key that packets must carry (C-09).
    pub magic: u8,
    pub send_ring: EventRing,
    pub receive_ring: EventRing,
    pub slots: SlotCache,
}

/// A packet in the upload module.
struct Uploading {
    packet: PacketHandle,
    class: usize,
    header: HeaderRepr,
    tail: Tail,
    /// Destination of the data.
    address: u64,
    written: u64,
    event: Option<Place>,
}

/// Registers and queues of the receive engine.
#[derive(Default)]
pub struct Receiver {
    /// Packets in the crossbar and the dispatch, with their buffer.
    pub landing: Queue<(usize, PacketHandle)>,
    /// Waiting packets, by buffer.
    pub waiting: [Queue<PacketHandle>; 2],
    uploading: Option<Uploading>,
    /// Why the first packet of the data buffer waits.
    pub blocked: Option<Blocked>,
    /// Whether the packet in front waited for a slot or a record.
    starved: bool,
    converter: Server,
    /// The queue pair, among all, whose slots a NAP used or dropped since the last check.
    pub took_slot: Option<usize>,
    pub counters: ReceiveCounters,
}

/// What the packet in front waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocked {
    /// Something that the software of a queue pair provides.
    Software { function: usize, queue_pair: usize, lacks: &'static str },
    /// A place for a GET in the send engine.
    RemoteGets,
}

/// Stage counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiveCounters {
    pub naps: u64,
    pub puts: u64,
    pub gets: u64,
    /// Packets of unknown type or form; dropped (C-37).
    pub unknown: u64,
    /// Packets with a wrong key or for a nonexistent queue pair; dropped (C-09).
    pub refused: u64,
    /// PUT packets with a target outside the function's window; dropped (C-39).
    pub outside: u64,
    /// NAP slots outside of their function's window; passed over (C-39).
    pub outside_slots: u64,
    /// Events written to receive rings.
    pub events: u64,
    /// Bytes of data written.
    pub bytes: u64,
}

/// What the receive engine can reach outside itself.
pub struct ReceiveContext<'a> {
    pub port: &'a mut Port,
    /// The send engine's queue for GETs.
    pub descriptors: &'a mut DescriptorUnit,
    /// Windows of the functions.
    pub layouts: &'a [Layout],
    /// Queue pairs of all functions.
    pub queue_pairs: &'a mut [QueuePair],
}

impl Receiver {
    /// The next packet is through crossbar and dispatch.
    pub fn arrived(&mut self, now: Time) {
        if let Some((class, packet)) = self.landing.pop(now) {
            self.waiting[class].push(now, packet);
        }
    }

    /// A packet that arrived at `time` is unpacked whole and parsed by the bus's rules (B-05).
    /// Returns when that is done.
    pub fn convert(&mut self, nic: &NicConfig, time: Time, beats: u64) -> Time {
        self.converter.reserve(time, nic.cycle() * beats).ends + nic.module() + nic.module()
    }

    /// Takes packets from the buffers until they block.
    #[inline]
    pub fn dispatch(&mut self, cx: &mut Context, node: usize, neighbours: &mut ReceiveContext) {
        if self.waiting.iter().any(|queue| !queue.is_empty()) {
            self.dispatch_waiting(cx, node, neighbours);
        }
    }

    fn dispatch_waiting(&mut self, cx: &mut Context, node: usize, neighbours: &mut ReceiveContext) {
        self.blocked = None;
        for class in [super::crossbar::GET, super::crossbar::DATA] {
            while let Some((arrived, &packet)) = self.waiting[class].front_since() {
                if !self.pass_on(cx, node, neighbours, class, (arrived, packet)) {
                    break;
                }
                self.waiting[class].pop(cx.now());
            }
        }
    }

    /// Passes one packet on by its type; false if it must wait.
    fn pass_on(
        &mut self,
        cx: &mut Context,
        node: usize,
        neighbours: &mut ReceiveContext,
        class: usize,
        (arrived, packet): (Time, PacketHandle),
    ) -> bool {
        let now = cx.now();
        let record = &cx.packets[packet];
        let (operation, part) = (record.operation, record.part);
        let header = match HeaderRepr::parse(&record.bytes) {
            Ok(header) => header,
            Err(_) => {
                self.counters.unknown += 1;
                Self::discard(cx, node, class, packet);
                return true;
            }
        };
        let (function, queue_pair) = (
            usize::from(header.destination.function()),
            usize::from(header.destination.queue_pair()),
        );
        let per_function = cx.config.nic.queue_pairs;
        let exists = function < neighbours.layouts.len() && queue_pair < per_function;
        let at = function * per_function + queue_pair;
        if !exists || neighbours.queue_pairs[at].magic != header.magic {
            self.counters.refused += 1;
            Self::discard(cx, node, class, packet);
            return true;
        }
        let pair = &mut neighbours.queue_pairs[at];
        match header.primitive {
            Primitive::Get => {
                if neighbours.descriptors.remote.len() >= cx.config.nic.remote_get_depth {
                    self.blocked = Some(Blocked::RemoteGets);
                    return false;
                }
                self.counters.gets += 1;
                if let Ok(packet) = PacketRepr::parse(&record.bytes) {
                    let mut bytes = cx.spare.pop().unwrap_or_default();
                    bytes.clear();
                    bytes.extend_from_slice(packet.payload);
                    cx.journal.mark(operation, None, Stage::GetTrip, None, now);
                    let (from, to) = (header.source, header.destination);
                    let get = RemoteGet { operation, bytes, from, to };
                    neighbours.descriptors.remote.push(now, get);
                }
                Self::discard(cx, node, class, packet);
                true
            }
            Primitive::Nap | Primitive::Put => {
                if self.uploading.is_some() {
                    return false;
                }
                let is_nap = header.primitive == Primitive::Nap;
                let (target, length) = (header.span.address(), header.span.len() as u64);
                if !is_nap && length > 0 && !neighbours.layouts[function].holds(target, length) {
                    self.counters.outside += 1;
                    Self::discard(cx, node, class, packet);
                    return true;
                }
                // Software lists slots, and a NAP shall not reach another function's memory (C-39).
                // Canary: nobody looks where a slot lies.
                if is_nap && !planted("chpp-slot-unchecked") {
                    let window = &neighbours.layouts[function];
                    self.counters.outside_slots += pair.slots.drop_outside(window, now);
                }
                // A NAP that stays blocked may have dropped slots, and more may be due (C-20).
                self.took_slot = is_nap.then_some(at);
                // Slot and record must both be available before anything is written (C-21).
                let wants_event = is_nap || header.wants_event;
                let lacks = if is_nap && pair.slots.cached.is_empty() {
                    "a NAP slot"
                } else if wants_event && pair.receive_ring.room() == 0 {
                    "a record of its receive-completion ring"
                } else {
                    ""
                };
                if !lacks.is_empty() {
                    self.blocked = Some(Blocked::Software { function, queue_pair, lacks });
                    self.starved = true;
                    return false;
                }
                let event = if wants_event { pair.receive_ring.take(now) } else { None };
                let slot = if is_nap { pair.slots.cached.pop(now) } else { None };
                let address = slot.unwrap_or(target);
                // The header is valid; the tail follows the payload.
                let behind = HEADER_BYTES + header.span.to_dwords().byte_len();
                let tail = record.bytes.get(behind..).and_then(|tail| Tail::new(tail).ok());
                let tail = tail.unwrap_or(Tail::EMPTY);
                self.counters.naps += u64::from(is_nap);
                self.counters.puts += u64::from(!is_nap);
                self.uploading =
                    Some(Uploading { packet, class, header, tail, address, written: 0, event });
                // The module's delay overlaps with the write of the previous packet.
                let through = arrived + cx.config.nic.module();
                let begins = now.max(through);
                let cause =
                    if std::mem::take(&mut self.starved) { Cause::Slot } else { Cause::Arbiter };
                cx.journal.mark(operation, Some(part), Stage::Upload, None, through);
                cx.journal.mark(operation, Some(part), Stage::Upload, Some(cause), begins);
                cx.schedule.at(begins, Step::Uploads.of(node as u8));
                true
            }
        }
    }

    /// The upload module's next turn: one write to memory, or the end of the packet.
    pub fn upload(&mut self, cx: &mut Context, node: usize, neighbours: &mut ReceiveContext) {
        let now = cx.now();
        let Some(uploading) = &mut self.uploading else { return };
        let packet = &cx.packets[uploading.packet];
        let (operation, part) = (packet.operation, packet.part);
        let length = uploading.header.span.len() as u64;
        let left = length - uploading.written;
        if left > 0 {
            let most = cx.config.pcie.max_payload.count();
            let Run { address, length } =
                first_request(uploading.address + uploading.written, left, most);
            // Skips the lead bytes of the first DW and the bytes already written.
            let lead = uploading.header.span.lead();
            let from = HEADER_BYTES + lead + uploading.written as usize;
            let mut bytes = neighbours.port.blank();
            bytes.extend_from_slice(&packet.bytes[from..from + length as usize]);
            uploading.written += length;
            self.counters.bytes += length;
            let write =
                PendingWrite { address, bytes, meaning: Written::Data { operation, part, length } };
            cx.journal.mark(operation, Some(part), Stage::Upload, None, now);
            let (module, memory) = (Stage::Upload, Stage::DataWrite);
            let note = Note { operation, part: Some(part), module, memory };
            let begins = neighbours.port.write(cx, now, write, note);
            self.next_turn(cx, node, length, begins);
        } else if let Some(place) = uploading.event.take() {
            let &mut Uploading { header, address: descriptor, tail, .. } = uploading;
            let HeaderRepr { source, destination, primitive, .. } = header;
            // For the receiver, the own queue pair is the packet's destination.
            let (source, destination) = (destination, source);
            let transfer =
                Transfer { operation, source, destination, primitive, descriptor, length, tail };
            self.counters.events += 1;
            cx.journal.mark(operation, Some(part), Stage::Upload, None, now);
            let (place, of) = ((place, RingKind::Receive), (Status::Success, part));
            let begins = write_event(cx, neighbours.port, place, &transfer, of, Stage::Upload);
            self.next_turn(cx, node, EVENT_BYTES as u64, begins);
        } else {
            let Some(Uploading { packet, class, .. }) = self.uploading.take() else { return };
            Self::discard(cx, node, class, packet);
            self.dispatch(cx, node, neighbours);
        }
    }

    /// Whether the upload module has a packet.
    pub fn is_uploading(&self) -> bool {
        self.uploading.is_some()
    }

    /// The module is busy for header, data and `engine_cycles`, and until its packet starts to
    /// leave.
    fn next_turn(&self, cx: &mut Context, node: usize, bytes: u64, begins: Time) {
        let nic = &cx.config.nic;
        let next = (cx.now() + nic.packet_time(bytes)).max(nic.edge(begins));
        cx.schedule.at(next, Step::Uploads.of(node as u8));
    }

    fn discard(cx: &mut Context, node: usize, class: usize, packet: PacketHandle) {
        let bytes = cx.packets.take(packet).bytes;
        cx.recycle(bytes);
        cx.controllers.credit_returned(cx.schedule, node, class);
    }
}

/// Writes the event of a transfer into its place in a ring of its own queue pair, now. `part` is
/// the packet that ends the transfer. Returns when the write starts to leave.
pub fn write_event(
    cx: &mut Context,
    port: &mut Port,
    (place, ring): (Place, RingKind),
    transfer: &Transfer,
    (status, part): (Status, u32),
    module: Stage,
) -> Time {
    let &Transfer { operation, source, destination, primitive, descriptor, length, tail } =
        transfer;
    let (phase, queue_pair, peer) = (place.phase, source.queue_pair(), destination);
    let address = descriptor;
    let event = EventRepr { phase, primitive, status, queue_pair, peer, address, length, tail };
    let mut bytes = port.blank();
    bytes.resize(EVENT_BYTES, 0);
    event.emit(&mut bytes).expect("addresses and lengths were checked when their packet was made");
    let (function, queue_pair) = (source.function().into(), queue_pair.into());
    let meaning = Written::Event { function, queue_pair, ring, operation, part };
    let write = PendingWrite { address: place.address, bytes, meaning };
    let note = Note { operation, part: Some(part), module, memory: Stage::EventWrite };
    port.write(cx, cx.now(), write, note)
}

#[cfg(test)]
mod cycle_tests;
#[cfg(test)]
mod dispatch_tests;
