//! Packets of all sizes come and leave at rates that change, also more than there is room for.

use std::collections::VecDeque;

use bellwire_model::cycle::credit_ledger::{CreditLedger, In, Out};
use bellwire_model::engine::Random;

use crate::bench::Load;

/// A ledger with its buffer.
pub struct CreditLedgerLoad {
    ledger: CreditLedger,
    random: Random,
    /// What the packets in the buffer take.
    held: VecDeque<u16>,
    /// Of eight cycles, how many bring a packet, let one leave, and take an update.
    rates: [u64; 3],
    /// Data credits of a packet, at most; and of the buffer.
    longest: u64,
    data: u64,
}

impl CreditLedgerLoad {
    /// A ledger with its parameters.
    pub fn new(headers: u8, data: u16, again_after: u64, seed: u64) -> CreditLedgerLoad {
        CreditLedgerLoad {
            ledger: CreditLedger::new(headers, data, again_after),
            random: Random::new(seed),
            held: VecDeque::new(),
            rates: [4; 3],
            longest: 1,
            data: data.into(),
        }
    }
}

impl Load for CreditLedgerLoad {
    type In = In;
    type Out = Out;

    fn step(&mut self) -> (In, Out) {
        let random = &mut self.random;
        if random.below(256) == 0 {
            // At times nothing happens for so long that an update is repeated.
            self.rates = match random.below(4) {
                0 => [0, 0, 8],
                _ => [random.below(9), random.below(9), random.below(9)],
            };
            self.longest = [0, 1, self.data / 3, self.data + 1][random.below(4) as usize];
        }
        let [in_valid, leaves, update_ready] = self.rates.map(|rate| random.below(8) < rate);
        let mut input = In { in_valid, update_ready, ..In::default() };
        input.in_cost = random.below(self.longest + 1) as u16;
        if let Some(cost) = if leaves { self.held.pop_front() } else { None } {
            input.leave_valid = true;
            input.leave_cost = cost;
        }
        let out = self.ledger.cycle(input);
        if in_valid && out.in_ready {
            self.held.push_back(input.in_cost);
        }
        (input, out)
    }
}
