//! `nic_core`: the interface of cHPP between the PCIe boundary and the network (cHPP sections 4 and
//! 5, Fig. 10 to 12), as `hardware/nic_core` is to build it: all blocks of this folder that belong
//! to it, and the wires between them.
//!
//! `NicCore::wire` is the list of wires. Within a cycle, blocks are evaluated until nothing changes
//! at their inputs. So the wires have no order, as in gates, and a loop of wires shows. There is
//! none: seven rounds are enough, and no register stands between two blocks.
//!
//! Between blocks there is little else than wires:
//!
//! * A read of data is taken if the arbiter of reads, the re-order memory and the joiner are ready.
//! * Words of a descriptor from here go past its gate and the arbiter of sources. Those of a GET
//!   from elsewhere go from the dispatch module past that arbiter to an extract of their own.
//! * A packet for the own processor goes to the own dispatch module, and any other one into the
//!   network. What comes from there goes to the dispatch module, which looks at the processor.
//! * The network is told of a free place when a packet has left its channel of the crossbar. As
//!   many packets of each class may be on their way here as the crossbar's outputs have places.

use super::bell_decode::{self, BellDecode};
use super::data_join::{self, DataJoin};
use super::data_reorder::{self, BEAT_WORDS, DataReorder, LANES, SIZE_BITS};
use super::desc_extract::{self, DescExtract};
use super::desc_fetch::{self, DescFetch};
use super::desc_gate::{self, DescGate};
use super::doorbell_arb::{self, DoorbellArb};
use super::doorbell_fifo::{self, DoorbellFifo};
use super::event_ring::{self, EventRing};
use super::get_packer::{self, GetPacker};
use super::key_window::{self, FUNCTION_BITS, KEY_BITS, KeyWindow, PAGE_BITS, PAIR_BITS};
use super::op_arb::{self, MARK, OpArb, REMOTE};
use super::packer::{self, Packer};
use super::packet_arb::{self, PacketArb};
use super::read_arb::{self, ReadArb};
use super::rx_dispatch::{self, DATA, GET, RxDispatch};
use super::send_event::{self, SendEvent};
use super::slot_cache::{self, SlotCache};
use super::slot_read::{self, SlotRead};
use super::source_arb::{self, SourceArb};
use super::tag_alloc::{self, TAG_BITS, TagAlloc};
use super::upload::{self, Upload};
use super::write_arb::{self, WriteArb};
use super::xbar::{self, Xbar};
use bellwire_wire::ADDRESS_BITS;
use bellwire_wire::primitive::Primitive;

const ADDRESS_WIDTH: usize = ADDRESS_BITS as usize;
const LANE_BITS: usize = LANES.ilog2() as usize;
const CPU_BITS: usize = 4;
/// The lane of the last byte of a GET, which has whole beats only.
const LAST_LANE: u8 = 15;
/// Classes of packets, which are those of places and of channels: [`DATA`] and [`GET`].
pub const CLASSES: usize = 2;
/// Ports of the crossbar: the interface itself, and the network.
const OWN: usize = 0;
const NETWORK: usize = 1;
/// Requesters of [`ReadArb`].
const FETCH: usize = 0;
const READS: usize = 1;
const SLOTS: usize = 2;
const REQUESTERS: usize = 3;
/// What the blocks tell, in the order of `NicCore::told`.
pub const TOLD: usize = 26;
/// Of it, that a read of slot addresses has failed. It is made again.
pub const REFILL_FAILED: usize = 20;

