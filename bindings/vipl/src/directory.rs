//! Directories: registered memory as peers see it. A program hands its peer an address and a memory
//! handle of 32 bits, but Bellwire's keys are longer. So each protection tag has a directory: a
//! region that connected peers may read, with one entry for each place of the table of registered
//! memory. A peer fetches the entry of a handle when it first uses the handle.
//!
//! A directory lists regions of its tag only, so a VI cannot reach regions of other tags.

use crate::abi::Return;
use crate::table::{REGIONS, place_of};
use bellwire::{Function, MemoryRegion, RemoteKey, RemoteSlice, Rights};

/// Bytes of an entry.
///
/// ```text
///   0        4        8        16       24                48       52      56
///   +--------+--------+--------+--------+------------------+--------+-------+
///   | handle | rights |  base  | length |       key        | handle |   0   |
///   +--------+--------+--------+--------+------------------+--------+-------+
/// ```
/// The handle stands twice, and one of them is zero while the entry changes. A reader that sees two
/// different handles sees no region.
pub const ENTRY_BYTES: usize = 56;

/// A peer's region, as its directory lists it.
#[derive(Clone, Copy, Debug)]
pub struct Listed {
    pub rights: Rights,
    pub base: u64,
    pub length: u64,
    pub key: RemoteKey,
}

/// The directory of one tag.
pub struct Directory {
    region: MemoryRegion,
}

impl Directory {
    pub fn open(function: &mut Function) -> Result<Directory, Return> {
        let region = function.allocate_region(REGIONS * ENTRY_BYTES, Rights::REMOTE_READ);
        Ok(Directory { region: region.map_err(|_| Return::ErrorResource)? })
    }

    pub fn close(self, function: &mut Function) {
        let _ = function.deregister_foreign(&self.region);
    }

    pub fn key(&self) -> RemoteKey {
        self.region.remote_key()
    }

    /// Removes the entry of `place`.
    pub fn hide(&self, place: u16) {
        self.region.store_u64(place as usize * ENTRY_BYTES, 0);
        self.region.store_u64(place as usize * ENTRY_BYTES + 48, 0);
    }

    /// Writes the entry of `place`; `None`: peers may not reach the region.
    pub fn enter(&self, place: u16, handle: u32, listed: Option<Listed>) {
        self.hide(place);
        let Some(listed) = listed else { return };
        let at = place as usize * ENTRY_BYTES;
        let mut bytes = [0; 40];
        bytes[..8].copy_from_slice(&listed.base.to_le_bytes());
        bytes[8..16].copy_from_slice(&listed.length.to_le_bytes());
        bytes[16..].copy_from_slice(&listed.key.to_bytes());
        self.region.write(at + 8, &bytes);
        self.region.store_u64(at + 48, u64::from(handle));
        self.region.store_u64(at, u64::from(handle) | u64::from(listed.rights.bits()) << 32);
    }
}

/// Where the entry of `handle` is in the directory behind `key`.
pub fn entry_of(key: RemoteKey, handle: u32) -> RemoteSlice {
    key.slice(u64::from(place_of(handle)) * ENTRY_BYTES as u64, ENTRY_BYTES as u64)
}

/// Parses a fetched entry of `handle`; `None`: no such region for this peer.
pub fn parse_entry(bytes: &[u8], handle: u32) -> Option<Listed> {
    let bytes: &[u8; ENTRY_BYTES] = bytes.try_into().ok()?;
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
    if handle == 0 || word(0) as u32 != handle || word(48) != u64::from(handle) {
        return None;
    }
    let key = RemoteKey::from_bytes(&bytes[24..48])?;
    let rights = Rights::from_bits_truncate((word(0) >> 32) as u8);
    Some(Listed { rights, base: word(8), length: word(16), key })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An entry that changes, or that belongs to another handle, names nothing.
    // shows: M-05
    #[test]
    fn entries_are_whole_or_nothing() {
        let key = RemoteKey { node: 1, function: 2, index: 3, key: 4, length: 100 };
        let mut bytes = [0; ENTRY_BYTES];
        bytes[0] = 7;
        bytes[4] = Rights::REMOTE_WRITE.bits();
        bytes[16] = 100;
        bytes[24..48].copy_from_slice(&key.to_bytes());
        assert!(parse_entry(&bytes, 7).is_none(), "not finished");
        bytes[48] = 7;
        let listed = parse_entry(&bytes, 7).unwrap();
        assert_eq!((listed.rights, listed.length, listed.key), (Rights::REMOTE_WRITE, 100, key));
        assert!(parse_entry(&bytes, 8).is_none() && parse_entry(&bytes[1..], 7).is_none());
        assert!(parse_entry(&[0; ENTRY_BYTES], 0).is_none());
    }
}
