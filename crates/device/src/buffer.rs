//! Buffers that a program posts: posting moves them into the queue, the completion returns them.

use crate::MemoryRegion;
use bellwire_ring::memory::{Memory, View};
use bellwire_ring::piece::{Holder, Piece};
use std::fmt;

/// Bytes that a descriptor names: the program's own vector, or a part of a registered region (which
/// saves copies).
///
/// Made of a `Vec<u8>`, a [`RegionSlice`] or a whole region. Of a vector, a send takes all `len()`
/// bytes, and a receive fills at most `len()`.
pub struct Buffer(Piece<MemoryRegion>);

/// A part of a registered region.
#[derive(Clone, Debug)]
pub struct RegionSlice {
    region: MemoryRegion,
    offset: usize,
    length: usize,
}

impl RegionSlice {
    /// The region of the slice.
    #[must_use]
    pub fn region(&self) -> &MemoryRegion {
        &self.region
    }

    /// Its offset in the region, in bytes.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}

impl MemoryRegion {
    /// The part from `offset`, `length` bytes long. Panics if it does not lie inside the region, as
    /// slicing does.
    #[must_use]
    pub fn slice(&self, offset: usize, length: usize) -> RegionSlice {
        assert!(
            offset <= self.len() && length <= self.len() - offset,
            "slice {offset}+{length} of a region of {} bytes",
            self.len()
        );
        RegionSlice { region: self.clone(), offset, length }
    }
}

impl Buffer {
    /// Bytes.
    #[inline(always)]
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The bytes, if they are a vector's. `None` if they are part of a region, because peers may
    /// change those at any time.
    #[inline]
    #[must_use]
    pub fn as_slice(&self) -> Option<&[u8]> {
        self.0.as_slice()
    }

    /// The region of the buffer; `None` if it is a vector.
    #[inline]
    #[must_use]
    pub fn region(&self) -> Option<&MemoryRegion> {
        self.0.holder()
    }

    /// Its offset in its region, in bytes; 0 for a vector.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.0.offset()
    }

    /// The vector that was posted; `None` if it was part of a region.
    #[must_use]
    pub fn into_vec(self) -> Option<Vec<u8>> {
        self.0.into_vec().ok()
    }

    /// The first `length` bytes as a vector. Copies only if the buffer is part of a region.
    #[must_use]
    pub fn into_bytes(self, length: usize) -> Vec<u8> {
        match self.0.into_vec() {
            Ok(mut bytes) => {
                bytes.truncate(length);
                bytes
            }
            Err(piece) => piece.view().part(0, length.min(piece.len())).expect("inside").to_vec(),
        }
    }

    /// The bytes, for the data path to read.
    #[doc(hidden)]
    #[inline(always)]
    #[must_use]
    pub fn view(&self) -> View<'_> {
        self.0.view()
    }

    /// Copies the part of `message` that fits to the start.
    #[doc(hidden)]
    #[inline(always)]
    pub fn fill(&mut self, message: View<'_>) {
        let bytes = message.part(0, message.len().min(self.len())).expect("not longer");
        self.0.view_mut().copy_from(bytes);
    }

    /// The bytes, for the data path to write.
    #[doc(hidden)]
    #[inline]
    pub fn view_mut(&mut self) -> View<'_> {
        self.0.view_mut()
    }
}

impl Holder for MemoryRegion {
    fn memory(&self) -> &Memory {
        self.memory()
    }
}

impl From<Vec<u8>> for Buffer {
    #[inline]
    fn from(bytes: Vec<u8>) -> Self {
        Buffer(Piece::of_vec(bytes))
    }
}

impl From<RegionSlice> for Buffer {
    fn from(RegionSlice { region, offset, length }: RegionSlice) -> Self {
        Buffer(Piece::of_part(region, offset, length))
    }
}

impl From<&MemoryRegion> for Buffer {
    fn from(region: &MemoryRegion) -> Self {
        Buffer::from(region.slice(0, region.len()))
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.region() {
            None => write!(f, "Vec({} B)", self.len()),
            Some(_) => write!(f, "Region({}+{} B)", self.offset(), self.len()),
        }
    }
}
