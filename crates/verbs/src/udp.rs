//! The UDP device behind the API.

use crate::Result;
use crate::backend::{DeviceBackend, NO_WEIGHTS, opened, refuse_weight};
use crate::device::DeviceOptions;
use bellwire_ethernet::{UdpDevice, UdpOptions};

/// The settings that this device knows.
pub(crate) const SETTINGS: &[&str] = &["node", "functions", "port", "pcap"];

/// Opens `address`, one of this host.
pub(crate) fn open(address: &str, options: &DeviceOptions) -> Result<Box<dyn DeviceBackend>> {
    Ok(opened(station(address, options)?, options, |station, function, options| {
        refuse_weight(options, NO_WEIGHTS)?;
        Ok(Box::new(station.open_function(function)?))
    }))
}

/// The device itself.
pub(crate) fn station(address: &str, options: &DeviceOptions) -> Result<UdpDevice> {
    let own = UdpOptions { node: options.node, port: options.port, capture: options.pcap.clone() };
    UdpDevice::open(address, &own)
}
