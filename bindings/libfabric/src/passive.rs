//! Passive endpoints: they listen. Their event queue reports connection requests, each with an info
//! to open the answering endpoint.

use crate::abi::{Fid, FidPep, Info, Ops, class, error, not_offered, ops, value};
use crate::address;
use crate::connection::words;
use crate::domain::open_device;
use crate::ep::{self, open_function};
use crate::eq::{Eq, Source};
use crate::fabric::Fabric;
use crate::info;
use crate::library::{Level, library, log};
use crate::lock::Lock;
use crate::object::{CLOSED_PEP, given, object, object_of, retire};
use bellwire::Device;
use bellwire_tagged::{ConnectionEvent, ConnectionRequest, Endpoint, Sink, TaggedCompletion};
use std::ffi::{CStr, c_int, c_void};
use std::net::SocketAddrV4;
use std::os::fd::AsRawFd;
use std::ptr::null_mut;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A passive endpoint.
#[repr(C)]
pub struct Pep {
    fid: FidPep,
    fabric: *mut Fabric,
    device: Device,
    state: Lock<State>,
}

object!(Pep, FidPep, FID, CLOSED_PEP);

struct State {
    /// The listening endpoint, once it has an address.
    endpoint: Option<Box<Endpoint>>,
    /// The address that the program wants.
    wanted: Option<SocketAddrV4>,
    bell: Bell,
}

/// The receiver of its requests' events.
struct Bell {
    pep: *mut Pep,
    eq: *mut Eq,
    /// The info that it was opened with.
    info: *mut Info,
    name: Option<SocketAddrV4>,
    /// Requests beyond the backlog, to be refused.
    too_many: Vec<ConnectionRequest>,
}

/// A request without an answer: the handle in its info.
#[repr(C)]
struct Asked {
    fid: Fid,
    pep: *mut Pep,
    request: ConnectionRequest,
}

/// The origin of an endpoint that is opened with a handle.
pub enum Origin {
    /// A request to a passive endpoint.
    Request(ConnectionRequest),
    /// It replaces a passive endpoint and takes its name.
    Place(Box<Endpoint>, SocketAddrV4),
}

/// Most requests that wait for an answer at one passive endpoint; further ones are refused.
const BACKLOG: usize = 1024;

/// All valid handles, of requests and passive endpoints: a program may pass a handle twice.
static HANDLES: Mutex<Vec<usize>> = Mutex::new(Vec::new());

static FID: Ops<6> = ops![close, bind, not_offered, not_offered, not_offered, not_offered];
static ASKED: Ops<6> =
    ops![not_offered, not_offered, not_offered, not_offered, not_offered, not_offered];
static EP: Ops<7> = ops![
    not_offered,
    ep::cm_data_size,
    not_offered,
    not_offered,
    not_offered,
    not_offered,
    not_offered,
];
static CM: Ops<9> = ops![
    set_name,
    name,
    not_offered,
    not_offered,
    listen,
    not_offered,
    reject,
    not_offered,
    not_offered,
];

/// `fi_passive_ep`.
pub unsafe extern "C" fn open(
    fabric: *mut Fabric,
    info: *mut Info,
    into: *mut *mut Pep,
    context: *mut c_void,
) -> c_int {
    given!(info, into);
    // SAFETY: the interface's contract for pointers, see `lib.rs`. The attributes are those that we
    // gave, or a copy.
    unsafe {
        let (Some(library), Some(attr)) = (library(), (*info).domain_attr.as_ref()) else {
            return -error::EINVAL;
        };
        if (*info).ep_attr.as_ref().is_none_or(|ep| ep.kind != value::EP_MSG) || attr.name.is_null()
        {
            log(Level::Warn, "a passive endpoint needs an info of FI_EP_MSG from fi_getinfo");
            return -error::EINVAL;
        }
        let device = CStr::from_ptr(attr.name).to_string_lossy().into_owned();
        let device = match open_device(&device) {
            Ok(device) => device,
            Err(error) => {
                log(Level::Warn, &format!("{device}: {error}"));
                return -error::ENODEV;
            }
        };
        let wanted = info::source(&*info);
        let info = library.copy_info(info);
        if info.is_null() {
            return -error::ENOMEM;
        }
        let fid = Fid { class: class::PEP, context, ops: &FID };
        let fid = FidPep { fid, ops: &EP, cm: &CM };
        let bell = Bell { pep: null_mut(), eq: null_mut(), info, name: None, too_many: Vec::new() };
        let state = Lock::new(true, State { endpoint: None, wanted, bell });
        (*fabric).users.fetch_add(1, Ordering::Relaxed);
        let pep = Box::into_raw(Box::new(Pep { fid, fabric, device, state }));
        (*pep).state.hold().bell.pep = pep;
        handles().push(pep as usize);
        into.write(pep);
    }
    0
}

