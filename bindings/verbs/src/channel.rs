//! Completion channels: queues of events behind a descriptor.

use crate::abi;
use crate::context::ContextObject;
use bellwire_rdma::EventQueue;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

/// A completion channel.
#[repr(C)]
pub struct Channel {
    abi: abi::CompChannel,
    /// The addresses of completion queues with an event.
    pub queue: Arc<EventQueue<usize>>,
}

impl Channel {
    pub fn new(context: &abi::Context) -> std::io::Result<Channel> {
        let queue = Arc::new(EventQueue::new()?);
        let abi = abi::CompChannel { context, fd: queue.fd(), refcnt: AtomicI32::new(0) };
        Ok(Channel { abi, queue })
    }

    pub fn context(&self) -> &'static ContextObject {
        ContextObject::of(self.abi.context)
    }

    /// Counts the completion queues that use it.
    pub fn count(&self, by: i32) -> i32 {
        self.abi.refcnt.fetch_add(by, Ordering::Relaxed) + by
    }
}
