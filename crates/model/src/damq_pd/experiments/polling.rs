//! Section 1 (D-31, B-11): a process that finds the buffer full polls, and its reads take bus
//! bandwidth from data.

use super::measure::Window;
use crate::damq_pd::{Config, Load, Machine, Submission, Traffic};
use crate::experiment::Report;
use crate::units::{Bytes, Rate, Time};

/// Bus use of one way of submission.
#[derive(Clone, Copy, Debug)]
pub struct Polling {
    /// Message data that came over the bus, in GB/s.
    pub data: f64,
    /// PIO reads for credits, in millions per second.
    pub reads: f64,
    /// Share of the wires to the interface that these reads take, in percent.
    pub share: f64,
}

/// Ports of the comparison.
pub const PORTS: usize = 64;
/// Words of its buffer: few, so that it is full most of the time.
pub const DEPTH: usize = 64;

/// Ports that always have messages of 1 KiB. The wires are the bottleneck, so the buffer is full.
/// Packets have their headers.
pub fn polling(submission: Submission) -> Result<Polling, String> {
    polling_of(&crowded(submission), Load::SATURATED, 1, Window::SATURATED)
}

/// An interface with many ports, few words, and packets with their headers.
pub fn crowded(submission: Submission) -> Config {
    let mut config = Config::paper();
    config.nic.ports = PORTS;
    config.nic.depth = DEPTH;
    config.host.submission = submission;
    // Few entries, so that they are full after the warm-up: until then there are more doorbells on
    // the bus than messages.
    config.host.queue = 4;
    config.bus.header = Bytes::new(24);
    config.bus.rate = Rate::from_bytes_per_second(15_753_846_153);
    config
}

/// Bus use of ports that send messages of 1 KiB.
///
/// # Errors
/// A sentence, if the run fails.
pub fn polling_of(
    config: &Config,
    load: Load,
    seed: u64,
    window: Window,
) -> Result<Polling, String> {
    const DATA_BYTES: u64 = 1024;
    let loads = vec![load; config.nic.ports];
    let mut machine = Machine::new(config, &loads, seed).map_err(|error| error.to_string())?;
    machine.model.data_bytes = DATA_BYTES;
    let Window { warm_up_ns, counted_ns } = window;
    let until = |ns| Time::from_ps(ns * 1000);
    machine.run_before(until(warm_up_ns)).map_err(|stalled| stalled.to_string())?;
    let count = |machine: &Machine| {
        let sent: u64 = machine.model.ports.iter().map(|port| port.sent).sum();
        let down = &machine.model.bus.down;
        (sent, down.packets(Traffic::PioRead), down.bytes(Traffic::PioRead))
    };
    let before = count(&machine);
    machine.run_before(until(warm_up_ns + counted_ns)).map_err(|stalled| stalled.to_string())?;
    machine.model.check()?;
    let after = count(&machine);
    let ns = counted_ns as f64;
    let per_ns = config.bus.rate.bytes_per_second() as f64 / 1e9;
    Ok(Polling {
        data: ((after.0 - before.0) * DATA_BYTES) as f64 / ns,
        reads: (after.1 - before.1) as f64 * 1e3 / ns,
        share: (after.2 - before.2) as f64 / ns / per_ns * 100.0,
    })
}

pub(super) fn run(report: &mut Report) -> Result<(), String> {
    let mut results = Vec::new();
    for (name, submission) in [
        ("PIO alone", Submission::Pio),
        ("PIO and DMA", Submission::PioAndDma),
        ("DMA alone", Submission::Dma),
    ] {
        let result = polling(submission)?;
        let mut value = |quantity: &str, unit, value| {
            report.value(format!("{name}, {quantity}"), unit, value);
        };
        value("data over the bus", "GB/s", result.data);
        value("reads for credits", "M/s", result.reads);
        value("share of the wires", "%", result.share);
        results.push(result);
    }
    report.claim(
        "with PIO alone reads that poll appear on the bus and data gets less of it",
        results[0].reads > 2.0 * results[1].reads && results[0].data < results[1].data,
    );
    report.note(format!(
        "{PORTS} ports, a buffer of {DEPTH} words, 1 KiB of data for each message, 24 B around each packet; the wires to the interface are the bottleneck."
    ));
    Ok(())
}
