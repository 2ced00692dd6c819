//! Which processors there are.

use rustix::thread::{CpuSet, sched_getaffinity};

/// The processors that the calling thread may use, lowest first.
pub fn allowed() -> Vec<usize> {
    let set = sched_getaffinity(None).unwrap_or_else(|_| {
        let mut first = CpuSet::new();
        first.set(0);
        first
    });
    (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect()
}
