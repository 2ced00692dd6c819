//! `bellwire model`: network interfaces in slow motion.

mod explain;
mod records;
mod run;
mod sensitivity;
mod sweep;

use crate::command::Outcome;
use anyhow::{Context, Result, anyhow};
use bellwire_model::sensitivity::sources;
use bellwire_model::system::{SYSTEMS, System};
use std::fmt::Display;
use std::path::Path;

/// Models of network interfaces, in virtual time
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Says where the time of one operation goes, stage by stage, and the reason for each wait
    ///
    /// The operation runs between two idle nodes of the cHPP model, from the processor's first
    /// instruction to the event at the receiver. If there are several controllers, it uses two of
    /// them. The stages follow each other without gaps and sum exactly to the whole.
    #[command(after_help = "\
Examples:
  bellwire model explain --op put --bytes 4096
  bellwire model explain --op nap-immediate --bytes 1 --json
  bellwire model explain --op get --bytes 64 --config mine.toml
  bellwire model explain --op put --bytes 4096 --svg put.svg --trace put.pftrace --vcd put.vcd --pcap put.pcapng

A trace is opened at ui.perfetto.dev, or with any other viewer of Perfetto traces; waveforms with `gtkwave put.vcd` or
`surfer put.vcd`. Both show every packet and every queue of both nodes, in virtual time. The capture is for
`wireshark put.pcapng`; it has an interface for each direction of each link, with PCIe packets or network packets as they
are, byte by byte.")]
    Explain(explain::Arguments),
    /// Runs a machine or a network under load until it is steady, and reports latency, throughput
    /// and their limits
    ///
    /// The file describes the model and its traffic. `[chpp]` is the cHPP machine, whose messages
    /// pass every block of its interfaces. `[topology]` and `[router]` are a network of routers
    /// alone, packet by packet. Both take uniform, permutation, shift, hot-spot and all-to-all
    /// traffic, open loop (random, bursts) and closed loop. The warm-up is detected (MSER-5) and
    /// left out; means come with 95 % confidence. One seed gives one run: the trace hash at the end
    /// is the same on every machine.
    ///
    /// A schedule of a message-passing program in GOAL, the format of LogGOPSim, runs to its end
    /// instead. `[schedule]` in a plan with `[chpp]` names it, or the file itself is given. Ranks
    /// are functions of nodes. Short messages go as NAPs; long ones go by rendezvous, as PUTs.
    /// Deadlocks and unmatched sends or receives are reported with their line.
    #[command(after_help = "\
Examples:
  bellwire model run --example chpp > load.toml      a file that explains itself; change what you like
  bellwire model run load.toml
  bellwire model run load.toml --json --trace load.pftrace
  bellwire model run --example network > torus.toml
  bellwire model run --example goal > program.goal
  bellwire model run program.goal --trace program.pftrace
  bellwire model run --example schedule > plan.toml  the same with a machine of your own")]
    Run(run::Arguments),
    /// Lists the models, and what each offers
    List,
    /// Prints the parameters of a model, each with its source; those of chpp are a template for
    /// --config
    Parameters {
        /// The model
        #[arg(default_value = "chpp", value_parser = System::named)]
        model: &'static System,
    },
    /// Varies each parameter of a model in short runs, and shows what each moves beside what was
    /// predicted
    ///
    /// Each parameter is doubled, halved or set otherwise. For each change the figures that it
    /// moves are shown, with their values before and after. Beside them stands the sign or size
    /// that the model's table of expectations predicts. A line with `!` is a prediction that is
    /// not met. The lists below say which parameters have an effect on one operation, and which
    /// of these the paper leaves open. `network` is of no paper and has no lists.
    #[command(after_help = "\
Examples:
  bellwire model sensitivity damq-pd
  bellwire model sensitivity network --json

Exit codes:
  0  all predictions are met
  1  a prediction is not met; its line begins with `!`, and standard error says how many")]
    Sensitivity(sensitivity::Arguments),
    /// Runs a model once for each point of a grid, a list or a sample of its parameters
    ///
    /// The file names a model, a load, axes and seeds. All cores run points. The results are a
    /// Parquet file with one row a point: parameters, seed, figures, trace hash, version, and the
    /// reason if the point failed. A journal beside it keeps what has ended: the same command goes
    /// on after a kill, and repeats no point.
    #[command(after_help = "\
Examples:
  bellwire model sweep --list                      the loads of each model
  bellwire model sweep --example > sweep.toml      a sweep that explains itself
  bellwire model sweep sweep.toml                  runs it, or what is missing of it
  bellwire model sweep sweep.toml --points 0..100  a part, for one task of an array job
  bellwire model sweep sweep.toml --join sweep.*-*.parquet
  duckdb -c \"select * from 'sweep.parquet'\"

Exit codes:
  0  all points have results
  1  some points failed, and their rows say why; or the sweep could not be run
  2  wrong usage")]
    Sweep(sweep::Arguments),
}

/// Runs the chosen command.
pub fn run(arguments: &Arguments) -> Result<Outcome> {
    match &arguments.what {
        What::Explain(explain) => explain::run(explain),
        What::Run(arguments) => run::run(arguments),
        What::List => {
            list();
            Ok(Outcome::Done)
        }
        What::Parameters { model } => {
            print!("{}", model.parameters);
            Ok(Outcome::Done)
        }
        What::Sensitivity(arguments) => sensitivity::run(arguments),
        What::Sweep(arguments) => sweep::run(arguments),
    }
}

fn list() {
    let line = |[model, parameters, experiments, sensitivity, explain]: [&str; 5], what: &str| {
        println!(
            "{model:<10}{parameters:>10}{experiments:>13}{sensitivity:>13}{explain:>9}   {what}"
        );
    };
    line(["model", "parameters", "experiments", "sensitivity", "explain"], "");
    for system in &SYSTEMS {
        let parameters = sources(system.parameters).len().to_string();
        let experiments = system.paper.map_or(0, |paper| paper.experiments.len()).to_string();
        let explain = if system.explains { "yes" } else { "no" };
        line([system.name, &parameters, &experiments, "yes", explain], system.title);
    }
}

/// Adds the name of the file to an error in its content.
fn in_file<E: Display>(file: &Path) -> impl Fn(E) -> anyhow::Error {
    move |error| anyhow!("{}: {error}", file.display())
}

/// The text of a file that the user named.
fn read_file(file: &Path) -> Result<String> {
    std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
}
