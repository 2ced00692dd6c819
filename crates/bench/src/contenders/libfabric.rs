//! Peer: libfabric's shared-memory provider, tagged messages and writes (`peers/libfabric.c`).

use std::process::Command;

use super::{Contender, Kind, Start};

/// Debian's libfabric.
pub const CONTENDER: Contender = Contender {
    name: "libfabric",
    about: "Debian's libfabric, provider shm, tagged and write",
    kind: Kind::Peer,
    start: Start::Program(|peers, cpus| {
        let mut command = Command::new(peers.program("libfabric")?);
        command.args(cpus.map(|cpu| cpu.to_string()));
        Ok(command)
    }),
};
