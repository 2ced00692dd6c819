//! Registered memory whose pages are exchanged (`bellwire_shm::pages`): the program notices
//! nothing, and peers reach it only while it is registered. Each case has a process of its own,
//! because a program with several threads keeps its pages.

use bellwire_shm::pages::Pages;
use bellwire_testkit::cases::{self, Case};
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::null_mut;

const PAGE: usize = 4096;
const LENGTH: usize = 4 * PAGE;
/// Offset of the byte that is looked at.
const AT: usize = PAGE + 5;

const CASES: [Case; 8] = [
    ("bytes_stay", bytes_stay),
    ("peers_share", peers_share),
    ("peers_may_only_read", peers_may_only_read),
    ("given_back_with_the_last", given_back_with_the_last),
    ("what_is_exchanged", what_is_exchanged),
    ("threads", threads),
    ("what_was_unmapped", what_was_unmapped),
    ("children", children),
];

/// Memory of this process, by volatile accesses: peers change it, too.
#[derive(Clone, Copy)]
struct Memory(*mut u8);

impl Memory {
    fn map(place: Option<Memory>, length: usize, flags: i32, fd: i32) -> Memory {
        let fixed = if place.is_some() { libc::MAP_FIXED } else { 0 };
        let place = place.map_or(null_mut(), |place| place.0.cast());
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, or one in the place of memory of this test.
        let start = unsafe { libc::mmap(place, length, protection, flags | fixed, fd, 0) };
        assert_ne!(start, libc::MAP_FAILED, "{}", std::io::Error::last_os_error());
        Memory(start.cast())
    }

    /// Anonymous pages, whose last one is not touched yet.
    fn new() -> Memory {
        let memory = Memory::map(None, LENGTH, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1);
        (0..LENGTH - PAGE).for_each(|at| memory.store(at, pattern(at)));
        memory
    }

    /// What a peer maps of a memfd.
    fn of_peer(memfd: &OwnedFd) -> Memory {
        Memory::map(None, LENGTH, libc::MAP_SHARED, memfd.as_raw_fd())
    }

    fn load(self, at: usize) -> u8 {
        // SAFETY: callers stay inside of mapped memory.
        unsafe { self.0.add(at).read_volatile() }
    }

    fn store(self, at: usize, byte: u8) {
        // SAFETY: as above.
        unsafe { self.0.add(at).write_volatile(byte) };
    }

    fn enter(self, length: usize, writable: bool) -> Pages {
        // SAFETY: the memory stays mapped for as long as the process lives.
        unsafe { Pages::enter(self.0 as usize, length, writable) }
    }

    /// The memfd that peers get; `None`: the pages were not exchanged.
    fn join(self, writable: bool) -> Option<(OwnedFd, Pages)> {
        Pages::join(self.0 as usize, LENGTH, writable)
    }

    fn is_as_before(self) {
        for at in 0..LENGTH {
            let expected = if at < LENGTH - PAGE { pattern(at) } else { 0 };
            assert_eq!(self.load(at), expected, "byte {at}");
        }
    }
}

fn pattern(at: usize) -> u8 {
    (at * 7 + at / PAGE + 1) as u8
}

/// The program's bytes are the same after registering and after the end.
fn bytes_stay() {
    let memory = Memory::new();
    let pages = memory.enter(LENGTH, true);
    assert!(memory.join(true).is_some(), "the pages are not exchanged");
    memory.is_as_before();
    drop(pages);
    memory.is_as_before();
}

/// Stores of each side are seen by the other one.
fn peers_share() {
    let memory = Memory::new();
    let _pages = memory.enter(LENGTH, true);
    let (memfd, _joined) = memory.join(true).expect("exchanged");
    let peer = Memory::of_peer(&memfd);
    peer.is_as_before();
    memory.store(AT, 200);
    assert_eq!(peer.load(AT), 200);
    peer.store(AT + 1, 201);
    assert_eq!(memory.load(AT + 1), 201);
}

/// Peers that may read cannot map the pages for writing, and those that may write get no others.
fn peers_may_only_read() {
    let memory = Memory::new();
    let _pages = memory.enter(LENGTH, false);
    assert!(memory.join(true).is_none());
    let (memfd, _joined) = memory.join(false).expect("exchanged");
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let fd = memfd.as_raw_fd();
    // SAFETY: a new mapping, if any.
    let place = unsafe { libc::mmap(null_mut(), LENGTH, protection, libc::MAP_SHARED, fd, 0) };
    assert_eq!(place, libc::MAP_FAILED, "a peer may write");
    memory.store(AT, 200);
    assert_eq!(memory.load(AT), 200);
}

