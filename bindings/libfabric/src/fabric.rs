//! The fabric, which opens domains and event queues.

use crate::abi::{FabricAttr, Fid, FidFabric, Info, Ops, class, error, ops};
use crate::domain::Domain;
use crate::errno::{Code, Result, call};
use crate::library::{Level, log};
use crate::object::{self, CLOSED_FABRIC, Close, Handle, Opened, close, object};
use crate::pointer::{Array, Out};
use crate::wait::Waitable;
use std::ffi::{c_int, c_void};
use std::sync::atomic::AtomicUsize;

/// A fabric.
#[repr(C)]
pub struct Fabric {
    fid: FidFabric,
    /// Objects that are open in it.
    users: AtomicUsize,
}

object!(Fabric, FidFabric, FID, CLOSED_FABRIC, users);
impl Close for Fabric {}

static FID: Ops<6> = ops![close::<Fabric>];
/// fi_fabric(3), fi_poll(3).
static FABRIC: Ops<6> = ops![
    crate::domain::open,
    crate::passive::open,
    crate::eq::open,
    crate::waitset::open,
    trywait,
    domain2,
];

/// `fi_fabric`.
pub extern "C" fn open(
    attr: Option<&FabricAttr>,
    into: Out<Fabric>,
    context: *mut c_void,
) -> c_int {
    object::open(into, || {
        let fid = Fid { class: class::FABRIC, context, ops: &FID };
        let api_version = attr.ok_or(error::EINVAL)?.api_version;
        let fid = FidFabric { fid, ops: &FABRIC, api_version };
        Ok(Opened::new(Fabric { fid, users: AtomicUsize::new(0) }))
    })
}

impl Fabric {
    /// The interface version of the program.
    pub fn api_version(&self) -> u32 {
        self.fid.api_version
    }
}

/// `fi_domain2`.
extern "C" fn domain2(
    fabric: &Fabric,
    info: Option<&Info>,
    into: Out<Domain>,
    flags: u64,
    context: *mut c_void,
) -> c_int {
    if flags != 0 {
        log(Level::Warn, "fi_domain2 was called with flags; no flag is supported");
        return Code::of_error(error::EBADFLAGS);
    }
    crate::domain::open(fabric, info, into, context)
}

/// Whether a program may sleep on the descriptors of these queues: only while they are empty.
extern "C" fn trywait(_fabric: &Fabric, handles: Array<Handle>, count: c_int) -> c_int {
    call(|| -> Result {
        let count = usize::try_from(count).map_err(|_| error::EINVAL)?;
        for &handle in handles.elements(count)? {
            if !Waitable::of(handle).ok_or(error::EINVAL)?.may_sleep() {
                return Err(error::EAGAIN);
            }
        }
        Ok(())
    })
}
