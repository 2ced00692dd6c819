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
