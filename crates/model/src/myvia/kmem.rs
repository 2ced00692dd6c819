//! The kmem agent: physically contiguous memory in blocks of pages, like a buddy allocator (M-22;
//! paper 3.4).
//!
//! Free memory consists of aligned blocks of 2^k pages. A request takes the lowest block of the
//! smallest size that fits, and returns the surplus. So 30 pages (120 KB) cost 30 and not 32. A
//! released block is merged with its buddy as long as that is free, too. When all is released, one
//! block is left.

use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a page.
pub const PAGE: u64 = 4096;

/// Sizes of blocks: up to 2^(ORDERS - 1) pages.
const ORDERS: usize = 32;

/// The pages that the agent allocates from.
#[derive(Clone, Debug)]
pub struct Kmem {
    /// First pages of free blocks, by the logarithm of their size.
    free: Vec<BTreeSet<u64>>,
    /// Allocations: length in pages, by first page.
    held: BTreeMap<u64, u64>,
    /// Free pages.
    pub free_pages: u64,
    /// Canary: released blocks are not merged.
    pub(crate) never_merges: bool,
}

/// No allocation begins at this page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("page {0} begins no block that is held; release what `allocate` gave, once")]
pub struct NotHeld(pub u64);

impl Kmem {
    /// All `pages` pages are free.
    pub fn new(pages: u64) -> Kmem {
        let mut kmem = Kmem {
            free: vec![BTreeSet::new(); ORDERS],
            held: BTreeMap::new(),
            free_pages: 0,
            never_merges: false,
        };
        kmem.give_back(0, pages);
        kmem
    }

    /// Allocates `pages` contiguous pages and returns the first. `None` if no block is large enough
    /// or `pages` is zero.
    pub fn allocate(&mut self, pages: u64) -> Option<u64> {
        let order = pages.checked_next_power_of_two()?.trailing_zeros() as usize;
        if pages == 0 || order >= ORDERS {
            return None;
        }
        let found = (order..ORDERS).find(|&larger| !self.free[larger].is_empty())?;
        let start = self.free[found].pop_first()?;
        self.free_pages -= 1 << found;
        self.give_back(start + pages, (1 << found) - pages);
        self.held.insert(start, pages);
        Some(start)
    }

    /// Releases the allocation that begins at this page.
    ///
    /// # Errors
    /// If there is none.
    pub fn release(&mut self, start: u64) -> Result<(), NotHeld> {
        let pages = self.held.remove(&start).ok_or(NotHeld(start))?;
        self.give_back(start, pages);
        Ok(())
    }

    /// Pages of the largest free block.
    pub fn largest_free(&self) -> u64 {
        self.free.iter().rposition(|blocks| !blocks.is_empty()).map_or(0, |order| 1 << order)
    }

    /// Adds a run of pages to the free blocks, in aligned pieces.
    fn give_back(&mut self, mut start: u64, mut pages: u64) {
        self.free_pages += pages;
        while pages > 0 {
            let aligned = if start == 0 { 63 } else { start.trailing_zeros() };
            let order = aligned.min(pages.ilog2()).min(ORDERS as u32 - 1) as usize;
            self.put(start, order);
            start += 1 << order;
            pages -= 1 << order;
        }
    }

