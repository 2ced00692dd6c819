//! `chpp_link_nic`: the whole network interface of cHPP with a link between processors as its
//! network, as `hardware/chpp_link_nic` builds it.
//!
//! ```text
//!               +--> tlp_wrap, class 0 --> channel 0 --+
//!   chpp_nic ---+--> tlp_wrap, class 1 --> channel 1 --+-- smp_port == lanes
//!       ^                                              |
//!       +--- packet_arb <-- tlp_unwrap, by channel <---+
//! ```
//!
//! No class ever waits for the other one: each has its buffers, its channel and its credits. What
//! they share always moves on. The interface counts places in `tlp_wrap`, so these take every
//! packet as a whole. A packet from the far end enters the interface when all of it is there, and a
//! place for it.

use super::chpp_nic::{self, ChppNic};
use super::line::SYMBOLS;
use super::nic_core::{self, CLASSES, CPU_BITS};
use super::packet_arb::{self, PacketArb};
use super::pcie_rx::BASE_BITS;
use super::pcie_tx::{DEVICE_BITS, EMPTY_BITS};
use super::replay_buf::BEAT_WORDS;
use super::smp_port::{self, SmpPort};
use super::tlp_unwrap::{self, TlpUnwrap};
use super::tlp_wrap::{self, TlpWrap};
use crate::smp::lanes::MAX_LANES;

crate::ports! {
    /// What enters in a cycle.
    pub struct In {
        /// The own processor: a strap, as `cpus`.
        cpu: u8 = CPU_BITS,
        /// How many processors there are.
        cpus: u8 = CPU_BITS + 1,
        /// Bus and device of the interface: the hard block's, as `base` and `read_credit`.
        device: u16 = DEVICE_BITS,
        /// The window's address, without the bits of its size.
        base: u64 = BASE_BITS,
        /// The host has room for one more read.
        read_credit: bool = 1,
        /// A beat of a TLP comes from the host.
        rx_valid: bool = 1,
        /// It is the last one.
        rx_last: bool = 1,
        /// DWs that it lacks; only the last one may.
        rx_empty: u8 = EMPTY_BITS,
        /// The beat: the byte that was sent first is the lowest one.
        rx_data: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
        /// A beat for the host is taken, if one is offered.
        tx_ready: bool = 1,
        /// By lane: which of the symbols that come are special; the first one has the lowest bit.
        lane_rx_k: [u8; MAX_LANES] = SYMBOLS,
        /// The symbols that come, the first one in the low byte.
        lane_rx_data: [u16; MAX_LANES] = 8 * SYMBOLS,
    }

    /// What stands at the outputs in a cycle.
    pub struct Out {
        /// The beat from the host is taken.
        rx_ready: bool = 1,
        /// A beat of a TLP is offered to the host.
        tx_valid: bool = 1,
        /// It is the last one.
        tx_last: bool = 1,
        /// DWs that it lacks.
        tx_empty: u8 = EMPTY_BITS,
        /// The beat: the byte that is sent first is the lowest one; zero if there is none.
        tx_data: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
        /// The lanes carry the link's symbols.
        lanes_up: bool = 1,
        /// By class: packets may go.
        up: [bool; CLASSES] = CLASSES,
        /// The training ends, or a new one begins.
        trained: bool = 1,
        /// See `trained`.
        recovers: bool = 1,
        /// A frame, or the link packet of the cycle before, was damaged.
        damaged: bool = 1,
        /// By class: a packet from the far end was dropped in the cycle before.
        dropped: [bool; CLASSES] = CLASSES,
        /// What came was sound, and no end of this link sends it.
        refused: bool = 1,
        /// By lane: which of the symbols that go are special.
        lane_tx_k: [u8; MAX_LANES] = SYMBOLS,
        /// The symbols that go.
        lane_tx_data: [u16; MAX_LANES] = 8 * SYMBOLS,
    }
}

/// Sizes and times.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Those of the interface.
    pub nic: nic_core::Shape,
    /// Those of the link.
    pub port: smp_port::Shape,
}

/// The interface and its end of the link.
#[derive(Clone)]
pub struct ChppLinkNic {
    nic: ChppNic,
    wraps: [TlpWrap; CLASSES],
    port: SmpPort,
    unwraps: [TlpUnwrap; CLASSES],
    arb: PacketArb,
    /// By class, places for packets in the interface.
    places: [usize; CLASSES],
    /// A packet has begun to enter the interface, and has not ended.
    mid: bool,
}

