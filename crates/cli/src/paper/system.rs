//! `bellwire paper NAME`: the experiments of one paper, on the model of its system.

use super::hpcl_real;
use crate::command::{Outcome, WrongUsage, print_json, write_file};
use anyhow::{Result, anyhow};
use bellwire_model::damq_pd::Organisation;
use bellwire_model::damq_pd::experiments::{fig9, waveform};
use bellwire_model::experiment::Experiment;
use bellwire_model::system::{Paper, System};
use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand};
use std::path::PathBuf;

/// A command for each of the modelled systems.
pub struct OfSystem {
    paper: Paper,
    chosen: Experiments,
    drawn: Option<Fig9>,
    real: Option<Real>,
}

#[derive(Args)]
struct Experiments {
    /// Only this experiment
    id: Option<String>,
    /// The names of the experiments instead of their results
    #[arg(long, conflicts_with_all = ["id", "json"])]
    list: bool,
    /// One JSON array instead of tables
    #[arg(long)]
    json: bool,
}

/// What only DAMQ-PD has.
#[derive(Args)]
struct Fig9 {
    /// Writes the waveform of the run of section 3.3 (Fig. 9) to this file, as a value change dump
    #[arg(long, value_name = "FILE")]
    vcd: Option<PathBuf>,
    /// Draws the run of section 3.3 (Fig. 9) into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// What only HPCL/Ethernet has.
#[derive(Args)]
struct Real {
    /// Runs the paper's pingpong and burst on this machine's device instead of the model, beside
    /// TCP: `udp` over loopback, `eth` in two network namespaces that it makes (root)
    #[arg(long, value_name = "DEVICE", conflicts_with_all = ["id", "list"])]
    real: Option<hpcl_real::Carrier>,
}

const FIG_9: &str = "damq-pd";
const REAL: &str = "hpcl-ethernet";

impl Subcommand for OfSystem {
    fn augment_subcommands(command: Command) -> Command {
        System::of_papers()
            .fold(command, |command, (system, paper)| command.subcommand(of(system, paper)))
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        OfSystem::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        System::named(name).is_ok_and(|system| system.paper.is_some())
    }
}

fn of(System { name, title, .. }: &System, paper: Paper) -> Command {
    let Paper { name: paper, experiments, .. } = paper;
    let first = experiments.first().map_or("", |first| first.id);
    let command = Command::new(paper)
        .about(format!("Runs the experiments of the {paper} paper on the model of {title}"))
        .long_about(format!(
            "Runs the experiments of the {paper} paper on the model of {title}\n\n\
             Each value stands beside the published one with its relative error, and says whether a \
             constant was fitted to it or the mechanism predicts it. No published value is ever \
             printed as a result."
        ))
        .after_help(format!(
            "Examples:\n  \
             bellwire paper {paper}            all experiments\n  \
             bellwire paper {paper} {first}    one of them\n  \
             bellwire paper {paper} --list     their names\n  \
             bellwire paper {paper} --json | jq '.[].values'"
        ));
    let command = if *name == paper { command } else { command.visible_alias(*name) };
    let command = Experiments::augment_args(command);
    match paper {
        FIG_9 => Fig9::augment_args(command),
        REAL => Real::augment_args(command),
        _ => command,
    }
}

impl FromArgMatches for OfSystem {
    fn from_arg_matches(matches: &ArgMatches) -> Result<OfSystem, clap::Error> {
        let chosen = matches.subcommand();
        let (paper, matches) = chosen
            .and_then(|(name, matches)| Some((System::named(name).ok()?.paper?, matches)))
            .ok_or_else(|| clap::Error::new(clap::error::ErrorKind::InvalidSubcommand))?;
        Ok(OfSystem {
            paper,
            chosen: Experiments::from_arg_matches(matches)?,
            drawn: (paper.name == FIG_9).then(|| Fig9::from_arg_matches(matches)).transpose()?,
            real: (paper.name == REAL).then(|| Real::from_arg_matches(matches)).transpose()?,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = OfSystem::from_arg_matches(matches)?;
        Ok(())
    }
}

impl OfSystem {
    /// Writes the requested files, and runs the experiments.
    pub fn run(&self) -> Result<Outcome> {
        if let Some(drawn) = &self.drawn {
            drawn.write()?;
        }
        match &self.real {
            Some(Real { real: Some(carrier) }) => hpcl_real::run(*carrier, self.chosen.json),
            _ => run_experiments(self.paper.experiments, &self.chosen),
        }
    }
}

impl Fig9 {
    fn write(&self) -> Result<()> {
        let run = |cycles| fig9::test(Organisation::DamqPd, fig9::Reader::Eager, 1, cycles);
        if let Some(file) = &self.vcd {
            write_file(file, waveform::vcd(&run(200)))?;
        }
        if let Some(file) = &self.svg {
            write_file(file, waveform::svg(&run(72)))?;
        }
        Ok(())
    }
}

/// Runs experiments; fails if one cannot run, or misses the paper without an explanation.
fn run_experiments(
    experiments: &[Experiment],
    Experiments { id, list, json }: &Experiments,
) -> Result<Outcome> {
    if *list {
        for experiment in experiments {
            println!("{:<14} {}", experiment.id, experiment.title);
        }
        return Ok(Outcome::Done);
    }
    let chosen = |experiment: &&Experiment| id.as_ref().is_none_or(|id| id == experiment.id);
    let chosen: Vec<&Experiment> = experiments.iter().filter(chosen).collect();
    if chosen.is_empty() {
        let names: Vec<&str> = experiments.iter().map(|experiment| experiment.id).collect();
        return Err(WrongUsage::error(format!(
            "there is no such experiment; there are {}",
            names.join(", ")
        )));
    }
    let mut reports = Vec::new();
    for experiment in chosen {
        let report = experiment.run().map_err(|error| anyhow!("{}: {error}", experiment.id))?;
        if !json {
            println!("{report}");
        }
        reports.push(report);
    }
    if *json {
        print_json(&reports)?;
    }
    Ok(Outcome::done_if(reports.iter().all(|report| report.unexplained().is_empty())))
}
