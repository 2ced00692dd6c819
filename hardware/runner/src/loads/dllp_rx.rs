//! Link packets of all kinds, of which some are damaged, have reserved bits or a type that no end
//! sends, and a replay buffer that takes acknowledgements late.

use bellwire_model::cycle::dllp_rx::{DllpRx, In, Out};
use bellwire_model::engine::Random;
use bellwire_wire::link::dllp::{DLLP_BYTES, SDP, crc16};
use bellwire_wire::link::llp::END;

use crate::bench::Load;

/// A receiver of link packets.
pub struct DllpRxLoad {
    receiver: DllpRx,
    random: Random,
    /// Of eight cycles, how many bring a packet and take an acknowledgement; of eight packets, how
    /// many are damaged.
    rates: [u64; 3],
}

impl DllpRxLoad {
    /// A receiver.
    pub fn new(seed: u64) -> DllpRxLoad {
        DllpRxLoad { receiver: DllpRx::new(), random: Random::new(seed), rates: [4; 3] }
    }
}

/// The bytes of a packet with a right CRC, whose content is mostly one that some end sends.
fn packet(random: &mut Random) -> [u8; DLLP_BYTES] {
    let known = [0x00, 0x10, 0x40, 0x41, 0xc0, 0xc1, 0x80, 0x81];
    let kind = match random.below(8) {
        0 => random.word() as u8,
        1 => known[random.below(8) as usize] ^ 1 << random.below(8),
        _ => known[random.below(8) as usize],
    };
    // Mostly what the type has, with a bit that it reserves at times.
    let is_short = (kind & !0x10 == 0) != (random.below(8) == 0);
    let fields = if is_short { 0xfff } else { 0x3f_cfff };
    let reserved = if random.below(4) == 0 { 1 << random.below(24) } else { 0 };
    let word = random.word() as u32 & fields | reserved;
    let [_, high, middle, low] = word.to_be_bytes();
    let content = [kind, high, middle, low];
    let [c1, c0] = crc16(&content).to_be_bytes();
    [SDP, kind, high, middle, low, c1, c0, END]
}

impl Load for DllpRxLoad {
    type In = In;
    type Out = Out;

    fn step(&mut self) -> (In, Out) {
        let random = &mut self.random;
        if random.below(256) == 0 {
            self.rates = [random.below(9), random.below(9), random.below(3)];
        }
        let [comes, takes, damaged] = self.rates;
        let mut input = In { ack_ready: random.below(8) < takes, ..In::default() };
        if random.below(8) < comes {
            let mut data = u64::from_le_bytes(packet(random));
            if random.below(8) < damaged {
                let flips = [1, random.word() >> random.below(64)][random.below(2) as usize];
                data ^= flips << random.below(64);
            }
            (input.dllp_valid, input.dllp_data) = (true, data);
        }
        (input, self.receiver.cycle(input))
    }
}
