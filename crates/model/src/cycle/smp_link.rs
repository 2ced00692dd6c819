//! `smp_link`: one end of a link between processors (S-13 to S-17, S-20, S-21), as
//! `hardware/smp_link` builds it.
//!
//! ```text
//!   in --> send_vc --> replay_buf --> frame_tx --> tx
//!             ^            ^             ^
//!        credit_gate       |          dllp_tx <-- rx_ack, fc_init <-- credits of vc_rx_buf
//!             ^            |
//!          fc_init <-- dllp_rx <--+
//!                                 |
//!  out <-- vc_rx_buf <-- rx_ack <-- frame_rx <-- rx
//! ```
//!
//! A packet is a TLP. If nothing waits, a beat of it is on the line five cycles after it entered.
//! It is offered at the far end four cycles after it has come there, if it may leave early.

use bellwire_wire::link::llp::SEQUENCES;
use bellwire_wire::link::tlp::{MAX_TLP_BYTES, Tlp};

use super::credit_gate::{self, CreditGate, DATA_BITS, HEADER_BITS};
use super::dllp_rx::{self, DllpRx};
use super::dllp_tx;
use super::fc_init::{self, FcInit};
use super::frame_rx::{self, FrameRx};
use super::frame_tx::{self, FrameTx};
use super::line::{SYMBOLS, bytes_of};
use super::replay_buf::{self, BEAT_WORDS, ReplayBuf};
use super::rx_ack::{self, RxAck};
use super::send_vc::{self, SendVc};
use super::vc_rx_buf::{self, Room, VcRxBuf};
use crate::smp::transport::CHANNELS;

/// Beats of the longest packet, and of its frame.
pub const LONGEST: usize = MAX_TLP_BYTES.div_ceil(SYMBOLS);

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
        /// The lanes take a beat, if one is offered.
        tx_ready: bool = 1,
        /// Symbols have come.
        rx_valid: bool = 1,
        /// Which of them are special.
        rx_k: u16 = SYMBOLS,
        /// The symbols.
        rx_data: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
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
        /// Symbols are offered; otherwise idle ones should go, which are zeros.
        tx_valid: bool = 1,
        /// Which of them are special; zero if none are offered.
        tx_k: u16 = SYMBOLS,
        /// The symbols; zero if none are offered.
        tx_data: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
        /// The link should be trained anew.
        retrain: bool = 1,
        /// A frame, or the link packet of the cycle before, was damaged.
        damaged: bool = 1,
        /// What came was sound, and no end of this link sends it: a packet without credits or of
        /// another type, another link packet, an ACK for what was never sent.
        refused: bool = 1,
    }
}

/// Sizes and times of an end; times in cycles.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Beats of the replay buffer.
    pub replay: usize,
    /// From the end of a frame to a replay, if nothing is acknowledged.
    pub replay_after: u64,
    /// From a frame to its acknowledgement, at most.
    pub acknowledge_after: u64,
    /// Header credits of a channel.
    pub headers: u8,
    /// Data credits of a channel.
    pub data: u16,
    /// From an update of credits to the next one.
    pub update_again_after: u64,
    /// From an InitFC to the next one.
    pub init_again_after: u64,
    /// Packets leave before their ends have come (S-21); otherwise behind them (S-20).
    pub cut_through: bool,
}

/// What an end has of each virtual channel.
#[derive(Clone, Debug)]
struct Channel {
    init: FcInit,
    gate: CreditGate,
    buffer: VcRxBuf,
}

/// One end. It is reset until its lanes are trained.
#[derive(Clone)]
pub struct SmpLink {
    channels: [Channel; CHANNELS],
    send: SendVc,
    replay: ReplayBuf,
    frame_tx: FrameTx,
    frame_rx: FrameRx,
    rx_ack: RxAck,
    dllp_rx: DllpRx,
    /// The next frame in order.
    expected: u16,
    /// A frame has begun to come and has not ended; the channel of its packet, if that has one.
    mid: bool,
    coming: Option<usize>,
    cut_through: bool,
}

impl SmpLink {
    /// An end that has heard nothing.
    pub fn new(shape: Shape) -> SmpLink {
        let room = Room { headers: shape.headers, data: shape.data, longest: LONGEST };
        let channel = || Channel {
            init: FcInit::new(shape.init_again_after),
            gate: CreditGate::new(),
            buffer: VcRxBuf::new(room, shape.update_again_after),
        };
        SmpLink {
            channels: [channel(), channel()],
            send: SendVc::new(LONGEST),
            replay: ReplayBuf::new(shape.replay, shape.replay_after),
            frame_tx: FrameTx::new(),
            frame_rx: FrameRx::new(LONGEST),
            rx_ack: RxAck::new(shape.acknowledge_after),
            dllp_rx: DllpRx::new(),
            expected: 0,
            mid: false,
            coming: None,
            cut_through: shape.cut_through,
        }
    }

