//! The simulated device behind the API.

use crate::Result;
use crate::backend::{DeviceBackend, opened, refuse_weight};
use crate::device::DeviceOptions;
use bellwire_virtual::{VirtualDevice, VirtualOptions};

/// The settings that this device knows.
pub(crate) const SETTINGS: &[&str] = &["node", "functions", "config", "seed", "programs"];

/// Opens a node of `machine`. Makes the machine if it is not open in this process.
pub(crate) fn open(machine: &str, options: &DeviceOptions) -> Result<Box<dyn DeviceBackend>> {
    let own = VirtualOptions {
        node: options.node,
        config: options.config.clone(),
        seed: options.seed,
        programs: options.programs,
    };
    let station = VirtualDevice::open(machine, &own)?;
    Ok(opened(station, options, |station, function, options| {
        refuse_weight(
            options,
            "16, the default, on model, where nic.arbitration of the configuration says how functions share; shm has weights",
        )?;
        Ok(Box::new(station.open_function(function)?))
    }))
}
