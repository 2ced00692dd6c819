//! The processes behind a figure: they answer lines, check arrivals, and leave nothing behind.

#[allow(dead_code, reason = "the program has more uses for it")]
#[path = "../src/network.rs"]
mod network;

use network::Network;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

struct Worker {
    child: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

/// The CPUs of a leader and its followers: the same one twice if this process is held to one. No
/// figure counts here.
fn two_cpus() -> [String; 2] {
    let allowed = sched_getaffinity(None).expect("the kernel knows");
    let mut cpus = (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu));
    let first = cpus.next().expect("this process runs");
    [first, cpus.next().unwrap_or(first)].map(|cpu| cpu.to_string())
}

/// Lets a program use all CPUs, whatever this process is held to. Fails the test, which says that
/// it did not run, if there is only one.
#[track_caller]
fn on_all_cpus(program: &mut Command) -> &mut Command {
    // SAFETY: asks for a number.
    let online = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    assert!(online >= 2, "NOT RUN: the benchmark needs two CPUs");
    let mut all = CpuSet::new();
    (0..CpuSet::MAX_CPU).for_each(|cpu| all.set(cpu));
    // SAFETY: the child makes one system call before it becomes the program.
    unsafe { program.pre_exec(move || Ok(sched_setaffinity(None, &all)?)) }
}

/// Fails the test, which says that it did not run, without the right to make namespaces.
#[track_caller]
fn need_root() {
    // SAFETY: has no arguments and cannot fail.
    let is_root = unsafe { libc::geteuid() } == 0;
    assert!(is_root, "NOT RUN: namespaces need root");
}

/// Starts an in-house contender.
fn start(name: &str) -> Worker {
    start_with(name, None, &[])
}

/// As [`start`], between the two sides of a network if there is one, and with this environment
/// besides.
fn start_with(name: &str, network: Option<&Network>, environment: &[(&str, &Path)]) -> Worker {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bellwire-bench"));
    command.args(["worker", name]).args(two_cpus()).envs(environment.iter().copied());
    command.stdin(Stdio::piped()).stderr(Stdio::null()).stdout(Stdio::piped());
    let child = match network {
        Some(network) => network.spawn(&mut command),
        None => command.spawn(),
    };
    let mut child = child.expect("the benchmark's own program");
    let (orders, output) = (child.stdin.take(), child.stdout.take());
    Worker { child, orders, answers: BufReader::new(output.expect("piped")) }
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
    // A zombie that its new parent has not reaped yet counts as gone.
    !stat.is_empty() && !stat.contains(") Z ")
}

/// Each in-house contender runs each of its operations twice, with its receivers' checks on, and
/// ends with its followers when its input ends.
#[test]
fn in_house_contenders_answer_and_end() {
    let mut refused = None;
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
        let mut worker = start(name);
        let ready = worker.answer();
        if name == "attach" && ready.starts_with("unable ") {
            refused = Some(ready); // The kernel may refuse cross-memory attach.
            continue;
        }
        let ops = ready.strip_prefix("ready ").unwrap_or_else(|| panic!("{name}: {ready}"));
        let followers = children_of(worker.child.id());
        assert!(!followers.is_empty(), "{name} has no follower");
        for op in ops.split(' ').flat_map(|op| [op, op]) {
            let bytes = if op.ends_with("stream") { 65536 } else { 8 };
            let answer = worker.ask(&format!("run {op} {bytes} 3"));
            assert!(answer.starts_with("ns "), "{name}, {op}: {answer}");
        }
        drop(worker.orders.take());
        assert!(worker.child.wait().expect("a child").success(), "{name} did not end well");
        assert!(!followers.into_iter().any(exists), "{name} left a follower behind");
    }
    assert_eq!(refused, None, "NOT RUN: attach");
}

/// The paper's two experiments and its peer run between two namespaces. The same program measures
/// round trips and streams over Bellwire and over TCP, of 128, 1,196 and other bytes. So it does
/// with a key, and with sockets of an agent. Receivers check every message.
// shows: B-22
#[test]
fn the_network_is_measured_as_tcp_is() {
    need_root();
    for name in [
        "tcp",
        "bellwire-eth-packet",
        "bellwire-eth-xdp",
        "bellwire-udp",
        "bellwire-udp-key",
        "bellwire-eth-agent",
    ] {
        let network = Network::new(1500, false).expect("namespaces and a wire");
        let mut worker = start_with(name, Some(&network), &[]);
        let ready = worker.answer();
        assert!(ready.starts_with("ready "), "{name}: {ready}");
        let mut measure = |op: &str, bytes: usize, count: u64| {
            let answer = worker.ask(&format!("run {op} {bytes} {count}"));
            let time_ns = answer.strip_prefix("ns ").and_then(|time| time.parse().ok());
            assert!(time_ns > Some(0_u64), "{name}, {op} of {bytes} bytes: {answer}");
        };
        for bytes in [8, 128, 1_196, 4_096] {
            measure("latency", bytes, 5);
        }
        for bytes in [8, 128, 1_196] {
            measure("rate", bytes, 200);
        }
        for bytes in [65_536, 1 << 20] {
            measure("stream", bytes, 3);
        }
        drop(worker.orders.take());
        assert!(worker.child.wait().expect("a child").success(), "{name} did not end well");
    }
}

/// Without nft the contender of the agent says what to install, and leaves no socket's file behind.
#[test]
fn an_agent_without_nft_says_what_to_install() {
    need_root();
    let network = Network::new(1500, false).expect("namespaces and a wire");
    let folder = std::env::temp_dir().join(format!("bellwire-bench-{}", std::process::id()));
    std::fs::create_dir(&folder).expect("a new name");
    // In PATH it has no nft.
    let environment = [("PATH", &*folder), ("TMPDIR", &*folder)];
    let mut worker = start_with("bellwire-eth-agent", Some(&network), &environment);
    let said = worker.answer();
    assert!(said.starts_with("unable the agent cannot restrict"), "{said}");
    assert!(said.ends_with("apt-get install nftables") && !said.contains("Some("), "{said}");
    assert!(worker.child.wait().expect("a child").success(), "it did not end well");
    // The leader has waited for its follower.
    std::fs::remove_dir(&folder).expect("it is empty");
}

/// The contenders of the network start, each in namespaces of its own. A benchmark killed in the
/// middle leaves no processes and no namespaces, because these have no names and end with their
/// last process.
#[test]
fn networks_end_with_the_benchmark() {
    need_root();
    let named = || std::fs::read_dir("/run/netns").map_or(0, Iterator::count);
    let before = named();
    let mut bench = on_all_cpus(&mut Command::new(env!("CARGO_BIN_EXE_bellwire-bench")))
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

/// A killed leader ends its followers too, even while they wait for their next order.
#[test]
fn followers_end_with_their_leader() {
    let mut worker = start("ring");
    assert_eq!(worker.answer(), "ready latency rate fan_in");
    let followers = children_of(worker.child.id());
    assert_eq!(followers.len(), 8);
    worker.child.kill().expect("a child");
    worker.child.wait().expect("a child");
    wait_until("the followers are gone", || !followers.iter().copied().any(exists));
}

/// An invalid order is refused with a sentence, and so is an unknown contender.
#[test]
fn nonsense_is_refused() {
    let mut worker = start("line");
    worker.answer();
    assert!(worker.ask("run latency 8").starts_with("error expected `run OP BYTES COUNT`"));
    assert!(!worker.child.wait().expect("a child").success());

    let mut worker = start("no-such");
    assert_eq!(worker.answer(), "");
    assert!(!worker.child.wait().expect("a child").success());
}
