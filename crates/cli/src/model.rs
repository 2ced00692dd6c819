//! `bellwire model`: network interfaces in slow motion.

use crate::command::{Outcome, WrongUsage, print_json};
use anyhow::{Context, Result, anyhow};
use bellwire_model::chpp::Config;
use bellwire_model::chpp::experiments::Kind;
use bellwire_model::chpp::experiments::single::single;
use std::path::PathBuf;

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
  bellwire model explain --op get --bytes 64 --config mine.toml")]
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

fn run_explain(Explain { op, bytes, config, json }: &Explain) -> Result<Outcome> {
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
    let run = single(&config, kind, *bytes).map_err(|error| anyhow!(error))?;
    if *json {
        print_json(&run.explanation)?;
    } else {
        println!("{}, {bytes} B, from node 0 to node 1\n", kind.name());
        print!("{}", run.explanation);
    }
    Ok(Outcome::Done)
}
