//! Completion queues: they tell which work queue has finished a descriptor.

use crate::abi::CqCallback;
use crate::handle::Handle;
use std::collections::VecDeque;
use std::ffi::{c_ulong, c_void};

/// Most handlers that wait for one queue.
pub const NOTIFICATIONS: usize = 1024;

/// A completion queue. It holds an entry for every descriptor that is finished and not fetched, so
/// it cannot overflow. The program's size is only the size that it asked for.
#[derive(Default)]
pub struct Cq {
    /// The VI, and whether the entry is of its receive queue.
    pub entries: VecDeque<(Handle, bool)>,
    pub size: c_ulong,
    /// Work queues that complete here.
    pub users: u32,
    pub handlers: VecDeque<(CqCallback, *mut c_void)>,
}

// SAFETY: the contexts are handed back, never dereferenced.
unsafe impl Send for Cq {}
