//! Work queues: descriptors in the order of posting. The program gets them back in that order.

use crate::abi::{Descriptor, ViCallback, status};
use crate::translate::{Operation, Translated};
use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};

/// A posted descriptor.
pub struct Entry {
    pub descriptor: *mut Descriptor,
    /// Memory handle of the descriptor itself.
    pub handle: u32,
    pub translated: Translated,
    /// Device operations that it still waits for.
    pub left: u8,
    pub done: bool,
    // The outcome.
    pub error: u32,
    pub length: u32,
    pub immediate: Option<u32>,
    pub is_remote_write: bool,
}

/// One of a VI's two queues.
pub struct WorkQueue {
    pub entries: VecDeque<Entry>,
    /// Number of the first entry, counted from the first ever posted.
    pub base: u64,
    /// Entries at the front whose outcome is in the program's descriptor.
    pub reported: usize,
    pub cq: Option<u16>,
    pub handlers: VecDeque<(ViCallback, *mut c_void)>,
}

impl WorkQueue {
    pub fn new(cq: Option<u16>) -> Self {
        WorkQueue { entries: VecDeque::new(), base: 0, reported: 0, cq, handlers: VecDeque::new() }
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether a descriptor is unfinished.
    pub fn has_open(&self) -> bool {
        self.reported < self.entries.len()
    }

    pub fn find(&mut self, number: u64) -> Option<&mut Entry> {
        let place = usize::try_from(number.checked_sub(self.base)?).ok()?;
        self.entries.get_mut(place)
    }
}

impl Entry {
    /// Writes the outcome to the program's descriptor (M-25), the status last: a program may poll
    /// the status alone.
    pub fn report(&self) {
        let mut bits = status::DONE | self.error;
        bits |= match self.is_remote_write {
            true => status::OP_REMOTE_RDMA_WRITE,
            false => self.translated.operation.status(),
        };
        if self.immediate.is_some() {
            bits |= status::IMMEDIATE;
        }
        // SAFETY: the descriptor is aligned and lies in a region that cannot be deregistered before
        // this.
        unsafe {
            let control = &raw mut (*self.descriptor).control;
            (&raw mut (*control).length).write_volatile(self.length);
            if let (Some(immediate), Operation::Receive) =
                (self.immediate, self.translated.operation)
            {
                (&raw mut (*control).immediate_data).write_volatile(immediate);
            }
            // Pairs with the program's read of the status word.
            AtomicU32::from_ptr(&raw mut (*control).status).store(bits, Ordering::Release);
        }
    }
}
