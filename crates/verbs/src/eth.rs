//! The Ethernet device behind the API.

use crate::device::{DeviceBackend, DeviceOptions, FrameWay};
use crate::engine::Port;
use crate::{FunctionOptions, Result};
use bellwire_ethernet::{EthDevice, EthFunction, EthOptions, Way};
use std::time::Duration;

pub(crate) struct Eth {
    pub(crate) device: EthDevice,
    functions: u8,
}

impl Eth {
    /// Opens the device over `interface`.
    pub(crate) fn open(interface: &str, options: &DeviceOptions) -> Result<Eth> {
        let own = EthOptions {
            node: options.node,
            way: options.io.map(|way| match way {
                FrameWay::Xdp => Way::Xdp,
                FrameWay::Packet => Way::Packet,
            }),
            socket: options.fd,
            capture: options.pcap.clone(),
        };
        Ok(Eth { device: EthDevice::open(interface, &own)?, functions: options.functions })
    }
}

impl DeviceBackend for Eth {
    fn node(&self) -> u32 {
        self.device.node()
    }

    fn functions(&self) -> u8 {
        self.functions
    }

    fn describe(&self) -> String {
        self.device.describe()
    }

    fn open_function(&self, function: u8, _: &FunctionOptions) -> Result<Box<dyn Port>> {
        Ok(match self.device.open_function(function)? {
            EthFunction::Packet(port) => port,
            EthFunction::Xdp(port) => port,
            EthFunction::Several(port) => port,
        })
    }

    fn lookup(&self, host: &str, function: u8, timeout: Duration) -> Result<u32> {
        self.device.lookup(host, function, timeout)
    }
}
