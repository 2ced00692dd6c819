//! The contenders: one file each. A contender says what it is, how to start it, and which
//! operations it can run.
//!
//! To add one, write its file and add it to [`CONTENDERS`]; the rest of the program names none of
//! them. The limits are written out here, atomics included. They share no code with the product, so
//! a fault there cannot hide here. The limits of the network are the exception: they use the
//! product's frame I/O, without its protocol.

mod attach;
mod bellwire;
mod bellwire_fan_in;
mod bellwire_network;
mod copy_straight;
mod copy_through;
mod iceoryx2;
mod libfabric;
mod line;
mod memcpy;
mod openmpi;
mod raw;
mod ring;
mod socket;
mod tcp;
mod tls;
mod ucx;
mod wireguard;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use crate::op::Wire;
use crate::worker::InHouse;

pub struct Contender {
    /// The word that names it on the command line and in JSON.
    pub name: &'static str,
    /// What it is, for the report.
    pub about: &'static str,
    pub kind: Kind,
    /// The wires that it can be measured over.
    pub wires: &'static [Wire],
    pub start: Start,
}

/// A contender's role in the ratios.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The hardware's limit: code that only moves the bytes.
    Limit,
    Bellwire,
    /// An alternative that programs use today.
    Peer,
}

/// How a contender is started. Both kinds speak the lines of [`crate::worker`].
pub enum Start {
    /// As a worker of this program.
    InHouse(InHouse),
    /// As a program that the set-up built.
    Program(fn(&Peers, [usize; 2]) -> Result<Command>),
}

/// Every contender, in the order of the report.
pub const CONTENDERS: &[Contender] = &[
    line::CONTENDER,
    ring::CONTENDER,
    memcpy::PLAIN,
    memcpy::NON_TEMPORAL,
    copy_straight::CONTENDER,
    copy_through::CONTENDER,
    attach::CONTENDER,
    bellwire::LIBRARY_MEMORY,
    bellwire::PROGRAM_MEMORY,
    bellwire_fan_in::CONTENDER,
    ucx::NEWEST,
    ucx::DEBIAN,
    openmpi::CONTENDER,
    libfabric::CONTENDER,
    iceoryx2::CONTENDER,
    socket::UNIX,
    socket::TCP,
    raw::XDP,
    raw::PACKET,
    raw::UDP,
    bellwire_network::ETH_XDP,
    bellwire_network::ETH_PACKET,
    bellwire_network::ETH_AGENT,
    bellwire_network::UDP,
    bellwire_network::ETH_KEYED,
    bellwire_network::UDP_KEYED,
    bellwire_network::ETH_ONE,
    bellwire_network::ETH_TWO,
    tcp::CONTENDER,
    tls::CONTENDER,
    wireguard::CONTENDER,
    ucx::NEWEST_OVER_TCP,
    ucx::DEBIAN_OVER_TCP,
    libfabric::TCP,
    libfabric::UDP,
];

pub fn named(name: &str) -> Option<&'static Contender> {
    CONTENDERS.iter().find(|contender| contender.name == name)
}

/// The folder in which the set-up (`crates/bench/peers/setup.sh`) leaves the peers that it built.
/// For each other peer it leaves a file `NAME.why`.
pub struct Peers {
    folder: PathBuf,
}

impl Peers {
    /// The peers that were built under the project's `root`.
    pub fn under(root: &Path) -> Peers {
        Peers { folder: root.join("out/peers") }
    }

    /// Installs and builds missing peers. An unavailable peer is no error: [`Peers::program`] gives
    /// the reason later.
    pub fn set_up(root: &Path) -> Result<()> {
        let script = root.join("crates/bench/peers/setup.sh");
        let status = Command::new(&script).status();
        let status = status.with_context(|| format!("starting {}", script.display()))?;
        ensure!(status.success(), "setting up the peers failed: {status}");
        Ok(())
    }

    /// A file of the set-up.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The program that the set-up built for a peer.
    ///
    /// # Errors
    /// The reason why there is none, from the set-up's own file if it left one.
    pub fn program(&self, name: &str) -> Result<PathBuf> {
        let program = self.file(name);
        if program.is_file() {
            return Ok(program);
        }
        let why = std::fs::read_to_string(self.file(&format!("{name}.why")));
        ensure!(why.is_err(), "{}", why.as_deref().unwrap_or_default().trim());
        Err(why.expect_err("checked")).context("not built, and the set-up does not say why")
    }
    /// The version of a peer, if the set-up noted it.
    pub fn version(&self, name: &str) -> Option<String> {
        let version = std::fs::read_to_string(self.file(&format!("{name}.version"))).ok()?;
        Some(version.trim().to_string()).filter(|version| !version.is_empty())
    }
}
