//! Shared memory without names: memfds, sealed, reserved at creation, mapped with the least rights.

use bellwire_device::Error;
use bellwire_ring::mapping::map;
use bellwire_ring::memory::Memory;
use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags};
use rustix::mm::Advice;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// Size of a page. The device asks for 4 KiB pages, the only size of x86-64 and the common one
/// elsewhere.
pub const PAGE_BYTES: usize = 4096;

/// The rights of a peer that gets the descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sharing {
    /// Map it readable and writable.
    ReadWrite,
    /// Map it readable only: the seal refuses a writable mapping for good.
    ReadOnly,
}

/// A segment that this process made: its mapping here, and a descriptor for peers.
#[derive(Debug)]
pub struct Segment {
    pub fd: OwnedFd,
    pub memory: Memory,
}

/// Makes a zeroed segment of `bytes`, rounded up to pages. The first `reserved` bytes are allocated
/// at once: a lack of memory is an error here, and never a signal later.
pub fn create(
    purpose: &'static str,
    bytes: usize,
    reserved: usize,
    sharing: Sharing,
) -> Result<Segment, Error> {
    let bytes = bytes.next_multiple_of(PAGE_BYTES);
    let refused = |error: rustix::io::Errno| match error {
        rustix::io::Errno::MFILE => Error::Exhausted {
            what: "open files of this process",
            limit: rustix::process::getrlimit(rustix::process::Resource::Nofile)
                .current
                .unwrap_or(u64::MAX),
            hint: "Raise it (`ulimit -n`), or have fewer functions, peers and regions",
        },
        error => Error::NoMemory { bytes, purpose, why: reason(error) },
    };
    let fd = rustix::fs::memfd_create(
        format!("bellwire {purpose}"),
        MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING,
    )
    .map_err(refused)?;
    rustix::fs::ftruncate(&fd, bytes as u64).map_err(refused)?;
    if reserved > 0 {
        rustix::fs::fallocate(&fd, FallocateFlags::empty(), 0, reserved as u64).map_err(refused)?;
    }
    let memory = map(fd.as_fd(), bytes, true).map_err(|error| {
        refused(rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO))
    })?;
    let mut seals = SealFlags::SHRINK | SealFlags::GROW;
    if sharing == Sharing::ReadOnly {
        // Our own writable mapping exists already and stays writable.
        seals |= SealFlags::FUTURE_WRITE;
    }
    rustix::fs::fcntl_add_seals(&fd, seals | SealFlags::SEAL).map_err(refused)?;
    Ok(Segment { fd, memory })
}

/// Maps a segment that a peer made. It must have exactly `bytes` and be sealed against shrinking.
/// Otherwise the peer could turn our next access into SIGBUS.
pub fn adopt(fd: &OwnedFd, bytes: usize, writable: bool) -> io::Result<Memory> {
    let bytes = bytes.next_multiple_of(PAGE_BYTES);
    let size = rustix::fs::fstat(fd)?.st_size;
    if u64::try_from(size) != Ok(bytes as u64) {
        return Err(io::Error::other(format!(
            "the peer's segment has {size} bytes, expected {bytes}"
        )));
    }
    if !rustix::fs::fcntl_get_seals(fd)?.contains(SealFlags::SHRINK) {
        return Err(io::Error::other("the peer's segment is not sealed against shrinking"));
    }
    map(fd.as_fd(), bytes, writable)
}

/// Allocates the pages `offset..offset + bytes` of `memory` now. `false`: not enough memory.
pub fn populate(memory: &Memory, offset: usize, bytes: usize) -> bool {
    let part = memory.view().part(offset, bytes).expect("a part of the segment");
    // SAFETY: advice on our own mapping; it allocates pages and changes no byte.
    unsafe { rustix::mm::madvise(part.as_ptr().cast(), bytes, Advice::LinuxPopulateWrite) }.is_ok()
}

