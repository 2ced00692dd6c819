//! `packet_arb`: the arbiter of packets in front of an input of the crossbar (C-26, C-27, C-42;
//! cHPP sections 3.4 and 4.1), as `hardware/packet_arb` builds it.
//!
//! The packer and the packer of GETs share one input. Whole packets go in turns. A packet whose
//! channel has no room lets the others pass, so a GET that waits stops no PUT.

use super::data_reorder::{BEAT_WORDS, LANES};
use super::packer::ROUTE_BITS;
use super::xbar::CHANNELS;

/// Senders of packets, at most.
pub const INPUTS: usize = 4;
const LANE_BITS: usize = LANES.ilog2() as usize;
/// Bits of the number of a channel.
pub const CHANNEL_BITS: usize = CHANNELS.ilog2() as usize;

crate::ports! {
    /// What enters in a cycle.
    pub struct In {
        /// By sender: a beat is offered.
        in_valid: [bool; INPUTS] = INPUTS,
        /// It is the last of its packet.
        in_last: [bool; INPUTS] = INPUTS,
        /// The lane of its last byte.
        in_to: [u8; INPUTS] = INPUTS * LANE_BITS,
        /// The channel of its packet; counts with the first beat.
        in_channel: [u8; INPUTS] = INPUTS * CHANNEL_BITS,
        /// The way behind the channel. The block does not read it.
        in_route: [u8; INPUTS] = INPUTS * ROUTE_BITS,
        /// The beat.
        in_data: [[u64; BEAT_WORDS]; INPUTS] = INPUTS * 64 * BEAT_WORDS,
        /// By channel: the crossbar takes a beat.
        out_ready: [bool; CHANNELS] = CHANNELS,
    }

    /// What stands at the outputs in a cycle.
    pub struct Out {
        /// By sender: its beat is taken, if it offers one.
        in_ready: [bool; INPUTS] = INPUTS,
        /// A beat goes into the crossbar, which takes it.
        out_valid: bool = 1,
        /// It is the last of its packet.
        out_last: bool = 1,
        /// The lane of its last byte; zero if there is none, as all that follows.
        out_to: u8 = LANE_BITS,
        /// Its channel.
        out_channel: u8 = CHANNEL_BITS,
        /// The way behind the channel.
        out_route: u8 = ROUTE_BITS,
        /// The beat.
        out_data: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
    }
}

/// An arbiter. The sender behind the one that began last goes first; after reset, sender 0 does.
///
/// A beat goes into the crossbar in the cycle in which it comes. No cycle is lost between packets.
#[derive(Clone, Debug)]
pub struct PacketArb {
    inputs: usize,
    channels: usize,
    /// The sender whose turn is next.
    next: usize,
    /// The packet whose last beat has not gone: its sender and its channel.
    coming: Option<(usize, u8)>,
}

impl PacketArb {
    /// An arbiter of this many senders, in front of this many channels.
    ///
    /// # Panics
    /// Unless there are 1 to 4 of both.
    pub fn new(inputs: usize, channels: usize) -> PacketArb {
        assert!((1..=INPUTS).contains(&inputs), "1 to {INPUTS} senders");
        assert!((1..=CHANNELS).contains(&channels), "1 to {CHANNELS} channels");
        PacketArb { inputs, channels, next: 0, coming: None }
    }

