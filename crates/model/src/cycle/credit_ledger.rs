//! `credit_ledger`: the receiver's credits of one virtual channel (S-15), as
//! `hardware/credit_ledger` builds it.

use bellwire_protocol::link_layer::{self, Cost};

use super::credit_gate::{DATA_BITS, HEADER_BITS};

crate::ports! {
    /// What enters in a cycle.
    pub struct In {
        /// A packet comes into the buffer, if it has room.
        in_valid: bool = 1,
        /// Data credits that it takes; it also takes one header credit.
        in_cost: u16 = DATA_BITS,
        /// A packet leaves the buffer.
        leave_valid: bool = 1,
        /// Data credits that it gives back.
        leave_cost: u16 = DATA_BITS,
        /// An update is taken, if one is offered.
        update_ready: bool = 1,
    }

    /// What stands at the outputs in a cycle.
    pub struct Out {
        /// The buffer has room for the packet. If it has none, the sender does not count right.
        in_ready: bool = 1,
        /// The sender should be told what is granted.
        update_valid: bool = 1,
        /// The sum of all grants: headers, modulo 2^8.
        update_headers: u8 = HEADER_BITS,
        /// Data credits, modulo 2^12.
        update_data: u16 = DATA_BITS,
    }
}

/// The protocol's ledger, and when the sender is told of it: at first, after a packet has left, and
/// again `again_after` cycles after an update was taken, for that one may be lost.
#[derive(Clone, Copy, Debug)]
pub struct CreditLedger {
    ledger: link_layer::CreditLedger,
    is_due: bool,
    /// Cycles since an update was taken.
    waited: u64,
    again_after: u64,
}

impl CreditLedger {
    /// A buffer for `headers` packets with `data` credits of payload in all.
    pub fn new(headers: u8, data: u16, again_after: u64) -> CreditLedger {
        let ledger = link_layer::CreditLedger::new(headers, data);
        CreditLedger { ledger, is_due: true, waited: 0, again_after }
    }

    /// One cycle.
    #[inline]
    pub fn cycle(&mut self, input: In) -> Out {
        let before = self.ledger;
        let has_room = self.ledger.enter(Cost { data: input.in_cost }).is_ok();
        if !(input.in_valid && has_room) {
            self.ledger = before;
        }
        if input.leave_valid {
            self.ledger.leave(Cost { data: input.leave_cost });
        }
        let granted = before.granted();
        let out = Out {
            in_ready: has_room,
            update_valid: self.is_due,
            update_headers: granted.headers,
            update_data: granted.data,
        };
        let is_again = !self.is_due && self.waited == self.again_after;
        self.waited = if self.is_due { 1 } else { self.waited + 1 };
        self.is_due = input.leave_valid || is_again || (self.is_due && !input.update_ready);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first update has all of the buffer. One more is due after a packet has left, and again
    /// if nothing happens.
    #[test]
    fn an_update_is_due_after_a_packet_has_left_and_again() {
        let mut ledger = CreditLedger::new(2, 4, 3);
        let mut cycle = |enters: Option<u16>, leaves: Option<u16>| {
            let input = In {
                in_valid: enters.is_some(),
                in_cost: enters.unwrap_or(0),
                leave_valid: leaves.is_some(),
                leave_cost: leaves.unwrap_or(0),
                update_ready: true,
            };
            let out = ledger.cycle(input);
            let update = out.update_valid.then_some((out.update_headers, out.update_data));
            (out.in_ready, update)
        };
        assert_eq!(cycle(Some(3), None), (true, Some((2, 4))));
        assert_eq!(cycle(Some(2), None), (false, None));
        assert_eq!(cycle(Some(1), None), (true, None));
        assert_eq!(cycle(Some(0), Some(3)), (false, None));
        assert_eq!(cycle(Some(3), None), (true, Some((3, 7))));
        assert_eq!([(); 3].map(|()| cycle(None, None).1), [None; 3]);
        assert_eq!(cycle(None, None).1, Some((3, 7)));
    }
}
