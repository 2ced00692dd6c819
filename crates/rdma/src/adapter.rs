//! An adapter: one function of a device, and the objects that a program makes of it.

use crate::completion::WorkCompletion;
use crate::completion_queue::{CqId, WorkQueue};
use crate::error::{Refusal, Result};
use crate::events::{AsyncEvent, EventQueue};
use crate::head::Head;
use crate::initiate::{cause_of, function_at};
use crate::memory::{Access, Domain, Memory, Sge, random_word};
use crate::multicast::Multicast;
use crate::peers::{MAILBOX, Peers};
use crate::queue_pair::{Attributes, Mask, QpState, QueuePair, QueuePairOptions, Service};
use crate::receive_queue::{ReceiveQueue, SharedReceives, SrqId};
use crate::request::{Bytes, SendRequest};
use crate::slab::Slab;
use crate::state::{QueuePairs, State, Todo};
use bellwire::{Completion, CompletionQueue, Device, Function, FunctionOptions};
use bellwire_ring::canary::planted;
use bellwire_ring::steps::step;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Completions of the device that wait to be taken.
const COMPLETIONS: usize = 1 << 16;
/// Buffers for packets that come while nobody looks.
const BUFFERS: usize = 64;
/// Functions of a device: adapters of one address on one host.
const FUNCTIONS: u8 = 255;
/// Descriptors taken in one turn.
const BUDGET: usize = 64;
/// Turns after which arrivals wait: peers could send for ever.
const TURNS: usize = 64;
/// How long a queue pair waits for the device before it is reset or destroyed. Devices find a
/// silent peer dead earlier.
const DEVICE_LIMIT: Duration = Duration::from_secs(6);
/// Idle polls between two readings of the clock.
const POLLS_PER_CLOCK: u32 = 256;
/// Completions taken, after which a poll looks although it has more. A request may complete when it
/// is posted, so a program that posts one for each would never look. One look brings some hundreds,
/// and another one in their middle would only be in the way.
const TAKEN_PER_LOOK: usize = 1024;
/// How long an acknowledgement waits for more messages. A receiver on a far core is faster than its
/// sender, and would otherwise acknowledge each message.
const ACK_DELAY: Duration = Duration::from_nanos(500);

/// Most objects of each kind.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)] // The names are the specification's.
pub struct AdapterLimits {
    pub queue_pairs: usize,
    pub queue_depth: usize,
    pub parts: usize,
    pub inline_bytes: usize,
    pub completion_queues: usize,
    pub completions: usize,
    pub regions: usize,
    pub domains: usize,
    pub shared_queues: usize,
    pub reads: u8,
}

/// What an adapter offers, on any device.
pub const LIMITS: AdapterLimits = AdapterLimits {
    queue_pairs: 4096,
    queue_depth: 16_384,
    parts: 32,
    inline_bytes: 1024,
    completion_queues: 4096,
    completions: 1 << 20,
    regions: 16_384,
    domains: 4096,
    shared_queues: 1024,
    reads: 128,
};

/// An open adapter. One thread drives it at a time.
pub struct Adapter {
    pub(crate) function: Function,
    pub(crate) queue: CompletionQueue,
    mailbox: bellwire::QueuePair,
    pub(crate) state: State,
    idle_polls: u32,
    /// Completions that were taken since the last look.
    taken: usize,
    /// The program's last poll found nothing: it is about to look again.
    pub(crate) looks_again: bool,
    /// When the first poll of a row without anything found that an acknowledgement is owed.
    pub(crate) quiet_since: Option<Instant>,
}

