//! Single tests of a test program, each in a process of its own.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::param::clock_ticks_per_second;
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitId, WaitIdOptions, kill_process_group, prlimit, waitid,
};

use crate::tree::Program;

/// For property tests: each run has the same cases, so that a verdict can be repeated. A failure is
/// neither shrunk, which costs thousands of runs, nor kept for the next mutant.
const PROPERTIES: [(&str, &str); 3] = [
    ("PROPTEST_RNG_SEED", "1"),
    ("PROPTEST_MAX_SHRINK_ITERS", "0"),
    ("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1"),
];

/// The memory that a test may map, in bytes. A mutant of a constant can make a segment of any size,
/// and would take all memory of the machine.
const MAPPED_BYTES: u64 = 8 << 30;

/// A test, what it takes, and what it reaches.
#[derive(Clone, Debug)]
pub struct Test {
    pub program: Program,
    pub name: String,
    pub takes: Duration,
    /// The processor's time of that.
    computes: Duration,
    /// Whether it looks at a clock. If not, only the processor's time says that it hangs.
    has_clock: bool,
    /// The mutants that it reaches, in order.
    pub reaches: Vec<u32>,
}

/// For a test without a mutant.
const EXPLORED: Limits = Limits { takes: Duration::from_secs(120), computes: None };
const NO_MUTANT: (&str, &str) = ("MUTANT", "0");

/// How a test ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Passed,
    Failed,
    /// It fails, and right afterwards without the mutant, too.
    Unsteady,
    /// It had to be stopped.
    Hung,
}

/// How long a test may run.
#[derive(Clone, Copy)]
struct Limits {
    takes: Duration,
    /// The processor's time; none for a test that may wait in a loop, until a limit of its own.
    computes: Option<Duration>,
}

/// What a test starts. It ends with this process, even if that is killed: the leader of the group
/// reads from a pipe that then closes.
struct Group(Child);

impl Group {
    fn begin() -> Result<Self> {
        let mut leader = Command::new("sh");
        leader.args(["-c", "read -r _; kill -KILL 0"]).stdin(Stdio::piped()).process_group(0);
        Ok(Self(leader.spawn().context("sh")?))
    }

    fn id(&self) -> Pid {
        Pid::from_child(&self.0)
    }

    fn end(mut self) -> Result<()> {
        kill_process_group(self.id(), Signal::KILL)?;
        self.0.wait()?;
        Ok(())
    }
}

/// How a run ended, and the processor's time that it took, but for that of its children.
struct Run {
    ended: Ended,
    computes: Duration,
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

    /// Whether the name in the ledger of one of its tests has one of the parts `slow`.
    pub fn is_slow(&self, test: &str, slow: &[&str]) -> bool {
        let name = format!("{} {test}", self.label());
        slow.iter().any(|part| name.contains(part))
    }

    /// Runs the program where cargo would run it, within `limits`, and ends all that it started.
    fn run(
        &self,
        arguments: &[&str],
        variable: Option<(&str, &str)>,
        output: Stdio,
        limits: Limits,
    ) -> Result<Run> {
        let group = Group::begin()?;
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
            .process_group(group.id().as_raw_nonzero().get())
            .spawn()
            .with_context(|| self.executable.display().to_string())?;
        let begin = Instant::now();
        let pid = Pid::from_child(&child);
        let limit = Rlimit { current: Some(MAPPED_BYTES), maximum: Some(MAPPED_BYTES) };
        prlimit(Some(pid), Resource::As, limit).context("a limit of memory")?;
        // It stays a zombie for now, so that its time can be read.
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let mut pause = Duration::from_micros(500);
        let (has_ended, computes) = loop {
            let has_ended = waitid(WaitId::Pid(pid), look)?.is_some();
            let computes = processor_time(pid)?;
            let is_over = limits.computes.is_some_and(|limit| computes > limit)
                || begin.elapsed() > limits.takes;
            if has_ended || is_over {
                break (has_ended, computes);
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        };
        group.end()?;
        let status = child.wait()?;
        let ended = match (has_ended, status.success()) {
            (false, _) => Ended::Hung,
            (true, true) => Ended::Passed,
            (true, false) => Ended::Failed,
        };
        Ok(Run { ended, computes })
    }

    /// Runs one test.
    fn run_test(&self, name: &str, variable: (&str, &str), limits: Limits) -> Result<Run> {
        let arguments = ["--exact", name, "--test-threads", "1"];
        self.run(&arguments, Some(variable), Stdio::null(), limits)
    }

    /// Runs all its tests, with the mutant that is compiled in, but for slow ones. Returns how that
    /// ended, and the names of those that failed by their own account. `record` is a file for what
    /// the program prints.
    ///
    /// # Errors
    /// The program cannot be started, or the record not be written.
    pub fn run_all(&self, slow: &[&str], record: &Path) -> Result<(Ended, Vec<String>)> {
        let tests = self.tests()?;
        let skipped = tests.iter().filter(|name| self.is_slow(name, slow));
        let arguments: Vec<&str> =
            ["--exact"].into_iter().chain(skipped.flat_map(|name| ["--skip", name])).collect();
        let limits = Limits { takes: Duration::from_secs(300), computes: None };
        let ended = self.run(&arguments, None, File::create(record)?.into(), limits)?.ended;
        let said = fs::read_to_string(record)?;
        let failed =
            |line: &str| Some(line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?.to_owned());
        Ok((ended, said.lines().filter_map(failed).collect()))
    }

    /// Whether a test passes without a mutant.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn passes(&self, name: &str) -> Result<bool> {
        Ok(self.run_test(name, NO_MUTANT, EXPLORED)?.ended == Ended::Passed)
    }

