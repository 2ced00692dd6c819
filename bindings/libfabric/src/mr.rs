//! Memory that peers access by keys that the program chooses (`mr_mode` 0); offsets count from its
//! start.
//!
//! A region belongs to the domain, and is exposed at each of its endpoints.

use crate::abi::{Fid, FidMr, MrAttr, Ops, class, error, flag, not_offered, ops, value};
use crate::cntr::Cntr;
use crate::domain::Domain;
use crate::ep::Ep;
use crate::library::{Level, log};
use crate::object::{CLOSED_MR, given, object, object_of, retire};
use bellwire::Rights;
use bellwire_tagged::{Refusal, Span};
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A region.
#[repr(C)]
pub struct Mr {
    fid: FidMr,
    domain: *mut Domain,
    span: Span,
    rights: Rights,
    /// Counters of peers' writes and reads; null: none.
    writes: AtomicPtr<Cntr>,
    reads: AtomicPtr<Cntr>,
}

object!(Mr, FidMr, FID, CLOSED_MR);

/// The regions of a domain, and its endpoints.
#[derive(Default)]
pub struct Exposed {
    regions: Vec<*mut Mr>,
    endpoints: Vec<*mut Ep>,
}

static FID: Ops<6> = ops![close, bind, control, not_offered, not_offered, not_offered];
/// The registration operations of a domain.
pub static MR: Ops<3> = ops![register, register_parts, register_as];

impl Exposed {
    /// Adds a new endpoint, and exposes all regions at it.
    ///
    /// # Safety
    /// The endpoint leaves before it is closed.
    pub unsafe fn add_endpoint(&mut self, ep: *mut Ep) -> Result<(), Refusal> {
        for &region in &self.regions {
            // SAFETY: regions leave before they are closed, endpoints by the caller's promise.
            unsafe { (*region).expose(ep) }?;
        }
        self.endpoints.push(ep);
        Ok(())
    }

    /// All endpoints of the domain.
    pub fn endpoints(&self) -> &[*mut Ep] {
        &self.endpoints
    }

    /// Forgets an endpoint that is being closed.
    pub fn remove_endpoint(&mut self, ep: *mut Ep) {
        self.endpoints.retain(|&other| other != ep);
    }

    /// # Safety
    /// The region leaves before it is closed.
    unsafe fn add_region(&mut self, region: *mut Mr) -> Result<(), Refusal> {
        for (at, &ep) in self.endpoints.iter().enumerate() {
            // SAFETY: the caller's promise.
            let exposed = unsafe { (*region).expose(ep) };
            if let Err(refusal) = exposed {
                // SAFETY: as above; these endpoints have exposed it.
                self.endpoints[..at].iter().for_each(|&ep| unsafe { (*region).withdraw(ep) });
                return Err(refusal);
            }
        }
        self.regions.push(region);
        Ok(())
    }

    fn has(&self, key: u64) -> bool {
        // SAFETY: regions leave before they are closed.
        self.regions.iter().any(|&region| unsafe { (*region).fid.key } == key)
    }
}

impl Mr {
    unsafe fn expose(&self, ep: *mut Ep) -> Result<(), Refusal> {
        // SAFETY: the caller's endpoint is open; it forgets the region in `withdraw`.
        unsafe {
            let mut state = (*ep).hold();
            state.endpoint.expose(self.fid.key, self.span, self.rights)?;
            state.bound.know_region(self.fid.key, self);
        }
        for cntr in [&self.writes, &self.reads] {
            // SAFETY: counters are closed after the objects that they are bound to.
            unsafe { watch(cntr.load(Ordering::Acquire), ep) };
        }
        Ok(())
    }

    unsafe fn withdraw(&self, ep: *mut Ep) {
        // SAFETY: the caller's endpoint is open.
        let mut state = unsafe { (*ep).hold() };
        state.endpoint.withdraw(self.fid.key);
        state.bound.forget_region(self.fid.key);
    }

    /// Counts a peer's write or read.
    pub fn count(&self, read: bool) {
        let cntr = if read { &self.reads } else { &self.writes };
        // Acquire pairs with the release of `bind`.
        // SAFETY: counters are closed after the objects that they are bound to.
        if let Some(cntr) = unsafe { cntr.load(Ordering::Acquire).as_ref() } {
            cntr.count(true);
        }
    }
}

/// Makes events at an endpoint wake up a region's counter.
///
/// # Safety
/// Both are open; the counter may be null.
unsafe fn watch(cntr: *const Cntr, ep: *mut Ep) {
    // SAFETY: the caller's promise.
    if let Some(wait) = unsafe { cntr.as_ref() }.and_then(Cntr::wait_object) {
        // SAFETY: as above.
        wait.add(unsafe { (*ep).wait_fd() });
    }
}

