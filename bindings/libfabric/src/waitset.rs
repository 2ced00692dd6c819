//! Wait sets: one object to sleep on for several queues and counters.

use crate::abi::{Fid, FidWait, Ops, WaitAttr, class, error, not_offered, ops};
use crate::fabric::Fabric;
use crate::object::{CLOSED_WAIT, given, object, retire};
use crate::wait::{self, Patience, WaitObject};
use std::ffi::{c_int, c_void};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::null_mut;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A wait set.
#[repr(C)]
pub struct WaitSet {
    fid: FidWait,
    wait_obj: c_int,
    /// All of its queues wake this.
    wait: WaitObject,
    queues: Mutex<Vec<*mut Fid>>,
    fabric: *mut Fabric,
}

object!(WaitSet, FidWait, FID, CLOSED_WAIT);

static FID: Ops<6> = ops![close, not_offered, control, not_offered, not_offered, not_offered];
static WAIT: Ops<1> = ops![wait_for];

/// `fi_wait_open`.
pub unsafe extern "C" fn open(
    fabric: *mut Fabric,
    attr: *const WaitAttr,
    into: *mut *mut WaitSet,
) -> c_int {
    given!(attr, into);
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe {
        let WaitAttr { mut wait_obj, flags } = *attr;
        if flags != 0 {
            return -error::EBADFLAGS;
        }
        let wait = match WaitObject::wanted(&mut wait_obj, null_mut()) {
            Ok(Some(wait)) => wait,
            Ok(None) => return -error::EINVAL,
            Err(error) => return error,
        };
        let fid = Fid { class: class::WAIT, context: null_mut(), ops: &FID };
        let fid = FidWait { fid, ops: &WAIT };
        (*fabric).users.fetch_add(1, Ordering::Relaxed);
        let set = WaitSet { fid, wait_obj, wait, queues: Mutex::default(), fabric };
        into.write(Box::into_raw(Box::new(set)));
    }
    0
}

impl WaitSet {
    /// Adds a queue with descriptor `fd`.
    pub fn add(&self, queue: *mut Fid, fd: BorrowedFd<'_>) {
        self.queues().push(queue);
        self.wait.add(fd.as_raw_fd());
    }

    /// Removes a queue.
    pub fn remove(&self, queue: *mut Fid, fd: BorrowedFd<'_>) {
        self.queues().retain(|&other| other != queue);
        self.wait.remove(fd.as_raw_fd());
    }

    fn queues(&self) -> MutexGuard<'_, Vec<*mut Fid>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the program may sleep: all queues are empty, and wake-ups are armed.
    fn may_sleep(&self) -> bool {
        // SAFETY: queues leave before they are closed.
        self.queues().iter().all(|&queue| unsafe { wait::may_sleep(queue) }.unwrap_or(true))
    }
}

unsafe extern "C" fn close(set: *mut WaitSet) -> c_int {
    // SAFETY: made by `open`, and open, and so is its fabric.
    unsafe {
        if !(*set).queues().is_empty() {
            return -error::EBUSY;
        }
        (*(*set).fabric).users.fetch_sub(1, Ordering::Relaxed);
        retire(set);
    }
    0
}

unsafe extern "C" fn control(set: *mut WaitSet, command: c_int, argument: *mut c_void) -> c_int {
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe { wait::control(Some(&(*set).wait), (*set).wait_obj, command, argument) }
}

unsafe extern "C" fn wait_for(set: *mut WaitSet, timeout_ms: c_int) -> c_int {
    let patience = Patience::new(timeout_ms);
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    let set = unsafe { &*set };
    while set.may_sleep() {
        if patience.is_over() {
            return -error::ETIMEDOUT;
        }
        if patience.sleeps() {
            patience.sleep(set.wait.fd());
        }
    }
    0
}
