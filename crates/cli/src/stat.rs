//! `bellwire stat`: the state of a running or stuck process, read from outside without its help.

use crate::command::{Outcome, WrongUsage, print_json, printable};
use crate::list::{processes, program_of};
use anyhow::{Context, Result, bail, ensure};
use bellwire::FunctionAddress;
use bellwire::stat::files_of;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{ErrorKind, IsTerminal};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Shows counters, queues and last errors of a process that uses Bellwire, even if it is stuck
///
/// Every open function keeps a snapshot of itself. It renews the snapshot at most ten times a
/// second while it makes progress, and before it sleeps. Reading it does not stop the process. An
/// old snapshot means that the process sleeps, or does not call Bellwire.
#[derive(clap::Args)]
#[command(after_help = "\
Processes of other users are shown to root only.

Examples:
  bellwire stat                  the processes that use Bellwire
  bellwire stat 1234             everything about one of them
  bellwire stat 1234 --watch     every second, with what changed
  bellwire stat 1234 --json | jq '.processes[0].functions[].queue_pairs[] | select(.last_error != \"\")'")]
pub struct Arguments {
    /// The process; without it all visible processes are listed
    pid: Option<u32>,
    /// One JSON object instead of text
    #[arg(long)]
    json: bool,
    /// Repeat every second, until interrupted or the process ends
    #[arg(long, conflicts_with = "json", requires = "pid")]
    watch: bool,
}

/// Prints the snapshots of processes.
pub fn run(arguments: &Arguments) -> Result<Outcome> {
    match arguments.pid {
        Some(0) => Err(WrongUsage::error("0 is the number of no process")),
        Some(pid) if arguments.watch => watch(pid),
        Some(pid) => {
            let process = Process::look(pid)?;
            if arguments.json {
                print_json(&serde_json::json!({ "processes": [process] }))?;
            } else {
                process.print(None);
            }
            Ok(Outcome::Done)
        }
        None => {
            let found: Vec<_> = processes()
                .into_iter()
                .filter_map(|pid| Process::look(u32::try_from(pid).ok()?).ok())
                .collect();
            if arguments.json {
                print_json(&serde_json::json!({ "processes": found }))?;
            } else {
                print_all(&found);
            }
            Ok(Outcome::Done)
        }
    }
}

#[derive(Serialize)]
struct Process {
    pid: u32,
    program: Option<String>,
    functions: Vec<Function>,
    /// Functions without a snapshot yet.
    silent: usize,
}

#[derive(Serialize)]
struct Function {
    /// Time since the snapshot was made, in seconds.
    age_s: f64,
    #[serde(flatten)]
    snapshot: Snapshot,
}

type Counters = BTreeMap<String, u64>;

/// The fields of a snapshot that we read; it may contain more.
#[derive(Serialize, Deserialize)]
struct Snapshot {
    serial: u64,
    /// Milliseconds since 1970.
    written_ms: u64,
    #[serde(rename(serialize = "device"))]
    device_name: String,
    address: String,
    function: Counters,
    device_counters: Counters,
    /// Sums over all queue pairs, including destroyed ones.
    total: Counters,
    queue_pairs_open: u64,
    queue_pairs: Vec<QueuePair>,
}

#[derive(Serialize, Deserialize)]
struct QueuePair {
    address: String,
    connection: String,
    posted_sends: u64,
    posted_receives: u64,
    backlog_messages: u64,
    /// Empty if there was none.
    last_error: String,
    counters: Counters,
}

/// The version of the snapshot's form that this code reads.
const FORMAT: u64 = 2;

/// Devices and addresses from a process's snapshots, as far as they are valid.
pub fn functions_of(pid: u32) -> Vec<(String, FunctionAddress)> {
    let functions = Process::look(pid).map_or_else(|_| Vec::new(), |process| process.functions);
    let known = |Function { snapshot, .. }: Function| {
        let (node, function) = snapshot.address.split_once('.')?;
        let address =
            FunctionAddress { node: node.parse().ok()?, function: function.parse().ok()? };
        Some((printable(&snapshot.device_name), address))
    };
    functions.into_iter().filter_map(known).collect()
}

