//! Memory that begins as zeros, and that the next machine of a thread uses again.
//!
//! A host's memory is large, and a run touches little of it. To map it anew for each run costs a
//! page fault for each page that is touched. Threads of one process then also wait for each other,
//! as all faults change one page table. So whoever drops memory zeroes what was touched, and keeps
//! it for the thread's next machine.

use std::cell::RefCell;

const PAGE: usize = 4096;
/// Memory with more touched pages is given back to the system, as kept pages stay for ever.
const KEPT_PAGES: u32 = 256;
/// Memories that a thread keeps: those of two machines of four nodes.
const KEPT: usize = 8;

thread_local! {
    static KEPT_HERE: RefCell<Vec<Zeroed>> = const { RefCell::new(Vec::new()) };
}

/// Bytes, and which pages of them may be other than zero.
#[derive(Default)]
struct Zeroed {
    bytes: Vec<u8>,
    touched: Vec<u64>,
}

/// Bytes that were zeros at first.
pub struct ZeroedBytes(Zeroed);

/// Whether this machine gives memory of so many bytes. It is given back at once: who asks does not
/// want to end as [`ZeroedBytes::new`] would.
pub fn can_hold(length: u64) -> bool {
    let Ok(length) = usize::try_from(length) else { return false };
    let mut bytes = Vec::<u8>::new();
    let is_given = bytes.try_reserve_exact(length).is_ok();
    // Otherwise the compiler may leave out what nobody uses, and take it for given.
    std::hint::black_box(&mut bytes);
    is_given
}

impl ZeroedBytes {
    /// So many zeros.
    pub fn new(length: usize) -> ZeroedBytes {
        let kept = KEPT_HERE.with_borrow_mut(|kept| {
            let at = kept.iter().position(|it| it.bytes.len() == length)?;
            Some(kept.swap_remove(at))
        });
        ZeroedBytes(kept.unwrap_or_else(|| Zeroed {
            bytes: vec![0; length],
            touched: vec![0; length.div_ceil(PAGE).div_ceil(64)],
        }))
    }

    /// `length` bytes from `start` on, or nothing if not all of them exist.
    pub fn get(&self, start: usize, length: usize) -> Option<&[u8]> {
        self.0.bytes.get(start..start.checked_add(length)?)
    }

    /// The same for writing.
    pub fn get_mut(&mut self, start: usize, length: usize) -> Option<&mut [u8]> {
        let Zeroed { bytes, touched } = &mut self.0;
        let slice = bytes.get_mut(start..start.checked_add(length)?)?;
        for page in start / PAGE..(start + length).div_ceil(PAGE) {
            touched[page / 64] |= 1 << (page % 64);
        }
        Some(slice)
    }
}

impl Zeroed {
    fn touched_pages(&self) -> u32 {
        self.touched.iter().map(|word| word.count_ones()).sum()
    }

    fn clear(&mut self) {
        for (at, word) in self.touched.iter_mut().enumerate() {
            let mut left = std::mem::take(word);
            while left != 0 {
                let start = (at * 64 + left.trailing_zeros() as usize) * PAGE;
                let end = (start + PAGE).min(self.bytes.len());
                self.bytes[start..end].fill(0);
                left &= left - 1;
            }
        }
    }
}

impl Drop for ZeroedBytes {
    fn drop(&mut self) {
        let mut own = std::mem::take(&mut self.0);
        if own.touched_pages() > KEPT_PAGES {
            return;
        }
        own.clear();
        // A thread that ends keeps nothing.
        let _ = KEPT_HERE.try_with(|kept| {
            let mut kept = kept.borrow_mut();
            if kept.len() == KEPT {
                kept.remove(0);
            }
            kept.push(own);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory that no machine has is refused, and a page is not.
    #[test]
    fn what_no_machine_has_is_refused() {
        assert!(can_hold(PAGE as u64));
        assert!(!can_hold(1 << 60) && !can_hold(u64::MAX));
    }

    /// Tests may share a thread.
    fn forget() {
        KEPT_HERE.with_borrow_mut(Vec::clear);
    }

    fn kept() -> usize {
        KEPT_HERE.with_borrow(Vec::len)
    }

    #[test]
    fn memory_that_is_used_again_is_zero() {
        const LENGTH: usize = 100 * PAGE + 5;
        forget();
        let mut memory = ZeroedBytes::new(LENGTH);
        let first = memory.get(0, 1).expect("inside").as_ptr();
        // Parts of one page, of two, of a bit in another word, and the last piece of a page.
        for (start, length) in [(3, 1), (4095, 2), (64 * PAGE, PAGE), (LENGTH - 5, 5), (7, 0)] {
            memory.get_mut(start, length).expect("inside").fill(0xff);
        }
        drop(memory);
        assert_eq!(kept(), 1);
        let other = ZeroedBytes::new(PAGE);
        assert_eq!((kept(), other.get(0, PAGE)), (1, Some(&[0; PAGE][..])));
        let again = ZeroedBytes::new(LENGTH);
        assert_eq!(kept(), 0);
        let bytes = again.get(0, LENGTH).expect("inside");
        assert_eq!(bytes.as_ptr(), first);
        assert!(bytes.iter().all(|byte| *byte == 0));
    }

    #[test]
    fn nothing_is_outside() {
        let mut memory = ZeroedBytes::new(10);
        assert!(memory.get(0, 10).is_some() && memory.get(10, 0).is_some());
        for (start, length) in [(0, 11), (10, 1), (11, 0), (1, usize::MAX)] {
            assert!(memory.get(start, length).is_none() && memory.get_mut(start, length).is_none());
        }
    }

    #[test]
    fn little_is_kept() {
        crate::limit::limited(|| {
            forget();
            let mut large = ZeroedBytes::new((KEPT_PAGES as usize + 1) * PAGE);
            large.get_mut(0, KEPT_PAGES as usize * PAGE).expect("inside");
            drop(large);
            assert_eq!(kept(), 1, "so many pages are kept");
            let mut large = ZeroedBytes::new((KEPT_PAGES as usize + 1) * PAGE);
            large.get_mut(0, KEPT_PAGES as usize * PAGE + 1).expect("inside");
            drop(large);
            assert_eq!(kept(), 0, "a page more is too much");
            drop((1..=KEPT + 3).map(ZeroedBytes::new).collect::<Vec<_>>());
            assert_eq!(kept(), KEPT);
            let lengths = KEPT_HERE.with_borrow(|kept| kept.iter().map(|it| it.bytes.len()).min());
            assert_eq!(lengths, Some(4), "the oldest go first");
        });
    }
}
