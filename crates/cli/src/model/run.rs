//! `bellwire model run`: a machine or a network under load.

use super::read_file;
use super::records::Records;
use crate::command::{Outcome, WrongUsage, print_json};
use anyhow::{Result, anyhow};
use bellwire_model::{chpp, network};
use indicatif::{ProgressBar, ProgressStyle};
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
pub struct Arguments {
    /// The file; `--example` prints one
    #[arg(required_unless_present = "example")]
    config: Option<PathBuf>,
    /// Prints a file that explains every parameter, instead of running one
    #[arg(long, value_enum, conflicts_with = "config")]
    example: Option<Example>,
    /// One JSON object instead of lines
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    records: Records,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Example {
    /// The cHPP machine
    Chpp,
    /// A network of routers
    Network,
}

/// Runs what the file says.
pub fn run(Arguments { config, example, json, records }: &Arguments) -> Result<Outcome> {
    if let Some(example) = example {
        print!(
            "{}",
            match example {
                Example::Chpp => chpp::workload::EXAMPLE,
                Example::Network => network::EXAMPLE,
            }
        );
        return Ok(Outcome::Done);
    }
    let Some(file) = config else { return Err(WrongUsage::error("give a file, or --example")) };
    let text = read_file(file)?;
    match has_table(&text, "chpp") {
        true => machine(file, &text, *json, records),
        false => fabric(file, &text, *json, records),
    }
}

/// Whether a file has this table. One that cannot be read has none; reading it in earnest says why.
fn has_table(text: &str, name: &str) -> bool {
    toml::from_str::<toml::Table>(text).is_ok_and(|table| table.contains_key(name))
}

fn machine(file: &Path, text: &str, json: bool, records: &Records) -> Result<Outcome> {
    let (_, mut workload) =
        chpp::workload::Plan::read(text).map_err(|error| anyhow!("{}: {error}", file.display()))?;
    records.prepare(&mut workload.machine);
    let bar = bar();
    let report = workload.run(|share| bar.set_position((share * 100.0) as u64));
    bar.finish_and_clear();
    // Also of a run that got stuck: this is when one wants to look.
    records.write(&workload.machine)?;
    let report = report.map_err(|error| anyhow!("{}: {error}", file.display()))?;
    if json {
        print_json(&report)?;
    } else {
        print!("{report}");
    }
    Ok(Outcome::Done)
}

fn fabric(file: &Path, text: &str, json: bool, records: &Records) -> Result<Outcome> {
    let (_, mut experiment) =
        network::Plan::read(text).map_err(|error| anyhow!("{}: {error}", file.display()))?;
    if !records.is_empty() {
        let why = "traces, waveforms and captures are made of a machine, [chpp], not of a network of routers alone";
        return Err(WrongUsage::error(format!("{}: {why}", file.display())));
    }
    let bar = bar();
    let report = experiment.run_telling(|share| bar.set_position((share * 100.0) as u64));
    bar.finish_and_clear();
    let report = report.map_err(|error| anyhow!("{}: {error}", file.display()))?;
    if json {
        print_json(&report)?;
    } else {
        println!("{}", experiment.fabric().topology().name());
        print!("{report}");
        println!(
            "fairness     {:.3} (least through most delivered from a terminal)",
            report.fairness()
        );
    }
    Ok(Outcome::Done)
}

/// A bar on standard error, if that is a terminal.
fn bar() -> ProgressBar {
    let style =
        ProgressStyle::with_template("{elapsed_precise} {wide_bar} {percent} %, {eta} to go");
    ProgressBar::new(100).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
