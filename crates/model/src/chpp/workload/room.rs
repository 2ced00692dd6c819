//! An allocator for a range of memory.

/// The allocated pieces.
pub(super) struct Room {
    length: u64,
    /// First byte and length of each piece, in order.
    taken: Vec<(u64, u64)>,
}

impl Room {
    /// `length` free bytes.
    pub fn new(length: u64) -> Room {
        Room { length, taken: Vec::new() }
    }

    /// Allocates the first free piece of `bytes`, in whole cache lines; nothing if none is free.
    pub fn take(&mut self, bytes: u64) -> Option<u64> {
        let bytes = bytes.max(1).next_multiple_of(64);
        let (mut from, mut at) = (0, 0);
        for &(begins, length) in &self.taken {
            if begins - from >= bytes {
                break;
            }
            from = begins + length;
            at += 1;
        }
        if self.length.checked_sub(from)? < bytes {
            return None;
        }
        self.taken.insert(at, (from, bytes));
        Some(from)
    }

    /// Frees the piece that begins at `from`.
    pub fn free(&mut self, from: u64) {
        self.taken.retain(|&(begins, _)| begins != from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces do not overlap, holes are reused, and a piece without room is refused.
    #[test]
    fn pieces_are_apart() {
        let mut room = Room::new(256);
        assert_eq!([room.take(64), room.take(65), room.take(64)], [Some(0), Some(64), Some(192)]);
        assert_eq!(room.take(1), None);
        room.free(64);
        assert_eq!([room.take(129), room.take(100), room.take(1)], [None, Some(64), None]);
    }
}
