//! Handles: numbers that look like pointers. They are never dereferenced, so a wrong, stale or
//! invented handle is refused.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};

/// What a handle names.
#[repr(u8)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Nic = 1,
    Vi,
    Cq,
    Ptag,
    Connection,
}

/// The fields of a handle.
///
/// ```text
///  63    60 59        54 53   48 47       32 31            0
/// +--------+------------+-------+-----------+---------------+
/// |  kind  |    NIC     |   0   |   slot    |  generation   |
/// +--------+------------+-------+-----------+---------------+
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Handle {
    pub kind: Kind,
    /// Index of the NIC in the process.
    pub nic: u8,
    /// Index of the object in its NIC's table.
    pub slot: u16,
    /// Unique for each object of the process.
    pub generation: u32,
}

impl Handle {
    /// The handle as C sees it; never null.
    pub fn to_pointer(self) -> *mut c_void {
        let number = (self.kind as u64) << 60
            | u64::from(self.nic) << 54
            | u64::from(self.slot) << 32
            | u64::from(self.generation);
        number as usize as *mut c_void
    }

    /// The fields of a pointer, if it can be a handle of this kind.
    pub fn of(pointer: *mut c_void, kind: Kind) -> Option<Handle> {
        let number = pointer as usize as u64;
        let handle = Handle {
            kind,
            nic: (number >> 54 & 63) as u8,
            slot: (number >> 32) as u16,
            generation: number as u32,
        };
        (handle.to_pointer() == pointer).then_some(handle)
    }
}

/// The NIC that `pointer` names.
pub fn nic_of(pointer: *mut c_void) -> Option<Handle> {
    Handle::of(pointer, Kind::Nic)
}

/// The VI that `pointer` names.
pub fn vi_of(pointer: *mut c_void) -> Option<Handle> {
    Handle::of(pointer, Kind::Vi)
}

/// A number that no other object of the process has had.
pub fn next_generation() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    // Uniqueness only; it orders no other access.
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Objects of one kind, by slot.
pub struct Slab<T> {
    slots: Vec<(u32, Option<T>)>,
    free: VecDeque<u16>,
    limit: usize,
}

impl<T> Slab<T> {
    /// At most `limit` objects, 65,536 or fewer.
    pub fn new(limit: usize) -> Self {
        Slab { slots: Vec::new(), free: VecDeque::new(), limit }
    }

    /// Slot and generation of a new object; the object again if there is no room.
    pub fn insert(&mut self, value: T) -> Result<(u16, u32), T> {
        let generation = next_generation();
        if let Some(slot) = self.free.pop_front() {
            self.slots[slot as usize] = (generation, Some(value));
            return Ok((slot, generation));
        }
        if self.slots.len() == self.limit {
            return Err(value);
        }
        self.slots.push((generation, Some(value)));
        Ok(((self.slots.len() - 1) as u16, generation))
    }

    pub fn at(&mut self, slot: u16) -> Option<&mut T> {
        self.slots.get_mut(slot as usize)?.1.as_mut()
    }

    pub fn find(&mut self, handle: Handle) -> Option<&mut T> {
        let (generation, value) = self.slots.get_mut(handle.slot as usize)?;
        value.as_mut().filter(|_| *generation == handle.generation)
    }

    pub fn remove(&mut self, slot: u16) -> Option<T> {
        let value = self.slots.get_mut(slot as usize)?.1.take();
        if value.is_some() {
            self.free.push_back(slot);
        }
        value
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (u16, &mut T)> {
        let numbered = self.slots.iter_mut().enumerate();
        numbered.filter_map(|(slot, (_, value))| Some((slot as u16, value.as_mut()?)))
    }

    /// Slots in use.
    pub fn slots(&self) -> Vec<u16> {
        let numbered = self.slots.iter().enumerate();
        numbered.filter(|(_, slot)| slot.1.is_some()).map(|(slot, _)| slot as u16).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A handle is found while its object lives. Another kind, another generation or any other
    /// number is not found.
    // shows: M-01
    #[test]
    fn only_a_living_handle_is_found() {
        let mut slab = Slab::new(2);
        let (slot, generation) = slab.insert('a').unwrap();
        let handle = Handle { kind: Kind::Vi, nic: 63, slot, generation };
        let pointer = handle.to_pointer();
        assert_eq!(Handle::of(pointer, Kind::Vi), Some(handle));
        assert_eq!(Handle::of(pointer, Kind::Cq), None);
        assert_eq!(Handle::of(std::ptr::null_mut(), Kind::Nic), None);
        assert_eq!(slab.find(handle), Some(&mut 'a'));
        assert_eq!(slab.find(Handle { generation: generation + 1, ..handle }), None);
        assert_eq!(slab.find(Handle { slot: 9, ..handle }), None);
        slab.remove(slot);
        assert_eq!(slab.find(handle), None);
        slab.insert('b').unwrap();
        slab.insert('c').unwrap();
        assert_eq!(slab.find(handle), None, "its slot has another owner");
        assert_eq!(slab.insert('d'), Err('d'), "full");
    }
}
