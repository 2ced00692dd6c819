//! Numbered steps at which a test kills or stops this process.
//!
//! Without the feature `steps` they compile to nothing. With it, the environment variable
//! `BELLWIRE_STEP` holds `NAME:COUNT:ACTION`. At the COUNT-th passage of step NAME the process
//! sends itself the signal ACTION, `kill` or `stop`.

/// Passes the step `name`.
#[cfg(not(feature = "steps"))]
#[inline(always)]
pub const fn step(_name: &str) {}

/// Passes the step `name`.
#[cfg(feature = "steps")]
pub fn step(name: &str) {
    use std::sync::atomic::{AtomicU64, Ordering};
    static PLAN: std::sync::OnceLock<Option<(String, u64, i32)>> = std::sync::OnceLock::new();
    static PASSED: AtomicU64 = AtomicU64::new(0);
    let plan = PLAN.get_or_init(|| {
        let text = std::env::var("BELLWIRE_STEP").ok()?;
        let mut parts = text.split(':');
        let name = parts.next()?.to_owned();
        let count = parts.next()?.parse().ok()?;
        let signal = match parts.next()? {
            "kill" => libc::SIGKILL,
            "stop" => libc::SIGSTOP,
            _ => return None,
        };
        Some((name, count, signal))
    });
    if let Some((planned, count, signal)) = plan
        && planned == name
        && PASSED.fetch_add(1, Ordering::Relaxed) + 1 == *count
    {
        // SAFETY: a signal to ourselves touches no memory.
        unsafe { libc::kill(libc::getpid(), *signal) };
    }
}
