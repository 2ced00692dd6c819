//! Packets of all kinds and lengths, some with wrong headers, keys, targets and lengths; slots and
//! records that are there or not; and a bus that stalls.

use std::collections::VecDeque;

use bellwire_model::cycle::data_reorder::LANES;
use bellwire_model::cycle::upload::{In, Out, Upload};
use bellwire_model::engine::Random;
use bellwire_wire::endpoint::Endpoint;
use bellwire_wire::header::{HeaderRepr, MAX_NAP_BYTES};
use bellwire_wire::packet::PacketRepr;
use bellwire_wire::primitive::Primitive;
use bellwire_wire::span::ByteSpan;
use bellwire_wire::tail::Tail;

use crate::bench::Load;

/// Addresses end here.
const ADDRESSES: u64 = 1 << 40;
/// Slots in all of memory.
const SLOTS: u64 = ADDRESSES / MAX_NAP_BYTES as u64;

/// The upload module between a crossbar and a bus.
pub struct UploadLoad {
    upload: Upload,
    random: Random,
    cpu: u8,
    /// Beats of packets that are still to come.
    beats: VecDeque<In>,
    mood: Mood,
}

/// What the next cycles are like.
#[derive(Clone, Copy)]
struct Mood {
    /// Of eight cycles, how many offer a beat, take a beat, have a slot, take an event, and have a
    /// place in the ring.
    rates: [u64; 5],
    /// Bytes of a packet, at most.
    longest: u64,
    /// Of 64 packets, how many are wrong; of 64 answers, how many.
    wrong: [u64; 2],
    /// Of 64 cycles, in how many list and ring are closed.
    closed: u64,
}

impl UploadLoad {
    /// An idle one whose writes have up to `most` bytes.
    pub fn new(most: usize, seed: u64) -> UploadLoad {
        let mut random = Random::new(seed);
        UploadLoad {
            upload: Upload::new(most),
            cpu: random.below(16) as u8,
            random,
            beats: VecDeque::new(),
            mood: Mood { rates: [8; 5], longest: 128, wrong: [0; 2], closed: 0 },
        }
    }

    fn change_mood(&mut self) {
        let random = &mut self.random;
        let mut one_of = |all: &[u64]| all[random.below(all.len() as u64) as usize];
        self.mood = Mood {
            rates: [
                one_of(&[1, 4, 8, 8]),
                one_of(&[0, 1, 4, 8, 8, 8, 8]),
                one_of(&[0, 1, 8, 8, 8, 8]),
                one_of(&[0, 1, 8, 8, 8, 8]),
                one_of(&[0, 1, 8, 8, 8, 8]),
            ],
            longest: one_of(&[4, 4, 40, 40, 150, 150, 150, 4096]),
            wrong: [one_of(&[0, 4, 32]), one_of(&[0, 2, 16])],
            closed: one_of(&[0, 0, 4]),
        };
    }

