//! Devices behind the API. Kinds of devices differ in how their functions are opened.

use crate::device::DeviceOptions;
use crate::engine::DynTransport;
use crate::{Error, FunctionOptions, Result};
use bellwire_device::Station;

/// The part of a device that the API needs. Tests bring their own.
#[doc(hidden)]
pub trait DeviceBackend: Send + Sync {
    /// The node.
    fn station(&self) -> &dyn Station;

    /// Functions that can be opened.
    fn functions(&self) -> u8;

    /// Opens the function's transport. The caller has checked the number, and that the function is
    /// not open yet.
    fn open_function(
        &self,
        function: u8,
        options: &FunctionOptions,
    ) -> Result<Box<dyn DynTransport>>;
}

/// How a function of one kind of device is opened.
pub(crate) type OpenFunction<S> = fn(&S, u8, &FunctionOptions) -> Result<Box<dyn DynTransport>>;

struct Opened<S> {
    station: S,
    functions: u8,
    open: OpenFunction<S>,
}

/// An open device.
pub(crate) fn opened<S: Station + 'static>(
    station: S,
    options: &DeviceOptions,
    open: OpenFunction<S>,
) -> Box<dyn DeviceBackend> {
    Box::new(Opened { station, functions: options.functions, open })
}

impl<S: Station> DeviceBackend for Opened<S> {
    fn station(&self) -> &dyn Station {
        &self.station
    }

    fn functions(&self) -> u8 {
        self.functions
    }

    fn open_function(
        &self,
        function: u8,
        options: &FunctionOptions,
    ) -> Result<Box<dyn DynTransport>> {
        (self.open)(&self.station, function, options)
    }
}

/// Refuses a weight on devices without weights. `range` says why.
pub(crate) fn refuse_weight(options: &FunctionOptions, range: &'static str) -> Result<()> {
    if options.weight == FunctionOptions::default().weight {
        return Ok(());
    }
    Err(Error::OutOfRange { parameter: "weight", value: options.weight.into(), range })
}

/// For networks. Each function has its own socket there, perhaps in different processes, and the
/// kernel schedules them.
pub(crate) const NO_WEIGHTS: &str =
    "16, the default, on eth and udp, where the kernel serves all functions alike; shm has weights";
