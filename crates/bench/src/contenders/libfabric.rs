//! Peer: libfabric's providers for shared memory, TCP and UDP, tagged messages and writes
//! (`peers/libfabric.c`).

use std::process::Command;

use anyhow::Result;

use super::{Contender, Kind, Peers, Start};
use crate::network::ADDRESSES;
use crate::op::Wire;

/// Debian's libfabric.
pub const CONTENDER: Contender = Contender {
    name: "libfabric",
    about: "Debian's libfabric, provider shm, tagged and write",
    kind: Kind::Peer,
    wires: &[Wire::Memory],
    start: Start::Program(|peers, cpus| command(peers, cpus, &[])),
};

/// Debian's libfabric over TCP.
pub const TCP: Contender = Contender {
    name: "libfabric-tcp",
    about: "Debian's libfabric, provider tcp;ofi_rxm, tagged",
    kind: Kind::Peer,
    wires: &[Wire::Frames1500, Wire::Frames9000],
    start: Start::Program(|peers, cpus| command(peers, cpus, &["tcp;ofi_rxm"])),
};

/// Debian's libfabric over UDP.
pub const UDP: Contender = Contender {
    name: "libfabric-udp",
    about: "Debian's libfabric, provider udp;ofi_rxd, tagged",
    kind: Kind::Peer,
    wires: &[Wire::Frames1500, Wire::Frames9000],
    start: Start::Program(|peers, cpus| command(peers, cpus, &["udp;ofi_rxd"])),
};

/// `provider`: the provider for a network, then the addresses of its two sides; empty for shared
/// memory.
fn command(peers: &Peers, cpus: [usize; 2], provider: &[&str]) -> Result<Command> {
    let mut command = Command::new(peers.program("libfabric")?);
    command.args(cpus.map(|cpu| cpu.to_string())).args(provider);
    if !provider.is_empty() {
        command.args(ADDRESSES);
    }
    Ok(command)
}
