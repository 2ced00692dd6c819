//! The memory of one end, in slots.

use bellwire::{MemoryRegion, RemoteKey, RemoteSlice};

/// The memory of one end that the other reaches by put and get. The first half holds outgoing
/// slots, the second half incoming ones. Slots begin at cache lines.
pub struct Arena {
    pub region: MemoryRegion,
    /// Key of the other end's arena.
    pub remote: RemoteKey,
    /// Data sent inside the descriptor.
    pub inline: Vec<u8>,
    /// Longest message sent inside the descriptor, in bytes.
    pub eager_bytes: usize,
    /// Data of a put or get, for comparison.
    pub scratch: Vec<u8>,
    /// Puts of a ping-pong that have not completed.
    pub thrown: u64,
    /// The device moves puts only while the program polls.
    pub needs_us: bool,
}

/// Most transfers in flight in a stream of messages of `bytes`.
pub fn window(bytes: usize) -> u64 {
    ((256 << 10) / bytes as u64).clamp(4, 64)
}

/// Bytes of an arena for messages of all `sizes`.
pub fn arena_bytes(sizes: &[usize]) -> usize {
    let half = sizes.iter().map(|&bytes| window(bytes) as usize * stride(bytes)).max();
    2 * half.unwrap_or(0)
}

fn stride(bytes: usize) -> usize {
    bytes.next_multiple_of(64)
}

impl Arena {
    /// Divides `region` into slots, for a peer whose key is `remote`.
    pub fn new(region: MemoryRegion, remote: RemoteKey, eager_bytes: usize) -> Arena {
        let (inline, scratch) = (vec![0; eager_bytes], Vec::new());
        Arena { region, remote, inline, eager_bytes, scratch, thrown: 0, needs_us: false }
    }

    #[inline]
    pub fn out_at(&self, slot: u64, bytes: usize) -> usize {
        slot as usize * stride(bytes)
    }

    #[inline]
    pub fn in_at(&self, slot: u64, bytes: usize) -> usize {
        self.region.len() / 2 + self.out_at(slot, bytes)
    }

    #[inline]
    pub fn last_word(&self, at: usize, bytes: usize) -> usize {
        at + bytes - 8
    }

    #[inline]
    pub fn remote_in(&self, slot: u64, bytes: usize) -> RemoteSlice {
        self.remote.slice(self.in_at(slot, bytes) as u64, bytes as u64)
    }

    #[inline]
    pub fn remote_out(&self, slot: u64, bytes: usize) -> RemoteSlice {
        self.remote.slice(self.out_at(slot, bytes) as u64, bytes as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every slot of a run lies inside its half of the arena.
    #[test]
    fn slots_fit_into_an_arena() {
        let sizes = [8, 64, 72, 4096, 65_536, 4 << 20];
        let half = arena_bytes(&sizes) / 2;
        for bytes in sizes {
            assert!((4..=64).contains(&window(bytes)));
            assert!((window(bytes) as usize - 1) * stride(bytes) + bytes <= half, "{bytes}");
        }
    }
}
