//! The memory that frames lie in (UMEM): chunks of one size, locked, shared with the kernel or with
//! the card itself (H-20).

use crate::memory::Mapping;
use rustix::mm::MapFlags;
use std::io;
use std::ptr::NonNull;

/// Headroom that the kernel keeps before a received frame.
const HEADROOM_BYTES: usize = 256;
/// Chunks have 2 KiB, or a page if frames do not fit in 2 KiB.
const CHUNK_BYTES: [usize; 2] = [2048, 4096];

pub(super) struct Umem {
    memory: Mapping,
    pub chunk_bytes: usize,
    pub chunks: usize,
}

/// The chunk size for frames of at most `largest` bytes; `None` if no chunk holds them.
pub(super) fn chunk_bytes(largest: usize) -> Option<usize> {
    CHUNK_BYTES.into_iter().find(|bytes| bytes - HEADROOM_BYTES >= largest)
}

impl Umem {
    pub fn new(chunk_bytes: usize, chunks: usize) -> io::Result<Umem> {
        let flags = MapFlags::PRIVATE | MapFlags::POPULATE;
        let memory = Mapping::new(None, chunk_bytes * chunks, flags)?;
        Ok(Umem { memory, chunk_bytes, chunks })
    }

    /// The registration for the kernel.
    pub fn registration(&self) -> libc::xdp_umem_reg_v1 {
        libc::xdp_umem_reg_v1 {
            addr: self.memory.start.as_ptr() as u64,
            len: (self.chunk_bytes * self.chunks) as u64,
            chunk_size: self.chunk_bytes as u32,
            headroom: 0,
        }
    }

    /// The chunk that an address lies in.
    pub fn chunk_of(&self, address: u64) -> u64 {
        address & !(self.chunk_bytes as u64 - 1)
    }

    /// `length` bytes at `address`, which the kernel has handed over; `None` if they do not lie in
    /// one chunk.
    #[inline]
    pub fn bytes(&self, address: u64, length: usize) -> Option<&[u8]> {
        let at = self.place(address, length)?;
        // SAFETY: inside the mapping; the chunk is ours until it is given back, and then nothing
        // borrows it.
        Some(unsafe { std::slice::from_raw_parts(at.as_ptr(), length) })
    }

    /// A chunk of ours, for writing.
    #[inline]
    pub fn bytes_mut(&mut self, address: u64, length: usize) -> &mut [u8] {
        let at = self.place(address, length).expect("a chunk that we numbered");
        // SAFETY: as in `bytes`; and only we write there until it is handed over.
        unsafe { std::slice::from_raw_parts_mut(at.as_ptr(), length) }
    }

    fn place(&self, address: u64, length: usize) -> Option<NonNull<u8>> {
        let chunk = self.chunk_of(address);
        let offset = (address - chunk) as usize;
        let all = (self.chunk_bytes * self.chunks) as u64;
        if chunk >= all || length > self.chunk_bytes - offset {
            return None;
        }
        // SAFETY: the chunk lies inside the mapping, and the offset inside the chunk.
        Some(unsafe { self.memory.start.add(address as usize) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A chunk holds a frame and the kernel's headroom.
    #[test]
    fn chunks_are_as_large_as_frames_need() {
        let sizes = [60, 1792, 1793, 3840, 3841].map(chunk_bytes);
        assert_eq!(sizes, [Some(2048), Some(2048), Some(4096), Some(4096), None]);
    }

    /// What the kernel names lies in one chunk of ours, or is refused.
    #[test]
    fn bytes_outside_of_a_chunk_are_refused() {
        let mut umem = Umem::new(2048, 4).expect("memory");
        umem.bytes_mut(2 * 2048 + 256, 100).fill(7);
        assert_eq!(umem.bytes(2 * 2048 + 256, 100), Some(&[7; 100][..]));
        assert_eq!(umem.bytes(2 * 2048 + 255, 102).map(|it| (it[0], it[101])), Some((0, 0)));
        assert_eq!(umem.chunk_of(2 * 2048 + 256), 2 * 2048);
        for (address, length, is_there) in [
            (0, 2048, true),
            (0, 2049, false),
            (3 * 2048, 2048, true),
            (3 * 2048 + 2047, 1, true),
            (3 * 2048 + 2047, 2, false),
            (4 * 2048, 1, false),
            (4 * 2048, 0, false),
            (u64::MAX, 1, false),
            (1000, 1048, true),
            (1000, 1049, false),
        ] {
            assert_eq!(umem.bytes(address, length).is_some(), is_there, "{length} at {address}");
        }
        let told = umem.registration();
        assert_eq!((told.len, told.chunk_size, told.headroom), (8192, 2048, 0));
        assert_eq!(told.addr, umem.memory.start.as_ptr() as u64);
    }
}
