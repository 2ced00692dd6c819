//! Passive endpoints: they listen. Their event queue reports connection requests, each with an info
//! to open the answering endpoint.

use crate::abi::{Fid, FidPep, Info, Ops, calls, class, enosys, error, ops, value};
use crate::address;
use crate::connection::private_data;
use crate::domain::open_device;
use crate::ep::{connection_option, open_function};
use crate::eq::{EventQueue, Source};
use crate::errno::Result;
use crate::fabric::Fabric;
use crate::info;
use crate::library::{Level, OwnedInfo, library, log};
use crate::lock::Lock;
use crate::object::{self, CLOSED_PEP, Close, Handle, Opened, close, object};
use crate::pointer::{Buffer, Out};
use crate::reference::{Listed, Ref};
use bellwire::Device;
use bellwire_tagged::{ConnectionEvent, ConnectionRequest, Endpoint, Sink, TaggedCompletion};
use std::ffi::{c_int, c_void};
use std::net::SocketAddrV4;
use std::os::fd::AsRawFd;
use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A passive endpoint.
#[repr(C)]
pub struct PassiveEndpoint {
    fid: FidPep,
    _fabric: Ref<Fabric>,
    device: Device,
    state: Lock<State>,
}

object!(PassiveEndpoint, FidPep, FID, CLOSED_PEP);

struct State {
    /// The listening endpoint, once it has an address.
    endpoint: Option<Box<Endpoint>>,
    /// The address that the program wants.
    wanted: Option<SocketAddrV4>,
    listener: Listener,
}

/// The receiver of its requests' events.
struct Listener {
    pep: Handle,
    eq: Option<Ref<EventQueue>>,
    /// The info that it was opened with.
    info: OwnedInfo,
    name: Option<SocketAddrV4>,
    /// Requests beyond the backlog, to be refused.
    too_many: Vec<ConnectionRequest>,
}

/// A request without an answer: the handle in its info.
#[repr(C)]
struct PendingRequest {
    fid: Fid,
    pep: Handle,
    request: ConnectionRequest,
}

/// The origin of an endpoint that is opened with a handle.
pub enum Origin {
    /// A request to a passive endpoint.
    Request(ConnectionRequest),
    /// It replaces a passive endpoint and takes its name.
    Replaced(Box<Endpoint>, SocketAddrV4),
}

/// Most requests that wait for an answer at one passive endpoint; further ones are refused.
const BACKLOG: usize = 1024;

/// What the handle of an info can stand for.
#[derive(Default)]
struct Handles {
    listeners: Vec<Listed<PassiveEndpoint>>,
    /// Boxed, because their addresses are the handles.
    #[allow(clippy::vec_box)]
    requests: Vec<Box<PendingRequest>>,
}

/// All valid handles: a program may pass a handle twice.
static HANDLES: Mutex<Handles> =
    Mutex::new(Handles { listeners: Vec::new(), requests: Vec::new() });

static FID: Ops<6> = ops![close::<PassiveEndpoint>, bind];
static REQUEST: Ops<6> = ops![];
/// fi_endpoint(3).
static EP: Ops<7> = ops![enosys, getopt];
/// fi_cm(3).
static CM: Ops<9> = ops![setname, getname, enosys, enosys, listen, enosys, reject];

/// `fi_passive_ep`.
pub extern "C" fn open(
    fabric: &Fabric,
    info: Option<&Info>,
    into: Out<PassiveEndpoint>,
    context: *mut c_void,
) -> c_int {
    object::open(into, || {
        let (info, library) = info.zip(library()).ok_or(error::EINVAL)?;
        let attr = info.domain_attr.as_deref().ok_or(error::EINVAL)?;
        if info.ep_attr.as_deref().is_none_or(|ep| ep.kind != value::EP_MSG) {
            log(Level::Warn, "a passive endpoint needs an info of FI_EP_MSG from fi_getinfo");
            return Err(error::EINVAL);
        }
        let (_, device) = open_device(attr.name, "a passive endpoint")?;
        let wanted = info::source(info);
        let (info, too_many) = (library.copy_info(info)?, Vec::new());
        let listener = Listener { pep: Handle::NULL, eq: None, info, name: None, too_many };
        let fid = Fid { class: class::PEP, context, ops: &FID };
        let pep = Opened::new(PassiveEndpoint {
            fid: FidPep { fid, ops: &EP, cm: &CM },
            _fabric: Ref::to(fabric),
            device,
            state: Lock::new(true, State { endpoint: None, wanted, listener }),
        });
        pep.state.lock().listener.pep = Handle::of(&*pep);
        handles().listeners.push(pep.listed());
        Ok(pep)
    })
}

fn handles() -> MutexGuard<'static, Handles> {
    HANDLES.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PendingRequest {
    fn handle(&self) -> Handle {
        Handle::of_fid(&self.fid)
    }
}

impl Handles {
    /// The request of this handle, once.
    fn take(&mut self, handle: Handle) -> Option<ConnectionRequest> {
        let place = self.requests.iter().position(|request| request.handle() == handle)?;
        Some(self.requests.remove(place).request)
    }

    /// Unanswered requests to a passive endpoint.
    fn requests_to(&self, pep: Handle) -> impl Iterator<Item = Handle> {
        self.requests.iter().filter(move |request| request.pep == pep).map(|one| one.handle())
    }
}

/// The object behind a handle, once. `None`: an invalid or used handle, or a passive endpoint that
/// cannot be replaced.
pub fn take(handle: Handle) -> Option<Origin> {
    let is_meant = |pep: &&Listed<PassiveEndpoint>| Handle::of(&***pep) == handle;
    // Lock order: the state of a passive endpoint first, then the handles.
    let pep = handles().listeners.iter().find(is_meant).copied();
    let Some(pep) = pep else { return handles().take(handle).map(Origin::Request) };
    let mut state = pep.state.lock();
    let name = state.listener.name.take()?;
    state.endpoint.take().map(|endpoint| Origin::Replaced(endpoint, name))
}

