//! The wires of `nic_core`: what enters each block, by what stands at the outputs of all.

use super::{
    Beat, CLASSES, FETCH, In, LAST_LANE, NETWORK, OWN, Out, Outs, READS, SLOTS, TOLD, Taps,
    bell_decode, data_join, data_reorder, desc_extract, desc_fetch, desc_gate, doorbell_arb,
    doorbell_fifo, event_ring, get_packer, key_window, moves, op_arb, packer, packet_arb, read_arb,
    rx_dispatch, send_event, slot_cache, slot_read, source_arb, tag_alloc, upload, write_arb, xbar,
};
use crate::cycle::data_reorder::LANES;
use crate::cycle::key_window::{FUNCTION_BITS, PAIR_BITS};
use crate::cycle::op_arb::{MARK, REMOTE};
use crate::cycle::rx_dispatch::{DATA, GET};
use bellwire_wire::primitive::Primitive;

/// A cycle, as far as it is known.
pub(super) struct Wires {
    /// What enters.
    pub(super) input: In,
    /// What stands at the outputs of the blocks.
    pub(super) outs: Outs,
    /// By port, the beat that stands at the crossbar's output.
    pub(super) carried: [Beat; 2],
    /// By port, the number of the beat that enters the crossbar.
    pub(super) free: [u64; 2],
}

/// The blocks.
impl Wires {
    pub(super) fn bell_decode(&self) -> bell_decode::In {
        let Wires { input, .. } = self;
        bell_decode::In {
            store_valid: input.store_valid,
            store_last: input.store_last,
            store_address: input.store_address,
            store_bytes: input.store_bytes,
            store_data: input.store_data,
        }
    }

    pub(super) fn doorbell_fifo(&self) -> doorbell_fifo::In {
        let Wires { outs, .. } = self;
        doorbell_fifo::In {
            in_valid: outs.bell_decode.bell_valid,
            in_function: outs.bell_decode.bell_function,
            in_word: outs.bell_decode.bell_word,
            take: outs.doorbell_arb.take,
            take_function: outs.doorbell_arb.take_function,
        }
    }

    pub(super) fn doorbell_arb(&self) -> doorbell_arb::In {
        let Wires { outs, .. } = self;
        doorbell_arb::In { waits: outs.desc_gate.may_ring, out_ready: outs.source_arb.bell_ready }
    }

    pub(super) fn desc_fetch(&self) -> desc_fetch::In {
        let Wires { input, outs, .. } = self;
        desc_fetch::In {
            bell_valid: outs.source_arb.out_valid,
            bell_function: outs.doorbell_arb.out_function,
            bell_word: outs.doorbell_fifo.word,
            bell_outside: outs.source_arb.out_outside,
            read_ready: outs.read_arb.ask_ready[FETCH],
            read_tag: outs.tag_alloc.tag,
            in_valid: outs.read_arb.own_valid[FETCH],
            in_last: input.in_last,
            in_tag: input.in_tag,
            in_failed: input.in_failed,
            in_bytes: input.in_bytes,
            in_remaining: input.in_remaining,
            in_data: input.in_data,
            lost_valid: outs.read_arb.own_lost[FETCH],
            lost_tag: outs.tag_alloc.lost_tag,
            out_ready: outs.desc_gate.word_ready,
        }
    }

    pub(super) fn desc_gate(&self) -> desc_gate::In {
        let Wires { outs, .. } = self;
        desc_gate::In {
            waits: outs.doorbell_fifo.waits,
            take: outs.doorbell_arb.take,
            take_function: outs.doorbell_arb.take_function,
            room: outs.send_event.room,
            move_valid: outs.op_arb.place_valid && outs.send_event.move_ready,
            move_get: self.is_get(),
            move_function: self.begins(),
            report_valid: outs.desc_extract.report_valid && outs.send_event.report_ready,
            report_function: outs.desc_extract.report_function,
            credit: outs.get_packer.credit,
            word_valid: outs.desc_fetch.out_valid,
            word_last: outs.desc_fetch.out_last,
            word_void: outs.desc_fetch.out_failed || outs.desc_fetch.out_refused,
            word_primitive: outs.desc_fetch.out_word as u8 & 0xf,
            to_ready: outs.source_arb.word_ready[0],
        }
    }

