//! The examples, on every device: in two processes where the device allows it, in two threads on
//! the model.

use crate::system::{Folder, Running, compile, here, wired_hosts};
use std::path::{Path, PathBuf};

fn example(folder: &Folder, name: &str) -> PathBuf {
    let sources = [here(&format!("examples/{name}.c")), here("examples/sides.c")];
    compile(folder, name, &sources, &here("include"))
}

/// Server and client in two processes.
fn two_processes(program: &Path, server: &str, client: &str, bytes: &str) {
    let settings = [("BYTES", bytes)];
    let mut first = Running::start(program, &["server", server], &settings);
    let line = first.line();
    let host = line.strip_prefix("host ").unwrap_or_else(|| panic!("no host but {line:?}"));
    Running::start(program, &["client", client, host], &settings).succeed();
    first.succeed();
}

/// Both programs of the paper run over shared memory, with short messages and with long ones that
/// the receiver fetches.
// shows: M-02, M-03, M-30
#[test]
fn examples_run_over_shm() {
    let folder = Folder::new("shm");
    let device = format!("shm:vipl-{}", std::process::id());
    for (name, bytes) in
        [("pingpong", "64"), ("window", "1"), ("window", "4096"), ("window", "70000")]
    {
        two_processes(&example(&folder, name), &device, &device, bytes);
    }
}

/// Both programs run over UDP.
// shows: M-02, M-03, M-30
#[test]
fn examples_run_over_udp() {
    let folder = Folder::new("udp");
    // Addresses of this test's own, so that the port is free.
    let device =
        format!("udp:127.77.{}.{}", std::process::id() >> 8 & 255, std::process::id() & 255);
    for (name, bytes) in [("pingpong", "64"), ("window", "4096"), ("pingpong", "100000")] {
        two_processes(&example(&folder, name), &device, &device, bytes);
    }
}

/// Both programs run between two network namespaces, over a pair of Ethernet interfaces.
// shows: M-02, M-03, M-30
#[test]
fn examples_run_over_eth() {
    let folder = Folder::new("eth");
    let (near, far) = wired_hosts();
    for (name, bytes) in [("pingpong", "64"), ("window", "4096")] {
        let program = example(&folder, name);
        let settings = [("BYTES", bytes)];
        let mut server = near.run(|| Running::start(&program, &["server", "eth:vi0"], &settings));
        let line = server.line();
        let host = line.strip_prefix("host ").unwrap_or_else(|| panic!("no host but {line:?}"));
        far.run(|| Running::start(&program, &["client", "eth:vi1", host], &settings)).succeed();
        server.succeed();
    }
}

/// Both programs run on the model of the cHPP interface, in two threads, because it lives in one
/// process.
// shows: M-02, M-03, M-30
#[test]
fn examples_run_on_the_model() {
    let folder = Folder::new("model");
    for (name, bytes) in [("pingpong", "64"), ("window", "512")] {
        let program = example(&folder, name);
        Running::start(&program, &["both", "model:chpp"], &[("BYTES", bytes)]).succeed();
    }
}

/// Four processes use a small message-passing layer over the library: a ring, tags, any source,
/// more messages than credits, long ones by RDMA, barrier, broadcast and sums. Each result is
/// checked.
// shows: M-02, M-32
#[test]
fn ranks_pass_messages() {
    let sources = [here("examples/ranks.c"), here("examples/mp.c")];
    let folder = Folder::new("ranks");
    let program = compile(&folder, "ranks", &sources, &here("include"));
    let process = std::process::id();
    let shm = format!("shm:vipl-ranks-{process}?node=%d");
    Running::start(&program, &[&shm, "%d.0"], &[]).succeed();
    let net = format!("127.{}.{}", 120 + (process >> 8 & 63), process & 255);
    let udp = format!("udp:{net}.%d");
    // Nodes are the numbers of their addresses, also for rank 0.
    Running::start(&program, &[&udp, &format!("{net}.%d")], &[]).succeed();
}
