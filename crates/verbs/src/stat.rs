//! The snapshots that `bellwire stat` reads from a running or stuck process.
//!
//! Each open function keeps a snapshot in an unnamed memory file. A reader finds it among the
//! process's descriptors (`/proc/PID/fd`) and does not stop the process. The function writes it at
//! opening, then at most ten times a second, in the device's rare look at its control sockets. So
//! the message path pays nothing. A process that is stuck outside of Bellwire shows the last state
//! before that.
//!
//! The snapshot is one JSON object. Its first and last members are the same serial number. If they
//! differ, or it does not parse, the read overlapped a write: read it again.

use crate::{ConnectionState, Counters, FunctionAddress, QueuePairState};
use rustix::fs::MemfdFlags;
use std::fmt::Write as _;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// Name of the memory file, as `/proc/PID/fd` shows it between `/memfd:` and ` (deleted)`.
pub const FILE_NAME: &str = "bellwire stat";
/// Version of the snapshot's format.
const FORMAT: u32 = 1;
/// Time between two snapshots.
const INTERVAL: Duration = Duration::from_millis(100);
/// Most queue pairs that a snapshot lists. The totals count all.
const LISTED: usize = 256;

/// A function's snapshot. If no memory file can be made, there is no snapshot, and all else works.
#[derive(Default)]
pub(crate) struct Stat {
    file: Option<OwnedFd>,
    pid: u32,
    /// Name of the function's device, escaped for JSON.
    device: String,
    /// Kept from one snapshot to the next, so that a snapshot allocates nothing.
    text: String,
    counters: Counters,
    longest: usize,
    serial: u64,
    last: Option<Instant>,
}

impl Stat {
    /// The snapshot of a function of device `name`.
    pub(crate) fn new(name: &str) -> Stat {
        let file = rustix::fs::memfd_create(FILE_NAME, MemfdFlags::CLOEXEC).ok();
        Stat { file, pid: std::process::id(), device: json_text(name), ..Stat::default() }
    }

    /// Whether it is time for a new snapshot.
    pub(crate) fn is_due(&self) -> bool {
        self.file.is_some() && self.last.is_none_or(|last| last.elapsed() >= INTERVAL)
    }

    /// Writes a new snapshot of the function at `address`. `count`: writes its counters.
    /// `device`: the device's counters.
    pub(crate) fn write(
        &mut self,
        address: FunctionAddress,
        count: impl FnOnce(&mut Counters),
        device: &[(&'static str, u64)],
        queue_pairs: impl Iterator<Item = QueuePairState>,
    ) {
        self.last = Some(Instant::now());
        self.serial += 1;
        self.text.clear();
        count(&mut self.counters);
        let Stat { serial, pid, device: name, text: out, counters, .. } = self;
        let _ = write!(
            out,
            "{{\"serial\":{serial},\"format\":{FORMAT},\"pid\":{pid},\"device_name\":\"{name}\",\"address\":\"{address}\""
        );
        members(out, "function", counters.function.rows());
        members(out, "device", device.iter().copied());
        members(out, "total", counters.total.rows());
        let _ =
            write!(out, ",\"queue_pairs_open\":{},\"queue_pairs\":[", counters.queue_pairs.len());
        for (place, state) in queue_pairs.take(LISTED).enumerate() {
            let comma = if place > 0 { "," } else { "" };
            let _ = write!(out, "{comma}{{\"address\":\"{}\",\"connection\":\"", state.address);
            let _ = match state.connection {
                ConnectionState::Unconnected => write!(out, "unconnected"),
                ConnectionState::Connecting { to } => write!(out, "connecting to {to}"),
                ConnectionState::Connected { peer } => write!(out, "connected to {peer}"),
                ConnectionState::Disconnected { why } => write!(out, "disconnected: {why}"),
            };
            let _ = write!(
                out,
                "\",\"posted_sends\":{},\"posted_receives\":{},\"backlog_messages\":{},\"last_error\":\"",
                state.posted_sends, state.posted_receives, state.backlog_messages
            );
            let _ = state.last_error.map_or(Ok(()), |error| write!(out, "{error}"));
            out.push('"');
            members(out, "counters", state.counters.rows());
            out.push('}');
        }
        let _ = write!(out, "],\"serial_end\":{serial}}}");
        // The numbers grow by some digits, and never again by as much as this.
        out.reserve(out.len() / 2);
        // Blanks overwrite the rest of a longer earlier snapshot: valid JSON.
        self.longest = self.longest.max(out.len());
        while out.len() < self.longest {
            out.push(' ');
        }
        if let Some(file) = &self.file {
            // A failed write only leaves the older snapshot.
            let _ = rustix::io::pwrite(file, out.as_bytes(), 0);
        }
    }
}

/// Escapes a text for the inside of a JSON string.
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
/// No such process, or it belongs to another user.
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
        let _stat = Stat::new("shm:job");
        assert!(files_of(std::process::id()).unwrap().len() > before);
        assert!(files_of(u32::MAX).is_err());
    }
}