    pub(super) fn source_arb(&self) -> source_arb::In {
        let Wires { outs, .. } = self;
        source_arb::In {
            word_valid: [outs.desc_gate.to_valid, outs.rx_dispatch.get_valid],
            to_ready: self.extracts().map(|it| it.in_ready),
            ask_valid: self.extracts().map(|it| it.source_valid),
            ask_function: self.extracts().map(|it| it.source_function),
            ask_address: self.extracts().map(|it| it.source_address),
            ask_length: self.extracts().map(|it| it.source_length),
            bell_valid: outs.doorbell_arb.out_valid,
            bell_function: outs.doorbell_arb.out_function,
            bell_word: outs.doorbell_fifo.word,
            source_fits: outs.key_window.source_fits,
            out_ready: outs.desc_fetch.bell_ready,
        }
    }

    pub(super) fn key_window(&self) -> key_window::In {
        let Wires { input, outs, .. } = self;
        key_window::In {
            host_valid: input.keys_valid,
            host_window: input.keys_window,
            host_function: input.keys_function,
            host_base: input.keys_base,
            host_pages: input.keys_pages,
            host_pair: input.keys_pair,
            host_opens: input.keys_opens,
            host_key: input.keys_key,
            packet_valid: outs.upload.packet_valid,
            packet_pair: outs.upload.packet_pair,
            packet_key: outs.upload.packet_key,
            get_valid: outs.rx_dispatch.packet_valid,
            get_pair: outs.rx_dispatch.packet_pair,
            get_key: outs.rx_dispatch.packet_key,
            target_valid: outs.upload.target_valid,
            target_function: outs.upload.target_function,
            target_address: outs.upload.target_address,
            target_length: outs.upload.target_length.into(),
            source_valid: outs.source_arb.source_valid,
            source_function: outs.source_arb.source_function,
            source_address: outs.source_arb.source_address,
            source_length: outs.source_arb.source_length,
        }
    }

    pub(super) fn desc_extract(&self) -> desc_extract::In {
        let Wires { input, outs, .. } = self;
        desc_extract::In {
            cpu: input.cpu,
            cpus: input.cpus,
            in_valid: outs.source_arb.to_valid[0],
            in_last: outs.desc_fetch.out_last,
            in_failed: outs.desc_fetch.out_failed,
            in_refused: outs.desc_fetch.out_refused,
            in_function: outs.desc_fetch.out_function,
            in_address: outs.desc_fetch.out_address,
            in_word: outs.desc_fetch.out_word,
            source_fits: outs.key_window.source_fits,
            read_ready: outs.op_arb.read_ready[0],
            move_ready: outs.op_arb.move_ready[0],
            data_ready: outs.op_arb.data_ready[0],
            report_ready: outs.send_event.report_ready,
            ..desc_extract::In::default()
        }
    }

    pub(super) fn far_extract(&self) -> desc_extract::In {
        let Wires { input, outs, .. } = self;
        desc_extract::In {
            cpu: input.cpu,
            cpus: input.cpus,
            in_valid: outs.source_arb.to_valid[REMOTE],
            in_last: outs.rx_dispatch.get_last,
            in_remote: true,
            in_function: outs.rx_dispatch.get_pair >> 2,
            in_pair: outs.rx_dispatch.get_pair & 3,
            in_peer: outs.rx_dispatch.get_source,
            in_word: outs.rx_dispatch.get_word,
            source_fits: outs.key_window.source_fits,
            read_ready: outs.op_arb.read_ready[REMOTE],
            move_ready: outs.op_arb.move_ready[REMOTE],
            data_ready: outs.op_arb.data_ready[REMOTE],
            ..desc_extract::In::default()
        }
    }