impl Adapter {
    /// Opens the first free function of the device `name`.
    pub fn open(name: &str) -> Result<Adapter> {
        let options = bellwire::DeviceOptions::default().functions(FUNCTIONS);
        let device = Device::open_with(name, &options)?;
        let opening = FunctionOptions::default().outstanding(256);
        let mut number = 0;
        let mut function = loop {
            match device.open_function_with(number, &opening) {
                Ok(function) => break function,
                Err(error) if number + 1 == FUNCTIONS => return Err(error.into()),
                Err(_) => number += 1,
            }
        };
        let queue = function.create_completion_queue(COMPLETIONS)?;
        let options = bellwire::QueuePairOptions::new(queue).send_depth(1).receive_depth(BUFFERS);
        let mailbox = function.create_queue_pair(&options)?;
        debug_assert_eq!(mailbox.number, MAILBOX);
        let packet_bytes = function.limits().eager_bytes;
        for _ in 0..BUFFERS {
            function.post_receive(mailbox, vec![0; packet_bytes], 0).map_err(|full| full.error)?;
        }
        let address = function.address();
        let state = State {
            address,
            strangers: Default::default(),
            body_bytes: packet_bytes.saturating_sub(Head::BYTES),
            domains: Slab::new(LIMITS.domains),
            queues: Slab::new(LIMITS.completion_queues),
            shared: Slab::new(LIMITS.shared_queues),
            qps: QueuePairs::new(address.function, LIMITS.queue_pairs, random_word()? as u16),
            memory: Memory::new(function.limits().regions.min(LIMITS.regions)),
            peers: Peers::new(queue),
            multicast: Multicast::new(name, address.node),
            events: Arc::new(EventQueue::new()?),
            todo: Default::default(),
            ready: Default::default(),
            owing: Vec::new(),
            held: Vec::new(),
            packets: 0,
            marks: 0,
            last_tick: Instant::now(),
            ticks: 0,
            scratch: vec![0; packet_bytes.max(crate::initiate::DATAGRAM_BYTES as usize)].into(),
        };
        step("rdma-opened");
        Ok(Adapter {
            function,
            queue,
            mailbox,
            state,
            idle_polls: 0,
            taken: 0,
            looks_again: false,
            quiet_since: None,
        })
    }

    /// The address of the host on this device; on `shm` and `eth`, the number of the node as one.
    pub fn host(&self) -> Ipv4Addr {
        self.state.address.node.into()
    }

    /// From now on answers to writes may wait a moment for a packet of this side. For a caller with
    /// a thread that makes progress when the program does not, as [`crate::Context`].
    pub fn let_answers_wait(&mut self) {
        if !planted("answers-alone") {
            self.function.let_answers_wait();
        }
    }

    /// What the device has counted, by name.
    pub fn device_counter(&self, name: &str) -> u64 {
        let rows = self.function.counters().device;
        rows.iter().find(|(row, _)| *row == name).map_or(0, |(_, value)| *value)
    }

    /// Asynchronous events.
    pub fn events(&self) -> Arc<EventQueue<AsyncEvent>> {
        self.state.events.clone()
    }
}

// Objects.
impl Adapter {
    /// A protection domain.
    pub fn create_domain(&mut self) -> Result<Domain> {
        let full = Refusal::Full("no more protection domains");
        self.state.domains.insert(0).map(Domain).ok_or(full)
    }

    /// The domain with a number, for one that shares it: it lives until
    /// [`Adapter::release_domain`].
    pub fn share_domain(&mut self, number: u32) -> Result<Domain> {
        *self.state.domains.get_mut(number).ok_or(GONE)? += 1;
        Ok(Domain(number))
    }

    /// Ends a share of a domain.
    pub fn release_domain(&mut self, domain: Domain) {
        self.state.domains.get_mut(domain.0).into_iter().for_each(|users| *users -= 1);
    }

    /// Ends a domain that nothing uses.
    pub fn destroy_domain(&mut self, domain: Domain) -> Result<()> {
        let users = *self.state.domains.get(domain.0).ok_or(GONE)?;
        if users > 0 || self.state.memory.uses(domain) {
            return Err(Refusal::Busy("the protection domain has queue pairs or memory"));
        }
        self.state.domains.remove(domain.0);
        Ok(())
    }

    /// A completion queue. `object` is the program's number of it, which events carry.
    pub fn create_queue(
        &mut self,
        depth: usize,
        channel: Option<Arc<EventQueue<usize>>>,
        object: usize,
    ) -> Result<CqId> {
        if depth == 0 || depth > LIMITS.completions {
            return Err(Refusal::Invalid("the depth of a completion queue is out of range"));
        }
        let queue = WorkQueue::new(depth, channel, object);
        self.state.queues.insert(queue).map(CqId).ok_or(Refusal::Full("no more completion queues"))
    }

