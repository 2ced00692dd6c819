//! Creating, destroying and looking at queue pairs, queues and memory.

use super::Core;
use super::queue_pair::QueuePairContext;
use super::routing::Route;
use crate::claims::Claim;
use crate::completion_queue::CompletionRing;
use crate::shared_receive::SharedReceives;
use crate::{
    CompletionQueue, ConnectionState, Counters, QueuePairOptions, QueuePairState, Refused,
    SharedReceiveQueue,
};
use bellwire_device::{
    Address, Buffer, Error, Gate, LinkId, MemoryRegion, QueuePair, Result, Rights, Transport,
};
use bellwire_ring::memory::Memory;

// Queues.
impl Core {
    pub(crate) fn create_completion_queue(&mut self, depth: usize) -> Result<CompletionQueue> {
        check_range("depth", depth, 1 << 20, "1 to 1,048,576")?;
        let limit = self.completion_queues.limit as u64;
        let hint = "One completion queue can serve many queue pairs";
        match self.completion_queues.insert(CompletionRing::new(depth)) {
            Ok((slot, generation)) => Ok(CompletionQueue { slot, generation }),
            Err(_) => Err(Error::Exhausted { what: "completion queues", limit, hint }),
        }
    }

    pub(crate) fn destroy_completion_queue(&mut self, queue: CompletionQueue) -> Result<()> {
        let CompletionQueue { slot, generation } = queue;
        let ring = self.completion_queues.find(slot, generation);
        if ring.ok_or_else(|| Error::NoSuchCompletionQueue)?.users > 0 {
            return Err(Error::InUse { object: "the completion queue", user: "a queue pair" });
        }
        self.completion_queues.remove(slot, generation);
        Ok(())
    }

    pub(crate) fn create_shared_receive_queue(
        &mut self,
        depth: usize,
    ) -> Result<SharedReceiveQueue> {
        check_range("depth", depth, self.limits.queue_depth, "1 to 65,536")?;
        let limit = self.shared_receives.limit as u64;
        let hint = "One shared receive queue can serve many queue pairs";
        match self.shared_receives.insert(SharedReceives::new(depth)) {
            Ok((slot, generation)) => Ok(SharedReceiveQueue { slot, generation }),
            Err(_) => Err(Error::Exhausted { what: "shared receive queues", limit, hint }),
        }
    }

    pub(crate) fn destroy_shared_receive_queue(
        &mut self,
        queue: SharedReceiveQueue,
    ) -> Result<Vec<(Buffer, u64)>> {
        let SharedReceiveQueue { slot, generation } = queue;
        let shared = self.shared_receives.find(slot, generation);
        if shared.ok_or_else(|| Error::NoSuchSharedReceiveQueue)?.users > 0 {
            return Err(Error::InUse { object: "the shared receive queue", user: "a queue pair" });
        }
        let shared = self.shared_receives.remove(slot, generation);
        let receives = shared.into_iter().flat_map(|shared| shared.receives);
        Ok(receives.map(|receive| (receive.buffer, receive.context)).collect())
    }
}

// Queue pairs.
impl Core {
    /// Creates a queue pair, or a member of `channel`.
    pub(crate) fn create_queue_pair(
        &mut self,
        transport: &mut dyn Transport,
        options: &QueuePairOptions,
        channel: Option<(u16, Claim)>,
    ) -> Result<QueuePair> {
        let depth = self.limits.queue_depth;
        check_range("send_depth", options.send_depth, depth, "1 to 65,536")?;
        check_range("receive_depth", options.receive_depth, depth, "1 to 65,536")?;
        for queue in [options.send_completions, options.receive_completions] {
            let ring = self.completion_queues.find(queue.slot, queue.generation);
            ring.ok_or_else(|| Error::NoSuchCompletionQueue)?;
        }
        if let Some(queue) = options.shared_receive {
            let shared = self.shared_receives.find_mut(queue.slot, queue.generation);
            shared.ok_or_else(|| Error::NoSuchSharedReceiveQueue)?.users += 1;
        }
        let (number, claim) = match channel {
            Some((channel, claim)) => (Address::CHANNEL_BASE + channel as u32, Some(claim)),
            None => (0, None),
        };
        let qp = QueuePairContext::new(options, claim);
        let Ok((slot, generation)) = self.queue_pairs.insert(qp) else {
            if let Some(queue) = options.shared_receive {
                self.shared_receives[queue.slot].users -= 1;
            }
            let limit = self.limits.queue_pairs as u64;
            let hint = "Destroy one, or use connectionless addressing with fewer";
            return Err(Error::Exhausted { what: "queue pairs", limit, hint });
        };
        self.completion_queues[options.send_completions.slot].users += 1;
        self.completion_queues[options.receive_completions.slot].users += 1;
        let number = if number == 0 { slot + 1 } else { number };
        let handle = QueuePair { number, slot, generation };
        self.queue_pairs[slot].handle = handle;
        if number >= Address::CHANNEL_BASE {
            let place = self.channels.partition_point(|channel| channel.0 < number);
            self.channels.insert(place, (number, slot));
        }
        transport.set_gate(number, Gate::Open);
        Ok(handle)
    }

