//! Functions: the objects that a program drives.

use crate::claims::{Claim, Number};
use crate::completion_queue::{Found, Taken};
use crate::descriptor::{Atomic, Destination, Get, Message, PartialPost, Put, Refused, Report};
use crate::devices::Opening;
use crate::engine::{Core, DynTransport, Handle};
use crate::fork::ForkGuard;
use crate::wait::{Next, Patience};
use crate::*;
use bellwire_ring::memory::Memory;
use std::cell::Cell;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// One function of a device: its queue pairs, completion queues and memory, which no other function
/// can reach (C-39).
///
/// It makes progress in [`Function::poll`], [`Function::wait`] and [`Function::progress`], and
/// nowhere else.
///
/// ```no_run
/// # use bellwire::{Device, Operation, QueuePairOptions, Result, Wait};
/// # use std::time::Duration;
/// # fn example(device: &Device) -> Result<()> {
/// let mut function = device.open_function(0)?;
/// let completions = function.create_completion_queue(64)?;
/// let queue_pair = function.create_queue_pair(&QueuePairOptions::new(completions))?;
/// function.post_receive(queue_pair, vec![0; 4096], 1)?;
/// let done = function.wait(completions, Wait::Adaptive, Duration::from_secs(10))?;
/// if done.operation == Operation::Receive && done.status.is_success() {
///     let length = done.length;
///     let bytes = done.buffer.map(|buffer| buffer.into_bytes(length));
/// }
/// # Ok(()) }
/// ```
pub struct Function {
    fork: ForkGuard,
    core: Box<Core>,
    transport: ManuallyDrop<Box<dyn DynTransport>>,
    /// Posts until the transport looks around.
    posts_left: u32,
    /// Reserves the function's number while this is open.
    _claim: Claim,
    opening: Arc<Opening>,
    /// Not `Sync`: only one thread at a time may use it.
    _one_thread: PhantomData<Cell<()>>,
}

impl Function {
    pub(crate) fn new(
        transport: Box<dyn DynTransport>,
        options: &FunctionOptions,
        claim: Claim,
        opening: Arc<Opening>,
    ) -> Result<Function> {
        let fork = ForkGuard::new()?;
        let mut core = Box::new(Core::new(&*transport, &opening.name, options)?);
        core.write_snapshot(&[]);
        let transport = ManuallyDrop::new(transport);
        Ok(Function {
            fork,
            core,
            transport,
            // Before the first one there is no peer to look at.
            posts_left: 2,
            _claim: claim,
            opening,
            _one_thread: PhantomData,
        })
    }

    /// Whether this process may post. A message over shared memory is sent and done within the
    /// post. So a program that only sends would never hear of the death of a peer, if posts did not
    /// look now and then: each one that comes late, otherwise one of [`POSTS_PER_LOOK`].
    #[inline(always)]
    fn may_post(&mut self) -> bool {
        if !self.fork.is_same_process() {
            return false;
        }
        self.posts_left -= 1;
        if self.posts_left == 0 {
            self.look_around();
        }
        true
    }

    #[cold]
    #[inline(never)]
    fn look_around(&mut self) {
        let is_rare = self.transport.look_beside_packets(&mut self.core);
        self.posts_left = if is_rare { 1 } else { POSTS_PER_LOOK };
    }

    /// This function's address.
    #[must_use]
    pub fn address(&self) -> FunctionAddress {
        self.core.address
    }