    /// Sets another depth.
    pub fn resize_queue(&mut self, queue: CqId, depth: usize) -> Result<()> {
        let ring = self.state.queues.get_mut(queue.0).ok_or(GONE)?;
        if depth == 0 || depth > LIMITS.completions || !ring.resize(depth) {
            return Err(Refusal::Invalid("the completions do not fit into that depth"));
        }
        Ok(())
    }

    /// Ends a completion queue that no queue pair uses.
    pub fn destroy_queue(&mut self, queue: CqId) -> Result<()> {
        let ring = self.state.queues.get(queue.0).ok_or(GONE)?;
        if ring.users > 0 {
            return Err(Refusal::Busy("queue pairs complete in this queue"));
        }
        self.state.queues.remove(queue.0);
        Ok(())
    }

    /// The next completion raises an event; only a solicited or failed one if `solicited`.
    pub fn arm(&mut self, queue: CqId, solicited: bool) -> Result<()> {
        self.state.queues.get_mut(queue.0).ok_or(GONE)?.arm(solicited);
        Ok(())
    }

    /// Receives that several queue pairs take.
    pub fn create_shared(
        &mut self,
        domain: Domain,
        depth: usize,
        most_parts: usize,
        limit: usize,
        object: usize,
    ) -> Result<SrqId> {
        if depth == 0 || depth > LIMITS.queue_depth || most_parts > LIMITS.parts {
            return Err(Refusal::Invalid("a size of the shared receive queue is out of range"));
        }
        let users = self.state.domains.get_mut(domain.0).ok_or(GONE)?;
        let queue = ReceiveQueue::new(depth);
        let shared = SharedReceives { domain, queue, most_parts, limit, object, users: 0 };
        let full = Refusal::Full("no more shared receive queues");
        let id = self.state.shared.insert(shared).ok_or(full)?;
        *users += 1;
        Ok(SrqId(id))
    }

    /// Changes depth or limit; `None` leaves it. Returns nothing if it is refused.
    pub fn modify_shared(
        &mut self,
        queue: SrqId,
        depth: Option<usize>,
        limit: Option<usize>,
    ) -> Result<()> {
        let shared = self.state.shared.get_mut(queue.0).ok_or(GONE)?;
        let new = depth.unwrap_or(shared.queue.depth);
        let fits = new <= LIMITS.queue_depth && new >= shared.queue.len() && new > 0;
        if !fits || limit.is_some_and(|limit| limit > new) {
            return Err(Refusal::Invalid("depth or limit of the shared receive queue"));
        }
        shared.queue.depth = new;
        shared.limit = limit.unwrap_or(shared.limit);
        Ok(())
    }

    /// Depth, parts of a list, and limit.
    pub fn query_shared(&self, queue: SrqId) -> Result<(usize, usize, usize)> {
        let shared = self.state.shared.get(queue.0).ok_or(GONE)?;
        Ok((shared.queue.depth, shared.most_parts, shared.limit))
    }

    /// Ends a shared receive queue that no queue pair uses.
    pub fn destroy_shared(&mut self, queue: SrqId) -> Result<()> {
        let shared = self.state.shared.get(queue.0).ok_or(GONE)?;
        if shared.users > 0 {
            return Err(Refusal::Busy("queue pairs use the shared receive queue"));
        }
        let domain = shared.domain;
        self.state.shared.remove(queue.0);
        self.state.domains.get_mut(domain.0).into_iter().for_each(|users| *users -= 1);
        Ok(())
    }

