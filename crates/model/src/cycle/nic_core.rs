//! `nic_core`: the interface of cHPP between the PCIe boundary and the network (cHPP sections 4 and
//! 5, Fig. 10 to 12), as `hardware/nic_core` is to build it: all blocks of this folder that belong
//! to it, and the wires between them.
//!
//! `wires.rs` is the list of wires. Within a cycle, blocks are evaluated in a fixed order, each of
//! them once, and those before whose outputs a wire goes back again. As there is no loop of wires,
//! this gives what evaluation until nothing changes gives. Debug builds check that in each cycle.
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
use super::op_arb::{self, OpArb};
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
use bellwire_protocol::canary::planted;
use bellwire_wire::ADDRESS_BITS;

mod moves;
mod wires;

use moves::Moves;
use wires::Wires;

const ADDRESS_WIDTH: usize = ADDRESS_BITS as usize;
/// Bits of the number of a lane.
pub const LANE_BITS: usize = LANES.ilog2() as usize;
/// Bits of the number of a processor.
pub const CPU_BITS: usize = 4;
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
/// Moves that wait for the packer: as many operations as the event-driven machine has commands.
const MOVES: usize = 4;
/// What the blocks tell, in the order of `Wires::told`.
pub const TOLD: usize = 26;
/// What the blocks count.
pub const COUNTS: usize = 5;
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
        /// What the blocks count since reset, in the order of `registers::COUNTS`: stores that were
        /// dropped, doorbells of full FIFOs, events of closed rings, packets with a wrong key, and
        /// targets outside of their window.
        counts: [u32; COUNTS] = 32 * COUNTS,
    }
}