crate::ports! {
    /// What enters in a cycle.
    pub struct In {
        /// The own processor.
        cpu: u8 = CPU_BITS,
        /// How many processors there are.
        cpus: u8 = CPU_BITS + 1,
        /// The host sets a window or a key: `host_` of `key_window`, as all up to `keys_key`.
        keys_valid: bool = 1,
        /// See `keys_valid`.
        keys_window: bool = 1,
        /// See `keys_valid`.
        keys_function: u8 = FUNCTION_BITS,
        /// See `keys_valid`.
        keys_base: u32 = PAGE_BITS,
        /// See `keys_valid`.
        keys_pages: u32 = PAGE_BITS + 1,
        /// See `keys_valid`.
        keys_pair: u8 = PAIR_BITS,
        /// See `keys_valid`.
        keys_opens: bool = 1,
        /// See `keys_valid`.
        keys_key: u8 = KEY_BITS,
        /// The host opens a ring or reports: `host_` of `event_ring`, as all up to `rings_count`.
        rings_valid: bool = 1,
        /// See `rings_valid`.
        rings_opens: bool = 1,
        /// See `rings_valid`.
        rings_ring: u8 = event_ring::RING_BITS,
        /// See `rings_valid`.
        rings_base: u64 = event_ring::BASE_BITS,
        /// See `rings_valid`.
        rings_count: u16 = event_ring::COUNT_BITS,
        /// The host opens a list or reports: `host_` of `slot_cache`, as all up to `slots_count`.
        slots_valid: bool = 1,
        /// See `slots_valid`.
        slots_opens: bool = 1,
        /// See `slots_valid`.
        slots_pair: u8 = PAIR_BITS,
        /// See `slots_valid`.
        slots_page: u32 = PAGE_BITS,
        /// See `slots_valid`.
        slots_count: u16 = slot_cache::COUNT_BITS,
        /// A beat of a store into the doorbell window comes.
        store_valid: bool = 1,
        /// It is the last one.
        store_last: bool = 1,
        /// Where in the window the store begins; counts with the first beat, as its bytes.
        store_address: u16 = bell_decode::WINDOW_BITS,
        /// Bytes of the store.
        store_bytes: u16 = SIZE_BITS,
        /// The beat, with each byte on the lane of its address.
        store_data: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
        /// A read is taken, if one is offered.
        read_ready: bool = 1,
        /// A beat of a completion comes.
        in_valid: bool = 1,
        /// It is the last of this completion.
        in_last: bool = 1,
        /// The tag; counts with the first beat, as all up to `in_remaining`.
        in_tag: u8 = TAG_BITS,
        /// The read has failed, and no more completions come.
        in_failed: bool = 1,
        /// Bytes of this completion.
        in_bytes: u16 = SIZE_BITS,
        /// Bytes that the read lacks, with those of this completion: PCIe's byte count.
        in_remaining: u16 = SIZE_BITS,
        /// The beat; a byte has the lane of its address.
        in_data: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
        /// A beat of a write is taken, if one is offered.
        write_ready: bool = 1,
        /// A beat of a packet comes from the network.
        from_valid: bool = 1,
        /// The class of its packet.
        from_class: u8 = 1,
        /// It is the last of its packet.
        from_last: bool = 1,
        /// The lane of its last byte.
        from_to: u8 = LANE_BITS,
        /// The beat.
        from_data: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
        /// A beat for the network is taken, if one is offered.
        to_ready: bool = 1,
        /// By class: a place in the network is free again.
        to_credit: [bool; CLASSES] = CLASSES,
    }

    /// What stands at the outputs in a cycle.
    pub struct Out {
        /// A read is offered.
        read_valid: bool = 1,
        /// The function that it is for; zero if none is offered.
        read_function: u8 = FUNCTION_BITS,
        /// Where it begins; zero if none is offered.
        read_address: u64 = ADDRESS_WIDTH,
        /// Its bytes; zero if none is offered.
        read_bytes: u16 = SIZE_BITS,
        /// Its tag; zero if none is offered.
        read_tag: u8 = TAG_BITS,
        /// A beat of a write is offered.
        write_valid: bool = 1,
        /// It is the last of its write.
        write_last: bool = 1,
        /// The function that the write is for; zero if none is offered.
        write_function: u8 = FUNCTION_BITS,
        /// Global address of its first byte; zero if none is offered.
        write_address: u64 = ADDRESS_WIDTH,
        /// Bytes of the write; zero if none is offered.
        write_bytes: u16 = SIZE_BITS,
        /// The bytes, each on the lane of its address; zero if none is offered.
        write_data: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
        /// By class: a beat from the network is taken, if one is offered.
        from_ready: [bool; CLASSES] = CLASSES,
        /// By class: a place for a packet from the network is free again.
        from_credit: [bool; CLASSES] = CLASSES,
        /// A beat for the network is offered.
        to_valid: bool = 1,
        /// The class of its packet.
        to_class: u8 = 1,
        /// It is the last of its packet.
        to_last: bool = 1,
        /// The lane of its last byte; zero if none is offered.
        to_to: u8 = LANE_BITS,
        /// The beat; zero if none is offered.
        to_data: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
        /// What the host wrote in the cycle before cannot be: about keys, rings or slots.
        refused: [bool; 3] = 3,
        /// What the blocks tell of the cycle before.
        told: [bool; TOLD] = TOLD,
    }
}

