//! Rules of nftables for what programs send with the agent's sockets.
//!
//! A packet socket can send any frame by any interface of its network namespace. But all its frames
//! have the mark that the agent gave it, and changing the mark needs a privilege. The rules of each
//! interface let such a frame pass if the mark is that of this interface, and the frame has our
//! EtherType and the interface's address as its source. They drop all others that have a mark of
//! ours. That holds also for frames that go past the queueing discipline (PACKET_QDISC_BYPASS),
//! which a filter of tc does not see.
//!
//! The rules are the kernel's, and stay when the agent ends. They do not depend on which interfaces
//! an agent serves. They are made anew, in one transaction, when interfaces come, go or change, and
//! when somebody has removed them.

use crate::interface::Interface;
use crate::link_header::Mac;
use crate::socket;
use bellwire_wire::frame::ETHERTYPE;
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::mem::size_of;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The first byte of our marks, and which bits it has.
const OURS: u32 = 0xb300_0000;
const MARKS: u32 = 0xff00_0000;

const TABLE: &str = "table netdev bellwire";
/// How long rules that were seen count as being there. A program could have nft run without end
/// otherwise.
const SEEN_FOR: Duration = Duration::from_secs(1);

/// The mark of sockets of the interface with this number.
pub(super) fn mark(index: u32) -> u32 {
    OURS | index & !MARKS
}

/// All interfaces of this network namespace, by number: names, and addresses of those of Ethernet.
type Devices = BTreeMap<u32, (String, Option<Mac>)>;

/// The rules of this network namespace, and the kernel's notices of changed interfaces.
pub(super) struct Egress {
    pub notices: OwnedFd,
    /// The rules that nft has taken.
    applied: Option<String>,
    /// When they were made, or last looked for.
    seen: Instant,
}

impl Egress {
    pub fn new() -> io::Result<Egress> {
        let notices = socket::open(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE)?;
        // SAFETY: zeros are a valid address.
        let mut address: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
        address.nl_family = libc::AF_NETLINK as u16;
        address.nl_groups = libc::RTMGRP_LINK as u32;
        socket::bind(notices.as_fd(), &address, size_of::<libc::sockaddr_nl>())?;
        Ok(Egress { notices, applied: None, seen: Instant::now() })
    }

    /// Makes the rules, unless they are in force.
    ///
    /// # Errors
    /// What nft said, or that it is missing.
    pub fn apply(&mut self) -> io::Result<()> {
        // Root can remove them, as by `nft flush ruleset`, which gives no notice here.
        if self.applied.is_some() && self.seen.elapsed() >= SEEN_FOR {
            self.seen = Instant::now();
            if !are_there() {
                self.applied = None;
            }
        }
        let mut room = [0; 4096];
        let mut changed = self.applied.is_none();
        loop {
            match socket::receive(self.notices.as_fd(), &mut room) {
                // Notices may be lost, and the kernel says so.
                Err(error) if error.raw_os_error() != Some(libc::ENOBUFS) => break,
                _ => changed = true,
            }
        }
        if changed {
            // Until these are made, no rules count as made.
            let earlier = self.applied.take();
            let rules = rules(&devices()?)?;
            if earlier.as_ref() != Some(&rules) {
                nft(&rules)?;
                self.seen = Instant::now();
            }
            self.applied = Some(rules);
        }
        Ok(())
    }
}

/// The interfaces of this thread's network namespace.
fn devices() -> io::Result<Devices> {
    // SAFETY: the call returns a list that ends with number zero, and is freed below.
    let list = unsafe { libc::if_nameindex() };
    if list.is_null() {
        return Err(io::Error::last_os_error());
    }
    let mut devices = Devices::new();
    let mut next = list;
    loop {
        // SAFETY: an entry of the list.
        let entry = unsafe { &*next };
        if entry.if_index == 0 {
            break;
        }
        // SAFETY: the name of an entry ends with a zero byte.
        let name = unsafe { CStr::from_ptr(entry.if_name) }.to_string_lossy().into_owned();
        let mac = Interface::find(&name).ok().map(|interface| interface.mac);
        devices.insert(entry.if_index, (name, mac));
        // SAFETY: the entry was not the last one.
        next = unsafe { next.add(1) };
    }
    // SAFETY: the list of the call above, which nothing refers to any more.
    unsafe { libc::if_freenameindex(list) };
    Ok(devices)
}

