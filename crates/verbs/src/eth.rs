//! The Ethernet device behind the API.

use crate::Result;
use crate::backend::{DeviceBackend, NO_WEIGHTS, opened, refuse_weight};
use crate::device::{DeviceOptions, FrameWay};
use bellwire_ethernet::{EthDevice, EthFunction, EthOptions, IoKind};

/// The settings that this device knows.
pub(crate) const SETTINGS: &[&str] = &["node", "functions", "io", "fd", "pcap"];

/// Opens the device over `interface`.
pub(crate) fn open(interface: &str, options: &DeviceOptions) -> Result<Box<dyn DeviceBackend>> {
    Ok(opened(station(interface, options)?, options, |station, function, options| {
        refuse_weight(options, NO_WEIGHTS)?;
        Ok(match station.open_function(function)? {
            EthFunction::Packet(port) => port,
            EthFunction::Xdp(port) => port,
            EthFunction::MultiInterface(port) => port,
        })
    }))
}

/// The device itself.
pub(crate) fn station(interface: &str, options: &DeviceOptions) -> Result<EthDevice> {
    let own = EthOptions {
        node: options.node,
        io: options.io.map(|io| match io {
            FrameWay::Xdp => IoKind::Xdp,
            FrameWay::Packet => IoKind::Packet,
        }),
        socket: options.fd,
        capture: options.pcap.clone(),
    };
    EthDevice::open(interface, &own)
}
