//! Memory that the program brought, made mappable: its pages are exchanged for pages of a memfd at
//! the same address. Peers then write and read it by stores and loads, and not by a system call.
//!
//! - **Whole pages only**, anonymous and private, so that peers see nothing else of the program.
//!   The kernel copies what a region has beside its whole pages.
//! - **One thread runs.** A store of another one between copy and exchange would be lost. Threads
//!   of this library do not count, nor threads that sleep until this one wakes them. While others
//!   run, the program keeps its pages, and the kernel copies for peers.
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
use bellwire_ring::signals;

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

/// The whole pages inside of `length` bytes at `start`, as offset and length.
pub fn whole_pages(start: usize, length: usize) -> Option<(usize, usize)> {
    let first = start.checked_next_multiple_of(PAGE_BYTES)?;
    let end = start.checked_add(length)? / PAGE_BYTES * PAGE_BYTES;
    (first < end).then(|| (first - start, end - first))
}

/// One registration of a span. Its pages are given back with the last one.
pub struct Pages {
    start: usize,
    length: usize,
}

impl Pages {
    /// Registers `length` bytes at `start`, and exchanges the whole pages of them if that is
    /// possible. `writable`: peers may write.
    ///
    /// # Safety
    /// The bytes are mapped and the program's, until the result is dropped.
    pub unsafe fn enter(start: usize, length: usize, writable: bool) -> Pages {
        let (start, length) = span_of(start, length);
        let pages = Pages { start, length };
        let mut spans = spans();
        if let Some(known) = spans.iter_mut().find(|span| span.is(start, length)) {
            known.users += 1;
            return pages;
        }
        let overlaps =
            |span: &Span| start < span.start + span.length && span.start < start + length;
        let free = length > 0 && spans.len() < SPANS && !spans.iter().any(overlaps);
        // SAFETY: the caller's promise.
        let memfd = if free { unsafe { exchange(start, length, writable) } } else { None };
        spans.push(Span { start, length, memfd, writable, users: 1 });
        pages
    }

