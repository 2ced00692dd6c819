//! Ends a test program of which a test computes without end: a call that never returns would
//! otherwise stop the whole run without a word.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// How often a watchdog looks.
const PERIOD: Duration = Duration::from_millis(50);
/// Ticks of the processor's time in a second, for programs (`USER_HZ`).
const TICKS_PER_SECOND: u64 = 100;

/// Watches the thread that made it, until it is dropped.
pub struct Watchdog {
    _alive: Sender<()>,
}

impl Watchdog {
    /// Ends the program once the calling thread has used the processor for `limit` from now on.
    /// Neither waits nor other threads count, so it is the same on a machine that has other work.
    #[must_use]
    pub fn new(limit: Duration) -> Watchdog {
        let (alive, watched) = channel();
        let thread = rustix::thread::gettid().as_raw_nonzero();
        let test = std::thread::current().name().unwrap_or_default().to_owned();
        let since = processor_time(thread.get());
        std::thread::spawn(move || {
            while watched.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
                let used = processor_time(thread.get()).saturating_sub(since);
                if used > limit {
                    eprintln!("{test} does not end: it has computed for {used:?}");
                    std::process::abort();
                }
            }
        });
        Watchdog { _alive: alive }
    }
}

/// The time that a thread of this program took of processors so far, in user and kernel mode.
fn processor_time(thread: i32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat"));
    let stat = stat.unwrap_or_default();
    // Behind the name in parentheses, which may hold spaces: fields 14 and 15 of proc_pid_stat(5).
    let fields = stat.rsplit_once(") ").map_or("", |(_, rest)| rest).split(' ');
    let ticks: u64 = fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    Duration::from_millis(1_000 * ticks / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use std::time::Instant;

    const CHILD: &str = "BELLWIRE_WATCHDOG_CHILD";

    /// A thread that waits for long, or is not watched any more, is left alone. Canary: one that
    /// computes without end ends the program.
    #[test]
    fn a_test_without_end_is_ended() {
        if std::env::var_os(CHILD).is_some() {
            let limit = Duration::from_millis(200);
            drop(Watchdog::new(limit));
            let since = Instant::now();
            while since.elapsed() < Duration::from_millis(600) {
                std::hint::spin_loop();
            }
            let _watchdog = Watchdog::new(limit);
            std::thread::sleep(Duration::from_millis(600));
            eprintln!("it waits and is left alone");
            loop {
                std::hint::spin_loop();
            }
        }
        let child = Command::new(std::env::current_exe().expect("we run"))
            .args(["--exact", "watchdog::tests::a_test_without_end_is_ended", "--nocapture"])
            .env(CHILD, "1")
            .output()
            .expect("we can be started again");
        let said = String::from_utf8_lossy(&child.stderr);
        assert!(!child.status.success());
        assert!(said.contains("left alone") && said.contains("does not end"), "{said}");
    }
}
