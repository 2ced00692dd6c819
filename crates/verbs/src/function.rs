//! Functions: what a program drives.

use crate::completion_queue::Taken;
use crate::descriptor::{Get, Put, Refused, Send};
use crate::device::Claim;
use crate::engine::{Change, Core, Port};
use crate::fork::ForkGuard;
use crate::wait::{Next, Patience};
use crate::*;
use bellwire_ring::memory::Memory;
use std::cell::Cell;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::time::{Duration, Instant};

/// How to open a function.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FunctionOptions {
    /// Share of a receiver among the functions that send to it when they compete, 1 to 255 (C-40, C-41). Over shared memory only:
    /// `auto` applies it to peers of this host, and `eth` and `udp` refuse any but the default, 16, because there the kernel gives
    /// each function's socket its turn.
    pub weight: u8,
    /// Operations that may be under way at peers at once, 1 to 1,024 (C-33); more are accepted and wait in their queue pair.
    pub outstanding: usize,
    /// Memory for messages that arrive before a receive is posted, shared by all queue pairs (D-01), in bytes:
    /// at least four packets.
    pub backlog_bytes: usize,
}

impl Default for FunctionOptions {
    fn default() -> Self {
        FunctionOptions { weight: 16, outstanding: 32, backlog_bytes: 4 << 20 }
    }
}

impl FunctionOptions {
    pub(crate) fn check(&self) -> Result<()> {
        let range = |parameter, value, range| Err(Error::OutOfRange { parameter, value, range });
        if self.weight == 0 {
            return range("weight", 0, "1 to 255");
        }
        if !(1..=1024).contains(&self.outstanding) {
            return range("outstanding", self.outstanding as u64, "1 to 1,024");
        }
        if self.backlog_bytes > 1 << 31 {
            return range("backlog_bytes", self.backlog_bytes as u64, "at most 2 GiB");
        }
        Ok(())
    }
}

/// Every limit of a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Longest message that travels eagerly, in bytes; longer ones go by rendezvous.
    pub eager_bytes: usize,
    /// Longest message, put or get, in bytes.
    pub message_bytes: usize,
    /// Longest payload of one packet, in bytes.
    pub packet_bytes: usize,
    /// Queue pairs and channels.
    pub queue_pairs: usize,
    /// Completion queues.
    pub completion_queues: usize,
    /// Shared receive queues.
    pub shared_receive_queues: usize,
    /// Numbers listened on.
    pub listeners: usize,
    /// Registered memory regions.
    pub regions: usize,
    /// Peer functions that are spoken with at once.
    pub links: usize,
    /// Entries in one list of a chain descriptor.
    pub chain_entries: usize,
    /// Private data of a connection message, in bytes.
    pub private_data_bytes: usize,
    /// Deepest send, receive or shared receive queue. A completion queue can be 16 times as deep.
    pub queue_depth: usize,
    /// Operations under way at peers (C-33).
    pub outstanding: usize,
}

/// One function of a device: its queue pairs, completion queues and memory, which no other function can reach (C-39).
///
/// It makes progress in [`Function::poll`], [`Function::wait`] and [`Function::progress`], and nowhere else.
pub struct Function {
    fork: ForkGuard,
    core: Box<Core>,
    port: ManuallyDrop<Box<dyn Port>>,
    /// The function's number, which nobody else has while this is open.
    claim: Claim,
    /// Not `Sync`: one thread at a time.
    _one_thread: PhantomData<Cell<()>>,
}

impl Function {
    pub(crate) fn new(
        port: Box<dyn Port>,
        options: &FunctionOptions,
        claim: Claim,
    ) -> Result<Function> {
        let fork = ForkGuard::new()?;
        let mut core = Box::new(port.start(options)?);
        core.stat.name_device(claim.device_name());
        core.show(&[]);
        let port = ManuallyDrop::new(port);
        Ok(Function { fork, core, port, claim, _one_thread: PhantomData })
    }

    /// Who we are.
    pub fn address(&self) -> FunctionAddress {
        self.core.address
    }

    /// What is possible.
    pub fn limits(&self) -> Limits {
        self.core.limits
    }