/// The parameters of the module.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Functions; each has 4 queue pairs, and each of these two rings.
    pub functions: usize,
    /// Doorbells of a function that wait.
    pub bells: usize,
    /// Tags.
    pub tags: usize,
    /// Cycles after which a tag is lost, at least.
    pub timeout: u64,
    /// Beats of the re-order memory.
    pub beats: usize,
    /// Reads of data under way.
    pub reads: usize,
    /// Beats of a read, at most.
    pub request: usize,
    /// Beats of a descriptor, at most.
    pub longest: usize,
    /// Descriptors from here that are being fetched.
    pub fetches: usize,
    /// Descriptors that are being taken apart, by extract.
    pub places: usize,
    /// Operations of a function whose events wait.
    pub events: usize,
    /// GETs that wait for the crossbar.
    pub gets: usize,
    /// The packer's.
    pub packer: packer::Shape,
    /// Packets of each class that the crossbar may send without hearing of a free place.
    pub packets: usize,
    /// Packets in a channel of the crossbar, and beats.
    pub depth: usize,
    /// See `depth`.
    pub room: usize,
    /// Bytes of a write, at most.
    pub write: usize,
    /// Slots in the cache of a queue pair, and those that are read at once.
    pub slots: usize,
    /// See `slots`.
    pub batch: usize,
}

/// Makes the struct of all blocks, those of their inputs and outputs, and how they are evaluated.
macro_rules! blocks {
    ($($field:ident: $module:ident, $of:ty;)*) => {
        /// All blocks.
        #[derive(Clone, Debug)]
        struct Blocks { $($field: $of,)* }

        /// What enters each.
        #[derive(Clone, Copy, PartialEq)]
        struct Ins { $($field: $module::In,)* }

        /// What stands at the outputs of each.
        #[derive(Clone, Copy, Default)]
        struct Outs { $($field: $module::Out,)* }

        impl Blocks {
            /// What becomes of the blocks in a cycle, and what stands at their outputs.
            fn settle(&self, wire: impl Fn(&Outs) -> Ins) -> (Blocks, Outs) {
                let mut outs = Outs::default();
                let mut ins = wire(&outs);
                let mut next = self.clone();
                $(outs.$field = next.$field.cycle(ins.$field);)*
                for _ in 0..ROUNDS {
                    let news = wire(&outs);
                    if news == ins {
                        return (next, outs);
                    }
                    $(if news.$field != ins.$field {
                        next.$field = self.$field.clone();
                        outs.$field = next.$field.cycle(news.$field);
                    })*
                    ins = news;
                }
                panic!("a loop of wires");
            }
        }
    };
}

/// More than the blocks of the longest path within a cycle.
const ROUNDS: usize = 16;

blocks! {
    bell_decode: bell_decode, BellDecode;
    doorbell_fifo: doorbell_fifo, DoorbellFifo;
    doorbell_arb: doorbell_arb, DoorbellArb;
    desc_fetch: desc_fetch, DescFetch;
    desc_gate: desc_gate, DescGate;
    source_arb: source_arb, SourceArb;
    key_window: key_window, KeyWindow;
    desc_extract: desc_extract, DescExtract;
    far_extract: desc_extract, DescExtract;
    op_arb: op_arb, OpArb;
    data_reorder: data_reorder, DataReorder;
    data_join: data_join, DataJoin;
    packer: packer, Packer;
    get_packer: get_packer, GetPacker;
    packet_arb: packet_arb, PacketArb;
    xbar: xbar, Xbar;
    rx_dispatch: rx_dispatch, RxDispatch;
    upload: upload, Upload;
    send_event: send_event, SendEvent;
    event_ring: event_ring, EventRing;
    write_arb: write_arb, WriteArb;
    slot_cache: slot_cache, SlotCache;
    slot_read: slot_read, SlotRead;
    tag_alloc: tag_alloc, TagAlloc;
    read_arb: read_arb, ReadArb;
}

