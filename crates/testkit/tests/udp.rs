//! The UDP device does what every device must do.

use bellwire::{Device, DeviceOptions, Result};
use bellwire_testkit::conformance::Fixture;
use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};

/// Nodes at addresses of loopback: 127.x.y.z, and ports that no other test uses.
struct Udp {
    port: u16,
    nodes: AtomicU32,
}

fn udp() -> Udp {
    static COUNT: AtomicU16 = AtomicU16::new(0);
    // Each test has ports for 256 functions; as addresses differ between processes, runs do not meet.
    let port = 20_000 + 256 * (COUNT.fetch_add(1, Ordering::Relaxed) % 150);
    Udp { port, nodes: AtomicU32::new(0) }
}

impl Fixture for Udp {
    fn open(&self, options: &DeviceOptions) -> Result<Device> {
        let node = self.nodes.fetch_add(1, Ordering::Relaxed);
        let network = 1 + std::process::id() % 120;
        let mut options = options.clone();
        options.port = Some(self.port);
        Device::open_with(&format!("udp:127.{network}.{}.{}", node / 250, 1 + node % 250), &options)
    }
}

bellwire_testkit::conformance_tests!(udp);
