//! Runs the command, with a deadline.
#![allow(dead_code)] // Every test file uses what it needs.

pub mod attacks;
pub mod copying;
pub mod swaps;

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A command that takes longer hangs, even on a slow machine.
pub const DEADLINE: Duration = Duration::from_secs(300);

pub fn bellwire() -> Command {
    Command::new(env!("CARGO_BIN_EXE_bellwire"))
}

/// The result of a finished command.
pub struct Output {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Output {
    /// Standard output, which must be one JSON object.
    pub fn json(&self) -> serde_json::Value {
        let parsed = serde_json::from_str(&self.stdout);
        parsed.unwrap_or_else(|error| panic!("{error}: {}\nstderr: {}", self.stdout, self.stderr))
    }

    /// This output, of a command that must have succeeded.
    #[track_caller]
    pub fn done(self) -> Output {
        assert_eq!(self.code, 0, "{}", self.stderr);
        self
    }

    /// The command must have failed, and said `why`.
    #[track_caller]
    pub fn failed(&self, why: &str) {
        assert_eq!(self.code, 1);
        assert!(self.stderr.contains(why), "{}", self.stderr);
    }
}

pub fn run(command: &mut Command) -> Output {
    let started =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = started.expect("the command starts");
    let mut out = child.stdout.take().expect("piped");
    let mut err = child.stderr.take().expect("piped");
    let stdout = std::thread::spawn(move || read_all(&mut out));
    let stderr = std::thread::spawn(move || read_all(&mut err));
    let code = wait(&mut child);
    let [stdout, stderr] = [stdout, stderr].map(|reader| reader.join().expect("no panic"));
    Output { code, stdout, stderr }
}

fn read_all(pipe: &mut impl Read) -> String {
    let mut bytes = Vec::new();
    pipe.read_to_end(&mut bytes).expect("a pipe");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A process that is killed when this is dropped, so that a failed test leaves none.
pub struct Running(pub Child);

impl Running {
    /// Starts a command whose output can be read.
    pub fn start(command: &mut Command) -> Running {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let started = command.spawn();
        Running(started.expect("the command starts"))
    }

    /// Starts `bellwire perf DEVICE --listen`, and returns once it listens.
    pub fn listener(device: &str) -> Running {
        let mut command = bellwire();
        let mut listener = Running::start(command.args(["perf", device, "--listen"]));
        let mut lines = BufReader::new(listener.0.stdout.take().expect("piped")).lines();
        let first = lines.next().expect("a line").expect("text");
        assert!(first.starts_with("Listening as node "), "{first}");
        // Drain its later output, so that it never blocks.
        std::thread::spawn(move || lines.count());
        listener
    }

    /// Kills it with SIGKILL, and returns when it is gone.
    pub fn kill(mut self) {
        self.0.kill().expect("it runs");
        wait(&mut self.0);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only if it is gone.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits for a started process; -1 if a signal ended it.
pub fn wait(child: &mut Child) -> i32 {
    let deadline = Instant::now() + DEADLINE;
    loop {
        if let Some(status) = child.try_wait().expect("a child") {
            return status.code().unwrap_or(-1);
        }
        if Instant::now() > deadline {
            let _ = child.kill();
            panic!("the command hangs");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !condition() {
        assert!(Instant::now() < deadline, "{what} did not come about");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A name that no other test uses.
pub fn unique(name: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("{name}-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

/// A folder that is removed with all that is in it when this is dropped.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(unique(&format!("bellwire-{name}")));
        std::fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
