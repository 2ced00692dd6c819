//! The tables of `perturbed.toml` catch faults in the mechanisms: each fault that is planted there
//! contradicts a row that a sound model obeys. Others are caught by what debug builds check.

#[allow(dead_code, reason = "other tests look at more")]
#[path = "model/core_path/mod.rs"]
mod core_path;

use bellwire_model::system::System;
use bellwire_protocol::canary::plant;
use core_path::{Fault, Path, SHAPE};

/// The contradictions of one row of a system's table, which is read alone.
fn contradictions(system: &str, parameter: &str) -> Vec<String> {
    let perturbations = System::named(system).expect(system).perturbations;
    let mut table: toml::Table = toml::from_str(perturbations.file).expect(system);
    table.retain(|row, _| row == parameter);
    let found = (perturbations.run)(&toml::to_string(&table).expect(system)).expect(system);
    let told = found.contradictions();
    told.into_iter().filter(|line| line.starts_with(&format!("{parameter}, "))).collect()
}

/// A row must be contradicted with the fault, and not without it.
fn is_caught(system: &str, fault: &'static str, parameter: &str) {
    let none: [String; 0] = [];
    assert_eq!(contradictions(system, parameter), none, "{system}: nothing is planted");
    let _planted = plant(fault);
    let told = contradictions(system, parameter);
    assert!(!told.is_empty(), "{system}: {fault} agrees with the row of {parameter}");
}

/// cHPP: wires whose latency is charged twice, a queue of commands whose depth is ignored, and an
/// arbiter that begins a new round for an input that finds no place behind its output.
#[test]
fn chpp() {
    is_caught("chpp", "chpp-latency-twice", "pcie.latency");
    is_caught("chpp", "chpp-depth-ignored", "nic.command_depth");
    is_caught("chpp", "round-too-early", "crossbar.arbitration.weights");
}

/// DAMQ-PD: a bus whose latency is charged twice, a buffer whose depth is ignored, and two
/// directions of the bus that share their wires.
#[test]
fn damq_pd() {
    is_caught("damq-pd", "damq-pd-latency-twice", "bus.one_way");
    is_caught("damq-pd", "damq-pd-depth-ignored", "nic.depth");
    is_caught("damq-pd", "damq-pd-shared-wires", "bus.rate");
}

/// MyVIA: a cable that is charged twice, and send buffers whose number is ignored.
#[test]
fn myvia() {
    is_caught("myvia", "myvia-cable-twice", "wire.cable");
    is_caught("myvia", "myvia-buffers-ignored", "system.send_buffers");
}

/// The link between processors: a Serdes that is charged twice, and a replay buffer whose size is
/// ignored.
#[test]
fn smp() {
    is_caught("smp", "smp-serdes-twice", "serdes");
    is_caught("smp", "smp-replay-ignored", "replay_buffer");
}

/// HPCL: a switch that is charged twice, and a window that is ignored.
#[test]
fn hpcl() {
    is_caught("hpcl", "hpcl-switch-twice", "wire.switch_delay");
    is_caught("hpcl", "hpcl-window-ignored", "hpcl.window");
}

/// The network: a link between routers that is as short as a terminal's, and iSLIP whose pointers
/// move with grants that are not accepted.
#[test]
fn network() {
    is_caught("network", "network-short-links", "link_cycles");
    is_caught("network", "network-pointers-run", "allocation");
}

/// The blocks of cHPP's interface: an order in which one is evaluated before what enters it is
/// known.
#[test]
#[should_panic(expected = "a block was evaluated too early")]
fn nic_core() {
    let _planted = plant("nic-core-too-early");
    Path::new(SHAPE, 1, Fault::None).run(4_000);
}
