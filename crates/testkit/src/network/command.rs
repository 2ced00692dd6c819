//! The command `bellwire`, run on hosts of a test.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The command. `cargo test --workspace` has built it beside the running test; otherwise it is
/// built now.
pub fn bellwire() -> Command {
    let running = std::env::current_exe().expect("a running test");
    let folder = running.ancestors().nth(2).expect("target/PROFILE/deps/TEST");
    let program = folder.join("bellwire");
    if !program.exists() {
        build(folder);
    }
    Command::new(program)
}

fn build(folder: &Path) {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "-q", "-p", "bellwire-cli", "--target-dir"]);
    cargo.arg(folder.parent().expect("target"));
    assert!(cargo.status().expect("cargo").success(), "the command cannot be built");
}

/// A process that is killed when this is dropped.
pub struct Running(pub Child);

impl Running {
    /// Starts a command whose first line of output says that it listens. Returns when that line has
    /// come.
    pub fn listener(command: &mut Command) -> Running {
        let mut listener = Running(command.stdout(Stdio::piped()).spawn().expect("it starts"));
        let mut output = BufReader::new(listener.0.stdout.take().expect("piped"));
        let mut said = String::new();
        output.read_line(&mut said).expect("a line");
        assert!(said.starts_with("Listening as node "), "{said}");
        // Drains the later output, so that the pipe never fills up.
        std::thread::spawn(move || output.lines().count());
        listener
    }

    /// Kills it with SIGKILL, and returns when it is gone.
    pub fn kill(mut self) {
        self.0.kill().expect("it runs");
        self.0.wait().expect("a child");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only if it is gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