    /// A queue pair in the reset state. Returns its number.
    pub fn create_queue_pair(&mut self, options: &QueuePairOptions) -> Result<u32> {
        let capacity = &options.capacity;
        let deepest = capacity.sends.max(capacity.receives);
        let widest = capacity.send_parts.max(capacity.receive_parts);
        if deepest > LIMITS.queue_depth
            || widest > LIMITS.parts
            || capacity.inline_bytes > LIMITS.inline_bytes
        {
            return Err(Refusal::Invalid("a size of the queue pair is out of range"));
        }
        let state = &mut self.state;
        let queues = [options.send_queue, options.receive_queue];
        if queues.iter().any(|queue| state.queues.get(queue.0).is_none())
            || state.domains.get(options.domain.0).is_none()
            || options.shared.is_some_and(|shared| state.shared.get(shared.0).is_none())
        {
            return Err(GONE);
        }
        let number = state.qps.insert(|number| QueuePair::new(number, *options));
        let number = number.ok_or(Refusal::Full("no more queue pairs"))?;
        step("rdma-queue-pair");
        self.count(options, 1);
        Ok(number)
    }

    /// Counts the objects that a queue pair uses.
    fn count(&mut self, options: &QueuePairOptions, by: isize) {
        let state = &mut self.state;
        for queue in [options.send_queue, options.receive_queue] {
            let queue = state.queues.get_mut(queue.0);
            queue.into_iter().for_each(|queue| queue.users = queue.users.wrapping_add_signed(by));
        }
        let shared = options.shared.and_then(|shared| state.shared.get_mut(shared.0));
        shared.into_iter().for_each(|shared| shared.users = shared.users.wrapping_add_signed(by));
        let users = state.domains.get_mut(options.domain.0);
        users.into_iter().for_each(|users| *users = users.wrapping_add_signed(by));
    }

    /// Ends a queue pair. Its completions that were not polled vanish.
    ///
    /// # Errors
    /// [`Refusal::Busy`] while it is attached to a group.
    pub fn destroy_queue_pair(&mut self, number: u32) -> Result<()> {
        if self.state.multicast.has(number) {
            return Err(Refusal::Busy("the queue pair is attached to a multicast group"));
        }
        self.forget_work(number);
        let qp = self.state.qps.remove(number).ok_or(GONE)?;
        step("rdma-destroyed");
        let options = qp.options;
        crate::memory::withdraw(&mut self.function, qp.leftovers);
        for queue in [options.send_queue, options.receive_queue] {
            let queue = self.state.queues.get_mut(queue.0);
            queue.into_iter().for_each(|queue| queue.forget(number));
        }
        self.count(&options, -1);
        Ok(())
    }

    /// Drops the requests of a queue pair without completions.
    fn forget_work(&mut self, number: u32) {
        // What the peer waits for leaves before.
        self.state.settle();
        self.state.leave(number);
        self.state.peers.flush(&mut self.function);
        self.await_device(number);
        let Some(qp) = self.state.qps.get_mut(number) else { return };
        let granted = std::mem::take(&mut qp.granted);
        self.state.memory.revoke(&mut self.function, number, &granted);
        let Some(qp) = self.state.qps.get_mut(number) else { return };
        crate::memory::withdraw(&mut self.function, qp.sends.clear());
    }

    /// Waits until the device uses no memory any more that requests or receives of a queue pair
    /// name: the program may free it.
    fn await_device(&mut self, number: u32) {
        let in_device = |qp: &&mut QueuePair| qp.is_in_device() && !planted("flushed-early");
        let Some(qp) = self.state.qps.get_mut(number).filter(in_device) else { return };
        qp.silent = true;
        qp.attributes.state = QpState::Error;
        qp.end_sends(false);
        let begin = Instant::now();
        while self.state.qps.get(number).is_some_and(QueuePair::is_in_device) {
            if begin.elapsed() > DEVICE_LIMIT {
                tracing::warn!("a peer neither answers nor ends: its bytes may still arrive");
                return;
            }
            if self.progress() == 0 {
                std::thread::yield_now();
            }
        }
    }