    pub(super) fn op_arb(&self) -> op_arb::In {
        let Wires { outs, .. } = self;
        let data_ask = outs.read_arb.ask_ready[READS];
        let in_memory = outs.data_reorder.read_ready;
        let in_queue = outs.data_join.read_ready;
        op_arb::In {
            move_valid: self.extracts().map(|it| it.move_valid),
            move_last: self.extracts().map(|it| it.move_last),
            move_get: self.is_get(),
            move_total: self.extracts().map(|it| it.move_total),
            move_says: [[0; op_arb::SAYS_WORDS], [1; op_arb::SAYS_WORDS]],
            read_valid: self.extracts().map(|it| it.read_valid),
            read_ends: self.extracts().map(|it| it.read_ends),
            read_function: self.extracts().map(|it| it.read_function),
            read_address: self.extracts().map(|it| it.read_address),
            read_bytes: self.extracts().map(|it| it.read_bytes),
            data_valid: self.extracts().map(|it| it.data_valid),
            data_ends: self.extracts().map(|it| it.data_ends),
            data_get: outs.desc_extract.data_get,
            data_to: self.extracts().map(|it| it.data_to),
            data: self.extracts().map(|it| it.data),
            place_ready: outs.send_event.move_ready,
            place: outs.send_event.move_place,
            pack_ready: outs.moves.in_ready,
            ask_ready: data_ask && in_memory && in_queue,
            put_ready: outs.data_join.put_ready,
            get_ready: outs.get_packer.move_ready,
            get_data_ready: outs.get_packer.in_ready,
        }
    }

    pub(super) fn data_reorder(&self) -> data_reorder::In {
        let Wires { input, outs, .. } = self;
        let data_ask = outs.read_arb.ask_ready[READS];
        let in_queue = outs.data_join.read_ready;
        data_reorder::In {
            read_valid: outs.op_arb.ask_valid && data_ask && in_queue,
            read_tag: outs.tag_alloc.tag,
            read_lane: (outs.op_arb.ask_address % LANES as u64) as u8,
            read_bytes: outs.op_arb.ask_bytes,
            in_valid: outs.read_arb.own_valid[READS],
            in_last: input.in_last,
            in_tag: input.in_tag,
            in_failed: input.in_failed,
            in_bytes: input.in_bytes,
            in_remaining: input.in_remaining,
            in_data: input.in_data,
            lost_valid: outs.read_arb.own_lost[READS],
            lost_tag: outs.tag_alloc.lost_tag,
            out_ready: outs.data_join.data_ready,
        }
    }

    pub(super) fn data_join(&self) -> data_join::In {
        let Wires { outs, .. } = self;
        let data_ask = outs.read_arb.ask_ready[READS];
        let in_memory = outs.data_reorder.read_ready;
        data_join::In {
            read_valid: outs.op_arb.ask_valid && data_ask && in_memory,
            read_ends: outs.op_arb.ask_ends,
            data_valid: outs.data_reorder.out_valid,
            data_last: outs.data_reorder.out_last,
            data_failed: outs.data_reorder.out_failed,
            data_from: outs.data_reorder.out_from,
            data_to: outs.data_reorder.out_to,
            data: outs.data_reorder.out_data,
            put_valid: outs.op_arb.put_valid,
            put_ends: outs.op_arb.put_ends,
            put_to: outs.op_arb.put_to,
            put_data: outs.op_arb.put_data,
            out_ready: outs.packer.in_ready,
        }
    }

