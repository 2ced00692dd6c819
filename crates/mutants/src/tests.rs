//! Single tests of a test program, each in a process of its own.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::tree::Program;

/// For property tests: each run has the same cases, so that a verdict can be repeated. A failure is
/// neither shrunk, which costs thousands of runs, nor kept for the next mutant.
const PROPERTIES: [(&str, &str); 3] = [
    ("PROPTEST_RNG_SEED", "1"),
    ("PROPTEST_MAX_SHRINK_ITERS", "0"),
    ("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1"),
];

/// A test, what it takes, and what it reaches.
#[derive(Clone, Debug)]
pub struct Test {
    pub program: Program,
    pub name: String,
    pub takes: Duration,
    /// The mutants that it reaches, in order.
    pub reaches: Vec<u32>,
}

/// How a test ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Passed,
    Failed,
    /// It had to be stopped.
    Hung,
}

impl Program {
    /// The names of its tests, without ignored ones.
    ///
    /// # Errors
    /// The program does not answer.
    pub fn tests(&self) -> Result<Vec<String>> {
        let list = |more: &[&str]| -> Result<Vec<String>> {
            let listed = Command::new(&self.executable)
                .args(["--list", "--format", "terse"])
                .args(more)
                .output()
                .with_context(|| self.executable.display().to_string())?;
            ensure!(listed.status.success(), "{} --list", self.executable.display());
            Ok(std::str::from_utf8(&listed.stdout)?
                .lines()
                .filter_map(|line| line.strip_suffix(": test").map(str::to_owned))
                .collect())
        };
        let ignored = list(&["--ignored"])?;
        Ok(list(&[])?.into_iter().filter(|name| !ignored.contains(name)).collect())
    }

    /// Its name in the ledger.
    pub fn label(&self) -> String {
        format!("{}/{}", self.package.trim_start_matches("bellwire-"), self.target)
    }

    /// Runs the program where cargo would run it, for at most `limit`, and ends all that it
    /// started.
    fn run(
        &self,
        arguments: &[&str],
        variable: Option<(&str, &str)>,
        output: Stdio,
        limit: Duration,
    ) -> Result<Ended> {
        let mut child = Command::new(&self.executable)
            .args(arguments)
            .current_dir(&self.folder)
            .env("CARGO_MANIFEST_DIR", &self.folder)
            .env("RUST_BACKTRACE", "0")
            .envs(PROPERTIES)
            .envs(variable)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(Stdio::null())
            // So that its children end with it.
            .process_group(0)
            .spawn()
            .with_context(|| self.executable.display().to_string())?;
        let begin = Instant::now();
        let mut pause = Duration::from_micros(500);
        let ended = loop {
            if let Some(status) = child.try_wait()? {
                break if status.success() { Ended::Passed } else { Ended::Failed };
            }
            if begin.elapsed() > limit {
                break Ended::Hung;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        };
        // It fails if nothing of the group is left.
        let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
        child.wait()?;
        Ok(ended)
    }

    /// Runs one test.
    fn run_test(&self, name: &str, variable: (&str, &str), limit: Duration) -> Result<Ended> {
        let arguments = ["--exact", name, "--test-threads", "1"];
        self.run(&arguments, Some(variable), Stdio::null(), limit)
    }

    /// Runs all its tests, with the mutant that is compiled in, but for those whose names have one
    /// of `slow` in them. Returns how that ended, and which failed by their own account. `record`
    /// is a file for what the program prints.
    ///
    /// # Errors
    /// The program cannot be started, or the record not be written.
    pub fn run_all(&self, slow: &[&str], record: &Path) -> Result<(Ended, Vec<String>)> {
        let arguments: Vec<&str> = slow.iter().flat_map(|part| ["--skip", part]).collect();
        let limit = Duration::from_secs(300);
        let ended = self.run(&arguments, None, File::create(record)?.into(), limit)?;
        let said = fs::read_to_string(record)?;
        let failed = |line: &str| {
            let name = line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?;
            Some(format!("{} {name}", self.label()))
        };
        Ok((ended, said.lines().filter_map(failed).collect()))
    }

    /// Runs a test without a mutant, and finds out what it takes and which of `count` mutants it
    /// reaches. `None`: it does not pass here.
    ///
    /// # Errors
    /// The program cannot be started, or the record at `reach` not be written.
    pub fn explore(&self, name: &str, count: u32, reach: &Path) -> Result<Option<Test>> {
        File::create(reach)?.set_len(u64::from(count) + 1)?;
        let begin = Instant::now();
        let record = reach.to_str().context("a path that is not UTF-8")?;
        let limit = Duration::from_secs(120);
        let ended = self.run_test(name, ("MUTANT_REACH", record), limit)?;
        let takes = begin.elapsed();
        let bytes = fs::read(reach)?;
        let reaches = (1..=count).filter(|&id| bytes[id as usize] != 0).collect();
        Ok((ended == Ended::Passed).then(|| Test {
            program: self.clone(),
            name: name.to_owned(),
            takes,
            reaches,
        }))
    }
}

impl Test {
    /// Runs it with a mutant, for at most many times of what it takes without.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn run(&self, mutant: u32) -> Result<Ended> {
        let limit = Duration::from_secs(10) + self.takes * 20;
        self.program.run_test(&self.name, ("MUTANT", &mutant.to_string()), limit)
    }

    /// Its name in the ledger.
    pub fn label(&self) -> String {
        format!("{} {}", self.program.label(), self.name)
    }
}
