//! Windows into peers' regions, so that a short put resolves its region once.

use bellwire_device::{FunctionAddress, RemoteKey, Window};
use bellwire_ring::memory::View;

/// Places for windows; a power of two.
const PLACES: usize = 64;

/// The windows that are open, each in the place that its key names. A key is random, so its bits
/// are a hash.
pub(crate) struct Windows(Box<[Option<Window>; PLACES]>);

impl Windows {
    pub(super) fn new() -> Windows {
        Windows(Box::new([const { None }; PLACES]))
    }

    fn place(key: &RemoteKey) -> usize {
        key.key as usize % PLACES
    }

    /// Writes `from` to a region through its window. `false`: nothing is written, because there is
    /// none, or the window refuses.
    #[inline(always)]
    pub(super) fn put(&self, key: &RemoteKey, offset: u64, from: View<'_>) -> bool {
        match &self.0[Self::place(key)] {
            Some(window) => window.put(key, offset, from),
            None => false,
        }
    }

    /// Opens a window if there is one for this key, and its place is free.
    #[cold]
    #[inline(never)]
    pub(super) fn open(&mut self, key: &RemoteKey, window: impl FnOnce() -> Option<Window>) {
        // Two keys with the same place would otherwise open and close their windows at each put.
        let place = &mut self.0[Self::place(key)];
        if !place.as_ref().is_some_and(Window::is_open) {
            *place = window();
        }
    }

    /// The link to this peer is gone.
    pub(super) fn close(&mut self, owner: FunctionAddress) {
        for place in self.0.iter_mut() {
            if place.as_ref().is_some_and(|window| window.owner() == owner) {
                *place = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bellwire_device::Memory;
    use bellwire_ring::board::{Board, Notice};
    use bellwire_ring::mapping::map;
    use bellwire_ring::segment::Segment;
    use rustix::fs::{MemfdFlags, memfd_create};
    use std::os::fd::AsFd;

    /// Two keys in one place: the first one keeps it until it dies. A peer's windows close with its
    /// link.
    #[test]
    fn a_place_belongs_to_a_key_until_it_dies() {
        let file = memfd_create("board", MemfdFlags::CLOEXEC).expect("memory");
        rustix::fs::ftruncate(&file, 4096).expect("memory");
        let board = map(file.as_fd(), 4096, true).expect("memory");
        let board = Board::new(Segment::new(&board, 0, 4096), 8, 2);
        let memory = Memory::zeroed(16).expect("memory");
        let key_of = |index: u16, key| RemoteKey { node: 1, function: 0, index, key, length: 16 };
        let keys = [key_of(0, 7), key_of(1, 7 + PLACES as u64), key_of(1, 8)];
        let window = |key: RemoteKey| {
            let stamp = board.watch(key.index.into(), 1).expect("it has two regions");
            Some(Window::new(key, stamp, memory.clone(), 0))
        };
        let is_open = |windows: &Windows| keys.map(|key| windows.put(&key, 0, View::of(&[1; 8])));
        let stamp = |of, stamp| board.post(of, Notice { stamp, ..Notice::default() });
        (0..2).for_each(|of| stamp(of, 1));

        let mut windows = Windows::new();
        assert_eq!(is_open(&windows), [false; 3]);
        windows.open(&keys[0], || None);
        assert_eq!(is_open(&windows), [false; 3]);
        keys.iter().for_each(|key| windows.open(key, || window(*key)));
        assert_eq!(is_open(&windows), [true, false, true]);
        stamp(0, 0);
        assert_eq!(is_open(&windows), [false, false, true]);
        windows.open(&keys[1], || window(keys[1]));
        assert_eq!(is_open(&windows), [false, true, true]);

        windows.close(FunctionAddress { node: 1, function: 1 });
        assert_eq!(is_open(&windows), [false, true, true]);
        windows.close(FunctionAddress { node: 1, function: 0 });
        assert_eq!(is_open(&windows), [false; 3]);
    }
}
