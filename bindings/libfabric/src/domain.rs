//! The domain: one opening of a device.

use crate::abi::{Fid, FidDomain, Info, Ops, class, error, not_offered, ops, value};
use crate::fabric::Fabric;
use crate::info::ACCESS_CAPS;
use crate::library::{Level, log};
use crate::lock::Lock;
use crate::mr::{self, Exposed};
use crate::object::{CLOSED_DOMAIN, given, object, retire};
use crate::progress::Progress;
use bellwire::Device;
use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A domain.
#[repr(C)]
pub struct Domain {
    fid: FidDomain,
    fabric: *mut Fabric,
    /// The device; the domain's endpoints are its functions.
    pub device: Device,
    /// Whether several threads may use its objects at once.
    pub shared: bool,
    /// The thread that makes progress for the program.
    pub progress: Option<Progress>,
    /// Exposed memory, and the endpoints that expose it.
    pub exposed: Lock<Exposed>,
    /// Objects that are open in it.
    pub users: AtomicUsize,
}

object!(Domain, FidDomain, FID, CLOSED_DOMAIN);

static FID: Ops<6> = ops![close, not_offered, not_offered, not_offered, not_offered, not_offered];
static DOMAIN: Ops<11> = ops![
    crate::av::open,
    crate::cq::open,
    crate::ep::open,
    not_offered,
    crate::cntr::open,
    crate::poll::open,
    crate::shared::open_stx,
    crate::shared::open_srx,
    crate::atomic::query,
    not_offered,
    endpoint_with_flags,
];

/// `fi_domain`.
pub unsafe extern "C" fn open(
    fabric: *mut Fabric,
    info: *mut Info,
    into: *mut *mut Domain,
    context: *mut c_void,
) -> c_int {
    given!(into);
    // SAFETY: the interface's contract for pointers, see `lib.rs`. A domain's attributes are those
    // that we gave, or a copy.
    unsafe {
        let Some(attr) = info.as_ref().and_then(|info| info.domain_attr.as_ref()) else {
            return -error::EINVAL;
        };
        if attr.name.is_null() {
            log(Level::Warn, "a domain without a name: use one that fi_getinfo returned");
            return -error::EINVAL;
        }
        let name = CStr::from_ptr(attr.name).to_string_lossy().into_owned();
        let device = match open_device(&name) {
            Ok(device) => device,
            Err(error) => {
                log(Level::Warn, &format!("{name}: {error}"));
                return -error::ENODEV;
            }
        };
        log(Level::Info, &format!("{name}: {}", device.describe()));
        // Regions and shared receives belong to all endpoints, and under FI_THREAD_COMPLETION
        // different threads may use these.
        let attr_of_ep = (*info).ep_attr.as_ref();
        let shares = attr_of_ep.is_some_and(|ep| ep.rx_ctx_cnt == value::SHARED_CONTEXT);
        let apart = (*info).caps & ACCESS_CAPS == 0 && !shares;
        let alone =
            |level| level == value::THREAD_DOMAIN || apart && level == value::THREAD_COMPLETION;
        let connected = attr_of_ep.is_some_and(|ep| ep.kind == value::EP_MSG);
        let auto = attr.data_progress == value::PROGRESS_AUTO
            || connected && attr.control_progress == value::PROGRESS_AUTO;
        // Event queues also drive connected endpoints. They are outside the domain, so its
        // threading promise does not cover them.
        let shared = auto || connected || !alone(attr.threading);
        let progress = match auto.then(Progress::start).transpose() {
            Ok(progress) => progress,
            Err(error) => {
                let hint = "ask for FI_PROGRESS_MANUAL";
                log(Level::Warn, &format!("no thread that makes progress: {error}; {hint}"));
                return -error::EAGAIN;
            }
        };
        let fid = Fid { class: class::DOMAIN, context, ops: &FID };
        let fid = FidDomain { fid, ops: &DOMAIN, mr: &mr::MR };
        let users = AtomicUsize::new(0);
        let exposed = Lock::new(shared, Exposed::default());
        (*fabric).users.fetch_add(1, Ordering::Relaxed);
        let domain = Domain { fid, fabric, device, shared, progress, exposed, users };
        into.write(Box::into_raw(Box::new(domain)));
    }
    0
}

/// Opens all functions of the device, unless its name sets their number.
pub fn open_device(name: &str) -> bellwire::Result<Device> {
    if name.contains("functions=") {
        return Device::open(name);
    }
    let sign = if name.contains('?') { '&' } else { '?' };
    Device::open(&format!("{name}{sign}functions={}", crate::address::FUNCTIONS))
}

unsafe extern "C" fn close(domain: *mut Domain) -> c_int {
    // SAFETY: made by `open`, and open, and so is its fabric.
    unsafe {
        if (*domain).users.load(Ordering::Relaxed) > 0 {
            return -error::EBUSY;
        }
        (*(*domain).fabric).users.fetch_sub(1, Ordering::Relaxed);
        retire(domain);
    }
    0
}

unsafe extern "C" fn endpoint_with_flags(
    domain: *mut Domain,
    info: *mut Info,
    into: *mut *mut crate::ep::Ep,
    flags: u64,
    context: *mut c_void,
) -> c_int {
    if flags != 0 {
        return -error::EBADFLAGS;
    }
    // SAFETY: the interface's contract for pointers, see `lib.rs`.
    unsafe { crate::ep::open(domain, info, into, context) }
}
