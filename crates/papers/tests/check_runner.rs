//! Canaries of the scripts that run the checks: a failed run, or one in which nothing ran, must not
//! look like a passed one.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A list of tests passes only if the command passed and at least one test ran.
#[test]
fn nothing_passes_without_having_run() {
    let passes = |command: &str| {
        let script = format!(". tools/ran.sh; ran_some it bash -c '{command}'");
        let mut bash = Command::new("bash");
        bash.args(["-euo", "pipefail", "-c", &script]).current_dir(checkout());
        bash.output().unwrap().status.success()
    };
    assert!(passes("echo test result: ok. 3 passed; echo test result: ok. 0 passed"));
    assert!(!passes("echo test result: ok. 0 passed"));
    assert!(!passes("echo nothing of the kind"));
    assert!(!passes("echo test result: ok. 3 passed; exit 1"));
}

/// The runner has the exit status of `make test`, adds up all results, and repeats what did not
/// run. It prints no clean sum if a step failed that is not a test.
#[test]
fn the_sum_of_all_checks_is_honest() {
    let run = run_checks("ok. 3 passed; 0 failed\nNOT RUN: Miri: absent", 0);
    assert!(run.status.success());
    assert_eq!(last_lines(&run, 2), ["NOT RUN: Miri: absent", "3 passed, 0 failed"]);

    let results = "ok. 3 passed; 0 failed\ntest result: FAILED. 4 passed; 2 failed";
    let run = run_checks(results, 2);
    assert_eq!(run.status.code(), Some(2));
    assert_eq!(last_lines(&run, 1), ["7 passed, 2 failed"]);

    let run = run_checks("ok. 3 passed; 0 failed", 2);
    assert_eq!(run.status.code(), Some(2));
    assert_eq!(last_lines(&run, 1), ["3 passed, 1 failed"]);
}

/// Runs `.ci/run` with a `make` that prints these results and ends with this status. It is a
/// function that the shell inherits: a program that was just written may still be open for writing
/// in another process that is being started, and could not be run then.
fn run_checks(results: &str, status: i32) -> Output {
    let make = format!("() {{ echo 'test result: {results}'; return {status}; }}");
    let mut run = Command::new("bash");
    run.arg(checkout().join(".ci/run")).env("BASH_FUNC_make%%", make).output().unwrap()
}

fn last_lines(run: &Output, count: usize) -> Vec<String> {
    let text = String::from_utf8_lossy(&run.stdout);
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines[lines.len() - count..].to_vec()
}
