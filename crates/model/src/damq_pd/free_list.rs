//! Addresses that no list uses (D-03): DAMQ-PF's *free-address buffer*, a FIFO memory as deep as the data memory.
//!
//! It is one FIFO for all virtual ports in DAMQ-PD and DAMQ-PF, and one for each in SAMQ (B-09). What the prefetcher has asked for lands in words
//! of its own, which are one more FIFO.

use super::config::Organisation;
use super::word::Way;

/// FIFOs of free addresses.
#[derive(Clone, Debug)]
pub struct FreeList {
    rings: Box<[Ring]>,
    shared: bool,
}

/// A FIFO that can hold all addresses of its part of the memory.
#[derive(Clone, Debug)]
struct Ring {
    addresses: Box<[u16]>,
    first: usize,
    free: usize,
}

impl FreeList {
    /// All addresses of `depth` words for PIO and `landing` words for DMA behind them, free.
    pub fn new(organisation: Organisation, ports: usize, depth: usize, landing: usize) -> FreeList {
        let shared = organisation != Organisation::Samq;
        let parts = if shared { 1 } else { ports };
        let part = depth / parts;
        // The landing is the first ring, so that it is found without a look at how many there are.
        let mut rings = vec![Ring::new(depth..depth + landing)];
        rings.extend((0..parts).map(|at| Ring::new(at * part..(at + 1) * part)));
        FreeList { rings: rings.into(), shared }
    }

    /// Takes the address that has been free longest; `None` if there is none for this port and way.
    #[inline]
    pub fn take(&mut self, port: u8, way: Way) -> Option<u16> {
        self.ring(port, way).take()
    }

    /// Makes an address free.
    #[inline]
    pub fn give(&mut self, port: u8, way: Way, address: u16) {
        self.ring(port, way).give(address);
    }

    /// How many addresses are free.
    pub fn free(&self) -> usize {
        self.rings.iter().map(|ring| ring.free).sum()
    }

    /// All free addresses.
    pub fn addresses(&self) -> impl Iterator<Item = u16> {
        self.rings.iter().flat_map(|ring| {
            (0..ring.free).map(|at| ring.addresses[(ring.first + at) % ring.addresses.len()])
        })
    }

    #[inline]
    fn ring(&mut self, port: u8, way: Way) -> &mut Ring {
        let at = match way {
            Way::Dma => 0,
            Way::Pio if self.shared => 1,
            Way::Pio => 1 + port as usize,
        };
        &mut self.rings[at]
    }
}

impl Ring {
    fn new(addresses: std::ops::Range<usize>) -> Ring {
        let addresses: Box<[u16]> = addresses.map(|address| address as u16).collect();
        Ring { first: 0, free: addresses.len(), addresses }
    }

    #[inline]
    fn take(&mut self) -> Option<u16> {
        if self.free == 0 {
            return None;
        }
        let address = self.addresses[self.first];
        self.first += 1;
        if self.first == self.addresses.len() {
            self.first = 0;
        }
        self.free -= 1;
        Some(address)
    }

    #[inline]
    fn give(&mut self, address: u16) {
        debug_assert!(self.free < self.addresses.len(), "more is free than there is");
        let mut at = self.first + self.free;
        if at >= self.addresses.len() {
            at -= self.addresses.len();
        }
        self.addresses[at] = address;
        self.free += 1;
    }
}
