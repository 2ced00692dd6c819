//! What `bellwire paper damq-pd` prints and writes.

mod support;

use support::{bellwire, run};

/// An experiment prints its values beside the published ones, none of them calibrated. Its JSON
/// form has the same values, and says which are inputs.
#[test]
fn an_experiment_runs() {
    let list = run(bellwire().args(["paper", "damq-pd", "--list"]));
    assert!(list.code == 0 && list.stdout.contains("policies"), "{}", list.stdout);
    let table = run(bellwire().args(["paper", "damq-pd", "analysis"]));
    assert!(table.code == 0 && table.stdout.contains("P + Q"), "{}", table.stdout);
    let reports = run(bellwire().args(["paper", "damq-pd", "start", "--json"])).done().json();
    let values = reports[0]["values"].as_array().unwrap();
    let inputs = values.iter().filter(|value| value["role"] == "input");
    let inputs: Vec<_> = inputs.map(|value| value["what"].as_str().unwrap()).collect();
    let above = ["DMA above PIO, PCIe 2.0", "DMA above PIO, HT 2.0"];
    assert_eq!(inputs, [["steps by PIO", "steps by DMA"], above].concat());
    let others = values.iter().filter(|value| value["role"] == "predicted");
    assert_eq!(others.count() + inputs.len(), values.len());
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
