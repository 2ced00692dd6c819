//! What `bellwire model` and `bellwire paper chpp` print.

mod support;

use serde_json::Value;
use support::{Folder, bellwire, run};

/// The stages of an operation are printed with their waits. In the JSON form they sum exactly to
/// the whole.
#[test]
fn an_operation_is_explained() {
    let table = run(bellwire().args(["model", "explain", "--op", "put", "--bytes", "4096"])).done();
    assert!(
        table.stdout.contains("data-memory") && table.stdout.contains("end to end"),
        "{}",
        table.stdout
    );

    let explain = ["model", "explain", "--op", "get", "--bytes", "100", "--json"];
    let explanation = run(bellwire().args(explain)).json();
    let nanoseconds = |text: &Value| {
        let (number, unit) = text.as_str().unwrap().split_once(' ').unwrap();
        number.parse::<f64>().unwrap() * if unit == "us" { 1e3 } else { 1.0 }
    };
    let intervals = explanation["intervals"].as_array().unwrap();
    assert!(intervals.iter().any(|interval| interval["stage"] == "get-trip"));
    let sum: f64 = intervals.iter().map(|interval| nanoseconds(&interval["length"])).sum();
    assert!((sum - nanoseconds(&explanation["total"])).abs() < 0.01);
}

/// The picture of an operation is a separate file, with the same total as the table.
#[test]
fn an_operation_is_drawn() {
    let folder = Folder::new("drawn");
    let file = folder.path().join("put.svg");
    let explain = ["model", "explain", "--op", "put", "--bytes", "4096", "--svg"];
    let output = run(bellwire().args(explain).arg(&file)).done();
    let picture = std::fs::read_to_string(&file).unwrap();
    assert!(picture.starts_with("<svg") && picture.contains("PUT, 4096 B"));
    let (_, total) = picture.split_once("data-total-ps=\"").unwrap();
    let total: f64 = total.split_once('"').unwrap().0.parse().unwrap();
    assert!(output.stdout.contains(&format!("{:.3}", total / 1000.0)), "{}", output.stdout);

    run(bellwire().args(explain).arg("/nowhere/put.svg")).failed("cannot write /nowhere/put.svg");
}

/// Traces and waveforms are written beside the table, and have the beginnings of their formats.
#[test]
fn an_operation_is_recorded() {
    let folder = Folder::new("records");
    let (trace, vcd) = (folder.path().join("put.pftrace"), folder.path().join("put.vcd"));
    let mut explain = bellwire();
    explain.args(["model", "explain", "--op", "put", "--bytes", "64", "--trace"]).arg(&trace);
    let output = run(explain.arg("--vcd").arg(&vcd)).done();
    let (trace, vcd) = (std::fs::read(&trace).unwrap(), std::fs::read_to_string(&vcd).unwrap());
    assert!(output.stdout.contains("end to end"));
    // Field 1 of a protobuf message: a packet.
    assert_eq!(trace[0], 0x0a);
    assert!(vcd.starts_with("$version bellwire") && vcd.contains("$timescale 1 ps $end"));
}

/// The examples that the command prints run unchanged from a file, in both forms. Only the report
/// is on standard output.
#[test]
fn examples_run() {
    let folder = Folder::new("run");
    for (name, throughput) in [("chpp", "throughput_gb_s"), ("network", "throughput")] {
        let example = run(bellwire().args(["model", "run", "--example", name]));
        let file = folder.path().join(name).with_extension("toml");
        std::fs::write(&file, &example.stdout).unwrap();
        let lines = run(bellwire().args(["model", "run"]).arg(&file)).done();
        assert!(
            lines.stdout.contains(", settled\n") && lines.stderr.is_empty(),
            "{}",
            lines.stdout
        );
        let report = run(bellwire().args(["model", "run", "--json"]).arg(&file)).json();
        assert!(report[throughput]["half_width"].is_number() && report["settled"] == true);
        // One seed gives one run.
        assert!(lines.stdout.contains(report["trace_hash"].as_str().unwrap()));
    }
    let wrong = folder.path().join("wrong.toml");
    std::fs::write(&wrong, "[chpp]\nnic = { tgas = 3 }\n[traffic]\n").unwrap();
    run(bellwire().args(["model", "run"]).arg(&wrong)).failed("missing field");
    assert_eq!(run(bellwire().args(["model", "run"])).code, 2);
}

