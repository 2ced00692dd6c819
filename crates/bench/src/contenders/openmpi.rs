//! Peer: Open MPI over shared memory, messages and puts (`peers/openmpi.c`).

use std::process::Command;

use super::{Contender, Kind, Start};
use crate::op::Wire;

/// Debian's Open MPI.
pub const CONTENDER: Contender = Contender {
    name: "openmpi",
    about: "Debian's Open MPI, vader, send and put",
    kind: Kind::Peer,
    wires: &[Wire::Memory],
    start: Start::Program(|peers, cpus| {
        let mut command = Command::new("mpirun");
        command
            .args(["--quiet", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"])
            .args(["--mca", "pml", "ob1", "--mca", "btl", "vader,self", "-np", "2"])
            .arg(peers.program("openmpi")?)
            .args(cpus.map(|cpu| cpu.to_string()))
            // The abstract socket where the two ranks meet outside MPI, so that they can sleep
            // between samples.
            .arg(format!("bellwire-bench-mpi-{}", std::process::id()));
        Ok(command)
    }),
};
