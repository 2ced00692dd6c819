//! The commands, and the codes that they exit with.

use anyhow::Result;
use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// A user-level interconnect: messages between processes that do not pass through the kernel.
#[derive(Parser)]
#[command(
    name = "bellwire",
    version,
    propagate_version = true,
    arg_required_else_help = true,
    after_help = "\
Start with:
  bellwire doctor     what works on this machine, and what would help
  bellwire perf       how fast it is, beside sockets and the limits of the machine

Exit codes, of all commands:
  0  done
  1  failed, wholly or in part; the reason is on standard error
  2  wrong usage"
)]
pub struct Command {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Doctor(crate::doctor::Arguments),
    List(crate::list::Arguments),
    Paper(crate::paper::Arguments),
    ReadFromParent(crate::doctor::Reader),
}

/// How a command that ran to its end went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// All of it was done.
    Done,
    /// Something failed, and was told of.
    Failed,
}

impl Outcome {
    /// `Done` if `condition` holds.
    pub fn done_if(condition: bool) -> Outcome {
        if condition { Outcome::Done } else { Outcome::Failed }
    }
}

impl Command {
    /// Runs the command to its end.
    pub fn run(self) -> ExitCode {
        let outcome = match self.what {
            What::Doctor(arguments) => crate::doctor::run(&arguments),
            What::List(arguments) => crate::list::run(&arguments),
            What::Paper(arguments) => crate::paper::run(&arguments),
            What::ReadFromParent(reader) => crate::doctor::read_from_parent(&reader),
        };
        match outcome {
            Ok(Outcome::Done) => ExitCode::SUCCESS,
            Ok(Outcome::Failed) => ExitCode::from(1),
            Err(error) => {
                eprintln!("bellwire: {error:#}");
                ExitCode::from(1)
            }
        }
    }
}

/// Prints `object` on standard output, indented, as the only thing there.
pub fn print_json(object: &impl serde::Serialize) -> Result<()> {
    println!("{}", serde_json::to_string_pretty(object)?);
    Ok(())
}
