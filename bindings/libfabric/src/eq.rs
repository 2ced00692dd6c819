//! Event queues: what happened to objects, which is little, because endpoints here need no connections.

use crate::abi::{
    EqAttr, EqEntry, EqErrEntry, Fid, FidEq, Ops, class, error, not_offered, ops, value,
};
use crate::fabric::Fabric;
use crate::wait::{Patience, WaitSet};
use std::collections::VecDeque;
use std::ffi::{c_char, c_int, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An event queue.
#[repr(C)]
pub struct Eq {
    fid: FidEq,
    wait: Option<WaitSet>,
    events: Mutex<VecDeque<(u32, Vec<u8>)>>,
}

/// The program may write events of its own.
const WRITE: u64 = crate::abi::flag::WRITE;
const PEEK: u64 = crate::abi::flag::PEEK;

static FID: Ops<6> = ops![close, not_offered, control, not_offered, not_offered, not_offered];
static EQ: Ops<5> = ops![read, read_error, write, wait, strerror];

/// `fi_eq_open`.
pub unsafe extern "C" fn open(
    _fabric: *mut Fabric,
    attr: *mut EqAttr,
    into: *mut *mut Eq,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the interface's pointers.
    unsafe {
        let attr = &mut *attr;
        let wait = match attr.wait_obj {
            value::WAIT_NONE | value::WAIT_YIELD => None,
            value::WAIT_UNSPEC | value::WAIT_FD => match WaitSet::new() {
                Some(wait) => Some(wait),
                None => return -libc::EMFILE,
            },
            _ => return -error::ENOSYS,
        };
        if attr.flags & !WRITE != 0 {
            return -error::EBADFLAGS;
        }
        let fid = Fid { class: class::EQ, context, ops: &FID };
        let eq = Eq { fid: FidEq { fid, ops: &EQ }, wait, events: Mutex::default() };
        into.write(Box::into_raw(Box::new(eq)));
    }
    0
}

impl Eq {
    /// Puts an event in.
    pub fn tell(&self, event: u32, entry: EqEntry) {
        let bytes = (&raw const entry).cast::<u8>();
        // SAFETY: a structure without padding, as bytes.
        let bytes = unsafe { std::slice::from_raw_parts(bytes, size_of::<EqEntry>()) };
        self.put(event, bytes.to_vec());
    }

    fn put(&self, event: u32, bytes: Vec<u8>) {
        self.events().push_back((event, bytes));
        if let Some(wait) = &self.wait {
            wait.wake();
        }
    }

    fn events(&self) -> MutexGuard<'_, VecDeque<(u32, Vec<u8>)>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether nothing is here.
    pub fn may_sleep(&self) -> bool {
        let events = self.events();
        if let Some(wait) = &self.wait {
            wait.settle();
        }
        events.is_empty()
    }

    unsafe fn take(&self, event: *mut u32, into: *mut c_void, length: usize, flags: u64) -> isize {
        let mut events = self.events();
        let Some((kind, bytes)) = events.front() else { return -(error::EAGAIN as isize) };
        if bytes.len() > length {
            return -(error::ETOOSMALL as isize);
        }
        let taken = bytes.len();
        // SAFETY: the program's places, of at least so many bytes.
        unsafe {
            event.write(*kind);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), into.cast(), taken);
        }
        if flags & PEEK == 0 {
            events.pop_front();
            if let (true, Some(wait)) = (events.is_empty(), &self.wait) {
                wait.settle();
            }
        }
        taken as isize
    }
}

unsafe extern "C" fn close(eq: *mut Eq) -> c_int {
    // SAFETY: made by `open`, and closed once.
    drop(unsafe { Box::from_raw(eq) });
    0
}

unsafe extern "C" fn control(eq: *mut Eq, command: c_int, argument: *mut c_void) -> c_int {
    use std::os::fd::AsRawFd;
    // SAFETY: the interface's pointers.
    unsafe {
        match (command, &(*eq).wait) {
            (value::CONTROL_GETWAIT, Some(wait)) => {
                argument.cast::<c_int>().write(wait.fd().as_raw_fd());
                0
            }
            (value::CONTROL_GETWAITOBJ, wait) => {
                let kind = if wait.is_some() { value::WAIT_FD } else { value::WAIT_NONE };
                argument.cast::<c_int>().write(kind);
                0
            }
            (value::CONTROL_GETWAIT, None) => -error::ENODATA,
            _ => -error::ENOSYS,
        }
    }
}

unsafe extern "C" fn read(
    eq: *mut Eq,
    event: *mut u32,
    into: *mut c_void,
    length: usize,
    flags: u64,
) -> isize {
    // SAFETY: the interface's pointers.
    unsafe { (*eq).take(event, into, length, flags) }
}

/// Nothing that is told here ever fails.
unsafe extern "C" fn read_error(_eq: *mut Eq, _into: *mut EqErrEntry, _flags: u64) -> isize {
    -(error::EAGAIN as isize)
}

unsafe extern "C" fn write(
    eq: *mut Eq,
    event: u32,
    from: *const c_void,
    length: usize,
    flags: u64,
) -> isize {
    if flags != 0 {
        return -(error::EBADFLAGS as isize);
    }
    // SAFETY: the program's bytes.
    unsafe {
        let bytes = std::slice::from_raw_parts(from.cast::<u8>(), length).to_vec();
        (*eq).put(event, bytes);
    }
    length as isize
}

unsafe extern "C" fn wait(
    eq: *mut Eq,
    event: *mut u32,
    into: *mut c_void,
    length: usize,
    timeout_ms: c_int,
    flags: u64,
) -> isize {
    let patience = Patience::new(timeout_ms);
    loop {
        // SAFETY: the interface's pointers.
        let eq = unsafe { &*eq };
        // SAFETY: as above.
        let taken = unsafe { eq.take(event, into, length, flags) };
        if taken != -(error::EAGAIN as isize) || patience.is_over() {
            return taken;
        }
        match &eq.wait {
            Some(wait) if eq.may_sleep() => patience.sleep(wait.fd()),
            Some(_) => {}
            None => std::thread::yield_now(),
        }
    }
}

unsafe extern "C" fn strerror(
    _eq: *mut Eq,
    number: c_int,
    _data: *const c_void,
    into: *mut c_char,
    length: usize,
) -> *const c_char {
    // SAFETY: the program's buffer, as long as it says, or null.
    unsafe { crate::ep::strerror(number, into, length) }
}
