//! Completion queues.

use crate::abi::{
    CqAttr, CqEntry, CqErrEntry, Fid, FidCq, Ops, calls, class, enosys, error, ops, value,
    write_entry,
};
use crate::domain::Domain;
use crate::entries::Entries;
use crate::ep::ActiveEndpoint;
use crate::errno::Result;
use crate::library;
use crate::lock::Lock;
use crate::object::{self, CLOSED_CQ, Close, Handle, Opened, close, object};
use crate::pointer::{Array, Buffer, Out};
use crate::reference::{Listed, Ref};
use crate::wait::{EmptyPolls, Timeout, Waiting};
use std::collections::VecDeque;
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A completion queue.
#[repr(C)]
pub struct CompletionQueue {
    fid: FidCq,
    _domain: Ref<Domain>,
    /// Bytes of one entry in the program's format.
    entry_bytes: usize,
    /// A thread that completes an operation wakes the sleeper: that of `progress.rs`, or another
    /// one of the program.
    waiting: Waiting,
    /// The program called `fi_cq_signal`.
    signalled: AtomicBool,
    queue: Lock<Queue>,
    empty_polls: EmptyPolls,
    /// Endpoints that complete here.
    endpoints: Lock<Vec<Listed<ActiveEndpoint>>>,
    /// Endpoints and poll sets that it is bound to.
    users: AtomicUsize,
}

object!(CompletionQueue, FidCq, FID, CLOSED_CQ, users);

struct Queue {
    entries: Entries,
    /// Failed operations, each with the number of entries to take before it is reported.
    errors: VecDeque<(u64, CqErrEntry)>,
    /// Entries taken so far.
    taken: u64,
    size: usize,
    /// The free places of a call that makes progress; no entry and no error is before them.
    reader: Places,
    /// How many of its places are filled.
    handed: usize,
    /// Whether there is such a call, perhaps without free places.
    is_read: bool,
    /// An endpoint keeps messages back that count as sent (`FI_MORE`). The next call lets them go:
    /// a program that has their completions may make no progress for long.
    owes: bool,
}

static FID: Ops<6> = ops![close::<CompletionQueue>, enosys, control];
/// fi_cq(3).
static CQ: Ops<7> = ops![read, readfrom, readerr, sread, sreadfrom, signal, library::strerror];

/// `fi_cq_open`.
pub extern "C" fn open(
    domain: &Domain,
    attr: Option<&mut CqAttr>,
    into: Out<CompletionQueue>,
    context: *mut c_void,
) -> c_int {
    object::open(into, || {
        let attr = attr.ok_or(error::EINVAL)?;
        if attr.format == 0 {
            attr.format = value::CQ_CONTEXT;
        }
        let entry_bytes = match attr.format {
            value::CQ_CONTEXT => 8,
            value::CQ_MSG => 24,
            value::CQ_DATA => 40,
            value::CQ_TAGGED => 48,
            _ => return Err(error::EINVAL),
        };
        let waiting = Waiting::wanted(&mut attr.wait_obj, attr.wait_set)?;
        if attr.size == 0 {
            attr.size = crate::info::DEPTH;
        }
        let fid = Fid { class: class::CQ, context, ops: &FID };
        let queue = Queue {
            entries: Entries::new(attr.size.min(1 << 16)),
            errors: VecDeque::new(),
            taken: 0,
            size: attr.size,
            reader: Places::NONE,
            handed: 0,
            is_read: false,
            owes: false,
        };
        let cq = Opened::new(CompletionQueue {
            fid: FidCq { fid, ops: &CQ },
            _domain: Ref::to(domain),
            entry_bytes,
            waiting,
            signalled: AtomicBool::new(false),
            queue: Lock::new(domain.shared, queue),
            empty_polls: EmptyPolls::default(),
            endpoints: Lock::new(domain.shared, Vec::new()),
            users: AtomicUsize::new(0),
        });
        cq.waiting.join(Handle::of(&*cq));
        Ok(cq)
    })
}

