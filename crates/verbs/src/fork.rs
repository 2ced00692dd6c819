//! Noticing that the process was forked.
//!
//! A child shares mappings, links and descriptors with its parent, so any use of them would corrupt
//! the parent's traffic. The kernel wipes one page in every child (`MADV_WIPEONFORK`). Testing it
//! costs one load per call.

use crate::{Error, Result};
use bellwire_ring::canary::planted;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// The page's first word: the epoch of the process that wrote it, or 0 in a child that has not
/// opened a device yet.
static PAGE: Mutex<Option<&'static AtomicU64>> = Mutex::new(None);
/// Epochs given out; a child inherits the count, so its epochs differ from its parent's.
static EPOCHS: AtomicU64 = AtomicU64::new(0);

/// Remembers the process that made it.
#[derive(Debug)]
pub(crate) struct ForkGuard {
    page: &'static AtomicU64,
    epoch: u64,
}

impl ForkGuard {
    /// A guard for the calling process.
    pub(crate) fn new() -> Result<ForkGuard> {
        let mut slot = PAGE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let page = match *slot {
            Some(page) => page,
            None => *slot.insert(wiped_page()?),
        };
        // Relaxed: parent and child are ordered by fork itself, and all writers hold the lock.
        if page.load(Ordering::Relaxed) == 0 {
            page.store(EPOCHS.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
        Ok(ForkGuard { page, epoch: page.load(Ordering::Relaxed) })
    }

    /// Whether this is still the process that made the guard.
    #[inline]
    pub(crate) fn is_same_process(&self) -> bool {
        // Relaxed: only a fork changes the word, and it does so before the child runs.
        self.page.load(Ordering::Relaxed) == self.epoch || planted("fork-unnoticed")
    }

    /// Fails in a child of the process that made the guard.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_same_process() { Ok(()) } else { Err(Error::Forked) }
    }
}

/// A page that reads as zeros in every child.
fn wiped_page() -> Result<&'static AtomicU64> {
    let system = |what| Error::System { what, cause: std::io::Error::last_os_error() };
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a new anonymous mapping, which touches no existing memory.
    let page = unsafe { libc::mmap(std::ptr::null_mut(), PAGE_BYTES, protection, flags, -1, 0) };
    if page == libc::MAP_FAILED {
        return Err(system("reserving a page that notices fork()"));
    }
    // SAFETY: the page was mapped above and is ours.
    if unsafe { libc::madvise(page, PAGE_BYTES, libc::MADV_WIPEONFORK) } != 0 {
        let error = system("asking for a page that is wiped by fork() (Linux 4.14 or later)");
        // SAFETY: no reference to the page exists yet.
        unsafe { libc::munmap(page, PAGE_BYTES) };
        return Err(error);
    }
    // SAFETY: page-aligned, zeroed, and never unmapped after this.
    Ok(unsafe { &*page.cast::<AtomicU64>() })
}

/// One mapping: the kernel rounds it up to its page size.
const PAGE_BYTES: usize = 4096;