    /// Changes the attributes that `mask` names.
    pub fn modify(&mut self, number: u32, mask: Mask, new: &Attributes) -> Result<()> {
        let qp = self.state.qps.get_mut(number).ok_or(GONE)?;
        let before = qp.state();
        let next = qp.change(mask, new)?;
        match next.state {
            QpState::Reset => {
                self.forget_work(number);
                let qp = self.state.qps.get_mut(number).ok_or(GONE)?;
                qp.reset();
                qp.attributes = next;
                let options = qp.options;
                for queue in [options.send_queue, options.receive_queue] {
                    let queue = self.state.queues.get_mut(queue.0);
                    queue.into_iter().for_each(|queue| queue.forget(number));
                }
                return Ok(());
            }
            QpState::Error => {
                self.catch_up(number);
                if let Some(qp) = self.state.qps.get_mut(number) {
                    qp.attributes = next;
                }
                self.state.fail(number);
                self.do_todo();
                self.run_ready();
                return Ok(());
            }
            _ => {}
        }
        let takes_away = !next.access.contains(qp.attributes.access);
        qp.attributes = next;
        if takes_away {
            // The peer asks again, and learns what it may do now.
            let granted = std::mem::take(&mut qp.granted);
            self.state.memory.revoke(&mut self.function, number, &granted);
        }
        let Some(qp) = self.state.qps.get_mut(number) else { return Ok(()) };
        step("rdma-state");
        match (before, next.state) {
            (QpState::Init, QpState::ReadyToReceive) if qp.options.service != Service::Datagram => {
                (qp.expected, qp.delivered) = (next.receive_psn, next.receive_psn);
                qp.peer = next.host.map(|host| function_at(host, next.peer));
            }
            (QpState::ReadyToReceive, QpState::ReadyToSend) => qp.sends.begin(next.send_psn),
            (QpState::SendError, QpState::ReadyToSend) => qp.stopped = false,
            (QpState::ReadyToSend, QpState::SendDrained) => {
                qp.draining = true;
                self.state.retire(number);
            }
            (QpState::SendDrained, QpState::ReadyToSend) => self.state.list(number),
            _ => {}
        }
        self.run_ready();
        Ok(())
    }

    /// Before a queue pair fails because its program wants it: what has arrived counts, and the
    /// peer gets what it waits for. A card would have done both at once.
    fn catch_up(&mut self, number: u32) {
        for _ in 0..TURNS {
            if self.progress() == 0 {
                break;
            }
        }
        self.state.settle();
        self.state.leave(number);
        self.flush();
    }

    /// The attributes and options of a queue pair.
    pub fn query(&self, number: u32) -> Result<(Attributes, QueuePairOptions)> {
        let qp = self.state.qps.get(number).ok_or(GONE)?;
        Ok((qp.attributes, qp.options))
    }

    /// Whether requests are still under way in the drained state.
    pub fn is_draining(&self, number: u32) -> bool {
        self.state.qps.get(number).is_some_and(|qp| qp.draining)
    }

    /// Registers `length` bytes at `start`, which keys name from `base` on. Returns the key, for
    /// lists and for peers.
    ///
    /// # Safety
    /// As for [`Function::register_foreign`]: the bytes stay mapped, and writable if `access` says
    /// so, until [`Adapter::deregister`] has returned without an error.
    pub unsafe fn register(
        &mut self,
        domain: Domain,
        start: *mut u8,
        length: usize,
        base: u64,
        access: Access,
    ) -> Result<u32> {
        self.state.domains.get(domain.0).ok_or(GONE)?;
        let Adapter { function, state, .. } = self;
        // SAFETY: the caller's promise.
        unsafe { state.memory.register(function, domain, start, length, base, access) }
    }

    /// Gives the region `key` the memory, domain and flags of the region `new`, whose own key ends.
    /// Peers that knew the region ask again.
    ///
    /// # Errors
    /// As [`Adapter::deregister`]; both regions are as before then.
    pub fn replace(&mut self, key: u32, new: u32) -> Result<()> {
        self.state.memory.replace(&mut self.function, key, new)
    }

    /// The domain and the length in bytes of a region.
    pub fn region(&self, key: u32) -> Option<(Domain, usize)> {
        self.state.memory.region(key)
    }

    /// Ends a region or a window.
    ///
    /// # Errors
    /// [`Refusal::Busy`] while a window uses it, [`Refusal::UnderWay`] while the device does.
    pub fn deregister(&mut self, key: u32) -> Result<()> {
        self.state.memory.deregister(&mut self.function, key)
    }

    /// A window of memory that is not bound. Returns its key.
    pub fn allocate_window(&mut self, domain: Domain) -> Result<u32> {
        self.state.domains.get(domain.0).ok_or(GONE)?;
        self.state.memory.allocate_window(domain)
    }
}