    /// The limits of this function.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.core.limits
    }

    /// Counters since the function was opened.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let mut counters = self.core.counters();
        counters.function.wrong_keys += self.transport.wrong_keys();
        self.transport.counters(&mut counters.device);
        counters
    }

    // Objects

    /// A completion queue for `depth` completions (1 to 1,048,576). It never overflows: each post
    /// reserves an entry (C-16).
    pub fn create_completion_queue(&mut self, depth: usize) -> Result<CompletionQueue> {
        self.fork.check()?;
        self.core.create_completion_queue(depth)
    }

    /// Destroys a completion queue that no queue pair uses any more. Drops the completions in it.
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

    /// Destroys a shared receive queue that no queue pair uses any more. Returns its buffers with
    /// their contexts.
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

    /// A queue pair. Its number, which peers send to, is the lowest that was never used, counted
    /// from 1.
    pub fn create_queue_pair(&mut self, options: &QueuePairOptions) -> Result<QueuePair> {
        self.fork.check()?;
        self.core.create_queue_pair(&mut **self.transport, options, None)
    }

    /// A member of channel `number` (H-22, H-23). It receives from members of the same channel on
    /// any node. It sends to them with [`Address::channel`].
    ///
    /// # Errors
    /// [`Error::ChannelTaken`] if it is open on this node already.
    pub fn open_channel(&mut self, number: u16, options: &QueuePairOptions) -> Result<QueuePair> {
        self.fork.check()?;
        // One owner per node (H-22).
        let claim = self.opening.claims.claim(Number::Channel(number));
        let claim = claim.ok_or(Error::ChannelTaken { channel: number })?;
        self.core.create_queue_pair(&mut **self.transport, options, Some((number, claim)))
    }

    /// Destroys a queue pair. Each unfinished descriptor completes as [`Status::Flushed`], with its
    /// buffer, in its completion queue. A peer sees the same as for [`Function::disconnect`].
    pub fn destroy_queue_pair(&mut self, queue_pair: QueuePair) -> Result<()> {
        self.fork.check()?;
        self.core.destroy_queue_pair(&mut **self.transport, queue_pair)
    }

    /// The state of a queue pair.
    pub fn query(&self, queue_pair: QueuePair) -> Result<QueuePairState> {
        self.core.query(queue_pair)
    }

    /// All queue pairs.
    #[must_use]
    pub fn queue_pairs(&self) -> Vec<QueuePair> {
        self.core.queue_pairs()
    }

    // Memory

    /// A region of `length` zeroed bytes that peers with its key access without an intermediate
    /// copy.
    ///
    /// ```no_run
    /// # use bellwire::{Function, Result, Rights};
    /// # fn example(function: &mut Function) -> Result<()> {
    /// let region = function.allocate_region(4096, Rights::REMOTE_READ | Rights::REMOTE_WRITE)?;
    /// region.write(0, b"for peers");
    /// let for_peers = region.remote_key().to_bytes();
    /// // Peers use it until its key is dead.
    /// let bytes = function.deregister(region)?;
    /// # Ok(()) }
    /// ```
    pub fn allocate_region(&mut self, length: usize, rights: Rights) -> Result<MemoryRegion> {
        self.fork.check()?;
        self.core.allocate_region(&mut **self.transport, length, rights)
    }

    /// Registers memory that the program brings.
    ///
    /// # Errors
    /// Each returns the memory: [`Error::OutOfRange`] if it is empty, [`Error::Exhausted`], or an
    /// error that names the missing resource.
    pub fn register(
        &mut self,
        memory: Vec<u8>,
        rights: Rights,
    ) -> Result<MemoryRegion, Refused<Vec<u8>>> {
        if let Err(error) = self.fork.check() {
            return Err(Refused::new(error, memory));
        }
        self.core.register(&mut **self.transport, memory, rights)
    }

    /// Ends a region: its key is dead when this returns. Returns the vector that was registered.
    /// Returns a copy if the region was [allocated](Function::allocate_region) or other handles of
    /// it still exist. Those handles stay readable.
    ///
    /// # Errors
    /// [`Error::InUse`] while a posted descriptor uses a part of it: nothing has changed.
    /// [`Error::NoSuchRegion`].
    pub fn deregister(&mut self, region: MemoryRegion) -> Result<Vec<u8>> {
        self.fork.check()?;
        self.core.deregister(&mut **self.transport, region)
    }

    /// Registers memory that this library does not own, for instance a C program's. It is used in
    /// place. A descriptor names parts of it by [`MemoryRegion::slice`].
    /// [`Function::deregister_foreign`] ends it. Without rights only this side uses it; that is
    /// cheap enough to do for each descriptor.
    ///
    /// # Safety
    /// The `length` bytes at `start` stay mapped, readable and writable until the region is
    /// [deregistered](Function::deregister_foreign) and no handle or posted descriptor of it is
    /// left. Until then peers with rights, and posted descriptors, read and write the bytes at any
    /// time. So the program assumes nothing about their contents and uses no Rust reference to
    /// them.
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
        // SAFETY: the caller's promise, because all clones of the memory are in handles and
        // descriptors of the region.
        let memory = unsafe { Memory::foreign(start, length) };
        self.core.register_foreign(&mut **self.transport, memory, rights)
    }

    /// As [`Function::register_foreign`] without rights, for memory that stays registered for long
    /// and that peers will reach by other regions of the same bytes, with `rights`. On one host the
    /// device may exchange its pages for pages that peers can map; bytes and addresses stay. Then
    /// peers reach it without a system call, except what lies in no whole page of its own. That
    /// takes anonymous memory, and a program whose other threads sleep until this one wakes them. A
    /// signal handler of such a thread must not store there meanwhile.
    ///
    /// # Safety
    /// As for [`Function::register_foreign`]. A child of this process gets copies of the pages.
    ///
    /// # Errors
    /// As [`Function::register`].
    pub unsafe fn register_for_long(
        &mut self,
        start: NonNull<u8>,
        length: usize,
        rights: Rights,
    ) -> Result<MemoryRegion> {
        self.fork.check()?;
        // SAFETY: as above.
        let memory = unsafe { Memory::foreign(start, length) };
        self.core.register_for_long(&mut **self.transport, memory, rights)
    }

    /// Ends a region of [`Function::register_foreign`] as [`Function::deregister`] does. Its bytes
    /// stay where they are.
    ///
    /// # Errors
    /// As [`Function::deregister`].
    pub fn deregister_foreign(&mut self, region: &MemoryRegion) -> Result<()> {
        self.fork.check()?;
        self.core.deregister_foreign(&mut **self.transport, region)
    }

    // Posting

    /// Posts a message.
    ///
    /// Its completion means that all bytes are in the memory of the receiving function, where a
    /// short message may wait for a receive. For a message longer than [`Limits::eager_bytes`] it
    /// means that they are in the receiver's buffer. Over `eth` and `udp` it waits for the peer's
    /// acknowledgement, which the peer sends while its program polls or waits. If the link goes
    /// down first, the message completes with the reason, whether it has arrived or not. Only
    /// senders of long messages see [`Status::Truncated`].
    ///
    /// # Errors
    /// Each returns the descriptor: [`Error::QueueFull`] (of the send queue, or no free entry in
    /// the completion queue), [`Error::BadDestination`], [`Error::WrongState`], [`Error::TooLong`],
    /// [`Error::NoSuchQueuePair`].
    // Always inlined, as `poll` and `post_receive`: descriptors and completions are then built and
    // read in place, instead of being copied from call to call.
    #[inline(always)]
    pub fn post_send<'a>(
        &mut self,
        queue_pair: QueuePair,
        send: Message<'a>,
    ) -> Result<(), Refused<Message<'a>>> {
        let (bytes, to, report) = match send.into_short() {
            Ok(parts) => parts,
            Err(send) => return self.post_any_send(queue_pair, send),
        };
        let from = Handle::from(queue_pair);
        if self.may_post() && self.transport.send_short(&mut self.core, from, bytes, to, report) {
            return Ok(());
        }
        self.post_short_later(queue_pair.number, from, bytes, to, report)
    }

    /// Posts a short message that cannot leave at once.
    // It gets the parts. A descriptor that goes to here would be in memory on the fast path, too.
    #[cold]
    #[inline(never)]
    fn post_short_later<'a>(
        &mut self,
        number: u32,
        from: Handle,
        bytes: &'a [u8],
        to: Destination,
        report: Report,
    ) -> Result<(), Refused<Message<'a>>> {
        self.post_later(from.queue_pair(number), Message::short(bytes, to, report))
    }

    #[inline(always)]
    fn post_any_send<'a>(
        &mut self,
        queue_pair: QueuePair,
        mut send: Message<'a>,
    ) -> Result<(), Refused<Message<'a>>> {
        if self.may_post()
            && self.transport.send_at_once(&mut self.core, queue_pair.into(), &mut send)
        {
            return Ok(());
        }
        self.post_later(queue_pair, send)
    }

    /// Posts a message that cannot leave at once.
    #[cold]
    #[inline(never)]
    fn post_later<'a>(
        &mut self,
        queue_pair: QueuePair,
        mut send: Message<'a>,
    ) -> Result<(), Refused<Message<'a>>> {
        let posted = self
            .fork
            .check()
            .and_then(|()| self.transport.post_waiting_send(&mut self.core, queue_pair, &mut send));
        posted.map_err(|error| Refused::new(error, send))
    }

    /// Sends an unsignaled message of `head`, little-endian, and `body`, if it can leave at once.
    /// `false`: nothing has changed.
    #[doc(hidden)]
    #[inline]
    pub fn send_at_once(
        &mut self,
        queue_pair: QueuePair,
        head: [u64; 2],
        body: View<'_>,
        to: Address,
    ) -> bool {
        let from = Handle::from(queue_pair);
        self.fork.is_same_process()
            && self.transport.send_headed(&mut self.core, from, head, body, to.into())
    }

    /// Posts messages in turn, with one ring of the doorbell. Short messages for the same
    /// destination share a packet where the device gains by it (`shm`, and `auto:` on one host).
    /// Over `eth` and `udp` they share frames. On a quiet line these leave at the end of the call,
    /// on a busy one with the next poll, as single messages do. Receivers and completions see no
    /// difference from single calls of [`Function::post_send`]. A posted element of `sends` keeps
    /// no payload.
    ///
    /// ```no_run
    /// # use bellwire::{Address, Function, QueuePair, Result, Message};
    /// /// Tells a peer three numbers, as a message each.
    /// fn tell(function: &mut Function, queue_pair: QueuePair, peer: Address) -> Result<()> {
    ///     let numbers = [3u64, 4, 5].map(u64::to_le_bytes);
    ///     let mut sends = numbers.each_ref().map(|bytes| Message::inline(bytes).to(peer));
    ///     Ok(function.post_sends(queue_pair, &mut sends)?)
    /// }
    /// ```
    ///
    /// # Errors
    /// Those of [`Function::post_send`] for the first refused message, with the number of messages
    /// before it. Those are posted; the refused one and all behind it are unchanged.
    pub fn post_sends(
        &mut self,
        queue_pair: QueuePair,
        sends: &mut [Message<'_>],
    ) -> Result<(), PartialPost> {
        let mut posted = 0;
        if !self.may_post() {
            return Err(PartialPost { error: Error::Forked, posted });
        }
        match self.transport.post_sends(&mut self.core, queue_pair, sends, &mut posted) {
            Ok(()) => Ok(()),
            Err(error) => Err(PartialPost { error, posted }),
        }
    }

    /// Adds a message of `head` and `body` to others, for [`Function::post_packed`]. `false`: it is
    /// too long, or there is no room.
    ///
    /// # Errors
    /// [`Error::Forked`].
    #[doc(hidden)]
    #[inline]
    pub fn gather(
        &self,
        packed: &mut PackedMessages,
        immediate: u64,
        head: &[u8],
        body: View<'_>,
    ) -> Result<bool> {
        self.fork.check()?;
        Ok(packed.add(immediate, head, body))
    }

    /// Posts gathered messages to `to` in turn, each with this context. `more`: others follow at
    /// once, and over a network these may wait for them until the next poll. Otherwise as
    /// [`Function::post_sends`].
    ///
    /// # Errors
    /// Those of [`Function::post_send`] for the first refused message. It and all behind it are
    /// still in `packed`.
    #[doc(hidden)]
    pub fn post_packed(
        &mut self,
        queue_pair: QueuePair,
        to: Address,
        packed: &mut PackedMessages,
        context: u64,
        more: bool,
    ) -> Result<()> {
        if !self.may_post() {
            return Err(Error::Forked);
        }
        let how = (context, more);
        self.transport.post_packed(&mut self.core, queue_pair, to.into(), packed, how)
    }

    /// Posts a buffer for one message. Reserves an entry of the receive completion queue.
    ///
    /// # Errors
    /// Each returns the buffer: [`Error::QueueFull`], [`Error::WrongState`] (disconnected, or uses
    /// a shared receive queue), [`Error::NoSuchQueuePair`].
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
    /// Each returns the buffer: [`Error::QueueFull`], [`Error::NoSuchSharedReceiveQueue`].
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
    /// Each returns the descriptor: [`Error::UnequalSums`], [`Error::BadChain`],
    /// [`Error::OutOfRange`] (a part lies outside its key's region), and those of
    /// [`Function::post_send`]. No byte has moved then.
    #[inline(always)]
    pub fn post_put<'a>(
        &mut self,
        queue_pair: QueuePair,
        put: Put<'a>,
    ) -> Result<(), Refused<Put<'a>>> {
        let (bytes, to, report) = match put.into_short() {
            Ok(parts) => parts,
            Err(put) => return self.post_any_put(queue_pair, put),
        };
        let from = Handle::from(queue_pair);
        if self.may_post() && self.puts_short(from, bytes, to, report) {
            return Ok(());
        }
        self.put_short_later(queue_pair.number, from, bytes, to, report)
    }

    /// Carries out a put of a few bytes without a descriptor or a completion, if the peer's memory
    /// is mapped and nothing else waits on the queue pair. `false`: nothing has changed.
    #[doc(hidden)]
    #[inline]
    pub fn put_at_once(&mut self, queue_pair: QueuePair, bytes: &[u8], to: &RemoteSlice) -> bool {
        let report = Report { context: 0, signaled: false };
        let from = Handle::from(queue_pair);
        self.fork.is_same_process() && self.puts_short(from, bytes, *to, report)
    }

    /// Carries out a short put, if that is possible at once.
    #[inline(always)]
    fn puts_short(&mut self, from: Handle, bytes: &[u8], to: RemoteSlice, report: Report) -> bool {
        if bytes.len() > self.core.limits.eager_bytes {
            return false;
        }
        self.core.puts_through_window(from, View::of(bytes), &to, report).is_some()
            || self.transport.put_short(&mut self.core, from, bytes, to, report)
    }

    /// Posts a short put that is not done at once.
    #[cold]
    #[inline(never)]
    fn put_short_later<'a>(
        &mut self,
        number: u32,
        from: Handle,
        bytes: &'a [u8],
        to: RemoteSlice,
        report: Report,
    ) -> Result<(), Refused<Put<'a>>> {
        self.put_later(from.queue_pair(number), Put::short(bytes, to, report))
    }

    #[inline(always)]
    fn post_any_put<'a>(
        &mut self,
        queue_pair: QueuePair,
        mut put: Put<'a>,
    ) -> Result<(), Refused<Put<'a>>> {
        if self.may_post()
            && self.transport.put_at_once(&mut self.core, queue_pair.into(), &mut put)
        {
            return Ok(());
        }
        self.put_later(queue_pair, put)
    }

    /// Posts a put that is not done at once.
    #[cold]
    #[inline(never)]
    fn put_later<'a>(
        &mut self,
        queue_pair: QueuePair,
        mut put: Put<'a>,
    ) -> Result<(), Refused<Put<'a>>> {
        let posted = self
            .fork
            .check()
            .and_then(|()| self.transport.post_longer_put(&mut self.core, queue_pair, &mut put));
        posted.map_err(|error| Refused::new(error, put))
    }

    /// Posts a one-sided read.
    ///
    /// # Errors
    /// As [`Function::post_put`].
    pub fn post_get(&mut self, queue_pair: QueuePair, mut get: Get) -> Result<(), Refused<Get>> {
        if !self.fork.is_same_process() {
            return Err(Refused::new(Error::Forked, get));
        }
        match self.transport.post_get(&mut self.core, queue_pair, &mut get) {
            Ok(()) => Ok(()),
            Err(error) => Err(Refused::new(error, get)),
        }
    }

    /// Posts an atomic.
    ///
    /// # Errors
    /// Each returns the descriptor: [`Error::OutOfRange`] (not a multiple of 8, or outside), and
    /// those of [`Function::post_send`].
    pub fn post_atomic(
        &mut self,
        queue_pair: QueuePair,
        atomic: Atomic,
    ) -> Result<(), Refused<Atomic>> {
        if !self.fork.is_same_process() {
            return Err(Refused::new(Error::Forked, atomic));
        }
        match self.transport.post_atomic(&mut self.core, queue_pair, &atomic) {
            Ok(()) => Ok(()),
            Err(error) => Err(Refused::new(error, atomic)),
        }
    }

    // Completing

    /// The oldest completion of a queue, if there is one. Makes progress if the queue is empty, and
    /// now and then if it is not.
    ///
    /// # Errors
    /// [`Error::NoSuchCompletionQueue`]; [`Error::Standstill`] on a simulated device, instead of
    /// `None` for ever.
    #[inline(always)]
    pub fn poll(&mut self, queue: CompletionQueue) -> Result<Option<Completion>> {
        self.poll_by(queue, |transport, core, found| transport.poll_queue(core, queue.slot, found))
    }

    /// As [`Function::poll`], but `inbox` sees messages first, in place, if their queue pair
    /// completes its receives in `queue`. A message that it takes needs no receive and has no
    /// completion. It never sees messages of more than [`Limits::eager_bytes`]. Nor does it see a
    /// message while earlier ones of its queue pair wait for a receive, or while completions wait
    /// to be polled.
    ///
    /// # Errors
    /// As [`Function::poll`].
    #[inline(always)]
    pub fn poll_with(
        &mut self,
        queue: CompletionQueue,
        inbox: &mut dyn Inbox,
    ) -> Result<Option<Completion>> {
        self.poll_by(queue, |transport, core, found| {
            transport.poll_with(core, queue.slot, found, inbox)
        })
    }

    #[inline(always)]
    fn poll_by(
        &mut self,
        queue: CompletionQueue,
        look: impl for<'a> FnOnce(&mut dyn DynTransport, &'a mut Core, Found) -> Option<Taken<'a>>,
    ) -> Result<Option<Completion>> {
        if self.fork.is_same_process()
            && let Some(found) = self.core.found(queue)
        {
            let taken = match found {
                Found::Completion => self.core.take(queue.slot),
                _ => look(&mut **self.transport, &mut self.core, found),
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
    // Boxed: an out-pointer for the error would keep completions out of registers.
    #[cold]
    #[inline(never)]
    fn why_nothing(&self, queue: CompletionQueue) -> Option<Box<Error>> {
        let error = match (self.fork.check(), self.core.has_completion(queue)) {
            (Err(forked), _) => forked,
            (Ok(()), None) => Error::NoSuchCompletionQueue,
            (Ok(()), Some(_)) => self.transport.standstill()?,
        };
        Some(Box::new(error))
    }

    /// The oldest completion of a queue, if there is one. Makes no progress: for a caller that has
    /// just [polled](Function::poll) and drains the queue.
    ///
    /// # Errors
    /// [`Error::Forked`], [`Error::NoSuchCompletionQueue`].
    #[inline(always)]
    pub fn next_completion(&mut self, queue: CompletionQueue) -> Result<Option<Completion>> {
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

    /// Makes progress: receives what has arrived and sends what waits. Returns the number of things
    /// done; 0: nothing to do now.
    ///
    /// # Errors
    /// [`Error::Forked`]; [`Error::Standstill`] on a simulated device, instead of 0 for ever.
    pub fn progress(&mut self) -> Result<usize> {
        self.fork.check()?;
        let done = self.transport.progress(&mut self.core);
        if done == 0 && self.core.stands_still {
            return self.for_ever(0);
        }
        Ok(done)
    }

    /// The next completion of a queue, waiting for it.
    ///
    /// # Errors
    /// [`Error::TimedOut`], [`Error::NoSuchCompletionQueue`]; [`Error::Standstill`] on a simulated
    /// device.
    pub fn wait(
        &mut self,
        queue: CompletionQueue,
        how: Wait,
        timeout: Duration,
    ) -> Result<Completion> {
        self.core.has_completion(queue).ok_or(Error::NoSuchCompletionQueue)?;
        self.wait_for(how, timeout, |core| Ok(core.pop(queue)))
    }

    /// From now on answers to puts may wait a moment for a packet of the program, and share its
    /// frame. For a library with a thread that polls or arms when the program does not: otherwise a
    /// peer would wait for as long as the program does something else.
    #[doc(hidden)]
    pub fn let_answers_wait(&mut self) {
        self.core.answers_wait = true;
    }

    /// Packets that are posted from now on may wait for each other, until [`Function::flush`].
    #[doc(hidden)]
    pub fn hold(&mut self) {
        if self.fork.is_same_process() {
            self.transport.hold();
        }
    }

    /// Ends [`Function::hold`], and sends packets that wait, as far as there is room.
    #[doc(hidden)]
    pub fn flush(&mut self) {
        if self.fork.is_same_process() {
            self.transport.flush();
        }
    }

    /// Whether all that was posted to a queue pair has left this process. It may not have arrived
    /// yet. For a library that tells its program so before the peer does.
    #[doc(hidden)]
    #[inline]
    pub fn has_left(&self, queue_pair: QueuePair) -> bool {
        self.core.link_of_all(queue_pair).is_some_and(|link| self.transport.has_sent_all(link))
    }

    /// A peer whose link has ended since the last call, and why. For a library that sends nothing
    /// for a while and must know that its peers are there.
    #[doc(hidden)]
    #[inline]
    pub fn take_lost_peer(&mut self) -> Option<(FunctionAddress, Status)> {
        self.core.lost.pop()
    }

    /// The clock of this function's deadlines and waits. It is real time, except on simulated
    /// devices: there it is the virtual time of the program that drives the function.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.transport.now()
    }

    /// A descriptor for `poll` or `epoll`: readable when [`Function::progress`] has something to
    /// do, after [`Function::arm`] has returned `true`.
    #[must_use]
    pub fn wait_fd(&self) -> BorrowedFd<'_> {
        self.transport.wait_fd()
    }

    /// Asks for [`Function::wait_fd`] to become readable. `false`: there is something to do
    /// already; poll first.
    ///
    /// # Errors
    /// [`Error::Forked`]; [`Error::Standstill`] on a simulated device.
    pub fn arm(&mut self) -> Result<bool> {
        self.fork.check()?;
        if self.transport.progress(&mut self.core) > 0 {
            return Ok(false);
        }
        // Without this, a program that arms and waits in turn would never see the error.
        match self.transport.standstill() {
            Some(standstill) => Err(standstill),
            None => Ok(self.transport.arm()),
        }
    }

    /// Nobody waits on [`Function::wait_fd`] until the next [`Function::arm`]. For a program that
    /// slept and now polls: on some devices each arriving packet otherwise costs the kernel work.
    pub fn disarm(&mut self) {
        // What a forked child took out would be out of its parent's, too.
        if self.fork.check().is_ok() {
            self.transport.disarm();
        }
    }

    /// The longest time to sleep at [`Function::wait_fd`]; `None`: for ever. It is short while
    /// something waits for a peer, or for a deadline.
    #[must_use]
    pub fn sleep_limit(&self) -> Option<Duration> {
        self.core.waits_for_peers().then_some(SHORT_SLEEP)
    }

    /// Sleeps inside of the device until there is something to do, at most for `limit`.
    pub(crate) fn sleep_in_device(&mut self, limit: Duration) -> Result<()> {
        self.transport.sleep(Some(limit))
    }

    // Connections

    /// Asks a listener for a connection and waits for the answer. Returns the peer's private data.
    ///
    /// `to.queue_pair` is the number of a [listener](Function::listen). Without a listener it asks
    /// again until `timeout` has passed.
    ///
    /// # Errors
    /// [`Error::Rejected`], [`Error::Unreachable`], [`Error::WrongState`], [`Error::TooLong`]
    /// (private data).
    pub fn connect(
        &mut self,
        queue_pair: QueuePair,
        to: Address,
        private_data: &[u8],
        timeout: Duration,
    ) -> Result<Vec<u8>> {
        self.start_connect(queue_pair, to, private_data, timeout)?;
        // The connection's own deadline comes first: its error says more than the wait's.
        let patient = timeout.saturating_add(Duration::from_secs(1));
        self.wait_for(Wait::Adaptive, patient, |core| match core.connection(queue_pair)? {
            ConnectionProgress::Waiting => Ok(None),
            ConnectionProgress::Connected(private_data) => Ok(Some(private_data)),
        })
    }

    /// Asks a listener for a connection, without waiting: [`Function::poll_connection`] reports the
    /// outcome.
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
        self.core.start_connect(&mut **self.transport, queue_pair, to, private_data, timeout)
    }

    /// The progress of a connection that [`Function::start_connect`] began. Makes progress. Reports
    /// the outcome once.
    ///
    /// # Errors
    /// As [`Function::connect`]; [`Error::WrongState`] if none was begun, or its outcome was
    /// reported already.
    pub fn poll_connection(&mut self, queue_pair: QueuePair) -> Result<ConnectionProgress> {
        self.progress()?;
        self.core.connection(queue_pair)
    }

    /// Accepts connection requests on `number`, any below [`Address::CHANNEL_BASE`]. Numbers of
    /// listeners and of queue pairs are separate.
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

    /// The oldest connection request, if there is one. Makes progress if there is none.
    pub fn poll_request(&mut self, listener: Listener) -> Result<Option<ConnectionRequest>> {
        if let Some(request) = self.next_request(listener)? {
            return Ok(Some(request));
        }
        self.transport.progress(&mut self.core);
        self.core.next_request(listener)
    }

    /// The oldest connection request, if there is one. Makes no progress: a program that has polled
    /// its completion queue until it was empty, and looks here last, may sleep if [`Function::arm`]
    /// allows it.
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

    /// Accepts a request: `queue_pair` (unconnected or disconnected, no channel) is then connected
    /// to the peer.
    ///
    /// # Errors
    /// [`Error::WrongState`], [`Error::TooLong`] (private data), [`Error::Unreachable`] (the peer
    /// is gone).
    pub fn accept(
        &mut self,
        request: ConnectionRequest,
        queue_pair: QueuePair,
        private_data: &[u8],
    ) -> Result<()> {
        self.fork.check()?;
        self.core.accept_connection(request, queue_pair, private_data)?;
        self.transport.progress(&mut self.core);
        Ok(())
    }

    /// Refuses a request. The peer's `connect` fails with [`Error::Rejected`] and the private data
    /// as its reason.
    pub fn reject(&mut self, request: ConnectionRequest, private_data: &[u8]) -> Result<()> {
        self.fork.check()?;
        self.core.reject_connection(request, private_data)?;
        self.transport.progress(&mut self.core);
        Ok(())
    }

    /// Ends a connection: posted descriptors complete as [`Status::Flushed`] here and as
    /// [`Status::PeerGone`] at the peer.
    pub fn disconnect(&mut self, queue_pair: QueuePair) -> Result<()> {
        self.fork.check()?;
        self.core.disconnect(&mut **self.transport, queue_pair)?;
        self.transport.progress(&mut self.core);
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
            let done = self.transport.progress(&mut self.core);
            if let Some(found) = look(&mut self.core)? {
                return Ok(found);
            }
            if done == 0 && self.core.stands_still {
                self.for_ever(())?;
            }
            match patience.after_empty_poll(done > 0, || self.transport.now()) {
                Next::Poll => {}
                Next::Sleep(left) => {
                    let limit = self.sleep_limit().unwrap_or(left);
                    self.transport.sleep(Some(left.min(limit)))?;
                }
                Next::GiveUp(waited_ms) => return Err(Error::TimedOut { waited_ms }),
            }
        }
    }

    /// Returns `nothing`, or an error with the device's report if the device stands still. Out of
    /// line, as the errors below.
    #[cold]
    #[inline(never)]
    fn for_ever<R>(&self, nothing: R) -> Result<R> {
        self.transport.standstill().map_or(Ok(nothing), Err)
    }
}

/// Longest sleep while something waits for a peer. The device wakes us when the peer has made room.
/// This bound limits the delay if the device misses that, and keeps the deadlines of connections.
const SHORT_SLEEP: Duration = Duration::from_millis(1);

/// Of posts in quick succession, one in so many looks around. A look reads the clock.
const POSTS_PER_LOOK: u32 = 32;

impl Drop for Function {
    /// Ends the links, which peers see. In a forked child nothing happens: the links are the
    /// parent's.
    fn drop(&mut self) {
        if self.fork.is_same_process() {
            // SAFETY: nothing uses the transport after its owner is dropped.
            unsafe { ManuallyDrop::drop(&mut self.transport) }
        }
    }
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let pairs = self.core.queue_pairs().len();
        write!(f, "Function({}, {pairs} queue pairs)", self.core.address)
    }
}
