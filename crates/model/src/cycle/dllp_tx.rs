//! `dllp_tx`: makes the link layer's own packets (S-15, S-16), as `hardware/dllp_tx` builds it.

use bellwire_wire::link::dllp::{Dllp, Granted};

use super::credit_gate::{DATA_BITS, HEADER_BITS};
use super::fc_init::{STAGE_BITS, stage_of};
use super::replay_buf::SEQUENCE_BITS;
use crate::smp::transport::CHANNELS;

crate::ports! {
    /// What enters in a cycle.
    pub struct In {
        /// An ACK or a NAK should go.
        ack_valid: bool = 1,
        /// It is a NAK.
        ack_nak: bool = 1,
        /// All frames up to this number have come.
        ack_sequence: u16 = SEQUENCE_BITS,
        /// The channel's credits should go.
        update_valid: [bool; CHANNELS] = CHANNELS,
        /// The stage of that packet, in the code of `fc_init`: zero does not occur.
        update_stage: [u8; CHANNELS] = CHANNELS * STAGE_BITS,
        /// The sum of all grants: headers.
        update_headers: [u8; CHANNELS] = CHANNELS * HEADER_BITS,
        /// Data credits.
        update_data: [u16; CHANNELS] = CHANNELS * DATA_BITS,
        /// The packet is taken, if one is offered.
        dllp_ready: bool = 1,
    }

    /// What stands at the outputs in a cycle.
    pub struct Out {
        /// The ACK or NAK is taken.
        ack_ready: bool = 1,
        /// The channel's update is taken.
        update_ready: [bool; CHANNELS] = CHANNELS,
        /// A packet is offered.
        dllp_valid: bool = 1,
        /// Its bytes; zero if none is offered.
        dllp_data: u64 = 64,
    }
}

/// What goes in a cycle: acknowledgements first, then credits, those of channel 0 first.
///
/// The packet is made in the cycle in which the line takes it, so that it tells the latest.
pub fn cycle(input: In) -> Out {
    let channel = input.update_valid.iter().position(|&is_due| is_due);
    let sequence = input.ack_sequence;
    let packet = match channel {
        _ if input.ack_valid && input.ack_nak => Some(Dllp::Nak { sequence }),
        _ if input.ack_valid => Some(Dllp::Ack { sequence }),
        Some(channel) => {
            let (headers, data) = (input.update_headers[channel], input.update_data[channel]);
            let granted = Granted { headers, data };
            let stage = stage_of(input.update_stage[channel]);
            Some(Dllp::Credits { stage, channel: channel as u8, granted })
        }
        None => None,
    };
    let bytes = packet.map(|packet| packet.emit().expect("its numbers fit their fields"));
    let is_turn = |at| input.dllp_ready && !input.ack_valid && channel.is_none_or(|it| it >= at);
    Out {
        ack_ready: input.dllp_ready,
        update_ready: std::array::from_fn(is_turn),
        dllp_valid: bytes.is_some(),
        dllp_data: bytes.map_or(0, u64::from_le_bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bellwire_wire::link::dllp::Stage;

    /// Of all that waits, the acknowledgement goes first, then channel 0, then channel 1.
    #[test]
    fn acknowledgements_go_first() {
        let mut input = In {
            ack_valid: true,
            ack_nak: true,
            ack_sequence: 0x123,
            update_valid: [true; 2],
            update_stage: [1, 2],
            update_headers: [1, 2],
            update_data: [3, 4],
            dllp_ready: true,
        };
        let credits = |stage, channel, headers, data| {
            let granted = Granted { headers, data };
            Dllp::Credits { stage, channel, granted }
        };
        let went = |input: In, ready: [bool; 3]| {
            let out = cycle(input);
            assert_eq!([out.ack_ready, out.update_ready[0], out.update_ready[1]], ready);
            Dllp::parse(&out.dllp_data.to_le_bytes()).unwrap()
        };
        assert_eq!(went(input, [true, false, false]), Dllp::Nak { sequence: 0x123 });
        input.ack_nak = false;
        assert_eq!(went(input, [true, false, false]), Dllp::Ack { sequence: 0x123 });
        input.ack_valid = false;
        assert_eq!(went(input, [true, true, false]), credits(Stage::Init1, 0, 1, 3));
        input.update_valid[0] = false;
        assert_eq!(went(input, [true; 3]), credits(Stage::Update, 1, 2, 4));
        assert_eq!(
            went(In { dllp_ready: false, ..input }, [false; 3]),
            credits(Stage::Update, 1, 2, 4)
        );
        let second = In { update_stage: [2, 3], ..input };
        assert_eq!(went(second, [true; 3]), credits(Stage::Init2, 1, 2, 4));
        let none = cycle(In { update_valid: [false; 2], ..input });
        assert_eq!((none.dllp_valid, none.dllp_data), (false, 0));
    }
}