/// A beat of a packet, with the lane of its last byte.
type Beat = ([u64; BEAT_WORDS], u8);

/// The interface without its boundaries.
#[derive(Clone, Debug)]
pub struct NicCore {
    blocks: Blocks,
    /// Beats in the crossbar, whose model carries their numbers.
    carried: Vec<Option<Beat>>,
    /// By class, packets from the network in the crossbar, with the one that began to come in the
    /// cycle before.
    inside: [u8; CLASSES],
    /// A packet from the network has begun to come.
    from_mid: bool,
}

impl NicCore {
    /// An interface without functions that are open.
    ///
    /// # Panics
    /// As its blocks do.
    pub fn new(shape: Shape) -> NicCore {
        let Shape { functions, tags, longest, gets, packets, request, .. } = shape;
        let get_beats = longest;
        let data_beats = 2 + shape.packer.payload.max(shape.packer.longest).div_ceil(LANES) + 1;
        let extract = || {
            DescExtract::new(desc_extract::Shape { places: shape.places, beats: longest, request })
        };
        let fetch = desc_fetch::Shape { places: shape.fetches, beats: longest, request, tags };
        let events = send_event::Shape { functions, depth: shape.events, dropped_bits: 32 };
        let crossbar = xbar::Shape {
            ports: 2,
            channels: CLASSES,
            classes: CLASSES,
            depth: shape.depth,
            room: shape.room,
            beats: data_beats.max(1 + get_beats),
            credits: packets,
        };
        let blocks = Blocks {
            bell_decode: BellDecode::new(functions, 32),
            doorbell_fifo: DoorbellFifo::new(functions, shape.bells, 32),
            doorbell_arb: DoorbellArb::new(functions),
            desc_fetch: DescFetch::new(fetch),
            desc_gate: DescGate::new(functions, gets),
            source_arb: SourceArb::default(),
            key_window: KeyWindow::new(functions, 4 * functions, 32),
            desc_extract: extract(),
            far_extract: extract(),
            op_arb: OpArb::default(),
            data_reorder: DataReorder::new(shape.beats, shape.reads, tags),
            data_join: DataJoin::new(shape.reads),
            packer: Packer::new(shape.packer),
            get_packer: GetPacker::new(get_packer::Shape { gets, get_beats }),
            packet_arb: PacketArb::new(2, CLASSES),
            xbar: Xbar::new(crossbar),
            rx_dispatch: RxDispatch::new(rx_dispatch::Shape {
                packets,
                gets,
                data_beats,
                get_beats,
            }),
            upload: Upload::new(shape.write),
            send_event: SendEvent::new(events),
            event_ring: EventRing::new(8 * functions, event_ring::COUNT_BITS),
            write_arb: WriteArb::default(),
            slot_cache: SlotCache::new(
                4 * functions,
                shape.slots,
                shape.batch,
                slot_cache::COUNT_BITS,
            ),
            slot_read: SlotRead::new(shape.batch),
            tag_alloc: TagAlloc::new(tags, shape.timeout),
            read_arb: ReadArb::new(REQUESTERS, tags),
        };
        let carried = vec![None; 2 * shape.room + 8];
        NicCore { blocks, carried, inside: [0; CLASSES], from_mid: false }
    }

    /// One cycle.
    ///
    /// # Panics
    /// If a block's output depends on itself within a cycle.
    pub fn cycle(&mut self, input: In) -> Out {
        let (next, outs) = self.blocks.settle(|outs| self.wire(&input, outs));
        let out = self.out(&outs);
        let ins = self.wire(&input, &outs);
        // A place is free when the last beat of its packet has left the crossbar's channel.
        for class in [DATA, GET] {
            let begins = ins.xbar.in_valid[NETWORK]
                && out.from_ready[usize::from(input.from_class)]
                && !self.from_mid
                && usize::from(input.from_class) == class;
            self.inside[class] = outs.xbar.packets[NETWORK][class] + u8::from(begins);
        }
        let comes = input.from_valid && out.from_ready[usize::from(input.from_class)];
        if comes {
            self.from_mid = !input.from_last;
        }
        for at in [OWN, NETWORK] {
            if outs.xbar.out_valid[at] && ins.xbar.out_ready[at] {
                self.carried[outs.xbar.out_data[at] as usize] = None;
            }
        }
        let goes = &outs.packet_arb;
        if goes.out_valid {
            self.carried[ins.xbar.in_data[OWN] as usize] = Some((goes.out_data, goes.out_to));
        }
        if comes {
            let beat = (input.from_data, input.from_to);
            self.carried[ins.xbar.in_data[NETWORK] as usize] = Some(beat);
        }
        self.blocks = next;
        out
    }

