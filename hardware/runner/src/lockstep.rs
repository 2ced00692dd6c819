//! Lock-step: the gates and the model get the same inputs, and every output is compared in every
//! cycle.

use std::fs;
use std::path::Path;

use anyhow::{Result, bail};
use bellwire_model::cycle::hexadecimal;
use bellwire_model::units::Time;
use bellwire_model::vcd::Dump;

use crate::bench::{Bench, Shape};
use crate::simulation::Simulation;

/// Cycles that are exchanged at a time.
const BATCH: usize = 4096;
/// Cycles before a difference that its waveform shows.
const SHOWN: usize = 200;

/// Records of the last cycles: those of the model and those of the gates.
struct History {
    cycles: u64,
    inputs: Vec<u64>,
    model: Vec<u64>,
    gates: Vec<u64>,
}

/// Runs both for `cycles` cycles.
///
/// # Errors
/// A difference: its cycle, port and values. A waveform of the last 200 cycles of both is in `vcd`
/// then.
pub fn lockstep(
    bench: &mut dyn Bench,
    simulation: &mut Simulation,
    cycles: u64,
    vcd: Option<&Path>,
) -> Result<()> {
    let (enters, leaves) = (bench.inputs(), bench.outputs());
    let empty = |shape: Shape| vec![0; shape.words * BATCH];
    let (mut inputs, mut model, mut gates) = (empty(enters), empty(leaves), empty(leaves));
    let mut before = History { cycles: 0, inputs: vec![], model: vec![], gates: vec![] };
    let mut done = 0;
    while done < cycles {
        let count = BATCH.min((cycles - done) as usize);
        inputs.truncate(count * enters.words);
        model.truncate(count * leaves.words);
        gates.truncate(count * leaves.words);
        inputs.fill(0);
        model.fill(0);
        for (input, output) in
            inputs.chunks_exact_mut(enters.words).zip(model.chunks_exact_mut(leaves.words))
        {
            bench.step(input, output);
        }
        simulation.run(count, &inputs, &mut gates)?;
        if model != gates {
            let records = model.chunks(leaves.words).zip(gates.chunks(leaves.words));
            let at = records.clone().position(|(model, gates)| model != gates).expect("one");
            let differs = describe(leaves, &records.clone().nth(at).expect("it is there"));
            if let Some(vcd) = vcd {
                before.inputs.extend(&inputs[..(at + 1) * enters.words]);
                before.model.extend(&model[..(at + 1) * leaves.words]);
                before.gates.extend(&gates[..(at + 1) * leaves.words]);
                before.cycles = done + at as u64 + 1;
                fs::write(vcd, before.waveform(enters, leaves))?;
            }
            bail!("cycle {}: {differs}", done + at as u64);
        }
        // Only the last cycles are kept.
        let keep = |records: &[u64], words: usize| {
            records[records.len() - records.len().min(SHOWN * words)..].to_vec()
        };
        before.inputs = keep(&inputs, enters.words);
        before.model = keep(&model, leaves.words);
        before.gates = keep(&gates, leaves.words);
        done += count as u64;
    }
    Ok(())
}

/// The signals that differ.
fn describe(shape: Shape, (model, gates): &(&[u64], &[u64])) -> String {
    let mut at = 0;
    let mut text = Vec::new();
    for signal in shape.signals {
        let value = |words| hexadecimal(words, at, signal.width);
        let (model, gates) = (value(model), value(gates));
        if model != gates {
            text.push(format!("{} is {model} in the model and {gates} in gates", signal.name));
        }
        at += signal.width;
    }
    text.join(", ")
}

impl History {
    /// The last cycles of both as a waveform, one nanosecond a cycle.
    fn waveform(&self, enters: Shape, leaves: Shape) -> String {
        let mut dump = Dump::new(Some("inputs; outputs of the model; outputs of the gates"));
        let scopes = [
            ("in", enters, &self.inputs),
            ("model", leaves, &self.model),
            ("gates", leaves, &self.gates),
        ];
        let mut vars = Vec::new();
        for (name, shape, _) in &scopes {
            dump.open(name);
            let all = shape.signals.iter().map(|signal| dump.vector(signal.name, signal.width));
            vars.push(all.collect::<Vec<_>>());
            dump.close();
        }
        dump.begin();
        let held = self.inputs.len() / enters.words;
        let first = held.saturating_sub(SHOWN);
        for cycle in first..held {
            let number = self.cycles - (held - cycle) as u64;
            dump.at(Time::from_ps(number * 1000));
            for ((_, shape, records), vars) in scopes.iter().zip(&vars) {
                let record = &records[cycle * shape.words..][..shape.words];
                let mut at = 0;
                for (signal, var) in shape.signals.iter().zip(vars) {
                    let digit = |bit: usize| record[(at + bit) / 64] >> ((at + bit) % 64) & 1;
                    let digits: String = (0..signal.width)
                        .rev()
                        .map(|bit| (b'0' + digit(bit) as u8) as char)
                        .collect();
                    dump.set_vector(*var, &digits);
                    at += signal.width;
                }
            }
        }
        dump.end(None)
    }
}
