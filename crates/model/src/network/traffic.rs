//! Synthetic traffic: destinations, arrivals and lengths of messages.

use serde::{Deserialize, Serialize};

use super::config::{ConfigError, demand};
use crate::engine::{Chance, Random};
use crate::units::Bytes;

/// The destinations of packets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Pattern {
    /// Any terminal, the sender included, with equal probability.
    Uniform,
    /// Each terminal to one other, drawn once from the seed.
    Permutation,
    /// Terminal i to terminal i + shift, modulo the number of terminals.
    Shift(u32),
    /// A share of all packets to one terminal, the others anywhere.
    HotSpot {
        /// The terminal.
        terminal: u32,
        /// From 0 to 1.
        share: f64,
    },
    /// Each terminal to all others in turn, starting with the next one, like a collective
    /// operation.
    AllToAll,
}

/// When messages are made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Arrival {
    /// With the same probability in each cycle (open loop). Load is beats per terminal and cycle, 0
    /// to 1.
    Random {
        /// Beats per terminal and cycle.
        load: f64,
    },
    /// In bursts, back to back to one destination, with pauses between them (open loop).
    Bursts {
        /// Beats per terminal and cycle.
        load: f64,
        /// Mean number of packets in a burst.
        packets: f64,
    },
    /// Another message is always ready.
    Saturated,
    /// A new one for each delivery (closed loop).
    Closed {
        /// Packets in flight per terminal.
        window: u32,
    },
}

/// Lengths of messages. A message longer than a packet goes as several packets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Sizes {
    /// All the same length, in beats.
    Beats(u16),
    /// More than 80 % of 128 to 4096 bytes, 8 % above 8192 bytes (M-31).
    Mix {
        /// Bytes in a beat.
        beat: Bytes,
        /// The most beats in a packet.
        packet_beats: u16,
    },
}

/// Synthetic traffic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Traffic {
    /// The destinations.
    pub pattern: Pattern,
    /// The arrivals.
    pub arrival: Arrival,
    /// The lengths.
    pub sizes: Sizes,
}

impl Traffic {
    /// Uniform random traffic of packets of one length.
    pub fn uniform(load: f64, beats: u16) -> Traffic {
        Traffic {
            pattern: Pattern::Uniform,
            arrival: Arrival::Random { load },
            sizes: Sizes::Beats(beats),
        }
    }

    /// Checks the parameters.
    pub(crate) fn check(&self, terminals: u32) -> Result<(), ConfigError> {
        if let Arrival::Random { load } | Arrival::Bursts { load, .. } = self.arrival {
            demand("load", load > 0.0 && load <= 1.0, || {
                format!("is {load}, but must be above 0 and at most 1 beat per cycle")
            })?;
        }
        if let Arrival::Bursts { packets, .. } = self.arrival {
            demand("packets", (1.0..1e6).contains(&packets), || {
                format!("is {packets}, but a burst has 1 packet or more")
            })?;
        }
        demand("window", self.arrival != Arrival::Closed { window: 0 }, || {
            "is 0, so that nothing would ever be sent; take 1 or more".to_owned()
        })?;
        if let Pattern::HotSpot { terminal, share } = self.pattern {
            demand("terminal", terminal < terminals, || {
                format!("is {terminal}, but the last one is {}", terminals - 1)
            })?;
            demand("share", (0.0..=1.0).contains(&share), || {
                format!("is {share}, but must be 0 to 1")
            })?;
        }
        demand("pattern", self.pattern != Pattern::AllToAll || terminals > 1, || {
            "is all-to-all, but there is one terminal only".to_owned()
        })?;
        demand("sizes", self.sizes.most_beats() > 0, || {
            "gives packets of 0 beats; take 1 or more".to_owned()
        })?;
        let is_empty = matches!(self.sizes, Sizes::Mix { beat, .. } if beat.count() == 0);
        demand("beat", !is_empty, || {
            "is 0 B, so that no number of beats makes a message".to_owned()
        })
    }
}

/// Draws destinations for all terminals.
pub(crate) struct Destinations {
    pattern: Pattern,
    terminals: u32,
    /// Partner of each terminal, or its next destination.
    each: Vec<u32>,
    hot: Chance,
}

