//! All devices, and how each is opened.

use crate::claims::Claims;
use crate::engine::DynTransport;
use crate::fork::ForkGuard;
use crate::{Error, Result};
use bellwire_device::{DeviceKind, NodeInfo, Settings, Transport, TransportVisitor};
use std::mem::ManuallyDrop;

/// All kinds of devices. A new device is one line more.
pub(crate) const KINDS: &[Kind] = &[
    Kind::of::<bellwire_shm::ShmDevice>(),
    Kind::of::<bellwire_ethernet::EthDevice>(),
    Kind::of::<bellwire_ethernet::UdpDevice>(),
    Kind::of::<bellwire_virtual::VirtualDevice>(),
    Kind::of::<bellwire_rtl::RtlDevice>(),
    Kind::of::<bellwire_auto::AutoDevice>(),
];

/// Functions of a device unless its name says otherwise.
const FUNCTIONS: u8 = 8;

/// A kind of device.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) forms: &'static [&'static str],
    /// Opens the device at a place.
    pub(crate) open: fn(&str, Settings) -> Result<Box<dyn DeviceBackend>>,
    /// Does the same up to the opening.
    pub(crate) check: fn(&str, Settings) -> Result<()>,
}

impl Kind {
    const fn of<D: DeviceKind>() -> Kind {
        Kind { name: D::NAME, forms: D::FORMS, open: open::<D>, check: check::<D> }
    }

    /// The kind of a device, and its place: what its name has before and after the colon.
    pub(crate) fn find(name: &str) -> Result<(&'static Kind, &str)> {
        let bad = |why: &str, kinds: &[Kind]| {
            let forms: Vec<&str> = kinds.iter().flat_map(|kind| kind.forms).copied().collect();
            let why = format!("{why}; the forms are {}", forms.join(", "));
            Error::BadDeviceName { name: name.to_owned(), why }
        };
        let (kind, place) = name
            .split_once(':')
            .ok_or_else(|| bad("there is no colon between kind and place", KINDS))?;
        let known = KINDS.iter().find(|known| known.name == kind);
        let known = known.ok_or_else(|| bad("this kind of device is not known", KINDS))?;
        if place.is_empty() {
            return Err(bad("nothing follows the colon", std::slice::from_ref(known)));
        }
        Ok((known, place))
    }
}

/// An open device, whatever its kind. Tests bring their own.
#[doc(hidden)]
pub trait DeviceBackend: Send + Sync {
    /// The node.
    fn info(&self) -> &dyn NodeInfo;

    /// Functions that can be opened.
    fn functions(&self) -> u8;

    /// Opens the function's transport. The caller has checked the number, and that the function is
    /// not open yet.
    fn open_function(&self, function: u8, weight: u8) -> Result<Box<dyn DynTransport>>;
}

/// One opening of a device, which its functions keep open.
pub(crate) struct Opening {
    pub(crate) fork: ForkGuard,
    pub(crate) name: String,
    pub(crate) backend: ManuallyDrop<Box<dyn DeviceBackend>>,
    pub(crate) claims: Claims,
}

impl Opening {
    pub(crate) fn new(name: &str, backend: Box<dyn DeviceBackend>) -> Result<Opening> {
        let (fork, claims) = (ForkGuard::new()?, Claims::default());
        Ok(Opening { fork, name: name.to_owned(), backend: ManuallyDrop::new(backend), claims })
    }
}

impl Drop for Opening {
    /// In a forked child nothing happens: the parent owns everything.
    fn drop(&mut self) {
        if self.fork.is_same_process() {
            // SAFETY: nothing uses the backend after its owner is dropped.
            unsafe { ManuallyDrop::drop(&mut self.backend) }
        }
    }
}

struct Opened<D> {
    node: D,
    functions: u8,
}

impl<D: DeviceKind> DeviceBackend for Opened<D> {
    fn info(&self) -> &dyn NodeInfo {
        &self.node
    }

    fn functions(&self) -> u8 {
        self.functions
    }

    fn open_function(&self, function: u8, weight: u8) -> Result<Box<dyn DynTransport>> {
        self.node.open_function(function, weight, Boxed)
    }
}

/// Hides the type of a transport.
struct Boxed;

impl TransportVisitor for Boxed {
    type Output = Box<dyn DynTransport>;

    fn visit<T: Transport + 'static>(self, transport: T) -> Box<dyn DynTransport> {
        Box::new(transport)
    }
}

fn open<D: DeviceKind>(place: &str, settings: Settings) -> Result<Box<dyn DeviceBackend>> {
    let (options, functions) = options::<D>(place, settings)?;
    Ok(Box::new(Opened { node: D::open(place, options)?, functions }))
}

fn check<D: DeviceKind>(place: &str, settings: Settings) -> Result<()> {
    options::<D>(place, settings).map(drop)
}

/// The device's own options, and its number of functions, which every device has.
fn options<D: DeviceKind>(place: &str, mut settings: Settings) -> Result<(D::Options, u8)> {
    let options = D::options(place, &mut settings)?;
    let functions = settings.take("functions", "functions are 1 to 255")?.unwrap_or(FUNCTIONS);
    settings.finish(D::NAME)?;
    if functions == 0 {
        return Err(Error::OutOfRange {
            parameter: "functions",
            value: 0,
            range: "1 to 255: function 0 always exists",
        });
    }
    Ok((options, functions))
}
