//! Regions of ours that peers may reach.

use crate::control::Control;
use crate::key::{KeyHash, RegionInfo};
use crate::mapping::{self, Sharing};
use crate::pages::{Pages, whole_pages};
use bellwire_device::{Error, RemoteKey, Rights};
use bellwire_ring::board::Board;
use bellwire_ring::canary::planted;
use bellwire_ring::memory::Memory;
use bellwire_ring::segment::Segment;
use bellwire_ring::steps::step;
use std::collections::HashMap;
use std::os::fd::OwnedFd;

/// A region that peers may reach.
struct Export {
    key: RemoteKey,
    memory: Memory,
    /// The segment to hand out; `None` for memory that the program brought.
    segment: Option<OwnedFd>,
    writable: bool,
    /// Memory of the program that peers map.
    pages: Option<Pages>,
}

/// A withdrawn region. A peer has announced that the kernel copies to or from it. The memory must
/// not be reused until the peer is done or gone.
struct Quarantined {
    link: u32,
    index: u16,
    _memory: Memory,
}

/// All regions of a function.
pub struct Regions {
    board: Board<Segment>,
    /// Descriptors of memory that was allocated and not yet exported, by address.
    allocated: HashMap<usize, OwnedFd>,
    /// Memory of the program that peers may map, by the index of its region without rights.
    shared: HashMap<u16, Pages>,
    /// By index.
    exports: Vec<Option<Export>>,
    quarantine: Vec<Quarantined>,
    /// How often peers used keys that are not valid.
    pub wrong_keys: u64,
}

/// Whether peers may change a region.
pub fn is_writable(rights: Rights) -> bool {
    rights.intersects(Rights::REMOTE_WRITE | Rights::REMOTE_ATOMIC)
}

impl Regions {
    /// No regions yet. They are published on `board`.
    pub fn new(board: Board<Segment>) -> Regions {
        Regions {
            board,
            allocated: HashMap::new(),
            shared: HashMap::new(),
            exports: Vec::new(),
            quarantine: Vec::new(),
            wrong_keys: 0,
        }
    }

    /// Memory that peers can map.
    pub fn allocate(&mut self, length: usize, rights: Rights) -> Result<Memory, Error> {
        // Without a right to change it, peers get a segment that cannot be mapped writable.
        let sharing = if is_writable(rights) { Sharing::ReadWrite } else { Sharing::ReadOnly };
        let segment = mapping::create("region", length, length, sharing)?;
        let memory = segment.memory.prefix(length);
        self.allocated.insert(memory.view().as_ptr() as usize, segment.fd);
        Ok(memory)
    }

    /// Makes memory of the program mappable, if that is possible.
    pub fn share(&mut self, key: RemoteKey, memory: &Memory, rights: Rights) {
        let address = memory.view().as_ptr() as usize;
        // SAFETY: the owner of the memory has promised that it stays while it is registered.
        let pages = unsafe { Pages::enter(address, memory.len(), is_writable(rights)) };
        self.shared.insert(key.index, pages);
    }

    /// Ends [`Regions::share`].
    pub fn unshare(&mut self, key: RemoteKey) {
        if !self.shared.is_empty() {
            self.shared.remove(&key.index);
        }
    }

    /// Makes `memory` reachable under `key`.
    pub fn export(&mut self, key: RemoteKey, memory: &Memory, rights: Rights) {
        let address = memory.view().as_ptr() as usize;
        let (mut segment, mut pages) = (self.allocated.remove(&address), None);
        if segment.is_none() && !self.shared.is_empty() {
            let joined = Pages::join(address, memory.len(), is_writable(rights));
            (segment, pages) = joined.unzip();
        }
        if planted("region-unmapped") {
            segment = None;
        }
        let region = RegionInfo {
            address: address as u64,
            length: memory.len() as u64,
            rights,
            mappable: segment.is_some(),
        };
        self.board.post(key.index.into(), KeyHash::of(key).mask(region));
        let slot = usize::from(key.index);
        if self.exports.len() <= slot {
            self.exports.resize_with(slot + 1, || None);
        }
        let (memory, writable) = (memory.clone(), is_writable(rights));
        self.exports[slot] = Some(Export { key, memory, segment, writable, pages });
    }

    /// Ends an export. `busy` returns the links whose peers let the kernel copy to or from it now,
    /// after it was withdrawn.
    pub fn retract<L: Iterator<Item = u32>>(&mut self, key: RemoteKey, busy: impl FnOnce() -> L) {
        let index = key.index;
        if !planted("stale-key") {
            self.board.withdraw(index.into());
        }
        let Some(export) = self.exports.get_mut(usize::from(index)).and_then(Option::take) else {
            return;
        };
        let held = |link| Quarantined { link, index, _memory: export.memory.clone() };
        self.quarantine.extend(busy().map(held));
    }

    /// Frees quarantined memory whose peers are done or gone. `is_busy`: whether the peer of a link
    /// is alive and lets the kernel copy to or from the region of this index.
    pub fn review_quarantine(&mut self, is_busy: impl Fn(u32, u16) -> bool) {
        self.quarantine.retain(|held| is_busy(held.link, held.index));
    }

