//! The packer (C-34; cHPP section 4.1, Fig. 11): joins control, destination and data into network
//! packets.
//!
//! Ports: commands and the stream of data come in; packets go into a channel of the crossbar. A PUT
//! streams: its packets leave as their data arrives. A NAP is one packet, into which its data is
//! copied first. `nic.packing` has other ways.

use bellwire_wire::header::HeaderRepr;
use bellwire_wire::packet::PacketRepr;
use bellwire_wire::primitive::Primitive;
use bellwire_wire::span::ByteSpan;
use bellwire_wire::tail::Tail;

use super::config::Packing;
use super::data::DataUnit;
use super::descriptor::{Command, GetRequest, Transfer};
use super::journal::{Cause, Stage};
use super::node::Step;
use super::record::frames::Wire;
use super::{Context, Packet};
use crate::engine::Server;
use crate::stats::Queue;
use crate::units::{Span, Time};

/// Cycles from the last byte of a packet that is gathered to its header.
const GATHERED_CYCLES: u64 = 2;

/// Registers of the packer.
#[derive(Default)]
pub struct Packer {
    /// The way into the crossbar.
    output: Server,
    converter: Server,
    data: Vec<u8>,
    /// The channel without room for the next packet.
    pub waits_for: Option<usize>,
    /// Operations whose last packet is about to leave, in order.
    pub leaving: Queue<Transfer>,
    /// Packets that it sent.
    pub packets: u64,
    /// Bytes of data in them.
    pub bytes: u64,
}

impl Packer {
    /// Packs the available data as far as the crossbar has room.
    pub fn turn(&mut self, cx: &mut Context, data: &mut DataUnit) {
        self.waits_for = None;
        while let Some(piece) = self.next(cx, data) {
            self.pack(cx, data, piece);
        }
    }

    /// The next packet's data, if it is available and the crossbar has room.
    #[inline]
    fn next(&mut self, cx: &Context, data: &mut DataUnit) -> Option<Piece> {
        let command = data.commands.front()?;
        let Transfer { source, destination, primitive, length, .. } = command.transfer;
        let (address, length) = match primitive {
            Primitive::Nap => (0, length),
            _ => next_move(command, cx.config.nic.put_payload.count()),
        };
        let (input, output) = (source.cpu(), destination.cpu());
        let extracted = command.extracted;
        let has_data = !command.is_immediate && length > 0;
        let available = if has_data { data.ready(length)? } else { extracted };
        let channel = cx.controllers.channel_for(output.into(), false);
        if !cx.controllers.has_room(input.into(), channel) {
            self.waits_for = Some(channel);
            return None;
        }
        Some(Piece { address, length, has_data, available, channel })
    }

    /// Packs the next packet of the first command.
    #[inline(never)]
    fn pack(&mut self, cx: &mut Context, data: &mut DataUnit, piece: Piece) {
        let Piece { address, length, has_data, available, channel } = piece;
        let Some(command) = data.commands.front() else { return };
        let nic = &cx.config.nic;
        let transfer = command.transfer;
        let (operation, part) = (transfer.operation, command.parts);
        let is_last = command.sent + length == transfer.length;
        let wants_event = is_last && command.wants_event;
        let keys = (command.magic, command.traffic_class);
        let header = header(&transfer, keys, wants_event, (address, length));
        let tail = if is_last { transfer.tail } else { Tail::EMPTY };
        let mut payload = std::mem::take(&mut self.data);
        payload.clear();
        match command.is_immediate {
            true => payload.extend_from_slice(&command.immediate),
            false => data.take(length as usize, &mut payload),
        }
        let packet = PacketRepr { header, payload: &payload, tail };
        // Header and data pass the bus in beats; the tail travels beside them.
        let words = nic.beats_of(header.span.to_dwords().byte_len() as u64);
        let beats = nic.packet_header_beats() + words;
        let cycle = nic.cycle();
        let free_at = self.output.free_at();
        let (begun, head) = if nic.conversion {
            // The bus packets are parsed and their data gathered whole, while the previous packet
            // leaves (B-05).
            let gathered = self.converter.reserve(available.max(cx.now()), nic.beats(length));
            let ready = gathered.ends + nic.module() + nic.module();
            (gathered.begins, ready.max(free_at))
        } else if nic.packing == Packing::Gathered {
            // While it comes, the packet before may leave.
            let comes = if has_data { Span::ZERO } else { nic.beats(length) };
            let begun = available.max(cx.now());
            (begun, (begun + comes + cycle * GATHERED_CYCLES).max(free_at))
        } else if transfer.primitive == Primitive::Nap && nic.packing == Packing::Copied {
            let copied = if has_data { nic.beats(length) } else { Span::ZERO };
            let begun = available.max(free_at).max(cx.now());
            (begun, begun + copied + nic.module())
        } else {
            // Beats leave as they arrive: the last leaves one module delay after the last data has
            // arrived.
            let streaming = cycle * (beats - 1);
            let last =
                (available + nic.module()).max(free_at + streaming).max(cx.now() + streaming);
            let head = last.saturating_sub(streaming);
            (last.saturating_sub(nic.module()), head)
        };
        let head = nic.edge(head);
        let last = self.output.reserve(head, cycle * beats).ends.saturating_sub(cycle);
        if cx.journal.is_open() {
            let cause = if cx.now() > available { Cause::VirtualChannel } else { Cause::Arbiter };
            if has_data {
                let extracted = available.saturating_sub(nic.module());
                cx.journal.mark(operation, Some(part), Stage::DataExtract, None, extracted);
                cx.journal.mark(operation, Some(part), Stage::DataReorder, None, available);
            }
            cx.journal.mark(operation, Some(part), Stage::Packer, Some(cause), begun);
            cx.journal.mark(operation, Some(part), Stage::Packer, None, head);
        }
        self.bytes += length;
        self.send(cx, &packet, (operation, part), (channel, beats), head);
        self.data = payload;
        let command = data.commands.front_mut().expect("looked at above");
        advance(command, length);
        if is_last {
            self.finish(cx, data, last);
        }
    }

