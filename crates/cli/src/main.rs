//! The `bellwire` command: measures, copies, diagnoses and lists. Each command has a file or folder
//! of its own.

mod agent;
mod child;
mod command;
mod copy;
mod cpu;
mod doctor;
mod executable;
mod host;
mod key;
mod list;
mod manual;
mod model;
mod paper;
mod perf;
mod run;
mod start;
mod stat;
mod talk;
mod units;
mod warnings;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    start::settle();
    warnings::print();
    command::Command::parse().run()
}
