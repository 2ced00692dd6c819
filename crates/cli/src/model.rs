//! `bellwire model`: network interfaces in slow motion.

use crate::command::{Outcome, WrongUsage, print_json};
use anyhow::{Context, Result, anyhow};
use bellwire_model::chpp::experiments::Kind;
use bellwire_model::chpp::experiments::single::single_on;
use bellwire_model::chpp::record::{perfetto, vcd};
use bellwire_model::chpp::{Config, Machine, picture};
use std::path::{Path, PathBuf};

/// Models of network interfaces, in virtual time
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Says where the time of one operation goes, stage by stage, and what each wait was for
    ///
    /// The operation runs between two idle nodes of the cHPP model, from the processor's first instruction to the event at the
    /// receiver. The stages follow each other without gap, and sum exactly to the whole.
    #[command(after_help = "\
Examples:
  bellwire model explain --op put --bytes 4096
  bellwire model explain --op nap-immediate --bytes 1 --json
  bellwire model explain --op get --bytes 64 --config mine.toml
  bellwire model explain --op put --bytes 4096 --svg put.svg --trace put.pftrace --vcd put.vcd

A trace is opened at ui.perfetto.dev, or with any other viewer of Perfetto traces; waveforms with `gtkwave put.vcd` or
`surfer put.vcd`. Both show every packet and every queue of both nodes, in virtual time.")]
    Explain(Explain),
    /// Prints the parameters of the cHPP model, to be changed and given to --config
    Parameters,
}

#[derive(clap::Args)]
struct Explain {
    /// The operation
    #[arg(long, value_enum)]
    op: Operation,
    /// Bytes that it moves; a NAP carries 2048 at most
    #[arg(long)]
    bytes: u64,
    /// A file of parameters instead of the paper's prototype
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// One JSON object, times in picoseconds with their unit, instead of a table
    #[arg(long)]
    json: bool,
    /// Also draws the table into this file: an SVG picture, for any browser
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    records: Records,
}

/// Files for programs that show what a machine did.
#[derive(clap::Args)]
struct Records {
    /// Also writes a trace for ui.perfetto.dev: a track for each block, a counter for each queue, arrows along each message
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Also writes waveforms of queues and handshakes, for GTKWave or Surfer (VCD)
    #[arg(long, value_name = "FILE")]
    vcd: Option<PathBuf>,
}

impl Records {
    /// Has a machine note what these files need, before it runs.
    fn prepare(&self, machine: &mut Machine) {
        if self.trace.is_some() {
            machine.open_journal();
        }
        if self.trace.is_some() || self.vcd.is_some() {
            machine.watch_signals();
        }
    }

    /// Writes them.
    fn write(&self, machine: &Machine) -> Result<()> {
        if let Some(file) = &self.trace {
            write_file(file, perfetto::trace(machine))?;
        }
        if let Some(file) = &self.vcd {
            write_file(file, vcd::waveforms(machine))?;
        }
        Ok(())
    }
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Operation {
    /// NAP with its data inside the descriptor
    NapImmediate,
    /// NAP with its data in memory
    NapIndirect,
    /// PUT
    Put,
    /// GET
    Get,
}

/// Does what was asked for.
pub fn run(arguments: &Arguments) -> Result<Outcome> {
    match &arguments.what {
        What::Explain(explain) => run_explain(explain),
        What::Parameters => {
            print!("{}", bellwire_model::chpp::config::PROTOTYPE);
            Ok(Outcome::Done)
        }
    }
}

fn run_explain(Explain { op, bytes, config, json, svg, records }: &Explain) -> Result<Outcome> {
    let config = match config {
        None => Config::prototype(),
        Some(file) => {
            let text = std::fs::read_to_string(file)
                .with_context(|| format!("cannot read {}", file.display()))?;
            Config::parse(&text).map_err(|error| anyhow!("{}: {error}", file.display()))?
        }
    };
    let kind = match op {
        Operation::NapImmediate => Kind::NapImmediate,
        Operation::NapIndirect => Kind::NapIndirect,
        Operation::Put => Kind::Put,
        Operation::Get => Kind::Get,
    };
    if kind.is_nap() && *bytes > 2048 {
        return Err(WrongUsage::error(format!(
            "a NAP carries 2048 bytes at most, not {bytes}; use put or get"
        )));
    }
    let (run, machine) = single_on(&config, kind, *bytes, |machine| records.prepare(machine))
        .map_err(|error| anyhow!(error))?;
    records.write(&machine)?;
    let title = format!("{}, {bytes} B, from node 0 to node 1", kind.name());
    if let Some(file) = svg {
        write_file(file, picture::svg(&title, &run.explanation))?;
    }
    if *json {
        print_json(&run.explanation)?;
    } else {
        println!("{title}\n");
        print!("{}", run.explanation);
    }
    Ok(Outcome::Done)
}

/// Writes a file that was asked for, or says why it cannot be.
fn write_file(file: &Path, content: impl AsRef<[u8]>) -> Result<()> {
    std::fs::write(file, content).with_context(|| format!("cannot write {}", file.display()))
}
