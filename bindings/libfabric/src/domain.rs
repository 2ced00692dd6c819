//! The domain: one opening of a device.

use crate::abi::{DomainAttr, Fid, FidDomain, Info, Ops, class, enosys, error, ops, value};
use crate::ep::ActiveEndpoint;
use crate::errno::{Code, Result};
use crate::fabric::Fabric;
use crate::info::ACCESS_CAPS;
use crate::library::{Level, log};
use crate::lock::Lock;
use crate::mr::{self, Exposed};
use crate::object::{self, CLOSED_DOMAIN, Close, Opened, close, object};
use crate::pointer::{Out, Text};
use crate::progress::Progress;
use crate::reference::Ref;
use bellwire::Device;
use std::ffi::{c_int, c_void};
use std::sync::atomic::AtomicUsize;

/// A domain.
#[repr(C)]
pub struct Domain {
    fid: FidDomain,
    _fabric: Ref<Fabric>,
    /// The device; the domain's endpoints are its functions.
    pub device: Device,
    /// Whether several threads may use its objects at once.
    pub shared: bool,
    /// The thread that makes progress for the program.
    pub progress: Option<Progress>,
    /// Exposed memory, and the endpoints that expose it.
    pub exposed: Lock<Exposed>,
    /// Objects that are open in it.
    users: AtomicUsize,
}

object!(Domain, FidDomain, FID, CLOSED_DOMAIN, users);
impl Close for Domain {}

static FID: Ops<6> = ops![close::<Domain>];
/// fi_domain(3).
static DOMAIN: Ops<11> = ops![
    crate::av::open,
    crate::cq::open,
    crate::ep::open,
    enosys,
    crate::cntr::open,
    crate::poll::open,
    crate::shared::open_transmit,
    crate::shared::open_receive,
    crate::atomic::query,
    enosys,
    endpoint2
];

/// `fi_domain`.
pub extern "C" fn open(
    fabric: &Fabric,
    info: Option<&Info>,
    into: Out<Domain>,
    context: *mut c_void,
) -> c_int {
    object::open(into, || {
        let info = info.ok_or(error::EINVAL)?;
        let attr = info.domain_attr.as_deref().ok_or(error::EINVAL)?;
        let (name, device) = open_device(attr.name, "a domain")?;
        log(Level::Info, &format!("{name}: {}", device.describe()));
        let (auto, shared) = threading(info, attr);
        let progress = auto.then(Progress::start).transpose().map_err(|error| {
            let hint = "ask for FI_PROGRESS_MANUAL";
            log(Level::Warn, &format!("the progress thread cannot be started: {error}; {hint}"));
            error::EAGAIN
        })?;
        let fid = Fid { class: class::DOMAIN, context, ops: &FID };
        Ok(Opened::new(Domain {
            fid: FidDomain { fid, ops: &DOMAIN, mr: &mr::MR },
            _fabric: Ref::to(fabric),
            device,
            shared,
            progress,
            exposed: Lock::new(shared, Exposed::default()),
            users: AtomicUsize::new(0),
        }))
    })
}

/// Whether the domain needs a thread that makes progress, and whether its objects need locks.
fn threading(info: &Info, attr: &DomainAttr) -> (bool, bool) {
    // Regions and shared receives belong to all endpoints, and under FI_THREAD_COMPLETION
    // different threads may use these.
    let ep = info.ep_attr.as_deref();
    let shares = ep.is_some_and(|ep| ep.rx_ctx_cnt == value::SHARED_CONTEXT);
    let apart = info.caps & ACCESS_CAPS == 0 && !shares;
    let alone = attr.threading == value::THREAD_DOMAIN
        || apart && attr.threading == value::THREAD_COMPLETION;
    let connected = ep.is_some_and(|ep| ep.kind == value::EP_MSG);
    let auto = attr.data_progress == value::PROGRESS_AUTO
        || connected && attr.control_progress == value::PROGRESS_AUTO;
    // Event queues also drive connected endpoints. They are outside the domain, so its threading
    // promise does not cover them.
    (auto, auto || connected || !alone)
}

/// Opens the device of this name, with all its functions unless the name sets their number.
/// `EINVAL`, `ENODEV`; a line in the log says more about `what` was to be opened.
pub fn open_device(name: Text, what: &str) -> Result<(String, Device)> {
    let Some(name) = name.get() else {
        log(Level::Warn, &format!("{what} needs a domain name: use one from fi_getinfo"));
        return Err(error::EINVAL);
    };
    let name = name.to_string_lossy().into_owned();
    let device = if name.contains("functions=") {
        Device::open(&name)
    } else {
        let sign = if name.contains('?') { '&' } else { '?' };
        Device::open(&format!("{name}{sign}functions={}", crate::address::FUNCTIONS))
    };
    match device {
        Ok(device) => Ok((name, device)),
        Err(error) => {
            log(Level::Warn, &format!("{name}: {error}"));
            Err(error::ENODEV)
        }
    }
}

/// `fi_endpoint2`.
extern "C" fn endpoint2(
    domain: &Domain,
    info: Option<&Info>,
    into: Out<ActiveEndpoint>,
    flags: u64,
    context: *mut c_void,
) -> c_int {
    if flags != 0 {
        return Code::of_error(error::EBADFLAGS);
    }
    crate::ep::open(domain, info, into, context)
}
