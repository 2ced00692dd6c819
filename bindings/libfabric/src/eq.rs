//! Event queues: events of address vectors and connections. Reading a queue drives the endpoints
//! that report to it.

use crate::abi::{
    EqAttr, EqCmEntry, EqEntry, EqErrEntry, Fid, FidEq, Ops, calls, class, enosys, error, flag, ops,
};
use crate::ep::ActiveEndpoint;
use crate::errno::{Errno, Result};
use crate::fabric::Fabric;
use crate::library::{self, OwnedInfo};
use crate::object::{self, CLOSED_EQ, Close, Handle, Opened, close, object};
use crate::passive::PassiveEndpoint;
use crate::pointer::{Buffer, Out, write_bytes};
use crate::reference::{Listed, Ref};
use crate::wait::{Timeout, Waiting};
use std::collections::VecDeque;
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::sync::atomic::AtomicUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An event queue.
#[repr(C)]
pub struct EventQueue {
    fid: FidEq,
    waiting: Waiting,
    /// The interface version of the program.
    api_version: u32,
    pending: Mutex<Pending>,
    /// Endpoints that report their connection events here.
    sources: Mutex<Vec<Source>>,
    _fabric: Ref<Fabric>,
    /// Endpoints, address vectors and poll sets that it is bound to.
    users: AtomicUsize,
}

object!(EventQueue, FidEq, FID, CLOSED_EQ, users);

/// An endpoint that reports connection events.
#[derive(Clone, Copy)]
pub enum Source {
    Active(Listed<ActiveEndpoint>),
    Passive(Listed<PassiveEndpoint>),
}

/// Events and errors that wait to be read.
#[derive(Default)]
struct Pending {
    events: VecDeque<Event>,
    /// Errors with the peer's private data, if there is some.
    errors: VecDeque<(EqErrEntry, Box<[u8]>)>,
    /// Private data of the error read last. The program may use it until it reads the next error.
    error_data: Box<[u8]>,
}

struct Event {
    kind: u32,
    bytes: Vec<u8>,
    /// Bytes that a read must have room for; the rest is truncated.
    required: usize,
    about: Handle,
    /// The info that it names; the program frees it once it has read the event.
    info: Option<OwnedInfo>,
}

/// Longest event that the program may write, in bytes.
const EVENT_BYTES: usize = 1 << 16;

static FID: Ops<6> = ops![close::<EventQueue>, enosys, control];
/// fi_eq(3).
static EQ: Ops<5> = ops![read, readerr, write, sread, library::strerror];

/// `fi_eq_open`.
pub extern "C" fn open(
    fabric: &Fabric,
    attr: Option<&mut EqAttr>,
    into: Out<EventQueue>,
    context: *mut c_void,
) -> c_int {
    object::open(into, || {
        let attr = attr.ok_or(error::EINVAL)?;
        let waiting = Waiting::wanted(&mut attr.wait_obj, attr.wait_set)?;
        if attr.flags & !flag::WRITE != 0 {
            return Err(error::EBADFLAGS);
        }
        let eq = Opened::new(EventQueue {
            fid: FidEq { fid: Fid { class: class::EQ, context, ops: &FID }, ops: &EQ },
            waiting,
            api_version: fabric.api_version(),
            pending: Mutex::default(),
            sources: Mutex::default(),
            _fabric: Ref::to(fabric),
            users: AtomicUsize::new(0),
        });
        eq.waiting.join(Handle::of(&*eq));
        Ok(eq)
    })
}

impl Source {
    fn progress(self) {
        match self {
            Source::Active(ep) => _ = ep.progress(),
            Source::Passive(pep) => pep.progress(),
        }
    }

    fn arm(self) -> bool {
        match self {
            Source::Active(ep) => ep.arm(),
            Source::Passive(pep) => pep.arm(),
        }
    }

    fn handle(self) -> Handle {
        match self {
            Source::Active(ep) => Handle::of(&*ep),
            Source::Passive(pep) => Handle::of(&*pep),
        }
    }
}

impl EventQueue {
    /// Adds an event.
    pub fn report(&self, event: u32, entry: EqEntry) {
        let EqEntry { fid, context, data } = entry;
        let bytes = [fid.address() as u64, context as u64, data].map(u64::to_ne_bytes).concat();
        let required = bytes.len();
        self.push(Event { kind: event, bytes, required, about: fid, info: None });
    }

    /// Adds a connection event with the peer's private data. The program frees the info.
    pub fn report_connection(
        &self,
        event: u32,
        about: Handle,
        info: Option<OwnedInfo>,
        private_data: &[u8],
    ) {
        let named = info.as_ref().map_or(0, OwnedInfo::address);
        let entry = [about.address(), named].map(usize::to_ne_bytes).concat();
        let (bytes, required) = ([&entry, private_data].concat(), size_of::<EqCmEntry>());
        self.push(Event { kind: event, bytes, required, about, info });
    }

    /// Adds an error, with the peer's private data; errors are read before all events.
    pub fn report_error(&self, entry: EqEntry, error: Errno, private_data: &[u8]) {
        let (err, err_data_size) = (error.number(), private_data.len());
        let (prov_errno, err_data) = (err, Buffer::NULL);
        let error = EqErrEntry { entry, err, prov_errno, err_data, err_data_size };
        self.pending().errors.push_back((error, private_data.into()));
        self.waiting.wake();
    }

    fn push(&self, event: Event) {
        self.pending().events.push_back(event);
        self.waiting.wake();
    }