/// The object is not one of this adapter.
const GONE: Refusal = Refusal::Invalid("there is no such object (any more)");

// The data path.
impl Adapter {
    /// Posts a request.
    #[inline]
    pub fn post_send(&mut self, number: u32, request: &SendRequest<'_>) -> Result<()> {
        self.enqueue(number, request)?;
        self.start(number);
        Ok(())
    }

    /// Posts a request that [`Adapter::start`] starts. Short messages that start together share a
    /// packet.
    #[inline(always)]
    pub fn enqueue(&mut self, number: u32, request: &SendRequest<'_>) -> Result<()> {
        let qp = self.state.qps.get_mut(number).ok_or(GONE)?;
        let fits = match request.bytes {
            Bytes::Listed(parts) => parts.len() <= qp.options.capacity.send_parts.max(1),
            Bytes::Inline(bytes) => bytes.len() <= qp.sends.inline_bytes(),
        };
        if !fits {
            return Err(Refusal::Invalid("a list or its inline bytes are too long"));
        }
        if matches!(qp.state(), QpState::Reset | QpState::Init | QpState::ReadyToReceive) {
            return Err(Refusal::Invalid("the queue pair is not ready to send"));
        }
        if qp.options.service == Service::Datagram && request.to.is_none() {
            return Err(Refusal::Invalid("a datagram needs an address handle"));
        }
        if qp.sends.is_full() {
            return Err(Refusal::Full("the send queue is full"));
        }
        qp.sends.push(request);
        step("rdma-posted");
        if matches!(qp.state(), QpState::Error | QpState::SendError) {
            qp.sends.flush(true);
        }
        Ok(())
    }

    /// Posts a receive.
    #[inline(always)]
    pub fn post_receive(&mut self, number: u32, id: u64, parts: &[Sge]) -> Result<()> {
        let qp = self.state.qps.get_mut(number).ok_or(GONE)?;
        if parts.len() > qp.options.capacity.receive_parts {
            return Err(Refusal::Invalid("the list of a receive is too long"));
        }
        if qp.options.shared.is_some() || qp.state() == QpState::Reset {
            return Err(Refusal::Invalid("the queue pair takes no receives"));
        }
        if !qp.receives.push(id, parts) {
            return Err(Refusal::Full("the receive queue is full"));
        }
        if qp.state() == QpState::Error {
            self.state.fail(number);
        } else if !qp.arrivals.is_empty() {
            self.match_arrivals(number);
        }
        Ok(())
    }

    /// Posts a receive for any queue pair of a shared queue.
    pub fn post_shared(&mut self, queue: SrqId, id: u64, parts: &[Sge]) -> Result<()> {
        let shared = self.state.shared.get_mut(queue.0).ok_or(GONE)?;
        if parts.len() > shared.most_parts {
            return Err(Refusal::Invalid("the list of a receive is too long"));
        }
        if !shared.queue.push(id, parts) {
            return Err(Refusal::Full("the shared receive queue is full"));
        }
        if shared.queue.len() == 1 {
            // It was empty, so messages may wait.
            let waiting =
                |qp: &&QueuePair| qp.options.shared == Some(queue) && !qp.arrivals.is_empty();
            let numbers: Vec<u32> =
                self.state.qps.iter().filter(waiting).map(|qp| qp.number).collect();
            self.state.todo.extend(numbers.into_iter().map(Todo::Arrivals));
        }
        Ok(())
    }

    /// Takes up to `most` completions, oldest first; `take` reads each where it is. Makes progress
    /// if there is none, and after many. Returns how many there were.
    #[inline]
    pub fn poll_each(
        &mut self,
        queue: CqId,
        most: usize,
        mut take: impl FnMut(usize, &WorkCompletion),
    ) -> usize {
        if !self.state.ready.is_empty() {
            self.run_ready();
        }
        match self.state.queues.get(queue.0) {
            None => return 0,
            Some(ring) if ring.is_empty() => self.look(),
            Some(_) if self.taken >= TAKEN_PER_LOOK && !planted("looks-when-empty") => self.look(),
            Some(_) => {}
        }
        let Some(ring) = self.state.queues.get_mut(queue.0) else { return 0 };
        let mut count = 0;
        while count < most
            && let Some(done) = ring.front()
        {
            take(count, done);
            ring.drop_front();
            count += 1;
        }
        self.taken += count;
        self.looks_again = count == 0;
        count
    }

