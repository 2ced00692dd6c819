//! Completion channels: queues of events behind a descriptor.

use crate::abi;
use crate::context::ContextObject;
use bellwire_rdma::EventQueue;
use std::cell::Cell;
use std::sync::Arc;

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
        let abi = abi::CompChannel { context, fd: queue.fd(), refcnt: Cell::new(0) };
        Ok(Channel { abi, queue })
    }

    pub fn context(&self) -> &'static ContextObject {
        ContextObject::of(self.abi.context)
    }

    /// Counts the completion queues that use it.
    pub fn count(&self, by: i32) -> i32 {
        self.abi.refcnt.set(self.abi.refcnt.get() + by);
        self.abi.refcnt.get()
    }
}