impl CompletionQueue {
    /// Adds a completion, and its source.
    #[inline(always)]
    pub fn push(&self, entry: CqEntry, source: u64) {
        {
            let mut queue = self.queue.lock();
            if queue.reader.count > 0 {
                queue.hand_over(entry, source, self.entry_bytes);
            } else {
                queue.entries.push(entry, source);
            }
        }
        if self.waiting.is_possible() {
            self.waiting.wake_sleeper();
        }
    }

    /// Adds a failed operation.
    pub fn push_error(&self, error: CqErrEntry) {
        {
            let mut queue = self.queue.lock();
            let place = queue.taken + queue.entries.len() as u64;
            queue.errors.push_back((place, error));
            // What comes now is behind the error.
            queue.reader.count = 0;
        }
        self.waiting.wake_sleeper();
    }

    /// An endpoint keeps messages back that count as sent.
    pub fn owe(&self) {
        self.queue.lock().owes = true;
    }

    #[cold]
    fn let_go(&self) {
        self.endpoints.lock().iter().for_each(|ep| ep.let_go());
    }

    /// Whether there is room for the completion of another post.
    #[inline(always)]
    pub fn has_room(&self) -> bool {
        let queue = self.queue.lock();
        queue.entries.len() < queue.size
    }

    /// Adds an endpoint that completes here; reading the queue drives it.
    pub fn add(&self, ep: Listed<ActiveEndpoint>) {
        let mut endpoints = self.endpoints.lock();
        if !endpoints.contains(&ep) {
            endpoints.push(ep);
        }
    }

    /// Forgets an endpoint that is being closed.
    pub fn remove(&self, ep: &ActiveEndpoint) {
        self.endpoints.lock().retain(|other| !other.is(ep));
    }

    /// The object that sleepers wait for.
    pub fn waiting(&self) -> &Waiting {
        &self.waiting
    }

    /// So many endpoints of the job are on this host, as far as an endpoint of this object knows.
    pub fn share_host(&self, endpoints: usize) {
        self.empty_polls.share_host(endpoints);
    }

    fn progress(&self) {
        for ep in self.endpoints.lock().iter() {
            ep.progress();
        }
    }

    /// Whether an entry can be read.
    pub fn is_ready(&self) -> bool {
        self.progress();
        !self.queue.lock().is_empty()
    }

    /// Whether the program may sleep: nothing can be read, and wake-ups are armed.
    pub fn may_sleep(&self) -> bool {
        self.progress();
        self.waiting.may_fall_asleep();
        self.queue.lock().is_empty() && self.endpoints.lock().iter().all(|ep| ep.arm())
    }

    /// Gives out entries. Makes progress if there are none, or if none are wanted.
    #[inline(always)]
    fn take(&self, places: Places) -> Result<usize> {
        if places.entries.pointer().is_null() && places.count > 0 {
            return Err(error::EINVAL);
        }
        let mut queue = self.queue.lock();
        if queue.owes {
            queue.owes = false;
            drop(queue);
            self.let_go();
            queue = self.queue.lock();
        }
        if queue.is_empty() || places.count == 0 {
            // Of several threads, only one gets entries straight from progress.
            let reads = !queue.is_read;
            if reads {
                (queue.reader, queue.is_read) = (places, true);
            }
            drop(queue);
            self.progress();
            queue = self.queue.lock();
            if reads {
                (queue.reader.count, queue.is_read) = (0, false);
                let handed = std::mem::take(&mut queue.handed);
                if handed > 0 {
                    self.empty_polls.found();
                    return Ok(handed);
                }
            }
            if queue.is_empty() || places.count == 0 {
                // Progress may yield the processor, so release the lock.
                drop(queue);
                self.empty_polls.nothing();
                return Err(error::EAGAIN);
            }
        }
        self.empty_polls.found();
        queue.give(places, self.entry_bytes)
    }

    fn wait(&self, places: Places, timeout_ms: c_int) -> Result<usize> {
        let timeout = Timeout::new(timeout_ms);
        loop {
            let taken = self.take(places);
            if taken != Err(error::EAGAIN) {
                return taken;
            }
            // Acquire pairs with the release of `signal`.
            if self.signalled.swap(false, Ordering::Acquire) || timeout.is_over() {
                return taken;
            }
            match self.waiting.fd() {
                Some(fd) if timeout.sleeps() && self.may_sleep() => {
                    if !self.signalled.load(Ordering::Acquire) {
                        timeout.sleep(fd);
                    }
                }
                Some(_) => {}
                None => std::thread::yield_now(),
            }
        }
    }
}