    /// One cycle. A block is evaluated when all that enters it is known.
    pub fn cycle(&mut self, input: In) -> Out {
        let mut out = Out::default();

        // What comes.
        let came = self.frame_rx.cycle(frame_rx::In {
            line_valid: input.rx_valid,
            line_k: input.rx_k,
            line_data: input.rx_data,
        });
        let told = self.dllp_rx.cycle(dllp_rx::In {
            dllp_valid: came.dllp_valid,
            dllp_data: came.dllp_data,
            ack_ready: self.replay.ack_ready(),
        });

        // Link packets that go: the updates are those of this cycle.
        let dllp_ready = self.frame_tx.dllp_ready(input.tx_ready);
        let ack = self.rx_ack.cycle(rx_ack::In {
            frame_valid: came.frame_valid,
            frame_damaged: came.frame_damaged,
            frame_sequence: came.frame_sequence,
            ack_ready: dllp_ready,
        });
        let updates = self.channels.each_ref().map(|channel| channel.buffer.update());
        let sends = [0, 1].map(|at: usize| {
            let mut init = self.channels[at].init;
            let update_valid = updates[at].update_valid;
            init.cycle(fc_init::In { update_valid, ..fc_init::In::default() })
        });
        let dllp = dllp_tx::cycle(dllp_tx::In {
            ack_valid: ack.ack_valid,
            ack_nak: ack.ack_nak,
            ack_sequence: ack.ack_sequence,
            update_valid: sends.map(|init| init.send_valid),
            update_stage: sends.map(|init| init.send_stage),
            update_headers: updates.map(|update| update.update_headers),
            update_data: updates.map(|update| update.update_data),
            dllp_ready,
        });

        // Packets that come: their first beat has the channel.
        if came.out_valid && !self.mid {
            let channel = Tlp::glance_channel(&bytes_of(came.out_data));
            self.coming = channel.map(usize::from);
        }
        let is_next = came.frame_sequence == self.expected;
        self.expected = (self.expected + u16::from(ack.deliver)) % SEQUENCES;
        self.mid = if came.out_valid { !came.out_last } else { self.mid };
        out.refused = told.unknown || (ack.deliver && self.coming.is_none());
        out.damaged = told.damaged || (came.frame_valid && came.frame_damaged);

        // Packets that go, if they have credits.
        let costs = self.send.costs();
        let allowed = [0, 1].map(|at: usize| {
            let mut gate = self.channels[at].gate;
            let left = gate.cycle(credit_gate::In { in_cost: costs[at], ..Default::default() });
            sends[at].up && left.in_ready
        });
        let sent = self.send.cycle(send_vc::In {
            in_valid: input.in_valid,
            in_last: input.in_last,
            in_data: input.in_data,
            allowed,
            room: self.replay.room(),
        });
        (out.in_ready, out.malformed) = (sent.in_ready, sent.malformed);

        for (at, channel) in self.channels.iter_mut().enumerate() {
            let is_here = came.out_valid && self.coming == Some(at);
            let left = channel.buffer.cycle(vc_rx_buf::In {
                in_valid: is_here,
                in_last: came.out_last,
                in_empty: came.out_empty,
                in_data: came.out_data,
                in_early: self.cut_through && is_next,
                in_deliver: ack.deliver,
                out_ready: input.out_ready[at],
                update_ready: sends[at].up && dllp.update_ready[at],
            });
            out.refused |= left.refused;
            (out.out_valid[at], out.out_last[at]) = (left.out_valid, left.out_last);
            (out.out_bad[at], out.out_empty[at]) = (left.out_bad, left.out_empty);
            out.out_data[at] = left.out_data;
            let init = channel.init.cycle(fc_init::In {
                update_valid: updates[at].update_valid,
                send_ready: dllp.update_ready[at],
                heard_valid: told.update_valid[at],
                heard_stage: told.update_stage,
                deliver: left.kept,
                restart: false,
            });
            out.up[at] = init.up;
            let gate = channel.gate.cycle(credit_gate::In {
                in_valid: sent.begins[at],
                in_cost: costs[at],
                update_valid: init.grant_valid,
                update_headers: told.update_headers,
                update_data: told.update_data,
            });
            (out.left_headers[at], out.left_data[at]) = (gate.left_headers, gate.left_data);
        }

        let kept = self.replay.cycle(replay_buf::In {
            in_valid: sent.out_valid,
            in_last: sent.out_last,
            in_data: sent.out_data,
            out_ready: self.frame_tx.in_ready(dllp.dllp_valid, input.tx_ready),
            ack_valid: told.ack_valid,
            ack_nak: told.ack_nak,
            ack_sequence: told.ack_sequence,
        });
        out.refused |= kept.refused;
        out.retrain = kept.retrain;
        let line = self.frame_tx.cycle(frame_tx::In {
            in_valid: kept.out_valid,
            in_last: kept.out_last,
            in_sequence: kept.out_sequence,
            in_data: kept.out_data,
            dllp_valid: dllp.dllp_valid,
            dllp_data: dllp.dllp_data,
            line_ready: input.tx_ready,
        });
        (out.tx_valid, out.tx_k, out.tx_data) = (line.line_valid, line.line_k, line.line_data);
        out
    }
}