impl Process {
    fn look(pid: u32) -> Result<Process> {
        let files = match files_of(pid) {
            Ok(files) => files,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                bail!("there is no process {pid} (any more)")
            }
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                bail!("process {pid} belongs to somebody else: sudo bellwire stat {pid}")
            }
            Err(error) => return Err(error).context(format!("cannot look at process {pid}")),
        };
        ensure!(!files.is_empty(), "process {pid} has no function of Bellwire open");
        let (mut shown, mut silent) = (Vec::new(), 0);
        for file in files {
            // Or it was closed meanwhile.
            let Some((snapshot, age_s)) = read(&file)? else {
                silent += 1;
                continue;
            };
            shown.push(Function { age_s, snapshot });
        }
        shown.sort_by(|a, b| a.snapshot.address.cmp(&b.snapshot.address));
        let program = i32::try_from(pid).ok().and_then(program_of);
        Ok(Process { pid, program, functions: shown, silent })
    }

    /// `before`: the earlier snapshot, and its time.
    fn print(&self, before: Option<&Process>) {
        let program = printable(self.program.as_deref().unwrap_or("?"));
        println!("Process {} ({program})", self.pid);
        for function in &self.functions {
            let Snapshot { address, device_name, .. } = &function.snapshot;
            println!(
                "\nFunction {} of {}, as it was {:.1} s ago",
                printable(address),
                printable(device_name),
                function.age_s
            );
            let earlier = before.and_then(|process| {
                process.functions.iter().find(|old| old.snapshot.address == *address)
            });
            function.snapshot.print(earlier.map(|function| &function.snapshot));
        }
        if self.silent > 0 {
            println!(
                "\n{} of its functions have not shown anything yet: nothing has happened in them.",
                self.silent
            );
        }
    }
}

impl Snapshot {
    fn print(&self, before: Option<&Snapshot>) {
        for pair in &self.queue_pairs {
            println!(
                "  queue pair {:<12} {}; posted: {} sends, {} receives; waiting for a receive: {} messages",
                printable(&pair.address),
                printable(&pair.connection),
                pair.posted_sends,
                pair.posted_receives,
                pair.backlog_messages
            );
            if !pair.last_error.is_empty() {
                println!("  {:23} last error: {}", "", printable(&pair.last_error));
            }
        }
        let listed = self.queue_pairs.len() as u64;
        if self.queue_pairs_open > listed {
            println!("  and {} further queue pairs", self.queue_pairs_open - listed);
        }
        let groups = [
            ("all queue pairs", &self.total, before.map(|snapshot| &snapshot.total)),
            ("function", &self.function, before.map(|snapshot| &snapshot.function)),
            ("device", &self.device_counters, before.map(|snapshot| &snapshot.device_counters)),
        ];
        for (title, counters, before) in groups {
            let counted: Vec<_> = counters.iter().filter(|(_, count)| **count > 0).collect();
            if counted.is_empty() {
                continue;
            }
            println!("  {title}");
            for (name, &count) in counted {
                let more =
                    before.map(|old| count.wrapping_sub(*old.get(name).unwrap_or(&0)) as i64);
                let more = more.filter(|more| *more != 0).map(|more| format!("{more:>+14}"));
                println!("    {:<24} {count:>16}{}", printable(name), more.unwrap_or_default());
            }
        }
    }
}

/// The snapshot in a memory file, and its age in seconds; `None` if there is none, or the function
/// is closed.
fn read(path: &Path) -> Result<Option<(Snapshot, f64)>> {
    let text = bellwire::stat::read(path).with_context(|| path.display().to_string())?;
    let Some(text) = text else { return Ok(None) };
    let snapshot = parse(&text).with_context(|| path.display().to_string())?;
    let written = SystemTime::UNIX_EPOCH + Duration::from_millis(snapshot.written_ms);
    let age = SystemTime::now().duration_since(written).unwrap_or_default();
    Ok(Some((snapshot, age.as_secs_f64())))
}