/// Gives the memory of pages `offset..offset + bytes` back to the system; they read as zero
/// afterwards.
pub fn release(memory: &Memory, offset: usize, bytes: usize) {
    let part = memory.view().part(offset, bytes).expect("a part of the segment");
    // SAFETY: the pages are ours and the peer's, and nothing in them is in use (the caller's
    // condition).
    let _ = unsafe { libc::madvise(part.as_ptr().cast(), bytes, libc::MADV_REMOVE) };
}

fn reason(error: rustix::io::Errno) -> String {
    use rustix::io::Errno;
    match error {
        Errno::NOMEM | Errno::NOSPC => "the system or the container has not enough memory".into(),
        Errno::NFILE => "the system has too many open files".into(),
        Errno::NOSYS | Errno::PERM => "memfd_create is not allowed here (seccomp?)".into(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A segment has whole pages, and a peer maps it with the rights that it was made for.
    #[test]
    fn segments_are_mapped_with_their_rights() {
        for (bytes, all) in [(1, 4096), (4096, 4096), (5000, 8192)] {
            let made = create("test", bytes, bytes, Sharing::ReadWrite).expect("memory");
            assert_eq!(made.memory.len(), all);
            let theirs = adopt(&made.fd, bytes, true).expect("it is sealed");
            theirs.view().write(7, b"words");
            assert_eq!(made.memory.view().part(7, 5).expect("a part").to_vec(), b"words");
            adopt(&made.fd, all + 1, true).expect_err("it is shorter");
            adopt(&made.fd, all - 4096, true).expect_err("it is longer");
            rustix::fs::ftruncate(&made.fd, 0).expect_err("it is sealed");
            let read_only = create("test", bytes, 0, Sharing::ReadOnly).expect("memory");
            adopt(&read_only.fd, bytes, true).expect_err("nobody else may write");
            let theirs = adopt(&read_only.fd, bytes, false).expect("it may be read");
            read_only.memory.view().write(0, b"words");
            assert_eq!(theirs.view().part(0, 5).expect("a part").to_vec(), b"words");
        }
        let unsealed = rustix::fs::memfd_create("test", MemfdFlags::ALLOW_SEALING).expect("memory");
        rustix::fs::ftruncate(&unsealed, 4096).expect("memory");
        let said = adopt(&unsealed, 4096, true).expect_err("it is not sealed").to_string();
        assert!(said.contains("not sealed"), "{said}");
    }

    /// Pages are there when they were asked for, and read as zero once they were given back.
    #[test]
    fn pages_come_and_go() {
        let made = create("test", 4 * PAGE_BYTES, PAGE_BYTES, Sharing::ReadWrite).expect("memory");
        let blocks = || rustix::fs::fstat(&made.fd).expect("a size").st_blocks * 512;
        assert_eq!(blocks(), PAGE_BYTES as i64);
        assert!(populate(&made.memory, PAGE_BYTES, 2 * PAGE_BYTES));
        assert_eq!(blocks(), 3 * PAGE_BYTES as i64);
        made.memory.view().write(PAGE_BYTES, b"words");
        made.memory.view().write(0, b"words");
        release(&made.memory, PAGE_BYTES, 2 * PAGE_BYTES);
        assert_eq!(blocks(), PAGE_BYTES as i64);
        assert_eq!(made.memory.view().part(PAGE_BYTES, 5).expect("a part").to_vec(), [0; 5]);
        assert_eq!(made.memory.view().part(0, 5).expect("a part").to_vec(), b"words");
    }

    /// A lack of memory says what the cause may be.
    #[test]
    fn reasons_are_told() {
        use rustix::io::Errno;
        for (error, part) in [
            (Errno::NOMEM, "not enough memory"),
            (Errno::NOSPC, "not enough memory"),
            (Errno::NFILE, "open files"),
            (Errno::NOSYS, "seccomp"),
            (Errno::PERM, "seccomp"),
        ] {
            assert!(reason(error).contains(part), "{error}");
        }
        assert_eq!(reason(Errno::IO), Errno::IO.to_string());
    }
}
