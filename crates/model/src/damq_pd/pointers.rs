//! Head and tail pointers: two lists for each virtual port, one for PIO and one for DMA (D-02).

use super::EVERY_PORT;
use super::word::Way;

/// One list.
// 8 bytes, so that indexing is a shift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(8))]
pub struct List {
    /// Address of its first word, or [`NONE`](List::NONE). While a descriptor is read, it stays at
    /// that descriptor's first word.
    pub head: u16,
    /// Address of its last word, or `NONE`.
    pub tail: u16,
    /// Descriptors whose last word is here and that are not being read.
    pub whole: u16,
}

impl List {
    /// The null address.
    pub const NONE: u16 = u16::MAX;

    /// An empty list.
    const EMPTY: List = List { head: Self::NONE, tail: Self::NONE, whole: 0 };

    /// Whether it is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head == Self::NONE
    }
}

/// The lists of all virtual ports.
#[derive(Clone, Debug)]
pub struct Pointers {
    lists: Box<[[List; 2]; EVERY_PORT]>,
}

impl Default for Pointers {
    fn default() -> Pointers {
        Pointers { lists: Box::new([[List::EMPTY; 2]; EVERY_PORT]) }
    }
}

impl Pointers {
    /// A list, by port and way.
    #[inline]
    pub fn list(&self, port: u8, way: Way) -> &List {
        &self.lists[port as usize][way as usize]
    }

    /// A list, by port and way, mutable.
    #[inline]
    pub fn list_mut(&mut self, port: u8, way: Way) -> &mut List {
        &mut self.lists[port as usize][way as usize]
    }
}
