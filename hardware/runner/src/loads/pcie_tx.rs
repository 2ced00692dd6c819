//! Reads, writes and answers at rates that change, below and above 4 GiB and around ends of pages;
//! a link that stalls, or has no room for reads; and at times what cannot be a TLP.

use bellwire_model::cycle::pcie_tx::{In, Out, PcieTx};
use bellwire_model::engine::Random;

use crate::bench::Load;

/// The transmitter between its senders and the link.
pub struct PcieTxLoad {
    transmit: PcieTx,
    random: Random,
    /// What stands at the inputs until it is taken, and beats of the write that are left.
    asks: In,
    left: u64,
    mood: Mood,
}

/// What the next cycles are like.
#[derive(Clone, Copy)]
struct Mood {
    /// Of eight cycles, how many have a read, a beat of a write, an answer, room for a read, and a
    /// link that is ready.
    rates: [u64; 5],
    /// Bytes of a request, mostly.
    most: u64,
    /// Of 64 requests, how many are of any length at any address.
    wrong: u64,
}

impl PcieTxLoad {
    /// An idle one.
    pub fn new(max_read: usize, max_payload: usize, seed: u64) -> PcieTxLoad {
        PcieTxLoad {
            transmit: PcieTx::new(max_read, max_payload),
            random: Random::new(seed),
            asks: In::default(),
            left: 0,
            mood: Mood { rates: [8; 5], most: 64, wrong: 0 },
        }
    }

    fn change_mood(&mut self) {
        let random = &mut self.random;
        let mut one_of = |all: &[u64]| all[random.below(all.len() as u64) as usize];
        self.mood = Mood {
            rates: [(); 5].map(|()| one_of(&[0, 1, 4, 8, 8])),
            most: one_of(&[4, 16, 48, 128, 256]),
            wrong: one_of(&[0, 0, 1, 32]),
        };
        self.asks.device = random.below(1 << 13) as u16;
    }

    /// Where a request lies: mostly whole in a page.
    fn place(&mut self) -> (u64, u16) {
        let random = &mut self.random;
        let high = if random.below(2) == 0 { 0 } else { random.below(1 << 8) << 32 };
        let page = high | random.below(1 << 20) << 12;
        let bytes = 1 + random.below(self.mood.most);
        if random.below(64) < self.mood.wrong {
            return match random.below(4) {
                0 => (page | random.below(4096), random.below(1 << 13) as u16),
                // Across the end of the page, about as long as may be, and without bytes.
                1 => (page + 4095 - random.below(bytes), bytes as u16),
                2 => (page, (126 + random.below(5)) as u16),
                _ => (page + random.below(16), 0),
            };
        }
        let at = match random.below(4) {
            0 => 4096 - bytes,
            1 => 0,
            _ => random.below(4097 - bytes),
        };
        (page + at, bytes as u16)
    }

    fn answer(&mut self) {
        let random = &mut self.random;
        let asks = &mut self.asks;
        asks.answer_valid = true;
        asks.answer_function = random.below(8) as u8;
        asks.answer_requester = random.below(1 << 16) as u16;
        asks.answer_tag = random.below(1 << 8) as u8;
        asks.answer_class = random.below(8) as u8;
        asks.answer_attributes = random.below(8) as u8;
        asks.answer_status = random.below(8) as u8;
        asks.answer_count = random.below(1 << 12) as u16;
        asks.answer_lower = random.below(1 << 7) as u8;
        asks.answer_has_data = random.below(2) == 0;
        asks.answer_data = random.word() as u32;
    }
}

impl Load for PcieTxLoad {
    type In = In;
    type Out = Out;

    fn step(&mut self) -> (In, Out) {
        if self.random.below(256) == 0 {
            self.change_mood();
        }
        let [reads, writes, answers, credits, takes] = self.mood.rates;
        if !self.asks.read_valid && self.random.below(8) < reads {
            self.asks.read_valid = true;
            (self.asks.read_address, self.asks.read_bytes) = self.place();
            self.asks.read_function = self.random.below(8) as u8;
            self.asks.read_tag = self.random.below(1 << 8) as u8;
        }
        if !self.asks.write_valid && self.random.below(8) < writes {
            if self.left == 0 {
                (self.asks.write_address, self.asks.write_bytes) = self.place();
                self.asks.write_function = self.random.below(8) as u8;
                let end = self.asks.write_address % 16 + u64::from(self.asks.write_bytes);
                self.left = end.div_ceil(16).max(1);
            }
            self.asks.write_valid = true;
            self.asks.write_last = self.left == 1;
            self.asks.write_data = [(); 2].map(|()| self.random.word());
        }
        if !self.asks.answer_valid && self.random.below(8) < answers {
            self.answer();
        }
        let input = In {
            read_credit: self.random.below(8) < credits,
            out_ready: self.random.below(8) < takes,
            ..self.asks
        };
        let out = self.transmit.cycle(input);
        self.asks.read_valid &= !out.read_ready;
        self.left -= u64::from(input.write_valid && out.write_ready);
        self.asks.write_valid &= !out.write_ready;
        self.asks.answer_valid &= !out.answer_ready;
        (input, out)
    }
}