    pub(super) fn moves(&self) -> moves::In {
        let Wires { outs, .. } = self;
        // What the packer is told of a move stands at its extract.
        let said = self.extracts()[outs.op_arb.pack_says[0] as usize];
        let offered = packer::In {
            move_valid: outs.op_arb.pack_valid,
            move_last: outs.op_arb.pack_last,
            move_primitive: said.move_primitive,
            move_traffic_class: said.move_traffic_class,
            move_magic: said.move_magic,
            move_source: said.move_source,
            move_destination: said.move_destination,
            move_wants_event: said.move_wants_event,
            move_tail_bytes: said.move_tail_bytes,
            move_tail: said.move_tail,
            move_route: self.route(said.move_destination),
            move_operation: outs.op_arb.pack_operation,
            move_address: said.move_address,
            move_bytes: said.move_bytes,
            ..packer::In::default()
        };
        moves::In { offered, out_ready: outs.packer.move_ready }
    }

    pub(super) fn packer(&self) -> packer::In {
        let Wires { outs, .. } = self;
        packer::In {
            in_valid: outs.data_join.out_valid,
            in_ends: outs.data_join.out_ends,
            in_failed: outs.data_join.out_failed,
            in_from: outs.data_join.out_from,
            in_to: outs.data_join.out_to,
            in_data: outs.data_join.out_data,
            out_ready: outs.packet_arb.in_ready[DATA],
            sent_ready: true,
            ..outs.moves.first
        }
    }

    pub(super) fn get_packer(&self) -> get_packer::In {
        let Wires { outs, .. } = self;
        get_packer::In {
            move_valid: outs.op_arb.get_valid,
            move_traffic_class: outs.desc_extract.move_traffic_class,
            move_magic: outs.desc_extract.move_magic,
            move_source: outs.desc_extract.move_source,
            move_destination: outs.desc_extract.move_destination,
            move_bytes: outs.desc_extract.move_bytes as u16,
            move_route: self.route(outs.desc_extract.move_destination),
            move_operation: outs.send_event.move_place,
            in_valid: outs.op_arb.get_data_valid,
            in_ends: outs.desc_extract.data_ends,
            in_data: outs.desc_extract.data,
            out_ready: outs.packet_arb.in_ready[GET],
            sent_ready: true,
        }
    }

    pub(super) fn packet_arb(&self) -> packet_arb::In {
        let Wires { outs, .. } = self;
        packet_arb::In {
            in_valid: [outs.packer.out_valid, outs.get_packer.out_valid, false, false],
            in_last: [outs.packer.out_last, outs.get_packer.out_last, false, false],
            in_to: [outs.packer.out_to, LAST_LANE, 0, 0],
            in_channel: [DATA as u8, GET as u8, 0, 0],
            in_route: [outs.packer.out_route, outs.get_packer.out_route, 0, 0],
            in_data: [outs.packer.out_data, outs.get_packer.out_data, [0; 2], [0; 2]],
            out_ready: outs.xbar.in_ready[OWN],
        }
    }

    pub(super) fn xbar(&self) -> xbar::In {
        let Wires { input, outs, free, .. } = self;
        let goes = &outs.packet_arb;
        let class = input.from_class;
        let comes = input.from_valid && outs.xbar.in_ready[NETWORK][usize::from(class)];
        let mut credit = [[false; xbar::CLASSES]; xbar::PORTS];
        credit[OWN][..CLASSES].copy_from_slice(&outs.rx_dispatch.credit);
        credit[NETWORK][..CLASSES].copy_from_slice(&input.to_credit);
        xbar::In {
            in_valid: [goes.out_valid, comes, false, false],
            in_channel: [goes.out_channel, class, 0, 0],
            in_output: [goes.out_route, OWN as u8, 0, 0],
            in_class: [goes.out_channel, class, 0, 0],
            in_last: [goes.out_last, input.from_last, false, false],
            in_data: [free[OWN], free[NETWORK], 0, 0],
            out_ready: [outs.rx_dispatch.in_ready, input.to_ready, false, false],
            credit,
        }
    }

