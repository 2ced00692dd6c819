//! The names of a received tree, and their memory.

use anyhow::{Result, ensure};
use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::rc::Rc;

/// Memory for the names of all copies received at a time, in bytes.
pub const ALL_BYTES: usize = 2 << 30;

/// Memory for the names of one copy: about five million names of 80 bytes. It shrinks while other
/// copies are received.
pub const ONE_BYTES: usize = ALL_BYTES / 2;

/// Bytes of a name in the table. An entry and its control byte take 25 bytes. While a table that is
/// full to 7/8 grows, the old one and one of twice its size exist: 3 * 25 * 8 / 7.
const ENTRY_BYTES: usize = 86;

/// Bytes of a folder in the list of [`Names::folders`].
const LISTED_BYTES: usize = size_of::<(&OsStr, u32)>();

/// Total bytes of a name: its entries, and its text as malloc rounds it up.
pub const fn cost(length: usize) -> usize {
    let allocated = (length + 8).next_multiple_of(16);
    ENTRY_BYTES + LISTED_BYTES + if allocated < 32 { 32 } else { allocated }
}

/// The bytes still free for names.
#[derive(Clone)]
pub struct Budget(Rc<Cell<usize>>);

impl Budget {
    /// A budget of [`ALL_BYTES`].
    pub fn new() -> Budget {
        Budget(Rc::new(Cell::new(ALL_BYTES)))
    }
}

/// Every path received so far.
pub struct Names {
    /// Each path; for a folder also its final permissions.
    known: HashMap<Box<OsStr>, Option<u32>>,
    /// Their total cost in bytes.
    bytes: usize,
    budget: Budget,
}

impl Names {
    pub fn new(budget: &Budget) -> Names {
        Names { known: HashMap::new(), bytes: 0, budget: budget.clone() }
    }

    /// Reserves memory for a name of `length` bytes. One copy may hold at most as much as is then
    /// left for all others, so the next copy always finds some.
    pub fn reserve(&mut self, length: usize) -> Result<()> {
        let (cost, left) = (cost(length), self.budget.0.get());
        ensure!(
            self.bytes + cost <= left.saturating_sub(cost),
            "its names take more memory than is left for them (at most {ONE_BYTES} bytes): copy it in parts"
        );
        self.bytes += cost;
        self.budget.0.set(left - cost);
        Ok(())
    }

    /// Adds a name that was [reserved](Names::reserve). `mode`: the final permissions of a folder.
    pub fn add(&mut self, path: &OsStr, mode: Option<u32>) {
        self.known.insert(path.into(), mode);
    }

    /// Whether it was received.
    pub fn contains(&self, path: &OsStr) -> bool {
        self.known.contains_key(path)
    }

    /// Whether it was received as a folder.
    pub fn is_folder(&self, path: &OsStr) -> bool {
        matches!(self.known.get(path), Some(Some(_)))
    }

    /// All folders with their permissions, each before its parent.
    pub fn folders(&self) -> Vec<(&OsStr, u32)> {
        let count = self.known.values().flatten().count();
        let mut folders = Vec::with_capacity(count);
        folders.extend(self.known.iter().filter_map(|(path, mode)| Some((&**path, (*mode)?))));
        // A path is longer than its parent's path. The sort is in place, without memory of its own.
        folders.sort_unstable_by_key(|(path, _)| std::cmp::Reverse(path.len()));
        folders
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        self.budget.0.set(self.budget.0.get() + self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    /// Compares `cost` with the peak of the allocator for names of `length` bytes; an error if the
    /// peak is higher. The numbers of names are near those at which tables grow.
    fn covers(cost: impl Fn(usize) -> usize, length: usize) -> Result<(), String> {
        let counts = [1, 3, 4, 7, 8, 28, 29, 448, 449, 1_000, 14_336, 14_337, 20_000];
        for count in counts.into_iter().filter(|count| count * length <= 8 << 20) {
            let taken = allocation_counter::measure(|| {
                let mut names = Names::new(&Budget::new());
                for number in 0..count {
                    // Received names are in a vector with spare capacity.
                    let mut path = OsString::with_capacity(2 * length);
                    path.push(format!("{number:0length$}"));
                    names.reserve(path.len()).expect("room");
                    names.add(&path, Some(0o755));
                }
                std::hint::black_box(names.folders());
            });
            // Fixed costs: the message and its text, the smallest table, and the budget.
            let counted = count * cost(length) + 6 * length + 256;
            if taken.bytes_max > counted as u64 {
                return Err(format!(
                    "{count} names of {length} take {}, not {counted}",
                    taken.bytes_max
                ));
            }
            // The cost is not far too high either.
            assert!(count < 8 || counted as u64 <= 4 * taken.bytes_max, "{count} of {length}");
        }
        Ok(())
    }

    /// The counted cost of names covers the allocator's peak.
    #[test]
    fn names_cost_what_is_counted() {
        for length in [5, 8, 24, 25, 40, 255, 4_000] {
            covers(cost, length).expect("enough is counted");
        }
    }

    /// Canaries: a cost without the growing table, or without the names themselves, is noticed.
    #[test]
    fn a_cost_that_is_too_low_is_noticed() {
        assert!(covers(|length| cost(length) - ENTRY_BYTES + 25, 8).is_err());
        assert!(covers(|length| cost(length) - length, 255).is_err());
    }

    /// One copy gets no more than its part and always leaves memory for others. Dropped names free
    /// theirs.
    #[test]
    fn nobody_has_all_memory_for_names() {
        let budget = Budget::new();
        let length = 1 << 20;
        let fill = |names: &mut Names| while names.reserve(length).is_ok() {};
        let mut first = Names::new(&budget);
        fill(&mut first);
        assert!(first.bytes <= ONE_BYTES && first.bytes > ONE_BYTES - 2 * cost(length));
        let mut second = Names::new(&budget);
        fill(&mut second);
        assert!(second.bytes > ONE_BYTES / 2 - 2 * cost(length));
        drop((first, second));
        assert_eq!(budget.0.get(), ALL_BYTES);
    }
}
