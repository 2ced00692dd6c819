//! The snapshots that `bellwire stat` reads from a running or stuck process.
//!
//! Each open function keeps a snapshot in an unnamed memory file. A reader finds it among the
//! process's descriptors (`/proc/PID/fd`) and does not stop the process. The function writes it at
//! opening, then at most ten times a second, between polls. So the message path pays nothing. The
//! file is mapped: a snapshot costs no system call. A process that is stuck outside of Bellwire
//! shows the last state before that.
//!
//! The snapshot is one JSON object, with zero bytes behind it. Its first member is its serial
//! number. The first byte is blank while a snapshot is written. [`read`] tells a whole snapshot
//! from a torn one.

use crate::{ConnectionState, Counters, FunctionAddress, QueuePairState};
use bellwire_ring::memory::Memory;
use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};
use std::fmt::Write as _;
use std::io::{self, Read as _, Seek as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::sync::atomic::{Ordering, fence};
use std::time::{Duration, Instant, SystemTime};

/// Name of the memory file, as `/proc/PID/fd` shows it between `/memfd:` and ` (deleted)`.
pub const FILE_NAME: &str = "bellwire stat";
/// Version of the snapshot's format.
const FORMAT: u32 = 2;
/// Size of the file: more than the longest snapshot takes. Memory is used for as much of it as a
/// snapshot ever took.
const FILE_BYTES: usize = 1 << 20;
/// The head of a snapshot, up to its serial number: it differs from that of any other.
const HEAD_BYTES: usize = r#"{"serial":18446744073709551615,"#.len();
/// Time between two snapshots.
const INTERVAL: Duration = Duration::from_millis(100);
/// Most queue pairs that a snapshot lists. The totals count all.
const LISTED: usize = 256;

/// A function's snapshot. If no memory file can be made, there is no snapshot, and all else works.
#[derive(Default)]
pub(crate) struct Stat {
    file: Option<MappedFile>,
    pid: u32,
    /// Name of the function's device, escaped for JSON.
    device: String,
    /// Kept from one snapshot to the next, so that a snapshot allocates nothing.
    text: String,
    counters: Counters,
    serial: u64,
    last: Option<Instant>,
}

/// The memory file, mapped.
struct MappedFile {
    fd: OwnedFd,
    memory: Memory,
    /// Bytes that have memory. A write beyond them could end the process by a signal.
    backed: usize,
    /// Length of the longest snapshot.
    longest: usize,
}

impl MappedFile {
    fn new() -> io::Result<MappedFile> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let fd = rustix::fs::memfd_create(FILE_NAME, flags)?;
        rustix::fs::ftruncate(&fd, FILE_BYTES as u64)?;
        rustix::fs::fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let memory = bellwire_ring::mapping::map(fd.as_fd(), FILE_BYTES, true)?;
        Ok(MappedFile { fd, memory, backed: 0, longest: 0 })
    }

    /// Replaces the snapshot. Without memory for it the older one stays.
    fn put(&mut self, text: &str) {
        if text.len() > self.backed {
            // The numbers grow by some digits, and never again by as much as this.
            let bytes = (text.len() + text.len() / 2).next_multiple_of(4096).min(FILE_BYTES);
            let none = FallocateFlags::empty();
            if rustix::fs::fallocate(&self.fd, none, 0, bytes as u64).is_err() {
                return;
            }
            self.backed = bytes;
        }
        let Some((first, rest)) = text.as_bytes().split_first() else { return };
        let file = self.memory.view();
        file.write(0, b" ");
        // A reader that sees a byte of the new snapshot sees the blank as well.
        fence(Ordering::Release);
        file.write(1, rest);
        for at in text.len()..self.longest {
            file.write(at, &[0]);
        }
        self.longest = text.len();
        fence(Ordering::Release);
        file.write(0, &[*first]);
    }
}