impl Destinations {
    pub fn new(pattern: &Pattern, terminals: u32, random: &mut Random) -> Destinations {
        let mut each: Vec<u32> = match pattern {
            Pattern::AllToAll => {
                (0..terminals).map(|terminal| (terminal + 1) % terminals).collect()
            }
            Pattern::Shift(shift) => {
                let to = |terminal: u32| {
                    (u64::from(terminal) + u64::from(*shift)) % u64::from(terminals)
                };
                (0..terminals).map(|terminal| to(terminal) as u32).collect()
            }
            _ => (0..terminals).collect(),
        };
        if *pattern == Pattern::Permutation {
            random.shuffle(&mut each);
        }
        let hot = match pattern {
            Pattern::HotSpot { share, .. } => Chance::new(*share),
            _ => Chance::NEVER,
        };
        Destinations { pattern: pattern.clone(), terminals, each, hot }
    }

    pub fn draw(&mut self, source: u32, random: &mut Random) -> u32 {
        let anywhere = |random: &mut Random| random.below(u64::from(self.terminals)) as u32;
        match self.pattern {
            Pattern::Uniform => anywhere(random),
            Pattern::Permutation | Pattern::Shift(_) => self.each[source as usize],
            Pattern::HotSpot { terminal, .. } => {
                if random.chance(self.hot) {
                    terminal
                } else {
                    anywhere(random)
                }
            }
            Pattern::AllToAll => {
                let turn = &mut self.each[source as usize];
                let to = *turn;
                *turn = (to + 1) % self.terminals;
                if *turn == source {
                    *turn = (source + 1) % self.terminals;
                }
                to
            }
        }
    }
}

impl Sizes {
    /// Draws the length of a message in the mix, in bytes. 5 % are below 128 and 82 % from 128 to
    /// 4096; 5 % are from 4097 to 8192 and 8 % from 8193 to 65536. Within a band each factor of two
    /// is equally likely, and within that each length. The paper does not say; this is our choice.
    pub(crate) fn draw_bytes(random: &mut Random) -> u64 {
        let (low, doublings) = match random.below(100) {
            0..5 => (1, 7),
            5..87 => (128, 5),
            87..92 => (4096, 1),
            _ => (8192, 3),
        };
        let low = low << random.below(doublings);
        low + random.below(low) + u64::from(low >= 4096)
    }

    /// The lengths of the packets of the next message.
    pub(super) fn draw(&self, random: &mut Random, packets: &mut Vec<u16>) {
        packets.clear();
        match *self {
            Sizes::Beats(beats) => packets.push(beats),
            Sizes::Mix { beat, packet_beats } => {
                let beats = Sizes::draw_bytes(random).div_ceil(beat.count());
                let most = u64::from(packet_beats);
                packets.resize((beats / most) as usize, packet_beats);
                let rest = (beats % most) as u16;
                if rest > 0 {
                    packets.push(rest);
                }
            }
        }
    }

    /// The longest packet, in beats.
    pub(super) fn most_beats(&self) -> u16 {
        match *self {
            Sizes::Beats(beats) => beats,
            Sizes::Mix { packet_beats, .. } => packet_beats,
        }
    }

