//! `bellwire model explain`: where the time of one operation goes.

use super::records::Records;
use super::{in_file, read_file};
use crate::command::{Outcome, WrongUsage, show, write_file};
use anyhow::{Result, anyhow};
use bellwire_model::chpp::clocked::single;
use bellwire_model::chpp::experiments::Kind;
use bellwire_model::chpp::experiments::single::{other, single_on};
use bellwire_model::chpp::journal::Explanation;
use bellwire_model::chpp::{Config, picture};
use bellwire_model::system::System;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
pub struct Arguments {
    /// The model; `bellwire model list` says which explain an operation
    #[arg(long, default_value = "chpp", value_parser = System::named)]
    model: &'static System,
    /// The operation
    #[arg(long, value_enum)]
    op: Operation,
    /// Bytes that it moves; a NAP carries 2048 at most
    #[arg(long)]
    bytes: u64,
    /// A file of the parameters that differ from the paper's prototype, such as `link = "smp"`;
    /// `bellwire model parameters` prints all
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The interface in gates instead of the model, with stages by what moves in them. `make rtl`
    /// builds the gates; FILE if they are not beside this program
    #[arg(long, value_name = "FILE", require_equals = true)]
    #[arg(conflicts_with_all = ["trace", "vcd", "pcap"])]
    rtl: Option<Option<PathBuf>>,
    /// One JSON object, times in picoseconds with their unit, instead of a table
    #[arg(long)]
    json: bool,
    /// Also draws the table into this file: an SVG picture, for any browser
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    records: Records,
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

/// Runs the operation and prints the result.
pub fn run(
    Arguments { model, op, bytes, config, rtl, json, svg, records }: &Arguments,
) -> Result<Outcome> {
    if !model.explains {
        let why = "does not follow single operations; `bellwire model list` says which model does";
        return Err(WrongUsage::error(format!("the model {} {why}", model.name)));
    }
    let config = match config {
        None => Config::prototype(),
        Some(file) => Config::parse(&read_file(file)?).map_err(in_file(file))?,
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
    let title = format!("{}, {bytes} B, from node 0 to node {}", kind.name(), other(&config));
    let (title, explanation) = match rtl {
        Some(file) => {
            (format!("{title}, in gates"), in_gates(&config, kind, *bytes, file.as_deref())?)
        }
        None => {
            let (run, machine) =
                single_on(&config, kind, *bytes, |machine| records.prepare(machine))
                    .map_err(|error| anyhow!(error))?;
            records.write(&machine)?;
            (title, run.explanation)
        }
    };
    if let Some(file) = svg {
        write_file(file, picture::svg(&title, &explanation))?;
    }
    if !json {
        println!("{title}\n");
    }
    show(&explanation, *json)?;
    Ok(Outcome::Done)
}

/// The same in the gates of a file, or in those beside this program.
fn in_gates(config: &Config, kind: Kind, bytes: u64, file: Option<&Path>) -> Result<Explanation> {
    let machine = bellwire_rtl::machine(config, 1, file);
    let mut machine = machine.map_err(|(why, hint)| anyhow!("{why}. Try: {hint}"))?;
    single::single(&mut machine, kind, bytes).map_err(|error| anyhow!(error))
}