/// With its last registration the memory is the program's alone: peers that still map the pages
/// reach nothing.
fn given_back_with_the_last() {
    let memory = Memory::new();
    let first = memory.enter(LENGTH, true);
    let second = memory.enter(LENGTH, true);
    let (memfd, joined) = memory.join(true).expect("exchanged");
    let peer = Memory::of_peer(&memfd);
    drop(first);
    drop(joined);
    peer.store(AT, 200);
    assert_eq!(memory.load(AT), 200, "given back early");
    memory.store(AT, pattern(AT));
    drop(second);
    assert!(memory.join(true).is_none());
    peer.store(AT, 200);
    memory.is_as_before();
    memory.store(AT, 100);
    assert_ne!(peer.load(AT), 100, "a peer sees it after the end");
}

/// Only anonymous private memory is exchanged, and of it only whole pages.
fn what_is_exchanged() {
    let memory = Memory::new();
    let part = memory.enter(LENGTH - 1, true);
    let (memfd, joined) = Pages::join(memory.0 as usize, LENGTH - 1, true).expect("exchanged");
    let bytes = std::fs::File::from(memfd).metadata().unwrap().len();
    assert_eq!(bytes as usize, LENGTH - PAGE, "a part of a page");
    drop((part, joined));
    let shared = Memory::map(None, LENGTH, libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1);
    let _pages = shared.enter(LENGTH, true);
    assert!(shared.join(true).is_none(), "memory that the program shares with others");
}

/// A program with a second thread keeps its pages, if that may wake by itself.
fn threads() {
    let memory = Memory::new();
    let (ends, end) = std::sync::mpsc::channel::<()>();
    let (starts, started) = std::sync::mpsc::channel();
    let thread = std::thread::Builder::new().name("other".into());
    let thread = thread
        .spawn(move || {
            starts.send(()).unwrap();
            let _ = end.recv_timeout(std::time::Duration::from_secs(86_400));
        })
        .unwrap();
    // Before that it has the name of this thread, which is one of Bellwire's.
    started.recv().unwrap();
    let pages = memory.enter(LENGTH, true);
    assert!(memory.join(true).is_none(), "a store of a thread could be lost");
    drop(pages);
    drop(ends);
    thread.join().unwrap();
    memory.is_as_before();
}

/// What the program has mapped in the place of registered memory is left alone.
fn what_was_unmapped() {
    let memory = Memory::new();
    let pages = memory.enter(LENGTH, true);
    assert!(memory.join(true).is_some());
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    let new = Memory::map(Some(memory), PAGE, flags, -1);
    new.store(5, 50);
    let protected = Memory(memory.0.wrapping_add(PAGE));
    drop(pages);
    assert_eq!((new.load(5), protected.load(5)), (50, pattern(PAGE + 5)));
    assert!(is_shared(new), "the program's own mapping was replaced");
}

/// Whether the mapping of an address is shared with others.
fn is_shared(memory: Memory) -> bool {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let line = maps.lines().find(|line| {
        let (start, rest) = line.split_once('-').unwrap();
        let end = rest.split(' ').next().unwrap();
        let [start, end] = [start, end].map(|it| usize::from_str_radix(it, 16).unwrap());
        (start..end).contains(&(memory.0 as usize))
    });
    line.unwrap().split(' ').nth(1).unwrap().ends_with('s')
}

/// A child has the bytes of the moment of its fork. What either stores then is its own.
fn children() {
    let memory = Memory::new();
    let _pages = memory.enter(LENGTH, true);
    assert!(memory.join(true).is_some());
    // SAFETY: the child only looks at memory and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let own = memory.load(AT);
        memory.store(AT + 1, 99);
        // SAFETY: ends the child.
        unsafe { libc::_exit(i32::from(own != pattern(AT))) };
    }
    assert!(child > 0);
    memory.store(AT, 200);
    let mut status = 0;
    // SAFETY: waits for our own child.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0, "the child sees a later store of its parent");
    assert_eq!(memory.load(AT + 1), pattern(AT + 1), "a store of the child");
}

/// Each case holds.
#[test]
fn each_case_holds() {
    cases::pass_alone(&CASES, "bellwire_pages");
}

/// Each fault is noticed.
#[cfg(feature = "canaries")]
#[test]
fn each_fault_is_noticed() {
    let faults = [
        ("pages-not-copied", "bytes_stay"),
        ("pages-unsealed", "peers_may_only_read"),
        ("pages-returned-early", "given_back_with_the_last"),
        ("pages-kept", "given_back_with_the_last"),
        ("pages-in-part", "what_is_exchanged"),
        ("pages-of-others", "what_is_exchanged"),
        ("pages-beside-threads", "threads"),
        ("pages-anywhere", "what_was_unmapped"),
        ("pages-of-the-child", "children"),
        ("pages-parent-first", "children"),
    ];
    cases::notice(&CASES, &faults, "bellwire_pages", 2);
}

/// What a child does. Its thread has this name, so that it counts as one of the library's.
#[test]
#[ignore = "a child of the others runs it"]
fn bellwire_pages() {
    cases::carry_out(&CASES);
}
