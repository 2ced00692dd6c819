//! Section 3.3 and Fig. 9 (D-26, D-04 to D-08). In each cycle one of four ports, drawn at random,
//! writes a word. A port with four words may be read, four in a row.

use crate::damq_pd::{Config, DescriptorBuffer, Organisation, PortWord, Way, Word};
use crate::engine::Random;
use crate::experiment::{Axis, Origin, Report, of_each_seed};

/// Ports of the test.
pub const PORTS: usize = 4;

/// Cycles in the drawing.
const DRAWN: usize = 72;

/// What happened in a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The port that wrote; the word's value is its number.
    pub wrote: Option<u8>,
    /// The port whose word left.
    pub left: Option<u8>,
    /// Words in the memory.
    pub inside: u16,
}

/// When reading begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    /// As soon as a port has four words.
    Eager,
    /// When some port must always have four words: 4 x 3 + 1 words are inside.
    Patient,
}

/// Runs the test for some cycles and records each.
pub fn test(organisation: Organisation, reader: Reader, seed: u64, cycles: usize) -> Vec<Sample> {
    let mut config = Config::paper();
    config.nic.organisation = organisation;
    test_of(&config, reader, seed, cycles)
}

/// The same with the buffer of an interface: its organisation and depth.
pub fn test_of(config: &Config, reader: Reader, seed: u64, cycles: usize) -> Vec<Sample> {
    let depth = config.nic.depth;
    let mut buffer = DescriptorBuffer::new(config.nic.organisation, PORTS, depth, 4);
    let mut random = Random::new(seed);
    let mut words = [0u64; PORTS];
    let mut reads = reader == Reader::Eager;
    (0..cycles)
        .map(|_| {
            let port = random.below(PORTS as u64) as u8;
            // A baseline may drain more slowly than words come; words without room are not written.
            let fits = buffer.inside(Way::Pio) + 2 < depth / PORTS;
            let write = fits.then(|| {
                let written = &mut words[port as usize];
                *written += 1;
                // Every fourth word of a port ends a unit that is read in a row.
                let word = Word::new(port.into(), *written % 4 == 0);
                PortWord { port, way: Way::Pio, word }
            });
            reads |= buffer.inside(Way::Pio) > 3 * PORTS;
            let read = buffer.cycle(write, reads);
            let inside = buffer.inside(Way::Pio) as u16;
            Sample {
                wrote: write.map(|write| write.port),
                left: read.map(|read| read.port),
                inside,
            }
        })
        .collect()
}

/// Cycles in which no word left: how many, and the number of the last.
pub fn gaps(samples: &[Sample]) -> (usize, Option<usize>) {
    let gaps = || samples.iter().enumerate().filter(|(_, sample)| sample.left.is_none());
    (gaps().count(), gaps().next_back().map(|(at, _)| at))
}

/// One row of digits for words that enter and one for words that leave; a dot is a cycle without a
/// word.
pub fn picture(samples: &[Sample]) -> [String; 2] {
    let digit = |port: Option<u8>| port.map_or('.', |port| char::from(b'0' + port));
    [
        samples.iter().map(|sample| digit(sample.wrote)).collect(),
        samples.iter().map(|sample| digit(sample.left)).collect(),
    ]
}

/// Cumulative words up to each cycle.
fn so_far(samples: &[Sample], word: fn(&Sample) -> Option<u8>) -> Vec<(f64, f64)> {
    let mut words = 0.0;
    let count = |(cycle, sample)| {
        words += f64::from(u8::from(word(sample).is_some()));
        (f64::from(cycle), words)
    };
    (1..).zip(samples).map(count).collect()
}

pub(super) fn run(report: &mut Report) -> Result<(), String> {
    const SEEDS: u64 = 1000;
    const CYCLES: usize = 2000;
    let mut claims = Vec::new();
    for (name, reader) in [("eager", Reader::Eager), ("patient", Reader::Patient)] {
        let mut runs = Vec::new();
        for seed in 0..SEEDS {
            let samples = test(Organisation::DamqPd, reader, seed, CYCLES);
            let first = samples.iter().position(|sample| sample.left.is_some()).unwrap_or(CYCLES);
            let (all, end) = gaps(&samples);
            let early = gaps(&samples[..20]).0;
            runs.push([first, all, early, end.map_or(0, |end| end + 1)].map(|of| of as f64));
        }
        let draws = |of: usize| runs.iter().map(|run| run[of]).collect::<Vec<f64>>();
        let most = |of: usize| draws(of).into_iter().fold(0.0, f64::max);
        let what = |quantity: &str| format!("{name} reader: {quantity}");
        report.drawn(what("mean until the first word leaves"), "cycles", &draws(0));
        report.drawn(what("mean without output"), "cycles", &draws(1));
        report.drawn(what("mean without output in the first 20"), "cycles", &draws(2));
        // Of all runs: extremes have no interval, but a number of tries.
        report.value(what("most without output"), "cycles", most(1));
        report.value(what("the latest gap ends at"), "cycles", most(3));
        claims.push((name, most(1), most(3)));
    }
    for (name, worst, latest) in claims {
        let what = format!("{name} reader: gaps only in the first ten-odd cycles");
        report.claim_of(what, latest, latest < 20.0).tries = Some(SEEDS);
        let what = format!("{name} reader: ten-odd cycles of gap in all, in each run");
        report.claim_of(what, worst, worst < 20.0).tries = Some(SEEDS);
    }
    let out = of_each_seed(|seed| {
        let late = test(Organisation::DamqPf, Reader::Eager, seed, CYCLES);
        Ok(late.iter().filter(|sample| sample.left.is_some()).count() as f64 / CYCLES as f64)
    })?;
    report.drawn("DAMQ-PF: words that leave in a cycle", "1", &out);
    for (name, reader) in [("eager", Reader::Eager), ("patient", Reader::Patient)] {
        let samples = test(Organisation::DamqPd, reader, 1, DRAWN);
        let [wrote, left] = picture(&samples);
        let figure = report.figure(
            format!("Fig. 9: the run of 3.3, {name} reader"),
            Axis::linear("cycle", ""),
            Axis::linear("words so far", ""),
        );
        figure.series("in", Origin::Model, so_far(&samples, |sample| sample.wrote));
        figure.series("out", Origin::Model, so_far(&samples, |sample| sample.left));
        report.note(format!("{name} reader, in:  {wrote}"));
        report.note(format!("{name} reader, out: {left}"));
    }
    Ok(())
}
