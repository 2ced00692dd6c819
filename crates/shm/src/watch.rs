//! One thread of the process sleeps at the descriptors of all functions that are polled. It tells a
//! function when one of its descriptors becomes readable. So a function that is polled makes no
//! system call while only packets come (C-12).

use crate::epoll::Epoll;
use bellwire_ring::signals;
use rustix::event::{EventfdFlags, epoll, eventfd};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;

/// Functions of one process that can be watched at once.
const PLACES: usize = 4096;
/// Places that belong to a function.
static TAKEN: [AtomicBool; PLACES] = [const { AtomicBool::new(false) }; PLACES];
/// The thread sets a place when it calls the function there. A call that comes late may reach a
/// later function of the same place, which then looks in vain, once.
static CALLED: [AtomicBool; PLACES] = [const { AtomicBool::new(false) }; PLACES];

/// The thread of this process, while it has functions.
static WATCHER: Mutex<Weak<Watcher>> = Mutex::new(Weak::new());
/// What the descriptor that ends the thread brings with its event.
const END: u64 = u64::MAX;

struct Watcher {
    /// A child has no thread, and must leave its parent's descriptors alone.
    process: u32,
    /// The thread sleeps here.
    epoll: Arc<OwnedFd>,
    /// Readable when the thread shall end.
    end: OwnedFd,
    /// Taken when it ends.
    thread: Option<JoinHandle<()>>,
}

/// A function's place with the watcher.
pub struct Watch {
    watcher: Arc<Watcher>,
    place: usize,
}

impl Watch {
    /// A place for the function with these descriptors. It is not armed.
    ///
    /// # Errors
    /// The process may have no further thread or descriptor, or all places are taken.
    pub fn new(watched: &Epoll) -> io::Result<Watch> {
        let watcher = running()?;
        // Relaxed, here and below: a place carries nothing but its own value.
        let free = |place: &AtomicBool| !place.swap(true, Ordering::Relaxed);
        let place = TAKEN.iter().position(free).ok_or(io::ErrorKind::QuotaExceeded)?;
        // An earlier function of the place was called, and this one was not.
        CALLED[place].store(false, Ordering::Relaxed);
        let watch = Watch { watcher, place };
        epoll::add(&watch.watcher.epoll, watched, watch.data(), epoll::EventFlags::empty())?;
        Ok(watch)
    }

    fn data(&self) -> epoll::EventData {
        epoll::EventData::new_u64(self.place as u64)
    }

    /// Asks for one call, when one of the descriptors is readable: now, or when it becomes so.
    pub fn arm(&self, watched: &Epoll) {
        let once = epoll::EventFlags::IN | epoll::EventFlags::ONESHOT;
        CALLED[self.place].store(false, Ordering::Relaxed);
        if epoll::modify(&self.watcher.epoll, watched, self.data(), once).is_err() {
            // Nobody would call: the function looks for itself.
            CALLED[self.place].store(true, Ordering::Relaxed);
        }
    }

    /// Whether the call has come.
    pub fn is_called(&self) -> bool {
        CALLED[self.place].load(Ordering::Relaxed)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        TAKEN[self.place].store(false, Ordering::Relaxed);
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let thread = self.thread.take();
        if self.process == std::process::id() {
            // The thread ends even if this fails, once the program has closed its descriptors.
            let told = rustix::io::write(&self.end, &1u64.to_ne_bytes());
            // It does nothing that could panic.
            let _ = told.map(|_| thread.map(JoinHandle::join));
        } else {
            // A child does not have the thread that the handle names.
            std::mem::forget(thread);
        }
    }
}

/// The watcher of this process. Starts it if there is none.
fn running() -> io::Result<Arc<Watcher>> {
    let mut watcher = WATCHER.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if let Some(running) = watcher.upgrade().filter(|watcher| watcher.process == process) {
        return Ok(running);
    }
    let epoll = Arc::new(epoll::create(epoll::CreateFlags::CLOEXEC)?);
    let end = eventfd(0, EventfdFlags::CLOEXEC)?;
    epoll::add(&epoll, &end, epoll::EventData::new_u64(END), epoll::EventFlags::IN)?;
    let theirs = epoll.clone();
    let thread = std::thread::Builder::new().name("bellwire-watch".into()).stack_size(64 << 10);
    // From then on it has its name, by which `pages` knows that it is not the program's.
    let thread = Some(signals::spawn(thread, move || call(&theirs))?);
    let running = Arc::new(Watcher { process, epoll, end, thread });
    *watcher = Arc::downgrade(&running);
    Ok(running)
}

