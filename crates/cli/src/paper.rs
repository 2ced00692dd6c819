//! `bellwire paper`: the project's state for each paper that it joins, and the papers' experiments
//! on its models.

mod all;
mod hpcl_real;

use crate::command::{Outcome, WrongUsage, print_json};
use anyhow::{Context, Result, anyhow};
use bellwire_model::experiment::Experiment;
use bellwire_model::{chpp, damq_pd, hpcl, myvia, smp};
use bellwire_papers::{Paper, Query, State, scoreboard};
use std::path::PathBuf;

/// What the project shows of the papers that it joins
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Prints each feature row with its state and the tests that show it, or why there are none
    ///
    /// Run it inside a checkout of Bellwire. Rows come from crates/papers/rows.toml, states from
    /// citations in the code and from `shows:` lines above tests. It fails if a citation names a
    /// row that does not exist.
    #[command(after_help = "\
Examples:
  bellwire paper rows                            all rows
  bellwire paper rows --paper damq-pd --state open
  bellwire paper rows --json | jq .totals")]
    Rows(Rows),
    /// Runs the experiments of all papers, and puts them on one page
    ///
    /// Prints for each paper how many values match the published ones, and how closely. It fails if
    /// a value or statement misses the paper without an explanation. It uses all cores.
    #[command(after_help = "\
Examples:
  bellwire paper all                             a line for each paper
  bellwire paper all --html report.html          one page that opens offline
  bellwire paper all --svg charts                each chart as a file
  bellwire paper all --json | jq '.[].reports[].values'")]
    All(all::Arguments),
    /// Runs the experiments of the cHPP paper on the model of its network interface
    ///
    /// Each value stands beside the published one with its relative error, and says whether a
    /// constant was fitted to it or the mechanism predicts it. No published value is ever printed
    /// as a result.
    #[command(
        after_help = "\
Examples:
  bellwire paper chpp                            all experiments
  bellwire paper chpp table3                     one of them
  bellwire paper chpp --list                     their names
  bellwire paper chpp --json | jq '.[].values'",
        visible_alias = "chpp-nic"
    )]
    Chpp(Experiments),
    /// Runs the experiments of the DAMQ-PD paper on the model of its descriptor interface
    ///
    /// Each value stands beside the published one with its relative error. Nothing is calibrated,
    /// and no published value is ever printed as a result.
    #[command(after_help = "\
Examples:
  bellwire paper damq-pd                         all experiments
  bellwire paper damq-pd rate                    one of them
  bellwire paper damq-pd --list                  their names
  bellwire paper damq-pd fig9 --vcd run.vcd      the run of 3.3, for GTKWave
  bellwire paper damq-pd --json | jq '.[].values'")]
    DamqPd(DamqPd),
    /// Runs the experiments of the MyVIA paper on the models of MyVIA, Berkeley VIA, GM and M-VIA
    ///
    /// Each value stands beside the published one with its relative error, and says whether a
    /// constant was fitted to it or the mechanism predicts it. No published value is ever printed
    /// as a result.
    #[command(after_help = "\
Examples:
  bellwire paper myvia                           all experiments
  bellwire paper myvia fig6                      one of them
  bellwire paper myvia --list                    their names
  bellwire paper myvia --json | jq '.[].figures'")]
    Myvia(Experiments),
    /// Runs the experiments of the SMP paper on the model of its direct link
    ///
    /// Each value stands beside the published one with its relative error, and says whether a
    /// constant was fitted to it or the mechanism predicts it. No published value is ever printed
    /// as a result.
    #[command(after_help = "\
Examples:
  bellwire paper smp-interconnect                all experiments
  bellwire paper smp-interconnect fig6           one of them
  bellwire paper smp-interconnect --list         their names
  bellwire paper smp-interconnect --json | jq '.[].claims'")]
    SmpInterconnect(Experiments),
    /// Runs the experiments of the HPCL/Ethernet paper on the model of its cluster
    ///
    /// Each value stands beside the published one with its relative error, and says whether a
    /// constant was fitted to it or the mechanism predicts it. No published value is ever printed
    /// as a result.
    #[command(after_help = "\
