//! Frames of changing lengths with link packets between them, of which some are damaged: a flipped
//! bit, a burst of up to 32 bits, a wrong mark or number, a beat that is lost, or a frame that is
//! cut off.

use std::collections::VecDeque;

use bellwire_model::cycle::frame_rx::{FrameRx, In, Out};
use bellwire_model::cycle::line::{Beat, SYMBOLS, UPPER};
use bellwire_model::engine::Random;
use bellwire_wire::frame::check::crc32c;
use bellwire_wire::link::DW_BYTES;
use bellwire_wire::link::dllp::SDP;
use bellwire_wire::link::llp::{END, Llp, SEQUENCES};

use crate::bench::Load;

/// The special symbols of a link packet in its beat.
const LINK_PACKET: u16 = 0x81 << UPPER;

/// A receiver behind a bad line.
pub struct FrameRxLoad {
    receiver: FrameRx,
    random: Random,
    /// Beats that come next.
    line: VecDeque<Beat>,
    max_beats: u64,
    /// Of eight cycles, how many bring a beat; of eight frames, how many are damaged.
    rates: [u64; 2],
    /// DWs of a TLP, at most.
    longest: u64,
}

impl FrameRxLoad {
    /// A receiver with its parameter.
    pub fn new(max_beats: usize, seed: u64) -> FrameRxLoad {
        let (receiver, random) = (FrameRx::new(max_beats), Random::new(seed));
        let (line, max_beats) = (VecDeque::new(), max_beats as u64);
        FrameRxLoad { receiver, random, line, max_beats, rates: [8, 1], longest: 8 }
    }

    /// A frame, perhaps damaged, and perhaps a link packet in its last beat.
    fn frame_comes(&mut self) {
        let random = &mut self.random;
        let dws = 3 + random.below(self.longest - 2);
        let tlp: Vec<u8> = (0..dws * DW_BYTES as u64).map(|_| random.word() as u8).collect();
        let sequence = random.below(SEQUENCES.into()) as u16;
        let frame = Llp { sequence, tlp: &tlp };
        let mut bytes = vec![0; frame.buffer_len()];
        frame.emit(&mut bytes).expect("the number is in range");
        if random.below(64) == 0 {
            // A number that no frame has, with a right CRC.
            bytes[1] |= 1 << (4 + random.below(4));
            let crc = bytes.len() - 5;
            let check = crc32c(&bytes[1..crc]);
            bytes[crc..crc + 4].copy_from_slice(&check.to_le_bytes());
        }
        let last = bytes.len() - 1;
        let damage = (random.below(8) < self.rates[1]).then(|| random.below(12));
        if let Some(damage @ 0..8) = damage {
            let bits = 8 * bytes.len() as u64;
            let (from, pattern) = match damage {
                0..2 => (random.below(bits), 1),
                // Of the symbols at both ends.
                2 => (random.below(8), 1),
                3 => (bits - 1 - random.below(8), 1),
                _ => (random.below(bits), random.word() as u32 >> random.below(32)),
            };
            let from = from as usize;
            for bit in (0..32).filter(|bit| pattern >> bit & 1 == 1) {
                if let Some(byte) = bytes.get_mut((from + bit) / 8) {
                    *byte ^= 1 << ((from + bit) % 8);
                }
            }
        }
        let mut beats: VecDeque<Beat> = bytes
            .chunks(SYMBOLS)
            .map(|chunk| {
                let mut beat = Beat::default();
                beat.bytes[..chunk.len()].copy_from_slice(chunk);
                beat
            })
            .collect();
        beats[0].k = 1;
        beats[last / SYMBOLS].k |= 1 << (last % SYMBOLS);
        let at = random.below(beats.len() as u64) as usize;
        match damage {
            Some(8) => beats[at].k ^= 1 << random.below(16),
            Some(9) => beats[last / SYMBOLS].k ^= 1 << random.below(16),
            Some(10) => drop(beats.remove(at)),
            Some(11) => beats.truncate(at),
            _ => {}
        }
        if let Some(end) = beats.back_mut()
            && end.k >> UPPER == 0
            && random.below(4) == 0
        {
            *end = link_packet(*end, random);
        }
        self.line.extend(beats);
    }
}

/// The beat with a link packet of any content, or with any bytes and marks.
fn link_packet(mut beat: Beat, random: &mut Random) -> Beat {
    let content = random.word().to_le_bytes();
    beat.bytes[UPPER..].copy_from_slice(&content);
    if random.below(8) > 0 {
        (beat.bytes[UPPER], beat.bytes[SYMBOLS - 1]) = (SDP, END);
        beat.k |= LINK_PACKET;
    } else {
        beat.k ^= (random.word() as u16) << random.below(16);
    }
    beat
}

impl Load for FrameRxLoad {
    type In = In;
    type Out = Out;

    fn step(&mut self) -> (In, Out) {
        if self.random.below(256) == 0 {
            let random = &mut self.random;
            self.rates =
                [[1, 4, 8, 8][random.below(4) as usize], [0, 1, 4][random.below(3) as usize]];
            // The longest frame has one beat more than the receiver takes.
            let longest = 4 * self.max_beats + 2;
            self.longest = [6, 12, longest][random.below(3) as usize];
        }
        if self.line.is_empty() {
            match self.random.below(8) {
                0 => self.line.push_back(Beat::default()),
                1 => self.line.push_back(link_packet(Beat::default(), &mut self.random)),
                _ => self.frame_comes(),
            }
        }
        let mut input = In::default();
        if self.random.below(8) < self.rates[0]
            && let Some(beat) = self.line.pop_front()
        {
            input = In { line_valid: true, line_k: beat.k, line_data: beat.words() };
        }
        (input, self.receiver.cycle(input))
    }
}