impl PassiveEndpoint {
    fn listed(&self) -> Listed<PassiveEndpoint> {
        // SAFETY: `close` removes `self` from the handles and from its event queue.
        unsafe { Listed::new(self) }
    }

    /// Handles arrivals, unless another thread does.
    pub fn progress(&self) {
        let Some(mut state) = self.state.try_lock() else { return };
        let State { endpoint: Some(endpoint), listener, .. } = &mut *state else { return };
        if let Err(error) = endpoint.progress(listener) {
            log(Level::Warn, &format!("no progress: {error}"));
        }
        for request in listener.too_many.drain(..) {
            // Without private data it cannot fail.
            let _ = endpoint.reject(&request, &[]);
        }
    }

    /// Arms the wake-up. `false`: there is work already.
    pub fn arm(&self) -> bool {
        match self.state.try_lock().as_deref_mut() {
            Some(State { endpoint: Some(endpoint), .. }) => endpoint.arm().unwrap_or(true),
            Some(_) => true,
            None => false,
        }
    }

    fn reject(&self, handle: Handle, private_data: &[u8]) -> Result {
        let request = handles().take(handle).ok_or(error::EINVAL)?;
        let mut state = self.state.lock();
        let endpoint = state.endpoint.as_mut().ok_or(error::EINVAL)?;
        endpoint.reject(&request, private_data).map_err(|_| error::EINVAL)
    }
}

impl State {
    /// Opens its address, if it has none yet.
    fn settle(&mut self, device: &Device) -> Result<SocketAddrV4> {
        if let Some(name) = self.listener.name {
            return Ok(name);
        }
        let mut endpoint = open_function(device, self.wanted)?;
        endpoint.restrict_to_peer();
        let name = address::name_of(&endpoint, self.wanted);
        (self.endpoint, self.listener.name) = (Some(Box::new(endpoint)), Some(name));
        Ok(name)
    }
}

impl Sink for Listener {
    /// A passive endpoint sends and receives nothing.
    fn completed(&mut self, _done: TaggedCompletion) {}

    fn connection(&mut self, event: ConnectionEvent<'_>) {
        let ConnectionEvent::Requested(request, private_data) = event else { return };
        let (Some(eq), Some(name)) = (&self.eq, self.name) else { return };
        let mut handles = handles();
        if handles.requests_to(self.pep).count() >= BACKLOG {
            self.too_many.push(request);
            return;
        }
        let fid = Fid { class: class::CONNREQ, context: null_mut(), ops: &REQUEST };
        let asked = Box::new(PendingRequest { fid, pep: self.pep, request });
        let from = address::address_of(request.from);
        match info::of_request(&self.info, name, from, asked.handle()) {
            Ok(info) => {
                handles.requests.push(asked);
                drop(handles);
                eq.report_connection(value::EVENT_CONNREQ, self.pep, Some(info), private_data);
            }
            Err(_) => log(Level::Warn, "no memory: a connection request is dropped"),
        }
    }
}

impl Close for PassiveEndpoint {
    fn close(&self) {
        let requests: Vec<_> = {
            let mut handles = handles();
            handles.listeners.retain(|other| !other.is(self));
            handles.requests_to(Handle::of(self)).collect()
        };
        if let Some(eq) = self.state.lock().listener.eq.clone() {
            eq.remove(Handle::of(self));
        }
        for request in requests {
            // A peer that cannot be told notices by itself.
            let _ = self.reject(request, &[]);
        }
    }
}

calls! {
    pep: &PassiveEndpoint;

    fn bind(eq: Handle, flags: u64) -> c_int {
        if flags != 0 {
            return Err(error::EBADFLAGS);
        }
        let eq = eq.object().ok_or(error::EINVAL)?;
        let mut state = pep.state.lock();
        if state.listener.eq.is_some() {
            return Err(error::EOPBADSTATE);
        }
        state.listener.eq = Some(Ref::to(eq));
        Ok(())
    }

    fn getopt(level: c_int, which: c_int, into: Buffer, length: Option<&mut usize>) -> c_int {
        connection_option(level, which, into, length)
    }

    fn setname(name: Buffer, length: usize) -> c_int {
        let name = address::read(name.elements(length)?).ok_or(error::EINVAL)?;
        let mut state = pep.state.lock();
        if state.listener.name.is_some() {
            return Err(error::EOPBADSTATE);
        }
        state.wanted = (name.port() != 0).then_some(name);
        state.settle(&pep.device).map(|_| ())
    }

    fn getname(into: Buffer, length: Option<&mut usize>) -> c_int {
        let length = length.ok_or(error::EINVAL)?;
        let name = pep.state.lock().settle(&pep.device)?;
        address::write(name, into, length)
    }

    fn listen() -> c_int {
        let (eq, fd) = {
            let mut state = pep.state.lock();
            state.settle(&pep.device)?;
            let State { endpoint: Some(endpoint), listener, .. } = &mut *state else {
                return Err(error::EOPBADSTATE);
            };
            let Some(eq) = &listener.eq else {
                log(Level::Warn, "a passive endpoint needs an event queue: call fi_pep_bind first");
                return Err(error::ENOEQ);
            };
            endpoint.listen();
            (eq.clone(), endpoint.wait_fd().as_raw_fd())
        };
        eq.add(Source::Passive(pep.listed()), fd);
        Ok(())
    }

    fn reject(handle: Handle, data: Buffer, length: usize) -> c_int {
        pep.reject(handle, private_data(data, length)?)
    }
}
