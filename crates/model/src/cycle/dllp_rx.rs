//! `dllp_rx`: checks the link layer's own packets and tells what they say (S-15, S-16), as
//! `hardware/dllp_rx` builds it.

use bellwire_wire::WireError;
use bellwire_wire::link::dllp::Dllp;

use super::credit_gate::{DATA_BITS, HEADER_BITS};
use super::fc_init::{STAGE_BITS, code_of};
use super::replay_buf::SEQUENCE_BITS;
use crate::smp::transport::CHANNELS;

crate::ports! {
    /// What enters in a cycle.
    pub struct In {
        /// A packet has come.
        dllp_valid: bool = 1,
        /// Its bytes.
        dllp_data: u64 = 64,
        /// The ACK or NAK is taken, if one is offered.
        ack_ready: bool = 1,
    }

    /// What stands at the outputs in a cycle.
    pub struct Out {
        /// An ACK or a NAK is offered.
        ack_valid: bool = 1,
        /// It is a NAK.
        ack_nak: bool = 1,
        /// All frames up to this number have come; zero if none is offered.
        ack_sequence: u16 = SEQUENCE_BITS,
        /// Credits of the channel have come in the cycle before.
        update_valid: [bool; CHANNELS] = CHANNELS,
        /// Their stage, in the code of `fc_init`; zero if none have come.
        update_stage: u8 = STAGE_BITS,
        /// The sum of all grants: headers; zero if none has come.
        update_headers: u8 = HEADER_BITS,
        /// Data credits.
        update_data: u16 = DATA_BITS,
        /// The packet of the cycle before was damaged.
        damaged: bool = 1,
        /// It was sound, and no end of this link sends it.
        unknown: bool = 1,
    }
}

/// The receiver of link packets.
///
/// An ACK waits until it is taken. If another one comes meanwhile, that one takes its place, as it
/// says all that the older one does. Only a NAK stays a NAK.
#[derive(Clone, Copy, Debug, Default)]
pub struct DllpRx {
    ack: Option<(bool, u16)>,
    packet: Option<Result<Dllp, WireError>>,
}

impl DllpRx {
    /// A receiver to which nothing has come.
    pub fn new() -> DllpRx {
        DllpRx::default()
    }

    /// One cycle.
    pub fn cycle(&mut self, input: In) -> Out {
        let mut out = Out::default();
        if let Some((is_nak, sequence)) = self.ack {
            (out.ack_valid, out.ack_nak, out.ack_sequence) = (true, is_nak, sequence);
        }
        match self.packet.take() {
            Some(Ok(Dllp::Credits { stage, channel, granted })) => {
                out.update_valid[usize::from(channel)] = true;
                out.update_stage = code_of(stage);
                (out.update_headers, out.update_data) = (granted.headers, granted.data);
            }
            Some(Err(WireError::Damaged { .. })) => out.damaged = true,
            Some(Err(_)) => out.unknown = true,
            Some(Ok(Dllp::Ack { .. } | Dllp::Nak { .. })) | None => {}
        }
        if input.ack_ready {
            self.ack = None;
        }
        if input.dllp_valid {
            let packet = Dllp::parse(&input.dllp_data.to_le_bytes());
            let was_nak = self.ack.is_some_and(|(is_nak, _)| is_nak);
            match packet {
                Ok(Dllp::Ack { sequence }) => self.ack = Some((was_nak, sequence)),
                Ok(Dllp::Nak { sequence }) => self.ack = Some((true, sequence)),
                _ => {}
            }
            self.packet = Some(packet);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bellwire_wire::link::dllp::{Granted, Stage};

    fn with(packet: Dllp, ack_ready: bool) -> In {
        let dllp_data = u64::from_le_bytes(packet.emit().unwrap());
        In { dllp_valid: true, dllp_data, ack_ready }
    }

    /// An ACK waits until it is taken; what comes meanwhile takes its place, and a NAK stays one.
    #[test]
    fn acknowledgements_wait() {
        let mut receiver = DllpRx::new();
        let ack = |out: Out| out.ack_valid.then_some((out.ack_nak, out.ack_sequence));
        assert_eq!(ack(receiver.cycle(with(Dllp::Ack { sequence: 5 }, false))), None);
        assert_eq!(ack(receiver.cycle(with(Dllp::Nak { sequence: 6 }, false))), Some((false, 5)));
        assert_eq!(ack(receiver.cycle(with(Dllp::Ack { sequence: 7 }, false))), Some((true, 6)));
        assert_eq!(ack(receiver.cycle(with(Dllp::Ack { sequence: 8 }, true))), Some((true, 7)));
        assert_eq!(ack(receiver.cycle(In { ack_ready: true, ..In::default() })), Some((false, 8)));
        assert_eq!(ack(receiver.cycle(In::default())), None);
    }

    /// All three kinds of credits go to their channel, in the next cycle only. What is damaged says
    /// nothing, and neither does what no end sends.
    #[test]
    fn credits_go_to_their_channel() {
        let mut receiver = DllpRx::new();
        let granted = Granted { headers: 0x81, data: 0x923 };
        for stage in [Stage::Init1, Stage::Init2, Stage::Update] {
            for channel in 0..2 {
                let credits = Dllp::Credits { stage, channel, granted };
                receiver.cycle(with(credits, false));
                let out = receiver.cycle(In::default());
                assert_eq!(out.update_valid, [channel == 0, channel == 1]);
                assert_eq!(out.update_stage, code_of(stage));
                assert_eq!((out.update_headers, out.update_data), (0x81, 0x923));
                assert_eq!(receiver.cycle(In::default()), Out::default());
            }
        }
        let sound = with(Dllp::Ack { sequence: 5 }, false);
        receiver.cycle(In { dllp_data: sound.dllp_data ^ 1 << 20, ..sound });
        assert_eq!(receiver.cycle(In::default()), Out { damaged: true, ..Out::default() });
    }
}
