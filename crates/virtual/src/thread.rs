//! Whether a thread that does not call is asleep: as the kernel tells it.

use std::time::{Duration, Instant};

/// How long a thread must be asleep, outside of the device, until nobody waits for it any more. Longer than waits for locks of the
/// allocator and of the terminal last.
const ASLEEP: Duration = Duration::from_millis(5);

/// How long a thread may compute, in real time, until nobody waits for it any more.
const COMPUTES: Duration = Duration::from_secs(2);

/// The number by which the kernel knows the calling thread.
pub(crate) fn own_number() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// What others have seen of a thread that they wait for.
#[derive(Default)]
pub(crate) struct Absence {
    awaited_since: Option<Instant>,
    asleep_since: Option<Instant>,
}

impl Absence {
    /// One more look at thread `number`: whether it is not worth waiting for.
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

/// The state of a thread of this process, by the kernel's letter; `None`: there is no such thread.
fn state(number: i32) -> Option<char> {
    let line = std::fs::read_to_string(format!("/proc/self/task/{number}/stat")).ok()?;
    // The name before it may contain anything.
    line.rsplit_once(") ")?.1.chars().next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// A thread that waits elsewhere is found out, one that works is not, and one that has ended is at once.
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
