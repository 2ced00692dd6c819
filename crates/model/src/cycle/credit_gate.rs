//! `credit_gate`: the sender's credits of one virtual channel (S-15), as `hardware/credit_gate`
//! builds it.

use bellwire_protocol::link_layer::{self, Cost, DATA_MODULUS, Lacking};
use bellwire_wire::link::dllp::Granted;

/// Bits of a count of header credits, and of data credits.
pub const HEADER_BITS: usize = u8::BITS as usize;
/// See [`HEADER_BITS`].
pub const DATA_BITS: usize = DATA_MODULUS.ilog2() as usize;

crate::ports! {
    /// What enters in a cycle.
    pub struct In {
        /// A packet goes, if its credits are there.
        in_valid: bool = 1,
        /// Data credits that it takes; it also takes one header credit.
        in_cost: u16 = DATA_BITS,
        /// The receiver reports the sum of its grants, modulo 2^8 and 2^12.
        update_valid: bool = 1,
        /// Header credits.
        update_headers: u8 = HEADER_BITS,
        /// Data credits.
        update_data: u16 = DATA_BITS,
    }

    /// What stands at the outputs in a cycle.
    pub struct Out {
        /// The credits of the packet are there.
        in_ready: bool = 1,
        /// There is no header credit.
        lacks_header: bool = 1,
        /// There is one, and there are too few data credits.
        lacks_data: bool = 1,
        /// Credits that are left.
        left_headers: u8 = HEADER_BITS,
        /// Data credits that are left.
        left_data: u16 = DATA_BITS,
    }
}

/// The protocol's gate, one packet and one update a cycle.
///
/// `in_ready` follows `in_cost` in the same cycle. An update counts from the next cycle on.
#[derive(Clone, Copy, Debug, Default)]
pub struct CreditGate {
    gate: link_layer::CreditGate,
}

impl CreditGate {
    /// A gate without credits.
    pub fn new() -> CreditGate {
        CreditGate::default()
    }

    /// One cycle.
    #[inline]
    pub fn cycle(&mut self, input: In) -> Out {
        let cost = Cost { data: input.in_cost };
        let lacks = self.gate.allows(cost).err();
        let (left_headers, left_data) = self.gate.left();
        if input.in_valid && lacks.is_none() {
            self.gate.spend(cost);
        }
        if input.update_valid {
            let (headers, data) = (input.update_headers, input.update_data);
            self.gate.handle_granted(Granted { headers, data });
        }
        Out {
            in_ready: lacks.is_none(),
            lacks_header: lacks == Some(Lacking::Header),
            lacks_data: lacks == Some(Lacking::Data),
            left_headers,
            left_data,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet goes with its last credits, and in the cycle in which credits come not yet.
    #[test]
    fn a_packet_goes_if_its_credits_are_there() {
        let mut gate = CreditGate::new();
        let mut cycle = |in_cost, update: Option<(u8, u16)>| {
            let (update_headers, update_data) = update.unwrap_or_default();
            let update_valid = update.is_some();
            let input = In { in_valid: true, in_cost, update_valid, update_headers, update_data };
            let out = gate.cycle(input);
            (out.in_ready, out.lacks_header, out.lacks_data, out.left_headers, out.left_data)
        };
        assert_eq!(cycle(0, Some((2, 4))), (false, true, false, 0, 0));
        assert_eq!(cycle(5, None), (false, false, true, 2, 4));
        assert_eq!(cycle(4, None), (true, false, false, 2, 4));
        assert_eq!(cycle(0, None), (true, false, false, 1, 0));
        assert_eq!(cycle(0, Some((3, 3))), (false, true, false, 0, 0));
        assert_eq!(cycle(4095, None), (true, false, false, 1, 4095));
    }
}
