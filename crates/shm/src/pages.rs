//! Memory that the program brought, made mappable: its pages are exchanged for pages of a memfd at
//! the same address. Peers then write and read it by stores and loads, and not by a system call.
//!
//! - **Whole pages only**, anonymous and private, so that peers see nothing else of the program.
//! - **One thread.** A store of another thread between copy and exchange would be lost. Threads of
//!   this library do not count. A program with more keeps its pages; the kernel copies for peers.
//! - **Given back** when the last registration ends: the pages are the program's alone again, so
//!   peers that still map the memfd reach nothing.
//! - **In a child** of a fork the pages are private copies, as they would have been. The parent
//!   waits until the child has them: what it stores after `fork` must not reach the child.

use rustix::fs::{MemfdFlags, SealFlags};
use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use std::fs;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use bellwire_ring::canary::planted;

use crate::mapping::PAGE_BYTES;

/// Exchanged spans of a process: each costs a descriptor.
const SPANS: usize = 256;
/// The longest exchanged span in bytes: all its pages are allocated and copied.
const LONGEST: usize = 256 << 20;
/// What threads of this library are called.
const OWN_THREADS: &str = "bellwire";

/// A registered span of the program's memory.
struct Span {
    start: usize,
    length: usize,
    /// `None`: its pages are the program's own.
    memfd: Option<OwnedFd>,
    writable: bool,
    users: usize,
}

impl Span {
    fn is(&self, start: usize, length: usize) -> bool {
        (self.start, self.length) == (start, length)
    }
}

static TABLE: Mutex<Vec<Span>> = Mutex::new(Vec::new());

/// What a thread holds while it forks.
struct Fork {
    /// No other thread exchanges pages or gives them back.
    _table: MutexGuard<'static, Vec<Span>>,
    /// What the child must copy: a memfd, and its bytes from the third on at the first and second.
    shared: Vec<(OwnedFd, usize, usize, usize)>,
    /// The child writes a byte, or ends, when it has its copies.
    copied: Option<(OwnedFd, OwnedFd)>,
}

thread_local! {
    static FORKING: RefCell<Option<Fork>> = const { RefCell::new(None) };
}

fn spans() -> MutexGuard<'static, Vec<Span>> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One registration of a span. Its pages are given back with the last one.
pub struct Pages {
    start: usize,
    length: usize,
}

impl Pages {
    /// Registers `length` bytes at `start`, and exchanges them if that is possible. `writable`:
    /// peers may write.
    ///
    /// # Safety
    /// The bytes are mapped and the program's, until the result is dropped.
    pub unsafe fn enter(start: usize, length: usize, writable: bool) -> Pages {
        let pages = Pages { start, length };
        let mut spans = spans();
        if let Some(known) = spans.iter_mut().find(|span| span.is(start, length)) {
            known.users += 1;
            return pages;
        }
        let overlaps =
            |span: &Span| start < span.start + span.length && span.start < start + length;
        let free = spans.len() < SPANS && !spans.iter().any(overlaps);
        // SAFETY: the caller's promise.
        let memfd = if free { unsafe { exchange(start, length, writable) } } else { None };
        spans.push(Span { start, length, memfd, writable, users: 1 });
        pages
    }

    /// The memfd of an exchanged span, for peers that may write, or not, and one more registration.
    pub fn join(start: usize, length: usize, writable: bool) -> Option<(OwnedFd, Pages)> {
        let mut spans = spans();
        let is_it = |span: &&mut Span| span.is(start, length) && span.writable == writable;
        let span = spans.iter_mut().find(is_it)?;
        let memfd = span.memfd.as_ref()?.try_clone().ok()?;
        span.users += 1;
        Some((memfd, Pages { start, length }))
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        let mut spans = spans();
        let Some(place) = spans.iter().position(|span| span.is(self.start, self.length)) else {
            return;
        };
        spans[place].users -= 1;
        if spans[place].users == 0 || planted("pages-returned-early") {
            let span = spans.swap_remove(place);
            if let Some(memfd) = span.memfd.filter(|_| !planted("pages-kept")) {
                give_back(&memfd, span.start, span.length);
            }
        }
    }
}