    /// The answer to a peer that asks to map a region.
    pub fn answer(&mut self, index: u16, key: u64) -> (Control, Option<OwnedFd>) {
        let export = self.exports.get(usize::from(index)).and_then(Option::as_ref);
        let granted = export
            .filter(|export| export.key.key == key)
            .and_then(|export| Some((export, export.segment.as_ref()?)));
        step("region-answer");
        let Some((export, segment)) = granted else {
            self.wrong_keys += 1;
            return (Control::Answer { index, key, length: 0, writable: false }, None);
        };
        let fd = segment.try_clone().ok();
        // Of memory that the program brought, only whole pages can be mapped.
        let (start, whole) = (export.memory.view().as_ptr() as usize, export.memory.len());
        let length = match (&fd, &export.pages) {
            (None, _) => 0,
            (_, None) => whole as u64,
            (_, Some(_)) => whole_pages(start, whole).map_or(0, |(_, length)| length as u64),
        };
        let writable = fd.is_some() && export.writable;
        (Control::Answer { index, key, length, writable }, fd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{BOARD_BYTES, board_of};

    fn regions() -> Regions {
        let board = mapping::create("test", BOARD_BYTES, 0, Sharing::ReadWrite).expect("memory");
        Regions::new(board_of(&board.memory))
    }

    fn key(index: u16) -> RemoteKey {
        RemoteKey { node: 1, function: 2, index, key: 77, length: 100 }
    }

    /// Only a right to change memory makes it writable, and only the right key maps it.
    #[test]
    fn peers_map_what_they_may() {
        let mut regions = regions();
        let rights = [
            (Rights::REMOTE_READ, false),
            (Rights::REMOTE_WRITE, true),
            (Rights::REMOTE_ATOMIC | Rights::REMOTE_READ, true),
        ];
        for (index, (rights, is_writable)) in (0..).zip(rights) {
            let memory = regions.allocate(100, rights).expect("memory");
            regions.export(key(index), &memory, rights);
            let (answer, fd) = regions.answer(index, 77);
            let (length, writable) = (100, is_writable);
            assert_eq!(answer, Control::Answer { index, key: 77, length, writable });
            let mapped = |writable| mapping::adopt(fd.as_ref().expect("a segment"), 4096, writable);
            assert!(mapped(false).is_ok() && mapped(true).is_ok() == is_writable);
        }
        let none = |index, key| Control::Answer { index, key, length: 0, writable: false };
        let (answer, fd) = regions.answer(1, 78);
        assert_eq!((answer, fd.is_none(), regions.wrong_keys), (none(1, 78), true, 1));
        regions.retract(key(1), std::iter::empty::<u32>);
        assert_eq!((regions.answer(1, 77).0, regions.wrong_keys), (none(1, 77), 2));
        // Memory that the program brought is not mapped.
        let brought = Memory::from_vec(vec![0; 100]);
        regions.export(key(1), &brought, Rights::REMOTE_WRITE);
        assert_eq!((regions.answer(1, 77).0, regions.wrong_keys), (none(1, 77), 3));
    }

    /// Withdrawn memory stays while peers let the kernel copy to or from it.
    #[test]
    fn memory_in_use_is_kept() {
        let mut regions = regions();
        let memory = regions.allocate(100, Rights::REMOTE_WRITE).expect("memory");
        regions.export(key(3), &memory, Rights::REMOTE_WRITE);
        regions.retract(key(3), || [5, 6].into_iter());
        regions.review_quarantine(|link, index| link == 6 && index == 3);
        assert_eq!(regions.quarantine.iter().map(|held| held.link).collect::<Vec<_>>(), [6]);
        regions.review_quarantine(|_, _| false);
        assert!(regions.quarantine.is_empty());
    }

    /// Memory of the program is mapped once it was shared with the same rights, until that ends.
    /// Memory of ours is mapped as before.
    #[test]
    fn shared_memory_is_mapped() {
        crate::testing::alone(|| {
            let (mut regions, rights) = (regions(), Rights::REMOTE_WRITE);
            let brought = Memory::from_vec(vec![0; 1 << 20]);
            let start = brought.view().as_ptr() as usize;
            let whole = whole_pages(start, brought.len()).expect("hundreds of pages").1 as u64;
            let mapped = |regions: &mut Regions, index, memory: &Memory, rights| {
                regions.export(key(index), memory, rights);
                match regions.answer(index, 77) {
                    (Control::Answer { length, .. }, fd) if fd.is_some() == (length > 0) => length,
                    other => panic!("{other:?}"),
                }
            };
            regions.share(key(0), &brought, rights);
            assert_eq!(mapped(&mut regions, 1, &brought, rights), whole);
            assert_eq!(mapped(&mut regions, 2, &brought, Rights::REMOTE_READ), 0);
            let ours = regions.allocate(100, rights).expect("memory");
            assert_eq!(mapped(&mut regions, 3, &ours, rights), 100);
            regions.retract(key(1), std::iter::empty::<u32>);
            assert_eq!(mapped(&mut regions, 1, &brought, rights), whole);
            regions.retract(key(1), std::iter::empty::<u32>);
            regions.unshare(key(0));
            assert_eq!(mapped(&mut regions, 1, &brought, rights), 0);
        });
    }
}
