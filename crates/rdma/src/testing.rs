//! What the unit tests of several files use.

use crate::context::Context;
use crate::events::EventQueue;
use crate::{
    Access, Attributes, Bytes, CqId, Datagram, Mask, Operation, QpState, QueuePairOptions,
    SendRequest, Service, Sge,
};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What anything may take before it counts as a hang.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);
/// Room for a route header and a few bytes.
const BYTES: usize = 64;

/// Waits until the condition holds.
pub(crate) fn until(what: &str, condition: impl Fn() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < LIMIT, "{what}");
        std::thread::yield_now();
    }
}

/// A queue pair for datagrams with 16 receives, whose completions raise events of `channel`.
pub(crate) struct Side {
    pub number: u32,
    pub queue: CqId,
    pub channel: Arc<EventQueue<usize>>,
}

impl Side {
    /// `object`: what its events tell.
    pub fn new(context: &Context, object: usize) -> Side {
        let channel = Arc::new(EventQueue::new().unwrap());
        let mut adapter = context.lock();
        let domain = adapter.create_domain().unwrap();
        let queue = adapter.create_queue(64, Some(channel.clone()), object).unwrap();
        let capacity = crate::Capacity {
            sends: 16,
            receives: 16,
            send_parts: 1,
            receive_parts: 1,
            inline_bytes: 16,
        };
        let options = QueuePairOptions {
            service: Service::Datagram,
            domain,
            send_queue: queue,
            receive_queue: queue,
            shared: None,
            capacity,
            signal_all: false,
            object,
        };
        let number = adapter.create_queue_pair(&options).unwrap();
        for (state, mask) in [
            (QpState::Init, Mask::PKEY_INDEX | Mask::PORT | Mask::QKEY),
            (QpState::ReadyToReceive, Mask::empty()),
            (QpState::ReadyToSend, Mask::SEND_PSN),
        ] {
            let new = Attributes { state, ..Attributes::new() };
            adapter.modify(number, Mask::STATE | mask, &new).unwrap();
        }
        let place = Box::leak(Box::new([0u8; BYTES]));
        let base = place.as_ptr() as u64;
        // SAFETY: the bytes are never freed.
        let key = unsafe {
            adapter.register(domain, place.as_mut_ptr(), BYTES, base, Access::LOCAL_WRITE)
        };
        let part = Sge { address: base, length: BYTES as u32, key: key.unwrap() };
        for _ in 0..16 {
            adapter.post_receive(number, 1, &[part]).unwrap();
        }
        adapter.arm(queue, false).unwrap();
        drop(adapter);
        Side { number, queue, channel }
    }

    /// Sends a datagram without an event of its own.
    pub fn send(&self, context: &Context, (host, queue_pair): (Ipv4Addr, u32)) {
        let request = SendRequest {
            id: 6,
            operation: Operation::default(),
            bytes: Bytes::Inline(b"wake"),
            signaled: false,
            solicited: false,
            fence: false,
            to: Some(Datagram { host, queue_pair, key: 0 }),
        };
        let mut adapter = context.lock();
        adapter.post_send(self.number, &request).unwrap();
        while adapter.progress() > 0 {}
    }
}
