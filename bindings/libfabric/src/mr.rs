//! Memory that peers access by keys that the program chooses (`mr_mode` 0); offsets count from its
//! start.
//!
//! A region belongs to the domain, and is exposed at each of its endpoints.

use crate::abi::{Fid, FidMr, IoVec, MrAttr, Ops, calls, class, control_enabled, error, flag, ops};
use crate::cntr::Counter;
use crate::domain::Domain;
use crate::ep::ActiveEndpoint;
use crate::errno::Result;
use crate::library::{Level, log};
use crate::object::{self, CLOSED_MR, Close, Handle, Opened, close, object};
use crate::pointer::{Array, Buffer, Out};
use crate::reference::{AtomicRef, Listed, Ref};
use bellwire::Rights;
use bellwire_tagged::{MemoryAccess, PostError, Span};
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

/// A region.
#[repr(C)]
pub struct MemoryRegion {
    fid: FidMr,
    domain: Ref<Domain>,
    span: Span,
    rights: Rights,
    /// Counters of peers' writes and reads.
    writes: AtomicRef<Counter>,
    reads: AtomicRef<Counter>,
}

object!(MemoryRegion, FidMr, FID, CLOSED_MR);

/// Whether an endpoint has exposed a region.
pub type Registered = std::result::Result<(), PostError>;

/// The regions of a domain, and its endpoints.
#[derive(Default)]
pub struct Exposed {
    regions: Vec<Listed<MemoryRegion>>,
    endpoints: Vec<Listed<ActiveEndpoint>>,
}

static FID: Ops<6> = ops![close::<MemoryRegion>, bind, control_enabled];
/// fi_mr(3).
pub static MR: Ops<3> = ops![reg, regv, regattr];

impl Exposed {
    /// Adds a new endpoint, and exposes all regions at it.
    pub fn add_endpoint(&mut self, ep: Listed<ActiveEndpoint>) -> Registered {
        for &region in &self.regions {
            MemoryRegion::expose(region, &ep)?;
        }
        self.endpoints.push(ep);
        Ok(())
    }

    /// All endpoints of the domain.
    pub fn endpoints(&self) -> &[Listed<ActiveEndpoint>] {
        &self.endpoints
    }

    /// Forgets an endpoint that is being closed.
    pub fn remove_endpoint(&mut self, ep: &ActiveEndpoint) {
        self.endpoints.retain(|other| !other.is(ep));
    }

    fn add_region(&mut self, region: Listed<MemoryRegion>) -> Registered {
        for (at, ep) in self.endpoints.iter().enumerate() {
            if let Err(refusal) = MemoryRegion::expose(region, ep) {
                self.endpoints[..at].iter().for_each(|ep| region.withdraw(ep));
                return Err(refusal);
            }
        }
        self.regions.push(region);
        Ok(())
    }
}

impl MemoryRegion {
    fn expose(region: Listed<MemoryRegion>, ep: &ActiveEndpoint) -> Registered {
        let key = region.fid.key;
        {
            let mut state = ep.lock();
            state.endpoint.expose(key, region.span, region.rights)?;
            state.bound.add_region(key, region);
        }
        for cntr in [&region.writes, &region.reads].into_iter().filter_map(AtomicRef::get) {
            cntr.waiting().add(ep.wait_fd());
        }
        Ok(())
    }

    fn withdraw(&self, ep: &ActiveEndpoint) {
        let mut state = ep.lock();
        state.endpoint.withdraw(self.fid.key);
        state.bound.remove_region(self.fid.key);
    }

    /// Counts a peer's access.
    pub fn count(&self, access: MemoryAccess) {
        Counter::count_access(access, self.writes.get(), self.reads.get());
    }
}

impl Close for MemoryRegion {
    fn close(&self) {
        let mut exposed = self.domain.exposed.lock();
        exposed.regions.retain(|other| !other.is(self));
        exposed.endpoints.iter().for_each(|ep| self.withdraw(ep));
    }
}

