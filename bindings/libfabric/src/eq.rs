//! Event queues: events of address vectors and connections. Reading a queue drives the endpoints
//! that report to it.

use crate::abi::{
    EqAttr, EqCmEntry, EqEntry, EqErrEntry, Fid, FidEq, Info, Ops, class, error, not_offered, ops,
    value,
};
use crate::ep::Ep;
use crate::fabric::Fabric;
use crate::library::library;
use crate::object::{CLOSED_EQ, given, is_memory, object, retire};
use crate::passive::Pep;
use crate::wait::{self, Patience, WaitObject};
use std::collections::VecDeque;
use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An event queue.
#[repr(C)]
pub struct Eq {
    fid: FidEq,
    wait_obj: c_int,
    wait: Option<WaitObject>,
    /// The interface version of the program.
    api_version: u32,
    told: Mutex<Told>,
    /// Endpoints that report their connection events here.
    sources: Mutex<Vec<Source>>,
    fabric: *mut Fabric,
    /// Endpoints, address vectors and poll sets that it is bound to.
    pub users: AtomicUsize,
}

object!(Eq, FidEq, FID, CLOSED_EQ);

/// An endpoint that reports connection events.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Source {
    Ep(*mut Ep),
    Pep(*mut Pep),
}

/// Events and errors that wait to be read.
#[derive(Default)]
struct Told {
    events: VecDeque<Event>,
    /// Errors with the peer's private data, if there is some.
    errors: VecDeque<(EqErrEntry, Box<[u8]>)>,
    /// Private data of the error read last. The program may use it until it reads the next error.
    words: Box<[u8]>,
}

struct Event {
    kind: u32,
    bytes: Vec<u8>,
    /// Bytes that a read must have room for; the rest is truncated.
    least: usize,
    about: *mut Fid,
}

/// Longest event that the program may write, in bytes.
const EVENT_BYTES: usize = 1 << 16;
/// The program may write events of its own.
const WRITE: u64 = crate::abi::flag::WRITE;
const PEEK: u64 = crate::abi::flag::PEEK;

static FID: Ops<6> = ops![close, not_offered, control, not_offered, not_offered, not_offered];
static EQ: Ops<5> = ops![read, read_error, write, wait_one, strerror];

/// `fi_eq_open`.
pub unsafe extern "C" fn open(
    fabric: *mut Fabric,
    attr: *mut EqAttr,
    into: *mut *mut Eq,
    context: *mut c_void,
) -> c_int {
    given!(attr, into);
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
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
        let (wait_obj, fid) = (attr.wait_obj, FidEq { fid, ops: &EQ });
        let api_version = (*fabric).api_version();
        let (told, sources) = (Mutex::default(), Mutex::default());
        let users = AtomicUsize::new(0);
        (*fabric).users.fetch_add(1, Ordering::Relaxed);
        let eq = Eq { fid, wait_obj, wait, api_version, told, sources, fabric, users };
        let eq = Box::into_raw(Box::new(eq));
        if let Some(wait) = &(*eq).wait {
            wait.join(eq.cast());
        }
        into.write(eq);
    }
    0
}

impl Source {
    /// # Safety
    /// The source leaves the queue before it is closed.
    unsafe fn progress(self) {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Source::Ep(ep) => _ = (*ep).progress(),
                Source::Pep(pep) => (*pep).progress(),
            }
        }
    }

    /// # Safety
    /// As for [`Source::progress`].
    unsafe fn arm(self) -> bool {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Source::Ep(ep) => (*ep).arm(),
                Source::Pep(pep) => (*pep).arm(),
            }
        }
    }

    fn fid(self) -> *mut Fid {
        match self {
            Source::Ep(ep) => ep.cast(),
            Source::Pep(pep) => pep.cast(),
        }
    }
}

impl Eq {
    /// Adds an event.
    pub fn tell(&self, event: u32, entry: EqEntry) {
        let bytes = (&raw const entry).cast::<u8>();
        // SAFETY: a structure without padding, as bytes.
        let bytes = unsafe { std::slice::from_raw_parts(bytes, size_of::<EqEntry>()) };
        self.put(event, bytes.to_vec(), bytes.len(), entry.fid);
    }

    /// Adds a connection event with the peer's private data. The program frees the info.
    pub fn tell_connection(&self, event: u32, about: *mut Fid, info: *mut Info, says: &[u8]) {
        let entry = EqCmEntry { fid: about, info };
        let bytes = (&raw const entry).cast::<u8>();
        // SAFETY: as above.
        let bytes = unsafe { std::slice::from_raw_parts(bytes, size_of::<EqCmEntry>()) };
        self.put(event, [bytes, says].concat(), bytes.len(), about);
    }

    /// Adds an error; errors are read before all events.
    pub fn tell_error(&self, entry: EqEntry, err: c_int) {
        self.put_error(entry, err, &[]);
    }

    /// Adds the refusal of an endpoint's request, with the peer's private data.
    pub fn tell_refused(&self, about: *mut Fid, err: c_int, says: &[u8]) {
        // SAFETY: the endpoint is open.
        let context = unsafe { (*about).context };
        self.put_error(EqEntry { fid: about, context, data: 0 }, err, says);
    }

    fn put_error(&self, entry: EqEntry, err: c_int, says: &[u8]) {
        let (prov_errno, err_data, err_data_size) = (err, null_mut(), says.len());
        let error = EqErrEntry { entry, err, prov_errno, err_data, err_data_size };
        self.told().errors.push_back((error, says.into()));
        self.wake();
    }

