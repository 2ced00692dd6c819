//! Completion queues.

use crate::abi::{
    CqAttr, CqEntry, CqErrEntry, Fid, FidCq, Ops, class, error, not_offered, ops, value,
};
use crate::domain::Domain;
use crate::entries::Entries;
use crate::ep::Ep;
use crate::lock::Lock;
use crate::object::{CLOSED_CQ, given, object, retire};
use crate::wait::{self, Looks, Patience, WaitObject};
use std::collections::VecDeque;
use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A completion queue.
#[repr(C)]
pub struct Cq {
    fid: FidCq,
    domain: *mut Domain,
    /// Bytes of one entry in the program's format.
    entry_bytes: usize,
    wait_obj: c_int,
    wait: Option<WaitObject>,
    /// A thread may be asleep. A thread that completes an operation wakes it: that of
    /// `progress.rs`, or another one of the program.
    asleep: AtomicBool,
    /// The program called `fi_cq_signal`.
    signalled: AtomicBool,
    queue: Lock<Queue>,
    looks: Looks,
    /// Endpoints that complete here.
    endpoints: Lock<Vec<*mut Ep>>,
    /// Endpoints and poll sets that it is bound to.
    pub users: AtomicUsize,
}

object!(Cq, FidCq, FID, CLOSED_CQ);

struct Queue {
    entries: Entries,
    /// Failed operations, each with the number of entries to take before it is reported.
    errors: VecDeque<(u64, CqErrEntry)>,
    /// Entries taken so far.
    taken: u64,
    size: usize,
}

static FID: Ops<6> = ops![close, not_offered, control, not_offered, not_offered, not_offered];
static CQ: Ops<7> = ops![read, read_from, read_error, wait_one, wait_from, signal, strerror];

/// `fi_cq_open`.
pub unsafe extern "C" fn open(
    domain: *mut Domain,
    attr: *mut CqAttr,
    into: *mut *mut Cq,
    context: *mut c_void,
) -> c_int {
    given!(attr, into);
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe {
        let attr = &mut *attr;
        if attr.format == 0 {
            attr.format = value::CQ_CONTEXT;
        }
        let entry_bytes = match attr.format {
            value::CQ_CONTEXT => 8,
            value::CQ_MSG => 24,
            value::CQ_DATA => 40,
            value::CQ_TAGGED => 48,
            _ => return -error::EINVAL,
        };
        let wait = match WaitObject::wanted(&mut attr.wait_obj, attr.wait_set) {
            Ok(wait) => wait,
            Err(error) => return error,
        };
        if attr.size == 0 {
            attr.size = crate::info::DEPTH;
        }
        let shared = (*domain).shared;
        let fid = Fid { class: class::CQ, context, ops: &FID };
        let queue = Queue {
            entries: Entries::new(attr.size.min(1 << 16)),
            errors: VecDeque::new(),
            taken: 0,
            size: attr.size,
        };
        let cq = Cq {
            fid: FidCq { fid, ops: &CQ },
            domain,
            entry_bytes,
            wait_obj: attr.wait_obj,
            wait,
            asleep: AtomicBool::new(false),
            signalled: AtomicBool::new(false),
            queue: Lock::new(shared, queue),
            looks: Looks::default(),
            endpoints: Lock::new(shared, Vec::new()),
            users: AtomicUsize::new(0),
        };
        (*domain).users.fetch_add(1, Ordering::Relaxed);
        let cq = Box::into_raw(Box::new(cq));
        if let Some(wait) = &(*cq).wait {
            wait.join(cq.cast());
        }
        into.write(cq);
    }
    0
}