/// Exchanges the pages. `None`: nothing has changed.
///
/// # Safety
/// As for [`Pages::enter`].
unsafe fn exchange(start: usize, length: usize, writable: bool) -> Option<OwnedFd> {
    let whole = start.is_multiple_of(PAGE_BYTES) && length.is_multiple_of(PAGE_BYTES);
    let private = |part: &Mapping| {
        part.private && part.inode == 0 && !part.stack || planted("pages-of-others")
    };
    let whole = whole || planted("pages-in-part");
    if !whole || length > LONGEST || !is_alone() || !covers(start, length, private) {
        return None;
    }
    prepare_for_forks();
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let memfd = rustix::fs::memfd_create("bellwire pages", flags).ok()?;
    rustix::fs::ftruncate(&memfd, length as u64).ok()?;
    let exchanged = without_signals(|| {
        let mut done = 0;
        while done < length && !planted("pages-not-copied") {
            // SAFETY: the caller's bytes; the kernel reads them.
            let written = unsafe {
                let from = (start + done) as *const c_void;
                libc::pwrite(memfd.as_raw_fd(), from, length - done, done as i64)
            };
            done += usize::try_from(written).ok().filter(|&written| written > 0)?;
        }
        // SAFETY: the same bytes at the same addresses. No other thread writes them meanwhile.
        unsafe { map(&memfd, start, length, libc::MAP_SHARED, 0) }.then_some(())
    });
    exchanged?;
    let mut seals = SealFlags::SHRINK | SealFlags::GROW;
    if !writable && !planted("pages-unsealed") {
        seals |= SealFlags::FUTURE_WRITE;
    }
    // A peer refuses to map what could shrink, so a failure only costs time.
    let _ = rustix::fs::fcntl_add_seals(&memfd, seals | SealFlags::SEAL);
    // SAFETY: advice about our mapping, which changes no byte.
    unsafe { libc::madvise(start as *mut c_void, length, libc::MADV_POPULATE_WRITE) };
    Some(memfd)
}

/// Makes pages the program's own again, as far as they are still mapped there.
fn give_back(memfd: &OwnedFd, start: usize, length: usize) {
    for (from, length) in mapped_parts(memfd, start, length) {
        if is_alone() {
            // SAFETY: `from` is mapped for `length` bytes; the copy takes its place.
            if unsafe { copy_over(from, length) } {
                continue;
            }
        }
        // SAFETY: the mapping of these very bytes is replaced.
        unsafe { make_private(memfd, from, length, from - start) };
    }
    // Frees what only peers map now. Sealed memory stays until they unmap it.
    let (flags, whole) = (libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE, length as i64);
    // SAFETY: a system call on our own descriptor.
    unsafe { libc::fallocate(memfd.as_raw_fd(), flags, 0, whole) };
}

/// Where the memfd of a span is still mapped, and how many bytes.
fn mapped_parts(memfd: &OwnedFd, start: usize, length: usize) -> Vec<(usize, usize)> {
    let Ok(identity) = rustix::fs::fstat(memfd) else { return Vec::new() };
    let inside = |part: &Mapping| {
        let (from, to) = (part.start.max(start), part.end.min(start + length));
        let is_ours = part.inode == identity.st_ino && part.is_memfd;
        ((is_ours || planted("pages-anywhere")) && from < to).then(|| (from, to - from))
    };
    mappings().iter().filter_map(inside).collect()
}

/// Private pages of the memfd, each written: a store of another thread is never lost.
///
/// # Safety
/// `length` bytes at `start` are mapped, and are those of the memfd from `at` on.
unsafe fn make_private(memfd: &OwnedFd, start: usize, length: usize, at: usize) {
    // SAFETY: the caller's promise; a byte that is exchanged for itself does not change.
    unsafe {
        if map(memfd, start, length, libc::MAP_PRIVATE, at) {
            for page in (start..start + length).step_by(PAGE_BYTES) {
                let first = &*(page as *const AtomicU8);
                let byte = first.load(Ordering::Relaxed);
                // Relaxed: it only makes the page private, also if the byte has changed.
                let _ = first.compare_exchange(byte, byte, Ordering::Relaxed, Ordering::Relaxed);
            }
        }
    }
}

/// Puts an anonymous copy in the place of `length` bytes at `from`.
///
/// # Safety
/// The bytes are mapped, whole pages, and no other thread uses them.
unsafe fn copy_over(from: usize, length: usize) -> bool {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    without_signals(|| {
        // SAFETY: a new mapping, which is filled and then moved to where the old one is.
        unsafe {
            let copy = libc::mmap(std::ptr::null_mut(), length, protection, flags, -1, 0);
            if copy == libc::MAP_FAILED {
                return false;
            }
            let place = from as *mut c_void;
            std::ptr::copy_nonoverlapping(place.cast_const().cast::<u8>(), copy.cast(), length);
            let moved = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
            if libc::mremap(copy, length, length, moved, place) == libc::MAP_FAILED {
                libc::munmap(copy, length);
                return false;
            }
            true
        }
    })
}