    pub(crate) fn query(&self, queue_pair: QueuePair) -> Result<QueuePairState> {
        let QueuePair { slot, number, .. } = queue_pair;
        let qp = self.queue_pairs.of(queue_pair)?;
        let connection = match qp.routing.route {
            Route::Unconnected => ConnectionState::Unconnected,
            Route::Connecting => {
                let to = qp.connect_attempt.as_ref().map(|attempt| attempt.to);
                ConnectionState::Connecting { to: to.unwrap_or_default() }
            }
            Route::Connected { peer, .. } => ConnectionState::Connected { peer },
            Route::Disconnected { why } => ConnectionState::Disconnected { why },
        };
        Ok(QueuePairState {
            address: Address::new(self.address.node, self.address.function, number),
            connection,
            posted_sends: qp.posted_sends,
            posted_receives: qp.receives.len() + qp.transfers.len(),
            backlog_messages: self.backlog.messages_of(slot),
            last_error: qp.last_error,
            counters: qp.counters(),
        })
    }

    /// The link of a queue pair's last descriptor, if none waits here.
    #[inline]
    pub(crate) fn link_of_all(&self, queue_pair: QueuePair) -> Option<LinkId> {
        let qp = self.queue_pairs.of(queue_pair).ok()?;
        qp.sends.is_empty().then_some(qp.routing.cache.link)
    }

    pub(crate) fn queue_pairs(&self) -> Vec<QueuePair> {
        self.queue_pairs.iter().map(|(_, qp)| qp.handle).collect()
    }