/// Registers memory, which must be one part.
fn register(
    domain: &Domain,
    parts: Array<IoVec>,
    count: usize,
    (access, offset, key, flags): (u64, u64, u64, u64),
    context: *mut c_void,
) -> Result<Opened<MemoryRegion>> {
    if flags != 0 {
        return Err(error::EBADFLAGS);
    }
    if count != 1 || offset != 0 {
        return Err(error::EINVAL);
    }
    let part = parts.elements(1)?[0];
    let start = part.base.pointer() as usize;
    let span = part.base.span(part.len).ok();
    let span = span.filter(|_| start != 0 && part.len != 0);
    let Some(span) = span.filter(|_| start.checked_add(part.len).is_some()) else {
        log(Level::Warn, "memory that is empty or null cannot be registered");
        return Err(error::EINVAL);
    };
    let mut rights = Rights::empty();
    rights.set(Rights::REMOTE_READ, access & flag::REMOTE_READ != 0);
    rights.set(Rights::REMOTE_WRITE, access & flag::REMOTE_WRITE != 0);
    let mut exposed = domain.exposed.lock();
    if exposed.regions.iter().any(|region| region.fid.key == key) {
        return Err(error::ENOKEY);
    }
    let fid = Fid { class: class::MR, context, ops: &FID };
    let region = Opened::new(MemoryRegion {
        fid: FidMr { fid, descriptor: null_mut(), key },
        domain: Ref::to(domain),
        span,
        rights,
        writes: AtomicRef::default(),
        reads: AtomicRef::default(),
    });
    // SAFETY: `close` removes the region from the domain, and withdraws it from all endpoints.
    let listed = unsafe { Listed::new(&*region) };
    if let Err(refusal) = exposed.add_region(listed) {
        if let PostError::Failed(error) = refusal {
            log(Level::Warn, &format!("memory cannot be registered: {error}"));
        }
        return Err(error::ENOMEM);
    }
    Ok(region)
}

calls! {
    mr: &MemoryRegion;

    /// Binds a counter of peers' accesses. Only endpoints with FI_RMA_EVENT report these.
    fn bind(cntr: Handle, flags: u64) -> c_int {
        let cntr: &Counter = cntr.object().ok_or(error::EINVAL)?;
        if flags & !(flag::REMOTE_WRITE | flag::REMOTE_READ) != 0 || flags == 0 {
            return Err(error::EBADFLAGS);
        }
        for (which, place) in [(flag::REMOTE_WRITE, &mr.writes), (flag::REMOTE_READ, &mr.reads)] {
            if flags & which != 0 {
                place.set(Ref::to(cntr));
            }
        }
        cntr.count_everywhere();
        // Events at all endpoints wake its sleepers.
        let exposed = mr.domain.exposed.lock();
        exposed.endpoints.iter().for_each(|ep| cntr.waiting().add(ep.wait_fd()));
        Ok(())
    }
}

extern "C" fn regattr(
    domain: &Domain,
    attr: Option<&MrAttr>,
    flags: u64,
    into: Out<MemoryRegion>,
) -> c_int {
    object::open(into, || {
        let attr = attr.ok_or(error::EINVAL)?;
        if flags == 0 && attr.auth_key_size != 0 {
            return Err(error::EINVAL);
        }
        let settings = (attr.access, attr.offset, attr.requested_key, flags);
        register(domain, attr.iov, attr.count, settings, attr.context)
    })
}

#[allow(clippy::too_many_arguments)]
extern "C" fn regv(
    domain: &Domain,
    parts: Array<IoVec>,
    count: usize,
    access: u64,
    offset: u64,
    key: u64,
    flags: u64,
    into: Out<MemoryRegion>,
    context: *mut c_void,
) -> c_int {
    object::open(into, || register(domain, parts, count, (access, offset, key, flags), context))
}

#[allow(clippy::too_many_arguments)]
extern "C" fn reg(
    domain: &Domain,
    start: Buffer,
    len: usize,
    access: u64,
    offset: u64,
    key: u64,
    flags: u64,
    into: Out<MemoryRegion>,
    context: *mut c_void,
) -> c_int {
    let part = [IoVec { base: start, len }];
    let settings = (access, offset, key, flags);
    object::open(into, || register(domain, Array::of(&part), 1, settings, context))
}