fn parse(text: &str) -> Result<Snapshot> {
    let mut value: serde_json::Value = serde_json::from_str(text).context("no snapshot")?;
    ensure!(
        value["format"] == FORMAT,
        "the process has a snapshot of form {}, this program understands {FORMAT}: use the same version",
        value["format"]
    );
    // Here "device" means the device's name.
    value["device_counters"] = value["device"].take();
    serde_json::from_value(value).context("a snapshot of another form")
}

/// Prints a process repeatedly, until it ends.
fn watch(pid: u32) -> Result<Outcome> {
    let mut before = Process::look(pid)?;
    before.print(None);
    loop {
        std::thread::sleep(Duration::from_secs(1));
        match Process::look(pid) {
            Ok(now) => {
                if std::io::stdout().is_terminal() {
                    // Move the cursor home, and clear the rest of the screen.
                    print!("\x1b[H\x1b[J");
                } else {
                    println!();
                }
                now.print(Some(&before));
                before = now;
            }
            Err(error) => {
                println!("{}", crate::command::sentence(&error));
                return Ok(Outcome::Done);
            }
        }
    }
}

fn print_all(processes: &[Process]) {
    if processes.is_empty() {
        println!("No process that we may look at has a function of Bellwire open.");
        return;
    }
    println!(
        "{:>8}  {:<16} {:<24} {:>8} {:>14} {:>14} {:>8} {:>8}",
        "pid", "program", "device", "function", "sent", "received", "failed", "age"
    );
    for process in processes {
        for Function { age_s, snapshot } in &process.functions {
            let count = |name: &str| snapshot.total.get(name).copied().unwrap_or(0);
            println!(
                "{:>8}  {:<16} {:<24} {:>8} {:>14} {:>14} {:>8} {:>6.1} s",
                process.pid,
                printable(process.program.as_deref().unwrap_or("?")),
                printable(&snapshot.device_name),
                printable(&snapshot.address),
                count("messages_sent") + count("puts") + count("gets") + count("atomics"),
                count("messages_received"),
                count("sends_failed") + count("receives_failed"),
                age_s
            );
        }
        for _ in 0..process.silent {
            let program = printable(process.program.as_deref().unwrap_or("?"));
            println!("{:>8}  {program:<16} nothing has happened in it yet", process.pid);
        }
    }
    println!("\nTry: bellwire stat {}", processes[0].pid);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(format: u64) -> String {
        let value = serde_json::json!({
            "serial": 7, "format": format, "pid": 1, "written_ms": 5, "device_name": "shm:job",
            "address": "0.0", "function": { "links_opened": 1 },
            "device": {}, "total": { "messages_sent": 3 }, "queue_pairs_open": 1, "queue_pairs": [{
                "address": "0.0.1", "connection": "unconnected", "posted_sends": 0, "posted_receives": 1,
                "backlog_messages": 0, "last_error": "", "counters": {},
            }],
        });
        value.to_string()
    }

    /// A snapshot of our form is read. Another version is refused with the reason.
    #[test]
    fn only_snapshots_of_our_form_are_shown() {
        let snapshot = parse(&text(2)).expect("our form");
        assert_eq!(snapshot.total["messages_sent"], 3);
        assert_eq!(snapshot.queue_pairs[0].posted_receives, 1);
        assert_eq!(snapshot.written_ms, 5);
        let whole = text(2);
        for cut in 0..whole.len() {
            assert!(parse(&whole[..cut]).is_err(), "cut at {cut}");
        }
        let error = parse(&text(1)).err().expect("another form");
        assert!(error.to_string().contains("same version"), "{error}");
        assert!(parse("{\"serial\":1,\"format\":2}").is_err(), "members missing");
    }
}
