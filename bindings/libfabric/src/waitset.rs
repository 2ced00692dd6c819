//! Wait sets: one object to sleep on for several queues and counters.

use crate::abi::{Fid, FidWait, Ops, WaitAttr, calls, class, enosys, error, ops};
use crate::fabric::Fabric;
use crate::object::{self, CLOSED_WAIT, Close, Handle, Opened, close, object};
use crate::pointer::{Buffer, Out};
use crate::reference::Ref;
use crate::wait::{Timeout, Waitable, Waiting};
use std::ffi::c_int;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::null_mut;
use std::sync::atomic::AtomicUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A wait set.
#[repr(C)]
pub struct WaitSet {
    fid: FidWait,
    /// All of its queues wake this.
    waiting: Waiting,
    /// They leave before they are closed.
    queues: Mutex<Vec<Handle>>,
    _fabric: Ref<Fabric>,
    /// Queues that belong to it.
    users: AtomicUsize,
}

object!(WaitSet, FidWait, FID, CLOSED_WAIT, users);
impl Close for WaitSet {}

static FID: Ops<6> = ops![close::<WaitSet>, enosys, control];
/// fi_poll(3).
static WAIT: Ops<1> = ops![wait];

/// `fi_wait_open`.
pub extern "C" fn open(fabric: &Fabric, attr: Option<&WaitAttr>, into: Out<WaitSet>) -> c_int {
    object::open(into, || {
        let attr = attr.ok_or(error::EINVAL)?;
        if attr.flags != 0 {
            return Err(error::EBADFLAGS);
        }
        // A wait set belongs to no other one.
        let waiting = Waiting::wanted(&mut { attr.wait_obj }, Handle::NULL)?;
        if !waiting.is_possible() {
            return Err(error::EINVAL);
        }
        let fid = Fid { class: class::WAIT, context: null_mut(), ops: &FID };
        Ok(Opened::new(WaitSet {
            fid: FidWait { fid, ops: &WAIT },
            waiting,
            queues: Mutex::default(),
            _fabric: Ref::to(fabric),
            users: AtomicUsize::new(0),
        }))
    })
}

impl WaitSet {
    /// Adds a queue with descriptor `fd`.
    pub fn add(&self, queue: Handle, fd: BorrowedFd<'_>) {
        self.queues().push(queue);
        self.waiting.add(fd.as_raw_fd());
    }

    /// Removes a queue.
    pub fn remove(&self, queue: Handle, fd: BorrowedFd<'_>) {
        self.queues().retain(|&other| other != queue);
        self.waiting.remove(fd.as_raw_fd());
    }

    fn queues(&self) -> MutexGuard<'_, Vec<Handle>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the program may sleep: all queues are empty, and wake-ups are armed.
    fn may_sleep(&self) -> bool {
        let sleeps = |&queue| Waitable::of(queue).is_none_or(|queue| queue.may_sleep());
        self.queues().iter().all(sleeps)
    }
}

calls! {
    set: &WaitSet;

    fn control(command: c_int, argument: Buffer) -> c_int {
        set.waiting.control(command, argument)
    }

    fn wait(timeout_ms: c_int) -> c_int {
        let timeout = Timeout::new(timeout_ms);
        while set.may_sleep() {
            if timeout.is_over() {
                return Err(error::ETIMEDOUT);
            }
            if let Some(fd) = set.waiting.fd().filter(|_| timeout.sleeps()) {
                timeout.sleep(fd);
            }
        }
        Ok(())
    }
}
