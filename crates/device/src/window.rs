//! A peer's region that stores reach.

use crate::{FunctionAddress, RemoteKey};
use bellwire_ring::board::Stamp;
use bellwire_ring::canary::planted;
use bellwire_ring::memory::{Memory, View};

/// Mapped memory of a peer's region, and the stamp that proves its key before each put. So a put
/// needs neither the link nor the device any more ([`crate::Transport::window`]).
pub struct Window {
    key: u64,
    /// [`region_of`] its key.
    region: [u64; 2],
    owner: FunctionAddress,
    stamp: Stamp,
    memory: Memory,
    /// Where `memory` begins in the region, in bytes.
    offset: usize,
}

/// All of a key but the secret, in words, which compare faster than the parts.
#[inline(always)]
fn region_of(key: &RemoteKey) -> [u64; 2] {
    let place = u64::from(key.index) | u64::from(key.function) << 16;
    [u64::from(key.node) | place << 32, key.length]
}

impl Window {
    /// `memory` is the part of the region from `offset` on. The key's rights allow puts, and it is
    /// valid while `stamp` stands.
    pub fn new(key: RemoteKey, stamp: Stamp, memory: Memory, offset: usize) -> Window {
        let length = usize::try_from(key.length).unwrap_or(usize::MAX).saturating_sub(offset);
        let length = length.min(memory.len());
        let (memory, region, owner) = (memory.prefix(length), region_of(&key), key.owner());
        Window { key: key.key, region, owner, stamp, memory, offset }
    }

    /// The function whose region it is.
    pub fn owner(&self) -> FunctionAddress {
        self.owner
    }

    /// Whether the key is still valid.
    #[inline(always)]
    pub fn is_open(&self) -> bool {
        self.stamp.stands() || planted("window-unchecked")
    }

    /// Writes `from` to the region of `key`, from `offset` on. `false`: nothing is written, because
    /// this is another region, its key has died, or the part does not lie inside.
    #[inline(always)]
    pub fn put(&self, key: &RemoteKey, offset: u64, from: View<'_>) -> bool {
        if self.key != key.key || self.region != region_of(key) || !self.is_open() {
            return false;
        }
        let start = (offset as usize).wrapping_sub(self.offset);
        match self.memory.view().part(start, from.len()) {
            Some(there) => there.deposit(from),
            None => return false,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bellwire_ring::board::{Board, Notice};
    use bellwire_ring::mapping::map;
    use bellwire_ring::segment::Segment;
    use rustix::fs::{MemfdFlags, memfd_create};
    use std::os::fd::AsFd;

    /// A window on the bytes from 8 to 40 of a region with 40, and what it needs. The memory goes
    /// beyond the region by 8 bytes.
    fn window() -> (Board<Segment>, Memory, RemoteKey, Window) {
        let file = memfd_create("board", MemfdFlags::CLOEXEC).expect("memory");
        rustix::fs::ftruncate(&file, 4096).expect("memory");
        let board = map(file.as_fd(), 4096, true).expect("memory");
        let board = Board::new(Segment::new(&board, 0, 4096), 8, 3);
        board.post(2, Notice { stamp: 77, ..Notice::default() });
        let memory = Memory::zeroed(40).expect("memory");
        let key = RemoteKey { node: 3, function: 4, index: 2, key: 5, length: 40 };
        let stamp = board.watch(2, 77).expect("it has three regions");
        let window = Window::new(key, stamp, memory.clone(), 8);
        (board, memory, key, window)
    }

    /// A window reaches its bytes of its region only, by the whole key.
    #[test]
    fn a_window_writes_inside() {
        let (_board, memory, key, window) = window();
        assert_eq!(window.owner(), key.owner());
        for (offset, length) in [(0, 8), (7, 1), (8, 33), (39, 2), (40, 1), (u64::MAX, 1)] {
            let from = vec![1; length];
            assert!(!window.put(&key, offset, View::of(&from)), "{length} at {offset}");
        }
        for other in [
            RemoteKey { node: 2, ..key },
            RemoteKey { function: 5, ..key },
            RemoteKey { index: 1, ..key },
            RemoteKey { key: 6, ..key },
            RemoteKey { length: 41, ..key },
        ] {
            assert!(!window.put(&other, 8, View::of(&[1])), "{other:?}");
        }
        assert_eq!(memory.view().to_vec(), [0; 40]);
        assert!(window.put(&key, 8, View::of(&[2; 32])));
        assert!(window.put(&key, 39, View::of(&[3])));
        let mut expected = [2; 40];
        expected[31] = 3;
        expected[32..].fill(0);
        assert_eq!(memory.view().to_vec(), expected);
    }

    /// When the key dies, its window is closed.
    #[test]
    fn a_window_closes_with_its_key() {
        let (board, memory, key, window) = window();
        assert!(window.is_open());
        for stamp in [0, 76] {
            board.post(2, Notice { stamp, ..Notice::default() });
            assert!(!window.is_open() && !window.put(&key, 8, View::of(&[1; 8])));
        }
        assert_eq!(memory.view().to_vec(), [0; 40]);
        board.post(2, Notice { stamp: 77, ..Notice::default() });
        assert!(window.put(&key, 8, View::of(&[1; 8])));
        assert!(board.watch(3, 77).is_none(), "it has three regions");
    }
}
