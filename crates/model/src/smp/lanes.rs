//! The physical layer: bytes striped over lanes, their time on the wire, and bit errors (S-19).
//!
//! Symbol `i` goes over lane `i` modulo the width. So two Serdes of four lanes work as eight bonded
//! lanes, and wire time shrinks with the width. The receiver waits for the slowest lane before it
//! reassembles symbols.

use crate::engine::{Chance, Failures, Random};
use crate::units::Span;

use super::config::Config;

/// The most lanes.
pub const MAX_LANES: usize = 8;

/// The lanes of one direction, as trained.
#[derive(Clone, Debug)]
pub struct Lanes {
    width: u8,
    /// Time of one symbol on one lane.
    symbol: Span,
    errors: Option<Errors>,
    /// Bit errors so far.
    pub bits_flipped: u64,
}

#[derive(Clone, Debug)]
struct Errors {
    gaps: [Failures; MAX_LANES],
    /// Bits until the next bit error, per lane.
    ahead: [u64; MAX_LANES],
    random: Random,
}

impl Lanes {
    /// `width` lanes at the given rate, each with the configured bit error rate.
    pub fn new(config: &Config, width: u8, rate_hz: u64, random: &mut Random) -> Lanes {
        let chance = Chance::new(config.bit_errors);
        Lanes::with_errors(config, width, rate_hz, [chance; MAX_LANES], random)
    }

    /// The same with an error rate per lane, to make one of them bad.
    pub fn with_errors(
        config: &Config,
        width: u8,
        rate_hz: u64,
        chances: [Chance; MAX_LANES],
        random: &mut Random,
    ) -> Lanes {
        let [data, coded] = config.coding;
        let symbol = Span::from_ps(8 * coded * 1_000_000_000_000 / (data * rate_hz));
        let mut random = random.fork(2);
        let errors = chances.iter().any(|chance| *chance != Chance::NEVER).then(|| {
            let gaps = chances.map(Failures::before);
            let ahead = gaps.map(|gap| gap.draw(&mut random));
            Errors { gaps, ahead, random }
        });
        Lanes { width, symbol, errors, bits_flipped: 0 }
    }

    /// Wire time of `bytes`: whole symbols of all lanes together, exact to the byte.
    pub fn time(&self, bytes: usize) -> Span {
        self.symbol * bytes as u64 / u64::from(self.width)
    }

    /// Carries the bytes over the lanes: bit errors may flip bits.
    pub fn carry(&mut self, bytes: &mut [u8]) {
        let Some(errors) = &mut self.errors else { return };
        let width = usize::from(self.width);
        for lane in 0..width {
            let symbols = (bytes.len() + width - 1 - lane) / width;
            let bits = symbols as u64 * 8;
            while errors.ahead[lane] < bits {
                let bit = errors.ahead[lane];
                bytes[(bit / 8) as usize * width + lane] ^= 1 << (bit % 8);
                self.bits_flipped += 1;
                let gap = errors.gaps[lane].draw(&mut errors.random);
                errors.ahead[lane] = (bit + 1).saturating_add(gap);
            }
            errors.ahead[lane] -= bits;
        }
    }
}

/// The symbols of each lane: the input of the sender's Serdes.
pub fn stripe(bytes: &[u8], width: usize) -> Vec<Vec<u8>> {
    (0..width).map(|lane| bytes.iter().copied().skip(lane).step_by(width).collect()).collect()
}

/// Reassembles the bytes from timed symbols. A symbol counts when the slowest lane has delivered
/// its own. Returns the bytes and the time of the last.
pub fn gather(lanes: &[Vec<(u64, u8)>]) -> (Vec<u8>, u64) {
    let rows = lanes.iter().map(Vec::len).max().unwrap_or(0);
    let row = |at: usize| lanes.iter().filter_map(move |lane| lane.get(at));
    let bytes = (0..rows).flat_map(|at| row(at).map(|symbol| symbol.1)).collect();
    let last = lanes.iter().flatten().map(|symbol| symbol.0).max().unwrap_or(0);
    (bytes, last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Config {
        Config::recommended()
    }

    /// Bytes striped over 8 lanes come back in order, even if each lane has its own delay. Two
    /// halves of four lanes do the same.
    // shows: S-19
    #[test]
    fn striped_bytes_come_back_in_order() {
        let mut random = Random::new(3);
        for width in [1, 2, 4, 8] {
            for length in 0..70 {
                let bytes: Vec<u8> = (0..length).map(|_| random.word() as u8).collect();
                let skewed: Vec<Vec<(u64, u8)>> = stripe(&bytes, width)
                    .into_iter()
                    .map(|lane| {
                        let skew = random.below(20);
                        (0..).zip(lane).map(|(at, symbol)| (2 * at + skew, symbol)).collect()
                    })
                    .collect();
                assert_eq!(gather(&skewed).0, bytes);
            }
        }
        // 8 lanes x 5 Gbps = 40 Gbps; 8b/10b leaves 32 Gbps, so a DW takes 1 ns.
        let lanes = Lanes::new(&config(), 8, 5_000_000_000, &mut random);
        assert_eq!(lanes.time(4), Span::from_ns(1));
        assert_eq!(Lanes::new(&config(), 4, 5_000_000_000, &mut random).time(4), Span::from_ns(2));
    }

    /// Errors hit the lane that they are planted on, at the right rate; clean lanes stay clean.
    #[test]
    fn errors_hit_their_lane() {
        let mut chances = [Chance::NEVER; MAX_LANES];
        chances[5] = Chance::new(0.001);
        let mut lanes =
            Lanes::with_errors(&config(), 8, 5_000_000_000, chances, &mut Random::new(8));
        let mut wrong = [0u32; 8];
        for _ in 0..20_000 {
            // A set bit is flipped like one that is not set.
            let mut bytes = [0xa5_u8; 83];
            lanes.carry(&mut bytes);
            for (at, byte) in bytes.iter().enumerate() {
                wrong[at % 8] += (byte ^ 0xa5).count_ones();
            }
        }
        // 83 bytes put 10 symbols on lane 5: 1.6 million bits.
        assert!((1_400..1_800).contains(&wrong[5]), "{wrong:?}");
        assert_eq!(wrong.iter().sum::<u32>(), wrong[5]);
        assert_eq!(u64::from(wrong[5]), lanes.bits_flipped);
    }
}