    /// The memfd of an exchanged span, for peers that may write, or not, and one more registration.
    pub fn join(start: usize, length: usize, writable: bool) -> Option<(OwnedFd, Pages)> {
        let (start, length) = span_of(start, length);
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

/// Where the span of some bytes begins, and its length: their whole pages, or none.
fn span_of(start: usize, length: usize) -> (usize, usize) {
    if planted("pages-in-part") {
        let first = start / PAGE_BYTES * PAGE_BYTES;
        return (first, (start + length).next_multiple_of(PAGE_BYTES) - first);
    }
    let (offset, length) = whole_pages(start, length).unwrap_or((0, 0));
    (start + offset, length)
}

/// Exchanges the pages. `None`: nothing has changed.
///
/// # Safety
/// As for [`Pages::enter`].
unsafe fn exchange(start: usize, length: usize, writable: bool) -> Option<OwnedFd> {
    let private = |part: &Mapping| {
        part.private && part.inode == 0 && !part.stack || planted("pages-of-others")
    };
    if length > LONGEST || !is_alone() || !covers(start, length, private) {
        return None;
    }
    prepare_for_forks();
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let memfd = rustix::fs::memfd_create("bellwire pages", flags).ok()?;
    rustix::fs::ftruncate(&memfd, length as u64).ok()?;
    let exchanged = signals::without(|| {
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
    signals::without(|| {
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

/// Whether no other thread of the program runs. It has none apart from those of this library, or
/// all others sleep in private futexes without a time limit: only a thread that runs can wake them.
fn is_alone() -> bool {
    if planted("pages-beside-threads") {
        return true;
    }
    // One that was awake for a moment has slept once more when the second look finds it asleep. So
    // if both looks agree, all slept at the moment between them, and nobody can wake any but we.
    let first = others_asleep();
    first.is_some() && first == others_asleep()
}

/// The other threads of the program, and how often each has gone to sleep. `None` if one is not
/// asleep for good.
fn others_asleep() -> Option<Vec<(i32, u64)>> {
    let mut program = Vec::new();
    for thread in fs::read_dir("/proc/self/task").ok()? {
        let thread = thread.ok()?.path();
        let name = fs::read_to_string(thread.join("comm"));
        if !name.is_ok_and(|name| name.starts_with(OWN_THREADS)) {
            program.push(thread);
        }
    }
    if program.len() == 1 {
        return Some(Vec::new());
    }
    let own = rustix::thread::gettid().as_raw_nonzero().get();
    let mut others = Vec::new();
    for thread in program {
        let number = thread.file_name()?.to_str()?.parse().ok()?;
        if number == own {
            continue;
        }
        let read = |file: &str| fs::read_to_string(thread.join(file));
        let is_asleep = read("syscall").is_ok_and(|call| waits_for_good(&call));
        let status = read("status").ok().filter(|_| is_asleep)?;
        let slept = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        others.push((number, slept?.trim().parse().ok()?));
    }
    others.sort_unstable();
    Some(others)
}

/// Whether a line of /proc/self/task/*/syscall is a wait in a private futex without a time limit.
fn waits_for_good(call: &str) -> bool {
    const WAIT_BITSET: u64 = 9;
    let mut words = call.split_ascii_whitespace();
    let number = words.next().and_then(|word| word.parse().ok());
    let mut argument = || {
        let word = words.next()?.strip_prefix("0x")?;
        u64::from_str_radix(word, 16).ok()
    };
    let [_, operation, _, limit] = [argument(), argument(), argument(), argument()];
    let flags = (libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME) as u64;
    let waits = operation.is_some_and(|of| {
        of & libc::FUTEX_PRIVATE_FLAG as u64 != 0
            && [libc::FUTEX_WAIT as u64, WAIT_BITSET].contains(&(of & !flags))
    });
    number == Some(libc::SYS_futex) && waits && limit == Some(0)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::alone;
    use std::sync::mpsc::channel;
    use std::thread;
    use std::time::Duration;

    const PAGE: usize = PAGE_BYTES;
    const DAY: Option<Duration> = Some(Duration::from_secs(86_400));

    /// Private anonymous pages, each filled with its number.
    fn anonymous(pages: usize) -> usize {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping.
        let at =
            unsafe { libc::mmap(std::ptr::null_mut(), pages * PAGE, protection, flags, -1, 0) };
        assert_ne!(at, libc::MAP_FAILED);
        (0..pages).for_each(|page| store(at as usize + page * PAGE, page as u8));
        at as usize
    }

    fn store(at: usize, byte: u8) {
        // SAFETY: these tests store only into pages that they mapped.
        unsafe { (at as *mut u8).write_volatile(byte) }
    }

    fn load(at: usize) -> u8 {
        // SAFETY: as above.
        unsafe { (at as *const u8).read_volatile() }
    }

    /// A byte of the memfd, as a peer would see it.
    fn seen(memfd: &OwnedFd, at: usize) -> u8 {
        let mut byte = [0];
        assert_eq!(rustix::io::pread(memfd, &mut byte, at as u64), Ok(1));
        byte[0]
    }

    fn protect(at: usize, pages: usize, protection: c_int) {
        // SAFETY: pages that this test mapped.
        assert_eq!(unsafe { libc::mprotect(at as *mut c_void, pages * PAGE, protection) }, 0);
    }

    fn unmap(at: usize, pages: usize) {
        // SAFETY: pages that this test mapped, and does not use any more.
        assert_eq!(unsafe { libc::munmap(at as *mut c_void, pages * PAGE) }, 0);
    }

    fn enter(start: usize, length: usize, writable: bool) -> Pages {
        // SAFETY: these tests enter only what they mapped.
        unsafe { Pages::enter(start, length, writable) }
    }

    /// Exchanged pages keep what is in them, and peers see later stores. Only who asks for the same
    /// span and rights gets them. With the last registration they are the program's alone again,
    /// and their memory is freed.
    #[test]
    fn pages_are_exchanged_and_given_back() {
        alone(|| {
            let at = anonymous(4);
            let length = 4 * PAGE;
            let first = enter(at, length, true);
            let other = anonymous(2);
            let others = enter(other, 2 * PAGE, false);
            let again = enter(at, length, true);
            assert!(Pages::join(at, length, false).is_none());
            assert!(Pages::join(at, 2 * PAGE, true).is_none());
            assert!(Pages::join(at + PAGE, length, true).is_none());
            let (memfd, joined) = Pages::join(at, length, true).expect("it is exchanged");
            assert!((0..4).all(|page| seen(&memfd, page * PAGE) == page as u8));
            store(at + 3 * PAGE, 77);
            assert_eq!(seen(&memfd, 3 * PAGE), 77);
            assert_eq!(rustix::io::pwrite(&memfd, &[78], PAGE as u64), Ok(1));
            assert_eq!(load(at + PAGE), 78);
            drop(first);
            drop(joined);
            store(at, 79);
            assert_eq!(seen(&memfd, 0), 79, "one registration is left");
            drop(again);
            assert!(
                [79, 78, 2, 77]
                    .into_iter()
                    .enumerate()
                    .all(|(page, byte)| { load(at + page * PAGE) == byte })
            );
            store(at, 80);
            assert_eq!(seen(&memfd, 0), 0, "peers reach nothing");
            assert_eq!(rustix::fs::fstat(&memfd).map(|it| it.st_blocks), Ok(0));
            assert!(Pages::join(at, length, true).is_none());
            // The other span is as it was.
            let (memfd, _joined) = Pages::join(other, 2 * PAGE, false).expect("it is exchanged");
            store(other + PAGE, 81);
            assert_eq!(seen(&memfd, PAGE), 81);
            drop(others);
        });
    }

    /// Parts of pages, pages that another span has, and those of a program with other threads stay
    /// as they are. Threads of this library do not count, nor those that sleep for good.
    #[test]
    fn some_pages_stay() {
        alone(|| {
            let at = anonymous(8);
            let is_exchanged = |from: usize, length| {
                let _pages = enter(from, length, true);
                Pages::join(from, length, true).is_some()
            };
            assert!(is_exchanged(at, PAGE));
            assert!(!is_exchanged(at + 8, PAGE) && !is_exchanged(at, PAGE - 8));
            let _middle = enter(at + 2 * PAGE, 2 * PAGE, true);
            assert!(!is_exchanged(at + PAGE, 2 * PAGE) && !is_exchanged(at + 3 * PAGE, PAGE));
            assert!(is_exchanged(at + PAGE, PAGE) && is_exchanged(at + 4 * PAGE, PAGE));
            assert!(is_alone());
            // Bytes around a page share that page.
            assert!(is_exchanged(at + 6 * PAGE - 16, PAGE + 32));
            for (name, limit, exchanges) in
                [("bellwire-1", DAY, true), ("sleeps", None, true), ("wakes", DAY, false)]
            {
                let (go, waits) = channel::<()>();
                let work = move || match limit {
                    Some(limit) => _ = waits.recv_timeout(limit),
                    None => _ = waits.recv(),
                };
                let thread = thread::Builder::new().name(name.to_owned()).spawn(work);
                let thread = thread.expect("a thread");
                // It takes a moment until it has its name, and sleeps.
                while is_alone() != exchanges {
                    thread::yield_now();
                }
                assert_eq!(is_exchanged(at + 6 * PAGE, PAGE), exchanges, "{name}");
                drop(go);
                thread.join().expect("it ends");
            }
        });
    }

    /// Only a wait in a private futex without a time limit lasts until this process ends it.
    #[test]
    fn waits_are_told_apart() {
        let futex = libc::SYS_futex;
        for (call, expected) in [
            (format!("{futex} 0x7f00 0x80 0x2 0x0 0x0 0x0 0x7ffe 0x7f01"), true),
            (format!("{futex} 0x7f00 0x189 0x0 0x0 0x0 0xffffffff 0x7ffe 0x7f01"), true),
            (format!("{futex} 0x7f00 0x189 0x0 0x7ff0 0x0 0xffffffff 0x7ffe 0x7f01"), false),
            (format!("{futex} 0x7f00 0x109 0x0 0x0 0x0 0xffffffff 0x7ffe 0x7f01"), false),
            (format!("{futex} 0x7f00 0x0 0x2 0x0 0x0 0x0 0x7ffe 0x7f01"), false),
            (format!("{futex} 0x7f00 0x81 0x1 0x0 0x0 0x0 0x7ffe 0x7f01"), false),
            (format!("{futex}"), false),
            ("1 0x7f00 0x80 0x2 0x0 0x0 0x0 0x7ffe 0x7f01".to_owned(), false),
            ("running".to_owned(), false),
            (String::new(), false),
        ] {
            assert_eq!(waits_for_good(&call), expected, "{call}");
        }
    }

    /// The whole pages inside of some bytes.
    #[test]
    fn whole_pages_are_inside() {
        let inside = |start, length| whole_pages(start, length);
        assert_eq!(inside(PAGE, 2 * PAGE), Some((0, 2 * PAGE)));
        assert_eq!(inside(PAGE + 16, 2 * PAGE), Some((PAGE - 16, PAGE)));
        assert_eq!(inside(PAGE - 1, 2 * PAGE), Some((1, PAGE)));
        assert_eq!(inside(PAGE + 1, 2 * PAGE - 2), None);
        assert_eq!(inside(PAGE, PAGE - 1), None);
        assert_eq!(inside(usize::MAX - 5, 3), None);
        assert_eq!(inside(PAGE, usize::MAX), None);
    }

    /// Pages are given back also while another thread runs, and only those that are still mapped,
    /// each with its own bytes.
    #[test]
    fn parts_are_given_back_beside_threads() {
        alone(|| {
            let at = anonymous(5);
            let pages = enter(at, 5 * PAGE, true);
            let (memfd, joined) = Pages::join(at, 5 * PAGE, true).expect("it is exchanged");
            let parts = |from, length| mapped_parts(&memfd, from, length);
            assert_eq!(parts(at, 5 * PAGE), [(at, 5 * PAGE)]);
            assert_eq!(parts(at + PAGE, 2 * PAGE), [(at + PAGE, 2 * PAGE)]);
            assert_eq!(parts(at + 5 * PAGE, PAGE), []);
            assert_eq!(parts(at - PAGE, PAGE), []);
            let other = rustix::fs::memfd_create("bellwire other", MemfdFlags::CLOEXEC);
            assert_eq!(mapped_parts(&other.expect("a memfd"), at, 5 * PAGE), []);
            unmap(at + PAGE, 1);
            assert_eq!(parts(at, 5 * PAGE), [(at, PAGE), (at + 2 * PAGE, 3 * PAGE)]);
            let table = spans();
            let mapped = table.iter().flat_map(still_mapped).map(|it| (it.1, it.2, it.3));
            assert!(mapped.eq([(at, PAGE, 0), (at + 2 * PAGE, 3 * PAGE, 2 * PAGE)]));
            drop(table);
            let (go, waits) = channel::<()>();
            let thread = thread::spawn(move || _ = waits.recv());
            drop((pages, joined));
            assert_eq!([0, 2, 3, 4].map(|page| load(at + page * PAGE)), [0, 2, 3, 4]);
            for page in [0, 2, 3, 4] {
                store(at + page * PAGE, 99);
                assert_eq!(seen(&memfd, page * PAGE), 0);
            }
            drop(go);
            thread.join().expect("it ends");
        });
    }

    /// Pages are covered if mappings that are good follow each other without a hole. Neighbours do
    /// not matter.
    #[test]
    fn holes_and_others_are_noticed() {
        alone(|| {
            let at = anonymous(8);
            let private = |part: &Mapping| part.private;
            let covered =
                |page: usize, pages: usize| covers(at + page * PAGE, pages * PAGE, private);
            // Page 0 and page 4 are read-only; page 2 is a mapping of its own; page 6 is a hole.
            protect(at, 1, libc::PROT_READ);
            protect(at + 4 * PAGE, 1, libc::PROT_READ);
            // SAFETY: advice about a page that this test mapped.
            unsafe { libc::madvise((at + 2 * PAGE) as *mut c_void, PAGE, libc::MADV_DONTFORK) };
            unmap(at + 6 * PAGE, 1);
            assert!(covered(1, 3) && covered(1, 1) && covered(2, 1) && covered(3, 1));
            assert!(!covered(0, 2) && !covered(0, 1) && !covered(3, 2) && !covered(4, 1));
            assert!(covers(at, 6 * PAGE, |_| true) && covered(5, 1));
            assert!(!covers(at + 5 * PAGE, 3 * PAGE, |_| true), "a hole in the middle");
            assert!(!covers(at + 5 * PAGE, 2 * PAGE, |_| true), "a hole at the end");
            assert!(!covers(at + 6 * PAGE, 2 * PAGE, |_| true), "a hole at the beginning");
            assert!(!covers(at + 6 * PAGE, PAGE, |_| true));
            let of_kernel = mappings().iter().filter(|part| part.stack).count();
            assert!(of_kernel >= 2, "a stack, and what the kernel maps for its clock");
        });
    }

    /// After a fork the pages of parent and child are apart, whichever stores first.
    #[test]
    fn a_child_has_pages_of_its_own() {
        alone(|| {
            // Enough pages that copying them takes a while.
            let (pages, length) = (4096, 4096 * PAGE);
            let at = anonymous(pages);
            let _pages = enter(at, length, true);
            let (memfd, _joined) = Pages::join(at, length, true).expect("it is exchanged");
            unmap(at, 1);
            let last = at + length - PAGE;
            // SAFETY: the child ends at once.
            unsafe {
                let child = libc::fork();
                if child == 0 {
                    let before = [load(last), load(at + PAGE)];
                    store(at + PAGE, 55);
                    let is_own = before == [(pages - 1) as u8, 1] && load(at + PAGE) == 55;
                    libc::_exit(i32::from(!is_own));
                }
                store(last, 44);
                let mut status = -1;
                libc::waitpid(child, &mut status, 0);
                assert_eq!(status, 0, "the child had what there was when it began");
            }
            assert_eq!((load(at + PAGE), seen(&memfd, PAGE)), (1, 1));
            assert_eq!(
                (load(last), seen(&memfd, length - PAGE)),
                (44, 44),
                "it is still exchanged"
            );
        });
    }
}