    /// The beat of the crossbar at a port.
    fn carried(&self, outs: &Outs, port: usize) -> Beat {
        let number = outs.xbar.out_data[port] as usize;
        self.carried[number].filter(|_| outs.xbar.out_valid[port]).unwrap_or_default()
    }

    /// What the blocks tell.
    fn told(outs: &Outs) -> [bool; TOLD] {
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

    /// What stands at the outputs.
    fn out(&self, outs: &Outs) -> Out {
        let (to_data, to_to) = self.carried(outs, NETWORK);
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
            from_credit: [DATA, GET].map(|class| self.inside[class] > left[class]),
            to_valid: outs.xbar.out_valid[NETWORK],
            to_class: outs.xbar.out_class[NETWORK],
            to_last: outs.xbar.out_last[NETWORK],
            to_to,
            to_data,
            refused: [outs.key_window.refused, outs.event_ring.refused, outs.slot_cache.refused],
            told: NicCore::told(outs),
        }
    }

    /// The wires: what enters each block, by what stands at the outputs of all.
    fn wire(&self, input: &In, outs: &Outs) -> Ins {
        // Reads share tags. A read of data goes if there is room for its data, too.
        let lost = |of: usize| outs.read_arb.own_lost[of];
        let own = |of: usize| outs.read_arb.own_valid[of];
        let data_ask = outs.read_arb.ask_ready[READS];
        let [in_memory, in_queue] = [outs.data_reorder.read_ready, outs.data_join.read_ready];
        let asks = outs.op_arb.ask_valid;
        // A descriptor's words go past its gate and the arbiter of sources.
        let [fetch, says] = [outs.desc_fetch.out_word, outs.desc_fetch.out_address];
        let extracts = [&outs.desc_extract, &outs.far_extract];
        // What the packer is told of a move stands at its extract.
        let said = extracts[outs.op_arb.pack_says[0] as usize];
        let route = |end: u16| (end >> PAIR_BITS != input.cpu.into()) as u8;
        let function = |end: u16| (end >> 2) as u8 & ((1 << FUNCTION_BITS) - 1);
        let begins = function(outs.desc_extract.move_source);
        let is_get = outs.desc_extract.move_primitive == Primitive::Get.code();
        let is_answer = outs.packer.sent_operation & MARK != 0;
        let ((came, came_to), class) = (self.carried(outs, OWN), outs.xbar.out_class[OWN]);
        Ins {
            bell_decode: bell_decode::In {
                store_valid: input.store_valid,
                store_last: input.store_last,
                store_address: input.store_address,
                store_bytes: input.store_bytes,
                store_data: input.store_data,
            },
            doorbell_fifo: doorbell_fifo::In {
                in_valid: outs.bell_decode.bell_valid,
                in_function: outs.bell_decode.bell_function,
                in_word: outs.bell_decode.bell_word,
                take: outs.doorbell_arb.take,
                take_function: outs.doorbell_arb.take_function,
            },
            doorbell_arb: doorbell_arb::In {
                waits: outs.desc_gate.may_ring,
                out_ready: outs.source_arb.bell_ready,
            },
            desc_fetch: desc_fetch::In {
                bell_valid: outs.source_arb.out_valid,
                bell_function: outs.doorbell_arb.out_function,
                bell_word: outs.doorbell_fifo.word,
                bell_outside: outs.source_arb.out_outside,
                read_ready: outs.read_arb.ask_ready[FETCH],
                read_tag: outs.tag_alloc.tag,
                in_valid: own(FETCH),
                in_last: input.in_last,
                in_tag: input.in_tag,
                in_failed: input.in_failed,
                in_bytes: input.in_bytes,
                in_remaining: input.in_remaining,
                in_data: input.in_data,
                lost_valid: lost(FETCH),
                lost_tag: outs.tag_alloc.lost_tag,
                out_ready: outs.desc_gate.word_ready,
            },
            desc_gate: desc_gate::In {
                waits: outs.doorbell_fifo.waits,
                take: outs.doorbell_arb.take,
                take_function: outs.doorbell_arb.take_function,
                room: outs.send_event.room,
                move_valid: outs.op_arb.place_valid && outs.send_event.move_ready,
                move_get: is_get,
                move_function: begins,
                report_valid: outs.desc_extract.report_valid && outs.send_event.report_ready,
                report_function: outs.desc_extract.report_function,
                credit: outs.get_packer.credit,
                word_valid: outs.desc_fetch.out_valid,
                word_last: outs.desc_fetch.out_last,
                word_void: outs.desc_fetch.out_failed || outs.desc_fetch.out_refused,
                word_primitive: fetch as u8 & 0xf,
                to_ready: outs.source_arb.word_ready[0],
            },
            source_arb: source_arb::In {
                word_valid: [outs.desc_gate.to_valid, outs.rx_dispatch.get_valid],
                to_ready: extracts.map(|it| it.in_ready),
                ask_valid: extracts.map(|it| it.source_valid),
                ask_function: extracts.map(|it| it.source_function),
                ask_address: extracts.map(|it| it.source_address),
                ask_length: extracts.map(|it| it.source_length),
                bell_valid: outs.doorbell_arb.out_valid,
                bell_function: outs.doorbell_arb.out_function,
                bell_word: outs.doorbell_fifo.word,
                source_fits: outs.key_window.source_fits,
                out_ready: outs.desc_fetch.bell_ready,
            },
            key_window: key_window::In {
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
            },
            desc_extract: desc_extract::In {
                cpu: input.cpu,
                cpus: input.cpus,
                in_valid: outs.source_arb.to_valid[0],
                in_last: outs.desc_fetch.out_last,
                in_failed: outs.desc_fetch.out_failed,
                in_refused: outs.desc_fetch.out_refused,
                in_function: outs.desc_fetch.out_function,
                in_address: says,
                in_word: fetch,
                source_fits: outs.key_window.source_fits,
                read_ready: outs.op_arb.read_ready[0],
                move_ready: outs.op_arb.move_ready[0],
                data_ready: outs.op_arb.data_ready[0],
                report_ready: outs.send_event.report_ready,
                ..desc_extract::In::default()
            },
            far_extract: desc_extract::In {
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
            },
            op_arb: op_arb::In {
                move_valid: extracts.map(|it| it.move_valid),
                move_last: extracts.map(|it| it.move_last),
                move_get: is_get,
                move_total: extracts.map(|it| it.move_total),
                move_says: [[0; op_arb::SAYS_WORDS], [1; op_arb::SAYS_WORDS]],
                read_valid: extracts.map(|it| it.read_valid),
                read_ends: extracts.map(|it| it.read_ends),
                read_function: extracts.map(|it| it.read_function),
                read_address: extracts.map(|it| it.read_address),
                read_bytes: extracts.map(|it| it.read_bytes),
                data_valid: extracts.map(|it| it.data_valid),
                data_ends: extracts.map(|it| it.data_ends),
                data_get: outs.desc_extract.data_get,
                data_to: extracts.map(|it| it.data_to),
                data: extracts.map(|it| it.data),
                place_ready: outs.send_event.move_ready,
                place: outs.send_event.move_place,
                pack_ready: outs.packer.move_ready,
                ask_ready: data_ask && in_memory && in_queue,
                put_ready: outs.data_join.put_ready,
                get_ready: outs.get_packer.move_ready,
                get_data_ready: outs.get_packer.in_ready,
            },
            data_reorder: data_reorder::In {
                read_valid: asks && data_ask && in_queue,
                read_tag: outs.tag_alloc.tag,
                read_lane: (outs.op_arb.ask_address % LANES as u64) as u8,
                read_bytes: outs.op_arb.ask_bytes,
                in_valid: own(READS),
                in_last: input.in_last,
                in_tag: input.in_tag,
                in_failed: input.in_failed,
                in_bytes: input.in_bytes,
                in_remaining: input.in_remaining,
                in_data: input.in_data,
                lost_valid: lost(READS),
                lost_tag: outs.tag_alloc.lost_tag,
                out_ready: outs.data_join.data_ready,
            },
            data_join: data_join::In {
                read_valid: asks && data_ask && in_memory,
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
            },
            packer: packer::In {
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
                move_route: route(said.move_destination),
                move_operation: outs.op_arb.pack_operation,
                move_address: said.move_address,
                move_bytes: said.move_bytes,
                in_valid: outs.data_join.out_valid,
                in_ends: outs.data_join.out_ends,
                in_failed: outs.data_join.out_failed,
                in_from: outs.data_join.out_from,
                in_to: outs.data_join.out_to,
                in_data: outs.data_join.out_data,
                out_ready: outs.packet_arb.in_ready[DATA],
                sent_ready: true,
            },
            get_packer: get_packer::In {
                move_valid: outs.op_arb.get_valid,
                move_traffic_class: outs.desc_extract.move_traffic_class,
                move_magic: outs.desc_extract.move_magic,
                move_source: outs.desc_extract.move_source,
                move_destination: outs.desc_extract.move_destination,
                move_bytes: outs.desc_extract.move_bytes as u16,
                move_route: route(outs.desc_extract.move_destination),
                move_operation: outs.send_event.move_place,
                in_valid: outs.op_arb.get_data_valid,
                in_ends: outs.desc_extract.data_ends,
                in_data: outs.desc_extract.data,
                out_ready: outs.packet_arb.in_ready[GET],
                sent_ready: true,
            },
            packet_arb: packet_arb::In {
                in_valid: [outs.packer.out_valid, outs.get_packer.out_valid, false, false],
                in_last: [outs.packer.out_last, outs.get_packer.out_last, false, false],
                in_to: [outs.packer.out_to, LAST_LANE, 0, 0],
                in_channel: [DATA as u8, GET as u8, 0, 0],
                in_route: [outs.packer.out_route, outs.get_packer.out_route, 0, 0],
                in_data: [outs.packer.out_data, outs.get_packer.out_data, [0; 2], [0; 2]],
                out_ready: outs.xbar.in_ready[OWN],
            },
            xbar: self.crossbar(input, outs),
            rx_dispatch: rx_dispatch::In {
                cpu: input.cpu,
                in_valid: outs.xbar.out_valid[OWN],
                in_class: class,
                in_last: outs.xbar.out_last[OWN],
                in_to: came_to,
                in_data: came,
                packet_fits: outs.key_window.get_fits,
                out_ready: outs.upload.in_ready,
                get_ready: outs.source_arb.word_ready[REMOTE],
            },
            upload: upload::In {
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
            },
            send_event: send_event::In {
                move_valid: outs.op_arb.place_valid,
                move_function: begins,
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
            },
            event_ring: event_ring::In {
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
            },
            write_arb: write_arb::In {
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
            },
            slot_cache: slot_cache::In {
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
            },
            slot_read: slot_read::In {
                read_valid: outs.slot_cache.read_valid,
                read_pair: outs.slot_cache.read_pair,
                read_address: outs.slot_cache.read_address,
                read_count: outs.slot_cache.read_count,
                ask_ready: outs.read_arb.ask_ready[SLOTS],
                in_valid: own(SLOTS),
                in_last: input.in_last,
                in_failed: input.in_failed,
                in_bytes: input.in_bytes,
                in_remaining: input.in_remaining,
                in_data: input.in_data,
                lost_valid: lost(SLOTS),
                entry_ready: outs.slot_cache.in_ready,
            },
            tag_alloc: tag_alloc::In {
                tag_ready: outs.read_arb.tag_ready,
                release_valid: outs.read_arb.release_valid,
                release_tag: outs.read_arb.release_tag,
            },
            read_arb: read_arb::In {
                ask_valid: [
                    outs.desc_fetch.read_valid,
                    asks && in_memory && in_queue,
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
            },
        }
    }

    /// What enters the crossbar: packets from here by their route, and those from the network.
    fn crossbar(&self, input: &In, outs: &Outs) -> xbar::In {
        let goes = &outs.packet_arb;
        let mut free = self.carried.iter().enumerate().filter(|it| it.1.is_none());
        let mut number = || free.next().expect("the crossbar has less room").0 as u64;
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
            in_data: [number(), number(), 0, 0],
            out_ready: [outs.rx_dispatch.in_ready, input.to_ready, false, false],
            credit,
        }
    }
}
