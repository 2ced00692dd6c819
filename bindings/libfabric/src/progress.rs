//! A thread that makes progress while the program does not, for programs that ask for
//! `FI_PROGRESS_AUTO`.
//!
//! A program that polls makes its own progress; then the thread only checks that.

use crate::ep::ActiveEndpoint;
use crate::reference::Listed;
use bellwire_ring::signals;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long a program may be idle before the thread makes progress.
const PAUSE: Duration = Duration::from_millis(1);

/// The thread of a domain. Dropping this ends it, before the library can be unloaded.
pub struct Progress {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    endpoints: Mutex<Vec<Known>>,
    ends: AtomicBool,
}

struct Known {
    ep: Listed<ActiveEndpoint>,
    /// The endpoint's turns at the last check.
    turns: u64,
}

impl Progress {
    /// Starts the thread.
    pub fn start() -> std::io::Result<Progress> {
        let shared = Arc::new(Shared { endpoints: Mutex::default(), ends: AtomicBool::new(false) });
        let theirs = shared.clone();
        let thread = std::thread::Builder::new().name("bellwire".to_owned());
        let thread = signals::spawn(thread, move || theirs.run())?;
        Ok(Progress { shared, thread: Some(thread) })
    }

    /// Adds an endpoint.
    pub fn add(&self, ep: Listed<ActiveEndpoint>) {
        self.shared.endpoints().push(Known { ep, turns: 0 });
    }

    /// Forgets an endpoint that is being closed.
    pub fn remove(&self, ep: &ActiveEndpoint) {
        self.shared.endpoints().retain(|known| !known.ep.is(ep));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        // Relaxed: joining the thread orders everything else.
        self.shared.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let ended = thread.join();
            debug_assert!(ended.is_ok(), "it does not panic");
        }
    }
}

impl Shared {
    fn endpoints(&self) -> std::sync::MutexGuard<'_, Vec<Known>> {
        self.endpoints.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        while !self.ends.load(Ordering::Relaxed) {
            let mut busy = false;
            for known in self.endpoints().iter_mut() {
                let turns = known.ep.turns();
                if turns == known.turns {
                    busy |= known.ep.progress() > 0;
                }
                known.turns = known.ep.turns();
            }
            if !busy {
                std::thread::park_timeout(PAUSE);
            }
        }
    }
}
