//! Event queues: what happened to objects, which is little, because endpoints here need no connections.

use crate::abi::{EqAttr, EqEntry, EqErrEntry, Fid, FidEq, Ops, class, error, not_offered, ops};
use crate::fabric::Fabric;
use crate::wait::{self, Patience, WaitObject};
use std::collections::VecDeque;
use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An event queue.
#[repr(C)]
pub struct Eq {
    fid: FidEq,
    wait_obj: c_int,
    wait: Option<WaitObject>,
    told: Mutex<Told>,
}

/// What waits to be read.
#[derive(Default)]
struct Told {
    events: VecDeque<(u32, Vec<u8>)>,
    errors: VecDeque<EqErrEntry>,
}

/// The program may write events of its own.
const WRITE: u64 = crate::abi::flag::WRITE;
const PEEK: u64 = crate::abi::flag::PEEK;

static FID: Ops<6> = ops![close, not_offered, control, not_offered, not_offered, not_offered];
static EQ: Ops<5> = ops![read, read_error, write, wait_one, strerror];

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
        let wait = match WaitObject::wanted(&mut attr.wait_obj, attr.wait_set) {
            Ok(wait) => wait,
            Err(error) => return error,
        };
        if attr.flags & !WRITE != 0 {
            return -error::EBADFLAGS;
        }
        let fid = Fid { class: class::EQ, context, ops: &FID };
        let (wait_obj, told) = (attr.wait_obj, Mutex::default());
        let eq = Eq { fid: FidEq { fid, ops: &EQ }, wait_obj, wait, told };
        let eq = Box::into_raw(Box::new(eq));
        if let Some(wait) = &(*eq).wait {
            wait.join(eq.cast());
        }
        into.write(eq);
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

    /// Puts in that something failed; this is read before all events.
    pub fn tell_error(&self, entry: EqEntry, err: c_int) {
        let (prov_errno, err_data, err_data_size) = (err, null_mut(), 0);
        let error = EqErrEntry { entry, err, prov_errno, err_data, err_data_size };
        self.told().errors.push_back(error);
        self.wake();
    }

    fn put(&self, event: u32, bytes: Vec<u8>) {
        self.told().events.push_back((event, bytes));
        self.wake();
    }

    fn wake(&self) {
        if let Some(wait) = &self.wait {
            wait.wake();
        }
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether something is here.
    pub fn is_ready(&self) -> bool {
        !self.told().is_empty()
    }

    /// Whether nothing is here.
    pub fn may_sleep(&self) -> bool {
        let told = self.told();
        if let Some(wait) = &self.wait {
            wait.settle();
        }
        told.is_empty()
    }

    unsafe fn take(&self, event: *mut u32, into: *mut c_void, length: usize, flags: u64) -> isize {
        let mut told = self.told();
        if !told.errors.is_empty() {
            return -(error::EAVAIL as isize);
        }
        let Some((kind, bytes)) = told.events.front() else { return -(error::EAGAIN as isize) };
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
            told.events.pop_front();
            if let (true, Some(wait)) = (told.is_empty(), &self.wait) {
                wait.settle();
            }
        }
        taken as isize
    }
}

impl Told {
    fn is_empty(&self) -> bool {
        self.events.is_empty() && self.errors.is_empty()
    }
}

unsafe extern "C" fn close(eq: *mut Eq) -> c_int {
    // SAFETY: made by `open`, and closed once.
    unsafe {
        if let Some(wait) = &(*eq).wait {
            wait.leave(eq.cast());
        }
        drop(Box::from_raw(eq));
    }
    0
}

unsafe extern "C" fn control(eq: *mut Eq, command: c_int, argument: *mut c_void) -> c_int {
    // SAFETY: the interface's pointers.
    unsafe { wait::control((*eq).wait.as_ref(), (*eq).wait_obj, command, argument) }
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

unsafe extern "C" fn read_error(eq: *mut Eq, into: *mut EqErrEntry, flags: u64) -> isize {
    // SAFETY: the interface's pointers.
    unsafe {
        let mut told = (*eq).told();
        let Some(&error) = told.errors.front() else { return -(error::EAGAIN as isize) };
        into.write(error);
        if flags & PEEK == 0 {
            told.errors.pop_front();
        }
    }
    size_of::<EqErrEntry>() as isize
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

unsafe extern "C" fn wait_one(
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
