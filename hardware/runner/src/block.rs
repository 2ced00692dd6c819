//! The blocks: each folder below `hardware` with a `block.toml`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;
use toml::Table;

/// A block, as its `block.toml` has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Block {
    /// The folder's name.
    #[serde(skip)]
    pub name: String,
    /// Its modules and all that they use, in order of compilation; from the repository's root.
    pub sources: Vec<PathBuf>,
    /// The module with packed ports; a small block may have none, and is tested by its users.
    pub bench: Option<PathBuf>,
    /// The top module.
    pub top: String,
    /// Its checks take long: without `--long` it is linted, and its last configuration runs in
    /// lock-step.
    #[serde(default)]
    pub long: bool,
    /// More than `long`: without `--long` it is linted only. Its parts run in lock-step by
    /// themselves, and compiling all of them once more takes long.
    #[serde(default)]
    pub only_long: bool,
    /// Its lock-step is so many times slower than that of others, and has as many times fewer
    /// cycles.
    #[serde(default = "as_usual")]
    pub slowness: u64,
    /// Parameters of the benches.
    #[serde(default)]
    pub lockstep: Vec<Table>,
    /// Proofs.
    #[serde(default)]
    pub proof: Vec<Proof>,
    /// Parameters with which areas are measured; one that is `long` takes half a minute, and is
    /// measured only if asked for.
    #[serde(default)]
    pub synthesis: Vec<Table>,
    /// Parameters of the bench whose gates are mutated.
    pub mutation: Option<Table>,
    /// The modules that are mutated, if not all are: with a block that consists of others, wires
    /// between them. Those have ledgers of their own.
    #[serde(default)]
    pub mutated: Vec<String>,
}

/// A proof.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proof {
    /// The file of SymbiYosys.
    pub sby: PathBuf,
    /// It takes minutes: run only if asked for.
    #[serde(default)]
    pub long: bool,
}

/// Faults to plant.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Faults {
    /// One for each property.
    #[serde(default)]
    pub fault: Vec<Fault>,
}

/// A change of a source that a property must notice.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// The label of the assertion.
    pub property: String,
    /// The source.
    pub file: PathBuf,
    /// What stands there once.
    pub from: String,
    /// What is put there.
    pub to: String,
    /// Cycles until the property fails, at most.
    #[serde(default = "few")]
    pub cycles: u32,
    /// Lock-step must notice it, too.
    #[serde(default)]
    pub lockstep: bool,
}

const fn as_usual() -> u64 {
    1
}

fn few() -> u32 {
    12
}

/// All blocks in order of their names.
///
/// # Errors
/// With file and place, for a file that cannot be read.
pub fn blocks(root: &Path) -> Result<Vec<Block>> {
    let folder = root.join("hardware");
    let mut all = Vec::new();
    for entry in folder.read_dir().with_context(|| format!("no {}", folder.display()))?.flatten() {
        let path = entry.path().join("block.toml");
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let mut block: Block = toml::from_str(&text).with_context(|| path.display().to_string())?;
        block.name = entry.file_name().to_string_lossy().into_owned();
        all.push(block);
    }
    all.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(all)
}

impl Block {
    /// The faults that its properties must notice.
    ///
    /// # Errors
    /// For a file that cannot be read.
    pub fn faults(&self, root: &Path) -> Result<Vec<Fault>> {
        let path = root.join(format!("hardware/{}/formal/faults.toml", self.name));
        let Ok(text) = fs::read_to_string(&path) else { return Ok(Vec::new()) };
        let faults: Faults = toml::from_str(&text).with_context(|| path.display().to_string())?;
        Ok(faults.fault)
    }

    /// Everything that the bench consists of, in order of compilation; without a bench, the block.
    pub fn with_bench(&self) -> Vec<PathBuf> {
        let ports = self.bench.as_ref().map(|_| self.ports());
        ports.into_iter().chain(self.sources.clone()).chain(self.bench.clone()).collect()
    }

    /// The package of its ports.
    pub fn ports(&self) -> PathBuf {
        format!("hardware/{}/test/{}_ports.sv", self.name, self.name).into()
    }
}

/// A block's first configuration in lock-step has these numbers, in the order of their names.
#[cfg(test)]
#[track_caller]
pub fn assert_first_configuration(name: &str, expected: &[(&str, u64)]) {
    let blocks = blocks(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap();
    let block = blocks.iter().find(|block| block.name == name).unwrap();
    let found = numbers(&block.lockstep[0]);
    let found: Vec<_> = found.iter().map(|(name, number)| (name.as_str(), *number)).collect();
    assert_eq!(found, expected);
}

/// The numbers of a table, in its order.
pub fn numbers(table: &Table) -> Vec<(String, u64)> {
    let number = |(name, value): (&String, &toml::Value)| {
        value.as_integer().map(|value| (name.clone(), value as u64))
    };
    table.iter().filter_map(number).collect()
}