Examples:
  bellwire paper hpcl-ethernet                   all experiments
  bellwire paper hpcl-ethernet fig7              one of them
  bellwire paper hpcl-ethernet --list            their names
  bellwire paper hpcl-ethernet --json | jq '.[].figures'
  bellwire paper hpcl-ethernet --real udp        its programs on a real device, beside TCP, over loopback
  bellwire paper hpcl-ethernet --real eth        the same in two network namespaces that it makes (root)")]
    HpclEthernet(HpclEthernet),
}

#[derive(clap::Args)]
struct Rows {
    /// Only this paper: chpp-nic, damq-pd, myvia, smp-interconnect, hpcl-ethernet or baselines
    #[arg(long)]
    paper: Option<Paper>,
    /// Only rows in this state: shown (by a test), cited (in code only) or open
    #[arg(long)]
    state: Option<State>,
    /// One JSON object instead of a table
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
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

#[derive(clap::Args)]
struct DamqPd {
    #[command(flatten)]
    experiments: Experiments,
    /// Writes the waveform of the run of section 3.3 (Fig. 9) to this file, as a value change dump
    #[arg(long, value_name = "FILE")]
    vcd: Option<PathBuf>,
    /// Draws the run of section 3.3 (Fig. 9) into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

#[derive(clap::Args)]
struct HpclEthernet {
    #[command(flatten)]
    experiments: Experiments,
    /// Runs the paper's pingpong and burst on this machine's device instead of the model, beside
    /// TCP
    #[arg(long, value_name = "DEVICE", conflicts_with_all = ["id", "list"])]
    real: Option<hpcl_real::Carrier>,
}

/// Prints the requested table.
pub fn run(arguments: &Arguments) -> Result<Outcome> {
    match &arguments.what {
        What::Rows(rows) => print_rows(rows),
        What::All(arguments) => all::run(arguments),
        What::Chpp(chosen) => run_experiments(&chpp::experiments::EXPERIMENTS, chosen),
        What::DamqPd(chosen) => run_damq_pd(chosen),
        What::Myvia(chosen) => run_experiments(&myvia::experiments::EXPERIMENTS, chosen),
        What::SmpInterconnect(chosen) => run_experiments(&smp::experiments::EXPERIMENTS, chosen),
        What::HpclEthernet(HpclEthernet { experiments, real: None }) => {
            run_experiments(&hpcl::experiments::EXPERIMENTS, experiments)
        }
        What::HpclEthernet(HpclEthernet { experiments, real: Some(carrier) }) => {
            hpcl_real::run(*carrier, experiments.json)
        }
    }
}

/// Writes the requested files, and runs experiments.
fn run_damq_pd(DamqPd { experiments, vcd, svg }: &DamqPd) -> Result<Outcome> {
    use damq_pd::experiments::{EXPERIMENTS, fig9, waveform};
    let run = |cycles| fig9::test(damq_pd::Organisation::DamqPd, fig9::Reader::Eager, 1, cycles);
    let drawn = [(vcd, waveform::vcd(&run(200))), (svg, waveform::svg(&run(72)))];
    for (file, text) in drawn {
        if let Some(file) = file {
            std::fs::write(file, text)
                .with_context(|| format!("cannot write {}", file.display()))?;
        }
    }
    run_experiments(&EXPERIMENTS, experiments)
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

/// Prints the scoreboard; fails if the project's citations have problems.
fn print_rows(Rows { paper, state, json }: &Rows) -> Result<Outcome> {
    let query = Query { paper: *paper, state: *state };
    let board = scoreboard(&std::env::current_dir()?, &query)?;
    if *json {
        print_json(&board)?;
    } else {
        println!("{board}");
    }
    Ok(Outcome::done_if(board.problems.is_empty()))
}
