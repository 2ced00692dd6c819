//! Memory for regions, and prefetching of received frames.

use bellwire_device::Error;
use bellwire_ring::memory::{Memory, Owner};
use std::ptr::NonNull;
use std::sync::Arc;

/// Zeroed pages of this process.
struct Pages {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: an address and a length; the views decide who may access the bytes.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Owner for Pages {}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the mapping that `allocate` made; the memory that used it is gone.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

/// `length` zeroed bytes.
///
/// # Errors
/// [`Error::OutOfRange`] for no bytes, [`Error::NoMemory`] for more than there are.
pub(crate) fn allocate(length: usize) -> Result<Memory, Error> {
    if length == 0 {
        let (parameter, range) = ("length", "at least 1 byte");
        return Err(Error::OutOfRange { parameter, value: 0, range });
    }
    let no_memory = |why: String| Error::NoMemory { bytes: length, purpose: "region", why };
    let machine = rustix::param::page_size() as u64 * physical_pages();
    if length as u64 > machine {
        return Err(no_memory(format!("the machine has {machine} bytes")));
    }
    // SAFETY: a new anonymous mapping.
    let start = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            length,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if start == libc::MAP_FAILED {
        return Err(no_memory(std::io::Error::last_os_error().to_string()));
    }
    let start = NonNull::new(start.cast()).expect("a mapping is not at address zero");
    // SAFETY: the pages stay mapped, readable and writable, until their owner is dropped.
    Ok(unsafe { Memory::from_owner(start, length, true, Arc::new(Pages { start, length })) })
}

fn physical_pages() -> u64 {
    // SAFETY: a query without side effects.
    unsafe { libc::sysconf(libc::_SC_PHYS_PAGES) }.max(0) as u64
}

/// Prefetches all cache lines of a frame that another processor wrote. Otherwise the CRC, a chain
/// of dependent steps, would wait for one transfer after the other.
#[inline]
pub(crate) fn fetch(frame: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    for line in frame.chunks(64) {
        // SAFETY: a hint that accesses nothing.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = frame;
}
