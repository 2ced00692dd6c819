//! A running contender: its processes, and the lines between them and the driver (see
//! [`crate::worker`]).

use std::fs::{File, create_dir_all};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::contenders::{Contender, Peers, Start};
use crate::network::Network;
use crate::op::{Op, Wire};
use crate::worker::Outcome;

/// Longest start of a contender, and longest sample.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long a contender may take to end by itself.
const FAREWELL: Duration = Duration::from_secs(3);

/// A contender that is ready to be measured. Its processes end with it.
pub struct Session {
    child: Child,
    orders: Option<ChildStdin>,
    answers: Receiver<String>,
    complaints: PathBuf,
    /// The network that its processes are on.
    _network: Option<Network>,
    /// Operations that it can run.
    pub ops: Vec<Op>,
}

impl Session {
    /// Starts a contender on two CPUs, over a wire of its own. Its standard error goes to a file
    /// under `logs`.
    ///
    /// # Errors
    /// The reason why it cannot be measured here, in the contender's own words if it gives any.
    pub fn start(
        contender: &Contender,
        wire: Wire,
        peers: &Peers,
        logs: &Path,
        cpus: [usize; 2],
    ) -> Result<Session> {
        let mut command = match &contender.start {
            Start::Program(command) => command(peers, cpus)?,
            Start::InHouse(_) => {
                let mut command = Command::new(std::env::current_exe()?);
                command.args(["worker", contender.name]).args(cpus.map(|cpu| cpu.to_string()));
                command
            }
        };
        create_dir_all(logs)?;
        let complaints = logs.join(format!("{}.log", contender.name));
        let network = (wire.mtu().map(|mtu| Network::new(mtu, wire == Wire::Slow))).transpose()?;
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(File::create(&complaints).context("a file for its messages")?);
        // SAFETY: the closure runs between fork and exec and makes one system call that touches no
        // memory.
        unsafe {
            command.pre_exec(|| {
                // A killed benchmark leaves no processes.
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
                Ok(())
            });
        }
        let child = match &network {
            Some(network) => network.spawn(&mut command),
            None => command.spawn(),
        };
        let mut child = child
            .with_context(|| format!("cannot start {}", command.get_program().to_string_lossy()))?;
        let orders = child.stdin.take();
        let output = child.stdout.take().context("no output")?;
        let (lines, answers) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if lines.send(line).is_err() {
                    break;
                }
            }
        });
        let mut session =
            Session { child, orders, answers, complaints, _network: network, ops: Vec::new() };
        session.ops = parse_ready(&session.answer()?)?;
        Ok(session)
    }

    /// Makes the contender run one operation, and returns its duration.
    pub fn run(&mut self, op: Op, bytes: usize, count: u64) -> Result<Outcome> {
        let orders = self.orders.as_mut().context("the contender has ended")?;
        writeln!(orders, "run {} {bytes} {count}", op.word()).context("the contender is gone")?;
        orders.flush().context("the contender is gone")?;
        parse_outcome(&self.answer()?)
    }

    fn answer(&mut self) -> Result<String> {
        match self.answers.recv_timeout(PATIENCE) {
            Ok(line) => Ok(line),
            Err(RecvTimeoutError::Timeout) => bail!("no answer in {} s", PATIENCE.as_secs()),
            Err(RecvTimeoutError::Disconnected) => {
                let said = std::fs::read_to_string(&self.complaints).unwrap_or_default();
                match said.lines().rev().find(|line| !line.trim().is_empty()) {
                    Some(last) => bail!("it ended, and said: {}", last.trim()),
                    None => bail!("it ended without a word"),
                }
            }
        }
    }
}

impl Drop for Session {
    /// Asks the contender to end, waits a little, then kills it. It is reaped in both cases.
    fn drop(&mut self) {
        drop(self.orders.take());
        let deadline = Instant::now() + FAREWELL;
        while Instant::now() < deadline {
            if matches!(self.child.try_wait(), Ok(Some(_)) | Err(_)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        // Followers end with their leader, by their parent-death signal. Both calls fail only if it
        // has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn parse_ready(line: &str) -> Result<Vec<Op>> {
    if let Some(why) = line.strip_prefix("unable ").or(line.strip_prefix("error ")) {
        bail!("{why}");
    }
    let words = line
        .strip_prefix("ready")
        .with_context(|| format!("expected `ready OP ...`, got `{line}`"))?;
    words
        .split_whitespace()
        .map(|word| Op::from_word(word).with_context(|| format!("no operation is named `{word}`")))
        .collect()
}

fn parse_outcome(line: &str) -> Result<Outcome> {
    if let Some(why) = line.strip_prefix("error ") {
        bail!("{why}");
    }
    let numbers = line
        .strip_prefix("ns ")
        .with_context(|| format!("expected `ns TOTAL ...`, got `{line}`"))?;
    let mut numbers = numbers.split_whitespace().map(str::parse);
    let time_ns = numbers.next().context("`ns` without a time")??;
    Ok(Outcome { time_ns, shares: numbers.collect::<Result<_, _>>()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every kind of answer is parsed, and a contender's reason for not running is passed on in its
    /// own words.
    #[test]
    fn answers_are_understood() {
        assert_eq!(parse_ready("ready rate stream").expect("fine"), [Op::Rate, Op::Stream]);
        assert_eq!(parse_ready("unable no UCX").expect_err("unable").to_string(), "no UCX");
        assert!(parse_ready("ready fly").is_err() && parse_ready("hello").is_err());

        let outcome = parse_outcome("ns 12 3 4").expect("fine");
        assert_eq!(outcome, Outcome { time_ns: 12, shares: vec![3, 4] });
        assert_eq!(parse_outcome("error gone").expect_err("gone").to_string(), "gone");
        for broken in ["", "ns", "ns x", "ns 1 x", "12"] {
            assert!(parse_outcome(broken).is_err(), "{broken:?} was taken");
        }
    }
}
