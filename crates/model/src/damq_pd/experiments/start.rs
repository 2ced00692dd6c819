//! Section 1 (D-10, D-11, D-12, D-30): the cost of a start by PIO and by DMA, step by step.

use crate::damq_pd::{Config, Entry, Load, Machine, Submission, Traffic};
use crate::experiment::Report;
use crate::units::{Bytes, Span, Time};

/// A single message on an idle machine.
pub struct Start {
    /// Its steps.
    pub steps: Vec<Entry>,
    /// From the beginning until the descriptor leaves the buffer.
    pub latency: Span,
    /// The machine afterwards.
    pub machine: Machine,
}

/// Submits one message of four words by `submission`. For PIO, its process has credits already.
///
/// # Errors
/// A sentence, if the run fails.
pub fn start(config: &Config, submission: Submission) -> Result<Start, String> {
    let mut config = config.clone();
    config.host.submission = submission;
    config.nic.ports = 1;
    let load = Load { messages: 1, ..Load::SATURATED };
    let mut machine = Machine::new(&config, &[load], 1).map_err(|error| error.to_string())?;
    if submission != Submission::Dma {
        machine.model.processes[0].credits = machine.model.credits.request(0);
    }
    machine.model.data_bytes = 256;
    machine.model.journal.open();
    machine.run_before(Time::from_ps(1 << 40)).map_err(|stalled| stalled.to_string())?;
    let latency = Span::from_ps(machine.model.ports[0].latency.most());
    Ok(Start { steps: machine.model.journal.steps(0, 0), latency, machine })
}

pub(super) fn run(report: &mut Report) -> Result<(), String> {
    let paper = Config::paper();
    let pio = start(&paper, Submission::Pio)?;
    let dma = start(&paper, Submission::Dma)?;
    for (name, start) in [("PIO", &pio), ("DMA", &dma)] {
        report.value(format!("steps by {name}"), "steps", start.steps.len() as f64);
        report.value(format!("start by {name}"), "ns", start.latency.as_ns());
        let told: Vec<String> = start
            .steps
            .iter()
            .map(|entry| format!("{:?} {:.1} ns", entry.step, entry.at.since(Time::ZERO).as_ns()))
            .collect();
        report.note(format!("{name}: {}", told.join(", ")));
    }
    for (bus, read_ns) in [("PCIe 2.0", 600), ("HT 2.0", 500)] {
        let mut config = paper.clone();
        config.bus.dma_read = Span::from_ns(read_ns);
        let dma = start(&config, Submission::Dma)?;
        let more = dma.latency.as_ns() - pio.latency.as_ns();
        report.value(format!("DMA above PIO, {bus}"), "ns", more);
    }
    // Write combining matters once packets have headers.
    let mut headers = paper.clone();
    headers.bus.header = Bytes::new(24);
    let mut without = headers.clone();
    without.bus.burst = Bytes::new(8);
    for (name, config) in [("with", &headers), ("without", &without)] {
        let start = start(config, Submission::Pio)?;
        let packets = start.machine.model.bus.down.packets(Traffic::PioWrite) as f64;
        let what = |quantity: &str| format!("{name} write combining, {quantity}");
        report.value(what("packets"), "1", packets);
        let bytes = start.machine.model.bus.down.bytes(Traffic::PioWrite) as f64;
        report.value(what("bytes on the wires"), "B", bytes);
        report.value(what("start"), "ns", start.latency.as_ns());
    }
    Ok(())
}
