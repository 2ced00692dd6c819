//! Operations of all kinds and sizes, reads with any alignment, some of which fail, and receivers
//! that stall.

use std::collections::VecDeque;

use bellwire_model::cycle::data_reorder::LANES;
use bellwire_model::cycle::packer::{In, Out, Packer, Shape};
use bellwire_model::engine::Random;
use bellwire_wire::primitive::Primitive;

use crate::bench::Load;

const LANE_COUNT: u64 = LANES as u64;
/// Addresses end here.
const ADDRESSES: u64 = 1 << 40;

/// A packer between those who read and a crossbar.
pub struct PackerLoad {
    packer: Packer,
    shape: Shape,
    random: Random,
    moves: VecDeque<In>,
    data: VecDeque<Data>,
    /// The beat that is offered.
    beat: Option<In>,
    mood: Mood,
}

/// Data of an operation that is still to come.
#[derive(Clone, Copy)]
struct Data {
    bytes: u64,
    /// Bytes of the read that comes.
    read: u64,
    /// After the bytes a read fails, and so many beats are behind it.
    fails: Option<u64>,
}

/// What the next cycles are like.
#[derive(Clone, Copy)]
struct Mood {
    /// Of eight cycles, how many offer a move, offer a beat, take a beat, and take a report.
    rates: [u64; 4],
    /// Bytes of a move, at most.
    longest: u64,
    /// Reads and moves begin at multiples of this.
    alignment: u64,
    /// Of 64 operations, how many fail.
    fails: u64,
}

impl PackerLoad {
    /// An empty packer.
    pub fn new(shape: Shape, seed: u64) -> PackerLoad {
        PackerLoad {
            packer: Packer::new(shape),
            shape,
            random: Random::new(seed),
            moves: VecDeque::new(),
            data: VecDeque::new(),
            beat: None,
            mood: Mood { rates: [8; 4], longest: 512, alignment: 1, fails: 0 },
        }
    }

    fn change_mood(&mut self) {
        let random = &mut self.random;
        let mut one_of = |all: &[u64]| all[random.below(all.len() as u64) as usize];
        self.mood = Mood {
            rates: [
                one_of(&[1, 4, 8, 8]),
                one_of(&[1, 4, 8, 8]),
                one_of(&[0, 1, 4, 8, 8]),
                one_of(&[0, 1, 4, 8, 8]),
            ],
            longest: one_of(&[1, 20, 150, 150, 600]),
            alignment: one_of(&[1, 1, 4, 16]),
            fails: one_of(&[0, 1, 16]),
        };
    }

    /// An operation: its moves, and its data.
    fn operate(&mut self) {
        let Mood { longest, alignment, fails, .. } = self.mood;
        let random = &mut self.random;
        let fails = random.below(64) < fails;
        let primitive = match random.below(4) {
            0 => Primitive::Nap,
            1 => Primitive::Get,
            _ => Primitive::Put,
        };
        let tail_bytes = [0, 0, 8, 16, random.below(17)][random.below(5) as usize];
        let mut tail = [random.word(), random.word()];
        for (word, first) in tail.iter_mut().zip([0, 8]) {
            let bytes = tail_bytes.saturating_sub(first).min(8);
            *word &= if bytes == 8 { !0 } else { (1 << (8 * bytes)) - 1 };
        }
        let common = In {
            move_primitive: primitive.code(),
            move_traffic_class: random.below(8) as u8,
            move_magic: random.word() as u8,
            move_source: random.below(512) as u16,
            move_destination: random.below(512) as u16,
            move_wants_event: random.below(2) == 1,
            move_tail_bytes: tail_bytes as u8,
            move_tail: tail,
            move_route: random.word() as u8,
            move_operation: random.word() as u8,
            ..In::default()
        };
        let count = if primitive == Primitive::Put { 1 + random.below(3) } else { 1 };
        let mut total = 0;
        for at in 0..count {
            let most = match primitive {
                Primitive::Put => longest,
                _ => longest.min(self.shape.longest as u64),
            };
            let bytes = match random.below(16) {
                // One that is cut off by its failure: so every bit of its count is used.
                0..4 if fails && primitive == Primitive::Put => {
                    (1 << (8 + random.below(31))) + random.below(200)
                }
                4 if primitive != Primitive::Put => self.shape.longest as u64,
                5 => self.shape.payload as u64,
                6 => 0,
                _ => random.below(most + 1),
            };
            let room = ADDRESSES - bytes;
            let address = match random.below(8) {
                _ if primitive != Primitive::Put => 0,
                0 => room.min(ADDRESSES - 1),
                // A carry goes through its bits.
                1 | 2 => room.min((1 << (8 + random.below(32))) - random.below(200)),
                _ => random.below(room) / alignment * alignment,
            };
            total += bytes;
            self.moves.push_back(In {
                move_last: at + 1 == count,
                move_address: address,
                move_bytes: bytes,
                ..common
            });
        }
        if total > 0 {
            let bytes = if fails { random.below(total.min(2000)) } else { total };
            let fails = fails.then(|| random.below(8));
            self.data.push_back(Data { bytes, read: 0, fails });
        }
    }

