//! Peer: iceoryx2, publish and subscribe with polling (`peers/iceoryx2/`, a cargo workspace of its
//! own).

use std::process::Command;

use super::{Contender, Kind, Start};
use crate::op::Wire;

/// iceoryx2 from crates.io.
pub const CONTENDER: Contender = Contender {
    name: "iceoryx2",
    about: "iceoryx2 from crates.io, publish and subscribe, polling",
    kind: Kind::Peer,
    wires: &[Wire::Memory],
    start: Start::Program(|peers, cpus| {
        let mut command = Command::new(peers.program("iceoryx2")?);
        command.args(cpus.map(|cpu| cpu.to_string()));
        Ok(command)
    }),
};