    fn put(&mut self, mut start: u64, mut order: usize) {
        while order + 1 < ORDERS && !self.never_merges {
            let buddy = start ^ 1 << order;
            if !self.free[order].remove(&buddy) {
                break;
            }
            start = start.min(buddy);
            order += 1;
        }
        self.free[order].insert(start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Random;

    const PAGES: u64 = 256;

    /// The oracle: the owner of each page.
    struct Oracle {
        page: Vec<bool>,
    }

    impl Oracle {
        /// Whether an aligned block of that size is free; then a buddy allocator must succeed.
        fn satisfiable(&self, pages: u64) -> bool {
            let size = pages.next_power_of_two() as usize;
            self.page.chunks_exact(size).any(|block| block.iter().all(|&held| !held))
        }
    }

    /// Random operations against the oracle; returns the first disagreement as a sentence.
    fn random_operations(mut kmem: Kmem, seed: u64, operations: u32) -> Result<(), String> {
        let mut random = Random::new(seed);
        let mut oracle = Oracle { page: vec![false; PAGES as usize] };
        let mut held: Vec<(u64, u64)> = Vec::new();
        for operation in 0..operations {
            // Filling and emptying alternate, so that memory gets full and empty.
            let fills = random.below(100) < if operation / 500 % 2 == 0 { 70 } else { 30 };
            if fills {
                let most = 1 << random.below(7);
                let pages = 1 + random.below(most);
                let expected = oracle.satisfiable(pages);
                match kmem.allocate(pages) {
                    Some(start) => {
                        let block = &mut oracle.page[start as usize..(start + pages) as usize];
                        if block.iter().any(|&held| held) {
                            return Err(format!("{operation}: page {start} was given twice"));
                        }
                        block.fill(true);
                        held.push((start, pages));
                    }
                    None if expected => {
                        return Err(format!("{operation}: {pages} pages were refused"));
                    }
                    None => {}
                }
            } else if !held.is_empty() {
                let (start, pages) = held.swap_remove(random.below(held.len() as u64) as usize);
                oracle.page[start as usize..(start + pages) as usize].fill(false);
                kmem.release(start).map_err(|error| format!("{operation}: {error}"))?;
                if kmem.release(start).is_ok() {
                    return Err(format!("{operation}: page {start} was released twice"));
                }
            }
            let free = oracle.page.iter().filter(|&&held| !held).count() as u64;
            if kmem.free_pages != free {
                return Err(format!("{operation}: {} pages free of {free}", kmem.free_pages));
            }
        }
        for (start, _) in held {
            kmem.release(start).map_err(|error| error.to_string())?;
        }
        match kmem.largest_free() {
            PAGES => Ok(()),
            largest => Err(format!("all is free, but in pieces of {largest} pages")),
        }
    }

    /// A million random operations agree with the oracle. Allocations are contiguous and exclusive,
    /// a request fails only if no aligned block is free, and at the end one block is left.
    // shows: M-22
    #[test]
    fn a_million_operations_agree_with_the_oracle() {
        for seed in 0..4 {
            random_operations(Kmem::new(PAGES), seed, 250_000).unwrap();
        }
    }

    /// Canary: the test catches an agent that does not merge.
    #[test]
    fn an_agent_that_does_not_merge_is_caught() {
        let kmem = Kmem { never_merges: true, ..Kmem::new(PAGES) };
        assert!(random_operations(kmem, 1, 10_000).is_err());
    }

    /// 120 KB are 30 contiguous pages and cost no more. An allocation at the end of memory need not
    /// be a power of two.
    #[test]
    fn what_is_not_needed_is_given_back() {
        let mut kmem = Kmem::new(33);
        assert_eq!(kmem.allocate(0), None);
        assert_eq!((kmem.allocate(30), kmem.free_pages), (Some(0), 3));
        assert_eq!(
            (kmem.allocate(2), kmem.allocate(1), kmem.allocate(1)),
            (Some(30), Some(32), None)
        );
        assert_eq!((kmem.allocate(0), kmem.allocate(u64::MAX)), (None, None));
        assert_eq!(kmem.release(1), Err(NotHeld(1)));
    }

    /// Three pages at page 5 are pieces of 1 and 2, because blocks are aligned; so are three at 8.
    #[test]
    fn pieces_are_aligned() {
        crate::limit::limited(|| {
            let mut kmem = Kmem::new(0);
            kmem.give_back(5, 3);
            assert_eq!(
                (kmem.free_pages, kmem.free[0].clone(), kmem.free[1].clone()),
                (3, [5].into(), [6].into())
            );
            kmem.give_back(8, 3);
            assert_eq!(
                (kmem.free[0].clone(), kmem.free[1].clone()),
                ([5, 10].into(), [6, 8].into())
            );
            // What is free beside a buddy grows with it.
            kmem.give_back(4, 1);
            assert_eq!((kmem.free[0].clone(), kmem.free[2].clone()), ([10].into(), [4].into()));
            // No block is larger than 2^31 pages, also if all of memory is one run.
            let kmem = Kmem::new(1 << 32);
            assert_eq!((kmem.largest_free(), kmem.free[31].len()), (1 << 31, 2));
        });
    }
}
