//! The commands, and the codes that they exit with.

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use std::path::{Path, PathBuf};
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
  bellwire copy       something useful: files, with every byte compared

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
    Perf(crate::perf::Arguments),
    Copy(crate::copy::Arguments),
    Doctor(crate::doctor::Arguments),
    Stat(crate::stat::Arguments),
    List(crate::list::Arguments),
    Run(crate::run::Arguments),
    Key(crate::key::Arguments),
    Agent(crate::agent::Arguments),
    Paper(crate::paper::Arguments),
    Model(crate::model::Arguments),
    ReadFromParent(crate::doctor::Reader),
    WriteCopy(crate::copy::Writer),
    WriteManual(crate::manual::Arguments),
}

/// The result of a command that ran to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// All of it was done.
    Done,
    /// Something failed and was reported.
    Failed,
}

impl Outcome {
    /// `Done` if `condition` holds.
    pub fn done_if(condition: bool) -> Outcome {
        if condition { Outcome::Done } else { Outcome::Failed }
    }
}

/// Wrong usage that shows only when the arguments are checked together.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct WrongUsage(String);

impl WrongUsage {
    /// An error of this kind.
    pub fn error(what: impl Into<String>) -> anyhow::Error {
        anyhow::Error::new(WrongUsage(what.into()))
    }
}

impl Command {
    /// Runs the command to its end.
    pub fn run(self) -> ExitCode {
        let outcome = match self.what {
            What::Perf(arguments) => crate::perf::run(arguments),
            What::Copy(arguments) => crate::copy::run(&arguments),
            What::Doctor(arguments) => crate::doctor::run(&arguments),
            What::Stat(arguments) => crate::stat::run(&arguments),
            What::List(arguments) => crate::list::run(&arguments),
            What::Run(arguments) => crate::run::run(&arguments),
            What::Key(arguments) => crate::key::run(&arguments),
            What::Agent(arguments) => crate::agent::run(&arguments),
            What::Paper(arguments) => crate::paper::run(&arguments),
            What::Model(arguments) => crate::model::run(&arguments),
            What::ReadFromParent(reader) => crate::doctor::read_from_parent(&reader),
            What::WriteCopy(writer) => crate::copy::write_copy(&writer),
            What::WriteManual(arguments) => crate::manual::run(&arguments),
        };
        match outcome {
            Ok(Outcome::Done) => ExitCode::SUCCESS,
            Ok(Outcome::Failed) => ExitCode::from(1),
            Err(error) => {
                complain(&error);
                ExitCode::from(if error.is::<WrongUsage>() { 2 } else { 1 })
            }
        }
    }
}

/// An error and its causes in one line, without causes that the error already contains.
pub fn sentence(error: &anyhow::Error) -> String {
    let mut told = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !told.ends_with(&cause) {
            told = format!("{told}: {cause}");
        }
    }
    told
}

/// Reports an error on standard error. Parts of it may come from another host.
pub fn complain(error: &anyhow::Error) {
    eprintln!("bellwire: {}", printable(&sentence(error)));
}

/// Text from another process, without terminal control characters.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// Prints `object` on standard output, indented; nothing else is printed there.
pub fn print_json(object: &impl serde::Serialize) -> Result<()> {
    println!("{}", serde_json::to_string_pretty(object)?);
    Ok(())
}

/// Prints `object` for a program, or else as its text for people.
pub fn show<T: serde::Serialize + std::fmt::Display>(object: &T, json: bool) -> Result<()> {
    if json {
        return print_json(object);
    }
    print!("{object}");
    Ok(())
}

/// The name of a choice on the command line.
pub fn word(choice: &impl clap::ValueEnum) -> String {
    choice.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// A device name, quoted for a shell if necessary.
pub fn quoted(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
    if name.chars().all(plain) {
        name.to_owned()
    } else {
        format!("'{}'", name.replace('\'', r"'\''"))
    }
}

/// The name of a file to write a page into. Standard output has lines for a person or a program.
pub fn page_name(text: &str) -> Result<PathBuf, String> {
    match text {
        "-" => Err("a page is a file: give its name, such as page.html".to_owned()),
        _ => Ok(text.into()),
    }
}

/// Writes a requested file; the error names it.
pub fn write_file(file: &Path, content: impl AsRef<[u8]>) -> Result<()> {
    std::fs::write(file, content).with_context(|| format!("cannot write {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Causes follow the error, except those that it repeats in its own words.
    #[test]
    fn causes_are_told_once() {
        let file = || std::io::Error::other("no such file");
        assert_eq!(sentence(&anyhow::Error::new(file()).context("copy")), "copy: no such file");
        let repeats = anyhow::Error::new(file()).context("read: no such file").context("copy");
        assert_eq!(sentence(&repeats), "copy: read: no such file");
    }

    /// Another process cannot send control characters to our terminal.
    #[test]
    fn control_characters_are_not_printed() {
        assert_eq!(printable("a\x1b[2Jb\n\u{9b}"), "a?[2Jb??");
    }
}
