//! Memory that several forked processes share, and waiting through it.

use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Result, ensure};

/// Bytes between two control words: two cache lines, because prefetchers fetch pairs of lines.
const WORD_STRIDE: usize = 128;

/// Control words at the start of the memory.
const WORDS: usize = 32;

/// Anonymous memory, shared with every process forked after its creation. It has no name, so
/// nothing of it can be left behind.
#[derive(Clone, Copy)]
pub struct SharedMemory {
    base: *mut u8,
    data_bytes: usize,
}

impl SharedMemory {
    /// Maps [`WORDS`] control words and `data_bytes` of data, all zero and present. It stays mapped
    /// until the process ends.
    pub fn map(data_bytes: usize) -> Result<SharedMemory> {
        // SAFETY: a new anonymous mapping at an address of the kernel's choice touches no memory of
        // this program.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                WORDS * WORD_STRIDE + data_bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_POPULATE,
                -1,
                0,
            )
        };
        ensure!(
            base != libc::MAP_FAILED,
            "cannot share {data_bytes} bytes with a child process: {}",
            std::io::Error::last_os_error()
        );
        Ok(SharedMemory { base: base.cast(), data_bytes })
    }

    /// Control word `index`, alone on its cache line.
    pub fn word(&self, index: usize) -> &'static AtomicU64 {
        assert!(index < WORDS, "no control word {index}");
        // SAFETY: the word is aligned, inside the mapping, zero at first, never unmapped, and only
        // used as an atomic.
        unsafe { &*self.base.add(index * WORD_STRIDE).cast() }
    }

    /// Address of `len` data bytes at `offset`. The processes must take turns with it through
    /// control words.
    pub fn data(&self, offset: usize, len: usize) -> *mut u8 {
        assert!(offset + len <= self.data_bytes, "{offset} + {len} is outside the shared memory");
        // SAFETY: the assertion keeps the address inside the mapping.
        unsafe { self.base.add(WORDS * WORD_STRIDE + offset) }
    }
}

/// Private memory of `bytes` whose pages are all present.
pub fn touched(bytes: usize) -> Vec<u8> {
    vec![0x5a; bytes]
}

/// Waits with `pause` until `done`.
#[inline(always)]
pub fn spin_until(mut done: impl FnMut() -> bool) {
    while !done() {
        std::hint::spin_loop();
    }
}

/// Makes two parties wait for each other: each adds one to its word (index 0 or 1) and waits for
/// the other's word to catch up. Afterwards both are awake and running.
pub fn meet(shared: SharedMemory, index: usize) {
    // Only this party writes its own word. Release here pairs with the other party's Acquire.
    let own = shared.word(index).load(Ordering::Relaxed) + 1;
    shared.word(index).store(own, Ordering::Release);
    spin_until(|| shared.word(1 - index).load(Ordering::Acquire) >= own);
}
