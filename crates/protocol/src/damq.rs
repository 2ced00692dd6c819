//! A dynamically allocated multi-queue: many queues in one memory; no queue owns a part of it.
//!
//! Source: DAMQ-PD, abstract and Sec. 1 (the section with the details is lost, so the layout here
//! is ours). The memory is cut into cells of one size. An *address queue*, one link per cell,
//! chains the cells of a queue in the order of arrival. Each queue has a head and a tail pointer
//! (D-02). The unused cells form one more such chain, the free list (D-03). There is no private
//! reserve: a queue may fill the whole memory while the others are idle (D-01, D-14).
//!
//! ```text
//!   queue 0  head --> [5] --> [2] --> [7] <-- tail       a message is a run of cells on the chain:
//!   queue 1  head --> [0] <-- tail                       |  message A   | message B |
//!   free     head --> [1] --> [3] --> [4] --> [6]        | [5] --> [2]  --> [7]     |
//! ```
//!
//! A message is written along the first cells of the free list, which are chained already. The run
//! is then cut off there and appended to the queue, which changes two links for any length. Removal
//! is the same in reverse. So a message is stored whole or not at all. The cell freed last is
//! warmest in the cache, and is used next.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec;

use crate::canary::planted;

/// "No cell", at the end of a chain.
const NIL: u32 = u32::MAX;

/// Queues of whole messages in one shared memory. `H` is a small value that is kept beside each
/// message.
///
/// Queues are numbered from 0 and need no set-up: an empty queue is 16 bytes in a table and holds
/// no cell. [`clear`](Self::clear) drops a queue. Nothing is allocated after construction. Every
/// operation except [`check`](Self::check) costs a fixed time plus the copying of the message.
///
/// Methods that take a queue panic if its number is not below the number given to
/// [`new`](Self::new). Queue numbers come from the owner's tables, never from a peer.
pub struct Damq<H> {
    cell_shift: u32,
    memory: Box<[u8]>,
    /// The address queue: for each cell the next cell on its chain.
    next: Box<[u32]>,
    /// For the first cell of each message: its header, length and last cell.
    messages: Box<[Message<H>]>,
    queues: Box<[Queue]>,
    free_head: u32,
    free_cells: u32,
}

#[derive(Clone, Copy, Default)]
struct Message<H> {
    header: H,
    len: u32,
    last: u32,
}

#[derive(Clone, Copy)]
struct Queue {
    head: u32,
    tail: u32,
    cells: u32,
    messages: u32,
}

const EMPTY: Queue = Queue { head: NIL, tail: NIL, cells: 0, messages: 0 };

/// Why a message was not stored. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PushError {
    /// Not enough cells are free now; try again after some queue has been read.
    #[error(
        "the message takes {needed_cells} cells and {free_cells} are free; read a queue, then try again"
    )]
    Full {
        /// Cells that the message needs.
        needed_cells: usize,
        /// Cells that are free.
        free_cells: usize,
    },
    /// The message is longer than the whole memory and will never fit; split it.
    #[error(
        "the message has {len} bytes and the whole memory holds {max_bytes}; split the message"
    )]
    TooLong {
        /// Length of the message.
        len: usize,
        /// Length of the longest message that an empty memory can hold.
        max_bytes: usize,
    },
}

impl<H: Copy + Default> Damq<H> {
    /// A memory of `cells` free cells of `cell_bytes` bytes, shared by queues `0..queues`.
    ///
    /// # Panics
    /// If `cells` or `queues` is 0, if `cell_bytes` is no power of two, or if `cells * cell_bytes`
    /// is 4 GiB or more.
    pub fn new(cells: usize, cell_bytes: usize, queues: usize) -> Self {
        assert!(cells > 0 && queues > 0, "a DAMQ needs at least one cell and one queue");
        assert!(cell_bytes.is_power_of_two(), "the size of a cell must be a power of two");
        let bytes = cells.checked_mul(cell_bytes).filter(|&bytes| bytes < u32::MAX as usize);
        let bytes = bytes.expect("a DAMQ holds less than 4 GiB");
        let mut next: Box<[u32]> = (1..=cells as u32).collect();
        next[cells - 1] = NIL;
        Self {
            cell_shift: cell_bytes.trailing_zeros(),
            memory: vec![0; bytes].into(),
            next,
            messages: vec![Message::default(); cells].into(),
            queues: vec![EMPTY; queues].into(),
            free_head: 0,
            free_cells: cells as u32,
        }
    }

