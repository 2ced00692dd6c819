//! The properties of the machine that affect the figures. Nothing here identifies the machine or
//! its files.

use std::fs::read_to_string;

use anyhow::{Result, ensure};
use rustix::thread::{CpuSet, sched_getaffinity};
use serde::Serialize;

#[derive(Serialize)]
pub struct Machine {
    /// The processor's model name.
    pub processor: String,
    /// CPUs that this program may use.
    pub cpus: usize,
    /// The two CPUs that every contender runs on.
    pub measured_on: [usize; 2],
    /// Whether the processor says that it is a virtual one.
    pub virtual_machine: bool,
    /// Memory in GiB.
    pub memory_gib: u64,
    /// Sizes of the caches of the first CPU, from the first level up.
    pub caches: Vec<String>,
    /// First two numbers of the kernel's version.
    pub linux: String,
    /// The setting for transparent huge pages of private memory.
    pub huge_pages: String,
    /// The day of the measurement (UTC), as 2026-11-23.
    pub date: String,
}

impl Machine {
    /// Reads the facts; `cpus` are those of [`two_cpus`].
    pub fn look(cpus: [usize; 2]) -> Machine {
        let processors = read_to_string("/proc/cpuinfo").unwrap_or_default();
        let field = |name: &str| {
            let line = processors.lines().find(|line| line.starts_with(name))?;
            Some(line.split_once(':')?.1.trim().to_string())
        };
        let memory = read_to_string("/proc/meminfo").unwrap_or_default();
        let memory_kib: u64 = memory
            .lines()
            .find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix("kB"))
            .and_then(|size| size.trim().parse().ok())
            .unwrap_or(0);
        let release = read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let huge_pages =
            read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
        Machine {
            processor: field("model name").unwrap_or_else(|| std::env::consts::ARCH.to_string()),
            cpus: allowed_cpus().len(),
            measured_on: cpus,
            virtual_machine: field("flags").is_some_and(|flags| flags.contains("hypervisor")),
            memory_gib: (memory_kib + (1 << 19)) >> 20,
            caches: caches(cpus[0]),
            linux: release.split('.').take(2).collect::<Vec<_>>().join("."),
            huge_pages: chosen(&huge_pages).unwrap_or("unknown").to_string(),
            date: today(),
        }
    }

    /// The facts as one sentence each, for the report.
    pub fn lines(&self) -> Vec<String> {
        let kind = if self.virtual_machine { "virtual machine" } else { "real machine" };
        vec![
            format!("{}, {} CPUs ({kind}), {} GiB", self.processor, self.cpus, self.memory_gib),
            format!("caches of one CPU: {}", self.caches.join(", ")),
            format!("measured on CPUs {} and {}", self.measured_on[0], self.measured_on[1]),
            format!("measured on {}", self.date),
            format!("Linux {}, transparent huge pages: {}", self.linux, self.huge_pages),
        ]
    }
}

/// The first two CPUs that this program may use.
///
/// # Errors
/// If there is only one: two spinning processes on one CPU measure the scheduler.
pub fn two_cpus() -> Result<[usize; 2]> {
    let cpus = allowed_cpus();
    ensure!(
        cpus.len() >= 2,
        "this program may use only {} CPU; every figure needs two: allow more, e.g. by `taskset -c 0,1`",
        cpus.len()
    );
    Ok([cpus[0], cpus[1]])
}

fn allowed_cpus() -> Vec<usize> {
    let set = sched_getaffinity(None).unwrap_or_default();
    (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect()
}

fn caches(cpu: usize) -> Vec<String> {
    let read = |index: usize, what: &str| {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/cache/index{index}/{what}");
        read_to_string(path).map(|text| text.trim().to_string())
    };
    (0..8)
        .map_while(|index| {
            let (level, size) = (read(index, "level").ok()?, read(index, "size").ok()?);
            let kind = read(index, "type").ok()?;
            Some(format!("L{level} {} {size}", kind.to_lowercase()))
        })
        .collect()
}

/// Today's date (UTC), by the system's own command.
fn today() -> String {
    let said = std::process::Command::new("date").args(["-u", "+%F"]).output();
    let day = said.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_string());
    day.ok().filter(|day| !day.is_empty()).unwrap_or_else(|| "an unknown day".to_string())
}

/// The word in brackets of a setting such as `always [madvise] never`.
fn chosen(setting: &str) -> Option<&str> {
    setting.split_once('[')?.1.split_once(']').map(|(word, _)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The setting in force is the bracketed one; a missing file gives none.
    #[test]
    fn setting_in_force() {
        assert_eq!(chosen("always [madvise] never\n"), Some("madvise"));
        assert_eq!(chosen(""), None);
    }
}
