//! How many mutants are caught, and why the others are not.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::campaign::part_of;
use crate::ledger::{Ledger, Verdict};
use crate::{LEDGERS, PACKAGES, ledger_path};

/// What each package must reach, in percent.
const GOAL: f64 = 90.0;

/// Why mutants may survive: each reason with its mutants.
#[derive(Deserialize)]
struct Survivors {
    #[serde(default)]
    reason: Vec<Reason>,
}

#[derive(Deserialize)]
struct Reason {
    /// `equivalent`, `log text` or `speed only`, and a sentence that says why.
    kind: Kind,
    why: String,
    mutants: Vec<String>,
}

#[derive(Clone, Copy, Deserialize, Debug, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Equivalent,
    LogText,
    SpeedOnly,
}

#[derive(Serialize)]
struct Line {
    package: &'static str,
    mutants: usize,
    caught: usize,
    /// Of those that are neither unviable nor excused.
    percent: f64,
    missed: usize,
    unreached: usize,
    hangs: usize,
    excused: usize,
    unviable: usize,
}

/// Prints the state of all ledgers, whole or not. Returns whether each is whole and reaches its
/// goal, and all reasons are for mutants that survive.
///
/// # Errors
/// A ledger or the list of reasons cannot be read.
pub fn report(top: &Path, json: bool) -> Result<bool> {
    let path = top.join(LEDGERS).join("survivors.toml");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let survivors: Survivors = toml::from_str(&text).with_context(|| path.display().to_string())?;
    let mut excused = BTreeMap::new();
    let mut faults = Vec::new();
    for reason in &survivors.reason {
        if reason.why.trim().is_empty() {
            faults.push(format!("a {:?} reason says nothing", reason.kind));
        }
        for mutant in &reason.mutants {
            if excused.insert(mutant.as_str(), reason.kind).is_some() {
                faults.push(format!("two reasons for {mutant}"));
            }
        }
    }
    let mut used = BTreeSet::new();
    let mut lines = Vec::new();
    for package in PACKAGES {
        let whole = ledger_path(top, package);
        let ledger = if whole.exists() {
            Ledger::open(&whole)?
        } else {
            faults.push(format!("{package}: its ledger is not whole"));
            Ledger::open(&part_of(&whole))?
        };
        let mut line = Line {
            package,
            mutants: ledger.verdicts.len(),
            caught: 0,
            percent: 0.0,
            missed: 0,
            unreached: 0,
            hangs: 0,
            excused: 0,
            unviable: 0,
        };
        for (key, verdict) in &ledger.verdicts {
            let is_excused = excused.contains_key(key.as_str());
            match verdict {
                Verdict::Caught(_) => line.caught += 1,
                Verdict::Unviable => line.unviable += 1,
                _ if is_excused => {
                    used.insert(key.clone());
                    line.excused += 1;
                }
                Verdict::Missed | Verdict::Passed => line.missed += 1,
                Verdict::Unreached => line.unreached += 1,
                Verdict::Hangs(_) => line.hangs += 1,
            }
        }
        let of = line.mutants - line.unviable - line.excused;
        line.percent = 100.0 * line.caught as f64 / of.max(1) as f64;
        if line.percent < GOAL {
            faults.push(format!("{package}: {:.1} % of {of} are caught", line.percent));
        }
        lines.push(line);
    }
    faults.extend(
        excused
            .keys()
            .filter(|key| !used.contains(**key))
            .map(|key| format!("a reason for a mutant that does not survive: {key}")),
    );
    if json {
        println!("{}", serde_json::to_string_pretty(&lines)?);
    } else {
        println!(
            "package             mutants  caught       %  missed  unreached  hangs  excused  unviable"
        );
        for it in &lines {
            println!(
                "{:<18} {:>8} {:>7} {:>7.1} {:>7} {:>10} {:>6} {:>8} {:>9}",
                it.package,
                it.mutants,
                it.caught,
                it.percent,
                it.missed,
                it.unreached,
                it.hangs,
                it.excused,
                it.unviable
            );
        }
    }
    for fault in &faults {
        eprintln!("error: {fault}");
    }
    Ok(faults.is_empty())
}
