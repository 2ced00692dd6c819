//! The fabric, which opens domains and event queues.

use crate::abi::{FabricAttr, Fid, FidFabric, Info, Ops, class, error, not_offered, ops};
use crate::library::{Level, log};
use crate::object::{CLOSED_FABRIC, given, object, retire};
use crate::wait;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A fabric.
#[repr(C)]
pub struct Fabric {
    fid: FidFabric,
    /// Objects that are open in it.
    pub users: AtomicUsize,
}

object!(Fabric, FidFabric, FID, CLOSED_FABRIC);

static FID: Ops<6> = ops![close, not_offered, not_offered, not_offered, not_offered, not_offered];
static FABRIC: Ops<6> = ops![
    crate::domain::open,
    crate::passive::open,
    crate::eq::open,
    crate::waitset::open,
    try_wait,
    domain_with_flags,
];

/// `fi_fabric`.
pub unsafe extern "C" fn open(
    attr: *const FabricAttr,
    into: *mut *mut Fabric,
    context: *mut c_void,
) -> c_int {
    given!(attr, into);
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe {
        let fid = Fid { class: class::FABRIC, context, ops: &FID };
        let api_version = (*attr).api_version;
        let fid = FidFabric { fid, ops: &FABRIC, api_version };
        into.write(Box::into_raw(Box::new(Fabric { fid, users: AtomicUsize::new(0) })));
    }
    0
}

impl Fabric {
    /// The interface version of the program.
    pub fn api_version(&self) -> u32 {
        self.fid.api_version
    }
}

unsafe extern "C" fn close(fabric: *mut Fabric) -> c_int {
    // SAFETY: made by `open`, and open.
    unsafe {
        if (*fabric).users.load(Ordering::Relaxed) > 0 {
            return -error::EBUSY;
        }
        retire(fabric);
    }
    0
}

unsafe extern "C" fn domain_with_flags(
    fabric: *mut Fabric,
    info: *mut Info,
    into: *mut *mut c_void,
    flags: u64,
    context: *mut c_void,
) -> c_int {
    if flags != 0 {
        log(Level::Warn, "a domain was asked for with flags: there are none that it knows");
        return -error::EBADFLAGS;
    }
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe { crate::domain::open(fabric.cast(), info, into.cast(), context) }
}

/// Whether a program may sleep on the descriptors of these queues: only while they are empty.
unsafe extern "C" fn try_wait(_fabric: *mut Fabric, fids: *mut *mut Fid, count: c_int) -> c_int {
    let Ok(count) = usize::try_from(count) else { return -error::EINVAL };
    if count > 0 {
        given!(fids);
    }
    for at in 0..count {
        // SAFETY: there are `count` objects.
        match unsafe { wait::may_sleep(*fids.add(at)) } {
            Some(true) => {}
            Some(false) => return -error::EAGAIN,
            None => return -error::EINVAL,
        }
    }
    0
}