impl ChppLinkNic {
    /// An interface without functions that are open, and an end that has heard nothing.
    ///
    /// # Panics
    /// As its blocks do.
    pub fn new(shape: Shape) -> ChppLinkNic {
        let longest = shape.nic.longest_packets();
        let packets = shape.nic.packets;
        let wrap = |class: usize| {
            let beats = (packets * longest[class]).max(tlp_wrap::SEGMENT_BEATS);
            let segments = packets * longest[class].div_ceil(tlp_wrap::SEGMENT_BEATS);
            TlpWrap::new(class as u8, beats, segments)
        };
        ChppLinkNic {
            nic: ChppNic::new(shape.nic),
            wraps: [0, 1].map(wrap),
            port: SmpPort::new(shape.port),
            unwraps: longest.map(TlpUnwrap::new),
            arb: PacketArb::new(CLASSES, CLASSES),
            places: [packets; CLASSES],
            mid: false,
        }
    }

    /// One cycle. A block is evaluated when all that enters it is known.
    pub fn cycle(&mut self, input: In) -> Out {
        // Registers.
        let takes = self.nic.takes();
        let go = self.wraps.each_ref().map(TlpWrap::out);
        let come = self.unwraps.each_ref().map(TlpUnwrap::out);

        // A packet enters the interface.
        let mut offers = packet_arb::In::default();
        for class in 0..CLASSES {
            offers.in_valid[class] = come[class].out_valid;
            offers.in_last[class] = come[class].out_last;
            offers.in_to[class] = come[class].out_to;
            offers.in_channel[class] = class as u8;
            offers.in_data[class] = come[class].out_data;
            offers.out_ready[class] = takes[class] && (self.mid || self.places[class] > 0);
        }
        let from = self.arb.cycle(offers);

        // The link.
        let mut sends = smp_port::In {
            rx_k: input.lane_rx_k,
            rx_data: input.lane_rx_data,
            ..smp_port::In::default()
        };
        for class in 0..CLASSES {
            sends.in_valid[class] = go[class].out_valid;
            sends.in_last[class] = go[class].out_last;
            sends.in_data[class] = go[class].out_data;
            sends.out_ready[class] = come[class].in_ready;
        }
        let port = self.port.cycle(sends);
        for (class, unwrap) in self.unwraps.iter_mut().enumerate() {
            unwrap.cycle(tlp_unwrap::In {
                in_valid: port.out_valid[class],
                in_last: port.out_last[class],
                in_bad: port.out_bad[class],
                in_empty: port.out_empty[class],
                in_data: port.out_data[class],
                out_ready: from.in_ready[class],
            });
        }

        // The interface.
        let nic = self.nic.cycle(chpp_nic::In {
            cpu: input.cpu,
            cpus: input.cpus,
            device: input.device,
            base: input.base,
            read_credit: input.read_credit,
            rx_valid: input.rx_valid,
            rx_last: input.rx_last,
            rx_empty: input.rx_empty,
            rx_data: input.rx_data,
            tx_ready: input.tx_ready,
            from_valid: from.out_valid,
            from_class: from.out_channel,
            from_last: from.out_last,
            from_to: from.out_to,
            from_data: from.out_data,
            to_ready: go.iter().all(|wrap| wrap.in_ready),
            to_credit: go.map(|wrap| wrap.credit),
        });
        let is_taken = nic.to_valid && go.iter().all(|wrap| wrap.in_ready);
        for (class, wrap) in self.wraps.iter_mut().enumerate() {
            wrap.cycle(tlp_wrap::In {
                in_valid: is_taken && usize::from(nic.to_class) == class,
                in_last: nic.to_last,
                in_to: nic.to_to,
                in_data: nic.to_data,
                out_ready: port.in_ready[class],
            });
        }
        for class in 0..CLASSES {
            let begins = from.out_valid && !self.mid && usize::from(from.out_channel) == class;
            self.places[class] += usize::from(nic.from_credit[class]);
            self.places[class] -= usize::from(begins);
        }
        if from.out_valid {
            self.mid = !from.out_last;
        }
        Out {
            rx_ready: nic.rx_ready,
            tx_valid: nic.tx_valid,
            tx_last: nic.tx_last,
            tx_empty: nic.tx_empty,
            tx_data: nic.tx_data,
            lanes_up: port.lanes_up,
            up: port.up,
            trained: port.trained,
            recovers: port.recovers,
            damaged: port.damaged,
            dropped: come.map(|unwrap| unwrap.dropped),
            refused: port.refused || port.malformed != [false; CLASSES],
            lane_tx_k: port.tx_k,
            lane_tx_data: port.tx_data,
        }
    }
}