/// Binds a counter of peers' accesses. Only endpoints with FI_RMA_EVENT report these.
unsafe extern "C" fn bind(mr: *mut Mr, fid: *mut Fid, flags: u64) -> c_int {
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe {
        let Some(counts) = object_of::<Cntr>(fid) else { return -error::EINVAL };
        if flags & !(flag::REMOTE_WRITE | flag::REMOTE_READ) != 0 || flags == 0 {
            return -error::EBADFLAGS;
        }
        let cntr: *mut Cntr = fid.cast();
        for (which, place) in
            [(flag::REMOTE_WRITE, &(*mr).writes), (flag::REMOTE_READ, &(*mr).reads)]
        {
            if flags & which != 0 {
                counts.users.fetch_add(1, Ordering::Relaxed);
                // Release pairs with the acquire of `count`.
                release(place.swap(cntr, Ordering::AcqRel));
            }
        }
        (*cntr).count_everywhere();
        let exposed = (*(*mr).domain).exposed.hold();
        exposed.endpoints.iter().for_each(|&ep| watch(cntr, ep));
    }
    0
}

/// Releases a counter that was bound; null is ignored.
///
/// # Safety
/// The counter is open, or null.
unsafe fn release(cntr: *mut Cntr) {
    // SAFETY: the caller's promise.
    if let Some(cntr) = unsafe { cntr.as_ref() } {
        cntr.users.fetch_sub(1, Ordering::Relaxed);
    }
}

unsafe extern "C" fn register_as(
    domain: *mut Domain,
    attr: *const MrAttr,
    flags: u64,
    into: *mut *mut Mr,
) -> c_int {
    given!(attr, into);
    // SAFETY: the interface's contract for pointers, see `lib.rs`; the memory stays the program's
    // until the region is closed.
    unsafe {
        let attr = &*attr;
        if flags != 0 {
            return -error::EBADFLAGS;
        }
        if attr.count != 1 || attr.offset != 0 || attr.auth_key_size != 0 {
            return -error::EINVAL;
        }
        given!(attr.iov);
        let part = *attr.iov;
        let start = part.iov_base as usize;
        let fits = part.iov_len <= isize::MAX as usize && start.checked_add(part.iov_len).is_some();
        if start == 0 || part.iov_len == 0 || !fits {
            log(Level::Warn, "memory that is empty, or no memory, cannot be registered");
            return -error::EINVAL;
        }
        let mut rights = Rights::empty();
        rights.set(Rights::REMOTE_READ, attr.access & flag::REMOTE_READ != 0);
        rights.set(Rights::REMOTE_WRITE, attr.access & flag::REMOTE_WRITE != 0);
        let mut exposed = (*domain).exposed.hold();
        if exposed.has(attr.requested_key) {
            return -error::ENOKEY;
        }
        let fid = Fid { class: class::MR, context: attr.context, ops: &FID };
        let fid = FidMr { fid, descriptor: null_mut(), key: attr.requested_key };
        let span = Span::new(part.iov_base.cast(), part.iov_len);
        let (writes, reads) = (AtomicPtr::default(), AtomicPtr::default());
        let region = Box::into_raw(Box::new(Mr { fid, domain, span, rights, writes, reads }));
        if let Err(refusal) = exposed.add_region(region) {
            drop(Box::from_raw(region));
            if let Refusal::Failed(error) = refusal {
                log(Level::Warn, &format!("memory cannot be registered: {error}"));
            }
            return -error::ENOMEM;
        }
        (*domain).users.fetch_add(1, Ordering::Relaxed);
        into.write(region);
    }
    0
}

#[allow(clippy::too_many_arguments)]
unsafe extern "C" fn register_parts(
    domain: *mut Domain,
    iov: *const libc::iovec,
    count: usize,
    access: u64,
    offset: u64,
    requested_key: u64,
    flags: u64,
    into: *mut *mut Mr,
    context: *mut c_void,
) -> c_int {
    let attr = MrAttr { iov, count, access, offset, requested_key, context, auth_key_size: 0 };
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe { register_as(domain, &attr, flags, into) }
}

#[allow(clippy::too_many_arguments)]
unsafe extern "C" fn register(
    domain: *mut Domain,
    start: *const c_void,
    length: usize,
    access: u64,
    offset: u64,
    requested_key: u64,
    flags: u64,
    into: *mut *mut Mr,
    context: *mut c_void,
) -> c_int {
    let part = libc::iovec { iov_base: start.cast_mut(), iov_len: length };
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe { register_parts(domain, &part, 1, access, offset, requested_key, flags, into, context) }
}

unsafe extern "C" fn control(_mr: *mut Mr, command: c_int, _argument: *mut c_void) -> c_int {
    match command {
        // Regions are enabled from the start.
        value::CONTROL_ENABLE => 0,
        _ => -error::ENOSYS,
    }
}

unsafe extern "C" fn close(mr: *mut Mr) -> c_int {
    // SAFETY: made by `register_as`, and open, and so is its domain.
    unsafe {
        let domain = (*mr).domain;
        {
            let mut exposed = (*domain).exposed.hold();
            exposed.regions.retain(|&other| other != mr);
            exposed.endpoints.iter().for_each(|&ep| (*mr).withdraw(ep));
        }
        for place in [&(*mr).writes, &(*mr).reads] {
            release(place.load(Ordering::Acquire));
        }
        (*domain).users.fetch_sub(1, Ordering::Relaxed);
        retire(mr);
    }
    0
}
