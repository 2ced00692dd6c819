//! The processes behind a figure: they answer lines, check what arrives, and leave nothing behind.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

struct Worker {
    child: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

/// Starts an in-house contender on the CPUs 0 and 1; `None` on a machine that has only one.
fn start(name: &str) -> Option<Worker> {
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        return None;
    }
    let mut child = Command::new(env!("CARGO_BIN_EXE_bellwire-bench"))
        .args(["worker", name, "0", "1"])
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the benchmark's own program");
    let (orders, output) = (child.stdin.take(), child.stdout.take());
    Some(Worker { child, orders, answers: BufReader::new(output.expect("piped")) })
}

impl Worker {
    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("an answer");
        line.trim().to_string()
    }

    fn ask(&mut self, order: &str) -> String {
        let orders = self.orders.as_mut().expect("still open");
        writeln!(orders, "{order}").expect("a worker that listens");
        self.answer()
    }
}

/// Processes whose parent is `parent`.
fn children_of(parent: u32) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").expect("/proc").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let parent_field = stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(1));
        parent_field == Some(parent.to_string().as_str())
    })
    .collect()
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !done() {
        assert!(Instant::now() < deadline, "gave up waiting until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn exists(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // A zombie that its new parent has not reaped yet is gone for our purposes.
    !stat.is_empty() && !stat.contains(") Z ")
}

/// Each in-house contender runs every operation that it says it can, twice, with its receivers' checks on, and ends with
/// its followers when its input ends.
#[test]
fn in_house_contenders_answer_and_end() {
    for name in ["line", "ring", "memcpy", "memcpy-nt", "copy-straight", "copy-through"]
        .into_iter()
        .chain([
            "attach",
            "unix-socket",
            "tcp-loopback",
            "bellwire",
            "bellwire-vec",
            "bellwire-fan-in",
        ])
    {
        let Some(mut worker) = start(name) else { return };
        let ready = worker.answer();
        if name == "attach" && ready.starts_with("unable ") {
            continue; // The kernel may refuse cross-memory attach; the report then says so.
        }
        let ops = ready.strip_prefix("ready ").unwrap_or_else(|| panic!("{name}: {ready}"));
        let followers = children_of(worker.child.id());
        assert!(!followers.is_empty(), "{name} has no follower");
        for op in ops.split(' ').flat_map(|op| [op, op]) {
            let bytes = if op.ends_with("stream") { 65536 } else { 8 };
            let answer = worker.ask(&format!("run {op} {bytes} 9"));
            assert!(answer.starts_with("ns "), "{name}, {op}: {answer}");
        }
        drop(worker.orders.take());
        assert!(worker.child.wait().expect("a child").success(), "{name} did not end well");
        assert!(!followers.into_iter().any(exists), "{name} left a follower behind");
    }
}

/// The contenders of the network start, each in namespaces of its own, and a benchmark that is killed in the middle of it
/// leaves neither processes nor namespaces behind: these have no names, and end with their last process.
#[test]
fn networks_end_with_the_benchmark() {
    // SAFETY: has no arguments and cannot fail.
    let is_root = unsafe { libc::geteuid() } == 0;
    if !is_root || std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        eprintln!("not run: namespaces need root, and two processes two CPUs");
        return;
    }
    let named = || std::fs::read_dir("/run/netns").map_or(0, Iterator::count);
    let before = named();
    let mut bench = Command::new(env!("CARGO_BIN_EXE_bellwire-bench"))
        .args(["--quick", "raw-udp", "raw-packet", "tcp", "bellwire-udp", "bellwire-eth-packet"])
        .env("CARGO_MANIFEST_DIR", env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the benchmark's own program");
    // The leaders of the probe, and of five contenders over two wires each.
    wait_until("all contenders run", || children_of(bench.id()).len() == 11);
    let mut workers = children_of(bench.id());
    workers.extend(workers.clone().into_iter().flat_map(children_of));
    bench.kill().expect("a child");
    bench.wait().expect("a child");
    wait_until("the workers are gone", || !workers.iter().copied().any(exists));
    assert_eq!(named(), before, "a namespace was left behind");
}

/// A killed leader takes its followers along, even while they wait for their next order.
#[test]
fn followers_end_with_their_leader() {
    let Some(mut worker) = start("ring") else { return };
    assert_eq!(worker.answer(), "ready latency rate fan_in");
    let followers = children_of(worker.child.id());
    assert_eq!(followers.len(), 8);
    worker.child.kill().expect("a child");
    worker.child.wait().expect("a child");
    wait_until("the followers are gone", || !followers.iter().copied().any(exists));
}

/// An order that makes no sense is refused with a sentence, and so is a contender that does not exist.
#[test]
fn nonsense_is_refused() {
    let Some(mut worker) = start("line") else { return };
    worker.answer();
    assert!(worker.ask("run latency 8").starts_with("error expected `run OP BYTES COUNT`"));
    assert!(!worker.child.wait().expect("a child").success());

    let mut worker = start("no-such").expect("two CPUs");
    assert_eq!(worker.answer(), "");
    assert!(!worker.child.wait().expect("a child").success());
}
