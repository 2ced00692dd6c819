//! Mutation testing: which changes of the code no test notices.
//!
//! cargo-mutants says what the mutants are. All of them are built at once, each behind a switch
//! (`insert.rs`), so that a mutant costs what its tests cost and no build. Each test runs once
//! without a mutant, and records which mutants it reaches. Then each mutant runs the tests that
//! reach it, until one fails. The compiler computes constants, so each of their mutants is built
//! alone. The ledger keeps what became of each mutant.

mod campaign;
mod insert;
mod ledger;
mod list;
mod report;
mod scope;
mod tests;
mod tree;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::{Parser, Subcommand};

use campaign::Campaign;
use report::Report;

/// The packages whose mutants are followed.
const PACKAGES: [&str; 8] = [
    "bellwire-wire",
    "bellwire-ring",
    "bellwire-protocol",
    "bellwire-shm",
    "bellwire",
    "bellwire-tagged",
    "bellwire-ethernet",
    "bellwire-model",
];
/// Its tests are conformance: they may catch mutants of every package.
const CONFORMANCE: &str = "bellwire-testkit";
/// The ledgers, one for each package, from the top of the checkout.
const LEDGERS: &str = "crates/mutants/ledger";

#[derive(Parser)]
#[command(about = "Mutation testing: which changes of the code no test notices")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run all mutants of which the ledger says nothing, and enter them; goes on where it stopped.
    Run {
        /// Only mutants of these packages
        #[arg(long = "package", value_parser = PACKAGES)]
        packages: Vec<String>,
        /// Every N-th mutant, beginning with the K-th
        #[arg(long, value_name = "K/N", default_value = "1/1", value_parser = shard)]
        shard: (usize, usize),
        /// Only mutants of sources whose paths from the top of the checkout begin so
        #[arg(long = "part", value_name = "PATH")]
        parts: Vec<String>,
        /// Features that the tests need, as for cargo
        #[arg(long, default_value = "")]
        features: String,
    },
    /// Run some mutants that the ledger calls caught, others each day; fails if one is not, or if
    /// the ledgers are not as they should be
    Sample {
        /// How many
        #[arg(long, default_value_t = 40)]
        count: usize,
        /// The day, counted from 1970; today without it
        #[arg(long)]
        day: Option<u64>,
        /// Features that the tests need, as for cargo
        #[arg(long, default_value = "")]
        features: String,
    },
    /// Say how many mutants of each package are caught, and which of the others have no reason;
    /// fails below 90 in 100, if a reason is missing or for a mutant that is caught, and if a
    /// ledger lacks more than 2 in 100
    Report {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

fn shard(text: &str) -> Result<(usize, usize), String> {
    let parsed = text
        .split_once('/')
        .and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)))
        .filter(|&(k, n): &(usize, usize)| 1 <= k && k <= n);
    parsed.ok_or_else(|| "give K/N, such as 2/4, with K from 1 to N".to_owned())
}

fn main() -> ExitCode {
    match run(Arguments::parse().task) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Whether all is as it should be.
fn run(task: Task) -> Result<bool> {
    let top = checkout()?;
    match task {
        Task::Run { packages, shard, parts, features } => {
            let packages =
                if packages.is_empty() { PACKAGES.map(String::from).to_vec() } else { packages };
            Campaign::run(&top, &packages, &features, shard, &parts)?;
            Ok(true)
        }
        Task::Sample { count, day, features } => {
            let today = std::time::UNIX_EPOCH.elapsed().context("the clock")?.as_secs() / 86_400;
            let is_good = Report::read(&top)?.is_good();
            Ok(campaign::sample(&top, count, day.unwrap_or(today), &features)? && is_good)
        }
        Task::Report { json } => {
            let report = Report::read(&top)?;
            report.print(json)?;
            Ok(report.is_good())
        }
    }
}

/// The top of the checkout that the current folder is in.
fn checkout() -> Result<PathBuf> {
    let here = std::env::current_dir()?;
    let top = here.ancestors().find(|folder| folder.join(LEDGERS).is_dir());
    let top = top.with_context(|| format!("no folder {LEDGERS} in or above {}", here.display()))?;
    ensure!(top.join("Cargo.toml").is_file(), "{} is no checkout", top.display());
    Ok(top.to_owned())
}

/// The ledger of a package.
fn ledger_path(top: &Path, package: &str) -> PathBuf {
    top.join(LEDGERS).join(package).with_extension("tsv")
}
