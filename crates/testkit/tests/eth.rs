//! The Ethernet device does what every device must do, by both ways of frames, in networks that the tests make themselves.
//!
//! A network is a namespace that nobody else sees, with a bridge and a veth pair for each node. It vanishes with the last thread
//! and socket in it, however a test ends. Making one needs root and iproute2: without them each test fails and says that it did
//! not run, so that nobody takes it for passed.

use bellwire::{Device, DeviceOptions, FrameWay, Result};
use bellwire_ethernet::testing::{enter_new_namespace, ip};
use bellwire_testkit::conformance::Fixture;
use std::sync::atomic::{AtomicU32, Ordering};

/// Nodes on a bridge in a namespace that this thread is in from now on.
struct Bridged {
    way: FrameWay,
    mtu: usize,
    nodes: AtomicU32,
}

impl Bridged {
    fn new(way: FrameWay, mtu: usize) -> Bridged {
        enter_new_namespace()
            .and_then(|()| {
                ip(&format!("link add bridge mtu {mtu} type bridge\nlink set bridge up"))
            })
            .expect("NOT RUN: making a network namespace needs root, and ip of iproute2");
        Bridged { way, mtu, nodes: AtomicU32::new(0) }
    }
}

impl Fixture for Bridged {
    fn open(&self, options: &DeviceOptions) -> Result<Device> {
        let node = self.nodes.fetch_add(1, Ordering::Relaxed);
        let mtu = self.mtu;
        ip(&format!(
            "link add n{node} mtu {mtu} type veth peer name b{node} mtu {mtu}\n\
             link set b{node} master bridge\n\
             link set b{node} up\n\
             link set n{node} up"
        ))
        .expect("a veth pair");
        let mut options = options.clone();
        options.io = Some(self.way);
        Device::open_with(&format!("eth:n{node}"), &options)
    }
}

/// By AF_PACKET, with frames as on most networks.
mod packet {
    fn packet() -> super::Bridged {
        super::Bridged::new(super::FrameWay::Packet, 1500)
    }
    bellwire_testkit::conformance_tests!(packet);
}

/// By AF_XDP.
mod xdp {
    fn xdp() -> super::Bridged {
        super::Bridged::new(super::FrameWay::Xdp, 1500)
    }
    bellwire_testkit::conformance_tests!(xdp);
}
