//! Wait sets: one object to sleep on for several queues and counters.

use crate::abi::{Fid, FidWait, Ops, WaitAttr, class, enosys, error, ops};
use crate::errno::{Result, answer};
use crate::fabric::Fabric;
use crate::object::{self, CLOSED_WAIT, Close, Handle, Opened, close, object};
use crate::pointer::{Buffer, Out};
use crate::reference::Ref;
use crate::wait::{self, Timeout, WaitObject, Waitable};
use std::ffi::c_int;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::null_mut;
use std::sync::atomic::AtomicUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A wait set.
#[repr(C)]
pub struct WaitSet {
    fid: FidWait,
    wait_obj: c_int,
    /// All of its queues wake this.
    wait: WaitObject,
    /// They leave before they are closed.
    queues: Mutex<Vec<Handle>>,
    _fabric: Ref<Fabric>,
    /// Queues that belong to it.
    users: AtomicUsize,
}

object!(WaitSet, FidWait, FID, CLOSED_WAIT, users);
impl Close for WaitSet {}

static FID: Ops<6> = ops![close::<WaitSet>, enosys, control, enosys, enosys, enosys];
/// fi_poll(3).
static WAIT: Ops<1> = ops![wait_for];

/// `fi_wait_open`.
pub extern "C" fn open(fabric: &Fabric, attr: Option<&WaitAttr>, into: Out<WaitSet>) -> c_int {
    object::open(into, || WaitSet::open(fabric, attr.ok_or(error::EINVAL)?))
}

impl WaitSet {
    fn open(fabric: &Fabric, attr: &WaitAttr) -> Result<Opened<WaitSet>> {
        if attr.flags != 0 {
            return Err(error::EBADFLAGS);
        }
        let mut wait_obj = attr.wait_obj;
        // A wait set belongs to no other one.
        let wait = WaitObject::wanted(&mut wait_obj, Handle::NULL)?.ok_or(error::EINVAL)?;
        let fid = Fid { class: class::WAIT, context: null_mut(), ops: &FID };
        Ok(Opened::new(WaitSet {
            fid: FidWait { fid, ops: &WAIT },
            wait_obj,
            wait,
            queues: Mutex::default(),
            _fabric: Ref::to(fabric),
            users: AtomicUsize::new(0),
        }))
    }

    /// Adds a queue with descriptor `fd`.
    pub fn add(&self, queue: Handle, fd: BorrowedFd<'_>) {
        self.queues().push(queue);
        self.wait.add(fd.as_raw_fd());
    }

    /// Removes a queue.
    pub fn remove(&self, queue: Handle, fd: BorrowedFd<'_>) {
        self.queues().retain(|&other| other != queue);
        self.wait.remove(fd.as_raw_fd());
    }

    fn queues(&self) -> MutexGuard<'_, Vec<Handle>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the program may sleep: all queues are empty, and wake-ups are armed.
    fn may_sleep(&self) -> bool {
        let sleeps = |&queue| Waitable::of(queue).is_none_or(|queue| queue.may_sleep());
        self.queues().iter().all(sleeps)
    }

    fn wait(&self, timeout_ms: c_int) -> Result {
        let timeout = Timeout::new(timeout_ms);
        while self.may_sleep() {
            if timeout.is_over() {
                return Err(error::ETIMEDOUT);
            }
            if timeout.sleeps() {
                timeout.sleep(self.wait.fd());
            }
        }
        Ok(())
    }
}

extern "C" fn control(set: &WaitSet, command: c_int, argument: Buffer) -> c_int {
    answer(wait::control(Some(&set.wait), set.wait_obj, command, argument))
}

extern "C" fn wait_for(set: &WaitSet, timeout_ms: c_int) -> c_int {
    answer(set.wait(timeout_ms))
}