/// The whole snapshot in a memory file; `None` if nothing was written yet, or its function is
/// closed.
///
/// # Errors
/// The file cannot be read, or each of many tries met a half-written snapshot.
pub fn read(path: &Path) -> io::Result<Option<String>> {
    // It is written at most ten times a second.
    for _ in 0..20 {
        let Ok(mut file) = std::fs::File::open(path) else { return Ok(None) };
        let (mut text, mut head) = (Vec::new(), Vec::new());
        (&mut file).take(FILE_BYTES as u64).read_to_end(&mut text)?;
        file.rewind()?;
        (&mut file).take(HEAD_BYTES as u64).read_to_end(&mut head)?;
        match text.first() {
            None | Some(0) => return Ok(None),
            // If the writer had begun meanwhile, it would have changed the head first.
            Some(b'{') if text.starts_with(&head) => {
                text.truncate(text.iter().position(|&byte| byte == 0).unwrap_or(text.len()));
                return String::from_utf8(text).map(Some).map_err(io::Error::other);
            }
            Some(_) => std::thread::sleep(Duration::from_millis(3)),
        }
    }
    Err(io::Error::other("it was being written at each of 20 tries"))
}

impl Stat {
    /// The snapshot of a function of device `name`.
    pub(crate) fn new(name: &str) -> Stat {
        let file = MappedFile::new().ok();
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
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let Stat { serial, pid, device: name, text: out, counters, .. } = self;
        let _ = write!(
            out,
            "{{\"serial\":{serial},\"format\":{FORMAT},\"pid\":{pid},\"written_ms\":{},\"device_name\":\"{name}\",\"address\":\"{address}\"",
            now.unwrap_or_default().as_millis()
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
        out.push_str("]}");
        if let Some(file) = &mut self.file {
            file.put(out);
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
    use std::os::fd::AsRawFd as _;
    use std::sync::atomic::{AtomicBool, AtomicU64};

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

    /// A reader gets a whole snapshot, however it meets the writer.
    #[test]
    fn no_torn_snapshot_is_read() {
        let mut file = MappedFile::new().unwrap();
        let path = std::path::PathBuf::from(format!("/proc/self/fd/{}", file.fd.as_raw_fd()));
        assert_eq!(read(&path).unwrap(), None, "nothing was written");
        let snapshot = |serial: usize| {
            let rest = serial.to_string().repeat(2_000 + serial % 7 * 1_000);
            format!("{{\"serial\":{serial},\"rest\":{rest}}}")
        };
        file.put(&snapshot(1));
        let (over, reads) = (&AtomicBool::new(false), &AtomicU64::new(0));
        std::thread::scope(|threads| {
            let reader = || {
                while !over.load(Ordering::Relaxed) {
                    let text = read(&path).expect("one stays").expect("one was written");
                    let serial = text[r#"{"serial":"#.len()..].split(',').next().unwrap();
                    assert!(text == snapshot(serial.parse().unwrap()), "torn: {serial}");
                    reads.fetch_add(1, Ordering::Relaxed);
                }
            };
            let reader = threads.spawn(reader);
            let mut serial = 1;
            let done = || reads.load(Ordering::Relaxed);
            while done() < 200 && !reader.is_finished() {
                let before = done();
                // Some writes follow each other, and then one stays until it was read.
                for _ in 0..=serial % 7 {
                    serial += 1;
                    file.put(&snapshot(serial));
                }
                while done() == before && !reader.is_finished() {
                    std::thread::yield_now();
                }
            }
            over.store(true, Ordering::Relaxed);
        });
        // What is left of a longer one does not show.
        file.put("{\"serial\":0,}");
        assert_eq!(read(&path).unwrap().unwrap(), "{\"serial\":0,}");
    }

    #[test]
    fn our_own_file_is_found() {
        let stat = Stat::new("shm:job");
        let (own, fd) = (std::process::id(), stat.file.as_ref().unwrap().fd.as_raw_fd());
        assert!(files_of(own).unwrap().contains(&format!("/proc/{own}/fd/{fd}").into()));
        assert!(files_of(u32::MAX).is_err());
    }

    /// Pages for a snapshot are there before it is written, and half as many for its growth.
    #[test]
    fn a_snapshot_has_pages() {
        let mut file = MappedFile::new().unwrap();
        let pages = |file: &MappedFile| {
            let blocks = rustix::fs::fstat(&file.fd).unwrap().st_blocks as usize * 512;
            assert_eq!(file.backed, blocks);
            blocks / 4096
        };
        for (length, expected) in [(3000, 2), (8192, 2), (8193, 4), (100, 4), (16_384, 4)] {
            file.put(&format!("{{{}", "x".repeat(length - 1)));
            assert_eq!(pages(&file), expected, "{length} bytes");
        }
    }

    /// Snapshots are due at once, and then a tenth of a second later. Each has a serial number, and
    /// lists its queue pairs.
    #[test]
    fn snapshots_are_written_now_and_then() {
        let mut stat = Stat::new("shm:job");
        assert!(stat.is_due());
        let address = FunctionAddress { node: 7, function: 1 };
        let state = |number| QueuePairState {
            address: bellwire_device::Address::new(7, 1, number),
            connection: ConnectionState::Unconnected,
            posted_sends: 3,
            posted_receives: 4,
            backlog_messages: 5,
            last_error: None,
            counters: crate::QueuePairCounters::default(),
        };
        let count = |counters: &mut Counters| counters.function.links_opened = 9;
        let rows = [("doorbells", 6), ("grants", 8)];
        for serial in 1..=2 {
            stat.write(address, count, &rows, [state(1), state(2)].into_iter());
            let fd = stat.file.as_ref().unwrap().fd.as_raw_fd();
            let text = read(Path::new(&format!("/proc/self/fd/{fd}"))).unwrap().unwrap();
            assert!(text.starts_with(&format!("{{\"serial\":{serial},\"format\":2,")), "{text}");
            assert!(text.contains("\"device\":{\"doorbells\":6,\"grants\":8}"), "{text}");
            let pairs = text.split_once("\"queue_pairs\":[{").expect("a list").1;
            let one = "\"posted_sends\":3,\"posted_receives\":4,\"backlog_messages\":5,";
            assert_eq!((pairs.matches(one).count(), pairs.matches("},{").count()), (2, 1));
            assert!(pairs.ends_with("}}]}"), "{text}");
        }
        stat.last = Some(Instant::now());
        assert!(!stat.is_due());
        stat.last = Some(Instant::now() - INTERVAL);
        assert!(stat.is_due());
        stat.file = None;
        assert!(!stat.is_due());
    }

    /// The longest snapshot fits into the file twice: all numbers are the largest, and there are as
    /// many queue pairs as it lists.
    #[test]
    fn the_longest_snapshot_fits() {
        const WORDS: usize = size_of::<crate::QueuePairCounters>() / 8;
        // SAFETY: counters are words, and each value of these is one.
        let most: crate::QueuePairCounters = unsafe { std::mem::transmute([u64::MAX; WORDS]) };
        let address = bellwire_device::Address::new(u32::MAX, u8::MAX, u32::MAX);
        let state = |_| QueuePairState {
            address,
            connection: ConnectionState::Connecting { to: address },
            posted_sends: usize::MAX,
            posted_receives: usize::MAX,
            backlog_messages: usize::MAX,
            last_error: Some(bellwire_device::Status::ProtocolViolation),
            counters: most,
        };
        let mut stat = Stat::new(&"x".repeat(1_000));
        let rows = [("a_counter_of_the_device_with_a_long_name", u64::MAX); 1_000];
        let from = FunctionAddress { node: u32::MAX, function: u8::MAX };
        stat.write(from, |_| (), &rows, (0..2 * LISTED).map(state));
        assert_eq!(stat.text.matches("\"posted_sends\"").count(), LISTED);
        assert!(stat.text.len() < FILE_BYTES / 2, "{} bytes", stat.text.len());
    }
}