    /// What was done so far.
    pub fn counters(&self) -> Counters {
        let mut counters = self.core.counters();
        counters.function.wrong_keys += self.port.device_wrong_keys();
        counters
    }

    // Objects

    /// A completion queue for `depth` completions (1 to 1,048,576). It never overflows: each post reserves an entry (C-16).
    pub fn create_completion_queue(&mut self, depth: usize) -> Result<CompletionQueue> {
        self.fork.check()?;
        self.core.create_completion_queue(depth)
    }

    /// Destroys a completion queue that no queue pair uses any more; completions in it are dropped.
    ///
    /// # Errors
    /// [`Error::InUse`], [`Error::NoSuchCompletionQueue`].
    pub fn destroy_completion_queue(&mut self, queue: CompletionQueue) -> Result<()> {
        self.fork.check()?;
        self.core.destroy_completion_queue(queue)
    }

    /// A receive queue that several queue pairs share, for `depth` receives (1 to 65,536).
    pub fn create_shared_receive_queue(&mut self, depth: usize) -> Result<SharedReceiveQueue> {
        self.fork.check()?;
        self.core.create_shared_receive_queue(depth)
    }

    /// Destroys a shared receive queue that no queue pair uses any more, and gives back the buffers in it with their contexts.
    ///
    /// # Errors
    /// [`Error::InUse`], [`Error::NoSuchSharedReceiveQueue`].
    pub fn destroy_shared_receive_queue(
        &mut self,
        queue: SharedReceiveQueue,
    ) -> Result<Vec<(Buffer, u64)>> {
        self.fork.check()?;
        self.core.destroy_shared_receive_queue(queue)
    }

    /// A queue pair with a number that peers can send to: the lowest that was never used, counted from 1.
    pub fn create_queue_pair(&mut self, options: &QueuePairOptions) -> Result<QueuePair> {
        self.fork.check()?;
        self.port.create_queue_pair(&mut self.core, options, None)
    }

    /// A member of channel `number`: it receives from members of the same channel on any node, and sends to them with
    /// [`Address::channel`] (H-22, H-23).
    ///
    /// # Errors
    /// [`Error::ChannelTaken`] if it is open on this node already.
    pub fn open_channel(&mut self, number: u16, options: &QueuePairOptions) -> Result<QueuePair> {
        self.fork.check()?;
        let claim = self.claim.channel(number)?;
        self.port.create_queue_pair(&mut self.core, options, Some((number, claim)))
    }

    /// Destroys a queue pair. Whatever was posted to it completes as [`Status::Flushed`] (unless it finished before), with its
    /// buffer, in its completion queues; a peer hears of it as of [`Function::disconnect`].
    pub fn destroy_queue_pair(&mut self, queue_pair: QueuePair) -> Result<()> {
        self.fork.check()?;
        self.port.destroy_queue_pair(&mut self.core, queue_pair)
    }

    /// The state of a queue pair.
    pub fn query(&self, queue_pair: QueuePair) -> Result<QueuePairState> {
        self.core.query(queue_pair)
    }

    /// All queue pairs.
    pub fn list(&self) -> Vec<QueuePair> {
        self.core.list()
    }

    // Memory

    /// A region of `length` zeroed bytes that peers with the right key reach without a copy in between.
    pub fn allocate(&mut self, length: usize, rights: Rights) -> Result<MemoryRegion> {
        self.fork.check()?;
        self.port.allocate(&mut self.core, length, rights)
    }

    /// Makes a region of memory that the program brings.
    ///
    /// # Errors
    /// With the memory: [`Error::OutOfRange`] if it is empty, [`Error::Exhausted`], or what the system lacks.
    pub fn register(
        &mut self,
        memory: Vec<u8>,
        rights: Rights,
    ) -> Result<MemoryRegion, Refused<Vec<u8>>> {
        if let Err(error) = self.fork.check() {
            return Err(Refused::new(error, memory));
        }
        self.port.register(&mut self.core, memory, rights)
    }

