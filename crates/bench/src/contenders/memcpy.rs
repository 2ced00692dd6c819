//! Limit of every put: one process copies from its own memory into memory that another process has
//! mapped too.

use std::time::Instant;

use anyhow::Result;

use super::{Contender, Kind, Start};
use crate::op::{LARGEST_BYTES, Op, Wire};
use crate::worker::{InHouse, Outcome, Party, SharedMemory, Side, touched};

/// The C library's copy.
pub const PLAIN: Contender = Contender {
    name: "memcpy",
    about: "memcpy into shared memory",
    kind: Kind::Limit,
    wires: &[Wire::Memory],
    start: Start::InHouse(InHouse {
        shared_bytes: LARGEST_BYTES,
        ..InHouse::pair(&[Op::PutStream], |party| Ok(Copier::open(party, plain)))
    }),
};

/// A copy with stores that bypass the caches.
pub const NON_TEMPORAL: Contender = Contender {
    name: "memcpy-nt",
    about: "the same with non-temporal stores",
    kind: Kind::Limit,
    wires: &[Wire::Memory],
    start: Start::InHouse(InHouse {
        shared_bytes: LARGEST_BYTES,
        ..InHouse::pair(&[Op::PutStream], |party| Ok(Copier::open(party, non_temporal)))
    }),
};

struct Copier {
    index: usize,
    shared: SharedMemory,
    source: Vec<u8>,
    copy: fn(&[u8], *mut u8),
}

impl Copier {
    fn open(party: &Party, copy: fn(&[u8], *mut u8)) -> Box<dyn Side> {
        let source = touched(LARGEST_BYTES);
        Box::new(Copier { index: party.index, shared: party.shared, source, copy })
    }
}

impl Side for Copier {
    fn run(&mut self, _op: Op, bytes: usize, count: u64) -> Result<Outcome> {
        let target = self.shared.data(0, bytes);
        let start = Instant::now();
        if self.index == 0 {
            for _ in 0..count {
                (self.copy)(&self.source[..bytes], target);
            }
        }
        Ok(Outcome::since(start))
    }
}

/// Copies `source` to `target`, which has room for it and which no other code uses.
fn plain(source: &[u8], target: *mut u8) {
    // SAFETY: the caller gives room; private and shared memory do not overlap.
    unsafe { std::ptr::copy_nonoverlapping(source.as_ptr(), target, source.len()) };
}

/// The same copy by 16-byte streaming stores; here both sides are page-aligned and a multiple of 64
/// bytes long.
#[cfg(target_arch = "x86_64")]
fn non_temporal(source: &[u8], target: *mut u8) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};

    assert!(source.len().is_multiple_of(64) && target.addr().is_multiple_of(16));
    for offset in (0..source.len()).step_by(64) {
        for part in (offset..offset + 64).step_by(16) {
            // SAFETY: source and target have `source.len()` bytes, including these 16; the target
            // is aligned.
            unsafe {
                let value = _mm_loadu_si128(source.as_ptr().add(part).cast::<__m128i>());
                _mm_stream_si128(target.add(part).cast::<__m128i>(), value);
            }
        }
    }
    // SAFETY: every x86-64 processor has it; it orders the streaming stores before later stores.
    unsafe { _mm_sfence() };
}

/// There is no portable non-temporal store: other processors use the plain copy.
#[cfg(not(target_arch = "x86_64"))]
fn non_temporal(source: &[u8], target: *mut u8) {
    plain(source, target);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both copies copy every byte.
    #[test]
    fn copies_are_whole() {
        let source: Vec<u8> = (0..4096).map(|at| (at % 251) as u8).collect();
        for copy in [plain, non_temporal] {
            let shared = SharedMemory::map(4096).expect("a page of memory");
            copy(&source, shared.data(0, 4096));
            // SAFETY: the copy above wrote these bytes, and no other code uses the memory.
            let target = unsafe { std::slice::from_raw_parts(shared.data(0, 4096), 4096) };
            assert_eq!(source, target);
        }
    }
}
