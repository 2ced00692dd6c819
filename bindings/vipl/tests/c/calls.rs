//! Each function, used correctly and wrongly: the cases of `calls/*.c`, over shared memory and over
//! UDP.

use crate::system::{Folder, Running, compile, here, wired_hosts};
use std::path::PathBuf;

const SOURCES: [&str; 8] = [
    "main",
    "objects",
    "misuse",
    "transfers",
    "completions",
    "connections",
    "openings",
    "processes",
];

fn program(folder: &Folder) -> PathBuf {
    let sources = SOURCES.map(|name| here(&format!("tests/c/calls/{name}.c")));
    compile(folder, "calls", &sources, &here("include"))
}

/// Runs a case on both devices; each run has a name or address of its own.
fn run(case: &str) {
    let folder = Folder::new(&format!("calls-{case}"));
    let program = program(&folder);
    let process = std::process::id();
    let place: usize = case.bytes().map(usize::from).sum();
    let shm = format!("shm:vipl-{case}-{process}");
    let udp = format!("udp:127.{}.{}.{}", 80 + place % 40, process >> 8 & 255, process & 255);
    for device in [shm, udp] {
        Running::start(&program, &[case, &device], &[]).succeed();
    }
}

/// Runs a case on an Ethernet interface of its own.
fn run_on_eth(case: &str) {
    let (near, _far) = wired_hosts();
    let folder = Folder::new(&format!("calls-{case}-eth"));
    let program = program(&folder);
    near.run(|| Running::start(&program, &[case, "eth:vi0"], &[])).succeed();
}

/// NICs, tags, memory, VIs and completion queues are made, queried, changed and destroyed. Objects
/// in use stay; destroyed ones can be made again; a reopened NIC is at the same node.
// shows: M-01, M-04, M-05
#[test]
fn objects() {
    run("objects");
}

/// Null, invented and stale handles, memory that is not registered or has another tag, unconnected
/// VIs, unaligned descriptors, and lengths that do not sum up: each gives its code, and nothing
/// crashes.
// shows: M-03, M-05
#[test]
fn misuse() {
    run("misuse");
}

/// Messages with zero, one and several segments, posted before and after the connection, arrive
/// whole and in order. Status word and length are as specified, once for each descriptor.
// shows: M-01, M-02, M-03, M-09, M-25
#[test]
fn messages() {
    run("messages");
}

/// RDMA writes (also with immediate data) and reads move the right bytes. Accesses that bounds,
/// handles, rights or tags forbid move nothing and are reported.
// shows: M-05, M-25
#[test]
fn rdma() {
    run("rdma");
}

/// One completion queue serves several work queues, with one record for each descriptor.
// shows: M-01, M-25
#[test]
fn completion_queues() {
    run("queues");
}

/// Handlers are called once for each registration, by the library's own thread.
#[test]
fn handlers() {
    run("handlers");
}

/// A message without a posted receive ends a reliable connection with its error; an unreliable VI
/// drops it. The library reports a peer's end and a receive that is too short. A receive past the
/// end of its region fails only if the message reaches that far.
// shows: M-03, M-09
#[test]
fn errors() {
    run("errors");
}

/// Requests are accepted, rejected and time out; peers connect whichever asks first.
// shows: M-03
#[test]
fn connections() {
    run("connections");
}

/// A server or peer waits at its second opening; a client that names the host finds it through the
/// first. It works in either order of wait and request, and while the first opening is idle.
/// Closing one opening ends only its own connections.
// shows: M-03
#[test]
fn openings() {
    run("openings");
    run_on_eth("openings");
}

/// A client that names the host finds a program with a later opening than another program's; once
/// that program is killed, it does not.
// shows: M-03
#[test]
fn programs_of_a_host() {
    run("programs");
    run_on_eth("programs");
}

/// Several threads wait at one NIC; waiting sleeps; closing the NIC ends every wait.
// shows: M-02
#[test]
fn threads() {
    run("threads");
}

/// The only mapping of the table of registered memory is read-only, and a write to it faults. A
/// forked child's use is refused.
// shows: M-10
#[test]
fn the_table_is_for_reading() {
    run("table");
}

/// A forked child opens a NIC of its own. When it is killed, its peer is told, keeps what was sent
/// before, and gets back what it posted.
// shows: M-03
#[test]
fn a_peer_that_is_killed() {
    run("death");
}