    /// Sends a GET packet with the descriptor as payload (C-25), if the crossbar has room; returns
    /// it otherwise.
    pub fn send_get(&mut self, cx: &mut Context, get: GetRequest) -> Option<GetRequest> {
        let Transfer { operation, source, destination, length, .. } = get.transfer;
        let channel = cx.controllers.channel_for(destination.cpu().into(), true);
        if !cx.controllers.has_room(source.cpu().into(), channel) {
            return Some(get);
        }
        let GetRequest { transfer, magic, traffic_class, bytes } = get;
        let header = header(&transfer, (magic, traffic_class), false, (0, length));
        let packet = PacketRepr { header, payload: &bytes, tail: Tail::EMPTY };
        let nic = &cx.config.nic;
        let beats = nic.packet_header_beats() + nic.beats_of(length);
        let parsed = if nic.conversion { nic.module() } else { Span::ZERO };
        let head = nic.edge(cx.now().max(self.output.free_at()) + parsed + nic.module());
        let last = self.output.reserve(head, nic.cycle() * beats).ends.saturating_sub(nic.cycle());
        cx.journal.mark(operation, None, Stage::GetTrip, None, head);
        self.send(cx, &packet, (operation, 0), (channel, beats), head);
        cx.recycle(bytes);
        self.leaves(cx, transfer, last);
        None
    }

    /// Puts a packet into a channel of the crossbar; its first beat arrives at `head`.
    fn send(
        &mut self,
        cx: &mut Context,
        packet: &PacketRepr<'_>,
        (operation, part): (u32, u32),
        (channel, beats): (usize, u64),
        head: Time,
    ) {
        let HeaderRepr { source, destination, primitive, .. } = packet.header;
        let mut bytes = cx.buffer(packet.buffer_len());
        packet.emit(&mut bytes).expect("the packet has exactly this length");
        cx.journal.frame(head, Wire::Into(source.cpu()), || bytes.clone());
        let is_get = primitive == Primitive::Get;
        let handle = cx.packets.put(Packet { bytes, operation, part, is_get });
        let (input, output) = (source.cpu().into(), destination.cpu().into());
        cx.controllers.inject(cx.schedule, (input, channel), (handle, output, beats), head);
        self.packets += 1;
    }

    /// The last packet of an operation leaves until `last`.
    fn leaves(&mut self, cx: &mut Context, transfer: Transfer, last: Time) {
        self.leaving.push(cx.now(), transfer);
        cx.schedule.at(last, Step::Sent.of(transfer.source.cpu()));
    }

    fn finish(&mut self, cx: &mut Context, data: &mut DataUnit, last: Time) {
        let Some(command) = data.finished(cx.now()) else { return };
        if !command.is_remote {
            self.leaves(cx, command.transfer, last);
        }
        data.spare_commands.push(command);
    }
}

/// The header of a packet with these bytes; `keys` are the key of the far queue pair and the
/// traffic class.
fn header(
    transfer: &Transfer,
    (magic, traffic_class): (u8, u8),
    wants_event: bool,
    (address, length): (u64, u64),
) -> HeaderRepr {
    let &Transfer { source, destination, primitive, .. } = transfer;
    HeaderRepr {
        primitive,
        traffic_class,
        requester_id: u16::from(source.cpu()) << 8 | u16::from(source.function()),
        magic,
        source,
        destination,
        wants_event,
        span: ByteSpan::new(address, length as usize)
            .expect("pieces and descriptors are no longer than what a packet can carry"),
    }
}

/// The data of one packet.
struct Piece {
    /// Destination of a PUT's data.
    address: u64,
    length: u64,
    /// Whether it comes from memory, not from the descriptor.
    has_data: bool,
    /// When the packer has it.
    available: Time,
    /// The channel with room for it.
    channel: usize,
}

/// Destination and length of the next PUT packet: within one move, and limited by the setting and
/// by a packet's capacity.
fn next_move(command: &Command, most: u64) -> (u64, u64) {
    match command.moves.get(command.packed.0) {
        Some(to) => {
            let address = to.destination + command.packed.1;
            (address, most.min(to.length - command.packed.1).min(4096 - address % 4))
        }
        None => (0, 0),
    }
}

fn advance(command: &mut Command, length: u64) {
    command.sent += length;
    command.parts += 1;
    if let Some(to) = command.moves.get(command.packed.0) {
        command.packed.1 += length;
        if command.packed.1 == to.length {
            command.packed = (command.packed.0 + 1, 0);
        }
    }
}

#[cfg(test)]
mod cycle_tests;

#[cfg(test)]
mod tests {
    use super::*;
    use bellwire_wire::entry::Move;

    /// A packet of a PUT begins at any address and has 4096 B of words: from byte 1 of a word on,
    /// 4095 B of data.
    #[test]
    fn a_packet_has_its_capacity() {
        let of = |destination, length| {
            let source = bellwire_wire::endpoint::Endpoint::new(0, 0, 0).unwrap();
            let mut command = Command::empty(Transfer::new(0, source, 0));
            command.moves.push(Move { source: 0, destination, length });
            next_move(&command, 4096)
        };
        assert_eq!(of(8, 5000), (8, 4096));
        assert_eq!(of(9, 5000), (9, 4095));
        assert_eq!(of(11, 5000), (11, 4093));
        assert_eq!(of(11, 100), (11, 100));
    }
}