    /// One cycle.
    #[inline]
    pub fn cycle(&mut self, input: In) -> Out {
        let mut out = Out::default();
        let has_room = |channel: u8| {
            usize::from(channel) < self.channels && input.out_ready[usize::from(channel)]
        };
        let mut taken = None;
        match self.coming {
            Some((sender, channel)) => {
                out.in_ready[sender] = has_room(channel);
                taken =
                    (out.in_ready[sender] && input.in_valid[sender]).then_some((sender, channel));
            }
            None => {
                for step in 0..self.inputs {
                    let sender = (self.next + step) % self.inputs;
                    let channel = input.in_channel[sender];
                    out.in_ready[sender] = taken.is_none() && has_room(channel);
                    if out.in_ready[sender] && input.in_valid[sender] {
                        taken = Some((sender, channel));
                    }
                }
            }
        }
        if let Some((sender, channel)) = taken {
            if self.coming.is_none() {
                self.next = (sender + 1) % self.inputs;
            }
            out.out_valid = true;
            out.out_last = input.in_last[sender];
            out.out_to = input.in_to[sender];
            out.out_channel = channel;
            out.out_route = input.in_route[sender];
            out.out_data = input.in_data[sender];
            self.coming = (!out.out_last).then_some((sender, channel));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of each channel that it has room.
    const ALL: [bool; CHANNELS] = [true; CHANNELS];

    /// A sender offers a beat for a channel; what else it says tells who it is.
    fn offer(input: &mut In, sender: usize, in_last: bool, channel: u8) {
        input.in_valid[sender] = true;
        input.in_last[sender] = in_last;
        input.in_to[sender] = 3 * sender as u8 + 1;
        input.in_channel[sender] = channel;
        input.in_route[sender] = 0x10 + sender as u8;
        input.in_data[sender] = [sender as u64, 100 + sender as u64];
    }

    /// These senders offer packets of one beat, each for the channel of its number.
    fn singles(of: &[usize], out_ready: [bool; CHANNELS]) -> In {
        let mut input = In { out_ready, ..In::default() };
        for &sender in of {
            offer(&mut input, sender, true, sender as u8);
        }
        input
    }

    /// Senders that are ready.
    fn ready(out: &Out) -> Vec<usize> {
        (0..INPUTS).filter(|&at| out.in_ready[at]).collect()
    }

    /// Sender and channel of the beat that goes, all of which is the sender's.
    fn goes(out: &Out) -> Option<(usize, u8, bool)> {
        if !out.out_valid {
            assert_eq!(*out, Out { in_ready: out.in_ready, ..Out::default() });
            return None;
        }
        let sender = out.out_data[0] as usize;
        assert_eq!(out.out_data[1], 100 + out.out_data[0]);
        let says = (out.out_to, out.out_route);
        assert_eq!(says, (3 * sender as u8 + 1, 0x10 + sender as u8));
        Some((sender, out.out_channel, out.out_last))
    }

    /// Sizes that gates cannot have are refused.
    #[test]
    fn sizes_are_bounded() {
        let builds = |inputs, channels| {
            std::panic::catch_unwind(|| PacketArb::new(inputs, channels)).is_ok()
        };
        assert!(builds(1, 1) && builds(4, 4));
        assert!(!builds(0, 1) && !builds(5, 1) && !builds(1, 0) && !builds(1, 5));
    }

    /// Senders take turns, packet by packet, and those that offer nothing are passed over.
    #[test]
    fn senders_take_turns() {
        let mut arb = PacketArb::new(3, 4);
        for (asking, first) in [
            (&[0, 1, 2][..], Some(0)),
            (&[0, 1, 2], Some(1)),
            (&[0, 1, 2], Some(2)),
            (&[], None),
            (&[0, 1, 2], Some(0)),
            (&[0, 2], Some(2)),
            (&[1, 2], Some(1)),
            (&[1], Some(1)),
            (&[0, 1], Some(0)),
        ] {
            let out = arb.cycle(singles(asking, ALL));
            assert_eq!(goes(&out).map(|it| it.0), first, "{asking:?}");
        }
    }

    /// A sender is ready if none before it offers a packet that can go, whether it offers one
    /// itself or not.
    #[test]
    fn a_sender_is_ready_before_it_offers() {
        let mut arb = PacketArb::new(3, 4);
        assert_eq!(ready(&arb.cycle(singles(&[], ALL))), [0, 1, 2]);
        assert_eq!(ready(&arb.cycle(singles(&[1], ALL))), [0, 1]);
        // Sender 2 is the next one.
        assert_eq!(ready(&arb.cycle(singles(&[1], ALL))), [0, 1, 2]);
        assert_eq!(ready(&arb.cycle(singles(&[0, 1], ALL))), [0, 2]);
    }

    /// The beats of a packet go without those of others between them, also if its sender pauses or
    /// its channel is not ready. They go into the channel of its first beat. The next packet
    /// follows in the next cycle.
    #[test]
    fn packets_are_not_mixed() {
        let mut arb = PacketArb::new(2, 3);
        let mut both = singles(&[0, 1], ALL);
        offer(&mut both, 0, false, 2);
        let out = arb.cycle(both);
        assert_eq!((goes(&out), ready(&out)), (Some((0, 2, false)), vec![0]));
        // It pauses.
        let out = arb.cycle(singles(&[1], ALL));
        assert_eq!((goes(&out), ready(&out)), (None, vec![0]));
        // Its channel does.
        offer(&mut both, 0, false, 1);
        both.out_ready = [true, true, false, true];
        let out = arb.cycle(both);
        assert_eq!((goes(&out), ready(&out)), (None, vec![]));
        both.out_ready = [false, false, true, false];
        assert_eq!(goes(&arb.cycle(both)), Some((0, 2, false)));
        offer(&mut both, 0, true, 0);
        assert_eq!(goes(&arb.cycle(both)), Some((0, 2, true)));
        both.out_ready = ALL;
        assert_eq!(goes(&arb.cycle(both)), Some((1, 1, true)));
        assert_eq!(goes(&arb.cycle(both)), Some((0, 0, true)));
    }

    /// A packet whose channel has no room lets the others pass. It keeps its turn, and goes as soon
    /// as there is room.
    #[test]
    fn a_packet_without_room_lets_others_pass() {
        let mut arb = PacketArb::new(2, 2);
        let only = |channel: usize| std::array::from_fn(|at| at == channel);
        let out = arb.cycle(singles(&[0, 1], only(1)));
        assert_eq!((goes(&out), ready(&out)), (Some((1, 1, true)), vec![1]));
        let out = arb.cycle(singles(&[0, 1], only(1)));
        assert_eq!((goes(&out), ready(&out)), (Some((1, 1, true)), vec![1]));
        assert_eq!(goes(&arb.cycle(singles(&[0, 1], [false; CHANNELS]))), None);
        assert_eq!(goes(&arb.cycle(singles(&[0, 1], ALL))), Some((0, 0, true)));
        assert_eq!(goes(&arb.cycle(singles(&[0, 1], ALL))), Some((1, 1, true)));
    }

    /// A channel that does not exist takes nothing, and stops nobody else.
    #[test]
    fn a_channel_that_does_not_exist_takes_nothing() {
        let mut arb = PacketArb::new(2, 3);
        let mut input = singles(&[0, 1], ALL);
        offer(&mut input, 0, true, 3);
        for _ in 0..3 {
            assert_eq!(goes(&arb.cycle(input)), Some((1, 1, true)));
        }
    }

    /// Two senders may use one channel: then they take turns there, too.
    #[test]
    fn senders_may_share_a_channel() {
        let mut arb = PacketArb::new(2, 1);
        let mut input = singles(&[0, 1], ALL);
        offer(&mut input, 1, true, 0);
        let order: Vec<_> = (0..4).map(|_| goes(&arb.cycle(input)).map(|it| it.0)).collect();
        assert_eq!(order, [Some(0), Some(1), Some(0), Some(1)]);
    }
}
