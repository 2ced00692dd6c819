//! What the board says of a region, so that it helps only the holders of the key.
//!
//! Every peer of the function maps the board, with or without a key. So a region's notice holds a
//! *stamp*, a keyed hash from which the key cannot be computed. It holds the region's address and
//! length under masks made from the key.

use bellwire_device::{RemoteKey, Rights};
use bellwire_ring::board::Notice;

/// The stamp and the masks of one key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyHash {
    pub stamp: u64,
    address_mask: u64,
    extent_mask: u64,
}

/// A region, as a key's holder reads it from the board.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RegionInfo {
    pub address: u64,
    pub length: u64,
    pub rights: Rights,
    /// Whether peers can map it; otherwise only cross-memory attach or packets reach it.
    pub mappable: bool,
}

const MAPPABLE: u64 = 1 << 63;
const RIGHTS_SHIFT: u32 = 56;
const LENGTH: u64 = (1 << RIGHTS_SHIFT) - 1;

impl KeyHash {
    /// The stamp of a key: BLAKE3 of the key and the region's index.
    pub fn of(key: RemoteKey) -> KeyHash {
        let mut input = [0; 10];
        input[..8].copy_from_slice(&key.key.to_le_bytes());
        input[8..].copy_from_slice(&key.index.to_le_bytes());
        let hash = blake3::hash(&input);
        let word = |at: usize| {
            u64::from_le_bytes(hash.as_bytes()[at * 8..at * 8 + 8].try_into().expect("8 bytes"))
        };
        // Zero means "no region".
        KeyHash { stamp: word(0) | 1, address_mask: word(1), extent_mask: word(2) }
    }

    /// The notice to post on the board.
    pub fn mask(self, region: RegionInfo) -> Notice {
        let rights = u64::from(region.rights.bits()) << RIGHTS_SHIFT;
        let extent = region.length & LENGTH | rights | if region.mappable { MAPPABLE } else { 0 };
        Notice {
            stamp: self.stamp,
            address: region.address ^ self.address_mask,
            extent: extent ^ self.extent_mask,
        }
    }

    /// Unmasks a notice; `None` if it belongs to another key.
    pub fn unmask(self, notice: Notice) -> Option<RegionInfo> {
        let extent = notice.extent ^ self.extent_mask;
        (notice.stamp == self.stamp).then(|| RegionInfo {
            address: notice.address ^ self.address_mask,
            length: extent & LENGTH,
            rights: Rights::from_bits_truncate((extent >> RIGHTS_SHIFT) as u8),
            mappable: extent & MAPPABLE != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_right_key_unmasks_a_notice() {
        let key =
            RemoteKey { node: 1, function: 0, index: 9, key: 0x1234_5678_9abc_def1, length: 4096 };
        let region = RegionInfo {
            address: 0x7fff_1234_5000,
            length: 4096,
            rights: Rights::REMOTE_READ | Rights::REMOTE_ATOMIC,
            mappable: true,
        };
        let notice = KeyHash::of(key).mask(region);
        assert_eq!(KeyHash::of(key).unmask(notice), Some(region));
        for bit in 0..64 {
            assert_eq!(
                KeyHash::of(RemoteKey { key: key.key ^ 1 << bit, ..key }).unmask(notice),
                None
            );
        }
        assert_eq!(KeyHash::of(RemoteKey { index: 8, ..key }).unmask(notice), None);
        assert_eq!(KeyHash::of(key).unmask(Notice::default()), None);
    }
}