crate::ports! {
    /// What moves between blocks in a cycle, for who watches an operation. It is no port of the
    /// module.
    pub struct Taps {
        /// A doorbell was decoded.
        bell: bool = 1,
        /// The fetch of descriptors takes one.
        start: bool = 1,
        /// A word of a descriptor leaves the fetch.
        word: bool = 1,
        /// A beat of data goes to the packer.
        data: bool = 1,
        /// A beat of a packet goes into the crossbar.
        pack: bool = 1,
        /// A beat of a packet goes to the upload module.
        dispatch: bool = 1,
        /// A beat of a write leaves the upload module.
        upload: bool = 1,
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

impl Shape {
    /// The sizes of the gates: those of the paper's prototype (`chpp.toml`), where it has them.
    pub const PROTOTYPE: Shape = Shape {
        functions: 8,
        bells: 32,
        tags: 32,
        timeout: 2_500_000,
        beats: 512,
        reads: 32,
        request: 8,
        longest: 256,
        fetches: 4,
        places: 2,
        events: 16,
        gets: 2,
        packer: packer::Shape { beats: 256, packets: 16, payload: 128, longest: 2048 },
        packets: 4,
        depth: 32,
        room: 598,
        write: 128,
        slots: 32,
        batch: 16,
    };

    /// Beats of the longest packet of each class: a PUT or a NAP with its header, data, and a tail
    /// that may begin a beat; and a GET.
    pub fn longest_packets(&self) -> [usize; CLASSES] {
        let data = self.packer.payload.max(self.packer.longest).div_ceil(LANES);
        [3 + data, 1 + self.longest]
    }

    /// Beats of the longest packet.
    pub fn longest_packet(&self) -> usize {
        let [data, get] = self.longest_packets();
        data.max(get)
    }
}

/// Makes the struct of all blocks, and those of their inputs and outputs.
macro_rules! blocks {
    ($($field:ident: $module:ident, $of:ty;)*) => {
        /// All blocks.
        #[derive(Clone, Debug)]
        struct Blocks { $($field: $of,)* }

        /// What enters each.
        #[derive(Default, PartialEq)]
        struct Ins { $($field: $module::In,)* }

        /// What stands at the outputs of each.
        #[derive(Default)]
        struct Outs { $($field: $module::Out,)* }

        impl Ins {
            fn of(wires: &Wires) -> Ins {
                Ins { $($field: wires.$field(),)* }
            }
        }
    };
}

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
    moves: moves, Moves;
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

impl Blocks {
    /// One cycle, in a fixed order. The outputs of the crossbar are there.
    ///
    /// A block has its clock edge when all that enters it is known. Where a wire goes back, its
    /// outputs are looked at before: those count that do not depend on what is not known yet.
    ///
    /// # Panics
    /// In debug builds if evaluation until nothing changes would have given something else.
    fn cycle(&mut self, wires: &mut Wires) {
        let mut ins = Ins::default();
        macro_rules! look {
            ($($block:ident)*) => { $(
                wires.outs.$block = self.$block.out(&wires.$block());
            )* };
        }
        macro_rules! clock {
            ($($block:ident)*) => { $(
                let input = wires.$block();
                wires.outs.$block = self.$block.cycle(input);
                if cfg!(debug_assertions) {
                    ins.$block = input;
                }
            )* };
        }
        // Registers.
        wires.outs.rx_dispatch = self.rx_dispatch.out();
        wires.outs.key_window = self.key_window.out();
        wires.outs.tag_alloc = self.tag_alloc.out();
        wires.outs.doorbell_fifo = self.doorbell_fifo.out();
        wires.outs.slot_read = self.slot_read.out();
        wires.outs.get_packer = self.get_packer.out();
        wires.outs.moves = self.moves.out();
        wires.outs.upload = self.upload.out();
        clock!(bell_decode);
        look!(doorbell_arb);
        // Words of descriptors, as far as the question about a source.
        look!(desc_fetch desc_gate source_arb desc_extract source_arb far_extract);
        clock!(source_arb);
        // Events and writes.
        look!(event_ring);
        clock!(write_arb);
        look!(send_event);
        clock!(event_ring);
        // Operations.
        look!(op_arb packer);
        clock!(packet_arb send_event);
        // What comes from the crossbar.
        // Canary: a packet does not see that there is a slot for it.
        if !planted("nic-core-too-early") {
            look!(slot_cache);
        }
        clock!(upload slot_cache rx_dispatch key_window xbar);
        // Reads, and data as far as the packer.
        look!(data_reorder data_join);
        clock!(packer moves read_arb data_join data_reorder op_arb get_packer);
        // Back to the doorbells.
        clock!(desc_extract far_extract);
        look!(desc_gate);
        clock!(doorbell_arb desc_gate doorbell_fifo desc_fetch slot_read tag_alloc);
        debug_assert!(ins == Ins::of(wires), "a block was evaluated too early");
    }
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
    taps: Taps,
}

impl NicCore {
    /// An interface without functions that are open.
    ///
    /// # Panics
    /// As its blocks do.
    pub fn new(shape: Shape) -> NicCore {
        let Shape { functions, tags, longest, gets, packets, request, .. } = shape;
        let get_beats = longest;
        let data_beats = shape.longest_packets()[DATA];
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
            beats: shape.longest_packet(),
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
            moves: Moves::new(MOVES),
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
        NicCore { blocks, carried, inside: [0; CLASSES], from_mid: false, taps: Taps::default() }
    }

    /// What stands at the ports of reads and of writes: registers, which nothing that enters in the
    /// same cycle changes. All other outputs are zero.
    pub fn asks(&self) -> Out {
        let read = self.blocks.read_arb.clone().cycle(read_arb::In::default());
        let write = self.blocks.write_arb.clone().cycle(write_arb::In::default());
        Out {
            read_valid: read.read_valid,
            read_function: read.read_function,
            read_address: read.read_address,
            read_bytes: read.read_bytes,
            read_tag: read.read_tag,
            write_valid: write.out_valid,
            write_last: write.out_last,
            write_function: write.out_function,
            write_address: write.out_address,
            write_bytes: write.out_bytes,
            write_data: write.out_data,
            ..Out::default()
        }
    }

    /// What stands at the port into the network: registers, too. All other outputs are zero.
    pub fn sends(&self) -> Out {
        let crosses = self.blocks.xbar.out();
        let (to_data, to_to) = self.carried(&crosses, NETWORK);
        Out {
            to_valid: crosses.out_valid[NETWORK],
            to_class: crosses.out_class[NETWORK],
            to_last: crosses.out_last[NETWORK],
            to_to,
            to_data,
            ..Out::default()
        }
    }

    /// By class, whether a beat from the network is taken in this cycle: registers.
    pub fn takes(&self) -> [bool; CLASSES] {
        let room = self.blocks.xbar.out().in_ready[NETWORK];
        [DATA, GET].map(|class| room[class])
    }

    /// One cycle.
    ///
    /// # Panics
    /// In debug builds if blocks were evaluated in an order that is wrong.
    pub fn cycle(&mut self, input: In) -> Out {
        let mut free = (0..).zip(&self.carried).filter(|it| it.1.is_none()).map(|it| it.0);
        let free = [(); 2].map(|()| free.next().expect("the crossbar has less room"));
        let outs = Outs { xbar: self.blocks.xbar.out(), ..Outs::default() };
        let carried = [OWN, NETWORK].map(|port| self.carried(&outs.xbar, port));
        let mut wires = Wires { input, outs, carried, free };
        self.blocks.cycle(&mut wires);
        let out = wires.out(self.inside);
        self.taps = wires.taps();
        let (crosses, outs) = (wires.xbar(), &wires.outs);
        // A place is free when the last beat of its packet has left the crossbar's channel.
        for class in [DATA, GET] {
            let begins = crosses.in_valid[NETWORK]
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
            if outs.xbar.out_valid[at] && crosses.out_ready[at] {
                self.carried[outs.xbar.out_data[at] as usize] = None;
            }
        }
        let goes = &outs.packet_arb;
        if goes.out_valid {
            self.carried[crosses.in_data[OWN] as usize] = Some((goes.out_data, goes.out_to));
        }
        if comes {
            let beat = (input.from_data, input.from_to);
            self.carried[crosses.in_data[NETWORK] as usize] = Some(beat);
        }
        out
    }

    /// What has moved between blocks in the last cycle.
    pub fn taps(&self) -> Taps {
        self.taps
    }

    /// The beat of the crossbar at a port.
    fn carried(&self, outs: &xbar::Out, port: usize) -> Beat {
        let number = outs.out_data[port] as usize;
        self.carried[number].filter(|_| outs.out_valid[port]).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A PUT or a NAP is a header, 2,048 bytes and two beats that these only touch. A GET is a
    /// header and a descriptor of 256 beats.
    #[test]
    fn the_longest_packets_are_known() {
        assert_eq!(Shape::PROTOTYPE.longest_packets(), [131, 257]);
        assert_eq!(Shape::PROTOTYPE.longest_packet(), 257);
        let short = Shape { longest: 8, ..Shape::PROTOTYPE };
        assert_eq!((short.longest_packets(), short.longest_packet()), ([131, 9], 131));
    }
}