    /// Runs a test without a mutant, and finds out what it takes and which of `count` mutants it
    /// reaches. `None`: it does not pass here. `has_clock`: whether it may look at a clock.
    ///
    /// # Errors
    /// The program cannot be started, or the record at `reach` not be written.
    pub fn explore(
        &self,
        name: &str,
        count: u32,
        has_clock: bool,
        reach: &Path,
    ) -> Result<Option<Test>> {
        File::create(reach)?.set_len(u64::from(count) + 1)?;
        let begin = Instant::now();
        let record = reach.to_str().context("a path that is not UTF-8")?;
        let Run { ended, computes } = self.run_test(name, ("MUTANT_REACH", record), EXPLORED)?;
        let takes = begin.elapsed();
        let bytes = fs::read(reach)?;
        let reaches = (1..=count).filter(|&id| bytes[id as usize] != 0).collect();
        Ok((ended == Ended::Passed).then(|| Test {
            program: self.clone(),
            name: name.to_owned(),
            takes,
            computes,
            has_clock,
            reaches,
        }))
    }
}

impl Test {
    /// Runs it with a mutant. A failure counts only if it passes right afterwards without: on a
    /// busy machine its own limits may run out, whatever the mutant does.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn judge(&self, mutant: u32) -> Result<Ended> {
        let ended = self.run(mutant)?;
        let is_steady = ended != Ended::Failed || self.program.passes(&self.name)?;
        Ok(if is_steady { ended } else { Ended::Unsteady })
    }

    /// Runs it with a mutant, for at most many times of what it takes without.
    fn run(&self, mutant: u32) -> Result<Ended> {
        let computes = Duration::from_secs(1) + self.computes * 10;
        let limits = Limits {
            takes: Duration::from_secs(10) + self.takes * 20,
            computes: (!self.has_clock).then_some(computes),
        };
        Ok(self.program.run_test(&self.name, ("MUTANT", &mutant.to_string()), limits)?.ended)
    }

    /// Its name in the ledger.
    pub fn label(&self) -> String {
        format!("{} {}", self.program.label(), self.name)
    }
}

/// The time that a process took of processors so far, in user and kernel mode.
fn processor_time(pid: Pid) -> Result<Duration> {
    let path = format!("/proc/{pid}/stat");
    let stat = fs::read_to_string(&path).with_context(|| path.clone())?;
    // Behind the name in parentheses, which may hold spaces: fields 14 and 15 of proc_pid_stat(5).
    let fields = stat.rsplit_once(") ").map(|(_, rest)| rest.split(' ').skip(11).take(2));
    let ticks = fields.context(path)?.map(str::parse::<u64>).sum::<Result<u64, _>>()?;
    Ok(Duration::from_millis(1_000 * ticks / clock_ticks_per_second()))
}

#[cfg(test)]
mod groups {
    use super::*;

    const STARTED: &str = "MUTANTS_TEST_STARTED";

    /// Not a test of its own: a campaign that runs a test without an end.
    #[test]
    #[ignore = "the next test starts it"]
    fn runs_a_test_without_an_end() {
        let Ok(started) = std::env::var(STARTED) else { return };
        // The test has a child, which does not end either.
        let script =
            format!("sleep 3600 & echo $$ $! > {started}; mv {started} {started}.done; wait");
        let program = Program {
            package: "fixture".to_owned(),
            target: "fixture".to_owned(),
            executable: "/bin/sh".into(),
            folder: "/".into(),
        };
        let _ = program.run(&["-c", &script], None, Stdio::null(), EXPLORED);
    }

    /// A campaign that is killed leaves neither tests nor their children behind.
    #[test]
    fn a_killed_campaign_ends_its_tests() {
        let started = std::env::temp_dir().join(format!("started-{}", std::process::id()));
        let done = started.with_extension("done");
        let mut campaign = Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", "tests::groups::runs_a_test_without_an_end", "--ignored"])
            .env(STARTED, &started)
            .stdout(Stdio::null())
            .spawn()
            .expect("a campaign");
        let wait_until = |what: &str, is: &dyn Fn() -> bool| {
            let deadline = Instant::now() + Duration::from_secs(60);
            while !is() {
                assert!(Instant::now() < deadline, "{what}");
                std::thread::sleep(Duration::from_millis(5));
            }
        };
        wait_until("the test starts", &|| done.exists());
        campaign.kill().expect("it runs");
        campaign.wait().expect("it was started here");
        let pids = fs::read_to_string(&done).expect("two numbers");
        fs::remove_file(&done).expect("the file was made here");
        // Whoever inherits them may not have reaped them yet.
        let has_ended = |pid: &str| match fs::read_to_string(format!("/proc/{pid}/stat")) {
            Ok(stat) => stat.contains(") Z "),
            Err(_) => true,
        };
        for pid in pids.split_whitespace() {
            wait_until("the test and its child end", &|| has_ended(pid));
        }
    }
}
