//! Mapped memory, regions among it, and prefetching of received frames.

use bellwire_device::Error;
use bellwire_ring::memory::{Memory, Owner};
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

/// A mapping, readable and writable, that ends when this is dropped.
pub(crate) struct Mapping {
    pub start: NonNull<u8>,
    length: usize,
}

// SAFETY: an address and a length; the owner decides who may access the bytes.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Owner for Mapping {}

impl Mapping {
    /// Maps `length` bytes: of `fd` at `offset`, or zeroed ones.
    pub fn new(
        fd: Option<(BorrowedFd<'_>, u64)>,
        length: usize,
        flags: MapFlags,
    ) -> io::Result<Mapping> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let start = unsafe {
            match fd {
                Some((fd, offset)) => mmap(null_mut(), length, access, flags, fd, offset),
                None => mmap_anonymous(null_mut(), length, access, flags),
            }
        }?;
        let start = NonNull::new(start.cast()).expect("a mapping is not at address zero");
        Ok(Mapping { start, length })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping that `new` made; the memory that used it is gone.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.length) };
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
    let pages = Mapping::new(None, length, MapFlags::PRIVATE);
    let pages = pages.map_err(|error| no_memory(error.to_string()))?;
    // SAFETY: the pages stay mapped, readable and writable, until their owner is dropped.
    Ok(unsafe { Memory::from_owner(pages.start, length, true, Arc::new(pages)) })
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Regions are zeroed, and may be as large as the machine's memory but no larger.
    #[test]
    fn a_region_fits_into_the_machine() {
        assert!(matches!(allocate(0), Err(Error::OutOfRange { value: 0, .. })));
        let memory = allocate(64 << 20).expect("there is so much");
        assert_eq!(memory.len(), 64 << 20);
        let mut end = [7; 8];
        memory.view().read((64 << 20) - 8, &mut end);
        assert_eq!(end, [0; 8]);
        let machine = rustix::param::page_size() as u64 * physical_pages();
        let says_so = |length: u64| match allocate(length as usize) {
            Err(Error::NoMemory { why, .. }) => why == format!("the machine has {machine} bytes"),
            _ => false,
        };
        assert!(says_so(machine + 1) && says_so(u64::MAX / 2));
        assert!(!says_so(machine), "the kernel decides that");
    }
}
