//! The available processors, and pinning to one.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::collections::HashMap;

/// The processors that the calling thread may use, lowest first.
pub fn allowed() -> Vec<usize> {
    let set = sched_getaffinity(None).unwrap_or_else(|_| only(0));
    (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect()
}

/// Like [`allowed`], ordered: first one processor of each core, and the first package before
/// others. Two threads that spin on one core take time from each other.
pub fn allowed_apart() -> Vec<usize> {
    let place = |cpu: usize, what: &str| {
        let file = format!("/sys/devices/system/cpu/cpu{cpu}/topology/{what}");
        std::fs::read_to_string(file).ok().map(|text| text.trim().to_owned())
    };
    // A processor without topology information counts as a core of its own.
    apart(&allowed(), |cpu| {
        let core = place(cpu, "thread_siblings_list").unwrap_or_else(|| cpu.to_string());
        let package = place(cpu, "physical_package_id").and_then(|number| number.parse().ok());
        (package.unwrap_or(0), core)
    })
}

/// `place`: package and core of a processor.
fn apart(cpus: &[usize], place: impl Fn(usize) -> (i64, String)) -> Vec<usize> {
    let mut threads = HashMap::new();
    let mut ranked: Vec<(u32, i64, usize)> = Vec::new();
    for &cpu in cpus {
        let (package, core) = place(cpu);
        let before = threads.entry((package, core)).or_insert(0);
        ranked.push((*before, package, cpu));
        *before += 1;
    }
    ranked.sort_unstable();
    ranked.into_iter().map(|(_, _, cpu)| cpu).collect()
}

/// Pins the calling thread to processor `cpu`.
pub fn stay_on(cpu: usize) -> std::io::Result<()> {
    if cpu >= CpuSet::MAX_CPU {
        return Err(rustix::io::Errno::INVAL.into());
    }
    Ok(sched_setaffinity(None, &only(cpu))?)
}

/// Involuntary context switches of the calling thread so far; 0 if the system does not report them.
pub fn interruptions() -> u64 {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("nonvoluntary_ctxt_switches:"));
    line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

fn only(cpu: usize) -> CpuSet {
    let mut set = CpuSet::new();
    set.set(cpu);
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All cores are used before second threads of cores, and a second package only when the first
    /// has no core left.
    #[test]
    fn cores_come_before_their_threads() {
        // Two packages of two cores of two threads, in a common numbering.
        let neighbours = |cpu: usize| ((cpu / 4) as i64, format!("{}", cpu / 2));
        assert_eq!(apart(&[0, 1, 2, 3, 4, 5, 6, 7], neighbours), [0, 2, 4, 6, 1, 3, 5, 7]);
        assert_eq!(apart(&[1, 4, 5, 6], neighbours), [1, 4, 6, 5]);
        // Another common numbering.
        let halves = |cpu: usize| (0, format!("{}", cpu % 4));
        assert_eq!(apart(&[0, 1, 4, 5], halves), [0, 1, 4, 5]);
        assert_eq!(apart(&[0, 4], halves), [0, 4], "there is no other");
        let mut here = allowed_apart();
        here.sort_unstable();
        assert_eq!(here, allowed());
    }
}