/// The program's places for `count` entries and for their sources, which it may not want.
#[derive(Clone, Copy)]
struct Places {
    entries: Buffer,
    count: usize,
    sources: Array<u64>,
}

// SAFETY: addresses; `give` and `hand_over` say when they are followed.
unsafe impl Send for Places {}

impl Places {
    const NONE: Places = Places { entries: Buffer::NULL, count: 0, sources: Array::NULL };
}

impl Queue {
    /// Gives an entry straight to the call that makes progress. It must have a free place.
    #[inline(always)]
    fn hand_over(&mut self, entry: CqEntry, source: u64, entry_bytes: usize) {
        let into = self.reader.entries.pointer().cast::<u64>();
        // SAFETY: the call has not returned, because it removes `reader` before. `entries` has room
        // for `count` more entries of the format: fi_cq(3).
        unsafe {
            let place = into.byte_add(self.handed * entry_bytes);
            write_entry(place, entry.words(), entry_bytes);
        }
        // SAFETY: likewise; `sources` is null, or has room for as many.
        unsafe { self.reader.sources.write(self.handed, source) };
        self.handed += 1;
        self.reader.count -= 1;
        self.taken += 1;
    }

    /// Gives out entries, or reports that an error comes first.
    #[inline(always)]
    fn give(&mut self, places: Places, entry_bytes: usize) -> Result<usize> {
        let mut count = places.count;
        if !self.errors.is_empty() {
            let before = (self.errors[0].0 - self.taken) as usize;
            if before == 0 {
                return Err(error::EAVAIL);
            }
            count = count.min(before);
        }
        let count = count.min(self.entries.len());
        let mut into = places.entries.pointer().cast::<u64>();
        let mut taken = 0;
        while taken < count {
            let (entry, source) = self.entries.first();
            // SAFETY: `entries` has room for `count` entries of the format: fi_cq(3).
            into = unsafe {
                write_entry(into, entry.read_words(), entry_bytes);
                into.byte_add(entry_bytes)
            };
            // SAFETY: `sources` is null, or has room for `count` of them: fi_cq(3).
            unsafe { places.sources.write(taken, *source) };
            self.entries.pass();
            taken += 1;
        }
        self.taken += count as u64;
        Ok(count)
    }

    fn is_empty(&self) -> bool {
        self.entries.len() == 0 && self.errors.is_empty()
    }
}

impl Close for CompletionQueue {
    fn close(&self) {
        self.waiting.leave(Handle::of(self));
    }
}

calls! {
    cq: &CompletionQueue;

    fn control(command: c_int, argument: Buffer) -> c_int {
        cq.waiting.control(command, argument)
    }

    fn read(entries: Buffer, count: usize) -> isize {
        cq.take(Places { entries, count, sources: Array::NULL })
    }

    fn readfrom(entries: Buffer, count: usize, sources: Array<u64>) -> isize {
        cq.take(Places { entries, count, sources })
    }

    /// Newer versions have a longer entry; its extra fields matter only with capabilities that we
    /// do not have.
    fn readerr(into: Option<&mut MaybeUninit<CqErrEntry>>, _flags: u64) -> isize {
        let into = into.ok_or(error::EINVAL)?;
        into.write(cq.queue.lock().errors.pop_front().ok_or(error::EAGAIN)?.1);
        Ok(1_usize)
    }

    fn sread(entries: Buffer, count: usize, _condition: *const c_void, timeout_ms: c_int) -> isize {
        cq.wait(Places { entries, count, sources: Array::NULL }, timeout_ms)
    }

    fn sreadfrom(
        entries: Buffer, count: usize, sources: Array<u64>,
        _condition: *const c_void, timeout_ms: c_int
    ) -> isize {
        cq.wait(Places { entries, count, sources }, timeout_ms)
    }

    fn signal() -> c_int {
        // Release pairs with the acquire of `wait`.
        cq.signalled.store(true, Ordering::Release);
        cq.waiting.wake();
        Ok(())
    }
}
