//! Descriptors mapped as memory.

use crate::memory::{Memory, Owner};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::Arc;

struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: a mapping is plain memory; it is unmapped once, by its only owner.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Owner for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        if crate::canary::planted("mapping-kept") {
            return;
        }
        // SAFETY: mapped by `map` with this length; every view borrows from a `Memory` that keeps
        // this owner alive.
        let _ = unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

/// Maps the first `bytes` bytes of `fd`, which other processes may map, too. A forked child does
/// not get the mapping.
///
/// # Errors
/// What the kernel says: no memory, or no right to it.
pub fn map(fd: BorrowedFd<'_>, bytes: usize, writable: bool) -> io::Result<Memory> {
    let protection = if writable { libc::PROT_READ | libc::PROT_WRITE } else { libc::PROT_READ };
    let anywhere = std::ptr::null_mut();
    // SAFETY: a fresh mapping at an address that the kernel chooses.
    let start =
        unsafe { libc::mmap(anywhere, bytes, protection, libc::MAP_SHARED, fd.as_raw_fd(), 0) };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // A forked child would write to memory that both processes believe to be theirs alone. Huge
    // pages are optional; copies of large regions are faster with them.
    // SAFETY: advice on the mapping just made.
    unsafe {
        libc::madvise(start, bytes, libc::MADV_DONTFORK);
        if bytes >= 2 << 20 {
            libc::madvise(start, bytes, libc::MADV_HUGEPAGE);
        }
    }
    let start = NonNull::new(start.cast::<u8>()).expect("mmap does not return null");
    let owner = Arc::new(Mapping { start, length: bytes });
    // SAFETY: mapped with these rights until `owner` is dropped.
    Ok(unsafe { Memory::from_owner(start, bytes, writable, owner) })
}