    /// Ends a region: its key is dead when this returns. Gives back the vector that was registered, or a copy of the bytes if
    /// the region was [allocated](Function::allocate) or other handles of it still exist (which stay readable, but are
    /// registered no longer).
    ///
    /// # Errors
    /// [`Error::InUse`] while a posted descriptor uses a part of it: nothing changed then. [`Error::NoSuchRegion`].
    pub fn deregister(&mut self, region: MemoryRegion) -> Result<Vec<u8>> {
        self.fork.check()?;
        self.port.deregister(&mut self.core, region)
    }

    /// Makes a region of memory that belongs to somebody else, for instance a C program: it is used where it is, and a descriptor
    /// names parts of it by [`MemoryRegion::slice`]. [`Function::release`] ends it. Without rights it serves this side only, and costs
    /// little enough to be made for one descriptor.
    ///
    /// # Safety
    /// Until it is [released](Function::release) and no handle or posted descriptor of it is left, the `length` bytes at `start` stay mapped,
    /// readable and writable. Peers that have rights, and descriptors that are posted, read and write them at any time, so nothing
    /// may be assumed of their contents meanwhile, and no Rust reference to them may be in use.
    ///
    /// # Errors
    /// As [`Function::register`].
    pub unsafe fn register_foreign(
        &mut self,
        start: NonNull<u8>,
        length: usize,
        rights: Rights,
    ) -> Result<MemoryRegion> {
        self.fork.check()?;
        // SAFETY: the caller's promise: all clones of the memory are in handles and descriptors of the region.
        let memory = unsafe { Memory::foreign(start, length) };
        self.port.register_foreign(&mut self.core, memory, rights)
    }

    /// Ends a region as [`Function::deregister`] does, and leaves its bytes where they are: for memory of
    /// [`Function::register_foreign`].
    ///
    /// # Errors
    /// As [`Function::deregister`].
    pub fn release(&mut self, region: &MemoryRegion) -> Result<()> {
        self.fork.check()?;
        self.port.release(&mut self.core, region)
    }

    // Posting

