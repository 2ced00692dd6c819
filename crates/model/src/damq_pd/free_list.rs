//! The free addresses (D-03): DAMQ-PF's *free-address buffer*, a FIFO memory as deep as the data
//! memory.
//!
//! DAMQ-PD and DAMQ-PF have one FIFO for all virtual ports, SAMQ has one per port (B-09).
//! Descriptors that the prefetcher fetches have their own words, and their own FIFO.
//!
//! A memory is read a cycle after it is written, and needs that cycle: an address that is given in
//! cycle `t` can be taken from `t + 2` on. Credits come back later than that, so no word waits.

use std::ops::Range;

use super::config::Organisation;
use super::word::Way;

/// FIFOs of free addresses, in one memory.
#[derive(Clone, Debug)]
pub struct FreeList {
    addresses: Box<[u16]>,
    /// For words that come by PIO: one for all ports, in SAMQ one per port.
    shared: Ring,
    own: Vec<Ring>,
    /// For words that come by DMA.
    landing: Ring,
    /// Addresses that were given in this cycle and in the one before; they cannot be taken yet.
    returning: [Option<(u8, Way, u16)>; 2],
}

/// A FIFO with room for all addresses of its part of the memory.
#[derive(Clone, Copy, Debug, Default)]
struct Ring {
    /// The index of its first place.
    begin: usize,
    /// Places minus one; the number of places is a power of two.
    mask: usize,
    /// Addresses taken and given so far; both counters wrap.
    taken: usize,
    given: usize,
}

impl FreeList {
    /// All addresses are free: `depth` words for PIO, and behind them `landing` words for DMA.
    pub fn new(organisation: Organisation, ports: usize, depth: usize, landing: usize) -> FreeList {
        let mut addresses = Vec::new();
        let mut lay = |words: Range<usize>| {
            let (begin, given) = (addresses.len(), words.len());
            let places = given.next_power_of_two();
            addresses.extend(words.map(|word| word as u16));
            addresses.resize(begin + places, 0);
            Ring { begin, mask: places - 1, taken: 0, given }
        };
        let (shared, own) = if organisation == Organisation::Samq {
            let part = depth / ports;
            (Ring::default(), (0..ports).map(|at| lay(at * part..(at + 1) * part)).collect())
        } else {
            (lay(0..depth), Vec::new())
        };
        let landing = lay(depth..depth + landing);
        FreeList { addresses: addresses.into(), shared, own, landing, returning: [None; 2] }
    }

    /// Takes the address that has been free longest; `None` if this port and way have none.
    #[inline]
    pub fn take(&mut self, port: u8, way: Way) -> Option<u16> {
        let ring = self.ring(port, way);
        if ring.taken == ring.given {
            return None;
        }
        let place = ring.place(ring.taken);
        ring.taken = ring.taken.wrapping_add(1);
        Some(self.addresses[place])
    }

    /// Makes an address free; at most one in a cycle.
    #[inline]
    pub fn give(&mut self, port: u8, way: Way, address: u16) {
        debug_assert!(self.returning[0].is_none(), "one address a cycle");
        self.returning[0] = Some((port, way, address));
    }

    /// Ends a cycle.
    #[inline]
    pub fn clock(&mut self) {
        if let Some((port, way, address)) = self.returning[1] {
            self.shelve(port, way, address);
        }
        self.returning = [None, self.returning[0]];
    }

    fn shelve(&mut self, port: u8, way: Way, address: u16) {
        let ring = self.ring(port, way);
        debug_assert!(ring.free() <= ring.mask, "more is free than there is");
        let place = ring.place(ring.given);
        ring.given = ring.given.wrapping_add(1);
        self.addresses[place] = address;
    }

    /// How many addresses are free.
    pub fn free(&self) -> usize {
        let own: usize = self.own.iter().map(Ring::free).sum();
        let returning = self.returning.iter().flatten().count();
        own + self.shared.free() + self.landing.free() + returning
    }

    /// How many addresses of this way are free; not for SAMQ, which has some for each port.
    pub fn free_for(&self, way: Way) -> usize {
        let ring = if way == Way::Dma { &self.landing } else { &self.shared };
        let returning = self.returning.iter().flatten().filter(|(_, given, _)| *given == way);
        ring.free() + returning.count()
    }

    /// All free addresses.
    pub fn addresses(&self) -> Vec<u16> {
        let rings = self.own.iter().chain([&self.shared, &self.landing]);
        let place = |ring: &Ring, at| self.addresses[ring.place(ring.taken.wrapping_add(at))];
        let shelved = rings.flat_map(|ring| (0..ring.free()).map(move |at| place(ring, at)));
        shelved.chain(self.returning.iter().flatten().map(|&(_, _, address)| address)).collect()
    }

    #[inline]
    fn ring(&mut self, port: u8, way: Way) -> &mut Ring {
        match way {
            Way::Dma => &mut self.landing,
            Way::Pio if self.own.is_empty() => &mut self.shared,
            Way::Pio => &mut self.own[usize::from(port)],
        }
    }
}

impl Ring {
    #[inline]
    fn free(&self) -> usize {
        self.given.wrapping_sub(self.taken)
    }

    #[inline]
    fn place(&self, count: usize) -> usize {
        self.begin + (count & self.mask)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(list: &FreeList) -> [usize; 3] {
        [list.free(), list.free_for(Way::Pio), list.free_for(Way::Dma)]
    }

    /// An address that was given can be taken from the cycle after the next on. Until then it
    /// counts as free.
    #[test]
    fn an_address_returns_after_two_cycles() {
        let mut list = FreeList::new(Organisation::DamqPd, 2, 1, 3);
        assert_eq!((counts(&list), list.addresses()), ([4, 1, 3], vec![0, 1, 2, 3]));
        assert_eq!((list.take(0, Way::Pio), list.take(1, Way::Pio)), (Some(0), None));
        assert_eq!(counts(&list), [3, 0, 3]);
        list.give(0, Way::Pio, 0);
        assert_eq!((counts(&list), list.addresses()), ([4, 1, 3], vec![1, 2, 3, 0]));
        list.clock();
        assert_eq!((counts(&list), list.take(1, Way::Pio)), ([4, 1, 3], None));
        list.clock();
        assert_eq!((counts(&list), list.take(1, Way::Pio)), ([4, 1, 3], Some(0)));
    }

    /// In SAMQ each port has a part of the words that come by PIO.
    #[test]
    fn ports_of_samq_have_their_own() {
        let mut list = FreeList::new(Organisation::Samq, 2, 4, 2);
        assert_eq!((list.take(1, Way::Pio), list.take(0, Way::Pio)), (Some(2), Some(0)));
        assert_eq!((list.free(), list.addresses()), (4, vec![1, 3, 4, 5]));
        assert_eq!((list.take(1, Way::Pio), list.take(1, Way::Pio)), (Some(3), None));
        assert_eq!(list.take(1, Way::Dma), Some(4));
    }
}