/// The rules of all interfaces, as nft reads them.
fn rules(devices: &Devices) -> io::Result<String> {
    // Deleting needs an existing table.
    let mut text = format!("add {TABLE}\ndelete {TABLE}\n{TABLE} {{\n");
    for (&number, (name, mac)) in devices {
        if name.contains(['"', '\\', char::REPLACEMENT_CHARACTER]) {
            let why = format!("the interface {name:?} has a name that nft cannot read");
            return Err(io::Error::other(why));
        }
        let hook = format!("type filter hook egress device \"{name}\" priority 0; policy accept;");
        let _ = writeln!(text, " chain to_{number} {{\n  {hook}");
        let _ = writeln!(text, "  meta mark & {MARKS:#x} != {OURS:#x} accept");
        if let Some(mac) = mac {
            let mark = mark(number);
            let frame = format!("ether type {ETHERTYPE:#x} ether saddr {mac}");
            // Without the mark a bridge of this host can pass it on.
            let _ = writeln!(text, "  meta mark {mark:#x} {frame} meta mark set 0 accept");
        }
        text.push_str("  drop\n }\n");
    }
    text.push_str("}\n");
    Ok(text)
}

/// Whether the kernel has rules of ours.
fn are_there() -> bool {
    let mut list = Command::new("nft");
    list.arg("list").args(TABLE.split(' '));
    list.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    list.status().is_ok_and(|status| status.success())
}

fn nft(rules: &str) -> io::Result<()> {
    let mut child = Command::new("nft")
        .args(["-f", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| io::Error::new(error.kind(), format!("nft (of nftables): {error}")))?;
    // If it does not read, its words say why.
    let _ = child.stdin.take().expect("piped").write_all(rules.as_bytes());
    let output = child.wait_with_output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let first = said.lines().next().unwrap_or("it failed without a word");
    Err(io::Error::other(format!("nft: {first}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{enter_new_namespace, ip};

    /// Rules are looked for now and then. Those that are there stay as they are, and those that
    /// somebody has removed are made again.
    #[test]
    fn rules_are_looked_for() {
        let listed = || {
            let mut nft = Command::new("nft");
            let listed = nft.args(["-a", "list", "ruleset"]).output().expect("nft of nftables");
            String::from_utf8_lossy(&listed.stdout).into_owned()
        };
        let apart = std::thread::spawn(move || {
            enter_new_namespace()
                .and_then(|()| ip("link add n0 type veth peer name n1"))
                .expect("NOT RUN: making a network namespace needs root, and ip of iproute2");
            let mut egress = Egress::new().expect("notices");
            egress.apply().expect("rules");
            let made = listed();
            assert!(made.contains("n0") && made.contains("# handle"), "{made}");
            let long_ago = Instant::now().checked_sub(SEEN_FOR * 2).expect("the host runs longer");
            egress.seen = long_ago;
            egress.apply().expect("rules");
            assert_eq!(listed(), made, "they were made again");
            let flushed = Command::new("nft").args(["flush", "ruleset"]).status();
            assert!(flushed.is_ok_and(|status| status.success()) && !are_there());
            egress.seen = long_ago;
            egress.apply().expect("rules");
            assert!(are_there(), "they are missing");
        });
        apart.join().expect("the test passes");
    }

    /// Frames with a mark pass by one interface with its address, and by no other.
    #[test]
    fn rules_name_every_interface() {
        let mac = |last| Some(Mac([2, 0, 0, 0, 0, last]));
        let devices = Devices::from([
            (1, ("lo".into(), None)),
            (7, ("eth0".into(), mac(7))),
            (9, ("eth1".into(), mac(9))),
        ]);
        let text = rules(&devices).expect("good names");
        let chains: Vec<&str> = text.split(" chain ").skip(1).collect();
        assert_eq!(chains.len(), 3);
        for (chain, (number, (name, mac))) in chains.into_iter().zip(&devices) {
            assert!(chain.contains(&format!("device \"{name}\"")), "{chain}");
            assert!(chain.contains("  meta mark & 0xff000000 != 0xb3000000 accept\n"), "{chain}");
            assert!(chain.contains("  drop\n"), "{chain}");
            let pass = format!("  meta mark 0xb300000{number} ether type 0x88b5 ether saddr ");
            let pass = mac.map(|mac| format!("{pass}{mac} meta mark set 0 accept\n"));
            assert!(pass.is_none_or(|pass| chain.contains(&pass)), "{chain}");
            assert_eq!(chain.matches("ether type").count(), usize::from(mac.is_some()));
        }
        for bad in ["a\"b", "a\\b"] {
            let devices = Devices::from([(1, (bad.to_owned(), None))]);
            rules(&devices).expect_err("nft would read something else");
        }
        assert_eq!(mark(0x0123_4567), 0xb323_4567);
    }
}