    /// Posts a message.
    ///
    /// Its completion means that all bytes are in the memory of the receiving function (a short message perhaps waits there
    /// for a receive), or, for a message longer than [`Limits::eager_bytes`], in the receiver's buffer. Over `eth` and `udp` that is
    /// known when the peer has acknowledged it, which it does while its program polls or waits; if the link goes down first, the
    /// message completes with the reason, and may have arrived or not. The status
    /// [`Status::Truncated`] is told to the sender of long messages only.
    ///
    /// # Errors
    /// With the descriptor: [`Error::QueueFull`] (the send queue, or the completion queue has no entry to reserve),
    /// [`Error::BadDestination`], [`Error::WrongState`], [`Error::TooLong`], [`Error::NoSuchQueuePair`].
    // Always, as `poll` and `post_receive`: descriptors and completions are then built and read where they are, instead of
    // being moved from call to call.
    #[inline(always)]
    pub fn post_send<'a>(
        &mut self,
        queue_pair: QueuePair,
        mut send: Send<'a>,
    ) -> Result<(), Refused<Send<'a>>> {
        if !self.fork.is_same_process() {
            return Err(Refused::new(Error::Forked, send));
        }
        match self.port.post_send(&mut self.core, queue_pair, &mut send) {
            Ok(()) => Ok(()),
            Err(error) => Err(Refused::new(error, send)),
        }
    }

    /// Posts messages in turn, with one ring of the bell: short ones for the same destination share a packet where the device gains by it
    /// (`shm`, and `auto:` on one host). To the receiver, and in every completion, they are as if each had been posted by
    /// [`Function::post_send`]; what was posted keeps no payload here.
    ///
    /// ```no_run
    /// # use bellwire::{Address, Function, QueuePair, Result, Send};
    /// /// Tells a peer three numbers, as a message each.
    /// fn tell(function: &mut Function, queue_pair: QueuePair, peer: Address) -> Result<()> {
    ///     let numbers = [3u64, 4, 5].map(u64::to_le_bytes);
    ///     let mut sends = numbers.each_ref().map(|bytes| Send::immediate(bytes).to(peer));
    ///     Ok(function.post_sends(queue_pair, &mut sends)?)
    /// }
    /// ```
    ///
    /// # Errors
    /// Those of [`Function::post_send`] for the first message that is refused, with the number of those before it, which are posted. It and
    /// those behind it are as they were.
    pub fn post_sends(
        &mut self,
        queue_pair: QueuePair,
        sends: &mut [Send<'_>],
    ) -> Result<(), Refused<usize>> {
        let mut posted = 0;
        if !self.fork.is_same_process() {
            return Err(Refused::new(Error::Forked, posted));
        }
        match self.port.post_sends(&mut self.core, queue_pair, sends, &mut posted) {
            Ok(()) => Ok(()),
            Err(error) => Err(Refused::new(error, posted)),
        }
    }

    /// Posts a buffer for one message; it reserves an entry of the receive completion queue.
    ///
    /// # Errors
    /// With the buffer: [`Error::QueueFull`], [`Error::WrongState`] (disconnected, or uses a shared receive queue),
    /// [`Error::NoSuchQueuePair`].
    #[inline(always)]
    pub fn post_receive(
        &mut self,
        queue_pair: QueuePair,
        buffer: impl Into<Buffer>,
        context: u64,
    ) -> Result<(), Refused<Buffer>> {
        let buffer = buffer.into();
        if !self.fork.is_same_process() {
            return Err(Refused::new(Error::Forked, buffer));
        }
        self.core.post_receive(queue_pair, buffer, context)
    }

    /// Posts a buffer for one message to any queue pair of a shared receive queue.
    ///
    /// # Errors
    /// With the buffer: [`Error::QueueFull`], [`Error::NoSuchSharedReceiveQueue`].
    pub fn post_shared_receive(
        &mut self,
        queue: SharedReceiveQueue,
        buffer: impl Into<Buffer>,
        context: u64,
    ) -> Result<(), Refused<Buffer>> {
        let buffer = buffer.into();
        if !self.fork.is_same_process() {
            return Err(Refused::new(Error::Forked, buffer));
        }
        self.core.post_shared_receive(queue, buffer, context)
    }

    /// Posts a one-sided write.
    ///
    /// # Errors
    /// With the descriptor: [`Error::UnequalSums`], [`Error::BadChain`], [`Error::OutOfRange`] (a part lies outside its key's
    /// region), and those of [`Function::post_send`]. Nothing has moved then.
    #[inline(always)]
    pub fn post_put<'a>(
        &mut self,
        queue_pair: QueuePair,
        mut put: Put<'a>,
    ) -> Result<(), Refused<Put<'a>>> {
        if !self.fork.is_same_process() {
            return Err(Refused::new(Error::Forked, put));
        }
        match self.port.post_put(&mut self.core, queue_pair, &mut put) {
            Ok(()) => Ok(()),
            Err(error) => Err(Refused::new(error, put)),
        }
    }

    /// Posts a one-sided read.
    ///
    /// # Errors
    /// As [`Function::post_put`].
    pub fn post_get(&mut self, queue_pair: QueuePair, get: Get) -> Result<(), Refused<Get>> {
        if !self.fork.is_same_process() {
            return Err(Refused::new(Error::Forked, get));
        }
        self.port.post_get(&mut self.core, queue_pair, get)
    }

    /// Adds `operand` to a peer's word, atomically; the completion's `value` is what was there before.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] (not a multiple of 8, or outside), and those of [`Function::post_send`].
    pub fn post_fetch_add(
        &mut self,
        queue_pair: QueuePair,
        at: RemoteAt,
        operand: u64,
        context: u64,
    ) -> Result<()> {
        self.fork.check()?;
        let change = Change::Add(operand);
        self.port.post_atomic(&mut self.core, queue_pair, at, change, context)
    }

    /// Replaces a peer's word by `new` if it equals `expected`, atomically; the completion's `value` is what was there before.
    ///
    /// # Errors
    /// As [`Function::post_fetch_add`].
    pub fn post_compare_swap(
        &mut self,
        queue_pair: QueuePair,
        at: RemoteAt,
        expected: u64,
        new: u64,
        context: u64,
    ) -> Result<()> {
        self.fork.check()?;
        let change = Change::Swap { expected, new };
        self.port.post_atomic(&mut self.core, queue_pair, at, change, context)
    }

    // Completing

    /// The oldest completion of a queue, if there is one; makes progress if the queue is empty.
    ///
    /// # Errors
    /// [`Error::NoSuchCompletionQueue`]; [`Error::Standstill`] on a simulated device, instead of nothing for ever.
    #[inline(always)]
    pub fn poll(&mut self, queue: CompletionQueue) -> Result<Option<Completion>> {
        self.poll_by(queue, |port, core| port.poll(core, queue.slot))
    }

    /// [`Function::poll`], and messages for the queue pairs that complete their receives in `queue` are shown to `inbox` first, where they
    /// lie: what it takes needs no receive and has no completion. Messages of more than [`Limits::eager_bytes`] are never shown, nor those
    /// that come while others of their queue pair wait for a receive or to be told.
    ///
    /// # Errors
    /// As [`Function::poll`].
    #[inline(always)]
    pub fn poll_with(
        &mut self,
        queue: CompletionQueue,
        inbox: &mut dyn Inbox,
    ) -> Result<Option<Completion>> {
        self.poll_by(queue, |port, core| port.poll_with(core, queue.slot, inbox))
    }

    #[inline(always)]
    fn poll_by(
        &mut self,
        queue: CompletionQueue,
        look: impl for<'a> FnOnce(&mut dyn Port, &'a mut Core) -> Option<Taken<'a>>,
    ) -> Result<Option<Completion>> {
        if self.fork.is_same_process()
            && let Some(ready) = self.core.has_completion(queue)
        {
            let taken = match ready {
                true => self.core.take(queue.slot),
                false => look(&mut **self.port, &mut self.core),
            };
            if let Some(taken) = taken {
                return Ok(Some(taken.completion()));
            }
            if !self.core.stands_still {
                return Ok(None);
            }
        }
        match self.why_nothing(queue) {
            None => Ok(None),
            Some(error) => Err(*error),
        }
    }

    /// Why a queue has no completion and will never have one, if that is so.
    // In a box: a call that were given the place of the result, to put its error there, would keep the compiler from passing completions
    // through that result in registers.
    #[cold]
    #[inline(never)]
    fn why_nothing(&self, queue: CompletionQueue) -> Option<Box<Error>> {
        let error = match (self.fork.check(), self.core.has_completion(queue)) {
            (Err(forked), _) => forked,
            (Ok(()), None) => Error::NoSuchCompletionQueue,
            (Ok(()), Some(_)) => self.port.standstill()?,
        };
        Some(Box::new(error))
    }

    /// The oldest completion of a queue, if one is there already: [`Function::poll`] without progress, for whoever has just polled and takes
    /// what came with it.
    ///
    /// # Errors
    /// [`Error::Forked`], [`Error::NoSuchCompletionQueue`].
    #[inline(always)]
    pub fn take(&mut self, queue: CompletionQueue) -> Result<Option<Completion>> {
        if self.fork.is_same_process()
            && let Some(ready) = self.core.has_completion(queue)
        {
            return Ok(if ready { self.core.pop(queue) } else { None });
        }
        match self.why_nothing(queue) {
            None => Ok(None),
            Some(error) => Err(*error),
        }
    }

    /// Makes progress: takes what peers sent, and sends what waits. Returns how much it did; 0: nothing to do now.
    ///
    /// # Errors
    /// [`Error::Forked`]; [`Error::Standstill`] on a simulated device, instead of nothing to do for ever.
    pub fn progress(&mut self) -> Result<usize> {
        self.fork.check()?;
        let done = self.port.progress(&mut self.core);
        if done == 0 && self.core.stands_still {
            return self.for_ever(0);
        }
        Ok(done)
    }

    /// The next completion of a queue, waiting for it.
    ///
    /// # Errors
    /// [`Error::TimedOut`], [`Error::NoSuchCompletionQueue`]; [`Error::Standstill`] on a simulated device.
    pub fn wait(
        &mut self,
        queue: CompletionQueue,
        how: Wait,
        timeout: Duration,
    ) -> Result<Completion> {
        self.core.has_completion(queue).ok_or(Error::NoSuchCompletionQueue)?;
        self.wait_for(how, timeout, |core| Ok(core.pop(queue)))
    }

    /// The time that this function's deadlines and waits go by: the real one, except on devices whose time is simulated, where it is
    /// that of the program which drives the function.
    pub fn now(&self) -> Instant {
        self.port.now()
    }

    /// A descriptor for `poll` or `epoll`: readable when [`Function::progress`] has something to do, once
    /// [`Function::arm`] returned `true`.
    pub fn wait_fd(&self) -> BorrowedFd<'_> {
        self.port.wakeup_fd()
    }

    /// Asks for [`Function::wait_fd`] to become readable. `false`: there is something to do already, poll first.
    ///
    /// # Errors
    /// [`Error::Forked`]; [`Error::Standstill`] on a simulated device.
    pub fn arm(&mut self) -> Result<bool> {
        self.fork.check()?;
        if self.port.progress(&mut self.core) > 0 {
            return Ok(false);
        }
        // Who waits for the descriptor would otherwise look and wait in turn, and never hear why.
        match self.port.standstill() {
            Some(standstill) => Err(standstill),
            None => Ok(self.port.arm_wakeup()),
        }
    }

    // Connections

    /// Asks a listener for a connection and waits for the answer, which is the peer's private data.
    ///
    /// `to.queue_pair` is a number that somebody [listens](Function::listen) on. If nobody does yet, it asks again until
    /// `timeout` has passed.
    ///
    /// # Errors
    /// [`Error::Rejected`], [`Error::Unreachable`], [`Error::WrongState`], [`Error::TooLong`] (private data).
    pub fn connect(
        &mut self,
        queue_pair: QueuePair,
        to: Address,
        private_data: &[u8],
        timeout: Duration,
    ) -> Result<Vec<u8>> {
        self.start_connect(queue_pair, to, private_data, timeout)?;
        // The connection has a deadline of its own, which says more than one of the wait's.
        let patient = timeout.saturating_add(Duration::from_secs(1));
        self.wait_for(Wait::Adaptive, patient, |core| match core.connection(queue_pair)? {
            ConnectionProgress::Waiting => Ok(None),
            ConnectionProgress::Connected(private_data) => Ok(Some(private_data)),
        })
    }

    /// Asks a listener for a connection, without waiting: [`Function::poll_connection`] tells the outcome.
    ///
    /// # Errors
    /// As [`Function::connect`].
    pub fn start_connect(
        &mut self,
        queue_pair: QueuePair,
        to: Address,
        private_data: &[u8],
        timeout: Duration,
    ) -> Result<()> {
        self.fork.check()?;
        self.port.start_connect(&mut self.core, queue_pair, to, private_data, timeout)
    }

    /// How far a connection is that [`Function::start_connect`] began; makes progress. Its end is told once.
    ///
    /// # Errors
    /// As [`Function::connect`]; [`Error::WrongState`] if none was begun, or its end was told already.
    pub fn poll_connection(&mut self, queue_pair: QueuePair) -> Result<ConnectionProgress> {
        self.progress()?;
        self.core.connection(queue_pair)
    }

    /// Takes connection requests on `number`, any below [`Address::CHANNEL_BASE`]; numbers of listeners and of queue pairs
    /// do not collide.
    ///
    /// # Errors
    /// [`Error::InUse`] if this function listens on it already, [`Error::Exhausted`].
    pub fn listen(&mut self, number: u32) -> Result<Listener> {
        self.fork.check()?;
        self.core.listen(number)
    }

    /// Stops listening; requests that wait are refused.
    pub fn stop_listening(&mut self, listener: Listener) -> Result<()> {
        self.fork.check()?;
        self.core.stop_listening(listener)
    }

    /// The oldest connection request, if there is one; makes progress if there is none.
    pub fn poll_request(&mut self, listener: Listener) -> Result<Option<ConnectionRequest>> {
        if let Some(request) = self.next_request(listener)? {
            return Ok(Some(request));
        }
        self.port.progress(&mut self.core);
        self.core.next_request(listener)
    }

    /// The oldest connection request that has come, if there is one. Makes no progress, so that whoever has polled its completion queue
    /// until it was empty, and looks here last, may sleep if [`Function::arm`] says so.
    pub fn next_request(&mut self, listener: Listener) -> Result<Option<ConnectionRequest>> {
        self.fork.check()?;
        self.core.next_request(listener)
    }

    /// The next connection request, waiting for it.
    ///
    /// # Errors
    /// [`Error::TimedOut`].
    pub fn wait_request(
        &mut self,
        listener: Listener,
        how: Wait,
        timeout: Duration,
    ) -> Result<ConnectionRequest> {
        self.wait_for(how, timeout, |core| core.next_request(listener))
    }

    /// Accepts a request: `queue_pair` (unconnected or disconnected, no channel) is connected to the peer from now on.
    ///
    /// # Errors
    /// [`Error::WrongState`], [`Error::TooLong`] (private data), [`Error::Unreachable`] (the peer is gone).
    pub fn accept(
        &mut self,
        request: ConnectionRequest,
        queue_pair: QueuePair,
        private_data: &[u8],
    ) -> Result<()> {
        self.fork.check()?;
        self.core.accept_connection(request, queue_pair, private_data)?;
        self.port.progress(&mut self.core);
        Ok(())
    }

    /// Refuses a request; the peer's `connect` fails with [`Error::Rejected`] and the private data as its reason.
    pub fn reject(&mut self, request: ConnectionRequest, private_data: &[u8]) -> Result<()> {
        self.fork.check()?;
        self.core.reject_connection(request, private_data)?;
        self.port.progress(&mut self.core);
        Ok(())
    }

    /// Ends a connection: what is posted completes as [`Status::Flushed`] here and [`Status::PeerGone`] there.
    pub fn disconnect(&mut self, queue_pair: QueuePair) -> Result<()> {
        self.fork.check()?;
        self.port.disconnect(&mut self.core, queue_pair)?;
        self.port.progress(&mut self.core);
        Ok(())
    }
}