    pub(super) fn rx_dispatch(&self) -> rx_dispatch::In {
        let Wires { input, outs, .. } = self;
        rx_dispatch::In {
            cpu: input.cpu,
            in_valid: outs.xbar.out_valid[OWN],
            in_class: outs.xbar.out_class[OWN],
            in_last: outs.xbar.out_last[OWN],
            in_to: self.carried[OWN].1,
            in_data: self.carried[OWN].0,
            packet_fits: outs.key_window.get_fits,
            out_ready: outs.upload.in_ready,
            get_ready: outs.source_arb.word_ready[REMOTE],
        }
    }

    pub(super) fn upload(&self) -> upload::In {
        let Wires { input, outs, .. } = self;
        upload::In {
            cpu: input.cpu,
            in_valid: outs.rx_dispatch.out_valid,
            in_last: outs.rx_dispatch.out_last,
            in_to: outs.rx_dispatch.out_to,
            in_data: outs.rx_dispatch.out_data,
            packet_fits: outs.key_window.packet_fits,
            target_fits: outs.key_window.target_fits,
            take_ready: outs.slot_cache.take_ready,
            lacks_list: outs.slot_cache.lacks_list,
            slot: outs.slot_cache.slot,
            event_ready: outs.send_event.upload_ready,
            lacks_ring: outs.send_event.upload_lacks_ring,
            lacks_place: outs.send_event.upload_lacks_place,
            out_ready: outs.write_arb.upload_ready,
        }
    }

    pub(super) fn send_event(&self) -> send_event::In {
        let Wires { outs, .. } = self;
        let is_answer = outs.packer.sent_operation & MARK != 0;
        send_event::In {
            move_valid: outs.op_arb.place_valid,
            move_function: self.begins(),
            move_pair: outs.desc_extract.move_source as u8 & 3,
            move_peer: outs.desc_extract.move_destination,
            move_primitive: outs.desc_extract.move_primitive,
            move_tail_bytes: outs.desc_extract.move_tail_bytes,
            move_tail: outs.desc_extract.move_tail,
            move_total: outs.desc_extract.move_total,
            move_descriptor: outs.desc_extract.move_descriptor,
            sent_valid: [outs.packer.sent_valid && !is_answer, outs.get_packer.sent_valid],
            sent_failed: [outs.packer.sent_failed, false],
            sent_place: [outs.packer.sent_operation, outs.get_packer.sent_operation]
                .map(|number| number & !MARK),
            report_valid: outs.desc_extract.report_valid,
            report_status: outs.desc_extract.report_status,
            report_function: outs.desc_extract.report_function,
            report_pair: outs.desc_extract.report_pair,
            report_peer: outs.desc_extract.report_peer,
            report_primitive: outs.desc_extract.report_primitive,
            report_address: outs.desc_extract.report_address,
            upload_valid: outs.upload.event_valid,
            upload_ring: outs.upload.event_ring,
            upload_record: outs.upload.event_record,
            event_ready: outs.event_ring.in_ready,
            lacks_ring: outs.event_ring.lacks_ring,
            lacks_place: outs.event_ring.lacks_place,
        }
    }

    pub(super) fn event_ring(&self) -> event_ring::In {
        let Wires { input, outs, .. } = self;
        event_ring::In {
            host_valid: input.rings_valid,
            host_opens: input.rings_opens,
            host_ring: input.rings_ring,
            host_base: input.rings_base,
            host_count: input.rings_count,
            in_valid: outs.send_event.event_valid,
            in_ring: outs.send_event.event_ring,
            in_event: outs.send_event.event_record,
            ask_ring: 0,
            out_ready: outs.write_arb.event_ready,
        }
    }

    pub(super) fn write_arb(&self) -> write_arb::In {
        let Wires { input, outs, .. } = self;
        write_arb::In {
            upload_valid: outs.upload.out_valid,
            upload_last: outs.upload.out_last,
            upload_function: outs.upload.out_function,
            upload_address: outs.upload.out_address,
            upload_bytes: outs.upload.out_bytes,
            upload_data: outs.upload.out_data,
            event_valid: outs.event_ring.out_valid,
            event_function: outs.event_ring.out_ring >> 3,
            event_address: outs.event_ring.out_address,
            event_record: outs.event_ring.out_event,
            out_ready: input.write_ready,
        }
    }

