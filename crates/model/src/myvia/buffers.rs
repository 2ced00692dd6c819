//! The NIC agent's data buffers: buffers of any length from one pool in NIC memory (M-24; paper
//! 3.4).

use std::collections::BTreeMap;

/// Alignment of buffers in bytes, as the DMA engines need it.
const ALIGNMENT: u32 = 8;

/// The NIC memory for data. First fit; free neighbours are merged.
#[derive(Clone, Debug)]
pub struct Buffers {
    capacity: u32,
    /// Lengths of free pieces, by start.
    free: BTreeMap<u32, u32>,
    used: BTreeMap<u32, u32>,
    /// Bytes in use.
    pub used_bytes: u32,
    /// The most bytes that were in use at once.
    pub most_bytes: u32,
    /// Buffers allocated.
    pub given: u64,
    /// Allocations without room.
    pub refused: u64,
}

impl Buffers {
    /// A pool of `capacity` bytes.
    pub fn new(capacity: u32) -> Buffers {
        let capacity = capacity / ALIGNMENT * ALIGNMENT;
        let free = if capacity > 0 { BTreeMap::from([(0, capacity)]) } else { BTreeMap::new() };
        Buffers {
            capacity,
            free,
            used: BTreeMap::new(),
            used_bytes: 0,
            most_bytes: 0,
            given: 0,
            refused: 0,
        }
    }

    /// Allocates `bytes` bytes (at least one unit of alignment) and returns the start, or counts a
    /// refusal.
    pub fn allocate(&mut self, bytes: u32) -> Option<u32> {
        let bytes = bytes.max(1).div_ceil(ALIGNMENT) * ALIGNMENT;
        let Some((&at, &length)) = self.free.iter().find(|(_, length)| **length >= bytes) else {
            self.refused += 1;
            return None;
        };
        self.free.remove(&at);
        if length > bytes {
            self.free.insert(at + bytes, length - bytes);
        }
        self.used.insert(at, bytes);
        self.used_bytes += bytes;
        self.most_bytes = self.most_bytes.max(self.used_bytes);
        self.given += 1;
        Some(at)
    }

    /// Frees the buffer that starts there; an unknown start changes nothing.
    pub fn release(&mut self, at: u32) {
        let Some(mut length) = self.used.remove(&at) else { return };
        self.used_bytes -= length;
        if let Some(next) = self.free.remove(&(at + length)) {
            length += next;
        }
        match self.free.range_mut(..at).next_back() {
            Some((&before, free)) if before + *free == at => *free += length,
            _ => {
                self.free.insert(at, length);
            }
        }
    }

    /// Buffers in use.
    pub fn in_use(&self) -> usize {
        self.used.len()
    }

    /// Checks that free and used pieces fill the pool without gap or overlap.
    ///
    /// # Errors
    /// Where they do not.
    pub fn audit(&self) -> Result<(), String> {
        let mut pieces: Vec<(&u32, &u32)> = self.free.iter().chain(&self.used).collect();
        pieces.sort_unstable();
        let mut end = 0;
        for (&at, length) in pieces {
            if at != end {
                return Err(format!("the NIC's buffers end at {end} and go on at {at}"));
            }
            end = at + length;
        }
        match end == self.capacity {
            true => Ok(()),
            false => Err(format!("the NIC's buffers are {end} B, the pool {} B", self.capacity)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Random;

    /// Buffers of mixed sizes share the pool without fixed slots, never overlap, and leave one free
    /// piece at the end.
    // shows: M-24
    #[test]
    fn mixed_sizes_share_the_pool() {
        let mut random = Random::new(1);
        let mut pool = Buffers::new(512 << 10);
        let mut held = Vec::new();
        for _ in 0..20_000 {
            if random.below(2) == 0 {
                held.extend(pool.allocate(random.below(120 << 10) as u32));
            } else if !held.is_empty() {
                pool.release(held.swap_remove(random.below(held.len() as u64) as usize));
            }
            pool.audit().unwrap();
            assert_eq!(pool.in_use(), held.len());
        }
        assert!(pool.given > 5_000 && pool.refused > 0 && pool.most_bytes > 400 << 10);
        held.into_iter().for_each(|at| pool.release(at));
        assert_eq!((pool.used_bytes, pool.allocate(512 << 10)), (0, Some(0)));
    }

    /// Canary: the audit notices a lost piece and a duplicate one.
    #[test]
    fn a_lost_piece_is_noticed() {
        let mut pool = Buffers::new(1024);
        pool.allocate(100).unwrap();
        pool.used.clear();
        assert!(pool.audit().unwrap_err().contains("go on at 104"));
        pool.free.insert(0, 512);
        assert!(pool.audit().is_err());
    }

    /// A buffer of all that is free leaves nothing, and one that ends its piece leaves no rest.
    #[test]
    fn a_piece_is_used_up() {
        let mut pool = Buffers::new(64);
        assert_eq!((pool.allocate(40), pool.allocate(24)), (Some(0), Some(40)));
        assert!(pool.free.is_empty());
        assert_eq!((pool.allocate(1), pool.used_bytes), (None, 64));
        pool.release(0);
        assert_eq!((pool.used_bytes, pool.most_bytes), (24, 64));
        pool.release(40);
        assert_eq!((pool.used_bytes, pool.free.clone()), (0, [(0, 64)].into()));
    }
}
