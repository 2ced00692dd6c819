//! The shared-memory device behind the API.

use crate::Result;
use crate::backend::{DeviceBackend, opened};
use crate::device::{AccessMode, DeviceOptions};
use bellwire_shm::ShmDevice;
use bellwire_shm::name::Access;

/// The settings that this device knows.
pub(crate) const SETTINGS: &[&str] = &["node", "functions", "mode", "group"];

/// Joins `job`.
pub(crate) fn open(job: &str, options: &DeviceOptions) -> Result<Box<dyn DeviceBackend>> {
    let station = ShmDevice::open(job, access_of(options), options.node)?;
    Ok(opened(station, options, |station, function, options| {
        Ok(Box::new(station.open_function(function, options.weight)?))
    }))
}

/// The processes that may connect, in the device's type.
pub(crate) fn access_of(options: &DeviceOptions) -> Access {
    match options.mode {
        AccessMode::Owner => Access::Owner,
        AccessMode::Group(group) => Access::Group(group),
        AccessMode::Everyone => Access::Everyone,
    }
}
