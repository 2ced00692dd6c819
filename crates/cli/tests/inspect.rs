//! `bellwire doctor`, `bellwire list` and `bellwire stat`.

mod support;

use support::{Running, bellwire, run, unique};

/// The doctor names every device and the reasons against the unusable ones. Its exit code is that
/// of the default device.
#[test]
fn doctor_names_every_device() {
    let output = run(bellwire().args(["doctor", "--json"]));
    let object = output.json();
    let devices = object["devices"].as_array().expect("an array");
    let names: Vec<_> = devices.iter().map(|device| device["device"].as_str()).collect();
    let kinds = bellwire::Device::kinds().map(|(kind, _)| kind);
    assert_eq!(names, kinds.map(Some).collect::<Vec<_>>());
    assert!(devices.iter().all(|device| device["why"].as_str().is_some_and(|why| !why.is_empty())));
    assert_eq!(output.code, i32::from(devices[0]["usable"] != true));
    // The model needs only memory.
    assert_eq!(devices[3]["usable"], true, "{}", devices[3]);
    for check in object["checks"].as_array().expect("an array") {
        assert!(["good", "limited", "missing"].map(Some).contains(&check["state"].as_str()));
        assert_eq!(check["state"] == "good", check["hint"].is_null(), "{check}");
    }
    assert_eq!(run(bellwire().arg("doctor")).code, output.code);
}

/// A listening process is listed with its device, node, function and process number.
#[test]
fn list_finds_the_process_behind_a_function() {
    let device = format!("shm:{}", unique("list"));
    let listener = Running::listener(&device);
    support::until("its function", || {
        let object = run(bellwire().args(["list", "--json"])).json();
        object["functions"].as_array().expect("an array").iter().any(|function| {
            function["device"] == device
                && function["node"] == 0
                && function["function"] == 0
                && function["pid"] == listener.0.id()
                && function["program"] == "bellwire"
        })
    });
    assert!(run(bellwire().arg("list")).stdout.contains(&device));
    listener.kill();
    assert!(!run(bellwire().arg("list")).stdout.contains(&device));
}

/// Functions of the simulated device are listed with the process that contains them all.
#[test]
fn list_finds_simulated_functions() {
    let device = format!("model:chpp:{}", unique("list"));
    let running = Running::start(bellwire().args(["perf", &device, "--sizes", "4MiB"]));
    support::until("both its functions", || {
        let object = run(bellwire().args(["list", "--json"])).json();
        let functions = object["functions"].as_array().expect("an array");
        let own = |function: &&serde_json::Value| {
            function["device"] == device && function["pid"] == running.0.id()
        };
        let nodes: Vec<_> =
            functions.iter().filter(own).map(|function| &function["node"]).collect();
        nodes.len() == 2 && nodes.iter().any(|node| **node == 1)
    });
    running.kill();
}

/// The functions of a waiting process are visible from outside, even if it is stopped. A process
/// without Bellwire and a missing process give different errors.
#[test]
fn stat_shows_even_a_stopped_process() {
    let device = format!("shm:{}", unique("stat"));
    let listener = Running::listener(&device);
    let arguments = ["perf", &device, "--connect", "0", "--sizes", "8..4MiB"];
    let leader = Running::start(bellwire().args(arguments));

    let pid = listener.0.id().to_string();
    let shown = || run(bellwire().args(["stat", &pid, "--json"]));
    support::until("its snapshot", || {
        let output = shown();
        let Some(object) = (output.code == 0).then(|| output.json()) else { return false };
        let function = &object["processes"][0]["functions"][0];
        // The function is visible once it is open, its queue pairs a little later.
        function["device"] == device
            && function["queue_pairs"].as_array().is_some_and(|pairs| pairs.len() == 2)
    });
    signal(&pid, "STOP");
    let output = shown();
    assert_eq!(output.code, 0, "{}", output.stderr);
    let object = output.json();
    let function = &object["processes"][0]["functions"][0];
    assert_eq!(function["address"], "0.0");
    assert_eq!(function["queue_pairs"].as_array().map(Vec::len), Some(2));
    assert!(function["age_s"].as_f64() >= Some(0.0));
    let text = run(bellwire().args(["stat", &pid])).stdout;
    assert!(text.contains("queue pair 0.0.1") && text.contains(&device), "{text}");
    assert!(run(bellwire().arg("stat")).stdout.contains(&device));
    signal(&pid, "CONT");
    leader.kill();
    listener.kill();

    run(bellwire().args(["stat", &pid])).failed("no process");
    run(bellwire().args(["stat", &std::process::id().to_string()])).failed("has no function");
}

fn signal(pid: &str, name: &str) {
    let kill = std::process::Command::new("kill").args([&format!("-{name}"), pid]).status();
    assert!(kill.expect("kill is there").success());
}
