//! The calls of a function that need its transport, behind one dynamic call each.

use super::{Core, Inbox};
use crate::completion_queue::Taken;
use crate::device::Claim;
use crate::{
    Atomic, Error, FunctionOptions, Get, MemoryRegion, Message, Put, QueuePairOptions, Refused,
    Result, Rights,
};
use bellwire_device::{Address, QueuePair, Transport};
use bellwire_ring::memory::Memory;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// A transport as a function sees it. Every [`Transport`] implements it; no other type does.
#[allow(missing_docs)]
pub trait DynTransport: std::marker::Send {
    fn start(&self, options: &FunctionOptions) -> Result<Core>;
    fn progress(&mut self, core: &mut Core) -> usize;
    fn poll<'a>(&mut self, core: &'a mut Core, queue: u32) -> Option<Taken<'a>>;
    fn poll_with<'a>(
        &mut self,
        core: &'a mut Core,
        queue: u32,
        inbox: &mut dyn Inbox,
    ) -> Option<Taken<'a>>;

    fn post_send(
        &mut self,
        core: &mut Core,
        queue_pair: QueuePair,
        send: &mut Message<'_>,
    ) -> Result<()>;
    fn post_sends(
        &mut self,
        core: &mut Core,
        queue_pair: QueuePair,
        sends: &mut [Message<'_>],
        posted: &mut usize,
    ) -> Result<()>;
    fn post_put(&mut self, core: &mut Core, queue_pair: QueuePair, put: &mut Put<'_>)
    -> Result<()>;
    fn post_get(&mut self, core: &mut Core, queue_pair: QueuePair, get: &mut Get) -> Result<()>;
    fn post_atomic(
        &mut self,
        core: &mut Core,
        queue_pair: QueuePair,
        atomic: &Atomic,
    ) -> Result<()>;

    fn create_queue_pair(
        &mut self,
        core: &mut Core,
        options: &QueuePairOptions,
        channel: Option<(u16, Claim)>,
    ) -> Result<QueuePair>;
    fn destroy_queue_pair(&mut self, core: &mut Core, queue_pair: QueuePair) -> Result<()>;
    fn start_connect(
        &mut self,
        core: &mut Core,
        queue_pair: QueuePair,
        to: Address,
        private_data: &[u8],
        timeout: Duration,
    ) -> Result<()>;
    fn disconnect(&mut self, core: &mut Core, queue_pair: QueuePair) -> Result<()>;

    fn allocate_region(
        &mut self,
        core: &mut Core,
        length: usize,
        rights: Rights,
    ) -> Result<MemoryRegion>;
    fn register(
        &mut self,
        core: &mut Core,
        memory: Vec<u8>,
        rights: Rights,
    ) -> Result<MemoryRegion, Refused<Vec<u8>>>;
    fn register_foreign(
        &mut self,
        core: &mut Core,
        memory: Memory,
        rights: Rights,
    ) -> Result<MemoryRegion>;
    fn deregister(&mut self, core: &mut Core, region: MemoryRegion) -> Result<Vec<u8>>;
    fn deregister_foreign(&mut self, core: &mut Core, region: &MemoryRegion) -> Result<()>;

    fn now(&self) -> Instant;
    fn device_wrong_keys(&self) -> u64;
    fn device_counters(&self, rows: &mut Vec<(&'static str, u64)>);
    fn wakeup_fd(&self) -> BorrowedFd<'_>;
    fn arm_wakeup(&mut self) -> bool;
    fn sleep_until_wakeup(&mut self, timeout: Option<Duration>) -> Result<()>;
    fn standstill(&self) -> Option<Error>;
}

impl<T: Transport> DynTransport for T {
    fn start(&self, options: &FunctionOptions) -> Result<Core> {
        Core::new(self.address(), self.limits(), self.seed(), options)
    }

    fn progress(&mut self, core: &mut Core) -> usize {
        core.progress(self)
    }

    fn poll<'a>(&mut self, core: &'a mut Core, queue: u32) -> Option<Taken<'a>> {
        core.poll(self, queue)
    }

    fn poll_with<'a>(
        &mut self,
        core: &'a mut Core,
        queue: u32,
        inbox: &mut dyn Inbox,
    ) -> Option<Taken<'a>> {
        core.poll_with(self, queue, inbox)
    }

    fn post_send(
        &mut self,
        core: &mut Core,
        queue_pair: QueuePair,
        send: &mut Message<'_>,
    ) -> Result<()> {
        core.post_send(self, queue_pair, send)
    }

    fn post_sends(
        &mut self,
        core: &mut Core,
        queue_pair: QueuePair,
        sends: &mut [Message<'_>],
        posted: &mut usize,
    ) -> Result<()> {
        core.post_sends(self, queue_pair, sends, posted)
    }

    fn post_put(
        &mut self,
        core: &mut Core,
        queue_pair: QueuePair,
        put: &mut Put<'_>,
    ) -> Result<()> {
        core.post_put(self, queue_pair, put)
    }

    fn post_get(&mut self, core: &mut Core, queue_pair: QueuePair, get: &mut Get) -> Result<()> {
        core.post_get(self, queue_pair, get)
    }

    fn post_atomic(
        &mut self,
        core: &mut Core,
        queue_pair: QueuePair,
        atomic: &Atomic,
    ) -> Result<()> {
        core.post_atomic(self, queue_pair, atomic)
    }

    fn create_queue_pair(
        &mut self,
        core: &mut Core,
        options: &QueuePairOptions,
        channel: Option<(u16, Claim)>,
    ) -> Result<QueuePair> {
        core.create_queue_pair(self, options, channel)
    }

    fn destroy_queue_pair(&mut self, core: &mut Core, queue_pair: QueuePair) -> Result<()> {
        core.destroy_queue_pair(self, queue_pair)
    }

    fn start_connect(
        &mut self,
        core: &mut Core,
        queue_pair: QueuePair,
        to: Address,
        private_data: &[u8],
        timeout: Duration,
    ) -> Result<()> {
        core.start_connect(self, queue_pair, to, private_data, timeout)
    }

    fn disconnect(&mut self, core: &mut Core, queue_pair: QueuePair) -> Result<()> {
        core.disconnect(self, queue_pair)
    }

    fn allocate_region(
        &mut self,
        core: &mut Core,
        length: usize,
        rights: Rights,
    ) -> Result<MemoryRegion> {
        core.allocate_region(self, length, rights)
    }

    fn register(
        &mut self,
        core: &mut Core,
        memory: Vec<u8>,
        rights: Rights,
    ) -> Result<MemoryRegion, Refused<Vec<u8>>> {
        core.register(self, memory, rights)
    }

    fn register_foreign(
        &mut self,
        core: &mut Core,
        memory: Memory,
        rights: Rights,
    ) -> Result<MemoryRegion> {
        core.register_foreign(self, memory, rights)
    }

    fn deregister(&mut self, core: &mut Core, region: MemoryRegion) -> Result<Vec<u8>> {
        core.deregister(self, region)
    }

    fn deregister_foreign(&mut self, core: &mut Core, region: &MemoryRegion) -> Result<()> {
        core.deregister_foreign(self, region)
    }

    fn now(&self) -> Instant {
        Transport::now(self)
    }

    fn device_counters(&self, rows: &mut Vec<(&'static str, u64)>) {
        self.counters(rows);
    }

    fn device_wrong_keys(&self) -> u64 {
        self.wrong_keys()
    }

    fn wakeup_fd(&self) -> BorrowedFd<'_> {
        self.wait_fd()
    }

    fn arm_wakeup(&mut self) -> bool {
        self.arm()
    }

    fn sleep_until_wakeup(&mut self, timeout: Option<Duration>) -> Result<()> {
        self.sleep(timeout)
    }

    fn standstill(&self) -> Option<Error> {
        Transport::standstill(self)
    }
}