    /// Adds an endpoint with descriptor `fd` that reports here; reading the queue drives it.
    pub fn add(&self, source: Source, fd: c_int) {
        let mut sources = self.sources();
        if sources.iter().all(|other| other.handle() != source.handle()) {
            sources.push(source);
            self.waiting.add(fd);
        }
    }

    /// Forgets an endpoint that is being closed, and its events.
    pub fn remove(&self, source: Handle) {
        self.sources().retain(|other| other.handle() != source);
        let mut pending = self.pending();
        pending.errors.retain(|(error, _)| error.entry.fid != source);
        pending.events.retain(|event| event.about != source);
    }

    fn sources(&self) -> MutexGuard<'_, Vec<Source>> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn progress(&self) {
        for source in self.sources().iter() {
            source.progress();
        }
    }

    /// Clears the wake-up once all is read.
    fn settle(&self, pending: &Pending) {
        if pending.is_empty() {
            self.waiting.settle();
        }
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether an event can be read.
    pub fn is_ready(&self) -> bool {
        self.progress();
        !self.pending().is_empty()
    }

    /// Whether the program may sleep: nothing can be read, and wake-ups are armed.
    pub fn may_sleep(&self) -> bool {
        self.waiting.settle();
        !self.is_ready() && self.sources().iter().all(|source| source.arm())
    }

    fn take(&self, places: &mut Places, flags: u64) -> Result<usize> {
        let Some((kind, into)) = &mut places.0 else { return Err(error::EINVAL) };
        if self.pending().is_empty() {
            self.progress();
        }
        let mut pending = self.pending();
        if !pending.errors.is_empty() {
            return Err(error::EAVAIL);
        }
        let first = pending.events.front().ok_or(error::EAGAIN)?;
        if first.required > into.len() {
            return Err(error::ETOOSMALL);
        }
        kind.write(first.kind);
        let taken = write_bytes(into, &first.bytes);
        if flags & flag::PEEK == 0 {
            if let Some(Event { info: Some(info), .. }) = pending.events.pop_front() {
                info.give_away();
            }
            self.settle(&pending);
        }
        Ok(taken)
    }

    fn wait(&self, places: &mut Places, timeout_ms: c_int, flags: u64) -> Result<usize> {
        let timeout = Timeout::new(timeout_ms);
        loop {
            let taken = self.take(places, flags);
            if taken != Err(error::EAGAIN) || timeout.is_over() {
                return taken;
            }
            match self.waiting.fd() {
                Some(fd) if self.may_sleep() => timeout.sleep(fd),
                Some(_) => {}
                None => std::thread::yield_now(),
            }
        }
    }

    fn take_error(&self, into: &mut EqErrEntry, flags: u64) -> Result<usize> {
        let mut pending = self.pending();
        let (mut error, data) = pending.errors.front().cloned().ok_or(error::EAGAIN)?;
        // A program of a newer version may pass its own buffer for the private data.
        let theirs = match self.api_version >= crate::info::VERSION_1_5 {
            true => into.err_data.room(into.err_data_size).unwrap_or_default(),
            false => &mut [],
        };
        if theirs.is_empty() {
            pending.error_data = data;
            error.err_data = Buffer::of_bytes(&mut pending.error_data);
        } else {
            error.err_data_size = write_bytes(theirs, &data);
            error.err_data = into.err_data;
        }
        *into = error;
        if flags & flag::PEEK == 0 {
            pending.errors.pop_front();
            self.settle(&pending);
        }
        Ok(size_of::<EqErrEntry>())
    }
}

/// The program's places for an event's kind and bytes; `None`: they cannot be memory.
struct Places<'a>(Option<(&'a mut MaybeUninit<u32>, &'a mut [MaybeUninit<u8>])>);

impl<'a> Places<'a> {
    fn new(kind: Option<&'a mut MaybeUninit<u32>>, into: Buffer, length: usize) -> Places<'a> {
        Places(kind.zip(into.room(length).ok()))
    }
}

impl Pending {
    fn is_empty(&self) -> bool {
        self.events.is_empty() && self.errors.is_empty()
    }
}

impl Close for EventQueue {
    fn close(&self) {
        self.waiting.leave(Handle::of(self));
    }
}

calls! {
    eq: &EventQueue;

    fn control(command: c_int, argument: Buffer) -> c_int {
        eq.waiting.control(command, argument)
    }

    fn read(
        kind: Option<&mut MaybeUninit<u32>>, into: Buffer, length: usize, flags: u64
    ) -> isize {
        eq.take(&mut Places::new(kind, into, length), flags)
    }

    fn readerr(into: Option<&mut EqErrEntry>, flags: u64) -> isize {
        eq.take_error(into.ok_or(error::EINVAL)?, flags)
    }

    fn write(kind: u32, from: Buffer, length: usize, flags: u64) -> isize {
        if flags != 0 {
            return Err(error::EBADFLAGS);
        }
        if from.pointer().is_null() || length > EVENT_BYTES {
            return Err(error::EINVAL);
        }
        let bytes = from.elements(length)?.to_vec();
        eq.push(Event { kind, bytes, required: length, about: Handle::NULL, info: None });
        Ok(length)
    }

    fn sread(
        kind: Option<&mut MaybeUninit<u32>>, into: Buffer, length: usize,
        timeout_ms: c_int, flags: u64
    ) -> isize {
        eq.wait(&mut Places::new(kind, into, length), timeout_ms, flags)
    }
}
