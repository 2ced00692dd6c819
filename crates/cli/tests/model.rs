//! What `bellwire model` and `bellwire paper chpp` print.

mod support;

use serde_json::Value;
use support::{bellwire, run};

/// The stages of an operation are printed with their waits, and those of the JSON form sum exactly to the whole.
#[test]
fn an_operation_is_explained() {
    let table = run(bellwire().args(["model", "explain", "--op", "put", "--bytes", "4096"]));
    assert_eq!(table.code, 0, "{}", table.stderr);
    assert!(
        table.stdout.contains("data-memory") && table.stdout.contains("end to end"),
        "{}",
        table.stdout
    );

    let json =
        run(bellwire().args(["model", "explain", "--op", "get", "--bytes", "100", "--json"]));
    let explanation: Value = serde_json::from_str(&json.stdout).unwrap();
    let nanoseconds = |text: &Value| {
        let (number, unit) = text.as_str().unwrap().split_once(' ').unwrap();
        number.parse::<f64>().unwrap() * if unit == "us" { 1e3 } else { 1.0 }
    };
    let intervals = explanation["intervals"].as_array().unwrap();
    assert!(intervals.iter().any(|interval| interval["stage"] == "get-trip"));
    let sum: f64 = intervals.iter().map(|interval| nanoseconds(&interval["length"])).sum();
    assert!((sum - nanoseconds(&explanation["total"])).abs() < 0.01);
}

/// An experiment prints its values beside those published, and says which are calibrated.
#[test]
fn an_experiment_runs() {
    let list = run(bellwire().args(["paper", "chpp", "--list"]));
    assert!(list.code == 0 && list.stdout.contains("table3"), "{}", list.stdout);
    let json = run(bellwire().args(["paper", "chpp", "fig17", "--json"]));
    assert_eq!(json.code, 0, "{}", json.stderr);
    let reports: Value = serde_json::from_str(&json.stdout).unwrap();
    let values = reports[0]["values"].as_array().unwrap();
    for role in ["calibrated", "predicted"] {
        assert!(values.iter().any(|value| value["role"] == role));
    }
}

/// What cannot be explained or run is wrong usage.
#[test]
fn wrong_operations_are_refused() {
    for arguments in [
        &["model", "explain", "--op", "nap-indirect", "--bytes", "2049"][..],
        &["model", "explain", "--op", "push", "--bytes", "1"],
        &["paper", "chpp", "fig99"],
    ] {
        let output = run(bellwire().args(arguments));
        assert_eq!(output.code, 2, "{arguments:?}: {}", output.stderr);
        assert!(output.stdout.is_empty());
    }
}
