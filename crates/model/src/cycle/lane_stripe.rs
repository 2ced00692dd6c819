//! `lane_stripe`: spreads symbols over the lanes of a link (S-19), as `hardware/lane_stripe` builds
//! it.
//!
//! ```text
//!   symbol   0  1 .. 7   8  9 .. 15        a beat of the line
//!   lane     0  1 .. 7   0  1 .. 7         symbol i goes over lane i modulo 8
//! ```
//!
//! From time to time all lanes carry a mark, by which the far end sees how much later each one is.

use bellwire_wire::link::lanes::{COM, SKP};

use super::line::{Beat, SYMBOLS};
use super::replay_buf::BEAT_WORDS;
use crate::smp::lanes::MAX_LANES;

/// Symbols of a lane in a cycle.
pub const PER_LANE: usize = SYMBOLS / MAX_LANES;

crate::ports! {
    /// What enters in a cycle.
    pub struct In {
        /// Symbols are offered; otherwise idle ones go, which are zeros.
        line_valid: bool = 1,
        /// Which of them are special.
        line_k: u16 = SYMBOLS,
        /// The symbols.
        line_data: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
    }

    /// What stands at the outputs in a cycle.
    pub struct Out {
        /// The offered symbols are taken.
        line_ready: bool = 1,
        /// By lane: which of its symbols are special; the first one has the lowest bit.
        lane_k: [u8; MAX_LANES] = SYMBOLS,
        /// The symbols of each lane, the first one in the low byte.
        lane_data: [u16; MAX_LANES] = 8 * SYMBOLS,
    }
}

/// The spreader: a mark in every `mark_every` cycles, and no register behind the symbols.
#[derive(Clone, Copy, Debug)]
pub struct LaneStripe {
    /// Cycles until the next mark.
    left: u64,
    mark_every: u64,
}

impl LaneStripe {
    /// A spreader that begins with a mark.
    pub fn new(mark_every: u64) -> LaneStripe {
        LaneStripe { left: 0, mark_every }
    }

    /// Whether symbols are taken in this cycle, if some are offered.
    #[inline]
    pub fn line_ready(&self) -> bool {
        self.left > 0
    }

    /// One cycle.
    #[inline]
    pub fn cycle(&mut self, input: In) -> Out {
        let line_ready = self.line_ready();
        let beat = match input.line_valid {
            _ if !line_ready => mark(),
            true => Beat::new(input.line_data, input.line_k),
            false => Beat::default(),
        };
        self.left = if line_ready { self.left - 1 } else { self.mark_every - 1 };
        let (lane_k, lane_data) = lanes_of(beat);
        Out { line_ready, lane_k, lane_data }
    }
}

/// The first symbol of each lane is COM, and the second one SKP.
fn mark() -> Beat {
    let bytes = std::array::from_fn(|symbol| if symbol < MAX_LANES { COM } else { SKP });
    Beat { bytes, k: u16::MAX }
}

/// What each lane carries of a beat.
fn lanes_of(beat: Beat) -> ([u8; MAX_LANES], [u16; MAX_LANES]) {
    let symbols = |lane: usize| [lane, lane + MAX_LANES];
    let marks = |lane| symbols(lane).map(|symbol| (beat.k >> symbol & 1) as u8);
    let k = std::array::from_fn(|lane| marks(lane)[0] | marks(lane)[1] << 1);
    let bytes = |lane| symbols(lane).map(|symbol| beat.bytes[symbol]);
    (k, std::array::from_fn(|lane| u16::from_le_bytes(bytes(lane))))
}

/// The beat that lanes carry together.
pub fn beat_of(lane_k: [u8; MAX_LANES], lane_data: [u16; MAX_LANES]) -> Beat {
    let mut beat = Beat::default();
    for lane in 0..MAX_LANES {
        for (at, byte) in lane_data[lane].to_le_bytes().into_iter().enumerate() {
            let symbol = lane + at * MAX_LANES;
            beat.bytes[symbol] = byte;
            beat.k |= u16::from(lane_k[lane] >> at & 1) << symbol;
        }
    }
    beat
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::smp::lanes::stripe;

    /// Lanes carry what those of the event-driven model do, and the beat comes back.
    // shows: S-19
    #[test]
    fn symbol_i_goes_over_lane_i_modulo_8() {
        let bytes: [u8; SYMBOLS] = std::array::from_fn(|symbol| 0xa0 + symbol as u8);
        for bit in 0..SYMBOLS {
            let beat = Beat { bytes, k: 1 << bit };
            let (k, data) = lanes_of(beat);
            assert_eq!(data.map(|lane| lane.to_le_bytes().to_vec()).to_vec(), stripe(&bytes, 8));
            assert_eq!(k[bit % 8], 1 << (bit / 8));
            assert_eq!(beat_of(k, data), beat);
        }
    }

    /// A mark goes first, and then one in every four cycles. Nothing is taken with it.
    #[test]
    fn a_mark_goes_in_every_fourth_cycle() {
        let mut lanes = LaneStripe::new(4);
        let input = In { line_valid: true, line_k: 1, line_data: [0xfb, 7] };
        let sent = [(); 9].map(|()| lanes.cycle(input));
        for (cycle, out) in sent.iter().enumerate() {
            let beat = beat_of(out.lane_k, out.lane_data);
            if cycle % 4 == 0 {
                assert_eq!((out.line_ready, out.lane_k), (false, [3; 8]));
                assert_eq!(out.lane_data, [0x1cbc; 8]);
            } else {
                assert_eq!((out.line_ready, beat), (true, Beat::new([0xfb, 7], 1)));
            }
        }
        let idle = lanes.cycle(In { line_valid: false, ..input });
        assert_eq!(beat_of(idle.lane_k, idle.lane_data), Beat::default());
    }
}
