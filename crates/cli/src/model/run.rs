//! `bellwire model run`: a machine or a network under load, or a program's schedule.

use super::records::Records;
use super::{in_file, read_file};
use crate::command::{Outcome, WrongUsage, print_json, show};
use anyhow::Result;
use bellwire_model::chpp::Config;
use bellwire_model::chpp::workload::SchedulePlan;
use bellwire_model::goal::{self, Schedule};
use bellwire_model::{chpp, network};
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

pub fn run(Arguments { config, example, json, records }: &Arguments) -> Result<Outcome> {
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
        return Ok(Outcome::Done);
    }
    let Some(file) = config else { return Err(WrongUsage::error("give a file, or --example")) };
    let text = read_file(file)?;
    let is_program = text.lines().any(|line| line.trim_start().starts_with("num_ranks"));
    if is_program || file.extension().is_some_and(|extension| extension == "goal") {
        return program(file, &text, None, *json, records);
    }
    if has_table(&text, "schedule") {
        let (plan, config) = SchedulePlan::read(&text).map_err(in_file(file))?;
        let goal = file.parent().unwrap_or(Path::new("")).join(&plan.schedule.goal);
        let text = read_file(&goal)?;
        return program(&goal, &text, Some((plan, config)), *json, records);
    }
    match has_table(&text, "chpp") {
        true => machine(file, &text, *json, records),
        false => fabric(file, &text, *json, records),
    }
}

/// Runs a schedule, on the machine of a plan or on one with a node for each rank, up to the model's
/// limit of nodes.
fn program(
    file: &Path,
    text: &str,
    plan: Option<(SchedulePlan, Config)>,
    json: bool,
    records: &Records,
) -> Result<Outcome> {
    let schedule = Schedule::read(text).map_err(in_file(file))?;
    let (config, eager, seed) = match plan {
        Some((plan, config)) => (config, plan.schedule.eager.count(), plan.seed),
        None => {
            let mut config = Config::prototype();
            config.crossbar.ports = schedule.ranks.len().clamp(2, 16);
            config.crossbar.channels = 4;
            (config, 1024, 0)
        }
    };
    let mut execution =
        chpp::workload::Execution::new(&config, schedule, eager, seed).map_err(in_file(file))?;
    records.prepare(&mut execution.machine);
    let outcome = with_bar(|share| execution.run(share));
    records.write(&execution.machine)?;
    show(&outcome.map_err(in_file(file))?, json)?;
    Ok(Outcome::Done)
}

/// Whether a file has this table. An unreadable file has none; the real parser gives the reason.
fn has_table(text: &str, name: &str) -> bool {
    toml::from_str::<toml::Table>(text).is_ok_and(|table| table.contains_key(name))
}

fn machine(file: &Path, text: &str, json: bool, records: &Records) -> Result<Outcome> {
    let (_, mut workload) = chpp::workload::Plan::read(text).map_err(in_file(file))?;
    records.prepare(&mut workload.machine);
    let report = with_bar(|share| workload.run(share));
    // Also after a deadlock: then the records matter most.
    records.write(&workload.machine)?;
    show(&report.map_err(in_file(file))?, json)?;
    Ok(Outcome::Done)
}

fn fabric(file: &Path, text: &str, json: bool, records: &Records) -> Result<Outcome> {
    let (_, mut experiment) = network::Plan::read(text).map_err(in_file(file))?;
    if !records.is_empty() {
        let why = "traces, waveforms and captures are made of a machine, [chpp], not of a network of routers alone";
        return Err(WrongUsage::error(format!("{}: {why}", file.display())));
    }
    let report = with_bar(|share| experiment.run_telling(share)).map_err(in_file(file))?;
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
