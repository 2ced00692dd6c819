//! A crossbar that mostly keeps to its places, with packets of all types and lengths, some of them
//! wrong; takers of both classes that stall; and keys that do not fit.

use std::collections::VecDeque;

use bellwire_model::cycle::data_reorder::LANES;
use bellwire_model::cycle::rx_dispatch::{DATA, GET, In, Out, RxDispatch, Shape};
use bellwire_model::engine::Random;
use bellwire_wire::endpoint::Endpoint;
use bellwire_wire::header::{HeaderRepr, MAX_NAP_BYTES};
use bellwire_wire::packet::PacketRepr;
use bellwire_wire::primitive::Primitive;
use bellwire_wire::span::{ByteSpan, MAX_PAYLOAD_BYTES};
use bellwire_wire::tail::Tail;

use crate::bench::Load;

/// Addresses end here.
const ADDRESSES: u64 = 1 << 40;

/// The dispatch module behind a crossbar.
pub struct RxDispatchLoad {
    dispatch: RxDispatch,
    shape: Shape,
    random: Random,
    cpu: u8,
    /// Beats of the packet that comes.
    beats: VecDeque<In>,
    /// Free places that the crossbar knows of, by class; below zero if it sent more.
    places: [i64; 2],
    mood: Mood,
}

/// What the next cycles are like.
#[derive(Clone, Copy)]
struct Mood {
    /// Of eight cycles, how many offer a beat, take a beat, and take a word.
    rates: [u64; 3],
    /// Of eight packets, how many are GETs.
    gets: u64,
    /// Bytes of a payload, at most.
    longest: u64,
    /// Of 64 packets, how many are wrong; of 64 keys, how many.
    wrong: [u64; 2],
    /// A packet comes only if its class has a place.
    keeps_places: bool,
}

impl RxDispatchLoad {
    /// An empty one.
    pub fn new(shape: Shape, seed: u64) -> RxDispatchLoad {
        let mut random = Random::new(seed);
        RxDispatchLoad {
            dispatch: RxDispatch::new(shape),
            shape,
            cpu: random.below(16) as u8,
            random,
            beats: VecDeque::new(),
            places: [shape.packets as i64; 2],
            mood: Mood { rates: [8; 3], gets: 4, longest: 128, wrong: [0; 2], keeps_places: true },
        }
    }

    fn change_mood(&mut self) {
        let random = &mut self.random;
        let mut one_of = |all: &[u64]| all[random.below(all.len() as u64) as usize];
        self.mood = Mood {
            rates: [
                one_of(&[1, 4, 8, 8]),
                one_of(&[0, 1, 4, 8, 8, 8]),
                one_of(&[0, 1, 4, 8, 8, 8]),
            ],
            gets: one_of(&[0, 1, 4, 4, 8]),
            longest: one_of(&[4, 16, 40, 40, 150, 150, 4096]),
            wrong: [one_of(&[0, 4, 32]), one_of(&[0, 0, 16])],
            keeps_places: one_of(&[0, 1, 1]) == 1,
        };
    }

