//! A deposit writes its last word last, shown deterministically. The last word has its own page,
//! which is write-protected: the first write there faults, and the handler checks that all earlier
//! bytes are there.
#![cfg(not(any(loom, miri)))]

use bellwire_ring::memory::View;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Address of the two pages. Static, because a signal handler gets no other arguments.
static MAP: AtomicUsize = AtomicUsize::new(0);
/// Address of the bytes that are expected before the last page, and their number.
static EXPECTED: AtomicUsize = AtomicUsize::new(0);
static LENGTH: AtomicUsize = AtomicUsize::new(0);
/// Number of faults on the last page, and of faults with a missing byte before it.
static STOPS: AtomicUsize = AtomicUsize::new(0);
static LATE: AtomicUsize = AtomicUsize::new(0);

fn page_size() -> usize {
    // SAFETY: only queries a number.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).expect("a page has a size")
}

/// Write-protects the second page of the map, or makes it writable.
fn lock_last_page(map: usize, locked: bool) -> bool {
    let rights = if locked { libc::PROT_READ } else { libc::PROT_READ | libc::PROT_WRITE };
    let page = page_size();
    // SAFETY: the second of the two pages that this program mapped and never gives back.
    unsafe { libc::mprotect((map + page) as *mut libc::c_void, page, rights) == 0 }
}

/// At the first write to the last page: checks the bytes before it, and lets the write continue.
extern "C" fn stopped(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    let (map, page) = (MAP.load(Ordering::SeqCst), page_size());
    // SAFETY: the kernel passes a handler with SA_SIGINFO the details of its signal.
    let at = unsafe { (*info).si_addr() } as usize;
    if !(map + page..map + 2 * page).contains(&at) || !lock_last_page(map, false) {
        // Another fault: with the default handler the retried write ends the program.
        // SAFETY: sets the default.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
        return;
    }
    STOPS.fetch_add(1, Ordering::SeqCst);
    let length = LENGTH.load(Ordering::SeqCst);
    let (there, expected) = (map + page - length, EXPECTED.load(Ordering::SeqCst));
    // SAFETY: the test keeps `length` bytes at both places during a copy.
    let late = (0..length).any(|byte| unsafe {
        ptr::read_volatile((there + byte) as *const u8)
            != ptr::read_volatile((expected + byte) as *const u8)
    });
    LATE.fetch_add(usize::from(late), Ordering::SeqCst);
}

/// At the first write of the last word, of any length up to 8 bytes, all bytes before it are there.
#[test]
fn the_last_word_comes_last() {
    let page = page_size();
    // SAFETY: new memory of two pages, and a handler that only touches it, this program's atomics
    // and the test's own memory.
    let map = unsafe {
        let map = libc::mmap(
            ptr::null_mut(),
            2 * page,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        assert_ne!(map, libc::MAP_FAILED, "two pages can be mapped");
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = stopped as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO;
        assert_eq!(libc::sigaction(libc::SIGSEGV, &action, ptr::null_mut()), 0);
        map as usize
    };
    MAP.store(map, Ordering::SeqCst);
    let bytes: Vec<u8> = (0..page + 8).map(|at| (at % 251) as u8 + 1).collect();
    let mut copies = 0;
    for tail in 1..=8 {
        for head in (0..80).chain([255, 1000, page - 9, page - 8, page]) {
            // The last word of the deposit must be the first word of the last page.
            let source = &bytes[..head + tail];
            EXPECTED.store(source.as_ptr() as usize, Ordering::SeqCst);
            LENGTH.store(head, Ordering::SeqCst);
            // SAFETY: inside the map, which nothing else uses; the map stays.
            let target = unsafe {
                ptr::write_bytes(map as *mut u8, 0, 2 * page);
                let start = NonNull::new((map + page - head) as *mut u8).expect("mapped");
                View::new(start, head + tail)
            };
            assert!(lock_last_page(map, true), "the last page can be locked");
            target.deposit(View::of(source));
            copies += 1;
            let seen = (STOPS.load(Ordering::SeqCst), LATE.load(Ordering::SeqCst));
            assert_eq!(seen, (copies, 0), "stops and late ones, with {head} bytes before {tail}");
            assert_eq!(target.to_vec(), source);
        }
    }
}

/// Canary: with the last word written first, the test above fails.
#[cfg(feature = "canaries")]
#[test]
fn a_last_word_that_is_first_is_caught() {
    let output = std::process::Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "the_last_word_comes_last"])
        .env("BELLWIRE_CANARY", "last-word-first")
        .output()
        .expect("this program can be executed");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.contains("running 1 test") && printed.contains("late ones"), "{printed}");
    assert!(!output.status.success(), "nobody noticed");
}
