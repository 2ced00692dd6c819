//! Peer: UCX, tagged messages and puts (`peers/ucx.c`), once in the newest release and once in Debian's.

use std::process::Command;

use anyhow::Result;

use super::{Contender, Kind, Peers, Start};

/// The newest UCX, from PyPI's wheel.
pub const NEWEST: Contender = Contender {
    name: "ucx-newest",
    about: "UCX from PyPI's libucx-cu12, tagged and put",
    kind: Kind::Peer,
    start: Start::Program(|peers, cpus| command(peers, "ucx-newest", cpus)),
};

/// Debian's UCX.
pub const DEBIAN: Contender = Contender {
    name: "ucx-debian",
    about: "Debian's UCX, tagged and put",
    kind: Kind::Peer,
    start: Start::Program(|peers, cpus| command(peers, "ucx-debian", cpus)),
};

fn command(peers: &Peers, name: &str, cpus: [usize; 2]) -> Result<Command> {
    let mut command = Command::new(peers.program(name)?);
    command.args(cpus.map(|cpu| cpu.to_string())).env("UCX_LOG_LEVEL", "error");
    Ok(command)
}