    pub(super) fn slot_cache(&self) -> slot_cache::In {
        let Wires { input, outs, .. } = self;
        slot_cache::In {
            host_valid: input.slots_valid,
            host_opens: input.slots_opens,
            host_pair: input.slots_pair,
            host_page: input.slots_page,
            host_count: input.slots_count,
            take_valid: outs.upload.take_valid,
            take_pair: outs.upload.take_pair,
            read_ready: outs.slot_read.read_ready,
            in_valid: outs.slot_read.entry_valid,
            in_pair: outs.slot_read.entry_pair,
            in_failed: outs.slot_read.entry_failed,
            in_word: outs.slot_read.entry_word,
        }
    }

    pub(super) fn slot_read(&self) -> slot_read::In {
        let Wires { input, outs, .. } = self;
        slot_read::In {
            read_valid: outs.slot_cache.read_valid,
            read_pair: outs.slot_cache.read_pair,
            read_address: outs.slot_cache.read_address,
            read_count: outs.slot_cache.read_count,
            ask_ready: outs.read_arb.ask_ready[SLOTS],
            in_valid: outs.read_arb.own_valid[SLOTS],
            in_last: input.in_last,
            in_failed: input.in_failed,
            in_bytes: input.in_bytes,
            in_remaining: input.in_remaining,
            in_data: input.in_data,
            lost_valid: outs.read_arb.own_lost[SLOTS],
            entry_ready: outs.slot_cache.in_ready,
        }
    }

    pub(super) fn tag_alloc(&self) -> tag_alloc::In {
        let Wires { outs, .. } = self;
        tag_alloc::In {
            tag_ready: outs.read_arb.tag_ready,
            release_valid: outs.read_arb.release_valid,
            release_tag: outs.read_arb.release_tag,
        }
    }

    pub(super) fn read_arb(&self) -> read_arb::In {
        let Wires { input, outs, .. } = self;
        let in_memory = outs.data_reorder.read_ready;
        let in_queue = outs.data_join.read_ready;
        read_arb::In {
            ask_valid: [
                outs.desc_fetch.read_valid,
                outs.op_arb.ask_valid && in_memory && in_queue,
                outs.slot_read.ask_valid,
                false,
            ],
            ask_function: [
                outs.desc_fetch.read_function,
                outs.op_arb.ask_function,
                outs.slot_read.ask_pair >> 2,
                0,
            ],
            ask_address: [
                outs.desc_fetch.read_address,
                outs.op_arb.ask_address,
                outs.slot_read.ask_address,
                0,
            ],
            ask_bytes: [
                outs.desc_fetch.read_bytes,
                outs.op_arb.ask_bytes,
                outs.slot_read.ask_bytes,
                0,
            ],
            tag_valid: outs.tag_alloc.tag_valid,
            tag: outs.tag_alloc.tag,
            read_ready: input.read_ready,
            in_valid: input.in_valid,
            in_last: input.in_last,
            in_tag: input.in_tag,
            free_valid: [
                outs.desc_fetch.free_valid,
                outs.data_reorder.free_valid,
                outs.slot_read.free_valid,
                false,
            ],
            lost_valid: outs.tag_alloc.lost_valid,
            lost_tag: outs.tag_alloc.lost_tag,
        }
    }
}

/// What wires have in common.
impl Wires {
    /// Both descriptor extracts: that of descriptors from here, and that of GETs from elsewhere.
    fn extracts(&self) -> [&desc_extract::Out; 2] {
        [&self.outs.desc_extract, &self.outs.far_extract]
    }

    /// The move from here is that of a GET.
    fn is_get(&self) -> bool {
        self.outs.desc_extract.move_primitive == Primitive::Get.code()
    }

