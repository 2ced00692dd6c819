//! What `bellwire paper damq-pd` prints and writes.

mod support;

use support::{bellwire, run};

/// An experiment prints its values beside the published ones, none of them calibrated, and its JSON
/// form has the same values.
#[test]
fn an_experiment_runs() {
    let list = run(bellwire().args(["paper", "damq-pd", "--list"]));
    assert!(list.code == 0 && list.stdout.contains("policies"), "{}", list.stdout);
    let table = run(bellwire().args(["paper", "damq-pd", "analysis"]));
    assert!(table.code == 0 && table.stdout.contains("P + Q"), "{}", table.stdout);
    let reports = run(bellwire().args(["paper", "damq-pd", "start", "--json"])).done().json();
    let values = reports[0]["values"].as_array().unwrap();
    assert!(values.len() > 5 && values.iter().all(|value| value["role"] == "predicted"));
}

/// The waveform and the drawing of the run of section 3.3 are written to the given files. The error
/// for a file that cannot be written names it.
#[test]
fn the_run_is_written() {
    let folder = support::Folder::new("damq-pd");
    let (vcd, svg) = (folder.path().join("run.vcd"), folder.path().join("run.svg"));
    let start = ["paper", "damq-pd", "start", "--vcd"];
    run(bellwire().args(start).arg(&vcd).arg("--svg").arg(&svg)).done();
    assert!(std::fs::read_to_string(vcd).unwrap().contains("$enddefinitions"));
    assert!(std::fs::read_to_string(svg).unwrap().starts_with("<svg"));
    let nowhere = folder.path().join("no/such/folder");
    let output = run(bellwire().args(["paper", "damq-pd", "start", "--vcd"]).arg(&nowhere));
    assert!(output.code != 0 && output.stderr.contains("no/such/folder"), "{}", output.stderr);
}
