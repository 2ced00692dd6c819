//! `bellwire agent`: gives programs without privileges their sockets of the device `eth`.

use crate::command::{Outcome, WrongUsage, show};
use anyhow::{Context, Result};
use bellwire_ethernet::agent::PATH;
use bellwire_ethernet::agent::server::{Agent, AgentOptions};
use serde::Serialize;
use std::ffi::CString;
use std::fmt;
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::PathBuf;

/// Gives programs without privileges their sockets for eth; itself it needs CAP_NET_RAW and
/// CAP_NET_ADMIN
#[derive(clap::Args)]
#[command(after_help = "\
It runs until it is ended. Programs that have their sockets go on without it.
docs/agent.md says how to start it by systemd, and what members of the group can do.

Examples:
  sudo bellwire agent --iface eth0 --allow-group bellwire
  bellwire perf eth:eth0          as a member of the group")]
pub struct Arguments {
    /// An interface of its programs; again for each further one
    #[arg(long, value_name = "IFACE", required = true)]
    iface: Vec<String>,
    /// The group whose members may ask, by name or number
    #[arg(long, value_name = "GROUP")]
    allow_group: String,
    /// Where it listens [default: /run/bellwire/agent.sock]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Give sockets also while nftables cannot restrict what programs send: they can send any frame
    #[arg(long)]
    allow_unrestricted: bool,
    /// One JSON object when it is ready, instead of a sentence
    #[arg(long)]
    json: bool,
}

/// Serves without end.
pub fn run(arguments: &Arguments) -> Result<Outcome> {
    let group = group_number(&arguments.allow_group)?;
    let listener = activated()?;
    if listener.is_some() && arguments.socket.is_some() {
        return Err(WrongUsage::error("systemd gives the socket: leave --socket out"));
    }
    let at = match (&listener, &arguments.socket) {
        (Some(_), _) => "the socket of systemd".to_owned(),
        (None, Some(path)) => path.display().to_string(),
        (None, None) => PATH.to_owned(),
    };
    let options = AgentOptions {
        interfaces: arguments.iface.clone(),
        group: (group, arguments.allow_group.clone()),
        path: arguments.socket.clone(),
        listener,
        allow_unrestricted: arguments.allow_unrestricted,
    };
    let mut agent = Agent::open(options).context("the agent cannot start")?;
    let ready = Ready {
        interfaces: arguments.iface.clone(),
        group: arguments.allow_group.clone(),
        listens: at,
        unrestricted: agent.unrestricted().map(str::to_owned),
        allow_unrestricted: arguments.allow_unrestricted,
    };
    show(&ready, arguments.json)?;
    agent.serve().context("the agent cannot wait for programs")?;
    Ok(Outcome::Done)
}

/// What it does from now on.
#[derive(Serialize)]
struct Ready {
    interfaces: Vec<String>,
    group: String,
    listens: String,
    /// Why what programs send is not restricted.
    unrestricted: Option<String>,
    /// Whether they get sockets all the same.
    allow_unrestricted: bool,
}

impl fmt::Display for Ready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ready { interfaces, group, listens, unrestricted, allow_unrestricted } = self;
        let names = interfaces.join(", ");
        writeln!(f, "agent: {names} for the group {group}, at {listens}")?;
        match unrestricted {
            None => writeln!(f, "what programs send is restricted by nftables"),
            Some(why) if *allow_unrestricted => {
                writeln!(f, "programs can send any frame ({why}); try: apt-get install nftables")
            }
            Some(why) => writeln!(
                f,
                "no program gets a socket, because nothing restricts what it sends ({why}); try: apt-get install nftables"
            ),
        }
    }
}

/// The number of a group.
fn group_number(name: &str) -> Result<u32> {
    if let Ok(number) = name.parse() {
        return Ok(number);
    }
    let text = CString::new(name).context("a group's name")?;
    // SAFETY: a string. No other thread of this command reads groups.
    let group = unsafe { libc::getgrnam(text.as_ptr()) };
    // SAFETY: an entry, or null.
    let number = unsafe { group.as_ref() }.map(|group| group.gr_gid);
    number.with_context(|| format!("there is no group {name}; try: groupadd --system {name}"))
}

/// The socket that systemd listens at (sd_listen_fds(3)).
fn activated() -> Result<Option<OwnedFd>> {
    let told = |name: &str| std::env::var(name).ok();
    if told("LISTEN_PID").and_then(|pid| pid.parse().ok()) != Some(std::process::id()) {
        return Ok(None);
    }
    match told("LISTEN_FDS").as_deref() {
        None | Some("0") => Ok(None),
        Some("1") => {
            // SAFETY: descriptor 3 is the one that systemd passes, and nothing else uses it.
            let socket = unsafe { OwnedFd::from_raw_fd(3) };
            rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)
                .context("the socket of systemd")?;
            // A socket that waits would stop the agent at the next accept.
            let flags = rustix::fs::fcntl_getfl(&socket)? | rustix::fs::OFlags::NONBLOCK;
            rustix::fs::fcntl_setfl(&socket, flags).context("the socket of systemd")?;
            Ok(Some(socket))
        }
        Some(count) => anyhow::bail!("systemd gives {count} sockets, and the agent takes one"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Groups are found by name or number, and an unknown one comes with advice.
    #[test]
    fn groups_are_found() {
        assert_eq!(group_number("root").expect("it exists everywhere"), 0);
        assert_eq!(group_number("77").expect("a number"), 77);
        let error = group_number("no-such-group").expect_err("nobody has made it");
        assert!(error.to_string().contains("groupadd"), "{error}");
    }
}
