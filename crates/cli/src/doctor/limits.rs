//! Limits: descriptors, memory, processors.

use super::Check;
use crate::units::bytes;
use rustix::process::{Resource, getrlimit};
use std::fs;
use std::path::{Path, PathBuf};

/// Open files: a link to a peer takes up to four, a mapped region one.
pub fn descriptors() -> Check {
    const NAME: &str = "open files";
    const WANTED: u64 = 1024;
    let limit = getrlimit(Resource::Nofile);
    let show = |limit: Option<u64>| limit.map_or("no limit".into(), |limit| limit.to_string());
    let (soft, hard) = (show(limit.current), show(limit.maximum));
    let peers = limit.current.map_or("any number of".into(), |limit| (limit / 4).to_string());
    let found = format!("{soft} (at most {hard}): enough for about {peers} peers");
    match limit.current {
        Some(current) if current < WANTED => {
            Check::limited(NAME, found, format!("ulimit -n {}", limit.maximum.unwrap_or(WANTED)))
        }
        _ => Check::good(NAME, found),
    }
}

/// Memory still available to the container, or else to the machine.
pub fn memory() -> Check {
    const NAME: &str = "memory";
    const WANTED_BYTES: u64 = 256 << 20;
    let membership = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let group = memory_groups(&membership)
        .into_iter()
        .filter_map(|folder| Room::of(&folder))
        .min_by_key(|room| room.left_bytes);
    let machine = machine_left_bytes().unwrap_or(u64::MAX);
    let (found, left) = match group {
        Some(room) if room.left_bytes < machine => (
            format!(
                "{} left of the {} that its cgroup allows",
                bytes(room.left_bytes),
                bytes(room.limit_bytes)
            ),
            room.left_bytes,
        ),
        _ => (format!("{} available, no lower limit by a cgroup", bytes(machine)), machine),
    };
    if left < WANTED_BYTES {
        Check::limited(NAME, found, "raise the container's memory limit (docker run --memory 1g)")
    } else {
        Check::good(NAME, found)
    }
}

/// Processors that this process may use.
pub fn cpus() -> Check {
    const NAME: &str = "CPUs";
    match crate::cpu::allowed().len() {
        1 => Check::limited(
            NAME,
            "1: two processes take turns on it, so that spinning only wastes time",
            "allow two (taskset -c 0,1; docker run --cpuset-cpus 0,1), or wait with Wait::Block",
        ),
        count => Check::good(NAME, format!("{count}: both sides of a pair can run at once")),
    }
}

/// A limit, and how much of it is free.
struct Room {
    limit_bytes: u64,
    left_bytes: u64,
}

impl Room {
    /// `None` if the group has no limit or cannot be read. Both versions of cgroups are supported.
    fn of(folder: &Path) -> Option<Room> {
        let read = |name: &str| -> Option<u64> {
            fs::read_to_string(folder.join(name)).ok()?.trim().parse().ok()
        };
        let limit_bytes = read("memory.max").or_else(|| read("memory.limit_in_bytes"))?;
        let used = read("memory.current").or_else(|| read("memory.usage_in_bytes"))?;
        Some(Room { limit_bytes, left_bytes: limit_bytes.saturating_sub(used) })
    }
}

/// The folders of all groups whose memory limits apply to a process with this `membership`
/// (/proc/self/cgroup): its own group and its ancestors.
fn memory_groups(membership: &str) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for line in membership.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let root = match controllers {
            "" => Path::new("/sys/fs/cgroup"),
            list if list.split(',').any(|name| name == "memory") => {
                Path::new("/sys/fs/cgroup/memory")
            }
            _ => continue,
        };
        let inside = Path::new(path.trim_start_matches('/'));
        folders.extend(inside.ancestors().map(|ancestor| root.join(ancestor)));
    }
    folders
}

fn machine_left_bytes() -> Option<u64> {
    let table = fs::read_to_string("/proc/meminfo").ok()?;
    let line = table.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In both versions of cgroups the group and all its ancestors are found.
    #[test]
    fn groups_of_both_generations_are_found() {
        let folders = memory_groups("4:memory:/a/b\n3:cpu:/x\n0::/c\nbroken");
        let expected = [
            "/sys/fs/cgroup/memory/a/b",
            "/sys/fs/cgroup/memory/a",
            "/sys/fs/cgroup/memory/",
            "/sys/fs/cgroup/c",
            "/sys/fs/cgroup/",
        ];
        assert_eq!(folders, expected.map(PathBuf::from));
    }
}
