//! `rx_ack`: the receiver of the SMP link (S-16), which takes frames in order, once each, and says
//! when to acknowledge them, as `hardware/rx_ack` builds it.

use bellwire_protocol::link_layer::{Arrival, Receiver};
use bellwire_wire::link::dllp::Dllp;

use super::replay_buf::SEQUENCE_BITS;

crate::ports! {
    /// What enters in a cycle.
    pub struct In {
        /// A frame has come, and its CRC was checked.
        frame_valid: bool = 1,
        /// The CRC was wrong, so the number is unknown.
        frame_damaged: bool = 1,
        /// The frame's number.
        frame_sequence: u16 = SEQUENCE_BITS,
        /// An ACK or NAK is taken, if one is offered.
        ack_ready: bool = 1,
    }

    /// What stands at the outputs in a cycle.
    pub struct Out {
        /// The frame is the expected one: it is delivered.
        deliver: bool = 1,
        /// It has come before, and is dropped.
        repeated: bool = 1,
        /// It is damaged, or an earlier one is missing: it is dropped, and will come again.
        discarded: bool = 1,
        /// An ACK or NAK should go.
        ack_valid: bool = 1,
        /// It is a NAK.
        ack_nak: bool = 1,
        /// All frames up to this number have come; zero if none should go.
        ack_sequence: u16 = SEQUENCE_BITS,
    }
}

/// The protocol's receiver, one frame and one acknowledgement a cycle.
///
/// What is offered tells of all frames before this cycle. It changes with what comes until it is
/// taken.
#[derive(Clone, Copy)]
pub struct RxAck {
    receiver: Receiver,
    now: u64,
}

impl RxAck {
    /// Expects frame 0 first, and acknowledges a frame after `acknowledge_after` cycles at most.
    pub fn new(acknowledge_after: u64) -> RxAck {
        RxAck { receiver: Receiver::new(acknowledge_after), now: 0 }
    }

    /// One cycle.
    #[inline]
    pub fn cycle(&mut self, input: In) -> Out {
        let mut out = Out::default();
        let mut told = self.receiver;
        if let Some(packet) = told.poll(self.now) {
            out.ack_valid = true;
            (out.ack_nak, out.ack_sequence) = match packet {
                Dllp::Nak { sequence } => (true, sequence),
                Dllp::Ack { sequence } => (false, sequence),
                Dllp::Credits { .. } => unreachable!("a receiver only acknowledges"),
            };
            if input.ack_ready {
                self.receiver = told;
            }
        }
        if input.frame_valid {
            let arrival = match input.frame_damaged {
                true => self.receiver.handle_damaged(),
                false => self.receiver.handle_frame(self.now, input.frame_sequence),
            };
            out.deliver = arrival == Arrival::Deliver;
            out.repeated = arrival == Arrival::Repeated;
            out.discarded = arrival == Arrival::OutOfOrder;
        }
        self.now += 1;
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::smp::config::Config;

    /// The paper's link acknowledges within 69 of its cycles.
    #[test]
    fn the_papers_receiver_waits_69_cycles() {
        let config = Config::recommended();
        assert_eq!(config.acknowledge_after.ps().div_ceil(config.cycle().ps()), 69);
    }

    /// Frames in order are acknowledged together, after the first of them has waited; a gap is told
    /// in the next cycle, once, and so is a frame that came again.
    #[test]
    fn frames_in_order_wait_and_a_gap_does_not() {
        let mut receiver = RxAck::new(3);
        let mut cycle = |frame: Option<u16>| {
            let input = In {
                frame_valid: frame.is_some(),
                frame_damaged: false,
                frame_sequence: frame.unwrap_or(0),
                ack_ready: true,
            };
            let out = receiver.cycle(input);
            let what = [out.deliver, out.repeated, out.discarded].iter().position(|&is| is);
            (what, out.ack_valid.then_some((out.ack_nak, out.ack_sequence)))
        };
        assert_eq!(cycle(Some(0)), (Some(0), None));
        assert_eq!(cycle(Some(1)), (Some(0), None));
        assert_eq!(cycle(None), (None, None));
        assert_eq!(cycle(Some(3)), (Some(2), Some((false, 1))));
        assert_eq!(cycle(Some(4)), (Some(2), Some((true, 1))));
        assert_eq!(cycle(Some(1)), (Some(1), None));
        assert_eq!(cycle(Some(2)), (Some(0), Some((false, 1))));
        assert_eq!([(); 3].map(|()| cycle(None).1), [None, None, Some((false, 2))]);
    }
}
