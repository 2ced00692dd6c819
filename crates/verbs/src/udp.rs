//! The UDP device behind the API.

use crate::device::{DeviceBackend, DeviceOptions};
use crate::engine::Port;
use crate::{FunctionOptions, Result};
use bellwire_ethernet::{UdpDevice, UdpOptions};
use std::time::Duration;

pub(crate) struct Udp {
    pub(crate) device: UdpDevice,
    functions: u8,
}

impl Udp {
    /// Opens `address`, one of this host.
    pub(crate) fn open(address: &str, options: &DeviceOptions) -> Result<Udp> {
        let own =
            UdpOptions { node: options.node, port: options.port, capture: options.pcap.clone() };
        Ok(Udp { device: UdpDevice::open(address, &own)?, functions: options.functions })
    }
}

impl DeviceBackend for Udp {
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
        Ok(Box::new(self.device.open_function(function)?))
    }

    fn lookup(&self, host: &str, function: u8, timeout: Duration) -> Result<u32> {
        self.device.lookup(host, function, timeout)
    }
}