    /// Renews the snapshot if it is old. `device`: the device's counters.
    pub(crate) fn write_snapshot(&mut self, device: &[(&'static str, u64)]) {
        if !self.stat.is_due() {
            return;
        }
        let mut stat = std::mem::take(&mut self.stat);
        let handles = self.queue_pairs.iter().map(|(_, qp)| qp.handle);
        let states = handles.filter_map(|handle| self.query(handle).ok());
        stat.write(self.address, |counters| self.count(counters), device, states);
        self.stat = stat;
    }

    pub(crate) fn counters(&self) -> Counters {
        let mut counters = Counters::default();
        self.count(&mut counters);
        counters
    }

    /// Writes all counters but those of the device.
    fn count(&self, into: &mut Counters) {
        let Counters { function, total, queue_pairs, .. } = into;
        let numbered = |(_, qp): (u32, &QueuePairContext)| (qp.handle.number, qp.counters());
        queue_pairs.clear();
        queue_pairs.extend(self.queue_pairs.iter().map(numbered));
        *total = self.retired;
        for (_, counters) in &*queue_pairs {
            total.add(counters);
        }
        *function = self.counters;
        let entries = self.queue_pairs.iter();
        function.packets_taken += entries.map(|(_, qp)| qp.fast_path_arrivals()).sum::<u64>();
    }
}

// Memory.
impl Core {
    pub(crate) fn allocate_region(
        &mut self,
        transport: &mut dyn Transport,
        length: usize,
        rights: Rights,
    ) -> Result<MemoryRegion> {
        check_length(length)?;
        let memory = transport.allocate(length, rights)?;
        self.register_memory(transport, memory, rights)
    }

    pub(crate) fn register(
        &mut self,
        transport: &mut dyn Transport,
        memory: Vec<u8>,
        rights: Rights,
    ) -> Result<MemoryRegion, Refused<Vec<u8>>> {
        if let Err(error) = check_length(memory.len()) {
            return Err(Refused::new(error, memory));
        }
        let memory = Memory::from_vec(memory);
        let registered = self.register_memory(transport, memory.clone(), rights);
        registered.map_err(|error| Refused::new(error, memory.into_vec()))
    }

    /// Registers memory that this library does not own. Without rights no peer needs to know of it,
    /// so it is cheap.
    pub(crate) fn register_foreign(
        &mut self,
        transport: &mut dyn Transport,
        memory: Memory,
        rights: Rights,
    ) -> Result<MemoryRegion> {
        check_length(memory.len())?;
        if !rights.is_empty() {
            return self.register_memory(transport, memory, rights);
        }
        let key = self.regions.reserve(memory.len())?;
        let region = MemoryRegion::new(memory, rights, key);
        self.regions.enter(region.clone(), false);
        Ok(region)
    }

    /// Registers memory for this side, and lets the device prepare it for later regions of the same
    /// bytes, with these rights.
    pub(crate) fn register_for_long(
        &mut self,
        transport: &mut dyn Transport,
        memory: Memory,
        rights: Rights,
    ) -> Result<MemoryRegion> {
        let region = self.register_foreign(transport, memory.clone(), Rights::empty())?;
        if !rights.is_empty() {
            transport.share(region.remote_key(), &memory, rights);
        }
        Ok(region)
    }

    fn register_memory(
        &mut self,
        transport: &mut dyn Transport,
        memory: Memory,
        rights: Rights,
    ) -> Result<MemoryRegion> {
        let key = self.regions.reserve(memory.len())?;
        if let Err(error) = transport.export(key, &memory, rights) {
            self.regions.release(key);
            return Err(error);
        }
        let region = MemoryRegion::new(memory, rights, key);
        self.regions.enter(region.clone(), true);
        Ok(region)
    }

    pub(crate) fn deregister(
        &mut self,
        transport: &mut dyn Transport,
        region: MemoryRegion,
    ) -> Result<Vec<u8>> {
        self.deregister_foreign(transport, &region)?;
        Ok(region.into_memory().into_vec())
    }

    /// Ends a region. Its bytes stay where they are.
    pub(crate) fn deregister_foreign(
        &mut self,
        transport: &mut dyn Transport,
        region: &MemoryRegion,
    ) -> Result<()> {
        if !self.regions.holds(region) {
            return Err(Error::NoSuchRegion);
        }
        if region.is_shared() && self.is_posted(region) {
            return Err(Error::InUse { object: "the memory region", user: "a posted descriptor" });
        }
        let key = region.remote_key();
        if self.regions.is_exported(region) {
            transport.retract(key);
        } else {
            transport.unshare(key);
        }
        self.regions.release(key);
        Ok(())
    }

    /// Whether an unfinished descriptor uses a part of `region`. Called when more handles exist
    /// than the program's and ours. Walks all posted descriptors, so that the data path need not
    /// count.
    fn is_posted(&mut self, region: &MemoryRegion) -> bool {
        let key = region.remote_key();
        let uses = |buffer: &Buffer| buffer.region().is_some_and(|used| used.remote_key() == key);
        let shared = self.shared_receives.iter().flat_map(|(_, shared)| shared.receives.iter());
        if shared.into_iter().any(|receive| uses(&receive.buffer)) {
            return true;
        }
        if self.links.undelivered().any(|message| message.buffer.as_ref().is_some_and(uses)) {
            return true;
        }
        for (_, qp) in self.queue_pairs.iter() {
            let waiting = qp.sends.iter().flat_map(|posted| posted.work.buffers());
            let receives = qp.receives.iter().map(|receive| &receive.buffer);
            if waiting.chain(receives).any(uses) {
                return true;
            }
            for &id in &qp.operations {
                let Ok(operation) = self.operations.operation(id) else { continue };
                if operation.posted.as_ref().is_some_and(|p| p.work.buffers().iter().any(uses)) {
                    return true;
                }
            }
            for &id in &qp.transfers {
                let Ok(transfer) = self.transfers.operation(id) else { continue };
                if uses(&transfer.receive.buffer) {
                    return true;
                }
            }
        }
        false
    }
}

fn check_range(
    parameter: &'static str,
    value: usize,
    maximum: usize,
    range: &'static str,
) -> Result<()> {
    if (1..=maximum).contains(&value) {
        return Ok(());
    }
    Err(Error::OutOfRange { parameter, value: value as u64, range })
}

fn check_length(length: usize) -> Result<()> {
    check_range("length of a region", length, 1 << 40, "1 to 2^40 bytes")
}
