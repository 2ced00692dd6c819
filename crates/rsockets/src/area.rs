//! Memory that queue pairs use: pages of its own, which stay where they are.

use std::io;
use std::ops::Range;
use std::ptr::NonNull;

/// Pages. Queue pairs write into them while they are registered, so they are read and written by
/// copies only.
pub struct Area {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: it owns its pages, and nothing is tied to a thread.
unsafe impl Send for Area {}

impl Area {
    /// Pages of zeros, which take memory only once they are used.
    pub fn new(length: usize) -> io::Result<Area> {
        use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
        let rights = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: new pages at a place that the kernel chooses.
        let start = unsafe {
            mmap_anonymous(std::ptr::null_mut(), length.max(1), rights, MapFlags::PRIVATE)
        }?;
        let start = NonNull::new(start.cast()).expect("no page is mapped at 0");
        Ok(Area { start, length: length.max(1) })
    }

    /// The first byte.
    pub fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Bytes.
    pub fn length(&self) -> usize {
        self.length
    }

    fn at(&self, offset: usize, length: usize) -> *mut u8 {
        assert!(offset <= self.length && length <= self.length - offset, "outside of the area");
        // SAFETY: just checked.
        unsafe { self.start.as_ptr().add(offset) }
    }

    /// Copies bytes into it.
    pub fn put(&self, offset: usize, bytes: &[u8]) {
        let to = self.at(offset, bytes.len());
        // SAFETY: the place is as long, and the program's bytes lie elsewhere.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
    }

    /// Copies bytes out of it; both ranges are of one length.
    pub fn get(&self, from: Range<usize>, to: &mut [u8]) {
        let place = self.at(from.start, to.len().min(from.len()));
        // SAFETY: as above.
        unsafe { std::ptr::copy_nonoverlapping(place, to.as_mut_ptr(), to.len().min(from.len())) };
    }

    /// Leaves the pages mapped for ever: a device still uses them.
    pub fn leak(self) {
        std::mem::forget(self);
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        // SAFETY: the pages are its own, and nobody has a reference into them.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.length) };
    }
}
