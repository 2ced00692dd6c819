//! Behaviour of every command: help, wrong usage, exit codes.

mod support;

use support::{bellwire, run};

/// Every command explains itself, with examples, and exits with 0.
#[test]
fn every_command_explains_itself() {
    let commands: [&[&str]; 11] = [
        &["perf"],
        &["copy"],
        &["stat"],
        &["doctor"],
        &["list"],
        &["run"],
        &["key"],
        &["paper", "rows"],
        &["paper", "chpp"],
        &["model", "explain"],
        &[],
    ];
    for command in commands {
        let help = run(bellwire().args(command).arg("--help"));
        assert_eq!(help.code, 0, "{command:?}");
        assert!(
            help.stdout.contains("bellwire doctor") || help.stdout.contains("Examples:"),
            "{}",
            help.stdout
        );
        assert!(help.stderr.is_empty(), "{}", help.stderr);
    }
    let help = run(bellwire().arg("--help"));
    assert!(help.stdout.contains("Exit codes"), "{}", help.stdout);
    // Internal commands are not listed.
    assert!(!help.stdout.contains("read-from-parent"), "{}", help.stdout);
}

/// Wrong usage exits with 2, names the error on standard error, and prints nothing on standard
/// output.
#[test]
fn wrong_usage_exits_with_2() {
    let wrong: [&[&str]; 21] = [
        &[],
        &["run"],
        &["fly"],
        &["perf", "--sizes", "7"],
        &["perf", "--sizes", "64..8"],
        &["perf", "--ops", "shout"],
        &["perf", "--wait", "patiently"],
        &["perf", "--pairs", "0"],
        &["perf", "--cpus", "100000"],
        &["perf", "--listen", "--connect", "0"],
        &["paper", "rows", "--state", "lost"],
        &["paper", "rows", "--paper", "daily"],
        &["doctor", "--cure"],
        &["copy", "one"],
        &["copy", "--listen"],
        &["copy", "--connect", "0"],
        &["copy", "one", "--listen", "two"],
        &["copy", "one", "two", "--connect", "0"],
        &["copy", "--listen", "one", "--connect", "0"],
        &["stat", "0"],
        &["stat", "--watch"],
    ];
    for arguments in wrong {
        let output = run(bellwire().args(arguments));
        assert_eq!(output.code, 2, "{arguments:?}: {}", output.stderr);
        assert!(!output.stderr.is_empty() && output.stdout.is_empty(), "{arguments:?}");
    }
}

/// An unknown device is an error that names the known ones, not wrong usage.
#[test]
fn an_unknown_device_is_explained() {
    run(bellwire().args(["perf", "wet:string"])).failed("shm:JOB");
}

/// `paper rows` prints the scoreboard of the checkout that it runs in, and refuses to run
/// elsewhere.
#[test]
fn paper_rows_prints_the_scoreboard() {
    let rows = run(bellwire()
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["paper", "rows", "--paper", "damq-pd", "--json"]));
    let object = rows.json();
    assert_eq!(object["rows"].as_array().map(Vec::len), Some(31));
    // It fails exactly if the checkout has problems.
    let problems = object["problems"].as_array().expect("an array").len();
    assert_eq!(rows.code, i32::from(problems > 0));

    let elsewhere = run(bellwire().current_dir("/").args(["paper", "rows"]));
    assert_eq!(elsewhere.code, 1);
    assert!(!elsewhere.stderr.is_empty());
}

/// A program does not start with a device that cannot exist.
#[test]
fn run_refuses_wrong_devices() {
    for (device, text) in [
        ("foo:1", "names no device"),
        ("shm:", "nothing follows the colon"),
        ("udp:127.0.0.1?volume=11", "volume"),
    ] {
        run(bellwire().args(["run", "--device", device, "--", "true"])).failed(text);
    }
    assert_eq!(run(bellwire().args(["run", "--device", "udp:127.0.0.1", "--", "true"])).code, 0);
}