fn handles() -> MutexGuard<'static, Vec<usize>> {
    HANDLES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Unanswered requests to a passive endpoint.
fn requests_to(pep: *mut Pep) -> Vec<*mut Fid> {
    let theirs = |fid: &*mut Fid| {
        // SAFETY: handles leave before they are freed.
        unsafe { (**fid).class == class::CONNREQ && (*fid.cast::<Asked>()).pep == pep }
    };
    handles().iter().map(|&handle| handle as *mut Fid).filter(theirs).collect()
}

/// Invalidates a handle; `false` if it was invalid.
fn forget(handle: usize) -> bool {
    let mut handles = handles();
    let before = handles.len();
    handles.retain(|&other| other != handle);
    handles.len() != before
}

/// The object behind a handle, once. `None`: an invalid or used handle, or a passive endpoint that
/// cannot be replaced.
///
/// # Safety
/// No other thread closes the passive endpoint meanwhile.
pub unsafe fn take(handle: *mut Fid) -> Option<Origin> {
    if !handles().contains(&(handle as usize)) {
        return None;
    }
    // SAFETY: handles leave before they are freed.
    unsafe {
        if (*handle).class == class::PEP {
            let mut state = (*handle.cast::<Pep>()).state.hold();
            let name = state.bell.name.take()?;
            return state.endpoint.take().map(|endpoint| Origin::Place(endpoint, name));
        }
        forget(handle as usize).then(|| {
            let Asked { request, .. } = *Box::from_raw(handle.cast::<Asked>());
            Origin::Request(request)
        })
    }
}

impl Pep {
    /// Handles arrivals, unless another thread does.
    pub fn progress(&self) {
        let Some(mut state) = self.state.try_hold() else { return };
        let State { endpoint: Some(endpoint), bell, .. } = &mut *state else { return };
        if let Err(error) = endpoint.progress(bell) {
            log(Level::Warn, &format!("no progress: {error}"));
        }
        for request in bell.too_many.drain(..) {
            // Without private data it cannot fail.
            let _ = endpoint.reject(&request, &[]);
        }
    }

    /// Arms the wake-up. `false`: there is work already.
    pub fn arm(&self) -> bool {
        match self.state.try_hold().as_deref_mut() {
            Some(State { endpoint: Some(endpoint), .. }) => endpoint.arm().unwrap_or(true),
            Some(_) => true,
            None => false,
        }
    }
}

impl State {
    /// Opens its address, if it has none yet.
    fn settle(&mut self, device: &Device) -> Result<SocketAddrV4, c_int> {
        if let Some(name) = self.bell.name {
            return Ok(name);
        }
        let mut endpoint = open_function(device, self.wanted)?;
        endpoint.restrict_to_peer();
        let name = address::name_of(&endpoint, self.wanted);
        (self.endpoint, self.bell.name) = (Some(Box::new(endpoint)), Some(name));
        Ok(name)
    }
}

impl Sink for Bell {
    /// A passive endpoint sends and receives nothing.
    fn completed(&mut self, _completion: TaggedCompletion) {}

