//! Requests at rates that change, mostly of registers; values that change; and a transmitter that
//! is busy at times.

use bellwire_model::cycle::completer::{Completer, In, Out, REGISTERS};
use bellwire_model::engine::Random;

use crate::bench::Load;

/// The completer between the receiver and the transmitter.
pub struct CompleterLoad {
    completer: Completer,
    random: Random,
    page: u16,
    /// The request that is offered until it is taken, and values.
    asks: In,
    /// Of eight cycles, how many have a request, and a transmitter that is ready.
    rates: [u64; 2],
}

impl CompleterLoad {
    /// One with so many registers in this page.
    pub fn new(registers: usize, page: u16, seed: u64) -> CompleterLoad {
        CompleterLoad {
            completer: Completer::new(registers, page),
            random: Random::new(seed),
            page,
            asks: In::default(),
            rates: [8; 2],
        }
    }
}

impl Load for CompleterLoad {
    type In = In;
    type Out = Out;

    fn step(&mut self) -> (In, Out) {
        let random = &mut self.random;
        if random.below(256) == 0 {
            self.rates = [(); 2].map(|()| [1, 4, 8, 8][random.below(4) as usize]);
        }
        let [asks, takes] = self.rates;
        if random.below(4) == 0 {
            self.asks.value[random.below(REGISTERS as u64) as usize] = random.word() as u32;
        }
        if !self.asks.request_valid && random.below(8) < asks {
            let page = if random.below(4) == 0 { random.below(16) as u16 } else { self.page };
            let place = if random.below(4) == 0 { 1 << 10 } else { 18 };
            self.asks = In {
                request_valid: true,
                request_is_read: random.below(8) > 0,
                request_address: page << 12 | (random.below(place) << 2) as u16,
                request_requester: random.below(1 << 16) as u16,
                request_tag: random.below(1 << 8) as u8,
                request_class: random.below(8) as u8,
                request_attributes: random.below(8) as u8,
                request_count: random.below(1 << 12) as u16,
                request_lower: random.below(1 << 7) as u8,
                ..self.asks
            };
        }
        let input = In { answer_ready: random.below(8) < takes, ..self.asks };
        let out = self.completer.cycle(input);
        self.asks.request_valid &= !out.request_ready;
        (input, out)
    }
}
