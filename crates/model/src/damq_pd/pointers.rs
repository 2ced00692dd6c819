//! Head and tail pointers: two lists for each virtual port, of what came by PIO and of what came by DMA (D-02).

use super::EVERY_PORT;
use super::word::Way;

/// One list.
// Of 8 bytes, so that one is found by a shift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(8))]
pub struct List {
    /// Address of its first word, or [`NONE`](List::NONE). While a descriptor is read, the one that its first word had.
    pub head: u16,
    /// Address of its last word, or `NONE`.
    pub tail: u16,
    /// How many of its descriptors are there with their last word, and not being read.
    pub whole: u16,
}

impl List {
    /// An address at which no word lies.
    pub const NONE: u16 = u16::MAX;

    /// A list without words.
    const EMPTY: List = List { head: Self::NONE, tail: Self::NONE, whole: 0 };

    /// Whether it has no words.
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
    /// A list.
    #[inline]
    pub fn list(&self, port: u8, way: Way) -> &List {
        &self.lists[port as usize][way as usize]
    }

    /// A list, to be changed.
    #[inline]
    pub fn list_mut(&mut self, port: u8, way: Way) -> &mut List {
        &mut self.lists[port as usize][way as usize]
    }
}
