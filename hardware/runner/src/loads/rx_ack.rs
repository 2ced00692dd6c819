//! Frames in order, again, too early, damaged or with any number, and a sender that is told late.

use bellwire_model::cycle::replay_buf::SEQUENCE_BITS;
use bellwire_model::cycle::rx_ack::{In, Out, RxAck};
use bellwire_model::engine::Random;

use crate::bench::Load;

/// A receiver with its line.
pub struct RxAckLoad {
    receiver: RxAck,
    random: Random,
    /// Frames that were delivered.
    delivered: u64,
    /// Of eight cycles, how many bring a frame and take an acknowledgement; of eight frames, how
    /// many are not the next one.
    rates: [u64; 3],
}

impl RxAckLoad {
    /// A receiver with its parameter.
    pub fn new(acknowledge_after: u64, seed: u64) -> RxAckLoad {
        let (receiver, random) = (RxAck::new(acknowledge_after), Random::new(seed));
        RxAckLoad { receiver, random, delivered: 0, rates: [4; 3] }
    }
}

impl Load for RxAckLoad {
    type In = In;
    type Out = Out;

    fn step(&mut self) -> (In, Out) {
        let random = &mut self.random;
        if random.below(256) == 0 {
            self.rates = [random.below(9), random.below(9), [0, 1, 8][random.below(3) as usize]];
        }
        let [frame_valid, ack_ready, wrong] = self.rates.map(|rate| random.below(8) < rate);
        let number = match random.below(8) {
            _ if !wrong => self.delivered,
            0 => random.word(),
            1 => self.delivered + (1 << random.below(SEQUENCE_BITS as u64)),
            2..4 => self.delivered.wrapping_sub(random.below(4)),
            _ => self.delivered + random.below(4),
        };
        let input = In {
            frame_valid,
            frame_damaged: wrong && random.below(4) == 0,
            frame_sequence: (number % (1 << SEQUENCE_BITS)) as u16,
            ack_ready,
        };
        let out = self.receiver.cycle(input);
        self.delivered += u64::from(out.deliver);
        (input, out)
    }
}
