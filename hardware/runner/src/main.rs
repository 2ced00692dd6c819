//! What is done with the RTL under `hardware/`: layouts, lint, lock-step with the model, proofs,
//! planted faults, synthesis. docs/hardware.md explains each.

#![forbid(unsafe_code)]

mod bench;
mod block;
mod canary;
mod finding;
mod layouts;
mod library;
mod link_pkg;
mod lint;
mod loads;
mod lockstep;
mod mutate;
mod pcie_pkg;
mod place;
mod prove;
mod regs_pkg;
mod simulation;
mod synthesize;
mod tools;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand};

use block::{Block, blocks, numbers};
use finding::{Finding, report};
use simulation::{Kind, Recipe, Simulation};
use tools::{Tools, in_parallel};

#[derive(Parser)]
#[command(about = "Runs, proves and synthesizes the RTL of Bellwire")]
struct Arguments {
    /// The repository
    #[arg(long, default_value = ".")]
    root: PathBuf,
    /// The virtual environment that `tools/need.sh hardware` makes
    #[arg(long, default_value = "target/hardware/tools")]
    tools: PathBuf,
    /// Where to build
    #[arg(long, default_value = "target/hardware")]
    out: PathBuf,
    /// Only these blocks
    #[arg(long = "block", global = true)]
    only: Vec<String>,
    /// Also proofs and areas that take long, and all checks of blocks whose checks take long
    #[arg(long, global = true)]
    long: bool,
    /// Print one JSON object instead of lines
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Write the packages of ports from the model's structs
    Layouts {
        /// Compare only
        #[arg(long)]
        check: bool,
    },
    /// Check all sources with Verilator and Verible
    Lint,
    /// Run gates and model side by side, and compare every output in every cycle
    Lockstep {
        /// Cycles for each block, shared by its configurations
        #[arg(long, default_value_t = 1_000_000)]
        cycles: u64,
        /// The first seed
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Prove the properties of all blocks, without bound
    Prove,
    /// Plant a fault for each property, and see that the property notices it; and for each block
    /// one that lock-step must notice
    Faults,
    /// Mutate the gates, and see that lock-step notices
    Mutants {
        /// Mutants of each block
        #[arg(long, default_value_t = 300)]
        count: usize,
        /// Cycles for each mutant and seed
        #[arg(long, default_value_t = 100_000)]
        cycles: u64,
    },
    /// Measure areas, and compare them with hardware/areas.toml
    Synthesize {
        /// Write the file instead
        #[arg(long)]
        write: bool,
    },
    /// Place and route all blocks for ECP5, and print their frequencies
    Place,
    /// Build the gates of the whole interface as a library for the device rtl:chpp
    Library {
        /// The file
        to: PathBuf,
    },
    /// Time the operations of the paper's Table 3 in gates, beside model and paper
    Table3 {
        /// A file that `library` has written
        library: PathBuf,
    },
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    match &arguments.action {
        Action::Layouts { check } => return layouts::layouts(&arguments.root, *check),
        Action::Table3 { library } => {
            report("Table 3 of cHPP", &library::table3(library)?, arguments.json);
            return Ok(());
        }
        _ => {}
    }
    let tools = Tools::find(&arguments.root, &arguments.out, &arguments.tools)?;
    let mut all = blocks(&tools.root)?;
    if let Some(missing) =
        arguments.only.iter().find(|name| all.iter().all(|block| block.name != **name))
    {
        bail!("there is no block {missing} below hardware/");
    }
    all.retain(|block| arguments.only.is_empty() || arguments.only.contains(&block.name));
    let Arguments { json, long, .. } = arguments;
    let is_checked = |block: &&Block| long || !(block.long || block.only_long);
    let checked: Vec<Block> = all.iter().filter(is_checked).cloned().collect();
    match arguments.action {
        Action::Layouts { .. } | Action::Table3 { .. } => {}
        Action::Lint => {
            lint::lint(&tools, &all)?;
            let linted: Vec<_> = all.iter().map(|block| Finding::new(&block.name)).collect();
            report("lint", &linted, json);
        }
        Action::Lockstep { cycles, seed } => {
            report("lock-step", &lockstep_all(&tools, &all, long, cycles, seed)?, json);
        }
        Action::Prove => {
            report("proofs", &prove::prove(&tools, &checked, false, long)?, json);
        }
        Action::Faults => {
            let mut noticed = prove::prove(&tools, &checked, true, false)?;
            noticed.extend(canary::canaries(&tools, &checked)?);
            report("planted faults", &noticed, json);
        }
        Action::Mutants { count, cycles } => {
            report("mutants", &mutate::mutate(&tools, &all, count, cycles)?, json);
        }
        Action::Synthesize { write } => {
            // The file has all blocks.
            let measured = if write { &all } else { &checked };
            report("areas", &synthesize::synthesize(&tools, measured, long, write)?, json);
        }
        Action::Place => report("places", &place::place(&tools, &all)?, json),
        Action::Library { to } => {
            let whole = all.iter().find(|block| block.name == library::BLOCK);
            let whole = whole.context("the library is of another block")?;
            library::library(&tools, whole, &to)?;
            report("library", &[Finding::new(to.display().to_string())], json);
        }
    }
    Ok(())
}

/// Runs the configurations of the blocks; without `long` only the last one of a block whose checks
/// take long, or none.
fn lockstep_all(
    tools: &Tools,
    blocks: &[Block],
    long: bool,
    cycles: u64,
    seed: u64,
) -> Result<Vec<Finding>> {
    let mut jobs = Vec::new();
    for block in blocks.iter().filter(|block| long || !block.only_long) {
        let skipped = if block.long && !long { block.lockstep.len().saturating_sub(1) } else { 0 };
        let configurations = &block.lockstep[skipped..];
        let share = cycles.div_ceil(block.slowness * configurations.len().max(1) as u64);
        jobs.extend(configurations.iter().map(|parameters| (block, numbers(parameters), share)));
    }
    let done = in_parallel("lock-step", &jobs, |(block, parameters, share)| -> Result<Finding> {
        let name = parameters.iter().map(|(name, value)| format!("{name}={value}"));
        let name = format!("{} {}", block.name, name.collect::<Vec<_>>().join(" "));
        let recipe = Recipe {
            top: format!("{}_bench", block.top),
            sources: block.with_bench(),
            parameters: parameters.clone(),
            kind: Kind::Program,
        };
        let program = recipe.build(tools)?;
        let mut bench = loads::load(&block.name, parameters, seed)?;
        let mut simulation = Simulation::start(&program, 0)?;
        let vcd = tools.out.join(format!("{}.vcd", block.name));
        let started = Instant::now();
        lockstep::lockstep(&mut *bench, &mut simulation, *share, Some(&vcd)).with_context(
            || format!("{name}, seed {seed}; the last cycles are in {}", vcd.display()),
        )?;
        let rate = *share as f64 / started.elapsed().as_secs_f64() / 1e6;
        let found = Finding::new(format!("{name}, seed {seed}"));
        Ok(found.with("cycles", *share).with("Mcycles/s", rate))
    });
    done.into_iter().collect()
}