    /// The mean length of a message in beats; for the mix, from a sample with a fixed seed.
    pub(super) fn mean_beats(&self) -> f64 {
        match *self {
            Sizes::Beats(beats) => f64::from(beats),
            Sizes::Mix { beat, .. } => {
                let mut random = Random::new(0);
                let sample = 100_000;
                let sum: u64 = (0..sample)
                    .map(|_| Sizes::draw_bytes(&mut random).div_ceil(beat.count()))
                    .sum();
                sum as f64 / f64::from(sample)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The mix is MyVIA's: more than 80 % from 128 to 4096 bytes, about 8 % above 8192.
    // shows: M-31
    #[test]
    fn the_mix_is_as_published() {
        let mut random = Random::new(1);
        let sizes: Vec<u64> = (0..100_000).map(|_| Sizes::draw_bytes(&mut random)).collect();
        let share = |low: u64, high: u64| {
            sizes.iter().filter(|size| (low..=high).contains(size)).count() as f64
                / sizes.len() as f64
        };
        assert!(share(128, 4096) > 0.80, "{}", share(128, 4096));
        assert!((share(8193, u64::MAX) - 0.08).abs() < 0.005);
        assert_eq!(share(1, 65536), 1.0);
    }

    /// Bands begin above the limit of the band below: 4096 B itself is never drawn, and 1 B is. The
    /// mean is that of the bands, whose octaves are equally likely.
    #[test]
    fn the_mix_has_its_bands() {
        let mut random = Random::new(3);
        let mut drawn = [0_u32; 4098];
        let mut longest = 0;
        for _ in 0..1_000_000 {
            let bytes = Sizes::draw_bytes(&mut random) as usize;
            longest = longest.max(bytes);
            if let Some(count) = drawn.get_mut(bytes) {
                *count += 1;
            }
        }
        assert!(drawn[1] > 6_000 && drawn[127] > 0 && drawn[4097] > 0, "{}", drawn[1]);
        assert_eq!((drawn[0], drawn[4096]), (0, 0));
        assert!((65_500..=65_536).contains(&longest), "{longest}");
        let octaves = |low: f64, count: i32, above: f64| {
            let mean = |octave| low * 2_f64.powi(octave) * 1.5 - 0.5 + above;
            (0..count).map(mean).sum::<f64>() / f64::from(count)
        };
        let mean = 0.05 * octaves(1.0, 7, 0.0)
            + 0.82 * octaves(128.0, 5, 0.0)
            + 0.05 * octaves(4096.0, 1, 1.0)
            + 0.08 * octaves(8192.0, 3, 1.0);
        let sizes = Sizes::Mix { beat: Bytes::new(1), packet_beats: 10 };
        assert!((sizes.mean_beats() / mean - 1.0).abs() < 0.02, "{} {mean}", sizes.mean_beats());
        assert_eq!(Sizes::Beats(7).mean_beats(), 7.0);
    }

    /// A message becomes packets of the most beats, and a last one with the rest.
    #[test]
    fn messages_are_cut() {
        let (mut random, mut same) = (Random::new(4), Random::new(4));
        let sizes = Sizes::Mix { beat: Bytes::new(16), packet_beats: 10 };
        assert_eq!(sizes.most_beats(), 10);
        let mut packets = Vec::new();
        for _ in 0..200 {
            sizes.draw(&mut random, &mut packets);
            let beats = Sizes::draw_bytes(&mut same).div_ceil(16);
            let (last, others) = packets.split_last().unwrap();
            assert!(others.iter().all(|&it| it == 10) && (1..=10).contains(last), "{packets:?}");
            assert_eq!(10 * others.len() as u64 + u64::from(*last), beats);
        }
    }

    /// Impossible traffic is refused with the remedy, and the limits themselves are possible.
    #[test]
    fn impossible_traffic_is_refused() {
        let check = |change: fn(&mut Traffic), terminals| {
            let mut traffic = Traffic::uniform(0.5, 4);
            change(&mut traffic);
            traffic.check(terminals).map_err(|error| error.to_string())
        };
        assert_eq!(check(|it| it.arrival = Arrival::Random { load: 1.0 }, 1), Ok(()));
        assert_eq!(check(|it| it.pattern = Pattern::AllToAll, 2), Ok(()));
        assert_eq!(check(|it| it.sizes = Sizes::Beats(1), 2), Ok(()));
        type Change = fn(&mut Traffic);
        let refused: [(Change, &str); 6] = [
            (|it| it.arrival = Arrival::Random { load: 0.0 }, "must be above 0"),
            (|it| it.arrival = Arrival::Random { load: 1.01 }, "must be above 0"),
            (|it| it.arrival = Arrival::Closed { window: 0 }, "take 1 or more"),
            (|it| it.pattern = Pattern::AllToAll, "one terminal only"),
            (|it| it.sizes = Sizes::Beats(0), "packets of 0 beats"),
            (
                |it| it.sizes = Sizes::Mix { beat: Bytes::new(16), packet_beats: 0 },
                "packets of 0 beats",
            ),
        ];
        for (change, says) in refused {
            let said = check(change, 1).unwrap_err();
            assert!(said.contains(says), "{said}");
        }
    }

    /// A permutation and a shift reach each terminal once. All-to-all visits every other terminal
    /// before it repeats one.
    #[test]
    fn patterns_reach_everyone() {
        let mut random = Random::new(2);
        for pattern in [Pattern::Permutation, Pattern::Shift(3)] {
            let mut destinations = Destinations::new(&pattern, 8, &mut random);
            let mut all: Vec<u32> =
                (0..8).map(|source| destinations.draw(source, &mut random)).collect();
            all.sort_unstable();
            assert_eq!(all, (0..8).collect::<Vec<_>>());
        }
        let mut destinations = Destinations::new(&Pattern::AllToAll, 4, &mut random);
        let turns: Vec<u32> = (0..6).map(|_| destinations.draw(1, &mut random)).collect();
        assert_eq!(turns, [2, 3, 0, 2, 3, 0]);
        let hot = Pattern::HotSpot { terminal: 5, share: 0.5 };
        let mut destinations = Destinations::new(&hot, 10, &mut random);
        let hits = (0..10_000).filter(|_| destinations.draw(0, &mut random) == 5).count();
        assert!((5_300..5_700).contains(&hits), "{hits}");
    }
}
