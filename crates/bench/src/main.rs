//! `bellwire-bench`: Bellwire's devices beside their peers and the hardware's limits.
//!
//! [`model`] measures the model alone, by CPU time. The rest has two parts: shared memory, and a
//! network of veth pairs between namespaces that the program makes itself ([`network`]). One run
//! measures all contenders in turn ([`rounds`]), in short samples between two probes
//! ([`distance`]). Each contender ([`contenders`]) is a pair of processes ([`worker`]) that the
//! driver controls by lines ([`session`]). The results ([`report`]) go to docs/performance.md, to
//! out/bench.json, and to the terminal.

mod contenders;
mod distance;
mod machine;
mod model;
mod network;
mod op;
mod report;
mod rounds;
mod session;
mod statistics;
mod worker;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand};

use contenders::{CONTENDERS, Contender, Peers, Start};
use machine::Machine;
use op::{MEMORY_ROWS, NETWORK_ROWS, Row, Wire};
use report::Report;
use rounds::{Findings, Runner};
use session::Session;

/// Measures Bellwire beside its peers and beside the limits of the machine, on two pinned CPUs.
#[derive(Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
struct Arguments {
    /// Measure for half a minute per part instead of three, and leave docs/performance.md
    /// unchanged.
    #[arg(long)]
    quick: bool,
    /// Print one JSON object instead of tables.
    #[arg(long)]
    json: bool,
    /// Measure only these, not `all`, and leave docs/performance.md unchanged. `network`: all
    /// contenders over a network.
    #[arg(value_name = "CONTENDER", default_value = "all")]
    only: Vec<String>,
    #[command(subcommand)]
    internal: Option<Internal>,
}

#[derive(Subcommand)]
enum Internal {
    /// Measure how fast the model simulates, beside BookSim2 if it is given.
    Model {
        /// BookSim2's binary.
        #[arg(long, value_name = "PATH")]
        booksim: Option<PathBuf>,
        /// One round instead of five, and leave docs/performance-model.md unchanged.
        #[arg(long)]
        quick: bool,
    },
    /// Be the processes of one contender, driven by lines on standard input.
    #[command(hide = true)]
    Worker { name: String, leader_cpu: usize, follower_cpu: usize },
}

const FULL: Duration = Duration::from_secs(180);
const QUICK: Duration = Duration::from_secs(25);

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    match arguments.internal {
        Some(Internal::Model { booksim, quick }) => {
            model::run(&project_root()?, booksim.as_ref(), quick)
        }
        Some(Internal::Worker { name, leader_cpu, follower_cpu }) => {
            let Some(Contender { start: Start::InHouse(contender), .. }) = contenders::named(&name)
            else {
                bail!("no contender of this program is named `{name}`");
            };
            worker::serve(contender, [leader_cpu, follower_cpu])
        }
        None => drive(&arguments),
    }
}

fn drive(arguments: &Arguments) -> Result<()> {
    let all = arguments.only == ["all"];
    let parts = choose(&arguments.only)?;
    let cpus = machine::two_cpus()?;
    let root = project_root()?;
    let out = root.join("out");
    let logs = out.join("bench-logs");
    let chosen = || parts.iter().flat_map(|(_, chosen)| chosen);
    if chosen().any(|contender| matches!(contender.start, Start::Program(_))) {
        Peers::set_up(&root)?;
    }
    let peers = Peers::under(&root);

    let line = contenders::named("line").context("the probe is a contender")?;
    let mut probe = Session::start(line, Wire::Memory, &peers, &logs, cpus).context("the probe")?;
    let time = if arguments.quick { QUICK } else { FULL };
    let (mut findings, mut absent) = (Findings::default(), Vec::new());
    for (part, chosen) in &parts {
        let mut runners = Vec::new();
        for (contender, wire) in chosen.iter().flat_map(|contender| part.wires(contender)) {
            match Session::start(contender, wire, &peers, &logs, cpus) {
                Ok(session) => runners.push(Runner::new(contender, wire, session)),
                Err(why) => {
                    let why = (contender.name, format!("{why:#}"));
                    if !absent.contains(&why) {
                        absent.push(why);
                    }
                }
            }
        }
        rounds::measure(&mut runners, part.rows(), &mut probe, time, &mut findings)?;
    }
    drop(probe);

    let command = match arguments.quick {
        true => "cargo run --release -p bellwire-bench -- --quick",
        false => "make bench",
    };
    let machine = Machine::look(cpus);
    let report =
        Report::new(command.to_string(), machine, &findings, absent, |name| peers.version(name));
    let json = serde_json::to_string_pretty(&report)?;
    let markdown = report::markdown(&report, CONTENDERS);
    std::fs::write(out.join("bench.json"), &json).context("writing out/bench.json")?;
    if !arguments.quick && all {
        let path = root.join("docs/performance.md");
        std::fs::write(&path, &markdown).context("writing docs/performance.md")?;
    }
    print!("{}", if arguments.json { json + "\n" } else { markdown });
    Ok(())
}

/// Rows that are measured together.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Memory,
    Network,
}

impl Part {
    fn rows(self) -> &'static [Row] {
        match self {
            Part::Memory => MEMORY_ROWS,
            Part::Network => NETWORK_ROWS,
        }
    }

    /// The wires of this part that a contender is measured over.
    fn wires(
        self,
        contender: &'static Contender,
    ) -> impl Iterator<Item = (&'static Contender, Wire)> {
        let network = self == Part::Network;
        let wires = contender.wires.iter().filter(move |wire| wire.mtu().is_some() == network);
        wires.map(move |&wire| (contender, wire))
    }
}

/// The parts to measure, and the chosen contenders in them: `all`, `network`, or single names.
fn choose(names: &[String]) -> Result<Vec<(Part, Vec<&'static Contender>)>> {
    let known = || CONTENDERS.iter().map(|c| c.name).collect::<Vec<_>>().join(", ");
    let everything = names == ["all"];
    let mut chosen: Vec<&'static Contender> = Vec::new();
    for name in names {
        match name.as_str() {
            "all" => chosen.extend(CONTENDERS),
            "network" => {
                chosen.extend(CONTENDERS.iter().filter(|c| Part::Network.wires(c).next().is_some()))
            }
            name => chosen.push(contenders::named(name).with_context(|| {
                format!("no contender is named `{name}`; there are {}, network and all", known())
            })?),
        }
    }
    let mut parts = Vec::new();
    for part in [Part::Memory, Part::Network] {
        let of_part: Vec<_> =
            chosen.iter().copied().filter(|c| part.wires(c).next().is_some()).collect();
        if everything || !of_part.is_empty() {
            parts.push((part, of_part));
        }
    }
    Ok(parts)
}

/// The project's folder: cargo gives the crate's folder, two levels below.
fn project_root() -> Result<PathBuf> {
    let crate_folder = std::env::var("CARGO_MANIFEST_DIR")
        .unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").to_string());
    let root = PathBuf::from(crate_folder).join("../..");
    root.canonicalize().context("the project's folder: run this by `make bench` or `cargo run`")
}
