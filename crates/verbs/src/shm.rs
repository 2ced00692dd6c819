//! The shared-memory device behind the API.

use crate::device::{AccessMode, DeviceBackend, DeviceOptions};
use crate::engine::Port;
use crate::{FunctionOptions, Result};
use bellwire_shm::ShmDevice;
use bellwire_shm::name::Access;

pub(crate) struct Shm {
    device: ShmDevice,
    functions: u8,
}

impl Shm {
    /// Joins `job`.
    pub(crate) fn open(job: &str, options: &DeviceOptions) -> Result<Shm> {
        let device = ShmDevice::open(job, access_of(options), options.node)?;
        Ok(Shm { device, functions: options.functions })
    }
}

impl DeviceBackend for Shm {
    fn node(&self) -> u32 {
        self.device.node()
    }

    fn functions(&self) -> u8 {
        self.functions
    }

    fn describe(&self) -> String {
        self.device.describe()
    }

    fn open_function(&self, function: u8, options: &FunctionOptions) -> Result<Box<dyn Port>> {
        Ok(Box::new(self.device.open_function(function, options.weight)?))
    }
}

/// Who may connect, in the device's words.
pub(crate) fn access_of(options: &DeviceOptions) -> Access {
    match options.mode {
        AccessMode::Owner => Access::Owner,
        AccessMode::Group(group) => Access::Group(group),
        AccessMode::Everyone => Access::Everyone,
    }
}
