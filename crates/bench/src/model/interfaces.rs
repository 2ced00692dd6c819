//! The cost of one message through the whole cHPP interface, and of one cycle of the DAMQ-PD
//! buffer.

use anyhow::{Result, anyhow};
use bellwire_model::chpp::Config;
use bellwire_model::chpp::experiments::Kind;
use bellwire_model::chpp::experiments::stream::stream;
use bellwire_model::damq_pd::{DescriptorBuffer, Organisation, PortWord, Way, Word};

use super::{Row, cpu};

const MESSAGES: u64 = 100_000;
/// One packet of the prototype.
const MESSAGE_BYTES: u64 = 128;
const WINDOW: u64 = 32;
const CYCLES: u64 = 50_000_000;

/// Measures messages of each primitive.
pub fn messages(rounds: usize) -> Result<Vec<Row>> {
    let config = Config::prototype();
    [Kind::Put, Kind::NapIndirect, Kind::NapImmediate, Kind::Get]
        .into_iter()
        .map(|kind| {
            let (mut rates, mut events) = (Vec::new(), 0);
            for _ in 0..rounds {
                let before = cpu::own();
                let run = stream(&config, kind, MESSAGE_BYTES, WINDOW, MESSAGES);
                events = run.map_err(|error| anyhow!(error))?.events;
                rates.push(MESSAGES as f64 / (cpu::own() - before).as_secs_f64());
            }
            let each = events as f64 / MESSAGES as f64;
            let what = format!("cHPP, {kind:?} of {MESSAGE_BYTES} B in {each:.1} events");
            Ok(Row::alone(what, "messages", rates, 5e5))
        })
        .collect()
}

/// Measures the buffer of 64 ports and 1,024 words, a word in and a word out in each cycle.
pub fn buffer(rounds: usize) -> Row {
    let rates = (0..rounds)
        .map(|_| {
            let before = cpu::own();
            let mut buffer = DescriptorBuffer::new(Organisation::DamqPd, 64, 1024, 128);
            let mut left = 0;
            for descriptor in 0..CYCLES / 4 {
                let port = (descriptor * 37 % 64) as u8;
                for at in 0..4 {
                    let word = Word::new(4 * descriptor + at, at == 3);
                    let write = PortWord { port, way: Way::Pio, word };
                    left += u64::from(buffer.cycle(Some(write), true).is_some());
                }
            }
            assert!(left + 1024 >= CYCLES, "only {left} words left the buffer in {CYCLES} cycles");
            CYCLES as f64 / (cpu::own() - before).as_secs_f64()
        })
        .collect();
    Row::alone("DAMQ-PD, buffer with a word in and one out".to_owned(), "cycles", rates, 5e7)
}
