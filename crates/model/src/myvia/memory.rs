//! Registered memory and its translation, in the three classes of paper 3.1.
//!
//! The table (RMMT) has the physical page of each page of each region. Its reader differs by class.
//! The user agent reads the table mapped into its process (UTLB, M-10). Or the NIC reads a table in
//! its own memory, which can fill up (B-15). Or the NIC reads a cache of the table, and interrupts
//! the host on a miss (B-14).

use std::ops::RangeInclusive;

use super::kmem::{Kmem, PAGE};
use crate::engine::Random;

/// Bytes of an entry of a table on the NIC: a physical page and its rights. Our choice.
pub const ENTRY_BYTES: u32 = 8;

/// Number of a registered region.
pub type RegionId = u32;

/// A physically contiguous piece of a region: what one DMA can move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Physical address.
    pub address: u64,
    /// Bytes.
    pub length: u32,
}

/// The layout of regions in physical memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layout {
    /// Contiguous, from the kmem agent (M-22).
    Contiguous,
    /// Scattered pages, as a kernel allocates them (B-18).
    Pages,
}

/// Why memory cannot be registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegisterError {
    /// No run of free pages is long enough.
    #[error("{pages} pages are not free in host memory; release regions or register less")]
    NoMemory {
        /// Pages requested.
        pages: u64,
    },
    /// The NIC's table is full.
    #[error(
        "the NIC's table has room for {room} more pages, not for {pages}; register less, or translate on the host"
    )]
    TableFull {
        /// Pages requested.
        pages: u64,
        /// Pages that fit.
        room: u64,
    },
}

/// The registered memory of a host: the RMMT.
#[derive(Clone, Debug)]
pub struct Registered {
    kmem: Kmem,
    layout: Layout,
    /// Physical pages of each region.
    regions: Vec<Vec<u64>>,
    /// Pages that a table on the NIC can hold; `None` without such a table.
    table_pages: Option<u64>,
    random: Random,
}

impl Registered {
    /// No regions, in a memory of `pages` pages.
    pub fn new(pages: u64, layout: Layout, table_pages: Option<u64>, random: Random) -> Registered {
        Registered { kmem: Kmem::new(pages), layout, regions: Vec::new(), table_pages, random }
    }

    /// Creates a region of at least `bytes` bytes and enters it into the table.
    ///
    /// # Errors
    /// If memory or table is full; nothing has changed then.
    pub fn register(&mut self, bytes: u64) -> Result<RegionId, RegisterError> {
        let pages = bytes.div_ceil(PAGE).max(1);
        if let Some(room) = self.table_pages
            && room < pages
        {
            return Err(RegisterError::TableFull { pages, room });
        }
        let frames = self.frames(pages).ok_or(RegisterError::NoMemory { pages })?;
        if let Some(room) = &mut self.table_pages {
            *room -= pages;
        }
        self.regions.push(frames);
        Ok(self.regions.len() as RegionId - 1)
    }

    fn frames(&mut self, pages: u64) -> Option<Vec<u64>> {
        if self.layout == Layout::Contiguous {
            let first = self.kmem.allocate(pages)?;
            return Some((first..first + pages).collect());
        }
        if self.kmem.free_pages < pages {
            return None;
        }
        let mut frames: Vec<u64> = (0..pages).filter_map(|_| self.kmem.allocate(1)).collect();
        self.random.shuffle(&mut frames);
        Some(frames)
    }

    /// Bytes of a region; zero if it does not exist.
    pub fn length(&self, region: RegionId) -> u64 {
        self.regions.get(region as usize).map_or(0, |frames| frames.len() as u64 * PAGE)
    }

    /// The pieces of a range in a region, none longer than `largest_dma`. In a layout by pages each
    /// page is its own piece: a page table says no more.
    pub fn extents(
        &self,
        region: RegionId,
        offset: u64,
        length: u32,
        largest_dma: u32,
    ) -> Vec<Extent> {
        let frames = &self.regions[region as usize];
        let end = offset + u64::from(length);
        let mut extents: Vec<Extent> = Vec::new();
        let mut at = offset;
        while at < end {
            let most = match self.layout {
                Layout::Contiguous => u64::from(largest_dma),
                Layout::Pages => PAGE - at % PAGE,
            };
            let length = most.min(end - at) as u32;
            extents
                .push(Extent { address: frames[(at / PAGE) as usize] * PAGE + at % PAGE, length });
            at += u64::from(length);
        }
        if extents.is_empty() {
            // A message without data still needs an address.
            extents.push(Extent { address: frames[0] * PAGE, length: 0 });
        }
        extents
    }

    /// The pages of a range, as keys of the translation cache: region and page in it.
    pub fn pages(region: RegionId, offset: u64, length: u32) -> RangeInclusive<u64> {
        let key = |at: u64| (u64::from(region) << 32) | (at / PAGE);
        key(offset)..=key(offset + u64::from(length.max(1)) - 1)
    }
}

