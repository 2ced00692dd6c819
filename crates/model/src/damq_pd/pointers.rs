//! Head and tail pointers: two lists for each virtual port, of what came by PIO and of what came by DMA (D-02).

use super::word::Way;

/// One list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct List {
    /// Address of its first word, if it has one.
    pub head: u16,
    /// Address of its last word, if it has one.
    pub tail: u16,
    /// How many words it has.
    pub words: u16,
    /// How many of its descriptors are there with their last word, and not being read.
    pub whole: u16,
}

/// The lists of all virtual ports.
#[derive(Clone, Debug)]
pub struct Pointers {
    lists: Box<[[List; 2]]>,
}

impl Pointers {
    /// Empty lists for `ports` virtual ports.
    pub fn new(ports: usize) -> Pointers {
        Pointers { lists: vec![[List::default(); 2]; ports].into() }
    }

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

    /// Words of all lists.
    pub fn words(&self) -> usize {
        self.lists.iter().flatten().map(|list| usize::from(list.words)).sum()
    }
}