    /// Appends a message of `len` bytes to `queue`.
    ///
    /// `fill(offset, piece)` is called once per cell, in order, and writes the bytes
    /// `offset..offset + piece.len()` of the message. So they can come straight out of foreign
    /// memory. It is not called if the message is refused. An empty message takes one cell, because
    /// its header needs a place.
    ///
    /// # Errors
    /// [`PushError::Full`] or [`PushError::TooLong`]; nothing has changed then.
    #[inline]
    pub fn push(
        &mut self,
        queue: u32,
        header: H,
        len: usize,
        mut fill: impl FnMut(usize, &mut [u8]),
    ) -> Result<(), PushError> {
        let mut ends = self.queues[queue as usize];
        let needed_cells = self.cells_for(len);
        if needed_cells > self.free_cells as usize {
            return Err(self.refusal(len, needed_cells));
        }
        let (first, mut last, mut offset) = (self.free_head, self.free_head, 0);
        while offset < len {
            if offset > 0 {
                last = self.next[last as usize];
            }
            let piece = (len - offset).min(self.cell_bytes());
            let at = (last as usize) << self.cell_shift;
            fill(offset, &mut self.memory[at..at + piece]);
            offset += piece;
        }
        // Nothing changes before this point: a `fill` that panics leaves the queues as they were.
        self.messages[first as usize] = Message { header, len: len as u32, last };
        self.free_head = self.next[last as usize];
        self.free_cells -= needed_cells as u32;
        self.next[last as usize] = NIL;
        if ends.cells == 0 {
            ends.head = first;
        } else {
            self.next[ends.tail as usize] = first;
        }
        ends.tail = if planted("damq-order") { first } else { last };
        ends.cells += needed_cells as u32;
        ends.messages += 1;
        self.queues[queue as usize] = ends;
        Ok(())
    }

    /// Header and length in bytes of the oldest message of `queue`; `None` if the queue is empty.
    #[inline]
    pub fn front(&self, queue: u32) -> Option<(H, usize)> {
        let queue = &self.queues[queue as usize];
        let message = self.messages.get(queue.head as usize)?;
        Some((message.header, message.len as usize))
    }

    /// Removes the oldest message of `queue` and returns its header and length; `None` if the queue
    /// is empty.
    ///
    /// Before that, `read(offset, piece)` is called once per cell, in order, with the bytes that
    /// begin at `offset`.
    #[inline]
    pub fn pop(&mut self, queue: u32, mut read: impl FnMut(usize, &[u8])) -> Option<(H, usize)> {
        let (header, len) = self.front(queue)?;
        let (mut cell, mut offset) = (self.queues[queue as usize].head, 0);
        while offset < len {
            if offset > 0 {
                cell = self.next[cell as usize];
            }
            let piece = (len - offset).min(self.cell_bytes());
            let at = (cell as usize) << self.cell_shift;
            read(offset, &self.memory[at..at + piece]);
            offset += piece;
        }
        self.discard(queue);
        Some((header, len))
    }

    /// Removes the oldest message of `queue` unread and returns its header and length; `None` if
    /// the queue is empty.
    #[inline]
    pub fn discard(&mut self, queue: u32) -> Option<(H, usize)> {
        let (header, len) = self.front(queue)?;
        let cells = self.cells_for(len) as u32;
        let queue = &mut self.queues[queue as usize];
        let first = queue.head;
        let last = self.messages[first as usize].last;
        if queue.messages == 1 {
            *queue = EMPTY;
        } else {
            queue.head = self.next[last as usize];
            queue.cells -= cells;
            queue.messages -= 1;
        }
        self.free(first, last, cells);
        Some((header, len))
    }

    /// Removes all messages of `queue` unread and returns their number. The cost does not depend on
    /// that number.
    pub fn clear(&mut self, queue: u32) -> usize {
        let Queue { head, tail, cells, messages } =
            core::mem::replace(&mut self.queues[queue as usize], EMPTY);
        if cells > 0 {
            self.free(head, tail, cells);
        }
        messages as usize
    }

    /// Cells that no queue uses.
    #[inline]
    pub fn free_cells(&self) -> usize {
        self.free_cells as usize
    }

    /// Cells that `queue` uses.
    #[inline]
    pub fn cells_of(&self, queue: u32) -> usize {
        self.queues[queue as usize].cells as usize
    }

