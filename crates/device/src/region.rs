//! Registered memory: rights, keys, and the owner's handle.

use crate::FunctionAddress;
use bellwire_ring::memory::{Memory, View};
use std::sync::Arc;

bitflags::bitflags! {
    /// Rights of peers that hold a region's key. The owner has all rights.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub struct Rights: u8 {
        /// GET from it.
        const REMOTE_READ = 1;
        /// PUT to it.
        const REMOTE_WRITE = 2;
        /// Fetch-add and compare-swap on it.
        const REMOTE_ATOMIC = 4;
    }
}

/// A peer's access to a region. Pass it to the peer in a message ([`RemoteKey::to_bytes`]).
///
/// The protection key (C-09) has 64 random bits here, not the paper's 8: it cannot be guessed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RemoteKey {
    /// Node that owns the region.
    pub node: u32,
    /// Function that owns the region.
    pub function: u8,
    /// Index of the region in the function's table; it saves a search, and `key` is checked there.
    pub index: u16,
    /// The secret: 64 random bits, never zero.
    pub key: u64,
    /// Bytes in the region.
    pub length: u64,
}

impl RemoteKey {
    /// Bytes of [`RemoteKey::to_bytes`].
    pub const BYTES: usize = 24;

    /// Little-endian, for a message: key, length, node, index, function, zero.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[0..8].copy_from_slice(&self.key.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.length.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.node.to_le_bytes());
        bytes[20..22].copy_from_slice(&self.index.to_le_bytes());
        bytes[22] = self.function;
        bytes
    }

    /// The inverse of [`RemoteKey::to_bytes`]; `None` if the bytes cannot be a key (wrong length,
    /// zero key).
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::BYTES] = bytes.try_into().ok()?;
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        let key = RemoteKey {
            key: word(0),
            length: word(8),
            node: u32::from_le_bytes(bytes[16..20].try_into().expect("4 bytes")),
            index: u16::from_le_bytes(bytes[20..22].try_into().expect("2 bytes")),
            function: bytes[22],
        };
        (key.key != 0 && bytes[23] == 0).then_some(key)
    }
}

/// A part of a peer's region: the target of a put, or the source of a get.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RemoteSlice {
    /// The region.
    pub key: RemoteKey,
    /// Its offset in the region, in bytes.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
}

/// An 8-byte word of a peer's region, for atomics.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RemoteAt {
    /// The region.
    pub key: RemoteKey,
    /// The word's offset in the region, in bytes: a multiple of 8.
    pub offset: u64,
}

impl RemoteKey {
    /// The part from `offset`, `length` bytes long. The post checks the bounds.
    #[must_use]
    pub const fn slice(self, offset: u64, length: u64) -> RemoteSlice {
        RemoteSlice { key: self, offset, length }
    }

    /// The word at `offset`. The post checks bounds and alignment.
    #[must_use]
    pub const fn at(self, offset: u64) -> RemoteAt {
        RemoteAt { key: self, offset }
    }

    /// The function that owns the region.
    #[must_use]
    pub const fn owner(self) -> FunctionAddress {
        FunctionAddress { node: self.node, function: self.function }
    }
}

impl From<RemoteKey> for RemoteSlice {
    fn from(key: RemoteKey) -> Self {
        key.slice(0, key.length)
    }
}

/// Memory that is registered with a function (`Function::allocate_region` has an example). Clones
/// refer to the same region. `Function::deregister` returns it.
///
/// Peers with the rights may change the bytes at any time, so they are copied in and out, never
/// borrowed.
#[derive(Clone, Debug)]
pub struct MemoryRegion(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    memory: Memory,
    rights: Rights,
    key: RemoteKey,
}

impl MemoryRegion {
    /// Made by the engine when the function registers memory.
    #[doc(hidden)]
    pub fn new(memory: Memory, rights: Rights, key: RemoteKey) -> Self {
        MemoryRegion(Arc::new(Inner { memory, rights, key }))
    }

    /// Whether there are more references than this handle and the engine's: another handle, or a
    /// descriptor.
    #[doc(hidden)]
    #[must_use]
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 2
    }

    /// The key for peers.
    #[must_use]
    pub fn remote_key(&self) -> RemoteKey {
        self.0.key
    }

    /// The rights of peers.
    #[must_use]
    pub fn rights(&self) -> Rights {
        self.0.rights
    }

    /// Bytes.
    #[allow(clippy::len_without_is_empty)] // A region has at least one byte.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.memory.len()
    }

    /// Copies bytes out. Panics if they do not lie inside the region, as slicing does.
    pub fn read(&self, offset: usize, into: &mut [u8]) {
        self.0.memory.view().read(offset, into);
    }

    /// Copies bytes in. Panics if they do not lie inside the region, as slicing does.
    pub fn write(&self, offset: usize, from: &[u8]) {
        self.0.memory.view().write(offset, from);
    }

    /// Reads the 8-byte word at `offset`. Bytes that were put before it are visible too (acquire).
    /// Panics if misaligned or outside.
    #[must_use]
    pub fn load_u64(&self, offset: usize) -> u64 {
        self.0.memory.view().load(offset).expect("an aligned word inside the region")
    }

    /// Writes the 8-byte word at `offset` after all earlier writes (release). Panics if misaligned
    /// or outside.
    pub fn store_u64(&self, offset: usize, value: u64) {
        self.0.memory.view().store(offset, value).expect("an aligned word inside the region");
    }

    /// The bytes, for the data path.
    #[doc(hidden)]
    #[must_use]
    pub fn view(&self) -> View<'_> {
        self.0.memory.view()
    }

    /// The memory. Clones of it share the bytes.
    #[doc(hidden)]
    #[must_use]
    pub fn memory(&self) -> &Memory {
        &self.0.memory
    }

    /// Takes the memory out, to return it. It is unshared if this was the last handle.
    #[doc(hidden)]
    #[must_use]
    pub fn into_memory(self) -> Memory {
        match Arc::try_unwrap(self.0) {
            Ok(alone) => alone.memory,
            Err(shared) => shared.memory.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_survive_a_message() {
        let key = RemoteKey {
            node: 7,
            function: 3,
            index: 12,
            key: 0xdead_beef_0102_0304,
            length: 1 << 40,
        };
        assert_eq!(RemoteKey::from_bytes(&key.to_bytes()), Some(key));
        assert_eq!(RemoteKey::from_bytes(&[0; 24]), None, "key zero does not exist");
        assert_eq!(RemoteKey::from_bytes(&[1; 23]), None);
    }
}
