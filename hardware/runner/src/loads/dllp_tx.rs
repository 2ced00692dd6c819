//! Acknowledgements and credits at rates that change, and a line that takes packets at times.

use bellwire_model::cycle::credit_gate::DATA_BITS;
use bellwire_model::cycle::dllp_tx::{self, In, Out};
use bellwire_model::cycle::replay_buf::SEQUENCE_BITS;
use bellwire_model::engine::Random;

use crate::bench::Load;

/// The gates of both ends' news.
pub struct DllpTxLoad {
    random: Random,
    /// Of eight cycles, how many have an acknowledgement and an update, and take a packet.
    rates: [u64; 3],
}

impl DllpTxLoad {
    /// A load.
    pub fn new(seed: u64) -> DllpTxLoad {
        DllpTxLoad { random: Random::new(seed), rates: [4; 3] }
    }
}

impl Load for DllpTxLoad {
    type In = In;
    type Out = Out;

    fn step(&mut self) -> (In, Out) {
        let random = &mut self.random;
        if random.below(256) == 0 {
            self.rates = self.rates.map(|_| random.below(9));
        }
        let [acks, updates, takes] = self.rates;
        let input = In {
            ack_valid: random.below(8) < acks,
            ack_nak: random.below(2) == 0,
            ack_sequence: random.below(1 << SEQUENCE_BITS) as u16,
            update_valid: [(); 2].map(|()| random.below(8) < updates),
            update_stage: [(); 2].map(|()| 1 + random.below(3) as u8),
            update_headers: [(); 2].map(|()| random.word() as u8),
            update_data: [(); 2].map(|()| random.below(1 << DATA_BITS) as u16),
            dllp_ready: random.below(8) < takes,
        };
        (input, dllp_tx::cycle(input))
    }
}