    fn put(&self, kind: u32, bytes: Vec<u8>, least: usize, about: *mut Fid) {
        self.told().events.push_back(Event { kind, bytes, least, about });
        self.wake();
    }

    /// Adds an endpoint with descriptor `fd` that reports here; reading the queue drives it.
    pub fn add(&self, source: Source, fd: c_int) {
        let mut sources = self.sources();
        if !sources.contains(&source) {
            sources.push(source);
            if let Some(wait) = &self.wait {
                wait.add(fd);
            }
        }
    }

    /// Forgets an endpoint that is being closed, and its events.
    pub fn remove(&self, source: Source) {
        self.sources().retain(|&other| other != source);
        let mut told = self.told();
        told.errors.retain(|(error, _)| error.entry.fid != source.fid());
        told.events.retain(|event| {
            let stays = event.about != source.fid();
            if !stays && event.kind == value::EVENT_CONNREQ {
                // SAFETY: such an event begins with this structure, and no program has its info
                // yet.
                unsafe {
                    let entry = event.bytes.as_ptr().cast::<EqCmEntry>().read_unaligned();
                    if let Some(library) = library() {
                        library.free_info(entry.info);
                    }
                }
            }
            stays
        });
    }

    fn sources(&self) -> MutexGuard<'_, Vec<Source>> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn progress(&self) {
        for &source in self.sources().iter() {
            // SAFETY: sources leave before they are closed.
            unsafe { source.progress() };
        }
    }

    /// Clears the wake-up once all is read.
    fn settle(&self, told: &Told) {
        if let (true, Some(wait)) = (told.is_empty(), &self.wait) {
            wait.settle();
        }
    }

    fn wake(&self) {
        if let Some(wait) = &self.wait {
            wait.wake();
        }
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether an event can be read.
    pub fn is_ready(&self) -> bool {
        self.progress();
        !self.told().is_empty()
    }

    /// Whether the program may sleep: nothing can be read, and wake-ups are armed.
    pub fn may_sleep(&self) -> bool {
        if let Some(wait) = &self.wait {
            wait.settle();
        }
        // SAFETY: as in `progress`.
        !self.is_ready() && self.sources().iter().all(|source| unsafe { source.arm() })
    }

    unsafe fn take(&self, event: *mut u32, into: *mut c_void, length: usize, flags: u64) -> isize {
        if event.is_null() || !is_memory(into, length) {
            return -(error::EINVAL as isize);
        }
        if self.told().is_empty() {
            self.progress();
        }
        let mut told = self.told();
        if !told.errors.is_empty() {
            return -(error::EAVAIL as isize);
        }
        let Some(first) = told.events.front() else { return -(error::EAGAIN as isize) };
        if first.least > length {
            return -(error::ETOOSMALL as isize);
        }
        let taken = first.bytes.len().min(length);
        // SAFETY: the program's buffers, with at least these lengths.
        unsafe {
            event.write(first.kind);
            std::ptr::copy_nonoverlapping(first.bytes.as_ptr(), into.cast(), taken);
        }
        if flags & PEEK == 0 {
            told.events.pop_front();
            self.settle(&told);
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
    // SAFETY: made by `open`, and open, and so is its fabric.
    unsafe {
        if (*eq).users.load(Ordering::Relaxed) > 0 {
            return -error::EBUSY;
        }
        if let Some(wait) = &(*eq).wait {
            wait.leave(eq.cast());
        }
        (*(*eq).fabric).users.fetch_sub(1, Ordering::Relaxed);
        retire(eq);
    }
    0
}

unsafe extern "C" fn control(eq: *mut Eq, command: c_int, argument: *mut c_void) -> c_int {
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe { wait::control((*eq).wait.as_ref(), (*eq).wait_obj, command, argument) }
}

unsafe extern "C" fn read(
    eq: *mut Eq,
    event: *mut u32,
    into: *mut c_void,
    length: usize,
    flags: u64,
) -> isize {
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe { (*eq).take(event, into, length, flags) }
}

unsafe extern "C" fn read_error(eq: *mut Eq, into: *mut EqErrEntry, flags: u64) -> isize {
    given!(into);
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe {
        let mut told = (*eq).told();
        let Some((mut error, words)) = told.errors.front().cloned() else {
            return -(error::EAGAIN as isize);
        };
        told.words = words;
        error.err_data = told.words.as_mut_ptr().cast();
        // A program of a newer version may pass its own buffer for the private data.
        if (*eq).api_version >= crate::info::VERSION_1_5
            && (*into).err_data_size > 0
            && !(*into).err_data.is_null()
        {
            let (room, data) = ((*into).err_data_size, (*into).err_data);
            error.err_data_size = told.words.len().min(room);
            let from = told.words.as_ptr();
            std::ptr::copy_nonoverlapping(from, data.cast::<u8>(), error.err_data_size);
            error.err_data = data;
        }
        into.write(error);
        if flags & PEEK == 0 {
            told.errors.pop_front();
            (*eq).settle(&told);
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
    given!(from);
    if length > EVENT_BYTES {
        return -(error::EINVAL as isize);
    }
    // SAFETY: the program's bytes.
    unsafe {
        let bytes = std::slice::from_raw_parts(from.cast::<u8>(), length).to_vec();
        let least = bytes.len();
        (*eq).put(event, bytes, least, null_mut());
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
        // SAFETY: the interface's contract for pointers, see `lib.rs`.
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
    // SAFETY: the program's buffer with the stated length, or null.
    unsafe { crate::ep::strerror(number, into, length) }
}