/// Calls functions until the last one is closed, or the program closes the descriptor, as it may.
fn call(epoll: &OwnedFd) {
    let mut events = [const { MaybeUninit::uninit() }; 64];
    loop {
        match epoll::wait(epoll.as_fd(), &mut events, None) {
            Ok((events, _)) => {
                for event in events.iter() {
                    match event.data.u64() {
                        END => return,
                        place => CALLED[place as usize].store(true, Ordering::Relaxed),
                    }
                }
            }
            // A stopped process goes on.
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => break,
        }
    }
    // From now on all look for themselves, because none can be armed.
    CALLED.iter().for_each(|called| called.store(true, Ordering::Relaxed));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::epoll::Source;
    use std::time::{Duration, Instant};

    /// An eventfd among the descriptors of a function.
    fn watched() -> (Epoll, OwnedFd, Watch) {
        let epoll = Epoll::new().unwrap();
        let bell = eventfd(0, EventfdFlags::empty()).unwrap();
        epoll.watch(&bell, Source::Listener).unwrap();
        let watch = Watch::new(&epoll).unwrap();
        (epoll, bell, watch)
    }

    fn ring(bell: &OwnedFd) {
        rustix::io::write(bell, &1u64.to_ne_bytes()).unwrap();
    }

    fn wait_for_the_call(watch: &Watch) {
        let since = Instant::now();
        while !watch.is_called() {
            assert!(since.elapsed() < Duration::from_secs(8), "no call has come");
            std::thread::yield_now();
        }
    }

    /// A call comes for what is readable already, and for what becomes so. It comes once.
    #[test]
    fn an_armed_function_is_called_once() {
        let (epoll, bell, watch) = watched();
        let (other_epoll, other_bell, other) = watched();
        ring(&bell);
        assert!(!watch.is_called(), "it is not armed");
        watch.arm(&epoll);
        wait_for_the_call(&watch);
        rustix::io::read(&bell, &mut [0; 8]).unwrap();
        watch.arm(&epoll);
        other.arm(&other_epoll);
        assert!(!watch.is_called());
        ring(&bell);
        wait_for_the_call(&watch);
        // The thread takes events in order, so a second call of the first would have come by now.
        CALLED[watch.place].store(false, Ordering::Relaxed);
        ring(&bell);
        assert!(!other.is_called(), "nothing came for it");
        ring(&other_bell);
        wait_for_the_call(&other);
        assert!(!watch.is_called(), "it was called before it was armed again");
    }

    /// All functions of a process share one thread, and a place is used again.
    #[test]
    fn places_come_back() {
        let (_epoll, _bell, first) = watched();
        for _ in 0..2 * PLACES {
            let (.., later) = watched();
            assert!(Arc::ptr_eq(&first.watcher, &later.watcher));
        }
    }

    /// The thread ends with the last function.
    #[test]
    fn the_thread_ends_with_the_last_function() {
        let mut alone = crate::testing::begin_alone("watch::tests::is_alone", "watch");
        assert!(alone.wait().expect("it was started here").success());
    }

    /// Not a test of its own: the process of the one before.
    #[test]
    #[ignore = "another test starts it"]
    fn is_alone() {
        if crate::testing::role().is_none() {
            return;
        }
        let threads = || {
            let all = std::fs::read_dir("/proc/self/task").expect("procfs").flatten();
            let names = all.filter_map(|thread| std::fs::read(thread.path().join("comm")).ok());
            names.filter(|name| name.starts_with(b"bellwire-watch")).count()
        };
        for _ in 0..2 {
            let (one, other) = (watched(), watched());
            assert_eq!(threads(), 1);
            drop(one);
            assert_eq!(threads(), 1);
            drop(other);
            let since = Instant::now();
            while threads() > 0 {
                assert!(since.elapsed() < Duration::from_secs(8), "it goes on");
            }
        }
    }
}
