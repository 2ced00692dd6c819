//! `smp_port`: one end of a link between processors with its eight lanes (S-13 to S-21), as
//! `hardware/smp_port` builds it.
//!
//! ```text
//!   in --> smp_link --> lane_stripe --> lane_train --> tx
//!              ^                            ^
//!  out <-------+------ lane_deskew <--------+--------- rx
//! ```
//!
//! Training stops the symbols of the link, and resets nothing of it: frames that are under way then
//! are replayed.

use super::credit_gate::{DATA_BITS, HEADER_BITS};
use super::lane_deskew::{self, LaneDeskew};
use super::lane_stripe::{self, LaneStripe};
use super::lane_train::{self, LaneTrain};
use super::line::SYMBOLS;
use super::replay_buf::BEAT_WORDS;
use super::smp_link::{self, SmpLink};
use crate::smp::lanes::MAX_LANES;
use crate::smp::transport::CHANNELS;

crate::ports! {
    /// What enters in a cycle.
    pub struct In {
        /// A beat of a packet is offered, by channel.
        in_valid: [bool; CHANNELS] = CHANNELS,
        /// It is the packet's last one.
        in_last: [bool; CHANNELS] = CHANNELS,
        /// The beat.
        in_data: [[u64; BEAT_WORDS]; CHANNELS] = CHANNELS * 64 * BEAT_WORDS,
        /// A beat of the channel is taken, if one is offered.
        out_ready: [bool; CHANNELS] = CHANNELS,
        /// By lane: which of the symbols that come are special; the first one has the lowest bit.
        rx_k: [u8; MAX_LANES] = SYMBOLS,
        /// The symbols that come, the first one in the low byte.
        rx_data: [u16; MAX_LANES] = 8 * SYMBOLS,
    }

    /// What stands at the outputs in a cycle.
    pub struct Out {
        /// The offered beat is taken.
        in_ready: [bool; CHANNELS] = CHANNELS,
        /// The packet that begins or leaves is not what its header says.
        malformed: [bool; CHANNELS] = CHANNELS,
        /// A beat of a packet from the far end is offered.
        out_valid: [bool; CHANNELS] = CHANNELS,
        /// It is the packet's last one.
        out_last: [bool; CHANNELS] = CHANNELS,
        /// With that: the packet is to be dropped, and will come again.
        out_bad: [bool; CHANNELS] = CHANNELS,
        /// DWs at its end that are empty.
        out_empty: [u8; CHANNELS] = CHANNELS * 2,
        /// The beat; zero if none is offered.
        out_data: [[u64; BEAT_WORDS]; CHANNELS] = CHANNELS * 64 * BEAT_WORDS,
        /// Packets of the channel may go.
        up: [bool; CHANNELS] = CHANNELS,
        /// Credits that are left: headers.
        left_headers: [u8; CHANNELS] = CHANNELS * HEADER_BITS,
        /// Data credits.
        left_data: [u16; CHANNELS] = CHANNELS * DATA_BITS,
        /// The lanes carry the link's symbols.
        lanes_up: bool = 1,
        /// The training ends, or a new one begins.
        trained: bool = 1,
        /// See `trained`.
        recovers: bool = 1,
        /// A frame, or the link packet of the cycle before, was damaged.
        damaged: bool = 1,
        /// What came was sound, and no end of this link sends it.
        refused: bool = 1,
        /// By lane: which of the symbols that go are special.
        tx_k: [u8; MAX_LANES] = SYMBOLS,
        /// The symbols that go.
        tx_data: [u16; MAX_LANES] = 8 * SYMBOLS,
    }
}

/// Sizes and times of an end; times in cycles.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Those of the link.
    pub link: smp_link::Shape,
    /// From a mark to the next one.
    pub mark_every: u64,
    /// From the first lane to the last one, at most.
    pub max_skew: usize,
    /// Those of the training.
    pub train: lane_train::Shape,
}

/// One end, with its lanes.
#[derive(Clone)]
pub struct SmpPort {
    link: SmpLink,
    stripe: LaneStripe,
    deskew: LaneDeskew,
    train: LaneTrain,
    mark_every: u64,
}

impl SmpPort {
    /// An end that has heard nothing.
    pub fn new(shape: Shape) -> SmpPort {
        SmpPort {
            link: SmpLink::new(shape.link),
            stripe: LaneStripe::new(shape.mark_every),
            deskew: LaneDeskew::new(shape.max_skew),
            train: LaneTrain::new(shape.train),
            mark_every: shape.mark_every,
        }
    }

    /// One cycle.
    pub fn cycle(&mut self, input: In) -> Out {
        let came =
            self.deskew.cycle(lane_deskew::In { lane_k: input.rx_k, lane_data: input.rx_data });
        let lanes_up = self.train.up();
        let link = self.link.cycle(smp_link::In {
            in_valid: input.in_valid,
            in_last: input.in_last,
            in_data: input.in_data,
            out_ready: input.out_ready,
            tx_ready: lanes_up && self.stripe.line_ready(),
            rx_valid: came.line_valid,
            rx_k: came.line_k,
            rx_data: came.line_data,
        });
        let line = self.stripe.cycle(lane_stripe::In {
            line_valid: link.tx_valid,
            line_k: link.tx_k,
            line_data: link.tx_data,
        });
        if !lanes_up {
            // Its reset: a mark goes first when the lanes are up.
            self.stripe = LaneStripe::new(self.mark_every);
        }
        let lanes = self.train.cycle(lane_train::In {
            retrain: link.retrain,
            line_k: line.lane_k,
            line_data: line.lane_data,
            rx_k: input.rx_k,
            rx_data: input.rx_data,
        });
        Out {
            in_ready: link.in_ready,
            malformed: link.malformed,
            out_valid: link.out_valid,
            out_last: link.out_last,
            out_bad: link.out_bad,
            out_empty: link.out_empty,
            out_data: link.out_data,
            up: link.up,
            left_headers: link.left_headers,
            left_data: link.left_data,
            lanes_up,
            trained: lanes.trained,
            recovers: lanes.recovers,
            damaged: link.damaged,
            refused: link.refused,
            tx_k: lanes.tx_k,
            tx_data: lanes.tx_data,
        }
    }
}
