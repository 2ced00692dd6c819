//! A step sends the planned signal at the planned passage, and no other step does.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};

use bellwire_ring::steps::step;

const PLAN: &str = "BELLWIRE_STEP";

/// Runs `passes_steps` in a process with this plan, and returns how that ends. A process that stops
/// is told to go on.
fn ended(plan: &str) -> (bool, ExitStatus) {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", "passes_steps", "--ignored"]).env(PLAN, plan).stdout(Stdio::null());
    #[expect(clippy::zombie_processes, reason = "waitpid tells of stops, too")]
    let child = command.spawn().expect("a process");
    let (pid, mut status, mut has_stopped) = (child.id() as i32, 0, false);
    loop {
        // SAFETY: it writes the status of our child.
        assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, libc::WUNTRACED) }, pid);
        if !libc::WIFSTOPPED(status) {
            return (has_stopped, ExitStatus::from_raw(status));
        }
        has_stopped = true;
        // SAFETY: a signal to our child.
        unsafe { libc::kill(pid, libc::SIGCONT) };
    }
}

/// What the other test runs: two steps, three times. Then it ends with the number of passages.
#[test]
#[ignore = "it is run by the other test, in a process that a step ends"]
fn passes_steps() {
    for _ in 0..3 {
        // Not by name: crash.rs of testkit looks for those of steps in the sources.
        for name in ["one", "other"] {
            step(name);
        }
    }
}

/// The signal comes at the passage that the plan counts, and only at the step that it names.
#[test]
fn a_step_sends_its_signal_once() {
    let signal = |plan| {
        let (has_stopped, status) = ended(plan);
        (has_stopped, status.signal())
    };
    for plan in ["one:1:kill", "one:3:kill", "other:2:kill"] {
        assert_eq!(signal(plan), (false, Some(libc::SIGKILL)), "{plan}");
    }
    for plan in ["one:0:kill", "one:4:kill", "none:1:kill", "one:1:other"] {
        assert_eq!(signal(plan), (false, None), "{plan}");
    }
    assert_eq!(signal("other:3:stop"), (true, None));
}