    /// The oldest completion. Makes progress if there is none, and after many.
    #[inline]
    pub fn poll(&mut self, queue: CqId) -> Option<WorkCompletion> {
        let mut taken = None;
        self.poll_each(queue, 1, |_, done| taken = Some(*done));
        taken
    }

    /// The oldest completion, without progress.
    #[inline]
    pub fn next(&mut self, queue: CqId) -> Option<WorkCompletion> {
        self.state.queues.get_mut(queue.0)?.pop()
    }

    /// Looks for packets and results. Without any it does periodic work now and then.
    #[inline]
    pub fn look(&mut self) {
        self.taken = 0;
        if self.progress() > 0 {
            self.quiet_since = None;
            return;
        }
        match self.state.owes() {
            None => {}
            Some(true) => self.settle(),
            Some(false) => {
                let now = Instant::now();
                let since = *self.quiet_since.get_or_insert(now);
                if now.saturating_duration_since(since) >= ACK_DELAY {
                    self.settle();
                }
            }
        }
        self.idle_polls = self.idle_polls.wrapping_add(1);
        if self.idle_polls.is_multiple_of(POLLS_PER_CLOCK) || !self.state.held.is_empty() {
            self.keep_time();
        }
    }

    /// Looks for packets that need nothing of the program, too. Returns how many packets came.
    pub(crate) fn serve(&mut self) -> usize {
        let packets = self.function.progress().unwrap_or(0);
        self.look();
        packets
    }

    /// Makes progress. Returns the number of things done.
    pub fn progress(&mut self) -> usize {
        let before = self.state.packets;
        let mut done = 0;
        let mut lost = None;
        for _ in 0..BUDGET {
            let taken = self.function.poll_with(self.queue, &mut self.state);
            // What comes next may be from another process at the address of the lost one.
            lost = self.function.take_lost_peer();
            match taken {
                Ok(Some(completion)) => self.completed(completion),
                _ => break,
            }
            done += 1;
            if lost.is_some() {
                break;
            }
        }
        done += self.state.packets.wrapping_sub(before);
        done += self.state.take_multicasts();
        if !self.state.todo.is_empty() {
            done += self.do_todo();
        }
        // What a lost peer had sent before has been taken by now.
        while let Some((peer, why)) = lost.take().or_else(|| self.function.take_lost_peer()) {
            self.state.lose(peer, cause_of(why));
            done += 1 + self.do_todo();
        }
        if !self.state.ready.is_empty() {
            self.run_ready();
        }
        if self.state.peers.has_answers() {
            done += self.state.peers.flush(&mut self.function);
        }
        done
    }

    /// Sends what waits.
    pub(crate) fn flush(&mut self) {
        if self.state.peers.has_answers() {
            self.state.peers.flush(&mut self.function);
        }
    }

    /// Starts the requests of all listed queue pairs.
    pub(crate) fn run_ready(&mut self) {
        for _ in 0..self.state.ready.len() {
            let Some(number) = self.state.ready.pop_front() else { break };
            if let Some(qp) = self.state.qps.get_mut(number) {
                qp.listed = false;
                self.start_all(number);
            }
        }
        self.flush();
    }

    /// A packet came while nobody looked, into a buffer.
    pub(crate) fn received(&mut self, done: Completion) {
        let from = done.peer.function_address();
        let length = done.length;
        let Some(buffer) = done.buffer else { return };
        if let Some(bytes) = buffer.view().part(0, length) {
            self.state.packet(from, bytes);
        }
        // The buffer that just left made room.
        let posted = self.function.post_receive(self.mailbox, buffer, 0);
        debug_assert!(posted.is_ok(), "{posted:?}");
    }
}

impl Drop for Adapter {
    fn drop(&mut self) {
        self.leave();
    }
}