    /// Messages on `queue`.
    #[inline]
    pub fn messages_of(&self, queue: u32) -> usize {
        self.queues[queue as usize].messages as usize
    }

    /// All cells, free or not.
    pub fn cells(&self) -> usize {
        self.next.len()
    }

    /// Bytes in a cell.
    #[inline]
    pub fn cell_bytes(&self) -> usize {
        1 << self.cell_shift
    }

    /// Cells that a message of `len` bytes takes: at least one.
    #[inline]
    pub fn cells_for(&self, len: usize) -> usize {
        // Not `len + cell_bytes - 1`: a length near `usize::MAX` must be refused, not wrap to a
        // small one.
        (len.saturating_sub(1) >> self.cell_shift) + 1
    }

    /// Walks every chain and reports the first error; for tests.
    ///
    /// # Errors
    /// A sentence, if a cell is on no chain or on two, or if a count or a tail pointer disagrees
    /// with its chain.
    pub fn check(&self) -> Result<(), String> {
        let mut seen = vec![false; self.cells()];
        let free = self.walk(self.free_head, &mut seen)?;
        if free.cells != self.free_cells {
            return Err(format!("free list has {} cells, counted {}", free.cells, self.free_cells));
        }
        for (number, queue) in self.queues.iter().enumerate() {
            let found = self.walk(queue.head, &mut seen)?;
            if (found.cells, found.tail) != (queue.cells, queue.tail) {
                return Err(format!(
                    "queue {number} has {} cells and ends at {}, recorded {} and {}",
                    found.cells, found.tail, queue.cells, queue.tail
                ));
            }
            self.check_messages(number, queue)?;
        }
        match seen.iter().position(|&seen| !seen) {
            Some(cell) => Err(format!("cell {cell} is on no chain")),
            None => Ok(()),
        }
    }

    fn check_messages(&self, number: usize, queue: &Queue) -> Result<(), String> {
        let mut cell = queue.head;
        for _ in 0..queue.messages {
            let Some(message) = self.messages.get(cell as usize) else {
                return Err(format!("queue {number} ends before its message count"));
            };
            for _ in 1..self.cells_for(message.len as usize) {
                cell = self.next[cell as usize];
            }
            if cell != message.last {
                return Err(format!(
                    "queue {number}: a message ends at {cell}, recorded {}",
                    message.last
                ));
            }
            cell = self.next[cell as usize];
        }
        if cell == NIL {
            Ok(())
        } else {
            Err(format!("queue {number} goes on after its last message"))
        }
    }

    /// Follows one chain, marks its cells, and returns what it found.
    fn walk(&self, head: u32, seen: &mut [bool]) -> Result<Queue, String> {
        let mut found = Queue { head, ..EMPTY };
        let mut cell = head;
        while cell != NIL {
            if core::mem::replace(&mut seen[cell as usize], true) {
                return Err(format!("cell {cell} is on two chains, or on one twice"));
            }
            found.cells += 1;
            found.tail = cell;
            cell = self.next[cell as usize];
        }
        Ok(found)
    }

    /// Puts the chain `first..=last` of `cells` cells at the front of the free list.
    #[inline]
    fn free(&mut self, first: u32, last: u32, cells: u32) {
        self.next[last as usize] = self.free_head;
        self.free_head = first;
        self.free_cells += cells;
        if planted("damq-lost-free") {
            self.free_head = self.next[first as usize];
            self.free_cells -= 1;
        }
    }

    #[cold]
    fn refusal(&self, len: usize, needed_cells: usize) -> PushError {
        if needed_cells > self.cells() {
            PushError::TooLong { len, max_bytes: self.memory.len() }
        } else {
            PushError::Full { needed_cells, free_cells: self.free_cells() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Canary: the checker notices a message that ends elsewhere, and wrong counts of messages.
    #[test]
    fn wrong_messages_are_noticed() {
        let mut damq = Damq::<u8>::new(16, 8, 1);
        for length in [40, 1] {
            damq.push(0, 0, length, |_, piece| piece.fill(0)).expect("room");
        }
        assert_eq!(damq.check(), Ok(()));
        let first = damq.queues[0].head as usize;
        let last = damq.messages[first].last;
        damq.messages[first].last = damq.queues[0].tail;
        assert!(damq.check().is_err());
        damq.messages[first].last = last;
        for messages in [1, 3] {
            damq.queues[0].messages = messages;
            assert!(damq.check().is_err(), "{messages} messages");
        }
    }
}
