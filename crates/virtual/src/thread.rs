//! Detects, through the kernel, whether a thread sleeps outside of the device.

use std::time::{Duration, Instant};

/// A thread that sleeps outside of the device for this long is no longer waited for. Longer than
/// waits for locks of the allocator and of the terminal.
const ASLEEP: Duration = Duration::from_millis(5);

/// A thread that computes for this long, in real time, is no longer waited for.
const COMPUTES: Duration = Duration::from_secs(2);

/// The kernel's number of the calling thread.
pub(crate) fn own_number() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// Observations of a thread that others wait for.
#[derive(Default)]
pub(crate) struct Absence {
    awaited_since: Option<Instant>,
    asleep_since: Option<Instant>,
}

impl Absence {
    /// Looks at thread `number` once more. Returns whether it need not be waited for.
    pub(crate) fn look(&mut self, number: i32) -> bool {
        let now = Instant::now();
        let awaited = now - *self.awaited_since.get_or_insert(now);
        match state(number) {
            None => return true,
            Some('S' | 'T' | 't') => {
                if now - *self.asleep_since.get_or_insert(now) >= ASLEEP {
                    return true;
                }
            }
            Some(_) => self.asleep_since = None,
        }
        awaited >= COMPUTES
    }
}

/// The state of a thread of this process, as the kernel's letter; `None`: there is no such thread.
fn state(number: i32) -> Option<char> {
    let line = std::fs::read_to_string(format!("/proc/self/task/{number}/stat")).ok()?;
    // The thread's name before it may contain any character.
    line.rsplit_once(") ")?.1.chars().next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// A thread that sleeps elsewhere is detected, a working thread is not. A thread that has ended
    /// is detected at once.
    #[test]
    fn sleepers_are_told_from_workers() {
        let (tell, told) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let sleeper = std::thread::spawn(move || {
            tell.send(own_number()).unwrap();
            let _ = ended.recv();
        });
        let number = told.recv().unwrap();
        let mut absence = Absence::default();
        while !absence.look(number) {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(absence.asleep_since.is_some());
        let mut own = Absence::default();
        let since = Instant::now();
        while since.elapsed() < Duration::from_millis(8) {
            assert!(!own.look(own_number()), "we are running");
        }
        drop(end);
        sleeper.join().unwrap();
        // The kernel may take a moment to forget it.
        while state(number).is_some() {
            std::thread::yield_now();
        }
        assert!(Absence::default().look(number));
    }
}
