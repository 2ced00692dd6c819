//! What a running, or stuck, process shows of itself to `bellwire stat`.
//!
//! Each open function keeps a snapshot in an unnamed memory file, which an outsider finds among the process's descriptors
//! (`/proc/PID/fd`) and reads without stopping or asking it. The snapshot is made when the function is opened, and renewed at
//! most ten times a second from the device's rare look at its control sockets: so a process that is stuck outside of Bellwire
//! shows the last state before it got stuck, and the path of a message pays nothing.
//!
//! The snapshot is one JSON object, whose first and last members are the same serial number: if they differ, or it does not
//! parse, it was read while it was being written, and is read again.

use crate::ConnectionState;
use crate::engine::Core;
use rustix::fs::MemfdFlags;
use std::fmt::Write as _;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Name of the memory file, as `/proc/PID/fd` shows it between `/memfd:` and ` (deleted)`.
pub const FILE_NAME: &str = "bellwire stat";
/// Version of the snapshot's form.
const FORMAT: u32 = 1;
/// Time between two snapshots.
const INTERVAL: Duration = Duration::from_millis(100);
/// Queue pairs that a snapshot lists; the totals count all.
const LISTED: usize = 256;

/// A function's snapshot. Without a memory file (none to be had) it shows nothing, and nothing else is lost.
#[derive(Default)]
pub(crate) struct Stat {
    file: Option<OwnedFd>,
    pid: u32,
    /// Name of the function's device, as text of JSON.
    device: String,
    text: String,
    longest: usize,
    serial: u64,
    last: Option<Instant>,
}

impl Stat {
    pub(crate) fn new() -> Stat {
        let file = rustix::fs::memfd_create(FILE_NAME, MemfdFlags::CLOEXEC).ok();
        Stat { file, pid: std::process::id(), ..Stat::default() }
    }

    pub(crate) fn name_device(&mut self, name: &str) {
        self.device = json_text(name);
    }

    /// Whether it is time for a new snapshot.
    fn is_due(&self) -> bool {
        self.file.is_some() && self.last.is_none_or(|last| last.elapsed() >= INTERVAL)
    }

    fn write(&mut self) {
        self.last = Some(Instant::now());
        // Blanks over the rest of a longer one before it: still the same JSON.
        self.longest = self.longest.max(self.text.len());
        while self.text.len() < self.longest {
            self.text.push(' ');
        }
        if let Some(file) = &self.file {
            // What cannot be shown is not shown.
            let _ = rustix::io::pwrite(file, self.text.as_bytes(), 0);
        }
    }
}

impl Core {
    /// Renews the snapshot if it is old. `device`: what the device counts.
    pub(crate) fn show(&mut self, device: &[(&'static str, u64)]) {
        if !self.stat.is_due() {
            return;
        }
        let mut stat = std::mem::take(&mut self.stat);
        stat.serial += 1;
        stat.text.clear();
        let mut text = std::mem::take(&mut stat.text);
        self.describe(&mut text, &stat, device);
        stat.text = text;
        stat.write();
        self.stat = stat;
    }

    fn describe(&self, out: &mut String, stat: &Stat, device: &[(&'static str, u64)]) {
        let Stat { serial, pid, device: name, .. } = stat;
        let counters = self.counters();
        let _ = write!(
            out,
            "{{\"serial\":{serial},\"format\":{FORMAT},\"pid\":{pid},\"device_name\":\"{name}\",\"address\":\"{}\"",
            self.address
        );
        members(out, "function", counters.function.rows());
        members(out, "device", device.iter().copied());
        members(out, "total", counters.total.rows());
        let _ =
            write!(out, ",\"queue_pairs_open\":{},\"queue_pairs\":[", counters.queue_pairs.len());
        let shown = self.list().into_iter().take(LISTED);
        for (place, state) in shown.filter_map(|handle| self.query(handle).ok()).enumerate() {
            let comma = if place > 0 { "," } else { "" };
            let connection = match state.connection {
                ConnectionState::Unconnected => "unconnected".to_owned(),
                ConnectionState::Connecting { to } => format!("connecting to {to}"),
                ConnectionState::Connected { peer } => format!("connected to {peer}"),
                ConnectionState::Disconnected { why } => format!("disconnected: {why}"),
            };
            let last_error = state.last_error.map(|status| status.to_string()).unwrap_or_default();
            let _ = write!(
                out,
                "{comma}{{\"address\":\"{}\",\"connection\":\"{connection}\",\"posted_sends\":{},\"posted_receives\":{},\
                 \"backlog_messages\":{},\"last_error\":\"{last_error}\"",
                state.address, state.posted_sends, state.posted_receives, state.backlog_messages
            );
            members(out, "counters", state.counters.rows());
            out.push('}');
        }
        let _ = write!(out, "],\"serial_end\":{serial}}}");
    }
}

/// What stands between the quotation marks of a JSON string.
fn json_text(text: &str) -> String {
    let mut out = String::new();
    for character in text.chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            c if c.is_control() => out.push('?'),
            c => out.push(c),
        }
    }
    out
}

/// Writes `,"name":{...}`.
fn members(out: &mut String, name: &str, rows: impl Iterator<Item = (&'static str, u64)>) {
    let _ = write!(out, ",\"{name}\":{{");
    for (place, (name, value)) in rows.enumerate() {
        let comma = if place > 0 { "," } else { "" };
        let _ = write!(out, "{comma}\"{name}\":{value}");
    }
    out.push('}');
}

/// The memory files of a process that hold snapshots, as paths that can be opened.
///
/// # Errors
/// There is no such process, or it belongs to somebody else.
pub fn files_of(pid: u32) -> std::io::Result<Vec<std::path::PathBuf>> {
    let expected = format!("/memfd:{FILE_NAME} (deleted)");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(format!("/proc/{pid}/fd"))? {
        let path = entry?.path();
        if std::fs::read_link(&path).is_ok_and(|target| target.as_os_str() == expected.as_str()) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_json() {
        let mut out = String::new();
        members(&mut out, "x", [("a", 1), ("b", 2)].into_iter());
        assert_eq!(out, ",\"x\":{\"a\":1,\"b\":2}");
        assert!(crate::FunctionCounters::default().rows().count() > 0);
    }

    #[test]
    fn any_device_name_is_json() {
        assert_eq!(json_text("shm:job"), "shm:job");
        assert_eq!(json_text("a\"b\\c\nd"), "a\\\"b\\\\c?d");
    }

    #[test]
    fn our_own_file_is_found() {
        let before = files_of(std::process::id()).unwrap().len();
        let _stat = Stat::new();
        assert!(files_of(std::process::id()).unwrap().len() > before);
        assert!(files_of(u32::MAX).is_err());
    }
}
