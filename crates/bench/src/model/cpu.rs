//! CPU time and memory, of this process and of its children.

use std::time::Duration;

/// User and system time of this process since it began.
pub fn own() -> Duration {
    usage(libc::RUSAGE_SELF).0
}

/// User and system time of all children that it waited for.
pub fn children() -> Duration {
    usage(libc::RUSAGE_CHILDREN).0
}

/// Peak memory of this process, in MiB.
pub fn most_memory_mib() -> u64 {
    usage(libc::RUSAGE_SELF).1 / 1024
}

fn usage(who: libc::c_int) -> (Duration, u64) {
    // SAFETY: a rusage is plain numbers, for which zero is a value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a whole rusage that lives through the call.
    let answer = unsafe { libc::getrusage(who, &mut usage) };
    assert_eq!(answer, 0, "getrusage knows both kinds");
    let time = |time: libc::timeval| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000);
    (time(usage.ru_utime) + time(usage.ru_stime), usage.ru_maxrss as u64)
}
