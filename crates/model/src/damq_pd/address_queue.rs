//! The address queue: for each word of the data memory, where the next word of the same list lies (D-02).
//!
//! DAMQ-PF keeps the same links in its *address buffer* and has their output registered before it is the address of the next read,
//! so that a list yields a word every other cycle. Here the link that is read leads straight to the address inputs, and a list
//! yields a word every cycle (D-05). How the paper does it is lost with its Section 2.

/// A link for each word.
#[derive(Clone, Debug)]
pub struct AddressQueue {
    next: Box<[u16]>,
}

impl AddressQueue {
    /// Links for `depth` words.
    pub fn new(depth: usize) -> AddressQueue {
        AddressQueue { next: vec![0; depth].into() }
    }

    /// Notes that `address` follows `before`.
    #[inline]
    pub fn link(&mut self, before: u16, address: u16) {
        self.next[before as usize] = address;
    }

    /// What follows `address`; of no meaning at the end of a list.
    #[inline]
    pub fn after(&self, address: u16) -> u16 {
        self.next[address as usize]
    }
}