    /// A packet, which may be wrong, if its class has a place.
    fn packet(&mut self) {
        let Mood { gets, longest, wrong, keeps_places, .. } = self.mood;
        let random = &mut self.random;
        let is_get = random.below(8) < gets;
        let class = if is_get { GET } else { DATA };
        if keeps_places && self.places[class] <= 0 {
            return;
        }
        let wrong = (random.below(64) < wrong[0]).then(|| random.below(9));
        let primitive = match random.below(3) {
            _ if is_get => Primitive::Get,
            0 => Primitive::Nap,
            _ => Primitive::Put,
        };
        let Shape { data_beats, get_beats, .. } = self.shape;
        let room = LANES as u64 * if is_get { get_beats } else { data_beats - 2 } as u64;
        let room = if wrong == Some(8) { MAX_PAYLOAD_BYTES as u64 } else { room };
        let most = match primitive {
            Primitive::Nap => room.min(MAX_NAP_BYTES as u64),
            _ => room,
        };
        let length = match random.below(8) {
            0 => most,
            _ => random.below(most.min(longest) + 1),
        };
        let whole = (length.next_multiple_of(LANES as u64)).clamp(LANES as u64, most);
        let length = if is_get && wrong != Some(7) { whole } else { length };
        let address = match random.below(8) {
            _ if primitive != Primitive::Put => 0,
            // It ends with the last address.
            0 => (ADDRESSES - length).min(ADDRESSES - 1),
            // The payload may begin anywhere in a DW, which takes one DW more.
            _ if length + 3 > most => random.below(1 << 30) << 2,
            _ => random.below(1 << 32),
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
        let tail = [0, 0, 16, random.below(17)][random.below(4) as usize];
        let tail: Vec<u8> = (0..tail).map(|_| random.word() as u8).collect();
        let tail = Tail::new(&tail).expect("it has at most 16 bytes");
        let packet = PacketRepr { header, payload: &payload, tail };
        let mut bytes = vec![0; packet.buffer_len()];
        packet.emit(&mut bytes).expect("it is a packet");
        match wrong {
            // A bit of the header, or its byte enables.
            Some(1 | 2) => bytes[random.below(16) as usize] ^= 1 << random.below(8),
            Some(3) => bytes[7] = random.word() as u8,
            // Another type.
            Some(4) => bytes[2] = bytes[2] & 0xf | (random.below(16) as u8) << 4,
            // Too long or too short.
            Some(5) => bytes.resize(bytes.len() + 1 + random.below(40) as usize, 0x5a),
            Some(6) => bytes.truncate(1 + random.below(bytes.len() as u64) as usize),
            _ => {}
        }
        let beats = bytes.len().div_ceil(LANES);
        for (at, lanes) in bytes.chunks(LANES).enumerate() {
            let mut beat = random.word().to_le_bytes().repeat(2);
            beat[..lanes.len()].copy_from_slice(lanes);
            let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|of| beat[8 * at + of]));
            let in_last = at + 1 == beats;
            self.beats.push_back(In {
                // It says nothing behind the first beat.
                in_class: if at == 0 { class as u8 } else { random.below(2) as u8 },
                in_last,
                // It says nothing before.
                in_to: if in_last { lanes.len() as u8 - 1 } else { random.below(16) as u8 },
                in_data: [word(0), word(1)],
                ..In::default()
            });
        }
        self.places[class] -= 1;
    }
}

impl Load for RxDispatchLoad {
    type In = In;
    type Out = Out;

    fn step(&mut self) -> (In, Out) {
        if self.random.below(512) == 0 {
            self.change_mood();
        }
        if self.beats.is_empty() {
            self.packet();
        }
        let Mood { rates, wrong, .. } = self.mood;
        let random = &mut self.random;
        let [offers, out_ready, get_ready] = rates.map(|rate| random.below(8) < rate);
        // What is not valid stands there, too.
        let beat = self.beats.front().copied();
        let input = In {
            cpu: self.cpu,
            in_valid: offers && beat.is_some(),
            packet_fits: random.below(64) >= wrong[1],
            out_ready,
            get_ready,
            ..beat.unwrap_or_default()
        };
        let out = self.dispatch.cycle(input);
        for (places, is_free) in self.places.iter_mut().zip(out.credit) {
            *places += i64::from(is_free);
        }
        if input.in_valid && out.in_ready {
            self.beats.pop_front();
        }
        (input, out)
    }
}

#[cfg(test)]
mod tests {
    use bellwire_model::chpp::Config;
    use bellwire_model::cycle::data_reorder::LANES;
    use bellwire_wire::descriptor::MAX_DESCRIPTOR_BYTES;
    use bellwire_wire::header::{HEADER_BYTES, MAX_NAP_BYTES};
    use bellwire_wire::tail::MAX_TAIL_BYTES;

    use crate::block::assert_first_configuration;

    /// The first configuration of the block has the model's places, the longest NAP and the longest
    /// descriptor.
    #[test]
    fn the_first_configuration_is_the_models() {
        let Config { nic, crossbar, .. } = Config::prototype();
        let nap = HEADER_BYTES + MAX_NAP_BYTES + MAX_TAIL_BYTES;
        let expected = [
            ("DataBeats", (nap / LANES) as u64),
            ("GetBeats", (MAX_DESCRIPTOR_BYTES / LANES) as u64),
            ("Gets", nic.remote_get_depth as u64),
            ("Packets", crossbar.receive_packets as u64),
        ];
        assert_first_configuration("rx_dispatch", &expected);
    }
}
