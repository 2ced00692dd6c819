//! Peer: UCX, tagged messages and puts (`peers/ucx.c`), in its newest release and in Debian's.

use std::process::Command;

use anyhow::Result;

use super::{Contender, Kind, Peers, Start};
use crate::network::INTERFACE;
use crate::op::Wire;

/// The newest UCX, from PyPI's wheel.
pub const NEWEST: Contender = Contender {
    name: "ucx-newest",
    about: "UCX from PyPI's libucx-cu12, tagged and put",
    kind: Kind::Peer,
    wires: &[Wire::Memory],
    start: Start::Program(|peers, cpus| command(peers, "ucx-newest", cpus)),
};

pub const DEBIAN: Contender = Contender {
    name: "ucx-debian",
    about: "Debian's UCX, tagged and put",
    kind: Kind::Peer,
    wires: &[Wire::Memory],
    start: Start::Program(|peers, cpus| command(peers, "ucx-debian", cpus)),
};

/// The newest UCX, made to use TCP.
pub const NEWEST_OVER_TCP: Contender = Contender {
    name: "ucx-newest-tcp",
    about: "UCX from PyPI's libucx-cu12, over TCP, tagged",
    kind: Kind::Peer,
    wires: &[Wire::Frames1500, Wire::Frames9000],
    start: Start::Program(|peers, cpus| over_tcp(peers, "ucx-newest", cpus)),
};

/// Debian's UCX, made to use TCP.
pub const DEBIAN_OVER_TCP: Contender = Contender {
    name: "ucx-debian-tcp",
    about: "Debian's UCX, over TCP, tagged",
    kind: Kind::Peer,
    wires: &[Wire::Frames1500, Wire::Frames9000],
    start: Start::Program(|peers, cpus| over_tcp(peers, "ucx-debian", cpus)),
};

fn command(peers: &Peers, name: &str, cpus: [usize; 2]) -> Result<Command> {
    let mut command = Command::new(peers.program(name)?);
    command.args(cpus.map(|cpu| cpu.to_string())).env("UCX_LOG_LEVEL", "error");
    Ok(command)
}

fn over_tcp(peers: &Peers, name: &str, cpus: [usize; 2]) -> Result<Command> {
    let mut command = command(peers, name, cpus)?;
    command.arg("tcp").env("UCX_NET_DEVICES", INTERFACE);
    Ok(command)
}