impl Cq {
    /// Adds a completion, and its source.
    #[inline(always)]
    pub fn push(&self, entry: CqEntry, source: u64) {
        self.queue.hold().entries.push(entry, source);
        if self.wait.is_some() {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        // SeqCst, with the store in `may_sleep`: either the sleeper sees the entry, or we see the
        // sleeper.
        if let (Some(wait), true) = (&self.wait, self.asleep.swap(false, Ordering::SeqCst)) {
            wait.wake();
        }
    }

    /// Adds a failed operation.
    pub fn push_error(&self, error: CqErrEntry) {
        {
            let mut queue = self.queue.hold();
            let place = queue.taken + queue.entries.len() as u64;
            queue.errors.push_back((place, error));
        }
        self.wake();
    }

    /// Whether there is room for the completion of another post.
    #[inline(always)]
    pub fn has_room(&self) -> bool {
        let queue = self.queue.hold();
        queue.entries.len() < queue.size
    }

    /// Adds an endpoint that completes here; reading the queue drives it.
    pub fn add(&self, ep: *mut Ep) {
        let mut endpoints = self.endpoints.hold();
        if !endpoints.contains(&ep) {
            endpoints.push(ep);
        }
    }

    /// Forgets an endpoint that is being closed.
    pub fn remove(&self, ep: *mut Ep) {
        self.endpoints.hold().retain(|&other| other != ep);
    }

    /// The object that sleepers wait for.
    pub fn wait_object(&self) -> Option<&WaitObject> {
        self.wait.as_ref()
    }

    fn progress(&self) {
        for &ep in self.endpoints.hold().iter() {
            // SAFETY: endpoints leave before they are closed.
            unsafe { (*ep).progress() };
        }
    }

    /// Whether an entry can be read.
    pub fn is_ready(&self) -> bool {
        self.progress();
        !self.queue.hold().is_empty()
    }

    /// Whether the program may sleep: nothing can be read, and wake-ups are armed.
    pub fn may_sleep(&self) -> bool {
        self.progress();
        if let Some(wait) = &self.wait {
            wait.settle();
        }
        self.asleep.store(true, Ordering::SeqCst);
        if !self.queue.hold().is_empty() {
            return false;
        }
        // SAFETY: as in `progress`.
        self.endpoints.hold().iter().all(|&ep| unsafe { (*ep).arm() })
    }

    /// Gives out entries. Makes progress if there are none, or if none are wanted.
    #[inline]
    unsafe fn take(&self, into: *mut c_void, count: usize, sources: *mut u64) -> isize {
        if into.is_null() && count > 0 {
            return -(error::EINVAL as isize);
        }
        let mut queue = self.queue.hold();
        if queue.is_empty() || count == 0 {
            drop(queue);
            self.progress();
            queue = self.queue.hold();
            if queue.is_empty() || count == 0 {
                // Progress may yield the processor, so release the lock.
                drop(queue);
                self.looks.nothing();
                return -(error::EAGAIN as isize);
            }
        }
        self.looks.found();
        // SAFETY: the caller's promise.
        unsafe { queue.give(into.cast(), count, self.entry_bytes, sources) }
    }
}

impl Queue {
    /// Gives out at most `count` entries, or reports that an error comes first.
    ///
    /// # Safety
    /// `into` has room for `count` entries of `entry_bytes` bytes. `sources` has room for as many
    /// words, or is null.
    #[inline(always)]
    unsafe fn give(
        &mut self,
        mut into: *mut u64,
        mut count: usize,
        entry_bytes: usize,
        sources: *mut u64,
    ) -> isize {
        if !self.errors.is_empty() {
            let before = (self.errors[0].0 - self.taken) as usize;
            if before == 0 {
                return -(error::EAVAIL as isize);
            }
            count = count.min(before);
        }
        let count = count.min(self.entries.len());
        for taken in 0..count {
            let (entry, source) = self.entries.first();
            // SAFETY: the caller's promise.
            unsafe {
                entry.copy_to(into, entry_bytes);
                into = into.byte_add(entry_bytes);
                if !sources.is_null() {
                    sources.add(taken).write(*source);
                }
            }
            self.entries.pass();
        }
        self.taken += count as u64;
        count as isize
    }
}

impl Queue {
    fn is_empty(&self) -> bool {
        self.entries.len() == 0 && self.errors.is_empty()
    }
}

unsafe extern "C" fn close(cq: *mut Cq) -> c_int {
    // SAFETY: made by `open`, and open, and so is its domain.
    unsafe {
        if (*cq).users.load(Ordering::Relaxed) > 0 {
            return -error::EBUSY;
        }
        (*(*cq).domain).users.fetch_sub(1, Ordering::Relaxed);
        if let Some(wait) = &(*cq).wait {
            wait.leave(cq.cast());
        }
        retire(cq);
    }
    0
}

unsafe extern "C" fn control(cq: *mut Cq, command: c_int, argument: *mut c_void) -> c_int {
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe { wait::control((*cq).wait.as_ref(), (*cq).wait_obj, command, argument) }
}

unsafe extern "C" fn read(cq: *mut Cq, into: *mut c_void, count: usize) -> isize {
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe { (*cq).take(into, count, null_mut()) }
}

unsafe extern "C" fn read_from(
    cq: *mut Cq,
    into: *mut c_void,
    count: usize,
    sources: *mut u64,
) -> isize {
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe { (*cq).take(into, count, sources) }
}

unsafe extern "C" fn read_error(cq: *mut Cq, into: *mut CqErrEntry, _flags: u64) -> isize {
    given!(into);
    // SAFETY: the interface's contract for pointers, see `lib.rs`. Newer versions have a longer
    // entry; its extra fields matter only with capabilities that we do not have.
    unsafe {
        let Some((_, error)) = (*cq).queue.hold().errors.pop_front() else {
            return -(error::EAGAIN as isize);
        };
        into.write(error);
    }
    1
}

unsafe extern "C" fn wait_one(
    cq: *mut Cq,
    into: *mut c_void,
    count: usize,
    condition: *const c_void,
    timeout_ms: c_int,
) -> isize {
    // SAFETY: as below.
    unsafe { wait_from(cq, into, count, null_mut(), condition, timeout_ms) }
}

unsafe extern "C" fn wait_from(
    cq: *mut Cq,
    into: *mut c_void,
    count: usize,
    sources: *mut u64,
    _condition: *const c_void,
    timeout_ms: c_int,
) -> isize {
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe {
        let cq = &*cq;
        let patience = Patience::new(timeout_ms);
        loop {
            let taken = cq.take(into, count, sources);
            if taken != -(error::EAGAIN as isize) {
                return taken;
            }
            // Acquire pairs with the release of `signal`.
            if cq.signalled.swap(false, Ordering::Acquire) || patience.is_over() {
                return taken;
            }
            match &cq.wait {
                Some(wait) if patience.sleeps() && cq.may_sleep() => {
                    if !cq.signalled.load(Ordering::Acquire) {
                        patience.sleep(wait.fd());
                    }
                }
                Some(_) => {}
                None => std::thread::yield_now(),
            }
        }
    }
}

unsafe extern "C" fn signal(cq: *mut Cq) -> c_int {
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    let cq = unsafe { &*cq };
    // Release pairs with the acquire of `wait_from`.
    cq.signalled.store(true, Ordering::Release);
    if let Some(wait) = &cq.wait {
        wait.wake();
    }
    0
}

unsafe extern "C" fn strerror(
    _cq: *mut Cq,
    number: c_int,
    _data: *const c_void,
    into: *mut c_char,
    length: usize,
) -> *const c_char {
    // SAFETY: the program's buffer with the stated length, or null.
    unsafe { crate::ep::strerror(number, into, length) }
}
