//! Records that several blocks share, by index instead of by pointer.

/// The place of a record in a [`Pool`]. Events and channels carry it in place of the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle(u32);

impl Handle {
    /// The index, for the trace hash.
    pub const fn index(self) -> u32 {
        self.0
    }
}

/// Records of one kind. Places are recycled, so nothing is allocated beyond the maximum in use.
#[derive(Clone, Debug)]
pub struct Pool<T> {
    records: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Pool<T> {
    fn default() -> Pool<T> {
        Pool { records: Vec::new(), free: Vec::new() }
    }
}

impl<T> Pool<T> {
    /// Stores a record.
    pub fn put(&mut self, record: T) -> Handle {
        match self.free.pop() {
            Some(at) => {
                self.records[at as usize] = Some(record);
                Handle(at)
            }
            None => {
                self.records.push(Some(record));
                Handle((self.records.len() - 1) as u32)
            }
        }
    }

    /// Removes a record and returns it.
    ///
    /// # Panics
    /// If it was removed before: a block used a handle twice.
    pub fn take(&mut self, handle: Handle) -> T {
        let record = self.records[handle.0 as usize].take().expect("the record is in use");
        self.free.push(handle.0);
        record
    }

    /// How many records are in use.
    pub fn len(&self) -> usize {
        self.records.len() - self.free.len()
    }

    /// Whether none is in use.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T> std::ops::Index<Handle> for Pool<T> {
    type Output = T;
    fn index(&self, handle: Handle) -> &T {
        self.records[handle.0 as usize].as_ref().expect("the record is in use")
    }
}

impl<T> std::ops::IndexMut<Handle> for Pool<T> {
    fn index_mut(&mut self, handle: Handle) -> &mut T {
        self.records[handle.0 as usize].as_mut().expect("the record is in use")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Places are reused, and counted.
    #[test]
    fn records_are_recycled() {
        let mut pool = Pool::default();
        let (a, b) = (pool.put("a"), pool.put("b"));
        assert!(!pool.is_empty());
        assert_eq!((pool[a], pool.len()), ("a", 2));
        assert_eq!(pool.take(a), "a");
        let c = pool.put("c");
        assert_eq!((c, pool.len()), (a, 2));
        assert_eq!((pool.take(b), pool.take(c)), ("b", "c"));
        assert!(pool.is_empty());
    }
}