/// The translation cache on the NIC, direct-mapped by page.
#[derive(Clone, Debug)]
pub struct Cache {
    entries: Vec<Option<u64>>,
    /// Lookups that hit.
    pub hits: u64,
    /// Lookups that missed; the host must provide these pages.
    pub misses: u64,
}

impl Cache {
    /// An empty cache.
    pub fn new(entries: usize) -> Cache {
        Cache { entries: vec![None; entries], hits: 0, misses: 0 }
    }

    /// Looks up and counts a page. A miss is entered at once, because the host's answer will do so.
    pub fn look_up(&mut self, page: u64) -> bool {
        let at = (page % self.entries.len() as u64) as usize;
        let hit = self.entries[at] == Some(page);
        self.entries[at] = Some(page);
        *if hit { &mut self.hits } else { &mut self.misses } += 1;
        hit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registered(layout: Layout, table_pages: Option<u64>) -> Registered {
        Registered::new(1024, layout, table_pages, Random::new(1))
    }

    /// Contiguous memory takes one DMA for up to 120 KB, and more above. A layout by pages takes
    /// one per page, with the right addresses.
    // shows: M-23, B-18
    #[test]
    fn contiguous_memory_takes_one_dma() {
        let largest = 120 << 10;
        let mut memory = registered(Layout::Contiguous, None);
        let region = memory.register(512 << 10).unwrap();
        let one = memory.extents(region, 100, largest, largest);
        assert_eq!(one, [Extent { address: 100, length: largest }]);
        let two = memory.extents(region, 100, largest + 1, largest);
        assert_eq!(two[1], Extent { address: u64::from(100 + largest), length: 1 });
        let mut memory = registered(Layout::Pages, None);
        let region = memory.register(512 << 10).unwrap();
        let pages = memory.extents(region, 100, largest, largest);
        assert_eq!((pages.len(), pages[0].length, pages[30].length), (31, 3996, 100));
        let frames = &memory.regions[region as usize];
        assert!(frames.iter().zip(&pages).all(|(frame, piece)| piece.address / PAGE == *frame));
        assert_eq!(Registered::pages(region, 100, largest).count(), 31);
        assert_eq!(memory.extents(region, 0, 0, largest).len(), 1);
    }

    /// A table on the NIC accepts regions until its memory is full and refuses more; earlier
    /// regions stay.
    // shows: B-15
    #[test]
    fn a_table_on_the_nic_refuses_when_full() {
        let mut memory = registered(Layout::Pages, Some(100));
        let region = memory.register(60 * PAGE).unwrap();
        assert_eq!(
            memory.register(41 * PAGE),
            Err(RegisterError::TableFull { pages: 41, room: 40 })
        );
        memory.register(40 * PAGE).unwrap();
        assert_eq!(memory.register(1), Err(RegisterError::TableFull { pages: 1, room: 0 }));
        assert_eq!(memory.length(region), 60 * PAGE);
        let mut on_host = registered(Layout::Pages, None);
        assert!((0..17).all(|_| on_host.register(60 * PAGE).is_ok()));
        assert_eq!(on_host.register(60 * PAGE), Err(RegisterError::NoMemory { pages: 60 }));
    }

    /// A cache misses pages that are new or evicted.
    #[test]
    fn a_cache_holds_what_it_saw_last() {
        let mut cache = Cache::new(4);
        let hits: Vec<bool> = [1, 2, 1, 5, 1].map(|page| cache.look_up(page)).into();
        assert_eq!(hits, [false, false, true, false, false]);
        assert_eq!((cache.hits, cache.misses), (1, 4));
    }

    /// Pages of a range are its keys in the cache: the region's number above, the page's below.
    /// Memory that is used up to its end is enough.
    #[test]
    fn pages_are_keys() {
        let keys = |offset, length| Registered::pages(3, offset, length).collect::<Vec<u64>>();
        let key = |page: u64| 3 << 32 | page;
        assert_eq!(keys(0, 4096), [key(0)]);
        assert_eq!(keys(0, 4097), [key(0), key(1)]);
        assert_eq!(keys(4095, 1), [key(0)]);
        assert_eq!(keys(8191, 2), [key(1), key(2)]);
        assert_eq!(keys(8192, 0), [key(2)], "a message without data has a place");
        let region = |memory: &mut Registered| memory.register(1024 * PAGE);
        for layout in [Layout::Contiguous, Layout::Pages] {
            assert_eq!(region(&mut registered(layout, Some(1024))), Ok(0));
        }
    }

    /// A message without data begins where its region does.
    #[test]
    fn no_data_has_an_address() {
        crate::limit::limited(|| {
            let mut memory = registered(Layout::Contiguous, None);
            let first = memory.register(3 * PAGE).unwrap();
            let second = memory.register(PAGE).unwrap();
            assert_eq!(memory.extents(first, 5, 0, 100), [Extent { address: 0, length: 0 }]);
            let all = memory.extents(second, 0, 0, 100);
            assert_eq!(all, [Extent { address: 3 * PAGE, length: 0 }]);
        });
    }
}
