//! `bellwire doctor` and `bellwire list`.

mod support;

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use support::{bellwire, run, unique, wait};

/// The doctor names every device, says why those that cannot be used cannot, and its exit code is that of the default device.
#[test]
fn doctor_names_every_device() {
    let output = run(bellwire().args(["doctor", "--json"]));
    let object = output.json();
    let devices = object["devices"].as_array().expect("an array");
    let names: Vec<_> = devices.iter().map(|device| device["device"].as_str()).collect();
    assert_eq!(names, ["shm", "eth", "udp", "model", "rtl"].map(Some));
    assert!(devices.iter().all(|device| device["why"].as_str().is_some_and(|why| !why.is_empty())));
    assert_eq!(output.code, i32::from(devices[0]["usable"] != true));
    for check in object["checks"].as_array().expect("an array") {
        assert!(["good", "limited", "missing"].map(Some).contains(&check["state"].as_str()));
        assert_eq!(check["state"] == "good", check["hint"].is_null(), "{check}");
    }
    assert_eq!(run(bellwire().arg("doctor")).code, output.code);
}

/// A process that listens is listed with its device, node, function and number.
#[test]
fn list_finds_the_process_behind_a_function() {
    let device = format!("shm:{}", unique("list"));
    let mut listener = bellwire()
        .args(["perf", &device, "--listen"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut said = BufReader::new(listener.stdout.take().expect("piped")).lines();
    let first = said.next().expect("a line").expect("text");
    assert!(first.starts_with("Listening as node 0"), "{first}");

    support::until("its function", || {
        let object = run(bellwire().args(["list", "--json"])).json();
        object["functions"].as_array().expect("an array").iter().any(|function| {
            function["device"] == device
                && function["node"] == 0
                && function["function"] == 0
                && function["pid"] == listener.id()
                && function["program"] == "bellwire"
        })
    });
    assert!(run(bellwire().arg("list")).stdout.contains(&device));
    listener.kill().expect("it runs");
    wait(&mut listener);
    assert!(!run(bellwire().arg("list")).stdout.contains(&device));
}
