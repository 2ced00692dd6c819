//! The address queue: for each word of the data memory, the address of the next word of its list
//! (D-02).
//!
//! DAMQ-PF keeps the same links in its *address buffer*. It registers the output of that memory
//! before it addresses the next read, so a list yields a word every other cycle. Here the link
//! drives the address inputs directly, and a list yields a word every cycle (D-05). The paper
//! describes its own circuit in Section 2, which our copy lacks.

/// One link per word.
#[derive(Clone, Debug)]
pub struct AddressQueue {
    next: Box<[u16]>,
}

impl AddressQueue {
    /// Links for `depth` words.
    pub fn new(depth: usize) -> AddressQueue {
        AddressQueue { next: vec![0; depth].into() }
    }

    /// Makes `address` the successor of `before`.
    #[inline]
    pub fn link(&mut self, before: u16, address: u16) {
        self.next[before as usize] = address;
    }

    /// The successor of `address`; undefined at the end of a list.
    #[inline]
    pub fn after(&self, address: u16) -> u16 {
        self.next[address as usize]
    }
}
