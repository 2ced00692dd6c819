//! Counters of completions.

use crate::abi::{CntrAttr, Fid, FidCntr, Ops, class, error, not_offered, ops};
use crate::domain::Domain;
use crate::ep::Ep;
use crate::lock::Lock;
use crate::object::{CLOSED_CNTR, given, object, retire};
use crate::wait::{self, Looks, Patience, WaitObject};
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// A counter.
#[repr(C)]
pub struct Cntr {
    fid: FidCntr,
    domain: *mut Domain,
    wait_obj: c_int,
    wait: Option<WaitObject>,
    /// A thread may be asleep.
    asleep: AtomicBool,
    value: AtomicU64,
    errors: AtomicU64,
    /// It counts peers' accesses to a region of memory, at any endpoint of the domain.
    everywhere: AtomicBool,
    endpoints: Lock<Vec<*mut Ep>>,
    looks: Looks,
    /// Endpoints, regions and poll sets that it is bound to.
    pub users: AtomicUsize,
}

object!(Cntr, FidCntr, FID, CLOSED_CNTR);

static FID: Ops<6> = ops![close, not_offered, control, not_offered, not_offered, not_offered];
static CNTR: Ops<7> = ops![read, read_errors, add, set, wait_for, add_errors, set_errors];

/// `fi_cntr_open`.
pub unsafe extern "C" fn open(
    domain: *mut Domain,
    attr: *mut CntrAttr,
    into: *mut *mut Cntr,
    context: *mut c_void,
) -> c_int {
    given!(attr, into);
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe {
        let attr = &*attr;
        if attr.events != 0 {
            return -error::ENOSYS;
        }
        if attr.flags != 0 {
            return -error::EBADFLAGS;
        }
        let mut wait_obj = attr.wait_obj;
        let wait = match WaitObject::wanted(&mut wait_obj, attr.wait_set) {
            Ok(wait) => wait,
            Err(error) => return error,
        };
        let shared = (*domain).shared;
        let fid = Fid { class: class::CNTR, context, ops: &FID };
        let cntr = Cntr {
            fid: FidCntr { fid, ops: &CNTR },
            domain,
            wait_obj,
            wait,
            asleep: AtomicBool::new(false),
            value: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            everywhere: AtomicBool::new(false),
            endpoints: Lock::new(shared, Vec::new()),
            looks: Looks::default(),
            users: AtomicUsize::new(0),
        };
        (*domain).users.fetch_add(1, Ordering::Relaxed);
        let cntr = Box::into_raw(Box::new(cntr));
        if let Some(wait) = &(*cntr).wait {
            wait.join(cntr.cast());
        }
        into.write(cntr);
    }
    0
}

impl Cntr {
    /// Counts a completion.
    // SeqCst includes Release, which programs' own additions use too. It pairs with the acquire of
    // `read`: a thread that sees the count sees the counted operation.
    #[inline]
    pub fn count(&self, good: bool) {
        let count = if good { &self.value } else { &self.errors };
        count.fetch_add(1, Ordering::SeqCst);
        // SeqCst, with the store in `may_sleep`: either the sleeper sees the count, or we see the
        // sleeper.
        if let Some(wait) = self.wait.as_ref()
            && self.asleep.swap(false, Ordering::SeqCst)
        {
            wait.wake();
        }
    }

    /// Adds an endpoint that it counts for; reading the counter drives it.
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
        let before = self.sum();
        self.all(|ep| {
            ep.progress();
            true
        });
        match self.sum() == before {
            true => self.looks.nothing(),
            false => self.looks.found(),
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
        if let Some(wait) = &self.wait {
            wait.settle();
        }
        self.asleep.store(true, Ordering::SeqCst);
        let before = self.sum();
        self.progress();
        self.sum() == before && self.all(Ep::arm)
    }

    /// Counts accesses to a region of memory: from now on all endpoints of the domain drive it.
    pub fn count_everywhere(&self) {
        self.everywhere.store(true, Ordering::Relaxed);
    }

    /// Whether `what` holds for all endpoints that it counts for.
    fn all(&self, what: impl Fn(&Ep) -> bool) -> bool {
        // SAFETY: endpoints leave both lists before they are closed.
        let mut holds = self.endpoints.hold().iter().all(|&ep| what(unsafe { &*ep }));
        if self.everywhere.load(Ordering::Relaxed) {
            // SAFETY: the domain is closed after the counter.
            let exposed = unsafe { &(*self.domain).exposed }.hold();
            // SAFETY: as above.
            holds &= exposed.endpoints().iter().all(|&ep| what(unsafe { &*ep }));
        }
        holds
    }

    fn change(&self, how: impl FnOnce(&Self)) -> c_int {
        how(self);
        if let Some(wait) = &self.wait {
            wait.wake();
        }
        0
    }
}

unsafe extern "C" fn close(cntr: *mut Cntr) -> c_int {
    // SAFETY: made by `open`, and open, and so is its domain.
    unsafe {
        if (*cntr).users.load(Ordering::Relaxed) > 0 {
            return -error::EBUSY;
        }
        (*(*cntr).domain).users.fetch_sub(1, Ordering::Relaxed);
        if let Some(wait) = &(*cntr).wait {
            wait.leave(cntr.cast());
        }
        retire(cntr);
    }
    0
}

unsafe extern "C" fn control(cntr: *mut Cntr, command: c_int, argument: *mut c_void) -> c_int {
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe { wait::control((*cntr).wait.as_ref(), (*cntr).wait_obj, command, argument) }
}

unsafe extern "C" fn read(cntr: *mut Cntr) -> u64 {
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe {
        (*cntr).progress();
        (*cntr).value.load(Ordering::Acquire)
    }
}

unsafe extern "C" fn read_errors(cntr: *mut Cntr) -> u64 {
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe {
        (*cntr).progress();
        (*cntr).errors.load(Ordering::Acquire)
    }
}

unsafe extern "C" fn add(cntr: *mut Cntr, value: u64) -> c_int {
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe { (*cntr).change(|cntr| _ = cntr.value.fetch_add(value, Ordering::Release)) }
}

unsafe extern "C" fn set(cntr: *mut Cntr, value: u64) -> c_int {
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe { (*cntr).change(|cntr| cntr.value.store(value, Ordering::Release)) }
}

unsafe extern "C" fn add_errors(cntr: *mut Cntr, value: u64) -> c_int {
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe { (*cntr).change(|cntr| _ = cntr.errors.fetch_add(value, Ordering::Release)) }
}

unsafe extern "C" fn set_errors(cntr: *mut Cntr, value: u64) -> c_int {
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe { (*cntr).change(|cntr| cntr.errors.store(value, Ordering::Release)) }
}

unsafe extern "C" fn wait_for(cntr: *mut Cntr, threshold: u64, timeout_ms: c_int) -> c_int {
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    let cntr = unsafe { &*cntr };
    let errors = cntr.errors.load(Ordering::Acquire);
    let patience = Patience::new(timeout_ms);
    loop {
        cntr.progress();
        if cntr.value.load(Ordering::Acquire) >= threshold {
            return 0;
        }
        if cntr.errors.load(Ordering::Acquire) != errors {
            return -error::EAVAIL;
        }
        if patience.is_over() {
            return -error::ETIMEDOUT;
        }
        match &cntr.wait {
            Some(wait) if patience.sleeps() && cntr.may_sleep() => patience.sleep(wait.fd()),
            _ => {}
        }
    }
}
