//! What a program posts: posting moves it into the queue, the completion gives it back.

use crate::MemoryRegion;
use bellwire_ring::memory::View;
use std::fmt;

/// Bytes that a descriptor names: the program's own vector, or a part of a registered region (which saves copies).
pub enum Buffer {
    /// The program's own bytes; all of its `len()` is sent, or filled by a receive.
    Vec(Vec<u8>),
    /// Part of a region.
    Region(RegionSlice),
}

/// A part of a registered region.
#[derive(Clone, Debug)]
pub struct RegionSlice {
    region: MemoryRegion,
    offset: usize,
    length: usize,
}

impl RegionSlice {
    /// The region that it is part of.
    pub fn region(&self) -> &MemoryRegion {
        &self.region
    }

    /// Where it starts in the region, in bytes.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Bytes.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}

impl MemoryRegion {
    /// The part from `offset`, `length` bytes long; panics if it does not lie inside the region, as slicing does.
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
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            Buffer::Vec(bytes) => bytes.len(),
            Buffer::Region(slice) => slice.length,
        }
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The vector that was posted; `None` if it was part of a region.
    pub fn into_vec(self) -> Option<Vec<u8>> {
        match self {
            Buffer::Vec(bytes) => Some(bytes),
            Buffer::Region(_) => None,
        }
    }

    /// The first `length` bytes as a vector of its own, whatever was posted: copies only out of a region.
    pub fn into_bytes(self, length: usize) -> Vec<u8> {
        match self {
            Buffer::Vec(mut bytes) => {
                bytes.truncate(length);
                bytes
            }
            Buffer::Region(slice) => {
                let mut bytes = vec![0; length.min(slice.length)];
                slice.region.read(slice.offset, &mut bytes);
                bytes
            }
        }
    }

    /// The bytes as the data path reads them.
    #[doc(hidden)]
    #[inline]
    pub fn view(&self) -> View<'_> {
        match self {
            Buffer::Vec(bytes) => View::of(bytes),
            Buffer::Region(slice) => slice
                .region
                .view()
                .part(slice.offset, slice.length)
                .expect("a slice lies inside its region"),
        }
    }

    /// Copies as much of `message` to the start as there is room for.
    #[doc(hidden)]
    #[inline(always)]
    pub fn fill(&mut self, message: View<'_>) {
        let bytes = message.part(0, message.len().min(self.len())).expect("not longer");
        match self {
            // Nobody else knows where a program's vector is, so it lies apart from what came in.
            Buffer::Vec(room) => View::of_mut(room).copy_apart(bytes),
            Buffer::Region(_) => self.view().copy_from(bytes),
        }
    }

    /// The bytes as the data path writes them.
    #[doc(hidden)]
    #[inline]
    pub fn view_mut(&mut self) -> View<'_> {
        match self {
            Buffer::Vec(bytes) => View::of_mut(bytes),
            Buffer::Region(_) => self.view(),
        }
    }
}

impl From<Vec<u8>> for Buffer {
    fn from(bytes: Vec<u8>) -> Self {
        Buffer::Vec(bytes)
    }
}

impl From<RegionSlice> for Buffer {
    fn from(slice: RegionSlice) -> Self {
        Buffer::Region(slice)
    }
}

impl From<&MemoryRegion> for Buffer {
    fn from(region: &MemoryRegion) -> Self {
        Buffer::Region(region.slice(0, region.len()))
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Buffer::Vec(bytes) => write!(f, "Vec({} B)", bytes.len()),
            Buffer::Region(slice) => write!(f, "Region({}+{} B)", slice.offset, slice.length),
        }
    }
}
