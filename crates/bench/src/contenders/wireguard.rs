//! Peer: TCP through a tunnel of WireGuard in user space (wireguard-go), which is what a machine
//! without the kernel's module has. The tunnel's own threads need the processors, so both sides
//! block.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use bellwire_ethernet::namespace::ip;
use rustix::process::{Signal, set_parent_process_death_signal};

use super::socket::Connection;
use super::{Contender, Kind, Start, tcp};
use crate::network::ADDRESSES;
use crate::op::Wire;
use crate::worker::{InHouse, Party};

pub const CONTENDER: Contender = Contender {
    name: "wireguard",
    about: "kernel TCP through WireGuard in user space (wireguard-go), blocking",
    kind: Kind::Peer,
    wires: &[Wire::Frames1500],
    start: Start::InHouse(InHouse::pair(tcp::OPS, |party| {
        dig(party)?;
        let stream = tcp::connect(party, INSIDE[0])?;
        Ok(Box::new(Connection::new(party.index, stream, |_, _| Ok(()))))
    })),
};

/// Addresses inside the tunnel.
const INSIDE: [&str; 2] = ["10.78.0.1", "10.78.0.2"];

/// Private keys of the two sides. They protect nothing.
const KEYS: [&str; 2] = [
    "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
    "ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8=",
];

const PORT: u16 = 51820;

const NEEDED: &str = "apt-get install wireguard-go wireguard-tools";

/// How long the tunnel may take to answer to its first order.
const STARTING: Duration = Duration::from_secs(5);

/// Opens this party's end of the tunnel. It ends with this process.
fn dig(party: &Party) -> Result<()> {
    // Orders go by a socket with the name of the interface, which both namespaces see.
    let name = format!("wg{}n{}", party.leader_pid, party.index);
    let mut command = Command::new("wireguard-go");
    command.args(["--foreground", &name]).stdin(Stdio::null()).stdout(Stdio::null());
    // SAFETY: the closure runs between fork and exec and makes one system call that touches no
    // memory.
    unsafe {
        command.pre_exec(|| Ok(set_parent_process_death_signal(Some(Signal::TERM))?));
    }
    let mut tunnel = command.spawn().with_context(|| format!("no wireguard-go: {NEEDED}"))?;
    let since = Instant::now();
    while wg(&["show", &name], "").is_err() {
        let ended = tunnel.try_wait()?;
        ensure!(ended.is_none(), "wireguard-go ended ({ended:?}); it needs /dev/net/tun");
        ensure!(since.elapsed() < STARTING, "wireguard-go does not answer");
        std::thread::sleep(Duration::from_millis(5));
    }
    let peer = wg(&["pubkey"], KEYS[1 - party.index])?;
    let (port, endpoint) = (PORT.to_string(), format!("{}:{PORT}", ADDRESSES[1 - party.index]));
    let own = ["set", &name, "private-key", "/dev/stdin", "listen-port", &port];
    let other = ["peer", peer.trim(), "allowed-ips", "10.78.0.0/24", "endpoint", &endpoint];
    wg(&[&own[..], &other[..]].concat(), KEYS[party.index])?;
    ip(&format!("addr add {}/24 dev {name}", INSIDE[party.index]))?;
    Ok(ip(&format!("link set {name} up"))?)
}

/// Runs wg(8) with `input`, and returns its output.
fn wg(arguments: &[&str], input: &str) -> Result<String> {
    let mut command = Command::new("wg");
    command.args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("no wg: {NEEDED}"))?;
    child.stdin.take().context("an input")?.write_all(input.as_bytes())?;
    let output = child.wait_with_output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`wg {}` failed: {}", arguments[0], said.trim());
    Ok(String::from_utf8(output.stdout)?)
}
