//! Lint: Verilator with all warnings, and Verible's rules and format.

use std::process::Command;

use anyhow::{Context, Result};

use crate::block::Block;
use crate::layouts::{LINK_PKG, PCIE_PKG, REGS_PKG};
use crate::tools::{Tools, run};

/// Checks all sources of the blocks, their benches and packages.
///
/// # Errors
/// The first complaint.
pub fn lint(tools: &Tools, blocks: &[Block]) -> Result<()> {
    let verilator = tools.verilator()?;
    for block in blocks {
        let all = block.with_bench();
        let top = if block.bench.is_some() { "_bench" } else { "" };
        let mut command = Command::new(verilator.join("bin/verilator_bin"));
        command.env("VERILATOR_ROOT", &verilator).current_dir(&tools.root);
        command.args(["--lint-only", "-Wall", "--top-module", &format!("{}{top}", block.top)]);
        run(command.args(&all)).with_context(|| block.name.clone())?;
        let rules = "--rules=-line-length";
        run(tools.command("verible-verilog-lint").arg(rules).args(&all))?;
        for file in &all {
            let is_written =
                [LINK_PKG, PCIE_PKG, REGS_PKG].iter().any(|package| file.ends_with(package));
            if *file != block.ports() && !is_written {
                run(tools.command("verible-verilog-format").arg("--verify").arg(file))
                    .with_context(|| format!("{} is not formatted", file.display()))?;
            }
        }
    }
    Ok(())
}