/// # Safety
/// Whatever is mapped there may be replaced.
unsafe fn map(memfd: &OwnedFd, start: usize, length: usize, kind: c_int, at: usize) -> bool {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let (place, kind) = (start as *mut c_void, kind | libc::MAP_FIXED);
    let fd = memfd.as_fd().as_raw_fd();
    // SAFETY: the caller's promise.
    unsafe { libc::mmap(place, length, protection, kind, fd, at as i64) != libc::MAP_FAILED }
}

/// Whether the program has one thread, apart from those of this library.
fn is_alone() -> bool {
    let Ok(threads) = fs::read_dir("/proc/self/task") else { return false };
    if planted("pages-beside-threads") {
        return true;
    }
    let mut others = 0;
    for thread in threads {
        let Ok(thread) = thread else { return false };
        let name = fs::read_to_string(thread.path().join("comm"));
        others += usize::from(!name.is_ok_and(|name| name.starts_with(OWN_THREADS)));
    }
    others == 1
}

/// A line of /proc/self/maps.
struct Mapping {
    start: usize,
    end: usize,
    private: bool,
    inode: u64,
    is_memfd: bool,
    stack: bool,
}

/// The mappings of the process, in the order of their addresses.
fn mappings() -> Vec<Mapping> {
    let text = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let parse = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let rights = words.next()?;
        let inode = words.nth(2)?.parse().ok()?;
        let name = words.next().unwrap_or("");
        Some(Mapping {
            start: usize::from_str_radix(start, 16).ok()?,
            end: usize::from_str_radix(end, 16).ok()?,
            private: rights == "rw-p",
            inode,
            is_memfd: name.starts_with("/memfd:bellwire"),
            stack: name.starts_with("[stack") || name.starts_with("[v"),
        })
    };
    text.lines().filter_map(parse).collect()
}

/// Whether mappings that are `good` cover the bytes.
fn covers(start: usize, length: usize, good: impl Fn(&Mapping) -> bool) -> bool {
    let mut at = start;
    for part in mappings() {
        if part.end > at && part.start < start + length {
            if part.start > at || !good(&part) {
                return false;
            }
            at = part.end;
        }
    }
    at >= start + length
}

/// Runs `work` while no handler of a signal runs in this thread.
fn without_signals<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: two masks on the stack, which the calls fill; the old one is set again.
    unsafe {
        let (mut all, mut old) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut old);
        let result = work();
        libc::pthread_sigmask(libc::SIG_SETMASK, &old, std::ptr::null_mut());
        result
    }
}

/// A child gets private pages: what it writes must not reach the parent, nor peers.
fn prepare_for_forks() {
    static ONCE: Once = Once::new();
    extern "C" fn before() {
        let table = spans();
        // What the program has unmapped itself is no longer there for the child either.
        let shared: Vec<_> = table.iter().flat_map(still_mapped).collect();
        let pipe = || rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).ok();
        let copied = if shared.is_empty() { None } else { pipe() };
        FORKING.set(Some(Fork { _table: table, shared, copied }));
    }
    extern "C" fn in_parent() {
        if let Some((done, ours)) = FORKING.take().and_then(|fork| fork.copied) {
            // Only the child can write now, so its end wakes us, too.
            drop(ours);
            if planted("pages-parent-first") {
                return;
            }
            let _ = rustix::io::retry_on_intr(|| rustix::io::read(&done, &mut [0]));
        }
    }
    extern "C" fn in_child() {
        let Some(fork) = FORKING.take() else { return };
        if planted("pages-of-the-child") {
            return;
        }
        if planted("pages-parent-first") {
            std::thread::sleep(std::time::Duration::from_millis(300));
        }
        for (memfd, start, length, at) in &fork.shared {
            // SAFETY: the child's own mapping of the same bytes is replaced by a copy.
            unsafe { make_private(memfd, *start, *length, *at) };
        }
        if let Some((_, done)) = &fork.copied {
            let _ = rustix::io::write(done, &[1]);
        }
    }
    // SAFETY: three functions of this library. It is not unloaded: its threads use it.
    ONCE.call_once(|| unsafe {
        libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child));
    });
}

/// The parts of an exchanged span that its memfd is still mapped at.
fn still_mapped(span: &Span) -> Vec<(OwnedFd, usize, usize, usize)> {
    let Some(memfd) = &span.memfd else { return Vec::new() };
    let part = |(from, length)| Some((memfd.try_clone().ok()?, from, length, from - span.start));
    mapped_parts(memfd, span.start, span.length).into_iter().filter_map(part).collect()
}