    fn connection(&mut self, event: ConnectionEvent<'_>) {
        let ConnectionEvent::Requested(request, says) = event else { return };
        // SAFETY: it listens only while a queue is bound, and the queue is closed after it.
        let (Some(eq), Some(name)) = (unsafe { self.eq.as_ref() }, self.name) else { return };
        if requests_to(self.pep).len() >= BACKLOG {
            self.too_many.push(request);
            return;
        }
        let fid = Fid { class: class::CONNREQ, context: null_mut(), ops: &ASKED };
        let asked = Box::into_raw(Box::new(Asked { fid, pep: self.pep, request }));
        let from = address::address_of(request.from);
        // SAFETY: the info is ours until we are closed.
        match unsafe { info::of_request(self.info, name, from, asked.cast()) } {
            Some(info) => {
                handles().push(asked as usize);
                eq.tell_connection(value::EVENT_CONNREQ, self.pep.cast(), info, says);
            }
            None => {
                log(Level::Warn, "no memory for a request for a connection, which is dropped");
                // SAFETY: made above, and not published.
                drop(unsafe { Box::from_raw(asked) });
            }
        }
    }
}

unsafe extern "C" fn close(pep: *mut Pep) -> c_int {
    // SAFETY: made by `open`, and open, and so are its fabric and event queue.
    unsafe {
        forget(pep as usize);
        let eq = (*pep).state.hold().bell.eq;
        if let Some(eq) = eq.as_ref() {
            eq.remove(Source::Pep(pep));
            eq.users.fetch_sub(1, Ordering::Relaxed);
        }
        for request in requests_to(pep) {
            reject(pep, request, null_mut(), 0);
        }
        if let Some(library) = library() {
            library.free_info((*pep).state.hold().bell.info);
        }
        (*(*pep).fabric).users.fetch_sub(1, Ordering::Relaxed);
        retire(pep);
    }
    0
}

unsafe extern "C" fn bind(pep: *mut Pep, fid: *mut Fid, flags: u64) -> c_int {
    if flags != 0 {
        return -error::EBADFLAGS;
    }
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe {
        let Some(eq) = object_of::<Eq>(fid) else { return -error::EINVAL };
        let mut state = (*pep).state.hold();
        if !state.bell.eq.is_null() {
            return -error::EOPBADSTATE;
        }
        eq.users.fetch_add(1, Ordering::Relaxed);
        state.bell.eq = fid.cast();
    }
    0
}

unsafe extern "C" fn set_name(pep: *mut Pep, name: *const c_void, length: usize) -> c_int {
    if length < address::BYTES {
        return -error::EINVAL;
    }
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe {
        let Some(name) = address::read(name) else { return -error::EINVAL };
        let mut state = (*pep).state.hold();
        if state.bell.name.is_some() {
            return -error::EOPBADSTATE;
        }
        state.wanted = (name.port() != 0).then_some(name);
        match state.settle(&(*pep).device) {
            Ok(_) => 0,
            Err(error) => error,
        }
    }
}

unsafe extern "C" fn name(pep: *mut Pep, into: *mut c_void, length: *mut usize) -> c_int {
    given!(length);
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe {
        match (*pep).state.hold().settle(&(*pep).device) {
            Ok(name) if address::write(name, into, length) => 0,
            Ok(_) => -error::ETOOSMALL,
            Err(error) => error,
        }
    }
}

unsafe extern "C" fn listen(pep: *mut Pep) -> c_int {
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe {
        let (eq, fd) = {
            let mut state = (*pep).state.hold();
            if let Err(error) = state.settle(&(*pep).device) {
                return error;
            }
            let State { endpoint: Some(endpoint), bell, .. } = &mut *state else {
                return -error::EOPBADSTATE;
            };
            if bell.eq.is_null() {
                log(Level::Warn, "a passive endpoint needs an event queue: fi_pep_bind one first");
                return -error::ENOEQ;
            }
            endpoint.listen();
            (bell.eq, endpoint.wait_fd().as_raw_fd())
        };
        (*eq).add(Source::Pep(pep), fd);
    }
    0
}

unsafe extern "C" fn reject(
    pep: *mut Pep,
    handle: *mut Fid,
    says: *const c_void,
    length: usize,
) -> c_int {
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe {
        let Some(says) = words(says, length) else { return -error::EINVAL };
        let is_request =
            handles().contains(&(handle as usize)) && (*handle).class == class::CONNREQ;
        let Some(Origin::Request(request)) = is_request.then(|| take(handle)).flatten() else {
            return -error::EINVAL;
        };
        match (*pep).state.hold().endpoint.as_mut().map(|endpoint| endpoint.reject(&request, says))
        {
            Some(Ok(())) => 0,
            _ => -error::EINVAL,
        }
    }
}