/// Schedules run directly, or from a plan beside them. A deadlocked one is explained on standard
/// error.
#[test]
fn schedules_run() {
    let folder = Folder::new("goal");
    let at = |name: &str| folder.path().join(name);
    for (example, name) in [("goal", "program.goal"), ("schedule", "plan.toml")] {
        let example = run(bellwire().args(["model", "run", "--example", example]));
        std::fs::write(at(name), &example.stdout).unwrap();
    }
    for name in ["program.goal", "plan.toml"] {
        let lines = run(bellwire().args(["model", "run"]).arg(at(name))).done();
        assert!(lines.stdout.contains("4 eager, 3 rendezvous"), "{}", lines.stdout);
    }
    let run_json = ["model", "run", "--json"];
    let outcome = run(bellwire().args(run_json).arg(at("program.goal"))).json();
    assert_eq!(outcome["rank_times"].as_array().unwrap().len(), 4);
    let stuck = "num_ranks 2\nrank 0 {\nrecv 8b from 1\n}\nrank 1 {\nrecv 8b from 0\n}\n";
    std::fs::write(at("stuck.goal"), stuck).unwrap();
    run(bellwire().args(["model", "run"]).arg(at("stuck.goal")))
        .failed("rank 1, line 6: recv 8b from 0 tag 0 is never sent");
}

/// An experiment prints its values beside the published ones, and says which are calibrated.
#[test]
fn an_experiment_runs() {
    let list = run(bellwire().args(["paper", "chpp", "--list"]));
    assert!(list.code == 0 && list.stdout.contains("table3"), "{}", list.stdout);
    let reports = run(bellwire().args(["paper", "chpp", "fig17", "--json"])).done().json();
    let values = reports[0]["values"].as_array().unwrap();
    for role in ["calibrated", "predicted"] {
        assert!(values.iter().any(|value| value["role"] == role));
    }
}

/// Every model of the list prints its parameters, with a source in each file, and the experiments
/// of its paper, if it has one, under both names. The list says which model explains operations.
#[test]
fn every_model_is_offered() {
    let list = run(bellwire().args(["model", "list"])).done();
    let models: Vec<&str> =
        list.stdout.lines().skip(1).filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(models, ["chpp", "damq-pd", "myvia", "smp", "hpcl", "network"]);
    for model in models {
        let is_of_paper = model != "network";
        let parameters = run(bellwire().args(["model", "parameters", model]));
        let source = if is_of_paper { "# paper" } else { "# chosen" };
        assert!(parameters.stdout.contains(source), "{model}: {}", parameters.stderr);
        let experiments = run(bellwire().args(["paper", model, "--list"]));
        let listed = experiments.stdout.lines().count();
        assert!(if is_of_paper { listed > 3 } else { experiments.code == 2 }, "{model}: {listed}");
        let explain = ["model", "explain", "--model", model, "--op", "put", "--bytes", "64"];
        let expected = if model == "chpp" { 0 } else { 2 };
        assert_eq!(run(bellwire().args(explain)).code, expected, "{model}");
    }
    let papers = run(bellwire().args(["paper", "smp-interconnect", "--list"]));
    assert_eq!(papers.stdout, run(bellwire().args(["paper", "smp", "--list"])).stdout);
}

/// The parameters of a model are varied, and those that the paper leaves open are named.
#[test]
fn a_model_is_varied() {
    let found = run(bellwire().args(["model", "sensitivity", "smp", "--json"])).done().json();
    let names = |list: &str| -> Vec<String> {
        let list = found[list].as_array().unwrap();
        list.iter().map(|name| name.as_str().unwrap().to_owned()).collect()
    };
    assert!(names("with_effect").contains(&"receive".to_owned()), "a choice is varied");
    assert!(names("rests_on").contains(&"layer_cycles".to_owned()), "a calibrated number");
    assert!(!names("rests_on").contains(&"lanes".to_owned()), "the paper has it");
    let changes = found["changes"].as_array().unwrap();
    let serdes = changes.iter().find(|change| change["parameter"] == "serdes").unwrap();
    assert_eq!(serdes["change"], "double");
    let figure = &serdes["figures"][0];
    assert_eq!((&figure["expected"], &figure["holds"]), (&"+50".into(), &true.into()));
    let moved = figure["after"].as_f64().unwrap() - figure["before"].as_f64().unwrap();
    assert!((moved - 50.0).abs() < 1e-6, "{moved}");
}

/// Operations that cannot be explained or run are wrong usage.
#[test]
fn wrong_operations_are_refused() {
    for arguments in [
        &["model", "explain", "--op", "nap-indirect", "--bytes", "2049"][..],
        &["model", "explain", "--op", "push", "--bytes", "1"],
        &["paper", "chpp", "fig99"],
        &["model", "parameters", "mychpp"],
    ] {
        let output = run(bellwire().args(arguments));
        assert_eq!(output.code, 2, "{arguments:?}: {}", output.stderr);
        assert!(output.stdout.is_empty());
    }
}