impl Function {
    /// Makes progress until `look` finds something.
    fn wait_for<R>(
        &mut self,
        how: Wait,
        timeout: Duration,
        mut look: impl FnMut(&mut Core) -> Result<Option<R>>,
    ) -> Result<R> {
        self.fork.check()?;
        let mut patience = Patience::new(how, timeout);
        loop {
            if let Some(found) = look(&mut self.core)? {
                return Ok(found);
            }
            let done = self.port.progress(&mut self.core);
            if let Some(found) = look(&mut self.core)? {
                return Ok(found);
            }
            if done == 0 && self.core.stands_still {
                self.for_ever(())?;
            }
            match patience.after_look(done > 0, || self.port.now()) {
                Next::Look => {}
                Next::Sleep(left) => {
                    let limit = if self.core.waits_for_peers() { SHORT_SLEEP } else { left };
                    self.port.sleep_until_wakeup(Some(left.min(limit)))?;
                }
                Next::GiveUp(waited_ms) => return Err(Error::TimedOut { waited_ms }),
            }
        }
    }

    /// What `nothing` becomes when nothing will ever happen again: an error, with what the device says. Out of line, as the errors below.
    #[cold]
    #[inline(never)]
    fn for_ever<R>(&self, nothing: R) -> Result<R> {
        self.port.standstill().map_or(Ok(nothing), Err)
    }
}

/// Longest sleep while something waits for a peer. The device wakes us when the peer has made room; this bounds the harm if it
/// does not know, and keeps the deadlines of connections.
const SHORT_SLEEP: Duration = Duration::from_millis(1);

impl Drop for Function {
    /// Peers see the end of its links. In a forked child nothing happens, because the links are the parent's.
    fn drop(&mut self) {
        if self.fork.is_same_process() {
            // SAFETY: nothing uses the port after its owner is dropped.
            unsafe { ManuallyDrop::drop(&mut self.port) }
        }
    }
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let pairs = self.core.list().len();
        write!(f, "Function({}, {pairs} queue pairs)", self.core.address)
    }
}