    /// The function of the move from here.
    fn begins(&self) -> u8 {
        (self.outs.desc_extract.move_source >> 2) as u8 & ((1 << FUNCTION_BITS) - 1)
    }

    /// The port of the crossbar by which this queue pair is reached.
    fn route(&self, end: u16) -> u8 {
        (end >> PAIR_BITS != self.input.cpu.into()) as u8
    }
}

/// The outputs.
impl Wires {
    /// What stands at the outputs; by class, so many packets from the network were inside of the
    /// crossbar at the end of the cycle before.
    pub(super) fn out(&self, inside: [u8; CLASSES]) -> Out {
        let Wires { outs, carried, .. } = self;
        let (to_data, to_to) = carried[NETWORK];
        let room = outs.xbar.in_ready[NETWORK];
        let left = outs.xbar.packets[NETWORK];
        Out {
            read_valid: outs.read_arb.read_valid,
            read_function: outs.read_arb.read_function,
            read_address: outs.read_arb.read_address,
            read_bytes: outs.read_arb.read_bytes,
            read_tag: outs.read_arb.read_tag,
            write_valid: outs.write_arb.out_valid,
            write_last: outs.write_arb.out_last,
            write_function: outs.write_arb.out_function,
            write_address: outs.write_arb.out_address,
            write_bytes: outs.write_arb.out_bytes,
            write_data: outs.write_arb.out_data,
            from_ready: [DATA, GET].map(|class| room[class]),
            from_credit: [DATA, GET].map(|class| inside[class] > left[class]),
            to_valid: outs.xbar.out_valid[NETWORK],
            to_class: outs.xbar.out_class[NETWORK],
            to_last: outs.xbar.out_last[NETWORK],
            to_to,
            to_data,
            refused: [outs.key_window.refused, outs.event_ring.refused, outs.slot_cache.refused],
            told: self.told(),
            counts: [
                outs.bell_decode.dropped,
                outs.doorbell_fifo.dropped,
                outs.send_event.dropped,
                outs.key_window.wrong_packets,
                outs.key_window.wrong_targets,
            ],
        }
    }

    /// What moves between blocks.
    pub(super) fn taps(&self) -> Taps {
        let Wires { outs, .. } = self;
        Taps {
            bell: outs.bell_decode.bell_valid,
            start: outs.source_arb.out_valid && outs.desc_fetch.bell_ready,
            word: outs.desc_fetch.out_valid && outs.desc_gate.word_ready,
            data: outs.data_join.out_valid && outs.packer.in_ready,
            pack: outs.packet_arb.out_valid,
            dispatch: outs.rx_dispatch.out_valid && outs.upload.in_ready,
            upload: outs.upload.out_valid && outs.write_arb.upload_ready,
        }
    }

    /// What the blocks tell.
    fn told(&self) -> [bool; TOLD] {
        let Wires { outs, .. } = self;
        [
            outs.bell_decode.dropped_valid,
            outs.doorbell_fifo.dropped_valid,
            outs.desc_fetch.unexpected,
            outs.desc_fetch.mismatched,
            outs.far_extract.dropped,
            outs.data_reorder.unexpected,
            outs.data_reorder.mismatched,
            outs.rx_dispatch.unknown,
            outs.rx_dispatch.misrouted,
            outs.rx_dispatch.oversized,
            outs.rx_dispatch.refused,
            outs.rx_dispatch.mismatched,
            outs.upload.unknown,
            outs.upload.refused,
            outs.upload.outside,
            outs.upload.closed,
            outs.upload.passed_over,
            outs.upload.mismatched,
            outs.send_event.dropped_valid,
            outs.slot_cache.unexpected,
            outs.slot_cache.failed,
            outs.slot_cache.misplaced,
            outs.slot_read.unexpected,
            outs.slot_read.mismatched,
            outs.read_arb.unexpected,
            outs.tag_alloc.refused,
        ]
    }
}
