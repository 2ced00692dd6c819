//! Counters of completions.

use crate::abi::{CntrAttr, Fid, FidCntr, Ops, calls, class, enosys, error, ops};
use crate::domain::Domain;
use crate::ep::ActiveEndpoint;
use crate::lock::Lock;
use crate::object::{self, CLOSED_CNTR, Close, Handle, Opened, close, object};
use crate::pointer::{Buffer, Out};
use crate::reference::{Listed, Ref};
use crate::wait::{EmptyPolls, Timeout, Waiting};
use bellwire_tagged::MemoryAccess;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// A counter.
#[repr(C)]
pub struct Counter {
    fid: FidCntr,
    domain: Ref<Domain>,
    waiting: Waiting,
    value: AtomicU64,
    errors: AtomicU64,
    /// It counts peers' accesses to a region of memory, at any endpoint of the domain.
    everywhere: AtomicBool,
    endpoints: Lock<Vec<Listed<ActiveEndpoint>>>,
    empty_polls: EmptyPolls,
    /// Endpoints, regions and poll sets that it is bound to.
    users: AtomicUsize,
}

object!(Counter, FidCntr, FID, CLOSED_CNTR, users);

static FID: Ops<6> = ops![close::<Counter>, enosys, control];
/// fi_cntr(3).
static CNTR: Ops<7> = ops![read, readerr, add, set, wait, adderr, seterr];

/// `fi_cntr_open`.
pub extern "C" fn open(
    domain: &Domain,
    attr: Option<&CntrAttr>,
    into: Out<Counter>,
    context: *mut c_void,
) -> c_int {
    object::open(into, || {
        let attr = attr.ok_or(error::EINVAL)?;
        if attr.events != 0 {
            return Err(error::ENOSYS);
        }
        if attr.flags != 0 {
            return Err(error::EBADFLAGS);
        }
        let waiting = Waiting::wanted(&mut { attr.wait_obj }, attr.wait_set)?;
        let cntr = Opened::new(Counter {
            fid: FidCntr { fid: Fid { class: class::CNTR, context, ops: &FID }, ops: &CNTR },
            domain: Ref::to(domain),
            waiting,
            value: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            everywhere: AtomicBool::new(false),
            endpoints: Lock::new(domain.shared, Vec::new()),
            empty_polls: EmptyPolls::default(),
            users: AtomicUsize::new(0),
        });
        cntr.waiting.join(Handle::of(&*cntr));
        Ok(cntr)
    })
}

impl Counter {
    /// Counts a completion.
    // SeqCst, for a thread that may fall asleep. It includes Release, which programs' own additions
    // use too: that pairs with the acquire of `read`, so a thread that sees the count sees the
    // counted operation.
    #[inline]
    pub fn count(&self, good: bool) {
        let count = if good { &self.value } else { &self.errors };
        count.fetch_add(1, Ordering::SeqCst);
        if self.waiting.is_possible() {
            self.waiting.wake_sleeper();
        }
    }

    /// Counts a peer's access to memory, by the counters of writes and of reads.
    // A fetching atomic is a read: fi_cntr(3). Programs rely on it as a write, too (OpenSHMEM waits
    // for one by a counter of FI_REMOTE_WRITE), and other providers count it as such.
    pub fn count_access(access: MemoryAccess, writes: Option<&Counter>, reads: Option<&Counter>) {
        let writes = writes.filter(|_| access != MemoryAccess::Read);
        let reads = reads.filter(|_| access != MemoryAccess::Written);
        let is_other = |reads: &&Counter| writes.is_none_or(|one| !std::ptr::eq(one, *reads));
        // One access counts once, also with one counter for both.
        writes.into_iter().chain(reads.filter(is_other)).for_each(|cntr| cntr.count(true));
    }

    /// Adds an endpoint that it counts for; reading the counter drives it.
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
        let before = self.sum();
        self.all(|ep| {
            ep.progress();
            true
        });
        match self.sum() == before {
            true => self.empty_polls.nothing(),
            false => self.empty_polls.found(),
        }
    }

    /// Its total, successes and errors.
    pub fn total(&self) -> u64 {
        self.progress();
        self.sum()
    }

    fn sum(&self) -> u64 {
        self.value.load(Ordering::SeqCst).wrapping_add(self.errors.load(Ordering::SeqCst))
    }

    /// Whether the program may sleep: nothing is pending, and wake-ups are armed.
    pub fn may_sleep(&self) -> bool {
        self.waiting.may_fall_asleep();
        let before = self.sum();
        self.progress();
        self.sum() == before && self.all(ActiveEndpoint::arm)
    }

    /// Counts accesses to a region of memory: from now on all endpoints of the domain drive it.
    pub fn count_everywhere(&self) {
        self.everywhere.store(true, Ordering::Relaxed);
    }

    /// Whether `what` holds for all endpoints that it counts for.
    fn all(&self, what: impl Fn(&ActiveEndpoint) -> bool) -> bool {
        let mut holds = self.endpoints.lock().iter().all(|ep| what(ep));
        if self.everywhere.load(Ordering::Relaxed) {
            holds &= self.domain.exposed.lock().endpoints().iter().all(|ep| what(ep));
        }
        holds
    }

    fn change(&self, how: impl FnOnce(&Self)) -> c_int {
        how(self);
        self.waiting.wake();
        0
    }
}

impl Close for Counter {
    fn close(&self) {
        self.waiting.leave(Handle::of(self));
    }
}

extern "C" fn read(cntr: &Counter) -> u64 {
    cntr.progress();
    cntr.value.load(Ordering::Acquire)
}

extern "C" fn readerr(cntr: &Counter) -> u64 {
    cntr.progress();
    cntr.errors.load(Ordering::Acquire)
}

extern "C" fn add(cntr: &Counter, value: u64) -> c_int {
    cntr.change(|cntr| _ = cntr.value.fetch_add(value, Ordering::Release))
}

extern "C" fn set(cntr: &Counter, value: u64) -> c_int {
    cntr.change(|cntr| cntr.value.store(value, Ordering::Release))
}

extern "C" fn adderr(cntr: &Counter, value: u64) -> c_int {
    cntr.change(|cntr| _ = cntr.errors.fetch_add(value, Ordering::Release))
}

extern "C" fn seterr(cntr: &Counter, value: u64) -> c_int {
    cntr.change(|cntr| cntr.errors.store(value, Ordering::Release))
}

calls! {
    cntr: &Counter;

    fn control(command: c_int, argument: Buffer) -> c_int {
        cntr.waiting.control(command, argument)
    }

    fn wait(threshold: u64, timeout_ms: c_int) -> c_int {
        let errors = cntr.errors.load(Ordering::Acquire);
        let timeout = Timeout::new(timeout_ms);
        loop {
            cntr.progress();
            if cntr.value.load(Ordering::Acquire) >= threshold {
                return Ok(());
            }
            if cntr.errors.load(Ordering::Acquire) != errors {
                return Err(error::EAVAIL);
            }
            if timeout.is_over() {
                return Err(error::ETIMEDOUT);
            }
            match cntr.waiting.fd() {
                Some(fd) if timeout.sleeps() && cntr.may_sleep() => timeout.sleep(fd),
                _ => {}
            }
        }
    }
}