    /// A packet, which may be wrong.
    fn packet(&mut self) {
        let Mood { longest, wrong, .. } = self.mood;
        let random = &mut self.random;
        let wrong = (random.below(64) < wrong[0]).then(|| random.below(8));
        let primitive = match random.below(16) {
            0 => Primitive::Get,
            1..6 => Primitive::Nap,
            _ => Primitive::Put,
        };
        let most = match primitive {
            Primitive::Nap => longest.min(MAX_NAP_BYTES as u64),
            _ => longest.min(4093),
        };
        let length = match random.below(8) {
            0 => 0,
            1 => most,
            2 => 1 + random.below(4),
            _ => random.below(most + 1),
        };
        let room = ADDRESSES - length;
        let address = match random.below(8) {
            _ if primitive != Primitive::Put => 0,
            0 => room.min(ADDRESSES - 1),
            // A carry goes through its bits.
            1 | 2 => room.min((1 << (8 + random.below(32))) - random.below(200)),
            3 => random.below(ADDRESSES >> 12) << 12,
            _ => random.below(room),
        };
        let of = |cpu: u8, random: &mut Random| {
            Endpoint::new(cpu, random.below(8) as u8, random.below(4) as u8).expect("in range")
        };
        let cpu = if wrong == Some(0) { random.below(16) as u8 } else { self.cpu };
        let header = HeaderRepr {
            primitive,
            traffic_class: random.below(8) as u8,
            requester_id: random.word() as u16,
            magic: random.word() as u8,
            source: of(random.below(16) as u8, random),
            destination: of(cpu, random),
            wants_event: random.below(2) == 0,
            span: ByteSpan::new(address, length as usize).expect("it ends in the memory"),
        };
        let payload: Vec<u8> = (0..length).map(|_| random.word() as u8).collect();
        let tail = [0, 0, 8, 16, random.below(17)][random.below(5) as usize];
        let tail: Vec<u8> = (0..tail).map(|_| random.word() as u8).collect();
        let tail = Tail::new(&tail).expect("it has at most 16 bytes");
        let packet = PacketRepr { header, payload: &payload, tail };
        let mut bytes = vec![0; packet.buffer_len()];
        packet.emit(&mut bytes).expect("it is a packet");
        match wrong {
            // A bit of the header.
            Some(1..=3) => bytes[random.below(16) as usize] ^= 1 << random.below(8),
            // Byte enables, length or address.
            Some(4) => bytes[7] = random.word() as u8,
            Some(5) if random.below(2) == 0 => {
                bytes[[2, 11, 12, 15][random.below(4) as usize]] = random.word() as u8;
            }
            // A length that the packet does not have, and a NAP cannot.
            Some(5) => {
                bytes[2] = bytes[2] & 0xf0 | random.below(4) as u8;
                bytes[3] = if random.below(2) == 0 { 0 } else { random.word() as u8 };
            }
            // Too long or too short.
            Some(6) => bytes.resize(bytes.len() + 1 + random.below(40) as usize, 0x5a),
            Some(7) => bytes.truncate(1 + random.below(bytes.len() as u64) as usize),
            _ => {}
        }
        let beats = bytes.len().div_ceil(LANES);
        for (at, lanes) in bytes.chunks(LANES).enumerate() {
            let mut beat = random.word().to_le_bytes().repeat(2);
            beat[..lanes.len()].copy_from_slice(lanes);
            let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|of| beat[8 * at + of]));
            let in_last = at + 1 == beats;
            self.beats.push_back(In {
                in_last,
                // It says nothing before.
                in_to: if in_last { lanes.len() as u8 - 1 } else { random.below(16) as u8 },
                in_data: [word(0), word(1)],
                ..In::default()
            });
        }
    }
}

impl Load for UploadLoad {
    type In = In;
    type Out = Out;

    fn step(&mut self) -> (In, Out) {
        if self.random.below(512) == 0 {
            self.change_mood();
        }
        if self.beats.is_empty() {
            self.packet();
        }
        let Mood { rates, wrong, closed, .. } = self.mood;
        let random = &mut self.random;
        let [in_valid, out_ready, take_ready, event_ready, has_place] =
            rates.map(|rate| random.below(8) < rate);
        let [packet_fits, target_fits] = [(); 2].map(|()| random.below(64) >= wrong[1]);
        let [lacks_list, lacks_ring] = [(); 2].map(|()| random.below(64) < closed);
        // What is not valid stands there, too.
        let beat = self.beats.front().copied().unwrap_or_default();
        let input = In {
            cpu: self.cpu,
            in_valid,
            packet_fits,
            target_fits,
            take_ready,
            lacks_list,
            slot: random.below(SLOTS) * MAX_NAP_BYTES as u64,
            event_ready,
            lacks_ring,
            lacks_place: !has_place,
            out_ready,
            ..beat
        };
        let out = self.upload.cycle(input);
        if input.in_valid && out.in_ready {
            self.beats.pop_front();
        }
        (input, out)
    }
}

#[cfg(test)]
mod tests {
    use bellwire_model::chpp::Config;

    use crate::block::assert_first_configuration;

    /// The first configuration of the block has the writes of the model's bus.
    #[test]
    fn the_first_configuration_is_the_papers() {
        let most = Config::prototype().pcie.max_payload.count();
        assert_first_configuration("upload", &[("MaxPayload", most)]);
    }
}
