//! `bellwire model run`: a machine or a network under load, or a program's schedule.

use super::records::Records;
use super::{in_file, read_file};
use crate::command::Outcome::{self as Ended, Done};
use crate::command::{WrongUsage, print_json, sentence, show};
use anyhow::Result;
use bellwire_model::load::{Load, Outcome};
use bellwire_model::{chpp, goal, network};
use indicatif::{ProgressBar, ProgressStyle};
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
pub struct Arguments {
    /// The file: a plan in TOML, of which `--example` prints one, or a schedule in GOAL (`*.goal`)
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
    /// The cHPP machine under a program's schedule; the schedule is another file
    Schedule,
    /// A schedule, in GOAL
    Goal,
}

pub fn run(Arguments { config, example, json, records }: &Arguments) -> Result<Ended> {
    if let Some(example) = example {
        print!(
            "{}",
            match example {
                Example::Chpp => chpp::workload::EXAMPLE,
                Example::Network => network::EXAMPLE,
                Example::Schedule => chpp::workload::SCHEDULE_EXAMPLE,
                Example::Goal => goal::EXAMPLE,
            }
        );
        return Ok(Done);
    }
    let Some(file) = config else { return Err(WrongUsage::error("give a file, or --example")) };
    let text = read_file(file)?;
    // The schedule that a plan names, for errors in it.
    let mut schedule = file.clone();
    let load = match file.extension().is_some_and(|extension| extension == "goal") {
        true => Load::program(&text, None),
        false => Load::read(&text, |goal| {
            schedule = file.parent().unwrap_or(Path::new("")).join(goal);
            read_file(&schedule).map_err(|error| sentence(&error))
        }),
    };
    let mut load = load.map_err(|error| {
        let place = if error.in_schedule { &schedule } else { file };
        in_file(place)(error)
    })?;
    match load.machine() {
        Some(machine) => records.prepare(machine),
        None if !records.is_empty() => {
            let why = "traces, waveforms and captures are made of a machine, [chpp], not of a network of routers alone";
            return Err(WrongUsage::error(format!("{}: {why}", file.display())));
        }
        None => {}
    }
    let outcome = with_bar(|share| load.run(share));
    // Also after a deadlock: then the records matter most.
    if let Some(machine) = load.machine() {
        records.write(machine)?;
    }
    let outcome = outcome.map_err(in_file(&schedule))?;
    match (&load, outcome) {
        (Load::Network(experiment), Outcome::Network(report)) if !*json => {
            println!("{}", experiment.fabric().topology().name());
            print!("{report}");
            println!(
                "fairness     {:.3} (least through most delivered from a terminal)",
                report.fairness()
            );
        }
        (_, Outcome::Machine(report)) => show(&report, *json)?,
        (_, Outcome::Program(outcome)) => show(&outcome, *json)?,
        (_, Outcome::Network(report)) => print_json(&report)?,
    }
    Ok(Done)
}

/// Runs with a progress bar on standard error, if that is a terminal. `run` tells the bar which
/// share of it is done.
fn with_bar<T>(run: impl FnOnce(&dyn Fn(f64)) -> T) -> T {
    let style =
        ProgressStyle::with_template("{elapsed_precise} {wide_bar} {percent} %, {eta} to go");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::new(100).with_style(style);
    let result = run(&|share| bar.set_position((share * 100.0) as u64));
    bar.finish_and_clear();
    result
}
