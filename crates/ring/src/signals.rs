//! Code that no handler of the program interrupts, and threads that take none of its signals.

use std::io;
use std::marker::PhantomData;
use std::thread::{Builder, JoinHandle};

/// Their handlers report faults of the thread itself. Blocked, they end the process.
pub const FAULTS: [libc::c_int; 5] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP];

/// All signals but [`FAULTS`] are blocked for the calling thread until this is dropped.
#[must_use]
pub struct Blocked {
    before: libc::sigset_t,
    /// The mask is one thread's.
    _not_send: PhantomData<*const ()>,
}

impl Blocked {
    /// Blocks them.
    #[expect(clippy::new_without_default, reason = "it does something")]
    pub fn new() -> Blocked {
        // SAFETY: the calls write whole sets, and read one that was written.
        unsafe {
            let (mut all, mut before) = std::mem::zeroed::<(libc::sigset_t, libc::sigset_t)>();
            libc::sigfillset(&raw mut all);
            for fault in FAULTS {
                libc::sigdelset(&raw mut all, fault);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, &raw mut before);
            Blocked { before, _not_send: PhantomData }
        }
    }

    /// The mask of the thread before.
    pub fn before(&self) -> &libc::sigset_t {
        &self.before
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // SAFETY: the kernel reads a set that it wrote.
        unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, std::ptr::null_mut());
        }
    }
}

/// Runs `work` while [`Blocked`] is.
pub fn without<R>(work: impl FnOnce() -> R) -> R {
    let _blocked = Blocked::new();
    work()
}

/// Starts a thread of a library. It has its name when this returns.
///
/// It takes none of the program's signals: the kernel gives those to any thread that does not block
/// them. A program that reads them from `signalfd(2)` blocks them in its own threads only.
///
/// # Errors
/// No thread can be started.
pub fn spawn<R: Send + 'static>(
    thread: Builder,
    run: impl FnOnce() -> R + Send + 'static,
) -> io::Result<JoinHandle<R>> {
    let (starts, started) = std::sync::mpsc::channel();
    let run = move || {
        let _ = starts.send(());
        run()
    };
    // A new thread inherits the mask.
    let thread = without(|| thread.spawn(run))?;
    let _ = started.recv();
    Ok(thread)
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    /// Whether a signal is blocked for the calling thread.
    fn is_blocked(signal: libc::c_int) -> bool {
        // SAFETY: the call writes the set.
        unsafe {
            let mut now = std::mem::zeroed();
            libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &raw mut now);
            libc::sigismember(&raw const now, signal) == 1
        }
    }

    /// A thread of a library takes faults alone; who started it takes all as before.
    #[test]
    fn a_thread_without_signals() {
        let signals = [libc::SIGTERM, libc::SIGUSR1, libc::SIGRTMAX()];
        let blocked = move || (signals.map(is_blocked), FAULTS.map(is_blocked));
        let thread = spawn(Builder::new().name("library".to_owned()), blocked).unwrap();
        assert_eq!(thread.join().unwrap(), ([true; 3], [false; 5]));
        assert_eq!(blocked(), ([false; 3], [false; 5]));
    }

    /// What was blocked before stays so.
    #[test]
    fn an_own_mask_comes_back() {
        let own = Blocked::new();
        without(|| assert!(is_blocked(libc::SIGTERM)));
        assert!(is_blocked(libc::SIGTERM));
        drop(own);
        assert!(!is_blocked(libc::SIGTERM));
    }
}