    /// The next beat of data.
    fn beat(&mut self) -> Option<In> {
        let data = self.data.front_mut()?;
        let random = &mut self.random;
        let mut beat = In { in_data: [random.word(), random.word()], ..In::default() };
        if data.bytes > 0 {
            let mut lane = 0;
            if data.read == 0 {
                lane = random.below(LANE_COUNT) / self.mood.alignment * self.mood.alignment;
                data.read =
                    [LANE_COUNT - lane, 128, 1 + random.below(200)][random.below(3) as usize];
                data.read = data.read.min(data.bytes);
            }
            let bytes = data.read.min(LANE_COUNT - lane);
            (beat.in_from, beat.in_to) = (lane as u8, (lane + bytes - 1) as u8);
            data.bytes -= bytes;
            data.read -= bytes;
            beat.in_ends = data.bytes == 0 && data.fails.is_none();
        } else {
            // A read fails, and others may come or fail behind it.
            let rest = data.fails.unwrap_or(0);
            let is_first = data.read == 0;
            data.read = 1;
            beat.in_failed = is_first || random.below(4) == 0;
            if !beat.in_failed {
                beat.in_to = random.below(LANE_COUNT) as u8;
                beat.in_from = random.below(u64::from(beat.in_to) + 1) as u8;
            }
            beat.in_ends = rest == 0;
            data.fails = rest.checked_sub(1);
        }
        if beat.in_ends {
            self.data.pop_front();
        }
        Some(beat)
    }
}

impl Load for PackerLoad {
    type In = In;
    type Out = Out;

    fn step(&mut self) -> (In, Out) {
        if self.random.below(512) == 0 {
            self.change_mood();
        }
        if self.moves.is_empty() {
            self.operate();
        }
        if self.beat.is_none() {
            self.beat = self.beat();
        }
        let [moves, brings, takes, reports] = self.mood.rates;
        let mut input = self.moves.front().copied().unwrap_or_default();
        input.move_valid = self.random.below(8) < moves;
        // What is not valid stands there, too.
        let beat = self.beat.unwrap_or_default();
        input.in_valid = self.beat.is_some() && self.random.below(8) < brings;
        input.in_ends = beat.in_ends;
        input.in_failed = beat.in_failed;
        (input.in_from, input.in_to, input.in_data) = (beat.in_from, beat.in_to, beat.in_data);
        input.out_ready = self.random.below(8) < takes;
        input.sent_ready = self.random.below(8) < reports;
        let out = self.packer.cycle(input);
        if input.move_valid && out.move_ready {
            self.moves.pop_front();
        }
        if input.in_valid && out.in_ready {
            self.beat = None;
        }
        (input, out)
    }
}

#[cfg(test)]
mod tests {
    use bellwire_model::chpp::Config;
    use bellwire_wire::header::MAX_NAP_BYTES;

    use crate::block::assert_first_configuration;

    use super::LANE_COUNT;

    /// The first configuration of the block has the model's packets, and a buffer for two of the
    /// longest.
    #[test]
    fn the_first_configuration_is_the_papers() {
        let nic = Config::prototype().nic;
        let longest = MAX_NAP_BYTES as u64;
        let expected = [
            ("Beats", 2 * longest / LANE_COUNT),
            ("Longest", longest),
            ("Packets", 16),
            ("Payload", nic.put_payload.count()),
        ];
        assert_first_configuration("packer", &expected);
    }
}
