//! Canaries of lock-step: gates with a planted fault. It must notice each, and say where.

use anyhow::{Context, Result, bail, ensure};

use crate::block::{Block, Fault, numbers};
use crate::finding::Finding;
use crate::loads;
use crate::lockstep::lockstep;
use crate::simulation::{Kind, Recipe, Simulation};
use crate::tools::{Tools, in_parallel};

/// Cycles in which a fault must show.
const CYCLES: u64 = 20_000;

/// Plants the faults that `formal/faults.toml` marks for lock-step, one after the other. Each block
/// that runs in lock-step must have one.
///
/// # Errors
/// A fault that lock-step does not notice, or not as a difference with a cycle and a waveform.
pub fn canaries(tools: &Tools, blocks: &[Block]) -> Result<Vec<Finding>> {
    let mut jobs = Vec::new();
    for block in blocks.iter().filter(|block| !block.lockstep.is_empty()) {
        let mut marked = block.faults(&tools.root)?;
        marked.retain(|fault| fault.lockstep);
        ensure!(!marked.is_empty(), "{}: no fault is marked for lock-step", block.name);
        jobs.extend(marked.into_iter().map(|fault| (block, fault)));
    }
    let done = in_parallel("canaries", &jobs, |(block, fault)| notice(tools, block, fault));
    done.into_iter().collect()
}

fn notice(tools: &Tools, block: &Block, fault: &Fault) -> Result<Finding> {
    // Several are planted at once, also in one file.
    let folder = format!("canaries/{}-{:08x}", block.name, fault.number());
    let planted = fault.put(tools, &tools.out.join(folder))?;
    let with_fault = |source| if source == fault.file { planted.clone() } else { source };
    // The last configuration is small.
    let parameters = numbers(block.lockstep.last().context("no configuration")?);
    let recipe = Recipe {
        top: format!("{}_bench", block.top),
        sources: block.with_bench().into_iter().map(with_fault).collect(),
        parameters: parameters.clone(),
        kind: Kind::Program,
    };
    let mut simulation = Simulation::start(&recipe.build(tools)?, 0)?;
    let mut bench = loads::load(&block.name, &parameters, 1)?;
    let vcd = tools.out.join(format!("{}-{:08x}-canary.vcd", block.name, fault.number()));
    let _ = std::fs::remove_file(&vcd);
    let noticed = lockstep(&mut *bench, &mut simulation, CYCLES, Some(&vcd));
    let said = match noticed {
        Ok(()) => {
            bail!("{}: lock-step does not notice the fault of {}", block.name, fault.property)
        }
        Err(error) => format!("{error:#}"),
    };
    let tells = said.starts_with("cycle ") && said.contains(" in the model and ") && vcd.exists();
    ensure!(tells, "{}: the fault of {} ends as: {said}", block.name, fault.property);
    Ok(Finding::new(format!("{}, {}: lock-step says {said}", block.name, fault.property)))
}
